//! One process serves a channel at a time.
//!
//! The lock is one of the operating system: it ends with the process, however that ends, so nobody
//! has to decide whether a holder is still alive.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

/// Held until it is dropped.
pub(crate) struct ChannelHold {
    _file: File,
}

/// Waits until no other process serves the channel. The wait is on a thread of its own, so that a
/// process that is to end does not wait for it.
pub(crate) async fn hold(state: &Path, channel: &str) -> io::Result<ChannelHold> {
    let dir = state.join("channels");
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    // Names of channels are ours; those of conversations, which are not, do not get here.
    let path = dir.join(format!("{channel}.lock"));
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("channel-lock".to_owned())
        .spawn(move || {
            let open = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path);
            let locked = open.and_then(|file| file.lock().map(|()| file));
            let _ = sender.send(locked);
        })?;
    let locked = receiver.await;
    let file = locked.map_err(|_| io::Error::other("the thread of the lock ended"))??;
    Ok(ChannelHold { _file: file })
}
