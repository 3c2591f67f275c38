//! What happens in repositories by asking for it, where GitHub cannot reach this server: comments,
//! labels and reviews.
//!
//! How far a repository was read is kept in a file, and moves only when everything before it is on
//! record: a process that is killed reads some of it twice, which is known by its identity, as is what
//! a webhook delivers besides. What is older than the first look never counts, also when it is edited
//! later.

mod comments;
mod labels;
mod lists;
mod reviews;

use std::{collections::BTreeMap, io, path::Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::lists::KnownLists;
use super::{
    GitHubChannel, RepositoryPolling,
    event::{Delivered, OurAccount},
};
use crate::{ChannelCore, SendError};

/// How far one repository was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Cursor {
    /// What was said before does not count.
    from: Timestamp,
    /// All comments that changed before are on record.
    since: Timestamp,
    /// The last event of an issue that is done with; their numbers grow.
    #[serde(default)]
    event: u64,
    /// The reviews of all pull requests that changed before are on record.
    #[serde(default)]
    pulls: Option<Timestamp>,
}

impl Cursor {
    fn starting(now: Timestamp) -> Self {
        Self {
            from: now,
            since: now,
            event: 0,
            pulls: None,
        }
    }

    /// Whether something that happened then counts. GitHub's times have no fractions.
    fn counts(&self, at: Timestamp) -> bool {
        at >= whole_second(self.from)
    }
}

fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// One look at a repository.
struct Look<'a> {
    channel: &'a GitHubChannel,
    core: &'a ChannelCore,
    repository: &'a str,
    ours: &'a OurAccount,
    lists: &'a mut KnownLists,
}

/// Asks until it is dropped.
pub(super) async fn poll(channel: &GitHubChannel, polling: RepositoryPolling, core: &ChannelCore) {
    let mut cursors = read(&polling.file);
    let mut lists = KnownLists::default();
    loop {
        for repository in &polling.repositories {
            if !core.serves_on_github(repository) {
                tracing::warn!("{repository} is polled and not served: its comments do not count");
                continue;
            }
            let known = cursors.get(repository).cloned();
            let mut cursor = known.unwrap_or_else(|| Cursor::starting(Timestamp::now()));
            let looked = look(channel, core, repository, &mut cursor, &mut lists).await;
            // As far as it came, also where it did not come to the end.
            if cursors.insert(repository.clone(), cursor.clone()) != Some(cursor)
                && let Err(error) = write(&polling.file, &cursors)
            {
                tracing::warn!("how far {repository} was read is not kept: {error}");
            }
            core.reach("noted");
            match looked {
                Ok(()) => {}
                Err(SendError::RetryAfter(wait)) => tokio::time::sleep(wait).await,
                Err(error) => tracing::warn!("{repository} is not read: {error}"),
            }
        }
        tokio::time::sleep(polling.interval).await;
    }
}

/// Reads what is new and moves the cursor behind what is on record. A token that may not read one of
/// the lists still has the others.
async fn look(
    channel: &GitHubChannel,
    core: &ChannelCore,
    repository: &str,
    cursor: &mut Cursor,
    lists: &mut KnownLists,
) -> Result<(), SendError> {
    let ours = channel.account().await?;
    let mut look = Look {
        channel,
        core,
        repository,
        ours,
        lists,
    };
    let comments = look.comments(cursor).await;
    let labels = look.labels(cursor).await;
    let reviews = look.reviews(cursor).await;
    comments.and(labels).and(reviews)
}

impl Look<'_> {
    /// Puts what was found on record.
    async fn receive(&self, found: Delivered) -> Result<(), SendError> {
        let Delivered::Message(inbound, origin) = found else {
            return Ok(());
        };
        self.core.reach("arrived");
        let received = self.core.receive_from_forge(*inbound, *origin).await;
        received.map_err(|error| SendError::Temporary(error.to_string()))?;
        Ok(())
    }
}

/// A file that is not there or cannot be read is a first look.
fn read(file: &Path) -> BTreeMap<String, Cursor> {
    let text = std::fs::read(file).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Whole or not at all.
fn write(file: &Path, cursors: &BTreeMap<String, Cursor>) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    io::Write::write_all(&mut new, serde_json::to_string(cursors)?.as_bytes())?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_an_earlier_version_is_read() {
        let text = r#"{"from":"2026-01-01T00:00:00Z","since":"2026-01-02T00:00:00Z"}"#;
        let cursor: Cursor = serde_json::from_str(text).unwrap();
        assert_eq!((cursor.event, cursor.pulls), (0, None));
        assert!(cursor.counts("2026-01-01T00:00:00Z".parse().unwrap()));
        assert!(!cursor.counts("2025-12-31T23:59:59Z".parse().unwrap()));
    }
}
