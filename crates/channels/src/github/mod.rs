//! GitHub: comments, reviews and labels over a webhook or by polling; answers as comments.
//!
//! ```text
//! POST /hooks/github ─▶ signature over the raw body ─▶ a repository that is served?
//!                        └▶ issue_comment │ review with its remarks │ label ─▶ on record, then 200
//! polling            ─▶ comments, labels, reviews of named repositories ─▶ on record, then the
//!                       cursor moves
//! at the start       ─▶ deliveries of the app that failed are asked for again
//! ```
//!
//! A conversation is a repository, a thread is an issue or a pull request. Who speaks is vouched for
//! by GitHub, so their rights are those of their account in the repository.

mod api;
mod channel;
mod check;
mod content_budget;
mod draw;
mod event;
mod picture;
mod poll;
mod redelivery;
mod signature;
mod surroundings;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_runtime::GitHubAccess;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use url::Url;

pub use self::channel::GitHubChannel;
use self::event::{Delivered, read};
use crate::{ChannelCore, HookRequest, HookResponse, MOST_HOOK_BYTES, Webhook};

/// The name of the channel.
pub const GITHUB: &str = "github";

/// What is needed to talk to GitHub.
pub struct GitHubChannelSetup {
    /// `https://api.github.com`, or `https://<host>/api/v3`.
    pub api: Url,
    /// Where people look at repositories: pictures may be fetched from there, too.
    pub server: Url,
    pub proxy: Option<Url>,
    pub access: GitHubAccess,
}

/// Repositories that are asked for what is new in them, where GitHub cannot reach this server.
pub struct RepositoryPolling {
    /// `owner/name`.
    pub repositories: Vec<String>,
    /// Where it is kept how far they were read.
    pub file: PathBuf,
    pub interval: Duration,
}

/// Asks for what was lost while nobody listened, then polls until it is cancelled.
pub async fn listen(
    channel: Arc<GitHubChannel>,
    polling: Option<RepositoryPolling>,
    core: Arc<ChannelCore>,
    cancel: CancellationToken,
) {
    let listening = async {
        if polling.is_none() {
            redelivery::ask_again(&channel).await;
        }
        if let Some(polling) = polling {
            poll::poll(&channel, polling, &core).await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = cancel.cancelled() => {}
    }
}

/// The webhook of GitHub.
pub struct GitHubHook {
    core: Arc<ChannelCore>,
    channel: Arc<GitHubChannel>,
    secret: SecretString,
}

impl GitHubHook {
    pub fn new(core: Arc<ChannelCore>, channel: Arc<GitHubChannel>, secret: SecretString) -> Self {
        Self {
            core,
            channel,
            secret,
        }
    }
}

#[async_trait]
impl Webhook for GitHubHook {
    async fn handle(&self, request: HookRequest<'_>) -> HookResponse {
        let HookRequest { headers, body, .. } = request;
        if body.len() > MOST_HOOK_BYTES {
            return HookResponse::text(413, "too large");
        }
        if !signature::is_valid(&self.secret, headers, body) {
            return HookResponse::text(401, "the signature is missing or wrong");
        }
        let event = headers.get("x-github-event");
        let event = event.and_then(|value| value.to_str().ok());
        let account = self.channel.known_account();
        if account.is_none() {
            // GitHub could not be asked at the start; only `@codespar` is understood until then.
            let channel = self.channel.clone();
            tokio::spawn(async move { channel.account().await.map(|_| ()) });
        }
        match read(event.unwrap_or_default(), body, account.as_ref()) {
            Ok(Delivered::Nothing) => HookResponse::text(200, ""),
            Ok(Delivered::Message(inbound, origin)) => {
                if !self.core.serves_on_github(&origin.repository) {
                    tracing::info!(
                        "a comment in {} is left out: it is not served",
                        origin.repository
                    );
                    return HookResponse::text(200, "this repository is not served here");
                }
                self.core.reach("arrived");
                match self.core.receive_from_forge(*inbound, *origin).await {
                    Ok(_) => HookResponse::text(200, ""),
                    Err(error) => {
                        tracing::warn!("an event of GitHub is not on record: {error}");
                        HookResponse::text(503, "try again")
                    }
                }
            }
            Err(error) => {
                // Without its body, which is somebody's message.
                tracing::warn!("an event of GitHub cannot be read: {error}");
                HookResponse::text(400, "this cannot be read")
            }
        }
    }
}
