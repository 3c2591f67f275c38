//! One attempt at a task, from its claim to the record of its end.
//!
//! What becomes of a task depends on why it was told to stop and on what its runner returned:
//!
//! ```text
//! stop reason   outcome                       then
//! lease lost    any                           nothing is written; another runner has it
//! leaving       completed                     recorded
//! leaving       other, can be continued       released for another process
//! any           pending (put back)            released; the store kills it if a stop was asked for
//! none          pending (put back)            released, and not taken again here for a while
//! otherwise                                   recorded, with its notification
//! ```
//!
//! Recording and releasing carry the fencing number. A process that was found lost cannot do
//! either.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_agent::HandOver;
use codespar_protocol::{TRACE_TARGET, TaskId, TaskRecord, TaskStatus, TaskType};
use codespar_store::{Claimed, StoreError, TaskEnding};
use futures::FutureExt;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, field::Empty};

use super::{AttemptEnd, Held, Scheduler, ending::ending};
use crate::{
    runner::{Control, Runner, TaskOutcome, TaskStopReason},
    trace::continue_trace,
};

/// How often it is tried to write to a store that fails. The pauses add up to about 21 seconds.
/// After that the task is nobody's, and the heartbeat hands it back (`hand_back_forgotten`).
const WRITE_TRIES: u32 = 20;
/// Between the first two tries; longer each time.
const WRITE_PAUSE: Duration = Duration::from_millis(100);

impl Scheduler {
    /// Runs a claimed task on the runtime; hands it back if this process is leaving. Also called
    /// for tasks that were recorded as running under our lease (`NewTask::start_here`), which no
    /// claim brings.
    ///
    /// Gives what tells when the attempt is over here.
    pub fn start(self: &Arc<Self>, claimed: Claimed) -> watch::Receiver<Option<AttemptEnd>> {
        let (end, ended) = watch::channel(None);
        let runner = self.runners.read().get(&claimed.record.task_type).cloned();
        let control = self.control(claimed);
        let (id, epoch) = (control.record.task_id.clone(), control.epoch);
        let span = span(&control.record, epoch);
        let scheduler = self.clone();
        // Within the lock, so that whoever leaves either sees this task or is seen here.
        let mut held = self.held.lock();
        let Some(runner) = runner.filter(|_| !self.leaving.is_cancelled()) else {
            self.tracker.spawn(async move {
                scheduler.release(&id, epoch).await;
                end.send_replace(Some(AttemptEnd::HandedBack));
            });
            return ended;
        };
        held.insert(
            id,
            Held {
                epoch,
                task_type: control.record.task_type,
                beats: 0,
                since: Instant::now(),
                cancel: control.cancel.clone(),
                hand_over: control.hand_over.clone(),
                stop_reason: control.stop_reason.clone(),
                mail: control.mail.clone(),
                end,
            },
        );
        self.tell_workload(&held);
        self.tracker
            .spawn(async move { scheduler.attempt(&*runner, control).await }.instrument(span));
        ended
    }

    fn control(&self, claimed: Claimed) -> Control {
        let Claimed {
            record,
            epoch,
            taken_from,
        } = claimed;
        Control {
            epoch,
            taken_from,
            cancel: CancellationToken::new(),
            hand_over: HandOver::default(),
            stop_reason: Arc::default(),
            mail: Arc::new(Notify::new()),
            output: self.outputs.file(&record),
            redactor: self.redactor.clone(),
            store: self.store.clone(),
            record,
        }
    }

    /// A panic of the runner fails its task and no other. The end is recorded before waiters are
    /// woken, so whoever is woken finds it in the store. The end of a command only frees a place;
    /// the end of anything else may also free work on the list of a team.
    async fn attempt(self: Arc<Self>, runner: &dyn Runner, control: Control) {
        let began = self.clock.now();
        let stop_reason = control.stop_reason.clone();
        let (record, epoch) = (control.record.clone(), control.epoch);
        let id = record.task_id.clone();
        let copying = self.outputs.follow(&control).await;
        let outcome = AssertUnwindSafe(runner.run(control))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| {
                TaskOutcome::failed("the runner failed inside: this is a defect of CodeSpar")
            });
        let reason = stop_reason.lock().clone();
        tell_span(&outcome, reason.as_ref());
        if let Some(copying) = copying.filter(|_| reason != Some(TaskStopReason::LeaseLost)) {
            copying.finish().await;
        }
        let end = match what_to_do(record.task_type, reason.as_ref(), outcome) {
            Next::Nothing => AttemptEnd::Over,
            Next::Release => {
                self.release(&id, epoch).await;
                AttemptEnd::HandedBack
            }
            Next::TryLater => {
                let pause = self.resting.lock().put_back(id.clone(), self.clock.now());
                self.release(&id, epoch).await;
                self.wake_after(pause);
                AttemptEnd::Later(pause)
            }
            Next::Record(outcome) => {
                self.resting.lock().forget(&id);
                let took = self.clock.now().saturating_sub(began);
                self.record(&record, epoch, *outcome, took).await;
                self.events.forget_task(&id);
                AttemptEnd::Over
            }
        };
        self.put_down(&id, end);
        if let Some(waiter) = self.waiters.lock().remove(&id) {
            waiter.notify_waiters();
        }
        let _ = self.ended.send(id);
        match record.task_type {
            TaskType::LocalBash => self.wake.notify_one(),
            _ => self.nudge(),
        }
    }

    /// Nothing else would: a task that is put back changes nothing that others wait for.
    fn wake_after(self: &Arc<Self>, pause: Duration) {
        let scheduler = self.clone();
        tokio::spawn(async move {
            scheduler.clock.sleep(pause).await;
            scheduler.wake.notify_one();
        });
    }

    async fn release(&self, id: &TaskId, epoch: u64) {
        self.insist(id, epoch, None).await;
    }

    async fn record(&self, record: &TaskRecord, epoch: u64, outcome: TaskOutcome, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let outcome = outcome.redacted(&self.redactor);
        let ending = ending(record, outcome, millis, &self.outputs.whereabouts(record));
        self.insist(&record.task_id, epoch, Some(ending)).await;
    }

    /// Writes the end, or that there was none; tries again while the store fails. A refusal is
    /// final: someone else has the task, or it is gone, and there is nothing of ours to write.
    async fn insist(&self, id: &TaskId, epoch: u64, ending: Option<TaskEnding>) {
        for attempt in 1..=WRITE_TRIES {
            let written = match ending.clone() {
                Some(ending) => self.leases.finish_task(id, epoch, ending).await.map(drop),
                None => self.leases.release_task(id, epoch).await,
            };
            match written {
                Err(
                    StoreError::Busy { .. }
                    | StoreError::DiskFull { .. }
                    | StoreError::Unreachable { .. }
                    | StoreError::Database(_),
                ) => self.clock.sleep(WRITE_PAUSE * attempt).await,
                _ => return,
            }
        }
    }
}

/// One attempt in a trace, below what made the task.
fn span(record: &TaskRecord, epoch: u64) -> Span {
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        "task",
        otel.name = format!("task {}", record.task_type),
        otel.status_code = Empty,
        codespar.task.id = %record.task_id,
        codespar.task.type = %record.task_type,
        codespar.task.epoch = epoch,
        codespar.task.status = Empty,
    );
    let authority = record.authority.as_ref();
    continue_trace(
        span,
        authority.and_then(|authority| authority.trace.as_deref()),
    )
}

/// The end of the attempt in its span.
fn tell_span(outcome: &TaskOutcome, reason: Option<&TaskStopReason>) {
    let span = Span::current();
    match reason {
        Some(TaskStopReason::LeaseLost) => span.record("codespar.task.status", "handed_over"),
        _ => span.record("codespar.task.status", outcome.status.as_str()),
    };
    if outcome.status == TaskStatus::Failed {
        span.record("otel.status_code", "ERROR");
    }
}

/// What becomes of a task whose attempt is over.
enum Next {
    /// Another runner has it.
    Nothing,
    /// It goes back for others.
    Release,
    /// It goes back, and is tried again later.
    TryLater,
    /// It ended.
    Record(Box<TaskOutcome>),
}

fn what_to_do(task_type: TaskType, reason: Option<&TaskStopReason>, outcome: TaskOutcome) -> Next {
    match (reason, outcome.status) {
        (Some(TaskStopReason::LeaseLost), _) => Next::Nothing,
        (Some(TaskStopReason::Leaving), TaskStatus::Completed) => Next::Record(Box::new(outcome)),
        (Some(TaskStopReason::Leaving), _) if can_go_on(task_type) => Next::Release,
        (Some(_), TaskStatus::Pending) => Next::Release,
        (None, TaskStatus::Pending) => Next::TryLater,
        _ => Next::Record(Box::new(outcome)),
    }
}

/// Another process can take it up where this one leaves it. A command cannot: half of its effect
/// may be there.
fn can_go_on(task_type: TaskType) -> bool {
    task_type.is_agent() || matches!(task_type, TaskType::LocalWorkflow | TaskType::MonitorMcp)
}
