//! Making the file of a task on a host that goes on with it.

use std::{io, path::Path, time::Duration};

use codespar_store::{OutputState, StoreError, TaskLease};
use tokio::{fs, io::AsyncWriteExt};

use super::{SharedOutputs, read};

/// Bytes that are fetched at a time.
const PART: u64 = 4 << 20;
/// How often a part is asked for, and the time between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

impl SharedOutputs {
    /// Makes the file as long as the copy, with its bytes. Under another name first: a process of
    /// this host that lost the task may still write to the file that it has open.
    pub(super) async fn restore(
        &self,
        lease: &TaskLease,
        state: &OutputState,
        file: &Path,
    ) -> io::Result<()> {
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir).await?;
        }
        let draft = file.with_extension("restored");
        let mut written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .await?;
        let mut at = 0;
        while at < state.length {
            match self.part_again(lease, at, state.length).await {
                Ok(bytes) if !bytes.is_empty() => {
                    written.write_all(&bytes).await?;
                    at += bytes.len() as u64;
                }
                // The work goes on without it. Its room is kept, so that what follows has its place.
                missing => {
                    let why = missing.err().map(|error| error.to_string());
                    let why = why.unwrap_or_else(|| "it is not there".to_owned());
                    let line = format!("[earlier output could not be read: {why}]\n");
                    let room = usize::try_from(state.length - at).unwrap_or(usize::MAX);
                    let line = line.as_bytes();
                    written.write_all(&line[..line.len().min(room)]).await?;
                    written.flush().await?;
                    written.set_len(state.length).await?;
                    break;
                }
            }
        }
        written.flush().await?;
        drop(written);
        self.add_note(state, &draft).await?;
        fs::rename(&draft, file).await
    }

    /// A server that is away for a moment costs no output. Where no object store was named none
    /// will be.
    async fn part_again(
        &self,
        lease: &TaskLease,
        at: u64,
        length: u64,
    ) -> Result<Vec<u8>, StoreError> {
        for _ in 1..TRIES {
            match self.part(lease, at, length).await {
                Err(StoreError::Objects { .. }) if self.objects.is_none() => break,
                Err(_) => tokio::time::sleep(PAUSE).await,
                read => return read,
            }
        }
        self.part(lease, at, length).await
    }

    async fn part(&self, lease: &TaskLease, at: u64, length: u64) -> Result<Vec<u8>, StoreError> {
        let found = self.store.output(&lease.task, at, PART).await?;
        let pieces = found.map(|found| found.pieces).unwrap_or_default();
        self.join(&pieces, at..length.min(at + PART)).await
    }

    /// What the file of the earlier host had beyond the copy is missing here, and the file says so.
    async fn add_note(&self, state: &OutputState, draft: &Path) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().append(true).open(draft).await?;
        file.write_all(&read::note(state)).await?;
        file.flush().await
    }
}
