//! Why an edit was refused, in words a model can act on.

use std::fmt;

use super::{Nearest, Rung};

/// Why one edit was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchFailure {
    /// There is nothing to look for, and the file is not empty.
    EmptySearch,
    /// The new text is the old text.
    NoChange,
    /// The text is not in the file.
    NotFound {
        /// What comes nearest, for display.
        nearest: Option<Nearest>,
    },
    /// The text is in more than one place.
    Ambiguous {
        /// How it was compared.
        rung: Rung,
        /// The first lines of the places, from 1.
        lines: Vec<usize>,
    },
    /// It was found, but how the new lines are to be indented there is not clear.
    IndentationUnclear {
        /// Where it was found, from 1.
        line: usize,
        /// The new line that has no clear place.
        text: String,
        /// What differs.
        difference: &'static str,
    },
    /// Another block changes some of the same lines.
    Overlap {
        /// The other block, from 0.
        with: usize,
    },
}

/// A block that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFailure {
    /// Which block, from 0.
    pub block: usize,
    pub reason: MatchFailure,
}

/// How many places are named before "and N more".
const NAMED_PLACES: usize = 10;

impl fmt::Display for MatchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptySearch => f.write_str(
                "the text to replace is empty, which is only for a new or empty file; give the text to replace",
            ),
            Self::NoChange => f.write_str("the new text is the same as the old text"),
            Self::NotFound { nearest: None } => {
                f.write_str("the text to replace is not in the file")
            }
            Self::NotFound {
                nearest: Some(nearest),
            } => write!(f, "the text to replace is not in the file. {nearest}"),
            Self::Ambiguous { rung, lines } => {
                write!(
                    f,
                    "the text to replace is in {} places (lines {}",
                    lines.len(),
                    listed(lines)
                )?;
                if *rung != Rung::Exact {
                    write!(f, "; {rung}")?;
                }
                f.write_str("); add neighbouring lines that make it unique")
            }
            Self::IndentationUnclear {
                line,
                text,
                difference,
            } => write!(
                f,
                "the text is at line {line}, but {difference}, and it is not clear how to indent the new line `{text}`; write both texts with the file's own indentation"
            ),
            Self::Overlap { with } => write!(
                f,
                "it changes lines that block {} changes too; join them into one block",
                with + 1
            ),
        }
    }
}

impl std::error::Error for MatchFailure {}

impl fmt::Display for BlockFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}: {}", self.block + 1, self.reason)
    }
}

impl std::error::Error for BlockFailure {}

fn listed(lines: &[usize]) -> String {
    let named: Vec<String> = lines
        .iter()
        .take(NAMED_PLACES)
        .map(usize::to_string)
        .collect();
    match lines.len().checked_sub(NAMED_PLACES) {
        Some(more) if more > 0 => format!("{} and {more} more", named.join(", ")),
        _ => named.join(", "),
    }
}
