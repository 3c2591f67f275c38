//! A process that runs tasks takes up changed settings for those that start later.

use std::path::Path;

use codespar_testkit::{
    CapturedRequest, Conversation, Gate, Matcher, Script, Turn, mcp::program, process::MARK,
};
use serde_json::{Value, json};

use crate::common::{Bench, ended, parsed, wait_for};

/// The conversation of the agent of a task.
fn task(prompt: &str) -> Conversation {
    Conversation::new(prompt, Matcher::first_user_contains(prompt))
}

fn requests_of(bench: &Bench, prompt: &str) -> Vec<CapturedRequest> {
    let mut requests = bench.server.requests();
    requests.retain(|request| request.messages()[0].to_string().contains(prompt));
    requests
}

fn create(bench: &Bench, prompt: &str) -> String {
    let finished = bench.run(&[
        "task",
        "create",
        "--json",
        "--type",
        "local_agent",
        "--subject",
        "s",
        "--prompt",
        prompt,
        "--metadata",
        "subagent_type=plain",
        "--allowedTools",
        "Bash",
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let record = parsed(&finished.stdout);
    record["task_id"].as_str().unwrap().to_owned()
}

/// The model that the agent of a task was asked from, and the servers whose tools it had.
fn used(bench: &Bench, prompt: &str) -> (String, Vec<String>) {
    let requests = requests_of(bench, prompt);
    let last = requests.last().unwrap();
    let names = last.tool_names().into_iter();
    let servers = names.filter_map(|name| name.strip_prefix("mcp__")?.split("__").next());
    let mut servers: Vec<String> = servers.map(str::to_owned).collect();
    servers.sort();
    servers.dedup();
    (last.model().to_owned(), servers)
}

fn server() -> Value {
    let program = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    json!({"command": program, "args": [], "env": {MARK: format!("${{{MARK}}}")}})
}

#[test]
fn a_worker_takes_up_changed_settings_and_servers_for_tasks_that_start_later() {
    let gate = Gate::closed();
    let script = Script::new()
        .conversation(
            task("task one")
                .turn(Turn::tool("Bash", &json!({"command": "true"})).held_by(&gate))
                .turn(Turn::text("one is done")),
        )
        .conversation(task("task two").turn(Turn::text("two is done")))
        .conversation(task("task three").turn(Turn::text("three is done")))
        .conversation(task("task four").turn(Turn::text("four is done")));
    let bench = Bench::new(script);
    let home = bench.room.codespar_home();
    std::fs::create_dir_all(home.join("agents")).unwrap();
    let plain = "---\nname: plain\ndescription: Works\n---\nWork.\n";
    std::fs::write(home.join("agents/plain.md"), plain).unwrap();
    let worker = bench.start(&["worker"]);

    let one = create(&bench, "task one");
    wait_for("the first task is asked", || {
        !requests_of(&bench, "task one").is_empty()
    });
    let settings = json!({
        "model": "opus", "enabledMcpServers": ["shared"], "mcpServers": {"own": server()},
    });
    std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    let two = create(&bench, "task two");
    assert_eq!(ended(&bench, &two)["status"], "completed");
    gate.open();
    assert_eq!(ended(&bench, &one)["status"], "completed");
    let usual = requests_of(&bench, "task one")[0].model().to_owned();
    assert!(usual.contains("sonnet"), "{usual}");
    // What runs keeps what it had.
    assert_eq!(used(&bench, "task one"), (usual, Vec::new()));
    let (opus, servers) = used(&bench, "task two");
    assert!(opus.contains("opus"), "{opus}");
    assert_eq!(servers, ["own"]);

    // Files of a repository grant nothing until they are trusted.
    bench.file(".codespar/settings.json", r#"{"model": "haiku"}"#);
    let shared = json!({"mcpServers": {"shared": server()}}).to_string();
    bench.file(".mcp.json", &shared);
    let three = create(&bench, "task three");
    assert_eq!(ended(&bench, &three)["status"], "completed");
    assert_eq!(used(&bench, "task three"), (opus, servers));
    bench.trust();
    let four = create(&bench, "task four");
    assert_eq!(ended(&bench, &four)["status"], "completed");
    let (haiku, servers) = used(&bench, "task four");
    assert!(haiku.contains("haiku"), "{haiku}");
    assert_eq!(servers, ["own", "shared"]);

    drop(worker);
}

#[test]
fn a_session_takes_up_changed_settings_for_subagents_that_start_later() {
    let call = |prompt: &str| {
        let input = json!({"description": "d", "prompt": prompt, "subagent_type": "plain"});
        Turn::tool("Task", &input)
    };
    let gate = Gate::closed();
    let script = Script::new()
        .turn(call("task one"))
        .turn(call("task two").held_by(&gate))
        .turn(Turn::text("done"))
        .conversation(task("task one").turn(Turn::text("one is done")))
        .conversation(task("task two").turn(Turn::text("two is done")));
    let bench = Bench::new(script);
    let home = bench.room.codespar_home();
    std::fs::create_dir_all(home.join("agents")).unwrap();
    let plain = "---\nname: plain\ndescription: Works\n---\nWork.\n";
    std::fs::write(home.join("agents/plain.md"), plain).unwrap();
    let session = bench.start(&["-p", "go"]);
    wait_for("the first agent is done", || {
        requests_of(&bench, "go").len() == 2
    });
    std::fs::write(home.join("settings.json"), r#"{"model": "opus"}"#).unwrap();
    gate.open();
    let finished = session.wait(crate::common::PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let (one, two) = (used(&bench, "task one").0, used(&bench, "task two").0);
    assert!(
        one.contains("sonnet") && two.contains("opus"),
        "{one} {two}"
    );
    let own = requests_of(&bench, "go");
    assert!(own.iter().all(|request| request.model().contains("sonnet")));
}
