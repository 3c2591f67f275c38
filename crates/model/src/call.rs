//! One call to a provider: tries, waits between them, and what comes out of the last one.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    ModelError, ModelEvent,
    endpoint::{Endpoint, Events},
    failure::{Failure, Retry},
    wire::Accumulator,
};

/// After the last event the body is read to its end, so that the connection can be used again;
/// a server that does not end it in this time loses the connection instead.
const LINGER: Duration = Duration::from_millis(50);

/// Makes the accumulator of one try.
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
        state: State::Ready,
    });
    stream::unfold(call, |mut call| async move {
        let event = call.next().await?;
        Some((event, call))
    })
    .boxed()
}

struct Call {
    endpoint: Arc<Endpoint>,
    body: Bytes,
    begin: Begin,
    cancel: CancellationToken,
    attempt: u32,
    state: State,
}

enum State {
    Ready,
    Waiting(Duration),
    Streaming(Answer),
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
                            self.state = State::Streaming(Answer {
                                events,
                                accumulator: (self.begin)(),
                                ready: VecDeque::new(),
                            });
                        }
                        Err(failure) => return self.retry_or_fail(failure),
                    }
                }
                State::Streaming(answer) => match answer.next().await {
                    Ok(event) => return Ok(event),
                    Err(error) => {
                        let failure = self.endpoint.broken(error);
                        return self.retry_or_fail(failure);
                    }
                },
                State::Ended => return Err(ModelError::Cancelled),
            }
        }
    }

    fn retry_or_fail(&mut self, failure: Failure) -> Result<ModelEvent, ModelError> {
        let policy = &self.endpoint.retry;
        let Retry::After(named) = failure.retry else {
            return Err(failure.error);
        };
        if self.attempt >= policy.max_tries {
            return Err(failure.error);
        }
        let delay = policy.delay(self.attempt, named);
        let reason = failure.error.to_string();
        tracing::debug!(attempt = self.attempt, ?delay, reason, "model call failed");
        self.state = State::Waiting(delay);
        Ok(ModelEvent::Retrying {
            attempt: self.attempt,
            delay,
            reason,
        })
    }
}

/// An answer as it comes in.
struct Answer {
    events: Events,
    accumulator: Box<dyn Accumulator>,
    ready: VecDeque<ModelEvent>,
}

impl Answer {
    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if matches!(event, ModelEvent::Finished(_)) {
                    self.read_to_the_end().await;
                }
                return Ok(event);
            }
            match self.events.next().await.transpose()? {
                Some(event) => {
                    let data = event.data.as_deref().unwrap_or_default();
                    let name = event.event.as_deref();
                    self.accumulator.accept(name, data, &mut self.ready)?;
                }
                None => self.ready.push_back(self.accumulator.end()?),
            }
        }
    }

    async fn read_to_the_end(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.events.next().await {} };
        let _ = timeout(LINGER, rest).await;
    }
}
