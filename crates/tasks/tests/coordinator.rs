//! The coordinator: an agent that does nothing itself and directs workers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use codespar_protocol::{TaskNotification, TaskRecord, TaskStatus};
use codespar_testkit::{Conversation, Gate, Matcher, Script, Turn};
use common::{Bench, run, texts, within};
use serde_json::{Value, json};

fn worker(prompt: &str) -> Conversation {
    Conversation::new(prompt, Matcher::first_user_contains(prompt))
}

fn start(name: &str, prompt: &str) -> Value {
    json!({"description": name, "prompt": prompt, "name": name})
}

/// The notification of the end of a worker that used no tools, in its first attempt.
fn notice(record: &TaskRecord, summary: &str, result: Option<&str>) -> String {
    let tokens = record.usage.total_tokens();
    let notice = TaskNotification {
        task_id: record.task_id.clone(),
        status: record.status,
        summary: summary.to_owned(),
        reason: (record.status == TaskStatus::Killed).then(|| record.error.clone().unwrap()),
        result: result.map(str::to_owned),
        usage: Some((tokens, 0, record.metadata["duration_ms"].as_u64().unwrap())),
    };
    notice.to_xml()
}

/// Notifications that were delivered together are one text; here each is its own.
async fn notices(bench: &Bench) -> Vec<String> {
    let end = "</task-notification>";
    let all = bench.delivered().await.join("\n");
    let pieces = all.split_inclusive(end);
    pieces.map(|piece| piece.trim_start().to_owned()).collect()
}

#[tokio::test]
async fn a_coordinator_has_no_tool_to_do_work_itself() {
    let calls = Turn::new()
        .and_tool("Bash", &json!({"command": "touch made"}))
        .and_tool("Read", &json!({"file_path": "notes.txt"}))
        .and_tool(
            "Edit",
            &json!({"file_path": "notes.txt", "old_string": "a", "new_string": "b"}),
        );
    let bench = Bench::new(Script::of([calls, Turn::text("I cannot.")])).await;
    std::fs::write(bench.root.join("notes.txt"), "a").unwrap();
    let text = run(&mut bench.coordinator().await, "go").await;
    assert_eq!(text, "I cannot.");
    let request = bench.server.last_request().unwrap();
    let tools = [
        "Agent",
        "SendMessage",
        "TaskStop",
        "TeamCreate",
        "TeamDelete",
    ];
    assert_eq!(request.tool_names(), tools);
    let results = request.newest_tool_results();
    for (result, name) in results.iter().zip(["Bash", "Read", "Edit"]) {
        let expected = format!("there is no tool `{name}` here");
        assert!(
            result.is_error && result.text.starts_with(&expected),
            "{result:?}"
        );
    }
    assert_eq!(results.len(), 3);
    assert!(!bench.root.join("made").exists());
    let notes = std::fs::read_to_string(bench.root.join("notes.txt")).unwrap();
    assert_eq!(notes, "a");
}

#[tokio::test]
async fn two_workers_of_one_message_run_at_the_same_time_and_each_end_is_told_once() {
    let (first, second) = (Gate::closed(), Gate::closed());
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Agent", &start("parser", "research the parser"))
                .and_tool("Agent", &start("tests", "research the tests")),
        )
        .turn(Turn::text("both are at work"))
        .turn(Turn::text("one is done"))
        .turn(Turn::text("both are done"))
        .turn(Turn::text("nothing new"))
        .conversation(
            worker("research the parser").turn(Turn::text("parser found").held_by(&first)),
        )
        .conversation(
            worker("research the tests").turn(Turn::text("tests found").held_by(&second)),
        );
    let bench = Bench::new(script).await;
    let mut coordinator = bench.coordinator().await;
    let watch = async {
        // Two of the coordinator and one of each worker, none of which has an answer yet.
        bench.server.wait_for_requests(4).await.unwrap();
        let running = [TaskStatus::Running; 2];
        let statuses = bench.tasks().await.into_iter().map(|task| task.status);
        assert_eq!(statuses.collect::<Vec<_>>(), running);
        first.open();
        // The third of the coordinator, with the first notification.
        bench.server.wait_for_requests(5).await.unwrap();
        second.open();
    };
    let (text, ()) = tokio::join!(run(&mut coordinator, "improve it"), watch);
    assert_eq!(text, "both are done");
    drop(coordinator);

    let tasks = bench.tasks().await;
    let find = |name: &str| {
        let mut tasks = tasks.iter();
        tasks.find(|task| task.agent_name() == Some(name)).unwrap()
    };
    let (parser, tests) = (find("parser"), find("tests"));
    assert_eq!(tasks.len(), 2);
    let expected = [
        notice(parser, "Agent \"parser\" completed", Some("parser found")),
        notice(tests, "Agent \"tests\" completed", Some("tests found")),
    ];
    assert_eq!(notices(&bench).await, expected);
    assert_eq!(parser.agent().unwrap().subagent_type, "worker");

    let text = run(&mut bench.coordinator().await, "what now?").await;
    assert_eq!(text, "nothing new");
    assert_eq!(notices(&bench).await, expected);
}

#[tokio::test]
async fn a_message_to_an_ended_worker_continues_it_with_its_conversation() {
    let (first, second) = (Gate::closed(), Gate::closed());
    let message = json!({"to": "memory", "message": "which word?"});
    let script = Script::new()
        .turn(Turn::tool("Agent", &start("memory", "remember plum")))
        .turn(Turn::text("started"))
        .turn(Turn::tool("SendMessage", &message))
        .turn(Turn::text("asked"))
        .turn(Turn::text("It was plum."))
        .conversation(
            worker("remember plum")
                .turn(Turn::text("I will.").held_by(&first))
                .turn(Turn::text("plum").held_by(&second)),
        );
    let bench = Bench::new(script).await;
    let mut coordinator = bench.coordinator().await;
    let watch = async {
        // Two of the coordinator, one of the worker.
        bench.server.wait_for_requests(3).await.unwrap();
        first.open();
        // Two more of the coordinator, one more of the worker.
        bench.server.wait_for_requests(6).await.unwrap();
        second.open();
    };
    let (text, ()) = tokio::join!(run(&mut coordinator, "go"), watch);
    assert_eq!(text, "It was plum.");

    let tasks = bench.tasks().await;
    let [task] = &tasks[..] else {
        panic!("{tasks:?}");
    };
    assert_eq!((task.status, task.attempt), (TaskStatus::Completed, 2));
    let sent = &bench.requests_of("go")[3].newest_tool_results()[0].text;
    let expected = format!("sent to {} (attempt 2, pending)", task.task_id);
    assert_eq!(*sent, expected);
    let requests = bench.requests_of("remember plum");
    let expected = [
        "remember plum",
        "I will.",
        "[Message from the coordinator]\nwhich word?",
    ];
    assert_eq!(requests.len(), 2);
    assert_eq!(texts(&requests[1]), expected);
    let told = notices(&bench).await;
    let results: Vec<bool> = ["<result>I will.</result>", "<result>plum</result>"]
        .iter()
        .zip(&told)
        .map(|(result, notice)| notice.contains(result))
        .collect();
    assert_eq!((told.len(), results), (2, vec![true, true]), "{told:?}");
}

#[tokio::test]
async fn a_worker_that_the_coordinator_stops_is_killed_with_the_reason_on_record() {
    let (working, never) = (Gate::closed(), Gate::closed());
    let stop = json!({"task_id": "slow", "reason": "not needed now"});
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Agent", &start("slow", "do a slow thing"))
                .and_tool("Agent", &start("other", "do another thing")),
        )
        .turn(Turn::tool("TaskStop", &stop).held_by(&working))
        .turn(Turn::text("stopped one"))
        .turn(Turn::text("the other is done"))
        .conversation(worker("do a slow thing").turn(Turn::text("late").held_by(&never)))
        .conversation(worker("do another thing").turn(Turn::text("done").held_by(&never)));
    let bench = Bench::new(script).await;
    let mut coordinator = bench.coordinator().await;
    let watch = async {
        // Two of the coordinator, one of each worker.
        bench.server.wait_for_requests(4).await.unwrap();
        working.open();
        // The third of the coordinator comes when the stop is done.
        bench.server.wait_for_requests(5).await.unwrap();
        let dropped = bench.server.wait_for_dropped(1);
        within("the end of the worker's request", dropped)
            .await
            .unwrap();
        never.open();
    };
    let (text, ()) = tokio::join!(run(&mut coordinator, "go"), watch);
    assert_eq!(text, "the other is done");

    let tasks = bench.tasks().await;
    let find = |name: &str| {
        let mut tasks = tasks.iter();
        tasks.find(|task| task.agent_name() == Some(name)).unwrap()
    };
    let (slow, other) = (find("slow"), find("other"));
    let ending = (slow.status, slow.error.as_deref());
    assert_eq!(
        ending,
        (
            TaskStatus::Killed,
            Some("stopped by the coordinator: not needed now")
        )
    );
    assert_eq!(other.status, TaskStatus::Completed);
    let results = bench.requests_of("go")[2].newest_tool_results();
    let expected = format!("{} killed local_agent slow", slow.task_id);
    assert_eq!((results.len(), &results[0].text), (1, &expected));
    let expected = [
        notice(slow, "Agent \"slow\" was stopped", None),
        notice(other, "Agent \"other\" completed", Some("done")),
    ];
    assert_eq!(notices(&bench).await, expected);
    assert_eq!(bench.server.dropped(), 1);
}
