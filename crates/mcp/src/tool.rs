//! A server's tool as one of ours.
//!
//! Such a tool has no access that could be inspected: what the server does is its own affair. The
//! rules decide by the name of the tool alone, and the user sees the arguments.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput};
use rmcp::model::{JsonObject, Tool as ServerTool};
use serde_json::value::{RawValue, to_raw_value};

use crate::{outcome, progress::ShowProgress, server::McpServer};

/// Longer descriptions are cut: every request carries them.
const DESCRIPTION: usize = 4_000;
/// Characters of the arguments that are shown in one line.
const SUMMARY: usize = 200;

pub(super) struct McpTool {
    name: String,
    description: String,
    schema: Arc<RawValue>,
    effect: Effect,
    server: Arc<McpServer>,
    /// What the server calls it.
    tool: String,
}

impl McpTool {
    /// `None` for a tool whose schema cannot be written, which JSON never is.
    pub(super) fn new(name: String, server: Arc<McpServer>, tool: &ServerTool) -> Option<Self> {
        let mut schema = (*tool.input_schema).clone();
        // Providers insist on it.
        schema.entry("type").or_insert_with(|| "object".into());
        let says_reading = tool
            .annotations
            .as_ref()
            .is_some_and(|hints| hints.read_only_hint == Some(true));
        let description = tool.description.as_deref().unwrap_or_default();
        Some(Self {
            name,
            description: shortened(description, DESCRIPTION),
            schema: to_raw_value(&schema).ok()?.into(),
            // A hint may put calls side by side; that each is on record before it begins does not
            // depend on the word of the server, nor does permission.
            effect: if says_reading {
                Effect::SideBySide
            } else {
                Effect::Changes
            },
            server,
            tool: tool.name.to_string(),
        })
    }
}

#[async_trait]
impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn input_schema(&self) -> Arc<RawValue> {
        self.schema.clone()
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn inspect(&self, input: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let arguments = arguments(input)?;
        let summary = match arguments.is_empty() {
            true => String::new(),
            false => shortened(&serde_json::Value::Object(arguments).to_string(), SUMMARY),
        };
        Ok(Intent {
            summary,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let arguments = match arguments(&call.input) {
            Ok(arguments) => arguments,
            Err(error) => return error.into(),
        };
        let show = context.output_watch().map(|watch| -> ShowProgress {
            let id = call.id.clone();
            Arc::new(move |line| watch(&id, vec![line]))
        });
        let called = self.server.call(&self.tool, arguments, &call.cancel, show);
        match called.await {
            Ok(result) => {
                let token = self.server.token();
                outcome::output(result, context, &self.name, token.as_deref())
            }
            Err(error) => ToolOutput::error(error),
        }
    }
}

/// An input that is not a JSON object is an error for the model, before the server is called.
fn arguments(input: &RawValue) -> Result<JsonObject, ToolError> {
    serde_json::from_str(input.get())
        .map_err(|error| ToolError(format!("the input is not a JSON object: {error}")))
}

pub(super) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
