//! A change to a repository: read from a model's answer, applied to files, tested.
//!
//! Three modules, in the order in which a change goes through them:
//!
//! - [`answer`] reads the text of a model: blocks that change files, and what is said around them.
//! - [`apply`] fits the blocks to the files as they are. All of them fit and the result is one
//!   `ChangeSet`, or none is applied and the refusal says why, for the model to repair.
//! - [`verify`] runs the project's tests in a throw-away copy of the repository, without and with
//!   the change, in the sandbox.
//!
//! Nothing here asks a model or writes to the outside: whoever does that is the dev agent or the
//! user's `codespar apply`.

pub mod answer;
pub mod apply;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod verify;

pub use codespar_git::{Checkout, MissingSubmodule, Trust, is_branch_name};
pub use error::TreeError;
