//! TaskCreate.
//!
//! `inspect` reports what the task will do with the same accesses as if the agent did it itself: a
//! command is decided on as for `Bash`, a workflow by reading its file and by each of its commands.
//! So a rule cannot be avoided by moving the work into a task.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::{
    OnDependencyFailure, ParseTaskError, ShellSpec, TaskRecord, TaskType, WorkflowSpec,
};
use codespar_store::Notify;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{Refusal, TaskToolContext, answered, shown};
use crate::{AgentLaunch, TaskExtra, find_workflow, load_workflow, monitor_spec};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// local_bash (a command), local_agent or remote_agent (a prompt), local_workflow (a file),
    /// dream (notes for the project's memory), in_process_teammate (an item of a team's list),
    /// monitor_mcp (watches an MCP server)
    task_type: String,
    /// One line
    subject: String,
    description: Option<String>,
    active_form: Option<String>,
    /// For local_bash
    command: Option<String>,
    /// For agents
    prompt: Option<String>,
    /// End a command or an agent then
    max_wall_seconds: Option<u64>,
    /// Ids of tasks that must complete first
    blocked_by: Option<Vec<String>>,
    /// `fail` (default) or `run`
    #[schemars(with = "Option<String>")]
    on_dependency_failure: Option<OnDependencyFailure>,
    /// Agent: `subagent_type`. Workflow: `file` (name or path). Item: `team`. Monitor: `server`,
    /// optional `resources` (URIs), `max_events`, `duration_s`, `interval_s`
    metadata: Option<Map<String, Value>>,
}

/// Makes a background task.
pub(super) struct TaskCreate {
    context: TaskToolContext,
    /// Workflows that permission was asked for, by the input of the call. What runs is what was
    /// looked at, whatever has become of the file. An entry is removed when the call runs.
    seen: Mutex<HashMap<String, WorkflowSpec>>,
}

impl Input {
    fn kind(&self) -> Result<TaskType, ToolError> {
        self.task_type
            .parse()
            .map_err(|error: ParseTaskError| ToolError(error.to_string()))
    }

    /// A monitor has `duration_s`, the steps of a workflow run by their file.
    fn check_time_limit(&self) -> Result<(), ToolError> {
        let kind = self.kind()?;
        let is_limitable = kind.is_agent() && kind != TaskType::InProcessTeammate;
        match self.max_wall_seconds {
            None => Ok(()),
            Some(0) => Err(ToolError(
                "`max_wall_seconds` must be at least 1".to_owned(),
            )),
            Some(_) if is_limitable || kind == TaskType::LocalBash => Ok(()),
            Some(_) => Err(ToolError(format!(
                "`max_wall_seconds` does not go with a {kind} task"
            ))),
        }
    }

    fn word(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.get(key)?.as_str()
    }

    /// The part of the input that every type of task has. Dependencies are found as tasks of the
    /// caller's own tree.
    async fn extra(&self, context: &TaskToolContext) -> Result<TaskExtra, Refusal> {
        let mut blocked_by = Vec::new();
        for id in self.blocked_by.iter().flatten() {
            blocked_by.push(context.hub.find(&context.caller, id).await?);
        }
        Ok(TaskExtra {
            description: self.description.clone(),
            active_form: self.active_form.clone(),
            blocked_by,
            metadata: self.metadata.clone().unwrap_or_default(),
            on_dependency_failure: self.on_dependency_failure.unwrap_or_default(),
        })
    }
}

#[async_trait]
impl Tool for TaskCreate {
    fn name(&self) -> &str {
        "TaskCreate"
    }

    fn description(&self) -> &str {
        "Starts work in the background and returns at once. You are notified of its end: do not \
         poll."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, raw: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(raw)?;
        input.check_time_limit()?;
        let access = match (input.kind()?, &input.command) {
            (TaskType::LocalBash, Some(command)) => vec![Access::Command(command.clone())],
            (TaskType::LocalBash, None) => {
                return Err(ToolError("a local_bash task needs `command`".to_owned()));
            }
            (TaskType::LocalWorkflow, _) => self.look_at_workflow(raw, &input, context)?,
            // It runs by the rules of the worker, which may be looser than those here.
            (kind @ TaskType::RemoteAgent, _) => vec![Access::Named(kind.to_string())],
            _ => vec![Access::Nothing],
        };
        let summary = input.command.unwrap_or(input.subject);
        Ok(Intent { summary, access })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let record = self.create(&call, context.cwd()).await;
        answered(record.map(shown))
    }
}

impl TaskCreate {
    pub(super) fn new(context: TaskToolContext) -> Self {
        Self {
            context,
            seen: Mutex::default(),
        }
    }

    /// Reads the file and says what it will do: the commands of a workflow need the same
    /// permission as any.
    fn look_at_workflow(
        &self,
        raw: &RawValue,
        input: &Input,
        context: &Context,
    ) -> Result<Vec<Access>, ToolError> {
        let TaskToolContext { hub, caller, .. } = &self.context;
        let name = input.word("file").ok_or_else(|| {
            ToolError("a local_workflow task needs `metadata.file`: a name or a path".to_owned())
        })?;
        let cwd = context.cwd();
        let file = find_workflow(name, &caller.root, &cwd).map_err(ToolError)?;
        let kinds: Vec<&str> = hub.kinds().iter().map(|kind| kind.name.as_str()).collect();
        let workflow = load_workflow(&file, &kinds, &|path, text| {
            hub.may_use_workflow(path, text)
        })
        .map_err(|problem| ToolError(problem.to_string()))?;
        let mut access = vec![Access::Read(file.clone())];
        access.extend(workflow.commands().map(|text| Access::Command(text.into())));
        let order = WorkflowSpec {
            file,
            workflow,
            root: caller.root.clone(),
            cwd,
            depth: caller.depth + 1,
        };
        let mut seen = self.seen.lock();
        match seen.get(raw.get()) {
            Some(earlier) if *earlier != order => {
                // Which of the two was allowed cannot be told any more.
                seen.remove(raw.get());
                Err(ToolError(
                    "the workflow's file has just been changed; try again".to_owned(),
                ))
            }
            _ => {
                seen.insert(raw.get().to_owned(), order);
                Ok(access)
            }
        }
    }

    /// The type decides which fields are needed; a missing one is named in the refusal.
    async fn create(&self, call: &Call, cwd: PathBuf) -> Result<TaskRecord, Refusal> {
        let input: Input = input::parse(&call.input)?;
        let extra = input.extra(&self.context).await?;
        let TaskToolContext {
            hub,
            caller,
            member,
        } = &self.context;
        let kind = input.kind()?;
        let prompt = || {
            let needed = || Refusal(format!("a {kind} task needs `prompt`"));
            let given = |prompt: &String| !prompt.trim().is_empty();
            input.prompt.clone().filter(given).ok_or_else(needed)
        };
        let launch = |prompt: String| AgentLaunch {
            description: input.subject.clone(),
            prompt,
            kind: input
                .word("subagent_type")
                .unwrap_or("general-purpose")
                .to_owned(),
            model: None,
            max_turns: None,
            max_wall_seconds: input.max_wall_seconds,
            max_budget: None,
            isolation: None,
            name: None,
            cwd: cwd.clone(),
            tool_use_id: Some(call.id.clone()),
            notify: Notify::Session,
        };
        Ok(match kind {
            TaskType::LocalBash => {
                let needed = || Refusal("a local_bash task needs `command`".to_owned());
                let shell = ShellSpec {
                    command: input.command.clone().ok_or_else(needed)?,
                    root: caller.root.clone(),
                    cwd,
                    timeout_ms: input
                        .max_wall_seconds
                        .map(|limit| limit.saturating_mul(1_000)),
                };
                hub.create_bash(caller, &input.subject, shell, extra)
                    .await?
            }
            TaskType::LocalAgent => hub.launch(caller, launch(prompt()?), extra).await?,
            TaskType::RemoteAgent => hub.launch_remote(caller, launch(prompt()?), extra).await?,
            TaskType::Dream => {
                let prompt = input.prompt.clone().unwrap_or_default();
                hub.launch_dream(caller, launch(prompt), extra).await?
            }
            TaskType::LocalWorkflow => {
                let order = self.seen.lock().remove(call.input.get());
                let order = order.ok_or_else(|| {
                    Refusal("the workflow's file has just been changed; try again".to_owned())
                })?;
                hub.create_workflow(caller, &input.subject, order, extra)
                    .await?
            }
            TaskType::InProcessTeammate => {
                if input.prompt.is_some() || input.command.is_some() {
                    return Err(Refusal(
                        "an item of a team's list has no `prompt` or `command`: say what is to be \
                         done in `subject` and `description`"
                            .to_owned(),
                    ));
                }
                hub.add_item(caller, member.as_ref(), &input.subject, extra)
                    .await?
            }
            TaskType::MonitorMcp => {
                let monitor = monitor_spec(&extra.metadata, &caller.root).map_err(Refusal)?;
                let call = Some(&call.id);
                hub.create_monitor(caller, &input.subject, monitor, call, extra)
                    .await?
            }
        })
    }
}
