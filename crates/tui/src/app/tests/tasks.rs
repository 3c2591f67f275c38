//! The list of tasks.

use codespar_protocol::{Cost, TaskId, TaskStatus};

use super::*;
use crate::TaskRow;

fn id(number: usize) -> TaskId {
    format!("a-{number:08}").parse().unwrap()
}

fn row(number: usize, subject: &str, state: TaskStatus) -> TaskRow {
    TaskRow {
        id: id(number),
        parent: None,
        subject: subject.to_owned(),
        kind: "Explore".to_owned(),
        state,
        model: Some("haiku".to_owned()),
        elapsed: Duration::from_secs(62),
        tokens: 8_100,
        cost: serde_json::from_value(json!(0.0042)).unwrap(),
        output: Vec::new(),
        accepts_messages: true,
    }
}

fn shell(number: usize, command: &str, state: TaskStatus) -> TaskRow {
    TaskRow {
        kind: "shell".to_owned(),
        model: None,
        tokens: 0,
        cost: Cost::default(),
        accepts_messages: false,
        ..row(number, command, state)
    }
}

/// An agent with a child that runs a command, and two tasks that are over.
fn rows() -> Vec<TaskRow> {
    vec![
        TaskRow {
            output: (1..=12)
                .map(|n| format!("line {n} of its output"))
                .collect(),
            ..row(1, "Find auth error handling", TaskStatus::Running)
        },
        row(2, "Map session storage", TaskStatus::Completed),
        TaskRow {
            parent: Some(id(1)),
            ..shell(3, "cargo test -p store", TaskStatus::Running)
        },
        row(4, "Read the changelog", TaskStatus::Failed),
        shell(5, "sleep 60", TaskStatus::Pending),
    ]
}

fn open(columns: u16, lines: u16, rows: Vec<TaskRow>) -> Stage {
    let mut stage = Stage::new(columns, lines);
    stage.message(Message::ShowTasks(rows));
    stage
}

fn selected(stage: &mut Stage) -> String {
    let shown = stage.shown();
    let line = shown.lines().find(|line| line.starts_with("› "));
    line.unwrap_or_default().to_owned()
}

#[test]
fn task_pane_at_110_columns() {
    let mut stage = open(110, 36, rows());
    stage.keys(&["enter"]);
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn task_pane_at_40_columns() {
    let mut stage = open(40, 36, rows());
    stage.keys(&["down", "right"]);
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn task_pane_with_a_message_being_typed() {
    let mut stage = open(70, 30, rows());
    stage.message(Message::TurnStarted);
    stage.typed("m");
    stage.typed("look at login.rs first");
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn task_pane_asks_before_a_task_is_stopped() {
    let mut stage = open(70, 30, rows());
    stage.typed("s");
    insta::assert_snapshot!(stage.shown());
}

#[test]
fn task_pane_with_200_tasks() {
    let rows = (1..=200).map(|n| row(n, &format!("task number {n}"), TaskStatus::Running));
    let mut stage = open(70, 24, rows.collect());
    stage.keys(&["end", "up"]);
    let shown = stage.shown();
    // Half of the screen.
    assert_eq!(shown.lines().count(), 12, "{shown}");
    insta::assert_snapshot!(shown);
    stage.keys(&["home"]);
    assert!(selected(&mut stage).contains("task number 1 "));
    for _ in 0..150 {
        stage.keys(&["j"]);
    }
    assert!(selected(&mut stage).contains("task number 151"));
}

#[test]
fn every_key_leads_to_its_action() {
    let mut stage = open(80, 30, rows());
    stage.typed("o");
    assert_eq!(stage.actions(), [UserAction::OpenTask(id(1))]);
    stage.typed("sy");
    assert_eq!(stage.actions(), [UserAction::StopTask(id(1))]);
    stage.typed("mgo on");
    stage.keys(&["enter"]);
    assert_eq!(
        stage.actions(),
        [UserAction::MessageTask(id(1), "go on".into())]
    );
    stage.typed("q");
    assert_eq!(stage.actions(), [UserAction::TasksClosed]);
    assert!(!stage.shown().contains("Tasks"));
    stage.typed("hello");
    stage.keys(&["enter"]);
    assert_eq!(stage.actions(), [UserAction::Submit("hello".into())]);
}

#[test]
fn only_y_stops_a_task_that_still_runs() {
    let mut stage = open(80, 30, rows());
    for key in ["n", "enter", "esc", "s", "ctrl-c"] {
        stage.typed("s");
        stage.keys(&[key]);
    }
    assert_eq!(stage.actions(), []);
    assert!(stage.shown().contains("Tasks"));
    stage.typed("s");
    let mut ended = rows();
    ended[0].state = TaskStatus::Completed;
    stage.message(Message::UpdateTasks(ended));
    stage.typed("y");
    assert_eq!(stage.actions(), []);
    assert!(stage.shown().contains("a-00000001 is over"));
}

#[test]
fn an_update_keeps_the_selected_task_and_its_output() {
    let mut stage = open(80, 30, rows());
    stage.keys(&["end", "up", "enter"]);
    assert!(selected(&mut stage).contains("Read the changelog"));
    let mut later = rows();
    later.reverse();
    later.insert(0, row(9, "A new one", TaskStatus::Running));
    later[2].output = vec!["it failed".to_owned()];
    stage.message(Message::UpdateTasks(later));
    assert!(selected(&mut stage).contains("Read the changelog"));
    assert!(stage.shown().contains("│ it failed"));
    // One that is gone leaves the selection where it was.
    let without = rows().into_iter().filter(|row| row.id != id(4)).collect();
    stage.message(Message::UpdateTasks(without));
    stage.typed("o");
    assert!(matches!(stage.actions()[..], [UserAction::OpenTask(_)]));
}

#[test]
fn an_update_does_not_open_a_list_that_was_closed() {
    let mut stage = open(80, 30, rows());
    stage.keys(&["esc"]);
    stage.message(Message::UpdateTasks(rows()));
    assert!(!stage.shown().contains("Tasks"));
    stage.typed("s");
    assert!(stage.shown().contains("› s"));
}

#[test]
fn the_filter_leaves_out_what_is_over() {
    let mut stage = open(80, 30, rows());
    stage.keys(&["end"]);
    stage.typed("f");
    let shown = stage.shown();
    assert!(shown.contains("3 of 5 not over"), "{shown}");
    assert!(!shown.contains("Map session storage"), "{shown}");
    assert!(selected(&mut stage).contains("sleep 60"));
    stage.typed("f");
    assert!(stage.shown().contains("Map session storage"));
    assert!(selected(&mut stage).contains("sleep 60"));
}

#[test]
fn left_leads_from_a_child_to_its_parent() {
    let mut stage = open(80, 30, rows());
    stage.keys(&["down"]);
    assert!(selected(&mut stage).contains("cargo test"));
    stage.keys(&["left"]);
    assert!(selected(&mut stage).contains("Find auth"));
}

#[test]
fn a_task_that_takes_no_messages_says_so() {
    let mut stage = open(80, 30, rows());
    stage.keys(&["down"]);
    stage.typed("m");
    assert!(stage.shown().contains("a-00000003 takes no messages"));
    stage.typed("o");
    assert_eq!(stage.actions(), [UserAction::OpenTask(id(3))]);
}

#[test]
fn a_message_that_was_left_is_there_again() {
    let mut stage = open(80, 30, rows());
    stage.typed("mhalf a thought");
    stage.keys(&["esc"]);
    assert!(!stage.shown().contains("half a thought"));
    stage.typed("m");
    stage.app.input(Input::Paste(" and more".into()), stage.now);
    stage.keys(&["enter"]);
    let text = "half a thought and more".to_owned();
    assert_eq!(stage.actions(), [UserAction::MessageTask(id(1), text)]);
}

#[test]
fn a_question_waits_until_the_list_is_closed() {
    let mut stage = open(80, 30, rows());
    stage.message(Message::TurnStarted);
    let mut answer = stage.ask(command("rm -rf build"));
    stage.wait(5_000);
    assert!(stage.shown().contains("a question waits for your answer"));
    for key in ["y", "tab", "y", "enter", "s", "y"] {
        stage.keys(&[key]);
        stage.wait(2_000);
    }
    assert!(answer.try_recv().is_err());
    assert_eq!(stage.actions(), [UserAction::StopTask(id(1))]);
    stage.keys(&["esc"]);
    stage.keys(&["y"]);
    assert!(answer.try_recv().is_err(), "it was not on the screen yet");
    stage.keys(&["backspace"]);
    stage.wait(2_000);
    stage.keys(&["y"]);
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(Answer::Once)));
}

#[test]
fn keys_of_someone_who_goes_on_typing_are_not_for_the_list() {
    let mut stage = Stage::new(80, 30);
    stage.typed("ma");
    stage.message(Message::ShowTasks(rows()));
    stage.wait(100);
    stage.typed("ke it so");
    let shown = stage.shown();
    assert!(shown.contains("Tasks"), "{shown}");
    assert!(shown.contains("› make it so"), "{shown}");
    stage.wait(1_500);
    stage.typed("o");
    assert_eq!(stage.actions(), [UserAction::OpenTask(id(1))]);
    stage.keys(&["esc", "enter"]);
    assert_eq!(
        stage.actions(),
        [
            UserAction::TasksClosed,
            UserAction::Submit("make it so".into())
        ]
    );
}

#[test]
fn running_times_go_on_and_nothing_moves_when_nothing_runs() {
    let mut stage = open(80, 30, rows());
    assert!(selected(&mut stage).contains("1 m 2 s"));
    stage.wait(5_000);
    assert!(selected(&mut stage).contains("1 m 7 s"));
    assert!(stage.app.next_time(stage.now).is_some());
    let over = vec![row(2, "Map session storage", TaskStatus::Completed)];
    stage.message(Message::UpdateTasks(over));
    stage.wait(5_000);
    assert!(stage.shown().contains("1 m 2 s"));
    assert_eq!(stage.app.next_time(stage.now), None);
}

#[test]
fn output_of_a_task_cannot_obey_the_terminal() {
    let evil = TaskRow {
        output: vec!["\u{1b}[2Jgone".to_owned()],
        ..row(1, "a \u{1b}]0;owned\u{7} subject", TaskStatus::Running)
    };
    let mut stage = open(80, 30, vec![evil]);
    stage.keys(&["enter"]);
    let shown = stage.shown();
    assert!(shown.contains("│ \\u{1b}[2Jgone"), "{shown}");
    assert!(shown.contains("a \\u{1b}]0;owned"), "{shown}");
}
