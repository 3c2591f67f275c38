//! Slack, by variables of the environment.

use std::sync::Arc;

use codespar_channels::{
    ConfiguredChannel, MakeWebhook, MessageSource,
    slack::{SlackChannel, SlackHook, SlackSetup, SlackSocket},
};
use codespar_runtime::ProjectDir;

use super::{api_url, missing, proxy, secret};
use crate::error::CommandError;

const SIGNING_SECRET: &str = "SLACK_SIGNING_SECRET";
const BOT_TOKEN: &str = "SLACK_BOT_TOKEN";
const APP_TOKEN: &str = "SLACK_APP_TOKEN";
const API_URL: &str = "SLACK_API_URL";
const USUAL_API: &str = "https://slack.com/api/";

/// The bot token is needed to answer. Messages come over Socket Mode (the token of the app), or over
/// the webhook (the signing secret), or over both while an app is moved from one to the other.
pub(super) fn find(project_dir: &ProjectDir) -> Result<Option<ConfiguredChannel>, CommandError> {
    let signing_secret = secret(project_dir, SIGNING_SECRET);
    let app_token = secret(project_dir, APP_TOKEN);
    let bot_token = match (secret(project_dir, BOT_TOKEN), &app_token, &signing_secret) {
        (None, None, None) => return Ok(None),
        (None, Some(_), _) => return Err(missing("Slack", BOT_TOKEN, APP_TOKEN, "slack")),
        (None, None, Some(_)) => return Err(missing("Slack", BOT_TOKEN, SIGNING_SECRET, "slack")),
        (Some(_), None, None) => {
            return Err(CommandError::Usage(format!(
                "{BOT_TOKEN} is set and neither {APP_TOKEN} nor {SIGNING_SECRET} is: one of \
                 them is needed (docs/channels/slack.md)"
            )));
        }
        (Some(token), _, _) => token,
    };
    let api = api_url(project_dir, API_URL, USUAL_API)?;
    let setup = SlackSetup {
        proxy: proxy(project_dir, &api)?,
        bot_token,
        app_token: app_token.clone(),
        api,
    };
    let failed = |error: codespar_channels::ClientError| CommandError::Failed(error.to_string());
    let channel = SlackChannel::new(&setup).map_err(failed)?;
    let source = match app_token {
        Some(token) => Some(source(SlackSocket::new(&setup, token).map_err(failed)?)),
        None => None,
    };
    Ok(Some(ConfiguredChannel {
        adapter: Arc::new(channel),
        webhook: signing_secret.map(|secret| -> MakeWebhook {
            Box::new(move |core| Arc::new(SlackHook::new(core, secret)))
        }),
        source,
    }))
}

fn source(socket: SlackSocket) -> MessageSource {
    Box::new(move |core, cancel| Box::pin(socket.run(core, cancel)))
}
