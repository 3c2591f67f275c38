//! What happened in a run, apart from what it cost: that is on the account of its budget.

use std::time::Duration;

use codespar_model::Account;
use codespar_protocol::{PermissionDenial, StopReason};

/// Made anew for each run; `Agent::conclude` turns it into the result.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The account when the run began: the tree's for the agent at its top, else its own.
    pub(crate) account_before: Account,
    /// How many denials the tree had then.
    pub(crate) denied_before: usize,
    pub(crate) turns: u32,
    pub(crate) tool_uses: u32,
    /// Time spent on model calls, retries included.
    pub(crate) waiting: Duration,
    pub(crate) denials: Vec<PermissionDenial>,
    /// Of the last answer.
    pub(crate) stop_reason: Option<StopReason>,
}
