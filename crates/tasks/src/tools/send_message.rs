//! SendMessage.
//!
//! The message is stored before the tool answers. It needs no permission: the agent it goes to runs
//! by the authority recorded when it was made.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{TaskToolContext, answered};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// An agent's id or name; `all` for everybody else of the team.
    to: String,
    /// Self-contained: it sees its own conversation, not yours.
    message: String,
}

/// Continues an agent with its whole context.
pub(super) struct SendMessage(pub(super) TaskToolContext);

#[async_trait]
impl Tool for SendMessage {
    fn name(&self) -> &str {
        "SendMessage"
    }

    fn description(&self) -> &str {
        "Sends an agent a message. A running one gets it at its next step; a finished or stopped \
         one goes on with its whole context. Its answer comes as a notification."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::SideBySide
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { to, message } = input::parse(raw)?;
        let first = message.lines().next().unwrap_or_default();
        Ok(Intent {
            summary: format!("{to}: {first}"),
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let send = async {
            let Input { to, message } = input::parse(&call.input)?;
            let TaskToolContext {
                hub,
                caller,
                member,
            } = &self.0;
            let records = hub
                .send_from(caller, member.as_ref(), &to, &message, Some(&call.id))
                .await?;
            let lines: Vec<String> = records
                .iter()
                .map(|record| {
                    format!(
                        "sent to {} (attempt {}, {})",
                        record.task_id, record.attempt, record.status
                    )
                })
                .collect();
            Ok(ToolOutput::text(lines.join("\n")))
        };
        answered(send.await)
    }
}
