//! A session with five agents and three commands under way, and what must be true in the end.

use std::{path::PathBuf, process::Command, time::Duration};

use codespar_testkit::{
    AfterLast, Conversation, Matcher, Script, Turn,
    process::{Finished, Running, spawn},
};
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, json_lines, parsed},
    faults::{self, Fault},
};

pub(crate) const AGENTS: usize = 5;
pub(crate) const SHELLS: usize = 3;
pub(crate) const STEPS: usize = 6;

/// How often each scenario is gone through.
pub(crate) fn runs() -> u32 {
    let named = std::env::var("CODESPAR_LEASE_RUNS").ok();
    named.map_or(1, |runs| runs.parse().unwrap())
}

/// Another process on the same state directory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Second {
    None,
    /// It can see that the first process exists.
    InSight,
    /// It cannot: it has a table of processes of its own, as in a container.
    OutOfSight,
}

pub(crate) struct World {
    pub(crate) bench: Bench,
    first: Running,
    pub(crate) second: Option<Running>,
}

/// Each agent makes its steps and waits with the last one for the gate; commands only wait.
fn script() -> Script {
    let mut turn = Turn::new();
    for n in 0..AGENTS {
        let input = json!({"description": format!("agent {n}"), "prompt": format!("child {n} works"), "run_in_background": true});
        turn = turn.and_tool("Task", &input);
    }
    for n in 0..SHELLS {
        let command = format!(
            "touch shell{n}; until [ -e gate ]; do sleep 0.1; done; echo {n} >> shells.txt"
        );
        let input =
            json!({"task_type": "local_bash", "subject": format!("shell {n}"), "command": command});
        turn = turn.and_tool("TaskCreate", &input);
    }
    let mut script = Script::new()
        .turn(turn)
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat);
    for n in 0..AGENTS {
        let prompt = Matcher::first_user_contains(format!("child {n} works"));
        let mut child = Conversation::new(format!("child {n}"), prompt);
        for step in 0..STEPS {
            let gate = match step + 1 {
                STEPS => "until [ -e gate ]; do sleep 0.1; done; ",
                _ => "",
            };
            let command = format!("{gate}echo {n}.{step} >> ran.txt");
            let turn = Turn::tool("Bash", &json!({"command": command}));
            child = child.turn(turn.latency(Duration::from_millis(700)));
        }
        let done = Turn::text(format!("child {n} is done"));
        script = script.conversation(child.turn(done.latency(Duration::from_millis(700))));
    }
    script
}

/// The user's own settings: they hold in every process.
pub(crate) fn allow_commands(bench: &Bench) {
    let settings = bench.room.codespar_home().join("settings.json");
    std::fs::write(settings, r#"{"permissions": {"allow": ["Bash"]}}"#).unwrap();
}

impl World {
    /// Everything is under way.
    pub(crate) fn start(fault: Fault) -> Self {
        let bench = Bench::new(script());
        allow_commands(&bench);
        let mut command = bench.command(&["-p", "go", "--output-format", "stream-json"]);
        if matches!(fault, Fault::Clock(_)) {
            let clock = bench.room.home().join("clock");
            std::fs::write(&clock, "+0s").unwrap();
            with_clock(&mut command, &clock);
        }
        let first = spawn(&mut command).unwrap();
        let world = Self {
            bench,
            first,
            second: None,
        };
        world.wait_until("the commands run", |world| {
            (0..SHELLS).all(|n| world.bench.work().join(format!("shell{n}")).exists())
        });
        world.wait_until("an agent has made a step", |world| !world.ran().is_empty());
        world
    }

    pub(crate) fn pid(&self) -> u32 {
        self.first.pid()
    }

    pub(crate) fn clock(&self) -> PathBuf {
        self.bench.room.home().join("clock")
    }

    /// Starts the second process.
    pub(crate) fn with(&mut self, second: Second) {
        let own = self.bench.command(&["worker", "--until-idle"]);
        let mut command = match second {
            Second::None => return,
            Second::InSight => own,
            Second::OutOfSight => out_of_sight(&own),
        };
        self.second = Some(spawn(&mut command).unwrap());
        self.wait_until("the second process is there", |world| {
            faults::runners(&world.bench) == 2
        });
    }

    pub(crate) fn open_the_gate(&self) {
        self.bench.file("gate", "");
    }

    /// The first process is no more.
    pub(crate) fn killed(self) -> Bench {
        self.first.kill_9().unwrap();
        self.bench
    }

    /// The steps that agents have made.
    pub(crate) fn ran(&self) -> Vec<String> {
        lines(&self.bench.work().join("ran.txt"))
    }

    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let began = std::time::Instant::now();
        while !holds(self) {
            let second = self.second.as_ref().map(Running::stderr_so_far);
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: {} {second:?}",
                self.first.stderr_so_far()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many of the first process's tasks others have taken over.
    pub(crate) fn taken_over(&self) -> i64 {
        faults::count(
            &self.bench,
            "SELECT COUNT(*) FROM tasks WHERE lease_epoch > 1 AND id <> $1",
            "",
        )
    }

    /// Both processes have come to their end.
    pub(crate) fn finished(self) -> Result {
        let first = self.first.wait(PATIENCE * 2).unwrap();
        if let Some(second) = self.second {
            second.wait(PATIENCE).unwrap();
        }
        let left = self.bench.room.wait_until_empty(PATIENCE).unwrap();
        assert_eq!(left, Vec::<u32>::new(), "processes that stay");
        let tasks = self.bench.run(&["task", "list", "--json"]).stdout;
        Result {
            tasks: parsed(&tasks)["tasks"].as_array().unwrap().clone(),
            ran: lines(&self.bench.work().join("ran.txt")),
            shells: lines(&self.bench.work().join("shells.txt")),
            bench: self.bench,
            first,
        }
    }
}

fn lines(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn with_clock(command: &mut Command, clock: &std::path::Path) {
    // Setting the date moves the real-time clock and no other.
    command
        .env("LD_PRELOAD", faults::library())
        .env("FAKETIME_TIMESTAMP_FILE", clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
}

/// The same command where the processes of this machine cannot be seen.
fn out_of_sight(command: &Command) -> Command {
    let mut hidden = Command::new("bwrap");
    hidden
        .args(["--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        hidden.env(name, value.unwrap());
    }
    hidden
}

/// What there is in the end.
pub(crate) struct Result {
    pub(crate) bench: Bench,
    pub(crate) first: Finished,
    pub(crate) tasks: Vec<Value>,
    pub(crate) ran: Vec<String>,
    pub(crate) shells: Vec<String>,
}

impl Result {
    /// Nothing happened that anybody would notice.
    pub(crate) fn all_is_well(&self) {
        self.nothing_failed_and_nothing_was_doubled();
        let expected: Vec<String> = (0..AGENTS)
            .flat_map(|n| (0..STEPS).map(move |step| format!("{n}.{step}")))
            .collect();
        assert_eq!(self.ran, expected);
        for task in &self.tasks {
            assert_eq!(task["attempt"], 1, "{task:#}");
        }
        assert_eq!(self.entries_with("interrupted"), 0);
    }

    /// Whoever did the work: all of it was done, once, and is on record.
    pub(crate) fn nothing_failed_and_nothing_was_doubled(&self) {
        let (code, output) = (self.first.status.code(), &self.first.stdout);
        assert_eq!(code, Some(0), "{output}\n{}", self.first.stderr);
        assert_eq!(self.tasks.len(), AGENTS + SHELLS);
        for task in &self.tasks {
            assert_eq!(task["status"], "completed", "{task:#}");
            assert_eq!(task["error"], Value::Null, "{task:#}");
            let subject = task["subject"].as_str().unwrap();
            if let Some(n) = subject.strip_prefix("agent ") {
                assert_eq!(task["metadata"]["result"], format!("child {n} is done"));
            }
        }
        assert_eq!(self.shells, ["0", "1", "2"]);
        let mut steps = self.ran.clone();
        steps.dedup();
        assert_eq!(steps, self.ran, "a step ran twice");
        assert_eq!(self.entries_with("The user interrupted"), 0);
        let told = self.told();
        for task in &self.tasks {
            let id = task["task_id"].as_str().unwrap();
            let told = told.matches(&format!("<task-id>{id}</task-id>")).count();
            assert_eq!(told, 1, "{id} is told once");
        }
    }

    /// The session's own conversation.
    fn told(&self) -> String {
        let session = &json_lines(self.first.stdout.lines().next().unwrap())[0]["session_id"];
        let session = session.as_str().unwrap();
        self.bench.run(&["session", "export", session]).stdout
    }

    /// How many entries of all conversations have these words.
    pub(crate) fn entries_with(&self, text: &str) -> i64 {
        faults::entries_with(&self.bench, text)
    }
}
