//! Knowing that the database was written to, by this process or another, without asking it.
//!
//! Every write goes to the write-ahead log beside the database. On Linux the kernel tells of that;
//! elsewhere, and where it does not, its size and time are looked at.
//!
//! What is told is only that something may have changed. A write to the log is not yet a commit,
//! and cutting the log back touches it as well: whoever hears of one looks at the database. False
//! alarms cost a query; a missed write would cost a wait without end, so every doubt counts as a
//! write.
//!
//! One task per store watches, for all listeners. It starts with the first and ends some time after
//! the last.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use super::open::DATABASE;
use crate::engine::Writes;

/// How often the log is looked at where nobody tells of writes.
const LOOK: Duration = Duration::from_millis(200);
/// How often it is looked whether anybody listens.
const IDLE: Duration = Duration::from_secs(30);
/// Writes within this time are told of together. A commit touches the log several times.
const TOGETHER: Duration = Duration::from_millis(5);

/// Tells of writes while someone listens.
pub(super) struct WriteWatch {
    dir: PathBuf,
    count: SharedCount,
}

/// Of all writes so far; none while nobody listens.
type SharedCount = Arc<Mutex<Option<watch::Receiver<u64>>>>;

impl WriteWatch {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            count: SharedCount::default(),
        }
    }

    /// Must be called within a runtime: where no watch runs, one is spawned there. If that runtime
    /// ends before the store, the next listener starts another.
    pub(super) fn listen(&self) -> Writes {
        let mut count = self.count.lock();
        // One whose task is gone is replaced.
        if let Some(known) = count.as_ref().filter(|known| known.has_changed().is_ok()) {
            let mut receiver = known.clone();
            receiver.mark_unchanged();
            return Writes(receiver);
        }
        let (sender, receiver) = watch::channel(0);
        *count = Some(receiver.clone());
        // Made here and not by the task, which may begin after the next write.
        let source = Source::new(&self.dir);
        tokio::spawn(tell(sender, source, self.count.clone()));
        Writes(receiver)
    }
}

/// Counts up at every write, until nobody listens.
async fn tell(sender: watch::Sender<u64>, mut source: Source, shared: SharedCount) {
    loop {
        // Followers are few and stay long; a look now and then is enough to see that they left.
        let told = tokio::time::timeout(IDLE, source.next()).await;
        {
            let mut shared = shared.lock();
            // The one that is shared is a receiver too.
            if sender.receiver_count() <= 1 {
                *shared = None;
                return;
            }
        }
        if told.is_ok() {
            tokio::time::sleep(TOGETHER).await;
            sender.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}

fn log_of(dir: &Path) -> PathBuf {
    dir.join(format!("{DATABASE}-wal"))
}

/// How a write is noticed. `Looking` is for systems without inotify and for those that refuse a
/// watch (their number is limited per user).
enum Source {
    #[cfg(target_os = "linux")]
    Kernel(Receiver),
    Looking {
        log: PathBuf,
        seen: Option<(u64, SystemTime)>,
    },
}

impl Source {
    fn new(dir: &Path) -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(events) = watched(dir) {
            return Self::Kernel(events);
        }
        let log = log_of(dir);
        let seen = state_of(&log);
        Self::Looking { log, seen }
    }

    /// Returns when something was written. Safe to give up.
    async fn next(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kernel(events) => loop {
                if events.readable().await.is_err() {
                    return tokio::time::sleep(LOOK).await;
                }
                if is_of_log(events) {
                    return;
                }
            },
            Self::Looking { log, seen } => loop {
                tokio::time::sleep(LOOK).await;
                let now = state_of(log);
                if now != *seen {
                    *seen = now;
                    return;
                }
            },
        }
    }
}

/// Size and time of the log; `None` while there is none, which is a state like the others.
fn state_of(log: &Path) -> Option<(u64, SystemTime)> {
    let found = std::fs::metadata(log).ok()?;
    Some((found.len(), found.modified().ok()?))
}

/// The directory is watched, not the log: SQLite removes that and makes it anew.
#[cfg(target_os = "linux")]
fn watched(dir: &Path) -> std::io::Result<Receiver> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    add_watch(&events, dir, WatchFlags::MODIFY | WatchFlags::CREATE)?;
    // It is read like a pipe, though it is none.
    Receiver::from_file_unchecked(std::fs::File::from(events))
}

/// Takes the events that are there: whether one is of the log.
#[cfg(target_os = "linux")]
fn is_of_log(events: &Receiver) -> bool {
    use std::mem::MaybeUninit;

    use rustix::fs::inotify::{ReadFlags, Reader};
    let name = format!("{DATABASE}-wal");
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(events, &mut buffer);
    let mut found = false;
    while let Ok(event) = reader.next() {
        found |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
        found |= event
            .file_name()
            .is_some_and(|file| file.to_bytes() == name.as_bytes());
    }
    // This clears its readiness. What came since is not looked at, so it may be of the log.
    found | events.try_read(&mut [0; 4096]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On one thread the task that watches has not begun when the log is written.
    #[tokio::test]
    async fn a_write_right_after_the_listener_was_made_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let watch = WriteWatch::new(dir.path());
        let mut writes = watch.listen();
        std::fs::write(log_of(dir.path()), "x").unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(30), writes.wait()).await;
        assert!(heard.is_ok(), "the write was missed");
    }
}
