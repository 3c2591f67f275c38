//! Decisions about shell commands.
#![allow(clippy::unwrap_used)]

mod common;

use codespar_policy::{
    AccessRequest, Decision, Lifetime, Mode, RepositoryScope, RuleSet, SandboxState, Scope, decide,
};
use common::{command, reason, rules, run, run_in, run_sandboxed, scope, suggested, word};
use proptest::prelude::*;
use rstest::rstest;

const GIT_LOG: &str = "allow Bash(git log *)";

#[rstest]
// What the rule says.
#[case("git log", "allow")]
#[case("git log --oneline -5", "allow")]
#[case("  git   log  ", "allow")]
#[case("git log \\\n  --oneline", "allow")]
#[case("git log 'a; rm -rf x'", "allow")]
#[case("git log \"a | b\"", "allow")]
#[case("git log # and rm x", "allow")]
#[case("git log -- $branch", "allow")]
#[case("git log \"v$branch\"", "allow")]
#[case("git log src/*.c", "allow")]
#[case("git log; git log -1", "allow")]
#[case("git log && git log || git log", "allow")]
#[case("git log &", "allow")]
#[case("! git log", "allow")]
#[case("(git log)", "allow")]
#[case("{ git log; }", "allow")]
#[case("for f in a b; do git log -- $f; done", "allow")]
#[case("git log 2>&1", "allow")]
#[case("git log > /dev/null", "allow")]
#[case("git log 2>/dev/null >&2", "allow")]
#[case("git log > /tmp/scratch/out", "allow")]
#[case("git log < /w/list", "allow")]
#[case("git log <<'E'\n$(rm x)\nE", "allow")]
#[case("cd /w && git log", "allow")]
#[case("cd /added && git log", "allow")]
#[case("cd .. && git log", "allow")]
#[case("cd src", "allow")]
// What it does not say.
#[case("git logx", "ask")]
#[case("git", "ask")]
#[case("git log | head", "ask")]
#[case("git log; rm -rf x", "ask")]
#[case("git log && rm -rf x", "ask")]
#[case("git log || rm -rf x", "ask")]
#[case("git log & rm -rf x", "ask")]
#[case("git log\nrm -rf x", "ask")]
#[case("git log |& sh", "ask")]
#[case("(git log; rm x)", "ask")]
#[case("if git log; then rm x; fi", "ask")]
#[case("while git log; do rm x; done", "ask")]
#[case("case a in a) rm x;; esac; git log", "ask")]
#[case("git log <<'E' | sh\nrm x\nE", "ask")]
#[case("git log <<'E'\nx\nE\nrm x", "ask")]
// Assignments change what a command does.
#[case("GIT_PAGER=evil git log", "ask")]
#[case("LD_PRELOAD=x git log", "ask")]
#[case("A=1 B=2 git log", "ask")]
#[case("PATH=/tmp/evil; git log", "ask")]
#[case("export PATH=/tmp/evil; git log", "ask")]
#[case("for PATH in /tmp/evil; do git log; done", "ask")]
// Wrappers must be named by a rule.
#[case("sudo git log", "ask")]
#[case("env git log", "ask")]
#[case("xargs git log", "ask")]
#[case("time git log", "ask")]
#[case("command git log", "ask")]
#[case("\"git\" log", "ask")]
#[case("/tmp/evil/git log", "ask")]
// What cannot be analysed.
#[case("git log $(rm x)", "ask")]
#[case("git log `rm x`", "ask")]
#[case("git log \"$(rm x)\"", "ask")]
#[case("git log \"`rm x`\"", "ask")]
#[case("git log <(rm x)", "ask")]
#[case("git log >(rm x)", "ask")]
#[case("git log ${x:-$(rm x)}", "ask")]
#[case("git log ${x@P}", "ask")]
#[case("git log $((a[$(rm x)]))", "ask")]
#[case("git log $((x))", "ask")]
#[case("git log <<E\n$(rm x)\nE", "ask")]
#[case("git log <<E\n`rm x`\nE", "ask")]
#[case("git log <<< \"$(rm x)\"", "ask")]
#[case("git() { rm x; }; git log", "ask")]
#[case("alias git=rm; git log", "ask")]
#[case("eval git log", "ask")]
#[case("source x; git log", "ask")]
#[case("hash -p /tmp/evil git; git log", "ask")]
#[case("trap 'rm x' EXIT; git log", "ask")]
#[case("$GIT log", "ask")]
#[case("git log 'a", "ask")]
#[case("git log (", "ask")]
#[case("git log\rrm x", "ask")]
#[case("git log\0", "ask")]
#[case("git log\u{a0}x", "ask")]
#[case("git log \u{202e}x", "ask")]
#[case("git log $'a\\\\' ; rm -rf 'x'", "ask")]
#[case("git log \"x\"#; rm x", "ask")]
#[case("git log \\ #; rm x", "ask")]
#[case("git log a\\\n#; rm x", "ask")]
#[case("\\ git log", "ask")]
#[case("git log # x\n\\\n> /dev/null rm x", "ask")]
#[case("git log\n> /dev/null rm x", "ask")]
#[case("git log <<'E'\nx\nE\n> /dev/null rm x", "ask")]
#[case("git log\n{}", "ask")]
#[case("-2>/dev/null &", "ask")]
#[case("git log & -ls2>/dev/null", "ask")]
#[case("[[ 'a[$(rm x)]' -eq 0 ]] && git log", "ask")]
#[case("[ a > .git/config ]", "ask")]
#[case("", "ask")]
#[case("# only a comment", "ask")]
// Redirections write.
#[case("git log > out", "ask")]
#[case("git log >> out", "ask")]
#[case("git log >| out", "ask")]
#[case("git log &> out", "ask")]
#[case("git log >& out", "ask")]
#[case("git log 2>out", "ask")]
#[case("git log <> out", "ask")]
#[case("> out git log", "ask")]
#[case("> out", "ask")]
#[case("(git log) > out", "ask")]
#[case("git log > $x", "ask")]
#[case("git log > *", "ask")]
#[case("git log > /dev/tcp/example.com/80", "ask")]
#[case("git log > /dev/../w/x", "ask")]
#[case("git log < /etc/passwd", "ask")]
#[case("git log > /dev/null rm", "allow")]
#[case("> /dev/null rm x", "ask")]
#[case("cd /w && git log > /tmp/scratch/x", "allow")]
#[case("cd /tmp/scratch && git log > x", "ask")]
// Options that write or run, in every spelling.
#[case("git log --output=x", "ask")]
#[case("git log --outp=x", "ask")]
#[case("git log '--output=x'", "ask")]
#[case("git log -- --output=x", "allow")]
#[case("git log --ext-diff", "ask")]
#[case("git log $branch", "ask")]
#[case("git log *", "ask")]
#[case("for f in --output=x; do git log $f; done", "ask")]
// A repository inside the project has a configuration of its own.
#[case("cd nested && git log", "ask")]
#[case("cd /w/src && git log", "ask")]
#[case("cd /added/x; git log", "ask")]
#[case("pushd nested && git log", "ask")]
#[case("cd /w && cd nested && git log", "ask")]
// Directories outside the workspace.
#[case("cd / && git log", "ask")]
#[case("cd ../.. && git log", "ask")]
#[case("cd .. && cd .. && git log", "ask")]
#[case("for i in a b; do cd ..; done; git log", "ask")]
#[case("cd $x && git log", "ask")]
#[case("cd ~ && git log", "ask")]
#[case("cd - && git log", "ask")]
#[case("cd && git log", "ask")]
#[case("CDPATH=/ cd etc && git log", "ask")]
fn a_rule_for_git_log_permits_that_and_no_more(#[case] text: &str, #[case] expected: &str) {
    let decision = run(text, &rules(&[GIT_LOG]), Mode::Default);
    assert_eq!(word(&decision), expected, "{decision:?}");
}

#[rstest]
#[case("Bash(git log:*)", "git log -1", "allow")]
#[case("Bash(git log:*)", "git logx", "ask")]
#[case("Bash(npm run test *)", "npm run test", "allow")]
#[case("Bash(npm run test *)", "npm run tester", "ask")]
#[case("Bash(make check)", "make   check", "allow")]
#[case("Bash(make check)", "make check all", "ask")]
#[case("Bash(* --help)", "cargo --help", "allow")]
#[case("Bash(* --help)", "LD_PRELOAD=x ls --help", "ask")]
#[case("Bash(* --help)", "$x --help", "ask")]
#[case("Bash(NODE_ENV=test npm *)", "NODE_ENV=test npm ci", "allow")]
#[case(
    "Bash(NODE_ENV=test npm *)",
    "NODE_ENV=test LD_PRELOAD=x npm ci",
    "ask"
)]
#[case("Bash(sudo ls *)", "sudo ls -a", "allow")]
#[case("Bash([ *)", "[ -f x ]", "allow")]
#[case("Bash([ *)", "[ a > b ]", "ask")]
#[case("Edit(src/**)", "git log", "ask")]
// A rule that spells out what writes or runs means it.
#[case("Bash(git log --output=x *)", "git log --output=x -1", "allow")]
#[case("Bash(git log --output=x)", "git log --output=x", "allow")]
#[case("Bash(git *)", "git -c core.pager=x log", "ask")]
#[case("Bash(git -c *)", "git -c core.pager=x log", "ask")]
#[case(
    "Bash(git -c core.pager=cat log *)",
    "git -c core.pager=cat log",
    "allow"
)]
#[case("Bash(git grep *)", "git grep -Oless x", "ask")]
#[case("Bash(git grep *)", "git grep -n x", "allow")]
#[case("Bash(find *)", "find . -name x", "allow")]
#[case("Bash(find *)", "find . -fprintf x y", "ask")]
#[case("Bash(find *)", "find . -delete", "ask")]
#[case("Bash(find . -delete)", "find . -delete", "allow")]
#[case("Bash(find . -exec *)", "find . -exec rm {} +", "ask")]
#[case("Bash(find . -exec grep *)", "find . -exec grep x {} +", "allow")]
#[case("Bash(sort *)", "sort -u x", "allow")]
#[case("Bash(sort *)", "sort -ux -o y", "ask")]
#[case("Bash(sort -o *)", "sort -o x y", "allow")]
#[case("Bash(rg *)", "rg --pre sh x", "ask")]
#[case("Bash(sed *)", "sed -n 1,5p x", "allow")]
#[case("Bash(sed *)", "sed -i s/a/b/ x", "ask")]
#[case("Bash(sed -i *)", "sed -i s/a/b/ x", "allow")]
#[case("Bash(sed -i *)", "sed -i 's/a/b/w x' y", "ask")]
#[case("Bash(xargs *)", "xargs rm", "ask")]
#[case("Bash(xargs rm *)", "xargs rm -f", "allow")]
#[case("Bash(xargs git *)", "xargs git log", "ask")]
#[case("Bash(timeout *)", "timeout 5 rm x", "ask")]
#[case("Bash(timeout 5 make *)", "timeout 5 make check", "allow")]
#[case("Bash(timeout 5 sort *)", "timeout 5 sort -o x y", "ask")]
#[case("Bash(env *)", "env make", "ask")]
#[case("Bash(test *)", "test -f x", "allow")]
#[case("Bash(test *)", "test -v 'a[$(id)]'", "ask")]
#[case("Bash(test *)", "command test -v 'a[$(id)]'", "ask")]
#[case("Bash([ *)", "[ -v 'a[$(id)]' ]", "ask")]
#[case("Bash([ *)", "[ ! -v 'a[$(id)]' ]", "ask")]
#[case("Bash([ *)", "[ $x 'a[$(id)]' ]", "ask")]
#[case("Bash([ *)", "[ -f $x ]", "ask")]
#[case("Bash([ *)", "[ -f \"$x\" ]", "allow")]
#[case("Bash([ *)", "[ ! -f \"$x\" ]", "allow")]
#[case("Bash([ *)", "[ \"$x\" = y ]", "allow")]
#[case("Bash([ *)", "[ \"$x\" 'a[$(id)]' ]", "ask")]
#[case("Bash([ *)", "[ -f a -a \"$x\" 'a[$(id)]' ]", "ask")]
#[case("Bash([[ *)", "[[ -v a ]]", "ask")]
#[case("Bash([[ *)", "[[ 'a[$(id)]' -eq 0 ]]", "ask")]
#[case("Bash(printf *)", "printf -v 'a[$(id)]' x", "ask")]
#[case("Bash(printf *)", "printf %s x", "allow")]
#[case("Bash(read *)", "read 'a[$(id)]'", "ask")]
#[case("Bash(wait *)", "wait -n -p 'a[$(id)]'", "ask")]
#[case("Bash(declare *)", "declare 'a[$(id)]=1'", "ask")]
#[case("Bash(let *)", "let 'a[$(id)]'", "ask")]
#[case("Bash(unset *)", "unset 'a[$(id)]'", "ask")]
fn patterns_mean_what_they_say(#[case] rule: &str, #[case] text: &str, #[case] expected: &str) {
    let decision = run(text, &rules(&[&format!("allow {rule}")]), Mode::Default);
    assert_eq!(word(&decision), expected, "{decision:?}");
}

#[rstest]
#[case("ls")]
#[case("ls -la src")]
#[case("cat a b | head -5")]
#[case("cat ../README.md")]
#[case("tail -n 20 log.txt && wc -l log.txt")]
#[case("grep -rn 'fn main' . | sort | uniq -c | sort -rn | head")]
#[case("grep -n /api/v1 src/a.rs")]
#[case("grep -rn --include=*.rs x src")]
#[case("rg -n 'a|b' src")]
#[case("find . -name '*.rs' -not -path './target/*'")]
#[case("git status --short && git log --oneline -5 && git diff --stat && git show HEAD")]
#[case("git --no-pager log -1")]
#[case("timeout 5 grep -r x .")]
#[case("timeout -k 1 -s KILL 10s find . -type f")]
#[case("wc -l src/*.rs")]
#[case("cat a 2>/dev/null || ls")]
#[case("cd src && ls")]
#[case("cat < a")]
#[case("for f in a b; do ls; done")]
#[case("cut -d/ -f2 a | tr / _")]
#[case("cat <<'E'\ntext\nE")]
fn commands_that_only_read_are_free_in_a_sandbox(#[case] text: &str) {
    for mode in Mode::ALL {
        let decision = run_sandboxed(text, &RuleSet::default(), mode);
        assert_eq!(word(&decision), "allow", "{mode} {decision:?}");
    }
    let unruled = run(text, &RuleSet::default(), Mode::Default);
    assert_eq!(word(&unruled), "ask", "{unruled:?}");
    let denied = rules(&["deny Bash"]);
    assert_eq!(word(&run_sandboxed(text, &denied, Mode::Plan)), "deny");
}

#[rstest]
#[case("ls > out")]
#[case("cat a | tee b")]
#[case("cat $(id)")]
#[case("cat <(id)")]
#[case("A=1 ls")]
#[case("/tmp/evil/ls")]
#[case("'ls'")]
#[case("./ls")]
#[case("find . -delete")]
#[case("find . -exec rm {} +")]
#[case("find . -fprintf x y")]
#[case("sort -o x y")]
#[case("sort *")]
#[case("uniq a b")]
#[case("rg --pre sh x")]
#[case("git log --output=x")]
#[case("git diff --ext-diff")]
#[case("git -C nested status")]
#[case("git -c core.fsmonitor=x status")]
#[case("git commit -m x")]
#[case("git status; make")]
#[case("cd nested && git status")]
#[case("timeout 5 rm x")]
#[case("timeout -x 5 ls")]
#[case("timeout $x ls")]
#[case("sed -n 1p a")]
#[case("ls & make")]
#[case("ls | sh")]
#[case("ls | xargs cat")]
#[case("cat $x")]
#[case("cat {a,/etc/passwd}")]
#[case("cat ~/.bashrc")]
fn what_may_do_more_is_not_free(#[case] text: &str) {
    let decided = |mode| word(&run_sandboxed(text, &RuleSet::default(), mode));
    assert_eq!(decided(Mode::Default), "ask");
    assert_eq!(decided(Mode::DontAsk), "deny");
    assert_eq!(decided(Mode::Plan), "deny");
}

#[test]
fn a_rule_permits_reading_outside_and_a_ruled_cd_frees_nothing() {
    let rules = rules(&["allow Bash(cat *)", "allow Bash(cd *)"]);
    let decided = |text| word(&run_sandboxed(text, &rules, Mode::Default));
    assert_eq!(decided("cat /etc/passwd"), "allow");
    assert_eq!(decided("head /etc/passwd"), "ask");
    assert_eq!(decided("cd / && head etc/passwd"), "ask");
    assert_eq!(decided("cd src && head a"), "allow");
}

#[test]
fn a_temporary_file_is_written_freely_but_not_in_plan_mode() {
    let decided = |mode| {
        word(&run_sandboxed(
            "ls > /tmp/scratch/x",
            &RuleSet::default(),
            mode,
        ))
    };
    assert_eq!(decided(Mode::Default), "allow");
    assert_eq!(decided(Mode::Plan), "deny");
}

#[rstest]
#[case("cat /etc/passwd")]
#[case("cat ../../etc/passwd")]
#[case("ls /home/ann/.ssh")]
#[case("find / -name x")]
#[case("grep x /etc/passwd")]
#[case("grep -e x /etc/passwd")]
#[case("grep -vf/etc/passwd a")]
#[case("grep --file=/etc/passwd a")]
#[case("grep -rf ../../etc/passwd a")]
#[case("wc --files0-from=/etc/passwd")]
#[case("git diff --no-index /etc/passwd a")]
#[case("cd src && cat ../../x")]
#[case("cat < /etc/passwd")]
fn reading_outside_is_asked_about_as_for_read(#[case] text: &str) {
    for mode in [Mode::Default, Mode::Plan] {
        let decision = run_sandboxed(text, &RuleSet::default(), mode);
        assert_eq!(word(&decision), "ask", "{decision:?}");
    }
    let allowed = rules(&["allow Read(//**)"]);
    if !text.starts_with("cd") {
        assert_eq!(word(&run_sandboxed(text, &allowed, Mode::Default)), "allow");
    }
}

#[rstest]
#[case("cat secrets/key", "deny")]
#[case("git show HEAD:secrets/key", "deny")]
#[case("git diff -- secrets/key", "deny")]
#[case("grep -r x .", "ask")]
#[case("rg x", "ask")]
#[case("git log -p", "ask")]
#[case("cat */key", "ask")]
#[case("cd secrets && cat key", "ask")]
#[case("grep -fx a", "ask")]
#[case("cat a", "allow")]
#[case("git status", "allow")]
#[case("ls", "allow")]
fn rules_about_files_hold_for_commands_that_read(#[case] text: &str, #[case] expected: &str) {
    let rules = rules(&["deny Read(secrets/**)"]);
    let decision = run_sandboxed(text, &rules, Mode::Default);
    assert_eq!(word(&decision), expected, "{decision:?}");
}

#[rstest]
#[case("git status", "ask")]
#[case("timeout 5 git log", "ask")]
#[case("cd /w && git status", "allow")]
#[case("ls", "allow")]
fn git_in_a_nested_repository_is_asked_about(#[case] text: &str, #[case] expected: &str) {
    let scope = Scope {
        repository: RepositoryScope::Nested,
        ..scope()
    };
    let rules = rules(&["allow Bash(git *)", "allow Bash(timeout 5 git *)"]);
    let decision = run_in(text, &rules, Mode::Default, &scope);
    assert_eq!(word(&decision), expected, "{decision:?}");
}

#[test]
fn in_a_throw_away_tree_everything_the_sandbox_confines_is_free() {
    let mut scope = Scope {
        lifetime: Lifetime::ThrowAway,
        ..scope()
    };
    let decided =
        |scope: &Scope, text: &str, rules: &RuleSet, mode| word(&run_in(text, rules, mode, scope));
    let none = RuleSet::default();
    for text in [
        "make",
        "rm -rf src",
        "echo $(id) > out",
        "npm ci && npm test",
    ] {
        assert_eq!(decided(&scope, text, &none, Mode::Default), "allow");
        assert_eq!(decided(&scope, text, &none, Mode::DontAsk), "allow");
        assert_eq!(decided(&scope, text, &none, Mode::Plan), "deny");
    }
    let ruled = rules(&["deny Bash(rm *)", "ask Bash(make *)"]);
    assert_eq!(decided(&scope, "rm -rf src", &ruled, Mode::Default), "deny");
    assert_eq!(decided(&scope, "make", &ruled, Mode::Default), "ask");
    let edit = |scope: &Scope, path: &str| {
        let request = AccessRequest {
            tool: "Edit",
            read_only: false,
            access: &[codespar_policy::Access::Write(path.into())],
        };
        word(&decide(&request, &none, Mode::Default, scope))
    };
    assert_eq!(edit(&scope, "/w/src/a"), "allow");
    assert_eq!(edit(&scope, "/w/.git/config"), "ask");
    assert_eq!(edit(&scope, "/etc/x"), "ask");
    scope.sandbox_state = SandboxState::Unavailable;
    assert_eq!(decided(&scope, "make", &none, Mode::Default), "ask");
    scope.sandbox_state = SandboxState::SwitchedOff;
    assert_eq!(decided(&scope, "make", &none, Mode::Default), "ask");
}

#[rstest]
#[case("rm -rf x")]
#[case("\"rm\" -rf x")]
#[case("r'm' -rf x")]
#[case("\\rm -rf x")]
#[case("$'\\x72m' -rf x")]
#[case("/bin/rm -rf x")]
#[case("FOO=1 rm x")]
#[case("sudo rm x")]
#[case("sudo -u root /bin/rm x")]
#[case("env A=1 rm x")]
#[case("nice -n 5 rm x")]
#[case("timeout 5 rm x")]
#[case("nohup rm x &")]
#[case("command rm x")]
#[case("exec rm x")]
#[case("ls | xargs rm")]
#[case("ls | xargs -n1 rm -f")]
#[case("find . -name x -exec rm {} \\;")]
#[case("echo $(rm x)")]
#[case("echo \"`rm x`\"")]
#[case("cat <(rm x)")]
#[case("(ls; rm x)")]
#[case("if true; then rm x; fi")]
#[case("f() { rm x; }; f")]
#[case("bash -c 'ls; rm x'")]
#[case("bash -lc \"rm x\"")]
#[case("sudo sh -c 'rm x'")]
#[case("eval 'rm x'")]
#[case("> /dev/null rm x")]
#[case("bash <<'E'\nrm x\nE")]
#[case("sh <<< 'rm x'")]
#[case("echo 'rm x' | sudo sh")]
#[case("ls\rrm x")]
#[case("ls; rm x 'unclosed")]
#[case("rm")]
fn a_deny_rule_sees_through_every_disguise(#[case] text: &str) {
    let rules = rules(&["deny Bash(rm *)", "allow Bash", "allow *"]);
    for mode in Mode::ALL {
        assert_eq!(
            run(text, &rules, mode),
            Decision::Deny {
                reason: "denied by `Bash(rm *)` in settings.json".to_owned()
            }
        );
    }
}

#[rstest]
#[case("git commit -m 'rm x'")]
#[case("git commit -m \"a; rm x\"")]
#[case("echo rm x")]
#[case("rmdir x")]
#[case("ls # rm x")]
fn a_deny_rule_leaves_other_commands_alone(#[case] text: &str) {
    let decision = run(
        text,
        &rules(&["deny Bash(rm *)", "allow Bash"]),
        Mode::Default,
    );
    assert_eq!(word(&decision), "allow", "{decision:?}");
}

#[rstest]
#[case("cat secrets/key", "`Read(/secrets/**)`")]
#[case("cat ../secrets/key", "`Read(/secrets/**)`")]
#[case("sort < /w/secrets/key", "`Read(/secrets/**)`")]
#[case("echo x > /w/secrets/key", "`Read(/secrets/**)`")]
#[case("echo x > /w/sub/.env", "`Edit(.env)`")]
#[case("rm .env", "`Edit(.env)`")]
#[case("bash -c 'echo x > .env'", "`Edit(.env)`")]
#[case("dd if=a of=.env", "`Edit(.env)`")]
#[case("echo x <> .env", "`Edit(.env)`")]
fn forbidden_files_are_forbidden_to_commands_too(#[case] text: &str, #[case] by: &str) {
    let rules = rules(&["allow Bash", "deny Read(/secrets/**)", "deny Edit(.env)"]);
    let decision = run(text, &rules, Mode::BypassPermissions);
    assert_eq!(word(&decision), "deny", "{decision:?}");
    assert!(reason(&decision).contains(by), "{decision:?}");
}

#[rstest]
#[case("anything | at && all", "allow")]
#[case("echo $(id)", "allow")]
#[case("echo 'unclosed", "allow")]
#[case("echo x > /w/out", "allow")]
#[case("echo x > out", "allow")]
#[case("echo x > $y", "allow")]
#[case("echo x > /etc/x", "ask")]
#[case("echo x > /w/.git/hooks/pre-commit", "ask")]
#[case("echo x > ../.git/config", "ask")]
#[case("echo x >> ~/.bashrc", "ask")]
#[case("echo x > .claude/settings.json", "ask")]
#[case("echo $(echo x > /w/.git/config)", "ask")]
fn a_bare_rule_permits_every_command_but_not_every_file(
    #[case] text: &str,
    #[case] expected: &str,
    #[values("allow Bash", "allow Bash(*)")] rule: &str,
) {
    let decision = run(text, &rules(&[rule]), Mode::Default);
    assert_eq!(word(&decision), expected, "{decision:?}");
    assert_eq!(suggested(&decision).is_empty(), !text.contains("/etc"));
}

#[rstest]
#[case(Mode::Default, "ask")]
#[case(Mode::AcceptEdits, "allow")]
fn a_redirection_is_an_edit(#[case] mode: Mode, #[case] expected: &str) {
    let decision = run("git log > /w/src/out", &rules(&[GIT_LOG]), mode);
    assert_eq!(word(&decision), expected);
    let rules = rules(&[GIT_LOG, "allow Edit(src/**)"]);
    assert_eq!(word(&run("git log > /w/src/out", &rules, mode)), "allow");
}

#[test]
fn an_ask_rule_wins_over_an_allow_rule_but_not_in_bypass() {
    let rules = rules(&[
        "allow Bash",
        "ask Bash(git push *)",
        "allow Bash(git push *)",
    ]);
    assert_eq!(
        run("git status && /usr/bin/git push", &rules, Mode::Default),
        Decision::Ask {
            reason: "asked about because of `Bash(git push *)` in settings.json".to_owned(),
            suggested: Vec::new()
        }
    );
    assert_eq!(
        word(&run("git push", &rules, Mode::BypassPermissions)),
        "allow"
    );
    assert_eq!(word(&run("git push", &rules, Mode::DontAsk)), "deny");
}

#[test]
fn the_reason_names_the_part_that_is_not_allowed() {
    let decision = run("git log | head -3", &rules(&[GIT_LOG]), Mode::Default);
    assert_eq!(reason(&decision), "no rule allows `head -3`");
    assert_eq!(suggested(&decision), ["Bash(head *)"]);
    let denied = run("git log | head -3", &rules(&[GIT_LOG]), Mode::DontAsk);
    assert_eq!(
        reason(&denied),
        "dontAsk mode asks nobody, and this would be asked about: no rule allows `head -3`"
    );
    let allowed = run("git log", &rules(&[GIT_LOG]), Mode::Default);
    assert_eq!(
        reason(&allowed),
        "allowed by `Bash(git log *)` in settings.json"
    );
}

#[rstest]
#[case(Mode::Default, "ask")]
#[case(Mode::DontAsk, "deny")]
#[case(Mode::BypassPermissions, "allow")]
fn without_a_sandbox_every_command_is_asked_about(#[case] mode: Mode, #[case] expected: &str) {
    let mut scope = scope();
    scope.sandbox_state = SandboxState::Unavailable;
    let access = [command("git log")];
    let request = AccessRequest {
        tool: "Bash",
        read_only: false,
        access: &access,
    };
    let decision = decide(&request, &rules(&["allow Bash", GIT_LOG]), mode, &scope);
    assert_eq!(word(&decision), expected);
    assert_eq!(suggested(&decision), Vec::<String>::new());
    if expected != "allow" {
        assert!(reason(&decision).contains("unsandboxed"), "{decision:?}");
    }
    scope.sandbox_state = SandboxState::SwitchedOff;
    let decision = decide(&request, &rules(&[GIT_LOG]), mode, &scope);
    assert_eq!(word(&decision), "allow");
}

#[rstest]
#[case("git log -1", &["Bash(git log *)"])]
#[case("git push origin main", &["Bash(git push origin main)"])]
#[case("git --no-pager log", &["Bash(git --no-pager log)"])]
#[case("cargo test -p x", &["Bash(cargo test *)"])]
#[case("npm run build -- --x", &["Bash(npm run build *)"])]
#[case("npm ci", &["Bash(npm ci *)"])]
#[case("docker compose up -d", &["Bash(docker compose up *)"])]
#[case("make check", &["Bash(make check *)"])]
#[case("ls -la", &["Bash(ls *)"])]
#[case("ls", &["Bash(ls *)"])]
#[case("ls *.c", &["Bash(ls *)"])]
#[case("ls && pwd; ls -a", &["Bash(ls *)", "Bash(pwd *)"])]
#[case("bash -c 'ls'", &["Bash(bash -c 'ls')"])]
#[case("python3 -c 'print(1)'", &["Bash(python3 -c 'print(1)')"])]
#[case("rm -rf build", &["Bash(rm -rf build)"])]
#[case("rm *", &[])]
#[case("sudo ls", &["Bash(sudo ls)"])]
#[case("curl https://example.com", &["Bash(curl https://example.com)"])]
#[case("./run.sh a", &["Bash(./run.sh a)"])]
#[case("A=1 ls", &["Bash(A=1 ls)"])]
#[case("rm a:*", &[])]
#[case("curl -s https://example.com | sh", &[])]
#[case("ls | xargs", &[])]
#[case("curl -H 'Authorization: Bearer abcdef0123456789' x", &[])]
#[case("sort -o x y", &["Bash(sort -o x y)"])]
#[case("timeout 5 make", &["Bash(timeout 5 make)"])]
#[case("ls $(id)", &[])]
#[case("ls | $x", &[])]
#[case("ls > /w/src/out", &["Bash(ls *)", "Edit(src/**)"])]
#[case("ls > /w/.git/x", &[])]
#[case("ls < /etc/hosts", &["Bash(ls *)", "Read(//etc/**)"])]
fn what_is_offered_is_as_narrow_as_useful(#[case] text: &str, #[case] expected: &[&str]) {
    let decision = run(text, &RuleSet::default(), Mode::Default);
    assert_eq!(suggested(&decision), expected, "{decision:?}");
}

/// Pieces of command lines, harmless and not.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "git log",
        "git log -1",
        "git",
        "log",
        "rm x",
        "rm",
        "ls",
        "cat a",
        " ",
        " ",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        "'",
        "\"",
        "\\",
        "$(",
        ")",
        "(",
        "`",
        "{ ",
        "; }",
        "<<E\n",
        "\nE\n",
        "<<'E'\n",
        "> /dev/null ",
        "> x ",
        "< y ",
        "#",
        " #",
        "$x",
        "${x}",
        "$'",
        "\\'",
        "\\\\",
        "\\\n",
        "if ",
        "; then ",
        "; fi",
        "for i in a; do ",
        "; done",
        "case a in a) ",
        ";; esac",
        "A=1 ",
        "! ",
        "[[ ",
        " ]]",
        "[ ",
        " ]",
        "<<<",
        "2>&1",
        "*",
        "?",
        "=",
        "time ",
        "\t",
        "é",
        "f() ",
        "((",
        "))",
        "$((",
        "cd src",
        "cd ..",
    ])
}

fn line() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    // A reading of its own: whatever is left of an allowed line once quotes, comments and
    // here-documents are taken away has `git log` (or a free `cd`) wherever a command can begin.
    #[test]
    fn what_git_log_permits_starts_with_git_log_everywhere(text in line()) {
        let decision = run(&text, &rules(&[GIT_LOG]), Mode::Default);
        if let Decision::Allow { .. } = decision {
            for command in oracle::commands(&text) {
                let fine = command.starts_with("git log") || command.starts_with("cd ");
                prop_assert!(fine, "{text:?} runs {command:?}");
            }
        }
    }

    #[test]
    fn a_deny_rule_beats_any_allow_rules(text in line()) {
        let denied = run(&text, &rules(&["deny Bash(rm *)"]), Mode::Default);
        let with_allow = rules(&["allow Bash", "allow *", "allow Bash(rm *)", "deny Bash(rm *)"]);
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
            let decision = run(&text, &with_allow, mode);
            prop_assert_eq!(word(&decision) == "deny", word(&denied) == "deny");
        }
    }

    #[test]
    fn what_is_offered_makes_it_allowed(text in line()) {
        let mut set = RuleSet::default();
        if let Decision::Ask { suggested, reason } = run(&text, &set, Mode::Default) {
            let source = codespar_policy::RuleSource::named("always");
            let offered = !suggested.is_empty();
            for rule in suggested {
                set.add(codespar_policy::RuleKind::Allow, rule, &source);
            }
            if offered {
                let again = run(&text, &set, Mode::Default);
                prop_assert_eq!(word(&again), "allow", "{:?} {} {:?}", text, reason, again);
            }
        }
    }

    #[test]
    fn any_text_is_decided(text in any::<String>()) {
        let decision = run(&text, &rules(&[GIT_LOG]), Mode::Default);
        // A redirection alone runs nothing.
        let excuse = ["git log", "cd", "<", ">"].iter().any(|piece| text.contains(piece));
        prop_assert!(word(&decision) == "ask" || excuse, "{decision:?}");
    }
}

/// A shell reader that shares nothing with the crate, for lines without substitutions.
mod oracle {
    /// Words that open or join commands and are none themselves.
    const GLUE: &[&str] = &[
        "if", "then", "else", "fi", "do", "done", "!", "{", "}", "esac",
    ];

    /// The simple commands in the text, without quotes and redirections.
    pub(crate) fn commands(text: &str) -> Vec<String> {
        let mut commands = Vec::new();
        let mut current = String::new();
        let mut heredoc: Option<String> = None;
        for line in logical_lines(text) {
            if let Some(end) = &heredoc {
                if line.text == *end {
                    heredoc = None;
                }
                continue;
            }
            heredoc = line.heredoc;
            for piece in line.pieces {
                current.clear();
                current.push_str(&piece);
                push(&mut commands, &current);
            }
        }
        commands
    }

    fn push(commands: &mut Vec<String>, text: &str) {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        while words.first().is_some_and(|word| GLUE.contains(word)) {
            words.remove(0);
        }
        if matches!(words.first(), Some(&("for" | "case"))) {
            return;
        }
        if !words.is_empty() {
            commands.push(words.join(" "));
        }
    }

    struct Line {
        text: String,
        pieces: Vec<String>,
        heredoc: Option<String>,
    }

    fn logical_lines(text: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = text;
        let mut waiting: Option<String> = None;
        while !rest.is_empty() {
            if waiting.is_some() {
                let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
                if waiting.as_deref() == Some(line) {
                    waiting = None;
                }
                lines.push(Line {
                    text: line.to_owned(),
                    pieces: Vec::new(),
                    heredoc: None,
                });
                rest = after;
                continue;
            }
            let (line, used) = read_line(rest);
            waiting.clone_from(&line.heredoc);
            lines.push(line);
            rest = &rest[used..];
        }
        lines
    }

    /// Reads up to a newline outside quotes.
    fn read_line(text: &str) -> (Line, usize) {
        let chars: Vec<(usize, char)> = text.char_indices().collect();
        let mut pieces = vec![String::new()];
        let mut heredoc = None;
        let mut at = 0;
        let mut fresh = true;
        let mut used = text.len();
        while at < chars.len() {
            let c = chars[at].1;
            let next = chars.get(at + 1).map(|next| next.1);
            let mut now_fresh = false;
            match c {
                '\n' => {
                    used = chars[at].0 + 1;
                    break;
                }
                '\\' => {
                    if next == Some('\n') {
                        now_fresh = fresh;
                    } else {
                        last(&mut pieces).push('_');
                    }
                    at += 1;
                }
                '\'' => {
                    at += 1;
                    while at < chars.len() && chars[at].1 != '\'' {
                        at += 1;
                    }
                    last(&mut pieces).push('_');
                }
                '$' if next == Some('\'') => {
                    at += 2;
                    while at < chars.len() && chars[at].1 != '\'' {
                        at += usize::from(chars[at].1 == '\\') + 1;
                    }
                    last(&mut pieces).push('_');
                }
                '"' => {
                    at += 1;
                    while at < chars.len() && chars[at].1 != '"' {
                        at += usize::from(chars[at].1 == '\\') + 1;
                    }
                    last(&mut pieces).push('_');
                }
                '#' if fresh => {
                    while at + 1 < chars.len() && chars[at + 1].1 != '\n' {
                        at += 1;
                    }
                }
                '<' if next == Some('<') && chars.get(at + 2).map(|c| c.1) != Some('<') => {
                    heredoc = Some("E".to_owned());
                    at += 2;
                    while at < chars.len() && matches!(chars[at].1, '\'' | 'E' | ' ') {
                        at += 1;
                    }
                    at -= 1;
                }
                '<' | '>' => {
                    // The descriptor, the operator, blanks, and one word.
                    let piece = last(&mut pieces);
                    let kept = piece.trim_end_matches(|c: char| c.is_ascii_digit());
                    if kept.is_empty() || kept.ends_with([' ', '\t']) {
                        piece.truncate(kept.len());
                    }
                    while at + 1 < chars.len() && "<>&|".contains(chars[at + 1].1) {
                        at += 1;
                    }
                    while at + 1 < chars.len() && " \t".contains(chars[at + 1].1) {
                        at += 1;
                    }
                    at = end_of_word(&chars, at);
                }
                ';' | '&' | '|' | '(' | ')' => {
                    // A digit before a redirection and `2>&1` never get here as words.
                    pieces.push(String::new());
                    now_fresh = true;
                }
                c => {
                    now_fresh = c == ' ' || c == '\t';
                    last(&mut pieces).push(c);
                }
            }
            fresh = now_fresh;
            at += 1;
        }
        let line = Line {
            text: text[..used].trim_end_matches('\n').to_owned(),
            pieces,
            heredoc,
        };
        (line, used)
    }

    /// The last character of the word after `at`; quotes in it may hold anything.
    fn end_of_word(chars: &[(usize, char)], mut at: usize) -> usize {
        let get = |at: usize| chars.get(at).map(|next| next.1);
        while let Some(c) = get(at + 1).filter(|c| !" \t\n;&|<>()".contains(*c)) {
            at += 1;
            let is_ansi = c == '$' && get(at + 1) == Some('\'');
            let quote = match c {
                '$' if is_ansi => {
                    at += 1;
                    '\''
                }
                '\'' | '"' => c,
                '\\' => {
                    at += 1;
                    continue;
                }
                _ => continue,
            };
            let has_escapes = is_ansi || quote == '"';
            at += 1;
            while get(at).is_some_and(|c| c != quote) {
                at += usize::from(has_escapes && get(at) == Some('\\')) + 1;
            }
        }
        at.min(chars.len().saturating_sub(1))
    }

    fn last(pieces: &mut Vec<String>) -> &mut String {
        if pieces.is_empty() {
            pieces.push(String::new());
        }
        let at = pieces.len() - 1;
        &mut pieces[at]
    }
}
