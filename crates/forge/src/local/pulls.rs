//! Pull requests as records of the store, kept in step with their branches.
//!
//! A record is brought up to date whenever it is read: nobody tells us when a branch moves. Reading
//! can therefore write. The store guarantees one open pull request for each head branch.
//!
//! Keys of activity:
//!
//! ```text
//! review-<id>              check-<head>-<name>-<state>
//! conflict-<head>-<base>   merged-<commit>              closed-<head>
//! ```

use codespar_protocol::{PullRequest, PullRequestState, Review, Verdict};
use codespar_store::{NewPull, NewPullReview, PullChange};

use super::{LocalForge, failed};
use crate::{
    Activity, Draft, ForgeError, Mergeability, NewPullRequest, NewReview, PullRequestChange,
};

impl LocalForge {
    /// Both branches must exist and the head must have a commit that the base has not. An open pull
    /// request of the same head is returned as it is, with its own title, body and base.
    pub(super) async fn open_pull(&self, new: &NewPullRequest) -> Result<PullRequest, ForgeError> {
        let base = self.known_head(&new.base).await?;
        let head_commit = self.known_head(&new.head).await?;
        let record = NewPull {
            head: new.head.clone(),
            head_commit: head_commit.clone(),
            base: new.base.clone(),
            title: new.title.clone(),
            body: new.body.clone(),
            draft: new.draft == Draft::Draft,
            author: self.who.name.clone(),
            above: self.highest_kept().await?,
        };
        if new.head == new.base || self.is_within(&head_commit, &base).await? {
            return Err(ForgeError::Refused(format!(
                "{} has no commit that {} does not have",
                new.head, new.base
            )));
        }
        let pull = self.store.create_pull(&self.key, record).await;
        let pull = self.in_step(pull.map_err(failed)?).await?;
        self.keep_head(pull.number, &pull.head_commit).await?;
        Ok(pull)
    }

    /// Functions that depend on the head read through this or [`LocalForge::fresh_pulls`], so they
    /// do not see a stale one.
    pub(super) async fn fresh_pull(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let pull = self.store.pull(&self.key, number).await;
        self.in_step(pull.map_err(failed)?).await
    }

    pub(super) async fn fresh_pulls(
        &self,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        let listed = self.store.pulls(&self.key, state).await;
        let mut pulls = Vec::new();
        for pull in listed.map_err(failed)? {
            pulls.push(self.in_step(pull).await?);
        }
        Ok(pulls)
    }

    /// An open pull request is at its branch's last commit, unless it was merged and the process
    /// ended before that was on record. Closed and merged ones are returned unchanged. If the
    /// branch is gone, the last known head stays on record.
    async fn in_step(&self, pull: PullRequest) -> Result<PullRequest, ForgeError> {
        if pull.state != PullRequestState::Open {
            return Ok(pull);
        }
        if let Some(commit) = self.merged_before(&pull, &pull.head_commit).await? {
            self.note_merged(&pull, &pull.head_commit, commit).await?;
            let noted = self.store.pull(&self.key, pull.number).await;
            return noted.map_err(failed);
        }
        let Some(head) = self.branch_head(&pull.head).await? else {
            return Ok(pull);
        };
        if head == pull.head_commit {
            return Ok(pull);
        }
        self.keep_head(pull.number, &head).await?;
        let change = PullChange {
            head_commit: Some(head),
            ..PullChange::default()
        };
        let changed = self.store.change_pull(&self.key, pull.number, change).await;
        changed.map_err(failed)
    }

    /// Opening again needs the branch. Merged is a state that only a merge sets.
    pub(super) async fn change_pull(
        &self,
        number: u64,
        change: &PullRequestChange,
    ) -> Result<PullRequest, ForgeError> {
        let pull = self.fresh_pull(number).await?;
        if change.state == Some(PullRequestState::Merged) && pull.state != PullRequestState::Merged
        {
            return Err(ForgeError::Refused(format!(
                "#{number} becomes merged by merging it"
            )));
        }
        if change.state == Some(PullRequestState::Open) {
            self.known_head(&pull.head).await?;
        }
        let change = PullChange {
            state: change.state,
            title: change.title.clone(),
            body: change.body.clone(),
            draft: change.draft.map(|draft| draft == Draft::Draft),
            ..PullChange::default()
        };
        let changed = self.store.change_pull(&self.key, number, change).await;
        self.in_step(changed.map_err(failed)?).await
    }

    /// The store makes it idempotent by key. The commit is recorded as given, without a check that
    /// it is still the head.
    pub(super) async fn add_review(
        &self,
        number: u64,
        new: &NewReview,
    ) -> Result<Review, ForgeError> {
        let record = NewPullReview {
            key: new.key.clone(),
            author: self.who.name.clone(),
            verdict: new.verdict,
            body: new.body.clone(),
            comments: new.comments.clone(),
            commit: new.commit.clone(),
        };
        let review = self.store.add_review(&self.key, number, record).await;
        review.map_err(failed)
    }

    /// Reviews and checks by time, then the conflict or the end. The state of a check is part of
    /// its key, so a change of state is an event of its own.
    pub(super) async fn happenings(&self, number: u64) -> Result<Vec<Activity>, ForgeError> {
        let pull = self.fresh_pull(number).await?;
        let reviews = self.store.pull_reviews(&self.key, number).await;
        let reviews = reviews.map_err(failed)?.into_iter();
        let mut dated: Vec<_> = reviews
            .map(|review| (review.at, of_review(&review)))
            .collect();
        let head = &pull.head_commit;
        let checks = self.store.checks(&self.key, head).await.map_err(failed)?;
        for found in checks {
            let (name, state) = (&found.check.name, state_word(&found.check));
            let mut text = format!("check {name} {state} on {}", head.short());
            if let Some(summary) = &found.check.summary {
                text += &format!(": {summary}");
            }
            let key = format!("check-{head}-{name}-{state}");
            dated.push((found.at, Activity { key, text }));
        }
        dated.sort_by_key(|(at, _)| *at);
        let mut happened: Vec<Activity> = dated.into_iter().map(|(_, what)| what).collect();
        happened.extend(self.last_thing(&pull).await?);
        Ok(happened)
    }

    /// That it is over, or in conflict.
    async fn last_thing(&self, pull: &PullRequest) -> Result<Option<Activity>, ForgeError> {
        let (number, head) = (pull.number, &pull.head_commit);
        let (key, text) = match (pull.state, &pull.merge_commit) {
            (PullRequestState::Merged, commit) => {
                let commit = commit.as_ref().unwrap_or(head);
                let text = format!("#{number} was merged as {}", commit.short());
                (format!("merged-{commit}"), text)
            }
            (PullRequestState::Closed, _) => {
                (format!("closed-{head}"), format!("#{number} was closed"))
            }
            (PullRequestState::Open, _) => match self.can_merge(pull).await? {
                Mergeability::Conflict(files) => {
                    let base = self.known_head(&pull.base).await?;
                    let text = format!(
                        "#{number} conflicts with {} in {}",
                        pull.base,
                        files.join(", ")
                    );
                    (format!("conflict-{head}-{base}"), text)
                }
                _ => return Ok(None),
            },
        };
        Ok(Some(Activity { key, text }))
    }
}

/// Lines that are HTML comments carry keys and are left out.
fn of_review(review: &Review) -> Activity {
    let verdict = match review.verdict {
        Verdict::Comment => "commented",
        Verdict::Approve => "approved",
        Verdict::RequestChanges => "asked for changes",
    };
    let mut text = format!("{} {verdict}", review.author);
    let seen = |line: &&str| !line.trim_start().starts_with("<!--");
    let body: Vec<&str> = review.body.lines().filter(seen).collect();
    let body = body.join("\n");
    if !body.trim().is_empty() {
        text += &format!(": {}", body.trim());
    }
    for comment in &review.comments {
        text += &format!("\n{}:{}: {}", comment.path, comment.line, comment.body);
    }
    Activity {
        key: format!("review-{}", review.id),
        text,
    }
}

fn state_word(check: &codespar_protocol::Check) -> &'static str {
    match check.state {
        codespar_protocol::CheckState::Success => "succeeded",
        codespar_protocol::CheckState::Failure => "failed",
        codespar_protocol::CheckState::Pending => "is under way",
    }
}
