//! Pairs outside blocks, and blocks without their end.

use rstest::rstest;

use super::*;

const COMPLETE: AnswerContext<'_> = AnswerContext {
    shown: &["src/a.rs"],
    ending: AnswerEnding::Complete,
};
const TWO_SHOWN: AnswerContext<'_> = AnswerContext {
    shown: &["src/a.rs", "src/b.rs"],
    ending: AnswerEnding::Complete,
};
const CUT: AnswerContext<'_> = AnswerContext {
    shown: &["src/a.rs"],
    ending: AnswerEnding::Unknown,
};

/// Ops as `path: search -> replace`, for comparing at a glance.
fn read(text: &str, context: &AnswerContext<'_>) -> Result<Vec<String>, String> {
    let answer = parse(text, context).map_err(|error| error.to_string())?;
    let shown = |op: &Op| match op {
        Op::Edit { path, edits } => edits
            .iter()
            .map(|edit| format!("{path}: {:?} -> {:?}", edit.search, edit.replace))
            .collect::<Vec<_>>(),
        Op::Write { path, content } => vec![format!("{path} = {content:?}")],
        other => vec![format!("{other:?}")],
    };
    Ok(answer.ops.iter().flat_map(shown).collect())
}

#[rstest]
#[case::only_file("Raise it.\n\n<<<SEARCH\nx\n>>>REPLACE\ny\n", &["src/a.rs: \"x\" -> \"y\""])]
#[case::two_places(
    "<<<SEARCH\nx\n>>>REPLACE\ny\n\n<<<SEARCH\nv\n>>>REPLACE\nw\n",
    &["src/a.rs: \"x\" -> \"y\"", "src/a.rs: \"v\" -> \"w\""]
)]
#[case::ended("<<<SEARCH\nx\n>>>REPLACE\nThis is y.\n===END===\nMore words.\n", &["src/a.rs: \"x\" -> \"This is y.\""])]
#[case::fenced("```rust\n<<<SEARCH\nx\n>>>REPLACE\ny\n```\nThat is all of it.\n", &["src/a.rs: \"x\" -> \"y\""])]
#[case::two_in_a_fence(
    "```\n<<<SEARCH\nx\n>>>REPLACE\ny\n<<<SEARCH\nv\n>>>REPLACE\nw\n```\n",
    &["src/a.rs: \"x\" -> \"y\"", "src/a.rs: \"v\" -> \"w\""]
)]
#[case::long_form(
    "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\nThat is all of it.\n",
    &["src/a.rs: \"x\" -> \"y\""]
)]
#[case::removed_lines("<<<SEARCH\nx\n>>>REPLACE\n", &["src/a.rs: \"x\" -> \"\""])]
#[case::unended_pairs(
    "===FILE: src/b.rs===\n<<<SEARCH\nx\n>>>REPLACE\ny\n<<<SEARCH\nv\n>>>REPLACE\n}\n",
    &["src/b.rs: \"x\" -> \"y\"", "src/b.rs: \"v\" -> \"}\""]
)]
#[case::unended_long_pairs(
    "===FILE: src/b.rs===\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n\nIt was too low.\n",
    &["src/b.rs: \"x\" -> \"y\""]
)]
#[case::unended_content("===FILE: c.rs===\nfn c() {\n}\n\n", &["c.rs = \"fn c() {\\n}\\n\""])]
#[case::unended_fenced_content("===FILE: c.rs===\n```rust\nfn c() {}\n```\n", &["c.rs = \"fn c() {}\\n\""])]
#[case::after_a_block(
    "===DELETE: c.rs===\n\n<<<SEARCH\nx\n>>>REPLACE\ny\n",
    &["Delete { path: \"c.rs\" }", "src/a.rs: \"x\" -> \"y\""]
)]
fn what_is_meant_beyond_doubt_is_read(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(read(text, &COMPLETE).unwrap(), expected, "{text}");
    let crlf = text.replace('\n', "\r\n");
    assert_eq!(read(&crlf, &COMPLETE).unwrap(), expected, "{text}");
}

#[rstest]
#[case("src/b.rs\n")]
#[case("`src/b.rs`\n\n")]
#[case("### `src/b.rs`:\n")]
#[case("**src/b.rs**\n```rust\n")]
#[case("File: src/b.rs\n")]
#[case("In `src/b.rs`:\n\n")]
fn the_line_above_names_the_file(#[case] above: &str) {
    let fence = if above.contains("```") { "```\n" } else { "" };
    let text = format!("Raise it.\n\n{above}<<<SEARCH\nx\n>>>REPLACE\ny\n{fence}");
    assert_eq!(
        read(&text, &TWO_SHOWN).unwrap(),
        ["src/b.rs: \"x\" -> \"y\""],
        "{text}"
    );
    let answer = parse(&text, &TWO_SHOWN).unwrap();
    assert_eq!(answer.summary, "Raise it.");
}

#[test]
fn two_files_in_fences_are_told_apart() {
    let text = "src/a.rs\n```\n<<<SEARCH\nx\n>>>REPLACE\ny\n```\n\nsrc/b.rs\n```\n<<<SEARCH\nv\n\
                >>>REPLACE\nw\n```\n";
    assert_eq!(
        read(text, &TWO_SHOWN).unwrap(),
        ["src/a.rs: \"x\" -> \"y\"", "src/b.rs: \"v\" -> \"w\""]
    );
}

#[rstest]
#[case::which_file("<<<SEARCH\nx\n>>>REPLACE\ny\n", TWO_SHOWN, "nothing says which file")]
#[case::mentioned(
    "As `src/b.rs` does it:\n<<<SEARCH\nx\n>>>REPLACE\ny\n",
    TWO_SHOWN,
    "not clear whether"
)]
#[case::other_mentioned(
    "As src/c.rs does it:\n<<<SEARCH\nx\n>>>REPLACE\ny\n",
    COMPLETE,
    "not clear whether"
)]
#[case::another_file_in_a_block(
    "===FILE: src/a.rs===\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\nsrc/b.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n",
    TWO_SHOWN,
    "not clear whether"
)]
#[case::remark(
    "<<<SEARCH\nx\n>>>REPLACE\ny\n\nThis raises the timeout.\n",
    COMPLETE,
    "looks like a remark"
)]
#[case::next_file(
    "src/a.rs\n<<<SEARCH\nx\n>>>REPLACE\ny\n\nsrc/b.rs\n<<<SEARCH\nv\n>>>REPLACE\nw\n",
    TWO_SHOWN,
    "the name of a file"
)]
#[case::remark_before_a_block(
    "<<<SEARCH\nx\n>>>REPLACE\ny\nAnd a new file for it:\n===DELETE: b===\n",
    COMPLETE,
    "looks like a remark"
)]
#[case::two_fences(
    "```\n<<<SEARCH\nx\n>>>REPLACE\ny\n```\nRun it:\n```\nmake\n```\n",
    COMPLETE,
    "not clear which code fence"
)]
#[case::open_fence("```\n<<<SEARCH\nx\n>>>REPLACE\ny\n", COMPLETE, "does not close")]
#[case::blank_lines("<<<SEARCH\nx\n\n>>>REPLACE\ny\n\n", COMPLETE, "blank lines")]
#[case::near_end("===FILE: c.rs===\nx\n=== END ===\n", COMPLETE, "looks like a marker")]
#[case::content_with_remark(
    "===FILE: c.rs===\nfn c() {}\n\nThis adds it.\n",
    COMPLETE,
    "looks like a remark"
)]
#[case::fences_with_remark(
    "===FILE: c.rs===\n```rust\nfn c() {}\n```\nRun it:\n```\nmake\n```\n",
    COMPLETE,
    "looks like a code fence"
)]
#[case::prose_file("===FILE: c.md===\nWords.\n", COMPLETE, "could be a remark")]
#[case::no_content("===FILE: c.rs===\n\n", COMPLETE, "nothing at all")]
#[case::cut_content("===FILE: c.rs===\nfn c() {\n", CUT, "never ends")]
#[case::cut_pair("<<<SEARCH\nx\n>>>REPLACE\ny\n", CUT, "never ends")]
#[case::cut_pairs("===FILE: c.rs===\n<<<SEARCH\nx\n>>>REPLACE\ny\n", CUT, "never ends")]
#[case::half_a_pair("<<<SEARCH\nx\n", COMPLETE, "without the `>>>REPLACE`")]
fn what_could_mean_two_things_is_not_read(
    #[case] text: &str,
    #[case] context: AnswerContext<'_>,
    #[case] expected: &str,
) {
    let error = read(text, &context).unwrap_err();
    assert!(error.contains(expected), "{error}");
}
