//! The steps of a run, one file each.

mod agent;
mod base;
mod dependencies;
mod locate;
mod mend;
mod more;
mod new_tests;
mod prove;
mod publish;
mod read;
mod write;

pub(crate) use base::Base;
pub use base::{RecordedBase, recorded_base};
pub(crate) use locate::Located;
pub(crate) use prove::{Proven, blocking};
pub(crate) use publish::Published;
pub(crate) use read::{Reading, Shown};
pub(crate) use write::Written;
