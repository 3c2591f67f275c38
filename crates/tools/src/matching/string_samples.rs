//! Replaced strings by example.

use rstest::rstest;

use super::*;

#[rstest]
#[case::a_word("one two\n", "two", "three", "one three\n", 1, Rung::Exact)]
#[case::inside_a_line("call(a, b)\n", "(a", "(x", "call(x, b)\n", 1, Rung::Exact)]
#[case::a_deleted_line("a\nb\nc\n", "b\n", "", "a\nc\n", 2, Rung::Exact)]
#[case::joined_lines("a\nb\n", "a\n", "a ", "a b\n", 1, Rung::Exact)]
#[case::new_lines_get_crlf("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n", 2, Rung::Exact)]
#[case::across_crlf(
    "a(\r\n  1)\r\nb\r\n",
    "(\n  1",
    "(\n  2",
    "a(\r\n  2)\r\nb\r\n",
    1,
    Rung::TrailingSpace
)]
#[case::crlf_in_the_text(
    "a(\n  1)\n",
    "(\r\n  1",
    "(\r\n  2",
    "a(\n  2)\n",
    1,
    Rung::TrailingSpace
)]
#[case::a_bom_stays("\u{feff}a b\n", "a", "x", "\u{feff}x b\n", 1, Rung::Exact)]
#[case::a_new_file("", "", "a\nb\n", "a\nb\n", 1, Rung::Exact)]
#[case::dollars("a b\n", "a", "$0\\1", "$0\\1 b\n", 1, Rung::Exact)]
#[case::whole_lines_dedented(
    "x\n  a\n  b\ny\n",
    "a\nb\n",
    "a\nc\n",
    "x\n  a\n  c\ny\n",
    2,
    Rung::Trimmed
)]
#[case::whole_lines_deleted("x\n  a\n  b\ny\n", "a\nb\n", "", "x\ny\n", 2, Rung::Trimmed)]
#[case::trailing_space("a;  \nb;\n", "a;\nb;", "a;\nc;", "a;  \nc;\n", 1, Rung::TrailingSpace)]
#[case::lf_stays_lf("a\nb\n", "b", "x\r\ny\r\nz", "a\nx\ny\nz\n", 2, Rung::Exact)]
#[case::lf_stays_lf_over_lines("a\nb\nc\n", "a\nb", "a\r\nx\ny", "a\nx\ny\nc\n", 1, Rung::Exact)]
#[case::crlf_stays_crlf("a\r\nb", "b", "x\ny\r\nz", "a\r\nx\r\ny\r\nz", 2, Rung::Exact)]
#[case::no_end_to_go_by("a", "a", "x\r\ny", "x\r\ny", 1, Rung::Exact)]
#[case::the_end_of_its_line_among_both(
    "a\nb\r\nc\n",
    "b",
    "x\ny",
    "a\nx\r\ny\r\nc\n",
    2,
    Rung::Exact
)]
#[case::both_ends_as_they_were_copied(
    "a\nb\r\nc\n",
    "b\r\nc",
    "b\r\nx\ny",
    "a\nb\r\nx\ny\n",
    2,
    Rung::Exact
)]
#[case::lines_at_the_end_without_their_newline(
    "x\n  a\n  b\n",
    "a\nb\n",
    "a\nc",
    "x\n  a\n  c",
    2,
    Rung::Trimmed
)]
#[case::blanks_in_a_whole_line(
    "if\t(  x\t) {\n",
    "if ( x ) {",
    "if (y) {",
    "if (y) {\n",
    1,
    Rung::InnerBlanks
)]
#[case::blanks_within_a_line(
    "\tg(f(a,  b), 1)\n",
    "f(a, b)",
    "f(c)",
    "\tg(f(c), 1)\n",
    1,
    Rung::InnerBlanks
)]
fn a_string_is_replaced(
    #[case] original: &str,
    #[case] old: &str,
    #[case] new: &str,
    #[case] expected: &str,
    #[case] first_line: usize,
    #[case] rung: Rung,
) {
    let replaced = replace_string(original, old, new, Occurrence::One).unwrap();
    assert_eq!(
        (
            replaced.text.as_str(),
            replaced.first_line,
            replaced.rung,
            replaced.count
        ),
        (expected, first_line, rung, 1)
    );
}

#[rstest]
#[case::twice("a b a\na\n", "a", "x", MatchFailure::Ambiguous { rung: Rung::Exact, lines: vec![1, 1, 2] })]
#[case::overlapping("xaaax\n", "aa", "b", MatchFailure::Ambiguous { rung: Rung::Exact, lines: vec![1, 1] })]
#[case::no_change("a\n", "a", "a", MatchFailure::NoChange)]
#[case::nothing_to_find("a\n", "", "x", MatchFailure::EmptySearch)]
#[case::not_whole_lines("foo( a)\n", "foo(a", "x", MatchFailure::NotFound { nearest: Some(Nearest { first_line: 1, lines: vec!["foo( a)".into()], difference: Some("Line 1 is the first to differ: the text has `foo(a` there.".into()) }) })]
#[case::case_differs("Hello World\n", "hello world", "x", MatchFailure::NotFound { nearest: Some(Nearest { first_line: 1, lines: vec!["Hello World".into()], difference: Some("Line 1 is the first to differ: upper and lower case differ.".into()) }) })]
#[case::lines_are_not_joined_by_a_loose_match("  a\n  b\nd\n", "a\nb\n", "c", MatchFailure::NotFound { nearest: Some(Nearest { first_line: 1, lines: vec!["  a".into(), "  b".into()], difference: None }) })]
#[case::blanks_in_two_lines("x  = 1\ny = (x   = 1)\n", "x = 1", "z", MatchFailure::Ambiguous { rung: Rung::InnerBlanks, lines: vec![1, 2] })]
#[case::blanks_within_names("max  = 10\n", "x = 1", "z", MatchFailure::NotFound { nearest: Some(Nearest { first_line: 1, lines: vec!["max  = 10".into()], difference: Some("Line 1 is the first to differ: the text has `x = 1` there.".into()) }) })]
#[case::blanks_in_a_string_of_the_line("say(\"a  b\")\n", "a b", "a c", MatchFailure::NotFound { nearest: None })]
fn a_string_is_not_replaced(
    #[case] original: &str,
    #[case] old: &str,
    #[case] new: &str,
    #[case] reason: MatchFailure,
) {
    assert_eq!(
        replace_string(original, old, new, Occurrence::One),
        Err(reason)
    );
}

#[test]
fn every_occurrence_is_replaced_when_all_are_asked_for() {
    let all = |original, old, new| replace_string(original, old, new, Occurrence::All);
    let replaced = all("a b\nb a\n", "a", "aa").unwrap();
    assert_eq!(
        (replaced.text.as_str(), replaced.count),
        ("aa b\nb aa\n", 2)
    );
    let replaced = all("a\r\nb\r\na\r\nb\r\n", "a\nb", "c").unwrap();
    assert_eq!((replaced.text.as_str(), replaced.count), ("c\r\nc\r\n", 2));
    let loose = all("  a\n  b\nx\n  a\n  b\n", "a\nb", "c\nd");
    assert_eq!(
        loose,
        Err(MatchFailure::Ambiguous {
            rung: Rung::Trimmed,
            lines: vec![1, 4]
        })
    );
}
