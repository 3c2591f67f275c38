//! Tasks: each change is one write transaction.
//!
//! The methods here only open the transaction; each area has its file:
//!
//! ```text
//! create   new tasks          claim    leases taken, released     mail    mailboxes
//! change   by hand, stops     runners  heartbeats, who is there   notify  ends told to sessions
//! ending   ends, dependents   items    lists of teams             paths   claims on files
//! read     records, lists     teams    teams and their members    steps   results of steps
//! queue    names of queues    limits   how many run at once       admission  whose turn it is
//! fleet    who runs what      dispatch  offers to an engine      trees  files that are not committed
//! ```
//!
//! A status changes in five places only: `claim` (to running, and back; `dispatch` takes by it), `ending` (to an end),
//! `mail` (from an end to pending again), `items` (back to the list of a team) and `change`, by
//! hand and within what `TaskStatus::may_become` allows. Whatever must hold together (the end of a
//! task, its dependents, the notification, its claims on paths) is written by one transaction, so
//! that a crash leaves either all of it or none.

mod admission;
mod change;
mod claim;
mod create;
mod dispatch;
mod ending;
pub(super) mod fleet;
mod graph;
mod items;
mod leases;
mod limits;
mod mail;
mod notify;
mod paths;
mod places;
mod queue;
pub(super) mod read;
mod row;
mod runners;
mod steps;
mod teams;
mod trees;

use std::path::PathBuf;

use async_trait::async_trait;
use codespar_protocol::{AttemptOptions, Entry, EntryBody, SessionId, TaskId, TaskRecord};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    append::{self, Frame},
    now,
};
use crate::engine::Backend;
use crate::{
    Mail, NewTask, Notification, Outstanding, StoreError, TaskChange, TaskFilter, TaskLease,
    TaskStore, Team,
};

#[async_trait]
impl<B: Backend> TaskStore for B {
    async fn create_tasks(&self, new: Vec<NewTask>) -> Result<Vec<TaskRecord>, StoreError> {
        create::check(&new)?;
        let mut work = self.change().await?;
        let outcome = create::create(work.connection(), &new, now()).await;
        work.settle(outcome).await
    }

    async fn task(&self, id: &TaskId) -> Result<TaskRecord, StoreError> {
        let mut work = self.look().await?;
        let outcome = read::record(work.connection(), id).await;
        work.settle(outcome).await
    }

    async fn known_tasks(&self, ids: &[TaskId]) -> Result<Vec<TaskRecord>, StoreError> {
        let mut work = self.look().await?;
        let outcome = read::known(work.connection(), ids).await;
        work.settle(outcome).await
    }

    async fn tasks(&self, filter: TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        let mut work = self.look().await?;
        let outcome = read::listed(work.connection(), &filter).await;
        work.settle(outcome).await
    }

    async fn change_task(&self, id: &TaskId, change: TaskChange) -> Result<TaskRecord, StoreError> {
        let mut work = self.change().await?;
        let outcome = change::change(work.connection(), id, change, now()).await;
        work.settle(outcome).await
    }

    async fn stop_task(&self, id: &TaskId, reason: &str) -> Result<TaskRecord, StoreError> {
        let mut work = self.change().await?;
        let outcome = change::stop(work.connection(), id, reason, now()).await;
        work.settle(outcome).await
    }

    async fn record_step(
        &self,
        id: &TaskId,
        epoch: u64,
        step: &str,
        result: &Value,
    ) -> Result<(), StoreError> {
        let result = result.to_string();
        let mut work = self.change().await?;
        let outcome = steps::record(work.connection(), id, epoch, step, &result).await;
        work.settle(outcome).await
    }

    async fn steps(&self, id: &TaskId) -> Result<Vec<(String, Value)>, StoreError> {
        let mut work = self.look().await?;
        let outcome = steps::of_task(work.connection(), id).await;
        work.settle(outcome).await
    }

    async fn step_times(&self, id: &TaskId) -> Result<Vec<(String, Timestamp)>, StoreError> {
        let mut work = self.look().await?;
        let outcome = steps::times(work.connection(), id).await;
        work.settle(outcome).await
    }

    async fn continue_with(
        &self,
        to: &TaskId,
        from: &str,
        body: &str,
        options: &AttemptOptions,
    ) -> Result<TaskRecord, StoreError> {
        let mut work = self.change().await?;
        let message = mail::Message {
            from,
            body,
            options,
        };
        let outcome = mail::send(work.connection(), to, &message, now()).await;
        work.settle(outcome).await
    }

    async fn mail(&self, task: &TaskId) -> Result<Vec<Mail>, StoreError> {
        let mut work = self.look().await?;
        let outcome = mail::unread(work.connection(), task).await;
        work.settle(outcome).await
    }

    async fn append_from_mail(
        &self,
        session: SessionId,
        after: u64,
        bodies: Vec<EntryBody>,
        read: &[u64],
    ) -> Result<Vec<Entry>, StoreError> {
        let drafts = append::drafts(after, bodies)?;
        let place = append::Place::of(self, session, after);
        let mut work = self.change().await?;
        let outcome = match mail::mark_read(work.connection(), read, now()).await {
            Ok(()) => append::append(work.connection(), place, drafts, Frame::Callers).await,
            Err(failure) => Err(failure),
        };
        work.settle(outcome).await
    }

    async fn notifications(&self, session: SessionId) -> Result<Vec<Notification>, StoreError> {
        let mut work = self.look().await?;
        let outcome = notify::waiting(work.connection(), session).await;
        work.settle(outcome).await
    }

    async fn append_notified(
        &self,
        session: SessionId,
        after: u64,
        bodies: Vec<EntryBody>,
        delivered: &[u64],
    ) -> Result<Vec<Entry>, StoreError> {
        let drafts = append::drafts(after, bodies)?;
        let place = append::Place::of(self, session, after);
        let mut work = self.change().await?;
        let marked = notify::mark_delivered(work.connection(), session, delivered, now()).await;
        let outcome = match marked {
            Ok(()) => append::append(work.connection(), place, drafts, Frame::Callers).await,
            Err(failure) => Err(failure),
        };
        work.settle(outcome).await
    }

    async fn claim_paths(&self, lease: &TaskLease, paths: &[PathBuf]) -> Result<(), StoreError> {
        let paths = paths::plain(paths)?;
        let mut work = self.change().await?;
        let outcome = paths::claim(work.connection(), lease, &paths).await;
        work.settle(outcome).await
    }

    async fn create_team(
        &self,
        session: SessionId,
        team: Team,
        members: Vec<NewTask>,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        create::check(&members)?;
        let mut work = self.change().await?;
        let outcome = match teams::create(work.connection(), session, &team).await {
            Ok(()) => create::create(work.connection(), &members, now()).await,
            Err(failure) => Err(failure),
        };
        work.settle(outcome).await
    }

    async fn teams(&self, session: SessionId) -> Result<Vec<Team>, StoreError> {
        let mut work = self.look().await?;
        let outcome = teams::of_session(work.connection(), session).await;
        work.settle(outcome).await
    }

    async fn delete_team(&self, session: SessionId, name: &str) -> Result<Team, StoreError> {
        let mut work = self.change().await?;
        let outcome = teams::delete(work.connection(), session, name, now()).await;
        work.settle(outcome).await
    }

    async fn take_item(
        &self,
        member: &TaskId,
        item: Option<&TaskId>,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let mut work = self.change().await?;
        let outcome = items::take(work.connection(), member, item, now()).await;
        work.settle(outcome).await
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        let mut work = self.look().await?;
        let outcome = read::outstanding(work.connection()).await;
        work.settle(outcome).await
    }

    async fn remove_tasks_before(&self, before: Timestamp) -> Result<Vec<TaskId>, StoreError> {
        let mut work = self.change().await?;
        let outcome = read::remove_before(work.connection(), before).await;
        let removed = work.settle(outcome).await?;
        if !removed.is_empty() {
            self.give_room_back().await;
        }
        Ok(removed)
    }
}
