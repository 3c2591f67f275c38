//! The end of a server, in good order and otherwise.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::{
    client::{Api, serve, serve_at, token},
    common::{Bench, PATIENCE, parsed, wait_for},
    repository::{FIX, answer, greeting, script},
};

fn create_task(bench: &Bench, command: &str) -> String {
    let args = [
        "task",
        "create",
        "--type",
        "local_bash",
        "--subject",
        command,
    ];
    let made = bench.run(&[&args[..], &["--command", command, "--json"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    parsed(&made.stdout)["task_id"].as_str().unwrap().to_owned()
}

/// Ids of the tasks that events told of, in order, each once.
fn told(events: &[crate::client::HeardEvent]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for event in events.iter().filter(|event| event.name == "task") {
        let id = event.data["task"]["task_id"].as_str().unwrap().to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

#[test]
fn a_client_misses_nothing_when_the_server_is_killed() {
    let bench = Bench::new(Script::new());
    let secret = token(&bench, "read");
    let served = serve(&bench, &["--no-worker"]);
    let address = served.base.strip_prefix("http://").unwrap().to_owned();
    let api = Api::new(&served.base, &secret);
    let heard = api.follow(None);
    heard.wait_for("ready", |event| event.name == "ready");
    let mut made = vec![create_task(&bench, "true 1"), create_task(&bench, "true 2")];
    heard.wait_for("the second task", |event| {
        event.data["task"]["task_id"] == made[1].as_str()
    });
    served.running.kill_9().unwrap();
    heard.wait_for_end();
    let before = heard.all();
    // While nobody serves.
    made.push(create_task(&bench, "true 3"));
    let _served = serve_at(&bench, &address, &["--no-worker"]);
    made.push(create_task(&bench, "true 4"));

    let after = api.follow(heard.place());

    after.wait_for("the fourth task", |event| {
        event.data["task"]["task_id"] == made[3].as_str()
    });
    assert!(!after.all().iter().any(|event| event.name == "resync"));
    let mut events = before;
    events.extend(after.all());
    assert_eq!(told(&events), made);
    let places: Vec<u64> = events
        .iter()
        .filter(|event| event.name == "task")
        .filter_map(|event| event.id)
        .collect();
    assert!(
        places.is_sorted_by(|a, b| a < b),
        "nothing twice: {places:?}"
    );
}

#[test]
fn a_terminated_server_tells_its_clients_hands_tasks_over_and_exits_with_zero() {
    let slow = Conversation::new("agent", Matcher::first_user_contains("work for long"))
        .turn(Turn::text("done").latency(std::time::Duration::from_secs(600)));
    let bench = Bench::new(Script::new().conversation(slow));
    let secret = token(&bench, "write");
    let served = serve(&bench, &[]);
    let api = Api::new(&served.base, &secret);
    let made = bench.run(&[
        "task",
        "create",
        "--type",
        "local_agent",
        "--subject",
        "slow",
        "--prompt",
        "work for long",
        "--json",
    ]);
    let id = parsed(&made.stdout)["task_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/tasks/{id}");
    wait_for("the agent runs", || api.get(&path).1["status"] == "running");
    wait_for("its model is asked", || !bench.server.requests().is_empty());
    let (_, health) = api.get("/api/v1/workers");
    assert_eq!(health["runs_tasks"], true, "{health}");
    let heard = api.follow(None);
    heard.wait_for("ready", |event| event.name == "ready");

    served.running.terminate().unwrap();

    heard.wait_for("the end", |event| event.name == "restart");
    heard.wait_for_end();
    let ended = served.running.wait(PATIENCE).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let task = parsed(&bench.run(&["task", "get", &id, "--json"]).stdout);
    assert_eq!(task["status"], "pending", "handed over, not failed: {task}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let slow = Conversation::new("agent", Matcher::first_user_contains("work for long"))
        .turn(Turn::text("done").latency(std::time::Duration::from_secs(600)));
    let bench = Bench::new(Script::new().conversation(slow));
    let served = serve(&bench, &[]);
    bench.run(&[
        "task",
        "create",
        "--type",
        "local_agent",
        "--subject",
        "slow",
        "--prompt",
        "work for long",
    ]);
    wait_for("its model is asked", || !bench.server.requests().is_empty());
    served.running.terminate().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    served.running.terminate().unwrap();
    let ended = served.running.wait(PATIENCE).unwrap();
    // Where the hand-over was faster than the second signal, it ended in good order.
    assert!(matches!(ended.status.code(), Some(143 | 0)), "{ended:?}");
}

#[test]
fn a_server_without_worker_leaves_tasks_to_others() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let secret = token(&bench, "write");
    let served = serve(&bench, &["--no-worker"]);
    let api = Api::new(&served.base, &secret);
    let body = json!({"instruction": "make it say hi"});
    let (status, task) = api.post("/api/v1/tasks", &body);
    assert_eq!(status, 201, "{task}");
    let id = task["task_id"].as_str().unwrap().to_owned();
    let (_, health) = api.get("/api/v1/workers");
    assert_eq!(health["runs_tasks"], false);
    assert_eq!(health["queue"]["ready"], 1, "{health}");
    let worker = bench.run(&["worker", "--until-idle"]);
    assert_eq!(worker.status.code(), Some(0), "{}", worker.stderr);
    assert_eq!(api.ended(&id)["status"], "completed");
    let (_, gone) = api.get("/api/v1/tasks/w-00000000");
    assert_eq!(gone["error"]["code"], Value::from("not_found"));
}
