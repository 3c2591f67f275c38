//! Copying the output of an attempt while it runs.
//!
//! The copy follows the file: what a runner writes is never held up by it. Its end is waited for
//! before the end of the attempt is recorded, so that whoever hears of the end finds all of it.

use std::{path::PathBuf, time::Duration};

use codespar_store::{OutputRemainder, OutputState, PieceContent, StoreError, TaskLease};
use tokio::{fs, io::AsyncWriteExt, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    IN_DATABASE, SharedOutputs, TaskOutputs, objects_of,
    read::{length_of, read_file},
};
use crate::runner::Control;

/// Between two looks at the file.
const PERIOD: Duration = Duration::from_secs(1);
/// Bytes of one statement.
const PIECE: u64 = 64 << 10;
/// Bytes of an object. Smaller ones are written when they have waited, or at the end.
const OBJECT: u64 = 4 << 20;
/// How long what is too short for an object waits.
const OBJECT_PERIOD: Duration = Duration::from_secs(10);
/// How long the end of an attempt waits for the copy. What is missing then stays on the host, and
/// the copy says so, or the file if the copy cannot.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the note of that may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// Between two tries at the beginning and at the end.
const PAUSE: Duration = Duration::from_millis(500);
/// How often it is tried before the attempt begins without.
const TRIES: u32 = 5;

/// A copy that follows an attempt. It ends by `finish`; dropped instead, it is abandoned.
pub(crate) struct CopyingOutput {
    ended: CancellationToken,
    copying: JoinHandle<()>,
}

impl CopyingOutput {
    /// Returns when all that the attempt wrote is copied, or cannot be.
    pub(crate) async fn finish(mut self) {
        self.ended.cancel();
        let _ = tokio::time::timeout(PATIENCE + FAREWELL, &mut self.copying).await;
    }
}

impl Drop for CopyingOutput {
    fn drop(&mut self) {
        self.copying.abort();
    }
}

impl TaskOutputs {
    /// Makes the file go on where the copy ends, and follows it from there. Where the store fails, the
    /// attempt does not wait for it: the copy begins when it answers. `None` where nothing is copied:
    /// outputs are not shared, or another runner has the task by now.
    pub(crate) async fn follow(&self, control: &Control) -> Option<CopyingOutput> {
        let shared = self.shared.get()?.clone();
        let (lease, file) = (control.lease(), control.output.clone());
        let mut copy = OutputCopy::new(shared, lease, file).await;
        for tried in 1..=TRIES {
            match copy.prepare().await {
                Ok(()) => break,
                Err(error) if is_final(&error) => return None,
                // That was waited for already.
                Err(StoreError::Unreachable { .. }) => break,
                Err(_) if tried < TRIES => tokio::time::sleep(PAUSE).await,
                Err(_) => {}
            }
        }
        let ended = CancellationToken::new();
        Some(CopyingOutput {
            copying: tokio::spawn(copy.run(ended.clone())),
            ended,
        })
    }
}

/// Whether the attempt may write more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Ended,
}

/// Where the output of earlier attempts is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Earlier {
    /// In the file, if there is any.
    InFile,
    /// In the copy. The file has what this host wrote before others went on, or nothing.
    InCopy,
}

/// A copy that this attempt may add to.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// How much is copied.
    length: u64,
    /// A place in the copy, and the place in the file of the same byte. Both are 0 unless the file
    /// lacks what came before.
    in_copy: u64,
    in_file: u64,
    is_cut: bool,
}

impl Begun {
    fn next_in_file(&self) -> u64 {
        (self.length + self.in_file).saturating_sub(self.in_copy)
    }
}

struct OutputCopy {
    shared: SharedOutputs,
    lease: TaskLease,
    file: PathBuf,
    /// Bytes of the file before this attempt.
    from: u64,
    /// Once it is known.
    earlier: Option<Earlier>,
    /// Once the store has answered.
    begun: Option<Begun>,
    /// When something was last copied.
    last: Instant,
    /// What failed last.
    trouble: Option<StoreError>,
    patience: Duration,
}

impl OutputCopy {
    async fn new(shared: SharedOutputs, lease: TaskLease, file: PathBuf) -> Self {
        Self {
            from: length_of(&file).await,
            shared,
            lease,
            file,
            earlier: None,
            begun: None,
            last: Instant::now(),
            trouble: None,
            patience: PATIENCE,
        }
    }

    /// Before the attempt writes anything. A file that cannot be restored stays as it is: the copy
    /// goes on all the same.
    async fn prepare(&mut self) -> Result<(), StoreError> {
        if self.look_back().await? == Earlier::InCopy {
            let place = self.shared.place(&self.file);
            let store = &self.shared.store;
            let before = store.begin_output(&self.lease, &place).await?;
            if let Some(state) = before
                && let Ok(()) = self.shared.restore(&self.lease, &state, &self.file).await
            {
                self.from = state.length;
                self.earlier = Some(Earlier::InFile);
            }
        }
        self.begin().await.map(drop)
    }

    /// What earlier attempts left. Asked once, before this one begins: then the place is ours.
    async fn look_back(&mut self) -> Result<Earlier, StoreError> {
        if let Some(earlier) = self.earlier {
            return Ok(earlier);
        }
        let before = self.shared.store.output_state(&self.lease.task).await?;
        let place = self.shared.place(&self.file);
        let has_all = |state: &OutputState| state.place == place && self.from >= state.length;
        let earlier = match before.as_ref().is_none_or(has_all) {
            true => Earlier::InFile,
            false => Earlier::InCopy,
        };
        self.earlier = Some(earlier);
        Ok(earlier)
    }

    /// A file that lacks what came before is no place to read the output from, not on this host
    /// either: the place that is recorded says so, and is not that of the file.
    async fn begin(&mut self) -> Result<Begun, StoreError> {
        let earlier = self.look_back().await?;
        let mut place = self.shared.place(&self.file);
        if earlier == Earlier::InCopy {
            place.file = format!("{}, from byte {}", place.file, self.from);
        }
        let before = self.shared.store.begin_output(&self.lease, &place).await?;
        let length = before.as_ref().map_or(0, |state| state.length);
        let (in_copy, in_file) = match earlier {
            Earlier::InFile => (0, 0),
            Earlier::InCopy => (length, self.from),
        };
        let begun = Begun {
            length,
            in_copy,
            in_file,
            is_cut: before.is_some_and(|state| state.remainder == OutputRemainder::OnHost),
        };
        self.begun = Some(begun);
        Ok(begun)
    }

    async fn begun(&mut self) -> Result<Begun, StoreError> {
        match self.begun {
            Some(begun) => Ok(begun),
            None => self.begin().await,
        }
    }

    async fn run(mut self, ended: CancellationToken) {
        // Given up half-way at the end: what was copied by then is known by its place.
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = self.follow() => return,
        }
        let patience = self.patience;
        if tokio::time::timeout(patience, self.complete())
            .await
            .is_err()
        {
            match tokio::time::timeout(FAREWELL, self.cut()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) if is_final(&error) => {}
                _ => self.say_so().await,
            }
        }
    }

    /// Until another runner has the task.
    async fn follow(&mut self) {
        loop {
            match self.catch_up(Stage::Running).await {
                Err(error) if is_final(&error) => return,
                // What failed is tried again.
                outcome => self.trouble = outcome.err(),
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn complete(&mut self) {
        loop {
            match self.catch_up(Stage::Ended).await {
                Err(error) if !is_final(&error) => self.trouble = Some(error),
                _ => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The store cannot be told: the file and the log are what is left. Other hosts show what was
    /// copied before.
    async fn say_so(&self) {
        let why = match &self.trouble {
            Some(error) => error.to_string(),
            None => "the database did not answer in time".to_owned(),
        };
        let task = &self.lease.task;
        tracing::warn!(%task, %why, "the output of a task was not copied to its end");
        let line = format!("[other hosts do not have the end of this output: {why}]\n");
        let file = fs::OpenOptions::new().append(true).open(&self.file).await;
        if let Ok(mut file) = file {
            let _ = file.write_all(line.as_bytes()).await;
            let _ = file.flush().await;
        }
    }

    /// Copies what the file has and the copy has not, piece by piece.
    async fn catch_up(&mut self, stage: Stage) -> Result<(), StoreError> {
        let mut begun = self.begun().await?;
        loop {
            let at = begun.next_in_file();
            let waiting = length_of(&self.file).await.saturating_sub(at);
            if waiting == 0 {
                return Ok(());
            }
            let content = match IN_DATABASE.checked_sub(begun.length) {
                Some(room) if room > 0 => {
                    PieceContent::Bytes(self.read(at, waiting.min(room).min(PIECE)).await)
                }
                _ if self.shared.objects.is_none() => return self.cut().await,
                _ if stage == Stage::Running && self.is_early(waiting) => return Ok(()),
                _ => self.put_object(&begun, waiting.min(OBJECT)).await?,
            };
            if content.length() == 0 {
                return Ok(());
            }
            let store = &self.shared.store;
            begun.length = store
                .append_output(&self.lease, begun.length, content)
                .await?;
            begun.is_cut = false;
            self.begun = Some(begun);
            self.last = Instant::now();
        }
    }

    /// Objects cost by their number, so a short one waits for more.
    fn is_early(&self, waiting: u64) -> bool {
        waiting < OBJECT && self.last.elapsed() < OBJECT_PERIOD
    }

    async fn read(&self, offset: u64, limit: u64) -> Vec<u8> {
        let file = self.file.clone();
        let limit = usize::try_from(limit).unwrap_or_default();
        let read = move || read_file(&file, offset, limit).unwrap_or_default();
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }

    /// The name has the number of the attempt: one that lost the task overwrites nothing.
    async fn put_object(&self, begun: &Begun, limit: u64) -> Result<PieceContent, StoreError> {
        let bytes = self.read(begun.next_in_file(), limit).await;
        let length = bytes.len() as u64;
        let below = objects_of(&self.lease.task);
        let key = format!("{below}/{:020}-{}", begun.length, self.lease.epoch);
        if let Some(objects) = self.shared.objects.as_ref().filter(|_| length > 0) {
            objects.put(&key, bytes).await?;
        }
        Ok(PieceContent::Object { key, length })
    }

    async fn cut(&mut self) -> Result<(), StoreError> {
        let begun = self.begun().await?;
        if !begun.is_cut {
            self.shared.store.cut_output(&self.lease).await?;
            self.begun = Some(Begun {
                is_cut: true,
                ..begun
            });
        }
        Ok(())
    }
}

/// Someone else has the task, or it is over or gone.
fn is_final(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::LeaseLost(_) | StoreError::NoSuchTask(_) | StoreError::WrongState { .. }
    )
}

#[cfg(test)]
mod tests;
