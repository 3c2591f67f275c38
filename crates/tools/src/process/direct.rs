//! A command that we run ourselves, held by its process group: where there is no guard.
//!
//! Used on systems without guards and in tests. A process that leaves the group (`setsid`) is not
//! found, and nothing happens to the command if we are killed.

use std::{
    io,
    process::Stdio,
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    process::{Child, Command},
    time::{sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::sandbox::CommandLine;

use super::{Capture, Ended, Ending, Launch, OUTPUT_GRACE, ProcessError, hold::Hold};

/// A command under way. Dropped, its group is killed.
pub(super) struct Running {
    child: Child,
    output: pipe::Receiver,
    hold: Hold,
    /// Whether the output has ended: nobody holds the pipe any more.
    closed: bool,
}

impl Running {
    /// Standard input is empty, and the environment is the one in `line`.
    pub(super) fn start(launch: &Launch, line: &CommandLine) -> Result<Self, ProcessError> {
        let failed = |error| ProcessError::Start {
            program: launch.program.clone(),
            cwd: launch.cwd.clone(),
            error,
        };
        // One pipe for both streams, so that their lines stay in order.
        let (output, input) = io::pipe().map_err(failed)?;
        let mut command = Command::new(&line.program);
        command
            .args(&line.arguments)
            .current_dir(&launch.cwd)
            .env_clear()
            .envs(line.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(input.try_clone().map_err(failed)?)
            .stdout(input)
            .process_group(0);
        let child = command.spawn().map_err(failed)?;
        // Our ends of the pipe are in there.
        drop(command);
        Ok(Self {
            hold: Hold::of(&child),
            output: pipe::Receiver::from_owned_fd(output.into()).map_err(failed)?,
            child,
            closed: false,
        })
    }

    /// Until the process has ended; says how, if that was our doing. After the steps of
    /// [`Hold::tighten`] it goes on waiting and killing every few seconds: there is no end without
    /// the process's end.
    pub(super) async fn follow(
        &mut self,
        deadline: Instant,
        capture: &mut Capture,
        cancel: &CancellationToken,
    ) -> io::Result<Option<Ending>> {
        let mut buffer = vec![0; 64 << 10];
        let mut stopped: Option<Ending> = None;
        let mut next = deadline;
        loop {
            tokio::select! {
                status = self.child.wait() => {
                    status?;
                    return Ok(stopped);
                }
                read = self.output.read(&mut buffer), if !self.closed => match read? {
                    0 => self.closed = true,
                    count => capture.push(&buffer[..count]),
                },
                () = cancel.cancelled(), if stopped.is_none() => {
                    stopped = Some(Ending::Cancelled);
                    next = self.hold.tighten();
                }
                () = sleep_until(next.into()) => {
                    stopped.get_or_insert(Ending::TimedOut);
                    next = self.hold.tighten();
                }
            }
        }
    }

    /// After the process's end: what it still had to say, and what it left behind. A background
    /// process that holds the output is noticed by that and killed with its group; one that has
    /// closed it is killed too, but not told.
    pub(super) async fn conclude(mut self, capture: &mut Capture) -> Result<Ended, ProcessError> {
        self.hold.collected();
        // Already collected, so this does not wait.
        let status = self.child.wait().await?;
        self.drain(capture).await;
        let mut leftovers = Vec::new();
        if !self.closed && self.hold.is_loose() {
            leftovers.push("a process that holds on to the output".to_owned());
        }
        self.hold.clear_out();
        self.drain(capture).await;
        Ok(Ended {
            ending: ending_of(status),
            duration: Duration::ZERO,
            leftovers,
            restored: Vec::new(),
            blocked: Vec::new(),
        })
    }

    /// Reads until the output ends or pauses for [`OUTPUT_GRACE`].
    async fn drain(&mut self, capture: &mut Capture) {
        let mut buffer = vec![0; 64 << 10];
        while !self.closed {
            match timeout(OUTPUT_GRACE, self.output.read(&mut buffer)).await {
                Ok(Ok(count)) if count > 0 => capture.push(&buffer[..count]),
                Ok(_) => self.closed = true,
                Err(_) => return,
            }
        }
    }
}

fn ending_of(status: std::process::ExitStatus) -> Ending {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signalled(signal.unwrap_or(9)),
    }
}
