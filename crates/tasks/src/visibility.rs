//! Which tasks an agent can find: one rule for the list and for every tool that takes an id.
//!
//! ```text
//! read (TaskList, TaskGet, TaskOutput)             tasks of the caller's project
//! act (TaskUpdate, TaskStop, SendMessage, resume)  tasks below the caller's top-level session
//! ```
//!
//! The tasks of a session tree are all of one project, so what can be acted on can be read.

use codespar_protocol::{Authority, TaskId, TaskRecord, TaskStatus};
use codespar_store::{StoreError, TaskFilter};
use serde_json::Value;

use crate::{Caller, HubError, TaskHub, find_task};

/// What a caller wants with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Read,
    /// Change, stop or continue it.
    Act,
}

/// How much of what can be read is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ListScope {
    /// Tasks below the caller's top-level session.
    #[default]
    Session,
    Project,
}

impl Reach {
    fn covers(self, task: &TaskRecord, caller: &Authority) -> bool {
        let Some(own) = &task.authority else {
            return false;
        };
        match self {
            Self::Read => own.project_root == caller.project_root,
            Self::Act => own.tree == caller.tree,
        }
    }

    fn filter(self, caller: &Authority) -> TaskFilter {
        match self {
            Self::Read => TaskFilter {
                project_root: Some(caller.project_root.clone()),
                ..TaskFilter::default()
            },
            Self::Act => TaskFilter {
                tree: Some(caller.tree),
                ..TaskFilter::default()
            },
        }
    }
}

impl TaskHub {
    /// The latest tasks that the caller can read, oldest first.
    pub(crate) async fn readable(
        &self,
        caller: &Caller,
        scope: ListScope,
        status: Option<TaskStatus>,
        limit: u32,
    ) -> Result<Vec<TaskRecord>, HubError> {
        let reach = match scope {
            ListScope::Session => Reach::Act,
            ListScope::Project => Reach::Read,
        };
        let filter = TaskFilter {
            status,
            limit: Some(limit),
            ..reach.filter(&(caller.authority)())
        };
        Ok(self.store.tasks(filter).await?)
    }

    /// A task to change, stop or continue: of the caller's tree.
    pub async fn find(&self, caller: &Caller, text: &str) -> Result<TaskId, HubError> {
        self.find_for(Reach::Act, caller, text).await
    }

    /// A task to look at: of the caller's project.
    pub(crate) async fn find_to_read(
        &self,
        caller: &Caller,
        text: &str,
    ) -> Result<TaskId, HubError> {
        self.find_for(Reach::Read, caller, text).await
    }

    /// By id, by the name an agent was given in this session, or by the beginning of an id.
    ///
    /// An id of another project gives the same error as one that does not exist: an agent cannot
    /// find out what others run. Names are searched from the latest task backwards, so a name used
    /// twice means the second; a name noted in the metadata counts only for tasks that run no
    /// agent, since agents have a name of their own that nobody can change later.
    async fn find_for(
        &self,
        reach: Reach,
        caller: &Caller,
        text: &str,
    ) -> Result<TaskId, HubError> {
        let authority = (caller.authority)();
        if let Ok(id) = text.parse::<TaskId>() {
            let task = self.store.task(&id).await?;
            return match task {
                task if reach.covers(&task, &authority) => Ok(id),
                task if Reach::Read.covers(&task, &authority) => Err(HubError::Refused(format!(
                    "{id} belongs to another session of this project: it can be read, not changed \
                     from here"
                ))),
                _ => Err(StoreError::NoSuchTask(id).into()),
            };
        }
        let filter = TaskFilter {
            session_id: Some(caller.session),
            ..TaskFilter::default()
        };
        let tasks = self.store.tasks(filter).await?;
        let named = |task: &&TaskRecord| task.agent_name() == Some(text);
        // What runs no agent has no name but the one that its maker noted.
        let noted = |task: &&TaskRecord| {
            let name = task.metadata.get("name").and_then(Value::as_str);
            !task.runs_agent() && name == Some(text)
        };
        let mut latest_first = tasks.iter().rev();
        let found = latest_first.clone().find(named);
        if let Some(task) = found.or_else(|| latest_first.find(noted)) {
            return Ok(task.task_id.clone());
        }
        if let Some(id) = find_task(&*self.store, text, reach.filter(&authority)).await? {
            return Ok(id);
        }
        Err(HubError::Refused(format!(
            "there is no agent `{text}`; known here: {}",
            known(&tasks)
        )))
    }
}

/// The agents that a message could go to.
fn known(tasks: &[TaskRecord]) -> String {
    let known: Vec<String> = tasks
        .iter()
        .filter(|task| task.runs_agent())
        .map(|task| match task.agent_name() {
            Some(name) => format!("{} ({name})", task.task_id),
            None => task.task_id.to_string(),
        })
        .collect();
    if known.is_empty() {
        "none yet".to_owned()
    } else {
        known.join(", ")
    }
}
