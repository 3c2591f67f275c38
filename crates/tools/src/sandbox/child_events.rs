//! Being told when a child has ended, in a form that can be waited for with other things.

use std::{
    io, mem,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

/// Readable when a child of this process has ended: a `signalfd` for `SIGCHLD`. Several ends may be
/// told as one, so whoever is woken collects until there is nothing left to collect.
pub(super) struct ChildEvents(OwnedFd);

impl ChildEvents {
    /// The process must have one thread: the signal is blocked from here on. Programs it starts
    /// through `std::process` begin with nothing blocked.
    #[allow(unsafe_code)]
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: the set is made by `sigemptyset` before it is used and lives on the stack; the
        // descriptor returned is new and owned by nobody else.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            let failed = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            match libc::signalfd(-1, &raw const set, flags) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(Self(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// Forgets what was told so far. To be called before children are collected: one that ends in
    /// between is told again.
    pub(super) fn clear(&self) {
        let mut buffer = [0; 1024];
        while let Ok(1..) = rustix::io::read(&self.0, &mut buffer) {}
    }
}

impl AsFd for ChildEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
