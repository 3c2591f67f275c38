//! The session at a terminal: the binary in a pseudo-terminal, its screen on an emulator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::{
    fs,
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use codespar_testkit::{Script, Turn};
use common::{Bench, PATIENCE};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_codespar");
const COLUMNS: u16 = 90;
const ROWS: u16 = 30;
/// A terminal that says what it is marks its pastes.
const VERSION: &str = "\x1bP>|emulator 1\x1b\\\x1b[?62c";

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Output {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

/// A session and the terminal it runs in.
struct Terminal {
    child: Child,
    input: ChildStdin,
    output: Arc<Mutex<Output>>,
}

impl Terminal {
    fn start(bench: &Bench, args: &str) -> Self {
        let program = format!("stty rows {ROWS} cols {COLUMNS}; exec {PROGRAM} {args}");
        let mut child = bench
            .room
            .command("script")
            .current_dir(bench.work())
            .args(["-qec", &program, "/dev/null"])
            .env("TERM", "linux")
            .env("SHELL", "/bin/sh")
            .env("ANTHROPIC_BASE_URL", bench.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut written = child.stdout.take().unwrap();
        let output = Arc::new(Mutex::new(Output {
            screen: vt100::Parser::new(
                ROWS.try_into().unwrap(),
                COLUMNS.try_into().unwrap(),
                200_000,
            ),
            bytes: Vec::new(),
        }));
        let seen = output.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(count @ 1..) = written.read(&mut buffer) {
                let mut seen = seen.lock().unwrap();
                seen.screen.process(&buffer[..count]);
                seen.bytes.extend_from_slice(&buffer[..count]);
            }
        });
        let input = child.stdin.take().unwrap();
        let mut terminal = Self {
            child,
            input,
            output,
        };
        terminal.shows("/help shows the commands");
        terminal.types(VERSION);
        terminal
    }

    /// The rows of the screen that are not blank.
    fn rows(&self) -> Vec<String> {
        let output = self.output.lock().unwrap();
        let rows = output.screen.screen().rows(0, COLUMNS);
        let rows = rows.map(|row| row.trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    }

    fn screen(&self) -> String {
        self.rows().join("\n")
    }

    fn shows(&self, text: &str) {
        let began = Instant::now();
        while !self.screen().contains(text) {
            assert!(
                began.elapsed() < PATIENCE,
                "waited in vain for {text:?}:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn types(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Everything that was ever written, as text.
    fn written(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap().bytes).into_owned()
    }

    fn exit_code(&mut self) -> Option<i32> {
        let mut status = None;
        until("the end of the session", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }

    /// What was switched on is switched off, and the cursor is visible.
    fn is_restored(&self) {
        let written = self.written();
        for (on, off) in [
            ("\x1b[?2004h", "\x1b[?2004l"),
            ("\x1b[?1004h", "\x1b[?1004l"),
        ] {
            let (on, off) = (written.rfind(on), written.rfind(off));
            assert!(on.is_some() && off > on, "{on:?} {off:?}");
        }
        assert!(!self.output.lock().unwrap().screen.screen().hide_cursor());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pid_of_session(bench: &Bench) -> u32 {
    let program = fs::canonicalize(PROGRAM).unwrap();
    let is_ours =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    let alive = bench.room.alive().unwrap();
    alive.into_iter().find(is_ours).unwrap()
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
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
fn an_edit_is_shown_asked_about_and_made() {
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"});
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Edit", &edit))
            .turn(Turn::text("done")),
    );
    let file = bench.file("a.txt", "one\ntwo\nthree\n");
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("change it\r");
    terminal.shows("y yes, once");
    let screen = terminal.screen();
    assert!(screen.contains("2 - two"), "{screen}");
    assert!(screen.contains("2 + 2"), "{screen}");
    // A key that comes before the question was seen would be for the composer.
    until("the focus", || {
        !terminal.screen().contains("tab answers this question")
    });
    terminal.types("y");
    terminal.shows("2 turns");
    assert_eq!(fs::read_to_string(file).unwrap(), "one\n2\nthree\n");
}

#[test]
fn typing_when_a_question_appears_approves_nothing() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Bash", &json!({"command": "touch made"})))
            .turn(Turn::text("done")),
    );
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("go\r");
    let began = Instant::now();
    while !terminal.screen().contains("tab answers this question") {
        terminal.types("y");
        std::thread::sleep(Duration::from_millis(30));
        assert!(began.elapsed() < PATIENCE, "{}", terminal.screen());
    }
    for _ in 0..20 {
        terminal.types("y");
        std::thread::sleep(Duration::from_millis(30));
    }
    let screen = terminal.screen();
    assert!(screen.contains("tab answers this question"), "{screen}");
    assert!(!bench.work().join("made").exists());
    terminal.types("\t");
    terminal.types("n\r");
    terminal.shows("2 turns");
    assert!(!bench.work().join("made").exists());
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
fn a_long_paste_is_sent_whole_and_once() {
    let bench = Bench::new(Script::new().turn(Turn::text("read")));
    let mut terminal = Terminal::start(&bench, "");
    let long = format!("<{}>", "x".repeat(100_000));
    terminal.types(&format!("\x1b[200~{long}\x1b[201~"));
    terminal.shows("[pasted 100002 characters]");
    terminal.types("\r");
    terminal.shows("1 turn");
    let request = bench.server.last_request().unwrap();
    let sent = String::from_utf8_lossy(request.body()).into_owned();
    assert_eq!(sent.matches(&long).count(), 1);
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

#[test]
fn vim_mode_is_the_users_choice() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    let home = bench.room.codespar_home();
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("settings.json"), r#"{"terminal": {"vim": true}}"#).unwrap();
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
fn commands_of_the_session_work() {
    let bench = Bench::new(Script::new().turn(Turn::text("ran it")));
    bench.file(".codespar/commands/git/tidy.md", "Tidy up $ARGUMENTS");
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("/modle\r");
    terminal.shows("did you mean /model?");
    terminal.types("#always run the tests\r");
    terminal.shows("noted in ");
    let notes = fs::read_to_string(bench.work().join("AGENTS.md")).unwrap();
    assert_eq!(notes, "- always run the tests\n");
    terminal.types("!echo from the shell\r");
    terminal.shows("Bash echo from the shell");
    terminal.types("/git:tidy the branches\r");
    terminal.shows("1 turn");
    let request = bench.server.last_request().unwrap();
    let sent = String::from_utf8_lossy(request.body()).into_owned();
    assert!(sent.contains("Tidy up the branches"), "{sent}");
    assert!(sent.contains("from the shell"), "{sent}");
    terminal.types("/mode plan\r");
    terminal.shows("· plan ·");
    terminal.types("\x1b[Z");
    terminal.shows("· default ·");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
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
