//! What people and models read of a run.

use codespar_testkit::Script;
use serde_json::json;

use crate::repository::{
    FIX, GREET, answer, dev, git, greeting, pull, repository, script, without_a_key,
};

const HOME: &str = "https://github.com/codespar/codespar";

#[test]
fn a_long_task_is_folded_and_the_report_counts_the_lines_of_each_file() {
    let blocks =
        format!("{FIX}===FILE: notes.txt===\none\ntwo\n===END===\n===DELETE: old.txt===\n");
    let files = [("greet.sh", GREET), ("old.txt", "x\n")];
    let bench = repository(script(&["greet.sh"], [answer("Say hi", &blocks)]), &files);
    let long = format!(
        "make it say hi\n\n{}\n</details>",
        "because of this\n".repeat(12)
    );
    let (report, code) = dev(&bench, &[&long, "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        report["files"],
        json!([
            {"path": "greet.sh", "change": "modified", "added": 1, "removed": 1},
            {"path": "notes.txt", "change": "new", "added": 2, "removed": 0},
            {"path": "old.txt", "change": "deleted", "added": 0, "removed": 1}
        ])
    );
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    let folded = "## Changes\n\nSay hi\n\n## Task\n\n<details>\n<summary>make it say hi</summary>\n\n> make it say hi\n> \n";
    assert!(body.starts_with(folded), "{body}");
    // What the instruction says cannot end the part that is folded.
    assert_eq!(body.matches("</details>").count(), 1, "{body}");
    let headings: Vec<&str> = body
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    let expected = [
        "## Changes",
        "## Task",
        "## Files Modified",
        "## Verification",
        "## Risk",
    ];
    assert_eq!(headings, expected);
    assert!(
        body.contains("- `notes.txt` (new, +2)\n- `old.txt` (deleted, −1)\n"),
        "{body}"
    );
    assert!(
        body.contains(&format!("Made by [CodeSpar]({HOME}) for Ada")),
        "{body}"
    );
    let output = bench.run(&["task", "output", report["task_id"].as_str().unwrap()]);
    let line = "   • greet.sh (modified, +1 −1)\n";
    assert!(output.stdout.contains(line), "{}", output.stdout);
    let branch = report["branch"].as_str().unwrap();
    let message = git(&bench.work(), &["log", "-1", "--format=%B", branch]);
    let start = format!("Say hi\n\nMade by CodeSpar ({HOME}).\n\nCodeSpar-Task: ");
    assert!(message.starts_with(&start), "{message}");
    let trailers = git(
        &bench.work(),
        &["log", "-1", "--format=%(trailers:only)", branch],
    );
    let names: Vec<&str> = trailers
        .trim()
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    let expected = ["CodeSpar-Task", "Requested-by", "CodeSpar-Key"];
    assert_eq!(names, expected, "{message}");
}

#[test]
fn the_model_is_told_the_repository_the_branch_and_the_commit() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let name = bench
        .work()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let commit = &report["base_commit"].as_str().unwrap()[..7];
    let request = bench.server.last_request().unwrap();
    let request = request.json();
    let text = request["messages"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    let expected = format!("<repository>{name}, branch main at {commit}");
    assert!(text.starts_with(&expected), "{text}");
    let parent = bench
        .work()
        .parent()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(!request.to_string().contains(&parent), "{request}");
}

#[test]
fn a_simulated_run_and_review_say_which_key_to_set() {
    let bench = greeting(Script::new());
    let run = without_a_key(&bench, &["dev", "make greet.sh say hi"]);
    assert_eq!(run.status.code(), Some(0), "{}", run.stderr);
    let why = "no key is set; set ANTHROPIC_API_KEY, or OPENAI_API_KEY / OPENAI_BASE_URL";
    assert!(
        run.stdout.contains(&format!("→ Why: {why}")),
        "{}",
        run.stdout
    );
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(body.contains(why), "{body}");
    let review = without_a_key(&bench, &["review", "1", "--json"]);
    assert_eq!(review.status.code(), Some(0), "{}", review.stderr);
    let shown = without_a_key(&bench, &["pr", "show", "1"]).stdout;
    assert_eq!(shown.matches(why).count(), 2, "{shown}");
}

#[test]
fn what_is_not_there_is_said_in_a_whole_sentence() {
    let bench = greeting(Script::new());
    let missing = bench.run(&["pr", "show", "7"]);
    assert_ne!(missing.status.code(), Some(0));
    assert!(
        missing.stderr.contains("not found: pull request #7"),
        "{}",
        missing.stderr
    );
}
