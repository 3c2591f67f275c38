//! The store in a PostgreSQL database, shared by processes on any number of hosts.
//!
//! What is done with a connection is in `shared/`. Here is what differs from SQLite:
//!
//! ```text
//! server   the pool, how work is begun, what errors mean
//! schema   made once, its version checked
//! append   an append as one statement
//! keeper   one connection of its own: holds of sessions (advisory locks) and NOTIFY
//! ```
//!
//! **One change at a time.** Work that looks before it writes takes a lock of the whole store first,
//! as SQLite's writers do, so the code that both share needs no reasoning about rows that change
//! under it. Appends and claims do without: an append is one statement on one session, a claim
//! locks the tasks that it takes and skips those that others are taking. So do outputs of tasks: each
//! locks its own row.
//!
//! Where limits of what runs are set, claims take a lock of their own, one after the other: each
//! counts what runs before it adds to it.
//!
//! **No circles.** Locks are taken in this order: that of changes, that of claims, rows, that of the
//! order of changes (`record_change` of the schema), which is only taken while a transaction commits.

mod append;
mod failure;
mod keeper;
mod schema;
mod server;

use async_trait::async_trait;
use codespar_protocol::SessionId;

use crate::{
    SessionHold, StoreError, TaskLease,
    engine::{Access, Backend, Work, Writes},
};
use keeper::Keeper;

pub(crate) use append::{IS_HELD, append};
pub(crate) use server::Server;

/// A schema of a PostgreSQL database. Opened once per process and shared.
pub struct PostgresStore {
    server: Server,
    keeper: Keeper,
}

impl PostgresStore {
    /// Connects, makes the schema where there is none, and checks its version. `url` is
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`; errors never contain the password. Must be
    /// called within the runtime that the store is used in.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let server = Server::connect(url).await?;
        let keeper = Keeper::start(&server).await?;
        Ok(Self { server, keeper })
    }

    /// Lets go of all connections. Calls that come after it fail.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.close_database().await
    }
}

#[async_trait]
impl Backend for PostgresStore {
    async fn begin(&self, access: Access) -> Result<Work<'_>, StoreError> {
        self.server.begin(access).await
    }

    async fn hold(
        &self,
        id: SessionId,
        lease: Option<&TaskLease>,
    ) -> Result<SessionHold, StoreError> {
        let guard = self.keeper.hold(id, lease.cloned()).await;
        Ok(SessionHold::new(
            guard.map_err(|failure| self.server.error(failure))?,
        ))
    }

    fn hold_epoch(&self, id: SessionId) -> Option<i64> {
        self.keeper.epoch_of(id)
    }

    fn writes(&self) -> Writes {
        self.keeper.writes()
    }

    /// The server does that by itself.
    async fn give_room_back(&self) {}

    fn size(&self) -> u64 {
        0
    }

    /// A lost connection leaves nothing behind.
    fn sweep(&self) {}

    fn is_shared(&self) -> bool {
        true
    }

    fn place(&self) -> String {
        format!("{} (PostgreSQL)", self.server.place)
    }

    fn is_on_server(&self) -> bool {
        true
    }

    async fn close_database(&self) -> Result<(), StoreError> {
        self.keeper.stop().await;
        self.server.pool.close().await;
        Ok(())
    }
}
