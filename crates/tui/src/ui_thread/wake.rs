//! Wakes the thread from others: a byte in a pipe, at most one.
//!
//! A pipe, because the thread waits with `poll` for the terminal at the same time. The flag keeps a
//! burst of messages from filling it.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};

/// The end that wakes.
#[derive(Clone)]
pub(crate) struct Waker {
    write: Arc<OwnedFd>,
    /// Whether a byte is in the pipe.
    is_pending: Arc<AtomicBool>,
}

/// The end that is woken.
pub(super) struct Woken {
    pub(super) read: OwnedFd,
    is_pending: Arc<AtomicBool>,
}

pub(super) fn pipe() -> Result<(Waker, Woken), Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let is_pending = Arc::new(AtomicBool::new(false));
    let waker = Waker {
        write: Arc::new(write),
        is_pending: is_pending.clone(),
    };
    Ok((waker, Woken { read, is_pending }))
}

impl Waker {
    /// After the message was sent.
    pub(crate) fn wake(&self) {
        if !self.is_pending.swap(true, Ordering::AcqRel) {
            let _ = rustix::io::write(&*self.write, &[1]);
        }
    }
}

impl Woken {
    /// Before the messages are taken: one that comes after that wakes again.
    pub(super) fn drain(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.read, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
        self.is_pending.store(false, Ordering::Release);
    }
}
