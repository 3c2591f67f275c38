//! How a running command is made to end: asked first, then killed, and killed if it is let go of.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin},
};

use crate::sandbox::Leash;

use super::{GRACE, GUARD_GRACE};

/// How far we have gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Running,
    Asked,
    Killed,
    Broken,
}

/// The hold on one command. Dropped, it kills.
pub(super) struct Hold {
    step: Step,
    group: Option<Pid>,
    leash: Leash,
    lifeline: Option<ChildStdin>,
    collected: bool,
}

impl Hold {
    pub(super) fn of(child: &mut Child, leash: Leash) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            step: Step::Running,
            group: pid.and_then(Pid::from_raw),
            leash,
            lifeline: child.stdin.take(),
            collected: false,
        }
    }

    /// Takes the next step; returns when the one after it is due.
    pub(super) async fn tighten(&mut self) -> Instant {
        match (self.step, self.leash) {
            (Step::Running, Leash::Guard) => {
                if let Some(lifeline) = &mut self.lifeline {
                    let _ = lifeline.write_all(b"e").await;
                }
                self.reach(Step::Asked, GRACE)
            }
            (Step::Running, Leash::Group) => {
                self.signal(Signal::TERM);
                self.reach(Step::Asked, GRACE)
            }
            (Step::Asked, Leash::Guard) => {
                self.lifeline = None;
                self.reach(Step::Killed, GUARD_GRACE)
            }
            _ => {
                self.signal(Signal::KILL);
                self.reach(Step::Broken, GUARD_GRACE)
            }
        }
    }

    /// The process has been collected; its number may soon be somebody else's.
    pub(super) fn collected(&mut self) {
        self.collected = true;
    }

    /// Kills what its group may have left behind.
    pub(super) fn clear_out(&self) {
        if self.leash == Leash::Group {
            self.signal(Signal::KILL);
        }
    }

    /// Whether we did anything to end it.
    pub(super) fn is_loose(&self) -> bool {
        self.step == Step::Running
    }

    /// Whether even the guard had to be killed.
    pub(super) fn is_killed(&self) -> bool {
        self.step == Step::Broken
    }

    fn reach(&mut self, step: Step, next: Duration) -> Instant {
        self.step = step;
        Instant::now() + next
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Hold {
    /// The guard sees its lifeline close; a mere group has to be killed. Once the process has been
    /// collected its number may be somebody else's.
    fn drop(&mut self) {
        if self.leash == Leash::Group && !self.collected {
            self.signal(Signal::KILL);
        }
    }
}
