//! The store in one SQLite file, shared by all processes on a state directory.
//!
//! A method of a trait does no SQL itself. It prepares what needs no database (texts, checks of the
//! input), takes the connection, calls one function of a submodule with it, and settles:
//!
//! ```text
//! Store::session  ->  Link::lease           the connection, for one statement or script
//!                 ->  rows::session         the work; returns Result<_, Failure>
//!                 ->  Lease::settle         gives the connection back, or drops it after an error
//!
//! TaskStore::change_task  ->  change()      the same within BEGIN IMMEDIATE
//!                         ->  change::change
//!                         ->  Transaction::settle   COMMIT, or ROLLBACK after a refusal
//! ```
//!
//! Functions that are given a connection do not begin or end transactions, so they can be put
//! together in one. The exception is an append outside of any other work, whose script does both
//! (`Frame`).

mod append;
mod changes;
mod channels;
mod failure;
mod file_id;
mod link;
mod open;
#[cfg(test)]
mod plans;
mod pulls;
mod questions;
mod remove;
mod reports;
mod rows;
mod script;
mod tasks;
mod tokens;
mod transaction;
#[cfg(test)]
mod upgrade_tests;
mod words;
mod writes;

use std::path::PathBuf;

use async_trait::async_trait;
use codespar_protocol::{Answer, Entry, EntryBody, Question, QuestionId, SessionId, SessionMode};
use jiff::Timestamp;

use crate::{
    ChangeCursor, Database, NewQuestion, NewSession, QuestionFilter, Removed, SessionFilter,
    SessionHold, SessionRecord, Store, StoreChange, StoreError, locks::Locks,
};
use append::Frame;
use link::Link;
use writes::WriteWatch;

/// `<dir>/codespar.db` and the lock files beside it.
///
/// Opened once per process and shared. All its calls go through one connection, in the order in
/// which they came.
pub struct SqliteStore {
    /// The state directory, absolute.
    dir: PathBuf,
    link: Link,
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
impl Database for SqliteStore {
    async fn close(&self) -> Result<(), StoreError> {
        Self::close(self).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_session(&self, new: NewSession) -> Result<SessionRecord, StoreError> {
        let session = rows::fresh(new, now());
        let cwd = rows::path_text(&session.cwd)?;
        let mut lease = self.link.lease().await?;
        let outcome = rows::insert(&mut lease.connection, &session, cwd).await;
        lease.settle(outcome)?;
        Ok(session)
    }

    async fn session(&self, id: SessionId) -> Result<SessionRecord, StoreError> {
        let mut lease = self.link.lease().await?;
        let outcome = rows::session(&mut lease.connection, id).await;
        lease.settle(outcome)
    }

    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionRecord>, StoreError> {
        let cwd = filter.cwd.as_deref().map(rows::path_text).transpose()?;
        let limit = filter.limit.map_or(i64::MAX, i64::from);
        let mut lease = self.link.lease().await?;
        let outcome = rows::sessions(&mut lease.connection, cwd, limit).await;
        lease.settle(outcome)
    }

    async fn hold_session(&self, id: SessionId) -> Result<SessionHold, StoreError> {
        let lock = self.locks.take(id)?;
        // Looked up with the lock in hand, so that no clean-up takes it away in between.
        self.session(id).await?;
        Ok(SessionHold::new(lock))
    }

    async fn append(
        &self,
        id: SessionId,
        after: u64,
        bodies: Vec<EntryBody>,
    ) -> Result<Vec<Entry>, StoreError> {
        let drafts = append::drafts(after, bodies)?;
        let mut lease = self.link.lease().await?;
        let outcome = append::append(&mut lease.connection, id, after, drafts, Frame::Own).await;
        lease.settle(outcome)
    }

    async fn entries(&self, id: SessionId, from: u64) -> Result<Vec<Entry>, StoreError> {
        let mut lease = self.link.lease().await?;
        let outcome = rows::entries(&mut lease.connection, id, from).await;
        lease.settle(outcome)
    }

    async fn set_session_mode(&self, id: SessionId, mode: SessionMode) -> Result<(), StoreError> {
        let mut lease = self.link.lease().await?;
        let outcome = rows::set_mode(&mut lease.connection, id, mode).await;
        lease.settle(outcome)
    }

    async fn ask_question(&self, new: NewQuestion) -> Result<Question, StoreError> {
        let mut change = self.change().await?;
        let outcome = questions::ask(change.connection(), &new, now()).await;
        change.settle(outcome).await
    }

    async fn question(&self, id: &QuestionId) -> Result<Question, StoreError> {
        let mut lease = self.link.lease().await?;
        let outcome = questions::question(&mut lease.connection, id).await;
        lease.settle(outcome)
    }

    async fn questions(&self, filter: QuestionFilter) -> Result<Vec<Question>, StoreError> {
        let mut lease = self.link.lease().await?;
        let outcome = questions::questions(&mut lease.connection, &filter).await;
        lease.settle(outcome)
    }

    async fn answer_question(
        &self,
        id: &QuestionId,
        answer: &Answer,
        by: &str,
    ) -> Result<Question, StoreError> {
        let mut change = self.change().await?;
        let outcome = questions::answer(change.connection(), id, answer, by, now()).await;
        change.settle(outcome).await
    }

    async fn withdraw_question(&self, id: &QuestionId) -> Result<(), StoreError> {
        let mut lease = self.link.lease().await?;
        let outcome = questions::withdraw(&mut lease.connection, id).await;
        lease.settle(outcome)
    }

    async fn newest_change(&self) -> Result<ChangeCursor, StoreError> {
        self.newest().await
    }

    async fn changes(&self, after: ChangeCursor) -> Result<Vec<StoreChange>, StoreError> {
        self.changes_after(after).await
    }

    async fn remove_session(&self, id: SessionId) -> Result<(), StoreError> {
        let _lock = self.locks.take(id)?;
        let mut lease = self.link.lease().await?;
        let outcome = remove::session(&mut lease.connection, id).await;
        lease.settle(outcome)?;
        self.give_room_back().await;
        Ok(())
    }

    async fn remove_sessions_before(&self, before: Timestamp) -> Result<Removed, StoreError> {
        self.remove_before(before).await
    }
}

/// The time, to the microsecond that the database keeps. Cut before it is used, so that what a call
/// returns is equal to what is read later.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
