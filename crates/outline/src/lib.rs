//! Finds the functions, classes and blocks of a text, without a grammar.
//!
//! What a reader is shown of a long file is cut by it: the context of the dev agent into [`units`],
//! the surroundings of a change in a review into [`Definitions`].
//!
//! ```text
//! blocks        lines that belong together, nested: by braces or by indentation
//! definitions   those blocks that define something: what a line is in, what it is called
//! units         all lines of a text in pieces: blocks that are small enough, and what is between
//! ```
//!
//! There is no parser and no grammar for two reasons: a repository may be in any language, and a
//! text may be half of a file or not compile. The work grows with the length of the text, and where
//! indentation decides with the depth of its nesting, which is bounded.

mod blocks;
mod definitions;
mod units;

pub use definitions::{Definitions, name_of, outline};
pub use units::{Unit, imports, units};
