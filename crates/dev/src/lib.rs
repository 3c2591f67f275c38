//! The dev agent: from an instruction to a pull request that one can trust.

pub mod answer;
pub mod apply;
mod ask;
mod asking;
mod diff;
mod diff_stat;
mod failure;
mod follow;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod images;
mod ledger;
mod markdown;
mod merge;
mod picking;
mod pipeline;
mod publisher;
mod pull_text;
mod report;
mod review;
mod risk;
mod run;
mod setup;
mod steps;
mod text;
mod tools;
mod verify;

pub use ask::{AskRequest, Reply, ask};
pub use codespar_protocol::{
    Consent, DevLimits, DevOrder, Engine, FollowOrder, ImageRef, OnFailure, RepositoryRef,
    VerifyChoice,
};
pub use failure::Failure;
pub use follow::{subscribe, unsubscribe};
pub use images::keep_images;
pub use merge::{MergeRefusal, Merged, merge};
pub use pipeline::{DevRunner, Workflows};
pub use publisher::Publisher;
pub use pull_text::headline;
pub use report::{DevReport, ReportedFile, ReportedPull, TestVerdict, recorded_report};
pub use review::{Finding, Reviewed, Reviewer, Severity};
pub use risk::{Proof, Risk, RiskLevel, Touched, risk};
pub use setup::{DevSetup, Link, Linker, ModelNames};
pub use steps::{RecordedBase, recorded_base};
pub use tools::Subscriptions;
pub use verify::{Counts, Evidence, TestRun, detect as detect_tests, lfs_note};
