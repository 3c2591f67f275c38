//! Tasks and sessions to try a store with.

use std::time::Duration;

use codespar_protocol::{
    Cost, EntryBody, Message, SessionId, SessionMode, TaskId, TaskStatus, TaskType, Usage, Usd,
};
use codespar_store::{
    Capacity, Claimed, NewSession, NewTask, Notify, RunnerId, Store, TaskEnding, TaskStore,
};
use serde_json::Map;

/// A back end, whole.
pub(crate) trait Stores: Store + TaskStore {}

impl<T: Store + TaskStore> Stores for T {}

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// Over before anyone looks.
pub(crate) const SHORT: Duration = Duration::from_millis(30);

pub(crate) async fn expire() {
    tokio::time::sleep(SHORT * 2).await;
}

pub(crate) fn runner(name: &str) -> RunnerId {
    RunnerId(name.to_owned())
}

pub(crate) fn task(kind: TaskType) -> NewTask {
    NewTask {
        id: TaskId::new(kind),
        task_type: kind,
        subject: "try it".to_owned(),
        description: None,
        active_form: None,
        metadata: Map::new(),
        blocked_by: Vec::new(),
        output_file: None,
        session_id: None,
        parent_task_id: None,
        notify: Notify::Nobody,
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
    }
}

pub(crate) async fn claimed(
    store: &dyn TaskStore,
    who: &str,
    total: u32,
    lease: Duration,
) -> Vec<Claimed> {
    let claimed = store.claim_tasks(&runner(who), &room(total), lease).await;
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
    }
}

pub(crate) fn said(text: &str) -> EntryBody {
    EntryBody::User {
        message: Message::user(text),
        synthetic: true,
    }
}
