//! How a running command is made to end: asked first, then killed, and killed if it is let go of.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use super::{GRACE, GUARD_GRACE};

/// How far we have gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Running,
    Asked,
    Killed,
}

/// The hold on one process group. Dropped, it kills. The process must be the leader of its group.
pub(super) struct Hold {
    step: Step,
    group: Option<Pid>,
    /// Dropped after that, it sends no signal.
    collected: bool,
}

impl Hold {
    pub(super) fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            step: Step::Running,
            group: pid.and_then(Pid::from_raw),
            collected: false,
        }
    }

    /// Takes the next step; returns when the one after it is due. Each further call kills once
    /// more.
    pub(super) fn tighten(&mut self) -> Instant {
        if self.step == Step::Running {
            self.signal(Signal::TERM);
            return self.reach(Step::Asked, GRACE);
        }
        self.signal(Signal::KILL);
        self.reach(Step::Killed, GUARD_GRACE)
    }

    /// The process has been collected; its number may soon be somebody else's.
    pub(super) fn collected(&mut self) {
        self.collected = true;
    }

    /// Kills what its group may have left behind.
    pub(super) fn clear_out(&self) {
        self.signal(Signal::KILL);
    }

    /// Whether we did nothing to end it.
    pub(super) fn is_loose(&self) -> bool {
        self.step == Step::Running
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
    /// Once the process has been collected its number may be somebody else's.
    fn drop(&mut self) {
        if !self.collected {
            self.signal(Signal::KILL);
        }
    }
}
