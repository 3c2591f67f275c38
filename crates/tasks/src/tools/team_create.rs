//! TeamCreate.
//!
//! Rules decide on the kind of each member, as they do for `Task`. All members are made or none is.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{Answer, TaskToolContext, answered, as_json};
use crate::NewMember;

const KIND: &str = "general-purpose";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What the team is called.
    name: String,
    members: Vec<Member>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Member {
    /// What the others call it.
    name: String,
    /// Its kind; general-purpose if not said.
    subagent_type: Option<String>,
    /// What it begins with. Without, it waits for a message or an item of the list.
    prompt: Option<String>,
    /// haiku, sonnet, opus or an id.
    model: Option<String>,
}

impl Member {
    fn kind(&self) -> &str {
        self.subagent_type.as_deref().unwrap_or(KIND)
    }
}

/// Makes a team.
pub(super) struct TeamCreate(pub(super) TaskToolContext);

#[async_trait]
impl Tool for TeamCreate {
    fn name(&self) -> &str {
        "TeamCreate"
    }

    fn description(&self) -> &str {
        "Makes a team of named agents that stay, for work of many pieces. They write to each other \
         and share a task list: members take what is free and do each item once. When a member \
         has nothing left to do it rests, and its report comes as a notification.\n\
         {{needs TaskCreate}}TaskCreate with task_type in_process_teammate adds an item \
         (`blocked_by` for order).\n\
         {{needs SendMessage}}Write to one, or to `all`, with SendMessage.\n\
         {{needs TeamDelete}}TeamDelete ends it."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(raw)?;
        let mut access = Vec::new();
        for member in &input.members {
            self.0
                .hub
                .kind(member.kind())
                .map_err(|error| ToolError(error.to_string()))?;
            access.push(Access::Named(member.kind().to_owned()));
        }
        let names: Vec<&str> = input
            .members
            .iter()
            .map(|member| member.name.as_str())
            .collect();
        Ok(Intent {
            summary: format!("{}: {}", input.name, names.join(", ")),
            access,
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        answered(self.create(&call, context).await)
    }
}

impl TeamCreate {
    async fn create(&self, call: &Call, context: &Context) -> Answer {
        let input: Input = input::parse(&call.input)?;
        let members = input
            .members
            .into_iter()
            .map(|member| NewMember {
                kind: member.kind().to_owned(),
                name: member.name,
                prompt: member.prompt.filter(|text| !text.trim().is_empty()),
                model: member.model,
            })
            .collect();
        let TaskToolContext { hub, caller, .. } = &self.0;
        let made = hub
            .create_team(caller, &input.name, members, &context.cwd(), Some(&call.id))
            .await?;
        let members: Vec<_> = made
            .iter()
            .map(|record| json!({ "name": record.subject, "id": record.task_id }))
            .collect();
        Ok(as_json(&json!({ "team": input.name, "members": members })))
    }
}
