//! The Task tool: subagents, in the foreground or beside the conversation.
//!
//! In the foreground the call waits for the end of the task and gives its result. In the background
//! it returns the id at once, and a notification follows. Either way the agent is a task on record:
//! when the parent is interrupted its child is stopped, and can be continued with `resume`.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::{AttemptOptions, Isolation, TaskRecord, TaskStatus};
use codespar_store::Notify;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{Answer, Refusal, TaskToolContext, answered};
use crate::{AgentLaunch, HubError, Resumption, TaskExtra, WORKER, Waited, inbox};

/// What the tool is called, and so who has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// `Task`, for agents that also work themselves.
    Task,
    /// `Agent`, for a coordinator: its workers always run in the background.
    Agent,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// 3 to 5 words for people
    description: String,
    /// Self-contained: the agent sees only this
    prompt: String,
    subagent_type: Option<String>,
    /// haiku, sonnet, opus or an id
    model: Option<String>,
    /// Return at once; a notification comes at its end. Only with other work to do meanwhile
    run_in_background: Option<bool>,
    /// Id of an agent to continue with this prompt, with all it has seen
    resume: Option<String>,
    max_turns: Option<u32>,
    /// End it then, with what it has found
    max_wall_seconds: Option<u64>,
    /// `worktree`: its own copy of the repository
    #[schemars(with = "Option<String>")]
    isolation: Option<Isolation>,
    /// A name to send messages to
    name: Option<String>,
}

impl Input {
    /// What can be seen from the input alone, before anything is recorded.
    fn check(&self) -> Result<(), ToolError> {
        let refuse = |message: &str| Err(ToolError(message.to_owned()));
        if self.prompt.trim().is_empty() {
            return refuse("`prompt` is empty: say what the agent is to do");
        }
        if self.description.trim().is_empty() {
            return refuse("`description` is empty: give 3 to 5 words for people");
        }
        if self.max_turns == Some(0) {
            return refuse("`max_turns` must be at least 1");
        }
        if self.max_wall_seconds == Some(0) {
            return refuse("`max_wall_seconds` must be at least 1");
        }
        if self.resume.is_some() && (self.isolation.is_some() || self.name.is_some()) {
            return refuse(
                "`isolation` and `name` are fixed when an agent is started: leave them out with `resume`",
            );
        }
        Ok(())
    }

    fn resumption(&self) -> Resumption {
        Resumption {
            message: self.prompt.clone(),
            kind: self.subagent_type.clone(),
            options: AttemptOptions {
                model: self.model.clone(),
                max_turns: self.max_turns,
                max_wall_seconds: self.max_wall_seconds,
            },
        }
    }
}

/// Starts subagents.
pub(super) struct TaskTool {
    context: TaskToolContext,
    naming: Naming,
    description: String,
}

impl TaskTool {
    /// The kinds are listed in the description when the tool is made; only a coordinator sees
    /// `worker`.
    pub(super) fn new(context: TaskToolContext, naming: Naming) -> Self {
        let kinds: Vec<String> = context
            .hub
            .kinds()
            .iter()
            .filter(|kind| {
                (kind.name == WORKER) == (naming == Naming::Agent) || kind.name != WORKER
            })
            .map(|kind| format!("{}: {}", kind.name, kind.description))
            .collect();
        let description = format!(
            "Starts an agent with its own context for one piece of work and gives its final text. \
             For work of many steps or much reading whose details you do not need, and for \
             independent pieces: several calls in one message run at once. Not for one file or one \
             search, nor for what needs this conversation. Kinds: {}.",
            kinds.join("; ")
        );
        Self {
            context,
            naming,
            description,
        }
    }
}

#[async_trait]
impl Tool for TaskTool {
    fn name(&self) -> &str {
        match self.naming {
            Naming::Task => "Task",
            Naming::Agent => "Agent",
        }
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    /// Calls run in parallel: the agents have rules, budgets and path claims of their own.
    fn effect(&self) -> Effect {
        Effect::SideBySide
    }

    /// The access is the kind, so that a rule can allow or deny one kind of agent.
    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(raw)?;
        let kind = self.kind(&input);
        self.context
            .hub
            .kind(&kind)
            .map_err(|error| ToolError(error.to_string()))?;
        input.check()?;
        let model = input.model.as_deref();
        let is_known = self.context.hub.check_model(model);
        is_known.map_err(|error| ToolError(error.to_string()))?;
        Ok(Intent {
            summary: format!("{kind}: {}", input.description),
            access: vec![Access::Named(kind)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        answered(self.start(call, context).await)
    }
}

impl TaskTool {
    fn kind(&self, input: &Input) -> String {
        let default = match self.naming {
            Naming::Task => "general-purpose",
            Naming::Agent => WORKER,
        };
        input
            .subagent_type
            .clone()
            .unwrap_or_else(|| default.to_owned())
    }

    /// The kind of an agent that is resumed; empty if the task runs none, which is refused later.
    async fn kind_of(&self, id: &str) -> Result<String, HubError> {
        let TaskToolContext { hub, caller, .. } = &self.context;
        let id = hub.find(caller, id).await?;
        let record = hub.store().task(&id).await?;
        let kind = record.agent().map(|agent| agent.subagent_type.clone());
        Ok(kind.unwrap_or_default())
    }

    /// A resumed agent keeps the setting for notifications of its first launch. If the call is
    /// cancelled while it waits, the child is stopped before the call returns.
    async fn start(&self, call: Call, context: &Context) -> Answer {
        let input: Input = input::parse(&call.input)?;
        let TaskToolContext { hub, caller, .. } = &self.context;
        let kind = match &input.resume {
            Some(id) => self.kind_of(id).await?,
            None => self.kind(&input),
        };
        let in_background = self.naming == Naming::Agent
            || input.run_in_background == Some(true)
            || hub.kind(&kind).is_ok_and(|kind| kind.background);
        let record = if let Some(id) = &input.resume {
            hub.resume(caller, id, input.resumption(), Some(&call.id))
                .await?
        } else {
            let launch = AgentLaunch {
                description: input.description.clone(),
                prompt: input.prompt.clone(),
                kind,
                model: input.model.clone(),
                max_turns: input.max_turns,
                max_wall_seconds: input.max_wall_seconds,
                max_budget: None,
                isolation: input.isolation,
                name: input.name.clone(),
                cwd: context.cwd(),
                tool_use_id: Some(call.id.clone()),
                notify: if in_background {
                    Notify::Session
                } else {
                    Notify::Nobody
                },
            };
            hub.launch(caller, launch, TaskExtra::default()).await?
        };
        if in_background {
            return Ok(launched(&record));
        }
        match hub.wait(&record.task_id, &call.cancel).await? {
            Waited::Ended(record) => {
                (caller.sink)(inbox::ended(&record));
                Ok(finished(&record))
            }
            Waited::GaveUp => {
                let id = &record.task_id;
                hub.stop(id, "the agent that waited for it was interrupted")
                    .await?;
                Err(Refusal(format!(
                    "interrupted; agent {id} was stopped and can be resumed"
                )))
            }
        }
    }
}

fn launched(record: &TaskRecord) -> ToolOutput {
    text(&json!({
        "success": true,
        "agentId": record.task_id,
        "outputFile": record.output_file,
        "status": "running in the background; a notification comes at its end. Do not poll or wait \
                   for it: with nothing else to do, end your turn",
    }))
}

/// `result` on success, `error` otherwise; the rest is there in both cases. At a limit both are
/// there: the result is what was found until then, and `partial` says so. Costs are those of all
/// attempts.
fn finished(record: &TaskRecord) -> ToolOutput {
    let field = |key: &str| record.metadata.get(key).cloned().unwrap_or(Value::Null);
    let is_success = record.status == TaskStatus::Completed;
    let is_partial = record.metadata.get("partial") == Some(&Value::Bool(true));
    let mut answer = json!({ "success": is_success });
    if let Some(map) = answer.as_object_mut() {
        match (&record.error, is_success) {
            (_, true) => map.insert("result".to_owned(), field("result")),
            (error, false) => {
                let message = error.clone().unwrap_or_else(|| record.status.to_string());
                map.insert("error".to_owned(), json!(message))
            }
        };
        if is_partial {
            map.insert("partial".to_owned(), json!(true));
            map.insert("result".to_owned(), field("result"));
        }
        map.insert("agentId".to_owned(), json!(record.task_id));
        map.insert("outputFile".to_owned(), json!(record.output_file));
        map.insert("totalTokens".to_owned(), json!(record.usage.total_tokens()));
        map.insert("costUsd".to_owned(), json!(record.cost_usd));
        map.insert("durationMs".to_owned(), field("duration_ms"));
        map.insert("toolUses".to_owned(), field("tool_uses"));
    }
    let mut output = text(&answer);
    output.is_error = !is_success;
    output
}

fn text(value: &Value) -> ToolOutput {
    ToolOutput::text(value.to_string())
}
