//! Checks and statuses: the two ways in which others say how a commit does.
//!
//! Check runs come from apps, statuses from older integrations; a commit may have both. They are
//! listed together, runs first. A run that is not completed is pending; a conclusion or state that
//! is not known counts as a failure.
//!
//! Both take permissions of their own, which a token that may do everything else often lacks. What
//! cannot be read is unknown then, and no error.

use codespar_protocol::{Check, CheckState, CommitId};

use super::{GitHubForge, api::Call, wire};
use crate::{CommitChecks, ForgeError};

impl GitHubForge {
    /// All pages of both lists. A repository without any checks gives an empty list, which is not
    /// the same as success.
    pub(super) async fn list_checks(&self, commit: &CommitId) -> Result<CommitChecks, ForgeError> {
        let mut reasons = Vec::new();
        let runs = permitted(self.check_runs(commit).await, &mut reasons)?;
        let statuses = permitted(self.statuses(commit).await, &mut reasons)?;
        let runs = runs.into_iter().map(Check::from);
        Ok(CommitChecks {
            checks: runs.chain(statuses.into_iter().map(Check::from)).collect(),
            unknown: (!reasons.is_empty()).then(|| reasons.join("; ")),
        })
    }

    pub(super) async fn check_runs(
        &self,
        commit: &CommitId,
    ) -> Result<Vec<wire::CheckRun>, ForgeError> {
        let call = self.commit_call_for(commit, "check-runs", "Checks: read")?;
        let items = |page: wire::CheckRuns| page.check_runs;
        self.api.pages(&call, usize::MAX, items).await
    }

    pub(super) async fn statuses(
        &self,
        commit: &CommitId,
    ) -> Result<Vec<wire::Status>, ForgeError> {
        let call = self.commit_call_for(commit, "status", "Commit statuses: read")?;
        let items = |page: wire::Combined| page.statuses;
        self.api.pages(&call, usize::MAX, items).await
    }

    /// The summary and the text of a check run; statuses have none.
    pub(super) async fn output_of(
        &self,
        commit: &CommitId,
        check: &str,
    ) -> Result<Option<String>, ForgeError> {
        let runs = self.check_runs(commit).await?;
        let run = runs.into_iter().find(|run| run.name == check);
        let Some(output) = run.and_then(|run| run.output) else {
            return Ok(None);
        };
        let parts: Vec<String> = [output.summary, output.text]
            .into_iter()
            .flatten()
            .collect();
        Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
    }

    fn commit_call_for(
        &self,
        commit: &CommitId,
        list: &str,
        needs: &'static str,
    ) -> Result<Call, ForgeError> {
        let what = format!(
            "the checks of commit {} of {}",
            commit.short(),
            self.full_name()
        );
        let url = self.repo_url(&["commits", &commit.0, list])?;
        Ok(Call::get(url, what, needs).query(&[("per_page", "100")]))
    }
}

/// A list that the token may not read is empty, with the reason added. GitHub hides what a classic
/// token has no scope for with 404; a commit that does not exist is 422.
pub(super) fn permitted<T>(
    read: Result<Vec<T>, ForgeError>,
    reasons: &mut Vec<String>,
) -> Result<Vec<T>, ForgeError> {
    match read {
        Err(error @ (ForgeError::Forbidden { .. } | ForgeError::NotFound(_))) => {
            reasons.push(error.to_string());
            Ok(Vec::new())
        }
        other => other,
    }
}

impl wire::CheckRun {
    /// Neutral and skipped runs count as success, as they do for GitHub's own branch rules.
    /// Cancelled, timed out and stale runs are failures.
    pub(super) fn standing(&self) -> CheckState {
        match (self.status.as_str(), self.conclusion.as_deref()) {
            ("completed", Some("success" | "neutral" | "skipped")) => CheckState::Success,
            ("completed", _) => CheckState::Failure,
            _ => CheckState::Pending,
        }
    }
}

impl wire::Status {
    pub(super) fn standing(&self) -> CheckState {
        match self.state.as_str() {
            "success" => CheckState::Success,
            "pending" => CheckState::Pending,
            _ => CheckState::Failure,
        }
    }
}

impl From<wire::CheckRun> for Check {
    fn from(run: wire::CheckRun) -> Self {
        let state = run.standing();
        let title = run.output.and_then(|output| output.title);
        Self {
            name: run.name,
            state,
            summary: title.or(run.conclusion).or(Some(run.status)),
            url: run.html_url,
        }
    }
}

impl From<wire::Status> for Check {
    fn from(status: wire::Status) -> Self {
        let state = status.standing();
        Self {
            name: status.context,
            state,
            summary: status.description.or(Some(status.state)),
            url: status.target_url,
        }
    }
}
