//! Outputs of tasks: a file on the host that runs the task and, where hosts share the records, a
//! copy for the others.
//!
//! ```text
//! runner → file           through redaction, on every host                  log.rs, Capture
//! file   → store, objects about once a second, and before an end is recorded  copy.rs
//! store  → file           before an attempt goes on elsewhere               restore.rs
//! reader ← file or store  the file where this host wrote last               read.rs
//! ```
//!
//! A byte has the same place in the file and in the copy. Nothing but bytes of the file gets into
//! the copy, so nothing that was not redacted does.

mod copy;
mod read;
mod restore;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use codespar_protocol::{SessionId, TaskId, TaskRecord};
use codespar_store::{ObjectStore, OutputPlace, OutputStore, StoreError};

pub use read::{OutputPart, OutputTail};

/// How much of an output is in the database. What is beyond goes to the object store, or stays on
/// its host.
pub(crate) const IN_DATABASE: u64 = 1 << 20;

/// The outputs that this process writes and reads.
pub struct TaskOutputs {
    dir: PathBuf,
    shared: OnceLock<SharedOutputs>,
}

/// What all hosts can read.
#[derive(Clone)]
pub struct SharedOutputs {
    store: Arc<dyn OutputStore>,
    objects: Option<Arc<dyn ObjectStore>>,
    host: String,
}

impl SharedOutputs {
    pub fn new(store: Arc<dyn OutputStore>, objects: Option<Arc<dyn ObjectStore>>) -> Self {
        let host = rustix::system::uname();
        Self {
            store,
            objects,
            host: host.nodename().to_string_lossy().into_owned(),
        }
    }

    /// Removes the objects of tasks that are gone.
    pub async fn remove_objects(&self) -> Result<(), StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        loop {
            let gone = self.store.removed_outputs().await?;
            if gone.is_empty() {
                return Ok(());
            }
            for id in gone {
                objects.remove_below(&objects_of(&id)).await?;
                self.store.forget_removed_output(&id).await?;
            }
        }
    }

    fn place(&self, file: &Path) -> OutputPlace {
        OutputPlace {
            host: self.host.clone(),
            file: file.to_string_lossy().into_owned(),
        }
    }
}

/// Where the objects of a task are.
fn objects_of(id: &TaskId) -> String {
    format!("outputs/{id}")
}

impl TaskOutputs {
    /// Outputs in this directory, for this host alone.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            shared: OnceLock::new(),
        }
    }

    /// From now on other hosts can read them too. The first call counts.
    pub fn share(&self, shared: SharedOutputs) {
        let _ = self.shared.set(shared);
    }

    pub fn is_shared(&self) -> bool {
        self.shared.get().is_some()
    }

    /// The directory of all outputs on this host.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the output of a task goes: agents may read the directory of their own tree.
    pub fn new_file(&self, tree: SessionId, id: &TaskId) -> PathBuf {
        self.dir.join(tree.to_string()).join(format!("{id}.txt"))
    }

    /// The file of a task on this host. What its record names may be the file of another host.
    pub fn file(&self, record: &TaskRecord) -> PathBuf {
        match (&record.output_file, &record.authority) {
            (Some(file), _) if !self.is_shared() => PathBuf::from(file),
            (_, Some(authority)) if self.is_shared() => {
                self.new_file(authority.tree, &record.task_id)
            }
            _ => self.dir.join(format!("{}.txt", record.task_id)),
        }
    }

    /// Where the whole output is, for whoever is told of its beginning.
    pub(crate) fn whereabouts(&self, record: &TaskRecord) -> String {
        match (&record.output_file, self.is_shared()) {
            (_, true) => format!("the output of {}", record.task_id),
            (Some(file), false) => file.clone(),
            (None, false) => "its output file".to_owned(),
        }
    }
}
