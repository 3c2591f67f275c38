//! One call to a provider: tries, waits between them, and what comes out of the last one.
//!
//! A state machine that a stream is unfolded from:
//!
//! ```text
//! Ready ── send ──> Streaming ──> Finished event, Ended
//!   ^   └─ failed ─┐    └─ broken ──> Failed (after a last Counted event)
//!   │              v                     │
//!   └── Waiting <── retry_or_fail <──────┘
//!                       └─ no further try: error, Ended
//! ```
//!
//! Each poll advances it until there is an event to yield. Each step ends at once when the token is
//! cancelled. Once an error or the answer has been yielded the state is `Ended`, which drops the
//! connection.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use codespar_protocol::Usage;
use futures::{StreamExt, stream, stream::BoxStream};
use sse_stream::Sse;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    ModelError, ModelEvent,
    endpoint::{Endpoint, Events},
    failure::{Failure, Retry},
    retry::seconds,
    wire::Accumulator,
};

/// After the last event the body is read to its end, so that the connection can be used again;
/// a server that does not end it in this time loses the connection instead.
const LINGER: Duration = Duration::from_millis(50);

/// Output tokens between two counts.
const COUNT_EVERY: u64 = 64;

/// Makes the accumulator of one try. A new one for each try, since nothing of a failed try may be
/// part of the answer.
pub(crate) type Begin = Box<dyn Fn() -> Box<dyn Accumulator> + Send + Sync>;

/// Sends `body` and yields what happens, as `Model::stream` promises it.
pub(crate) fn run(
    endpoint: Arc<Endpoint>,
    body: Bytes,
    begin: Begin,
    cancel: CancellationToken,
) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    let call = Box::new(Call {
        endpoint,
        body,
        begin,
        cancel,
        attempt: 0,
        failing_since: None,
        state: State::Ready,
    });
    stream::unfold(call, |mut call| async move {
        let event = call.next().await?;
        Some((event, call))
    })
    .boxed()
}

/// The body is serialised once and sent unchanged with each try.
struct Call {
    endpoint: Arc<Endpoint>,
    body: Bytes,
    begin: Begin,
    cancel: CancellationToken,
    attempt: u32,
    /// The first failure of the call. The patience of the policy counts from here.
    failing_since: Option<Instant>,
    state: State,
}

enum State {
    Ready,
    Waiting(Duration),
    Streaming(Answer),
    /// The tokens of the broken try have just been reported; the decision about a retry comes with
    /// the next poll.
    Failed(Failure),
    Ended,
}

impl Call {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if matches!(self.state, State::Ended) {
            return None;
        }
        let cancel = self.cancel.clone();
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::Cancelled),
            next = self.advance() => next,
        };
        if matches!(next, Err(_) | Ok(ModelEvent::Finished(_))) {
            // Drops the connection, if there is one left.
            self.state = State::Ended;
        }
        Some(next)
    }

    async fn advance(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            match &mut self.state {
                State::Waiting(delay) => {
                    sleep(*delay).await;
                    self.state = State::Ready;
                }
                State::Ready => {
                    self.attempt += 1;
                    match self.endpoint.send(self.body.clone()).await {
                        Ok(events) => {
                            let accumulator = (self.begin)();
                            self.state =
                                State::Streaming(Answer::new(&self.endpoint, events, accumulator));
                        }
                        Err(failure) => return self.retry_or_fail(failure),
                    }
                }
                State::Streaming(answer) => match answer.next().await {
                    Ok(event) => return Ok(event),
                    Err(error) => {
                        let counted = answer.accumulator.counted();
                        self.state = State::Failed(self.endpoint.broken(error));
                        return Ok(ModelEvent::Counted(counted));
                    }
                },
                State::Failed(_) => {
                    let State::Failed(failure) = std::mem::replace(&mut self.state, State::Ended)
                    else {
                        return Err(ModelError::Cancelled);
                    };
                    return self.retry_or_fail(failure);
                }
                State::Ended => return Err(ModelError::Cancelled),
            }
        }
    }

    /// A delay that the server names is kept as it is. If it would exceed the patience, the call
    /// fails now, and the error says how long the server asked to wait.
    fn retry_or_fail(&mut self, failure: Failure) -> Result<ModelEvent, ModelError> {
        let policy = &self.endpoint.retry;
        let Retry::After(named) = failure.retry else {
            return Err(failure.error);
        };
        if self.attempt >= policy.max_tries {
            return Err(failure.error);
        }
        let delay = policy.delay(self.attempt, named);
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        if since.elapsed() + delay > policy.patience {
            let patience = seconds(policy.patience);
            let note = match named {
                Some(named) => format!(
                    "it asks to wait {}, and a call waits {patience} in all",
                    seconds(named)
                ),
                None => format!("gave up after {patience} of retries"),
            };
            return Err(failure.error.with_note(&note));
        }
        let reason = failure.error.to_string();
        tracing::debug!(attempt = self.attempt, ?delay, reason, "model call failed");
        self.state = State::Waiting(delay);
        Ok(ModelEvent::Retrying {
            attempt: self.attempt,
            delay,
            reason,
            may_be_charged: failure.error.may_be_charged(),
        })
    }
}

/// An answer as it comes in.
struct Answer {
    provider: &'static str,
    events: Events,
    accumulator: Box<dyn Accumulator>,
    /// Events of one chunk that have not been yielded yet.
    ready: VecDeque<ModelEvent>,
    /// What was last told of the tokens.
    told: Usage,
    stall: Duration,
    /// How long it was waited for since content last came.
    waited: Duration,
}

impl Answer {
    fn new(endpoint: &Endpoint, events: Events, accumulator: Box<dyn Accumulator>) -> Self {
        Self {
            provider: endpoint.provider,
            events,
            accumulator,
            ready: VecDeque::new(),
            told: Usage::default(),
            stall: endpoint.stall,
            waited: Duration::ZERO,
        }
    }

    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if matches!(event, ModelEvent::Finished(_)) {
                    self.read_to_the_end().await;
                }
                return Ok(event);
            }
            match self.wait().await?.transpose()? {
                Some(event) => {
                    let before = self.accumulator.counted();
                    let data = event.data.as_deref().unwrap_or_default();
                    let name = event.event.as_deref();
                    self.accumulator.accept(name, data, &mut self.ready)?;
                    self.tell(before);
                }
                None => self.ready.push_back(self.accumulator.end()?),
            }
        }
    }

    /// The next event. Keep-alive events do not stop the clock of the stall, and it runs only
    /// while somebody waits.
    async fn wait(&mut self) -> Result<Option<Result<Sse, ModelError>>, ModelError> {
        let began = Instant::now();
        let left = self.stall.saturating_sub(self.waited);
        let next = timeout(left, self.events.next()).await;
        self.waited += began.elapsed();
        next.map_err(|_| ModelError::BrokenStream {
            provider: self.provider,
            message: format!(
                "no content came for {} seconds, only keep-alive events",
                self.stall.as_secs_f32()
            ),
        })
    }

    /// Notes progress, and passes the count on when it has moved enough. A count is reported before
    /// the pieces that it includes, so that a consumer that stops in between knows their cost.
    fn tell(&mut self, before: Usage) {
        let now = self.accumulator.counted();
        if now == before {
            return;
        }
        self.waited = Duration::ZERO;
        let is_new_input = now.context_tokens() != self.told.context_tokens();
        let is_more = now.output_tokens >= self.told.output_tokens + COUNT_EVERY;
        if is_new_input || is_more {
            self.told = now;
            self.ready.push_front(ModelEvent::Counted(now));
        }
    }

    /// An error or a timeout here is of no interest: the answer is whole.
    async fn read_to_the_end(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.events.next().await {} };
        let _ = timeout(LINGER, rest).await;
    }
}
