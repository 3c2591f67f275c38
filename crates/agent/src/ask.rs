//! How the loop asks its model: within the budget, and with room for the conversation.
//!
//! Two estimates are at work. `Meter` gives the most that a request can come to, which the budget
//! reserves before it is sent. `Agent::context_tokens` guesses what it will come to, which decides
//! about compaction in time. Both are corrected by what the provider counts; where they were too
//! low, the provider refuses the request and `ask_with_room` makes it shorter.

use std::time::Instant;

use codespar_model::{Answered, Asker, LostCall, ModelError, ModelEvent, Request};
use codespar_protocol::{Event, NoticeLevel};

use crate::{
    Agent, AgentError, CompactTrigger, Sink, compaction::MAX_CUTS, side_call::SideCall, stop::Stop,
    tally::Tally,
};

/// Searches of the web in one answer.
const MOST_SEARCHES: u32 = 5;

impl Agent {
    /// Asks; when the conversation turns out not to fit, makes it shorter until it does.
    ///
    /// At most one summary, then up to `MAX_CUTS` cuts to half the size of the one before, then the
    /// provider's error. Other errors are not handled here: retries are over when one arrives. Each
    /// attempt counts as a turn.
    pub(crate) async fn ask_with_room(
        &mut self,
        tally: &mut Tally,
        stop: &Stop,
    ) -> Result<Answered, AgentError> {
        let mut cuts = 0;
        let mut is_summarised = false;
        loop {
            match self.ask(tally, stop).await {
                Err(AgentError::Model(ModelError::ContextWindowExceeded { message })) => {
                    if !is_summarised && self.compact(CompactTrigger::Forced, stop).await? {
                        is_summarised = true;
                    } else if cuts < MAX_CUTS {
                        cuts += 1;
                        self.cut(cuts).await?;
                    } else {
                        return Err(ModelError::ContextWindowExceeded { message }.into());
                    }
                }
                Err(AgentError::Model(error)) if error.is_overload() && self.fall_back() => {}
                other => return other,
            }
        }
    }

    /// Whether there is another model to ask. It stays the one that is asked.
    fn fall_back(&mut self) -> bool {
        let Some(other) = self.parts.choice.fallback.take() else {
            return false;
        };
        let text = format!(
            "{} is overloaded; {} answers from now on",
            self.parts.choice.id, other.id
        );
        self.notice(NoticeLevel::Warning, text);
        self.parts.choice = *other;
        true
    }

    /// One turn: the request, its answer, and what was paid for on the way. Attempts that were
    /// charged and lost are on record before an error is returned.
    async fn ask(&mut self, tally: &mut Tally, stop: &Stop) -> Result<Answered, AgentError> {
        tally.turns += 1;
        self.emit(Event::TurnStarted { turn: tally.turns });
        let request = self.request();
        let tokens = self.meter.measure(&request);
        let asked = Instant::now();
        let sink = self.parts.sink.clone();
        let exchange = self
            .asker(stop)
            .ask(request, tokens, |event| show(&sink, event))
            .await;
        tally.waiting += asked.elapsed();
        let recorded = self.record_lost(exchange.lost).await;
        if matches!(exchange.result, Err(ModelError::BudgetExceeded { .. })) {
            // The turn that was not begun, or not finished, for want of money.
            tally.turns -= 1;
        }
        let answered = exchange.result?;
        recorded?;
        // What searches found is in the count and was not in the request.
        if answered.response.usage.web_search_requests == 0 {
            self.meter.correct(&answered.response.usage);
        }
        Ok(answered)
    }

    /// Whoever asks the model for this agent.
    pub(crate) fn asker<'a>(&'a self, stop: &'a Stop) -> Asker<'a> {
        Asker {
            model: &*self.parts.model,
            catalogue: &self.parts.catalogue,
            budget: &self.budget,
            cancel: stop.token(),
            deadline: stop.deadline(),
        }
    }

    /// Puts on record what was paid for without an answer.
    pub(crate) async fn record_lost(&mut self, lost: Vec<LostCall>) -> Result<(), AgentError> {
        for call in lost {
            self.transcript.append(SideCall::from(call).entry()).await?;
        }
        Ok(())
    }

    /// An agent has the tool where a rule allows it; the provider must have it too.
    fn web_searches(&self) -> u32 {
        let tool = self.parts.tools.get("WebSearch");
        let is_on_offer = tool.is_some_and(|tool| tool.is_run_by_provider());
        match is_on_offer && self.parts.model.searches_web() {
            true => MOST_SEARCHES,
            false => 0,
        }
    }

    /// The conversation is shared, not copied: messages are behind `Arc`.
    fn request(&self) -> Request {
        Request {
            model: self.parts.choice.id.clone(),
            system: self.system.clone(),
            messages: self.transcript.messages().to_vec(),
            tools: self.specs.clone(),
            web_searches: self.web_searches(),
            max_tokens: self.parts.choice.max_tokens,
            temperature: None,
            effort: self.parts.choice.effort,
            thinking: self.parts.choice.thinking,
            stop_sequences: Vec::new(),
        }
    }
}

/// Passes on what a call yields as it comes. The whole answer is not among it: it is announced when
/// it is on record.
fn show(sink: &Sink, event: ModelEvent) {
    match event {
        ModelEvent::TextDelta(text) => sink(Event::TextDelta { text }),
        ModelEvent::ThinkingDelta(text) => sink(Event::ThinkingDelta { text }),
        ModelEvent::Retrying {
            attempt,
            delay,
            reason,
            ..
        } => sink(Event::Retrying {
            attempt,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            reason,
        }),
        ModelEvent::Counted(_) | ModelEvent::Finished(_) => {}
    }
}
