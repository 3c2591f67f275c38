//! Keys in, text, cursor and rows out. `|` stands for the cursor.

use rstest::rstest;

use super::*;
use crate::{keys::Input, keys::KeyParser, theme::Theme, width};

fn editor(text: &str) -> Editor {
    let at = text.find('|').expect("a cursor");
    let mut editor = Editor::new();
    editor.set_text(&text.replacen('|', "", 1));
    editor.buffer.move_to(at);
    editor.buffer.forget_changes();
    editor
}

fn shown(editor: &Editor) -> String {
    format!(
        "{}|{}",
        editor.chips.labelled(editor.before_cursor()),
        editor.chips.labelled(editor.after_cursor())
    )
}

/// Keys by their names, separated by blanks.
pub(super) fn press(editor: &mut Editor, keys: &str) -> Edited {
    let mut edited = Edited::Ignored;
    for name in keys.split_whitespace() {
        edited = editor.handle(&name.parse().expect("a key"));
    }
    edited
}

pub(super) fn type_text(editor: &mut Editor, text: &str) {
    for input in KeyParser::new().feed(text.as_bytes()) {
        if let Input::Key(key) = input {
            editor.handle(&key);
        }
    }
}

#[rstest]
#[case("ab|c", "x Y space ?", "abxY ?|c")]
#[case("a漢|", "left left b", "b|a漢")]
#[case("👩\u{200d}💻|", "left", "|👩\u{200d}💻")]
#[case("e\u{301}x|", "left backspace", "|x")]
#[case("one two.rs|", "alt-b", "one two.|rs")]
#[case("one two.rs|", "ctrl-left ctrl-left alt-left", "|one two.rs")]
#[case("|one two_3 x", "ctrl-right alt-f", "one two_3| x")]
#[case("a\nbc|d\ne", "home", "a\n|bcd\ne")]
#[case("a\nbc|d\ne", "ctrl-e", "a\nbcd|\ne")]
#[case("a\nbc|d\ne", "ctrl-home x", "x|a\nbcd\ne")]
#[case("a\nbc|d\ne", "alt->", "a\nbcd\ne|")]
#[case("one two|", "backspace ctrl-h", "one t|")]
#[case("|one", "delete ctrl-d", "|e")]
#[case("one |two\nx", "ctrl-k", "one |\nx")]
#[case("one |two\nx", "ctrl-k ctrl-k", "one |x")]
#[case("x\none |two", "ctrl-u", "x\n|two")]
#[case("x\none |two", "ctrl-u ctrl-u", "x|two")]
#[case("git commit src/a.rs|", "ctrl-w", "git commit |")]
#[case("git commit src/a.rs|", "alt-backspace", "git commit src/a.|")]
#[case("git commit src/a.rs|", "ctrl-backspace", "git commit src/a.|")]
#[case("git| commit x", "alt-d", "git| x")]
#[case("one two|", "ctrl-w ctrl-w ctrl-y ctrl-y", "one twoone two|")]
#[case("one two|", "ctrl-a alt-d alt-d ctrl-y", "one two|")]
#[case("one two|", "ctrl-w left ctrl-w ctrl-y", "one| ")]
#[case("one two|", "ctrl-w left ctrl-w ctrl-y alt-y", "two| ")]
#[case("ab|c", "shift-enter", "ab\n|c")]
#[case("ab|c", "alt-enter ctrl-j", "ab\n\n|c")]
#[case("ab\\|c", "enter", "ab\n|c")]
fn keys_edit_as_in_a_shell(#[case] before: &str, #[case] keys: &str, #[case] after: &str) {
    let mut editor = editor(before);
    press(&mut editor, keys);
    assert_eq!(shown(&editor), after);
}

#[rstest]
#[case("abc|", "enter")]
#[case("abc|", "tab")]
#[case("abc|", "shift-tab")]
#[case("abc|", "esc")]
#[case("abc|", "ctrl-t")]
#[case("abc|", "ctrl-z")]
#[case("abc|", "ctrl-c")]
#[case("abc|", "ctrl-r")]
#[case("abc|", "super-a")]
#[case("abc|", "pageup")]
#[case("|", "ctrl-d")]
#[case("|", "backspace")]
#[case("abc|", "up")]
#[case("abc|", "down")]
#[case("ab|c\nd", "up")]
fn other_keys_are_left_to_the_caller(#[case] before: &str, #[case] key: &str) {
    let mut editor = editor(before);
    assert_eq!(press(&mut editor, key), Edited::Ignored);
    assert_eq!(shown(&editor), before);
}

#[test]
fn ctrl_d_at_the_end_of_a_text_does_not_leave() {
    assert_eq!(press(&mut editor("abc|"), "ctrl-d"), Edited::Moved);
}

#[test]
fn vertical_motions_keep_the_column_and_follow_the_rows_on_the_screen() {
    let mut one = editor("abcdef|\nab\n\nabcdef");
    press(&mut one, "down");
    assert_eq!(shown(&one), "abcdef\nab|\n\nabcdef");
    press(&mut one, "down down");
    assert_eq!(shown(&one), "abcdef\nab\n\nabcdef|");
    press(&mut one, "up up up");
    assert_eq!(shown(&one), "abcdef|\nab\n\nabcdef");

    let mut wrapped = editor("one two three fo|ur");
    wrapped.render(10, 5, Theme::default());
    press(&mut wrapped, "up");
    assert_eq!(shown(&wrapped), "one two th|ree four");
    let mut wide = editor("漢字漢字\nabcde|");
    press(&mut wide, "up");
    assert_eq!(shown(&wide), "漢字|漢字\nabcde");
}

#[test]
fn undo_goes_back_by_words_and_redo_forward() {
    let mut editor = Editor::new();
    type_text(&mut editor, "one two");
    press(&mut editor, "backspace backspace ctrl-w");
    let mut texts = Vec::new();
    while press(&mut editor, "ctrl-_") == Edited::Changed {
        texts.push(editor.text());
    }
    assert_eq!(texts, ["one t", "one two", "one ", ""]);
    texts.clear();
    while press(&mut editor, "alt-_") == Edited::Changed {
        texts.push(editor.text());
    }
    assert_eq!(texts, ["one ", "one two", "one t", "one "]);
    press(&mut editor, "ctrl-/ x");
    assert_eq!(press(&mut editor, "alt-_"), Edited::Ignored);
    assert_eq!(editor.text(), "one tx");
}

#[test]
fn a_long_paste_is_one_unit_and_is_sent_whole() {
    let lines = "line\r\n".repeat(120);
    let long = "x".repeat(100_000);
    let mut editor = editor("see | now");
    editor.paste(&lines);
    editor.paste(" and ");
    editor.paste(&long);
    let display = "see [pasted 120 lines] and [pasted 100000 characters]| now";
    assert_eq!(shown(&editor), display);
    assert_eq!(editor.display(), display.replace('|', ""));
    let whole = format!("see {} and {long} now", "line\n".repeat(120));
    assert_eq!(editor.text(), whole);

    press(&mut editor, "left");
    assert_eq!(
        shown(&editor),
        "see [pasted 120 lines] and |[pasted 100000 characters] now"
    );
    press(&mut editor, "delete alt-b alt-b");
    assert_eq!(shown(&editor), "see |[pasted 120 lines] and  now");
    press(&mut editor, "ctrl-_");
    assert_eq!(editor.text(), whole);
    press(&mut editor, "ctrl-a ctrl-k ctrl-y");
    assert_eq!(editor.text(), whole);
    assert_eq!(editor.take(), whole);
    assert!(editor.is_empty());
    assert_eq!(press(&mut editor, "ctrl-_"), Edited::Ignored);
    press(&mut editor, "ctrl-y");
    assert_eq!(editor.text(), whole);
}

#[test]
fn short_pastes_are_text() {
    let mut editor = Editor::new();
    let ten_lines = "a\n".repeat(10);
    editor.paste(&ten_lines);
    assert_eq!(editor.display(), ten_lines);
    editor.paste("a\n");
    assert_eq!(editor.display(), "a\n".repeat(11));
}

#[test]
fn a_chip_can_be_made_text() {
    let mut editor = editor("a|b");
    let lines = "x\n".repeat(11);
    editor.paste(&lines);
    assert_eq!(editor.expand_chip_at_cursor(), Edited::Changed);
    assert_eq!(shown(&editor), format!("a{lines}|b"));
    assert_eq!(editor.expand_chip_at_cursor(), Edited::Ignored);
    press(&mut editor, "ctrl-_ left");
    assert_eq!(shown(&editor), "a|[pasted 11 lines]b");
    assert_eq!(editor.expand_chip_at_cursor(), Edited::Changed);
}

#[test]
fn private_characters_from_outside_are_not_taken_for_chips() {
    let mut editor = Editor::new();
    editor.paste("a\u{100000}b");
    type_text(&mut editor, "\u{10fffd}");
    assert_eq!(editor.text(), "a\u{100000}b\u{10fffd}");
    let again = Editor::from_draft(&editor.draft());
    assert_eq!(again.text(), editor.text());
    assert_eq!(again.display(), editor.text());
}

#[test]
fn completion_replaces_what_is_before_the_cursor() {
    let mut editor = editor("see @sr| now");
    assert_eq!(editor.before_cursor(), "see @sr");
    editor.replace_before_cursor(3, "@src/main.rs");
    assert_eq!(shown(&editor), "see @src/main.rs| now");
    press(&mut editor, "ctrl-_");
    assert_eq!(shown(&editor), "see @sr| now");
}

#[test]
fn a_draft_comes_back_with_its_chips_and_cursor() {
    let mut editor = editor("one |three");
    editor.paste(&"x".repeat(2000));
    press(&mut editor, "left");
    let json = serde_json::to_string(&editor.draft()).unwrap();
    let draft: EditorDraft = serde_json::from_str(&json).unwrap();
    let again = Editor::from_draft(&draft);
    assert_eq!(shown(&again), "one |[pasted 2000 characters]three");
    assert_eq!(again.text(), editor.text());
    assert_eq!(draft.text(), editor.text());
}

/// Rows as they are shown, with the cursor.
fn rows(editor: &mut Editor, columns: u16, max_rows: u16) -> Vec<String> {
    let view = editor.render(columns, max_rows, Theme::default());
    let mut rows: Vec<String> = view.rows.iter().map(ToString::to_string).collect();
    let row = &mut rows[usize::from(view.cursor.y)];
    let at = width::prefix(row, usize::from(view.cursor.x)).len();
    row.insert(at, '|');
    rows
}

#[test]
fn rows_break_between_words_and_leave_a_column_to_the_cursor() {
    let mut one = editor("the quick brown fox|");
    assert_eq!(rows(&mut one, 10, 9), ["the quick ", "brown fox|"]);
    assert_eq!(rows(&mut one, 9, 9), ["the ", "quick ", "brown ", "fox|"]);
    let mut long = editor("abcdefghij|");
    assert_eq!(rows(&mut long, 5, 9), ["abcd", "efgh", "ij|"]);
    let mut blanks = editor("abc      |");
    assert_eq!(rows(&mut blanks, 5, 9), ["abc | "]);
}

#[test]
fn wide_characters_tabs_and_control_characters_are_shown_safely() {
    let mut one = editor("漢字漢字|");
    assert_eq!(rows(&mut one, 6, 9), ["漢字", "漢字|"]);
    let mut one = editor("a\tb\x1b[2J|");
    assert_eq!(rows(&mut one, 40, 9), ["a   b\\u{1b}[2J|"]);
    let mut one = editor("שלום עולם|");
    assert_eq!(rows(&mut one, 40, 9), ["שלום עולם|"]);
}

#[test]
fn the_view_scrolls_no_further_than_the_cursor_needs() {
    let mut one = editor("1\n2\n3\n4\n5|");
    assert_eq!(rows(&mut one, 10, 3), ["3", "4", "5|"]);
    press(&mut one, "up up");
    assert_eq!(rows(&mut one, 10, 3), ["3|", "4", "5"]);
    press(&mut one, "up");
    assert_eq!(rows(&mut one, 10, 3), ["2|", "3", "4"]);
    let view = one.render(10, 3, Theme::default());
    assert_eq!((view.above, view.below), (1, 1));
    assert_eq!(rows(&mut one, 10, 9), ["1", "2|", "3", "4", "5"]);
}

#[test]
fn a_chip_has_its_own_style() {
    let mut one = editor("a|b");
    one.paste(&"x\n".repeat(20));
    let view = one.render(40, 3, Theme::default());
    let spans: Vec<_> = view.rows[0]
        .spans
        .iter()
        .map(|s| s.content.clone())
        .collect();
    assert_eq!(spans, ["a", "[pasted 20 lines]", "b"]);
    assert_eq!(view.rows[0].spans[1].style, Theme::default().accent());
}

#[rstest]
#[case("one two|", "esc h h", "one |two")]
#[case("one two|", "esc b b w", "one |two")]
#[case("one two.x|", "esc 0 e", "on|e two.x")]
#[case("one two.x|", "esc 0 e e e", "one two|.x")]
#[case("one|", "esc 0 l i X esc", "o|Xne")]
#[case("one|", "esc 0 a X", "oX|ne")]
#[case("one|", "esc I X", "X|one")]
#[case("one|", "esc 0 A X", "oneX|")]
#[case("one|\ntwo", "esc o X", "one\nX|\ntwo")]
#[case("one|\ntwo", "esc O X", "X|\none\ntwo")]
#[case("one|", "esc 0 x x", "|e")]
#[case("one\ntw|o\nthree", "esc d d", "one\n|three")]
#[case("one\ntw|o", "esc d d", "|one")]
#[case("one two three|", "esc 0 d w", "|two three")]
#[case("one\ntwo|", "esc k 0 d w", "|\ntwo")]
#[case("one two|", "esc 0 c w X esc", "|X two")]
#[case("one two|", "esc 0 c w X esc w .", "X |X")]
#[case("a\none|\nb", "esc c c X", "a\nX|\nb")]
#[case("one\ntwo|", "esc k y y j p", "one\ntwo\n|one")]
#[case("one two|", "esc 0 d w $ p", "twoone| ")]
#[case("one two|", "esc d d u", "one tw|o")]
#[case("abcdef|", "esc 0 x . .", "|def")]
#[case("one two|", "esc 0 d $", "|")]
#[case("one two|", "esc 0 w D", "one| ")]
#[case("abcd\na\nabcd|", "esc k k", "abc|d\na\nabcd")]
fn vim_keys_edit_as_in_vi(#[case] before: &str, #[case] keys: &str, #[case] after: &str) {
    let mut editor = editor(before);
    editor.set_mode(EditMode::Vim);
    press(&mut editor, keys);
    assert_eq!(shown(&editor), after);
}

#[test]
fn vim_leaves_enter_esc_and_the_edges_to_the_caller() {
    let mut editor = editor("one|");
    editor.set_mode(EditMode::Vim);
    assert_eq!(press(&mut editor, "enter"), Edited::Ignored);
    assert_eq!(press(&mut editor, "esc"), Edited::Moved);
    assert_eq!(editor.vim_state(), Some(VimState::Normal));
    for key in ["esc", "enter", "k", "j", "ctrl-c"] {
        assert_eq!(press(&mut editor, key), Edited::Ignored, "{key}");
    }
    assert_eq!(press(&mut editor, "z"), Edited::Moved);
    assert_eq!(press(&mut editor, "d esc"), Edited::Moved);
    assert_eq!(editor.take(), "one");
    assert_eq!(editor.vim_state(), Some(VimState::Insert));
}
