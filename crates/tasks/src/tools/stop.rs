//! TaskStop.
//!
//! Waits up to eight seconds for the end; a task that takes longer is shown as running, with the
//! stop on record.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{TaskToolContext, answered, line};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Its id, or an agent's name.
    #[serde(alias = "shell_id", alias = "bash_id")]
    task_id: String,
    reason: Option<String>,
}

pub(super) struct TaskStop(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TaskStop {
    fn name(&self) -> &str {
        "TaskStop"
    }

    fn description(&self) -> &str {
        "Stops a task with all its processes. An agent can be continued later."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    /// Stopping one's own task changes nothing a rule would guard.
    fn effect(&self) -> Effect {
        Effect::SideBySide
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { task_id, .. } = input::parse(raw)?;
        Ok(Intent {
            summary: task_id,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let stop = async {
            let Input { task_id, reason } = input::parse(&call.input)?;
            let id = self.0.hub.find(&self.0.caller, &task_id).await?;
            let by = format!("stopped by {}", self.0.caller.name);
            let reason = match reason {
                Some(reason) => format!("{by}: {reason}"),
                None => by,
            };
            let record = self.0.hub.stop(&id, &reason).await?;
            Ok(ToolOutput::text(line(&record)))
        };
        answered(stop.await)
    }
}
