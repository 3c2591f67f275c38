//! Signals and Ctrl-C at every stage: the terminal is given back and the session can be resumed.

use codespar_testkit::{Script, Turn};
use serde_json::json;

use crate::{
    common::Bench,
    harness::{PROGRAM, Terminal, focus, pid_of_session, signal, until},
};

const RESUME: &str = "Resume with: codespar --resume ";

#[test]
fn a_signal_during_a_question_restores_the_terminal() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let bench =
            Bench::new(Script::new().turn(Turn::tool("Bash", &json!({"command": "touch made"}))));
        let mut terminal = Terminal::start(&bench, "");
        terminal.types("go\r");
        terminal.shows("y yes, once");
        signal(pid_of_session(&bench), name);
        assert_eq!(terminal.exit_code(), Some(code), "{name}");
        terminal.is_restored();
        assert!(
            terminal
                .written()
                .contains("Resume with: codespar --resume ")
        );
        assert!(!bench.work().join("made").exists());
    }
}

#[test]
fn esc_interrupts_a_turn_and_the_session_goes_on() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Bash", &json!({"command": "sleep 100"})))
            .turn(Turn::text("again")),
    );
    let mut terminal = Terminal::start(&bench, "--allowedTools 'Bash(sleep *)'");
    terminal.types("go\r");
    terminal.shows("Bash sleep 100");
    terminal.types("a draft");
    terminal.shows("› a draft");
    terminal.types("\x1b");
    terminal.shows("interrupted");
    assert!(terminal.screen().contains("› a draft"));
    terminal.types("\r");
    terminal.shows("again");
}

#[test]
fn a_signal_while_a_command_runs_restores_the_terminal_and_ends_the_command() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let bench =
            Bench::new(Script::new().turn(Turn::tool("Bash", &json!({"command": "sleep 1000"}))));
        let mut terminal = Terminal::start(&bench, "--allowedTools 'Bash(sleep *)'");
        terminal.types("go\r");
        terminal.shows("Bash sleep 1000");
        signal(pid_of_session(&bench), name);
        assert_eq!(terminal.exit_code(), Some(code), "{name}");
        terminal.is_restored();
        assert!(terminal.written().contains(RESUME), "{name}");
        until("the end of the command", || {
            bench.room.alive().unwrap().is_empty()
        });
    }
}

#[test]
fn ctrl_c_keeps_what_is_typed_and_leaves_at_the_second_time() {
    let bench = Bench::new(Script::new());
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("a thought");
    terminal.shows("› a thought");
    terminal.types("\x03");
    until("an empty line", || {
        !terminal.screen().contains("› a thought")
    });
    // It is in the history.
    terminal.types("\x1b[A");
    terminal.shows("› a thought");
    terminal.types("\x03");
    until("an empty line", || {
        !terminal.screen().contains("› a thought")
    });
    terminal.types("\x03\x03");
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.is_restored();
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn ctrl_c_interrupts_a_turn_and_leaving_then_says_how_to_resume() {
    let bench =
        Bench::new(Script::new().turn(Turn::tool("Bash", &json!({"command": "sleep 1000"}))));
    let mut terminal = Terminal::start(&bench, "--allowedTools 'Bash(sleep *)'");
    terminal.types("go\r");
    terminal.shows("Bash sleep 1000");
    terminal.types("\x03");
    terminal.shows("interrupted");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.is_restored();
    assert!(terminal.written().contains(RESUME));
}

#[test]
fn ctrl_c_at_a_question_declines_it_and_the_session_goes_on() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Bash", &json!({"command": "touch made"})))
            .turn(Turn::text("again")),
    );
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("go\r");
    terminal.shows("y yes, once");
    focus(&mut terminal);
    terminal.types("\x03");
    terminal.shows("interrupted");
    assert!(!bench.work().join("made").exists());
    terminal.types("go on\r");
    terminal.shows("again");
}

#[test]
fn a_session_that_is_stopped_gives_the_terminal_back_and_goes_on_with_its_draft() {
    let bench = Bench::new(Script::new().turn(Turn::text("answered")));
    let mut terminal = Terminal::shell(&bench);
    terminal.shows("shell>");
    terminal.types(&format!("{PROGRAM}\r"));
    terminal.is_ready();
    terminal.types("half a thought");
    terminal.shows("› half a thought");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    terminal.is_restored();
    terminal.types("echo the shell is here\r");
    terminal.shows("\nthe shell is here");
    terminal.types("fg\r");
    until("the draft", || {
        let rows = terminal.rows();
        rows.iter()
            .rev()
            .take(6)
            .any(|row| row.contains("› half a thought"))
    });
    terminal.types("\r");
    terminal.shows("answered");
    terminal.types("\x04");
    terminal.shows(RESUME);
    terminal.is_restored();
}
