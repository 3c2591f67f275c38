//! What Slack delivers, as messages.
//!
//! One mention arrives as two events with different ids, `app_mention` and `message`; team, channel
//! and time stamp are the same, and they are the identity.
//!
//! What Slack marks up is turned into plain text here, so that the core reads one kind of text. Of
//! a link the address is kept and not the label: a label can say anything.

use http::HeaderMap;
use serde::Deserialize;

use super::{
    SLACK,
    files::SlackFile,
    interaction::{SlashCommand, button, command, reaction, session_stopped},
};
use crate::{Inbound, Privacy, Speaker, SpeakerKind, StopReaction, ThreadRef, ThreadStop};

/// What a delivery is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    /// Slack checks the address; the text is the answer.
    Challenge(String),
    Message(Box<Inbound>),
    /// A slash command: what it is answered with at once, only its speaker sees.
    Command(Box<Inbound>),
    /// A reaction that stops a run.
    Stop(Box<StopReaction>),
    /// Slack's own stop button.
    StopThread(Box<ThreadStop>),
    /// Nothing that we handle.
    Nothing,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Envelope {
    UrlVerification {
        challenge: String,
    },
    EventCallback {
        team_id: String,
        event: serde_json::Value,
        #[serde(default)]
        authorizations: Vec<Authorization>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Authorization {
    user_id: String,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: Option<String>,
    /// Slack tells of a mention that an edit has brought, too, as `app_mention`.
    #[serde(default)]
    edited: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct MessageEvent {
    channel: String,
    ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    bot_id: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    channel_type: Option<String>,
    #[serde(default)]
    files: Vec<SlackFile>,
}

/// Reads what was posted: an event (JSON), a button (a form with JSON in it) or a slash command (a
/// form).
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Delivered, serde_json::Error> {
    let content = headers.get(http::header::CONTENT_TYPE);
    let content = content
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if !content.starts_with("application/x-www-form-urlencoded") {
        return read_event(serde_json::from_slice(body)?);
    }
    let payload = url::form_urlencoded::parse(body).find(|(name, _)| name == "payload");
    match payload {
        Some((_, json)) => Ok(button(serde_json::from_str(&json)?)),
        // Slack asks so whether the address is there.
        None => Ok(SlashCommand::of_form(body).map_or(Delivered::Nothing, command)),
    }
}

/// An event, which has the same form in a webhook and in Socket Mode.
pub(super) fn read_event(body: serde_json::Value) -> Result<Delivered, serde_json::Error> {
    let (team_id, event, authorizations) = match serde_json::from_value(body)? {
        Envelope::UrlVerification { challenge } => return Ok(Delivered::Challenge(challenge)),
        Envelope::Other => return Ok(Delivered::Nothing),
        Envelope::EventCallback {
            team_id,
            event,
            authorizations,
        } => (team_id, event, authorizations),
    };
    let kind: Kind = serde_json::from_value(event.clone())?;
    let ours = authorizations.first().map(|one| one.user_id.as_str());
    let is_mention = match kind.kind.as_str() {
        "app_mention" => true,
        "message" => false,
        "reaction_added" => {
            return Ok(reaction(&team_id, serde_json::from_value(event)?, ours));
        }
        "agent_session_stopped" => {
            return Ok(session_stopped(&team_id, serde_json::from_value(event)?));
        }
        _ => return Ok(Delivered::Nothing),
    };
    // Edits and deletions have subtypes or a mark of their own: what counts is what was said first.
    let is_message = kind.edited.is_none()
        && matches!(
            kind.subtype.as_deref(),
            None | Some("file_share" | "thread_broadcast" | "bot_message")
        );
    if !is_message {
        return Ok(Delivered::Nothing);
    }
    let event: MessageEvent = serde_json::from_value(event)?;
    Ok(Delivered::Message(Box::new(Inbound {
        mentioned: is_mention,
        ..message(&team_id, event, ours)
    })))
}

/// The identity is made of the place and the time stamp, which Slack gives a message once.
fn message(team: &str, event: MessageEvent, ours: Option<&str>) -> Inbound {
    let id = event.user.or(event.bot_id.clone()).unwrap_or_default();
    let kind = match &event.bot_id {
        _ if ours == Some(id.as_str()) => SpeakerKind::Ourselves,
        Some(_) => SpeakerKind::Bot,
        None => SpeakerKind::Person,
    };
    Inbound {
        identity: format!("{SLACK}:{team}:{}:{}", event.channel, event.ts),
        at: ThreadRef {
            channel: SLACK.to_owned(),
            conversation: event.channel,
            thread: event.thread_ts.unwrap_or(event.ts),
        },
        speaker: Speaker {
            name: id.clone(),
            id,
            kind,
        },
        mentioned: false,
        privacy: match event.channel_type.as_deref() {
            Some("im") => Privacy::Direct,
            _ => Privacy::Room,
        },
        text: plain(&event.text, ours),
        images: event.files.into_iter().map(SlackFile::image).collect(),
        reply_to: None,
    }
}

/// Text without the marks of Slack. Our own mention becomes `@codespar`; a quotation stays one.
pub(super) fn plain(text: &str, ours: Option<&str>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        result.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('>') else {
            break;
        };
        result.push_str(&mark(&rest[at + 1..at + end], ours));
        rest = &rest[at + end + 1..];
    }
    result.push_str(rest);
    result
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// What is between angle brackets: a mention, a channel, a link with an optional label.
fn mark(inside: &str, ours: Option<&str>) -> String {
    let (target, label) = inside.split_once('|').unwrap_or((inside, ""));
    match target.split_at_checked(1) {
        Some(("@", user)) if ours == Some(user) => "@codespar".to_owned(),
        Some(("@", user)) => format!("@{user}"),
        Some(("#", channel)) if label.is_empty() => format!("#{channel}"),
        Some(("#", _)) => format!("#{label}"),
        Some(("!", special)) => special.to_owned(),
        // The address, not the label: it is what is meant, whatever is shown.
        _ => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(event: &serde_json::Value) -> Result<Delivered, serde_json::Error> {
        let body = json!({
            "type": "event_callback",
            "team_id": "T1",
            "event_id": "Ev1",
            "event": event,
            "authorizations": [{"user_id": "UBOT", "is_bot": true}],
        });
        read(&HeaderMap::new(), body.to_string().as_bytes())
    }

    fn inbound(delivered: Delivered) -> Inbound {
        match delivered {
            Delivered::Message(inbound) => *inbound,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_two_events_of_a_mention_have_one_identity() {
        let said = |kind: &str| {
            let one = json!({
                "type": kind, "channel": "C1", "ts": "17.5", "user": "U1",
                "text": "<@UBOT> fix &lt;T&gt; in <https://x.example/a|a>",
            });
            inbound(event(&one).unwrap())
        };
        let (mention, message) = (said("app_mention"), said("message"));
        assert_eq!(mention.identity, "slack:T1:C1:17.5");
        assert_eq!((mention.mentioned, message.mentioned), (true, false));
        assert_eq!(mention.text, "@codespar fix <T> in https://x.example/a");
        assert_eq!(
            Inbound {
                mentioned: false,
                ..mention
            },
            message
        );
    }

    #[test]
    fn edits_deletions_and_unknown_events_are_nothing() {
        for one in [
            json!({"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1"}),
            json!({"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1"}),
            json!({"type": "app_mention", "channel": "C1", "ts": "1", "user": "U1",
                "text": "<@UBOT> fix it", "edited": {"user": "U1", "ts": "2"}}),
            json!({"type": "team_join", "user": "U1"}),
        ] {
            assert_eq!(event(&one).unwrap(), Delivered::Nothing);
        }
        assert!(event(&json!({"type": "message"})).is_err());
        assert!(read(&HeaderMap::new(), b"{nonsense").is_err());
    }

    #[test]
    fn bots_and_ourselves_are_told_from_people() {
        let by = |speaker: serde_json::Value| {
            let mut one = json!({"type": "message", "channel": "C1", "ts": "1", "text": "x"});
            for (key, value) in speaker.as_object().unwrap() {
                one[key] = value.clone();
            }
            inbound(event(&one).unwrap()).speaker.kind
        };
        assert_eq!(by(json!({"user": "U1"})), SpeakerKind::Person);
        assert_eq!(by(json!({"user": "U2", "bot_id": "B2"})), SpeakerKind::Bot);
        assert_eq!(by(json!({"bot_id": "B2"})), SpeakerKind::Bot);
        let ours = json!({"user": "UBOT", "bot_id": "B1"});
        assert_eq!(by(ours), SpeakerKind::Ourselves);
    }
}
