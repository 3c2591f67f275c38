//! The list of tasks that the surface shows: its rows, kept up to date while it is open, and what
//! the user does there.

use std::{collections::HashMap, sync::Arc, time::Duration};

use codespar_protocol::{EntryBody, Message, Role, SessionId, TaskId, TaskRecord, TaskSpec};
use codespar_runtime::Project;
use codespar_store::ChangeKind;
use codespar_tui::{TaskRow, UserAction};
use tokio::task::JoinHandle;

use super::{SessionDriver, tasks, view::SessionView};
use crate::{error::CommandError, slash::Which};

/// Of a task's output, in bytes.
const TAIL: usize = 4_000;
/// Rows are read again at most so often.
const PAUSE: Duration = Duration::from_millis(250);
/// Output of tasks grows without a change in the store.
const LOOK: Duration = Duration::from_secs(1);

/// Updates the list until it is dropped.
pub(super) struct TaskFollower(JoinHandle<()>);

impl Drop for TaskFollower {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SessionDriver {
    /// A surface without a list gets a text. The first rows open the list; those that follow only
    /// update it, so a list that the user has closed stays closed.
    pub(super) async fn show_tasks(&mut self, which: Which) -> Result<(), CommandError> {
        let session = self.session();
        if !self.view.has_task_list() {
            let text = tasks::list(&self.project, session, which).await?;
            self.say(&text);
            return Ok(());
        }
        let mut list = TaskRows::new(self.project.clone(), session, which);
        self.view.show_tasks(list.read().await?);
        let view = self.view.clone();
        let follow = tokio::spawn(async move { update(&*view, list).await });
        self.task_list = Some(TaskFollower(follow));
        Ok(())
    }

    /// What the user did in the list. `None` if the action is another.
    pub(super) async fn task_action(
        &mut self,
        action: &UserAction,
    ) -> Option<Result<(), CommandError>> {
        let done = match action {
            UserAction::StopTask(id) => tasks::stop(&self.project, id.as_str()).await.map(drop),
            UserAction::MessageTask(id, text) => {
                let sent = self.project.hub.send_by_user(id, text).await;
                sent.map(drop)
                    .map_err(|error| CommandError::Failed(error.to_string()))
            }
            UserAction::OpenTask(id) => self.open_task(id).await,
            UserAction::TasksClosed => {
                self.task_list = None;
                Ok(())
            }
            _ => return None,
        };
        Some(done)
    }

    /// The conversation of its agent, or its output.
    async fn open_task(&mut self, id: &TaskId) -> Result<(), CommandError> {
        let record = self.project.store.task(id).await?;
        let messages = match record.agent() {
            Some(agent) => conversation(&self.project, agent.agent_session).await?,
            None => vec![Arc::new(Message::user(
                tasks::status(&self.project, id.as_str()).await?,
            ))],
        };
        self.view.transcript(&messages, &self.project.redactor);
        Ok(())
    }
}

/// All entries in the order of the record, also those that a later rewind took back.
async fn conversation(
    project: &Project,
    session: SessionId,
) -> Result<Vec<Arc<Message>>, CommandError> {
    let entries = project.store.entries(session, 0).await?;
    let messages = entries.into_iter().filter_map(|entry| match entry.body {
        EntryBody::User { message, .. } | EntryBody::Assistant { message, .. } => Some(message),
        EntryBody::ToolResult { result, .. } => Some(Message {
            role: Role::User,
            content: vec![result],
        }),
        _ => None,
    });
    Ok(messages.map(Arc::new).collect())
}

/// While no task runs, nothing is read until one changes. Ends with the `TaskFollower` that holds
/// it. Output is looked at once a second, since it is no change in the store.
async fn update(view: &dyn SessionView, mut list: TaskRows) {
    let hub = list.project.hub.clone();
    let Ok(mut changes) = hub.changes().follow().await else {
        return;
    };
    let mut is_running = true;
    loop {
        let change = changes.until(|change| matches!(change.kind, ChangeKind::Task { .. }));
        match is_running {
            true => drop(tokio::time::timeout(LOOK, change).await),
            false => change.await,
        }
        tokio::time::sleep(PAUSE).await;
        // A store that fails is read again with the next change.
        if let Ok(rows) = list.read().await {
            is_running = rows.iter().any(|row| !row.state.is_final());
            view.update_tasks(rows);
        }
    }
}

/// The rows of the list. What an attempt that is over wrote is read once.
struct TaskRows {
    project: Arc<Project>,
    session: Option<SessionId>,
    which: Which,
    /// The end of what such attempts wrote.
    written: HashMap<(TaskId, u32), Vec<String>>,
}

impl TaskRows {
    fn new(project: Arc<Project>, session: Option<SessionId>, which: Which) -> Self {
        Self {
            project,
            session,
            which,
            written: HashMap::new(),
        }
    }

    async fn read(&mut self) -> Result<Vec<TaskRow>, CommandError> {
        let tasks = tasks::chosen(&self.project, self.session, self.which).await?;
        let mut rows = Vec::with_capacity(tasks.len());
        for task in &tasks {
            rows.push(row(task, self.tail(task).await));
        }
        Ok(rows)
    }

    /// The last lines of its output; the first of them may be cut. None if they cannot be read.
    async fn tail(&mut self, task: &TaskRecord) -> Vec<String> {
        let key = (task.task_id.clone(), task.attempt);
        if let Some(known) = self.written.get(&key) {
            return known.clone();
        }
        let Ok(tail) = self.project.hub.output_tail(task, TAIL).await else {
            return Vec::new();
        };
        let lines: Vec<String> = tail.text.lines().map(str::to_owned).collect();
        if task.status.is_final() {
            self.written.insert(key, lines.clone());
        }
        lines
    }
}

fn row(task: &TaskRecord, output: Vec<String>) -> TaskRow {
    let end = task.ended_at.unwrap_or_else(jiff::Timestamp::now);
    let elapsed = task
        .started_at
        .and_then(|start| end.duration_since(start).try_into().ok());
    TaskRow {
        id: task.task_id.clone(),
        parent: task.parent_task_id.clone(),
        subject: task.subject.clone(),
        kind: kind(task),
        state: task.status,
        model: task.agent().and_then(|agent| agent.model.clone()),
        elapsed: elapsed.unwrap_or_default(),
        tokens: task.usage.total_tokens(),
        cost: task.cost_usd,
        output,
        accepts_messages: task.runs_agent(),
    }
}

fn kind(task: &TaskRecord) -> String {
    match (&task.spec, task.agent()) {
        (_, Some(agent)) => agent.subagent_type.clone(),
        (Some(TaskSpec::Shell(_)), None) => "shell".to_owned(),
        _ => task.task_type.to_string(),
    }
}
