//! Whether the app has what it needs, for `codespar channels check`.
//!
//! Most of what is missing in an app shows late, as a message that does not come. So everything
//! that any function needs is asked for here, each with the page on which it is given. Nothing is
//! changed by it, and nothing is posted.

use secrecy::SecretString;

use super::{
    socket::open_url,
    web::{SlackApi, SlackReply},
};
use crate::{ChannelFinding, SendError};

/// A scope of the bot token, and what does not work without it.
struct Scope {
    name: &'static str,
    needed_for: &'static str,
    need: Need,
}

impl Scope {
    /// Where it is given. An app gets this one by being an agent.
    fn place(&self) -> &'static str {
        match self.name {
            "assistant:write" => {
                "Agents & AI Apps, or with `agent_view` in the manifest (see docs/channels/slack.md)"
            }
            _ => "OAuth & Permissions, Bot Token Scopes",
        }
    }
}

enum Need {
    Always,
    /// The rest works without.
    ForThis,
}

const SCOPES: [Scope; 10] = [
    scope("app_mentions:read", "mentions", Need::Always),
    scope("chat:write", "answers", Need::Always),
    scope(
        "channels:history",
        "threads of public channels",
        Need::Always,
    ),
    scope(
        "groups:history",
        "threads of private channels",
        Need::ForThis,
    ),
    scope("im:history", "direct messages", Need::ForThis),
    scope("files:read", "pictures", Need::ForThis),
    scope("files:write", "long logs as files", Need::ForThis),
    scope("commands", "/codespar", Need::ForThis),
    scope("reactions:read", "the stop reaction", Need::ForThis),
    scope("assistant:write", "the stop button of Slack", Need::ForThis),
];

const fn scope(name: &'static str, needed_for: &'static str, need: Need) -> Scope {
    Scope {
        name,
        needed_for,
        need,
    }
}

const EVENTS: &str = "app_mention, message.channels, message.groups, message.im, reaction_added, \
                      agent_session_stopped (for the stop button of Slack)";

/// Asks Slack. Which events are subscribed it does not tell a bot, so they are named.
pub(super) async fn check(api: &SlackApi, app_token: Option<&SecretString>) -> Vec<ChannelFinding> {
    let mut findings = match api.post_json("auth.test", &serde_json::json!({})).await {
        Ok(reply) => of_bot(&reply),
        Err(error) => vec![ChannelFinding::problem(format!(
            "the bot token does not work ({error}): copy the Bot User OAuth Token from OAuth & \
             Permissions of the app to SLACK_BOT_TOKEN"
        ))],
    };
    findings.push(of_transport(api, app_token).await);
    findings.push(ChannelFinding::fine(format!(
        "Slack does not tell which events are subscribed; these have to be listed under Event \
         Subscriptions, Subscribe to bot events: {EVENTS}"
    )));
    findings
}

fn of_bot(reply: &SlackReply) -> Vec<ChannelFinding> {
    let answer = &reply.answer;
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".to_owned());
    let mut findings = vec![ChannelFinding::fine(format!(
        "the bot token works: {} in {}",
        name(&answer.user),
        name(&answer.team)
    ))];
    let Some(scopes) = &reply.scopes else {
        findings.push(ChannelFinding::warning("Slack does not tell the scopes"));
        return findings;
    };
    let granted: Vec<&str> = scopes.split(',').map(str::trim).collect();
    let is_granted = |scope: &&Scope| granted.contains(&scope.name);
    let there: Vec<&str> = SCOPES
        .iter()
        .filter(is_granted)
        .map(|one| one.name)
        .collect();
    findings.push(ChannelFinding::fine(format!(
        "scopes: {}",
        there.join(", ")
    )));
    for missing in SCOPES.iter().filter(|scope| !is_granted(scope)) {
        let text = format!(
            "the scope {} is missing ({}): add it under {}, and reinstall the app",
            missing.name,
            missing.needed_for,
            missing.place()
        );
        findings.push(match missing.need {
            Need::Always => ChannelFinding::problem(text),
            Need::ForThis => ChannelFinding::warning(text),
        });
    }
    findings
}

/// An address for a connection is only asked for: one that is opened would get its share of the
/// events.
async fn of_transport(api: &SlackApi, app_token: Option<&SecretString>) -> ChannelFinding {
    let Some(app_token) = app_token else {
        return ChannelFinding::fine(
            "events come over the webhook: Request URL https://YOUR-SERVER/hooks/slack under Event \
             Subscriptions, Interactivity & Shortcuts and Slash Commands",
        );
    };
    match open_url(api, app_token).await {
        Ok(_) => ChannelFinding::fine("the app token works: events come over Socket Mode"),
        Err(error @ (SendError::Temporary(_) | SendError::RetryAfter(_))) => {
            ChannelFinding::problem(format!("Socket Mode cannot be asked for: {error}"))
        }
        Err(error) => ChannelFinding::problem(format!(
            "the app token does not work ({error}): switch Socket Mode on, and create a token with \
             connections:write under Basic Information, App-Level Tokens, for SLACK_APP_TOKEN"
        )),
    }
}
