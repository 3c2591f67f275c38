//! TaskGet.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{TaskToolContext, answered, shown};
use crate::HubError;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    task_id: String,
}

/// Shows one task.
pub(super) struct TaskGet(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TaskGet {
    fn name(&self) -> &str {
        "TaskGet"
    }

    fn description(&self) -> &str {
        "Shows one task: status, dependencies, result, output file."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { task_id } = input::parse(raw)?;
        Ok(Intent {
            summary: task_id,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let get = async {
            let Input { task_id } = input::parse(&call.input)?;
            let id = self.0.hub.find_to_read(&self.0.caller, &task_id).await?;
            let record = self.0.hub.store().task(&id).await.map_err(HubError::from)?;
            Ok(shown(record))
        };
        answered(get.await)
    }
}
