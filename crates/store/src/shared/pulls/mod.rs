//! Pull requests: each change is one write transaction.
//!
//! A number is given and used up within one transaction, so numbers of a repository have no
//! duplicates among processes. Creating a pull request and adding a review are safe to repeat: they
//! find their earlier result by head branch and by key.

mod checks;
mod record;
mod reviews;

use async_trait::async_trait;
use codespar_protocol::{Check, CommitId, PullRequest, PullRequestState, Review};

use super::now;
use crate::engine::Backend;
use crate::{NewPull, NewPullReview, PullChange, PullStore, RecordedCheck, StoreError};

#[async_trait]
impl<B: Backend> PullStore for B {
    async fn create_pull(&self, repository: &str, new: NewPull) -> Result<PullRequest, StoreError> {
        let mut work = self.change().await?;
        let outcome = record::create(work.connection(), repository, &new, now()).await;
        work.settle(outcome).await
    }

    async fn pull(&self, repository: &str, number: u64) -> Result<PullRequest, StoreError> {
        let mut work = self.look().await?;
        let outcome = record::pull(work.connection(), repository, number).await;
        work.settle(outcome).await
    }

    async fn pulls(
        &self,
        repository: &str,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, StoreError> {
        let mut work = self.look().await?;
        let outcome = record::listed(work.connection(), repository, state).await;
        work.settle(outcome).await
    }

    async fn change_pull(
        &self,
        repository: &str,
        number: u64,
        change: PullChange,
    ) -> Result<PullRequest, StoreError> {
        let mut work = self.change().await?;
        let outcome = record::change(work.connection(), repository, number, change, now()).await;
        work.settle(outcome).await
    }

    async fn add_review(
        &self,
        repository: &str,
        number: u64,
        new: NewPullReview,
    ) -> Result<Review, StoreError> {
        let mut work = self.change().await?;
        let outcome = reviews::add(work.connection(), repository, number, &new, now()).await;
        work.settle(outcome).await
    }

    async fn pull_reviews(&self, repository: &str, number: u64) -> Result<Vec<Review>, StoreError> {
        let mut work = self.look().await?;
        let outcome = reviews::listed(work.connection(), repository, number).await;
        work.settle(outcome).await
    }

    async fn set_check(
        &self,
        repository: &str,
        commit: &CommitId,
        check: &Check,
    ) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = checks::set(work.connection(), repository, commit, check, now()).await;
        work.settle(outcome).await
    }

    async fn checks(
        &self,
        repository: &str,
        commit: &CommitId,
    ) -> Result<Vec<RecordedCheck>, StoreError> {
        let mut work = self.look().await?;
        let outcome = checks::listed(work.connection(), repository, commit).await;
        work.settle(outcome).await
    }
}

/// 0 stands for a row whose number is not known.
fn damaged(number: u64) -> impl Fn(String) -> StoreError {
    move |message| StoreError::Database(format!("pull request #{number} is damaged: {message}"))
}
