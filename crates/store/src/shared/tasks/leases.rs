//! Leases: each change is one transaction.
//!
//! A heartbeat, a claim and an end are each atomic with what they check, so a runner that was taken
//! for lost and comes back meets a refusal instead of writing over its successor. `assign_items`
//! usually finds nothing, so it looks in a read transaction before it takes the write lock.

use async_trait::async_trait;
use codespar_protocol::TaskId;

use super::{super::now, claim, create, ending, items, runners};
use crate::engine::{Access, Backend};
use crate::{
    Beat, Capacity, Claimed, HeldTask, LeaseStore, RunnerAbout, RunnerId, RunnerSeen, StoreError,
    TaskEnding,
};

#[async_trait]
impl<B: Backend> LeaseStore for B {
    async fn beat(
        &self,
        runner: &RunnerId,
        about: &RunnerAbout,
        held: &[HeldTask],
    ) -> Result<Beat, StoreError> {
        let about = serde_json::to_string(about).map_err(|error| {
            StoreError::Database(format!("cannot describe {runner:?}: {error}"))
        })?;
        let mut work = self.change().await?;
        let outcome = runners::beat(work.connection(), runner, &about, held).await;
        work.settle(outcome).await
    }

    async fn runners(&self) -> Result<Vec<RunnerSeen>, StoreError> {
        let mut work = self.look().await?;
        let outcome = runners::seen(work.connection()).await;
        work.settle(outcome).await
    }

    async fn mark_silent(&self, seen: &RunnerSeen) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = runners::mark_silent(work.connection(), seen).await;
        work.settle(outcome).await
    }

    async fn reap_runner(&self, seen: &RunnerSeen) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = runners::reap(work.connection(), seen).await;
        work.settle(outcome).await
    }

    async fn withdraw_runner(&self, runner: &RunnerId) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = runners::withdraw(work.connection(), runner).await;
        work.settle(outcome).await
    }

    async fn claim_tasks(
        &self,
        runner: &RunnerId,
        capacity: &Capacity,
    ) -> Result<Vec<Claimed>, StoreError> {
        for access in [Access::Claim, Access::Change] {
            let mut work = self.begin(access).await?;
            let outcome = claim::claim(work.connection(), runner, capacity, now()).await;
            if let Some(claimed) = work.settle(outcome).await? {
                return Ok(claimed);
            }
        }
        Ok(Vec::new())
    }

    async fn finish_task(
        &self,
        id: &TaskId,
        epoch: u64,
        ending: TaskEnding,
    ) -> Result<Vec<TaskId>, StoreError> {
        let mut work = self.change().await?;
        let outcome = ending::finish(work.connection(), id, epoch, ending, now()).await;
        work.settle(outcome).await
    }

    async fn release_task(&self, id: &TaskId, epoch: u64) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = claim::release(work.connection(), id, epoch, now()).await;
        work.settle(outcome).await
    }

    async fn unfinished(&self, ids: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        let mut work = self.look().await?;
        let outcome = create::statuses_of(work.connection(), ids.iter()).await;
        let statuses = work.settle(outcome).await?;
        let open = statuses
            .into_iter()
            .filter(|(_, status)| !status.is_final());
        Ok(open.map(|(id, _)| id).collect())
    }

    async fn assign_items(&self) -> Result<Vec<TaskId>, StoreError> {
        let mut work = self.look().await?;
        let outcome = items::any_free(work.connection()).await;
        if !work.settle(outcome).await? {
            return Ok(Vec::new());
        }
        let mut work = self.change().await?;
        let outcome = items::assign(work.connection(), now()).await;
        work.settle(outcome).await
    }
}
