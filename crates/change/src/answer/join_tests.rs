//! Continuations by example, and what holds for every cut.

use proptest::prelude::*;
use rstest::rstest;

use super::join;

fn joined(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
    join(&parts)
}

#[rstest]
#[case::exact(&["let a", " = 1;\n", "let b"], "let a = 1;\nlet b")]
#[case::nothing(&[], "")]
#[case::empty_parts(&["a", "", "b"], "ab")]
#[case::the_cut_line_again(&["x\n    let total = sum(", "    let total = sum(1);\n"], "x\n    let total = sum(1);\n")]
#[case::a_short_cut_line_again(&["x\n    if a", "    if a == b {\n"], "x\n    if a == b {\n")]
#[case::without_its_indentation(&["x\n    let total = sum(", "let total = sum(1);\n"], "x\n    let total = sum(1);\n")]
#[case::the_last_lines_again(
    &["fn a() {\n    first_call();\n    second_call();\n", "    first_call();\n    second_call();\n}\n"],
    "fn a() {\n    first_call();\n    second_call();\n}\n"
)]
#[case::the_last_words_again(
    &["The parser now refuses answers that were cut", "answers that were cut in the middle."],
    "The parser now refuses answers that were cut in the middle."
)]
#[case::a_cut_marker_again(&["x\n===EN", "===END===\n"], "x\n===END===\n")]
#[case::a_cut_marker(&["x\n===FI", "LE: a===\n"], "x\n===FILE: a===\n")]
#[case::a_newline_lost_after_a_marker(&["===FILE: a===", "x\n"], "===FILE: a===\nx\n")]
#[case::a_newline_kept_after_a_marker(&["===FILE: a===", "\nx\n"], "===FILE: a===\nx\n")]
#[case::a_fence_before_the_cut_line(
    &["===FILE: a.rs===\n    let total = sum(", "```rust\n    let total = sum(1);\n"],
    "===FILE: a.rs===\n    let total = sum(1);\n"
)]
#[case::a_fence_before_the_rest(&["===FILE: a.rs===\nlet a = f(", "```rust\n1);\n"], "===FILE: a.rs===\nlet a = f(1);\n")]
#[case::a_fence_that_belongs(&["===FILE: a.md===\nSay:\n", "```sh\nls\n"], "===FILE: a.md===\nSay:\n```sh\nls\n")]
#[case::a_fence_in_a_comment(&["===FILE: a.rs===\n/// ", "```\n/// x\n"], "===FILE: a.rs===\n/// ```\n/// x\n")]
#[case::the_marker_and_the_rest(
    &["===FILE: a===\none\ntwo\n", "===FILE: a===\nthree\n===END===\n"],
    "===FILE: a===\none\ntwo\nthree\n===END===\n"
)]
#[case::the_marker_and_the_cut_line(
    &["===FILE: a===\none\nlet second =", "===FILE: a===\nlet second = 2;\n===END===\n"],
    "===FILE: a===\none\nlet second = 2;\n===END===\n"
)]
#[case::the_block_anew(
    &["Words.\n===FILE: a===\none\ntwo\nthr", "===FILE: a===\none\ntwo\nthree\n===END===\n"],
    "Words.\n===FILE: a===\none\ntwo\nthree\n===END===\n"
)]
#[case::the_block_anew_in_a_fence(
    &["===FILE: a===\none\ntw", "```\n===FILE: a===\none\ntwo\n===END===\n"],
    "===FILE: a===\none\ntwo\n===END===\n"
)]
#[case::the_next_block(&["===FILE: a===\n===END===\n", "===FILE: a===\nx\n"], "===FILE: a===\n===END===\n===FILE: a===\nx\n")]
fn parts_become_one_text(#[case] parts: &[&str], #[case] text: &str) {
    assert_eq!(joined(parts), text);
}

#[rstest]
#[case::closing_lines("        }\n    }\n", "    }\n}\n")]
#[case::lines_that_came_before(
    "assert!(one_of_them(x));\nassert!(one_of_them(x));\n",
    "assert!(one_of_them(x));\n"
)]
#[case::columns("0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ", "0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\n")]
#[case::rules("------------------------", "------------------------\n")]
#[case::inside_a_word("aa", "aardvark")]
#[case::brackets("((", "((x))")]
#[case::indentation("    ", "    x")]
fn repeated_text_is_not_eaten(#[case] text: &str, #[case] next: &str) {
    assert_eq!(joined(&[text, next]), format!("{text}{next}"));
}

#[test]
fn a_marker_that_goes_on_neither_anew_nor_onwards_is_left_for_the_reader_to_refuse() {
    let text = joined(&[
        "===FILE: a===\n<<<SEARCH\nx\n>>>REPLACE\ny(",
        "===FILE: a===\n<<<SEARCH\nz\n>>>REPLACE\nw\n===END===\n",
    ]);
    assert!(
        super::parse(&text, &super::AnswerContext::default()).is_err(),
        "{text}"
    );
}

/// Code as models write it: lines differ, but share words, indentation and brackets.
fn code() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("}".to_owned()),
        Just("    }".to_owned()),
        Just(String::new()),
        "( {4}){0,2}(let|if|call) [a-e]{1,6} = [0-9]{1,5};",
        "// [a-z]{2,8} [a-zé]{2,8} [a-z]{2,8}",
    ];
    prop::collection::vec(line, 1..25).prop_map(|lines| lines.join("\n"))
}

/// Whether `rest` really starts with the end of `text`, which is all that a reader could go by.
fn is_ambiguous(text: &str, rest: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap();
    let content = line.trim_start();
    let starts = |part: &str| part.len() > 1 && rest.starts_with(part);
    let tails = text.char_indices().map(|(at, _)| &text[at..]);
    starts(line) || starts(content) || tails.filter(|tail| tail.len() > 15).any(starts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn exact_continuations_give_the_text_back(
        text in code(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        at.retain(|&at| text.is_char_boundary(at));
        at.sort_unstable();
        at.dedup();
        prop_assume!(!at.iter().any(|&at| is_ambiguous(&text[..at], &text[at..])));
        let mut parts = Vec::new();
        let mut from = 0;
        for &to in at.iter().chain([&text.len()]) {
            parts.push(text[from..to].to_owned());
            from = to;
        }
        prop_assert_eq!(join(&parts), text);
    }

    #[test]
    fn a_repeated_cut_line_is_said_once(
        before in code(),
        line in "( {4}){0,2}[a-z]{3,6}[.(][a-z]{3,6} = [0-9]{4};",
        cut in 16_usize..20,
        after in code(),
    ) {
        prop_assume!(cut < line.len());
        let text = format!("{before}\n{}", &line[..cut]);
        let next = format!("{line}\n{after}");
        prop_assert_eq!(joined(&[&text, &next]), format!("{before}\n{line}\n{after}"));
    }

    #[test]
    fn joining_never_adds_and_never_breaks(parts in prop::collection::vec("[=FILE: a\n`x<>SEARCH]{0,20}", 0..5)) {
        let joined = join(&parts);
        prop_assert!(joined.len() <= parts.iter().map(|part| part.len() + 1).sum::<usize>());
    }
}
