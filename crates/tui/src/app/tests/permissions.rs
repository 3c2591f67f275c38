//! Permission prompts that edit the call, choose hunks and rules; and the output of running calls.

use codespar_protocol::{ProposedChange, ProposedHunk};

use super::*;

fn edit() -> QuestionRequest {
    let hunk = |first_line: usize, old: &str, new: &str| ProposedHunk {
        first_line,
        old: format!("before\n{old}\nafter\n"),
        new: format!("before\n{new}\nafter\n"),
    };
    QuestionRequest::Permission(PermissionRequest {
        tool_use_id: serde_json::from_value(json!("t1")).unwrap(),
        tool: "Edit".to_owned(),
        summary: "src/limits.rs".to_owned(),
        input: json!({"file_path": "src/limits.rs", "edits": []}),
        preview: None,
        change: Some(ProposedChange {
            id: "c1".to_owned(),
            path: "src/limits.rs".to_owned(),
            hunks: vec![
                hunk(3, "let limit = 10;", "let limit = 100;"),
                hunk(20, "let depth = 2;", "let depth = 3;"),
                hunk(40, "run();", "run(limit);"),
            ],
        }),
        confinement: None,
        reason: "edits are asked about in this mode".to_owned(),
        suggested_rules: vec!["Edit(src/**)".to_owned()],
    })
}

fn shown_question(request: QuestionRequest) -> (Stage, oneshot::Receiver<QuestionReply>) {
    let mut stage = Stage::new(72, 44);
    stage.message(Message::TurnStarted);
    let answer = stage.ask(request);
    stage.wait(1_000);
    (stage, answer)
}

fn once_with(command: &str) -> QuestionReply {
    QuestionReply::Answer(Answer::OnceWith {
        input: json!({ "command": command }),
    })
}

#[test]
fn a_command_is_edited_and_then_approved() {
    let (mut stage, mut answer) = shown_question(command("rm -rf build"));
    stage.keys(&["e"]);
    insta::assert_snapshot!("editing_a_command", stage.shown());
    stage.keys(&["ctrl-u"]);
    stage.typed("make clean");
    stage.keys(&["enter"]);
    insta::assert_snapshot!("an_edited_command", stage.shown());
    assert!(answer.try_recv().is_err());
    stage.wait(1_000);
    // No rule is offered for what was typed by hand.
    stage.keys(&["e", "esc"]);
    stage.typed("y");
    assert_eq!(answer.try_recv(), Ok(once_with("make clean")));
}

#[test]
fn a_message_that_begins_with_an_e_approves_nothing() {
    let (mut stage, mut answer) = shown_question(command("rm -rf build"));
    stage.typed("explain this first");
    stage.keys(&["enter"]);
    stage.typed("yes, all of it");
    stage.keys(&["enter"]);
    assert!(answer.try_recv().is_err());
    assert!(stage.shown().contains("changed to:"));
    stage.wait(1_000);
    stage.keys(&["esc"]);
    let no = QuestionReply::Answer(Answer::No { reason: None });
    assert_eq!(answer.try_recv(), Ok(no));
}

#[test]
fn a_question_that_the_pager_hid_is_not_answered_by_the_next_key() {
    let (mut stage, mut answer) = shown_question(command("rm -rf build"));
    let now = stage.now;
    stage.app.uncover(now);
    stage.typed("y");
    assert!(answer.try_recv().is_err());
    stage.keys(&["backspace"]);
    stage.wait(1_000);
    stage.typed("y");
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(Answer::Once)));
}

#[test]
fn esc_leaves_the_command_as_it_was_asked() {
    let (mut stage, mut answer) = shown_question(command("rm -rf build"));
    stage.keys(&["e"]);
    stage.typed(" --force");
    stage.keys(&["esc"]);
    stage.typed("y");
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(Answer::Once)));
}

#[test]
fn a_text_edited_back_to_what_was_asked_is_no_change() {
    let (mut stage, mut answer) = shown_question(command("rm -rf build"));
    stage.keys(&["e"]);
    stage.typed("x");
    stage.keys(&["backspace", "enter"]);
    stage.wait(1_000);
    stage.typed("y");
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(Answer::Once)));
}

#[test]
fn an_input_without_a_text_is_edited_as_json() {
    let mut request = command("x");
    if let QuestionRequest::Permission(asked) = &mut request {
        asked.tool = "mcp__kit__move".to_owned();
        asked.input = json!({"from": "a"});
    }
    let (mut stage, mut answer) = shown_question(request);
    stage.keys(&["e"]);
    stage.typed("x");
    stage.keys(&["enter"]);
    assert!(stage.shown().contains("not JSON"));
    stage.keys(&[
        "backspace",
        "ctrl-u",
        "backspace",
        "ctrl-u",
        "backspace",
        "ctrl-u",
    ]);
    stage.typed(r#"{"from": "b"}"#);
    stage.keys(&["enter"]);
    stage.wait(1_000);
    stage.typed("y");
    let input = json!({"from": "b"});
    let changed = QuestionReply::Answer(Answer::OnceWith { input });
    assert_eq!(answer.try_recv(), Ok(changed));
}

#[test]
fn a_rule_is_shown_and_can_be_edited() {
    for (keys, wanted) in [
        (&["a", "enter"][..], QuestionReply::Answer(Answer::Always)),
        (&["a", "tab", "enter"], QuestionReply::ForSession),
    ] {
        let (mut stage, mut answer) = shown_question(command("rm -rf build"));
        stage.keys(keys);
        assert_eq!(answer.try_recv(), Ok(wanted));
    }
    let (mut stage, mut answer) = shown_question(command("rm -rf build"));
    stage.keys(&["a"]);
    insta::assert_snapshot!("editing_a_rule", stage.shown());
    stage.keys(&["backspace", "enter"]);
    insta::assert_snapshot!("a_broken_rule", stage.shown());
    assert!(answer.try_recv().is_err());
    stage.keys(&["ctrl-u"]);
    stage.typed("Bash(rm -rf build)");
    stage.keys(&["tab", "enter"]);
    let rules = vec!["Bash(rm -rf build)".to_owned()];
    assert_eq!(answer.try_recv(), Ok(QuestionReply::ForSessionBy(rules)));
}

#[test]
fn the_description_of_a_server_is_no_rule_to_edit() {
    let mut request = command("x");
    if let QuestionRequest::Permission(asked) = &mut request {
        asked.input = Value::Null;
    }
    let (mut stage, mut answer) = shown_question(request);
    assert!(!stage.shown().contains("  e "));
    stage.typed("a");
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(Answer::Always)));
}

#[test]
fn single_hunks_are_refused_by_number_and_by_space() {
    let (mut stage, mut answer) = shown_question(edit());
    insta::assert_snapshot!("hunks", stage.shown());
    stage.keys(&["2", "down"]);
    stage.typed(" ");
    insta::assert_snapshot!("refused_hunks", stage.shown());
    // A message may begin with a number.
    stage.typed("y");
    assert!(answer.try_recv().is_err());
    stage.wait(1_000);
    stage.typed("y");
    let wanted = Answer::OnceWithout {
        change: "c1".to_owned(),
        refused: vec![2, 3],
    };
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(wanted)));
}

#[test]
fn without_any_hunk_there_is_nothing_to_approve() {
    let (mut stage, mut answer) = shown_question(edit());
    stage.typed("123");
    stage.wait(1_000);
    stage.typed("y");
    assert!(answer.try_recv().is_err());
    assert!(stage.shown().contains("every hunk is refused"));
    stage.typed("123");
    stage.wait(1_000);
    stage.typed("y");
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(Answer::Once)));
}

#[test]
fn a_command_without_a_sandbox_is_marked() {
    let mut request = command("make");
    if let QuestionRequest::Permission(asked) = &mut request {
        asked.confinement = Some(Confinement::SwitchedOff);
    }
    let (mut stage, _answer) = shown_question(request);
    insta::assert_snapshot!("not_sandboxed", stage.shown());
}

#[test]
fn the_last_lines_of_a_running_command_are_shown_until_it_ends() {
    let mut stage = Stage::new(60, 24);
    stage.message(Message::TurnStarted);
    stage.call("t1", "Bash", "cargo test", json!({"command": "cargo test"}));
    stage.event(Event::CommandOutput {
        tool_use_id: serde_json::from_value(json!("t1")).unwrap(),
        lines: vec![
            "Compiling a".to_owned(),
            "Compiling \u{1b}[2Jb".to_owned(),
            "token ghp_0123456789abcdefghijABCDEFGHIJ012345".to_owned(),
            "x".repeat(100_000),
        ],
    });
    stage.wait(3_000);
    insta::assert_snapshot!("output_of_a_running_command", stage.shown());
    stage.result("t1", "Bash", false, "ok\n");
    let shown = stage.shown();
    assert!(!shown.contains('│'), "{shown}");
    // What comes too late is for nobody.
    stage.event(Event::CommandOutput {
        tool_use_id: serde_json::from_value(json!("t1")).unwrap(),
        lines: vec!["late".to_owned()],
    });
    assert_eq!(stage.shown(), shown);
}
