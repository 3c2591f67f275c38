//! Garbage collection by somebody else while commits are made.

use std::{env, fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use codespar_forge::Forge;
use codespar_protocol::MergeStrategy;

use crate::repository::{Repository, added, forge_of, git, modified, new_commit, order, request};

#[tokio::test]
#[ignore = "a child process of another test"]
async fn child_publishes() {
    let told = |name: &str| PathBuf::from(env::var_os(name).unwrap());
    let (root, home) = (told("TEST_ROOT"), told("TEST_HOME"));
    let forge = forge_of(&home, &root).await;
    let main = forge.head("main").await.unwrap().unwrap();
    for (number, strategy) in (1_u64..).zip([
        MergeStrategy::Merge,
        MergeStrategy::Squash,
        MergeStrategy::Rebase,
    ]) {
        let branch = format!("b{number}");
        let text = format!("{number}\n");
        let changes = vec![
            modified("b.txt", "b\n\n"),
            added(&format!("n{number}/f"), &text),
        ];
        let new = new_commit(&branch, main.clone(), &branch, changes);
        let head = forge.commit(&new).await.unwrap();
        forge.open_pull_request(&request(&branch)).await.unwrap();
        forge.merge(number, &order(strategy, &head)).await.unwrap();
    }
}

/// Every git that the forge starts is followed by a collection that spares nothing.
#[tokio::test]
async fn a_collection_after_every_step_leaves_commits_and_merges_whole() {
    let repo = Repository::new().await;
    repo.git(&["switch", "-q", "--detach"]);
    let bin = repo.home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let path = env::var("PATH").unwrap();
    let real = env::split_paths(&path).map(|dir| dir.join("git"));
    let real = real.into_iter().find(|file| file.is_file()).unwrap();
    let script = format!(
        "#!/bin/sh\n{real} \"$@\"\ncode=$?\nenv -i PATH=\"$PATH\" {real} -C {root} gc --quiet \
         --prune=now >/dev/null 2>&1\nexit $code\n",
        real = real.display(),
        root = repo.root.display(),
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();

    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "collection::child_publishes", "--ignored"])
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("TEST_ROOT", &repo.root)
        .env("TEST_HOME", repo.home.path())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("1 passed"), "{out}");

    git(&repo.root, &["fsck", "--full", "--strict"]);
    let files = "b.txt n1/f n2/f n3/f src/a.txt";
    assert_eq!(repo.files(&repo.at("main")).join(" "), files);
    let left = fs::read_dir(repo.root.join(".git/objects/pack")).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().ends_with(".keep"))
    );
}
