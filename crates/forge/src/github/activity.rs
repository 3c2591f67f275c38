//! What happens on a pull request, for those who follow it. Each list comes from the kept answers
//! while it does not change.
//!
//! The whole history is listed on each call, and the caller remembers which keys it has seen. That
//! needs no cursor on our side and loses nothing if a call fails. A key contains what may change
//! about a thing (the state of a review, the two commits of a conflict), so that the change is an
//! event of its own.
//!
//! ```text
//! review:<id>:<state>   line-comment:<id>   comment:<id>
//! check:<id>            status:<id>         conflict:<head>:<base>
//! merged:<time>         closed:<time>
//! ```

use codespar_protocol::{CheckState, CommitId, PullRequestState, Verdict};
use jiff::Timestamp;

use super::{
    GitHubForge,
    api::Call,
    checks::permitted,
    merge::judge,
    reviews::verdict_of,
    wire::{self, login},
};
use crate::{Activity, ForgeError, Mergeability};

/// Something and when.
type Dated = (Timestamp, Activity);

impl GitHubForge {
    /// The conflict and the end have no useful time and come last. Checks are those of the current
    /// head only.
    pub(super) async fn list_activity(&self, number: u64) -> Result<Vec<Activity>, ForgeError> {
        let pull = self.pull(number).await?;
        let head = CommitId(pull.head.sha.clone());
        let mut all: Vec<Dated> = Vec::new();
        all.extend(
            self.wire_reviews(number)
                .await?
                .iter()
                .filter_map(of_review),
        );
        all.extend(self.line_comments(number).await?.iter().map(of_line));
        all.extend(self.issue_comments(number).await?.iter().map(of_comment));
        // Whoever follows it is told the rest, where the token may not read these.
        let mut unread = Vec::new();
        let runs = permitted(self.check_runs(&head).await, &mut unread)?;
        all.extend(runs.iter().filter_map(|run| of_run(run, &head)));
        let statuses = permitted(self.statuses(&head).await, &mut unread)?;
        all.extend(
            statuses
                .iter()
                .filter_map(|status| of_status(status, &head)),
        );
        all.sort_by_key(|(at, _)| *at);
        let mut all: Vec<Activity> = all.into_iter().map(|(_, activity)| activity).collect();
        all.extend(of_conflict(&pull));
        all.extend(of_end(&pull));
        Ok(all)
    }

    /// What is said below it, not on a line.
    async fn issue_comments(&self, number: u64) -> Result<Vec<wire::Comment>, ForgeError> {
        let url = self.repo_url(&["issues", &number.to_string(), "comments"])?;
        let call = Call::get(url, self.describe_pull(number), "Pull requests: read")
            .query(&[("per_page", "100")]);
        self.api.list(&call).await
    }
}

fn activity(key: String, text: String) -> Activity {
    Activity { key, text }
}

/// `None` for a review that was not submitted, and for one that is only a container for remarks on
/// lines.
fn of_review(review: &wire::PullReview) -> Option<Dated> {
    let verdict = verdict_of(&review.state);
    // A review without words is there for its remarks; those come by themselves.
    if verdict == Verdict::Comment && review.body.is_empty() {
        return None;
    }
    let did = match verdict {
        Verdict::Approve => "approved it",
        Verdict::RequestChanges => "asks for changes",
        Verdict::Comment => "reviewed it",
    };
    let mut text = format!("{} {did}", login(review.user.as_ref()));
    if !review.body.is_empty() {
        text = format!("{text}: {}", review.body);
    }
    let key = format!("review:{}:{}", review.id, review.state.to_lowercase());
    Some((review.submitted_at?, activity(key, text)))
}

fn of_line(comment: &wire::LineComment) -> Dated {
    let line = comment.line.or(comment.original_line).unwrap_or_default();
    let who = login(comment.user.as_ref());
    let text = format!("{who} on {}:{line}: {}", comment.path, comment.body);
    (
        comment.created_at,
        activity(format!("line-comment:{}", comment.id), text),
    )
}

fn of_comment(comment: &wire::Comment) -> Dated {
    let body = comment.body.as_deref().unwrap_or_default();
    let text = format!("{}: {body}", login(comment.user.as_ref()));
    (
        comment.created_at,
        activity(format!("comment:{}", comment.id), text),
    )
}

fn of_run(run: &wire::CheckRun, head: &CommitId) -> Option<Dated> {
    let detail = run
        .output
        .as_ref()
        .and_then(|output| output.title.as_deref());
    let text = outcome(&run.name, run.standing(), detail, head)?;
    Some((
        run.completed_at.unwrap_or_default(),
        activity(format!("check:{}", run.id), text),
    ))
}

fn of_status(status: &wire::Status, head: &CommitId) -> Option<Dated> {
    let text = outcome(
        &status.context,
        status.standing(),
        status.description.as_deref(),
        head,
    )?;
    Some((
        status.updated_at,
        activity(format!("status:{}", status.id), text),
    ))
}

/// What is not over has not happened.
fn outcome(name: &str, state: CheckState, detail: Option<&str>, head: &CommitId) -> Option<String> {
    let did = match state {
        CheckState::Success => "passed",
        CheckState::Failure => "failed",
        CheckState::Pending => return None,
    };
    let detail = detail
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    Some(format!("check {name} {did} on {}{detail}", head.short()))
}

fn of_conflict(pull: &wire::Pull) -> Option<Activity> {
    match judge(pull) {
        Mergeability::Conflict(_) => Some(activity(
            format!("conflict:{}:{}", pull.head.sha, pull.base.sha),
            format!("it conflicts with {}", pull.base.branch),
        )),
        _ => None,
    }
}

fn of_end(pull: &wire::Pull) -> Option<Activity> {
    let at = pull.closed_at.or(pull.merged_at).unwrap_or_default();
    match pull.life() {
        PullRequestState::Open => None,
        state => Some(activity(format!("{state}:{at}"), format!("it was {state}"))),
    }
}
