//! What is done to the workers while they work.
//!
//! One worker after the other is killed, cut off, frozen and drained, each at a fixed distance from
//! the one before. Being cut off and frozen may last longer than that, so several workers are in
//! trouble at once; one of them is always spared what lasts. Everything is undone before the trial
//! is judged, so that workers that come back have the chance to write what they must not.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::Serialize;

use super::workers::WorkerProcess;

/// How long a worker is gone after it was killed.
const GONE: Duration = Duration::from_secs(2);
/// How long a worker is cut off or frozen: twice what it takes to be found silent.
const AWAY: Duration = Duration::from_secs(20);
/// After the last one has come back, so that what it still tries to write is seen.
const AFTERMATH: Duration = Duration::from_secs(3);

/// A way in which a worker may be lost to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DisturbanceKind {
    /// Without a chance to do anything; started again a little later on the same host.
    Killed,
    /// Its host reaches nothing, and goes on as before when it can.
    CutOff,
    /// It stands still, as on a host that is suspended; its connections stay.
    Frozen,
    /// As by a rolling upgrade: it hands its tasks over and is started again.
    Drained,
}

impl DisturbanceKind {
    pub(super) const ALL: [Self; 4] = [Self::Killed, Self::CutOff, Self::Frozen, Self::Drained];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed (SIGKILL), back after 2 s",
            Self::CutOff => "cut off from the network for 20 s",
            Self::Frozen => "frozen (SIGSTOP) for 20 s",
            Self::Drained => "drained (SIGTERM), back at once",
        }
    }

    /// It is away for so long that others must go on meanwhile.
    pub(super) fn is_long(self) -> bool {
        matches!(self, Self::CutOff | Self::Frozen)
    }
}

/// One that took place.
#[derive(Debug, Clone)]
pub(super) struct Disturbance {
    pub(super) kind: DisturbanceKind,
    /// The address of the worker's host.
    pub(super) writer: String,
    /// Microseconds since 1970.
    pub(super) at: i64,
}

/// The workers, and what each of them goes through just now.
pub(super) struct Disturber<'a> {
    workers: Vec<(WorkerProcess<'a>, Option<(DisturbanceKind, Instant)>)>,
    next: Instant,
    every: Duration,
    turn: usize,
    made: Vec<Disturbance>,
}

impl<'a> Disturber<'a> {
    pub(super) fn new(workers: Vec<WorkerProcess<'a>>, every: Duration) -> Self {
        Self {
            workers: workers.into_iter().map(|worker| (worker, None)).collect(),
            next: Instant::now() + every,
            every,
            turn: 0,
            made: Vec::new(),
        }
    }

    pub(super) fn made(&self) -> &[Disturbance] {
        &self.made
    }

    pub(super) fn logs(&self) -> String {
        self.workers
            .iter()
            .map(|(worker, _)| worker.logs())
            .collect()
    }

    /// Ends what has lasted long enough and, if it is time for one, begins another.
    pub(super) fn step(&mut self) -> Result<()> {
        self.end_those_due()?;
        if Instant::now() < self.next {
            return Ok(());
        }
        self.next += self.every;
        let kind = DisturbanceKind::ALL[self.turn % DisturbanceKind::ALL.len()];
        let Some(which) = self.choose(kind) else {
            return Ok(());
        };
        self.turn += 1;
        let (worker, state) = &mut self.workers[which];
        self.made.push(Disturbance {
            kind,
            writer: worker.host.address.to_string(),
            at: now()?,
        });
        begin(worker, kind)?;
        *state = Some((kind, Instant::now()));
        Ok(())
    }

    /// The next in turn that nothing is done to. One of all is never away for long.
    fn choose(&self, kind: DisturbanceKind) -> Option<usize> {
        let count = self.workers.len();
        let is_free = |which: &usize| self.workers[*which].1.is_none();
        let free: Vec<usize> = (0..count)
            .map(|step| (self.turn + step) % count)
            .filter(is_free)
            .collect();
        let first = free.first().copied();
        first.filter(|_| !kind.is_long() || free.len() > 1)
    }

    /// Ends what has lasted long enough.
    pub(super) fn end_those_due(&mut self) -> Result<()> {
        for (worker, state) in &mut self.workers {
            if let Some((kind, since)) = *state
                && end(worker, kind, since)?
            {
                *state = None;
            }
        }
        Ok(())
    }

    /// Waits until all are back, and have had time to do what they should not.
    pub(super) fn settle(&mut self) -> Result<()> {
        while self.workers.iter().any(|(_, state)| state.is_some()) {
            self.end_those_due()?;
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(AFTERMATH);
        Ok(())
    }
}

/// What is done at its beginning; `end` undoes it.
fn begin(worker: &mut WorkerProcess<'_>, kind: DisturbanceKind) -> Result<()> {
    match kind {
        DisturbanceKind::Killed => worker.kill(),
        DisturbanceKind::CutOff => worker.host.cut_off(),
        DisturbanceKind::Frozen => worker.freeze(),
        DisturbanceKind::Drained => worker.terminate(),
    }
}

/// Whether it is over.
fn end(worker: &mut WorkerProcess<'_>, kind: DisturbanceKind, since: Instant) -> Result<bool> {
    let is_due = match kind {
        DisturbanceKind::Killed => since.elapsed() >= GONE,
        DisturbanceKind::CutOff | DisturbanceKind::Frozen => since.elapsed() >= AWAY,
        DisturbanceKind::Drained => worker.has_ended(since)?,
    };
    if is_due {
        match kind {
            DisturbanceKind::Killed | DisturbanceKind::Drained => worker.start_again()?,
            DisturbanceKind::CutOff => worker.host.join_again()?,
            DisturbanceKind::Frozen => worker.thaw()?,
        }
    }
    Ok(is_due)
}

/// Microseconds since 1970, as the database server counts them.
pub(super) fn now() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    i64::try_from(since.as_micros()).context("the clock is far in the future")
}
