//! A clock that stands still until the test moves it.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::super::clock::Clock;

#[derive(Default)]
pub(super) struct TestClock(Mutex<State>);

#[derive(Default)]
struct State {
    now: Duration,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Duration {
        self.0.lock().now
    }

    async fn sleep(&self, time: Duration) {
        let (wake, woken) = oneshot::channel();
        {
            let mut state = self.0.lock();
            let until = state.now + time;
            state.sleepers.push((until, wake));
        }
        let _ = woken.await;
    }
}

impl TestClock {
    /// Time passes, and everybody wakes when it is time.
    pub(super) async fn pass(&self, time: Duration) {
        let end = self.now() + time;
        settle().await;
        while let Some(next) = self.next_before(end) {
            self.jump(next);
            settle().await;
        }
        self.jump(end);
        settle().await;
    }

    /// The clock moves and nobody runs in between, as when the machine sleeps.
    pub(super) fn jump(&self, to: Duration) {
        let mut state = self.0.lock();
        state.now = state.now.max(to);
        let now = state.now;
        let (due, later) = std::mem::take(&mut state.sleepers)
            .into_iter()
            .partition(|(until, _)| *until <= now);
        state.sleepers = later;
        drop(state);
        let due: Vec<(Duration, oneshot::Sender<()>)> = due;
        for (_, wake) in due {
            let _ = wake.send(());
        }
    }

    fn next_before(&self, end: Duration) -> Option<Duration> {
        let mut state = self.0.lock();
        state.sleepers.retain(|(_, wake)| !wake.is_closed());
        let times = state.sleepers.iter().map(|(until, _)| *until);
        times.filter(|until| *until <= end).min()
    }
}

/// Everybody who can run does so.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
