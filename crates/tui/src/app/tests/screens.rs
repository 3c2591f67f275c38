//! Snapshots of the main screens.

use codespar_protocol::{Cost, TaskId, TaskStatus, TaskType, Todo, TodoStatus, Usage};

use super::*;

fn task(n: u32) -> TaskId {
    format!("a-{n:08}").parse().unwrap()
}

fn begin_task(stage: &mut Stage, n: u32, subject: &str) {
    let id = format!("t{n}");
    stage.call(&id, "Task", subject, json!({}));
    stage.event(Event::TaskStarted {
        task_id: task(n),
        task_type: TaskType::LocalAgent,
        subject: subject.to_owned(),
        tool_use_id: Some(serde_json::from_value(json!(id)).unwrap()),
        kind: Some("Explore · haiku".to_owned()),
    });
}

fn two_boxes(columns: u16) -> String {
    let mut stage = Stage::new(columns, 30);
    stage.message(Message::TurnStarted);
    begin_task(&mut stage, 1, "Find auth error handling");
    begin_task(&mut stage, 2, "Map session storage");
    stage.event(Event::Subagent {
        parent_tool_use_id: serde_json::from_value(json!("t2")).unwrap(),
        task_id: task(2),
        event: Box::new(Event::TaskProgress {
            task_id: task(2),
            tool_uses: 4,
            total_tokens: 2_000,
            duration_ms: 0,
            summary: "Grep SessionStore".to_owned(),
        }),
    });
    stage.event(Event::TaskEnded {
        task_id: task(1),
        status: TaskStatus::Completed,
        subject: "Find auth error handling".to_owned(),
        summary: String::new(),
        detail: "Found 3 relevant files: login.rs, session.rs, token.rs".to_owned(),
        output_file: None,
        usage: Usage {
            input_tokens: 8_000,
            output_tokens: 100,
            ..Usage::default()
        },
        cost: Cost::default(),
        tool_uses: 12,
        duration_ms: 6_000,
    });
    stage.shown()
}

#[test]
fn first_prompt() {
    let mut stage = Stage::new(60, 12);
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn streaming_answer_with_table_and_code() {
    let mut stage = Stage::new(60, 36);
    stage.typed("how do I sort?");
    stage.keys(&["enter"]);
    stage.message(Message::TurnStarted);
    let answer = "## Sorting\n\nUse **sort_by_key** for keys that are cheap to compute, and \
                  `sort_by_cached_key` for others:\n\n```rust\nlet mut words = vec![\"b\", \"a\"];\n\
                  words.sort(); // in place\n```\n\n| method | stable |\n|---|---|\n| sort | yes |\n\
                  | sort_unstable | no |\n\n- first\n- second is a long item that has to be wrapped \
                  at this width\n\nThe last paragraph is not yet";
    let (first, second) = answer.split_at(180);
    stage.text(first);
    stage.paint();
    stage.text(second);
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn permission_prompt_with_diff() {
    let mut stage = Stage::new(70, 30);
    stage.message(Message::TurnStarted);
    let path = stage.directory.path().join("limits.rs");
    std::fs::write(
        &path,
        "fn main() {\n    let limit = 10;\n    run(limit);\n}\n",
    )
    .unwrap();
    let _answer = stage.ask(QuestionRequest::Permission(PermissionRequest {
        tool_use_id: serde_json::from_value(json!("t1")).unwrap(),
        tool: "Edit".to_owned(),
        summary: "limits.rs".to_owned(),
        input: json!({
            "file_path": path,
            "old_string": "    let limit = 10;\n",
            "new_string": "    let limit = 100;\n",
        }),
        preview: None,
        change: None,
        confinement: None,
        reason: "edits are asked about in this mode".to_owned(),
        suggested_rules: vec!["Edit(limits.rs)".to_owned()],
    }));
    stage.wait(1_000);
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn calls_with_their_results() {
    let mut stage = Stage::new(70, 30);
    stage.message(Message::TurnStarted);
    stage.call("t1", "Bash", "cargo test", json!({"command": "cargo test"}));
    stage.result("t1", "Bash", false, "one\ntwo\nthree\nfour\nfive\nsix\n");
    stage.call("t2", "Read", "src/missing.rs", json!({"file_path": "x"}));
    stage.result("t2", "Read", true, "there is no such file");
    stage.call("t3", "Bash", "sleep 100", json!({"command": "sleep 100"}));
    stage.event(Event::Todos {
        todos: vec![
            Todo {
                content: "read".into(),
                status: TodoStatus::Completed,
                active_form: None,
            },
            Todo {
                content: "fix".into(),
                status: TodoStatus::InProgress,
                active_form: Some("fixing the parser".into()),
            },
        ],
    });
    stage.wait(12_000);
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn two_boxes_side_by_side_at_120_columns() {
    insta::assert_snapshot!(two_boxes(120));
}

#[test]
fn two_boxes_stacked_at_60_columns() {
    insta::assert_snapshot!(two_boxes(60));
}

#[test]
fn a_call_with_a_box_has_no_line_beside_it() {
    let mut stage = Stage::new(80, 30);
    stage.message(Message::TurnStarted);
    begin_task(&mut stage, 1, "Map session storage");
    let shown = stage.shown();
    assert_eq!(shown.matches("Map session storage").count(), 1, "{shown}");
    assert!(shown.contains("• Waiting for subagents"), "{shown}");
    stage.call("t9", "Bash", "cargo test", json!({"command": "cargo test"}));
    let shown = stage.shown();
    assert!(shown.contains("• Bash cargo test"), "{shown}");
    assert!(shown.contains("• Running a tool"), "{shown}");
    stage.result("t9", "Bash", false, "");
    stage.result("t1", "Task", false, "done");
    assert!(stage.shown().contains("• Waiting for the model"));
}

#[test]
fn twenty_boxes_in_half_of_the_screen() {
    let mut stage = Stage::new(100, 40);
    stage.message(Message::TurnStarted);
    for number in 1..=20 {
        begin_task(&mut stage, number, &format!("Read part {number}"));
    }
    let shown = stage.shown();
    assert_eq!(shown.lines().count(), 16, "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn completion_of_commands() {
    let mut stage = Stage::new(60, 16);
    stage.typed("/mo");
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn error_and_interrupted_turn() {
    let mut stage = Stage::new(60, 24);
    let result = |interrupted: bool, text: &str| {
        let value = json!({
            "session_id": codespar_protocol::SessionId::new(),
            "outcome": "error_during_execution",
            "result": text,
            "interrupted": interrupted,
            "stop_reason": null,
            "num_turns": 1,
            "tool_uses": 0,
            "duration_ms": 2_100,
            "duration_api_ms": 2_000,
            "usage": Usage::default(),
            "cost": Cost::default(),
            "by_model": [],
            "permission_denials": [],
        });
        Event::Finished(Box::new(serde_json::from_value(value).unwrap()))
    };
    stage.message(Message::TurnStarted);
    stage.event(Event::Retrying {
        attempt: 1,
        delay_ms: 500,
        reason: "overloaded".to_owned(),
    });
    stage.event(result(
        false,
        "the provider answered 400: prompt is too long",
    ));
    stage.message(Message::TurnEnded);
    stage.message(Message::TurnStarted);
    stage.text("An answer that was");
    stage.event(result(true, ""));
    stage.message(Message::TurnEnded);
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn queue_with_a_selected_message() {
    let mut stage = Stage::new(80, 30);
    stage.message(Message::TurnStarted);
    for number in 1..=8 {
        stage.typed(&format!("message number {number}"));
        stage.keys(&["tab"]);
    }
    stage.keys(&["up", "up", "up", "alt-up"]);
    insta::assert_snapshot!(stage.shown());
}
