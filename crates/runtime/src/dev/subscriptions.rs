//! `subscribe_pr_activity` and `unsubscribe_pr_activity`, for agents that direct others.
//!
//! A subscription is a task that looks at the pull request at intervals and reports what is new; it
//! survives the process like any other task. The tools only start and stop it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tasks::{Caller, TaskHub};
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, input};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use codespar_dev::{Failure, Linker, RepositoryRef, subscribe, unsubscribe};

/// Which pull requests the tools speak of, and for whom.
#[derive(Clone)]
pub(super) struct Subscriptions {
    /// Makes and stops the tasks that wait for news.
    pub(super) hub: Arc<TaskHub>,
    /// Who is told.
    pub(super) caller: Caller,
    /// Reaches the repository.
    pub(super) linker: Arc<dyn Linker>,
    pub(super) repository: RepositoryRef,
    /// How often the forge is asked.
    pub interval: Duration,
}

impl Subscriptions {
    /// The two tools.
    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(PrTool {
                subscriptions: self.clone(),
                verb: Verb::Subscribe,
            }),
            Arc::new(PrTool {
                subscriptions: self.clone(),
                verb: Verb::Unsubscribe,
            }),
        ]
    }

    /// Subscribing again to the same pull request gives the task that exists.
    async fn act(&self, verb: Verb, number: u64) -> Result<String, Failure> {
        match verb {
            Verb::Subscribe => {
                let forge = self
                    .linker
                    .forge(&self.repository)
                    .await
                    .map_err(Failure::Refused)?;
                let task = subscribe(
                    &self.hub,
                    &self.caller,
                    &*forge,
                    self.repository.clone(),
                    number,
                    self.interval,
                )
                .await?;
                Ok(format!(
                    "Subscribed to #{number} ({}): reviews, comments, checks, conflicts and its end arrive \
                     as notifications.",
                    task.task_id
                ))
            }
            Verb::Unsubscribe => {
                let ended = unsubscribe(&self.hub, &self.caller, &self.repository, number).await?;
                Ok(match ended {
                    Some(_) => format!("Unsubscribed from #{number}."),
                    None => format!("There was no subscription to #{number}."),
                })
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Subscribe,
    Unsubscribe,
}

/// Both tools have the same input, so one type serves them.
struct PrTool {
    subscriptions: Subscriptions,
    verb: Verb,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The pull request's number.
    number: u64,
}

#[async_trait]
impl Tool for PrTool {
    fn name(&self) -> &str {
        match self.verb {
            Verb::Subscribe => "subscribe_pr_activity",
            Verb::Unsubscribe => "unsubscribe_pr_activity",
        }
    }

    fn description(&self) -> &str {
        match self.verb {
            Verb::Subscribe => {
                "Follows a pull request: review comments, results of checks, conflicts that appear, \
                 and its merge or close arrive as notifications, each once. Returns at once."
            }
            Verb::Unsubscribe => "Stops following a pull request.",
        }
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::SideBySide
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { number } = input::parse(raw)?;
        Ok(Intent {
            summary: format!("#{number}"),
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        let Input { number } = match input::parse(&call.input) {
            Ok(input) => input,
            Err(ToolError(message)) => return ToolOutput::error(message),
        };
        match self.subscriptions.act(self.verb, number).await {
            Ok(text) => ToolOutput::text(text),
            Err(failure) => ToolOutput::error(failure.to_string()),
        }
    }
}
