//! From a mention to the merge, in one thread.

use codespar_testkit::{
    Gate, Turn,
    slack::{SLACK_APP_TOKEN, SLACK_TOKEN, event_callback, reacted, said, stopped},
};
use serde_json::json;

use super::Workspace;
use crate::{
    client::{Api, started, token},
    common::{git::git, wait_for},
    room::{FIX, answer, decisions, script, whole_story, writer},
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

#[test]
fn from_a_mention_to_the_merge_with_a_picture_and_a_stranger() {
    let workspace = Workspace::new(whole_story());
    let served = workspace.serve();
    workspace.say(&served, "U1", ("1.1", "1.1"), "fix the greeting");
    workspace.read("no repository is linked");
    workspace.say(&served, "U1", ("1.2", "1.2"), "link acme/api");
    workspace.read("acme/api is linked");
    for (user, text) in [("U2", "the role write"), ("U5", "you have no role here")] {
        workspace.say(&served, user, (user, user), "fix the greeting");
        workspace.read(text);
    }
    assert!(workspace.pulls().is_empty());

    let picture = workspace.slack.upload("F1", "shot.png", "image/png", PNG);
    let instruction = "fix the greeting: make it friendlier";
    let at = ("2.1", "2.1");
    workspace.say_with(&served, "U1", at, instruction, &json!([picture]));
    let result = workspace.read("<@U1> PR #1 (draft): Say hey");
    assert_eq!(result.thread, "2.1");
    let asked = workspace.bench.server.requests().pop().unwrap();
    assert!(asked.json().to_string().contains("image/png"));
    // Results are sent before the last edit of the progress.
    assert_eq!(workspace.read("⚠️ PR #1").thread, "2.1");
    assert_eq!(workspace.progress().len(), 1, "{:#?}", workspace.texts());

    workspace.say(&served, "U1", ("2.2", "2.1"), "merge PR #1");
    workspace.read("is a draft");
    workspace.say(&served, "U1", ("2.3", "2.1"), "also make the tests pass");
    let buttons = workspace.read("is ready (the tests pass with it)");
    workspace.press(&served, "U1", &buttons, "review PR #1");
    workspace.read("hi is short");
    let ready = workspace.bench.run(&["pr", "ready", "1", "--anyway"]);
    assert_eq!(ready.status.code(), Some(0), "{}", ready.stderr);
    workspace.press(&served, "U2", &buttons, "merge PR #1");
    workspace.read("the role merge");
    workspace.say(&served, "U1", ("2.4", "2.1"), "merge PR #1 squash");
    workspace.read("merged PR #1 into main by squash");
    assert!(git(&workspace.bench.work(), &["show", "main:greet.sh"]).contains("greeting=hi"));
    assert_eq!(workspace.tasks(), 2);
    let reader = Api::new(&served.base, &token(&workspace.bench, "read"));
    let (_, metrics) = reader.get("/metrics");
    let counted = "codespar_webhooks_total{channel=\"slack\",outcome=\"accepted\"} 18";
    assert!(metrics.as_str().unwrap().contains(counted), "{metrics}");
}

#[test]
fn a_question_is_answered_by_its_button() {
    let workspace = Workspace::new(script([writer(
        "be polite",
        [
            Turn::text("Which greeting?\n1. the one in greet.sh\n2. the one in test.sh"),
            answer("Say hi", FIX),
        ],
    )]));
    let served = workspace.linked();
    workspace.say(
        &served,
        "U1",
        ("2.1", "2.1"),
        "fix the greeting to be polite",
    );
    let question = workspace.read("Which greeting?");
    assert!(question.text().starts_with("<@U1> "), "{question:#?}");
    let buttons = &question.revisions[0]["blocks"][1]["elements"];
    assert_eq!(buttons[0]["text"]["text"], "the one in greet.sh");
    // Only with the role to change code.
    workspace.press(&served, "U2", &question, "2");
    workspace.read("an answer needs the role write");
    workspace.press(&served, "U1", &question, "1");
    workspace.read("answered by U1: the one in greet.sh");
    workspace.read("<@U1> PR #1: Say hi");
    let asked = workspace.bench.server.requests().pop().unwrap();
    assert!(asked.json().to_string().contains("the one in greet.sh"));
}

#[test]
fn a_stop_sign_stops_the_run_with_the_rights_of_who_gave_it() {
    let gate = Gate::closed();
    let turn = answer("Say hi", FIX).held_by(&gate);
    let workspace = Workspace::new(script([writer("say hi", [turn])]));
    let served = workspace.linked();
    workspace.say(&served, "U1", ("2.1", "2.1"), "fix it to say hi");
    let progress = workspace.read("Writing the change");
    let stop = &progress.revisions.last().unwrap()["blocks"][1]["elements"][0];
    assert_eq!(stop["text"]["text"], "Stop");
    workspace.deliver(&served, &reacted("U2", &progress, "octagonal_sign"));
    assert_eq!(workspace.read("the role write").thread, "2.1");
    workspace.deliver(&served, &reacted("U1", &progress, "thumbsup"));
    let stopped = reacted("U1", &progress, "black_square_for_stop");
    for _ in 0..2 {
        assert_eq!(workspace.deliver(&served, &stopped), 200);
    }
    workspace.read("was stopped");
    workspace.read("⏹ Stopped");
    gate.open();
    assert!(workspace.pulls().is_empty());
    let decisions = decisions(&workspace.bench);
    let stops = decisions.iter().filter(|one| one.contains(" stop "));
    assert_eq!(
        stops.collect::<Vec<_>>(),
        ["U2 stop refused", "U1 stop done"]
    );
}

#[test]
fn the_stop_button_of_slack_stops_the_run_with_the_rights_of_who_presses_it() {
    let gate = Gate::closed();
    let turn = answer("Say hi", FIX).held_by(&gate);
    let workspace = Workspace::new(script([writer("say hi", [turn])]));
    let served = workspace.linked();
    workspace.say(&served, "U1", ("2.1", "2.1"), "fix it to say hi");
    workspace.read("Writing the change");
    let at_work = |status: &str| {
        let sessions = workspace.slack.sessions();
        let mut of_thread = sessions.iter().filter(|one| one.thread == "2.1");
        of_thread
            .next_back()
            .is_some_and(|one| one.status == status)
    };
    wait_for("the thread is shown at work", || at_work("processing"));
    for (user, refusal) in [("U2", "the role write"), ("U5", "you have no role here")] {
        workspace.deliver(&served, &stopped(user, "2.1", user));
        assert_eq!(workspace.read(refusal).thread, "2.1");
    }
    // Another thread is another matter.
    workspace.deliver(&served, &stopped("U1", "1.1", "9.1"));
    assert!(at_work("processing"));
    for _ in 0..2 {
        let press = stopped("U1", "2.1", "9.2");
        assert_eq!(workspace.deliver(&served, &press), 200);
    }
    workspace.read("was stopped");
    workspace.read("⏹ Stopped");
    wait_for("the thread is shown at rest", || at_work("active"));
    gate.open();
    assert!(workspace.pulls().is_empty());
    let decisions = decisions(&workspace.bench);
    let stops = decisions.iter().filter(|one| one.contains(" stop "));
    assert_eq!(
        stops.collect::<Vec<_>>(),
        ["U2 stop refused", "U1 stop done"]
    );
}

#[test]
fn the_stop_button_of_the_progress_stops_the_run_with_the_rights_of_who_presses_it() {
    let gate = Gate::closed();
    let turn = answer("Say hi", FIX).held_by(&gate);
    let workspace = Workspace::new(script([writer("say hi", [turn])]));
    let served = workspace.linked();
    workspace.say(&served, "U1", ("2.1", "2.1"), "fix it to say hi");
    let progress = workspace.read("Writing the change");
    let button = &progress.revisions.last().unwrap()["blocks"][1]["elements"][0];
    let value = button["value"].as_str().unwrap();
    workspace.press(&served, "U2", &progress, value);
    workspace.read("<@U2> this needs the role write");
    workspace.press(&served, "U1", &progress, value);
    workspace.read("was stopped");
    let stopped = workspace.read("⏹ Stopped");
    gate.open();
    assert_eq!(stopped.ts, progress.ts, "it is edited in place");
    let blocks = stopped.revisions.last().unwrap()["blocks"].as_array();
    assert_eq!(blocks.unwrap().len(), 1, "there is no button any more");
    assert!(workspace.pulls().is_empty());
}

#[test]
fn without_a_public_address_everything_comes_over_socket_mode() {
    let workspace = Workspace::new(script([writer("say hi", [answer("Say hi", FIX)])]));
    let mut command = workspace
        .bench
        .command(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("SLACK_APP_TOKEN", SLACK_APP_TOKEN)
        .env("SLACK_BOT_TOKEN", SLACK_TOKEN)
        .env("SLACK_API_URL", &workspace.slack.url);
    let served = started(&mut command);
    wait_for("a connection", || workspace.slack.sockets().0 == 1);
    let say = |ts: &str, text: &str| {
        for kind in ["app_mention", "message"] {
            let event = said(kind, "U1", ts, &format!("<@UBOT> {text}"));
            let sent = workspace
                .slack
                .send_envelope("events_api", &event_callback(&event));
            let id = sent.unwrap();
            wait_for(&id, || workspace.slack.acknowledgement(&id).is_some());
        }
    };
    say("1.1", "link acme/api");
    workspace.read("acme/api is linked");
    say("2.1", "fix it to say hi");
    workspace.read("<@U1> PR #1: Say hi");
    workspace.read("✅ PR #1");
    assert_eq!(workspace.progress().len(), 1);
    // There is no webhook then.
    let hook = Api::new(&served.base, "none").post("/hooks/slack", &json!({}));
    assert_eq!(hook.0, 404);
}
