//! Commands about pull requests: list, review, merge.
//!
//! They have no task. One that a crash interrupted is carried out again, and finds what was done: a
//! commit is reviewed once, and a pull request that is merged stays merged.

use codespar_protocol::{MergeStrategy, PullRequest, PullRequestState};
use codespar_runtime::{Pulls, ReviewRequest, RuntimeError};
use codespar_store::{NewAudit, NewOutbound, StartedMessage};
use tokio_util::sync::CancellationToken;

use super::{ChannelCore, decide::Turn, workplace::Workplace};
use crate::{PullRef, ReplyChoice, RequestOptions, StateFilter, text::shortened};

/// What a command came to, in words.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) choices: Vec<ReplyChoice>,
    /// All of what the text shows a part of.
    pub(crate) file: Option<String>,
    pub(crate) repository: Option<String>,
    pub(crate) cost: Option<codespar_protocol::Usd>,
    /// JSON that is kept with the message, for a later command.
    pub(crate) work: Option<String>,
    /// Messages with tasks of their own, which begin with this.
    pub(crate) started: Vec<StartedMessage>,
    /// Besides the answer.
    pub(crate) outbound: Vec<NewOutbound>,
    pub(crate) audit: Vec<NewAudit>,
}

impl Said {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// The most pull requests of a list.
const LISTED: usize = 20;

impl ChannelCore {
    pub(crate) async fn pulls(&self, workplace: &Workplace) -> Result<Pulls, RuntimeError> {
        let store = self.store().clone();
        Pulls::of(&workplace.project.dir, store, &workplace.repository).await
    }

    /// The repository of a pull request: its own words win over the option.
    pub(crate) async fn place_of(
        &self,
        turn: &Turn,
        pull: &PullRef,
        options: &RequestOptions,
    ) -> Result<Workplace, RuntimeError> {
        let named = pull.repository.as_deref().or(options.repository.as_deref());
        let workplace = self
            .workplace(&turn.message.at, named, &turn.binding)
            .await?;
        let server = codespar_runtime::github_server(&workplace.project.dir);
        match &pull.server {
            Some(other) if *other != server => Err(RuntimeError::Usage(format!(
                "pull requests at {other} are not handled here"
            ))),
            _ => Ok(workplace),
        }
    }

    /// Of one repository, as its forge has them at the moment. How many are left out is said.
    pub(crate) async fn list_pulls(
        &self,
        turn: &Turn,
        state: Option<StateFilter>,
        options: &RequestOptions,
    ) -> Result<Said, RuntimeError> {
        let named = options.repository.as_deref();
        let workplace = self
            .workplace(&turn.message.at, named, &turn.binding)
            .await?;
        let wanted = match state {
            None | Some(StateFilter::Open) => Some(PullRequestState::Open),
            Some(StateFilter::Closed | StateFilter::All) => None,
        };
        let mut pulls = self.pulls(&workplace).await?.list(wanted).await?;
        if state == Some(StateFilter::Closed) {
            pulls.retain(|pull| pull.state != PullRequestState::Open);
        }
        let mut lines: Vec<String> = pulls.iter().take(LISTED).map(line).collect();
        if pulls.len() > LISTED {
            lines.push(format!("… and {} more", pulls.len() - LISTED));
        }
        let text = match lines.is_empty() {
            true => format!("no such pull request in {}", workplace.name),
            false => format!("{}\n{}", workplace.name, lines.join("\n")),
        };
        Ok(Said::text(text))
    }

    /// A commit is reviewed once, however often it is asked for.
    pub(crate) async fn review_pull(
        &self,
        turn: &Turn,
        pull: &PullRef,
        options: &RequestOptions,
    ) -> Result<Said, RuntimeError> {
        let workplace = self.place_of(turn, pull, options).await?;
        let request = ReviewRequest {
            model: options.model.clone(),
            max_budget: self.budget(&workplace).await?,
        };
        let cancel = CancellationToken::new();
        let pulls = self.pulls(&workplace).await?;
        let reviewed = pulls.review(pull.number, &request, &cancel).await?;
        let mut text = format!(
            "PR #{} in {}: risk {}",
            reviewed.number, workplace.name, reviewed.risk.level
        );
        if reviewed.simulated {
            text.push_str(" (simulated: no model was asked)");
        }
        for finding in reviewed.review.comments.iter().take(LISTED) {
            let first = finding.body.lines().next().unwrap_or_default();
            text.push_str(&format!(
                "\n• {}:{} {}",
                finding.path,
                finding.line,
                shortened(first, 200)
            ));
        }
        if reviewed.review.comments.is_empty() {
            text.push_str("\nno findings on lines of the diff");
        }
        Ok(Said {
            repository: Some(workplace.name),
            cost: reviewed.cost_usd,
            choices: vec![ReplyChoice {
                label: "Merge".to_owned(),
                value: format!("merge PR #{}", reviewed.number),
            }],
            ..Said::text(text)
        })
    }

    /// Asked for again after it was done, it says that it is done.
    pub(crate) async fn merge_pull(
        &self,
        turn: &Turn,
        pull: &PullRef,
        strategy: Option<MergeStrategy>,
        options: &RequestOptions,
    ) -> Result<Said, RuntimeError> {
        let workplace = self.place_of(turn, pull, options).await?;
        let pulls = self.pulls(&workplace).await?;
        let before = pulls.show(pull.number).await?;
        let requested_by = turn.forge_login.as_deref();
        let text = match (before.state, &before.merge_commit) {
            (PullRequestState::Merged, Some(commit)) => {
                format!(
                    "PR #{} is merged into {}: {}",
                    pull.number,
                    before.base,
                    commit.short()
                )
            }
            _ => {
                let merged = pulls.merge(pull.number, strategy, requested_by).await?;
                let mut text = format!(
                    "merged PR #{} into {} by {}: {}",
                    merged.number,
                    merged.base,
                    merged.strategy,
                    merged.commit.short()
                );
                if merged.unchecked {
                    text.push_str("\nno check had looked at what was merged");
                }
                text
            }
        };
        Ok(Said {
            repository: Some(workplace.name),
            ..Said::text(text)
        })
    }
}

fn line(pull: &PullRequest) -> String {
    let state = match (pull.state, pull.draft) {
        (PullRequestState::Open, true) => "draft",
        (PullRequestState::Open, false) => "open",
        (PullRequestState::Merged, _) => "merged",
        (PullRequestState::Closed, _) => "closed",
    };
    format!("#{} {state} {}", pull.number, pull.title)
}
