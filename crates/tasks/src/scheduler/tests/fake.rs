//! A store of leases in memory, whose faults and other processes the test decides about, and a
//! runner whose work the test decides about.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{
    Cost, Labels, OnDependencyFailure, TaskId, TaskRecord, TaskStatus, TaskType, Usage,
};
use codespar_store::{
    Beat, Capacity, ClaimScope, Claimed, HeldTask, LEASES, LeaseStore, RunnerAbout, RunnerId,
    RunnerSeen, SqliteStore, StoreError, TaskEnding,
};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Map;
use tokio::sync::Notify;

use super::{
    super::{Scheduler, SchedulerSetup, clock::Clock as _},
    clock::TestClock,
};
use crate::{
    engine::TaskEngine,
    runner::{Control, Runner, TaskOutcome, TaskStopReason},
    vital::Presence,
};

pub(super) const US: &str = "us";
pub(super) const THEM: &str = "them";

/// A task as the fake store has it.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) record: TaskRecord,
    pub(super) owner: Option<RunnerId>,
    pub(super) epoch: u64,
    pub(super) stop: Option<String>,
    pub(super) ending: Option<TaskEnding>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) tasks: HashMap<TaskId, Row>,
    pub(super) runners: HashMap<RunnerId, (u64, bool)>,
    /// Another process holds the lock on the database.
    pub(super) locked: bool,
    pub(super) beats: u32,
    /// Heartbeats with work under way.
    pub(super) beats_while_working: u32,
    pub(super) claims: u32,
    pub(super) refused: Vec<String>,
}

/// Leases in memory.
#[derive(Default)]
pub(super) struct FakeLeases {
    pub(super) state: Mutex<State>,
    /// A claim waits for this before it answers, when it is set.
    pub(super) slow_claim: Mutex<Option<Arc<Notify>>>,
}

impl FakeLeases {
    fn open(&self) -> Result<parking_lot::MutexGuard<'_, State>, StoreError> {
        let state = self.state.lock();
        if state.locked {
            let path = "codespar.db".into();
            return Err(StoreError::Busy { path });
        }
        Ok(state)
    }

    /// A pending task.
    pub(super) fn add(&self, task_type: TaskType) -> TaskId {
        let now = Timestamp::now();
        let id = TaskId::new(task_type);
        let record = TaskRecord {
            task_id: id.clone(),
            task_type,
            status: TaskStatus::Pending,
            subject: "try it".to_owned(),
            spec: None,
            authority: None,
            reserved_for: None,
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::default(),
            description: String::new(),
            active_form: None,
            owner: None,
            metadata: Map::new(),
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            output_file: None,
            created_at: now,
            updated_at: now,
            started_at: None,
            ended_at: None,
            error: None,
            exit_code: None,
            attempt: 1,
            usage: Usage::default(),
            cost_usd: Cost::default(),
            session_id: None,
            parent_task_id: None,
        };
        let row = Row {
            record,
            owner: None,
            epoch: 0,
            stop: None,
            ending: None,
        };
        self.state.lock().tasks.insert(id.clone(), row);
        id
    }

    pub(super) fn row(&self, id: &TaskId) -> Row {
        self.state.lock().tasks[id].clone()
    }

    pub(super) fn status(&self, id: &TaskId) -> TaskStatus {
        self.row(id).record.status
    }

    /// Another process takes a task.
    pub(super) fn take_away(&self, id: &TaskId) {
        let mut state = self.state.lock();
        let row = state.tasks.get_mut(id).unwrap();
        row.owner = Some(RunnerId(THEM.to_owned()));
        row.record.status = TaskStatus::Running;
        row.epoch += 1;
    }
}

fn held_under<'a>(
    row: Option<&'a mut Row>,
    id: &TaskId,
    epoch: u64,
) -> Result<&'a mut Row, StoreError> {
    row.filter(|row| row.epoch == epoch && row.record.status == TaskStatus::Running)
        .ok_or_else(|| StoreError::LeaseLost(id.clone()))
}

#[async_trait]
impl LeaseStore for FakeLeases {
    async fn beat(
        &self,
        runner: &RunnerId,
        _about: &RunnerAbout,
        held: &[HeldTask],
    ) -> Result<Beat, StoreError> {
        let mut state = self.open()?;
        state.beats += 1;
        let works = !held.is_empty();
        state.beats_while_working += u32::from(works);
        let seen = state.runners.entry(runner.clone()).or_default();
        *seen = (seen.0 + 1, false);
        let mut beat = Beat::default();
        for task in held {
            let row = &state.tasks[&task.id];
            if row.epoch != task.epoch || row.owner.as_ref() != Some(runner) {
                beat.lost.push(task.id.clone());
            } else if let Some(reason) = &row.stop {
                beat.stop.push((task.id.clone(), reason.clone()));
            }
        }
        let named: HashSet<&TaskId> = held.iter().map(|task| &task.id).collect();
        let ours = state.tasks.values().filter(|row| {
            row.owner.as_ref() == Some(runner) && row.record.status == TaskStatus::Running
        });
        let unknown = ours.filter(|row| !named.contains(&row.record.task_id));
        beat.unknown = unknown
            .map(|row| (row.record.task_id.clone(), row.epoch))
            .collect();
        let others = state.runners.iter().filter(|(id, _)| *id != runner);
        beat.others = others
            .map(|(id, (beats, is_silent))| RunnerSeen {
                id: id.clone(),
                beats: *beats,
                is_silent: *is_silent,
            })
            .collect();
        Ok(beat)
    }

    async fn runners(&self) -> Result<Vec<RunnerSeen>, StoreError> {
        Ok(Vec::new())
    }

    async fn mark_silent(&self, seen: &RunnerSeen) -> Result<(), StoreError> {
        let mut state = self.open()?;
        if let Some(runner) = state.runners.get_mut(&seen.id)
            && runner.0 == seen.beats
        {
            runner.1 = true;
        }
        Ok(())
    }

    async fn reap_runner(&self, seen: &RunnerSeen) -> Result<(), StoreError> {
        let mut state = self.open()?;
        state
            .runners
            .retain(|id, (beats, _)| *id != seen.id || *beats != seen.beats);
        Ok(())
    }

    async fn withdraw_runner(&self, runner: &RunnerId) -> Result<(), StoreError> {
        self.open()?.runners.remove(runner);
        Ok(())
    }

    async fn claim_tasks(
        &self,
        runner: &RunnerId,
        capacity: &Capacity,
    ) -> Result<Vec<Claimed>, StoreError> {
        let gate = self.slow_claim.lock().clone();
        let claimed = {
            let mut state = self.open()?;
            state.claims += 1;
            let State { tasks, runners, .. } = &mut *state;
            let mut claimed = Vec::new();
            for row in tasks.values_mut() {
                let owner = row.owner.clone();
                let is_lost = owner.as_ref().is_some_and(|owner| {
                    owner != runner && runners.get(owner).is_none_or(|(_, silent)| *silent)
                });
                let is_free = row.record.status == TaskStatus::Pending
                    || (row.record.status == TaskStatus::Running && is_lost);
                if !is_free || capacity.skip.contains(&row.record.task_id) {
                    continue;
                }
                let taken_from = owner.filter(|_| row.record.status == TaskStatus::Running);
                row.owner = Some(runner.clone());
                row.record.status = TaskStatus::Running;
                row.epoch += 1;
                claimed.push(Claimed {
                    record: row.record.clone(),
                    epoch: row.epoch,
                    taken_from,
                });
            }
            claimed
        };
        if let Some(gate) = gate {
            gate.notified().await;
        }
        Ok(claimed)
    }

    async fn finish_task(
        &self,
        id: &TaskId,
        epoch: u64,
        ending: TaskEnding,
    ) -> Result<Vec<TaskId>, StoreError> {
        let mut state = self.open()?;
        match held_under(state.tasks.get_mut(id), id, epoch) {
            Ok(row) => {
                row.record.status = ending.status;
                row.record.error.clone_from(&ending.error);
                row.owner = None;
                row.ending = Some(ending);
                Ok(Vec::new())
            }
            Err(error) => {
                state.refused.push(format!("finish {epoch}"));
                Err(error)
            }
        }
    }

    async fn release_task(&self, id: &TaskId, epoch: u64) -> Result<(), StoreError> {
        let mut state = self.open()?;
        let row = held_under(state.tasks.get_mut(id), id, epoch)?;
        row.record.status = TaskStatus::Pending;
        row.owner = None;
        Ok(())
    }

    async fn unfinished(&self, ids: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        let state = self.open()?;
        let is_open = |id: &&TaskId| {
            let row = state.tasks.get(*id);
            row.is_some_and(|row| !row.record.status.is_final())
        };
        Ok(ids.iter().filter(is_open).cloned().collect())
    }

    async fn assign_items(&self) -> Result<Vec<TaskId>, StoreError> {
        Ok(Vec::new())
    }
}

/// How a task behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Until it is told to stop, then it says so.
    UntilStopped,
    /// Heeds a hand-over after its step of three seconds.
    InSteps,
    /// Its session is busy so many times.
    Busy(u32),
    /// Ends at once.
    Quick,
}

/// What happened to attempts.
#[derive(Default)]
pub(super) struct Attempts {
    pub(super) started: Vec<(TaskId, u64)>,
    pub(super) stopped: Vec<(TaskId, Option<TaskStopReason>)>,
}

pub(super) struct FakeRunner {
    pub(super) work: Work,
    clock: Arc<TestClock>,
    pub(super) attempts: Arc<Mutex<Attempts>>,
}

#[async_trait]
impl Runner for FakeRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        let id = control.record.task_id.clone();
        let earlier = {
            let mut attempts = self.attempts.lock();
            attempts.started.push((id.clone(), control.epoch));
            u32::try_from(attempts.started.len()).unwrap() - 1
        };
        let done = TaskOutcome {
            status: TaskStatus::Completed,
            error: None,
            ..TaskOutcome::failed("")
        };
        match self.work {
            Work::Quick => return done,
            Work::Busy(times) if earlier < times => return TaskOutcome::put_back("in use"),
            Work::Busy(_) => return done,
            Work::InSteps => {
                let steps = async {
                    while !control.hand_over.is_asked() {
                        self.clock.sleep(Duration::from_secs(3)).await;
                    }
                };
                tokio::select! {
                    () = steps => {}
                    () = control.cancel.cancelled() => {}
                }
            }
            Work::UntilStopped => control.cancel.cancelled().await,
        }
        let reason = control.stop_reason.lock().clone();
        self.attempts.lock().stopped.push((id, reason));
        TaskOutcome {
            status: TaskStatus::Killed,
            ..TaskOutcome::failed(control.reason_to_end())
        }
    }
}

/// Leases without a look at the real database, which would take real time.
struct ClaimsAlone;

#[async_trait]
impl TaskEngine for ClaimsAlone {
    fn name(&self) -> &'static str {
        LEASES
    }

    async fn serve(&self, scheduler: Arc<Scheduler>) {
        scheduler.claim_tasks(ClaimScope::Everything).await;
    }
}

/// A scheduler over the fake, with the clock of the test.
pub(super) struct Bench {
    pub(super) leases: Arc<FakeLeases>,
    pub(super) clock: Arc<TestClock>,
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) attempts: Arc<Mutex<Attempts>>,
    _dir: tempfile::TempDir,
}

impl Bench {
    /// Agents and commands behave as `work` says; other runners are as `presence` says.
    pub(super) async fn new(work: Work, presence: Presence) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path()).await.unwrap());
        let leases = Arc::new(FakeLeases::default());
        let clock = Arc::new(TestClock::default());
        let redactor = Arc::new(Redactor::by_shape());
        let scheduler = Scheduler::over(
            RunnerId(US.to_owned()),
            leases.clone(),
            clock.clone(),
            SchedulerSetup {
                engine: Arc::new(ClaimsAlone),
                ..SchedulerSetup::with_leases(store, dir.path().to_path_buf(), redactor)
            },
        );
        let scheduler = Arc::new(Scheduler {
            presence: Box::new(move |_| presence),
            ..scheduler
        });
        let attempts = Arc::<Mutex<Attempts>>::default();
        let runner = Arc::new(FakeRunner {
            work,
            clock: clock.clone(),
            attempts: attempts.clone(),
        });
        scheduler.serve(TaskType::LocalAgent, runner.clone());
        scheduler.serve(TaskType::LocalBash, runner);
        Self {
            leases,
            clock,
            scheduler,
            attempts,
            _dir: dir,
        }
    }

    pub(super) fn run(&self) {
        tokio::spawn(self.scheduler.clone().run());
    }

    pub(super) fn started(&self) -> usize {
        self.attempts.lock().started.len()
    }

    pub(super) fn stops(&self) -> Vec<Option<TaskStopReason>> {
        let attempts = self.attempts.lock();
        attempts
            .stopped
            .iter()
            .map(|(_, why)| why.clone())
            .collect()
    }

    /// Time passes.
    pub(super) async fn pass(&self, seconds: u64) {
        self.clock.pass(Duration::from_secs(seconds)).await;
    }

    /// Time passes until the scheduler has left.
    pub(super) async fn leave(&self) {
        let scheduler = self.scheduler.clone();
        let leaving = tokio::spawn(async move { scheduler.leave().await });
        for _ in 0..60 {
            self.pass(1).await;
        }
        assert!(leaving.is_finished());
    }
}
