//! Commits through the git data API.

use codespar_forge::{Forge, ForgeError, NewCommit};
use codespar_protocol::{Bytes, ChangeSet, FileChange, FileMode};

use crate::world::{World, modified, new_commit, path};

fn many_changes() -> ChangeSet {
    ChangeSet(vec![
        modified("src/login.ts", b"const timeout = 60;\r\nsession();\r\n"),
        FileChange::Added {
            path: path("bin/new tool.sh"),
            content: Bytes(b"#!/bin/sh\necho '$1'\n".to_vec()),
            mode: FileMode::Executable,
        },
        FileChange::Added {
            path: path("déjà/vu.txt"),
            content: Bytes("ünïcödé, no newline".into()),
            mode: FileMode::Regular,
        },
        FileChange::Added {
            path: path("blob.bin"),
            content: Bytes(vec![0, 159, 146, 150, 13, 10]),
            mode: FileMode::Regular,
        },
        FileChange::Deleted {
            path: path("README.md"),
        },
        FileChange::Moved {
            from: path("src/deep/er/ü b.rs"),
            to: path("src/ü.rs"),
            content: Bytes("fn ö() {}".into()),
            mode: FileMode::Regular,
        },
        // One file takes over the name that another leaves.
        FileChange::Moved {
            from: path("run.sh"),
            to: path("start.sh"),
            content: Bytes(b"#!/bin/sh\n".to_vec()),
            mode: FileMode::Executable,
        },
        FileChange::Added {
            path: path("run.sh"),
            content: Bytes(b"other\n".to_vec()),
            mode: FileMode::Regular,
        },
    ])
}

#[tokio::test]
async fn one_commit_carries_all_changes_byte_for_byte() {
    let world = World::new().await;
    let parent = world.main().await;
    let message = "codespar: do much\n\nWhy: ünïcödé.\n\nCodeSpar-Key: k1\nRequested-by: ann";
    let mut new = new_commit("codespar/task-1", &parent, "x", "");
    (new.changes, new.message, new.key) = (many_changes(), message.to_owned(), "k1".to_owned());
    let commit = world.forge.commit(&new).await.unwrap();

    let git = |args: &[&str]| world.git(args);
    assert_eq!(git(&["rev-parse", "codespar/task-1"]), commit.0);
    assert_eq!(git(&["rev-parse", "codespar/task-1^@"]), parent.0);
    assert_eq!(
        git(&["log", "-1", "--format=%B%an|%ae", &commit.0]),
        format!("{message}CodeSpar|codespar@acme.example")
    );
    assert_eq!(
        git(&[
            "diff",
            "--no-renames",
            "--raw",
            "--abbrev=40",
            "main",
            &commit.0
        ])
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.splitn(5, ' ').collect();
            format!("{} {} {}", fields[0], fields[1], fields[4])
        })
        .collect::<Vec<_>>(),
        [
            ":100644 000000 D\tREADME.md",
            ":000000 100755 A\tbin/new tool.sh",
            ":000000 100644 A\tblob.bin",
            ":000000 100644 A\tdéjà/vu.txt",
            ":100755 100644 M\trun.sh",
            ":100644 000000 D\tsrc/deep/er/ü b.rs",
            ":100644 100644 M\tsrc/login.ts",
            ":000000 100644 A\tsrc/ü.rs",
            ":000000 100755 A\tstart.sh",
        ]
    );
    for (file, content, mode) in many_changes().0.iter().filter_map(|change| change.after()) {
        let read = world
            .forge_as("carol-token")
            .file(&commit, file)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (read.content, read.mode),
            (content.0.clone(), mode),
            "{file}"
        );
    }
    assert_eq!(
        world.main().await,
        parent,
        "the default branch has not moved"
    );
}

#[tokio::test]
async fn an_empty_set_makes_an_empty_commit_on_an_odd_branch_name() {
    let world = World::new().await;
    let parent = world.main().await;
    let branch = "codespar/tâsk+1 #2%".replace(' ', "_");
    let mut new = new_commit(&branch, &parent, "x", "");
    new.changes = ChangeSet::default();
    new.author = None;
    let commit = world.forge.commit(&new).await.unwrap();
    assert_eq!(
        world.git(&["rev-parse", &format!("{branch}^{{tree}}")]),
        world.git(&["rev-parse", "main^{tree}"])
    );
    assert_eq!(world.forge.head(&branch).await.unwrap(), Some(commit));
}

#[tokio::test]
async fn a_further_commit_goes_on_top_of_the_branch() {
    let world = World::new().await;
    let first = world.branch("codespar/a", "README.md", "one\n").await;
    let mut new = new_commit("codespar/a", &first, "README.md", "two\n");
    new.key = "second".to_owned();
    new.message = "codespar: again\n\nCodeSpar-Key: second".to_owned();
    let second = world.forge.commit(&new).await.unwrap();
    assert_eq!(
        world.git(&["rev-list", "main..codespar/a"]),
        format!("{second}\n{first}")
    );
}

#[tokio::test]
async fn the_same_commit_is_made_once_even_with_others_on_top() {
    let world = World::new().await;
    let parent = world.main().await;
    let new = new_commit("codespar/a", &parent, "README.md", "one\n");
    let first = world.forge.commit(&new).await.unwrap();
    assert_eq!(world.forge.commit(&new).await.unwrap(), first);
    let mut more = new_commit("codespar/a", &first, "README.md", "two\n");
    more.key = "other".to_owned();
    world.forge.commit(&more).await.unwrap();
    assert_eq!(
        world.forge_as("bob-token").commit(&new).await.unwrap(),
        first
    );
    assert_eq!(world.git(&["rev-list", "--count", "main..codespar/a"]), "2");
}

#[tokio::test]
async fn a_merge_has_two_parents_and_the_files_of_the_second_with_the_changes() {
    let world = World::new().await;
    let main = world.main().await;
    let ours = world.branch("codespar/a", "README.md", "ours\n").await;
    let theirs = world.branch("codespar/b", "run.sh", "theirs\n").await;
    let merge = NewCommit {
        key: "merge".to_owned(),
        message: "Merge\n\nCodeSpar-Key: merge".to_owned(),
        merged: Some(theirs.clone()),
        ..new_commit("codespar/a", &ours, "README.md", "ours\n")
    };
    let commit = world.forge.commit(&merge).await.unwrap();
    let parents = world.git(&["log", "-1", "--format=%P", "codespar/a"]);
    assert_eq!(parents, format!("{ours} {theirs}"));
    assert_eq!(world.git(&["show", "codespar/a:run.sh"]), "theirs");
    assert_eq!(world.git(&["show", "codespar/a:README.md"]), "ours");
    assert_eq!(world.forge.commit(&merge).await.unwrap(), commit);
    assert_eq!(world.main().await, main);
}

#[tokio::test]
async fn a_branch_that_has_moved_is_left_alone() {
    let world = World::new().await;
    let parent = world.main().await;
    let theirs = world.branch("codespar/a", "README.md", "theirs\n").await;
    let ours = NewCommit {
        key: "ours".to_owned(),
        ..new_commit("codespar/a", &parent, "README.md", "ours\n")
    };
    let error = world.forge.commit(&ours).await.unwrap_err();
    match error {
        ForgeError::Moved {
            branch,
            found,
            expected,
        } => assert_eq!(
            (branch.as_str(), found, expected),
            ("codespar/a", theirs.clone(), parent)
        ),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.git(&["rev-parse", "codespar/a"]), theirs.0);
}

#[tokio::test]
async fn a_change_that_git_refuses_leaves_no_branch_behind() {
    let world = World::new().await;
    let parent = world.main().await;
    let mut new = new_commit("codespar/a", &parent, "README.md", "x");
    new.changes.0.push(FileChange::Deleted {
        path: path("not/there"),
    });
    let error = world.forge.commit(&new).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a commit on codespar/a of acme/shop: GitRPC::BadObjectState (422)"
    );
    assert_eq!(world.forge.head("codespar/a").await.unwrap(), None);
}

#[tokio::test]
async fn who_may_only_read_is_told_which_permission_is_missing() {
    let world = World::new().await;
    let parent = world.main().await;
    let new = new_commit("codespar/a", &parent, "README.md", "x");
    let error = world
        .forge_as("carol-token")
        .commit(&new)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a commit on codespar/a of acme/shop: the forge does not allow it: Resource not accessible \
         by personal access token (the token likely lacks the permission contents: write)"
    );
}

#[tokio::test]
async fn a_branch_is_deleted_and_one_that_is_not_there_is_fine() {
    let world = World::new().await;
    world.branch("codespar/a", "README.md", "x").await;
    world.forge.delete_branch("codespar/a").await.unwrap();
    world.forge.delete_branch("codespar/a").await.unwrap();
    assert_eq!(
        world.git(&["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main"
    );
    let error = world
        .forge_as("carol-token")
        .delete_branch("main")
        .await
        .unwrap_err();
    assert!(matches!(error, ForgeError::Forbidden { .. }), "{error}");
}
