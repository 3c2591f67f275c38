//! The steps of a run, one file each.
//!
//! Each adds methods to `Run`. What a step returns is a serializable value that holds all the next
//! ones need, since they may run in another process.

mod agent;
mod base;
mod dependencies;
mod hooks;
mod locate;
mod mend;
mod more;
mod new_tests;
mod prove;
mod publish;
mod read;
mod resolve;
mod write;

pub(crate) use base::Base;
pub use base::{RecordedBase, base_in, branch_of, recorded_base};
pub(crate) use locate::Located;
pub(crate) use prove::{Proven, blocking};
pub(crate) use publish::Published;
pub(crate) use read::{Reading, Shown};
pub(crate) use write::Written;
