//! What brings ready tasks to the processes that run them.
//!
//! Whatever the engine, a task runs under a lease in the database, whose fencing number every write
//! must show. Engines differ in who finds out that a task is ready and that a process is lost:
//!
//! - [`LeaseEngine`]: each process looks for tasks itself, and watches the others. Nothing but the
//!   database is needed.
//! - An engine that delivers, such as Temporal: a [`Dispatcher`](crate::Dispatcher) admits ready
//!   tasks and offers them to it, and begins what it brings.

use std::{convert::Infallible, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_protocol::Backoff;
use codespar_store::{ClaimScope, DispatchStore, LEASES};

use crate::Scheduler;

/// Between two looks while an engine that others use has offers.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Between tries while the database is out of reach.
const RETRY: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(30),
};

/// Brings tasks to one process.
#[async_trait]
pub trait TaskEngine: Send + Sync {
    /// For people: `leases`, `temporal`.
    fn name(&self) -> &'static str;

    /// Brings tasks to this process until it leaves ([`Scheduler::leaving`]). Called once. Returns
    /// when nothing more is brought and the engine knows what became of everything it brought.
    async fn serve(&self, scheduler: Arc<Scheduler>);

    /// Whoever else takes tasks from the engine, as the engine knows them. Engines that keep no such
    /// list have none.
    async fn workers(&self) -> Result<Vec<EngineWorker>, String> {
        Ok(Vec::new())
    }
}

/// A process that takes tasks from an engine, in the words of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineWorker {
    /// The queue of the engine that it takes from.
    pub queue: String,
    /// What it calls itself: the name of a runner.
    pub identity: String,
}

/// Leases alone: each process claims what it may run, and what lost processes left.
pub struct LeaseEngine(pub Arc<dyn DispatchStore>);

#[async_trait]
impl TaskEngine for LeaseEngine {
    fn name(&self) -> &'static str {
        LEASES
    }

    async fn serve(&self, scheduler: Arc<Scheduler>) {
        tokio::select! {
            () = scheduler.claim_tasks(ClaimScope::Everything) => {}
            never = self.withdraw_offers(&scheduler) => match never {},
        }
    }
}

impl LeaseEngine {
    /// What was offered to an engine that nobody uses any more would wait for ever. The last who uses
    /// it may end long after this process began.
    async fn withdraw_offers(&self, scheduler: &Scheduler) -> Infallible {
        let mut failures = 0;
        loop {
            match self.0.withdraw_offers().await {
                Ok(withdrawn) => {
                    failures = 0;
                    if withdrawn > 0 {
                        scheduler.nudge();
                    }
                    // Whoever left before our first heartbeat was never seen here.
                    let has_offers = self.0.open_offers().await.is_ok_and(|all| !all.is_empty());
                    tokio::select! {
                        () = scheduler.runner_left() => {}
                        () = tokio::time::sleep(LOOK_AGAIN), if has_offers => {}
                    }
                }
                Err(_) => {
                    failures += 1;
                    tokio::time::sleep(RETRY.delay(failures)).await;
                }
            }
        }
    }
}
