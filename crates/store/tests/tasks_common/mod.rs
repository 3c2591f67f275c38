//! Tasks and sessions to try a store with.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::time::Duration;

use codespar_protocol::{
    AgentSpec, Authority, Cost, EntryBody, Labels, Message, MonitorSpec, OnDependencyFailure,
    SessionId, SessionMode, ShellSpec, TaskId, TaskSpec, TaskStatus, TaskType, TeammateSpec, Usage,
    Usd, Workflow, WorkflowSpec,
};
use codespar_store::{
    Afterwards, Capacity, ClaimScope, Claimed, DispatchStore, EngineState, HeldTask, LimitStore,
    NewSession, NewTask, Notify, Projects, ReportStore, RunnerAbout, RunnerId, RunnerSeen, Store,
    TaskEnding, TaskStore,
};
use serde_json::Map;

/// A back end, whole.
pub(crate) trait Stores:
    Store + TaskStore + DispatchStore + LimitStore + ReportStore
{
}

impl<T: Store + TaskStore + DispatchStore + LimitStore + ReportStore> Stores for T {}

/// What a runner of the tests says of itself.
pub(crate) fn about() -> RunnerAbout {
    RunnerAbout {
        host: "host".to_owned(),
        version: "1.2.3".to_owned(),
        labels: Labels::default(),
        started_at: jiff::Timestamp::UNIX_EPOCH,
        agents: 20,
        shells: 8,
        engine: "leases".to_owned(),
        engine_state: EngineState::Connected,
    }
}

/// Times of records differ.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(60)).await;
}

/// A runner is gone, with all it holds.
pub(crate) async fn gone(store: &dyn TaskStore, who: &str) {
    store.withdraw_runner(&runner(who)).await.unwrap();
}

/// A runner as an observer sees it.
pub(crate) async fn seen(store: &dyn TaskStore, who: &str) -> RunnerSeen {
    let there = store.runners().await.unwrap();
    there.into_iter().find(|seen| seen.id.0 == who).unwrap()
}

pub(crate) fn holds(id: &TaskId, epoch: u64) -> HeldTask {
    HeldTask {
        id: id.clone(),
        epoch,
        is_stable: false,
    }
}

pub(crate) fn runner(name: &str) -> RunnerId {
    RunnerId(name.to_owned())
}

/// What a task of this type runs.
pub(crate) fn spec(kind: TaskType) -> TaskSpec {
    match kind {
        TaskType::LocalBash => TaskSpec::Shell(ShellSpec {
            command: "true".to_owned(),
            root: "/work".into(),
            cwd: "/work".into(),
            timeout_ms: None,
        }),
        TaskType::LocalAgent => TaskSpec::Agent(agent()),
        TaskType::RemoteAgent => TaskSpec::RemoteAgent(agent()),
        TaskType::Dream => TaskSpec::Dream(agent()),
        TaskType::InProcessTeammate => member("red", "nobody"),
        TaskType::LocalWorkflow => TaskSpec::Workflow(WorkflowSpec {
            file: "w.toml".into(),
            workflow: Workflow {
                name: "w".to_owned(),
                description: None,
                steps: Vec::new(),
            },
            root: "/work".into(),
            cwd: "/work".into(),
            depth: 1,
        }),
        TaskType::MonitorMcp => TaskSpec::Monitor(MonitorSpec {
            server: "s".to_owned(),
            resources: Vec::new(),
            max_events: None,
            duration_s: None,
            interval_s: 30,
            root: "/work".into(),
        }),
    }
}

fn agent() -> AgentSpec {
    AgentSpec {
        prompt: "go".to_owned(),
        subagent_type: "worker".to_owned(),
        model: None,
        max_turns: None,
        max_wall_seconds: None,
        max_budget_usd: None,
        name: None,
        isolation: None,
        root: "/work".into(),
        cwd: "/work".into(),
        agent_session: SessionId::new(),
        depth: 1,
        tool_use_id: None,
    }
}

pub(crate) fn member(team: &str, name: &str) -> TaskSpec {
    TaskSpec::Teammate(TeammateSpec {
        team: team.to_owned(),
        name: name.to_owned(),
        agent: agent(),
    })
}

pub(crate) fn authority(root: &str) -> Authority {
    Authority {
        session: None,
        tree: SessionId::new(),
        project_root: root.into(),
        mode: "default".to_owned(),
        rules: Vec::new(),
        extra_dirs: Vec::new(),
        max_budget_usd: None,
        repository: None,
        remote: None,
        user: None,
        trace: None,
    }
}

pub(crate) fn task(kind: TaskType) -> NewTask {
    NewTask {
        id: TaskId::new(kind),
        spec: spec(kind),
        authority: authority("/work"),
        reserved_for: None,
        labels: Labels::default(),
        on_dependency_failure: OnDependencyFailure::Fail,
        subject: "try it".to_owned(),
        description: None,
        active_form: None,
        metadata: Map::new(),
        blocked_by: Vec::new(),
        output_file: None,
        session_id: None,
        parent_task_id: None,
        notify: Notify::Nobody,
        made_under: None,
        start_here: None,
    }
}

pub(crate) fn after(kind: TaskType, blocked_by: &[&TaskId]) -> NewTask {
    NewTask {
        blocked_by: blocked_by.iter().map(|id| (*id).clone()).collect(),
        ..task(kind)
    }
}

/// Of a session that wants to know how it ends.
pub(crate) fn told(kind: TaskType, session: SessionId) -> NewTask {
    NewTask {
        session_id: Some(session),
        notify: Notify::Session,
        ..task(kind)
    }
}

pub(crate) async fn made(store: &dyn TaskStore, new: NewTask) -> TaskId {
    let made = store.create_tasks(vec![new]).await;
    made.expect("a new task").remove(0).task_id
}

pub(crate) async fn session(store: &dyn Store) -> SessionId {
    let new = NewSession {
        id: SessionId::new(),
        cwd: "/work".into(),
        model: "claude-haiku-4-5".to_owned(),
        mode: SessionMode::Normal,
    };
    store.create_session(new).await.expect("a session").id
}

pub(crate) fn room(total: u32) -> Capacity {
    Capacity {
        by_type: TaskType::ALL.map(|kind| (kind, total)).to_vec(),
        total,
        projects: Projects::All,
        skip: Vec::new(),
        labels: Labels::default(),
        scope: ClaimScope::Everything,
    }
}

pub(crate) async fn claimed(store: &dyn TaskStore, who: &str, total: u32) -> Vec<Claimed> {
    let claimed = store.claim_tasks(&runner(who), &room(total)).await;
    claimed.expect("a claim")
}

pub(crate) fn ending(status: TaskStatus, error: Option<&str>) -> TaskEnding {
    TaskEnding {
        status,
        error: error.map(str::to_owned),
        exit_code: None,
        usage: Usage {
            input_tokens: 5,
            ..Usage::default()
        },
        cost: Cost::Known(Usd::from_nanos(7)),
        metadata: Map::new(),
        notification: format!("it {status}"),
        afterwards: Afterwards::Over,
    }
}

pub(crate) fn said(text: &str) -> EntryBody {
    EntryBody::User {
        message: Message::user(text),
        synthetic: true,
    }
}
