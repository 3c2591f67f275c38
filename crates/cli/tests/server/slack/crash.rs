//! Servers that are killed, and servers that wait for each other.

use std::process::Command;

use codespar_testkit::{
    Conversation, Gate, Matcher, Script, Turn,
    slack::{SlackMessage, StreamState},
};
use serde_json::json;

use super::Workspace;
use crate::{
    client::{Served, started},
    common::{Bench, PATIENCE, kill_points::POINTS},
    crash::{
        CrashScene, INSTRUCTION, assert_done_once, killed_at_any_point_it_is_done_once, link,
        polite_script, published_here, wait_until_sent,
    },
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn workspace() -> Workspace {
    Workspace::set_up(polite_script())
}

impl CrashScene for Workspace {
    const CHANNEL: &'static str = "slack";

    fn set_up(script: Script) -> Self {
        let workspace = Self::new(script);
        link(&workspace.bench, ("slack", "C1"));
        workspace
    }

    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn command(&self) -> Command {
        Self::command(self)
    }

    fn ask(&self, served: &Served) {
        self.say(served, "U1", ("2.1", "2.1"), INSTRUCTION);
    }

    fn texts(&self) -> Vec<String> {
        Self::texts(self)
    }

    fn published(&self) -> (usize, usize) {
        published_here(&self.bench)
    }
}

#[test]
fn killed_at_any_point_there_is_one_task_one_pull_request_and_one_message_of_progress() {
    killed_at_any_point_it_is_done_once::<Workspace>(&POINTS);
}

#[test]
fn a_server_that_is_killed_with_a_picture_goes_on_with_it_and_leaves_none() {
    for point in ["fetched", "begun", "settled"] {
        let workspace = workspace();
        let picture = workspace.slack.upload("F1", "shot.png", "image/png", PNG);
        let mut command = workspace.command();
        command.env("CODESPAR_TEST_DIE_AT", point);
        let served = started(&mut command);
        let at = ("2.1", "2.1");
        workspace.say_with(&served, "U1", at, INSTRUCTION, &json!([picture]));
        served.running.wait(PATIENCE).unwrap();
        let _served = workspace.serve();
        assert_done_once(&workspace, point);
        let asked = workspace.bench.server.requests().pop().unwrap();
        assert!(asked.json().to_string().contains("image/png"), "{point}");
        let fetched = workspace.slack.calls();
        let fetched = fetched.iter().filter(|call| *call == "file");
        assert_eq!(fetched.count(), 1, "{point}");
        let kept = workspace.bench.room.codespar_home();
        let kept = kept.join("channel-pictures/slack");
        crate::common::wait_for("no picture is kept", || {
            std::fs::read_dir(&kept).map_or(0, Iterator::count) == 0
        });
    }
}

#[test]
fn a_server_that_is_killed_while_it_shows_an_answer_leaves_one_message() {
    for point in ["drafted", "sending", "posted", "sent"] {
        let gate = Gate::closed();
        let turn = Turn::text("one\ntwo\nthree").chunk(4).held_after(2, &gate);
        let asked = Conversation::new("ask", Matcher::first_user_contains("what is it"));
        let script = Script::new().conversation(asked.turn(turn));
        let workspace = Workspace::set_up(script);
        let mut command = workspace.command();
        command.env("CODESPAR_TEST_DIE_AT", point);
        let served = started(&mut command);
        workspace.say(&served, "U1", ("2.1", "2.1"), "ask what is it?");
        served.running.wait(PATIENCE).unwrap();
        gate.open();
        let _served = workspace.serve();
        let answer = workspace.read("three");
        wait_until_sent(&workspace.bench, "slack");
        let messages = workspace.slack.messages();
        assert_eq!(messages.len(), 1, "{point}: {messages:#?}");
        assert_eq!(answer.text(), "<@U1> one\ntwo\nthree", "{point}");
        assert_eq!(messages[0].state, StreamState::Still, "{point}");
    }
}

#[test]
fn two_servers_serve_a_channel_one_after_the_other() {
    let workspace = workspace();
    let first = workspace.serve();
    let second = workspace.serve();
    // Whichever a delivery reaches, one of them handles it.
    workspace.say(&second, "U1", ("2.1", "2.1"), "whoami");
    workspace.say(&first, "U1", ("2.1", "2.1"), "whoami");
    workspace.read("role admin");
    workspace.say(&second, "U1", ("3.1", "3.1"), INSTRUCTION);
    workspace.read("🔍");
    first.running.kill_9().unwrap();
    assert_done_once(&workspace, "the other server is killed");
    let messages = workspace.slack.messages();
    let who = messages.iter().map(SlackMessage::text);
    assert_eq!(who.filter(|text| text.contains("role admin")).count(), 1);
    drop(second);
}
