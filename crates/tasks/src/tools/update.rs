//! TaskUpdate.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::TaskId;
use codespar_store::{OwnerRule, TaskChange};
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{Desk, Refusal, answered, line};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Its id.
    task_id: String,
    /// A step of its lifecycle.
    status: Option<String>,
    subject: Option<String>,
    description: Option<String>,
    /// Added key by key; null takes a key away.
    metadata: Option<Map<String, Value>>,
    /// More tasks to wait for.
    add_blocked_by: Option<Vec<String>>,
    /// Take it, if nobody has it.
    owner: Option<String>,
}

/// Changes a task's record.
pub(super) struct TaskUpdate(pub(super) Desk);

#[async_trait]
impl Tool for TaskUpdate {
    fn name(&self) -> &str {
        "TaskUpdate"
    }

    fn description(&self) -> &str {
        "Changes a task: words, metadata, dependencies, owner, or a step of its lifecycle."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::SideBySide
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(raw)?;
        Ok(Intent {
            summary: input.task_id,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let update = async {
            let input: Input = input::parse(&call.input)?;
            let id = self
                .0
                .hub
                .find(self.0.caller.session, &input.task_id)
                .await?;
            let wrong = |error: codespar_protocol::ParseTaskError| Refusal(error.to_string());
            let ids: Result<Vec<TaskId>, _> = input
                .add_blocked_by
                .unwrap_or_default()
                .iter()
                .map(|id| id.parse())
                .collect();
            let change = TaskChange {
                status: input
                    .status
                    .map(|word| word.parse())
                    .transpose()
                    .map_err(wrong)?,
                subject: input.subject,
                description: input.description,
                metadata: input.metadata.unwrap_or_default(),
                add_blocked_by: ids.map_err(wrong)?,
                owner_must_be_free: match input.owner {
                    Some(_) => OwnerRule::ClaimFree,
                    None => OwnerRule::Replace,
                },
                owner: input
                    .owner
                    .map(|name| Some(name).filter(|name| !name.is_empty())),
            };
            let record = self.0.hub.change(&id, change).await?;
            Ok(ToolOutput::text(line(&record)))
        };
        answered(update.await)
    }
}
