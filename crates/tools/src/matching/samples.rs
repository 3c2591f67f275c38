//! Edits by example.

use rstest::rstest;

use super::*;

fn block(search: &str, replace: &str) -> Block {
    Block {
        search: search.into(),
        replace: replace.into(),
    }
}

fn one(original: &str, search: &str, replace: &str) -> Result<(String, Rung), MatchFailure> {
    match apply_blocks(original, &[block(search, replace)]) {
        Ok(applied) => Ok((applied.text, applied.blocks[0].rung)),
        Err(mut failures) => Err(failures.remove(0).reason),
    }
}

#[rstest]
// Exact.
#[case::a_line("a\nb\nc\n", "b", "B", "a\nB\nc\n", Rung::Exact)]
#[case::more_lines("a\nb\nc\n", "b", "x\ny", "a\nx\ny\nc\n", Rung::Exact)]
#[case::fewer_lines("a\nb\nc\nd\n", "b\nc", "x", "a\nx\nd\n", Rung::Exact)]
#[case::deleted("a\nb\nc\n", "b", "", "a\nc\n", Rung::Exact)]
#[case::all_deleted("a\nb", "a\nb", "", "", Rung::Exact)]
#[case::last_line_deleted("a\nb", "b", "", "a\n", Rung::Exact)]
#[case::no_final_newline("a\nb", "b", "x\ny", "a\nx\ny", Rung::Exact)]
#[case::final_newline("a\nb\n", "b", "x\ny", "a\nx\ny\n", Rung::Exact)]
#[case::only_whole_lines("100\n10\n", "10", "20", "100\n20\n", Rung::Exact)]
#[case::dollars_and_backslashes("a\n", "a", "$1 \\n $& \\0", "$1 \\n $& \\0\n", Rung::Exact)]
#[case::a_blank_line_in_the_search("a\n\nb\n", "a\n\nb", "a\nb", "a\nb\n", Rung::Exact)]
#[case::blank_edges_that_are_there("a\n\nb\n\nc\n", "\nb\n", "x", "a\nx\nc\n", Rung::Exact)]
#[case::new_content("", "", "a\nb", "a\nb\n", Rung::Exact)]
#[case::new_content_after_a_bom("\u{feff}", "", "a", "\u{feff}a\n", Rung::Exact)]
#[case::a_bom_stays("\u{feff}a\nb\n", "a", "x", "\u{feff}x\nb\n", Rung::Exact)]
#[case::a_bom_in_the_search("\u{feff}a\nb\n", "\u{feff}a", "x", "\u{feff}x\nb\n", Rung::Exact)]
#[case::indented_as_written("  a\n", "  a", "      a", "      a\n", Rung::Exact)]
// Line ends.
#[case::crlf(
    "a\r\nb\r\nc\r\n",
    "a\nb",
    "a\nx\ny",
    "a\r\nx\r\ny\r\nc\r\n",
    Rung::Exact
)]
#[case::crlf_in_the_block("a\nb\n", "a\r\nb", "a\r\nx", "a\nx\n", Rung::Exact)]
#[case::mixed_ends_stay(
    "a\r\nb\nc\r\nd\n",
    "a\nb\nc\nd",
    "a\nb\nX\nd",
    "a\r\nb\nX\r\nd\n",
    Rung::Exact
)]
#[case::crlf_without_a_final_one("a\r\nb", "b", "b\nc", "a\r\nb\r\nc", Rung::Exact)]
// White space at line ends.
#[case::spaces_in_the_file("a  \nb\t\nc\n", "a\nb", "a\nx", "a  \nx\nc\n", Rung::TrailingSpace)]
#[case::spaces_in_the_search("a\nb\nc\n", "a  \nb", "a\nx", "a\nx\nc\n", Rung::TrailingSpace)]
#[case::a_blank_line_with_spaces(
    "a\n   \nb\n",
    "a\n\nb",
    "a\n\nx",
    "a\n   \nx\n",
    Rung::TrailingSpace
)]
#[case::a_blank_edge_too_many("a\nb\nc\n", "\nb\n", "\nx\n", "a\nx\nc\n", Rung::TrailingSpace)]
#[case::one_edge_is_there("a\n\nb\nc\n", "\nb\n", "x", "a\nx\nc\n", Rung::TrailingSpace)]
#[case::an_added_blank_line_stays("a\nb\nc\n", "b\n", "b\n\n", "a\nb\n\nc\n", Rung::TrailingSpace)]
#[case::a_final_newline_as_a_line("a\nb\n", "b\n", "x\n", "a\nx\n", Rung::TrailingSpace)]
// Tabs and spaces.
#[case::tabs_in_the_file(
    "\tif x {\n\t\ty()\n\t}\n",
    "    if x {\n        y()\n    }",
    "    if x {\n        z()\n    }",
    "\tif x {\n\t\tz()\n\t}\n",
    Rung::TabsAndSpaces
)]
#[case::a_deeper_level_gets_tabs(
    "\tif x {\n\t\ty()\n\t}\n",
    "    if x {\n        y()\n    }",
    "    if x {\n        if z {\n            y()\n        }\n    }",
    "\tif x {\n\t\tif z {\n\t\t\ty()\n\t\t}\n\t}\n",
    Rung::TabsAndSpaces
)]
#[case::spaces_in_the_file(
    "  a\n    b\n",
    "\ta\n\t\tb",
    "\ta\n\t\tc\n\t\t\td",
    "  a\n    c\n      d\n",
    Rung::TabsAndSpaces
)]
// Indentation.
#[case::dedented(
    "    f() {\n        x;\n    }\n",
    "f() {\n    x;\n}",
    "f() {\n    y;\n    if z {\n        w;\n    }\n}",
    "    f() {\n        y;\n        if z {\n            w;\n        }\n    }\n",
    Rung::Trimmed
)]
#[case::over_indented(
    "f() {\n  x;\n}\n",
    "    f() {\n      x;\n    }",
    "    f() {\n      y;\n    }",
    "f() {\n  y;\n}\n",
    Rung::Trimmed
)]
#[case::first_line_only(
    "    a = 1\n    b = 2\ndef f():\n",
    "a = 1\n    b = 2\ndef f():",
    "a = 1\n    b = 3\ndef f():\n    pass",
    "    a = 1\n    b = 3\ndef f():\n    pass\n",
    Rung::Trimmed
)]
#[case::first_line_only_and_changed(
    "        return x\n    y\n",
    "return x\n    y",
    "return z\n    y",
    "        return z\n    y\n",
    Rung::Trimmed
)]
#[case::levels_of_another_size(
    "a\n    b\n        c\n",
    "a\n  b\n    c",
    "a\n  b\n    c\n      d",
    "a\n    b\n        c\n            d\n",
    Rung::Trimmed
)]
#[case::already_in_the_files_terms(
    "x\n\n  old()\n",
    "\nold()",
    "\n  new()",
    "x\n\n  new()\n",
    Rung::Trimmed
)]
#[case::a_line_in_place_of_a_line_where_levels_are_lost(
    "if x:\n  a()\n    b()\nc()\n",
    "if x:\na()\n  b()\nc()",
    "if x:\nz()\n  b()\nc()",
    "if x:\n  z()\n    b()\nc()\n",
    Rung::Trimmed
)]
#[case::shallower_than_the_map(
    "    if x {\n      a\n    }\n",
    "  if x {\n    a\n  }",
    "  if x {\n    a\n  }\nend",
    "    if x {\n      a\n    }\n  end\n",
    Rung::Trimmed
)]
#[case::a_lone_line_with_its_block(
    "    a();\n",
    "a();",
    "if x {\n    a();\n}",
    "    if x {\n        a();\n    }\n",
    Rung::Trimmed
)]
#[case::blank_new_lines_are_bare("  a\n  b\n", "a\nb", "a\n\nb", "  a\n\n  b\n", Rung::Trimmed)]
// Punctuation.
#[case::quotes(
    "say(\"hi\")\n",
    "say(“hi”)",
    "say(\"ho\")",
    "say(\"ho\")\n",
    Rung::Punctuation
)]
#[case::unchanged_punctuation_stays(
    "// it’s — so\nx\n",
    "// it's - so\nx",
    "// it's - so\ny",
    "// it’s — so\ny\n",
    Rung::Punctuation
)]
#[case::a_hard_space("a\u{a0}b\n", "a b", "c", "c\n", Rung::Punctuation)]
// A block shifted as a whole.
#[case::a_step_of_its_own_in_a_shifted_block(
    "f:\n    g:\n        a\n        b\n",
    "a\nb",
    "a\n  c\nb",
    "f:\n    g:\n        a\n          c\n        b\n",
    Rung::Trimmed
)]
#[case::shallower_than_one_shifted_level(
    "    x\n      a\n      b\n",
    "  a\n  b",
    "end\n  a\n  b",
    "    x\n    end\n      a\n      b\n",
    Rung::Trimmed
)]
#[case::partly_dedented_with_tabs(
    "\t\ta\n\t\tb\n",
    "\ta\n\tb",
    "\ta\n\t\tc\n\tb",
    "\t\ta\n\t\t\tc\n\t\tb\n",
    Rung::Trimmed
)]
// Blanks within lines.
#[case::extra_blanks_in_the_search(
    "f(a, b) {\n    return a;\n}\n",
    "f(a,   b)    {\n    return    a;\n}",
    "f(a, b) {\n    return b;\n}",
    "f(a, b) {\n    return b;\n}\n",
    Rung::InnerBlanks
)]
#[case::aligned_columns_that_do_not_change_stay(
    "  one   = 1\n  three = 3\n",
    "one = 1\nthree = 3",
    "one = 1\nthree = 4",
    "  one   = 1\n  three = 4\n",
    Rung::InnerBlanks
)]
fn a_block_is_applied(
    #[case] original: &str,
    #[case] search: &str,
    #[case] replace: &str,
    #[case] expected: &str,
    #[case] rung: Rung,
) {
    assert_eq!(
        one(original, search, replace),
        Ok((expected.to_owned(), rung))
    );
}

#[rstest]
#[case::twice("a\nb\na\n", "a", "x", MatchFailure::Ambiguous { rung: Rung::Exact, lines: vec![1, 3] })]
#[case::twice_when_loose("  a\nb\n\ta\n", "a", "x", MatchFailure::Ambiguous { rung: Rung::Trimmed, lines: vec![1, 3] })]
#[case::part_of_a_line("100\n", "10", "20", MatchFailure::NotFound { nearest: Some(Nearest { first_line: 1, lines: vec!["100".into()], difference: Some("Line 1 is the first to differ: the text has `10` there.".into()) }) })]
#[case::nothing_alike("one\ntwo\n", "zzzz", "x", MatchFailure::NotFound { nearest: None })]
#[case::an_empty_file("", "a", "x", MatchFailure::NotFound { nearest: None })]
#[case::nothing_to_find("a\n", "", "x", MatchFailure::EmptySearch)]
#[case::not_even_in_a_blank_file("\n", "", "x", MatchFailure::EmptySearch)]
#[case::only_blank_lines("a\n\nb\n\nc\n", "\n", "x", MatchFailure::NotFound { nearest: None })]
#[case::a_lone_line_says_too_little("        return x\n", "return x", "return x\n        return y", MatchFailure::IndentationUnclear { line: 1, text: "return y".into(), difference: "the indentation differs from the file's" })]
#[case::lost_levels("if x:\n  a()\nb()\n", "if x:\na()\nb()", "if x:\na()\nif y:\nc()\nb()", MatchFailure::IndentationUnclear { line: 1, text: "if y:".into(), difference: "the indentation differs from the file's" })]
#[case::a_new_first_line_of_a_stripped_block("        a()\n    b()\n", "a()\n    b()", "new()\n        a()\n    b()", MatchFailure::IndentationUnclear { line: 1, text: "new()".into(), difference: "the indentation differs from the file's" })]
#[case::a_step_unlike_the_files("a:\n    b:\n        c\n", "  b:", "  b:\n    d\n  e", MatchFailure::IndentationUnclear { line: 2, text: "d".into(), difference: "the indentation differs from the file's" })]
#[case::no_shared_level("\t\ta\n\t\tb\n", "a\nb", "   c\n   d", MatchFailure::IndentationUnclear { line: 1, text: "c".into(), difference: "the indentation differs: the file uses tabs" })]
#[case::no_measure_for_tabs("\t\ta {\n\t\t}\n", "a {\n}", "a {\n  b\n}", MatchFailure::IndentationUnclear { line: 1, text: "b".into(), difference: "the indentation differs: the file uses tabs" })]
#[case::blanks_twice("a  = 1\na   = 1\n", "a = 1", "b = 1", MatchFailure::Ambiguous { rung: Rung::InnerBlanks, lines: vec![1, 2] })]
#[case::blanks_in_a_string("f(\"a  b\")\n", "f(\"a b\")", "g(\"a b\")", MatchFailure::NotFound { nearest: Some(Nearest { first_line: 1, lines: vec!["f(\"a  b\")".into()], difference: Some("Line 1 is the first to differ: white space inside the line differs.".into()) }) })]
#[case::blanks_are_not_nothing("f(a,b)\n", "f(a, b)", "x", MatchFailure::NotFound { nearest: Some(Nearest { first_line: 1, lines: vec!["f(a,b)".into()], difference: Some("Line 1 is the first to differ: white space inside the line differs.".into()) }) })]
#[case::stripped_like_the_first_line("  f {\n    a\n  }\n", "f {\n    a\n  }", "g {\n  a\n}", MatchFailure::IndentationUnclear { line: 1, text: "}".into(), difference: "the indentation differs from the file's" })]
#[case::less_than_the_shift("a\nb\n", "    a\n    b", "    a\n  c", MatchFailure::IndentationUnclear { line: 1, text: "c".into(), difference: "the indentation differs from the file's" })]
fn a_block_is_refused(
    #[case] original: &str,
    #[case] search: &str,
    #[case] replace: &str,
    #[case] reason: MatchFailure,
) {
    assert_eq!(one(original, search, replace), Err(reason));
}

#[test]
fn every_block_is_matched_against_the_original_in_any_order() {
    let blocks = [block("c", "a"), block("a", "b\nb"), block("b", "c")];
    assert_eq!(
        apply_blocks("a\nb\nc\n", &blocks),
        Ok(AppliedEdits {
            text: "b\nb\nc\na\n".into(),
            blocks: vec![
                AppliedBlock {
                    rung: Rung::Exact,
                    lines: 3..4
                },
                AppliedBlock {
                    rung: Rung::Exact,
                    lines: 1..2
                },
                AppliedBlock {
                    rung: Rung::Exact,
                    lines: 2..3
                },
            ],
        })
    );
}

#[test]
fn one_failing_block_fails_them_all_and_each_failure_is_told() {
    let blocks = [block("a", "x"), block("nowhere", "y"), block("b", "z")];
    assert_eq!(
        apply_blocks("a\nb\nb\n", &blocks),
        Err(vec![
            BlockFailure {
                block: 1,
                reason: MatchFailure::NotFound { nearest: None }
            },
            BlockFailure {
                block: 2,
                reason: MatchFailure::Ambiguous {
                    rung: Rung::Exact,
                    lines: vec![2, 3]
                }
            },
        ])
    );
}

#[test]
fn blocks_that_share_a_line_are_refused_both() {
    let overlap = |block, with| BlockFailure {
        block,
        reason: MatchFailure::Overlap { with },
    };
    assert_eq!(
        apply_blocks(
            "a\nb\nc\nd\n",
            &[block("b\nc", "x"), block("d", "y"), block("a\nb", "z")]
        ),
        Err(vec![overlap(0, 2), overlap(2, 0)])
    );
    assert_eq!(
        apply_blocks("", &[block("", "x"), block("", "y")]),
        Err(vec![overlap(0, 1), overlap(1, 0)])
    );
    let neighbours = apply_blocks("a\nb\n", &[block("a", "x"), block("b", "y")]);
    assert_eq!(neighbours.map(|applied| applied.text), Ok("x\ny\n".into()));
}

#[test]
fn no_blocks_change_nothing() {
    let applied = apply_blocks("a\r\nb", &[]).unwrap();
    assert_eq!(
        applied,
        AppliedEdits {
            text: "a\r\nb".into(),
            blocks: vec![]
        }
    );
}

#[test]
fn a_refusal_shows_the_nearest_text_and_what_differs() {
    let original = "fn a() {\n\tone();\n\ttwo( x );\n}\n\nfn b() {}\n";
    let search = "fn a() {\n    one();\n    two(x);\n}";
    let failure = one(original, search, "").unwrap_err();
    assert_eq!(
        failure.to_string(),
        "the text to replace is not in the file. Line 3 is the first to differ: white space \
         inside the line differs; the file indents with tabs. Nearest text:\n     1\tfn a() {\n     \
         2\t\tone();\n     3\t\ttwo( x );\n     4\t}"
    );
}

#[test]
fn a_refusal_notices_line_numbers_and_edits_already_made() {
    let error_of =
        |original, search, replace| one(original, search, replace).unwrap_err().to_string();
    let numbered = error_of(
        "let a = 1;\nlet b = 2;\n",
        "1\tlet a = 1;\n2\tlet b = 2;",
        "",
    );
    assert!(numbered.contains("carries line numbers"), "{numbered}");
    let done = error_of(
        "let a = 2;\nlet b = 2;\n",
        "let a = 1;\nlet b = 2;",
        "let a = 2;\nlet b = 2;",
    );
    assert!(done.contains("already there, at line 1"), "{done}");
}

#[test]
fn an_ambiguous_text_names_ten_places_and_counts_the_rest() {
    let failure = one(&"a\n".repeat(13), "a", "b").unwrap_err();
    assert_eq!(
        failure.to_string(),
        "the text to replace is in 13 places (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more); add \
         neighbouring lines that make it unique"
    );
}

/// Each of these takes minutes where the work grows with the square of the size.
#[test]
fn a_big_file_is_no_trouble() {
    let same = "    same line\n".repeat(150_000);
    let search = "same line\n".repeat(20_000) + "the end";
    assert!(one(&same, &search, "x").is_err());
    let original = same.clone() + "    the end\n";
    let replace = "same line\n".repeat(20_000) + "other end";
    let (text, rung) = one(&original, &search, &replace).unwrap();
    assert_eq!((text, rung), (same + "    other end\n", Rung::Trimmed));

    let numbered: String = (0..100_000).map(|n| format!("line number {n}\n")).collect();
    let (text, _) = one(&numbered, "line number 99999  ", "last").unwrap();
    assert!(text.ends_with("line number 99998\nlast\n"));
    assert!(one(&numbered, "line numbre 99999", "last").is_err());

    let changed: String = (0..20_000).map(|n| format!("new {n}\n")).collect();
    let old: String = (0..20_000).map(|n| format!("line number {n} \n")).collect();
    let (text, rung) = one(&numbered, old.trim_end_matches('\n'), changed.trim_end()).unwrap();
    assert!(text.starts_with("new 0\n"));
    assert_eq!(rung, Rung::TrailingSpace);

    let repeated = "ab".repeat(1_000_000);
    let failure = replace_string(&repeated, &"ab".repeat(1_000), "x", Occurrence::One);
    assert!(matches!(failure, Err(MatchFailure::Ambiguous { .. })));
}
