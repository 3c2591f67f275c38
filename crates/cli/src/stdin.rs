//! Standard input in headless runs: never waits on a terminal, nor for ever on a silent pipe.

use std::{
    io::{IsTerminal, Read},
    time::Duration,
};

use tokio::sync::oneshot;

/// How long a prompt given as an argument waits for a first byte on an open pipe.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was found on standard input.
pub(crate) enum Piped {
    /// Text, possibly empty.
    Text(String),
    /// A terminal: nobody piped anything.
    Terminal,
    /// An open pipe on which nothing came.
    Silent,
}

/// Reads to the end, with patience for the first byte.
pub(crate) async fn read_with_patience() -> std::io::Result<Piped> {
    read(Some(PATIENCE)).await
}

/// Reads to the end, however long it takes: there is no prompt but this.
pub(crate) async fn read_fully() -> std::io::Result<Piped> {
    read(None).await
}

/// If the first byte does not come in time the thread stays blocked and is left behind; the process
/// does not wait for it at its end. Bytes that are not UTF-8 become replacement characters.
async fn read(patience: Option<Duration>) -> std::io::Result<Piped> {
    if std::io::stdin().is_terminal() {
        return Ok(Piped::Terminal);
    }
    let (first, arrived) = oneshot::channel();
    let (whole, finished) = oneshot::channel();
    // A thread of its own: a read that never returns must not hold the runtime.
    std::thread::Builder::new().spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut bytes = vec![0; 1];
        let begun = stdin.read(&mut bytes);
        let empty = !matches!(begun, Ok(1));
        let _ = first.send(());
        let result = begun.and_then(|_| {
            if empty {
                bytes.clear();
            } else {
                stdin.read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        });
        let _ = whole.send(result);
    })?;
    if let Some(patience) = patience
        && tokio::time::timeout(patience, arrived).await.is_err()
    {
        return Ok(Piped::Silent);
    }
    let bytes = finished.await.unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok(Piped::Text(String::from_utf8_lossy(&bytes).into_owned()))
}
