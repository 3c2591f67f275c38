//! Pull requests: how they are published, described, judged, reviewed and merged.
//!
//! [`Publisher`] is the only way to a forge for everything above this crate: it passes reads on,
//! takes known secrets out of every text that would be published, and refuses what still holds a
//! likely one. [`PullText`] writes the body of a pull request, [`risk()`] judges a change without a
//! model, [`Reviewer`] asks one for findings, and [`merge()`] merges only what nothing blocks.
//!
//! What goes through which module:
//!
//! ```text
//! a commit and its pull request   commit_text, pull_text (diff_stat, risk) → publisher → forge
//! a review                        diff → review_view → model → findings, risk → publisher → forge
//! merging, closing, making ready  merge, lifecycle → publisher → forge
//! ```
//!
//! Two kinds of text meet here. Ours is a few fixed sentences. Everything else (a model's summary,
//! an instruction, names of files and tests) was written by others, may be hostile, and passes
//! `markdown` before it is put between ours: it must not notify people, forge a heading or a
//! trailer, hide a part of itself, or end the place it stands in.

mod commit_text;
mod diff;
mod diff_stat;
mod findings;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod lifecycle;
mod markdown;
mod merge;
mod publisher;
mod pull_text;
mod review;
mod review_view;
mod risk;

pub use codespar_forge::{
    Activity, CommitChecks, Draft, Forge, ForgeError, NewCommit, NewPullRequest, PullRequestChange,
};
pub use commit_text::CommitText;
pub use diff::{DiffFile, DiffHunk, DiffLine, LineKind, parse as parse_diff};
pub use diff_stat::touched;
pub use findings::{Finding, Severity, UnplacedFinding};
pub use lifecycle::{CheckRule, Closed, LifecycleError, close, make_ready};
pub use markdown::without_mentions;
pub use merge::{MergeRefusal, Merged, OWN_BRANCHES, UnknownChecks, merge, not_signed};
pub use publisher::{BODY, CHECK, Publisher, TITLE};
pub use pull_text::{PullText, Verified, headline, shorten};
pub use review::{ReviewError, Reviewed, Reviewer};
pub use risk::{Proof, Risk, RiskLevel, Touched, risk};
