//! What must hold after a trial, whatever was done to the workers.

mod conversations;
mod history;
mod places;
mod servers;
mod writers;

pub(super) use conversations::{check_conversations, check_deliveries, check_marks};
pub(super) use history::{check_dependencies, check_ends, check_limit, check_notifications};
pub(super) use places::{WorkerPlace, check_builds, check_labels};
pub(super) use servers::{check_engine_records, check_outages};
pub(super) use writers::check_writers;

use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct TrialCheck {
    pub(super) name: &'static str,
    /// What was counted on the way.
    pub(super) found: String,
    /// What is wrong; none if it holds.
    pub(super) problems: Vec<String>,
}
