use ratatui_core::style::Modifier;

use super::*;

fn options(columns: u16) -> DiffOptions {
    DiffOptions {
        theme: Theme::default(),
        columns,
        context: 3,
        first_line: 1,
        language: Some("rust"),
        max_lines: 100,
    }
}

fn drawn(old: &str, new: &str, options: &DiffOptions) -> Vec<String> {
    let lines = changed_lines(old, new, options);
    lines.iter().map(|line| line.line.to_string()).collect()
}

#[test]
fn changes_have_numbers_signs_and_context() {
    let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
    let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n";
    let options = DiffOptions {
        context: 1,
        first_line: 90,
        ..options(80)
    };
    assert_eq!(
        drawn(old, new, &options),
        [
            " 90   a", " 91 - b", " 91 + B", " 92   c", "  ⋮", "101   l", "102 + m",
        ]
    );
}

#[test]
fn what_differs_within_a_line_is_emphasised() {
    let lines = changed_lines("let x = foo(1);\n", "let x = foo(2);\n", &options(80));
    let emphasised: Vec<_> = lines
        .iter()
        .flat_map(|line| &line.line.spans)
        .filter(|span| span.style.add_modifier.contains(Modifier::UNDERLINED))
        .map(|span| &*span.content)
        .collect();
    assert_eq!(emphasised, ["1", "2"]);
    let unlike = changed_lines("alpha beta\n", "gamma delta\n", &options(80));
    let mut spans = unlike.iter().flat_map(|line| &line.line.spans);
    assert!(spans.all(|span| span.style.add_modifier.is_empty()));
}

#[test]
fn new_and_emptied_files_are_shown() {
    assert_eq!(drawn("", "a\n\tb", &options(80)), ["1 + a", "2 +     b"]);
    assert_eq!(drawn("a\n", "", &options(80)), ["1 - a"]);
    assert_eq!(drawn("", "", &options(80)), [""; 0]);
}

#[test]
fn line_ends_that_differ_are_named() {
    assert_eq!(
        drawn("a\r\nb\n", "a\nb", &options(80)),
        [
            "1 - a (CRLF)",
            "2 - b (LF)",
            "1 + a (LF)",
            "2 + b (no newline)"
        ]
    );
}

#[test]
fn control_characters_are_shown_and_not_sent() {
    assert_eq!(drawn("", "\u{1b}[2J\n", &options(80)), ["1 + \\u{1b}[2J"]);
}

#[test]
fn a_long_change_is_cut_and_counted() {
    let old: String = (0..50).map(|n| format!("old {n}\n")).collect();
    let new: String = (0..50).map(|n| format!("new {n}\n")).collect();
    let options = DiffOptions {
        max_lines: 4,
        ..options(80)
    };
    assert_eq!(
        drawn(&old, &new, &options),
        [
            " 1 - old 0",
            " 2 - old 1",
            " 1 + new 0",
            " 2 + new 1",
            "… 96 more changed lines",
        ]
    );
}

#[test]
fn a_wide_terminal_shows_both_sides() {
    let lines = drawn("a\nold\nc\n", "a\nnew\nnewer\nc\n", &options(160));
    let sides: Vec<_> = lines
        .iter()
        .map(|line| line.split_once(" │ ").unwrap())
        .map(|(old, new)| (old.trim_end(), new))
        .collect();
    assert_eq!(
        sides,
        [
            ("1   a", "1   a"),
            ("2 - old", "2 + new"),
            ("", "3 + newer"),
            ("3   c", "4   c"),
        ]
    );
    assert!(lines.iter().all(|line| width::of(line) <= 160));
    assert_eq!(drawn("a\n", "b\n", &options(159)), ["1 - a", "1 + b"]);
}

#[test]
fn texts_without_anything_in_common_take_bounded_time() {
    let old: String = (0..60_000)
        .map(|n| format!("{}\n", n * 7 % 60_013))
        .collect();
    let new: String = (0..60_000)
        .map(|n| format!("{}\n", n * 11 % 60_013))
        .collect();
    let lines = drawn(&old, &new, &options(80));
    assert!(lines.last().unwrap().ends_with("more changed lines"));
    assert!(lines.len() <= 110);
}
