//! The outcome of a trial, for people as tables and for programs as JSON.

use anyhow::{Result, bail};
use serde::Serialize;

use super::{centre::CentreCounts, checks::TrialCheck, take_overs::TakeOvers};

/// How many problems of a check are shown.
const SHOWN: usize = 10;

/// Fields may be added, never renamed: reports of several versions are compared.
#[derive(Debug, Serialize)]
pub(super) struct TrialReport {
    pub(super) engine: &'static str,
    /// Where the servers kept their files.
    pub(super) storage: &'static str,
    pub(super) tasks: usize,
    pub(super) seed: u64,
    pub(super) workers: usize,
    #[serde(flatten)]
    pub(super) outages: CentreCounts,
    /// From the first task that was made to the last that ended.
    pub(super) took_seconds: f64,
    /// Times of more than three seconds in which no task was taken or ended, longest first.
    pub(super) standstills: Vec<f64>,
    pub(super) model_calls: usize,
    /// Of them, those that were made again because a worker was lost.
    pub(super) repeated_model_calls: usize,
    pub(super) checks: Vec<TrialCheck>,
    pub(super) take_overs: Vec<TakeOvers>,
}

impl TrialReport {
    /// Tables in Markdown, for the documentation.
    pub(super) fn print(&self) {
        let disturbances: usize = self.take_overs.iter().map(|row| row.disturbances).sum();
        println!(
            "\n{} tasks on {} workers ({}, servers {}), seed {}: {:.0} s, {disturbances} \
             disturbances, {} restarts of the database, {} stops of Temporal, {} model calls of which {} repeated\n",
            self.tasks,
            self.workers,
            self.engine,
            self.storage,
            self.seed,
            self.took_seconds,
            self.outages.database_restarts,
            self.outages.engine_stops,
            self.model_calls,
            self.repeated_model_calls,
        );
        println!("| what must hold | looked at | holds |\n|---|---|---|");
        for check in &self.checks {
            let holds = match check.problems.len() {
                0 => "yes".to_owned(),
                count => format!("**no ({count})**"),
            };
            println!("| {} | {} | {holds} |", check.name, check.found);
        }
        println!(
            "\n| a worker was | times | tasks taken over | kept | first taken over after (s) | last (s) |\n\
             |---|--:|--:|--:|--:|--:|"
        );
        for row in &self.take_overs {
            println!(
                "| {} | {} | {} | {} | {} | {} |",
                row.kind.name(),
                row.disturbances,
                row.tasks_taken_over,
                row.tasks_kept,
                row.first.show(),
                row.last.show(),
            );
        }
        println!("\nTimes are median / 95th percentile / maximum.");
        let standstills: Vec<String> = self
            .standstills
            .iter()
            .map(|gap| format!("{gap:.1}"))
            .collect();
        println!(
            "No task was taken or ended anywhere for (s): {}",
            match standstills.is_empty() {
                true => "never more than 3".to_owned(),
                false => standstills.join(", "),
            }
        );
    }

    /// An error that names what does not hold.
    pub(super) fn verdict(&self) -> Result<()> {
        let mut wrong = Vec::new();
        for check in self
            .checks
            .iter()
            .filter(|check| !check.problems.is_empty())
        {
            wrong.push(format!("does not hold: {}", check.name));
            wrong.extend(
                check
                    .problems
                    .iter()
                    .take(SHOWN)
                    .map(|one| format!("  {one}")),
            );
        }
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        Ok(())
    }
}
