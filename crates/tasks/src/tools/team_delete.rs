//! TeamDelete.

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
    /// Which team.
    name: String,
}

/// Takes a team apart.
pub(super) struct TeamDelete(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TeamDelete {
    fn name(&self) -> &str {
        "TeamDelete"
    }

    fn description(&self) -> &str {
        "Ends a team: members at work are stopped, and what they had taken of the task list is free \
         again for a later team of the same name."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { name } = input::parse(raw)?;
        Ok(Intent {
            summary: name,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let delete = async {
            let Input { name } = input::parse(&call.input)?;
            let TaskToolContext { hub, caller, .. } = &self.0;
            let (team, stopped) = hub.delete_team(caller.session, &name).await?;
            let names: Vec<&str> = team.members.iter().map(|(name, _)| name.as_str()).collect();
            let mut text = format!("team {} ({}) is gone", team.name, names.join(", "));
            if !stopped.is_empty() {
                let ids: Vec<&str> = stopped.iter().map(|id| id.as_str()).collect();
                text.push_str(&format!("; stopped at work: {}", ids.join(", ")));
            }
            Ok(ToolOutput::text(text))
        };
        answered(delete.await)
    }
}
