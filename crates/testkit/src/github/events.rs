//! What GitHub delivers to a webhook when somebody says something: the event and its body.

use ring::hmac;
use serde_json::{Value, json};

use super::{
    FakeGitHub,
    conversation::{comment_json, issue_json},
    room::Room,
    shapes,
    state::{LabelEvent, LineComment, Review, State, now},
};

/// An event as it is delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// `X-GitHub-Event`.
    pub event: &'static str,
    pub body: Value,
}

impl HookEvent {
    /// With another action; `edited` is delivered with the same ids.
    pub fn with_action(mut self, action: &str) -> Self {
        self.body["action"] = action.into();
        self
    }
}

/// The value of `X-Hub-Signature-256`.
pub fn hook_signature(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body);
    let digits: String = tag
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256={digits}")
}

/// The number that GitHub knows a user by.
pub fn user_id(login: &str) -> u32 {
    shapes::id_of(login)
}

fn envelope(room: &Room, state: &State, login: &str, action: &str) -> Value {
    json!({
        "action": action,
        "repository": shapes::repo(room, state, super::Level::Read),
        "sender": shapes::user(login),
    })
}

/// An issue as events tell it; a pull request is told as one, too.
pub(super) fn issue_or_pull(room: &Room, state: &State, number: u64) -> Value {
    if let Some(issue) = state.issues.iter().find(|one| one.number == number) {
        return issue_json(room, issue);
    }
    let pull = state.pulls.iter().find(|one| one.number == number);
    json!({
        "id": 9000 + number,
        "number": number,
        "title": pull.map(|pull| pull.title.clone()),
        "body": null,
        "user": shapes::user("someone"),
        "updated_at": now().to_string(),
        "pull_request": {"url": room.api(&format!("/pulls/{number}"))},
    })
}

impl FakeGitHub {
    /// Someone writes below an issue or a pull request.
    pub fn say(&self, number: u64, login: &str, body: &str) -> HookEvent {
        self.change(|state| {
            let id = state.add_comment(number, login, body);
            let mut event = envelope(&self.room, state, login, "created");
            event["issue"] = issue_or_pull(&self.room, state, number);
            let comment = state.comments.iter().find(|one| one.id == id);
            event["comment"] = comment
                .map(|comment| comment_json(&self.room, state, comment))
                .unwrap_or_default();
            HookEvent {
                event: "issue_comment",
                body: event,
            }
        })
    }

    /// Someone puts a label on an issue.
    pub fn label(&self, number: u64, login: &str, label: &str) -> HookEvent {
        self.change(|state| {
            let at = now();
            let told = LabelEvent {
                id: state.next_id(),
                issue: number,
                actor: login.to_owned(),
                label: label.to_owned(),
                at,
            };
            state.label_events.push(told);
            if let Some(issue) = state.issues.iter_mut().find(|one| one.number == number) {
                issue.updated_at = at;
            }
            let mut event = envelope(&self.room, state, login, "labeled");
            event["issue"] = issue_or_pull(&self.room, state, number);
            event["label"] = json!({"name": label});
            HookEvent {
                event: "issues",
                body: event,
            }
        })
    }

    /// Someone submits a review with remarks on lines: the events of the remarks, then its own.
    pub fn submit_review(
        &self,
        number: u64,
        login: &str,
        body: &str,
        remarks: &[(&str, u64, &str)],
    ) -> Vec<HookEvent> {
        self.change(|state| {
            let comments = remarks.iter().map(|(path, line, body)| LineComment {
                id: state.next_id(),
                path: (*path).to_owned(),
                line: *line,
                body: (*body).to_owned(),
            });
            let comments: Vec<LineComment> = comments.collect();
            let pull = issue_or_pull(&self.room, state, number);
            let mut events = Vec::new();
            let id = state.next_id();
            for comment in &comments {
                let mut event = envelope(&self.room, state, login, "created");
                event["pull_request"] = pull.clone();
                event["comment"] = json!({
                    "id": comment.id, "pull_request_review_id": id, "body": comment.body,
                    "path": comment.path, "line": comment.line, "user": shapes::user(login),
                });
                events.push(HookEvent {
                    event: "pull_request_review_comment",
                    body: event,
                });
            }
            let mut event = envelope(&self.room, state, login, "submitted");
            event["pull_request"] = pull;
            event["review"] = json!({
                "id": id, "state": "commented", "user": shapes::user(login),
                "body": (!body.is_empty()).then_some(body),
            });
            events.push(HookEvent {
                event: "pull_request_review",
                body: event,
            });
            if let Some(pull) = state.pull(number) {
                pull.updated_at = now();
            }
            state.reviews.push(Review {
                id,
                pull: number,
                author: login.to_owned(),
                body: body.to_owned(),
                state: "COMMENTED".to_owned(),
                commit: String::new(),
                at: now(),
                comments,
            });
            events
        })
    }
}
