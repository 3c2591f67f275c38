//! What ends a run from outside: the user or a signal, and the limit on wall time.
//!
//! Both cancel one token, and everything a run waits for (a model call, a retry, a tool, a
//! question) waits with that token. Afterwards the two are told apart by `out_of_time`: an
//! interruption and a limit have different endings.
//!
//! A tool gets the token and is expected to end by itself. Only for the limit on time there is a
//! second line, `abandon`: a caller that selects on it drops the work.

use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// How long a tool may take to end once the time is up. Then it is dropped, and what it had
/// started is killed.
const GRACE: Duration = Duration::from_millis(500);

/// Stops a run. Whatever the run waits for, it waits with this token.
pub struct Stop {
    /// The caller's token; cancelled by the user, a signal or a hand-over, never by us.
    asked: CancellationToken,
    token: CancellationToken,
    /// The limit as it was given, for the message, and the moment it is reached.
    limit: Option<(Duration, Instant)>,
    timer: Option<AbortHandle>,
}

impl Stop {
    /// When `asked` is cancelled, or this much wall time has passed. A limit so long that the clock
    /// cannot express it is none. Needs a Tokio runtime if there is a limit.
    pub fn new(asked: &CancellationToken, max_wall: Option<Duration>) -> Self {
        let token = asked.child_token();
        let limit = max_wall.and_then(|max| Some((max, Instant::now().checked_add(max)?)));
        let timer = limit.map(|(_, at)| {
            let token = token.clone();
            let timer = async move {
                tokio::time::sleep_until(at.into()).await;
                token.cancel();
            };
            tokio::spawn(timer).abort_handle()
        });
        Self {
            asked: asked.clone(),
            token,
            limit,
            timer,
        }
    }

    /// Cancelled when the run must end.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// When the time is up.
    pub fn deadline(&self) -> Option<Instant> {
        self.limit.map(|(_, at)| at)
    }

    /// What to say about the limit on wall time, if that is what ended the run. Whoever was asked
    /// to stop before counts as interrupted, however late it is by now.
    pub fn out_of_time(&self) -> Option<String> {
        let (max, at) = self.limit?;
        let is_over = Instant::now() >= at && !self.asked.is_cancelled();
        is_over.then(|| {
            format!(
                "stopped after {} s of wall time (maxWallSeconds)",
                max.as_secs()
            )
        })
    }

    /// Why a call is not made any more.
    pub(crate) fn reason(&self) -> &'static str {
        match self.out_of_time() {
            Some(_) => "the limit on wall time was reached",
            None => "the user interrupted",
        }
    }

    /// Ends when work that has not ended by itself must be left behind: never, unless there is a
    /// limit on time.
    pub fn abandon(&self) -> impl Future<Output = ()> + Send + use<> {
        let at = self.limit.map(|(_, at)| at + GRACE);
        async move {
            match at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}
