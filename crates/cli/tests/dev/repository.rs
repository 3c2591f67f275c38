//! A git repository, a scripted model and the dev agent's command.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

pub(crate) use crate::common::git::{commit_all, git, repository};
use crate::common::{Bench, PATIENCE, parsed};

pub(crate) const GREET: &str = "#!/bin/sh\ngreeting=hello\necho \"$greeting world\"\n";
pub(crate) const TEST: &str = "#!/bin/sh\n[ \"$(sh greet.sh)\" = \"hi world\" ] && echo \"1 passed\" || { echo \"1 failed\"; exit 1; }\n";

pub(crate) fn greeting(script: Script) -> Bench {
    repository(
        script,
        &[
            ("greet.sh", GREET),
            ("test.sh", TEST),
            ("Makefile", "test:\n\t@sh test.sh\n"),
        ],
    )
}

/// A picker that names these files and a writer that gives these answers.
pub(crate) fn script(picked: &[&str], answers: impl IntoIterator<Item = Turn>) -> Script {
    Script::new()
        .conversation(
            Conversation::new("picker", Matcher::system_contains("You choose the files"))
                .turn(Turn::text(json!(picked).to_string())),
        )
        .conversation(
            Conversation::new(
                "writer",
                Matcher::system_contains("turns an instruction into"),
            )
            .turns(answers),
        )
}

pub(crate) fn answer(summary: &str, blocks: &str) -> Turn {
    Turn::text(format!("{summary}\n\n{blocks}"))
}

pub(crate) const FIX: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hello\n>>>REPLACE\ngreeting=hi\n===END===\n";

pub(crate) fn dev(bench: &Bench, args: &[&str]) -> (Value, Option<i32>) {
    let finished = bench.run(&[&["dev", "--json"], args].concat());
    assert!(
        finished.stdout.starts_with('{'),
        "{} {}",
        finished.stdout,
        finished.stderr
    );
    (parsed(&finished.stdout), finished.status.code())
}

pub(crate) fn pull(bench: &Bench, number: u64) -> Value {
    let number = number.to_string();
    parsed(&bench.run(&["pr", "show", &number, "--json"]).stdout)
}

pub(crate) fn branches(bench: &Bench) -> Vec<String> {
    git(
        &bench.work(),
        &[
            "branch",
            "--list",
            "--format=%(refname:short)",
            "codespar/*",
        ],
    )
    .lines()
    .map(str::to_owned)
    .collect()
}

pub(crate) fn dev_resume(bench: &Bench, id: &str) -> (Value, Option<i32>) {
    let finished = bench.run(&["dev", "--json", "--resume", id]);
    assert!(
        finished.stdout.starts_with('{'),
        "{} {}",
        finished.stdout,
        finished.stderr
    );
    (parsed(&finished.stdout), finished.status.code())
}

pub(crate) fn without_a_key(bench: &Bench, args: &[&str]) -> codespar_testkit::process::Finished {
    let mut command = bench.command(args);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap()
}

/// A run that was killed after a step; the id of its task.
pub(crate) fn killed_after(bench: &Bench, step: &str, args: &[&str]) -> String {
    let mut command = bench.command(&[&["dev", "make it say hi"], args].concat());
    command.env("CODESPAR_TEST_DIE_AFTER", step);
    let died = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(died.status.code(), None, "{step}: {}", died.stderr);
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let tasks = tasks["tasks"].as_array().unwrap();
    let run = tasks
        .iter()
        .find(|task| task["task_type"] == "local_workflow")
        .unwrap();
    run["task_id"].as_str().unwrap().to_owned()
}
