//! What tools and commands can do with tasks, in one place.
//!
//! One [`TaskHub`] per project, shared by the tools of its agents and by the commands. Tasks are
//! made in `making.rs`, teams in `team/`; found in `visibility.rs` and written to in `messages.rs`;
//! here are the other operations on tasks that exist: wait, stop, change, read output. The hub itself runs nothing: it writes to the store
//! and wakes the scheduler of this process, and another process may be the one that acts on the
//! change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use codespar_agent::Sink;
use codespar_protocol::{
    Authority, Event, Isolation, OnDependencyFailure, SessionId, TaskId, TaskRecord, ToolUseId, Usd,
};
use codespar_store::{
    ChangeFeed, ChangeKind, Notify, RunnerSeen, Store, StoreChange, StoreError, TaskChange,
    TaskLease, TaskStore,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{
    AgentKind, OutputPart, OutputTail, Questions, Scheduler, WorkflowGate, runner::TaskStopReason,
};

/// How long a stop is waited for: TERM, then KILL after five seconds. The rest covers the heartbeat
/// by which a runner in another process learns of the stop.
const STOP_PATIENCE: Duration = Duration::from_secs(8);

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller's mistake, or a limit. The text is shown to the model or the user as it is.
    #[error("{0}")]
    Refused(String),
}

/// Who asks for a task. Made once for each agent and kept by its task tools; a command makes one
/// for itself.
#[derive(Clone)]
pub struct Caller {
    /// The conversation that is told of its end.
    pub session: SessionId,
    /// The attempt it belongs to, for the agent of a task. A process that lost the task makes
    /// nothing more in its name.
    pub task: Option<TaskLease>,
    /// How the agents it writes to know it: its name, or "the main agent", "the coordinator",
    /// "the user".
    pub name: String,
    /// How far below the user's agent the caller is; 0 for that agent.
    pub depth: u32,
    /// Where events go.
    pub sink: Sink,
    /// The root of the tree the caller works in.
    pub root: PathBuf,
    /// What the tasks it makes may do.
    pub authority: AuthoritySource,
}

impl Caller {
    /// Of the task it belongs to.
    pub(crate) fn task_id(&self) -> Option<TaskId> {
        self.task.as_ref().map(|lease| lease.task.clone())
    }
}

/// Gives the authority of whoever asks, with the rules in force at that moment. Called for every
/// task that is made, so that a rule the user adds during the session counts for the next task and
/// not for those already recorded.
pub type AuthoritySource = Arc<dyn Fn() -> Authority + Send + Sync>;

/// Refuses the name of a model that no provider here can be asked for, with those that can.
pub type ModelGate = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// An agent to be started.
#[derive(Debug, Clone)]
pub struct AgentLaunch {
    /// A few words for people.
    pub description: String,
    /// What it is to do.
    pub prompt: String,
    pub kind: String,
    /// Its model, if not the kind's.
    pub model: Option<String>,
    /// Its limit on turns, if not the kind's.
    pub max_turns: Option<u32>,
    /// Its limit on wall time for each attempt.
    pub max_wall_seconds: Option<u64>,
    /// The most it may cost, over all its attempts.
    pub max_budget: Option<Usd>,
    /// Where it works, if not as its kind says.
    pub isolation: Option<Isolation>,
    /// A name to send messages to.
    pub name: Option<String>,
    /// Where it works.
    pub cwd: PathBuf,
    /// The call that starts it.
    pub tool_use_id: Option<ToolUseId>,
    /// Whether the session is told of its end.
    pub notify: Notify,
}

/// The feed carries every commit in the store, so most changes are of other tasks.
fn is_end_of(id: &TaskId, change: &StoreChange) -> bool {
    change.task_id.as_ref() == Some(id)
        && matches!(change.kind, ChangeKind::Task { status } if status.is_final())
}

/// What came of waiting.
#[derive(Debug, Clone)]
pub enum Waited {
    /// It is over.
    Ended(Box<TaskRecord>),
    /// The cancellation token of the caller was cancelled. The task goes on.
    GaveUp,
}

/// Limits on agents.
///
/// Both stop a model that delegates without end. They are checked when a task is made; the number
/// of agents that run at the same time is limited by `RunnerLimits` instead.
#[derive(Debug, Clone, Copy)]
pub struct AgentLimits {
    /// How deep agents may start agents.
    pub max_depth: u32,
    /// How many agents one session may start.
    pub per_session: u32,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_depth: 3,
            per_session: 2_000,
        }
    }
}

/// What tools and commands use.
pub struct TaskHub {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) sessions: Arc<dyn Store>,
    pub(crate) scheduler: Arc<Scheduler>,
    questions: Questions,
    kinds: Vec<AgentKind>,
    pub(crate) limits: AgentLimits,
    /// Why no tasks may be made, if so.
    pub(crate) disabled: Option<String>,
    /// Agents and workflows each session has made, counted once from the store and then here.
    pub(crate) agents_made: Arc<Mutex<HashMap<SessionId, u32>>>,
    /// Decides which models can be asked for; unset where every name is taken as it is.
    models: OnceLock<Arc<ModelGate>>,
    /// Decides on workflow files by the trust in the repository; unset until the project is open.
    workflows: OnceLock<Arc<WorkflowGate>>,
}

impl TaskHub {
    /// A hub over a store and this process's scheduler.
    pub fn new(
        store: Arc<dyn TaskStore>,
        sessions: Arc<dyn Store>,
        scheduler: Arc<Scheduler>,
        questions: Questions,
        kinds: Vec<AgentKind>,
        disabled: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            questions,
            sessions,
            scheduler,
            kinds,
            limits: AgentLimits::default(),
            disabled,
            agents_made: Arc::default(),
            models: OnceLock::new(),
            workflows: OnceLock::new(),
        })
    }

    /// A hub of the same process and project with another configuration. Both count the same agents.
    pub fn reconfigured(&self, kinds: Vec<AgentKind>, disabled: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            store: self.store.clone(),
            sessions: self.sessions.clone(),
            scheduler: self.scheduler.clone(),
            questions: self.questions.clone(),
            kinds,
            limits: self.limits,
            disabled,
            agents_made: self.agents_made.clone(),
            models: OnceLock::new(),
            workflows: OnceLock::new(),
        })
    }

    /// Says which models agents can be asked to use. The first call counts.
    pub fn guard_models(&self, gate: Arc<ModelGate>) {
        let _ = self.models.set(gate);
    }

    /// Whether an agent can be started with this model, and why not.
    pub(crate) fn check_model(&self, model: Option<&str>) -> Result<(), HubError> {
        match (self.models.get(), model) {
            (Some(gate), Some(model)) => gate(model).map_err(HubError::Refused),
            _ => Ok(()),
        }
    }

    /// Says which workflow files may be used; none may before this is called. The first call
    /// counts.
    pub fn guard_workflows(&self, gate: Arc<WorkflowGate>) {
        let _ = self.workflows.set(gate);
    }

    /// Whether this text of a workflow file may be used, and why not.
    pub(crate) fn may_use_workflow(&self, path: &Path, text: &str) -> Result<(), String> {
        match self.workflows.get() {
            Some(gate) => gate(path, text),
            None => Err("no workflow may be used in this process".to_owned()),
        }
    }

    pub fn store(&self) -> &dyn TaskStore {
        &*self.store
    }

    /// The conversations.
    pub(crate) fn sessions(&self) -> &dyn Store {
        &*self.sessions
    }

    /// This process's scheduler.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// What is committed to the store, by this process or another.
    pub fn changes(&self) -> &ChangeFeed {
        self.questions.changes()
    }

    /// Questions of the project's agents to people.
    pub fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Something may be ready for this process to run.
    pub fn wake(&self) {
        self.scheduler.ensure_running();
        self.scheduler.nudge();
    }

    /// The kinds of agents there are.
    pub fn kinds(&self) -> &[AgentKind] {
        &self.kinds
    }

    /// A kind by its name.
    pub fn kind(&self, name: &str) -> Result<&AgentKind, HubError> {
        self.kinds
            .iter()
            .find(|kind| kind.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
                HubError::Refused(format!(
                    "there is no kind of agent `{name}`; there are: {}",
                    names.join(", ")
                ))
            })
    }

    /// Sends events of a task to a sink of this session from now on.
    pub fn follow(&self, id: &TaskId, session: SessionId, sink: Sink) {
        self.scheduler.events.follow_task(id, session, sink);
    }

    /// Sends them nowhere any more.
    pub(crate) fn forget_listener(&self, id: &TaskId) {
        self.scheduler.events.forget_task(id);
    }

    /// Says something of a task to whoever listens in this process.
    pub fn publish(&self, session: Option<SessionId>, id: &TaskId, event: Event) {
        self.scheduler.events.publish(session, Some(id), event);
    }

    /// Events of the task reach the caller as those of a subagent.
    pub(crate) fn listen(&self, id: &TaskId, caller: &Caller, call: Option<&ToolUseId>) {
        let Some(parent_tool_use_id) = call.cloned() else {
            return;
        };
        let (sink, task_id) = (caller.sink.clone(), id.clone());
        let listener: Sink = Arc::new(move |event| {
            sink(Event::Subagent {
                parent_tool_use_id: parent_tool_use_id.clone(),
                task_id: task_id.clone(),
                event: Box::new(event),
            });
        });
        self.follow(id, caller.session, listener);
    }

    /// Waits until a task is over, in this process or another.
    ///
    /// The store is read again after every wake-up, so a wake-up without an end does no harm. If
    /// the future is dropped, the entry in the scheduler's list of waiters stays until the task
    /// ends or, for a task of another process, until the heartbeat finds that it has ended.
    pub async fn wait(&self, id: &TaskId, cancel: &CancellationToken) -> Result<Waited, HubError> {
        // It may be for this process to run.
        self.scheduler.ensure_running();
        // Followed before it is looked: an end in between is not missed.
        let mut changes = self.changes().follow().await?;
        loop {
            let end = self.scheduler.end_of(id);
            let ended = end.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            let record = self.store.task(id).await?;
            if record.status.is_final() {
                self.forget_listener(id);
                self.scheduler.forget_end_of(id);
                return Ok(Waited::Ended(Box::new(record)));
            }
            tokio::select! {
                () = ended => {}
                // It may run in another process.
                () = changes.until(|change| is_end_of(id, change)) => {}
                () = cancel.cancelled() => return Ok(Waited::GaveUp),
            }
        }
    }

    /// Stops a task and waits a little for its end.
    ///
    /// A pending task is killed in the store at once. A running one is marked there, and told
    /// directly if it runs in this process. If it has not ended after eight seconds its record is
    /// given as it is then, still running: the mark stays, and its runner acts on it with its next
    /// heartbeat. A task that is over is refused by the store, except a member of a team that
    /// rests.
    pub async fn stop(&self, id: &TaskId, reason: &str) -> Result<TaskRecord, HubError> {
        let record = self.store.stop_task(id, reason).await?;
        if record.status.is_final() {
            self.forget_listener(id);
            return Ok(record);
        }
        self.scheduler
            .signal(id, TaskStopReason::Asked(reason.to_owned()));
        let cancel = CancellationToken::new();
        let patience = cancel.clone();
        let timer = tokio::spawn(async move {
            tokio::time::sleep(STOP_PATIENCE).await;
            patience.cancel();
        });
        let waited = self.wait(id, &cancel).await;
        timer.abort();
        match waited? {
            Waited::Ended(record) => Ok(*record),
            Waited::GaveUp => Ok(self.store.task(id).await?),
        }
    }

    /// Whether a process lives that takes remote agents. An error of the store counts as none.
    pub async fn has_worker(&self) -> bool {
        let there = self.store.runners().await.unwrap_or_default();
        let takes = |runner: &RunnerSeen| !runner.is_silent && runner.id.is_worker();
        there.iter().any(takes)
    }

    pub async fn change(&self, id: &TaskId, change: TaskChange) -> Result<TaskRecord, HubError> {
        let record = self.store.change_task(id, change).await?;
        self.wake();
        Ok(record)
    }

    /// A part of a task's output, from a byte on, wherever it runs.
    pub async fn output(
        &self,
        record: &TaskRecord,
        offset: u64,
        limit: usize,
    ) -> Result<OutputPart, HubError> {
        Ok(self.scheduler.outputs().read(record, offset, limit).await?)
    }

    /// The end of it.
    pub async fn output_tail(
        &self,
        record: &TaskRecord,
        limit: usize,
    ) -> Result<OutputTail, HubError> {
        Ok(self.scheduler.outputs().tail(record, limit).await?)
    }
}

/// What any task may have besides its spec.
#[derive(Debug, Clone, Default)]
pub struct TaskExtra {
    /// More words.
    pub description: Option<String>,
    /// What to show while it runs.
    pub active_form: Option<String>,
    /// Tasks it waits for.
    pub blocked_by: Vec<TaskId>,
    /// What the caller keeps with it.
    pub metadata: Map<String, Value>,
    /// What becomes of it when a task it waits for does not complete.
    pub on_dependency_failure: OnDependencyFailure,
}
