//! GitHub as a place to post to: comments, reactions, and a check or a status at a pull request.
//!
//! Each comment of ours has its key in a hidden mark. A mark is believed only in comments of our own
//! account, so that nobody can pass a comment of theirs off as ours by copying it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_runtime::GitHubAccess;
use reqwest::Method;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use url::Url;

use super::{
    GITHUB, GitHubChannelSetup,
    api::{Ask, GitHubApi, reason},
    content_budget::{ContentBudget, ContentKind},
    draw,
    event::{Account, OurAccount},
};
use crate::{
    Acknowledgement, AddressedMessage, ChannelAdapter, ChannelFinding, ClientError, Pace,
    PullBranch, SendError, ThreadRef, WorkReport,
};

/// The hour is what runs out: edits of progress are far apart.
const PACE: Pace = Pace {
    post: Duration::from_millis(1_000),
    edit: Duration::from_millis(3_000),
};
/// A thread with more comments than these pages have is not searched further.
const MOST_PAGES: usize = 20;
/// The name of the check and of the status.
const CHECK: &str = "CodeSpar";

/// GitHub, with one account of ours.
pub struct GitHubChannel {
    pub(super) api: GitHubApi,
    server: Url,
    pace: Pace,
    budget: ContentBudget,
    account: OnceCell<OurAccount>,
}

#[derive(Deserialize)]
struct Posted {
    id: u64,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    user: Option<Account>,
}

impl GitHubChannel {
    pub fn new(setup: &GitHubChannelSetup) -> Result<Arc<Self>, ClientError> {
        Ok(Arc::new(Self {
            api: GitHubApi::new(setup)?,
            server: setup.server.clone(),
            pace: PACE,
            budget: ContentBudget::default(),
            account: OnceCell::new(),
        }))
    }

    /// Who we are, if GitHub has been asked already.
    pub(super) fn known_account(&self) -> Option<OurAccount> {
        self.account.get().cloned()
    }

    /// Who we are. Asked for once; an error is not kept.
    pub(super) async fn account(&self) -> Result<&OurAccount, SendError> {
        self.account.get_or_try_init(|| self.ask_account()).await
    }

    async fn ask_account(&self) -> Result<OurAccount, SendError> {
        let login = match &self.api.access {
            GitHubAccess::Token(token) => self.api.user(token.expose_secret()).await?.0,
            GitHubAccess::App(app) => {
                let facts = app.facts().await;
                let facts = facts.map_err(|error| SendError::Temporary(error.to_string()))?;
                format!("{}[bot]", facts.slug)
            }
        };
        Ok(OurAccount { login })
    }

    /// Makes content, within the limits on it.
    async fn make(&self, kind: ContentKind, ask: &Ask<'_>) -> Result<Value, SendError> {
        self.budget.take(kind).map_err(SendError::RetryAfter)?;
        self.api.read(ask).await
    }

    async fn react(&self, repository: &str, parts: &[&str], content: &str) {
        let body = json!({"content": content});
        let ask = Ask::send(Method::POST, repository, parts, &body);
        if let Err(error) = self.make(ContentKind::Sign, &ask).await {
            tracing::debug!("a reaction is left out: {error}");
        }
    }

    /// A check run is an app's to make; with a token it is a status. A run that failed says nothing
    /// about the commit, so a check is neutral then; a status has no such word.
    async fn show_report(&self, repository: &str, report: &WorkReport) -> Result<(), SendError> {
        let sha = self.api.head(repository, report.pull_request).await?;
        let is_done = report.outcome == Acknowledgement::Done;
        match &self.api.access {
            GitHubAccess::App(_) => {
                let body = json!({
                    "name": CHECK,
                    "head_sha": sha,
                    "external_id": report.task,
                    "status": "completed",
                    "conclusion": if is_done { "success" } else { "neutral" },
                    "output": {"title": report.summary, "summary": format!("`{}`", report.task)},
                });
                let ask = Ask::send(Method::POST, repository, &["check-runs"], &body);
                self.make(ContentKind::Sign, &ask).await?;
            }
            GitHubAccess::Token(_) => {
                let body = json!({
                    "context": CHECK,
                    "state": if is_done { "success" } else { "error" },
                    "description": report.summary,
                });
                let parts = ["statuses", sha.as_str()];
                let ask = Ask::send(Method::POST, repository, &parts, &body);
                self.make(ContentKind::Sign, &ask).await?;
            }
        }
        Ok(())
    }
}

/// Where a message can be reacted to, by its identity. A review cannot be.
fn reactions_of<'a>(at: &'a ThreadRef, identity: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = identity.split(':').skip(1);
    match (parts.next()?, parts.next()?) {
        ("comment", id) => Some(vec!["issues", "comments", id, "reactions"]),
        ("issue", _) => Some(vec!["issues", &at.thread, "reactions"]),
        _ => None,
    }
}

#[async_trait]
impl ChannelAdapter for GitHubChannel {
    fn name(&self) -> &str {
        GITHUB
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError> {
        let AddressedMessage { at, key, message } = outgoing;
        let body = json!({"body": draw::body(key, message)});
        let parts = ["issues", at.thread.as_str(), "comments"];
        let ask = Ask::send(Method::POST, &at.conversation, &parts, &body);
        let posted = match self.make(ContentKind::Message, &ask).await {
            Err(SendError::CannotEdit) => {
                let gone = "GitHub knows no such issue, or does not show it to us";
                return Err(SendError::Permanent(gone.to_owned()));
            }
            posted => posted?,
        };
        let missing = || SendError::Permanent("GitHub gave no id".to_owned());
        let id = posted["id"].as_u64().ok_or_else(missing)?;
        Ok(id.to_string())
    }

    async fn edit(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        let AddressedMessage { at, key, message } = outgoing;
        let body = json!({"body": draw::body(key, message)});
        let parts = ["issues", "comments", id];
        let ask = Ask::send(Method::PATCH, &at.conversation, &parts, &body);
        self.make(ContentKind::Message, &ask).await.map(|_| ())
    }

    /// Only a comment of our own counts: anybody can copy the mark.
    async fn find_posted(&self, at: &ThreadRef, key: &str) -> Result<Option<String>, SendError> {
        let mark = draw::mark(key);
        let ours = self.account().await?;
        for page in 1..=MOST_PAGES {
            let page = page.to_string();
            let parts = ["issues", at.thread.as_str(), "comments"];
            let query = [("per_page", "100"), ("page", page.as_str())];
            let ask = Ask {
                query: &query,
                ..Ask::get(&at.conversation, &parts)
            };
            let comments: Vec<Posted> = match self.api.read(&ask).await {
                Err(SendError::CannotEdit) => return Ok(None),
                comments => comments?,
            };
            let is_it = |one: &&Posted| {
                let author = one.user.as_ref().map(|user| user.login.as_str());
                author == Some(&ours.login)
                    && one
                        .body
                        .as_ref()
                        .is_some_and(|body| body.starts_with(&mark))
            };
            if let Some(found) = comments.iter().find(is_it) {
                return Ok(Some(found.id.to_string()));
            }
            if comments.len() < 100 {
                break;
            }
        }
        Ok(None)
    }

    async fn fetch_image(&self, reference: &str, most: usize) -> Result<Vec<u8>, String> {
        self.api.picture(reference, most, &self.server).await
    }

    async fn acknowledge(&self, at: &ThreadRef, identity: &str, outcome: Acknowledgement) {
        let content = match outcome {
            Acknowledgement::Begun => "eyes",
            Acknowledgement::Done => "rocket",
            Acknowledgement::NotDone => "confused",
        };
        if let Some(parts) = reactions_of(at, identity) {
            self.react(&at.conversation, &parts, content).await;
        }
    }

    async fn report(&self, at: &ThreadRef, report: &WorkReport) {
        if let Err(error) = self.show_report(&at.conversation, report).await {
            tracing::debug!("the state of a task is not shown: {error}");
        }
    }

    async fn material(&self, at: &ThreadRef, reference: &str) -> Result<Option<String>, String> {
        let found = self.api.material(&at.conversation, reference).await;
        found.map_err(reason)
    }

    async fn branch_of(&self, at: &ThreadRef, pull_request: u64) -> Result<PullBranch, String> {
        let found = self.api.branch_of(&at.conversation, pull_request).await;
        found.map_err(reason)
    }

    async fn check(&self) -> Vec<ChannelFinding> {
        self.findings().await
    }
}
