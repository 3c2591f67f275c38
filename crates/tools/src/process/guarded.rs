//! A command that a guard runs for us.
//!
//! The control socket carries three things: a byte from us that asks the command to end, the
//! closing of our half that kills it, and the guard's report followed by the end of the stream.
//! Output comes over a pipe of its own. Both are read at the same time: a command that nobody reads
//! from would block.

use std::{io, time::Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    time::{sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::sandbox::{Guarded, GuardedEnd, Report};

use super::{Capture, Ended, Ending, GRACE, GUARD_GRACE, OUTPUT_GRACE, ProcessError};

/// What the sandbox program says when it fails begins like this. A command can print the same; only
/// together with [`Report::NotSetUp`] does it count.
const SANDBOX_SAYS: &[u8] = b"bwrap: ";

/// More than this is no message of the sandbox program.
const LONGEST_MESSAGE: usize = 4 << 10;

/// How far we have gone to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Running,
    Asked,
    Killed,
}

/// A command under way. Dropped, its lifeline closes and the guard kills it, without a report to
/// anybody.
pub(super) struct Running {
    control: UnixStream,
    output: pipe::Receiver,
    /// As far as it has arrived; JSON.
    report: Vec<u8>,
    /// Output that may be the sandbox program's own. `None` once it is known to be the command's.
    early: Option<Vec<u8>>,
    step: Step,
    closed: bool,
}

impl Running {
    /// Must be called on the runtime, which watches both descriptors from here on.
    pub(super) fn new(guarded: Guarded) -> io::Result<Self> {
        guarded.control.set_nonblocking(true)?;
        Ok(Self {
            control: UnixStream::from_std(guarded.control)?,
            output: pipe::Receiver::from_owned_fd(guarded.output)?,
            report: Vec::new(),
            early: Some(Vec::new()),
            step: Step::Running,
            closed: false,
        })
    }

    /// Until the guard has reported. What the report says of the end is replaced by
    /// [`Ending::TimedOut`] or [`Ending::Cancelled`] if we stopped the command; an error in the
    /// report stays one, since protected paths may be in disorder.
    pub(super) async fn finish(
        mut self,
        deadline: Instant,
        capture: &mut Capture,
        cancel: &CancellationToken,
    ) -> Result<Ended, ProcessError> {
        let stopped = self.follow(deadline, capture, cancel).await?;
        self.drain(capture).await;
        let report = serde_json::from_slice(&self.report);
        if let Ok(Report::NotSetUp) = report {
            let message = self.early.take().unwrap_or_default();
            let message = String::from_utf8_lossy(&message).trim().to_owned();
            return Err(ProcessError::Sandbox(message));
        }
        self.let_go(capture);
        let mut ended = match report {
            Ok(Report::Ended(end)) => ended(end),
            Ok(Report::Failed { reason }) => return Err(ProcessError::Sandbox(reason)),
            Ok(Report::Broken { reason }) => return Err(io::Error::other(reason).into()),
            Ok(Report::NotSetUp) | Err(_) => {
                return Err(ProcessError::Watch(io::Error::other(
                    "its guard ended without a report; what it started was killed",
                )));
            }
        };
        if let Some(ending) = stopped {
            ended.ending = ending;
        }
        Ok(ended)
    }

    /// Until the guard closes its end; says how the command ended, if that was our doing. Returns
    /// without a report if the guard does not answer within [`GUARD_GRACE`] of being told to kill.
    async fn follow(
        &mut self,
        deadline: Instant,
        capture: &mut Capture,
        cancel: &CancellationToken,
    ) -> io::Result<Option<Ending>> {
        let mut buffer = vec![0; 64 << 10];
        let mut chunk = [0; 4 << 10];
        let mut stopped: Option<Ending> = None;
        let mut next = deadline;
        loop {
            tokio::select! {
                read = self.control.read(&mut chunk) => match read {
                    Ok(0) | Err(_) => return Ok(stopped),
                    Ok(count) => self.report.extend_from_slice(&chunk[..count]),
                },
                read = self.output.read(&mut buffer), if !self.closed => match read? {
                    0 => self.closed = true,
                    count => self.take(&buffer[..count], capture),
                },
                () = cancel.cancelled(), if stopped.is_none() => {
                    stopped = Some(Ending::Cancelled);
                    next = self.tighten().await;
                }
                () = sleep_until(next.into()) => {
                    stopped.get_or_insert(Ending::TimedOut);
                    if self.step == Step::Killed {
                        return Ok(stopped);
                    }
                    next = self.tighten().await;
                }
            }
        }
    }

    /// Takes the next step; returns when the one after it is due.
    async fn tighten(&mut self) -> Instant {
        match self.step {
            Step::Running => {
                let _ = self.control.write_all(b"e").await;
                self.step = Step::Asked;
                Instant::now() + GRACE
            }
            Step::Asked | Step::Killed => {
                // The guard sees the end of what we have to say; its report still arrives.
                let _ = self.control.shutdown().await;
                self.step = Step::Killed;
                Instant::now() + GUARD_GRACE
            }
        }
    }

    /// Holds output back for as long as it could be a message of the sandbox program.
    fn take(&mut self, bytes: &[u8], capture: &mut Capture) {
        let Some(early) = &mut self.early else {
            capture.push(bytes);
            return;
        };
        early.extend_from_slice(bytes);
        let known = early.len().min(SANDBOX_SAYS.len());
        if early[..known] != SANDBOX_SAYS[..known] || early.len() > LONGEST_MESSAGE {
            self.let_go(capture);
        }
    }

    /// It was the command's output after all.
    fn let_go(&mut self, capture: &mut Capture) {
        if let Some(early) = self.early.take() {
            capture.push(&early);
        }
    }

    /// Reads what is still in the pipe after the report, until it ends or pauses for
    /// [`OUTPUT_GRACE`].
    async fn drain(&mut self, capture: &mut Capture) {
        let mut buffer = vec![0; 64 << 10];
        while !self.closed {
            match timeout(OUTPUT_GRACE, self.output.read(&mut buffer)).await {
                Ok(Ok(count)) if count > 0 => self.take(&buffer[..count], capture),
                Ok(_) => self.closed = true,
                Err(_) => return,
            }
        }
    }
}

/// Duration and refused hosts are filled in by the caller.
fn ended(end: GuardedEnd) -> Ended {
    Ended {
        ending: match (end.code, end.signal) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Signalled(signal),
            (None, None) => Ending::Signalled(9),
        },
        duration: std::time::Duration::ZERO,
        leftovers: end.leftovers,
        restored: end.restored,
        blocked: Vec::new(),
    }
}
