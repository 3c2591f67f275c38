//! The one place that runs the `git` command.
//!
//! Git runs programs that a repository's configuration names: hooks, filters, merge drivers, file
//! system monitors, credential helpers, and more with every version. A repository may be hostile,
//! and so may what an agent left in it. So git is never given the repository's configuration.
//! Each call gets a git directory of our own (a view: [`Repository::git`]) that shares references,
//! objects and index with the real one and has a configuration that we wrote, with a few named
//! keys copied. A key we do not know cannot run anything, whatever git makes of it.
//!
//! The environment is empty but for what is listed in `environment.rs`; no protocol is allowed
//! but that of the one remote a fetch names; output and time are bounded; git runs in a process
//! group of its own and ends with whoever waits for it.
//!
//! How a call walks through the crate:
//!
//! 1. [`Location::find`] finds the git directory by its files; no process is started.
//! 2. [`Repository`] makes a view when one is first needed and keeps it (`view.rs`). Its
//!    configuration is what `format.rs` took from the repository's own file and, for calls on
//!    files, what `settings.rs` kept of the effective settings.
//! 3. [`Git`] pins git directory, work tree, index and object directory by environment variables.
//! 4. [`GitCall`] adds arguments, input and [`GitLimits`], and starts the process (`call.rs`).
//! 5. `pump.rs` reads its output and enforces the limits.

mod cached_clone;
mod call;
mod checkout;
mod credential;
mod environment;
mod error;
mod exclude;
mod fetch;
mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod git;
mod gitlinks;
mod init;
mod lfs;
mod location;
mod merge;
mod pump;
mod quarantine;
mod reference;
mod remote_address;
mod repository;
mod settings;
mod signing;
mod small;
mod snapshot;
mod stream;
mod submodule_address;
mod submodule_fetch;
mod submodules;
mod switch;
mod tree;
mod view;
mod work_tree_state;
mod work_trees;

pub use call::{GitCall, GitLimits, Output};
pub use checkout::{Checkout, Staged};
pub use credential::{gh_token, helper_token};
pub use environment::version;
pub use error::GitError;
pub use fetch::{Fetch, FetchExtent};
pub use git::Git;
pub use init::{RepositoryKind, init};
pub use location::Location;
pub use merge::MergedTree;
pub use quarantine::{KeptObjects, Quarantine};
pub use reference::is_branch_name;
pub use remote_address::RemoteAddress;
pub use repository::{Repository, Trust};
pub use settings::GitSettings;
pub use signing::Signing;
pub use snapshot::{Snapshot, SnapshotNames, SnapshotTaken};
pub use stream::Stream;
pub use submodule_fetch::{MissingSubmodule, SubmoduleSource};
pub use switch::Switched;
pub use work_tree_state::WorkTreeState;
pub use work_trees::WorkTreeEntry;

/// Parts of an output that ends each with a zero byte.
pub fn zero_separated(out: &[u8]) -> impl Iterator<Item = &[u8]> {
    out.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}
