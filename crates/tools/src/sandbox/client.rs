//! Our side of the guard: starting it and handing it commands.
//!
//! A command is handed over in two steps: its two descriptors through the guard's socket, which
//! whoever takes the next order receives, and the order itself over the control socket, which from
//! then on belongs to this command alone. All calls block: `process` makes them on another thread,
//! unless they are quick.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use parking_lot::Mutex;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{
    GUARD_COMMAND, SandboxError, descriptors,
    guard::Setup,
    order::{self, CommandLine, Order, Report},
};

/// A guard to hand commands to; it is started when the first one comes. It ends with this value:
/// nothing else holds our end of the socket.
pub(super) struct GuardClient {
    program: PathBuf,
    /// The lock is held only while descriptors are sent or a guard is started.
    socket: Mutex<Option<OwnedFd>>,
}

/// A command that is under way in a guard. Dropped, it kills the command: the watcher sees its
/// lifeline close.
pub(crate) struct Guarded {
    /// Lifeline and report.
    pub(crate) control: UnixStream,
    /// What the command writes.
    pub(crate) output: OwnedFd,
}

impl GuardClient {
    pub(super) fn new(program: PathBuf) -> Self {
        Self {
            program,
            socket: Mutex::default(),
        }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Whether a guard was started; it may have been killed since.
    pub(super) fn is_running(&self) -> bool {
        self.socket.lock().is_some()
    }

    /// Has a command started. Returns when the order is sent; whether the command could be started
    /// is said by the report.
    pub(super) fn start(
        &self,
        setup: &Setup,
        order: &Order,
        line: &CommandLine,
    ) -> Result<Guarded, SandboxError> {
        let frame = order::encode(order, line)?;
        self.hand_over(setup, &frame)
            .map_err(|error| SandboxError::Guard {
                program: self.program.clone(),
                error,
            })
    }

    /// A guard that was killed is noticed by the failing `send`, and replaced once. The descriptors
    /// of a command have then not been received by anybody, so no command is run twice.
    fn hand_over(&self, setup: &Setup, frame: &[u8]) -> io::Result<Guarded> {
        let (mut control, theirs) = UnixStream::pair()?;
        // One pipe for both streams, so that their lines stay in order.
        let (output, input) = io::pipe()?;
        {
            let mut socket = self.socket.lock();
            let sent = match socket.as_ref() {
                Some(socket) => descriptors::send(socket, &[theirs.as_fd(), input.as_fd()]),
                None => Err(io::ErrorKind::NotConnected.into()),
            };
            if sent.is_err() {
                // Not started yet, or killed since.
                let fresh = launch(&self.program, setup)?;
                descriptors::send(&fresh, &[theirs.as_fd(), input.as_fd()])?;
                *socket = Some(fresh);
            }
        }
        drop((theirs, input));
        control.write_all(frame)?;
        Ok(Guarded {
            control,
            output: output.into(),
        })
    }

    /// Runs a command to its end, without looking at what it writes. Returns the report and the
    /// first 16 KiB of the output. The output is read after the end, so a command that writes more
    /// than a pipe holds never ends here: this is for `probe` alone. The error is a text for the
    /// user; a guard that could not be started and one that is silent for `patience` are among its
    /// reasons.
    pub(super) fn attempt(
        &self,
        setup: &Setup,
        order: &Order,
        line: &CommandLine,
        patience: Duration,
    ) -> Result<(Report, String), String> {
        let message_of = |error: &dyn std::fmt::Display| error.to_string();
        let guarded = self.start(setup, order, line).map_err(|e| message_of(&e))?;
        let mut control = guarded.control;
        control
            .set_read_timeout(Some(patience))
            .map_err(|error| message_of(&error))?;
        let mut text = Vec::new();
        control
            .read_to_end(&mut text)
            .map_err(|_| format!("nothing happened in {} s", patience.as_secs()))?;
        let mut said = String::new();
        let _ = File::from(guarded.output)
            .take(16 << 10)
            .read_to_string(&mut said);
        let report = serde_json::from_slice(&text)
            .map_err(|_| "the guard process ended without a report".to_owned())?;
        Ok((report, said))
    }
}

/// Starts a guard. Its environment is empty: what repositories put into a command's must not reach
/// anything outside of the sandbox. The socket is of the kind that keeps messages apart, so each
/// order arrives with its own descriptors. The guard's process group is its own: Ctrl-C at the
/// terminal does not reach it.
///
/// Waits for the first process to exit, which it does as soon as it has forked the guard itself.
/// Any other exit code than 0 is an error.
fn launch(program: &Path, setup: &Setup) -> io::Result<OwnedFd> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let status = Command::new(program)
        .arg(GUARD_COMMAND)
        .arg(serde_json::to_string(setup)?)
        .env_clear()
        .current_dir("/")
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status()?;
    if status.success() {
        Ok(ours)
    } else {
        Err(io::Error::other(format!("it ended with {status}")))
    }
}
