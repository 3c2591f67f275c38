//! The store in one SQLite file, shared by all processes on a state directory.
//!
//! What is done with a connection is in `shared/`. Here is how one is got: the file and its schema
//! (`open`), the one connection of the process (`link`), the notice of writes by others (`writes`),
//! and the script that makes an append one trip (`script`).

mod failure;
mod file_id;
mod link;
mod open;
#[cfg(test)]
mod plans;
mod remove;
mod script;
#[cfg(test)]
mod upgrade_tests;
mod writes;

use std::path::PathBuf;

use async_trait::async_trait;
use codespar_protocol::SessionId;

use crate::{
    SessionHold, StoreError, TaskLease,
    engine::{Access, Backend, Work, Writes},
    locks::Locks,
};
use link::SharedConnection;
use writes::WriteWatch;

pub(crate) use failure::into_store_error;
pub(crate) use link::ConnectionSlot;
pub(crate) use open::DATABASE;
pub(crate) use script::AppendScript;

/// `<dir>/codespar.db` and the lock files beside it.
///
/// Opened once per process and shared. All its calls go through one connection, in the order in
/// which they came.
pub struct SqliteStore {
    /// The state directory, absolute.
    dir: PathBuf,
    link: SharedConnection,
    locks: Locks,
    watch: WriteWatch,
}

impl SqliteStore {
    /// Lets go of the database file, folding its write-ahead log in when no other process has it
    /// open. A store that is dropped instead loses nothing; the next one to open it tidies up.
    /// Fails when the file was removed or replaced: what was recorded is lost then. Calls that come
    /// after it fail.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.link.close().await
    }
}

#[async_trait]
impl Backend for SqliteStore {
    async fn begin(&self, access: Access) -> Result<Work<'_>, StoreError> {
        self.link.begin(access).await
    }

    /// The lock of a process that lives is respected, however long it is stopped: it is on this
    /// machine, and may go on.
    async fn hold(
        &self,
        id: SessionId,
        _lease: Option<&TaskLease>,
    ) -> Result<SessionHold, StoreError> {
        Ok(SessionHold::new(self.locks.take(id)?))
    }

    /// The lock of a file ends with its process alone.
    fn hold_epoch(&self, _id: SessionId) -> Option<i64> {
        None
    }

    fn writes(&self) -> Writes {
        self.watch.listen()
    }

    async fn give_room_back(&self) {
        self.shrink_file().await;
    }

    fn size(&self) -> u64 {
        self.file_size()
    }

    fn sweep(&self) {
        self.locks.sweep();
    }

    /// File locks and the log do not work across hosts.
    fn is_shared(&self) -> bool {
        false
    }

    fn place(&self) -> String {
        format!("{} (SQLite)", self.dir.display())
    }

    fn is_on_server(&self) -> bool {
        false
    }

    async fn close_database(&self) -> Result<(), StoreError> {
        self.link.close().await
    }
}
