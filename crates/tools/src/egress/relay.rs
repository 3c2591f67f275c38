//! Bytes from one side to the other, until there are no more or nothing moves for too long.

use std::{io, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, sleep_until},
};

/// A connection on which nothing moves for so long is closed. In either direction: a long download
/// keeps its silent other half open.
const IDLE: Duration = Duration::from_secs(300);

/// When something last moved on a connection. Shared by both directions.
pub(super) struct Activity(Mutex<Instant>);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(super) fn touch(&self) {
        *self.0.lock() = Instant::now();
    }

    /// Ends when nothing has moved for too long.
    pub(super) async fn expired(&self) {
        loop {
            let end = *self.0.lock() + IDLE;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}

/// Copies to the end, and passes the end on. Every piece is flushed, as the other side may wait for
/// it before it sends anything.
pub(super) async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
) -> io::Result<()> {
    let mut buffer = vec![0; 32 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
        activity.touch();
    }
}
