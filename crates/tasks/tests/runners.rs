//! Shell commands and agents as tasks: what they leave on record, and how they end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use codespar_model::Catalogue;
use codespar_protocol::{TaskId, TaskNotification, TaskRecord, TaskStatus, Usage, Usd};
use codespar_store::{ChangeFollower, ChangeKind};
use codespar_tasks::MakeError;
use codespar_testkit::{Script, Turn};
use common::{Bench, MODEL, SECRET, texts, within};
use serde_json::json;
use tokio::sync::mpsc;

/// A named pipe that commands write to.
struct NamedPipe(mpsc::UnboundedReceiver<String>);

impl NamedPipe {
    fn new(path: &Path) -> Self {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        let path = path.to_path_buf();
        // A thread, since opening waits for a writer, and a test that fails must not wait for it.
        std::thread::spawn(move || {
            let lines = BufReader::new(File::open(path).unwrap()).lines();
            for line in lines {
                sender.send(line.unwrap()).unwrap();
            }
        });
        Self(receiver)
    }

    /// The next line; none when no process has the pipe open any more.
    async fn line(&mut self) -> Option<String> {
        within("reading the pipe", self.0.recv()).await
    }
}

fn output_of(record: &TaskRecord) -> String {
    std::fs::read_to_string(record.output_file.as_ref().unwrap()).unwrap()
}

fn text(record: &TaskRecord, key: &str) -> String {
    record.metadata[key].as_str().unwrap().to_owned()
}

fn millis(record: &TaskRecord) -> u64 {
    record.metadata["duration_ms"].as_u64().unwrap()
}

/// The statuses that a task goes through until it is over.
async fn statuses(changes: &mut ChangeFollower, id: &TaskId) -> Vec<TaskStatus> {
    let mut seen = Vec::new();
    loop {
        let change = within("the next change", changes.next()).await.unwrap();
        let ChangeKind::Task { status } = change.kind else {
            continue;
        };
        if change.task_id.as_ref() == Some(id) {
            seen.push(status);
            if status.is_final() {
                return seen;
            }
        }
    }
}

#[tokio::test]
async fn a_shell_task_ends_with_its_exit_code_and_its_output_has_no_secret() {
    let bench = Bench::new(Script::new()).await;
    let command = format!("echo the token is {SECRET}; echo and more >&2");
    let task = bench.shell("say", &command).await;
    let record = bench.ended(&task.task_id).await;
    let ending = (record.status, record.exit_code, record.error.clone());
    assert_eq!(ending, (TaskStatus::Completed, Some(0), None));
    let printed = "the token is [redacted:TOKEN]\nand more";
    assert_eq!(output_of(&record), format!("{printed}\n"));
    assert_eq!(text(&record, "result"), printed);
    let notice = TaskNotification {
        task_id: record.task_id,
        status: TaskStatus::Completed,
        summary: "Command \"say\" completed (exit code 0)".into(),
        reason: None,
        result: Some(printed.into()),
        usage: None,
    };
    assert_eq!(bench.undelivered().await, [notice.to_xml()]);
}

#[tokio::test]
async fn a_non_zero_exit_is_a_failure_whose_notification_has_the_last_whole_lines() {
    let bench = Bench::new(Script::new()).await;
    let command = "for n in $(seq 1 400); do echo line $n; done; exit 3";
    let task = bench.shell("count", command).await;
    let record = bench.ended(&task.task_id).await;
    let ending = (record.status, record.exit_code, record.error.as_deref());
    assert_eq!(ending, (TaskStatus::Failed, Some(3), Some("exit code 3")));
    let lines: Vec<String> = (1..=400).map(|n| format!("line {n}")).collect();
    assert_eq!(output_of(&record), lines.join("\n") + "\n");
    // `line 400` and its line break are 9 bytes: 166 whole lines are within 1,500.
    let notice = TaskNotification {
        task_id: record.task_id,
        status: TaskStatus::Failed,
        summary: "Command \"count\" failed: exit code 3".into(),
        reason: None,
        result: Some(lines[400 - 166..].join("\n")),
        usage: None,
    };
    assert_eq!(bench.undelivered().await, [notice.to_xml()]);
}

#[tokio::test]
async fn a_stopped_shell_task_is_killed_with_the_reason_and_leaves_no_process() {
    let bench = Bench::new(Script::new()).await;
    let mut pipe = NamedPipe::new(&bench.root.join("pipe"));
    // Every process of the command has the pipe open.
    let command = "exec 3> pipe; sleep 600 & echo started >&3; sleep 601";
    let task = bench.shell("sleep", command).await;
    assert_eq!(pipe.line().await.as_deref(), Some("started"));
    let stop = bench.hub.stop(&task.task_id, "not needed any more");
    let record = within("the stop", stop).await.unwrap();
    let ending = (record.status, record.exit_code, record.error.as_deref());
    let expected = (TaskStatus::Killed, None, Some("not needed any more"));
    assert_eq!(ending, expected);
    assert_eq!(pipe.line().await, None);
    let notice = TaskNotification {
        task_id: record.task_id,
        status: TaskStatus::Killed,
        summary: "Command \"sleep\" was stopped".into(),
        reason: Some("not needed any more".into()),
        result: None,
        usage: None,
    };
    assert_eq!(bench.undelivered().await, [notice.to_xml()]);
}

#[tokio::test]
async fn an_agent_that_cannot_be_made_is_a_failed_task_that_says_why() {
    let bench = Bench::new(Script::new()).await;
    let reason = "there is no worktree for it";
    bench.maker.fail_next(MakeError::Refused(reason.into()));
    let task = bench.agent_task("look", "look around").await;
    let record = bench.ended(&task.task_id).await;
    let ending = (record.status, record.error.as_deref(), record.attempt);
    assert_eq!(ending, (TaskStatus::Failed, Some(reason), 1));
    assert_eq!(bench.server.request_count(), 0);
    let notice = TaskNotification {
        task_id: record.task_id.clone(),
        status: TaskStatus::Failed,
        summary: format!("Agent \"look\" failed: {reason}"),
        reason: None,
        result: None,
        usage: Some((0, 0, millis(&record))),
    };
    assert_eq!(bench.undelivered().await, [notice.to_xml()]);
}

#[tokio::test]
async fn an_agent_whose_conversation_is_in_use_is_put_back_and_completes_later() {
    let bench = Bench::new(Script::of([Turn::text("I looked.")])).await;
    for _ in 0..2 {
        let busy = MakeError::Busy("another process has it".into());
        bench.maker.fail_next(busy);
    }
    let mut changes = bench.hub.changes().follow().await.unwrap();
    let task = bench.agent_task("look", "look around").await;
    let seen = statuses(&mut changes, &task.task_id).await;
    let (pending, running) = (TaskStatus::Pending, TaskStatus::Running);
    let expected = [
        pending,
        running,
        pending,
        running,
        pending,
        running,
        TaskStatus::Completed,
    ];
    assert_eq!(seen, expected);
    assert_eq!(bench.maker.failures_left(), 0);
    let record = bench.ended(&task.task_id).await;
    assert_eq!(text(&record, "result"), "I looked.");
    assert_eq!((record.error, record.attempt), (None, 1));
    assert_eq!(bench.undelivered().await.len(), 1);
}

fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    }
}

#[tokio::test]
async fn an_agent_task_records_result_usage_and_attempt_and_goes_on_with_its_conversation() {
    let script = Script::of([
        Turn::tool("Bash", &json!({"command": "echo plum"})).usage(usage(100, 10)),
        Turn::text("The word is plum.").usage(usage(200, 20)),
        Turn::text("Still plum.").usage(usage(400, 40)),
    ]);
    let bench = Bench::new(script).await;
    let task = bench.agent_task("find", "find the word").await;
    let first = bench.ended(&task.task_id).await;
    assert_eq!(first.status, TaskStatus::Completed, "{first:?}");
    assert_eq!(text(&first, "result"), "The word is plum.");
    assert_eq!(first.metadata["tool_uses"], json!(1));
    assert_eq!((first.attempt, first.usage), (1, usage(300, 30)));
    let price = |usage| Catalogue::builtin().cost(MODEL, &usage);
    assert_eq!(first.cost_usd, price(first.usage));

    let id = task.task_id.as_str();
    let caller = bench.caller();
    let send = bench.hub.send(&caller, id, "are you sure?", None);
    within("the message", send).await.unwrap();
    let second = bench.ended(&task.task_id).await;
    assert_eq!(text(&second, "result"), "Still plum.");
    assert_eq!((second.attempt, second.usage), (2, usage(700, 70)));
    assert_eq!(second.cost_usd, price(second.usage));
    assert!(second.cost_usd.known().unwrap() > Usd::ZERO);
    let request = bench.server.last_request().unwrap();
    let expected = [
        "find the word",
        "",
        "",
        "The word is plum.",
        "[Message from the coordinator]\nare you sure?",
    ];
    assert_eq!(texts(&request), expected);

    let notice = |record: &TaskRecord, result: &str, tokens, tools| TaskNotification {
        task_id: record.task_id.clone(),
        status: TaskStatus::Completed,
        summary: "Agent \"find\" completed".into(),
        reason: None,
        result: Some(result.into()),
        usage: Some((tokens, tools, millis(record))),
    };
    let expected = [
        notice(&first, "The word is plum.", 330, 1).to_xml(),
        notice(&second, "Still plum.", 440, 0).to_xml(),
    ];
    assert_eq!(bench.undelivered().await, expected);
}
