//! What people do besides writing messages: pressing buttons, `/codespar`, reactions, Slack's stop
//! button.
//!
//! Each becomes a message or a stop of whoever did it, with an identity that Slack repeats when it
//! delivers the same once more, so nothing is done twice. What was pressed or reacted to is not
//! trusted to be ours: the core looks it up by its id.

use serde::Deserialize;

use super::{
    SLACK,
    event::{Delivered, plain},
};
use crate::{
    Inbound, Privacy, Speaker, SpeakerKind, StopReaction, ThreadRef, ThreadStop,
    message::NEW_THREAD,
};

/// Reactions that stop a run: ⏹ and 🛑.
const STOPS: [&str; 2] = ["black_square_for_stop", "octagonal_sign"];

/// As Slack posts it for a button; other kinds of interaction are not asked for.
#[derive(Deserialize)]
pub(super) struct Interaction {
    #[serde(rename = "type")]
    kind: String,
    user: Named,
    #[serde(default)]
    team: Option<Named>,
    #[serde(default)]
    channel: Option<Named>,
    #[serde(default)]
    message: Option<ActedOn>,
    #[serde(default)]
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    #[serde(default, alias = "username")]
    name: Option<String>,
}

#[derive(Deserialize)]
struct ActedOn {
    ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
}

#[derive(Deserialize)]
struct Action {
    action_ts: String,
    #[serde(default)]
    value: String,
}

/// A button says the text that it stands for.
pub(super) fn button(pressed: Interaction) -> Delivered {
    let (Some(channel), Some(message), Some(action)) = (
        pressed.channel,
        pressed.message,
        pressed.actions.into_iter().next(),
    ) else {
        return Delivered::Nothing;
    };
    if pressed.kind != "block_actions" || action.value.is_empty() {
        return Delivered::Nothing;
    }
    let team = pressed.team.map(|team| team.id).unwrap_or_default();
    Delivered::Message(Box::new(Inbound {
        identity: format!(
            "{SLACK}:{team}:{}:{}:{}",
            channel.id, message.ts, action.action_ts
        ),
        at: ThreadRef {
            channel: SLACK.to_owned(),
            conversation: channel.id,
            thread: message.thread_ts.unwrap_or_else(|| message.ts.clone()),
        },
        speaker: person(pressed.user.id, pressed.user.name),
        mentioned: true,
        privacy: Privacy::Room,
        text: action.value,
        images: Vec::new(),
        reply_to: Some(message.ts),
    }))
}

/// `/codespar fix the greeting`. Slack offers it outside of threads only, and there is no message to
/// answer, so our first answer begins a thread.
#[derive(Deserialize)]
pub(super) struct SlashCommand {
    #[serde(default)]
    team_id: String,
    channel_id: String,
    #[serde(default)]
    channel_name: String,
    user_id: String,
    #[serde(default)]
    user_name: Option<String>,
    #[serde(default)]
    text: String,
    /// Another one each time.
    trigger_id: String,
}

impl SlashCommand {
    /// Of the form that Slack posts; nothing if it is none.
    pub(super) fn of_form(body: &[u8]) -> Option<Self> {
        let pairs: serde_json::Map<String, serde_json::Value> = url::form_urlencoded::parse(body)
            .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
            .collect();
        serde_json::from_value(pairs.into()).ok()
    }
}

/// For us without a mention, since the command has our name. Its thread gets a name of ours until
/// the first answer has one at Slack.
pub(super) fn command(given: SlashCommand) -> Delivered {
    let identity = format!(
        "{SLACK}:{}:{}:command:{}",
        given.team_id, given.channel_id, given.trigger_id
    );
    Delivered::Command(Box::new(Inbound {
        identity,
        at: ThreadRef {
            channel: SLACK.to_owned(),
            thread: format!("{NEW_THREAD}{}", given.trigger_id),
            conversation: given.channel_id,
        },
        speaker: person(given.user_id, given.user_name),
        mentioned: true,
        privacy: match given.channel_name.as_str() {
            "directmessage" => Privacy::Direct,
            _ => Privacy::Room,
        },
        text: plain(&given.text, None),
        images: Vec::new(),
        reply_to: None,
    }))
}

/// The name of the reaction and its place; who gave it decides whether it counts.
#[derive(Deserialize)]
pub(super) struct ReactionEvent {
    user: String,
    reaction: String,
    item: ReactedTo,
    event_ts: String,
}

#[derive(Deserialize)]
struct ReactedTo {
    /// Absent for what is no message.
    #[serde(default)]
    channel: Option<String>,
    #[serde(default)]
    ts: Option<String>,
}

/// A reaction that stops what the message is about. `ours` is our own account.
pub(super) fn reaction(team: &str, event: ReactionEvent, ours: Option<&str>) -> Delivered {
    let (Some(channel), Some(ts)) = (event.item.channel, event.item.ts) else {
        return Delivered::Nothing;
    };
    if !STOPS.contains(&event.reaction.as_str()) || ours == Some(event.user.as_str()) {
        return Delivered::Nothing;
    }
    Delivered::Stop(Box::new(StopReaction {
        identity: format!("{SLACK}:{team}:{channel}:{ts}:stop:{}", event.event_ts),
        channel: SLACK.to_owned(),
        conversation: channel,
        message_id: ts,
        speaker: person(event.user, None),
    }))
}

/// Somebody pressed the button that Slack shows while a session is at work.
#[derive(Deserialize)]
pub(super) struct SessionStopped {
    channel: String,
    /// Absent for sessions that are channels of their own, which we have none of.
    #[serde(default)]
    thread_ts: Option<String>,
    user: String,
    event_ts: String,
}

/// Stops what goes on in the thread of the session; without a thread there is nothing of ours.
pub(super) fn session_stopped(team: &str, event: SessionStopped) -> Delivered {
    let Some(thread) = event.thread_ts else {
        return Delivered::Nothing;
    };
    Delivered::StopThread(Box::new(ThreadStop {
        identity: format!(
            "{SLACK}:{team}:{}:{thread}:stopped:{}",
            event.channel, event.event_ts
        ),
        at: ThreadRef {
            channel: SLACK.to_owned(),
            conversation: event.channel,
            thread,
        },
        speaker: person(event.user, None),
    }))
}

/// Only people press and react: Slack tells of apps in another way. The name is for showing.
fn person(id: String, name: Option<String>) -> Speaker {
    Speaker {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        kind: SpeakerKind::Person,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_button_is_a_reply_to_its_message() {
        let payload = json!({
            "type": "block_actions",
            "team": {"id": "T1"},
            "user": {"id": "U1", "username": "ann"},
            "channel": {"id": "C1"},
            "message": {"ts": "18.0", "thread_ts": "17.5"},
            "actions": [{"action_ts": "19.0", "value": "1"}],
        });
        let Delivered::Message(pressed) = button(serde_json::from_value(payload).unwrap()) else {
            panic!("it is a message");
        };
        assert_eq!(pressed.identity, "slack:T1:C1:18.0:19.0");
        assert_eq!(pressed.at.thread, "17.5");
        assert_eq!(pressed.reply_to.as_deref(), Some("18.0"));
        assert_eq!((pressed.text.as_str(), pressed.mentioned), ("1", true));
    }

    #[test]
    fn a_slash_command_begins_a_thread_of_its_own() {
        let form = b"team_id=T1&channel_id=C1&channel_name=general&user_id=U1&user_name=ann\
            &command=%2Fcodespar&text=fix+%3C%40U2%7Cbob%3E&trigger_id=13.7";
        let given = SlashCommand::of_form(form).unwrap();
        let Delivered::Command(inbound) = command(given) else {
            panic!("it is a command");
        };
        assert_eq!(inbound.identity, "slack:T1:C1:command:13.7");
        assert_eq!(inbound.at.thread, "new:13.7");
        assert_eq!(inbound.text, "fix @U2");
        assert!(SlashCommand::of_form(b"payload=x").is_none());
    }

    #[test]
    fn only_a_stop_sign_of_somebody_else_stops() {
        let read = |name: &str, user: &str| {
            let event = json!({"user": user, "reaction": name, "event_ts": "9.1",
                "item": {"type": "message", "channel": "C1", "ts": "2.0"}});
            reaction("T1", serde_json::from_value(event).unwrap(), Some("UBOT"))
        };
        assert!(matches!(read("octagonal_sign", "U1"), Delivered::Stop(_)));
        assert_eq!(read("thumbsup", "U1"), Delivered::Nothing);
        assert_eq!(read("octagonal_sign", "UBOT"), Delivered::Nothing);
    }
}
