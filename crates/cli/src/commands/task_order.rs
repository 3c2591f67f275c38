//! What a task of `codespar task create` is made from.

use codespar_agent::mcp::{McpError, McpStatus};
use codespar_protocol::{SessionId, SessionMode, TaskType};
use codespar_store::{NewSession, SqliteStore, Store};
use codespar_tasks::{
    AgentOrder, BashOrder, MonitorOrder, Workflow, WorkflowOrder, builtin_kinds, find_workflow,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::task::CreateArgs;
use crate::{
    error::CommandError,
    gather::definitions,
    mcp::{Gathered, unknown},
    place::Place,
    settings::Settings,
};

/// Agents of a task that nobody's agent started are at the first level.
const DEPTH: u32 = 1;

/// The order, as metadata. Whatever is wrong with it is said before there is a task.
pub(super) async fn of(
    args: &CreateArgs,
    place: &Place,
    store: &SqliteStore,
) -> Result<Map<String, Value>, CommandError> {
    check_flags(args)?;
    let kind = args.task_type;
    let needs = |flag: &str| CommandError::Usage(format!("a {kind} task needs {flag}"));
    match kind {
        TaskType::LocalBash => {
            let command = args.command.clone().ok_or_else(|| needs("--command"))?;
            Ok(as_map(&BashOrder {
                command,
                root: place.root.clone(),
                cwd: place.cwd.clone(),
            }))
        }
        TaskType::LocalAgent | TaskType::RemoteAgent => {
            let prompt = args.prompt.clone().ok_or_else(|| needs("--prompt"))?;
            agent(prompt, subagent_type(args), place, store).await
        }
        TaskType::Dream => {
            let prompt = args.prompt.clone().unwrap_or_default();
            agent(prompt, "dream", place, store).await
        }
        TaskType::LocalWorkflow => {
            let name = args
                .workflow
                .as_deref()
                .ok_or_else(|| needs("--workflow"))?;
            workflow(name, place)
        }
        TaskType::MonitorMcp => monitor(args, place),
        TaskType::InProcessTeammate => Err(CommandError::Usage(format!(
            "{kind} tasks cannot be made by hand"
        ))),
    }
}

/// A flag that a type of task has no use for is a mistake, not a wish to be passed over.
fn check_flags(args: &CreateArgs) -> Result<(), CommandError> {
    let kind = args.task_type;
    let is_agent = kind.is_agent();
    let flags = [
        (
            "--command",
            args.command.is_some(),
            kind == TaskType::LocalBash,
        ),
        ("--prompt", args.prompt.is_some(), is_agent),
        (
            "--workflow",
            args.workflow.is_some(),
            kind == TaskType::LocalWorkflow,
        ),
    ];
    match flags.iter().find(|(_, given, fits)| *given && !fits) {
        Some((flag, ..)) => Err(CommandError::Usage(format!(
            "{flag} does not go with a {kind} task"
        ))),
        None => Ok(()),
    }
}

fn subagent_type(args: &CreateArgs) -> &str {
    let mut metadata = args.metadata.iter();
    metadata
        .find(|(key, _)| key == "subagent_type")
        .and_then(|(_, value)| value.as_str())
        .unwrap_or("general-purpose")
}

async fn agent(
    prompt: String,
    kind: &str,
    place: &Place,
    store: &SqliteStore,
) -> Result<Map<String, Value>, CommandError> {
    let agent_session = SessionId::new();
    let new = NewSession {
        id: agent_session,
        cwd: place.cwd.clone(),
        model: String::new(),
        mode: SessionMode::Normal,
    };
    store.create_session(new).await?;
    Ok(as_map(&AgentOrder {
        prompt,
        subagent_type: kind.to_owned(),
        model: None,
        max_budget_usd: None,
        max_turns: None,
        name: None,
        isolation: None,
        root: place.root.clone(),
        cwd: place.cwd.clone(),
        agent_session,
        depth: DEPTH,
        tool_use_id: None,
    }))
}

fn workflow(name: &str, place: &Place) -> Result<Map<String, Value>, CommandError> {
    let file = find_workflow(name, &place.root, &place.cwd).map_err(CommandError::Usage)?;
    let custom = definitions(place);
    let builtin = builtin_kinds();
    let mut kinds: Vec<&str> = builtin.iter().map(|kind| kind.name.as_str()).collect();
    kinds.extend(custom.agents.keys().map(String::as_str));
    kinds.sort_unstable();
    kinds.dedup();
    let workflow = Workflow::load(&file, &kinds)
        .map_err(|problem| CommandError::Usage(problem.to_string()))?;
    let order = WorkflowOrder {
        file,
        workflow,
        root: place.root.clone(),
        cwd: place.cwd.clone(),
        depth: DEPTH,
    };
    Ok(order.to_metadata())
}

/// The server must be there, and allowed: whoever runs the task cannot ask.
fn monitor(args: &CreateArgs, place: &Place) -> Result<Map<String, Value>, CommandError> {
    let metadata: Map<String, Value> = args.metadata.iter().cloned().collect();
    let order = MonitorOrder::read(&metadata, &place.root).map_err(CommandError::Usage)?;
    let settings = Settings::load(place)?;
    let found = Gathered::read(place, &settings, &place.root, &[])?;
    let (servers, _) = found.servers(place, &settings, &place.root)?;
    match servers.get(&order.server).map(|server| server.status()) {
        None => Err(CommandError::Usage(unknown(&servers, &order.server))),
        Some(McpStatus::NeedsApproval) => Err(CommandError::Failed(format!(
            "the MCP server `{}`: {}",
            order.server,
            McpError::NeedsApproval
        ))),
        Some(_) => Ok(order.to_metadata()),
    }
}

fn as_map(order: &impl Serialize) -> Map<String, Value> {
    match json!(order) {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
