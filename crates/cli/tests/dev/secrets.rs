//! Secrets in files that the dev agent shows to a model, in what comes back, and in what goes out.

use std::process::Command;

use codespar_testkit::{Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, parsed},
    repository::{FIX, answer, branches, git, greeting, repository, script},
};

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const VALUE: &str = "https://hooks.example.com/a-private-place";

fn config() -> String {
    format!("port=1\ntoken={TOKEN}\nhook={VALUE}\nlast=1\n")
}

/// Runs the dev agent where the value is that of a variable.
fn with_value(bench: &Bench, args: &[&str]) -> (Value, Option<i32>) {
    let mut command: Command = bench.command(&[&["dev", "--json", "--no-verify"], args].concat());
    command.env("SLACK_WEBHOOK_URL", VALUE);
    let finished = codespar_testkit::process::spawn(&mut command);
    let finished = finished.unwrap().wait(PATIENCE).unwrap();
    (parsed(&finished.stdout), finished.status.code())
}

fn sent(bench: &Bench) -> String {
    let requests = bench.server.requests();
    requests
        .iter()
        .map(|request| format!("{request:?}"))
        .collect()
}

fn published(bench: &Bench) -> String {
    let branch = branches(bench).remove(0);
    git(&bench.work(), &["show", &format!("{branch}:config.sh")])
}

fn edit(search: &str, replace: &str) -> Turn {
    answer(
        "Change the port",
        &format!("===FILE: config.sh===\n<<<SEARCH\n{search}\n>>>REPLACE\n{replace}\n===END===\n"),
    )
}

#[test]
fn a_model_is_shown_files_without_secrets_and_its_edit_keeps_them() {
    let around = "port=1\ntoken=[redacted]\nhook=[redacted:SLACK_WEBHOOK_URL]";
    let edit = edit(around, &around.replace("port=1", "port=2"));
    let bench = repository(script(&["config.sh"], [edit]), &[("config.sh", &config())]);
    let (report, code) = with_value(&bench, &["use port 2"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(published(&bench), config().replace("port=1", "port=2"));
    let sent = sent(&bench);
    assert!(sent.contains("token=[redacted]"), "{sent}");
    assert!(!sent.contains(TOKEN) && !sent.contains(VALUE), "{sent}");
}

#[test]
fn a_mark_is_not_published_in_place_of_a_secret_and_a_secret_can_be_taken_out() {
    let whole = answer(
        "Change the port",
        "===FILE: config.sh===\nport=2\ntoken=[redacted]\nhook=x\n===END===\n",
    );
    let answers = [
        whole,
        edit("last=1", "last='[redacted]'"),
        edit("token=[redacted]\n", "token=$TOKEN\n"),
    ];
    let bench = repository(script(&["config.sh"], answers), &[("config.sh", &config())]);
    let (report, code) = with_value(&bench, &["read the token from the environment"]);
    assert_eq!(code, Some(0), "{report}");
    let expected = config().replace(TOKEN, "$TOKEN");
    assert_eq!(published(&bench), expected);
    let sent = sent(&bench);
    assert!(sent.contains("stands for a secret"), "{sent}");
    assert!(!sent.contains(TOKEN) && !sent.contains(VALUE), "{sent}");
}

#[test]
fn a_secret_in_the_text_alone_is_refused_before_there_is_a_branch() {
    for summary in [
        "Say hi\n\nIt needs this:\n\napi_key = \"Zk3vQ9xT7bLm2Rw8Yc5N4d\"",
        "api_key = Zk3vQ9xT7bLm2Rw8Yc5N4d",
    ] {
        let bench = greeting(script(&["greet.sh"], [answer(summary, FIX)]));
        let before = git(&bench.work(), &["rev-parse", "main"]);
        let finished = bench.run(&["dev", "make it say hi"]);
        let told = format!("{}{}", finished.stdout, finished.stderr);
        assert_ne!(finished.status.code(), Some(0), "{told}");
        assert!(told.contains("would publish a secret"), "{told}");
        let places = ["`commit message:", "of the pull request:"];
        assert!(places.iter().any(|place| told.contains(place)), "{told}");
        assert_eq!(branches(&bench), [""; 0]);
        assert_eq!(git(&bench.work(), &["rev-parse", "main"]), before);
        let pulls = parsed(&bench.run(&["pr", "list", "--json"]).stdout);
        assert!(!pulls.to_string().contains("\"number\""), "{pulls}");
    }
}

#[test]
fn the_log_of_an_agent_has_no_secret() {
    let turn = Turn::text(format!("I saw {TOKEN} there."));
    let bench = Bench::new(
        Script::new().conversation(
            codespar_testkit::Conversation::new("agent", Matcher::first_user_contains("look"))
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": format!("echo {TOKEN}")}),
                ))
                .turn(turn),
        ),
    );
    let create = ["task", "create", "--json", "--type", "local_agent"];
    let args = ["--subject", "x", "--prompt", "look around"];
    let made = bench.run(&[&create[..], &args].concat());
    let made = parsed(&made.stdout);
    let asked = crate::common::question(&bench);
    let refused = bench.run(&["task", "answer", asked["id"].as_str().unwrap(), "no"]);
    assert!(refused.status.success(), "{}", refused.stderr);
    let record = crate::common::ended(&bench, made["task_id"].as_str().unwrap());
    let log = std::fs::read_to_string(record["output_file"].as_str().unwrap()).unwrap();
    assert!(log.contains("I saw [redacted] there."), "{log}");
    assert!(log.contains("no rule allows `echo [redacted]`"), "{log}");
    assert!(!record.to_string().contains("ghp_"), "{record}");
}

#[test]
fn instructions_of_the_project_reach_the_model_without_secrets() {
    let bench = Bench::new(Script::new().turn(Turn::text("x")));
    bench.file("AGENTS.md", &format!("Log in with {TOKEN}.\n"));
    bench.run(&["-p", "go"]);
    let sent = sent(&bench);
    assert!(sent.contains("Log in with [redacted]."), "{sent}");
    assert!(!sent.contains(TOKEN), "{sent}");
}

#[test]
fn files_of_lfs_are_there_in_a_trusted_repository_and_are_named_in_another() {
    let answers = [(); 2].map(|()| answer("Say hi", FIX));
    let bench = greeting(script(&["greet.sh"], answers));
    let work = bench.work();
    for (key, value) in [
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.smudge", "git-lfs smudge -- %f"),
        ("filter.lfs.process", "git-lfs filter-process"),
    ] {
        git(&work, &["config", key, value]);
    }
    bench.file(".gitattributes", "*.bin filter=lfs -text\n");
    bench.file("data.bin", "what is large\n");
    crate::repository::commit_all(&bench, "Large");
    let run = |args: &[&str], code: i32| {
        let verify = ["--verify", "grep -q large data.bin && echo 1 passed"];
        let finished = bench.run(&[&["dev", "make it say hi"], &verify[..], args].concat());
        assert_eq!(finished.status.code(), Some(code), "{}", finished.stderr);
        format!("{}{}", finished.stdout, finished.stderr)
    };
    let untrusted = run(&[], 3);
    assert!(
        untrusted.contains("1 file is kept by Git LFS (data.bin"),
        "{untrusted}"
    );
    bench.trust();
    let trusted = run(&[], 0);
    assert!(!trusted.contains("Git LFS"), "{trusted}");
    assert!(trusted.contains("1 passed"), "{trusted}");
}
