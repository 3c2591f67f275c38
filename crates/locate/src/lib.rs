//! From an instruction to the files it is about: offline, in every language.
//!
//! A [`Locator`] indexes a work tree or a commit and ranks its files by what their text, their
//! definitions, their paths and their history have of an instruction. [`keywords`],
//! [`named_paths`] and [`by_path`] need no index; [`regions`] cuts a long file to what matters.

mod cache;
mod codec;
mod commit;
mod document;
mod error;
mod evidence;
mod fallback;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod git;
mod history;
mod index;
mod keywords;
mod kind;
mod locator;
mod named;
mod neighbours;
mod overview;
mod past;
mod postings;
mod query;
mod rank;
mod regions;
mod stem;
mod stopwords;
mod symbols;
mod table;
mod words;
mod worktree;

pub use document::is_binary;
pub use error::LocateError;
pub use fallback::by_path;
pub use keywords::keywords;
pub use kind::FileKind;
pub use locator::Locator;
pub use named::named_paths;
pub use rank::{Ranked, Reason};
pub use regions::{Excerpt, regions};
