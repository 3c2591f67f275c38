//! The text being typed.
//!
//! ```text
//! bindings   key -> command
//! commands   what each command does
//! vim        keys of the optional vim mode
//! buffer     text, cursor, undo
//! motions    where a motion leads to
//! chips      long pastes behind a label
//! kills      what was killed
//! layout     text -> rows
//! view       rows on the screen, the cursor
//! draft      what survives the process
//! ```

mod bindings;
mod buffer;
mod chips;
mod commands;
mod draft;
mod kills;
mod layout;
mod motions;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
mod view;
mod vim;

use std::ops::Range;

pub use bindings::EditCommand;
pub use draft::EditorDraft;
pub use view::EditorView;
pub use vim::VimState;

use crate::{keys::Key, newlines::with_newlines};
use buffer::{Buffer, Kind};
use chips::{Chips, is_mark};
use kills::KillRing;
use layout::Layout;
use vim::Vim;

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    Changed,
    /// The text is the same; the cursor may have moved.
    Moved,
    /// Nothing happened: the key is the caller's.
    Ignored,
}

/// Which keys do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditMode {
    /// As in a shell.
    #[default]
    Emacs,
    Vim,
}

/// What the command before was, where that matters to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Previous {
    #[default]
    Other,
    /// A further kill joins it.
    Kill,
    /// Can be replaced by an older kill.
    Yank(Range<usize>),
    /// Keeps the column where the vertical motion began.
    Vertical(usize),
}

/// A text of several lines with a cursor.
///
/// The cursor is always between two graphemes, and a long paste is one grapheme. The text never
/// contains `\r`.
#[derive(Debug)]
pub struct Editor {
    buffer: Buffer,
    chips: Chips,
    kills: KillRing,
    previous: Previous,
    /// Of the last rendering.
    columns: u16,
    /// The first row on the screen.
    top: usize,
    layout: Option<Layout>,
    /// In vim mode.
    vim: Option<Vim>,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    pub fn new() -> Self {
        Self {
            buffer: Buffer::default(),
            chips: Chips::default(),
            kills: KillRing::default(),
            previous: Previous::Other,
            columns: 80,
            top: 0,
            layout: None,
            vim: None,
        }
    }

    /// Vim mode begins in insert state.
    pub fn set_mode(&mut self, mode: EditMode) {
        self.vim = match mode {
            EditMode::Emacs => None,
            EditMode::Vim => Some(Vim::default()),
        };
    }

    /// `None` outside of vim mode.
    pub fn vim_state(&self) -> Option<VimState> {
        self.vim.as_ref().map(Vim::state)
    }

    /// `vim` is taken out while it runs, since it changes the editor.
    pub fn handle(&mut self, key: &Key) -> Edited {
        match self.vim.take() {
            Some(mut vim) => {
                let edited = vim.handle(self, key);
                self.vim = Some(vim);
                edited
            }
            None => self.handle_as_shell(key),
        }
    }

    fn handle_as_shell(&mut self, key: &Key) -> Edited {
        match EditCommand::of(key) {
            Some(command) => self.run(command),
            None => Edited::Ignored,
        }
    }

    /// Everything that was typed and pasted.
    pub fn text(&self) -> String {
        self.chips.expanded(self.buffer.text())
    }

    /// The text as it is shown, with labels in place of long pastes.
    pub fn display(&self) -> String {
        self.chips.labelled(self.buffer.text()).into_owned()
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// Inserts at the cursor, whatever the length.
    pub fn insert(&mut self, text: &str) {
        let text = with_newlines(text);
        let text = self.chips.admit(&text).into_owned();
        let at = self.buffer.cursor();
        self.replace(at..at, &text, Kind::Single);
    }

    /// Inserts at the cursor. More than 10 lines or 1,000 characters become a chip.
    pub fn paste(&mut self, text: &str) {
        let text = with_newlines(text);
        let mark = match chips::is_long(&text) {
            true => self.chips.add(&text),
            false => None,
        };
        match mark {
            Some(mark) => {
                let at = self.buffer.cursor();
                self.replace(at..at, mark.encode_utf8(&mut [0; 4]), Kind::Single);
            }
            None => self.insert(&text),
        }
    }

    /// Inserts the path of a file as a chip that shows its name, between blanks.
    pub fn insert_file(&mut self, path: &str) {
        let path = chips::escaped(path);
        let before = self.buffer.text()[..self.buffer.cursor()]
            .chars()
            .next_back();
        let is_apart = before.is_none_or(char::is_whitespace);
        let mut text = if is_apart {
            String::new()
        } else {
            " ".to_owned()
        };
        match self.chips.add(&path) {
            Some(mark) => text.push(mark),
            None => text.push_str(&path),
        }
        text.push(' ');
        let at = self.buffer.cursor();
        self.replace(at..at, &text, Kind::Single);
    }

    /// Makes the chip before the cursor, or else the one after it, text that can be edited.
    pub fn expand_chip_at_cursor(&mut self) -> Edited {
        let (text, at) = (self.buffer.text(), self.buffer.cursor());
        let before = motions::left(text, at)..at;
        let after = at..motions::right(text, at);
        let found = [before, after].into_iter().find_map(|range| {
            let (start, mark) = text[range.clone()]
                .char_indices()
                .find(|(_, c)| is_mark(*c))?;
            let start = range.start + start;
            Some((start..start + mark.len_utf8(), mark))
        });
        let Some((range, mark)) = found else {
            return Edited::Ignored;
        };
        let content = self.chips.content(mark).unwrap_or_default().to_owned();
        let content = self.chips.admit(&content).into_owned();
        self.replace(range, &content, Kind::Single);
        Edited::Changed
    }

    /// Replaces everything; can be undone. The cursor is at the end.
    pub fn set_text(&mut self, text: &str) {
        let text = with_newlines(text);
        let text = self.chips.admit(&text).into_owned();
        self.replace(0..self.buffer.text().len(), &text, Kind::Single);
    }

    /// Removes everything; can be undone.
    pub fn clear(&mut self) {
        self.set_text("");
    }

    /// The whole text, which leaves the editor for good: it can't be undone. Kills stay.
    pub fn take(&mut self) -> String {
        let text = self.buffer.take();
        let text = self.chips.expanded(&text);
        self.chips.keep_only(self.kills.entries());
        self.changed();
        if self.vim.is_some() {
            self.vim = Some(Vim::default());
        }
        text
    }

    /// The text before the cursor, for completion. A chip in it is one private character.
    pub fn before_cursor(&self) -> &str {
        &self.buffer.text()[..self.buffer.cursor()]
    }

    /// The text after the cursor, in the same form.
    pub fn after_cursor(&self) -> &str {
        &self.buffer.text()[self.buffer.cursor()..]
    }

    /// Replaces so many bytes before the cursor; a character that is cut goes as a whole.
    pub fn replace_before_cursor(&mut self, bytes: usize, with: &str) {
        let at = self.buffer.cursor();
        let start = at.saturating_sub(bytes);
        let start = self.buffer.text().floor_char_boundary(start);
        let with = with_newlines(with);
        let with = self.chips.admit(&with).into_owned();
        self.replace(start..at, &with, Kind::Single);
    }

    /// The only way to change the text.
    fn replace(&mut self, range: Range<usize>, with: &str, kind: Kind) {
        if range.is_empty() && with.is_empty() {
            return;
        }
        self.buffer.replace(range, with, kind);
        self.changed();
    }

    /// The rows are computed again when they are next needed.
    fn changed(&mut self) {
        self.layout = None;
        self.previous = Previous::Other;
    }
}
