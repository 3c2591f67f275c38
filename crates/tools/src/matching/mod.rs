//! Finding the text an edit speaks of, and putting new text there. Pure: strings in, strings out.
//!
//! Two units share one ladder of rungs, each tried only when the one before found nothing. Text
//! found in more than one place on a rung is refused; nothing looser is tried. Similarity never
//! decides where an edit goes: it only picks what a refusal shows.
//!
//! The units are [`replace_string`], for the Edit tool, and [`apply_blocks`], for the answers of
//! the dev agent:
//!
//! ```text
//!                     string                     blocks
//! exact               any text                   whole lines
//! line ends aside     any text                   whole lines
//! looser rungs        whole lines                whole lines
//! inner blanks        also within a line         whole lines
//! several at once     replace_all, first two     all of them or none
//! ```
//!
//! A wrong edit is worse than a refusal: a refusal costs another attempt, a wrong edit may go
//! unnoticed.

mod blanks;
mod blocks;
mod failure;
mod indent;
mod ladder;
mod lines;
mod nearest;
mod rewrite;
mod string;

pub use blocks::{AppliedBlock, AppliedEdits, Block, apply_blocks};
pub use failure::{BlockFailure, MatchFailure};
pub use ladder::Rung;
pub use nearest::Nearest;
pub use string::{Occurrence, Replaced, replace_string};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod string_samples;
