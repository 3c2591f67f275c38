//! The tools by which agents make, watch and direct tasks.
//!
//! ```text
//! the user's agent   the six, Task, TeamCreate, TeamDelete, SendMessage
//! subagent           of the six and Task those that its kind lists
//! worker             the six
//! teammate           as a subagent, and always TaskGet, TaskList, TaskUpdate, SendMessage
//! coordinator        Agent, SendMessage, TaskStop, TeamCreate, TeamDelete
//! ```
//!
//! Every tool finds tasks through [`TaskHub::find`], so an agent sees the tasks of its own tree
//! only. A refusal is a tool result with an error, never a failure of the run.

mod agent;
mod create;
mod get;
mod list;
mod output;
mod send_message;
mod shell;
mod stop;
mod team_create;
mod team_delete;
mod update;

pub use shell::{MakesTasks, shell_tool};

use std::sync::Arc;

use codespar_protocol::TaskRecord;
use codespar_tools::{Registry, Tool, ToolError, ToolOutput};
use serde::Serialize;

use crate::{Caller, HubError, TaskHub, TeamMember};

/// Of no use to an agent before it has made a task, and so held back until then where the agent was
/// not given them by name.
pub const TOOLS_FOR_MADE_TASKS: [&str; 8] = [
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskStop",
    "TaskOutput",
    "TeamCreate",
    "TeamDelete",
    "SendMessage",
];

/// What every tool here holds.
#[derive(Clone)]
struct TaskToolContext {
    hub: Arc<TaskHub>,
    caller: Caller,
    /// Of a teammate.
    member: Option<TeamMember>,
}

/// The six task tools; without background tasks, those that make none.
pub fn task_tools(hub: &Arc<TaskHub>, caller: &Caller) -> Vec<Arc<dyn Tool>> {
    let context = TaskToolContext {
        hub: hub.clone(),
        caller: caller.clone(),
        member: None,
    };
    six(&context)
}

fn six(context: &TaskToolContext) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if context.hub.disabled.is_none() {
        tools.push(Arc::new(create::TaskCreate::new(context.clone())));
    }
    let others: [Arc<dyn Tool>; 5] = [
        Arc::new(get::TaskGet(context.clone())),
        Arc::new(list::TaskList(context.clone())),
        Arc::new(update::TaskUpdate(context.clone())),
        Arc::new(stop::TaskStop(context.clone())),
        Arc::new(output::TaskOutput::new(context.clone())),
    ];
    tools.extend(others);
    tools
}

/// The tools of the user's agent for teams. Subagents have none of them: teams belong to the
/// session of the user. None without background tasks, which teammates are.
pub fn team_tools(hub: &Arc<TaskHub>, caller: &Caller) -> Vec<Arc<dyn Tool>> {
    if hub.disabled.is_some() {
        return Vec::new();
    }
    let context = TaskToolContext {
        hub: hub.clone(),
        caller: caller.clone(),
        member: None,
    };
    vec![
        Arc::new(team_create::TeamCreate(context.clone())),
        Arc::new(team_delete::TeamDelete(context.clone())),
        Arc::new(send_message::SendMessage(context)),
    ]
}

/// In two parts, because the tools of its kind are filtered by name and those of a teammate must
/// stay.
#[derive(Default)]
pub struct TeammateTools {
    /// Without these it is not one, whatever its kind has.
    pub always: Vec<Arc<dyn Tool>>,
    /// Those of the six that its kind may have, in the form for teammates.
    pub by_kind: Vec<Arc<dyn Tool>>,
}

pub fn teammate_tools(hub: &Arc<TaskHub>, caller: &Caller, member: &TeamMember) -> TeammateTools {
    let context = TaskToolContext {
        hub: hub.clone(),
        caller: caller.clone(),
        member: Some(member.clone()),
    };
    let (mut always, by_kind): (Vec<_>, Vec<_>) = six(&context)
        .into_iter()
        .partition(|tool| matches!(tool.name(), "TaskGet" | "TaskList" | "TaskUpdate"));
    always.push(Arc::new(send_message::SendMessage(context)));
    TeammateTools { always, by_kind }
}

/// The tool that starts subagents.
pub fn subagent_tools(hub: &Arc<TaskHub>, caller: &Caller) -> Vec<Arc<dyn Tool>> {
    let context = TaskToolContext {
        hub: hub.clone(),
        caller: caller.clone(),
        member: None,
    };
    vec![Arc::new(agent::TaskTool::new(context, agent::Naming::Task))]
}

/// All that a coordinator has. `Agent` also answers to `Task`, the name that models know.
pub fn coordinator_tools(hub: &Arc<TaskHub>, caller: &Caller) -> Registry {
    let context = TaskToolContext {
        hub: hub.clone(),
        caller: caller.clone(),
        member: None,
    };
    let mut registry = Registry::default();
    registry.add(Arc::new(agent::TaskTool::new(
        context.clone(),
        agent::Naming::Agent,
    )));
    registry.add(Arc::new(send_message::SendMessage(context.clone())));
    registry.add(Arc::new(stop::TaskStop(context.clone())));
    registry.add(Arc::new(team_create::TeamCreate(context.clone())));
    registry.add(Arc::new(team_delete::TeamDelete(context)));
    registry.alias("Task", "Agent");
    registry
}

impl From<HubError> for Refusal {
    fn from(error: HubError) -> Self {
        Self(error.to_string())
    }
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        Self(error.0)
    }
}

/// Anything that goes back to the model as an error.
struct Refusal(String);

type Answer = Result<ToolOutput, Refusal>;

fn answered(answer: Answer) -> ToolOutput {
    answer.unwrap_or_else(|Refusal(message)| ToolOutput::error(message))
}

fn as_json(value: &impl Serialize) -> ToolOutput {
    match serde_json::to_string_pretty(value) {
        Ok(text) => ToolOutput::text(text),
        Err(error) => ToolOutput::error(error.to_string()),
    }
}

/// A task as a model sees it: the rules it runs by are none of its business, and long.
fn shown(record: TaskRecord) -> ToolOutput {
    let record = TaskRecord {
        authority: None,
        ..record
    };
    as_json(&record.view())
}

/// A task in one line: id, status, type, subject, owner, what it waits for.
fn line(task: &TaskRecord) -> String {
    let mut line = format!(
        "{} {} {} {}",
        task.task_id, task.status, task.task_type, task.subject
    );
    let runs_it = task.spec.as_ref().and_then(|spec| spec.owner());
    if let Some(owner) = task
        .owner
        .as_deref()
        .filter(|owner| Some(*owner) != runs_it)
    {
        line.push_str(&format!(" (owner {owner})"));
    }
    if !task.blocked_by.is_empty() {
        let ids: Vec<&str> = task.blocked_by.iter().map(|id| id.as_str()).collect();
        line.push_str(&format!(" (after {})", ids.join(", ")));
    }
    line
}
