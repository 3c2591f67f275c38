//! What a task of `codespar task create` runs, and what it may do.
//!
//! The same checks as for tasks that an agent makes, with the user in place of an agent: the
//! workflow must be trusted, a monitor's server approved, a flag must fit the type. The spec is
//! complete; a worker that runs it later reads no file to find out what to do.

use std::path::Path;

use codespar_mcp::{McpError, McpStatus};
use codespar_protocol::{
    AgentSpec, Authority, Isolation, SessionId, SessionMode, ShellSpec, TaskSpec, TaskType,
    WorkflowSpec,
};
use codespar_store::{Database, NewSession};
use codespar_tasks::{builtin_kinds, find_workflow, load_workflow, monitor_spec, rule_texts};
use serde_json::{Map, Value};

use super::task::CreateArgs;
use crate::error::CommandError;
use codespar_runtime::{
    ProjectDir, ProjectOptions, Settings, definitions, extra_dirs,
    mcp::{ServerList, ServerReach, unknown},
    rules, shared_repository,
    trust::TrustFilter,
};

/// Agents of a task that nobody's agent started are at the first level. They may start agents
/// themselves, up to the limit.
const DEPTH: u32 = 1;

/// What to run. Whatever is wrong with it is said before there is a task.
///
/// The conversation of an agent is created here, before the task.
pub(super) async fn of(
    args: &CreateArgs,
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<TaskSpec, CommandError> {
    check_flags(args)?;
    let kind = args.task_type;
    let needs = |flag: &str| CommandError::Usage(format!("a {kind} task needs {flag}"));
    match kind {
        TaskType::LocalBash => {
            let command = args.command.clone().ok_or_else(|| needs("--command"))?;
            Ok(TaskSpec::Shell(ShellSpec {
                command,
                root: project_dir.root.clone(),
                cwd: project_dir.cwd.clone(),
                timeout_ms: args
                    .max_wall_seconds
                    .map(|limit| limit.saturating_mul(1_000)),
            }))
        }
        TaskType::LocalAgent | TaskType::RemoteAgent => {
            let prompt = args.prompt.clone().ok_or_else(|| needs("--prompt"))?;
            let agent = agent(prompt, subagent_type(args), args, project_dir, store).await?;
            Ok(match kind {
                TaskType::RemoteAgent => TaskSpec::RemoteAgent(agent),
                _ => TaskSpec::Agent(agent),
            })
        }
        TaskType::Dream => {
            let prompt = args.prompt.clone().unwrap_or_default();
            let agent = agent(prompt, "dream", args, project_dir, store).await?;
            Ok(TaskSpec::Dream(agent))
        }
        TaskType::LocalWorkflow => {
            let name = args
                .workflow
                .as_deref()
                .ok_or_else(|| needs("--workflow"))?;
            workflow(name, project_dir)
        }
        TaskType::MonitorMcp => monitor(args, project_dir),
        TaskType::InProcessTeammate => Err(CommandError::Usage(format!(
            "{kind} tasks belong to a team of a session: its agent makes one with TeamCreate and \
             adds items with TaskCreate; for an agent of its own use --type local_agent"
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
            "--max-wall-seconds",
            args.max_wall_seconds.is_some(),
            is_agent || kind == TaskType::LocalBash,
        ),
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

/// A kind that does not exist is noticed when the task runs.
fn subagent_type(args: &CreateArgs) -> &str {
    let mut metadata = args.metadata.iter();
    metadata
        .find(|(key, _)| key == "subagent_type")
        .and_then(|(_, value)| value.as_str())
        .unwrap_or("general-purpose")
}

/// The model of the session is left empty: the process that runs the agent chooses it.
async fn agent(
    prompt: String,
    kind: &str,
    args: &CreateArgs,
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<AgentSpec, CommandError> {
    let agent_session = SessionId::new();
    let new = NewSession {
        id: agent_session,
        cwd: project_dir.cwd.clone(),
        model: String::new(),
        mode: SessionMode::Normal,
    };
    store.create_session(new).await?;
    Ok(AgentSpec {
        prompt,
        subagent_type: kind.to_owned(),
        model: None,
        max_budget_usd: None,
        max_turns: None,
        max_wall_seconds: args.max_wall_seconds,
        name: None,
        isolation: isolation(kind, project_dir),
        root: project_dir.root.clone(),
        cwd: project_dir.cwd.clone(),
        agent_session,
        depth: DEPTH,
        tool_use_id: None,
    })
}

/// Steps may name built-in kinds and those of trusted definitions. The file is parsed now and
/// stored with the task; a later change of it has no effect.
fn workflow(name: &str, project_dir: &ProjectDir) -> Result<TaskSpec, CommandError> {
    let file =
        find_workflow(name, &project_dir.root, &project_dir.cwd).map_err(CommandError::Usage)?;
    let custom = definitions(project_dir, TrustFilter::Needed);
    let builtin = builtin_kinds();
    let mut kinds: Vec<&str> = builtin.iter().map(|kind| kind.name.as_str()).collect();
    kinds.extend(custom.agents.keys().map(String::as_str));
    kinds.sort_unstable();
    kinds.dedup();
    let project = &project_dir.trust;
    let gate = |path: &Path, text: &str| project.may_use_workflow(path, text);
    let workflow = load_workflow(&file, &kinds, &gate)
        .map_err(|problem| CommandError::Usage(problem.to_string()))?;
    Ok(TaskSpec::Workflow(WorkflowSpec {
        file,
        workflow,
        root: project_dir.root.clone(),
        cwd: project_dir.cwd.clone(),
        depth: DEPTH,
    }))
}

/// The server must be there, and allowed: whoever runs the task cannot ask. `connectable` starts
/// nothing; only the configuration is looked at.
fn monitor(args: &CreateArgs, project_dir: &ProjectDir) -> Result<TaskSpec, CommandError> {
    let metadata: Map<String, Value> = args.metadata.iter().cloned().collect();
    let monitor = monitor_spec(&metadata, &project_dir.root).map_err(CommandError::Usage)?;
    let settings = Settings::load(project_dir)?;
    let found = ServerList::read(project_dir, &settings, &[], ServerReach::All)?;
    let (servers, _) = found.connectable(project_dir, &settings)?;
    match servers.get(&monitor.server).map(|server| server.status()) {
        None => Err(CommandError::Usage(unknown(&servers, &monitor.server))),
        Some(McpStatus::NeedsApproval) => Err(CommandError::Failed(format!(
            "the MCP server `{}`: {}",
            monitor.server,
            McpError::NeedsApproval
        ))),
        Some(_) => Ok(TaskSpec::Monitor(monitor)),
    }
}

/// Where agents of a custom kind work. Built-in kinds have none.
fn isolation(kind: &str, project_dir: &ProjectDir) -> Option<Isolation> {
    definitions(project_dir, TrustFilter::Needed)
        .agents
        .get(kind)?
        .isolation
}

/// What the user allows it here; whoever runs it cannot allow more. The tree is a fresh id: the
/// task is the top of its own tree, with its own output directory.
pub(super) fn authority(
    args: &CreateArgs,
    settings: &Settings,
    project_dir: &ProjectDir,
) -> Result<Authority, CommandError> {
    let options = ProjectOptions {
        permission_mode: args.permission_mode,
        allowed_tools: args.allowed_tools.clone(),
        ..ProjectOptions::default()
    };
    let (rules, mode) = rules(settings, &options)?;
    let address = shared_repository(project_dir);
    Ok(Authority {
        session: None,
        tree: SessionId::new(),
        project_root: project_dir.root.clone(),
        mode: mode.to_string(),
        rules: rule_texts(&rules),
        extra_dirs: extra_dirs(settings, &options)?,
        max_budget_usd: options.max_budget_usd,
        repository: address.as_ref().map(|address| address.name().to_owned()),
        remote: address.map(|address| address.url().to_owned()),
        user: project_dir.environment.account().map(str::to_owned),
        trace: None,
    })
}
