//! From an instruction to the files it is about: offline, in every language.
//!
//! A [`Locator`] indexes a work tree or a commit and ranks its files by what their text, their
//! definitions, their paths and their history have of an instruction. [`keywords`],
//! [`named_paths`] and [`by_path`] need no index; [`regions`] cuts a long file to what matters, and
//! [`spend`] shares a budget between several.
//!
//! The pieces, from bytes to an order:
//!
//! ```text
//! worktree, commit   list files and hand over their texts
//! words, stem        text -> identifiers -> terms (hashes)
//! symbols            names that a text defines
//! document, index    per file: how often and where each term stands
//! history            messages of past commits and the files they changed
//! report             the lines of an instruction: said, or only pasted
//! query, named       the instruction: weighted terms, paths written out
//! spoken             words that most messages of a project have, which count for less
//! evidence, past     what speaks for each file, one number per kind
//! partners           what speaks for a file by its tests
//! neighbours         what the best files say about others
//! mirrors            copies of a file under several roots
//! progress           how many files are read, for another thread
//! signal, rank       the weighted sum, in order, with reasons
//! blocks, units      functions and classes of a text
//! regions, context   what is shown of files, and what goes with them
//! ```
//!
//! No grammar and no model is used, so a language that nobody thought of still has words, paths and
//! history.

mod cache;
mod codec;
mod commit;
mod context;
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
mod mentions;
mod mirrors;
mod named;
mod neighbours;
mod overview;
mod partners;
mod past;
mod postings;
mod progress;
mod query;
mod rank;
mod regions;
mod relations;
mod report;
mod search;
mod signal;
mod spoken;
mod stem;
mod stopwords;
mod symbols;
mod table;
mod words;
mod worktree;

pub use context::{
    Companions, ContextBudget, ContextKind, ContextText, ShownFile, companion_excerpt, spend, tree,
    worth_showing,
};
pub use document::is_binary;
pub use error::LocateError;
pub use fallback::by_path;
pub use keywords::keywords;
pub use kind::FileKind;
pub use locator::Locator;
pub use named::named_paths;
pub use progress::{FilesRead, IndexProgress};
pub use rank::{Ranked, Reason};
pub use regions::{Excerpt, head, regions};
pub use search::files_with;

/// The evidence behind a ranking, for choosing weights (`cargo xtask eval locate
/// --cross-validate`).
pub mod tuning {
    pub use crate::{
        rank::Candidate,
        signal::{FileEvidence, FileStanding, Meant, Signal, Weights},
    };
}
