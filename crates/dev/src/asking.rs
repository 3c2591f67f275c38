//! Asking a model within a budget, and going on where its answer was cut.

use std::sync::Arc;

use codespar_model::{Catalogue, Model, ModelEvent, Request, Response};
use codespar_protocol::{ContentBlock, Cost, Message, StopReason, Usage, Usd};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{Failure, answer};

const CONTINUE: &str = include_str!("prompts/continue.md");
/// Bytes of a token, at the fewest: a budget is estimated on the dear side.
const BYTES_PER_TOKEN: u64 = 3;
/// What a picture costs in tokens, about.
const IMAGE_TOKENS: u64 = 1_600;

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

/// A model that can be asked.
pub(crate) struct Asker<'a> {
    pub(crate) model: &'a Arc<dyn Model>,
    pub(crate) catalogue: &'a Catalogue,
    /// The provider's id.
    pub(crate) id: String,
    pub(crate) max_tokens: u32,
    pub(crate) max_rounds: u32,
    pub(crate) max_budget: Option<Usd>,
    /// What the run has spent before.
    pub(crate) spent: Usd,
    pub(crate) cancel: &'a CancellationToken,
}

impl Asker<'_> {
    /// Asks, and joins the parts of an answer that was cut. What it cost is on the bill in any
    /// case.
    pub(crate) async fn ask(
        &self,
        system: &str,
        messages: Vec<Message>,
        bill: &mut Bill,
    ) -> Result<Asked, Failure> {
        let mut messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        let mut parts: Vec<String> = Vec::new();
        let model = loop {
            self.afford(system, &messages, bill.cost.at_least())?;
            let response = self.call(system, messages.clone()).await?;
            bill.rounds += 1;
            bill.usage += response.usage;
            bill.cost += self.cost(&response);
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

    /// By the name that the provider gives the model, or else by ours.
    fn cost(&self, response: &Response) -> Cost {
        match self.catalogue.cost(&response.model, &response.usage) {
            Cost::Unknown(_) => self.catalogue.cost(&self.id, &response.usage),
            known => known,
        }
    }

    async fn call(&self, system: &str, messages: Vec<Arc<Message>>) -> Result<Response, Failure> {
        let request = Request {
            model: self.id.clone(),
            system: system.into(),
            messages,
            tools: Arc::from([]),
            max_tokens: self.max_tokens,
            temperature: None,
            effort: None,
            stop_sequences: Vec::new(),
        };
        let mut events = self.model.stream(request, self.cancel.clone());
        while let Some(event) = events.next().await {
            match event {
                Ok(ModelEvent::Finished(response)) => return Ok(response),
                Ok(_) => {}
                Err(_) if self.cancel.is_cancelled() => return Err(Failure::Stopped),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::Broken(
            "the model's stream ended without an answer".to_owned(),
        ))
    }

    /// Refuses a call that could pass the limit.
    fn afford(&self, system: &str, messages: &[Arc<Message>], here: Usd) -> Result<(), Failure> {
        let Some(max) = self.max_budget else {
            return Ok(());
        };
        let next = Usage {
            input_tokens: input_tokens(system, messages),
            output_tokens: u64::from(self.max_tokens),
            ..Usage::default()
        };
        let Cost::Known(price) = self.catalogue.cost(&self.id, &next) else {
            return Err(Failure::Budget(format!(
                "`{}` has no known price, so --max-budget-usd cannot be kept: add it to `models.toml` \
                 in the state directory, or leave the limit out",
                self.id
            )));
        };
        let mut spent = self.spent;
        spent += here;
        let mut after = spent;
        after += price;
        if after > max {
            return Err(Failure::Budget(format!(
                "stopped at {spent} of {max} (--max-budget-usd): the next call of {} could cost up to {price}",
                self.id,
            )));
        }
        Ok(())
    }
}

fn input_tokens(system: &str, messages: &[Arc<Message>]) -> u64 {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let tokens: u64 = blocks
        .map(|block| match block {
            ContentBlock::Text(text) => text.text.len() as u64 / BYTES_PER_TOKEN + 4,
            _ => IMAGE_TOKENS,
        })
        .sum();
    tokens + system.len() as u64 / BYTES_PER_TOKEN
}
