//! What is done with a connection, the same on both databases.
//!
//! A method of a trait does no SQL itself. It prepares what needs no database (texts, checks of the
//! input), begins work, calls one function of a submodule with its connection, and settles:
//!
//! ```text
//! Store::session  ->  Backend::single       a connection, for one statement or script
//!                 ->  rows::session         the work; returns Result<_, Failure>
//!                 ->  Work::settle          gives the connection back, or drops it after an error
//!
//! TaskStore::change_task  ->  Backend::change   the same within a write transaction
//!                         ->  change::change
//!                         ->  Work::settle      COMMIT, or ROLLBACK after a refusal
//! ```
//!
//! Functions that are given a connection do not begin or end transactions, so they can be put
//! together in one. The exception is an append outside of any other work, whose script for SQLite
//! does both (`Frame`).

pub(crate) mod append;
mod changes;
mod channels;
mod outputs;
mod pulls;
mod questions;
mod remove;
mod reports;
mod rows;
mod tasks;
mod tokens;
mod words;

use async_trait::async_trait;
use codespar_protocol::{Answer, Entry, EntryBody, Question, QuestionId, SessionId, SessionMode};
use jiff::Timestamp;

use crate::{
    ChangeCursor, Database, NewQuestion, NewSession, QuestionFilter, Removed, SessionFilter,
    SessionHold, SessionRecord, Store, StoreChange, StoreError, TaskLease,
    engine::{Backend, failure},
};
use append::Frame;

#[async_trait]
impl<B: Backend> Database for B {
    async fn close(&self) -> Result<(), StoreError> {
        self.close_database().await
    }

    fn is_shared_by_hosts(&self) -> bool {
        self.is_shared()
    }

    fn describe(&self) -> String {
        self.place()
    }

    fn is_shared_between_hosts(&self) -> bool {
        self.is_on_server()
    }
}

#[async_trait]
impl<B: Backend> Store for B {
    async fn create_session(&self, new: NewSession) -> Result<SessionRecord, StoreError> {
        let session = rows::fresh(new, now());
        let cwd = rows::path_text(&session.cwd)?;
        let mut work = self.single().await?;
        let outcome = rows::insert(work.connection(), &session, cwd).await;
        work.settle(outcome).await?;
        Ok(session)
    }

    async fn session(&self, id: SessionId) -> Result<SessionRecord, StoreError> {
        let mut work = self.single().await?;
        let outcome = rows::session(work.connection(), id).await;
        work.settle(outcome).await
    }

    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionRecord>, StoreError> {
        let cwd = filter.cwd.as_deref().map(rows::path_text).transpose()?;
        let limit = filter.limit.map_or(i64::MAX, i64::from);
        let mut work = self.single().await?;
        let outcome = rows::sessions(work.connection(), cwd, limit).await;
        work.settle(outcome).await
    }

    async fn hold_session(&self, id: SessionId) -> Result<SessionHold, StoreError> {
        let hold = self.hold(id, None).await?;
        // Looked up with the hold in hand, so that no clean-up takes it away in between.
        self.session(id).await?;
        Ok(hold)
    }

    async fn hold_session_for(
        &self,
        id: SessionId,
        lease: &TaskLease,
    ) -> Result<SessionHold, StoreError> {
        let hold = self.hold(id, Some(lease)).await?;
        self.session(id).await?;
        Ok(hold)
    }

    async fn append(
        &self,
        id: SessionId,
        after: u64,
        bodies: Vec<EntryBody>,
    ) -> Result<Vec<Entry>, StoreError> {
        let drafts = append::drafts(after, bodies)?;
        let place = append::Place::of(self, id, after);
        let mut work = self.single().await?;
        let outcome = append::append(work.connection(), place, drafts, Frame::Own).await;
        work.settle(outcome).await
    }

    async fn entries(&self, id: SessionId, from: u64) -> Result<Vec<Entry>, StoreError> {
        let mut work = self.single().await?;
        let outcome = rows::entries(work.connection(), id, from).await;
        work.settle(outcome).await
    }

    async fn set_session_mode(&self, id: SessionId, mode: SessionMode) -> Result<(), StoreError> {
        let mut work = self.single().await?;
        let outcome = rows::set_mode(work.connection(), id, mode).await;
        work.settle(outcome).await
    }

    async fn ask_question(&self, new: NewQuestion) -> Result<Question, StoreError> {
        let mut change = self.change().await?;
        let outcome = questions::ask(change.connection(), &new, now()).await;
        change.settle(outcome).await
    }

    async fn question(&self, id: &QuestionId) -> Result<Question, StoreError> {
        let mut work = self.single().await?;
        let outcome = questions::question(work.connection(), id).await;
        work.settle(outcome).await
    }

    async fn questions(&self, filter: QuestionFilter) -> Result<Vec<Question>, StoreError> {
        let mut work = self.single().await?;
        let outcome = questions::questions(work.connection(), &filter).await;
        work.settle(outcome).await
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
        let mut work = self.single().await?;
        let outcome = questions::withdraw(work.connection(), id).await;
        work.settle(outcome).await
    }

    async fn newest_change(&self) -> Result<ChangeCursor, StoreError> {
        changes::newest(self).await
    }

    async fn changes(&self, after: ChangeCursor) -> Result<Vec<StoreChange>, StoreError> {
        changes::after(self, after).await
    }

    async fn remove_session(&self, id: SessionId) -> Result<(), StoreError> {
        let _hold = self.hold(id, None).await?;
        let mut work = self.change().await?;
        let outcome = remove::session(work.connection(), id).await;
        work.settle(outcome).await?;
        self.give_room_back().await;
        Ok(())
    }

    async fn remove_sessions_before(&self, before: Timestamp) -> Result<Removed, StoreError> {
        remove::before(self, before).await
    }
}

/// The time, to the microsecond that the database keeps. Cut before it is used, so that what a call
/// returns is equal to what is read later.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
