//! Reading an output by bytes: the file where this host wrote last, else the copy.

use std::{
    io::{Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use codespar_protocol::TaskRecord;
use codespar_store::{
    OutputPiece, OutputRange, OutputRemainder, OutputState, PieceContent, StoreError,
};

use super::{SharedOutputs, TaskOutputs};

/// Some bytes of an output, for people and models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    /// A part may begin or end within a character; the broken bytes are shown as replacement
    /// characters.
    pub text: String,
    /// Where the next part begins. As asked for, if there was nothing.
    pub next: u64,
}

/// The end of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTail {
    pub text: String,
    /// Bytes of the whole output.
    pub length: u64,
}

/// Where an output is read.
enum Source<'a> {
    File(PathBuf),
    Copy(&'a SharedOutputs, OutputState),
}

impl TaskOutputs {
    /// A part of an output, from a byte on. Empty for a task without output, or one whose file
    /// cannot be read.
    pub async fn read(
        &self,
        record: &TaskRecord,
        offset: u64,
        limit: usize,
    ) -> Result<OutputPart, StoreError> {
        let source = self.source(record).await?;
        let bytes = source.read(record, offset, limit).await?;
        Ok(OutputPart {
            next: offset + bytes.len() as u64,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// The last bytes of an output.
    pub async fn tail(&self, record: &TaskRecord, limit: usize) -> Result<OutputTail, StoreError> {
        let source = self.source(record).await?;
        let length = source.length().await;
        let offset = length.saturating_sub(limit as u64);
        let bytes = source.read(record, offset, limit).await?;
        Ok(OutputTail {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            length,
        })
    }

    /// The file of this host may be one of an earlier attempt, after which another host went on.
    async fn source(&self, record: &TaskRecord) -> Result<Source<'_>, StoreError> {
        let file = self.file(record);
        let Some(shared) = self.shared.get() else {
            return Ok(Source::File(file));
        };
        Ok(match shared.store.output_state(&record.task_id).await? {
            Some(state) if shared.place(&file) != state.place => Source::Copy(shared, state),
            Some(state) if length_of(&file).await < state.length => Source::Copy(shared, state),
            _ => Source::File(file),
        })
    }
}

impl Source<'_> {
    async fn length(&self) -> u64 {
        match self {
            Self::File(file) => length_of(file).await,
            Self::Copy(_, state) => state.length + note(state).len() as u64,
        }
    }

    async fn read(
        &self,
        record: &TaskRecord,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::File(file) => {
                let file = file.clone();
                let read = move || read_file(&file, offset, limit).unwrap_or_default();
                Ok(tokio::task::spawn_blocking(read).await.unwrap_or_default())
            }
            Self::Copy(shared, _) => {
                let id = &record.task_id;
                let found = shared.store.output(id, offset, limit as u64).await?;
                let Some(OutputRange { state, pieces }) = found else {
                    return Ok(Vec::new());
                };
                let end = offset.saturating_add(limit as u64);
                let mut bytes = shared.join(&pieces, offset..end).await?;
                let missing = end.min(state.length).saturating_sub(offset);
                if bytes.len() as u64 == missing {
                    bytes.extend(within(&note(&state), state.length, &(offset..end)));
                }
                Ok(bytes)
            }
        }
    }
}

impl SharedOutputs {
    /// The bytes of pieces within a range. What cannot be read is an error only if nothing was read
    /// before it.
    pub(super) async fn join(
        &self,
        pieces: &[OutputPiece],
        range: Range<u64>,
    ) -> Result<Vec<u8>, StoreError> {
        let mut joined = Vec::new();
        for piece in pieces {
            match self.piece(piece, &range).await {
                Ok(bytes) => joined.extend(bytes),
                Err(error) if joined.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(joined)
    }

    async fn piece(&self, piece: &OutputPiece, range: &Range<u64>) -> Result<Vec<u8>, StoreError> {
        match &piece.content {
            PieceContent::Bytes(bytes) => Ok(within(bytes, piece.at, range).to_vec()),
            PieceContent::Object { key, length } => {
                let Some(objects) = &self.objects else {
                    return Err(StoreError::Objects {
                        place: "of this output".to_owned(),
                        message: format!(
                            "it has {key}, and this process was not told where it is; set \
                             CODESPAR_OBJECT_STORE as for the process that ran the task"
                        ),
                    });
                };
                let start = range.start.saturating_sub(piece.at).min(*length);
                let end = range.end.saturating_sub(piece.at).min(*length);
                objects.get(key, start..end.max(start)).await
            }
        }
    }
}

/// The part of bytes that begin at `at` which is in the range.
fn within<'a>(bytes: &'a [u8], at: u64, range: &Range<u64>) -> &'a [u8] {
    let place = |byte: u64| {
        let place = usize::try_from(byte.saturating_sub(at));
        place.map_or(bytes.len(), |place| place.min(bytes.len()))
    };
    let (start, end) = (place(range.start), place(range.end));
    bytes.get(start..end).unwrap_or_default()
}

/// The last line of a copy that lacks the rest.
pub(super) fn note(state: &OutputState) -> Vec<u8> {
    match state.remainder {
        OutputRemainder::None => Vec::new(),
        OutputRemainder::OnHost => {
            let (host, file) = (&state.place.host, &state.place.file);
            format!("\n[the rest of this output is on host {host} in {file}]\n").into_bytes()
        }
    }
}

/// 0 if there is none.
pub(super) async fn length_of(file: &Path) -> u64 {
    let found = tokio::fs::metadata(file).await;
    found.map_or(0, |found| found.len())
}

/// As many bytes as there are, up to the limit.
pub(super) fn read_file(file: &Path, offset: u64, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(file)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
