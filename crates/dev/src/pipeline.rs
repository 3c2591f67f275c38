//! Takes an instruction through all steps to a pull request, and up again where another process
//! left it.
//!
//! `DevRunner::run` is called once for each attempt, by the scheduler, under the lease of the task.
//! Whatever happens becomes a `TaskOutcome`; with a limit on wall time, work that ignores the stop
//! token is dropped half a second after it. What was spent is counted from the recorded answers, so
//! the outcome of the last attempt includes the cost of all.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_agent::Stop;
use codespar_protocol::{TaskSpec, TaskStatus};
use codespar_tasks::{Control, Runner, TaskHub, TaskOutcome, TaskStopReason, WorkflowRunner};

use crate::{
    DevReport, DevSetup, Engine, Failure,
    engine::reason_for_agent,
    follow,
    ledger::BAD_ANSWERS,
    report,
    run::{PROVEN, Run},
    steps::{Base, Located, Proven, Reading, Written},
};

/// Runs workflows: those of files and the dev agent.
pub struct Workflows {
    /// Those of files.
    pub files: WorkflowRunner,
    /// The dev agent.
    pub dev: DevRunner,
}

#[async_trait]
impl Runner for Workflows {
    async fn run(&self, control: Control) -> TaskOutcome {
        match control.spec() {
            Ok(TaskSpec::Dev(_)) => self.dev.run(control).await,
            Ok(TaskSpec::FollowPullRequest(_)) => follow::run(&self.dev.setup, &control).await,
            Ok(_) => self.files.run(control).await,
            Err(error) => TaskOutcome::failed(error),
        }
    }
}

pub struct DevRunner {
    /// What it works with.
    pub setup: DevSetup,
    /// For the agents it starts and the events it sends.
    pub hub: Arc<TaskHub>,
}

#[async_trait]
impl Runner for DevRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        let stop = Arc::new(Stop::new(&control.cancel, max_wall(&control)));
        let opening = Run::open(self.setup.clone(), self.hub.clone(), control, stop.clone());
        let opened = within(&stop, opening).await;
        match opened {
            Ok(mut run) => {
                let ended = within(&stop, run.through()).await;
                self.conclude(&run, ended).await
            }
            Err(failure) => {
                let message = failure.to_string();
                let message = self.setup.redactor.redact(&message).into_owned();
                TaskOutcome::failed(message)
            }
        }
    }
}

impl DevRunner {
    /// Files of the run are removed only after success. They are what a resumed run goes on from.
    async fn conclude(&self, run: &Run, ended: Result<DevReport, Failure>) -> TaskOutcome {
        match ended {
            Ok(report) => {
                run.remove_files().await;
                run.forget_agent_tree().await;
                success(run, &report)
            }
            Err(Failure::Stopped) => stopped(run),
            Err(failure) => {
                if failure.is_by_answers() {
                    // Whoever cannot record it has lost the task, or the store.
                    let _ = run.ledger.record(BAD_ANSWERS, &true).await;
                }
                failed(run, &failure)
            }
        }
    }
}

/// The limit is for each attempt, not for the task.
fn max_wall(control: &Control) -> Option<Duration> {
    match control.spec() {
        Ok(TaskSpec::Dev(order)) => order.limits.max_wall_seconds.map(Duration::from_secs),
        _ => None,
    }
}

/// Waits for work that ends by itself when the time is up. What does not (a forge that hangs) is
/// left behind, as if the process had been killed there: the next attempt finds its effects again.
/// `biased`, so that work which ended at the same moment counts as ended.
async fn within<T>(
    stop: &Stop,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let ended = tokio::select! {
        biased;
        ended = work => ended,
        () = stop.abandon() => Err(Failure::Stopped),
    };
    match (ended, stop.out_of_time()) {
        (Err(Failure::Stopped), Some(message)) => Err(Failure::OutOfTime(message)),
        (ended, _) => ended,
    }
}

impl Run {
    /// Every step looks at the record first, so this is also how an attempt goes on: the same
    /// calls, of which the first ones return at once.
    async fn through(&mut self) -> Result<DevReport, Failure> {
        let base = self.base().await?;
        self.fetch(&base.commit).await?;
        if let Some(head) = &base.merged_into {
            self.fetch(head).await?;
            return self.through_merge(&base).await;
        }
        let located = self.locate(&base).await?;
        let reading = self.read(&base, &located).await?;
        // On record before anything is published: a later attempt, which may have another model or
        // no clone, publishes the same.
        let (written, proven) = self
            .ledger
            .once(PROVEN, || self.make(&base, &located, &reading))
            .await?;
        self.report(&base, &located, &written, &proven).await
    }

    /// The same for a merge of the base into the branch of a pull request.
    async fn through_merge(&self, base: &Base) -> Result<DevReport, Failure> {
        let joined = self.join(base).await?;
        let (located, reading) = self.conflicts(&joined).await?;
        let (written, proven) = self
            .ledger
            .once(PROVEN, || self.resolve(base, &joined, &reading))
            .await?;
        self.report(base, &located, &written, &proven).await
    }

    /// Publishes, and puts on record what it came to.
    async fn report(
        &self,
        base: &Base,
        located: &Located,
        written: &Written,
        proven: &Proven,
    ) -> Result<DevReport, Failure> {
        let published = self.publish(base, written, proven).await?;
        let report = report::of(self, base, located, written, proven, &published);
        self.say("report", &report.text());
        self.ledger.record(report::REPORT, &report).await?;
        Ok(report)
    }

    /// The change and its proof. Not recorded by itself: the caller records the pair of change and
    /// proof as one step, since a change without its proof is not to be published by a later
    /// attempt. Within it, each answer and each test run is on record.
    async fn make(
        &self,
        base: &Base,
        located: &Located,
        reading: &Reading,
    ) -> Result<(Written, Proven), Failure> {
        let (written, conversation) = if self.is_simulated() {
            (self.simulate(), None)
        } else if self.is_for_agent(located, reading) {
            (self.write_by_agent(base, located).await?, None)
        } else {
            let mut conversation = self.begin(base, reading)?;
            let written = self.write(base, reading, &mut conversation).await?;
            (written, Some(conversation))
        };
        self.prove(base, reading, written, conversation).await
    }
}

impl Run {
    /// Which engine begins. Computed from what is on record, so a later attempt agrees. With
    /// `auto`, only files that the instruction or the picker named count as wanted, and without a
    /// clone there is no agent.
    fn is_for_agent(&self, located: &Located, reading: &Reading) -> bool {
        match self.order.engine {
            Engine::Agent => true,
            Engine::Generate => false,
            Engine::Auto => {
                let is_wanted = |path: &str| {
                    let mut files = located.files.iter();
                    files.any(|file| file.path == path && matches!(&*file.by, "named" | "picked"))
                };
                let wanted = located.paths().filter(|path| is_wanted(path)).count();
                let left_out = reading.left_out.iter().filter(|path| is_wanted(path));
                let reason = reason_for_agent(&self.order.instruction, wanted, left_out.count());
                let reason = reason.filter(|_| self.link.clone.is_some());
                if let Some(reason) = &reason {
                    self.say("generate", &format!("🤖 By the agent engine: {reason}"));
                }
                reason.is_some()
            }
        }
    }
}

fn success(run: &Run, report: &DevReport) -> TaskOutcome {
    let (usage, cost) = run.spent();
    TaskOutcome {
        status: TaskStatus::Completed,
        result: Some(report.text()),
        error: None,
        exit_code: None,
        usage,
        cost,
        ..TaskOutcome::failed("")
    }
}

fn failed(run: &Run, failure: &Failure) -> TaskOutcome {
    let (usage, cost) = run.spent();
    let message = failure.to_string();
    run.note(&format!("✗ {message}"));
    TaskOutcome {
        usage,
        cost,
        ..TaskOutcome::failed(message)
    }
}

/// Killed, with the reason that was given. Where the process leaves, nobody gave one; the scheduler
/// then releases the task instead of recording this outcome, and another process goes on.
fn stopped(run: &Run) -> TaskOutcome {
    let (usage, cost) = run.spent();
    let reason = match &*run.control.stop_reason.lock() {
        Some(TaskStopReason::Asked(reason)) => reason.clone(),
        _ => "the process that ran it ended".to_owned(),
    };
    TaskOutcome {
        status: TaskStatus::Killed,
        usage,
        cost,
        ..TaskOutcome::failed(reason)
    }
}
