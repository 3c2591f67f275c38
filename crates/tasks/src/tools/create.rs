//! TaskCreate.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::{TaskId, TaskType};
use codespar_store::Notify;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{Desk, Refusal, answered, as_json};
use crate::{AgentLaunch, BashOrder, TaskExtra};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// local_bash (a command) or local_agent (a prompt)
    task_type: String,
    /// One line.
    subject: String,
    description: Option<String>,
    /// For local_bash.
    command: Option<String>,
    /// For local_agent.
    prompt: Option<String>,
    /// Ids of tasks that must complete first.
    blocked_by: Option<Vec<String>>,
    /// `subagent_type` chooses the kind of an agent.
    metadata: Option<Map<String, Value>>,
}

/// Makes a background task.
pub(super) struct TaskCreate(pub(super) Desk);

impl Input {
    fn kind(&self) -> Result<TaskType, ToolError> {
        self.task_type
            .parse()
            .map_err(|error: codespar_protocol::ParseTaskError| ToolError(error.to_string()))
    }
}

#[async_trait]
impl Tool for TaskCreate {
    fn name(&self) -> &str {
        "TaskCreate"
    }

    fn description(&self) -> &str {
        "Starts work in the background and returns at once; it survives a crash. You are notified \
         of its end: do not poll."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(raw)?;
        let access = match (input.kind()?, &input.command) {
            (TaskType::LocalBash, Some(command)) => Access::Command(command.clone()),
            (TaskType::LocalBash, None) => {
                return Err(ToolError("a local_bash task needs `command`".to_owned()));
            }
            _ => Access::Nothing,
        };
        let summary = input.command.unwrap_or(input.subject);
        Ok(Intent {
            summary,
            access: vec![access],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let create = async {
            let input: Input = input::parse(&call.input)?;
            let blocked_by: Result<Vec<TaskId>, _> = input
                .blocked_by
                .iter()
                .flatten()
                .map(|id| id.parse())
                .collect();
            let metadata = input.metadata.clone().unwrap_or_default();
            let extra = TaskExtra {
                description: input.description.clone(),
                blocked_by: blocked_by.map_err(|error: codespar_protocol::ParseTaskError| {
                    Refusal(error.to_string())
                })?,
                metadata,
            };
            let Desk { hub, caller } = &self.0;
            let record = match (input.kind()?, &input.command, &input.prompt) {
                (TaskType::LocalBash, Some(command), _) => {
                    let order = BashOrder {
                        command: command.clone(),
                        root: caller.root.clone(),
                        cwd: context.cwd(),
                    };
                    hub.create_bash(caller, &input.subject, &order, extra)
                        .await?
                }
                (TaskType::LocalAgent, _, Some(prompt)) => {
                    let kind = extra.metadata.get("subagent_type").and_then(Value::as_str);
                    let launch = AgentLaunch {
                        description: input.subject.clone(),
                        prompt: prompt.clone(),
                        kind: kind.unwrap_or("general-purpose").to_owned(),
                        model: None,
                        max_turns: None,
                        isolation: None,
                        name: None,
                        cwd: context.cwd(),
                        tool_use_id: Some(call.id.clone()),
                        notify: Notify::Session,
                    };
                    hub.launch(caller, launch, extra).await?
                }
                (TaskType::LocalAgent, _, None) => {
                    return Err(Refusal("a local_agent task needs `prompt`".to_owned()));
                }
                (other, ..) => {
                    return Err(Refusal(format!(
                        "{other} tasks cannot be made here; use local_bash or local_agent"
                    )));
                }
            };
            Ok(as_json(&record))
        };
        answered(create.await)
    }
}
