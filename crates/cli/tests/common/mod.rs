//! The real binary in a clean home, against the scripted model.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

pub(crate) mod git;
pub(crate) mod kill_points;
pub(crate) mod sandbox;

use std::{
    io::{Read, Write},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use codespar_testkit::{
    Script, ScriptedModel, Turn,
    process::{CleanRoom, Finished, Running, spawn, spawn_with_stdin},
};
use serde_json::{Value, json};

/// What does not come hangs; on a machine with thirty times the work it can do, what comes takes
/// a while.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A home, a repository and a model.
pub(crate) struct Bench {
    pub(crate) room: CleanRoom,
    pub(crate) server: ScriptedModel,
}

impl Bench {
    pub(crate) fn new(script: Script) -> Self {
        let room = CleanRoom::new().unwrap();
        std::fs::create_dir(room.work().join(".git")).unwrap();
        Self {
            room,
            server: ScriptedModel::start_blocking(script).unwrap(),
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.room.work()
    }

    /// Writes a file of the repository.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Trusts the files of the repository as they are now.
    pub(crate) fn trust(&self) {
        let finished = self.run(&["trust", "add"]);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.room.command(env!("CARGO_BIN_EXE_codespar"));
        command
            .current_dir(self.work())
            .args(args)
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001");
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        spawn(&mut self.command(args)).unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.start(args).wait(PATIENCE).unwrap()
    }

    pub(crate) fn run_with_stdin(&self, args: &[&str], input: &str) -> Finished {
        spawn_with_stdin(&mut self.command(args), input.into())
            .unwrap()
            .wait(PATIENCE)
            .unwrap()
    }

    /// Runs with `--output-format stream-json` and gives the lines.
    pub(crate) fn stream(&self, args: &[&str]) -> (Vec<Value>, Option<i32>) {
        let finished = self.run(&[args, &["--output-format", "stream-json"]].concat());
        (json_lines(&finished.stdout), finished.status.code())
    }
}

/// Each run of this runs one command.
pub(crate) fn one_command(command: &str) -> Script {
    Script::new()
        .turn(Turn::tool("Bash", &json!({ "command": command })))
        .turn(Turn::text("done"))
}

pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// The texts of all tool results in `user` lines.
pub(crate) fn tool_results(lines: &[Value]) -> Vec<String> {
    lines
        .iter()
        .filter(|line| line["type"] == "user")
        .flat_map(|line| line["message"]["content"].as_array().unwrap().clone())
        .map(|block| block["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

pub(crate) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn task(bench: &Bench, id: &str) -> Value {
    parsed(&bench.run(&["task", "get", id, "--json"]).stdout)
}

/// Waits until a task is over and gives its record.
pub(crate) fn ended(bench: &Bench, id: &str) -> Value {
    let began = Instant::now();
    loop {
        let record = task(bench, id);
        if !matches!(record["status"].as_str(), Some("pending" | "running")) {
            return record;
        }
        assert!(began.elapsed() < PATIENCE, "{record}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits for the one open question.
pub(crate) fn question(bench: &Bench) -> Value {
    let began = Instant::now();
    loop {
        let listed = parsed(&bench.run(&["task", "questions", "--json"]).stdout);
        if let [question] = listed["questions"].as_array().unwrap().as_slice() {
            return question.clone();
        }
        assert!(began.elapsed() < PATIENCE, "{listed}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until something is so.
pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Types lines into a program on a terminal, each when its cue has been shown, and gives all that
/// was shown.
pub(crate) fn type_into(command: &mut Command, cues: &[(&str, &str)]) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = String::new();
    for (cue, line) in cues {
        let from = shown.len();
        while !shown[from..].contains(cue) {
            let mut buffer = [0; 4096];
            let count = output.read(&mut buffer).unwrap();
            assert!(count > 0, "no `{cue}` in {shown}");
            shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        writeln!(input, "{line}").unwrap();
    }
    output.read_to_string(&mut shown).unwrap();
    child.wait().unwrap();
    shown
}

/// A session of the binary at a terminal.
pub(crate) fn session(bench: &Bench, cues: &[(&str, &str)]) -> String {
    let mut command = bench.room.command("script");
    command
        .current_dir(bench.work())
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
        .args(["-qec", env!("CARGO_BIN_EXE_codespar"), "/dev/null"]);
    type_into(&mut command, cues)
}
