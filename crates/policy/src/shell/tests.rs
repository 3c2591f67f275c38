use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn parts(text: &str) -> Vec<String> {
    Script::read(text).parts.iter().map(Part::text).collect()
}

#[rstest]
#[case("git log; rm x", &["git log", "rm x"])]
#[case("git log && ls || pwd", &["git log", "ls", "pwd"])]
#[case("git log | head -1 |& cat", &["git log", "head -1", "cat"])]
#[case("git log & rm x &", &["git log", "rm x"])]
#[case("git log\nrm x", &["git log", "rm x"])]
#[case("(git log; rm x)", &["git log", "rm x"])]
#[case("{ git log; rm x; }", &["git log", "rm x"])]
#[case("! git log", &["git log"])]
#[case("if true; then ls; elif pwd; then id; else rm x; fi", &["true", "ls", "pwd", "id", "rm x"])]
#[case("while true; do ls; done", &["true", "ls"])]
#[case("for i in a b; do ls $i; done", &["ls $i"])]
#[case("case x in a) ls;; b) rm x;; esac", &["ls", "rm x"])]
#[case("git   log\t-1", &["git log -1"])]
#[case("git log \\\n  -1", &["git log -1"])]
#[case("git log 'a; rm x'", &["git log 'a; rm x'"])]
#[case("git log # ; rm x", &["git log"])]
#[case("git log # a\n\n# b\n\nrm x\n\n", &["git log", "rm x"])]
#[case("git log &&\n# b\nrm x |\n ls", &["git log", "rm x", "ls"])]
#[case("if true\nthen\n\n ls\nelse\n pwd\nfi\nid", &["true", "ls", "pwd", "id"])]
#[case("case x in\n a)\n ls\n ;;\nesac\nid", &["ls", "id"])]
#[case("for i in a b\ndo\n ls $i\ndone\n{\n id\n}\n(\n pwd\n)\n", &["ls $i", "id", "pwd"])]
#[case("git log <<'E'\nx\nE\n> /dev/null rm x", &["git log", "rm x"])]
#[case("cat <<'E' > a\nx\nE\n\nrm x", &["cat", "rm x"])]
#[case("git log \"x\"#; rm x", &["git log \"x\"#", "rm x"])]
#[case("ls > a b", &["ls b"])]
#[case("> a rm b", &["rm b"])]
#[case("FOO=1 rm b", &["FOO=1 rm b"])]
#[case("cat <<'E' | sh\n$(x)\nE\nls", &["cat", "sh", "ls"])]
#[case("[ -f x ] && ls", &["[ -f x ]", "ls"])]
fn a_command_line_is_split_into_its_parts(#[case] text: &str, #[case] expected: &[&str]) {
    let script = Script::read(text);
    assert_eq!(script.obstacle, None);
    let mut found: Vec<String> = script.parts.iter().map(Part::text).collect();
    found.sort();
    let mut expected: Vec<&str> = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[rstest]
#[case("ls > a", Direction::Out, "a")]
#[case("ls >> a", Direction::Out, "a")]
#[case("ls >| a", Direction::Out, "a")]
#[case("ls &> a", Direction::Out, "a")]
#[case("ls &>> a", Direction::Out, "a")]
#[case("ls >& a", Direction::Out, "a")]
#[case("ls 2>a", Direction::Out, "a")]
#[case("> a ls", Direction::Out, "a")]
#[case("(ls) > a", Direction::Out, "a")]
#[case("if true; then ls; fi > a", Direction::Out, "a")]
#[case("cat <<'E' > a\nx\nE", Direction::Out, "a")]
#[case("cat < a", Direction::In, "a")]
#[case("cat <> a", Direction::Out, "a")]
#[case("ls > 'a b'", Direction::Out, "a b")]
fn a_redirection_is_found_wherever_it_stands(
    #[case] text: &str,
    #[case] direction: Direction,
    #[case] target: &str,
) {
    let found: Vec<(Direction, String)> = Script::read(text)
        .redirects
        .into_iter()
        .map(|redirect| (redirect.direction, redirect.target.bare))
        .collect();
    assert_eq!(found, [(direction, target.to_owned())]);
}

#[rstest]
#[case("ls 2>&1")]
#[case("ls >&2")]
#[case("ls 2>&-")]
#[case("ls 3<&0")]
fn copying_a_descriptor_touches_no_file(#[case] text: &str) {
    let script = Script::read(text);
    assert_eq!((script.redirects, script.obstacle), (Vec::new(), None));
}

#[rstest]
#[case("ls $(id)")]
#[case("ls `id`")]
#[case("ls \"$(id)\"")]
#[case("ls <(id)")]
#[case("ls >(id)")]
#[case("ls $((1+$(id)))")]
#[case("ls ${x:-$(id)}")]
#[case("ls ${x@P}")]
#[case("$X -a")]
#[case("\"$X\" -a")]
#[case("l? -a")]
#[case("{ls,-a}")]
#[case("~/bin/x")]
#[case("cat <<E\n$(id)\nE")]
#[case("eval ls")]
#[case("source x")]
#[case(". x")]
#[case("exec ls")]
#[case("trap ls EXIT")]
#[case("alias ls=rm")]
#[case("command eval ls")]
#[case("builtin eval ls")]
#[case("printf -v PATH x")]
#[case("hash -p /tmp/x git")]
#[case("set -- a")]
#[case("export A=1")]
#[case("declare A=1")]
#[case("A=1")]
#[case("A=1 B=2")]
#[case("unset A")]
#[case("git() { rm x; }; git log")]
#[case("function git { rm x; }")]
#[case("for PATH in /tmp; do ls; done")]
#[case("for path in /tmp; do ls; done")]
#[case("for http_proxy in x; do ls; done")]
#[case("select x in a; do ls; done")]
#[case("((x=1))")]
#[case("for ((i=0;i<3;i++)); do ls; done")]
#[case("ls 'a")]
#[case("ls \"a")]
#[case("ls (")]
#[case("ls ) x")]
#[case("ls \\")]
#[case("ls\rrm x")]
#[case("ls\0rm x")]
#[case("ls\u{a0}x")]
#[case("ls\u{200b} x")]
#[case("ls\x0bx")]
#[case("git lo\\\ng")]
#[case("\\ ls")]
#[case("ls $'a\\\\' ; rm -rf 'x'")]
#[case("ls a\\\n#; rm x")]
#[case("ls # x\n\\\n> /dev/null rm x")]
#[case("git log\n{}")]
#[case("-2>/dev/null &")]
#[case("ls & -ls2>/dev/null")]
#[case("> /dev/null [\\elif x")]
#[case("> /dev/null [[ ls")]
#[case("{ls; }")]
#[case("[ a > b ]")]
#[case("[ a < b ]")]
#[case("ls <> x")]
#[case("coproc ls")]
#[case("ls !(a|b)")]
#[case("cat <<E <<F\nE\nF")]
#[case("cat <<E; rm x\nE")]
fn what_cannot_be_followed_is_an_obstacle(#[case] text: &str) {
    let script = Script::read(text);
    assert!(script.obstacle.is_some(), "{script:?}");
}

#[rstest]
#[case("ls $x \"$y\" ${z}")]
#[case("ls $((1 + 2))")]
#[case("ls *.c {a,b}")]
#[case("ls $'a\\n' $\"b\"")]
#[case("set -euo pipefail")]
#[case("git commit -m \"it's; a | b\"")]
#[case("grep -E 'a|b' x")]
#[case("echo a#b")]
#[case("ls 2>&1 | head")]
#[case("sleep 1 & wait")]
#[case("cat <<'E'\n$(id) `x`\nE")]
#[case("[[ -f x && -d y ]]")]
fn everyday_commands_are_no_obstacle(#[case] text: &str) {
    assert_eq!(Script::read(text).obstacle, None);
}

#[rstest]
#[case('é')]
#[case('語')]
#[case('🌀')]
#[case('\u{10ffff}')]
fn characters_beyond_ascii_are_parts_of_words(#[case] c: char) {
    let text = format!("{c} a{c} '{c}' \"{c}\" {c}{c} -{c} > {c}2; {c}={c} 2{c}; ls {c}# {{{c}}}");
    let script = Script::read(&text);
    let found: Vec<String> = script.parts.iter().map(Part::text).collect();
    let expected = [
        format!("{c} a{c} '{c}' \"{c}\" {c}{c} -{c}"),
        format!("{c}={c} 2{c}"),
        format!("ls {c}# {{{c}}}"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn commands_inside_substitutions_are_seen() {
    assert_eq!(
        parts("echo \"$(rm x)\" `id`"),
        ["echo \"$(rm x)\" `id`", "rm x", "id"]
    );
}

#[rstest]
#[case("(")]
#[case("$(")]
#[case("`")]
#[case("{ ")]
#[case("if ")]
#[case("<<E ")]
#[case("<<E\n")]
#[case("a;")]
#[case("${a:-")]
#[case("[[ ")]
#[case("((")]
#[case("case x in a) ")]
#[case("\"$(")]
#[case("f() { ")]
#[case("a=(")]
#[case("! ")]
#[case("a && ")]
#[case("> x ")]
#[case("$((")]
fn long_tangles_come_to_an_end(#[case] piece: &str) {
    let text = piece.repeat(60_000 / piece.len());
    let _ = Script::read(&text);
}

#[test]
fn a_very_long_command_is_not_analysed() {
    let script = Script::read(&"ls ".repeat(30_000));
    assert_eq!(script.obstacle.as_deref(), Some("it is longer than 64 KiB"));
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        let _ = Script::read(&text);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Script::read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_mix_of_shell_is_read_without_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "git log", "rm", " ", ";", "&&", "|", "\n", "'", "\"", "$(", ")", "`", "{", "}",
                "<<E", "\nE\n", ">", "<", "#", "\\", "$x", "if", "then", "fi", "(", "=", "a",
                "case", "esac", "in", ";;", "[[", "]]", "é",
            ]),
            0..30,
        ),
    ) {
        let _ = Script::read(&pieces.concat());
    }
}
