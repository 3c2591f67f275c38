//! The guard: a small process beside us that starts commands and outlives us just long enough to
//! end them.
//!
//! It is this binary, re-executed once with an empty environment. It has one thread and little
//! memory, so that a fork costs little. For each command it forks a watcher (`watch`), if it can
//! before the command comes (`spare`), which does the rest; should one of those be killed, the
//! guard ends what it has left.
//!
//! ```text
//! agent                    sends orders over a socket
//! guard                    one for each `Sandbox`; not our child
//!   spare watcher          waits for the next order
//!   watcher                one for each command under way
//!     command              in namespaces: below their first process
//! ```
//!
//! The guard is a subreaper, as is every watcher: a process that loses its parent becomes a child
//! of its watcher, or of the guard if the watcher is gone, and so can always be found and killed.
//! The guard ends once our end of the socket is closed, also by our death, and the last watcher has
//! ended. It reads neither orders nor output; these are for the watcher.

use std::{
    ffi::OsString,
    io::{self, Write},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, WaitOptions, getpid},
};
use serde::{Deserialize, Serialize};

use super::{
    ResourceLimits,
    cgroup::Cgroup,
    child_events::ChildEvents,
    descriptors, family,
    harden::harden_self,
    landlock,
    namespaces::{Purpose, close_descriptors},
    order::{FAILED, Report},
    placeholders,
    seccomp::{self, Sockets, Truncation},
    spare::{Spare, Told},
    watch,
};

/// What a guard is told at its start, as JSON in its only argument. It holds for all commands of
/// the guard; what differs between them is in the order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Setup {
    /// Of all commands together.
    pub(super) limits: ResourceLimits,
    /// Where placeholders are on record.
    pub(super) registry: Option<PathBuf>,
}

/// Runs as the hidden guard: `args` are what follows the subcommand. Must be called before any
/// thread is started. Returns the exit code for the process. The calling process exits with 0 as
/// soon as the guard has been forked off, which is what `client` waits for: a guard that cannot be
/// forked is an error there, one that fails afterwards is noticed when an order cannot be sent.
#[allow(unsafe_code)]
pub fn guard_main(mut args: impl Iterator<Item = OsString>) -> i32 {
    let setup = args
        .next()
        .and_then(|text| serde_json::from_slice(text.as_encoded_bytes()).ok());
    let Some(setup) = setup else {
        return FAILED;
    };
    // Nobody's child, so that nobody has to wait for it.
    // SAFETY: this process has one thread, so the child finds every lock free.
    match unsafe { libc::fork() } {
        0 => {}
        1.. => return 0,
        _ => return FAILED,
    }
    match Guard::begin(&setup).and_then(Guard::serve) {
        Ok(()) => 0,
        Err(_) => FAILED,
    }
}

struct Guard {
    socket: OwnedFd,
    events: ChildEvents,
    /// Processes that have a command, whether made as spares or by [`Guard::start`].
    watchers: Vec<Pid>,
    /// Waits for the next order.
    spare: Option<Spare>,
    /// What the last command needed.
    purpose: Option<Purpose>,
    /// Whether orders may still come.
    is_open: bool,
    cgroup: Cgroup,
}

impl Guard {
    /// Cuts this process off from whoever started it, removes what killed guards have left, and
    /// compiles the seccomp filters, so that watchers inherit them by the fork.
    ///
    /// A control group that cannot be joined is no error: limits then hold for each process.
    fn begin(setup: &Setup) -> io::Result<Self> {
        // A command must not reach into the process that watches it.
        let _ = harden_self();
        let _ = rustix::process::setsid();
        rustix::process::set_child_subreaper(Some(getpid()))?;
        std::env::set_current_dir("/")?;
        // Whoever started us may have left something open that leads past the sandbox.
        close_descriptors(3, u32::MAX)?;
        let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
        let null = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(null)?;
        if let Some(registry) = &setup.registry {
            // What cannot be taken away now is tried again by the next guard.
            let _ = placeholders::sweep(registry);
        }
        for sockets in [Sockets::Namespaced, Sockets::NetworkOnly, Sockets::None] {
            seccomp::filters(sockets, landlock::truncation())?;
        }
        seccomp::filters(Sockets::Namespaced, Truncation::Allowed)?;
        Ok(Self {
            socket,
            events: ChildEvents::new()?,
            watchers: Vec::new(),
            spare: None,
            purpose: None,
            is_open: true,
            cgroup: Cgroup::join(&setup.limits),
        })
    }

    /// Until nobody sends orders any more and every command has ended. While there is a spare
    /// watcher the guard does not read the socket, so an order has one receiver.
    fn serve(mut self) -> io::Result<()> {
        while self.is_open || !self.watchers.is_empty() {
            if self.is_open && self.spare.is_none() {
                self.spare = Spare::make(&self.socket, self.purpose).ok();
            }
            let mut fds = vec![PollFd::new(&self.events, PollFlags::IN)];
            match &self.spare {
                Some(spare) => fds.push(PollFd::new(spare, PollFlags::IN)),
                None if self.is_open => fds.push(PollFd::new(&self.socket, PollFlags::IN)),
                None => {}
            }
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_ready = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            if is_ready {
                match self.spare.take() {
                    Some(spare) => self.hear(spare),
                    None => self.start()?,
                }
            }
            self.collect();
        }
        self.cgroup.leave();
        Ok(())
    }

    /// A spare watcher has an order, has found that there are none any more, or was killed. In the
    /// last case the order, if it took one, is lost; its sender sees the control socket close.
    fn hear(&mut self, mut spare: Spare) {
        match spare.told() {
            Some(Told::Taken(purpose)) => {
                self.watchers.push(spare.pid);
                self.purpose = purpose;
            }
            Some(Told::Closed) => self.is_open = false,
            None => {}
        }
    }

    /// Starts a command where no spare watcher could be made.
    #[allow(unsafe_code)]
    fn start(&mut self) -> io::Result<()> {
        let Some([control, output]) = descriptors::receive(&self.socket)? else {
            self.is_open = false;
            return Ok(());
        };
        let control = UnixStream::from(control);
        // SAFETY: this process has one thread, so the child finds every lock free.
        match unsafe { libc::fork() } {
            0 => {
                watch::watch(&control, output, None, |_| ());
                // SAFETY: ends the process without running what the guard has registered.
                unsafe { libc::_exit(0) }
            }
            pid @ 1.. => self.watchers.extend(Pid::from_raw(pid)),
            _ => {
                let reason = format!(
                    "no process can be made for the command: {}",
                    io::Error::last_os_error()
                );
                send(&control, &Report::Failed { reason });
            }
        }
        Ok(())
    }

    /// Collects watchers that have ended. What one of them left behind is ended here. A watcher
    /// exits with 0 when it has cleaned up. Any other end means that it was killed or crashed:
    /// everything below the guard that belongs to no living watcher is then killed. Its
    /// placeholders stay until the next guard removes them.
    fn collect(&mut self) {
        self.events.clear();
        let mut left_alone = false;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if let Some(spare) = self.spare.take_if(|spare| spare.pid == pid) {
                self.hear(spare);
            }
            let was_watcher = self.watchers.contains(&pid);
            self.watchers.retain(|watcher| *watcher != pid);
            left_alone |= was_watcher && status.exit_status() != Some(0);
        }
        if left_alone {
            let spare = self.spare.iter().map(|spare| spare.pid);
            let spared: Vec<Pid> = self.watchers.iter().copied().chain(spare).collect();
            family::signal_all(Signal::KILL, &spared);
        }
    }
}

/// Sends a report, the last message of a watcher; nobody may be left to read it.
pub(super) fn send(mut control: &UnixStream, report: &Report) {
    if let Ok(text) = serde_json::to_vec(report) {
        let _ = control.write_all(&text);
        // Nobody has to wait for the end of this process.
        let _ = control.shutdown(Shutdown::Both);
    }
}
