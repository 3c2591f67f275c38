//! No sandbox works here: the dev agent and shell tasks run nothing and say what to install.

use serde_json::Value;

use crate::{
    common::{ended, parsed, sandbox::without_a_sandbox},
    repository::{FIX, answer, branches, commit_all, greeting, script},
};

/// What the project's own settings say, for no effect.
const PROJECT: [Option<&str>; 3] = [
    None,
    Some(r#"{"sandbox": {"mode": "off"}}"#),
    Some(r#"{"sandbox": {"mode": "bubblewrap"}}"#),
];

fn assert_says_why(text: &str) {
    assert!(text.contains("no sandbox works here"), "{text}");
    assert!(text.contains("Install the package `bubblewrap`"), "{text}");
}

#[test]
fn without_a_sandbox_dev_runs_no_test_and_publishes_nothing() {
    for settings in PROJECT {
        let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
        let proof = bench.room.home().join("proof");
        bench.file("Makefile", &format!("test:\n\ttouch {}\n", proof.display()));
        if let Some(settings) = settings {
            bench.file(".codespar/settings.json", settings);
        }
        commit_all(&bench, "Prove");
        let finished = without_a_sandbox(&bench, &["dev", "make it say hi"]);
        assert_ne!(finished.status.code(), Some(0), "{settings:?}");
        assert_says_why(&format!("{}{}", finished.stdout, finished.stderr));
        assert!(!proof.exists(), "{settings:?}");
        assert_eq!(branches(&bench), [""; 0], "{settings:?}");
    }
}

#[test]
fn without_a_sandbox_a_shell_task_runs_nothing_and_says_why() {
    for settings in PROJECT {
        let bench = greeting(script(&[], []));
        if let Some(settings) = settings {
            bench.file(".codespar/settings.json", settings);
        }
        let create = ["task", "create", "--json", "--type", "local_bash"];
        let args = ["--subject", "x", "--command", "touch proof"];
        let finished = without_a_sandbox(&bench, &[&create[..], &args].concat());
        let made: Value = parsed(&finished.stdout);
        let record = ended(&bench, made["task_id"].as_str().unwrap());
        assert_eq!(record["status"], "failed", "{record}");
        assert_says_why(record["error"].as_str().unwrap());
        assert!(!bench.work().join("proof").exists(), "{settings:?}");
    }
}

#[test]
fn a_trusted_project_cannot_choose_the_sandbox_either() {
    for settings in PROJECT.into_iter().flatten() {
        let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
        bench.file(".codespar/settings.json", settings);
        let finished = without_a_sandbox(&bench, &["dev", "make it say hi", "--trust"]);
        assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
        let reason = "cannot be set by a project";
        assert!(finished.stderr.contains(reason), "{}", finished.stderr);
        assert_eq!(bench.server.request_count(), 0);
    }
}
