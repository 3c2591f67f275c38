//! A terminal that cuts rows on a resize, and does not wrap where it was told not to.
//!
//! `vt100` wraps whatever was asked of it; every terminal that people use knows DECAWM (`CSI ? 7 l`).

use std::num::NonZeroU16;

use unicode_width::UnicodeWidthStr;

/// [`vt100::Parser`] with DECAWM.
pub struct ScreenEmulator {
    parser: vt100::Parser,
    state: State,
    /// Parameters of the control sequence that is being read.
    parameters: Vec<u8>,
    wraps: bool,
    /// The bytes of a character that is not complete.
    character: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    Control,
    /// OSC, DCS and the like: up to BEL or ST.
    Text,
    TextEscape,
}

impl ScreenEmulator {
    pub fn new(rows: NonZeroU16, columns: NonZeroU16, scrollback: usize) -> Self {
        Self {
            parser: vt100::Parser::new(rows, columns, scrollback),
            state: State::Ground,
            parameters: Vec::new(),
            wraps: true,
            character: Vec::new(),
        }
    }

    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub fn screen_mut(&mut self) -> &mut vt100::Screen {
        self.parser.screen_mut()
    }

    pub fn process(&mut self, bytes: &[u8]) {
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let is_text = self.state == State::Ground && *byte >= b' ';
            self.step(*byte);
            if !is_text || self.wraps {
                continue;
            }
            if self.character.is_empty() {
                self.parser.process(&bytes[from..at]);
            }
            from = at + 1;
            self.character.push(*byte);
            if let Ok(character) = std::str::from_utf8(&self.character) {
                let width = u16::try_from(character.width()).unwrap_or(2);
                self.stay_in_row(width);
                self.parser.process(&self.character);
                self.character.clear();
            }
        }
        self.parser.process(&bytes[from..]);
    }

    /// What does not fit is written over the end of the row.
    fn stay_in_row(&mut self, width: u16) {
        let columns = self.screen().size().1.get();
        if width > 0 && self.screen().cursor_position().1 + width > columns {
            let column = columns.saturating_sub(width) + 1;
            let sequence = format!("\x1b[{column}G");
            self.parser.process(sequence.as_bytes());
        }
    }

    fn step(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Text, 0x1b) => State::TextEscape,
            (State::Text, 0x07) => State::Ground,
            (State::Text, _) => State::Text,
            (_, 0x1b) => State::Escape,
            (State::Escape, b'[') => {
                self.parameters.clear();
                State::Control
            }
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::Text,
            (State::Escape, b' '..=b'/') => State::Escape,
            (State::Control, b'@'..=b'~') => {
                match (self.parameters.as_slice(), byte) {
                    (b"?7", b'l') => self.wraps = false,
                    (b"?7", b'h') => self.wraps = true,
                    _ => {}
                }
                State::Ground
            }
            (State::Control, _) => {
                self.parameters.push(byte);
                State::Control
            }
            (State::Ground | State::Escape | State::TextEscape, _) => State::Ground,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        let side = |side| NonZeroU16::new(side).unwrap();
        let mut emulator = ScreenEmulator::new(side(3), side(5), 0);
        emulator.process(bytes);
        emulator.screen().contents()
    }

    #[test]
    fn a_row_is_wrapped_unless_the_program_says_no() {
        assert_eq!(shown(b"1234567"), "1234567");
        assert_eq!(shown(b"\x1b[?7l1234567\r\nab"), "12347\nab");
        assert_eq!(shown(b"\x1b[?7l1234567\x1b[?7h\r12345ab"), "12345ab");
        assert_eq!(shown("\x1b[?7l\x1b]8;;x\x1b\\1234…".as_bytes()), "1234…");
        assert_eq!(shown("\x1b[?7l12345e\u{301}".as_bytes()), "1234e\u{301}");
        assert_eq!(shown("\x1b[?7l1234漢".as_bytes()), "123漢");
    }
}
