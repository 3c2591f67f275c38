//! Reads what a git writes until it ends, is too much, takes too long or nobody waits any more.
//!
//! One thread polls both pipes, so neither can fill up and stop git while the other is read.
//! Between two events it wakes every tenth of a second to look at the deadline and at the stop
//! flag; no signal or second thread is needed. Every way out of the pump other than git's own end
//! goes through `Drop`, which sends `TERM` to the process group, gives git time to remove its lock
//! files, sends `KILL` if it is still there, and reaps it.

use std::{
    io::{self, Read},
    os::fd::AsFd,
    process::{Child, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process_group},
};

use crate::{GitError, GitLimits, Output};

/// How often is looked whether anybody still waits. It is also how long a call waits after git has
/// ended while a process that git started keeps the pipes open and silent.
const TICK: Duration = Duration::from_millis(100);
/// How long a git that was asked to end has to remove its lock files.
const GRACE: Duration = Duration::from_secs(2);
/// How much of standard error is kept. The rest is read and thrown away, so that git does not wait
/// on a full pipe.
const MESSAGE_BYTES: usize = 64 << 10;

/// Tells a running call to end.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

/// Ends the call when it is dropped. It lives in the future of
/// [`GitCall::finish`](crate::GitCall::finish): a dropped future is the only sign that nobody waits
/// any more, and the blocking thread cannot see that itself.
#[derive(Default)]
pub(crate) struct StopOnDrop(Arc<Stop>);

impl StopOnDrop {
    pub(crate) fn stop(&self) -> Arc<Stop> {
        self.0.clone()
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

/// A running git. Dropping it ends the process group unless the child was reaped.
pub(crate) struct Pump {
    child: Child,
    command: String,
    limits: GitLimits,
    stop: Arc<Stop>,
    /// Counts from the start of git, not from the first read.
    deadline: Instant,
    /// The child was reaped: its process id may belong to another process now and must not be
    /// signalled.
    over: bool,
}

impl Pump {
    pub(crate) fn new(child: Child, command: String, limits: GitLimits, stop: Arc<Stop>) -> Self {
        Self {
            child,
            command,
            limits,
            stop,
            deadline: Instant::now() + limits.time,
            over: false,
        }
    }

    /// Reads both outputs, then waits. Past `limits.bytes` the whole call is an error; what was
    /// read is dropped.
    pub(crate) fn run(mut self) -> Result<Output, GitError> {
        let (mut out, mut message) = (Vec::new(), Vec::new());
        let mut stdout = self.child.stdout.take();
        let mut stderr = self.child.stderr.take();
        let mut buffer = vec![0; 64 << 10];
        while stdout.is_some() || stderr.is_some() {
            self.check_time()?;
            let mut waiting: Vec<PollFd> = Vec::with_capacity(2);
            waiting.extend(stdout.as_ref().map(|pipe| polled(pipe)));
            waiting.extend(stderr.as_ref().map(|pipe| polled(pipe)));
            let ready = wait_for(&mut waiting, self.patience());
            if ready.map_err(|source| self.failed(source))? == 0 {
                // Something that git started may hold the pipe of a git that is gone.
                if self.has_ended()? {
                    break;
                }
                continue;
            }
            let mut flags = waiting.iter().map(|fd| !fd.revents().is_empty());
            let (out_ready, err_ready) = match (&stdout, &stderr) {
                (Some(_), Some(_)) => (flags.next(), flags.next()),
                (Some(_), None) => (flags.next(), None),
                _ => (None, flags.next()),
            };
            if out_ready == Some(true)
                && let Some(pipe) = &mut stdout
            {
                match pipe
                    .read(&mut buffer)
                    .map_err(|source| self.failed(source))?
                {
                    0 => stdout = None,
                    read => out.extend_from_slice(&buffer[..read]),
                }
                if out.len() > self.limits.bytes {
                    return Err(self.too_much());
                }
            }
            if err_ready == Some(true)
                && let Some(pipe) = &mut stderr
            {
                match pipe
                    .read(&mut buffer)
                    .map_err(|source| self.failed(source))?
                {
                    0 => stderr = None,
                    read => {
                        let room = MESSAGE_BYTES.saturating_sub(message.len());
                        message.extend_from_slice(&buffer[..read.min(room)]);
                    }
                }
            }
        }
        let status = self.wait()?;
        Ok(Output {
            code: status.code(),
            out,
            message: String::from_utf8_lossy(&message).into_owned(),
            command: self.command.clone(),
        })
    }

    /// Waits for standard output to have something, and reads it. `0` is the end of the output.
    /// Time that passes between two calls counts against the limit too.
    pub(crate) fn read_some(
        &mut self,
        pipe: &mut std::process::ChildStdout,
        buffer: &mut [u8],
    ) -> Result<usize, GitError> {
        loop {
            self.check_time()?;
            let ready = wait_for(&mut [polled(pipe)], self.patience());
            if ready.map_err(|source| self.failed(source))? > 0 {
                return pipe.read(buffer).map_err(|source| self.failed(source));
            }
        }
    }

    /// Waits for the process after its output has ended. The pauses begin at a tenth of a
    /// millisecond, because git is usually gone by then, and grow to 20 ms.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus, GitError> {
        let mut pause = Duration::from_micros(100);
        loop {
            let ended = self
                .child
                .try_wait()
                .map_err(|source| self.failed(source))?;
            if let Some(status) = ended {
                self.over = true;
                return Ok(status);
            }
            self.check_time()?;
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    pub(crate) fn too_much(&self) -> GitError {
        GitError::TooMuchOutput {
            command: self.command.clone(),
            limit: self.limits.bytes,
        }
    }

    fn has_ended(&mut self) -> Result<bool, GitError> {
        let ended = self.child.try_wait();
        Ok(ended.map_err(|source| self.failed(source))?.is_some())
    }

    /// How long to poll: a tick, or less when the deadline is nearer.
    fn patience(&self) -> Duration {
        TICK.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// The two reasons to end early. A call that was stopped is reported as interrupted; nobody is
    /// left to read that.
    fn check_time(&self) -> Result<(), GitError> {
        if self.stop.0.load(Ordering::Acquire) {
            return Err(self.failed(io::Error::from(io::ErrorKind::Interrupted)));
        }
        if Instant::now() < self.deadline {
            return Ok(());
        }
        Err(GitError::TimedOut {
            command: self.command.clone(),
            seconds: self.limits.time.as_secs(),
        })
    }

    fn failed(&self, source: io::Error) -> GitError {
        GitError::Start {
            command: self.command.clone(),
            source,
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Pump {
    /// Ends a git that is not over: first so that it can remove its lock files.
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.signal(Signal::TERM);
        let patience = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= patience {
                self.signal(Signal::KILL);
                let _ = self.child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn polled<'f>(pipe: &'f impl AsFd) -> PollFd<'f> {
    PollFd::new(pipe, PollFlags::IN)
}

/// How many pipes are ready; 0 after the time has passed or a signal came.
fn wait_for(fds: &mut [PollFd], patience: Duration) -> io::Result<usize> {
    let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(fds, Some(&timeout)) {
        Err(rustix::io::Errno::INTR) => Ok(0),
        other => other.map_err(io::Error::from),
    }
}
