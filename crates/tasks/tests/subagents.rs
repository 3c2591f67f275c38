//! The `Task` tool: agents that an agent starts, waits for, is told of and continues.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use codespar_protocol::{TaskNotification, TaskRecord, TaskStatus};
use codespar_testkit::{AfterLast, Conversation, Gate, Matcher, Script, Turn};
use common::{Bench, run, texts};
use serde_json::{Value, json};

fn child(prompt: &str) -> Conversation {
    Conversation::new(prompt, Matcher::first_user_contains(prompt))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What the tool answers when a subagent has completed.
fn completed(record: &TaskRecord, result: &str) -> Value {
    json!({
        "success": true,
        "result": result,
        "agentId": record.task_id,
        "outputFile": record.output_file,
        "totalTokens": record.usage.total_tokens(),
        "costUsd": record.cost_usd,
        "durationMs": record.metadata["duration_ms"],
        "toolUses": record.metadata["tool_uses"],
    })
}

#[tokio::test]
async fn the_result_of_a_foreground_subagent_is_the_tool_result_and_no_notification() {
    let call = json!({"description": "look", "prompt": "child looks"});
    let script = Script::new()
        .turn(Turn::tool("Task", &call))
        .turn(Turn::text("done"))
        .conversation(
            child("child looks")
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": "echo seen > seen.txt"}),
                ))
                .turn(Turn::text("I looked.")),
        );
    let bench = Bench::new(script).await;
    assert_eq!(run(&mut bench.parent().await, "go").await, "done");
    let tasks = bench.tasks().await;
    let [task] = &tasks[..] else {
        panic!("{tasks:?}");
    };
    assert_eq!(task.status, TaskStatus::Completed);
    assert_eq!(task.metadata["tool_uses"], json!(1));
    assert!(task.usage.total_tokens() > 0);
    let results = bench.server.last_request().unwrap().newest_tool_results();
    assert_eq!(results.len(), 1);
    assert!(!results[0].is_error);
    assert_eq!(parsed(&results[0].text), completed(task, "I looked."));
    let seen = std::fs::read_to_string(bench.root.join("seen.txt")).unwrap();
    assert_eq!(seen, "seen\n");
    assert_eq!(bench.delivered().await, Vec::<String>::new());
    assert_eq!(bench.undelivered().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_end_of_a_background_subagent_is_told_once_also_after_a_second_run() {
    let gate = Gate::closed();
    let call = json!({"description": "look", "prompt": "child looks", "run_in_background": true});
    let script = Script::new()
        .turn(Turn::tool("Task", &call))
        .turn(Turn::text("waiting"))
        .turn(Turn::text("told"))
        .turn(Turn::text("nothing new"))
        .conversation(child("child looks").turn(Turn::text("I looked.").held_by(&gate)));
    let bench = Bench::new(script).await;
    let mut parent = bench.parent().await;
    let open = async {
        // Two of the parent and one of the child: the parent has got its tool result.
        bench.server.wait_for_requests(3).await.unwrap();
        gate.open();
    };
    let (text, ()) = tokio::join!(run(&mut parent, "go"), open);
    assert_eq!(text, "told");
    drop(parent);

    let tasks = bench.tasks().await;
    let [task] = &tasks[..] else {
        panic!("{tasks:?}");
    };
    let launched = &bench.requests_of("go")[1].newest_tool_results()[0].text;
    let expected = json!({
        "success": true,
        "agentId": task.task_id,
        "outputFile": task.output_file,
        "status": "running in the background; a notification comes at its end. Do not poll or wait \
                   for it: with nothing else to do, end your turn",
    });
    assert_eq!(parsed(launched), expected);
    let notice = TaskNotification {
        task_id: task.task_id.clone(),
        status: TaskStatus::Completed,
        summary: "Agent \"look\" completed".into(),
        reason: None,
        result: Some("I looked.".into()),
        usage: Some((
            task.usage.total_tokens(),
            0,
            task.metadata["duration_ms"].as_u64().unwrap(),
        )),
    };
    assert_eq!(bench.delivered().await, [notice.to_xml()]);

    let text = run(&mut bench.parent().await, "anything else?").await;
    assert_eq!(text, "nothing new");
    assert_eq!(bench.delivered().await, [notice.to_xml()]);
    let last = bench.server.last_request().unwrap();
    let told = texts(&last).concat();
    assert_eq!(told.matches("<task-notification>").count(), 1, "{told}");
}

#[tokio::test]
async fn an_agent_at_the_limit_of_depth_is_refused_another_and_told_why() {
    let call = |level: u32| {
        let prompt = format!("you are at level {level}");
        Turn::tool("Task", &json!({"description": "deeper", "prompt": prompt}))
    };
    let level = |level: u32| {
        child(&format!("you are at level {level}"))
            .turn(call(level + 1))
            .turn(Turn::text(format!("level {level} is done")))
    };
    let script = Script::new()
        .turn(call(1))
        .turn(Turn::text("done"))
        .conversation(level(1))
        .conversation(level(2))
        .conversation(level(3));
    let bench = Bench::new(script).await;
    assert_eq!(run(&mut bench.parent().await, "go").await, "done");
    let depths: Vec<(u32, TaskStatus)> = bench
        .tasks()
        .await
        .iter()
        .map(|task| (task.agent().unwrap().depth, task.status))
        .collect();
    let completed = TaskStatus::Completed;
    assert_eq!(depths, [(1, completed), (2, completed), (3, completed)]);
    let deepest = bench.requests_of("you are at level 3");
    let results = deepest[1].newest_tool_results();
    let expected =
        "agents may start agents 3 deep; this one is at the limit. Do the work yourself.";
    let seen: Vec<(&str, bool)> = results
        .iter()
        .map(|result| (result.text.as_str(), result.is_error))
        .collect();
    assert_eq!(seen, [(expected, true)]);
}

#[tokio::test]
async fn a_subagent_is_continued_by_its_name_with_its_conversation() {
    let start = json!({"description": "keep", "prompt": "remember plum", "name": "memory"});
    let resume = json!({"description": "ask", "prompt": "which word?", "resume": "memory"});
    let script = Script::new()
        .turn(Turn::tool("Task", &start))
        .turn(Turn::tool("Task", &resume))
        .turn(Turn::text("done"))
        .conversation(
            child("remember plum")
                .turn(Turn::text("I will."))
                .turn(Turn::text("It was plum.")),
        );
    let bench = Bench::new(script).await;
    assert_eq!(run(&mut bench.parent().await, "go").await, "done");
    let tasks = bench.tasks().await;
    let [task] = &tasks[..] else {
        panic!("{tasks:?}");
    };
    assert_eq!((task.status, task.attempt), (TaskStatus::Completed, 2));
    let results = bench.server.last_request().unwrap().tool_results();
    assert_eq!(parsed(&results[0].text)["result"], "I will.");
    assert_eq!(parsed(&results[1].text), completed(task, "It was plum."));
    let requests = bench.requests_of("remember plum");
    let expected = [
        "remember plum",
        "I will.",
        "[Message from the coordinator]\nwhich word?",
    ];
    assert_eq!(texts(requests.last().unwrap()), expected);
    assert_eq!(bench.undelivered().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_subagent_that_fails_is_a_failed_tool_call_with_its_error() {
    let call = json!({"description": "look", "prompt": "child looks"});
    let script = Script::new()
        .turn(Turn::tool("Task", &call))
        .turn(Turn::text("{{last_tool_result}}"))
        .after_last(AfterLast::Error)
        // Without turns every request of the child is refused.
        .conversation(child("child looks"));
    let bench = Bench::new(script).await;
    let answer = run(&mut bench.parent().await, "go").await;
    let tasks = bench.tasks().await;
    assert_eq!(tasks[0].status, TaskStatus::Failed);
    let error = tasks[0].error.clone().unwrap();
    assert!(error.contains("turn 1 was asked for"), "{error}");
    let answer = parsed(&answer);
    assert_eq!(
        (&answer["success"], &answer["error"]),
        (&json!(false), &json!(error))
    );
    let results = bench.server.last_request().unwrap().newest_tool_results();
    assert!(results[0].is_error);
}
