//! Answers by example, and what holds for every answer.

use proptest::prelude::*;
use rstest::rstest;

use super::{
    markers::{is_divider, marker},
    *,
};

fn written(path: &str, content: &str) -> Op {
    Op::Write {
        path: path.into(),
        content: content.into(),
    }
}

fn edited(path: &str, edits: &[(&str, &str)]) -> Op {
    let edits = edits.iter().map(|(search, replace)| Block {
        search: (*search).into(),
        replace: (*replace).into(),
    });
    Op::Edit {
        path: path.into(),
        edits: edits.collect(),
    }
}

/// As `codespar apply` reads it: nothing is known but the text.
fn parse(text: &str) -> Result<ParsedAnswer, AnswerError> {
    super::parse(text, &AnswerContext::default())
}

fn ops(text: &str) -> Vec<Op> {
    parse(text).unwrap().ops
}

fn problems(text: &str) -> Vec<(usize, Option<String>, String)> {
    let problems = parse(text).unwrap_err().problems.into_iter();
    problems
        .map(|problem| (problem.line, problem.path, problem.reason))
        .collect()
}

#[test]
fn every_kind_of_block_is_read_in_order_and_the_rest_is_the_summary() {
    let text = "Raise the timeout\n\nSessions expired too fast.\n\n===FILE: new.rs===\nfn a() {}\n\
                ===END===\n\n===FILE: src/old.rs===\n<<<SEARCH\na\n\nb\n>>>REPLACE\nc\n<<<SEARCH\nd\n\
                >>>REPLACE\n===END===\n\n===DELETE: gone.rs===\n===MOVE: a/b.rs -> c/d.rs===\n\nDone.\n";
    assert_eq!(
        parse(text).unwrap(),
        ParsedAnswer {
            summary: "Raise the timeout\n\nSessions expired too fast.\n\nDone.".into(),
            ops: vec![
                written("new.rs", "fn a() {}\n"),
                edited("src/old.rs", &[("a\n\nb", "c"), ("d", "")]),
                Op::Delete {
                    path: "gone.rs".into()
                },
                Op::Move {
                    from: "a/b.rs".into(),
                    to: "c/d.rs".into()
                },
            ],
            requests: vec![],
        }
    );
    let crlf = parse(&text.replace('\n', "\r\n")).unwrap();
    assert_eq!(crlf, parse(text).unwrap());
    let spaced = text
        .replace("===\n", "===  \t\n")
        .replace("SEARCH\n", "SEARCH \n");
    assert_eq!(parse(&spaced).unwrap(), crlf);
}

#[test]
fn an_answer_without_blocks_has_no_ops() {
    let answer = parse("I cannot do that.\n").unwrap();
    assert_eq!(
        (answer.summary.as_str(), answer.ops),
        ("I cannot do that.", vec![])
    );
    assert_eq!(parse("").unwrap(), ParsedAnswer::default());
}

#[rstest]
#[case::empty_file("===FILE: e===\n===END===", written("e", ""))]
#[case::no_space("===FILE:a===\nx\n===END===", written("a", "x\n"))]
#[case::backticks("===FILE: `a b.rs` ===\nx\n===END===", written("a b.rs", "x\n"))]
#[case::blank_lines_stay("===FILE: a===\n\nx\n\n===END===", written("a", "\nx\n\n"))]
#[case::escaped(
    "===FILE: a===\n\\===END===\n\\\\<<<SEARCH\n\\x\n\\>>>>>>> REPLACE\n=======\n\\=======\n===END===",
    written(
        "a",
        "===END===\n\\<<<SEARCH\n\\x\n>>>>>>> REPLACE\n=======\n\\=======\n"
    )
)]
#[case::indented_or_not_alone(
    "===FILE: a===\n ===END===\n===END=== x\n===END===",
    written("a", " ===END===\n===END=== x\n")
)]
#[case::seven(
    "===FILE: a===\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\nz\n=======\n>>>>>>> REPLACE\n===END===",
    edited("a", &[("x", "y"), ("z", "")])
)]
#[case::seven_escaped(
    "===FILE: a.rst===\n<<<<<<< SEARCH\nTitle!!\n\\=======\n=======\nTitles!\n\\=======\n>>>>>>> REPLACE\n===END===",
    edited("a.rst", &[("Title!!\n=======", "Titles!\n=======")])
)]
#[case::seven_in_fences(
    "===FILE: a===\n```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n```\n<<<<<<< SEARCH\nz\n=======\nw\n>>>>>>> REPLACE\n```\n===END===",
    edited("a", &[("x", "y"), ("z", "w")])
)]
#[case::fenced("===FILE: a.rs===\n```rust\nx\n```\n===END===", written("a.rs", "x\n"))]
#[case::fenced_without_a_tag("===FILE: a===\n\n~~~\nx\n~~~\n\n===END===", written("a", "x\n"))]
#[case::fences_inside(
    "===FILE: a.py===\n```python\n'''\n```\nx\n```\n'''\n```\n===END===",
    written("a.py", "'''\n```\nx\n```\n'''\n")
)]
#[case::fenced_pairs(
    "===FILE: a.rs===\n```\n<<<SEARCH\nx\n>>>REPLACE\ny\n```\n===END===",
    edited("a.rs", &[("x", "y")])
)]
#[case::fences_in_pairs_are_content(
    "===FILE: a.md===\n<<<SEARCH\n```\nx\n```\n>>>REPLACE\n```\ny\n```\n===END===",
    edited("a.md", &[("```\nx\n```", "```\ny\n```")])
)]
#[case::markdown_in_a_fence(
    "===FILE: a.md===\n````markdown\n# A\n```sh\nx\n```\n````\n===END===",
    written("a.md", "# A\n```sh\nx\n```\n")
)]
#[case::markdown_in_a_fence_of_the_same_length(
    "===FILE: a.md===\n```md\n# A\n```sh\nx\n```\n```\n===END===",
    written("a.md", "# A\n```sh\nx\n```\n")
)]
#[case::markdown_that_is_one_fence(
    "===FILE: a.md===\n```sh\nx\n```\n===END===",
    written("a.md", "```sh\nx\n```\n")
)]
#[case::markdown_that_starts_and_ends_with_fences(
    "===FILE: a.md===\n```md\nx\n```\n\ntext\n\n```sh\ny\n```\n===END===",
    written("a.md", "```md\nx\n```\n\ntext\n\n```sh\ny\n```\n")
)]
#[case::a_kept_fence(
    "===FILE: a.md===\n\\```\nx\n```\n===END===",
    written("a.md", "```\nx\n```\n")
)]
#[case::an_end_after_a_deletion("===DELETE: a===\n\n===END===\n", Op::Delete { path: "a".into() })]
fn a_block_is_read(#[case] text: &str, #[case] op: Op) {
    assert_eq!(ops(text), vec![op]);
}

#[rstest]
#[case::cut("===FILE: a===\nx\n", 1, Some("a"), "never ends")]
#[case::cut_pair("x\n===FILE: a===\n<<<SEARCH\nx\n", 2, Some("a"), "never ends")]
#[case::not_ended(
    "===FILE: a===\nx\n===FILE: b===\n===END===",
    3,
    Some("a"),
    "comes before the `===END===`"
)]
#[case::ended_twice("===FILE: a===\n===END===\nx\n===END===", 4, None, "ends no block")]
#[case::outside("<<<SEARCH\nx\n", 1, None, "outside a block")]
#[case::replace_outside(">>>REPLACE\nx\n", 1, None, "outside a block")]
#[case::search_alone(
    "===FILE: a===\n<<<SEARCH\nx\n===END===",
    2,
    Some("a"),
    "without the `>>>REPLACE`"
)]
#[case::search_twice(
    "===FILE: a===\n<<<SEARCH\nx\n<<<SEARCH\ny\n>>>REPLACE\n===END===",
    2,
    Some("a"),
    "without the `>>>REPLACE`"
)]
#[case::replace_twice(
    "===FILE: a===\n<<<SEARCH\nx\n>>>REPLACE\ny\n>>>REPLACE\nz\n===END===",
    6,
    Some("a"),
    "no SEARCH of its own"
)]
#[case::mixed(
    "===FILE: a===\n<<<<<<< SEARCH\nx\n>>>REPLACE\ny\n===END===",
    2,
    Some("a"),
    "without the `=======`"
)]
#[case::two_dividers(
    "===FILE: a===\n<<<<<<< SEARCH\nx\n=======\ny\n=======\nz\n>>>>>>> REPLACE\n===END===",
    6,
    Some("a"),
    "a second `=======`"
)]
#[case::never_replaced(
    "===FILE: a===\n<<<<<<< SEARCH\nx\n=======\ny\n===END===",
    2,
    Some("a"),
    "without the `>>>>>>> REPLACE`"
)]
#[case::words_between(
    "===FILE: a===\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\nand\n===END===",
    7,
    Some("a"),
    "between two pairs"
)]
#[case::whole_and_pairs(
    "===FILE: a===\nx\n<<<SEARCH\nx\n>>>REPLACE\ny\n===END===",
    3,
    Some("a"),
    "inside a whole content"
)]
#[case::no_path("===FILE: ===\nx\n===END===", 1, None, "names no path")]
#[case::half_a_move("===MOVE: a===", 1, None, "names two paths")]
#[case::a_long_move("===MOVE: a -> b -> c===", 1, None, "names two paths")]
#[case::nearly("=== DELETE: a ===", 1, None, "nearly a marker")]
#[case::nearly_a_file("===file: a===\nx", 1, None, "nearly a marker")]
#[case::half_a_fence(
    "===FILE: a.rs===\n```rust\nx\n===END===",
    2,
    Some("a.rs"),
    "does not close"
)]
#[case::words_after_a_fence(
    "===FILE: a.rs===\n```rust\nx\n```\nThat is all.\n===END===",
    2,
    Some("a.rs"),
    "does not close"
)]
#[case::half_a_fence_of_pairs(
    "===FILE: a.rs===\n```\n<<<SEARCH\nx\n>>>REPLACE\ny\n===END===",
    2,
    Some("a.rs"),
    "does not close"
)]
#[case::an_unclear_fence(
    "===FILE: a.md===\n```\nx\n```\n===END===",
    2,
    Some("a.md"),
    "it is not clear"
)]
fn a_block_is_not_read(
    #[case] text: &str,
    #[case] line: usize,
    #[case] path: Option<&str>,
    #[case] expected: &str,
) {
    let problems = problems(text);
    let (at, named, reason) = &problems[0];
    assert_eq!((*at, named.as_deref()), (line, path), "{reason}");
    assert!(reason.contains(expected), "{reason}");
}

#[test]
fn every_problem_is_told_with_its_line_and_file() {
    let text =
        "===FILE: a===\nx\n===FILE: b===\n<<<SEARCH\nx\n===END===\n===MOVE: a===\n===FILE: c===\n";
    assert_eq!(
        parse(text).unwrap_err().to_string(),
        "line 3 of the answer, in the block of `a`: `===FILE: b===` comes before the `===END===` of \
         the block that starts at line 1; end that block first, or write a backslash before the line \
         if it belongs to the file\n\
         line 4 of the answer, in the block of `b`: `<<<SEARCH` without the `>>>REPLACE` that belongs \
         to it; write the pair whole\n\
         line 7 of the answer: a move names two paths: `===MOVE: old/path -> new/path===`\n\
         line 8 of the answer, in the block of `c`: the block starts here and never ends; the answer \
         seems to be cut: send the block whole, with `===END===` on a line of its own"
    );
}

#[test]
fn fences_that_held_only_blocks_leave_the_summary() {
    let text =
        "Fix it.\n\n```rust\n===FILE: a.rs===\nx\n===END===\n```\n\nRun:\n```sh\nmake\n```\n";
    assert_eq!(
        parse(text).unwrap().summary,
        "Fix it.\n\nRun:\n```sh\nmake\n```"
    );
}

#[test]
fn paths_are_named_once_each() {
    let text = "===FILE: a===\n===END===\n===MOVE: a -> b===\n===DELETE: c===\n";
    assert_eq!(parse(text).unwrap().paths(), ["a", "b", "c"]);
}

#[rstest]
#[case("Raise the timeout", Some("Raise the timeout"))]
#[case(
    "\n## **Raise** the `timeout` of *login*.\n\nMore.",
    Some("Raise the timeout of login")
)]
#[case("## Summary\n\nRaise it", Some("Raise it"))]
#[case("Summary", Some("Summary"))]
#[case(
    "- See [the docs](https://x.y/z) for src/*.rs",
    Some("See the docs for src/*.rs")
)]
#[case("a * b and snake_case", Some("a * b and snake_case"))]
#[case("", None)]
#[case(
    "This first line is rather long and goes on, past seventy-two characters, by far",
    Some("This first line is rather long and goes on, past seventy-two…")
)]
fn a_title_is_plain_and_short(#[case] summary: &str, #[case] title: Option<&str>) {
    let answer = ParsedAnswer {
        summary: summary.into(),
        ops: vec![],
        requests: vec![],
    };
    assert_eq!(answer.title().as_deref(), title);
}

#[test]
fn a_title_never_passes_72_characters() {
    for length in 60..90 {
        for word in ["x", "é", "xx ", "word "] {
            let answer = ParsedAnswer {
                summary: word.repeat(length),
                ops: vec![],
                requests: vec![],
            };
            let title = answer.title().unwrap();
            assert!(title.chars().count() <= 72, "{title}");
        }
    }
}

/// Content written as a block would have it.
fn escaped(line: &str) -> String {
    let rest = line.trim_start_matches('\\');
    if marker(rest).is_some() {
        format!("\\{line}")
    } else {
        line.to_owned()
    }
}

fn render(answer: &ParsedAnswer) -> String {
    let lines = |text: &str| -> String {
        let lines = text.split('\n').map(|line| escaped(line) + "\n");
        if text.is_empty() {
            String::new()
        } else {
            lines.collect()
        }
    };
    let mut text = lines(&answer.summary);
    for op in &answer.ops {
        text += &match op {
            Op::Write { path, content } => {
                let content = lines(content.strip_suffix('\n').unwrap_or(content));
                let is_text = |line: &&str| !line.trim().is_empty();
                let first = content.lines().find(is_text).unwrap_or_default();
                let fenced = fence::opening(first.trim_start_matches('\\')).is_some();
                let at = content.find(first).unwrap_or_default();
                let (blank, rest) = content.split_at(if fenced { at } else { 0 });
                let slash = if fenced { "\\" } else { "" };
                format!("===FILE: {path}===\n{blank}{slash}{rest}===END===\n")
            }
            Op::Edit { path, edits } => {
                let pair = |Block { search, replace }: &Block| {
                    format!("<<<SEARCH\n{}>>>REPLACE\n{}", lines(search), lines(replace))
                };
                let pairs: String = edits.iter().map(pair).collect();
                format!("===FILE: {path}===\n{pairs}===END===\n")
            }
            Op::Delete { path } => format!("===DELETE: {path}===\n"),
            Op::Move { from, to } => format!("===MOVE: {from} -> {to}===\n"),
        };
    }
    text
}

/// Lines that are easily taken for something else.
fn line() -> impl Strategy<Value = String> {
    let structure = prop::sample::select(vec![
        "===END===",
        "===FILE: a===",
        "===DELETE: a===",
        "===MOVE: a -> b===",
        "<<<SEARCH",
        ">>>REPLACE",
        "<<<<<<< SEARCH",
        "=======",
        ">>>>>>> REPLACE",
        "```",
        "```rust",
        "~~~",
        "",
    ]);
    let marked = ("[ \\\\]{0,2}", structure, "[ x]{0,2}");
    prop_oneof![
        "[a-z{}\\\\`= ]{0,8}",
        marked.prop_map(|(before, marker, after)| format!("{before}{marker}{after}")),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..6).prop_map(|lines| lines.join("\n"))
}

fn content() -> impl Strategy<Value = String> {
    text().prop_map(|text| if text.is_empty() { text } else { text + "\n" })
}

fn path() -> impl Strategy<Value = String> {
    "[a-z]{1,4}(/[a-z]{1,3})?(\\.md|\\.rs)?"
}

fn op() -> impl Strategy<Value = Op> {
    let edits = prop::collection::vec((text(), text()), 1..4);
    let pair = |(search, replace)| Block { search, replace };
    prop_oneof![
        (path(), content()).prop_map(|(path, content)| Op::Write { path, content }),
        (path(), edits).prop_map(move |(path, edits)| Op::Edit {
            path,
            edits: edits.into_iter().map(pair).collect()
        }),
        path().prop_map(|path| Op::Delete { path }),
        (path(), path()).prop_map(|(from, to)| Op::Move { from, to }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_is_written_as_an_answer_is_read_back(ops in prop::collection::vec(op(), 0..5)) {
        let answer = ParsedAnswer { summary: "Words.".into(), ops, requests: Vec::new() };
        let text = render(&answer);
        prop_assert_eq!(parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?, answer);
    }

    #[test]
    fn nothing_breaks_the_reader(lines in prop::collection::vec(line(), 0..20), wild in any::<String>()) {
        let _ = parse(&lines.join("\n"));
        let _ = parse(&wild);
        if let Ok(answer) = parse(&(wild + "\n" + &lines.join("\r\n"))) {
            let _ = answer.title();
        }
    }

    #[test]
    fn a_cut_answer_is_never_a_shorter_file(content in content(), cut in any::<prop::sample::Index>()) {
        let answer = ParsedAnswer { summary: String::new(), ops: vec![written("a.rs", &content)], requests: Vec::new() };
        let text = render(&answer);
        let end = text.len() - "===END===\n".len();
        let mut at = cut.index(end) + 1;
        while !text.is_char_boundary(at) { at -= 1; }
        // A line of content that only begins like the marker, cut there, is the marker.
        prop_assume!(!text[..at].trim_end().ends_with("\n===END==="));
        let cut = parse(&text[..at]);
        prop_assert!(!cut.is_ok_and(|cut| !cut.ops.is_empty()));
    }

    #[test]
    fn an_answer_with_all_its_ends_means_the_same_whatever_is_known_of_it(
        ops in prop::collection::vec(op(), 0..4)
    ) {
        let text = render(&ParsedAnswer { summary: "Words.".into(), ops, requests: Vec::new() });
        let context = AnswerContext { shown: &["only.rs"], ending: AnswerEnding::Complete };
        prop_assert_eq!(super::parse(&text, &context), parse(&text));
    }

    #[test]
    fn a_remark_after_a_block_without_its_end_is_never_content(
        content in content(), remark in "(This|It|Note:|Done\\.) ?[a-z]{2,8} [a-z]{2,8} [a-z]{2,8}\\.?"
    ) {
        let context = AnswerContext { shown: &[], ending: AnswerEnding::Complete };
        let text = format!("===FILE: a.rs===\n{content}\n{remark}\n");
        let read = super::parse(&text, &context);
        let holds_it = |op: &Op| matches!(op, Op::Write { content, .. } if content.contains(&remark));
        let is_wrong = read.is_ok_and(|read| read.ops.iter().any(holds_it));
        prop_assert!(!is_wrong);
    }
}

#[test]
fn a_divider_is_one_only_between_the_texts_of_a_pair() {
    assert!(is_divider("=======  ") && !is_divider("========") && marker("=======").is_none());
}
