//! TaskUpdate.
//!
//! Spec and authority are not among the fields: what a task runs never changes. Items of a team's
//! list go through `TaskHub::change_item`, which knows owners; other tasks are changed directly.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_store::{OwnerRule, TaskChange};
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{Refusal, TaskToolContext, answered, line};
use crate::HubError;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    task_id: String,
    /// A step of its lifecycle.
    status: Option<String>,
    subject: Option<String>,
    description: Option<String>,
    /// What to show while it runs.
    active_form: Option<String>,
    /// Added key by key; null takes a key away.
    metadata: Option<Map<String, Value>>,
    /// More tasks to wait for.
    add_blocked_by: Option<Vec<String>>,
    /// Take it, if nobody has it; empty to give it back.
    owner: Option<String>,
}

/// Changes a task's record.
pub(super) struct TaskUpdate(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TaskUpdate {
    fn name(&self) -> &str {
        "TaskUpdate"
    }

    fn description(&self) -> &str {
        "Changes a task of yours: subject, description, metadata, dependencies, owner, or a step of \
         its lifecycle. What it runs stays as it is."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(raw)?;
        Ok(Intent {
            access: vec![Access::Named(input.task_id.clone())],
            summary: input.task_id,
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let update = async {
            let input: Input = input::parse(&call.input)?;
            let id = self.0.hub.find(&self.0.caller, &input.task_id).await?;
            let wrong = |error: codespar_protocol::ParseTaskError| Refusal(error.to_string());
            let TaskToolContext {
                hub,
                caller,
                member,
            } = &self.0;
            let mut add_blocked_by = Vec::new();
            for id in input.add_blocked_by.unwrap_or_default() {
                add_blocked_by.push(hub.find(caller, &id).await?);
            }
            let change = TaskChange {
                status: input
                    .status
                    .map(|word| word.parse())
                    .transpose()
                    .map_err(wrong)?,
                subject: input.subject,
                description: input.description,
                active_form: input.active_form,
                metadata: input.metadata.unwrap_or_default(),
                add_blocked_by,
                owner_must_be_free: match input.owner.as_deref() {
                    Some("") | None => OwnerRule::Replace,
                    Some(_) => OwnerRule::ClaimFree,
                },
                owner: input
                    .owner
                    .map(|name| Some(name).filter(|name| !name.is_empty())),
            };
            let task = hub.store().task(&id).await.map_err(HubError::from)?;
            let record = match task.team_list() {
                Some(_) => {
                    hub.change_item(caller, member.as_ref(), &task, change)
                        .await?
                }
                None => hub.change(&id, change).await?,
            };
            Ok(ToolOutput::text(line(&record)))
        };
        answered(update.await)
    }
}
