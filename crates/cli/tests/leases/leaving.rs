//! A worker that is told to end: agents go back as they were, and others go on with them.

use std::time::{Duration, Instant};

use codespar_testkit::{Conversation, Matcher, Script, Turn, process::Running};
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, ended, parsed, task},
    faults, world,
};

fn agent(bench: &Bench, kind: &str) -> String {
    let kind = format!("subagent_type={kind}");
    let args = [
        "task",
        "create",
        "--json",
        "--type",
        "local_agent",
        "--subject",
        "a",
        "--prompt",
    ];
    let made = bench.run(&[&args[..], &["child works", "--metadata", &kind]].concat());
    let made = parsed(&made.stdout);
    made["task_id"].as_str().unwrap().to_owned()
}

fn child() -> Conversation {
    Conversation::new("child", Matcher::first_user_contains("child works"))
}

/// A process that takes tasks.
fn worker(bench: &Bench) -> Running {
    world::allow_commands(bench);
    let worker = bench.start(&["worker"]);
    let began = Instant::now();
    while !bench.room.codespar_home().join("codespar.db").exists() || faults::runners(bench) == 0 {
        assert!(began.elapsed() < PATIENCE, "{}", worker.stderr_so_far());
        std::thread::sleep(Duration::from_millis(20));
    }
    worker
}

fn wait_for(bench: &Bench, file: &str) {
    let began = Instant::now();
    while !bench.work().join(file).exists() {
        assert!(began.elapsed() < PATIENCE, "no {file}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_worker_told_to_end_lets_a_short_step_finish_and_appends_nothing() {
    let script = Script::new().conversation(
        child()
            .turn(Turn::tool(
                "Bash",
                &json!({"command": "touch begun; sleep 2; echo step >> ran.txt"}),
            ))
            .turn(Turn::text("done")),
    );
    let bench = Bench::new(script);
    let running = worker(&bench);
    let id = agent(&bench, "general-purpose");
    wait_for(&bench, "begun");
    running.terminate().unwrap();
    assert_eq!(running.wait(PATIENCE).unwrap().status.code(), Some(143));
    assert_eq!(
        std::fs::read_to_string(bench.work().join("ran.txt")).unwrap(),
        "step\n"
    );
    assert_eq!(task(&bench, &id)["status"], "pending");
    assert_eq!(bench.server.request_count(), 1, "nothing more was asked");
    assert_eq!(faults::entries_with(&bench, "nterrupted"), 0);

    let worker = bench.start(&["worker", "--until-idle"]);
    worker.wait(PATIENCE).unwrap();
    let record = task(&bench, &id);
    assert_eq!(record["metadata"]["result"], "done", "{record:#}");
    assert_eq!(
        std::fs::read_to_string(bench.work().join("ran.txt")).unwrap(),
        "step\n"
    );
}

#[test]
fn a_worker_told_to_end_breaks_off_a_long_step_and_appends_nothing() {
    let script = Script::new().conversation(
        child()
            .turn(Turn::tool(
                "Bash",
                &json!({"command": "touch begun; sleep 600"}),
            ))
            .turn(Turn::text("{{last_tool_result}}")),
    );
    let bench = Bench::new(script);
    let running = worker(&bench);
    let id = agent(&bench, "general-purpose");
    wait_for(&bench, "begun");
    running.terminate().unwrap();
    running.wait(PATIENCE).unwrap();
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
    assert_eq!(task(&bench, &id)["status"], "pending");
    assert_eq!(faults::entries_with(&bench, "tool_started"), 1);
    assert_eq!(faults::entries_with(&bench, "tool_result"), 0);
    assert_eq!(faults::entries_with(&bench, "nterrupted"), 0);

    let worker = bench.start(&["worker", "--until-idle"]);
    worker.wait(PATIENCE).unwrap();
    let record = ended(&bench, &id);
    let result = record["metadata"]["result"].as_str().unwrap();
    assert!(result.contains("outcome unknown"), "{result}");
}

/// Kills the process of an agent at every step it makes until the agent fails; gives how often, and
/// the record.
fn killed_at_every_step(kind: &str) -> (u32, Value) {
    let mut conversation = child();
    for step in 0..30 {
        let command = format!("touch begun{step}; sleep 600");
        conversation = conversation.turn(Turn::tool("Bash", &json!({"command": command})));
    }
    let bench = Bench::new(Script::new().conversation(conversation));
    let kinds = bench.room.codespar_home().join("agents");
    std::fs::create_dir_all(&kinds).unwrap();
    let short = "---\nname: short\ndescription: d\nmaxTurns: 3\n---\nWork.\n";
    std::fs::write(kinds.join("short.md"), short).unwrap();
    let mut running = worker(&bench);
    let id = agent(&bench, kind);
    for kills in 0..30 {
        let begun = bench.work().join(format!("begun{kills}"));
        let began = Instant::now();
        loop {
            let record = task(&bench, &id);
            if record["status"] == "failed" {
                running.terminate().unwrap();
                running.wait(PATIENCE).unwrap();
                return (kills, record);
            }
            if begun.exists() {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{record:#}");
        }
        running.kill_9().unwrap();
        running = worker(&bench);
    }
    panic!("it goes on for ever");
}

#[test]
fn turns_count_over_take_overs() {
    let (kills, record) = killed_at_every_step("short");
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("stopped after 3 turns"), "{record:#}");
    assert_eq!(kills, 3);
}

#[test]
fn an_agent_that_loses_every_process_is_given_up_and_says_so() {
    let (kills, record) = killed_at_every_step("general-purpose");
    let error = record["error"].as_str().unwrap();
    assert!(
        error.starts_with("given up: 10 processes in a row"),
        "{record:#}"
    );
    assert_eq!(kills, 11);
}
