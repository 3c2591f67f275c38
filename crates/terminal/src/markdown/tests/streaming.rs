use proptest::prelude::*;
use ratatui_core::style::Modifier;

use super::*;
use crate::markdown::block::Leaf;

#[test]
fn a_line_of_code_is_final_when_it_ends() {
    let mut stream = MarkdownStream::new(Theme::default());
    stream.push("``");
    stream.push("`rust\nlet a = 1;\nlet b");
    assert_eq!(texts(&stream.take_stable(80)), [" rust", "let a = 1;"]);
    assert_eq!(texts(&stream.tail(80)), ["let b"]);
    assert_eq!(stream.take_stable(80), []);
    stream.push(" = 2;\n``");
    assert_eq!(texts(&stream.take_stable(80)), ["let b = 2;"]);
    stream.push("`\n");
    assert_eq!(stream.finish(80), []);
    assert_eq!(stream.finish(80), []);
}

#[test]
fn a_list_is_final_item_by_item() {
    let mut stream = MarkdownStream::new(Theme::default());
    stream.push("1. one\n1. two\n   more\n1. three\nan");
    assert_eq!(texts(&stream.take_stable(80)), ["1. one", "2. two more"]);
    assert_eq!(texts(&stream.tail(80)), ["3. three an"]);
}

#[test]
fn a_paragraph_may_still_become_something_else() {
    let mut stream = MarkdownStream::new(Theme::default());
    stream.push("| a | b |\n");
    assert_eq!(stream.take_stable(80), []);
    stream.push("|---|---|\n| 1 | 2 |\n");
    assert_eq!(stream.take_stable(80), []);
    assert_eq!(texts(&stream.tail(80)), ["table, row 1"]);
    stream.push("\n");
    assert_eq!(stream.take_stable(80).len(), 3);
    stream.push("Title\n");
    assert_eq!(stream.take_stable(80), []);
    stream.push("=====\n");
    let title = stream.take_stable(80);
    assert_eq!(texts(&title), ["", "Title"]);
    assert_eq!(
        title[1].line.spans[0].style.add_modifier & Modifier::BOLD,
        Modifier::BOLD
    );
}

/// All sizes that could grow with the length of an answer.
fn kept(stream: &MarkdownStream) -> usize {
    stream.line.len() + stream.blocks.len() + format!("{:?}", stream.parser).len()
}

fn stream_in_pieces(text: &str, expected_kept: usize) -> usize {
    let mut stream = MarkdownStream::new(Theme::default());
    let mut lines = 0;
    for (at, piece) in text.as_bytes().chunks(20).enumerate() {
        stream.push(std::str::from_utf8(piece).unwrap());
        lines += stream.take_stable(80).len();
        if at % 1_000 == 0 {
            assert!(kept(&stream) < expected_kept, "{}", kept(&stream));
            stream.tail(80);
        }
    }
    lines + stream.finish(80).len()
}

#[test]
fn a_hundred_thousand_lines_are_kept_in_constant_memory() {
    let code = "let x = 1; // one\n".repeat(100_000);
    assert_eq!(
        stream_in_pieces(&format!("```rust\n{code}```\n"), 2_000),
        100_001
    );
}

#[test]
fn long_blocks_of_any_kind_are_handed_on_in_parts() {
    assert_eq!(
        stream_in_pieces(&"- an item of a list\n".repeat(10_000), 2_000),
        10_000
    );
    assert!(stream_in_pieces(&"a line of a paragraph\n".repeat(10_000), 30_000) > 10);
    assert!(stream_in_pieces(&"words without any line end ".repeat(10_000), 30_000) > 10);
    assert!(stream_in_pieces(&"1. x\n   > y\n".repeat(5_000), 2_000) > 5_000);
    let rows = "| a | b |\n".repeat(5_000);
    assert!(stream_in_pieces(&format!("|x|y|\n|-|-|\n{rows}"), 200_000) > 5_000);
    assert_eq!(stream_in_pieces(&"x".repeat(1_000_000), usize::MAX), 1);
}

fn any_markdown() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "word ",
        "two words",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "```",
        "```rust\n",
        "~~~\n",
        "`",
        "    ",
        "  ",
        "\t",
        "- ",
        "* ",
        "1. ",
        "2) ",
        "[ ] ",
        "[x] ",
        "> ",
        ">",
        "# ",
        "### ",
        "| a | b |\n",
        "|---|:-:|\n",
        "| 1 | 2 |\n",
        "|",
        "---\n",
        "===\n",
        "***",
        "**",
        "*",
        "_",
        "~~",
        "[t](http://u)",
        "[r]: http://u\n",
        "![i](j)",
        "<br>",
        "<pre>",
        "</pre>",
        "<!--",
        "-->",
        "<div>\n",
        "&#27;",
        "\\",
        "漢字",
        "漢字",
        "漢字\n",
        "漢 字",
        "👩\u{200d}💻",
        "é",
        "\u{1b}[0m",
        "[^1]",
        "\u{200b}",
    ]);
    prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_result_does_not_depend_on_the_deltas(
        text in any_markdown(),
        sizes in prop::collection::vec(1..12usize, 1..20),
        columns in 1..100u16,
    ) {
        let mut stream = MarkdownStream::new(Theme::default());
        let mut lines = Vec::new();
        let mut rest = &text[..];
        for size in sizes.iter().cycle() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary((*size).min(rest.len())));
            stream.push(piece);
            if size % 2 == 0 {
                lines.extend(stream.take_stable(columns));
            }
            if size % 3 == 0 {
                // Drawing the tail changes nothing.
                stream.tail(columns);
            }
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let tail = stream.tail(columns);
        stream.end_last_line();
        let is_in_table = matches!(stream.parser.leaf, Leaf::Table { .. });
        let end = stream.finish(columns);
        if !is_in_table {
            prop_assert_eq!(&tail, &end);
        }
        lines.extend(end);
        prop_assert_eq!(lines, all_at_once(&text, columns));
    }

    #[test]
    fn no_text_is_lost_or_doubled(text in any_markdown()) {
        // Wide enough that no table becomes records, which repeat the header.
        let lines = texts(&all_at_once(&text, 2_000)).concat();
        prop_assert_eq!(lines.matches('漢').count(), text.matches('漢').count(), "{}", lines);
        prop_assert_eq!(lines.matches('字').count(), text.matches('字').count(), "{}", lines);
    }
}

fn long_word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "word ", "é", "| ", "a", "# ", "> ", "  ", "- ", "**b** ",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn long_lines_are_cut_at_the_same_places(
        words in prop::collection::vec((long_word(), 1..500usize), 10..60),
        sizes in prop::collection::vec(1..9_000usize, 1..5),
    ) {
        let text: String = words.iter().map(|(word, times)| word.repeat(*times)).collect();
        let mut stream = MarkdownStream::new(Theme::default());
        let mut rest = &text[..];
        for size in sizes.iter().cycle() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary((*size).min(rest.len())));
            stream.push(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(stream.finish(80), all_at_once(&text, 80));
    }
}
