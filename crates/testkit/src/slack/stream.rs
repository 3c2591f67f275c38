//! Streams and sessions of agents, as Slack has them.

use serde_json::{Value, json};

use super::{SessionStatus, SlackMessage, State, StreamState, post};

/// Slack takes so much at once, in characters.
const MOST_TEXT: usize = 12_000;

fn text_of<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_default()
}

/// A stream is a reply, and in a channel it is for somebody.
pub(super) fn start(body: &Value, state: &mut State) -> Result<Value, &'static str> {
    let text = text_of(body, "markdown_text");
    if text_of(body, "thread_ts").is_empty() {
        return Err("invalid_thread_ts");
    }
    if text.chars().count() > MOST_TEXT {
        return Err("msg_too_long");
    }
    let recipient = ["recipient_user_id", "recipient_team_id"];
    let is_channel = text_of(body, "channel").starts_with('C');
    if is_channel && recipient.iter().any(|name| text_of(body, name).is_empty()) {
        return Err("missing_recipient_user_id");
    }
    let mut kept = body.clone();
    kept["text"] = json!(text);
    Ok(post(kept, StreamState::Streaming, state))
}

pub(super) fn append(body: &Value, state: &mut State) -> Result<Value, &'static str> {
    let more = text_of(body, "markdown_text");
    let message = streaming(body, state)?;
    if more.is_empty() {
        return Err("no_text");
    }
    let text = format!("{}{more}", message.text());
    message.revisions.push(json!({"text": text}));
    Ok(json!({"ok": true, "ts": message.ts}))
}

pub(super) fn stop(body: &Value, state: &mut State) -> Result<Value, &'static str> {
    let message = streaming(body, state)?;
    message.state = StreamState::Still;
    Ok(json!({"ok": true, "ts": message.ts}))
}

fn streaming<'a>(body: &Value, state: &'a mut State) -> Result<&'a mut SlackMessage, &'static str> {
    let is_it = |one: &&mut SlackMessage| {
        body["ts"] == one.ts.as_str() && body["channel"] == one.channel.as_str()
    };
    let found = state.messages.iter_mut().find(is_it);
    let found = found.ok_or("message_not_found")?;
    match found.state {
        StreamState::Streaming => Ok(found),
        StreamState::Still => Err("message_not_in_streaming_state"),
    }
}

/// Only an app that is an agent has sessions, by a scope that it gets as one.
pub(super) fn set_status(body: &Value, state: &mut State) -> Result<Value, &'static str> {
    if !state.scopes.contains("assistant:write") {
        return Err("missing_scope");
    }
    let (thread, status) = (text_of(body, "thread_ts"), text_of(body, "status"));
    if text_of(body, "channel_id").is_empty() || thread.is_empty() {
        return Err("invalid_arguments");
    }
    if !["active", "processing", "suspended", "closed"].contains(&status) {
        return Err("invalid_arguments");
    }
    let status = SessionStatus {
        thread: thread.to_owned(),
        status: status.to_owned(),
    };
    state.sessions.push(status.clone());
    Ok(json!({"ok": true, "status": status.status}))
}
