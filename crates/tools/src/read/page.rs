//! A window of lines, read in pieces: memory stays small however long the file or a line is.
//!
//! The content passes through in chunks; of each line only what can be shown is kept. A page ends
//! at the limit of lines or of characters, whichever comes first, but has at least one line, so
//! that reading on with the next offset always makes progress.

use std::io::{self, Read};

use crate::{RESULT_LIMIT, ToolError, ledger::ContentHash};

/// Characters of a line that are shown.
const LINE_CHARS: usize = 2_000;
/// Bytes of a line that are kept: any character fits in four.
const LINE_BYTES: usize = LINE_CHARS * 4;
/// Characters of a page: with the notes below it, no more than the conversation takes of a result.
const PAGE_CHARS: usize = RESULT_LIMIT - 500;
/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// Which lines are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The first, from 1.
    pub(super) first: usize,
    pub(super) limit: usize,
}

/// The lines of a window.
#[derive(Debug, Default)]
pub(super) struct Page {
    lines: Vec<String>,
    chars: usize,
    /// The next line would have made it too long; no more are taken.
    full: bool,
    /// Some shown line had bytes that are not UTF-8.
    lossy: bool,
    /// Lines passed so far; all of them once the end was reached.
    passed: usize,
    /// The end of the file was reached, so `passed` is its number of lines.
    ended: bool,
}

/// The line being read. It may come in several chunks.
#[derive(Default)]
struct Pending {
    kept: Vec<u8>,
    /// All of them, also those that were not kept; with the newline.
    bytes: usize,
}

impl Page {
    /// Reads to the end when a hash of the whole is wanted, else as far as the window needs.
    pub(super) fn read(
        mut content: impl Read,
        window: Window,
        mut hash: Option<&mut ContentHash>,
    ) -> io::Result<Self> {
        let mut page = Self::default();
        let mut pending = Pending::default();
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match content.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let piece = &chunk[..read];
            if let Some(hash) = hash.as_deref_mut() {
                hash.update(piece);
            }
            page.take(piece, window, &mut pending);
            if page.is_done(window) && hash.is_none() {
                return Ok(page);
            }
        }
        if pending.bytes > 0 {
            page.finish_line(window, &mut pending);
        }
        page.ended = true;
        Ok(page)
    }

    /// Splits a chunk into lines. A line that is not wanted is counted but not kept.
    fn take(&mut self, piece: &[u8], window: Window, pending: &mut Pending) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            if self.wants_next(window) {
                let room = LINE_BYTES.saturating_sub(pending.kept.len());
                pending
                    .kept
                    .extend_from_slice(&text[..text.len().min(room)]);
            }
            pending.bytes += part.len();
            if text.len() < part.len() {
                self.finish_line(window, pending);
            }
        }
    }

    fn wants_next(&self, window: Window) -> bool {
        !self.full && self.passed + 1 >= window.first && self.lines.len() < window.limit
    }

    fn is_done(&self, window: Window) -> bool {
        self.full || self.lines.len() >= window.limit
    }

    fn finish_line(&mut self, window: Window, pending: &mut Pending) {
        if self.wants_next(window) {
            let line = self.line(&pending.kept, pending.bytes);
            let last = window.first.saturating_add(window.limit);
            let chars = line.chars().count() + last.to_string().len() + 2;
            if self.chars + chars > PAGE_CHARS && !self.lines.is_empty() {
                self.full = true;
            } else {
                self.chars += chars;
                self.lines.push(line);
            }
        }
        self.passed += 1;
        pending.kept.clear();
        pending.bytes = 0;
    }

    /// A line as it is shown: without carriage return, and without the byte order mark of the file.
    /// A cut one says how long it really is. A character that the cut fell into does not count as a
    /// byte that is not UTF-8.
    fn line(&mut self, kept: &[u8], bytes: usize) -> String {
        let text = String::from_utf8_lossy(kept);
        let whole = bytes <= kept.len() + 1;
        self.lossy |= whole && std::str::from_utf8(kept).is_err();
        let text = text.strip_suffix('\r').unwrap_or(&text);
        let text = if self.passed == 0 {
            text.strip_prefix('\u{feff}').unwrap_or(text)
        } else {
            text
        };
        match text.char_indices().nth(LINE_CHARS) {
            Some((cut, _)) => format!("{}… [line cut: {bytes} bytes in all]", &text[..cut]),
            None if whole => text.to_owned(),
            None => format!("{text}… [line cut: {bytes} bytes in all]"),
        }
    }

    /// The page as text. An empty file is an answer; an offset past the end is an error that says
    /// how many lines there are.
    pub(super) fn show(&self, name: &str, window: Window) -> Result<String, ToolError> {
        if self.ended && self.passed == 0 {
            return Ok(format!("({name} is empty)"));
        }
        if self.lines.is_empty() && self.ended && self.passed < window.first {
            return Err(ToolError(format!(
                "{name} has {} lines; offset {} is past its end",
                self.passed, window.first
            )));
        }
        let last = window.first + self.lines.len() - usize::from(!self.lines.is_empty());
        let width = last.to_string().len();
        let mut text = String::with_capacity(self.chars + 200);
        for (number, line) in (window.first..).zip(&self.lines) {
            text.push_str(&format!("{number:>width$}\t{line}\n"));
        }
        let next = window.first + self.lines.len();
        if self.ended && next <= self.passed {
            let all = self.passed;
            text.push_str(&format!("({all} lines in all; go on with offset {next})\n"));
        } else if !self.ended {
            text.push_str(&format!("(more lines follow; go on with offset {next})\n"));
        }
        if self.lossy {
            text.push_str("(not all of it is UTF-8: such bytes are shown as \u{fffd})\n");
        }
        text.pop();
        Ok(text)
    }
}
