//! What a model answers with: blocks that change files, and words around them.
//!
//! ```text
//! ===FILE: src/a.rs===        a block: the whole content of a file, or pairs of old and new lines
//! <<<SEARCH                   `<<<<<<< SEARCH`, `=======` and `>>>>>>> REPLACE` are read, too
//! old lines
//! >>>REPLACE
//! new lines
//! ===END===
//! ===DELETE: src/b.rs===
//! ===MOVE: c.rs -> d.rs===
//! ===SHOW: src/e.rs:10-40===  a request, in place of an answer
//! ===SEARCH: some text===
//! ```
//!
//! Text outside of blocks is the summary. The format is plain text rather than a tool call, since
//! code needs nearly no escaping in it and a cut answer can be continued (`join`).
//!
//! Reading never guesses. An answer that can be read in two ways is refused with a reason for the
//! model, since a wrong edit that applies costs far more than a repair. Models do leave things out,
//! so some deviations are read where only one meaning is possible; each has a module: fences around
//! a body (`fence`), a missing end (`unended`), pairs without a block (`bare`).

mod bare;
mod body;
mod error;
mod fence;
mod join;
mod markers;
mod parse;
mod requests;
mod summary;
mod unended;

pub use codespar_tools::matching::Block;
pub use error::{AnswerError, Problem};
pub use join::join;
pub use parse::parse;
pub use requests::ContextRequest;

/// What is known of an answer besides its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerContext<'a> {
    /// The files that the model was shown. A pair outside a `FILE` block is about the only one.
    pub shown: &'a [&'a str],
    pub ending: AnswerEnding,
}

/// Whether the last line of an answer is where the model stopped by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnswerEnding {
    /// The provider said so. A last block without `===END===` is then whole, not cut.
    Complete,
    /// The text may have been cut anywhere.
    #[default]
    Unknown,
}

/// An answer, read. Paths are as they were written: [`crate::apply::apply`] judges them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedAnswer {
    /// The text outside the blocks.
    pub summary: String,
    /// What the blocks ask for, in order.
    pub ops: Vec<Op>,
    /// What the model wants to see before it answers. Never together with ops.
    pub requests: Vec<ContextRequest>,
}

/// What one block of an answer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A file with this content, new or instead of the old one.
    Write {
        /// Which file.
        path: String,
        /// All of it: lines, each with its newline.
        content: String,
    },
    /// Other lines in some places of a file.
    Edit {
        /// Which file.
        path: String,
        /// The places and the new lines.
        edits: Vec<Block>,
    },
    /// A file goes.
    Delete {
        /// Which file.
        path: String,
    },
    /// A file gets another name.
    Move {
        /// Its name.
        from: String,
        /// Its new name.
        to: String,
    },
}

impl ParsedAnswer {
    /// A line for a title: the first of the summary, plain, at most 72 characters. `None` without
    /// a summary.
    pub fn title(&self) -> Option<String> {
        summary::title(&self.summary)
    }

    /// Every path the blocks name, as written, each once: what must be at hand to apply them.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        for op in &self.ops {
            let (one, other) = match op {
                Op::Write { path, .. } | Op::Edit { path, .. } | Op::Delete { path } => {
                    (path, None)
                }
                Op::Move { from, to } => (from, Some(to)),
            };
            for path in [Some(one), other].into_iter().flatten() {
                if !paths.contains(&path.as_str()) {
                    paths.push(path);
                }
            }
        }
        paths
    }
}

#[cfg(test)]
mod bare_tests;
#[cfg(test)]
mod join_tests;
#[cfg(test)]
mod tests;
