//! Terminal output as plain text: colours out, progress bars collapsed to their last state.
//!
//! What comes out is what a user would see on a terminal that only knows lines: escape sequences
//! are removed, a line that is written over after a carriage return is kept in its last state,
//! backspaces delete, control characters vanish. Bytes that are no UTF-8 become replacement
//! characters. How the input is cut into pieces does not matter. A line is passed on when it is
//! complete, as it may still be written over.

/// Lines longer than this are passed on in pieces. Memory stays bounded however long a line is;
/// what was passed on cannot be written over.
const LONGEST_LINE: usize = 64 << 10;

/// Turns bytes meant for a terminal into text, piece by piece.
#[derive(Default)]
pub(super) struct PlainText {
    state: State,
    /// The line under way, without escape sequences.
    line: Vec<u8>,
    /// A carriage return was seen; unless a newline follows, the line is written over.
    returned: bool,
}

/// Where in an escape sequence the input is. A newline ends any of them.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// `ESC [ … letter`
    Control,
    /// `ESC ] … BEL` and its kin (titles, links).
    String,
    /// An escape within a string; the byte after it, normally a backslash, ends the string.
    StringEscape,
}

impl PlainText {
    /// Takes bytes; appends the text that is settled to `out`.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        while let Some(&byte) = bytes.first() {
            if self.state == State::Ground && !self.returned && is_plain(byte) {
                let length = bytes
                    .iter()
                    .position(|byte| !is_plain(*byte))
                    .unwrap_or(bytes.len());
                let (run, rest) = bytes.split_at(length);
                self.plain(run, out);
                bytes = rest;
            } else {
                self.step(byte, out);
                bytes = &bytes[1..];
            }
        }
    }

    /// Whether the next byte begins a line.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.line.is_empty()
    }

    /// The text that is left.
    pub(super) fn finish(mut self, out: &mut String) {
        out.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.line)));
    }

    /// Takes a run without anything special in it. Complete lines go out as they are, without a
    /// copy where nothing was waiting.
    fn plain(&mut self, run: &[u8], out: &mut String) {
        let settled = memchr::memrchr(b'\n', run).map_or(0, |last| last + 1);
        let (settled, open) = run.split_at(settled);
        if !settled.is_empty() {
            if self.line.is_empty() {
                out.push_str(&String::from_utf8_lossy(settled));
            } else {
                self.line.extend_from_slice(settled);
                out.push_str(&String::from_utf8_lossy(&self.line));
                self.line.clear();
            }
        }
        self.line.extend_from_slice(open);
        if self.line.len() > LONGEST_LINE {
            self.pass_on(out);
        }
    }

    /// Passes on an overlong line, but not half a character.
    fn pass_on(&mut self, out: &mut String) {
        let whole = match std::str::from_utf8(&self.line) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => last_boundary(&self.line),
        };
        let rest = self.line.split_off(whole);
        out.push_str(&String::from_utf8_lossy(&self.line));
        self.line = rest;
    }

    fn step(&mut self, byte: u8, out: &mut String) {
        self.state = match (self.state, byte) {
            (State::Ground, _) => {
                self.ground(byte, out);
                return;
            }
            (State::Escape, b'[') => State::Control,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::String,
            (State::Escape, 0x20..=0x2f) => State::Escape,
            (State::Control, 0x20..=0x3f) => State::Control,
            (State::String, 0x1b) => State::StringEscape,
            // A string that never ends must not swallow the rest of the output.
            (State::Escape | State::Control | State::String | State::StringEscape, b'\n') => {
                self.state = State::Ground;
                self.ground(byte, out);
                return;
            }
            (State::String, byte) if byte != 0x07 => State::String,
            _ => State::Ground,
        };
    }

    fn ground(&mut self, byte: u8, out: &mut String) {
        match byte {
            0x1b => self.state = State::Escape,
            b'\r' => self.returned = true,
            b'\n' => {
                self.returned = false;
                self.plain(b"\n", out);
            }
            0x08 => self.rub_out(),
            byte if is_plain(byte) => {
                if std::mem::take(&mut self.returned) {
                    self.line.clear();
                }
                self.plain(&[byte], out);
            }
            _ => {}
        }
    }

    /// Removes the last character of the line, of however many bytes.
    fn rub_out(&mut self) {
        while let Some(byte) = self.line.pop() {
            if byte & 0xc0 != 0x80 {
                break;
            }
        }
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | 0x20..=0x7e | 0x80..)
}

/// Where the last character begins.
fn last_boundary(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| byte & 0xc0 != 0x80)
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(pieces: &[&[u8]]) -> String {
        let mut text = PlainText::default();
        let mut out = String::new();
        for piece in pieces {
            text.push(piece, &mut out);
        }
        text.finish(&mut out);
        out
    }

    #[test]
    fn colours_titles_and_links_go() {
        assert_eq!(
            plain(&[
                b"\x1b[1;31merror\x1b[0m: \x1b]0;title\x07no \x1b]8;;http://x\x1b\\here\x1b(B\n"
            ]),
            "error: no here\n"
        );
    }

    #[test]
    fn a_progress_bar_keeps_its_last_state() {
        assert_eq!(
            plain(&[b" 10%\r 50%\r", b"100%\r\n", b"done\r"]),
            "100%\ndone"
        );
    }

    #[test]
    fn an_unfinished_escape_ends_with_its_line() {
        assert_eq!(plain(&[b"a\x1b]never ends\nb\n"]), "a\nb\n");
    }

    #[test]
    fn overstrikes_and_bytes_that_are_no_text_are_tamed() {
        assert_eq!(
            plain(&[b"N\x08NA\x08A\0\x07 \xff \xc3", b"\xa9\n"]),
            "NA \u{fffd} é\n"
        );
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_does_not_matter(
            bytes in prop::collection::vec(prop_oneof![Just(0x1b_u8), Just(b'['), Just(b'\r'), Just(b'\n'), any::<u8>()], 0..200),
            cut in 0_usize..200,
        ) {
            let cut = cut.min(bytes.len());
            prop_assert_eq!(plain(&[&bytes[..cut], &bytes[cut..]]), plain(&[&bytes]));
        }
    }
}
