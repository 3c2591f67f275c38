//! TaskList.
//!
//! A teammate sees the list of its team first and then the tasks it made itself. Tasks of subagents
//! are theirs to list.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::TaskStatus;
use codespar_store::TaskFilter;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Refusal, TaskToolContext, answered, line};
use crate::HubError;

/// The latest of them; the items of a team's list are not limited.
const MOST: u32 = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// pending, running, completed, failed or killed
    status: Option<String>,
}

/// Shows the tasks of the session.
pub(super) struct TaskList(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TaskList {
    fn name(&self) -> &str {
        "TaskList"
    }

    fn description(&self) -> &str {
        "Lists the tasks of this session; for a teammate, its team's list and its own tasks."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { status } = input::parse(raw)?;
        Ok(Intent {
            summary: status.unwrap_or_default(),
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let list = async {
            let Input { status } = input::parse(&call.input)?;
            let status: Option<TaskStatus> = status
                .map(|word| word.parse())
                .transpose()
                .map_err(|error: codespar_protocol::ParseTaskError| Refusal(error.to_string()))?;
            let filter = TaskFilter {
                status,
                session_id: Some(self.0.caller.session),
                limit: Some(MOST),
                ..TaskFilter::default()
            };
            let TaskToolContext { hub, member, .. } = &self.0;
            let mut tasks = match member {
                Some(member) => hub.items(member, status).await?,
                None => Vec::new(),
            };
            let own = hub.store().tasks(filter).await.map_err(HubError::from)?;
            tasks.extend(own);
            let lines: Vec<String> = tasks.iter().map(line).collect();
            Ok(ToolOutput::text(if lines.is_empty() {
                "no tasks".to_owned()
            } else {
                lines.join("\n")
            }))
        };
        answered(list.await)
    }
}
