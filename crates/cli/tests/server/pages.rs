//! The pages in a real browser: Chromium, driven by a script.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use codespar_testkit::{Conversation, Matcher, Turn, process::spawn};
use serde_json::json;

use crate::{
    client::{serve_at, token},
    common::{Bench, PATIENCE, parsed},
    repository::{FIX, answer, greeting, script},
};

/// Four views at two widths in two colour schemes take a while on a small machine.
pub(crate) const BROWSER_TIME: std::time::Duration = std::time::Duration::from_secs(240);

fn bench() -> Bench {
    let write = json!({"file_path": "note.txt", "content": "one\ntwo <script>alert(1)</script>\n"});
    let agent = Conversation::new("agent", Matcher::first_user_contains("leave a note"))
        .turn(Turn::tool("Write", &write))
        .turn(Turn::text(
            "The **note** is there. <script>window.hacked = 1</script>",
        ));
    let script = script(&["greet.sh"], [answer("Say `hi`", FIX)]).conversation(agent);
    let bench = greeting(script);
    bench.trust();
    bench
}

fn agent_task(bench: &Bench) -> String {
    let made = bench.run(&[
        "task",
        "create",
        "--json",
        "--type",
        "remote_agent",
        "--subject",
        "leave a note",
        "--prompt",
        "leave a note",
    ]);
    parsed(&made.stdout)["task_id"].as_str().unwrap().to_owned()
}

/// A conversation of 10,000 entries, imported into the database of the bench.
fn long_session(bench: &Bench) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        use codespar_protocol::{EntryBody, Message, SessionId, SessionMode};
        use codespar_store::{NewSession, SqliteStore, Store};
        let state = bench.room.codespar_home();
        let store = SqliteStore::open(&state).await.unwrap();
        let id = SessionId::new();
        let new = NewSession {
            id,
            cwd: bench.work().canonicalize().unwrap(),
            model: "m".to_owned(),
            mode: SessionMode::Normal,
        };
        store.create_session(new).await.unwrap();
        let said = |n: u64| EntryBody::User {
            message: Message::user(format!("entry number {n} of a long conversation")),
            synthetic: false,
        };
        for first in (1..=10_000u64).step_by(1_000) {
            let entries = (first..first + 1_000).map(said).collect();
            store.append(id, first - 1, entries).await.unwrap();
        }
        id.to_string()
    })
}

/// Where packages of npm are, and where pictures of the pages go.
pub(crate) fn screenshots() -> (PathBuf, PathBuf) {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let shots = target.join("page-screenshots");
    (target, shots)
}

#[test]
#[ignore = "needs node, playwright-core and Chromium"]
fn the_page_works_in_a_browser() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (target, shots) = screenshots();
    fs::create_dir_all(&shots).unwrap();
    let bench = bench();
    let mut served = serve_at(&bench, "127.0.0.1:0", &[]);
    let address = served.base.clone();
    let (secret, reader) = (token(&bench, "admin"), token(&bench, "read"));
    let asking = agent_task(&bench);
    let long = long_session(&bench);
    let mut node = spawn(
        Command::new("node")
            .arg(folder.join("tests/server/pages.mjs"))
            .env("BASE", &address)
            .env("TOKEN", &secret)
            .env("READER", &reader)
            .env("ASKING", &asking)
            .env("LONG", &long)
            .env("PACKAGES", &target)
            .env("SHOTS", &shots),
    )
    .unwrap();
    let restart = node.wait_for_output("restart the server", BROWSER_TIME);
    assert!(
        restart.is_ok(),
        "{}{}",
        node.stdout_so_far(),
        node.stderr_so_far()
    );
    served.running.kill_9().unwrap();
    let listen = address.trim_start_matches("http://").to_owned();
    served = serve_at(&bench, &listen, &[]);
    let done = node.wait(BROWSER_TIME).unwrap();
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("all done"), "{}", done.stdout);
    served.running.terminate().unwrap();
    served.running.wait(PATIENCE).unwrap();
}
