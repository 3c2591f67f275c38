//! Deliveries that are forged, late, repeated, out of order or not for us.

use codespar_testkit::{
    Script,
    slack::{SLACK_SECRET, event_callback, said},
};
use serde_json::json;
use sqlx::{Connection, SqliteConnection};

use super::{Workspace, now};
use crate::{
    client::Api,
    room::{FIX, answer, script, writer},
};

#[test]
fn what_slack_did_not_send_starts_nothing() {
    let workspace = Workspace::new(Script::new());
    let served = workspace.serve();
    let event = said("app_mention", "U1", "1.1", "<@UBOT> link acme/api");
    let body = event_callback(&event).to_string();
    let cases = [
        (now(), "another-secret", body.clone(), 401),
        (now() - 600, SLACK_SECRET, body.clone(), 401),
        (now() + 600, SLACK_SECRET, body.clone(), 401),
        (now(), SLACK_SECRET, "{".to_owned(), 400),
        (now(), SLACK_SECRET, "x".repeat(10 << 20), 413),
        (
            now(),
            SLACK_SECRET,
            json!({"type": "what"}).to_string(),
            200,
        ),
    ];
    for (stamp, secret, body, expected) in cases {
        let shown = format!("{body:.60}");
        let status = workspace.send(&served, stamp, secret, body);
        assert_eq!(status, expected, "{shown}");
    }
    // A replay within the time is the same message.
    let stamp = now();
    for _ in 0..3 {
        let status = workspace.send(&served, stamp, SLACK_SECRET, body.clone());
        assert_eq!(status, 200);
    }
    workspace.read("acme/api is linked");
    assert_eq!(workspace.slack.messages().len(), 1);
    let unknown = Api::new(&served.base, "none").post("/hooks/discord", &json!({}));
    assert_eq!(unknown.0, 404);
}

#[test]
fn pairs_in_any_order_and_repetitions_are_one_task() {
    let workspace = Workspace::new(script([writer("say hi", [answer("Say hi", FIX)])]));
    let served = workspace.linked();
    let text = "<@UBOT> fix it to say hi";
    for kind in [
        "app_mention",
        "message",
        "message",
        "app_mention",
        "message",
    ] {
        let event = said(kind, "U1", "2.1", text);
        assert_eq!(workspace.deliver(&served, &event), 200);
    }
    workspace.read("<@U1> PR #1");
    workspace.read("✅ PR #1");
    // Long after, once more.
    workspace.deliver(&served, &said("app_mention", "U1", "2.1", text));
    workspace.say(&served, "U1", ("3.1", "3.1"), "whoami");
    workspace.read("role admin");
    assert_eq!(workspace.tasks(), 1);
    assert_eq!(workspace.pulls().len(), 1);
    assert_eq!(workspace.progress().len(), 1);
}

#[test]
fn edits_quotations_code_and_our_own_text_start_nothing() {
    let workspace = Workspace::new(Script::new());
    let served = workspace.linked();
    let mention = "<@UBOT> fix the greeting";
    let mut edited = said("app_mention", "U1", "6.0", mention);
    edited["edited"] = json!({"user": "U1", "ts": "7.0"});
    let mut ours = said("message", "UBOT", "4.0", mention);
    ours["bot_id"] = json!("B1");
    let mut bot = said("app_mention", "U7", "3.0", mention);
    bot["bot_id"] = json!("B7");
    for event in [
        said("message", "U1", "1.5", &format!("&gt; {mention}")),
        said("app_mention", "U1", "1.5", &format!("&gt; {mention}")),
        said("app_mention", "U1", "2.0", &format!("`{mention}`")),
        said("app_mention", "U1", "2.5", &format!("```\n{mention}\n```")),
        bot,
        ours,
        json!({"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "5.0",
            "message": {"ts": "4.0", "text": mention}}),
        said("message", "U1", "6.0", "fix the greeting"),
        edited,
    ] {
        assert_eq!(workspace.deliver(&served, &event), 200, "{event}");
    }
    workspace.say(&served, "U1", ("9.1", "9.1"), "whoami");
    workspace.read("role admin");
    assert_eq!(workspace.tasks(), 0);
    assert_eq!(
        workspace.slack.messages().len(),
        2,
        "{:#?}",
        workspace.texts()
    );
}

#[test]
fn two_bots_that_answer_each_other_come_to_an_end() {
    let workspace = Workspace::new(Script::new());
    workspace.settings(&json!({"turnsPerThreadHour": 3}));
    let served = workspace.serve();
    // A listed bot mentions us in answer to each of our messages, and once more for good measure.
    for turn in 1..=8 {
        let mut event = said("app_mention", "U9", &format!("2.{turn}"), "<@UBOT> whoami");
        event["thread_ts"] = json!("2.1");
        event["bot_id"] = json!("B9");
        assert_eq!(workspace.deliver(&served, &event), 200);
    }
    workspace.read("this thread had 3 turns in an hour");
    // In another thread, after all of these.
    workspace.say(&served, "U1", ("9.1", "9.1"), "whoami");
    workspace.read("role admin");
    let texts = workspace.texts();
    let answers = texts.iter().filter(|text| text.contains("role read"));
    assert_eq!(answers.count(), 3, "{texts:#?}");
    assert_eq!(texts.len(), 5, "{texts:#?}");
    assert_eq!(workspace.tasks(), 0);
}

#[test]
fn a_database_that_is_too_slow_for_slack_is_said_in_time_and_nothing_is_lost() {
    let workspace = Workspace::new(Script::new());
    let served = workspace.serve();
    let path = workspace.bench.room.codespar_home().join("codespar.db");
    let url = format!("sqlite://{}", path.display());
    let event = said("app_mention", "U1", "1.1", "<@UBOT> link acme/api");
    let mut locked = workspace.runtime.block_on(async {
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let begun = sqlx::query("BEGIN IMMEDIATE")
            .execute(&mut connection)
            .await;
        begun.unwrap();
        connection
    });
    // Slack delivers again what is not acknowledged in three seconds, three times.
    assert_eq!(workspace.deliver(&served, &event), 503);
    workspace.runtime.block_on(async {
        let ended = sqlx::query("ROLLBACK").execute(&mut locked).await;
        ended.unwrap();
        locked.close().await.unwrap();
    });
    for _ in 0..3 {
        assert_eq!(workspace.deliver(&served, &event), 200);
    }
    workspace.read("acme/api is linked");
    workspace.say(&served, "U1", ("9.1", "9.1"), "whoami");
    workspace.read("role admin");
    assert_eq!(workspace.slack.messages().len(), 2);
}
