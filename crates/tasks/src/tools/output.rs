//! TaskOutput.
//!
//! The output is read by bytes: the answer names the offset at which the next call goes on, so a
//! long output is read in parts and a growing one continued.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{TaskToolContext, answered};
use crate::{HubError, TaskHub};

/// In bytes, as the one below.
const DEFAULT_LIMIT: usize = 20_000;
/// Below the 30,000 characters at which a result is spilled to a file.
const MOST: usize = 29_000;
/// In milliseconds, as the one below.
const DEFAULT_TIMEOUT: u64 = 30_000;
const LONGEST_TIMEOUT: u64 = 600_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(alias = "bash_id")]
    task_id: String,
    /// Byte to start at.
    offset: Option<u64>,
    /// Bytes at most.
    limit: Option<usize>,
    /// Wait for its end first.
    block: Option<bool>,
    /// How long to wait.
    timeout_ms: Option<u64>,
}

/// Reads a task's output.
pub(super) struct TaskOutput(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TaskOutput {
    fn name(&self) -> &str {
        "TaskOutput"
    }

    fn description(&self) -> &str {
        "Reads what a task has written so far. Its end comes as a notification: do not poll."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(raw)?;
        Ok(Intent {
            summary: input.task_id,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let read = async {
            let input: Input = input::parse(&call.input)?;
            let id = self
                .0
                .hub
                .find_to_read(&self.0.caller, &input.task_id)
                .await?;
            if input.block == Some(true) {
                let patience = input
                    .timeout_ms
                    .unwrap_or(DEFAULT_TIMEOUT)
                    .min(LONGEST_TIMEOUT);
                let wait = self.0.hub.wait(&id, &call.cancel);
                // Not over yet is an answer too.
                let _ = tokio::time::timeout(Duration::from_millis(patience), wait).await;
            }
            let record = self.0.hub.store().task(&id).await.map_err(HubError::from)?;
            let limit = input.limit.unwrap_or(DEFAULT_LIMIT).min(MOST);
            let (text, next) = TaskHub::output(&record, input.offset.unwrap_or(0), limit);
            let mut head = format!("{} is {}", record.task_id, record.status);
            if let Some(code) = record.exit_code {
                head.push_str(&format!(", exit code {code}"));
            }
            if let Some(error) = &record.error {
                head.push_str(&format!(" ({error})"));
            }
            Ok(ToolOutput::text(format!(
                "{head}; next offset {next}\n{text}"
            )))
        };
        answered(read.await)
    }
}
