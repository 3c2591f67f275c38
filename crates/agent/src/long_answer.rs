//! One answer, however many calls it takes: going on where it was cut, with all of them on the bill.
//!
//! For whoever asks a model once and has no conversation with it: the dev agent, a review, a plain
//! question. The loop ([`Agent`](crate::Agent)) does not use it: its answers may end in tool calls,
//! and each of them is an entry of a transcript.

use std::sync::Arc;

use codespar_model::{
    Answered, Asker, Budget, Catalogue, Exchange, Meter, Model, ModelError, ModelEvent, Request,
};
use codespar_policy::Redactor;
use codespar_protocol::{ContentBlock, Cost, Message, Role, StopReason, Usage, Usd};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::Stop;

const CONTINUE: &str = include_str!("prompts/continue.md");

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The provider failed for good: retries are over, or would not help.
    #[error(transparent)]
    Model(ModelError),
    /// The call would cost more than what is left of the budget.
    #[error("{0}")]
    Budget(String),
    /// The limit on wall time was reached during the call.
    #[error("{0}")]
    OutOfTime(String),
    /// The user or the process stopped it.
    #[error("stopped")]
    Stopped,
    /// The model declined, or did not come to an end within its limits.
    #[error("{0}")]
    Refused(String),
}

/// A whole answer and what it cost. It is recorded as a step, so that an answer that was paid for
/// is not asked for again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub text: String,
    pub model: String,
    pub usage: Usage,
    /// In dollars; the part that is known.
    pub usd: Usd,
    /// Whether that is all of it.
    pub is_priced: bool,
    /// How many calls it took.
    pub rounds: u32,
    /// It came in one call, which the model ended by itself. Of one that was joined from parts, a
    /// missing end says nothing.
    #[serde(default)]
    pub is_complete: bool,
}

impl Asked {
    /// What it cost; unknown where the model has no price, with the part that is known.
    pub fn cost(&self) -> Cost {
        if self.is_priced {
            Cost::Known(self.usd)
        } else {
            Cost::Unknown(self.usd)
        }
    }
}

/// What calls have come to, whether or not they led to an answer.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    /// Tokens of all calls, also of those that failed after they were counted.
    pub usage: Usage,
    pub cost: Cost,
    /// Calls that came to an answer or a part of one.
    pub rounds: u32,
}

impl Bill {
    fn add(&mut self, usage: Usage, cost: Cost) {
        self.usage += usage;
        self.cost += cost;
    }

    /// Whether something was paid for.
    pub fn is_empty(&self) -> bool {
        self.rounds == 0 && self.usage.total_tokens() == 0
    }

    /// As an answer of this model.
    pub fn answer(&self, text: String, model: String) -> Asked {
        Asked {
            text,
            model,
            usage: self.usage,
            usd: self.cost.at_least(),
            is_priced: self.cost.known().is_some(),
            rounds: self.rounds,
            is_complete: false,
        }
    }
}

/// A model that is asked for an answer of any length.
pub struct Asking<'a> {
    pub model: &'a dyn Model,
    pub catalogue: &'a Catalogue,
    pub budget: &'a Arc<Budget>,
    /// Ends a call under way.
    pub stop: &'a Stop,
    /// Takes secrets out of all that the model is told.
    pub redactor: &'a Redactor,
    /// The provider's id.
    pub id: String,
    pub max_tokens: u32,
    pub max_rounds: u32,
    /// Makes one text of the parts of an answer that was cut at its limit. Where two parts meet
    /// depends on the format of the answer: a model may repeat the line it stopped in.
    pub join: fn(&[String]) -> String,
    /// Hears of what happens during a call: retries, among others.
    pub watch: &'a (dyn Fn(ModelEvent) + Send + Sync),
}

impl Asking<'_> {
    /// Asks, and joins the parts of an answer that was cut. What it cost is on the bill in any
    /// case.
    pub fn ask<'a>(
        &'a self,
        system: &'a str,
        messages: Vec<Message>,
        bill: &'a mut Bill,
    ) -> BoxFuture<'a, Result<Asked, AskError>> {
        Box::pin(self.ask_in_parts(system, messages, bill))
    }

    async fn ask_in_parts(
        &self,
        system: &str,
        messages: Vec<Message>,
        bill: &mut Bill,
    ) -> Result<Asked, AskError> {
        let system: Arc<str> = self.redactor.redact(system).into();
        let told = messages.into_iter().map(|message| self.told(message));
        let mut messages: Vec<Arc<Message>> = told.map(Arc::new).collect();
        let mut meter = Meter::default();
        let mut parts: Vec<String> = Vec::new();
        let (model, ended_by_itself) = loop {
            let request = self.request(system.clone(), messages.clone());
            let tokens = meter.measure(&request);
            let Exchange { result, lost } = self.asker().ask(request, tokens, self.watch).await;
            for call in lost {
                bill.add(call.usage, call.cost);
            }
            let Answered { response, cost, .. } = result.map_err(|error| self.failure(error))?;
            meter.correct(&response.usage);
            bill.rounds += 1;
            bill.add(response.usage, cost);
            let (rounds, text) = (bill.rounds, response.message.text());
            match response.stop_reason {
                StopReason::Refusal => {
                    return Err(AskError::Refused(format!(
                        "the model declined to answer: {text}"
                    )));
                }
                StopReason::MaxTokens if rounds < self.max_rounds && !text.is_empty() => {}
                StopReason::MaxTokens => {
                    return Err(AskError::Refused(format!(
                        "the answer was not complete after {rounds} parts of {} tokens; ask for less \
                         at once, or raise `dev.maxTokens`",
                        self.max_tokens
                    )));
                }
                StopReason::ContextWindowExceeded => {
                    return Err(AskError::Refused(
                        "the answer was cut: the conversation no longer fits the model's context \
                         window; ask for less at once, or show less of the files (`dev.contextBytes`)"
                            .to_owned(),
                    ));
                }
                reason => {
                    parts.push(text);
                    break (response.model, reason == StopReason::EndTurn);
                }
            }
            messages.push(Arc::new(Message::assistant(vec![ContentBlock::text(
                text.clone(),
            )])));
            messages.push(Arc::new(Message::user(CONTINUE.trim())));
            parts.push(text);
        };
        Ok(Asked {
            is_complete: ended_by_itself && parts.len() == 1,
            ..bill.answer((self.join)(&parts), model)
        })
    }

    /// A message without secrets; what the model said itself stays as it is.
    fn told(&self, mut message: Message) -> Message {
        if message.role == Role::User {
            for block in &mut message.content {
                if let ContentBlock::Text(text) = block {
                    text.text = self.redactor.redact(&text.text).into_owned();
                }
            }
        }
        message
    }

    fn asker(&self) -> Asker<'_> {
        Asker {
            model: self.model,
            catalogue: self.catalogue,
            budget: self.budget,
            cancel: self.stop.token(),
            deadline: self.stop.deadline(),
        }
    }

    fn failure(&self, error: ModelError) -> AskError {
        match error {
            ModelError::BudgetExceeded { message } => AskError::Budget(message),
            ModelError::Cancelled => self
                .stop
                .out_of_time()
                .map_or(AskError::Stopped, AskError::OutOfTime),
            other => AskError::Model(other),
        }
    }

    fn request(&self, system: Arc<str>, messages: Vec<Arc<Message>>) -> Request {
        Request {
            web_searches: 0,
            model: self.id.clone(),
            system,
            messages,
            tools: Arc::from([]),
            max_tokens: self.max_tokens,
            temperature: None,
            effort: None,
            thinking: None,
            stop_sequences: Vec::new(),
        }
    }
}
