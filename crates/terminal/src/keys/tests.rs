//! Sequences as terminals send them.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn parsed(bytes: &[u8]) -> Vec<Input> {
    let mut parser = KeyParser::new();
    let mut inputs = parser.feed(bytes);
    inputs.extend(parser.flush());
    inputs
}

/// Keys by their names; anything else as it is in Rust.
fn names(bytes: &[u8]) -> String {
    let named = parsed(bytes).into_iter().map(|input| match input {
        Input::Key(key) => key.to_string(),
        other => format!("{other:?}"),
    });
    named.collect::<Vec<_>>().join(" ")
}

#[rstest]
#[case::letters(b"aZ", "a Z")]
#[case::control(b"\x01\x12\x00\x1f\x1c", "ctrl-a ctrl-r ctrl-space ctrl-_ ctrl-\\")]
#[case::whitespace(b"\r\n\t ", "enter ctrl-j tab space")]
#[case::backspace(b"\x7f\x08", "backspace ctrl-h")]
#[case::alt(
    b"\x1bb\x1bB\x1b\r\x1b\x7f",
    "alt-b alt-shift-b alt-enter alt-backspace"
)]
#[case::alt_with_an_accent("\x1bé".as_bytes(), "alt-é")]
#[case::arrows(b"\x1b[A\x1b[B\x1b[C\x1b[D", "up down right left")]
#[case::application_arrows(b"\x1bOA\x1bOD\x1bOH\x1bOF", "up left home end")]
#[case::modified(
    b"\x1b[1;5C\x1b[1;3D\x1b[1;2A\x1b[1;6B",
    "ctrl-right alt-left shift-up ctrl-shift-down"
)]
#[case::rxvt(
    b"\x1b[a\x1bOc\x1b[3^\x1b[7~\x1b[8~",
    "shift-up ctrl-right ctrl-delete home end"
)]
#[case::escape_before_a_sequence(b"\x1b\x1b[C", "alt-right")]
#[case::tilde(
    b"\x1b[1~\x1b[2~\x1b[3~\x1b[4~\x1b[5~\x1b[6~\x1b[3;5~",
    "home insert delete end pageup pagedown ctrl-delete"
)]
#[case::functions(
    b"\x1bOP\x1b[15~\x1b[17~\x1b[24~\x1b[1;2S\x1b[[B",
    "f1 f5 f6 f12 shift-f4 f2"
)]
#[case::shift_tab(b"\x1b[Z", "shift-tab")]
#[case::keypad(b"\x1bOM\x1bOk\x1bOy", "enter + 9")]
#[case::kitty(
    b"\x1b[13;2u\x1b[97;5u\x1b[27u\x1b[127;5u\x1b[9;2u",
    "shift-enter ctrl-a esc ctrl-backspace shift-tab"
)]
#[case::kitty_shift(
    b"\x1b[97;6u\x1b[45:95;6u\x1b[45;6u",
    "ctrl-shift-a ctrl-_ ctrl-shift-minus"
)]
#[case::kitty_locks(b"\x1b[114;69u", "ctrl-r")]
#[case::kitty_release(b"\x1b[97;5:3u\x1b[1;1:3A\x1b[97;5:2u", "ctrl-a")]
#[case::kitty_keypad(b"\x1b[57414u\x1b[57400u\x1b[57419u", "enter 1 up")]
#[case::modifier_alone(b"\x1b[57441;2u", "")]
#[case::modify_other_keys(
    b"\x1b[27;2;13~\x1b[27;5;9~\x1b[27;2;65~\x1b[27;3;98~",
    "shift-enter ctrl-tab A alt-b"
)]
#[case::focus(b"\x1b[I\x1b[O", "FocusGained FocusLost")]
#[case::escape(b"\x1b", "esc")]
#[case::two_escapes(b"\x1b\x1b", "esc esc")]
#[case::introducers_alone(b"\x1b[", "alt-[")]
#[case::alt_o(b"\x1bO", "alt-shift-o")]
#[case::alt_bracket_then_text(b"\x1b]x\x1b_x\x1bPx", "alt-] x alt-_ x alt-shift-p x")]
#[case::unknown(b"\x1b[?2026;2$yA\x1b[>1;2;3cB\x1b[<0;3;4MC\x1b[5;6;7xD", "A B C D")]
#[case::old_mouse(b"\x1b[M !!x", "x")]
#[case::unknown_strings(b"\x1b]52;c;Zm9v\x07a\x1bP1$r0m\x1b\\b\x1b_Gi=1;OK\x1b\\c", "a b c")]
#[case::cut_off(b"\x1b[1;\x03\x1b]11;rgb\x03", "ctrl-c ctrl-c")]
#[case::device_attributes(b"\x1b[?62;22c", "Reply(DeviceAttributes)")]
#[case::position(b"\x1b[12;40R", "Reply(CursorPosition { row: 12, column: 40 })")]
#[case::size(b"\x1b[8;24;80t", "Reply(Size { rows: 24, columns: 80 })")]
#[case::kitty_flags(b"\x1b[?5u", "Reply(KittyFlags(5))")]
#[case::version(b"\x1bP>|WezTerm 2024\x1b\\", "Reply(Version(\"WezTerm 2024\"))")]
#[case::reply_after_escape(b"\x1b\x1b[?1c", "esc Reply(DeviceAttributes)")]
#[case::characters("é漢👍".as_bytes(), "é 漢 👍")]
#[case::broken_characters(b"a\xff\xe6\xbcb\xc3", "a \u{fffd} \u{fffd} b")]
#[case::c1_controls(b"\xc2\x9bA", "A")]
fn sequences_are_understood(#[case] bytes: &[u8], #[case] expected: &str) {
    assert_eq!(names(bytes), expected);
}

#[rstest]
#[case(b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07", (0x1e1e, 0x1e1e, 0x2e2e))]
#[case(b"\x1b]11;rgb:ff/00/80\x1b\\", (0xffff, 0, 0x8080))]
#[case(b"\x1b]11;rgba:ffff/ffff/ffff/8000\x1b\\", (0xffff, 0xffff, 0xffff))]
fn the_background_is_scaled_to_sixteen_bits(
    #[case] bytes: &[u8],
    #[case] (red, green, blue): (u16, u16, u16),
) {
    let reply = TerminalReply::Background { red, green, blue };
    assert_eq!(parsed(bytes), [Input::Reply(reply)]);
}

#[test]
fn an_escape_waits_for_what_may_follow_and_a_begun_sequence_needs_no_clock() {
    let mut parser = KeyParser::new();
    assert_eq!(parser.feed(b"\x1b"), []);
    assert!(parser.is_waiting());
    assert_eq!(parser.feed(b"[1"), []);
    assert!(!parser.is_waiting());
    assert_eq!(parser.flush(), []);
    let right = Key::new(KeyCode::Right, Modifiers::CTRL);
    assert_eq!(parser.feed(b";5C"), [Input::Key(right)]);
}

#[test]
fn a_paste_is_text_whatever_is_in_it() {
    let pasted = b"\x1b[200~one\r\ntwo\rthree\n\x1b[31mred\x1b[200~ \x1b[201x\x03\x1b[201~z";
    let text = "one\ntwo\nthree\n\x1b[31mred\x1b[200~ \x1b[201x\x03";
    assert_eq!(
        parsed(pasted),
        [Input::Paste(text.to_owned()), Input::Key(Key::char('z'))]
    );
}

#[test]
fn a_paste_of_100000_characters_arrives_whole() {
    let text = "x".repeat(100_000);
    let mut parser = KeyParser::new();
    let mut inputs = parser.feed(b"\x1b[200~");
    assert!(parser.is_pasting());
    for chunk in text.as_bytes().chunks(1021) {
        inputs.extend(parser.feed(chunk));
        assert!(!parser.is_waiting());
    }
    inputs.extend(parser.feed(b"\x1b[201~"));
    assert_eq!(inputs, [Input::Paste(text)]);
}

#[rstest]
#[case("Ctrl-R", Key::ctrl('r'))]
#[case("ctrl+shift+r", Key::ctrl('R'))]
#[case("Shift-Enter", Key::new(KeyCode::Enter, Modifiers::SHIFT))]
#[case("alt--", Key::alt('-'))]
#[case("-", Key::char('-'))]
#[case("A", Key::char('A'))]
#[case("F12", Key::plain(KeyCode::F(12)))]
#[case("space", Key::char(' '))]
fn key_names_are_read(#[case] name: &str, #[case] key: Key) {
    assert_eq!(name.parse(), Ok(key));
}

#[rstest]
#[case("")]
#[case("ctrl-")]
#[case("hyper-x")]
#[case("f99")]
fn wrong_key_names_are_told(#[case] name: &str) {
    assert_eq!(name.parse::<Key>(), Err(UnknownKey(name.to_owned())));
}

fn any_key() -> impl Strategy<Value = Key> {
    let code = prop_oneof![
        any::<char>()
            .prop_filter("no control", |c| !c.is_control())
            .prop_map(KeyCode::Char),
        Just(KeyCode::Enter),
        Just(KeyCode::PageDown),
        (1..=35u8).prop_map(KeyCode::F),
    ];
    (code, 0..16u8).prop_map(|(code, bits)| Key::new(code, Modifiers(bits)))
}

/// Bytes that are often the beginning, the middle or the end of a sequence.
fn terminal_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\x1b".to_vec()),
        Just(b"\x1b[".to_vec()),
        Just(b"\x1b[200~".to_vec()),
        Just(b"\x1b[201~".to_vec()),
        Just(b"\x1b]11;rgb:".to_vec()),
        Just(b"\x1b\\".to_vec()),
        Just(b"\x1bP>|".to_vec()),
        Just("漢👍".as_bytes().to_vec()),
        "[0-9;:?<>$~A-Zu\\r\\n]{1,6}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn it_does_not_matter_how_bytes_are_split(
        bytes in terminal_bytes(),
        lengths in prop::collection::vec(1..5usize, 0..80),
    ) {
        let mut whole = KeyParser::new();
        let expected = whole.feed(&bytes);
        let mut parser = KeyParser::new();
        let mut inputs = Vec::new();
        let mut rest = bytes.as_slice();
        for length in lengths {
            let (read, left) = rest.split_at(length.min(rest.len()));
            inputs.extend(parser.feed(read));
            rest = left;
        }
        inputs.extend(parser.feed(rest));
        prop_assert_eq!(inputs, expected);
        prop_assert_eq!(parser.is_waiting(), whole.is_waiting());
        prop_assert_eq!(parser.flush(), whole.flush());
        prop_assert!(!parser.is_waiting());
    }

    #[test]
    fn text_is_read_as_the_standard_library_reads_it(bytes in prop::collection::vec(0x80..=0xffu8, 0..20)) {
        let typed: String = parsed(&bytes).iter().filter_map(|input| match input {
            Input::Key(Key { code: KeyCode::Char(c), .. }) => Some(*c),
            _ => None,
        }).collect();
        let text = String::from_utf8_lossy(&bytes).replace(char::is_control, "");
        // A beginning of a character is still held.
        prop_assert!(text == typed || text.strip_suffix(char::REPLACEMENT_CHARACTER) == Some(&typed));
    }

    #[test]
    fn a_written_key_is_read_as_the_same(key in any_key()) {
        prop_assert_eq!(key.to_string().parse(), Ok(key));
    }
}
