//! Sums of a run: turns, tokens and cost, in all and by model.

use std::{collections::BTreeMap, time::Duration};

use crate::tree::Account;
use codespar_protocol::{Cost, PermissionDenial, StopReason, Usage};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The tree's account when the run began.
    pub(crate) tree_before: Option<Account>,
    /// How many denials the tree had then.
    pub(crate) denied_before: usize,
    pub(crate) turns: u32,
    pub(crate) tool_uses: u32,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
    pub(crate) by_model: BTreeMap<String, (Usage, Cost)>,
    pub(crate) waiting: Duration,
    pub(crate) denials: Vec<PermissionDenial>,
    pub(crate) stop_reason: Option<StopReason>,
}

impl Tally {
    pub(crate) fn add(&mut self, model: &str, usage: Usage, cost: Cost) {
        self.usage += usage;
        self.cost += cost;
        let (model_usage, model_cost) = self.by_model.entry(model.to_owned()).or_default();
        *model_usage += usage;
        *model_cost += cost;
    }
}
