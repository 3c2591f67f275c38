//! Slack over real HTTP and WebSockets: deliveries, and a Web API whose faults are chosen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod commands;
#[path = "../common/mod.rs"]
mod common;
mod pictures;
mod socket;
mod streams;

use std::{sync::Arc, time::Duration};

use codespar_channels::{
    ChannelAdapter, FindingKind, HookMethod, HookRequest, HookResponse, Webhook,
    slack::{SLACK, SlackChannel, SlackHook, SlackSetup},
};
use codespar_testkit::slack::{
    FakeSlack, SLACK_APP_TOKEN, SLACK_SECRET, SLACK_TOKEN, SlackFault, SlackMessage,
    event_callback, form, pressed, said, signed, signed_with,
};
use http::HeaderMap;
use serde_json::{Value, json};

use common::{PATIENCE, Room};

pub(crate) struct Workspace {
    room: Room,
    slack: FakeSlack,
    hook: SlackHook,
    setup: SlackSetup,
}

impl Workspace {
    async fn new() -> Self {
        Self::of(Room::new().await).await
    }

    async fn of(room: Room) -> Self {
        let slack = FakeSlack::start().await.unwrap();
        let setup = SlackSetup {
            bot_token: SLACK_TOKEN.into(),
            app_token: Some(SLACK_APP_TOKEN.into()),
            api: slack.url.parse().unwrap(),
            proxy: None,
        };
        room.serve(Arc::new(SlackChannel::new(&setup).unwrap()));
        let hook = SlackHook::new(room.core.clone(), SLACK_SECRET.into());
        Self {
            room,
            slack,
            hook,
            setup,
        }
    }

    async fn deliver(&self, event: &Value) -> HookResponse {
        let body = event_callback(event).to_string();
        self.post(&headers(&body), body.as_bytes()).await
    }

    async fn press(&self, user: &str, message: &SlackMessage, value: &str) -> HookResponse {
        let payload = pressed(user, message, value).to_string();
        self.submit(&json!({"payload": payload})).await
    }

    /// Posts a form, as Slack does for buttons and commands.
    async fn submit(&self, fields: &Value) -> HookResponse {
        let body = form(fields);
        let mut headers = headers(&body);
        let kind = "application/x-www-form-urlencoded".parse().unwrap();
        headers.insert(http::header::CONTENT_TYPE, kind);
        self.post(&headers, body.as_bytes()).await
    }

    async fn post(&self, headers: &HeaderMap, body: &[u8]) -> HookResponse {
        let request = HookRequest {
            method: HookMethod::Post,
            query: "",
            headers,
            body,
        };
        self.hook.handle(request).await
    }

    async fn idle(&self) {
        self.room.idle(SLACK).await;
    }
}

fn headers(body: &str) -> HeaderMap {
    with(signed(body))
}

fn with(fields: [(&'static str, String); 2]) -> HeaderMap {
    let fields = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    fields.into_iter().collect()
}

/// Waits until something is so.
pub(crate) async fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "waited in vain: {what}");
}

const OK: u16 = 200;

#[tokio::test]
async fn one_mention_is_one_task_with_one_edited_message_in_either_order_of_its_events() {
    for order in [["app_mention", "message"], ["message", "app_mention"]] {
        let workspace = Workspace::new().await;
        for kind in order {
            let event = said(kind, "U1", "17.5", "<@UBOT> fix the greeting");
            assert_eq!(workspace.deliver(&event).await.status, OK);
            // Slack delivers again what it takes to be lost.
            assert_eq!(workspace.deliver(&event).await.status, OK);
        }
        workspace.idle().await;
        assert_eq!(workspace.room.tasks().await.len(), 1, "{order:?}");
        let messages = workspace.slack.messages();
        let [progress, result] = messages.as_slice() else {
            panic!("{messages:#?}");
        };
        assert_eq!(
            (progress.channel.as_str(), progress.thread.as_str()),
            ("C1", "17.5")
        );
        assert!(progress.text().contains("PR #1"), "{progress:#?}");
        assert!(result.text().starts_with("<@U1> PR #1"), "{result:#?}");
        workspace.room.close().await;
    }
}

#[tokio::test]
async fn a_button_is_pressed_with_the_rights_of_who_presses_it() {
    let workspace = Workspace::new().await;
    let event = said("app_mention", "U1", "17.5", "<@UBOT> fix the greeting");
    workspace.deliver(&event).await;
    workspace.idle().await;
    let result = workspace.slack.messages().pop().unwrap();
    let merge = &result.revisions[0]["blocks"][1]["elements"][1];
    assert_eq!(merge["value"], "merge PR #1");
    let pressed = workspace.press("U2", &result, "merge PR #1").await;
    assert_eq!(pressed.status, OK);
    workspace.idle().await;
    let refused = workspace.slack.messages().pop().unwrap();
    assert!(refused.text().starts_with("<@U2> "), "{refused:#?}");
    assert!(
        refused.text().contains("needs the role merge"),
        "{refused:#?}"
    );
    workspace.room.close().await;
}

#[tokio::test]
async fn an_answer_to_a_question_that_does_not_wait_starts_nothing() {
    let workspace = Workspace::new().await;
    let event = said("app_mention", "U1", "17.5", "<@UBOT> fix the greeting");
    workspace.deliver(&event).await;
    workspace.idle().await;
    let result = workspace.slack.messages().pop().unwrap();
    workspace.press("U1", &result, "2").await;
    workspace.idle().await;
    let said = workspace.slack.messages().pop().unwrap();
    assert!(said.text().contains("no question waits"), "{said:#?}");
    assert_eq!(workspace.room.tasks().await.len(), 1);
    workspace.room.close().await;
}

#[tokio::test]
async fn a_limit_of_slack_and_a_lost_answer_show_a_message_once() {
    let workspace = Workspace::new().await;
    workspace
        .slack
        .inject("chat.postMessage", SlackFault::RateLimited { seconds: 1 });
    workspace
        .slack
        .inject("chat.postMessage", SlackFault::CutAfter);
    let event = said("app_mention", "U2", "17.5", "<@UBOT> whoami");
    workspace.deliver(&event).await;
    workspace.idle().await;
    let messages = workspace.slack.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].text().contains("role read"), "{messages:#?}");
    let calls = workspace.slack.calls();
    assert!(
        calls.contains(&"conversations.replies".to_owned()),
        "{calls:?}"
    );
    workspace.room.close().await;
}

#[tokio::test]
async fn what_is_forged_old_or_broken_gets_its_status_and_starts_nothing() {
    let workspace = Workspace::new().await;
    let body = json!({"type": "url_verification", "challenge": "abc"}).to_string();
    let challenged = workspace.post(&headers(&body), body.as_bytes()).await;
    assert_eq!((challenged.status, challenged.body.as_str()), (OK, "abc"));

    let event = json!({
        "type": "event_callback", "team_id": "T1",
        "event": said("app_mention", "U1", "1.0", "<@UBOT> fix it"),
    })
    .to_string();
    let handle = async |headers: &HeaderMap, body: &str| {
        let answer = workspace.post(headers, body.as_bytes()).await;
        answer.status
    };
    assert_eq!(handle(&headers("another body"), &event).await, 401);
    assert_eq!(handle(&HeaderMap::new(), &event).await, 400);
    let old = with(signed_with(SLACK_SECRET, 1_531_420_618, &event));
    assert_eq!(handle(&old, &event).await, 401);
    assert_eq!(handle(&headers("{nonsense"), "{nonsense").await, 400);
    let large = "x".repeat(10 * 1024 * 1024);
    assert_eq!(handle(&headers(&large), &large).await, 413);
    let unknown = json!({"type": "app_rate_limited"}).to_string();
    assert_eq!(handle(&headers(&unknown), &unknown).await, OK);
    workspace.idle().await;
    assert!(workspace.room.tasks().await.is_empty());
    assert!(workspace.slack.messages().is_empty());
    workspace.room.close().await;
}

#[tokio::test]
async fn quotations_bots_and_edits_start_nothing() {
    let workspace = Workspace::new().await;
    for event in [
        said("message", "U1", "1.0", "&gt; <@UBOT> fix the greeting"),
        said("app_mention", "U1", "2.0", "`<@UBOT> fix the greeting`"),
        json!({"type": "app_mention", "channel": "C1", "ts": "3.0", "user": "U9", "bot_id": "B9",
            "text": "<@UBOT> fix the greeting"}),
        json!({"type": "message", "channel": "C1", "ts": "4.0", "user": "UBOT", "bot_id": "B1",
            "text": "<@UBOT> fix the greeting"}),
        json!({"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "5.0",
            "message": {"ts": "4.0", "text": "<@UBOT> fix the greeting"}}),
        // A mention that an edit has brought to an old message.
        said("message", "U1", "6.0", "fix the greeting"),
        json!({"type": "app_mention", "channel": "C1", "ts": "6.0", "user": "U1",
            "text": "<@UBOT> fix the greeting", "edited": {"user": "U1", "ts": "7.0"}}),
    ] {
        assert_eq!(workspace.deliver(&event).await.status, OK, "{event}");
    }
    workspace.idle().await;
    assert!(workspace.room.tasks().await.is_empty());
    assert!(workspace.slack.messages().is_empty());
    workspace.room.close().await;
}

#[tokio::test]
async fn a_check_tells_what_the_app_lacks_and_what_to_click() {
    let workspace = Workspace::new().await;
    let check = async |setup: &SlackSetup| SlackChannel::new(setup).unwrap().check().await;
    let fine = check(&workspace.setup).await;
    assert!(
        fine.iter().all(|one| one.kind == FindingKind::Fine),
        "{fine:#?}"
    );
    assert!(fine[0].text.contains("codespar in Acme"), "{fine:#?}");

    workspace.slack.grant("chat:write,channels:history");
    let lacking = check(&workspace.setup).await;
    let of_kind = |kind: FindingKind| {
        let those = lacking.iter().filter(|one| one.kind == kind);
        those.map(|one| one.text.as_str()).collect::<Vec<_>>()
    };
    let problems = of_kind(FindingKind::Problem);
    assert_eq!(problems.len(), 1, "{lacking:#?}");
    assert!(problems[0].contains("app_mentions:read"), "{problems:?}");
    assert!(problems[0].contains("Bot Token Scopes"), "{problems:?}");
    let warnings = of_kind(FindingKind::Warning);
    assert_eq!(warnings.len(), 7, "{lacking:#?}");
    let agent = warnings.iter().find(|one| one.contains("assistant:write"));
    assert!(agent.unwrap().contains("agent_view"), "{warnings:?}");
    let events = fine.iter().find(|one| one.text.contains("bot events"));
    let events = events.map(|one| one.text.as_str()).unwrap_or_default();
    assert!(events.contains("agent_session_stopped"), "{fine:#?}");

    let mut wrong = workspace.setup.clone();
    wrong.bot_token = "xoxb-wrong".into();
    wrong.app_token = Some("xapp-wrong".into());
    let refused = check(&wrong).await;
    let problems: Vec<&String> = refused
        .iter()
        .filter(|one| one.kind == FindingKind::Problem)
        .map(|one| &one.text)
        .collect();
    assert_eq!(problems.len(), 2, "{refused:#?}");
    for problem in problems {
        assert!(problem.contains("invalid_auth"), "{problem}");
        assert!(!problem.contains("wrong"), "{problem}");
    }
    workspace.room.close().await;
}
