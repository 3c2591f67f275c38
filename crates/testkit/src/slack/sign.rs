//! What Slack sends to a webhook, signed as Slack signs.

use jiff::Timestamp;
use ring::hmac;
use serde_json::{Value, json};

/// Known to the fake workspace and to the server that is tested; nobody else signs with it.
pub const SLACK_SECRET: &str = "signing-secret-of-the-test-app";
/// The account of the app.
pub const SLACK_BOT: &str = "UBOT";

/// The headers of a delivery that is signed now.
pub fn signed(body: &str) -> [(&'static str, String); 2] {
    signed_with(SLACK_SECRET, Timestamp::now().as_second(), body)
}

/// Version 0 of Slack's signatures, with any secret and at any time.
pub fn signed_with(secret: &str, stamp: i64, body: &str) -> [(&'static str, String); 2] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("v0:{stamp}:{body}").as_bytes());
    let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}"));
    [
        ("x-slack-request-timestamp", stamp.to_string()),
        (
            "x-slack-signature",
            format!("v0={}", digits.collect::<String>()),
        ),
    ]
}

/// What somebody says in a channel, as an event of this kind.
pub fn said(kind: &str, user: &str, ts: &str, text: &str) -> Value {
    json!({"type": kind, "channel": "C1", "ts": ts, "user": user, "text": text})
}

/// The body of a delivery of an event.
pub fn event_callback(event: &Value) -> Value {
    json!({
        "type": "event_callback",
        "team_id": "T1",
        "event": event,
        "authorizations": [{"user_id": SLACK_BOT, "is_bot": true}],
    })
}

/// Pressing a button of a message, as Slack describes it.
pub fn pressed(user: &str, message: &super::SlackMessage, value: &str) -> Value {
    let mut shown = json!({"ts": message.ts});
    if !message.thread.is_empty() {
        shown["thread_ts"] = json!(message.thread);
    }
    json!({
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": user},
        "channel": {"id": message.channel},
        "message": shown,
        "actions": [{"action_ts": format!("{}.{user}.{value}", message.ts), "value": value}],
    })
}

/// A reaction to a message, as an event.
pub fn reacted(user: &str, message: &super::SlackMessage, reaction: &str) -> Value {
    json!({
        "type": "reaction_added",
        "user": user,
        "reaction": reaction,
        "item": {"type": "message", "channel": message.channel, "ts": message.ts},
        "event_ts": format!("{}.{user}", message.ts),
    })
}

/// Slack's own stop button in a thread, as an event.
pub fn stopped(user: &str, thread: &str, event_ts: &str) -> Value {
    json!({
        "type": "agent_session_stopped",
        "channel": "C1",
        "thread_ts": thread,
        "user": user,
        "streaming_message_ts": [],
        "event_ts": event_ts,
    })
}

/// `/codespar …` in a channel: the fields of its form.
pub fn slash(user: &str, trigger: &str, text: &str) -> Value {
    json!({
        "team_id": "T1", "channel_id": "C1", "channel_name": "general", "user_id": user,
        "user_name": user, "command": "/codespar", "text": text, "trigger_id": trigger,
    })
}

/// Fields as a form, which buttons (`payload`) and commands are.
pub fn form(fields: &Value) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields.as_object().into_iter().flatten() {
        form.append_pair(name, value.as_str().unwrap_or_default());
    }
    form.finish()
}
