//! Git repositories for tests.

use std::{path::Path, process::Command};

use codespar_testkit::Script;

use super::Bench;

/// Git as a person called Ada runs it.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=Ada"])
        .args(["-c", "user.email=ada@example.invalid"])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A bench whose directory is a git repository with these files committed on `main`.
pub(crate) fn repository(script: Script, files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(script);
    std::fs::remove_dir(bench.work().join(".git")).unwrap();
    for (name, text) in files {
        bench.file(name, text);
    }
    let work = bench.work();
    git(&work, &["init", "--quiet", "-b", "main"]);
    git(&work, &["config", "user.name", "Ada"]);
    git(&work, &["config", "user.email", "ada@example.invalid"]);
    commit_all(&bench, "Begin");
    bench
}

/// Commits every file as it is.
pub(crate) fn commit_all(bench: &Bench, message: &str) {
    let work = bench.work();
    git(&work, &["add", "--all", "."]);
    git(
        &work,
        &["commit", "--quiet", "--no-gpg-sign", "-m", message],
    );
}
