//! The text, the cursor, and every change of them, so that it can be undone.
//!
//! A change is kept as what was removed and what was inserted, never as a copy of the text: typing
//! in a text of 10,000 lines costs as much memory as typing in an empty one.

use std::{collections::VecDeque, ops::Range};

use super::motions;

/// The oldest changes are forgotten beyond this.
const MOST_UNDO_BYTES: usize = 16 << 20;
/// Erased characters that are brought back at once.
const LONGEST_ERASED: usize = 64;

/// How a change joins the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Joins until a word ends.
    Typing,
    Erasing,
    /// Stands alone.
    Single,
}

#[derive(Debug)]
struct Change {
    at: usize,
    removed: String,
    inserted: String,
    cursor_before: usize,
}

impl Change {
    fn size(&self) -> usize {
        self.removed.len() + self.inserted.len() + size_of::<Self>()
    }
}

#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    /// Always on a grapheme boundary.
    cursor: usize,
    done: VecDeque<Change>,
    undone: Vec<Change>,
    size: usize,
    /// The kind of the last change while further ones may join it. A motion closes it.
    open: Option<Kind>,
}

impl Buffer {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(super) fn move_to(&mut self, at: usize) {
        self.cursor = motions::boundary_from(&self.text, at);
        self.open = None;
    }

    /// Replaces a range that begins and ends at characters; the cursor is after what was inserted.
    /// Whatever could be redone before is gone. The caller makes sure that the range is on
    /// character boundaries; the cursor is moved on to a grapheme boundary if the new text joins
    /// with what follows.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str, kind: Kind) {
        let change = Change {
            at: range.start,
            removed: self.text[range.clone()].to_owned(),
            inserted: with.to_owned(),
            cursor_before: self.cursor,
        };
        self.undone.clear();
        self.record(change, kind);
        self.text.replace_range(range.clone(), with);
        self.cursor = motions::boundary_from(&self.text, range.start + with.len());
    }

    /// Whether there was something to undo. The cursor goes to where it was before the change.
    pub(super) fn undo(&mut self) -> bool {
        let Some(change) = self.done.pop_back() else {
            return false;
        };
        self.size -= change.size();
        let inserted = change.at..change.at + change.inserted.len();
        self.text.replace_range(inserted, &change.removed);
        self.move_to(change.cursor_before);
        self.undone.push(change);
        true
    }

    pub(super) fn redo(&mut self) -> bool {
        let Some(change) = self.undone.pop() else {
            return false;
        };
        let removed = change.at..change.at + change.removed.len();
        self.text.replace_range(removed, &change.inserted);
        self.move_to(change.at + change.inserted.len());
        self.size += change.size();
        self.done.push_back(change);
        true
    }

    /// There is nothing to undo any more.
    pub(super) fn forget_changes(&mut self) {
        self.done.clear();
        self.undone.clear();
        (self.size, self.open) = (0, None);
    }

    /// Text and undo are gone.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    /// One change is always kept, however large, so that the last one can be undone.
    fn record(&mut self, change: Change, kind: Kind) {
        let joined = match self.done.back_mut() {
            Some(last) if self.open == Some(kind) => {
                let before = last.size();
                let joined = join(last, &change, kind);
                self.size += last.size() - before;
                joined
            }
            _ => false,
        };
        if !joined {
            self.size += change.size();
            self.done.push_back(change);
        }
        self.open = Some(kind);
        while self.size > MOST_UNDO_BYTES && self.done.len() > 1 {
            let oldest = self.done.pop_front();
            self.size -= oldest.map_or(0, |oldest| oldest.size());
        }
    }
}

/// Typing joins up to the beginning of a word, so undo takes back a word at a time. Erasing joins
/// in both directions: Backspace goes to the left, Delete stays in place.
fn join(last: &mut Change, change: &Change, kind: Kind) -> bool {
    match kind {
        Kind::Typing => {
            let follows = change.removed.is_empty()
                && last.removed.is_empty()
                && change.at == last.at + last.inserted.len();
            let begins_word = last.inserted.ends_with(char::is_whitespace)
                && !change.inserted.starts_with(char::is_whitespace);
            if !follows || begins_word {
                return false;
            }
            last.inserted.push_str(&change.inserted);
            true
        }
        Kind::Erasing => {
            let pure = change.inserted.is_empty() && last.inserted.is_empty();
            if !pure || last.removed.len() > LONGEST_ERASED {
                return false;
            }
            if change.at + change.removed.len() == last.at {
                last.at = change.at;
                last.removed.insert_str(0, &change.removed);
                true
            } else if change.at == last.at {
                last.removed.push_str(&change.removed);
                true
            } else {
                false
            }
        }
        Kind::Single => false,
    }
}
