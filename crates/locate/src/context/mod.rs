//! What a model is shown of a repository: a budget of file text, spent best first, and the
//! surroundings of these files.
//!
//! Nothing here reads anything: the texts are handed in, secrets already taken out, so that whoever
//! reads them (from a clone, through a forge, in an evaluation) gets the same request.

mod budget;
mod companions;
mod render;
mod tree;

pub use budget::{ContextBudget, spend, worth_showing};
pub use companions::{Companions, companion_excerpt};
pub use render::{ContextKind, ContextText, ShownFile};
pub use tree::tree;

#[cfg(test)]
mod tests;
