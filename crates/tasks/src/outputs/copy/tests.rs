//! Attempts whose output cannot be copied.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_protocol::{TaskId, TaskType};
use codespar_store::{
    OutputPlace, OutputRange, OutputState, OutputStore, PieceContent, StoreError, TaskLease,
};
use tokio_util::sync::CancellationToken;

use super::{OutputCopy, SharedOutputs};

/// A database that is out of reach.
struct Away;

fn away<T>() -> Result<T, StoreError> {
    Err(StoreError::Database("the server is away".to_owned()))
}

#[async_trait]
impl OutputStore for Away {
    async fn begin_output(
        &self,
        _: &TaskLease,
        _: &OutputPlace,
    ) -> Result<Option<OutputState>, StoreError> {
        away()
    }

    async fn append_output(
        &self,
        _: &TaskLease,
        _: u64,
        _: PieceContent,
    ) -> Result<u64, StoreError> {
        away()
    }

    async fn cut_output(&self, _: &TaskLease) -> Result<(), StoreError> {
        away()
    }

    async fn output_state(&self, _: &TaskId) -> Result<Option<OutputState>, StoreError> {
        away()
    }

    async fn output(&self, _: &TaskId, _: u64, _: u64) -> Result<Option<OutputRange>, StoreError> {
        away()
    }

    async fn removed_outputs(&self) -> Result<Vec<TaskId>, StoreError> {
        away()
    }

    async fn forget_removed_output(&self, _: &TaskId) -> Result<(), StoreError> {
        away()
    }
}

/// One that gives up soon.
async fn copy(file: &Path) -> OutputCopy {
    let shared = SharedOutputs::new(Arc::new(Away), None);
    let lease = TaskLease {
        task: TaskId::new(TaskType::LocalAgent),
        epoch: 1,
    };
    let mut copy = OutputCopy::new(shared, lease, file.to_path_buf()).await;
    copy.patience = Duration::from_millis(10);
    copy
}

#[tokio::test]
async fn an_output_that_could_not_be_copied_says_so_on_its_host() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("w-1.txt");
    let copy = copy(&file).await;
    std::fs::write(&file, "one\n").unwrap();
    let ended = CancellationToken::new();
    ended.cancel();
    copy.run(ended).await;
    let text = std::fs::read_to_string(&file).unwrap();
    let (output, note) = text.split_at("one\n".len());
    assert_eq!(output, "one\n");
    assert!(
        note.starts_with("[other hosts do not have the end of this output: "),
        "{note}"
    );
    assert!(note.ends_with("the server is away]\n"), "{note}");
}
