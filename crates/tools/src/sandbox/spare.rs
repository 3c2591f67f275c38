//! A watcher that is made before its command is known, so that nobody waits for it.
//!
//! The guard keeps one. It takes the next order by itself and tells the guard, which makes another
//! one meanwhile. Where the last command had namespaces, those for the next are ready too.
//!
//! ```text
//! made -> waits -> order received -> Taken(purpose) -> watches its command -> exits
//!               -> socket closed  -> Closed                                -> exits
//! ```
//!
//! Namespaces that are ready are only a guess. They are discarded when the command needs others,
//! and when something was mounted or unmounted outside since: the command would see an older disk,
//! and the namespace would keep the unmounted file system in use. A spare that is killed while it
//! waits costs nothing; the guard makes another.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::Pid,
};
use serde::{Deserialize, Serialize};

use super::{
    descriptors,
    namespaces::{Prepared, Purpose},
    watch,
};

/// The guard's side of a spare watcher: becomes readable when it has told something or was killed.
pub(super) struct Spare {
    pub(super) pid: Pid,
    /// The spare is the only holder of the other end.
    told: File,
}

/// What a spare watcher tells the guard: one message, which fits into one read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// It has a command to watch now; the next one may need the same. `None` for a command without
    /// namespaces of ours.
    Taken(Option<Purpose>),
    /// Nobody is left to send orders.
    Closed,
}

impl Spare {
    /// Makes one that waits for an order on `socket`. The calling process must have one thread.
    #[allow(unsafe_code)]
    pub(super) fn make(socket: &OwnedFd, purpose: Option<Purpose>) -> io::Result<Self> {
        let (told, tell) = io::pipe()?;
        // SAFETY: this process has one thread, so the child finds every lock free.
        match unsafe { libc::fork() } {
            0 => {
                wait(socket, File::from(OwnedFd::from(tell)), purpose);
                // SAFETY: ends the process without running what the guard has registered.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self {
                pid: Pid::from_raw(pid.max(0)).ok_or_else(io::Error::last_os_error)?,
                told: File::from(OwnedFd::from(told)),
            }),
        }
    }

    /// What it has told; `None` if it was killed. Waits for it.
    pub(super) fn told(&mut self) -> Option<Told> {
        let mut text = [0; 1024];
        let count = self.told.read(&mut text).ok()?;
        serde_json::from_slice(&text[..count]).ok()
    }
}

impl AsFd for Spare {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

impl Told {
    fn send(&self, to: &mut File) {
        if let Ok(text) = serde_json::to_vec(self) {
            let _ = to.write_all(&text);
        }
    }
}

/// Waits for an order and carries it out. The process exits with 0 afterwards, which tells the
/// guard that there is nothing left to end.
fn wait(socket: &OwnedFd, mut tell: File, purpose: Option<Purpose>) {
    let mut prepared = purpose.and_then(|purpose| Prepared::make(purpose).ok());
    match next_order(socket, &mut prepared) {
        Ok(Some((control, output))) => {
            watch::watch(&control, output, prepared, |purpose| {
                Told::Taken(purpose).send(&mut tell);
            });
        }
        Ok(None) | Err(_) => {
            Told::Closed.send(&mut tell);
            drop(prepared);
        }
    }
}

/// The next command's control socket and output pipe. `None` when nobody is left to send orders.
/// Meanwhile discards `prepared` namespaces as soon as they are outdated.
fn next_order(
    socket: &OwnedFd,
    prepared: &mut Option<Prepared>,
) -> io::Result<Option<(UnixStream, OwnedFd)>> {
    loop {
        let mut fds = vec![PollFd::new(socket, PollFlags::IN)];
        fds.extend(prepared.as_ref().map(Prepared::mount_table));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[0].revents().is_empty() {
            let received = descriptors::receive(socket)?;
            return Ok(received.map(|[control, output]| (control.into(), output)));
        }
        let is_outdated = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if is_outdated && let Some(outdated) = prepared.take() {
            // It would keep what was unmounted in use.
            outdated.discard();
        }
    }
}
