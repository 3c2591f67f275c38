//! Prompts, answers and leaving.

use std::time::Duration;

use codespar_testkit::{Script, Turn};
use serde_json::json;

use crate::{
    common::{self, Bench},
    harness::{COLUMNS, PROGRAM, ROWS, Terminal, pid_of_session, signal},
};

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
    let mut output = terminal.output.lock().unwrap();
    let screen = output.screen.screen_mut();
    screen.set_scrollback(usize::MAX);
    let mut offset = screen.scrollback();
    let mut seen = Vec::new();
    // From the oldest row on, a screen at a time.
    loop {
        screen.set_scrollback(offset);
        let rows: Vec<String> = screen.rows(0, COLUMNS).collect();
        let take = if offset == 0 {
            rows.len()
        } else {
            rows.len().min(offset)
        };
        seen.extend(rows.into_iter().take(take));
        if offset == 0 {
            break;
        }
        offset -= take;
    }
    let answer: Vec<&str> = seen
        .iter()
        .map(|row| row.trim_end())
        .filter(|row| row.starts_with("    row "))
        .collect();
    assert_eq!(answer, lines.iter().map(String::as_str).collect::<Vec<_>>());
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
