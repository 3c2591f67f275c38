//! Questions of agents: on record, answered once from any process, and there after a crash.

use std::{path::Path, time::Duration};

use codespar_testkit::{Conversation, Matcher, Script, Turn, mcp::program, process::Running};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, ended, parsed, question, task, wait_for};

const CREATE: [&str; 8] = [
    "task",
    "create",
    "--json",
    "--type",
    "remote_agent",
    "--subject",
    "s",
    "--prompt",
];

fn writer() -> Script {
    let write = |name: &str| Turn::tool("Write", &json!({"file_path": name, "content": "x"}));
    Script::new().conversation(
        Conversation::new("child", Matcher::first_user_contains("child works"))
            .turn(write("a.txt"))
            .turn(write("b.txt"))
            .turn(Turn::text("{{last_tool_result}}")),
    )
}

fn worker(bench: &Bench) -> Running {
    let worker = bench.start(&["worker"]);
    wait_for("the worker", || {
        worker.stderr_so_far().contains("taking tasks")
    });
    worker
}

fn create(bench: &Bench) -> String {
    let made = bench.run(&[&CREATE[..], &["child works"]].concat());
    let record = parsed(&made.stdout);
    record["task_id"].as_str().unwrap().to_owned()
}

fn answer(bench: &Bench, question: &Value, answer_args: &[&str]) -> Value {
    let id = question["id"].as_str().unwrap();
    let args = [&["task", "answer", "--json", id], answer_args].concat();
    let answered = bench.run(&args);
    assert!(answered.status.success(), "{}", answered.stderr);
    parsed(&answered.stdout)
}

#[test]
fn a_background_agent_waits_for_an_answer_from_another_process() {
    let bench = Bench::new(writer());
    let worker = worker(&bench);
    let id = create(&bench);
    let first = question(&bench);
    assert_eq!(first["kind"], "permission");
    assert_eq!(first["tool"], "Write");
    assert_eq!(first["task_id"], id.as_str());
    assert_eq!(first["input"]["file_path"], "a.txt");
    assert_eq!(first["status"], "open");
    let shown = bench.run(&["task", "questions"]).stdout;
    assert!(shown.contains(first["id"].as_str().unwrap()), "{shown}");
    assert!(shown.contains("Write: "), "{shown}");

    // What does not answer it changes nothing.
    let asked = first["id"].as_str().unwrap();
    let unclear = bench.run(&["task", "answer", asked, "maybe"]);
    assert_eq!(unclear.status.code(), Some(2));
    assert!(unclear.stderr.contains("y, a or n"), "{}", unclear.stderr);
    let nobody = bench.run(&["task", "answer", "q-00000000", "yes"]);
    assert!(nobody.stderr.contains("there is no question q-00000000"));

    let answered = answer(&bench, &first, &["yes"]);
    assert_eq!(answered["status"], "answered");
    assert_eq!(answered["answer"], json!({"answer": "once"}));
    let again = bench.run(&["task", "answer", asked, "no"]);
    assert_eq!(again.status.code(), Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("is answered"), "{}", again.stderr);

    let second = question(&bench);
    assert_ne!(second["id"], first["id"]);
    assert!(bench.work().join("a.txt").exists());
    // By a unique prefix.
    let prefix = &second["id"].as_str().unwrap()[..6];
    let refused = bench.run(&["task", "answer", prefix, "no", "use", "c.txt"]);
    assert!(refused.status.success(), "{}", refused.stderr);
    let record = ended(&bench, &id);
    assert_eq!(record["status"], "completed", "{record:#}");
    let result = record["metadata"]["result"].as_str().unwrap();
    assert!(result.contains("the user says: use c.txt"), "{result}");
    assert!(!bench.work().join("b.txt").exists());
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();
}

#[test]
fn whoever_watches_a_task_is_shown_its_questions_once() {
    let bench = Bench::new(writer());
    let worker = worker(&bench);
    let id = create(&bench);
    let watching = bench.start(&["task", "watch", &id]);
    for _ in ["a.txt", "b.txt"] {
        let asked = question(&bench);
        let hint = format!("codespar task answer {}", asked["id"].as_str().unwrap());
        wait_for("the hint", || watching.stderr_so_far().contains(&hint));
        answer(&bench, &asked, &["yes"]);
    }
    let watched = watching.wait(PATIENCE).unwrap();
    assert_eq!(watched.status.code(), Some(0), "{}", watched.stderr);
    let hints = watched.stderr.matches("codespar task answer q-").count();
    assert_eq!(hints, 2, "{}", watched.stderr);
    drop(worker);
}

#[test]
fn always_saves_the_rule_and_asks_no_more() {
    let write = |text: &str| Turn::tool("Write", &json!({"file_path": "a.txt", "content": text}));
    let bench = Bench::new(
        Script::new().conversation(
            Conversation::new("child", Matcher::first_user_contains("child works"))
                .turn(write("one"))
                .turn(write("two"))
                .turn(Turn::text("done")),
        ),
    );
    let worker = worker(&bench);
    let id = create(&bench);
    answer(&bench, &question(&bench), &["always"]);
    let record = ended(&bench, &id);
    assert_eq!(record["status"], "completed", "{record:#}");
    let written = std::fs::read_to_string(bench.work().join("a.txt")).unwrap();
    assert_eq!(written, "two");
    let saved = bench.work().join(".codespar/settings.local.json");
    let saved = std::fs::read_to_string(saved).unwrap();
    assert!(saved.contains("Edit("), "{saved}");
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();
}

#[test]
fn a_question_outlives_its_process_and_is_asked_once() {
    for answered_while_gone in [false, true] {
        let bench = Bench::new(writer());
        let first = worker(&bench);
        let id = create(&bench);
        let asked = question(&bench);
        first.kill_9().unwrap();
        let left = bench.room.wait_until_empty(PATIENCE).unwrap();
        assert_eq!(left, Vec::<u32>::new(), "orphans");
        assert_eq!(question(&bench), asked, "it waits");
        let next = (!answered_while_gone).then(|| {
            let next = worker(&bench);
            wait_for("the next attempt", || task(&bench, &id)["attempt"] == 1);
            wait_for("a runner", || task(&bench, &id)["status"] == "running");
            // Long enough to have asked a second time.
            std::thread::sleep(Duration::from_secs(1));
            assert_eq!(question(&bench)["id"], asked["id"]);
            next
        });
        // Without a worker, this starts one.
        answer(&bench, &asked, &["yes"]);
        let second = question(&bench);
        assert_ne!(second["id"], asked["id"]);
        assert!(bench.work().join("a.txt").exists());
        answer(&bench, &second, &["yes"]);
        let record = ended(&bench, &id);
        assert_eq!(record["status"], "completed", "{record:#}");
        assert_eq!(bench.server.request_count(), 3, "no turn is paid twice");
        if let Some(next) = next {
            next.terminate().unwrap();
            next.wait(PATIENCE).unwrap();
        }
        let left = bench.room.wait_until_empty(PATIENCE).unwrap();
        assert_eq!(left, Vec::<u32>::new());
    }
}

#[test]
fn without_an_answer_in_time_it_counts_as_no_and_a_stop_withdraws_it() {
    let bench = Bench::new(writer());
    let settings = bench.room.codespar_home().join("settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, r#"{"questionTimeoutSeconds": 1}"#).unwrap();
    let worker = worker(&bench);
    let id = create(&bench);
    let record = ended(&bench, &id);
    let result = record["metadata"]["result"].as_str().unwrap();
    assert!(result.contains("nobody answered within 1 s"), "{result}");
    assert!(!bench.work().join("a.txt").exists());
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();

    let bench = Bench::new(writer());
    let worker = self::worker(&bench);
    let id = create(&bench);
    let asked = question(&bench);
    let stopped = bench.run(&["task", "stop", &id]);
    assert!(stopped.status.success(), "{}", stopped.stderr);
    let listed = bench.run(&["task", "questions"]).stdout;
    assert_eq!(listed, "no questions\n");
    let late = bench.run(&["task", "answer", asked["id"].as_str().unwrap(), "yes"]);
    assert!(late.stderr.contains("is withdrawn"), "{}", late.stderr);
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();
}

fn with_server(bench: &Bench, timeout_ms: u64) {
    let server = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let settings = bench.room.codespar_home().join("settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let text = json!({
        "mcpServers": {"kit": {"command": server}},
        "mcpTimeoutMs": timeout_ms,
        "permissions": {"allow": ["mcp__kit"]},
    });
    std::fs::write(settings, text.to_string()).unwrap();
}

#[test]
fn a_server_asks_a_person_through_the_same_questions() {
    let bench = Bench::new(
        Script::new().conversation(
            Conversation::new("child", Matcher::first_user_contains("child works"))
                .turn(Turn::tool("mcp__kit__ask", &json!({})))
                .turn(Turn::text("{{last_tool_result}}")),
        ),
    );
    // The user takes longer than a call may.
    with_server(&bench, 300);
    let worker = worker(&bench);
    let id = create(&bench);
    let asked = question(&bench);
    assert_eq!(asked["kind"], "elicitation");
    assert_eq!(asked["server"], "kit");
    assert_eq!(asked["message"], "Which colour?");
    std::thread::sleep(Duration::from_secs(1));
    let text = asked["id"].as_str().unwrap();
    let wrong = bench.run(&["task", "answer", text, "green"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("one of \"red\", \"blue\""),
        "{}",
        wrong.stderr
    );
    answer(&bench, &asked, &["blue"]);
    let record = ended(&bench, &id);
    let result = record["metadata"]["result"].as_str().unwrap();
    let result = parsed(result);
    assert_eq!(
        result,
        json!({"action": "accept", "content": {"colour": "blue"}})
    );
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();
}

#[test]
fn a_server_is_told_that_nobody_can_be_asked_in_a_headless_run() {
    let bench = Bench::new(Script::of([
        Turn::tool("mcp__kit__ask", &json!({})),
        Turn::text("{{last_tool_result}}"),
    ]));
    with_server(&bench, 60_000);
    let finished = bench.run(&["-p", "go"]);
    assert!(finished.status.success(), "{}", finished.stderr);
    assert!(
        finished.stdout.contains("decline"),
        "{} {}",
        finished.stdout,
        finished.stderr
    );
}
