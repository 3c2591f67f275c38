//! Takes a workflow from step to step, and up again where another process left it.
//!
//! ```text
//! look   read the tasks of the steps
//!        choose ids for steps that are due or to be retried, and record them
//!        make the tasks that are on record and missing; look again if there were any
//!        all settled? conclude. Otherwise wait for a change of one of them
//! ```
//!
//! Ids are recorded before tasks are made. After a crash at any point the next runner finds the
//! same ids, makes what is missing and waits for what exists, so no step is made twice.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_protocol::{
    Cost, TaskRecord, TaskSpec, TaskStatus, Usage, WorkflowSpec, WorkflowStep,
};
use codespar_store::{Claimed, StoreChange, StoreError, TaskFilter};
use futures::future::join_all;

use super::{
    log::StepLog,
    progress::{Made, Progress},
    steps::{Records, View, result},
};
use crate::{
    LedgerError, TaskHub,
    runner::{Control, PROCESS_ENDED, Runner, TaskOutcome, TaskStopReason},
};

/// After the store has refused.
const PAUSE: Duration = Duration::from_millis(300);
/// How often in a row the store may refuse before the workflow gives up. With the pause this is
/// about nine seconds.
const TRIES: u32 = 30;

/// Runs workflows. It only waits: the steps are tasks, and run wherever tasks run.
pub struct WorkflowRunner {
    /// Makes, watches and stops the steps.
    pub hub: Arc<TaskHub>,
}

#[async_trait]
impl Runner for WorkflowRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        match Run::open(self.hub.clone(), control).await {
            Ok(mut run) => run.until_over().await,
            Err(error) => TaskOutcome::failed(error),
        }
    }
}

/// A workflow under way.
struct Run {
    hub: Arc<TaskHub>,
    control: Control,
    spec: WorkflowSpec,
    progress: Progress,
    log: StepLog,
}

/// What a look at the steps came to.
enum Look {
    /// Tasks were made; look again.
    Moved,
    /// Steps are under way.
    Waiting,
    /// All steps are over.
    Over(Records),
}

impl Run {
    async fn open(hub: Arc<TaskHub>, control: Control) -> Result<Self, String> {
        control.authority()?;
        let TaskSpec::Workflow(spec) = control.spec()?.clone() else {
            return Err(control.wrong_kind());
        };
        let progress = Progress::read(&control)
            .await
            .map_err(|error| error.to_string())?;
        let log = StepLog::open(&control.output, &control.redactor)?;
        Ok(Self {
            hub,
            control,
            spec,
            progress,
            log,
        })
    }

    /// Looks once for each change of one of its tasks; a change between two looks is kept by the
    /// feed.
    async fn until_over(&mut self) -> TaskOutcome {
        let mut refusals = 0;
        // Followed before it is looked: what comes in between is not missed.
        let mut changes = match self.hub.changes().follow().await {
            Ok(changes) => changes,
            Err(error) => return TaskOutcome::failed(error.to_string()),
        };
        loop {
            if self.control.cancel.is_cancelled() || self.control.hand_over.is_asked() {
                return self.stopped().await;
            }
            match self.look().await {
                Ok(Look::Over(records)) => return self.conclude(&records),
                Ok(Look::Moved) => {
                    refusals = 0;
                    continue;
                }
                Ok(Look::Waiting) => refusals = 0,
                Err(error) if refusals == TRIES => {
                    return TaskOutcome::failed(format!("the steps cannot be followed: {error}"));
                }
                Err(_) => {
                    refusals += 1;
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            }
            tokio::select! {
                () = changes.until(|change| self.is_of_step(change)) => {}
                () = self.control.cancel.cancelled() => {}
                () = self.control.hand_over.soon.cancelled() => {}
            }
        }
    }

    fn is_of_step(&self, change: &StoreChange) -> bool {
        let made = self.spec.workflow.steps.iter();
        let mut made = made.filter_map(|step| self.progress.of(&step.id));
        made.any(|made| change.task_id.as_ref() == Some(&made.task_id))
    }

    /// Sees what became of the steps and makes those that are due.
    async fn look(&mut self) -> Result<Look, LedgerError> {
        let records = self.records().await?;
        self.tell(&records);
        let (due, retried) = {
            let view = self.view(&records);
            let steps = || self.spec.workflow.steps.iter();
            let is_new =
                |step: &&WorkflowStep| self.progress.of(&step.id).is_none() && view.is_due(step);
            let due: Vec<WorkflowStep> = steps().filter(is_new).cloned().collect();
            let again = |step: &&WorkflowStep| view.is_to_be_retried(step);
            (
                due,
                steps()
                    .filter(again)
                    .cloned()
                    .collect::<Vec<WorkflowStep>>(),
            )
        };
        for step in &due {
            self.progress.set(&step.id, Made::fresh(step, 0));
        }
        for step in &retried {
            let retries = self.progress.of(&step.id).map_or(0, |made| made.retries);
            self.progress.set(&step.id, Made::fresh(step, retries + 1));
        }
        if !due.is_empty() || !retried.is_empty() {
            // On record before there is a task: whoever takes over makes the same one.
            self.progress.record().await?;
        }
        Ok(self.make_missing(records).await?)
    }

    /// Makes the tasks that are on record and not in the store. All in one transaction.
    async fn make_missing(&self, records: Records) -> Result<Look, StoreError> {
        let view = self.view(&records);
        let mut new = Vec::new();
        for step in &self.spec.workflow.steps {
            if self.progress.of(&step.id).is_some() && view.record(&step.id).is_none() {
                new.extend(view.new_task(step).await?);
            }
        }
        if new.is_empty() {
            let mut steps = self.spec.workflow.steps.iter();
            let all_over = steps.all(|step| view.is_settled(step));
            return Ok(if all_over {
                Look::Over(records)
            } else {
                Look::Waiting
            });
        }
        let scheduler = self.hub.scheduler();
        for record in self.control.store.create_tasks(new).await? {
            // Born running: see `View::new_task`.
            if record.status == TaskStatus::Running {
                scheduler.start(Claimed {
                    record,
                    epoch: 1,
                    taken_from: None,
                });
            }
        }
        scheduler.nudge();
        Ok(Look::Moved)
    }

    /// Tasks of retried steps are among them; `View::record` picks the latest.
    async fn records(&self) -> Result<Records, StoreError> {
        let filter = TaskFilter {
            parent_task_id: Some(self.control.record.task_id.clone()),
            ..TaskFilter::default()
        };
        let tasks = self.control.store.tasks(filter).await?;
        let by_id = |task: TaskRecord| (task.task_id.clone(), task);
        Ok(tasks.into_iter().map(by_id).collect())
    }

    fn view<'a>(&'a self, records: &'a Records) -> View<'a> {
        View {
            hub: &self.hub,
            control: &self.control,
            spec: &self.spec,
            progress: &self.progress,
            records,
        }
    }

    /// Writes down what is new. Called at every look; `StepLog` leaves out what is written already.
    fn tell(&mut self, records: &Records) {
        for step in &self.spec.workflow.steps {
            let Some(made) = self.progress.of(&step.id) else {
                continue;
            };
            let Some(record) = records.get(&made.task_id) else {
                continue;
            };
            if record.attempt > 0 {
                let again = match made.retries {
                    0 => String::new(),
                    retries => format!(", retry {retries} of {}", step.retry),
                };
                let line = format!("{}: started as {}{again}", step.id, record.task_id);
                self.log.line(&line);
            }
            if record.status.is_final() {
                self.log.line(&told(step, record));
            }
        }
    }

    /// The error names steps that failed of themselves. The result has one line for each step and
    /// the text of those that no other step needs.
    fn conclude(&self, records: &Records) -> TaskOutcome {
        let view = self.view(records);
        let steps = &self.spec.workflow.steps;
        let of = |step: &WorkflowStep| view.record(&step.id);
        // Those that failed of themselves; the others failed with them.
        let failed: Vec<String> = steps
            .iter()
            .filter(|step| view.needs_met(step))
            .filter_map(|step| Some((step, of(step)?)))
            .filter(|(_, record)| record.status != TaskStatus::Completed)
            .map(|(step, record)| format!("step {}", told(step, record)))
            .collect();
        let mut summary: Vec<String> = steps
            .iter()
            .filter_map(|step| Some(told(step, of(step)?)))
            .collect();
        let last = |step: &&WorkflowStep| !steps.iter().any(|other| other.needs.contains(&step.id));
        for step in steps.iter().filter(last) {
            let text = of(step).map(result).unwrap_or_default();
            if !text.is_empty() {
                summary.push(format!("\n{}:\n{text}", step.id));
            }
        }
        TaskOutcome {
            status: if failed.is_empty() {
                TaskStatus::Completed
            } else {
                TaskStatus::Failed
            },
            result: Some(summary.join("\n")),
            error: (!failed.is_empty()).then(|| failed.join("; ")),
            exit_code: None,
            // The steps have theirs.
            usage: Usage::default(),
            cost: Cost::default(),
            ..TaskOutcome::failed("")
        }
    }

    /// Someone wants it stopped: so are its steps. When the process leaves, the steps are told by
    /// the scheduler, and the workflow goes back for others.
    async fn stopped(&mut self) -> TaskOutcome {
        let reason = self.control.stop_reason.lock().clone();
        let Some(TaskStopReason::Asked(reason)) = reason else {
            return TaskOutcome::put_back(PROCESS_ENDED);
        };
        let mut outcome = TaskOutcome::failed(reason.clone());
        outcome.status = TaskStatus::Killed;
        if let Ok(records) = self.records().await {
            let open = records.values().filter(|task| !task.status.is_final());
            // One that ended meanwhile needs no stopping.
            join_all(open.map(|task| self.hub.stop(&task.task_id, &reason))).await;
        }
        if let Ok(records) = self.records().await {
            self.tell(&records);
        }
        outcome
    }
}

/// How a step ended, in one line.
fn told(step: &WorkflowStep, record: &TaskRecord) -> String {
    let (id, status, task) = (&step.id, record.status, &record.task_id);
    match &record.error {
        Some(error) => format!("{id}: {status}: {error} ({task})"),
        None => format!("{id}: {status} ({task})"),
    }
}
