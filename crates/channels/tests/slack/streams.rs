//! Answers that grow while they are written, and Slack's own stop button.

use codespar_testkit::{
    Gate, Script, ScriptedModel, Turn,
    slack::{SLACK_TOKEN, SlackFault, SlackMessage, StreamState, said, stopped},
};

use crate::{OK, Workspace, common::Room, wait_for};

/// As a variable of the environment has it: known by its value.
const KEY: &str = "sk-test-key-of-the-room-0001";
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const START: &str = "chat.startStream";

struct Asked {
    workspace: Workspace,
    gate: Gate,
    _model: ScriptedModel,
}

impl Asked {
    /// A model that writes the first part, and the second when the gate is open. Each delta has
    /// `chunk` characters.
    async fn new(first: &str, second: &str, chunk: usize) -> Self {
        let gate = Gate::closed();
        let deltas = first.chars().count().div_ceil(chunk);
        let turn = Turn::text(format!("{first}{second}"));
        let turn = turn.chunk(chunk).held_after(deltas, &gate);
        let model = ScriptedModel::start(Script::of([turn])).await.unwrap();
        let room = Room::with_model(model.url()).await;
        let workspace = Workspace::of(room).await;
        Self {
            workspace,
            gate,
            _model: model,
        }
    }

    async fn ask(&self) {
        let event = said("app_mention", "U2", "17.5", "<@UBOT> ask what is it?");
        assert_eq!(self.workspace.deliver(&event).await.status, OK);
    }

    fn messages(&self) -> Vec<SlackMessage> {
        self.workspace.slack.messages()
    }

    async fn shows(&self, text: &str) {
        wait_for(text, || {
            let messages = self.messages();
            messages.iter().any(|one| one.text().contains(text))
        })
        .await;
    }

    /// The one message, when everything is done.
    async fn end(&self) -> SlackMessage {
        self.gate.open();
        self.workspace.idle().await;
        let mut messages = self.messages();
        assert_eq!(messages.len(), 1, "{messages:#?}");
        let message = messages.remove(0);
        assert_eq!(message.state, StreamState::Still, "{message:#?}");
        let last = message.revisions.last().unwrap();
        let key = &last["metadata"]["event_payload"]["key"];
        assert_eq!(key, "slack:T1:C1:17.5/reply", "{message:#?}");
        message
    }
}

fn texts(message: &SlackMessage) -> Vec<&str> {
    let texts = message.revisions.iter();
    texts.map(|body| body["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_answer_grows_in_one_message_and_ends_as_the_whole() {
    let asked = Asked::new("First & line\nand the ", "second\nthird", 5).await;
    asked.ask().await;
    asked.shows("First &amp; line").await;
    let begun = asked.messages().remove(0);
    assert_eq!(begun.state, StreamState::Streaming, "{begun:#?}");
    let start = &begun.revisions[0];
    for (field, value) in [
        ("thread_ts", "17.5"),
        ("recipient_user_id", "U2"),
        ("recipient_team_id", "T1"),
        ("markdown_text", "<@U2> First &amp; line"),
    ] {
        assert_eq!(start[field], value, "{start}");
    }
    let message = asked.end().await;
    let whole = "<@U2> First &amp; line\nand the second\nthird";
    assert_eq!(message.text(), whole);
    let texts = texts(&message);
    assert!(
        texts.windows(2).all(|two| two[1].starts_with(two[0])),
        "{texts:#?}"
    );
    assert_eq!(asked.workspace.slack.count(START), 1);
    assert_eq!(asked.workspace.slack.count("chat.stopStream"), 1);
    assert_eq!(asked.workspace.slack.count("chat.postMessage"), 0);
    asked.workspace.room.close().await;
}

#[tokio::test]
async fn where_slack_refuses_streams_the_answer_comes_whole_and_they_are_not_tried_again() {
    let asked = Asked::new("one\ntwo\n", "three\n", 5).await;
    for _ in 0..3 {
        let refused = SlackFault::Error("unknown_method");
        asked.workspace.slack.inject(START, refused);
    }
    asked.ask().await;
    let slack = &asked.workspace.slack;
    wait_for("the refusal", || slack.count(START) == 1).await;
    let message = asked.end().await;
    assert_eq!(message.text(), "<@U2> one\ntwo\nthree\n");
    assert_eq!(message.revisions.len(), 1, "{message:#?}");
    assert_eq!(slack.count(START), 1);
    asked.workspace.room.close().await;
}

#[tokio::test]
async fn a_stream_that_slack_has_ended_becomes_the_answer_all_the_same() {
    let later = SlackFault::RateLimited { seconds: 1 };
    for fault in [None, Some(SlackFault::Error("internal_error")), Some(later)] {
        let asked = Asked::new("one\n", "two\n", 4).await;
        asked.ask().await;
        asked.shows("one").await;
        match fault.clone() {
            None => asked.workspace.slack.expire_streams(),
            Some(fault) => asked.workspace.slack.inject("chat.stopStream", fault),
        }
        let message = asked.end().await;
        assert_eq!(message.text(), "<@U2> one\ntwo\n", "{fault:?}");
        asked.workspace.room.close().await;
    }
}

#[tokio::test]
async fn a_stream_whose_begin_got_no_answer_is_found_and_not_made_twice() {
    let asked = Asked::new("one\n", "two\n", 4).await;
    asked.workspace.slack.inject(START, SlackFault::CutAfter);
    asked.ask().await;
    asked.shows("one").await;
    let message = asked.end().await;
    assert_eq!(message.text(), "<@U2> one\ntwo\n");
    assert_eq!(asked.workspace.slack.count(START), 1);
    asked.workspace.room.close().await;
}

#[tokio::test]
async fn no_secret_link_or_mention_is_shown_at_any_moment() {
    let first = format!(
        "begin\nthe key is {KEY}\nthe token {TOKEN}\n{SLACK_TOKEN}\n@channel <!channel> \
         ![x](https://evil.example/?q=1) [bank](https://evil.example)\nhalf of {}",
        &TOKEN[..20]
    );
    let second = format!(
        "{}\n[over\nlines](https://evil.example)\nend\n",
        &TOKEN[20..]
    );
    let asked = Asked::new(&first, &second, 3).await;
    asked.ask().await;
    asked.shows("bank (https://evil.example)").await;
    let message = asked.end().await;
    assert!(message.text().ends_with("end\n"), "{message:#?}");
    for body in &message.revisions {
        let body = body.to_string();
        for part in [
            "sk-test",
            "ghp_",
            "@channel",
            ";!channel",
            "](http",
            "![",
            "0123456789abc",
        ] {
            assert!(!body.contains(part), "{part}: {body}");
        }
    }
    asked.workspace.room.close().await;
}

fn statuses(workspace: &Workspace) -> Vec<String> {
    let sessions = workspace.slack.sessions();
    sessions.iter().map(|one| one.status.clone()).collect()
}

#[tokio::test]
async fn a_thread_is_shown_as_at_work_while_it_is() {
    let asked = Asked::new("one\n", "two\n", 4).await;
    asked.ask().await;
    asked.shows("one").await;
    wait_for("at work", || statuses(&asked.workspace) == ["processing"]).await;
    asked.end().await;
    let both = ["processing", "active"];
    wait_for("at rest", || statuses(&asked.workspace) == both).await;
    let sessions = asked.workspace.slack.sessions();
    assert!(
        sessions.iter().all(|one| one.thread == "17.5"),
        "{sessions:?}"
    );
    asked.workspace.room.close().await;
}

#[tokio::test]
async fn an_app_that_is_no_agent_works_without_sessions() {
    let workspace = Workspace::new().await;
    workspace.slack.grant("chat:write");
    for ts in ["17.5", "18.5"] {
        let event = said("app_mention", "U2", ts, "<@UBOT> whoami");
        workspace.deliver(&event).await;
        workspace.idle().await;
    }
    assert_eq!(workspace.slack.messages().len(), 2);
    let tried = workspace.slack.count("agents.sessions.setStatus");
    assert!(tried <= 1, "{tried}");
    workspace.room.close().await;
}

#[tokio::test]
async fn the_stop_button_stops_an_answer_for_who_asked_and_for_nobody_without_the_right() {
    let asked = Asked::new("one\n", "two\n", 4).await;
    asked.ask().await;
    asked.shows("one").await;
    let press = async |user: &str, event: &str| {
        let pressed = stopped(user, "17.5", event);
        assert_eq!(asked.workspace.deliver(&pressed).await.status, OK);
    };
    press("U9", "18.1").await;
    assert_eq!(asked.messages()[0].text(), "<@U2> one");
    // Slack delivers again what it takes to be lost.
    press("U2", "18.2").await;
    press("U2", "18.2").await;
    asked.workspace.idle().await;
    let messages = asked.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].text().contains("stopped"), "{messages:#?}");
    let audit = asked
        .workspace
        .room
        .runtime
        .store()
        .audit(0, 10)
        .await
        .unwrap();
    let stops = audit.iter().filter(|one| one.entry.action == "stop");
    let stops: Vec<(&str, &str)> = stops
        .map(|one| (one.entry.speaker.as_str(), one.entry.decision.as_str()))
        .collect();
    assert_eq!(stops, [("U9", "refused"), ("U2", "done")]);
    asked.workspace.room.close().await;
}

#[tokio::test]
async fn a_stop_button_without_work_says_and_stops_nothing() {
    let workspace = Workspace::new().await;
    // From then on the channel is served.
    let event = said("app_mention", "U2", "17.5", "<@UBOT> whoami");
    workspace.deliver(&event).await;
    workspace.idle().await;
    let press = stopped("U1", "20.5", "21.1");
    assert_eq!(workspace.deliver(&press).await.status, OK);
    workspace.idle().await;
    assert_eq!(workspace.slack.messages().len(), 1);
    wait_for("at rest", || {
        let sessions = workspace.slack.sessions();
        let mut of_thread = sessions.iter().filter(|one| one.thread == "20.5");
        of_thread.any(|one| one.status == "active")
    })
    .await;
    workspace.room.close().await;
}
