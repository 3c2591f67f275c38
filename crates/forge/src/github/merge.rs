//! Whether a pull request can be merged, and merging it.
//!
//! A merge is never sent without the head it is meant for. If the answer is lost, the state of the
//! pull request tells what happened: merged with that head means done, open means try again, any
//! other head is [`ForgeError::Moved`].

use codespar_protocol::{CommitId, MergeStrategy, PullRequestState};
use reqwest::Method;
use serde_json::json;

use super::{
    GitHubForge,
    api::{Call, Made},
    failure::Failure,
    wire,
};
use crate::{ForgeError, MergeOrder, Mergeability};

impl GitHubForge {
    /// GitHub works it out when it is asked, in the background: it is asked again a few times.
    /// [`Mergeability::Unknown`] only if GitHub has no answer after all tries.
    pub(super) async fn wait_for_mergeability(
        &self,
        number: u64,
    ) -> Result<Mergeability, ForgeError> {
        let mut tries = 1;
        loop {
            let found = judge(&self.pull(number).await?);
            if found != Mergeability::Unknown || tries >= self.api.patience.max_tries {
                return Ok(found);
            }
            tokio::time::sleep(self.api.patience.delay(tries)).await;
            tries += 1;
        }
    }

    /// A refusal with 405 or 409 can have several causes. The pull request is read again to tell a
    /// merge by someone else, a moved head and a conflict apart; what is left is reported in
    /// GitHub's words. A rebase makes no commit of its own, so it takes no title.
    pub(super) async fn merge_pull(
        &self,
        number: u64,
        order: &MergeOrder,
    ) -> Result<CommitId, ForgeError> {
        if let Some(done) = self.merged_already(number, order).await? {
            return Ok(done);
        }
        let mut body =
            json!({"sha": order.expected_head.0, "merge_method": order.strategy.as_str()});
        if let Some(title) = &order.title
            && order.strategy != MergeStrategy::Rebase
        {
            body["commit_title"] = title.as_str().into();
        }
        let what = format!("merging {}", self.describe_pull(number));
        let url = self.pull_url(number, &["merge"])?;
        let call = Call::with(Method::PUT, url, body, what, "Contents: write").once();
        match self
            .api
            .make(&call, || self.merged_already(number, order))
            .await
        {
            Ok(Made::Now(answer)) => Ok(CommitId(answer.read::<wire::Object>(&call)?.sha)),
            Ok(Made::Before(done)) => Ok(done),
            Err(Failure::Said(said)) if matches!(said.status, 405 | 409) => {
                // Merged or moved meanwhile?
                if let Some(done) = self.merged_already(number, order).await? {
                    return Ok(done);
                }
                match self.wait_for_mergeability(number).await? {
                    Mergeability::Conflict(files) => Err(ForgeError::Conflict(files)),
                    _ => Err(Failure::Said(said).explain(&call)),
                }
            }
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    /// The merge commit if it is merged; an error if it cannot be merged any more as ordered.
    async fn merged_already(
        &self,
        number: u64,
        order: &MergeOrder,
    ) -> Result<Option<CommitId>, ForgeError> {
        let pull = self.pull(number).await?;
        if pull.head.sha != order.expected_head.0 {
            return Err(ForgeError::Moved {
                branch: pull.head.branch,
                found: CommitId(pull.head.sha),
                expected: order.expected_head.clone(),
            });
        }
        match pull.life() {
            PullRequestState::Open => Ok(None),
            PullRequestState::Merged => Ok(pull.merge_commit_sha.map(CommitId)),
            PullRequestState::Closed => Err(ForgeError::Refused(format!(
                "{} is closed",
                self.describe_pull(number)
            ))),
        }
    }
}

/// In the order in which GitHub's own page tells it.
///
/// `unstable`, where checks that are not required have failed, counts as clean: whether checks
/// suffice is decided elsewhere.
pub(super) fn judge(pull: &wire::Pull) -> Mergeability {
    let base = &pull.base.branch;
    let blocked = |reason: String| Mergeability::Blocked(reason);
    if pull.life() != PullRequestState::Open {
        return blocked(format!("it is {}", pull.life()));
    }
    if pull.draft {
        return blocked("it is a draft".to_owned());
    }
    match (pull.mergeable, pull.mergeable_state.as_deref()) {
        (None, _) => Mergeability::Unknown,
        // GitHub does not say in which files.
        (Some(false), _) | (_, Some("dirty")) => Mergeability::Conflict(Vec::new()),
        (_, Some("blocked")) => blocked(format!(
            "the rules of {base} are not met yet: reviews or checks that it requires"
        )),
        (_, Some("behind")) => blocked(format!(
            "its branch is behind {base} and must be brought up to date first"
        )),
        _ => Mergeability::Clean,
    }
}
