//! SIGINT and SIGTERM: the first stops the run in good order, the second at once.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

/// Which signal came, if one did.
#[derive(Clone, Default)]
pub(crate) struct Signals(Arc<AtomicU8>);

impl Signals {
    /// Cancels `cancel` on the first signal; ends the process on the second.
    pub(crate) fn watch(cancel: CancellationToken) -> std::io::Result<Self> {
        let signals = Self::default();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let seen = signals.clone();
        tokio::spawn(async move {
            loop {
                let code = tokio::select! {
                    _ = interrupt.recv() => INTERRUPTED,
                    _ = terminate.recv() => TERMINATED,
                    _ = hangup.recv() => TERMINATED,
                };
                if seen.0.swap(code, Ordering::SeqCst) != 0 {
                    std::process::exit(i32::from(code));
                }
                cancel.cancel();
            }
        });
        Ok(signals)
    }

    /// Whether a person pressed Ctrl-C.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.exit_code() == Some(INTERRUPTED)
    }

    /// The exit code of the signal that came.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        Some(self.0.load(Ordering::SeqCst)).filter(|code| *code != 0)
    }
}
