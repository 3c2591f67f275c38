//! Between the database and an engine that delivers.
//!
//! ```text
//! pump    ready tasks ── admit_tasks ──► offers ──► engine        any number of processes at once
//! sweep   offers that nobody works on ──► engine, again           one process; mends what was lost
//! bring   engine ──► begin_task ──► attempt here ──► what the engine is to do with the offer
//! ```
//!
//! The engine is never trusted with more than delivery. A task that it loses is offered again, one
//! that it brings twice is begun once, and whom it takes for lost is asked in the database.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use codespar_protocol::{Backoff, TaskId, TaskType};
use codespar_store::{
    Begun, ChangeFollower, ChangeKind, DispatchStore, EngineState, StoreError, TaskClass, TaskOffer,
};

use crate::{Scheduler, scheduler::AttemptEnd};

/// How many tasks of a class and set of labels wait in the engine at most. What is behind them can
/// still take turns by repository.
const WINDOW: u32 = 64;
/// Between two looks for offers that nobody works on.
const SWEEP: Duration = Duration::from_secs(5);
/// How long changes are gathered before ready tasks are looked for.
const GATHER: Duration = Duration::from_millis(20);
/// How long an offer rests that another process has. A task whose process is lost gets an offer of its
/// own, so nobody waits for this.
const HELD_ELSEWHERE: Duration = Duration::from_secs(15);
/// How long an offer rests that finds no room here.
const NO_ROOM: Duration = Duration::from_secs(1);
/// Between tries while the database or the engine is out of reach.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(200),
    longest: Duration::from_secs(5),
};

/// Where offers go.
#[async_trait]
pub trait OfferSink: Send + Sync {
    /// Hands an offer over to the engine. One that it has already is left as it is.
    async fn offer(&self, offer: &TaskOffer) -> Result<(), String>;

    /// The same for an offer that nobody works on, and that the engine should have by now. Somebody
    /// may have cancelled it there meanwhile.
    async fn renew(&self, offer: &TaskOffer) -> Result<Renewed, String> {
        self.offer(offer).await.map(|()| Renewed::Offered)
    }
}

/// What became of an offer that an engine should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewed {
    /// The engine has it.
    Offered,
    /// It was cancelled by way of the engine, for this reason.
    Cancelled(String),
}

/// What an engine is to do with an offer that it brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brought {
    /// Forget it.
    Over,
    /// Bring it again after this time, here or elsewhere.
    Again(Duration),
}

/// How offers were taken by the engine, one after the other.
#[derive(Debug, Default)]
struct Tries {
    succeeded: u32,
    failed: u32,
    failed_in_a_row: u32,
}

impl Tries {
    /// So many failures one after the other are not about the offers.
    const OUT_OF_REACH: u32 = 3;

    fn count<T>(&mut self, tried: &Result<T, String>) {
        match tried {
            Ok(_) => {
                self.succeeded += 1;
                self.failed_in_a_row = 0;
            }
            Err(error) => {
                tracing::warn!("an offer is not made: {error}");
                self.failed += 1;
                self.failed_in_a_row += 1;
            }
        }
    }

    fn is_out_of_reach(&self) -> bool {
        self.failed_in_a_row >= Self::OUT_OF_REACH
    }
}

/// One for each process that uses such an engine.
pub struct Dispatcher {
    store: Arc<dyn DispatchStore>,
    scheduler: Arc<Scheduler>,
    /// Which offer is tried while the engine is out of reach.
    turn: AtomicUsize,
}

impl Dispatcher {
    pub fn new(store: Arc<dyn DispatchStore>, scheduler: Arc<Scheduler>) -> Self {
        Self {
            store,
            scheduler,
            turn: AtomicUsize::new(0),
        }
    }

    /// Admits ready tasks and offers them until the process leaves. An offer that fails is made again
    /// by a sweep, of this process or another.
    pub async fn pump(&self, sink: &dyn OfferSink) {
        let leaving = self.scheduler.leaving();
        let mut changes = self.follow().await;
        let mut failures = 0;
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !leaving.is_cancelled() {
            if changes.is_none() {
                changes = self.follow().await;
            }
            let wait = match self.offer_ready(sink).await {
                Ok(()) => {
                    failures = 0;
                    None
                }
                Err(_) => {
                    failures += 1;
                    Some(RETRY.delay(failures))
                }
            };
            let next = async {
                match wait {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => next_change(&mut changes).await,
                }
            };
            tokio::select! {
                () = next => {}
                _ = sweep.tick() => self.sweep(sink).await,
                () = leaving.cancelled() => {}
            }
        }
    }

    async fn follow(&self) -> Option<ChangeFollower> {
        match self.scheduler.change_feed() {
            Some(feed) => feed.follow().await.ok(),
            None => None,
        }
    }

    /// The error says nothing more: what was admitted and not offered is found by a sweep.
    async fn offer_ready(&self, sink: &dyn OfferSink) -> Result<(), ()> {
        let types = self.scheduler.served_types();
        let offers = self.store.admit_tasks(&types, WINDOW).await;
        let mut tries = Tries::default();
        for offer in offers.map_err(drop)? {
            tries.count(&sink.offer(&offer).await);
            if tries.is_out_of_reach() {
                break;
            }
        }
        self.tell(&tries);
        match tries.failed {
            0 => Ok(()),
            _ => Err(()),
        }
    }

    /// By one of the workers that reach the engine: the others would make the same offers again.
    async fn sweep(&self, sink: &dyn OfferSink) {
        let mut tries = Tries::default();
        for offer in self.to_renew().await.unwrap_or_default() {
            let renewed = sink.renew(&offer).await;
            tries.count(&renewed);
            if let Ok(Renewed::Cancelled(reason)) = renewed {
                // Asked for again by the next sweep if it fails.
                let _ = self.scheduler.ask_to_stop(&offer.task, &reason).await;
            }
            if tries.is_out_of_reach() {
                break;
            }
        }
        self.tell(&tries);
    }

    /// A worker that does not reach the engine tries one offer, which tells whether it is back; each time
    /// another, because the failure may be about the offer.
    async fn to_renew(&self) -> Result<Vec<TaskOffer>, StoreError> {
        if self.scheduler.engine_state() == EngineState::Unreachable {
            let mut offers = self.store.open_offers().await?;
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let place = turn.checked_rem(offers.len());
            return Ok(place
                .map(|place| offers.swap_remove(place))
                .into_iter()
                .collect());
        }
        let engine = self.scheduler.engine_name();
        let dispatchers = self.store.dispatchers(engine).await?;
        match dispatchers.first() == Some(self.scheduler.id()) {
            true => self.store.open_offers().await,
            false => Ok(Vec::new()),
        }
    }

    /// Others see from it whether this process can dispatch.
    fn tell(&self, tries: &Tries) {
        match (tries.succeeded, tries.failed) {
            (0, 0) => {}
            (0, _) => self.scheduler.set_engine_state(EngineState::Unreachable),
            _ => self.scheduler.set_engine_state(EngineState::Connected),
        }
    }

    /// Begins what an engine brought and waits for the end of the attempt. What runs here already,
    /// because the engine took this process for lost, is only waited for.
    pub async fn bring(&self, task: &TaskId, number: u64, task_type: TaskType) -> Brought {
        if self.scheduler.leaving().is_cancelled() {
            return Brought::Again(Duration::ZERO);
        }
        if let Some(attempt) = self.scheduler.attempt_here(task) {
            return over(attempt).await;
        }
        // Held until the task counts itself: several queues may bring at the same time.
        let Some(place) = self.scheduler.reserve(TaskClass::of(task_type)) else {
            return Brought::Again(NO_ROOM);
        };
        let attempt = match self.begin(task, number).await {
            Begun::Claimed(claimed) => self.scheduler.start(*claimed),
            Begun::Nothing => return Brought::Over,
            Begun::Held(_) => return Brought::Again(HELD_ELSEWHERE),
        };
        drop(place);
        over(attempt).await
    }

    /// Waits for a database that is out of reach: the engine has no better place to try.
    async fn begin(&self, task: &TaskId, number: u64) -> Begun {
        let mut failures = 0;
        loop {
            let begun = self.store.begin_task(self.scheduler.id(), task, number);
            match begun.await {
                Ok(begun) => return begun,
                Err(_) if self.scheduler.leaving().is_cancelled() => {
                    return Begun::Held(self.scheduler.id().clone());
                }
                Err(_) => {
                    failures += 1;
                    tokio::time::sleep(RETRY.delay(failures)).await;
                }
            }
        }
    }
}

async fn over(mut attempt: tokio::sync::watch::Receiver<Option<AttemptEnd>>) -> Brought {
    let end = attempt.wait_for(Option::is_some).await;
    match end.ok().and_then(|end| *end) {
        Some(AttemptEnd::HandedBack) => Brought::Again(Duration::ZERO),
        Some(AttemptEnd::Later(pause)) => Brought::Again(pause),
        // Nobody told: the process ends.
        Some(AttemptEnd::Over) | None => Brought::Over,
    }
}

/// A task was made, began or ended: each may let others be admitted. Without a feed sweeps look.
async fn next_change(changes: &mut Option<ChangeFollower>) {
    match changes {
        Some(changes) => {
            changes
                .until(|change| matches!(change.kind, ChangeKind::Task { .. }))
                .await;
            tokio::time::sleep(GATHER).await;
        }
        None => std::future::pending().await,
    }
}
