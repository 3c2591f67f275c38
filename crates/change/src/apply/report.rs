//! What became of each block, for people, programs and the model.

use std::fmt;

use codespar_tools::matching::{Nearest, Rung};
use serde::{Deserialize, Serialize};

use crate::answer::AnswerError;

/// What became of one block: a SEARCH/REPLACE pair, a whole content, a deletion or a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReport {
    /// The file, as the answer names it; empty for text outside the blocks.
    pub path: String,
    /// Which of the file's blocks, from 1.
    pub block: usize,
    /// What became of it.
    pub outcome: BlockOutcome,
    /// How closely its text agreed with the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// The first and the last line it replaced; of an ambiguous text, the first line of each
    /// place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<usize>,
    /// Why it was refused, or changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The part of the file that comes nearest to a text that is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
}

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOutcome {
    /// It is part of the change.
    Applied,
    /// The file is as it asks already.
    Unchanged,
    /// It could not be applied.
    Refused,
    /// It could, but another was refused.
    HeldBack,
}

/// Why nothing was changed. Every block is in it, the refused ones with their reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Refusal {
    /// One for each block, in the order of the answer.
    pub blocks: Vec<BlockReport>,
}

impl BlockReport {
    pub(super) fn new(path: &str, block: usize) -> Self {
        Self {
            path: path.to_owned(),
            block,
            outcome: BlockOutcome::Applied,
            rung: None,
            lines: Vec::new(),
            reason: None,
            nearest: None,
        }
    }

    /// Refuses the block, unless it was refused already.
    pub(super) fn refuse(&mut self, reason: impl Into<String>) {
        if self.outcome != BlockOutcome::Refused {
            self.outcome = BlockOutcome::Refused;
            self.reason = Some(reason.into());
        }
    }
}

impl fmt::Display for BlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`, block {}: ", self.path, self.block)?;
        }
        match self.outcome {
            BlockOutcome::Applied => f.write_str("applied")?,
            BlockOutcome::Unchanged => f.write_str("changes nothing")?,
            BlockOutcome::HeldBack => f.write_str("fits, held back")?,
            BlockOutcome::Refused => {}
        }
        if let Some(reason) = &self.reason {
            let colon = match self.outcome {
                BlockOutcome::Refused => "",
                _ => ": ",
            };
            write!(f, "{colon}{reason}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, ". {nearest}")?;
        }
        Ok(())
    }
}

impl Refusal {
    /// The blocks that were refused.
    pub fn refused(&self) -> impl Iterator<Item = &BlockReport> {
        let refused = |block: &&BlockReport| block.outcome == BlockOutcome::Refused;
        self.blocks.iter().filter(refused)
    }

    /// What goes back to the model: every refused block, why, and what the file has there.
    pub fn for_model(&self) -> String {
        let mut text = format!(
            "{} of {} blocks cannot be applied, so none was:\n",
            self.refused().count(),
            self.blocks.len()
        );
        for block in self.refused() {
            text.push_str(&format!("\n- {block}\n"));
        }
        text
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut refused = self.refused();
        if let Some(first) = refused.next() {
            write!(f, "{first}")?;
        }
        refused.try_for_each(|block| write!(f, "\n{block}"))
    }
}

impl From<AnswerError> for Refusal {
    fn from(error: AnswerError) -> Self {
        let mut blocks: Vec<BlockReport> = Vec::new();
        for problem in error.problems {
            let path = problem.path.unwrap_or_default();
            let earlier = blocks.iter().filter(|block| block.path == path).count();
            let mut block = BlockReport::new(&path, earlier + 1);
            block.refuse(format!(
                "line {} of the answer: {}",
                problem.line, problem.reason
            ));
            blocks.push(block);
        }
        Self { blocks }
    }
}
