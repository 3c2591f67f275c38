//! The blocks that are open, and those that are final.
//!
//! A block that is final is drawn once and forgotten. So the parser keeps only what is open: the
//! containers around the present line and one leaf in the innermost of them.

use super::lines::{Fence, ListKind};

/// What stands before the lines of a block, from the outside in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Bar,
    /// Before the first line; the others are indented by its width.
    Marker(String),
    Indent(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Source of a paragraph; `Continued` never begins a block of another kind.
    Paragraph(String),
    Continued(String),
    Heading(usize, String),
    Table(String),
    /// A table that is not complete, with so many rows so far.
    OpenTable(usize),
    Html(String),
    Rule,
    /// A list item without content.
    Empty,
    /// Of a code block; its lines follow.
    CodeInfo(String),
    CodeLine(String),
}

/// A block that is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// A blank line before it, with what stands before that.
    pub(super) gap: Option<Vec<Frame>>,
    pub(super) frames: Vec<Frame>,
    pub(super) content: Content,
}

/// A quote or an item of a list. Lists themselves are not blocks: an item only has to know its
/// number.
#[derive(Debug, Clone)]
pub(super) enum Container {
    Quote,
    Item {
        kind: ListKind,
        number: u64,
        /// Columns of indentation that belong to the item.
        content: usize,
        marker: String,
        shown: bool,
    },
}

/// What the next line may go on with. Code is handed on line by line; paragraphs and tables are
/// collected, since their last line can change how the first is drawn.
#[derive(Debug, Clone, Default)]
pub(super) enum Leaf {
    #[default]
    None,
    Paragraph {
        source: String,
        continued: bool,
    },
    Table {
        header: String,
        rows: String,
        count: usize,
        /// Whether a part of it was handed on.
        drawn: bool,
    },
    Fence(Fence),
    Indented {
        blank_lines: usize,
    },
    Html {
        end: &'static str,
    },
}

/// What kind of block came last, for the blank line before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Nothing,
    Text,
    /// Set apart from text by a blank line even if the source has none.
    Solid,
}
