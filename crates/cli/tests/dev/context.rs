//! What the model that writes is shown: files within a budget, and their surroundings.

use crate::{
    common::Bench,
    repository::{FIX, GREET, answer, dev, git, repository, script, without_a_key},
};

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// The first message to the model that writes.
fn first_message(bench: &Bench) -> String {
    let request = bench.server.requests()[1].json().clone();
    let text = request["messages"][0]["content"][0]["text"].as_str();
    text.unwrap().to_owned()
}

/// The files in it, in order.
fn shown(message: &str) -> Vec<&str> {
    let parts = message.split("<file path=\"").skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

#[test]
fn where_the_picker_names_files_no_other_is_added() {
    let bench = repository(
        script(&["greet.sh"], [answer("Say hi", FIX)]),
        &[
            ("greet.sh", GREET),
            ("greeting.sh", GREET),
            ("say_hi.sh", "echo hi\n"),
        ],
    );
    let (report, code) = dev(&bench, &["make the greeting say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(shown(&first_message(&bench)), ["greet.sh"]);
    assert_eq!(report["located"], serde_json::json!(["greet.sh"]));
}

#[test]
fn a_picker_that_names_nothing_leaves_the_choice_to_the_ranking() {
    let others: Vec<(String, String)> = (0..9)
        .map(|n| (format!("other_{n}.sh"), format!("echo {n}\n")))
        .collect();
    let mut files: Vec<(&str, &str)> = others
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    files.push(("greet.sh", GREET));
    let bench = repository(script(&[], [answer("Say hi", FIX)]), &files);
    let (report, code) = dev(&bench, &["change the greeting hello world", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(shown(&first_message(&bench)), ["greet.sh"]);
}

#[test]
fn tests_instructions_changelog_directories_and_command_go_with_the_files() {
    let rules = format!("Write short lines.\nLog in with {TOKEN}.\n");
    let bench = repository(
        script(
            &["lib/greet.sh"],
            [answer("Say hi", &FIX.replace("greet.sh", "lib/greet.sh"))],
        ),
        &[
            ("lib/greet.sh", GREET),
            ("lib/other.sh", "echo\n"),
            ("tests/test_greet.sh", "# greets\n"),
            ("AGENTS.md", &rules),
            ("CLAUDE.md", &rules),
            ("CHANGELOG.md", "# 1.2\n- said hello\n"),
            ("Makefile", "test:\n\t@echo 1 passed\n"),
        ],
    );
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let message = first_message(&bench);
    assert_eq!(
        shown(&message),
        [
            "AGENTS.md",
            "lib/greet.sh",
            "tests/test_greet.sh",
            "CHANGELOG.md"
        ]
    );
    for part in [
        "<verify>make test</verify>",
        "lib/: greet.sh other.sh\n",
        "tests/ (1)\n",
        "kind=\"tests\"",
        "Log in with [redacted].",
        "- said hello",
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert!(!message.contains(TOKEN), "{message}");
}

#[test]
fn a_long_file_is_shown_as_whole_functions_within_the_budget() {
    let mut long = String::from("import os\n\nclass Store:\n");
    for number in 0..300 {
        let what = if number == 211 {
            "expire_session"
        } else {
            "work"
        };
        long.push_str(&format!(
            "    def part_{number}(self):\n        a = {number}\n"
        ));
        long.push_str(&format!("        self.{what}(a)\n        return a\n\n"));
    }
    let edit = "===FILE: store.py===\n<<<SEARCH\n        self.expire_session(a)\n>>>REPLACE\n        self.keep(a)\n===END===\n";
    let bench = repository(
        script(&["store.py"], [answer("Keep it", edit)]),
        &[
            ("store.py", &long),
            (
                ".codespar/settings.json",
                r#"{"dev":{"contextBytes":4000,"maxFiles":"auto"}}"#,
            ),
        ],
    );
    bench.trust();
    let (report, code) = dev(&bench, &["sessions expire too fast", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let message = first_message(&bench);
    let function = "    def part_211(self):\n        a = 211\n        self.expire_session(a)\n        return a\n";
    for part in [
        "import os\n",
        "class Store:\n",
        function,
        "left out: ",
        "shown=\"in part;",
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let file = message.split("<file path=\"store.py\"").nth(1).unwrap();
    assert!(file.len() < 4_200, "{}", file.len());
    let branch = report["branch"].as_str().unwrap();
    let written = git(&bench.work(), &["show", &format!("{branch}:store.py")]);
    assert_eq!(
        written,
        long.replace("self.expire_session(a)", "self.keep(a)")
    );
}

#[test]
fn a_setting_that_is_no_limit_is_refused() {
    let bench = repository(script(&[], []), &[("greet.sh", GREET)]);
    bench.file(".codespar/settings.json", r#"{"dev":{"maxFiles":"many"}}"#);
    bench.trust();
    let refused = bench.run(&["dev", "make it say hi"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("a number or \"auto\""),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_simulated_run_locates_up_to_a_drop_in_the_scores() {
    let others: Vec<(String, String)> = (0..9)
        .map(|n| (format!("other_{n}.sh"), format!("echo {n}\n")))
        .collect();
    let mut files: Vec<(&str, &str)> = others
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    files.push(("greet.sh", GREET));
    let bench = repository(script(&[], []), &files);
    let args = ["dev", "change the greeting hello world", "--json"];
    let finished = without_a_key(&bench, &args);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(
        report["located"],
        serde_json::json!(["greet.sh"]),
        "{report}"
    );
}
