//! Pull requests of one repository: list, review, merge and the rest.
//!
//! All of it goes through the publisher, so text that is written is checked for secrets.

use std::sync::Arc;

use codespar_dev::{Linker, RepositoryRef};
use codespar_forge::Forge;
use codespar_protocol::{MergeStrategy, PullRequest, PullRequestState, Usd};
use codespar_pulls::{
    CheckRule, Closed, Merged, Publisher, Reviewed, Reviewer, UnknownChecks, close, make_ready,
    merge,
};
use codespar_store::Database;
use tokio_util::sync::CancellationToken;

use crate::{OneCall, ProjectDir, RepositoryLinker, RuntimeError, one_call, requester};

/// The pull requests of a repository.
pub struct Pulls {
    dir: ProjectDir,
    forge: Arc<Publisher>,
}

/// What a review needs besides the pull request.
#[derive(Debug, Clone, Default)]
pub struct ReviewRequest {
    /// An alias or a provider's id; `TASK_MODEL`, the settings or the usual one otherwise.
    pub model: Option<String>,
    pub max_budget: Option<Usd>,
}

fn failed(error: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::Failed(error.to_string())
}

impl Pulls {
    /// Reaches a repository with the environment and the trust of a project.
    pub async fn of(
        dir: &ProjectDir,
        store: Arc<dyn Database>,
        repository: &RepositoryRef,
    ) -> Result<Self, RuntimeError> {
        let linker = RepositoryLinker {
            project_dir: dir.clone(),
            store,
        };
        let forge = linker.forge(repository).await;
        Ok(Self {
            dir: dir.clone(),
            forge: forge.map_err(RuntimeError::Usage)?,
        })
    }

    pub fn forge(&self) -> &dyn Forge {
        &*self.forge
    }

    /// Latest first; all of them without a state.
    pub async fn list(
        &self,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, RuntimeError> {
        self.forge.pull_requests(state).await.map_err(failed)
    }

    pub async fn show(&self, number: u64) -> Result<PullRequest, RuntimeError> {
        self.forge.pull_request(number).await.map_err(failed)
    }

    pub async fn diff(&self, number: u64) -> Result<String, RuntimeError> {
        self.forge.diff(number).await.map_err(failed)
    }

    /// Turns a draft into a pull request that can be merged.
    pub async fn make_ready(
        &self,
        number: u64,
        rule: CheckRule,
    ) -> Result<PullRequest, RuntimeError> {
        make_ready(self.forge(), number, rule).await.map_err(failed)
    }

    pub async fn close(&self, number: u64) -> Result<Closed, RuntimeError> {
        close(self.forge(), number).await.map_err(failed)
    }

    /// Merges, or says every reason against it. Without a name the requester is the owner of the
    /// forge's token. Checks that the token may not read are a reason against it.
    pub async fn merge(
        &self,
        number: u64,
        strategy: Option<MergeStrategy>,
        requested_by: Option<&str>,
    ) -> Result<Merged, RuntimeError> {
        self.merge_with(number, strategy, requested_by, UnknownChecks::Refuse)
            .await
    }

    /// The same, where the requester decides about checks that the token may not read.
    pub async fn merge_with(
        &self,
        number: u64,
        strategy: Option<MergeStrategy>,
        requested_by: Option<&str>,
        unknown: UnknownChecks,
    ) -> Result<Merged, RuntimeError> {
        let who = match requested_by {
            Some(name) => name.to_owned(),
            None => requester(&self.dir, self.forge()).await,
        };
        let merged = merge(self.forge(), number, strategy, &who, unknown).await;
        merged.map_err(failed)
    }

    /// Reviews the head of a pull request and posts the findings, once; `cancel` stops it.
    pub async fn review(
        &self,
        number: u64,
        request: &ReviewRequest,
        cancel: &CancellationToken,
    ) -> Result<Reviewed, RuntimeError> {
        let call = one_call(&self.dir, request.model.as_deref(), cancel)?;
        let OneCall {
            provider,
            redactor,
            stop,
        } = &call;
        let reviewer = Reviewer {
            model: (!provider.is_simulated()).then_some(&provider.model),
            provider_choice: &provider.why,
            catalogue: &provider.catalogue,
            model_id: provider.choice.id.clone(),
            max_budget: request.max_budget,
            redactor,
        };
        let reviewed = reviewer.review(self.forge(), number, stop).await;
        reviewed.map_err(failed)
    }
}
