//! Outputs of tasks that another host runs: a home of its own, on the same database.

use std::{path::PathBuf, process::Command};

use codespar_testkit::{
    AfterLast, Conversation, Matcher, Script, Turn,
    process::{Finished, spawn},
};
use serde_json::{Value, json};

use super::{
    Fleet,
    common::{PATIENCE, parsed, wait_for},
};

const ALLOW: &str = r#"{"permissions": {"allow": ["Bash"]}}"#;

/// A home on another host, with objects in a directory that both have.
struct OtherHost<'a> {
    fleet: &'a Fleet,
    home: PathBuf,
}

impl<'a> OtherHost<'a> {
    fn new(fleet: &'a Fleet, name: &str) -> Self {
        let home = fleet.bench.room.codespar_home().with_file_name(name);
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("settings.json"), ALLOW).unwrap();
        Self { fleet, home }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.fleet.command(args);
        command.env("CODESPAR_HOME", &self.home);
        command.env("CODESPAR_OBJECT_STORE", objects_url(self.fleet));
        command
    }

    fn run(&self, args: &[&str]) -> Finished {
        let running = spawn(&mut self.command(args)).unwrap();
        running.wait(PATIENCE).unwrap()
    }

    fn output(&self, task: &str, offset: u64) -> Value {
        let (offset, limit) = (offset.to_string(), (8 << 20).to_string());
        let args = ["task", "output", task, "--json", "--block"];
        let range = ["--offset", &offset, "--limit", &limit];
        let finished = self.run(&[&args[..], &range].concat());
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        parsed(&finished.stdout)
    }
}

fn objects_dir(fleet: &Fleet) -> PathBuf {
    let home = fleet.bench.room.codespar_home();
    home.with_file_name("objects")
}

fn objects_url(fleet: &Fleet) -> String {
    format!("file://{}", objects_dir(fleet).display())
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn the_output_of_a_command_is_read_and_removed_on_another_host() {
    let fleet = Fleet::new(Script::new());
    let (first, second) = (OtherHost::new(&fleet, "a"), OtherHost::new(&fleet, "b"));
    let command = "head -c 1500000 /dev/zero | tr '\\0' x; echo; echo end";
    let args = ["task", "create", "--type", "local_bash", "--subject", "s"];
    let created = first.run(&[&args[..], &["--command", command, "--json"]].concat());
    assert_eq!(created.status.code(), Some(0), "{}", created.stderr);
    let id = parsed(&created.stdout)["task_id"].clone();
    let id = id.as_str().unwrap();

    let whole = second.output(id, 0);

    assert_eq!(whole["status"], "completed", "{whole:#}");
    assert_eq!(whole["next_offset"], 1_500_005);
    let text = whole["output"].as_str().unwrap();
    assert!(text.ends_with("x\nend\n") && text.len() == 1_500_005);
    assert_eq!(second.output(id, 1_499_999)["output"], "x\nend\n");
    assert!(!second.home.join("task-output").exists());
    // A host that lost its file reads the copy as well.
    std::fs::remove_dir_all(first.home.join("task-output")).unwrap();
    assert_eq!(first.output(id, 1_500_001)["output"], "end\n");

    let doctor = second.run(&["doctor"]).stdout;
    let said = format!("{}, can be written", objects_url(&fleet));
    assert!(doctor.contains(&said), "{doctor}");

    let outputs = objects_dir(&fleet).join("outputs");
    assert_eq!(std::fs::read_dir(&outputs).unwrap().count(), 1);
    let removed = second.run(&["gc", "--days", "0"]);
    assert_eq!(removed.status.code(), Some(0), "{}", removed.stderr);
    assert_eq!(std::fs::read_dir(&outputs).unwrap().count(), 0);
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn the_output_of_an_agent_goes_on_on_another_host() {
    let input = json!({"description": "child", "prompt": "child works", "run_in_background": true});
    let prompt = Matcher::first_user_contains("child works");
    let wait = "touch waiting; until [ -e gate ]; do sleep 0.1; done";
    let child = Conversation::new("child", prompt)
        .turn(Turn::tool("Bash", &json!({"command": "echo before"})))
        .turn(Turn::tool("Bash", &json!({"command": wait})))
        .turn(Turn::tool("Bash", &json!({"command": "echo after"})))
        .turn(Turn::text("the child is done"));
    let script = Script::new()
        .turn(Turn::new().and_tool("Task", &input))
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat)
        .conversation(child);
    let fleet = Fleet::new(script);
    let (first, second) = (OtherHost::new(&fleet, "a"), OtherHost::new(&fleet, "b"));
    let running = spawn(&mut first.command(&["-p", "go"])).unwrap();
    wait_for("the child waits", || {
        fleet.bench.work().join("waiting").exists()
    });
    let id = fleet.tasks()[0]["task_id"].clone();
    let id = id.as_str().unwrap();
    wait_for("the copy has both calls", || {
        let shown = second.run(&["task", "output", id]).stdout;
        shown.contains("echo before") && shown.contains("touch waiting")
    });

    running.kill_9().unwrap();
    std::fs::remove_dir_all(first.home.join("task-output")).unwrap();
    fleet.bench.file("gate", "");
    let finished = second.run(&["worker", "--until-idle"]);

    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let reader = OtherHost::new(&fleet, "c");
    let (copy, own) = (reader.output(id, 0), second.output(id, 0));
    assert_eq!(copy["status"], "completed", "{copy:#}");
    assert_eq!(copy, own, "the same on the host that ran it last");
    let text = copy["output"].as_str().unwrap();
    let places = ["echo before", "touch waiting", "echo after"].map(|part| text.find(part));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{text}"
    );
}

#[test]
fn an_object_store_that_cannot_be_used_is_said_by_doctor() {
    let bench = super::common::Bench::new(Script::new());
    let mut command = bench.command(&["doctor"]);
    command.env("CODESPAR_OBJECT_STORE", "ftp://bucket/prefix");
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(1));
    let said = "`ftp` is not a kind of object store";
    assert!(finished.stdout.contains(said), "{}", finished.stdout);
}
