//! GitHub, by variables of the environment.
//!
//! `GITHUB_TOKEN` alone is often there for other programs, and sets up no channel.
//!
//! A channel needs a way in, a webhook or repositories that are polled, and a way out, a token or
//! an app. If one of them is given and the other is missing, the server does not start: a channel
//! that is silently incomplete is found out by somebody who gets no answer.

use std::{sync::Arc, time::Duration};

use codespar_channels::{
    ConfiguredChannel,
    github::{GitHubChannel, GitHubChannelSetup, GitHubHook, RepositoryPolling, listen},
};
use codespar_runtime::{ProjectDir, github_access, github_api, github_proxy, github_server};

use super::{missing, secret};
use crate::error::CommandError;

const WEBHOOK_SECRET: &str = "GITHUB_WEBHOOK_SECRET";
const POLL: &str = "GITHUB_POLL";
const POLL_SECONDS: &str = "GITHUB_POLL_SECONDS";
const APP_ID: &str = "GITHUB_APP_ID";
const KEY_FILE: &str = "GITHUB_APP_PRIVATE_KEY_FILE";
const USUAL_SECONDS: u64 = 30;

/// Nothing if no variable for it is set. The error names the variable that is missing and the one
/// that made it necessary.
pub(super) fn find(project_dir: &ProjectDir) -> Result<Option<ConfiguredChannel>, CommandError> {
    let webhook_secret = secret(project_dir, WEBHOOK_SECRET);
    let polling = polling(project_dir)?;
    let of_app = [APP_ID, KEY_FILE].into_iter();
    let mut of_app = of_app.filter(|name| project_dir.var(name).is_some());
    let given = match (of_app.next(), &webhook_secret, &polling) {
        (None, None, None) => return Ok(None),
        (Some(name), None, None) => return Err(missing("GitHub", WEBHOOK_SECRET, name, "github")),
        (_, Some(_), _) => WEBHOOK_SECRET,
        (_, None, Some(_)) => POLL,
    };
    let Some(access) = github_access(project_dir)? else {
        return Err(missing("GitHub", "GITHUB_TOKEN or an app", given, "github"));
    };
    let api = github_api(project_dir)?;
    let server = github_server(project_dir);
    let setup = GitHubChannelSetup {
        proxy: github_proxy(project_dir, &api)?,
        server: server
            .parse()
            .map_err(|error| CommandError::Usage(format!("GITHUB_SERVER_URL: {error}")))?,
        access,
        api,
    };
    let channel =
        GitHubChannel::new(&setup).map_err(|error| CommandError::Failed(error.to_string()))?;
    let hooked = channel.clone();
    Ok(Some(ConfiguredChannel {
        adapter: channel.clone(),
        webhook: webhook_secret.map(|secret| {
            let make = move |core| -> Arc<dyn codespar_channels::Webhook> {
                Arc::new(GitHubHook::new(core, hooked, secret))
            };
            Box::new(make) as codespar_channels::MakeWebhook
        }),
        source: Some(Box::new(move |core, cancel| {
            Box::pin(listen(channel, polling, core, cancel))
        })),
    }))
}

/// `GITHUB_POLL=acme/api,acme/web`.
fn polling(project_dir: &ProjectDir) -> Result<Option<RepositoryPolling>, CommandError> {
    let Some(names) = project_dir.var(POLL) else {
        return Ok(None);
    };
    let repositories: Vec<String> = names
        .split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    if let Some(name) = repositories.iter().find(|name| !name.contains('/')) {
        return Err(CommandError::Usage(format!(
            "{POLL}: `{name}` is not written owner/name"
        )));
    }
    let seconds = match project_dir.var(POLL_SECONDS) {
        Some(text) => text
            .parse()
            .map_err(|_| CommandError::Usage(format!("{POLL_SECONDS}: `{text}` is no number")))?,
        None => USUAL_SECONDS,
    };
    Ok(Some(RepositoryPolling {
        repositories,
        file: project_dir
            .state()
            .join("channels")
            .join("github-poll.json"),
        interval: Duration::from_secs(seconds.max(1)),
    }))
}
