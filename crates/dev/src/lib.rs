//! The dev agent: from an instruction to a pull request that one can trust.
//!
//! A run is one task. Its steps are in `steps`, one file each, and `pipeline` calls them in order:
//!
//! ```text
//! base      which commit                     fixed, so that all that follows is about one tree
//! locate    which files                      by name, picker, index, search
//! read      what the model sees of them      within a budget of bytes, without secrets
//! write     the change                       one answer, repaired until it fits; or the agent
//! prove     the tests before and with it     in a throw-away tree, in the sandbox; with repairs
//! publish   one commit, one pull request     all is checked for secrets before the first call
//! ```
//!
//! The result of each step is recorded before the next begins (`ledger`), and a recorded step is
//! not done again. So a run survives the end of its process at any point: the next one reads what
//! is there and goes on, asks no model twice for the same answer, and finds a commit or pull
//! request that was made and not recorded by its key. A run that failed can be resumed by another
//! task, which takes its steps over.
//!
//! Files of its own are below `DevSetup::dir` and in the task's output; the user's files are only
//! read. Whatever else is written, branches of a local repository included, goes through
//! `Publisher`.

mod agent_tree;
mod ask;
mod engine;
mod failure;
mod follow;
mod images;
mod ledger;
mod picking;
mod pipeline;
mod progress;
mod report;
mod run;
mod setup;
mod steps;

pub use agent_tree::{AGENT_TREE, AgentTree, OpenedTree};
pub use ask::{AskRequest, Reply, ask};
pub use codespar_protocol::{
    Consent, DevLimits, DevOrder, DevPurpose, Engine, FollowOrder, ImageRef, OnFailure,
    RepositoryRef, VerifyChoice,
};
pub use failure::Failure;
pub use follow::{subscribe, unsubscribe};
pub use images::{check_image, check_image_bytes, keep_images};
pub use pipeline::{DevRunner, Workflows};
pub use progress::{DevChange, DevProgress, DevTests, recorded_progress};
pub use report::{
    DevReport, ReportedFile, ReportedPull, TestVerdict, UnreadFile, recorded_report, report_in,
};
pub use setup::{DevSetup, Link, Linker, ModelNames, WithoutModel};
pub use steps::{RecordedBase, base_in, branch_of, recorded_base};
