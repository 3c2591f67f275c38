//! `codespar dev --server`: two binaries, one of which does the work.

use codespar_testkit::{
    Gate, Script, ScriptedModel, Turn,
    process::{Finished, Running, spawn},
};
use serde_json::Value;

use crate::{
    client::{Api, Served, serve, serve_at, token},
    common::{Bench, PATIENCE, git::git, parsed},
    repository::{FIX, answer, greeting, script},
};

/// Somebody else's machine: a directory, a state directory and a home of their own.
struct Laptop {
    bench: Bench,
}

impl Laptop {
    fn new() -> Self {
        Self {
            bench: Bench::new(Script::new()),
        }
    }

    fn start(&self, served: &str, token: &str, args: &[&str]) -> Running {
        let mut command = self
            .bench
            .command(&[&["dev", "--server", served], args].concat());
        command.env("CODESPAR_SERVER_TOKEN", token);
        spawn(&mut command).unwrap()
    }

    fn run(&self, served: &str, token: &str, args: &[&str]) -> Finished {
        self.start(served, token, args).wait(PATIENCE).unwrap()
    }
}

fn server(answers: impl IntoIterator<Item = Turn>) -> (Bench, Served, String) {
    let bench = greeting(script(&["greet.sh"], answers));
    let served = serve(&bench, &[]);
    let token = token(&bench, "write");
    (bench, served, token)
}

#[test]
fn work_is_handed_to_a_server_and_told_as_if_it_were_here() {
    let (bench, served, token) = server([answer("Say hi", FIX)]);
    let laptop = Laptop::new();
    let done = laptop.run(&served.base, &token, &["make it say hi"]);
    assert_eq!(
        done.status.code(),
        Some(0),
        "{}{}",
        done.stdout,
        done.stderr
    );
    for line in ["Base: main", "greet.sh", "#1"] {
        assert!(done.stdout.contains(line), "{line} in {}", done.stdout);
    }
    assert!(done.stderr.contains("--resume w-"), "{}", done.stderr);
    assert!(!done.stdout.contains(&token) && !done.stderr.contains(&token));
    assert!(git(&bench.work(), &["branch", "--list", "codespar/*"]).contains("codespar/"));
    assert_eq!(
        git(&bench.work(), &["show", "main:greet.sh"])
            .matches("hello")
            .count(),
        1
    );
    // The same task can be looked at again, by anybody with a token.
    let id = done
        .stderr
        .split("task ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let again = laptop.run(&served.base, &token, &["--json", "--resume", id]);
    assert_eq!(again.status.code(), Some(0), "{}", again.stderr);
    let shown = parsed(&again.stdout);
    assert_eq!(shown["status"], "completed");
    assert_eq!(
        (&shown["verified"], &shown["base"]),
        (&Value::Bool(true), &"main".into())
    );
}

#[test]
fn the_exit_code_is_that_of_the_run() {
    let wrong = FIX.replace("greeting=hi", "greeting=hey");
    let repairs = (0..4).map(|_| answer("Say hey", &wrong));
    let (_bench, served, token) = server(repairs);
    let laptop = Laptop::new();
    let done = laptop.run(&served.base, &token, &["--json", "make it say hi"]);
    let shown = parsed(&done.stdout);
    let code = done.status.code();
    match shown["status"].as_str() {
        Some("completed") => assert_eq!(code, Some(3), "{shown}"),
        _ => {
            assert_eq!(code, Some(1), "{shown}");
            let resume = shown["resume"].as_str().unwrap();
            assert!(resume.contains("--server"), "{resume}");
        }
    }
}

#[test]
fn ctrl_c_ends_the_following_and_not_the_task() {
    let gate = Gate::closed();
    let (_bench, served, token) = server([answer("Say hi", FIX).held_by(&gate)]);
    let laptop = Laptop::new();
    let mut running = laptop.start(&served.base, &token, &["make it say hi"]);
    running.wait_for_output("Base: main", PATIENCE).unwrap();
    running.interrupt().unwrap();
    let left = running.wait(PATIENCE).unwrap();
    assert_eq!(left.status.code(), Some(130), "{}", left.stderr);
    assert!(left.stderr.contains("it is not stopped"), "{}", left.stderr);
    let id = left.stderr.split("--resume ").nth(1).unwrap();
    let id = id.split_whitespace().next().unwrap().to_owned();
    gate.open();
    let ended = Api::new(&served.base, &token).ended(&id);
    assert_eq!(ended["status"], "completed", "{ended}");
    let again = laptop.run(&served.base, &token, &["--resume", &id]);
    assert_eq!(again.status.code(), Some(0), "{}", again.stderr);
    assert!(again.stdout.contains("#1"), "{}", again.stdout);
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let gate = Gate::closed();
    let (bench, served, token) = server([answer("Say hi", FIX).held_by(&gate)]);
    let laptop = Laptop::new();
    let mut running = laptop.start(&served.base, &token, &["make it say hi"]);
    running.wait_for_output("Base: main", PATIENCE).unwrap();
    let listen = served.base.trim_start_matches("http://").to_owned();
    served.running.kill_9().unwrap();
    running.wait_for_output("was lost", PATIENCE).unwrap();
    let _served = serve_at(&bench, &listen, &[]);
    // The model is asked again, by the next server.
    gate.open();
    let done = running.wait(PATIENCE).unwrap();
    assert_eq!(
        done.status.code(),
        Some(0),
        "{}{}",
        done.stdout,
        done.stderr
    );
    assert!(done.stdout.contains("Connected again"), "{}", done.stdout);
    let pulls = parsed(
        &bench
            .run(&["pr", "list", "--state", "all", "--json"])
            .stdout,
    );
    assert_eq!(pulls["pull_requests"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_work_is_said_before_anything_is_sent() {
    let (bench, served, write) = server([answer("Say hi", FIX)]);
    let laptop = Laptop::new();
    let base = served.base.as_str();
    let read = token(&bench, "read");
    let cases: [(&str, &str, &[&str], i32, &str); 7] = [
        ("http://192.0.2.1:4180", &write, &["x"], 2, "use https"),
        (base, "", &["x"], 2, "CODESPAR_SERVER_TOKEN"),
        (base, "cspr_wrong", &["x"], 2, "does not accept the token"),
        (base, &read, &["x"], 1, "role"),
        (
            base,
            &write,
            &["--verify", "make", "x"],
            2,
            "cannot be used with",
        ),
        (
            base,
            &write,
            &["--repo", "nobody/nothing", "x"],
            2,
            "--repo",
        ),
        ("http://127.0.0.1:1", &write, &["x"], 1, "cannot be reached"),
    ];
    for (address, token, args, code, text) in cases {
        let refused = laptop.run(address, token, args);
        let shown = format!("{address} {args:?}: {}", refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{shown}");
        assert!(refused.stderr.contains(text), "{shown}");
    }
    let (_, listed) = Api::new(base, &write).get("/api/v1/tasks");
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 0, "{listed}");
    // Something else that listens there.
    let model = ScriptedModel::start_blocking(Script::new()).unwrap();
    let other = laptop.run(&model.url(), &write, &["x"]);
    assert_eq!(other.status.code(), Some(1), "{}", other.stderr);
    assert!(
        other.stderr.contains("does not answer as"),
        "{}",
        other.stderr
    );
}

#[test]
fn the_token_can_be_in_a_file() {
    let (_bench, served, token) = server([answer("Say hi", FIX)]);
    let laptop = Laptop::new();
    let file = laptop.bench.work().join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let args = [
        "--server-token-file",
        file.to_str().unwrap(),
        "make it say hi",
    ];
    let done = laptop.run(&served.base, "", &args);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
}
