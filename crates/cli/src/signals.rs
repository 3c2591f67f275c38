//! What stops a run from outside: SIGINT, SIGTERM, SIGHUP, and an output that nobody reads.
//!
//! The first stops the run in good order, the second at once.

use std::{
    os::fd::RawFd,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use tokio::{
    io::{Interest, unix::AsyncFd},
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

const HUNG_UP: u8 = 129;
const INTERRUPTED: u8 = 130;
/// As of a process that SIGPIPE ended.
pub(crate) const OUTPUT_CLOSED: u8 = 141;
const TERMINATED: u8 = 143;

/// What stopped the run, if something did. The first cause wins and gives the exit code; later ones
/// only hasten the end.
#[derive(Clone)]
pub(crate) struct Signals {
    code: Arc<AtomicU8>,
    cancel: CancellationToken,
}

impl Signals {
    /// Cancels `cancel` on the first signal; ends the process on the second.
    pub(crate) fn watch(cancel: CancellationToken) -> std::io::Result<Self> {
        let signals = Self::watch_for_end(cancel)?;
        signals.on(SignalKind::interrupt(), INTERRUPTED)?;
        Ok(signals)
    }

    /// The same for a session at a terminal, where Ctrl-C stops a turn and not the session.
    pub(crate) fn watch_for_end(cancel: CancellationToken) -> std::io::Result<Self> {
        let signals = Self {
            code: Arc::default(),
            cancel,
        };
        signals.on(SignalKind::terminate(), TERMINATED)?;
        signals.on(SignalKind::hangup(), HUNG_UP)?;
        Ok(signals)
    }

    /// For one of several sessions: it is stopped with the process, and can be stopped alone.
    pub(crate) fn of_one(&self) -> Self {
        Self {
            code: self.code.clone(),
            cancel: self.cancel.child_token(),
        }
    }

    /// The run stops as well when the other end of standard output is closed: nobody would see
    /// what is paid for.
    pub(crate) fn and_closed_output(self) -> Self {
        // Files and the like cannot be waited for, and are never closed by others.
        if let Ok(output) = writable_output() {
            let signals = self.clone();
            tokio::spawn(async move {
                while let Ok(mut guard) = output.ready(Interest::WRITABLE).await {
                    if guard.ready().is_write_closed() {
                        signals.output_closed();
                        return;
                    }
                    guard.clear_ready();
                }
            });
        }
        self
    }

    fn on(&self, kind: SignalKind, code: u8) -> std::io::Result<()> {
        let mut incoming = signal(kind)?;
        let signals = self.clone();
        tokio::spawn(async move {
            while incoming.recv().await.is_some() {
                // A terminal that closes sends SIGHUP more than once: the kernel, then the shell.
                if signals.stop(code) && code != HUNG_UP {
                    codespar_tui::restore_terminal();
                    std::process::exit(i32::from(code));
                }
            }
        });
        Ok(())
    }

    /// Nobody reads what is printed.
    pub(crate) fn output_closed(&self) {
        self.stop(OUTPUT_CLOSED);
    }

    /// Stops the run because a line could not be written: nobody would see what is paid for.
    pub(crate) fn write_failed(&self, error: &std::io::Error) {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => self.output_closed(),
            _ => self.cancel.cancel(),
        }
    }

    /// Gives whether a stop had come before.
    fn stop(&self, code: u8) -> bool {
        let first = self
            .code
            .compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.cancel.cancel();
        first.is_err()
    }

    /// Whether a person pressed Ctrl-C.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.exit_code() == Some(INTERRUPTED)
    }

    /// Cancelled by the first of them.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The exit code of what stopped the run.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        Some(self.code.load(Ordering::SeqCst)).filter(|code| *code != 0)
    }
}

/// Ends the process at the first signal, after `last`: for commands that have nothing to stop in
/// good order.
pub(crate) fn end_after(last: impl Fn() + Clone + Send + 'static) -> std::io::Result<()> {
    let ends = [
        (SignalKind::interrupt(), INTERRUPTED),
        (SignalKind::terminate(), TERMINATED),
        (SignalKind::hangup(), HUNG_UP),
    ];
    for (kind, code) in ends {
        let mut incoming = signal(kind)?;
        let last = last.clone();
        tokio::spawn(async move {
            incoming.recv().await;
            last();
            std::process::exit(i32::from(code));
        });
    }
    Ok(())
}

#[allow(
    unsafe_code,
    reason = "tokio takes descriptors by an unsafe function alone"
)]
fn writable_output() -> std::io::Result<AsyncFd<RawFd>> {
    // SAFETY: descriptor 1 is never closed nor replaced while the process runs, and nothing else
    // registers it.
    unsafe { AsyncFd::register_with_interest(rustix::stdio::raw_stdout(), Interest::WRITABLE) }
        .map_err(Into::into)
}
