//! TaskList.
//!
//! What is listed can be read by TaskGet and TaskOutput: both ask `visibility.rs`. A teammate sees
//! the list of its team first and then the tasks it made itself.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::TaskStatus;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Refusal, TaskToolContext, answered, line};
use crate::visibility::ListScope;

/// The latest of them; the items of a team's list are not limited.
const MOST: u32 = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// pending, running, completed, failed or killed
    status: Option<String>,
    /// `session` (the default) or `project`: tasks of its other sessions too, which can be read.
    #[schemars(with = "Option<String>")]
    scope: Option<Scope>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Session,
    Project,
}

/// Shows the tasks of the session.
pub(super) struct TaskList(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TaskList {
    fn name(&self) -> &str {
        "TaskList"
    }

    fn description(&self) -> &str {
        "Lists the tasks of this session and its agents; for a teammate, its team's list and its own tasks."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { status, .. } = input::parse(raw)?;
        Ok(Intent {
            summary: status.unwrap_or_default(),
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let list = async {
            let Input { status, scope } = input::parse(&call.input)?;
            let status: Option<TaskStatus> = status
                .map(|word| word.parse())
                .transpose()
                .map_err(|error: codespar_protocol::ParseTaskError| Refusal(error.to_string()))?;
            let scope = match scope {
                Some(Scope::Project) => ListScope::Project,
                Some(Scope::Session) | None => ListScope::Session,
            };
            let TaskToolContext {
                hub,
                caller,
                member,
            } = &self.0;
            let mut tasks = match member {
                Some(member) => hub.items(member, status).await?,
                None => Vec::new(),
            };
            let mut others = hub.readable(caller, scope, status, MOST).await?;
            if member.is_some() && scope == ListScope::Session {
                // The rest of the session is not its work.
                others.retain(|task| task.session_id == Some(caller.session));
            }
            others.retain(|task| tasks.iter().all(|item| item.task_id != task.task_id));
            tasks.extend(others);
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
