//! Which commit the change stands on. It is fixed before anything is read.
//!
//! A branch moves while a run works; the commit in the record does not. The branch of the run and
//! its pull request are fixed here, too, before anything else can fail.

use codespar_protocol::{CommitId, DevPurpose, PullRequestState, TaskId, TaskRecord, TaskSpec};
use codespar_pulls::{Forge, OWN_BRANCHES};
use codespar_tasks::{StoreError, TaskStore};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failure, run::Run};

const STEP: &str = "base";

/// Where the change goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    /// The branch it is for.
    pub(crate) base: String,
    /// The commit that is read.
    pub(crate) commit: CommitId,
    /// The branch it goes on.
    pub(crate) branch: String,
    /// The pull request that this branch already has.
    pub(crate) pull_request: Option<u64>,
    /// Of a merge: the commit of the branch that it goes on. What is read, and what the change is
    /// for, are the files of the base then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merged_into: Option<CommitId>,
}

impl Base {
    fn text(&self) -> String {
        let commit = self.commit.short();
        if self.merged_into.is_some() {
            return format!("Merging {} at {commit} into {}", self.base, self.branch);
        }
        match self.pull_request {
            Some(number) => format!(
                "Base: {} (branch of pull request #{number}) at {commit}",
                self.branch
            ),
            None => format!("Base: {} at {commit}", self.base),
        }
    }
}

/// What a run reads: a branch and the commit it was at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedBase {
    /// The branch that the change is for.
    pub branch: String,
    /// The commit that is read. For a follow-up on a pull request it is the head of its branch.
    pub commit: CommitId,
}

/// The base of a run of the dev agent; `None` for one that ended before it had any.
pub async fn recorded_base(
    store: &dyn TaskStore,
    record: &TaskRecord,
) -> Result<Option<RecordedBase>, StoreError> {
    let resumes = match &record.spec {
        Some(TaskSpec::Dev(order)) => order.resumes.as_slice(),
        _ => &[],
    };
    for task in std::iter::once(&record.task_id).chain(resumes.iter().rev()) {
        let steps = store.steps(task).await?;
        if let Some(base) = base_in(&steps) {
            return Ok(Some(base));
        }
    }
    Ok(None)
}

/// The branch of a run that does not go on from another. It is known before the run begins, so that
/// another one can be told to start from it.
pub fn branch_of(task: &TaskId) -> String {
    let task = task.as_str();
    let digits = task.split_once('-').map_or(task, |(_, digits)| digits);
    format!("{OWN_BRANCHES}task-{digits}")
}

/// The base among the recorded steps of a run.
pub fn base_in(steps: &[(String, Value)]) -> Option<RecordedBase> {
    let (_, value) = steps.iter().find(|(step, _)| step == STEP)?;
    let Base { base, commit, .. } = Base::deserialize(value).ok()?;
    Some(RecordedBase {
        branch: base,
        commit,
    })
}

impl Run {
    pub(crate) async fn base(&self) -> Result<Base, Failure> {
        let base = self
            .ledger
            .once(STEP, || async {
                match self.order.pull_request {
                    Some(number) => self.follow_up(number).await,
                    None => self.fresh().await,
                }
            })
            .await?;
        self.say(STEP, &base.text());
        Ok(base)
    }

    /// The base may be any branch, also that of another run (`--base`), which is how changes are
    /// stacked.
    async fn fresh(&self) -> Result<Base, Failure> {
        let forge = &self.link.forge;
        let base = match &self.order.base {
            Some(base) => base.clone(),
            None => forge.default_branch().await?,
        };
        // Git would take `main~1` and the like for a commit; no branch has such a name.
        let commit = match codespar_change::is_branch_name(&base) {
            true => forge.head(&base).await?,
            false => None,
        };
        let commit = commit.ok_or_else(|| {
            Failure::Refused(format!("{} has no branch `{base}`", forge.describe()))
        })?;
        Ok(Base {
            base,
            commit,
            branch: branch_of(&self.control.record.task_id),
            pull_request: None,
            merged_into: None,
        })
    }

    /// Only to a branch of our own, in this repository, at the commit that the pull request shows:
    /// a commit of ours on a branch that somebody else pushes to would be mixed with theirs.
    async fn follow_up(&self, number: u64) -> Result<Base, Failure> {
        let forge = &self.link.forge;
        let pull = forge.pull_request(number).await?;
        if pull.state != PullRequestState::Open {
            return Err(Failure::Refused(format!(
                "pull request #{number} is {}; only an open one can be added to",
                pull.state
            )));
        }
        if !pull.head.starts_with(OWN_BRANCHES) {
            return Err(Failure::Refused(format!(
                "pull request #{number} is on `{}`, which is not a branch of CodeSpar; it adds only to its \
                 own (`{OWN_BRANCHES}…`)",
                pull.head
            )));
        }
        let commit = forge.head(&pull.head).await?.ok_or_else(|| {
            Failure::Refused(format!("the branch `{}` of #{number} is gone", pull.head))
        })?;
        if commit != pull.head_commit {
            return Err(Failure::Refused(format!(
                "pull request #{number} is at {}, but the branch `{}` here is at {}: it comes from a fork, \
                 or was pushed to just now; look at it and try again",
                pull.head_commit.short(),
                pull.head,
                commit.short()
            )));
        }
        if self.order.purpose == DevPurpose::Resolve {
            let base = forge.head(&pull.base).await?.ok_or_else(|| {
                Failure::Refused(format!("the base `{}` of #{number} is gone", pull.base))
            })?;
            return Ok(Base {
                base: pull.base,
                commit: base,
                branch: pull.head,
                pull_request: Some(number),
                merged_into: Some(commit),
            });
        }
        Ok(Base {
            base: pull.base,
            commit,
            branch: pull.head,
            pull_request: Some(number),
            merged_into: None,
        })
    }
}
