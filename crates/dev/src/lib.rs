//! The dev agent: from an instruction to a pull request that one can trust.

mod ask;
mod engine;
mod failure;
mod follow;
mod images;
mod ledger;
mod picking;
mod pipeline;
mod report;
mod run;
mod setup;
mod steps;

pub use ask::{AskRequest, Reply, ask};
pub use codespar_protocol::{
    Consent, DevLimits, DevOrder, Engine, FollowOrder, ImageRef, OnFailure, RepositoryRef,
    VerifyChoice,
};
pub use failure::Failure;
pub use follow::{subscribe, unsubscribe};
pub use images::keep_images;
pub use pipeline::{DevRunner, Workflows};
pub use report::{DevReport, ReportedFile, ReportedPull, TestVerdict, UnreadFile, recorded_report};
pub use setup::{DevSetup, Link, Linker, ModelNames, WithoutModel};
pub use steps::{RecordedBase, recorded_base};
