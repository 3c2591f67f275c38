//! Prompts, answers and leaving.

use std::{fs, time::Duration};

use codespar_testkit::{Script, Turn};
use serde_json::json;

use crate::{
    common::{self, Bench},
    harness::{COLUMNS, PROGRAM, ROWS, Terminal, pid_of_session, signal},
};

fn settings(bench: &Bench, json: &str) {
    let home = bench.room.codespar_home();
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("settings.json"), json).unwrap();
}

#[test]
fn a_prompt_is_answered_and_leaving_says_how_to_resume() {
    let bench = Bench::new(Script::new().turn(Turn::text("# Title\n\nSome **bold** text.")));
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("hello\r");
    terminal.shows("1 turn");
    let screen = terminal.screen();
    assert!(screen.contains("› hello"), "{screen}");
    assert!(screen.contains("Some bold text."), "{screen}");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.is_restored();
    assert!(
        terminal
            .written()
            .contains("Resume with: codespar --resume ")
    );
}

#[test]
fn a_message_reaches_the_agent_at_its_next_step() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool(
                "Bash",
                &json!({"command": "sleep 3; echo slept"}),
            ))
            .turn(Turn::text("heard")),
    );
    let mut terminal = Terminal::start(&bench, "--allowedTools 'Bash(sleep *),Bash(echo *)'");
    terminal.types("go\r");
    terminal.shows("Bash sleep 3");
    terminal.types("use tabs, please\r");
    terminal.shows("2 turns");
    let request = bench.server.last_request().unwrap();
    let last = request.last_message().to_string();
    assert!(last.contains("use tabs, please"), "{last}");
    assert_eq!(bench.server.request_count(), 2);
}

#[test]
fn every_line_of_a_long_answer_is_in_the_scrollback_once() {
    let lines: Vec<String> = (0..3_000)
        .map(|n| format!("    row {n:05} of the answer"))
        .collect();
    let bench =
        Bench::new(Script::new().turn(Turn::text(format!("```\n{}\n```\n", lines.join("\n")))));
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("count\r");
    terminal.shows("1 turn");
    terminal.types("\x04");
    terminal.exit_code();
    let seen = terminal.scrollback(COLUMNS);
    let answer: Vec<&str> = seen
        .iter()
        .map(|row| row.trim_end())
        .filter(|row| row.starts_with("    row "))
        .collect();
    assert_eq!(answer, lines.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn vim_mode_is_the_users_choice() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    settings(&bench, r#"{"terminal": {"vim": true}}"#);
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("hello old world");
    terminal.shows("INSERT");
    terminal.types("\x1b");
    terminal.shows("NORMAL");
    terminal.types("bbdw");
    terminal.shows("› hello world");
    terminal.types("\r");
    terminal.shows("1 turn");
    terminal.types("\x04");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn the_status_line_is_what_a_command_of_the_user_prints() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    let command = "sed 's/.*\\\"mode\\\":\\\"\\\\([a-zA-Z]*\\\\).*/in mode \\\\1 now/'";
    settings(
        &bench,
        &format!(r#"{{"terminal": {{"statusCommand": "{command}"}}}}"#),
    );
    let mut terminal = Terminal::start(&bench, "");
    terminal.shows("in mode default now");
    terminal.types("\x1b[Z");
    terminal.shows("in mode acceptEdits now");
}

#[test]
fn a_draft_is_back_after_a_kill() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("half a thought");
    terminal.shows("› half a thought");
    // It is written a moment after the last key.
    std::thread::sleep(Duration::from_millis(1_500));
    signal(pid_of_session(&bench), "KILL");
    terminal.exit_code();
    let program = format!("stty rows {ROWS} cols {COLUMNS}; exec {PROGRAM}");
    let shown = common::type_into(
        bench
            .room
            .command("script")
            .current_dir(bench.work())
            .args(["-qec", &program, "/dev/null"])
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", bench.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001"),
        &[("half a thought", "\x03\x03\x03")],
    );
    assert!(shown.contains("half a thought"), "{shown}");
}
