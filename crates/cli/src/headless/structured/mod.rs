//! An answer in the form of a JSON schema: a tool that takes it, and turns until it was called.
//!
//! The model gives its answer as the input of `StructuredOutput`, which is checked against the
//! schema. What does not fit is an error that says where, so that the model can mend it. A run that
//! ends without the call is asked for it, a few times.

mod schema;

use std::sync::Arc;

use async_trait::async_trait;
use codespar_agent::Agent;
use codespar_policy::Access;
use codespar_protocol::{Cost, Message, Outcome, RunResult, Usage};
use codespar_tools::{Call, Context, Effect, Intent, Registry, Tool, ToolError, ToolOutput};
use parking_lot::Mutex;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use tokio_util::sync::CancellationToken;

use crate::error::CommandError;

const NAME: &str = "StructuredOutput";
/// How often a run that ended without the call is asked for it.
const MOST_REMINDERS: u32 = 3;
const REMINDER: &str =
    "Give your final answer by calling the StructuredOutput tool now, and nothing else.";
/// Part of the system prompt.
pub(crate) const NOTE: &str = "When the work is done, give your final answer by calling the \
                               StructuredOutput tool, once.";

/// What the tool was last given in this turn.
type Slot = Arc<Mutex<Option<Value>>>;

/// The form that answers are to have.
pub(crate) struct StructuredAnswers {
    slot: Slot,
    tools: Registry,
}

/// The end of a turn, with the answer if it has the form.
pub(crate) struct StructuredEnd {
    pub(crate) result: RunResult,
    pub(crate) output: Option<Value>,
}

/// A turn of which no form was asked for.
impl From<RunResult> for StructuredEnd {
    fn from(result: RunResult) -> Self {
        Self {
            result,
            output: None,
        }
    }
}

impl StructuredAnswers {
    /// The input of a tool is an object, so the answer is one.
    pub(crate) fn new(mut schema: Value) -> Result<Self, CommandError> {
        let slot = Slot::default();
        match schema.get("type") {
            None => schema["type"] = "object".into(),
            Some(kind) if kind == "object" => {}
            Some(kind) => {
                return Err(CommandError::Usage(format!(
                    "the JSON schema of an answer has to be that of an object, not of {kind}"
                )));
            }
        }
        let raw = to_raw_value(&schema).map_err(|error| CommandError::Usage(error.to_string()))?;
        let mut tools = Registry::default();
        tools.add(Arc::new(AnswerTool {
            schema,
            raw: raw.into(),
            slot: slot.clone(),
        }));
        Ok(Self { slot, tools })
    }

    /// Offers the tool, and runs until there is an answer of the form, or it is not worth asking
    /// again.
    pub(crate) async fn run(
        &self,
        agent: &mut Agent,
        prompt: Option<Message>,
        cancel: &CancellationToken,
    ) -> StructuredEnd {
        agent.add_tools(&self.tools);
        self.slot.lock().take();
        let mut result = agent.run(prompt, cancel.clone()).await;
        for _ in 0..MOST_REMINDERS {
            if result.outcome != Outcome::Success || self.slot.lock().is_some() {
                break;
            }
            let reminder = Some(Message::user(REMINDER));
            let next = agent.run(reminder, cancel.clone()).await;
            result = joined(result, next);
        }
        let output = self.slot.lock().take();
        if result.outcome == Outcome::Success && output.is_none() {
            result.outcome = Outcome::ErrorMaxStructuredOutputRetries;
            result.result = "the model gave no answer of the form that was asked for".to_owned();
        }
        StructuredEnd { result, output }
    }
}

/// Adds what some runs cost to what others did, by model; sorted by name.
pub(crate) fn add_costs(sum: &mut Vec<(String, Usage, Cost)>, more: &[(String, Usage, Cost)]) {
    for (model, usage, cost) in more {
        match sum.iter_mut().find(|(name, ..)| name == model) {
            Some((_, tokens, price)) => {
                *tokens += *usage;
                *price += *cost;
            }
            None => sum.push((model.clone(), *usage, *cost)),
        }
    }
    sum.sort_by(|a, b| a.0.cmp(&b.0));
}

/// Two runs of one turn as one.
fn joined(first: RunResult, mut last: RunResult) -> RunResult {
    last.num_turns += first.num_turns;
    last.tool_uses += first.tool_uses;
    last.duration_ms += first.duration_ms;
    last.duration_api_ms += first.duration_api_ms;
    last.usage += first.usage;
    last.cost += first.cost;
    add_costs(&mut last.by_model, &first.by_model);
    let later = std::mem::take(&mut last.permission_denials);
    last.permission_denials = first.permission_denials;
    last.permission_denials.extend(later);
    last
}

struct AnswerTool {
    schema: Value,
    raw: Arc<RawValue>,
    slot: Slot,
}

#[async_trait]
impl Tool for AnswerTool {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Takes your final answer, in the form of its input schema. Call it once, when the work is done."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        self.raw.clone()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, input: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let value: Value = serde_json::from_str(input.get())
            .map_err(|error| ToolError(format!("the input is not JSON: {error}")))?;
        schema::check(&self.schema, &value)
            .map_err(|wrong| ToolError(format!("the answer does not fit the schema: {wrong}")))?;
        Ok(Intent {
            summary: String::new(),
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        match serde_json::from_str(call.input.get()) {
            Ok(value) => {
                *self.slot.lock() = Some(value);
                ToolOutput::text("taken")
            }
            Err(error) => ToolOutput::error(format!("the input is not JSON: {error}")),
        }
    }
}
