//! The heartbeat: says that this process is there, learns what became of its tasks, and looks after
//! the other runners. It outlives the work: it ends when all of it is recorded or handed back.
//!
//! A process that has nothing to do and nobody to look after pauses its heartbeat, so that a session
//! at its prompt costs nothing. The first change of any task ends the pause.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use codespar_protocol::{TaskId, TaskStatus};
use codespar_store::{
    Beat, ChangeKind, HeldTask, RunnerAbout, RunnerId, StoreChange, WorkElsewhere,
};

use super::{
    Scheduler,
    watch::{Verdict, Watch},
};
use crate::runner::TaskStopReason;

/// How often.
pub(super) const BEAT: Duration = Duration::from_secs(1);
/// How long news are gathered before they are asked for: many may come at once.
const SOON: Duration = Duration::from_millis(50);
/// A change of a task that runs here for less than this is taken for our own.
const OURS: Duration = Duration::from_millis(100);
/// A task that ran through so many heartbeats did not end its process. Earlier take-overs then no
/// longer count against it: a task that is taken over ten times in a row within a minute each fails
/// instead of ending more processes.
const STABLE: u32 = 60;
/// A task that the store says is ours and nobody here works on is handed back after so many. It
/// was claimed by a call whose answer never came, or whose caller was gone.
const FORGOTTEN: u32 = 10;

/// After so many it is looked whether tasks that someone here follows have ended elsewhere. It
/// takes two looks, so a listener may stay for twenty seconds longer than needed; that costs memory
/// only.
const FOLLOWED: u32 = 10;

/// After so many heartbeats with nothing to do they pause. One before that, every change of a task
/// counts as work already: what happens between the last heartbeat and the pause is not missed.
const IDLE: u32 = 3;

/// Since when tasks are ours that nobody works on.
type Forgotten = HashMap<(TaskId, u64), u32>;

impl Scheduler {
    /// Until `leave` has come to its end.
    pub(super) async fn keep_beating(self: Arc<Self>) {
        let (mut watch, mut forgotten) = (Watch::default(), Forgotten::new());
        let (mut beats, mut ended) = (0_u32, HashSet::new());
        let mut idle = 0_u32;
        let mut there = HashSet::new();
        while !self.over.is_cancelled() {
            // A store that fails is tried again with the next; until then nothing is taken, and
            // nobody's silence is counted.
            if let Some(beat) = self.beat().await {
                self.look_after_others(&mut watch, &beat).await;
                there = self.tell_who_left(&there, &beat);
                idle = match self.is_idle(&beat) {
                    true => idle + 1,
                    false => 0,
                };
                self.is_pausing.store(idle + 1 >= IDLE, Ordering::SeqCst);
                self.hand_back_forgotten(&mut forgotten, beat.unknown).await;
                beats = beats.wrapping_add(1);
                if beats % FOLLOWED == 0 {
                    ended = self.stop_following(ended).await;
                }
                // Looking for work once more would be taken for work.
                if !self.is_pausing.load(Ordering::SeqCst) {
                    self.nudge();
                }
            }
            self.until_next(idle).await;
            if idle >= IDLE {
                idle = 0;
                self.is_pausing.store(false, Ordering::SeqCst);
            }
        }
    }

    /// Until the next heartbeat is due. News of tasks that run here are asked for in between, so a
    /// stop from another host need not wait for it.
    async fn until_next(&self, idle: u32) {
        let next = async {
            match idle >= IDLE {
                true => self.work_to_do.notified().await,
                false => self.clock.sleep(BEAT).await,
            }
        };
        tokio::pin!(next);
        loop {
            tokio::select! {
                () = &mut next => return,
                () = self.over.cancelled() => return,
                () = self.news.notified() => {}
            }
            self.clock.sleep(SOON).await;
            let held = self.held_now();
            self.tell(&held).await;
        }
    }

    /// Called for every change that is committed. What is done to a task in its first moments here
    /// is mostly our own claim; anything else of those is heard of with the next heartbeat.
    pub(super) fn hear(&self, change: &StoreChange) {
        let may_be_told = match change.kind {
            ChangeKind::Task { status } => status == TaskStatus::Running,
            ChangeKind::Mail => true,
            _ => false,
        };
        let Some(id) = change.task_id.as_ref().filter(|_| may_be_told) else {
            return;
        };
        let held = self.held.lock();
        if held.get(id).is_some_and(|task| task.since.elapsed() > OURS) {
            self.news.notify_one();
        }
    }

    /// Whether no heartbeat is needed until a task changes. Without a feed nobody would tell; a
    /// worker is looked for by its heartbeats.
    fn is_idle(&self, beat: &Beat) -> bool {
        beat.elsewhere == WorkElsewhere::None
            && beat.unknown.is_empty()
            && self.is_told.load(Ordering::SeqCst)
            && !self.id.is_worker()
            && self.held.lock().is_empty()
            && self.followed_elsewhere().is_empty()
    }

    /// Says that we are there, and passes on what the store has to say.
    ///
    /// `None` if the store failed. A task that the store calls lost may have ended and been claimed
    /// again here since the list was made; the epoch tells the two apart.
    async fn beat(&self) -> Option<Beat> {
        let held = self.holdings();
        self.tell(&held).await
    }

    async fn tell(&self, held: &[HeldTask]) -> Option<Beat> {
        let beat = self.leases.beat(&self.id, &self.about(), held).await.ok()?;
        *self.last_beat.lock() = Some(self.clock.now());
        for id in &beat.lost {
            let known = held.iter().find(|task| task.id == *id);
            if known.is_some_and(|task| self.epoch_of(id) == Some(task.epoch)) {
                self.lease_losses.fetch_add(1, Ordering::Relaxed);
                self.signal(id, TaskStopReason::LeaseLost);
            }
        }
        for (id, reason) in &beat.stop {
            self.signal(id, TaskStopReason::Asked(reason.clone()));
        }
        for id in &beat.mail {
            self.wake_for_mail(id);
        }
        Some(beat)
    }

    /// This process, for people who look at all of them.
    fn about(&self) -> RunnerAbout {
        let host = rustix::system::uname();
        RunnerAbout {
            host: host.nodename().to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: self.labels.read().clone(),
            started_at: self.started_at,
            agents: self.limits.agents,
            shells: self.limits.shells,
            engine: self.engine.name().to_owned(),
            engine_state: *self.engine_state.lock(),
        }
    }

    /// What runs here, as the heartbeat reports it. Counts one for each task, whether or not the
    /// store then records it.
    fn holdings(&self) -> Vec<HeldTask> {
        let mut held = self.held.lock();
        let tell = |(id, task): (&TaskId, &mut super::Held)| {
            task.beats = task.beats.saturating_add(1);
            HeldTask {
                id: id.clone(),
                epoch: task.epoch,
                is_stable: task.beats % STABLE == 0,
            }
        };
        held.iter_mut().map(tell).collect()
    }

    /// The same, and counts nothing.
    fn held_now(&self) -> Vec<HeldTask> {
        let held = self.held.lock();
        let tell = |(id, task): (&TaskId, &super::Held)| HeldTask {
            id: id.clone(),
            epoch: task.epoch,
            is_stable: false,
        };
        held.iter().map(tell).collect()
    }

    fn epoch_of(&self, id: &TaskId) -> Option<u64> {
        self.held.lock().get(id).map(|task| task.epoch)
    }

    async fn look_after_others(&self, watch: &mut Watch, beat: &Beat) {
        for verdict in watch.look(&beat.others, &*self.presence) {
            // Refused when it has shown a sign of life meanwhile; tried again when the store fails.
            let _ = match &verdict {
                Verdict::Silent(runner) => self.leases.mark_silent(runner).await,
                Verdict::Lost(runner) => self.leases.reap_runner(runner).await,
            };
        }
    }

    /// Gives those that are there now.
    fn tell_who_left(&self, before: &HashSet<RunnerId>, beat: &Beat) -> HashSet<RunnerId> {
        let alive = beat.others.iter().filter(|other| !other.is_silent);
        let there: HashSet<RunnerId> = alive.map(|other| other.id.clone()).collect();
        if !before.is_subset(&there) {
            self.runner_left.notify_one();
        }
        there
    }

    /// Lets go of whoever follows a task that another process has brought to its end; one that ends
    /// here lets go by itself. Gives the tasks that were found ended: a message may start one again
    /// at this very moment, so they are let go when the next look finds the same.
    async fn stop_following(&self, ended_before: HashSet<TaskId>) -> HashSet<TaskId> {
        let followed = self.followed_elsewhere();
        if followed.is_empty() {
            return HashSet::new();
        }
        let Ok(unfinished) = self.leases.unfinished(&followed).await else {
            return ended_before;
        };
        let unfinished: HashSet<TaskId> = unfinished.into_iter().collect();
        let mut ended: HashSet<TaskId> = followed.into_iter().collect();
        ended.retain(|id| !unfinished.contains(id));
        for id in ended.intersection(&ended_before) {
            self.events.forget_task(id);
            if let Some(waiter) = self.waiters.lock().remove(id) {
                waiter.notify_waiters();
            }
        }
        ended
    }

    /// Tasks that someone here listens to or waits for and that do not run here.
    fn followed_elsewhere(&self) -> Vec<TaskId> {
        let mut followed: HashSet<TaskId> = self.events.followed_tasks().into_iter().collect();
        followed.extend(self.waiters.lock().keys().cloned());
        let held = self.held.lock();
        followed.retain(|id| !held.contains_key(id));
        followed.into_iter().collect()
    }

    /// A task is handed back only if it is unknown in ten heartbeats in a row: one that was claimed
    /// a moment ago may not be among those held here yet.
    async fn hand_back_forgotten(&self, forgotten: &mut Forgotten, unknown: Vec<(TaskId, u64)>) {
        forgotten.retain(|task, _| unknown.contains(task));
        for task in unknown {
            let times = forgotten.entry(task.clone()).or_default();
            *times += 1;
            if *times >= FORGOTTEN && self.epoch_of(&task.0).is_none() {
                let _ = self.leases.release_task(&task.0, task.1).await;
            }
        }
    }
}
