//! What `codespar channels check` says of GitHub.
//!
//! Missing permissions show late otherwise: an app without one works until the first command that
//! needs it, and then fails in front of the person who gave it. So every right that any command
//! needs is looked at here.

use codespar_runtime::{AppFacts, GitHubAccess, GitHubApp};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;

use super::GitHubChannel;
use crate::ChannelFinding;

/// What the app needs, and what for.
const PERMISSIONS: [(&str, &str, &str); 5] = [
    ("metadata", "read", "to know who may do what"),
    ("contents", "write", "to push branches"),
    ("issues", "write", "to answer below issues"),
    (
        "pull_requests",
        "write",
        "to open pull requests and to answer below them",
    ),
    ("checks", "write", "to show its state at pull requests"),
];
const EVENTS: [&str; 4] = [
    "issue_comment",
    "issues",
    "pull_request_review",
    "pull_request_review_comment",
];
/// GitHub keeps deliveries for three days.
pub(super) const KEPT: SignedDuration = SignedDuration::from_hours(72);

impl GitHubChannel {
    pub(super) async fn findings(&self) -> Vec<ChannelFinding> {
        match &self.api.access {
            GitHubAccess::App(app) => app_findings(app).await,
            GitHubAccess::Token(token) => match self.api.user(token.expose_secret()).await {
                Ok((login, scopes)) => token_findings(&login, scopes.as_deref()),
                Err(error) => vec![ChannelFinding::problem(format!("GITHUB_TOKEN: {error}"))],
            },
        }
    }
}

/// GitHub tells the scopes of classic tokens alone.
fn token_findings(login: &str, scopes: Option<&str>) -> Vec<ChannelFinding> {
    let mut findings = vec![ChannelFinding::fine(format!(
        "GITHUB_TOKEN is valid; it speaks as {login}"
    ))];
    let scopes: Option<Vec<&str>> = scopes.map(|scopes| scopes.split(',').map(str::trim).collect());
    findings.push(match scopes {
        Some(scopes) if scopes.contains(&"repo") => ChannelFinding::fine("it has the scope repo"),
        Some(scopes) if scopes.contains(&"public_repo") => ChannelFinding::warning(
            "it has the scope public_repo: private repositories are out of reach",
        ),
        Some(_) => ChannelFinding::problem(
            "the scope repo is missing: Settings, Developer settings, Personal access tokens",
        ),
        None => ChannelFinding::warning(
            "it is fine-grained, and GitHub does not tell its permissions: it needs Contents, Issues, \
             Pull requests and Commit statuses (write) and Metadata (read); checks cannot be read \
             with it",
        ),
    });
    findings
}

async fn app_findings(app: &GitHubApp) -> Vec<ChannelFinding> {
    let facts = match app.facts().await {
        Ok(facts) => facts,
        Err(error) => {
            return vec![ChannelFinding::problem(format!(
                "GITHUB_APP_ID or its key: {error}"
            ))];
        }
    };
    let mut findings = vec![ChannelFinding::fine(format!(
        "the key of the app {} is valid",
        facts.slug
    ))];
    findings.extend(rights(&facts));
    let since = Timestamp::now() - KEPT;
    findings.push(match app.undelivered(since).await {
        Ok(lost) if lost.is_empty() => ChannelFinding::fine("no delivery of three days failed"),
        Ok(lost) => ChannelFinding::warning(format!(
            "{} of three days did not arrive (the last was answered with {}); `codespar serve` asks \
             for them again when it starts. Look at the app's settings, Advanced",
            codespar_protocol::counted(lost.len(), "event"),
            lost.last().map_or(0, |one| one.status_code),
        )),
        Err(error) => ChannelFinding::warning(format!("the deliveries: {error}")),
    });
    findings
}

/// What is missing, and where to click.
///
/// By comparing what the app has with what it needs. One that has more is not warned about.
fn rights(facts: &AppFacts) -> Vec<ChannelFinding> {
    let mut findings = Vec::new();
    for (name, needed, why) in PERMISSIONS {
        let given = facts.permissions.get(name).map(String::as_str);
        let is_enough = matches!(
            (given, needed),
            (Some("write" | "admin"), _) | (Some("read"), "read")
        );
        if !is_enough {
            findings.push(ChannelFinding::problem(format!(
                "the permission {name}: {needed} is missing, {why}: the app's settings, Permissions & \
                 events; then accept it where the app is installed"
            )));
        }
    }
    for event in EVENTS {
        if !facts.events.iter().any(|one| one == event) {
            findings.push(ChannelFinding::problem(format!(
                "the event {event} is not subscribed to: the app's settings, Permissions & events"
            )));
        }
    }
    if findings.is_empty() {
        findings.push(ChannelFinding::fine("permissions and events are complete"));
    }
    findings
}
