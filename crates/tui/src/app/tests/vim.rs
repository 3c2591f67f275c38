//! The composer with the keys of vim.

use codespar_terminal::editor::EditMode;

use super::*;

fn vim() -> Stage {
    let mut stage = Stage::new(60, 20);
    let history = History::open(&stage.directory.path().join("history.jsonl"));
    let composer = Composer::new(history, None, Arc::new(NoCompletion));
    stage.app.composer = composer.with_mode(EditMode::Vim);
    stage
}

#[test]
fn the_state_is_in_the_status_line() {
    let mut stage = vim();
    stage.typed("fix the parser");
    assert!(stage.shown().contains("  INSERT  sonnet · default"));
    stage.keys(&["esc"]);
    insta::assert_snapshot!(stage.shown());
    stage.keys(&["enter"]);
    assert_eq!(
        stage.actions(),
        [UserAction::Submit("fix the parser".into())]
    );
    // What is typed next is a text again.
    assert!(stage.shown().contains("  INSERT  sonnet"));
}

#[test]
fn commands_edit_the_text() {
    let mut stage = vim();
    stage.typed("fix the old parser");
    stage.keys(&["esc"]);
    stage.typed("bbdwA now");
    stage.keys(&["enter"]);
    assert_eq!(
        stage.actions(),
        [UserAction::Submit("fix the parser now".into())]
    );
}

#[test]
fn esc_leaves_insert_state_before_it_interrupts() {
    let mut stage = vim();
    stage.message(Message::TurnStarted);
    stage.typed("a draft");
    stage.keys(&["esc"]);
    assert_eq!(stage.actions(), []);
    // An operator that waits for its motion is given up first.
    stage.keys(&["d", "esc"]);
    assert_eq!(stage.actions(), []);
    stage.keys(&["esc"]);
    assert_eq!(stage.actions(), [UserAction::Interrupt]);
    assert!(stage.shown().contains("› a draft"));
}

#[test]
fn esc_interrupts_at_once_where_nothing_is_typed() {
    let mut stage = vim();
    stage.message(Message::TurnStarted);
    stage.keys(&["esc"]);
    assert_eq!(stage.actions(), [UserAction::Interrupt]);
}

#[test]
fn k_and_j_walk_through_the_history_in_normal_state() {
    let mut stage = vim();
    for text in ["first", "second"] {
        stage.typed(text);
        stage.keys(&["enter"]);
    }
    stage.typed("third");
    stage.keys(&["esc", "k"]);
    assert!(stage.shown().contains("› second"));
    stage.keys(&["k"]);
    assert!(stage.shown().contains("› first"));
    stage.keys(&["j", "j"]);
    assert!(stage.shown().contains("› third"));
}
