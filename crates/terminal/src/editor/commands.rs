//! What each command does to the text.
//!
//! `Edited::Ignored` leaves the key to the caller: at the edges of the text the same key may mean
//! the history, or leaving. So a command that had nothing to do is not silently swallowed. All
//! changes go through `Editor::replace`, which forgets what the previous command was; kills, yanks
//! and vertical motions set it again after that.

use std::ops::Range;

use super::{
    EditCommand, Edited, Editor, Previous,
    buffer::Kind,
    kills::Side,
    layout::Layout,
    motions::{self, line_end, line_start},
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Vertical {
    Up,
    Down,
}

impl Editor {
    /// Positions are bytes of the text with chips as single characters.
    pub fn run(&mut self, command: EditCommand) -> Edited {
        let at = self.buffer.cursor();
        let text = self.buffer.text();
        match command {
            EditCommand::Insert(c) => self.type_char(c),
            EditCommand::Newline => self.erase_and_type(at..at, "\n"),
            EditCommand::EnterKey => match text[..at].ends_with('\\') {
                true => self.erase_and_type(at - 1..at, "\n"),
                false => Edited::Ignored,
            },
            EditCommand::Left => self.go(motions::left(text, at)),
            EditCommand::Right => self.go(motions::right(text, at)),
            EditCommand::Up => self.go_vertically(Vertical::Up),
            EditCommand::Down => self.go_vertically(Vertical::Down),
            EditCommand::WordLeft => self.go(motions::word_left(text, at)),
            EditCommand::WordRight => self.go(motions::word_right(text, at)),
            EditCommand::LineStart => self.go(line_start(text, at)),
            EditCommand::LineEnd => self.go(line_end(text, at)),
            EditCommand::TextStart => self.go(0),
            EditCommand::TextEnd => self.go(text.len()),
            EditCommand::DeleteLeft => self.erase(motions::left(text, at)..at),
            EditCommand::DeleteRight => match self.erase(at..motions::right(text, at)) {
                // Ctrl-D on nothing ends the session: a text must not be lost by one too many.
                Edited::Ignored if !self.is_empty() => Edited::Moved,
                edited => edited,
            },
            EditCommand::KillWordLeft => self.kill(motions::word_left(text, at)..at, Side::Before),
            EditCommand::KillWordRight => self.kill(at..motions::word_right(text, at), Side::After),
            EditCommand::KillBlankWordLeft => {
                self.kill(motions::blank_word_left(text, at)..at, Side::Before)
            }
            EditCommand::KillToLineStart => {
                // At the start of a line its newline goes, so that the key clears line by line.
                let start = match line_start(text, at) {
                    start if start == at => motions::left(text, at),
                    start => start,
                };
                self.kill(start..at, Side::Before)
            }
            EditCommand::KillToLineEnd => {
                let end = match line_end(text, at) {
                    end if end == at => motions::right(text, at),
                    end => end,
                };
                self.kill(at..end, Side::After)
            }
            EditCommand::Yank => self.yank(),
            EditCommand::YankOlder => self.yank_older(),
            EditCommand::Undo => {
                let undone = self.buffer.undo();
                self.redone(undone)
            }
            EditCommand::Redo => {
                let redone = self.buffer.redo();
                self.redone(redone)
            }
        }
    }

    fn redone(&mut self, done: bool) -> Edited {
        match done {
            true => {
                self.changed();
                Edited::Changed
            }
            false => Edited::Ignored,
        }
    }

    /// A character of the range that marks chips becomes a chip itself.
    fn type_char(&mut self, c: char) -> Edited {
        let mut bytes = [0; 4];
        let text = self.chips.admit(c.encode_utf8(&mut bytes)).into_owned();
        let at = self.buffer.cursor();
        self.replace(at..at, &text, Kind::Typing);
        Edited::Changed
    }

    fn erase_and_type(&mut self, range: Range<usize>, text: &str) -> Edited {
        self.replace(range, text, Kind::Typing);
        Edited::Changed
    }

    /// Not kept for a yank.
    pub(super) fn erase(&mut self, range: Range<usize>) -> Edited {
        if range.is_empty() {
            return Edited::Ignored;
        }
        self.replace(range, "", Kind::Erasing);
        Edited::Changed
    }

    /// Kept for a yank. Successive kills become one entry, in the order of the text.
    pub(super) fn kill(&mut self, range: Range<usize>, side: Side) -> Edited {
        if range.is_empty() {
            return Edited::Ignored;
        }
        let killed = &self.buffer.text()[range.clone()];
        match self.previous {
            Previous::Kill => self.kills.join(killed, side),
            _ => self.kills.add(killed),
        }
        self.replace(range, "", Kind::Single);
        self.previous = Previous::Kill;
        Edited::Changed
    }

    fn yank(&mut self) -> Edited {
        let Some(text) = self.kills.newest().map(str::to_owned) else {
            return Edited::Ignored;
        };
        let at = self.buffer.cursor();
        self.put(at..at, &text)
    }

    /// Only directly after a yank, whose text it replaces.
    fn yank_older(&mut self) -> Edited {
        let Previous::Yank(range) = self.previous.clone() else {
            return Edited::Ignored;
        };
        let Some(text) = self.kills.older().map(str::to_owned) else {
            return Edited::Ignored;
        };
        self.put(range, &text)
    }

    fn put(&mut self, range: Range<usize>, text: &str) -> Edited {
        let start = range.start;
        self.replace(range, text, Kind::Single);
        self.previous = Previous::Yank(start..start + text.len());
        Edited::Changed
    }

    pub(super) fn go(&mut self, to: usize) -> Edited {
        self.previous = Previous::Other;
        if to == self.buffer.cursor() {
            return Edited::Ignored;
        }
        self.buffer.move_to(to);
        Edited::Moved
    }

    /// By rows of the screen, not lines of the text. The column where the motion began is
    /// remembered, so that a short row in between does not change it.
    fn go_vertically(&mut self, direction: Vertical) -> Edited {
        let (text, at) = (self.buffer.text(), self.buffer.cursor());
        let layout = self
            .layout
            .get_or_insert_with(|| Layout::of(text, &self.chips, self.columns));
        let row = layout.row_of(at);
        let next = match direction {
            Vertical::Up => row.checked_sub(1),
            Vertical::Down => Some(row + 1).filter(|next| *next < layout.rows.len()),
        };
        let Some(next) = next else {
            return Edited::Ignored;
        };
        let goal = match self.previous {
            Previous::Vertical(goal) => goal,
            _ => layout.column_of(text, &self.chips, at),
        };
        let to = layout.offset_at(text, &self.chips, next, goal);
        self.buffer.move_to(to);
        self.previous = Previous::Vertical(goal);
        Edited::Moved
    }
}
