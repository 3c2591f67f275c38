//! TaskOutput.
//!
//! The output is read by bytes: the answer names the offset at which the next call goes on, so a
//! long output is read in parts and a growing one continued.
//!
//! A call with `bash_id` is one of `BashOutput`, as models know it from elsewhere: it goes on after
//! what the last such call returned, and `filter` leaves out lines. Where it goes on is kept in
//! memory; after a restart it begins anew.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::{TaskId, TaskRecord};
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::Mutex;

use super::{Answer, TaskToolContext, answered};
use crate::{HubError, OutputPart};

/// In bytes, as the one below.
const DEFAULT_LIMIT: usize = 20_000;
/// Below the 30,000 characters at which a result is spilled to a file.
const MOST: usize = 29_000;
/// Of a compiled `filter`: it comes from a model.
const FILTER_BYTES: usize = 1 << 20;
/// In milliseconds, as the one below.
const DEFAULT_TIMEOUT: u64 = 30_000;
const LONGEST_TIMEOUT: u64 = 600_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
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

/// The input of a `BashOutput` call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewOutput {
    bash_id: String,
    /// A regular expression; only lines that match it are returned.
    filter: Option<String>,
}

/// What a call asks for.
enum Wanted {
    Part(Input),
    New { id: String, filter: Option<Regex> },
}

impl Wanted {
    /// By the field that names the task.
    fn read(raw: &RawValue) -> Result<Self, ToolError> {
        let fields: Map<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
        if !fields.contains_key("bash_id") {
            return Ok(Self::Part(input::parse(raw)?));
        }
        let NewOutput { bash_id, filter } = input::parse(raw)?;
        let filter = filter.map(|filter| {
            RegexBuilder::new(&filter)
                .size_limit(FILTER_BYTES)
                .build()
                .map_err(|error| {
                    ToolError(format!("`filter` is not a regular expression: {error}"))
                })
        });
        Ok(Self::New {
            id: bash_id,
            filter: filter.transpose()?,
        })
    }

    fn id(&self) -> &str {
        match self {
            Self::Part(input) => &input.task_id,
            Self::New { id, .. } => id,
        }
    }
}

/// Reads a task's output.
pub(super) struct TaskOutput {
    context: TaskToolContext,
    /// Where the next call with `bash_id` goes on.
    returned: Mutex<HashMap<TaskId, u64>>,
}

impl TaskOutput {
    pub(super) fn new(context: TaskToolContext) -> Self {
        Self {
            context,
            returned: Mutex::default(),
        }
    }

    async fn read(&self, call: &Call) -> Answer {
        let TaskToolContext { hub, caller, .. } = &self.context;
        let wanted = Wanted::read(&call.input)?;
        let id = hub.find_to_read(caller, wanted.id()).await?;
        if let Wanted::Part(Input {
            block: Some(true),
            timeout_ms,
            ..
        }) = &wanted
        {
            let patience = timeout_ms.unwrap_or(DEFAULT_TIMEOUT).min(LONGEST_TIMEOUT);
            let wait = hub.wait(&id, &call.cancel);
            // Not over yet is an answer too.
            let _ = tokio::time::timeout(Duration::from_millis(patience), wait).await;
        }
        let record = hub.store().task(&id).await.map_err(HubError::from)?;
        let mut head = format!("{} is {}", record.task_id, record.status);
        if let Some(code) = record.exit_code {
            head.push_str(&format!(", exit code {code}"));
        }
        if let Some(error) = &record.error {
            head.push_str(&format!(" ({error})"));
        }
        Ok(ToolOutput::text(match wanted {
            Wanted::Part(input) => {
                let limit = input.limit.unwrap_or(DEFAULT_LIMIT).min(MOST);
                let offset = input.offset.unwrap_or(0);
                let OutputPart { text, next } = hub.output(&record, offset, limit).await?;
                format!("{head}; next offset {next}\n{text}")
            }
            Wanted::New { filter, .. } => {
                let text = self.new_lines(&record).await?;
                let kept = |line: &&str| filter.as_ref().is_none_or(|filter| filter.is_match(line));
                let lines: Vec<&str> = text.lines().filter(kept).collect();
                match lines.as_slice() {
                    [] => format!("{head}; no new output"),
                    lines => format!("{head}\n{}", lines.join("\n")),
                }
            }
        }))
    }

    /// What was written after the last call, in whole lines while the task goes on: the rest of a
    /// line comes with the next call. Two calls at once return nothing twice.
    async fn new_lines(&self, record: &TaskRecord) -> Result<String, HubError> {
        let mut returned = self.returned.lock().await;
        let offset = returned.get(&record.task_id).copied().unwrap_or(0);
        let part = self.context.hub.output(record, offset, MOST).await?;
        let OutputPart { mut text, mut next } = part;
        let is_full = next - offset == MOST as u64;
        let goes_on = is_full || !record.status.is_final();
        // Bytes that are not text were replaced, and can no longer be counted.
        let rest = text.rfind('\n').map(|end| text.split_off(end + 1));
        if let Some(rest) = rest {
            if goes_on && !rest.contains('\u{fffd}') {
                next -= rest.len() as u64;
            } else {
                text.push_str(&rest);
            }
        } else if goes_on && !is_full {
            (text, next) = (String::new(), offset);
        }
        returned.insert(record.task_id.clone(), next);
        Ok(text)
    }
}

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
        Ok(Intent {
            summary: Wanted::read(raw)?.id().to_owned(),
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        answered(self.read(&call).await)
    }
}
