//! A repository, a scripted model and people in a chat.

use std::process::Command;

use codespar_protocol::TaskRecord;
use codespar_store::{ChannelStore, OutboxRow, SqliteStore, TaskFilter, TaskStore};
use codespar_testkit::{Conversation, Gate, Matcher, Script, Turn, process::Finished};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, git::repository, json_lines, parsed};

pub(crate) const GREET: &str = "#!/bin/sh\ngreeting=hello\necho \"$greeting world\"\n";
const TEST: &str = "#!/bin/sh\n[ \"$(sh greet.sh)\" = \"hi world\" ] && echo \"1 passed\" || { echo \"1 failed\"; exit 1; }\n";

pub(crate) const FIX: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hello\n>>>REPLACE\ngreeting=hi\n===END===\n";
/// The tests do not pass with it.
pub(crate) const WRONG: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hello\n>>>REPLACE\ngreeting=hey\n===END===\n";

pub(crate) fn answer(summary: &str, blocks: &str) -> Turn {
    Turn::text(format!("{summary}\n\n{blocks}"))
}

/// A writer for the instruction that contains a text.
pub(crate) fn writer(contains: &str, turns: impl IntoIterator<Item = Turn>) -> Conversation {
    let matcher = Matcher::system_contains("turns an instruction into")
        .and(Matcher::first_user_contains(contains));
    Conversation::new(contains, matcher).turns(turns)
}

pub(crate) fn script(writers: impl IntoIterator<Item = Conversation>) -> Script {
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let script = Script::new().conversation(picker);
    writers.into_iter().fold(script, Script::conversation)
}

/// Mends [`WRONG`].
pub(crate) const MORE: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hey\n>>>REPLACE\ngreeting=hi\n===END===\n";

/// Finds one thing, in the second line.
fn reviewer() -> Conversation {
    let review = json!({
        "summary": "Fine.",
        "findings": [{"path": "greet.sh", "line": 2, "severity": "low", "text": "hi is short"}],
    });
    let matcher = Matcher::system_contains("You review a pull request");
    Conversation::new("reviewer", matcher).turn(Turn::text(review.to_string()))
}

/// A first change that fails the tests, a follow-up that makes them pass, and a review.
pub(crate) fn whole_story() -> Script {
    let gate = Gate::closed();
    gate.open();
    story_held_by(&gate)
}

/// The same, where the first change waits for the gate.
pub(crate) fn story_held_by(gate: &Gate) -> Script {
    let first = answer("Say hey", WRONG).held_by(gate);
    script([
        writer("make it friendlier", [first]),
        writer("also make the tests pass", [answer("Say hi", MORE)]),
        reviewer(),
    ])
}

/// A repository with failing tests; ann may merge, bob may read, eve is a stranger.
pub(crate) fn greeting(script: Script) -> Bench {
    let bench = repository(
        script,
        &[
            ("greet.sh", GREET),
            ("test.sh", TEST),
            ("Makefile", "test:\n\t@sh test.sh\n"),
        ],
    );
    settings(&bench, &json!({}));
    bench
}

/// Settings of the user, with the people of these tests and more.
pub(crate) fn settings(bench: &Bench, more: &Value) {
    let mut channels = json!({
        "access": {"terminal": {"users": {"ann": "merge", "bob": "read", "carl": "write"}}},
    });
    for (key, value) in more.as_object().unwrap() {
        channels[key] = value.clone();
    }
    let home = bench.room.codespar_home();
    std::fs::create_dir_all(&home).unwrap();
    let dev = json!({"engine": "generate", "repairs": 0});
    let text = json!({"channels": channels, "dev": dev}).to_string();
    std::fs::write(home.join("settings.json"), text).unwrap();
}

pub(crate) fn chat_command(bench: &Bench, user: &str) -> Command {
    bench.command(&["chat", "--as", user])
}

/// Says lines and waits until all that they started has ended.
pub(crate) fn say(bench: &Bench, user: &str, lines: &[&str]) -> Finished {
    let input = lines.join("\n") + "\n";
    let command = &mut chat_command(bench, user);
    codespar_testkit::process::spawn_with_stdin(command, input.into())
        .unwrap()
        .wait(PATIENCE)
        .unwrap()
}

/// Works on the database between two processes.
pub(crate) fn with_store<T>(bench: &Bench, work: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(&bench.room.codespar_home())
            .await
            .unwrap();
        let done = work(&store).await;
        store.close().await.unwrap();
        done
    })
}

/// What the record has after the processes have ended.
pub(crate) struct Record {
    pub(crate) tasks: Vec<TaskRecord>,
    pub(crate) sent: Vec<OutboxRow>,
}

impl Record {
    pub(crate) fn of(bench: &Bench) -> Self {
        with_store(bench, async |store: &SqliteStore| {
            let tasks = store.tasks(TaskFilter::default()).await.unwrap();
            let sent = store.sent_to("terminal", "terminal", 1_000).await.unwrap();
            Self { tasks, sent }
        })
    }

    /// The texts of messages of a kind.
    pub(crate) fn texts(&self, kind: &str) -> Vec<String> {
        let rows = self.sent.iter().filter(|row| row.kind == kind);
        rows.map(|row| {
            let body: Value = serde_json::from_str(&row.body).unwrap();
            body["text"].as_str().unwrap().to_owned()
        })
        .collect()
    }
}

pub(crate) fn pulls(bench: &Bench) -> Vec<Value> {
    let listed = bench.run(&["pr", "list", "--state", "all", "--json"]);
    let listed = parsed(&listed.stdout);
    listed["pull_requests"].as_array().unwrap().clone()
}

pub(crate) fn audit(bench: &Bench) -> Vec<Value> {
    let exported = bench.run(&["audit", "export"]);
    assert_eq!(exported.status.code(), Some(0), "{}", exported.stderr);
    json_lines(&exported.stdout)
}

/// `speaker action decision` of each entry.
pub(crate) fn decisions(bench: &Bench) -> Vec<String> {
    let word = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let audit = audit(bench);
    let lines = audit.iter().map(|entry| {
        let words = ["speaker", "action", "decision"].map(|key| word(entry, key));
        words.join(" ")
    });
    lines.collect()
}
