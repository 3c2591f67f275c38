//! The one place that asks a model: within a budget, with everything booked that a provider may
//! charge for, whether or not it came to an answer.
//!
//! A call goes through three states. It is *reserved* in the budget at the most it can cost, then
//! *under way*, and ends *booked* at what it did cost. [`UnderWay`] makes sure of the last step:
//! whichever way a call ends, also when its future is dropped, what may be charged is booked
//! exactly once, and the reservation is released after that.
//!
//! Retries happen inside [`Model::stream`]. Each failed try that may be charged is booked as it
//! fails; if the rest of the budget no longer covers the reservation, the call is abandoned and
//! made anew with a smaller `max_tokens`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_protocol::{Cost, TRACE_TARGET, Usage};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, field::Empty};

use crate::{
    Budget, Catalogue, Model, ModelError, ModelEvent, Request, Response,
    budget::{Reservation, Wanted},
    estimate::message_tokens,
    retry::seconds,
};

/// Someone who may ask a model. It borrows all its parts and is cheap to make and to copy.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// Who answers.
    pub model: &'a dyn Model,
    /// Prices.
    pub catalogue: &'a Catalogue,
    /// What may be spent.
    pub budget: &'a Arc<Budget>,
    /// Ends the call.
    pub cancel: &'a CancellationToken,
    /// When the caller is going to cancel, if that is known: a wait that reaches beyond it is not
    /// begun.
    pub deadline: Option<Instant>,
}

/// A whole answer and its price.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub response: Response,
    /// Unknown if the catalogue has no price for the model.
    pub cost: Cost,
    /// Who counted its tokens.
    pub counted: Counted,
}

/// A try that was charged for, or may have been, and came to no answer. It is booked.
#[derive(Debug, Clone, PartialEq)]
pub struct LostCall {
    /// The model that was asked.
    pub model: String,
    /// Tokens.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
    pub counted: Counted,
}

/// Who counted the tokens of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    ByProvider,
    /// We did, from the size of the request and of the answer, where the provider did not.
    Estimated,
}

/// What became of a question.
#[derive(Debug)]
pub struct Exchange {
    /// The answer, or why there is none.
    pub result: Result<Answered, ModelError>,
    /// Tries on the way. They are in the budget's account already; the list is for the caller's own
    /// record.
    pub lost: Vec<LostCall>,
}

impl Asker<'_> {
    /// Sends the request and waits for its answer. `input_tokens` is the most that its input can
    /// come to; `max_tokens` is lowered to what the budget leaves. `watch` hears of text, reasoning
    /// and retries as they come.
    ///
    /// Waits while other calls hold reservations that this one could fit beside once they end.
    /// Cancelling the token ends the wait as well as the call. Dropping the future is safe: what
    /// was sent is booked.
    pub async fn ask(
        &self,
        request: Request,
        input_tokens: u64,
        mut watch: impl FnMut(ModelEvent) + Send,
    ) -> Exchange {
        let span = self.span(&request);
        let exchange = async move {
            let mut lost = Vec::new();
            let result = loop {
                let attempt = self.attempt(request.clone(), input_tokens, &mut lost, &mut watch);
                match attempt.await {
                    Ok(answered) => break Ok(answered),
                    Err(Stopped::For(error)) => break Err(error),
                    // What was lost was paid for: there is less for the next answer.
                    Err(Stopped::ToReserveAnew(delay)) => {
                        tokio::select! {
                            () = self.cancel.cancelled() => break Err(ModelError::Cancelled),
                            () = tokio::time::sleep(delay) => {}
                        }
                    }
                }
            };
            Exchange { result, lost }
        };
        let exchange = exchange.instrument(span.clone()).await;
        tell_span(&span, &exchange);
        exchange
    }

    /// One reservation and one stream, which may contain several tries. The token is checked before
    /// each event, so that a provider that sends without pause cannot delay a cancellation.
    async fn attempt(
        &self,
        mut request: Request,
        input_tokens: u64,
        lost: &mut Vec<LostCall>,
        watch: &mut (impl FnMut(ModelEvent) + Send),
    ) -> Result<Answered, Stopped> {
        let reservation = self.reserve(&request, input_tokens).await?;
        request.max_tokens = reservation.max_tokens;
        let mut call = UnderWay {
            asker: *self,
            model: request.model.clone(),
            input_tokens,
            reservation,
            counted: Usage::default(),
            on_the_way_from: Some(Instant::now()),
        };
        let mut events = self.model.stream(request, self.cancel.clone());
        loop {
            let event = tokio::select! {
                biased;
                () = self.cancel.cancelled() => Some(Err(ModelError::Cancelled)),
                event = events.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::Finished(response))) => return Ok(call.finish(response)),
                Some(Ok(ModelEvent::Counted(usage))) => call.counted = usage,
                Some(Ok(ModelEvent::Retrying {
                    delay,
                    ref reason,
                    may_be_charged,
                    ..
                })) => {
                    if may_be_charged {
                        lost.extend(call.lose());
                    }
                    call.wait(delay, reason)?;
                    if let Some(Ok(event)) = event {
                        watch(event);
                    }
                    if !call.reservation.still_fits() {
                        call.on_the_way_from = None;
                        return Err(Stopped::ToReserveAnew(delay));
                    }
                }
                Some(Ok(event)) => watch(event),
                Some(Err(error)) => {
                    if error.may_be_charged() {
                        lost.extend(call.lose());
                    }
                    call.on_the_way_from = None;
                    return Err(error.into());
                }
                None => {
                    lost.extend(call.lose());
                    return Err(ModelError::BrokenStream {
                        provider: self.model.provider(),
                        message: "it ended without an answer".to_owned(),
                    }
                    .into());
                }
            }
        }
    }

    async fn reserve(
        &self,
        request: &Request,
        input_tokens: u64,
    ) -> Result<Reservation, ModelError> {
        let entry = self.catalogue.resolve(&request.model).entry;
        let wanted = Wanted {
            model: &request.model,
            input_tokens,
            max_tokens: request.max_tokens,
            prices: entry.and_then(|entry| entry.prices),
            web_searches: request.web_searches,
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ModelError::Cancelled),
            reserved = self.budget.reserve(&wanted) => {
                reserved.map_err(|message| ModelError::BudgetExceeded { message })
            }
        }
    }

    /// The call in a trace, in the terms of OpenTelemetry's conventions for generative AI.
    fn span(&self, request: &Request) -> Span {
        tracing::info_span!(
            target: TRACE_TARGET,
            "chat",
            otel.name = format!("chat {}", request.model),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = self.model.provider(),
            gen_ai.request.model = request.model,
            gen_ai.response.model = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            codespar.lost_calls = Empty,
        )
    }

    /// By the name that the provider gives the model, or else by the one that was asked for.
    fn cost(&self, named: &str, asked: &str, usage: &Usage) -> Cost {
        match self.catalogue.cost(named, usage) {
            Cost::Unknown(_) => self.catalogue.cost(asked, usage),
            known => known,
        }
    }
}

fn tell_span(span: &Span, exchange: &Exchange) {
    span.record("codespar.lost_calls", exchange.lost.len());
    match &exchange.result {
        Ok(answered) => {
            let usage = &answered.response.usage;
            span.record("gen_ai.response.model", answered.response.model.as_str());
            span.record("gen_ai.usage.input_tokens", usage.context_tokens());
            span.record("gen_ai.usage.output_tokens", usage.output_tokens);
        }
        Err(ModelError::Cancelled) => {}
        Err(_) => {
            span.record("otel.status_code", "ERROR");
        }
    }
}

/// Why a call came to no answer.
enum Stopped {
    For(ModelError),
    /// The next try, after this time, must make do with less. `request.max_tokens` of the next
    /// reservation starts from what the caller asked for.
    ToReserveAnew(Duration),
}

impl From<ModelError> for Stopped {
    fn from(error: ModelError) -> Self {
        Self::For(error)
    }
}

/// A call that has been sent. Dropped before its end, it is booked as lost. The reservation is a
/// field, so it is dropped after the booking that [`Drop`] makes. Booked and reserved amounts
/// overlap for a moment, which can only make the check for other calls stricter.
struct UnderWay<'a> {
    asker: Asker<'a>,
    model: String,
    input_tokens: u64,
    reservation: Reservation,
    /// As far as is known of this try.
    counted: Usage,
    /// When the try began, or will. `None` once the try is booked or known to be free of charge. In
    /// the future while a retry waits: nothing has been sent yet, so there is nothing to book.
    on_the_way_from: Option<Instant>,
}

impl UnderWay<'_> {
    fn finish(mut self, mut response: Response) -> Answered {
        self.on_the_way_from = None;
        let asker = self.asker;
        let counted = self.complete(&mut response);
        let cost = asker.cost(&response.model, &self.model, &response.usage);
        asker.budget.add(&response.model, response.usage, cost);
        Answered {
            response,
            cost,
            counted,
        }
    }

    /// Fills in what the provider has not counted. There are no answers without tokens, so a count
    /// of zero is none. A provider that never charges is left alone: its zeros are real.
    fn complete(&self, response: &mut Response) -> Counted {
        if !self.asker.model.may_charge() {
            return Counted::ByProvider;
        }
        let usage = &mut response.usage;
        let mut counted = Counted::ByProvider;
        if usage.context_tokens() == 0 {
            usage.input_tokens = self.input_tokens;
            counted = Counted::Estimated;
        }
        if usage.output_tokens == 0 && !response.message.content.is_empty() {
            let most = u64::from(self.reservation.max_tokens);
            usage.output_tokens = message_tokens(&response.message).min(most);
            counted = Counted::Estimated;
        }
        counted
    }

    /// Books the try; there is nothing to book while none has begun. Input that the provider has
    /// not counted is booked at its upper bound. Output is what was received, as far as the
    /// reservation allows.
    fn lose(&mut self) -> Option<LostCall> {
        let began = self.on_the_way_from.take()?;
        let mut usage = std::mem::take(&mut self.counted);
        if began > Instant::now() {
            return None;
        }
        let counted = if usage.context_tokens() == 0 {
            usage.input_tokens = self.input_tokens;
            Counted::Estimated
        } else {
            Counted::ByProvider
        };
        let most = u64::from(self.reservation.max_tokens);
        usage.output_tokens = usage.output_tokens.min(most);
        let cost = self.asker.cost(&self.model, &self.model, &usage);
        self.asker.budget.add(&self.model, usage, cost);
        Some(LostCall {
            model: self.model.clone(),
            usage,
            cost,
            counted,
        })
    }

    /// Another try is to come after this time, if it still may. Fails with
    /// [`ModelError::OutOfTime`] if the deadline comes first. Waiting for it and then failing
    /// anyway would only cost time.
    fn wait(&mut self, delay: Duration, reason: &str) -> Result<(), ModelError> {
        self.counted = Usage::default();
        self.on_the_way_from = None;
        let next = Instant::now() + delay;
        if self.asker.deadline.is_some_and(|deadline| next >= deadline) {
            return Err(ModelError::OutOfTime {
                message: format!(
                    "{reason}; the next try would be in {}, after the limit on wall time",
                    seconds(delay)
                ),
            });
        }
        self.on_the_way_from = Some(next);
        Ok(())
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.lose();
    }
}
