//! Copying the output of an attempt while it runs.
//!
//! The copy follows the file: what a runner writes is never held up by it. Its end is waited for
//! before the end of the attempt is recorded, so that whoever hears of the end finds all of it.

use std::{path::PathBuf, time::Duration};

use codespar_store::{
    OutputPlace, OutputRemainder, OutputState, PieceContent, StoreError, TaskLease,
};
use tokio::{task::JoinHandle, time::Instant};
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
/// How long the end of an attempt waits for the copy. What is missing then stays on the host.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the note of that may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// Between two tries at the beginning and at the end.
const PAUSE: Duration = Duration::from_millis(500);
/// How often it is tried to begin.
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
    /// Makes the file go on where the copy ends, and follows it from there. `None` where nothing is
    /// copied: outputs are not shared, another runner has the task by now, or the store fails.
    pub(crate) async fn follow(&self, control: &Control) -> Option<CopyingOutput> {
        let shared = self.shared.get()?.clone();
        let lease = TaskLease {
            task: control.record.task_id.clone(),
            epoch: control.epoch,
        };
        let file = control.output.clone();
        let place = shared.place(&file);
        let before = shared.begin(&lease, &place).await.ok()?;
        if let Some(state) = &before {
            let is_ours = state.place == place && length_of(&file).await >= state.length;
            if !is_ours {
                shared.restore(&lease, state, &file).await.ok()?;
            }
        }
        let copy = OutputCopy::new(shared, lease, file, before.as_ref());
        let ended = CancellationToken::new();
        Some(CopyingOutput {
            copying: tokio::spawn(copy.run(ended.clone())),
            ended,
        })
    }
}

impl SharedOutputs {
    async fn begin(
        &self,
        lease: &TaskLease,
        place: &OutputPlace,
    ) -> Result<Option<OutputState>, StoreError> {
        for _ in 1..TRIES {
            match self.store.begin_output(lease, place).await {
                Err(error) if !is_final(&error) => tokio::time::sleep(PAUSE).await,
                begun => return begun,
            }
        }
        self.store.begin_output(lease, place).await
    }
}

/// Whether the attempt may write more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Ended,
}

struct OutputCopy {
    shared: SharedOutputs,
    lease: TaskLease,
    file: PathBuf,
    /// How much is copied.
    length: u64,
    is_cut: bool,
    /// When something was last copied.
    last: Instant,
}

impl OutputCopy {
    fn new(
        shared: SharedOutputs,
        lease: TaskLease,
        file: PathBuf,
        before: Option<&OutputState>,
    ) -> Self {
        Self {
            shared,
            lease,
            file,
            length: before.map_or(0, |state| state.length),
            is_cut: before.is_some_and(|state| state.remainder == OutputRemainder::OnHost),
            last: Instant::now(),
        }
    }

    async fn run(mut self, ended: CancellationToken) {
        // Given up half-way at the end: what was copied by then is known by its place.
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = self.follow() => return,
        }
        if tokio::time::timeout(PATIENCE, self.complete())
            .await
            .is_err()
        {
            let _ = tokio::time::timeout(FAREWELL, self.cut()).await;
        }
    }

    /// Until another runner has the task.
    async fn follow(&mut self) {
        loop {
            match self.catch_up(Stage::Running).await {
                Err(error) if is_final(&error) => return,
                // What failed is tried again.
                _ => tokio::time::sleep(PERIOD).await,
            }
        }
    }

    async fn complete(&mut self) {
        loop {
            match self.catch_up(Stage::Ended).await {
                Err(error) if !is_final(&error) => tokio::time::sleep(PAUSE).await,
                _ => return,
            }
        }
    }

    /// Copies what the file has and the copy has not, piece by piece.
    async fn catch_up(&mut self, stage: Stage) -> Result<(), StoreError> {
        loop {
            let waiting = length_of(&self.file).await.saturating_sub(self.length);
            if waiting == 0 {
                return Ok(());
            }
            let content = match IN_DATABASE.checked_sub(self.length) {
                Some(room) if room > 0 => {
                    PieceContent::Bytes(self.read(waiting.min(room).min(PIECE)).await)
                }
                _ if self.shared.objects.is_none() => return self.cut().await,
                _ if stage == Stage::Running && self.is_early(waiting) => return Ok(()),
                _ => self.put_object(waiting.min(OBJECT)).await?,
            };
            if content.length() == 0 {
                return Ok(());
            }
            let store = &self.shared.store;
            self.length = store
                .append_output(&self.lease, self.length, content)
                .await?;
            self.is_cut = false;
            self.last = Instant::now();
        }
    }

    /// Objects cost by their number, so a short one waits for more.
    fn is_early(&self, waiting: u64) -> bool {
        waiting < OBJECT && self.last.elapsed() < OBJECT_PERIOD
    }

    async fn read(&self, limit: u64) -> Vec<u8> {
        let (file, offset) = (self.file.clone(), self.length);
        let limit = usize::try_from(limit).unwrap_or_default();
        let read = move || read_file(&file, offset, limit).unwrap_or_default();
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }

    /// The name has the number of the attempt: one that lost the task overwrites nothing.
    async fn put_object(&self, limit: u64) -> Result<PieceContent, StoreError> {
        let bytes = self.read(limit).await;
        let length = bytes.len() as u64;
        let below = objects_of(&self.lease.task);
        let key = format!("{below}/{:020}-{}", self.length, self.lease.epoch);
        if let Some(objects) = self.shared.objects.as_ref().filter(|_| length > 0) {
            objects.put(&key, bytes).await?;
        }
        Ok(PieceContent::Object { key, length })
    }

    async fn cut(&mut self) -> Result<(), StoreError> {
        if !self.is_cut {
            self.shared.store.cut_output(&self.lease).await?;
            self.is_cut = true;
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
