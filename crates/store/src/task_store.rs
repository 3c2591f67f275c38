//! Tasks in the store: records, dependencies, mailboxes, notifications, path claims, teams.

use std::path::PathBuf;

use async_trait::async_trait;
use codespar_protocol::{
    AttemptOptions, Authority, Entry, EntryBody, Labels, OnDependencyFailure, SessionId, TaskId,
    TaskRecord, TaskSpec, TaskStatus, TaskType,
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{LeaseStore, RunnerId, StoreError, TaskLease};

/// What a task starts from.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Its id; the letter says its type, which is that of `spec`.
    pub id: TaskId,
    /// What it runs. Nothing changes it later.
    pub spec: TaskSpec,
    /// By whose authority it runs. Nothing changes it later.
    pub authority: Authority,
    /// The runner that alone takes it while that runner lives.
    pub reserved_for: Option<RunnerId>,
    /// What a runner must offer to take it. A task that another makes has its own: nothing is
    /// inherited here.
    pub labels: Labels,
    /// What becomes of it when a task it waits for does not complete.
    pub on_dependency_failure: OnDependencyFailure,
    /// One line.
    pub subject: String,
    pub description: Option<String>,
    /// What to show while it runs.
    pub active_form: Option<String>,
    /// What callers keep with it.
    pub metadata: Map<String, Value>,
    /// Tasks it waits for.
    pub blocked_by: Vec<TaskId>,
    /// Where its output goes.
    pub output_file: Option<PathBuf>,
    /// The session that made it, and is notified of its end.
    pub session_id: Option<SessionId>,
    /// The task that made it.
    pub parent_task_id: Option<TaskId>,
    /// The attempt that makes it, if one does: refused with `StoreError::LeaseLost` when another
    /// runner has taken that task over.
    pub made_under: Option<TaskLease>,
    /// Whether its end is told to the session.
    pub notify: Notify,
    /// Begin at once in this process: the task is born `running` under its lease. Refused while
    /// it waits for others.
    pub start_here: Option<RunnerId>,
}

/// Whether the end of a task becomes a notification of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// It does, once for each attempt.
    Session,
    /// Someone waits for it directly.
    Nobody,
}

#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Only these.
    pub status: Option<TaskStatus>,
    /// Only those this session made.
    pub session_id: Option<SessionId>,
    /// Only those this task made.
    pub parent_task_id: Option<TaskId>,
    /// Only of this type.
    pub task_type: Option<TaskType>,
    /// Only those below this session, however deep.
    pub tree: Option<SessionId>,
    /// Only those of this project.
    pub project_root: Option<PathBuf>,
    /// Only those of these projects, if any are named.
    pub project_roots: Vec<PathBuf>,
    /// Only those made before this one; none if there is no such task.
    pub before: Option<TaskId>,
    /// Only those whose id begins so.
    pub id_prefix: Option<String>,
    /// The latest this many.
    pub limit: Option<u32>,
}

/// A change to a record. `None` leaves a field as it is.
#[derive(Debug, Clone, Default)]
pub struct TaskChange {
    /// A step of the lifecycle by hand. Only steps `TaskStatus::may_become` knows; a task that a
    /// runner holds can only be stopped, with `stop_task`.
    pub status: Option<TaskStatus>,
    /// One line.
    pub subject: Option<String>,
    pub description: Option<String>,
    /// What to show while it runs; empty for nothing.
    pub active_form: Option<String>,
    /// Added key by key; `null` takes a key away. What runners report (`RESULT_KEYS`) is refused.
    pub metadata: Map<String, Value>,
    /// More tasks to wait for; only while pending.
    pub add_blocked_by: Vec<TaskId>,
    /// Who takes it. `Some(None)` gives it back.
    pub owner: Option<Option<String>>,
    /// Refused with the owner named unless nobody has it: an atomic claim.
    pub owner_must_be_free: OwnerRule,
}

/// Whether an owner may be replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OwnerRule {
    /// It may.
    #[default]
    Replace,
    /// Only a task without owner that waits for nothing can be taken.
    ClaimFree,
}

/// A message in a task's mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its place, over all mailboxes.
    pub seq: u64,
    /// Empty for a note of the store itself.
    pub from: String,
    pub body: String,
    pub at: Timestamp,
}

/// A notification that waits for its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Its place, over all sessions.
    pub seq: u64,
    /// The task it speaks of.
    pub task_id: TaskId,
    pub attempt: u32,
    pub body: String,
}

/// A team and its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// Its name, unique in its session.
    pub name: String,
    /// Name and task of each member.
    pub members: Vec<(String, TaskId)>,
}

/// Tasks. Every state change is a transaction that checks the state it leaves from.
#[async_trait]
pub trait TaskStore: LeaseStore {
    /// Records tasks, all or none, in order. Unknown ids in `blocked_by` are refused by name. A
    /// task born blocked by a failed one fails at once (see `finish_task`).
    async fn create_tasks(&self, new: Vec<NewTask>) -> Result<Vec<TaskRecord>, StoreError>;

    async fn task(&self, id: &TaskId) -> Result<TaskRecord, StoreError>;

    /// Those of these tasks that there are, in no order.
    async fn known_tasks(&self, ids: &[TaskId]) -> Result<Vec<TaskRecord>, StoreError>;

    /// Tasks in order of creation.
    async fn tasks(&self, filter: TaskFilter) -> Result<Vec<TaskRecord>, StoreError>;

    /// Changes a record. Cycles are refused with the cycle printed (`a → b → a`); illegal steps
    /// with both states named.
    async fn change_task(&self, id: &TaskId, change: TaskChange) -> Result<TaskRecord, StoreError>;

    /// Asks for a stop: a pending task is killed at once (with its dependents), a running one is
    /// marked and its runner sees it at the next renewal. A finished one is refused, but a member
    /// of a team that rests is killed as its next attempt: nothing wakes it any more but a message.
    /// One that runs by hand, without a runner, is killed at once too.
    async fn stop_task(&self, id: &TaskId, reason: &str) -> Result<TaskRecord, StoreError>;

    /// Keeps what a step of a running task gave, while the epoch holds. A step recorded again has
    /// the new result, in its old place.
    async fn record_step(
        &self,
        id: &TaskId,
        epoch: u64,
        step: &str,
        result: &Value,
    ) -> Result<(), StoreError>;

    /// What the steps of a task gave, in all its attempts, in order of recording.
    async fn steps(&self, id: &TaskId) -> Result<Vec<(String, Value)>, StoreError>;

    /// When the steps of a task were first recorded, in order; without those of which it is not
    /// known.
    async fn step_times(&self, id: &TaskId) -> Result<Vec<(String, Timestamp)>, StoreError>;

    /// Writes to a task's mailbox. A finished or stopped agent becomes pending again as its next
    /// attempt; anything else that is over is refused. One that was stopped is told so by a note
    /// before the message ([`Mail::from`] is empty).
    async fn send_mail(
        &self,
        to: &TaskId,
        from: &str,
        body: &str,
    ) -> Result<TaskRecord, StoreError> {
        let options = AttemptOptions::default();
        self.continue_with(to, from, body, &options).await
    }

    /// The same; the attempt that the message starts uses `options`. Refused with options that are
    /// not empty while the agent is not over: a message would join the attempt under way.
    async fn continue_with(
        &self,
        to: &TaskId,
        from: &str,
        body: &str,
        options: &AttemptOptions,
    ) -> Result<TaskRecord, StoreError>;

    /// Unread messages of a mailbox, in order. They stay unread until `append_from_mail`.
    async fn mail(&self, task: &TaskId) -> Result<Vec<Mail>, StoreError>;

    /// Appends to a transcript and marks messages as read, in one transaction: a message is in the
    /// conversation exactly once, whatever happens.
    async fn append_from_mail(
        &self,
        session: SessionId,
        after: u64,
        bodies: Vec<EntryBody>,
        read: &[u64],
    ) -> Result<Vec<Entry>, StoreError>;

    /// Notifications that wait for a session, in order.
    async fn notifications(&self, session: SessionId) -> Result<Vec<Notification>, StoreError>;

    /// Appends to a transcript and marks notifications as delivered, in one transaction.
    async fn append_notified(
        &self,
        session: SessionId,
        after: u64,
        bodies: Vec<EntryBody>,
        delivered: &[u64],
    ) -> Result<Vec<Entry>, StoreError>;

    /// Claims paths for a writer until its attempt ends. Refused if another running task holds the
    /// same path, one above it or one below it; the holder is named. Refused with
    /// `StoreError::LeaseLost` when another runner has taken the task over.
    async fn claim_paths(&self, lease: &TaskLease, paths: &[PathBuf]) -> Result<(), StoreError>;

    /// Makes a team and the tasks of its members, in one transaction. Refused if the session has
    /// one of that name.
    async fn create_team(
        &self,
        session: SessionId,
        team: Team,
        members: Vec<NewTask>,
    ) -> Result<Vec<TaskRecord>, StoreError>;

    async fn teams(&self, session: SessionId) -> Result<Vec<Team>, StoreError>;

    /// Forgets a team. What its members had taken from its list goes back there; they themselves
    /// are not touched.
    async fn delete_team(&self, session: SessionId, name: &str) -> Result<Team, StoreError>;

    /// Gives a member of a team one item of its list, as a message: the one that is named, or the
    /// first that is free. `None` if nothing is, or if the member's team is gone. One that is
    /// named must be free.
    async fn take_item(
        &self,
        member: &TaskId,
        item: Option<&TaskId>,
    ) -> Result<Option<TaskRecord>, StoreError>;

    /// How many tasks are pending or running: work left to do. Lists of teams do not count, only
    /// members at work on them do.
    async fn outstanding(&self) -> Result<Outstanding, StoreError>;

    /// Forgets finished tasks that ended before `before`, with mail, notifications and steps; gives
    /// their ids so that outputs can be removed.
    async fn remove_tasks_before(&self, before: Timestamp) -> Result<Vec<TaskId>, StoreError>;
}

/// What is left to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Waiting for something or someone.
    pub pending: u64,
    /// Pending and ready to be claimed now.
    pub ready: u64,
    /// Under a lease.
    pub running: u64,
}
