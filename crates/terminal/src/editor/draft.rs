//! What is being typed, in a form that survives the process.

use serde::{Deserialize, Serialize};

use super::{
    Editor,
    buffer::Kind,
    chips::{Chips, Piece},
};
use crate::newlines::with_newlines;

/// A text with its chips and the cursor. Undo and kills are not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EditorDraft {
    pieces: Vec<DraftPiece>,
    /// In bytes, a chip counting four; one that is out of place is moved to the next that is not.
    cursor: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DraftPiece {
    Text(String),
    Chip(String),
}

impl EditorDraft {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Everything, chips expanded.
    pub fn text(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            DraftPiece::Text(text) | DraftPiece::Chip(text) => text.as_str(),
        });
        pieces.collect()
    }

    /// The text as the buffer has it, with new marks. A content for which no mark is left becomes
    /// plain text.
    fn in_marks(&self, chips: &mut Chips) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                DraftPiece::Text(plain) => text.push_str(&chips.admit(&with_newlines(plain))),
                DraftPiece::Chip(content) => match chips.add(content) {
                    Some(mark) => text.push(mark),
                    None => text.push_str(&chips.admit(content)),
                },
            }
        }
        text
    }
}

/// The cursor is at the end.
impl From<&str> for EditorDraft {
    fn from(text: &str) -> Self {
        Self {
            pieces: match text {
                "" => Vec::new(),
                text => vec![DraftPiece::Text(text.to_owned())],
            },
            cursor: text.len(),
        }
    }
}

impl Editor {
    /// Also how a message is queued and edited again: a long paste stays a chip.
    pub fn draft(&self) -> EditorDraft {
        let pieces = self
            .chips
            .pieces(self.buffer.text())
            .map(|piece| match piece {
                Piece::Text(text) => DraftPiece::Text(text.to_owned()),
                Piece::Chip(content) => DraftPiece::Chip(content.to_owned()),
            });
        EditorDraft {
            pieces: pieces.collect(),
            cursor: self.buffer.cursor(),
        }
    }

    pub fn from_draft(draft: &EditorDraft) -> Self {
        let mut editor = Self::new();
        editor.load(draft);
        editor.buffer.forget_changes();
        editor
    }

    /// Replaces everything; can be undone.
    pub fn load(&mut self, draft: &EditorDraft) {
        let text = draft.in_marks(&mut self.chips);
        self.replace(0..self.buffer.text().len(), &text, Kind::Single);
        self.buffer.move_to(draft.cursor);
    }
}
