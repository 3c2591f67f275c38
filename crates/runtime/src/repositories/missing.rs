//! A task whose repository this host cannot have: another may.

use codespar_protocol::Labels;
use codespar_store::{FleetRunner, RunnerId};
use codespar_tasks::{Control, StepLedger, TaskOutcome};

use crate::Runtime;

/// How often one process finds that it cannot have the repository before it believes that nobody
/// can, although there are workers that have not tried: for about an hour, with pauses of five
/// seconds. They may be full, and tasks take long.
const MOST_MISSES: u32 = 720;

/// Puts the task back for a worker that has not tried yet. Fails it where there is none.
pub(crate) async fn not_here(runtime: &Runtime, control: &Control, reason: String) -> TaskOutcome {
    match may_run_elsewhere(runtime, control).await {
        Ok(true) => TaskOutcome::put_back(reason),
        Ok(false) => TaskOutcome::failed(reason),
        // Whoever cannot read the record cannot end it either.
        Err(error) => TaskOutcome::put_back(error),
    }
}

async fn may_run_elsewhere(runtime: &Runtime, control: &Control) -> Result<bool, String> {
    let ledger = StepLedger::open(control).await;
    let ledger = ledger.map_err(|error| error.to_string())?;
    let own = runtime.runner_id();
    let missed = ledger.known::<u32>(&step(&own)).unwrap_or_default();
    let missed = missed.unwrap_or_default() + 1;
    let recorded = ledger.record(&step(&own), &missed).await;
    recorded.map_err(|error| error.to_string())?;
    let fleet = runtime.store().fleet().await;
    let fleet = fleet.map_err(|error| error.to_string())?;
    let labels = &control.record.labels;
    let may_have_it = |runner: &FleetRunner| {
        let has_tried = runner.id == own || ledger.has(&step(&runner.id));
        let is_worker = RunnerId(runner.id.clone()).is_worker();
        is_worker && !has_tried && !runner.is_silent && offers(runner, labels)
    };
    Ok(missed < MOST_MISSES && fleet.runners.iter().any(may_have_it))
}

fn step(runner: &str) -> String {
    format!("no repository at {runner}")
}

fn offers(runner: &FleetRunner, labels: &Labels) -> bool {
    let offered = runner.about.as_ref().map(|about| &about.labels);
    offered.is_some_and(|offered| offered.include(labels))
}
