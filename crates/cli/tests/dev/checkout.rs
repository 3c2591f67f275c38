//! `codespar pr checkout`: the user's work tree on the branch of a pull request.

use crate::{
    common::{Bench, parsed},
    repository::{FIX, GREET, answer, dev, git, greeting, script},
};

fn with_pull() -> (Bench, String) {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let branch = report["branch"].as_str().unwrap().to_owned();
    (bench, branch)
}

fn head(bench: &Bench) -> String {
    let head = git(&bench.work(), &["symbolic-ref", "--short", "HEAD"]);
    head.trim().to_owned()
}

fn greeting_now(bench: &Bench) -> String {
    std::fs::read_to_string(bench.work().join("greet.sh")).unwrap()
}

#[test]
fn the_work_tree_goes_to_the_branch_and_back_with_other_changes_kept() {
    let (bench, branch) = with_pull();
    bench.file("notes.txt", "mine\n");
    let finished = bench.run(&["pr", "checkout", "1"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let commit = git(&bench.work(), &["rev-parse", "--short=10", &branch]);
    let expected = format!(
        "switched to {branch} at {} (#1: Say hi)\nGo back with: git switch main\n",
        commit.trim()
    );
    assert_eq!(finished.stdout, expected);
    assert_eq!(head(&bench), branch);
    assert_eq!(greeting_now(&bench), GREET.replace("hello", "hi"));
    assert_eq!(
        git(&bench.work(), &["status", "--porcelain"]),
        "?? notes.txt\n"
    );

    let again = parsed(&bench.run(&["pr", "checkout", "#1", "--json"]).stdout);
    assert_eq!(again["from"], branch.as_str());
    git(&bench.work(), &["switch", "--quiet", "main"]);
    assert_eq!(greeting_now(&bench), GREET);
    // What is checked out is not deleted by a merge, and the report says so.
    assert_eq!(bench.run(&["pr", "checkout", "1"]).status.code(), Some(0));
    let closed = bench.run(&["pr", "close", "1"]);
    assert!(
        closed.stdout.contains("is checked out in"),
        "{}",
        closed.stdout
    );
}

#[test]
fn changes_that_would_be_lost_keep_it_where_it_is() {
    let (bench, _) = with_pull();
    bench.file("greet.sh", "mine\n");
    let refused = bench.run(&["pr", "checkout", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    for expected in ["would be overwritten: greet.sh", "git stash"] {
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    assert_eq!(
        (head(&bench).as_str(), greeting_now(&bench)),
        ("main", "mine\n".to_owned())
    );
}

#[test]
fn the_branch_of_a_closed_pull_request_is_gone_and_its_commit_is_named() {
    let (bench, branch) = with_pull();
    let commit = git(&bench.work(), &["rev-parse", &branch]);
    assert_eq!(bench.run(&["pr", "close", "1"]).status.code(), Some(0));
    let refused = bench.run(&["pr", "checkout", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    let expected = format!("git switch --detach {}", &commit[..10]);
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    assert_eq!(head(&bench), "main");
}

#[test]
fn no_hook_of_the_repository_runs() {
    let (bench, _) = with_pull();
    let hooks = bench.work().join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let proof = bench.room.home().join("proof");
    for name in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        let hook = hooks.join(name);
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", proof.display())).unwrap();
        let mut mode = std::fs::metadata(&hook).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
        std::fs::set_permissions(&hook, mode).unwrap();
    }
    let finished = bench.run(&["pr", "checkout", "1"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(!proof.exists());
}
