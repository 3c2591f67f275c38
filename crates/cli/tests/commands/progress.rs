//! What long commands show at a terminal while they work, and that nothing of it stays.

use std::{
    fs,
    io::{Read, Write},
    num::NonZero,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use codespar_testkit::Script;
use sqlx::{ConnectOptions, Executor, sqlite::SqliteConnectOptions};

use crate::common::{Bench, PATIENCE, ended, git, parsed, wait_for};

const PROGRAM: &str = env!("CARGO_BIN_EXE_codespar");
/// Of the screen on which everything is shown at the end: nothing scrolls out of it.
const ROWS: NonZero<u16> = NonZero::new(400).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(100).unwrap();
const FRAMES: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
/// What moves a cursor begins with this.
const ESCAPE: char = '\u{1b}';
/// Longer than what is quick: where nothing is shown after that, nothing is shown.
const WHILE: Duration = Duration::from_millis(2500);

/// A command at a terminal.
struct Terminal {
    child: Child,
    input: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    /// `line` is for the shell, so that one stream can be directed elsewhere. `tools` come first
    /// in the search path.
    fn start(bench: &Bench, term: &str, line: &str, tools: Option<&Path>) -> Self {
        let mut command = bench.room.command("script");
        command
            .current_dir(bench.work())
            .args(["-qec", &format!("exec {PROGRAM} {line}"), "/dev/null"])
            .env("TERM", term)
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        use_tools(&mut command, tools);
        let mut child = command.spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let seen = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..count]);
                *seen.lock().unwrap() = String::from_utf8_lossy(&bytes).into_owned();
            }
        });
        let input = child.stdin.take().unwrap();
        Self {
            child,
            input,
            shown,
        }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    fn shows(&self, cue: &str) {
        wait_for(cue, || self.shown().contains(cue));
    }

    /// A spinner, and what is under way.
    fn turns(&self, text: &str) {
        let is_there = |frame: char| self.shown().contains(&format!("{frame} {text} "));
        wait_for(text, || FRAMES.chars().any(is_there));
    }

    /// Waits for the end and gives all that was written, and the exit code.
    fn whole(&mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "no end: {}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        };
        // The thread that reads has come to the end of the pipe.
        wait_for("the rest", || Arc::strong_count(&self.shown) == 1);
        (status.code(), self.shown())
    }

    /// The exit code, and what is on the screen at the end.
    fn end(mut self) -> (Option<i32>, String) {
        let (code, shown) = self.whole();
        let mut screen = vt100::Parser::new(ROWS, COLUMNS, 0);
        screen.process(shown.as_bytes());
        (code, screen.screen().contents())
    }
}

fn use_tools(command: &mut Command, tools: Option<&Path>) {
    if let Some(tools) = tools {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", tools.display()));
    }
}

/// A program of the system that waits, when one of its arguments is among `words`, until the gate
/// is opened.
struct Gated {
    dir: PathBuf,
}

impl Gated {
    fn new(bench: &Bench, program: &str, words: &str) -> Self {
        let dir = bench.room.home().join("gated");
        fs::create_dir(&dir).unwrap();
        let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|path| path.exists())
            .unwrap();
        let (real, at) = (real.display(), dir.display());
        let text = format!(
            "#!/bin/sh\n\
             for word in \"$@\"; do case $word in {words})\n\
             : > {at}/waits-$$; while [ -d {at} -a ! -e {at}/open ]; do sleep 0.05; done;; esac; done\n\
             exec {real} \"$@\"\n"
        );
        let path = dir.join(program);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    fn waits_for(&self, count: usize) {
        let waiting = || {
            let entries = fs::read_dir(&self.dir).unwrap().flatten();
            let names = entries.map(|entry| entry.file_name());
            names
                .filter(|name| name.to_string_lossy().starts_with("waits-"))
                .count()
        };
        wait_for("the gate", || waiting() >= count);
    }

    fn open(&self) {
        fs::write(self.dir.join("open"), "").unwrap();
    }
}

/// Whatever becomes of the test, nothing waits for ever.
impl Drop for Gated {
    fn drop(&mut self) {
        let _ = fs::write(self.dir.join("open"), "");
    }
}

fn repository() -> Bench {
    let files = [
        ("src/session.ts", "export function sessionTimeout() {}\n"),
        (
            "src/login.ts",
            "import { sessionTimeout } from './session'\n",
        ),
        ("README.md", "# Sample\n"),
    ];
    git::repository(Script::new(), &files)
}

#[test]
fn a_cold_index_shows_how_many_files_are_read_and_leaves_the_result_alone() {
    let bench = repository();
    let gated = Gated::new(&bench, "git", "log|rev-list");
    let line = "locate 'fix the session timeout'";
    let terminal = Terminal::start(&bench, "xterm", line, Some(&gated.dir));
    terminal.turns("Indexing files: 3 of 3");
    gated.open();
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[0].contains("src/session.ts"), "{screen}");
    assert!(!screen.contains("Indexing"), "{screen}");

    // The result is in a file: on standard error there is the line, and then nothing.
    fs::remove_file(gated.dir.join("open")).unwrap();
    fs::remove_dir_all(bench.room.codespar_home().join("dev/index")).unwrap();
    let line = format!("{line} > {}/found.txt", bench.room.home().display());
    let terminal = Terminal::start(&bench, "xterm", &line, Some(&gated.dir));
    terminal.turns("Indexing files: 3 of 3");
    gated.open();
    let (code, screen) = terminal.end();
    assert_eq!((code, screen.trim()), (Some(0), ""));
    let found = fs::read_to_string(bench.room.home().join("found.txt")).unwrap();
    assert!(found.contains("src/session.ts"), "{found}");
    assert!(!found.contains(ESCAPE), "{found:?}");
}

/// What is left on the screen after Ctrl-C, without the characters that the terminal echoes.
fn interrupted(mut terminal: Terminal) -> (Option<i32>, String) {
    terminal.input.write_all(b"\x03").unwrap();
    let (code, screen) = terminal.end();
    (code, screen.replace("^C", "").trim().to_owned())
}

#[test]
fn ctrl_c_leaves_nothing_of_the_line_of_a_cold_index() {
    let bench = repository();
    let gated = Gated::new(&bench, "git", "log|rev-list");
    let line = "locate 'fix the session timeout'";
    let terminal = Terminal::start(&bench, "xterm", line, Some(&gated.dir));
    terminal.turns("Indexing files: 3 of 3");
    assert_eq!(interrupted(terminal), (Some(130), String::new()));
}

#[test]
fn nothing_is_shown_in_a_pipe_on_a_dumb_terminal_or_with_json() {
    let bench = repository();
    let gated = Gated::new(&bench, "git", "log|rev-list");
    let line = "locate 'fix the session timeout'";
    let mut piped = bench.command(&["locate", "fix the session timeout"]);
    piped.env("TERM", "xterm");
    use_tools(&mut piped, Some(&gated.dir));
    let piped = codespar_testkit::process::spawn(&mut piped).unwrap();
    let dumb = Terminal::start(&bench, "dumb", line, Some(&gated.dir));
    let json = format!("{line} --json");
    let json = Terminal::start(&bench, "xterm", &json, Some(&gated.dir));
    gated.waits_for(3);
    std::thread::sleep(WHILE);
    gated.open();

    let piped = piped.wait(PATIENCE).unwrap();
    assert_eq!(piped.stderr, "");
    assert!(!piped.stdout.contains(ESCAPE), "{:?}", piped.stdout);
    for mut terminal in [dumb, json] {
        let (code, shown) = terminal.whole();
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("src/session.ts"), "{shown}");
        assert!(!shown.contains(ESCAPE), "{shown:?}");
    }
}

#[test]
fn cleaning_up_shows_its_step_and_then_the_result() {
    let bench = Bench::new(Script::new());
    bench.run(&["session", "list"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let database = bench.room.codespar_home().join("codespar.db");
    let mut writer = runtime
        .block_on(SqliteConnectOptions::new().filename(database).connect())
        .unwrap();
    // Whoever else wants to write waits.
    runtime.block_on(writer.execute("BEGIN IMMEDIATE")).unwrap();
    let terminal = Terminal::start(&bench, "xterm", "gc", None);
    terminal.turns("Removing old sessions");
    runtime.block_on(writer.execute("COMMIT")).unwrap();
    let (code, screen) = terminal.end();
    let expected = "removed 0 sessions last used more than 30 days ago, 0 KiB freed";
    assert_eq!((code, screen.trim()), (Some(0), expected));
}

#[test]
fn ctrl_c_leaves_nothing_of_the_line_of_cleaning_up() {
    let bench = Bench::new(Script::new());
    bench.run(&["session", "list"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let database = bench.room.codespar_home().join("codespar.db");
    let mut writer = runtime
        .block_on(SqliteConnectOptions::new().filename(database).connect())
        .unwrap();
    runtime.block_on(writer.execute("BEGIN IMMEDIATE")).unwrap();
    let terminal = Terminal::start(&bench, "xterm", "gc", None);
    terminal.turns("Removing old sessions");
    assert_eq!(interrupted(terminal), (Some(130), String::new()));
}

fn create(bench: &Bench, command: &str) -> String {
    let args = ["task", "create", "--json", "--type", "local_bash"];
    let finished = bench.run(&[&args[..], &["--subject", "s", "--command", command]].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let task = parsed(&finished.stdout);
    task["task_id"].as_str().unwrap().to_owned()
}

const WAIT: &str = "while [ ! -e go ]; do sleep 0.05; done";

#[test]
fn a_worker_says_what_it_runs_and_when_it_waits() {
    let bench = Bench::new(Script::new());
    let mut terminal = Terminal::start(&bench, "xterm", "worker", None);
    terminal.shows("waiting for tasks");
    let first = create(&bench, WAIT);
    terminal.turns("running 1 task");
    let second = create(&bench, WAIT);
    terminal.turns("running 2 tasks");
    let before = terminal.shown().len();
    bench.file("go", "");
    for id in [first, second] {
        assert_eq!(ended(&bench, &id)["status"], "completed");
    }
    wait_for("the worker to wait again", || {
        terminal.shown()[before..].contains("waiting for tasks")
    });
    terminal.input.write_all(b"\x03").unwrap();
    let (_, screen) = terminal.end();
    let lines: Vec<&str> = screen.lines().filter(|line| *line != "^C").collect();
    assert!(lines[0].contains("taking tasks of"), "{screen}");
    assert!(
        !screen.contains("waiting for") && !screen.contains("running"),
        "{screen}"
    );
}

#[test]
fn a_worker_on_a_dumb_terminal_says_only_that_it_began() {
    let bench = Bench::new(Script::new());
    let mut terminal = Terminal::start(&bench, "dumb", "worker", None);
    terminal.shows("taking tasks of");
    let id = create(&bench, "sleep 2");
    assert_eq!(ended(&bench, &id)["status"], "completed");
    terminal.input.write_all(b"\x03").unwrap();
    let (_, shown) = terminal.whole();
    assert!(
        !shown.contains("running") && !shown.contains("waiting"),
        "{shown}"
    );
    assert!(!shown.contains(ESCAPE), "{shown:?}");
}

#[test]
fn the_demo_turns_while_its_tests_run_and_nothing_of_it_stays() {
    let bench = Bench::new(Script::new());
    let gated = Gated::new(&bench, "sh", "test.sh");
    let terminal = Terminal::start(&bench, "xterm", "demo", Some(&gated.dir));
    terminal.turns("sh test.sh");
    gated.open();
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("merged #1 into main by squash"), "{screen}");
    assert!(!screen.contains(|c| FRAMES.contains(c)), "{screen}");
}
