//! One answer, however many calls it takes: going on where it was cut, with all of them on the bill.

use std::sync::Arc;

use codespar_agent::Stop;
use codespar_model::{
    Answered, Asker, Budget, Catalogue, Exchange, Meter, Model, ModelError, ModelEvent, Request,
};
use codespar_policy::Redactor;
use codespar_protocol::{ContentBlock, Cost, Message, Role, StopReason, Usage, Usd};
use serde::{Deserialize, Serialize};

use crate::{Failure, answer};

const CONTINUE: &str = include_str!("prompts/continue.md");

/// A whole answer and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    /// In dollars; the part that is known.
    pub(crate) usd: Usd,
    /// Whether that is all of it.
    pub(crate) is_priced: bool,
    /// How many calls it took.
    pub(crate) rounds: u32,
}

impl Asked {
    pub(crate) fn cost(&self) -> Cost {
        if self.is_priced {
            Cost::Known(self.usd)
        } else {
            Cost::Unknown(self.usd)
        }
    }
}

/// What calls have come to, whether or not they led to an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bill {
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
    pub(crate) rounds: u32,
}

impl Bill {
    fn add(&mut self, usage: Usage, cost: Cost) {
        self.usage += usage;
        self.cost += cost;
    }

    /// Whether something was paid for.
    pub(crate) fn is_empty(&self) -> bool {
        self.rounds == 0 && self.usage.total_tokens() == 0
    }

    /// As an answer of this model.
    pub(crate) fn answer(&self, text: String, model: String) -> Asked {
        Asked {
            text,
            model,
            usage: self.usage,
            usd: self.cost.at_least(),
            is_priced: self.cost.known().is_some(),
            rounds: self.rounds,
        }
    }
}

/// A model that is asked for an answer of any length.
pub(crate) struct Asking<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) budget: &'a Arc<Budget>,
    /// Ends a call under way.
    pub(crate) stop: &'a Stop,
    /// Takes secrets out of all that the model is told.
    pub(crate) redactor: &'a Redactor,
    /// The provider's id.
    pub(crate) id: String,
    pub(crate) max_tokens: u32,
    pub(crate) max_rounds: u32,
    /// Hears of what happens during a call: retries, among others.
    pub(crate) watch: &'a (dyn Fn(ModelEvent) + Send + Sync),
}

impl Asking<'_> {
    /// Asks, and joins the parts of an answer that was cut. What it cost is on the bill in any
    /// case.
    pub(crate) async fn ask(
        &self,
        system: &str,
        messages: Vec<Message>,
        bill: &mut Bill,
    ) -> Result<Asked, Failure> {
        let system: Arc<str> = self.redactor.redact(system).into();
        let told = messages.into_iter().map(|message| self.told(message));
        let mut messages: Vec<Arc<Message>> = told.map(Arc::new).collect();
        let mut meter = Meter::default();
        let mut parts: Vec<String> = Vec::new();
        let model = loop {
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
                    return Err(Failure::Refused(format!(
                        "the model declined to answer: {text}"
                    )));
                }
                StopReason::MaxTokens if rounds < self.max_rounds && !text.is_empty() => {}
                StopReason::MaxTokens => {
                    return Err(Failure::Refused(format!(
                        "the answer was not complete after {rounds} parts of {} tokens; ask for less \
                         at once, or raise `dev.maxTokens`",
                        self.max_tokens
                    )));
                }
                _ => {
                    parts.push(text);
                    break response.model;
                }
            }
            messages.push(Arc::new(Message::assistant(vec![ContentBlock::text(
                text.clone(),
            )])));
            messages.push(Arc::new(Message::user(CONTINUE.trim())));
            parts.push(text);
        };
        Ok(bill.answer(answer::join(&parts), model))
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

    fn failure(&self, error: ModelError) -> Failure {
        match error {
            ModelError::BudgetExceeded { message } => Failure::Budget(message),
            ModelError::Cancelled => self
                .stop
                .out_of_time()
                .map_or(Failure::Stopped, Failure::OutOfTime),
            other => Failure::Model(other),
        }
    }

    fn request(&self, system: Arc<str>, messages: Vec<Arc<Message>>) -> Request {
        Request {
            model: self.id.clone(),
            system,
            messages,
            tools: Arc::from([]),
            max_tokens: self.max_tokens,
            temperature: None,
            effort: None,
            stop_sequences: Vec::new(),
        }
    }
}
