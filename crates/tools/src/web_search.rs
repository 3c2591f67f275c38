//! WebSearch: a search that the provider makes while it answers.
//!
//! The tool is here for its name, by which lists and rules speak of it. It is never run on this
//! side: the model's calls of it go to the provider with the request. Since nobody is asked before
//! such a call, an agent has it only where a rule allows it.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::{Mode, RuleSet};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};

pub struct WebSearch;

impl WebSearch {
    pub const NAME: &str = "WebSearch";

    /// Whether an agent with these rules may have it.
    pub fn is_allowed(rules: &RuleSet, mode: Mode) -> bool {
        rules.allows_tool(Self::NAME, mode)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Input {}

#[async_trait]
impl Tool for WebSearch {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn description(&self) -> &str {
        "Searches the web, at the provider."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn is_run_by_provider(&self) -> bool {
        true
    }

    fn inspect(&self, _: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        Err(ToolError(
            "the provider searches by itself: use its web_search tool".to_owned(),
        ))
    }

    async fn run(&self, _: Call, _: &Context) -> ToolOutput {
        ToolOutput::error("the provider searches by itself: use its web_search tool")
    }
}
