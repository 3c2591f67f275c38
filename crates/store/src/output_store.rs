//! Outputs of tasks for all hosts that share the database.

use async_trait::async_trait;
use codespar_protocol::TaskId;

use crate::{StoreError, TaskLease};

/// The file that an attempt writes its output to, before any of it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPlace {
    pub host: String,
    pub file: String,
}

/// What is here of the output of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputState {
    /// Of the attempt that wrote last.
    pub place: OutputPlace,
    /// Bytes, without gaps.
    pub length: u64,
    pub remainder: OutputRemainder,
}

/// What is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputRemainder {
    /// Nothing, or what was written in the last moments.
    None,
    /// What is beyond the limit of the database. It is in the file alone.
    OnHost,
}

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// Its first byte.
    pub at: u64,
    pub content: PieceContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceContent {
    Bytes(Vec<u8>),
    /// In the object store.
    Object {
        key: String,
        length: u64,
    },
}

impl PieceContent {
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Object { length, .. } => *length,
        }
    }
}

/// What was found of a range that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRange {
    pub state: OutputState,
    /// In order and without gaps. The first and the last may be longer than what was asked for.
    pub pieces: Vec<OutputPiece>,
}

/// Outputs of tasks. The bytes have no secrets any more: whoever writes them has seen to that.
///
/// An output is written under the lease of an attempt, so that a process that lost its task adds
/// nothing to what the next one wrote. It is removed with its task.
#[async_trait]
pub trait OutputStore: Send + Sync {
    /// From now on this attempt writes the output, to this place. Gives what earlier attempts left,
    /// which is not changed by anyone else from now on.
    async fn begin_output(
        &self,
        lease: &TaskLease,
        place: &OutputPlace,
    ) -> Result<Option<OutputState>, StoreError>;

    /// Adds bytes at a place, and gives the length after that. What is here already is not written
    /// again. Where bytes are missing before `at`, nothing is written and the length says from
    /// where on. Refused with `StoreError::LeaseLost` if the attempt did not begin the output, or
    /// another one did since.
    async fn append_output(
        &self,
        lease: &TaskLease,
        at: u64,
        content: PieceContent,
    ) -> Result<u64, StoreError>;

    /// What comes next stays on the host.
    async fn cut_output(&self, lease: &TaskLease) -> Result<(), StoreError>;

    /// `None` for a task that has none here, or that there is none of.
    async fn output_state(&self, task: &TaskId) -> Result<Option<OutputState>, StoreError>;

    /// What is here of so many bytes from a place on.
    async fn output(
        &self,
        task: &TaskId,
        from: u64,
        limit: u64,
    ) -> Result<Option<OutputRange>, StoreError>;

    /// Tasks that are gone and had objects: some of them where there are many.
    async fn removed_outputs(&self) -> Result<Vec<TaskId>, StoreError>;

    /// The objects of this task are removed.
    async fn forget_removed_output(&self, task: &TaskId) -> Result<(), StoreError>;
}
