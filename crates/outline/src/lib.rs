//! Finds the functions, classes and blocks of a text, without a grammar.
//!
//! What a reader is shown of a long file is cut by it: the context of the dev agent into [`units`],
//! the surroundings of a change in a review into [`Definitions`].

mod blocks;
mod definitions;
mod units;

pub use definitions::{Definitions, name_of, outline};
pub use units::{Unit, imports, units};
