//! `TEMPORAL_ADDRESS` of other programs: the shell of somebody who develops for Temporal.

use std::process::Command;

use codespar_testkit::{
    Script, Turn,
    process::{Finished, spawn},
};
use serde_json::Value;

use crate::common::{Bench, PATIENCE, ended, parsed};

const ADDRESS: &str = "TEMPORAL_ADDRESS";

/// With records in SQLite, where Temporal cannot dispatch anything.
fn beside_temporal(bench: &Bench, args: &[&str]) -> Command {
    let mut command = bench.command(args);
    command.env(ADDRESS, "127.0.0.1:1");
    command
}

fn run(bench: &Bench, args: &[&str]) -> Finished {
    let running = spawn(&mut beside_temporal(bench, args)).unwrap();
    running.wait(PATIENCE).unwrap()
}

#[test]
fn a_run_pays_no_attention_to_a_temporal_server_of_others() {
    let bench = Bench::new(Script::new().turn(Turn::text("hello")));
    let finished = run(&bench, &["-p", "hi"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout.trim(), "hello");
    assert!(!finished.stderr.contains(ADDRESS), "{}", finished.stderr);
}

#[test]
fn the_worker_that_a_task_needs_is_started_without_it() {
    let bench = Bench::new(Script::new());
    let create = [
        "task",
        "create",
        "--type",
        "local_bash",
        "--subject",
        "s",
        "--command",
        "true",
        "--json",
    ];
    let created = run(&bench, &create);
    assert_eq!(created.status.code(), Some(0), "{}", created.stderr);
    let created = parsed(&created.stdout);
    let id = created["task_id"].as_str().unwrap();
    assert_eq!(ended(&bench, id)["status"], "completed");
}

#[test]
fn a_worker_and_a_server_refuse_an_address_that_they_cannot_use() {
    let bench = Bench::new(Script::new());
    let own: &[&[&str]] = &[
        &["worker"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["serve", "--listen", "127.0.0.1:0", "--no-worker"],
    ];
    for args in own {
        let finished = run(&bench, args);
        assert_eq!(finished.status.code(), Some(2), "{args:?}");
        for variable in [ADDRESS, "CODESPAR_DATABASE_URL"] {
            let told = &finished.stderr;
            assert!(told.contains(variable), "{args:?}: {told}");
        }
    }
}

#[test]
fn doctor_warns_of_it() {
    let bench = Bench::new(Script::new());
    let finished = run(&bench, &["doctor", "--json"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stdout);
    let report = parsed(&finished.stdout);
    let findings = report["findings"].as_array().unwrap();
    let about: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["name"] == "dispatch")
        .collect();
    let [finding] = about.as_slice() else {
        unreachable!("{findings:#?}");
    };
    assert_eq!(finding["health"], "warning");
    let says = finding["says"].as_str().unwrap();
    assert!(says.contains(ADDRESS), "{says}");
    assert!(says.contains("codespar worker"), "{says}");
}
