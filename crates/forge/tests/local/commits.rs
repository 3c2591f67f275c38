//! Commits on branches.

use codespar_forge::{Forge, ForgeError, LocalForge, NewCommit};
use codespar_git::Trust;
use codespar_protocol::{Bytes, CommitId, FileChange, FileMode};
use codespar_store::SqliteStore;

use crate::repository::{
    Repository, added, commit_all, forge_of, git, git_raw, init, modified, new_commit, path, write,
};

const BRANCH: &str = "codespar/task-1";

#[tokio::test]
async fn bytes_modes_links_moves_and_deletions_are_exact() {
    let repo = Repository::new().await;
    write(&repo.root, "gone.txt", "x");
    write(&repo.root, "dir/old name.txt", "moved\r\n");
    // Settings that would change bytes on their way in.
    write(&repo.root, ".gitattributes", "* text=auto eol=crlf\n");
    repo.git(&["config", "core.autocrlf", "true"]);
    let parent = commit_all(&repo.root, "more");
    let binary = vec![0xff, 0x00, b'\r', b'\n', 0xfe];
    let changes = vec![
        modified("src/a.txt", "one\r\ntwo\nno newline at end"),
        FileChange::Added {
            path: path("bin/run \u{e4}\u{1f980}.sh"),
            content: Bytes(binary.clone()),
            mode: FileMode::Executable,
        },
        FileChange::Added {
            path: path("link"),
            content: Bytes(b"src/a.txt".to_vec()),
            mode: FileMode::Symlink,
        },
        FileChange::Deleted {
            path: path("gone.txt"),
        },
        FileChange::Moved {
            from: path("dir/old name.txt"),
            to: path("dir/new \"name\".txt"),
            content: Bytes(b"moved\r\nand more\r\n".to_vec()),
            mode: FileMode::Regular,
        },
        // A file makes room for a directory of its name.
        FileChange::Moved {
            from: path("b.txt"),
            to: path("b.txt/inner"),
            content: Bytes(b"b\n".to_vec()),
            mode: FileMode::Regular,
        },
    ];
    let before = repo.belongings();

    let new = new_commit(BRANCH, parent.clone(), "k", changes);
    let made = repo.forge.commit(&new).await.unwrap();

    assert_eq!(repo.belongings(), before, "nothing of the user's changed");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.parents(&made), [parent]);
    assert_eq!(repo.at(BRANCH), made);
    let listed = git_raw(&repo.root, &["ls-tree", "-r", "-z", &made.0]);
    let listed = String::from_utf8(listed).unwrap();
    let modes: Vec<(&str, &str)> = listed
        .split_terminator('\0')
        .map(|line| (&line[..6], line.split_once('\t').unwrap().1))
        .collect();
    assert_eq!(
        modes,
        [
            ("100644", ".gitattributes"),
            ("100644", "b.txt/inner"),
            ("100755", "bin/run \u{e4}\u{1f980}.sh"),
            ("100644", "dir/new \"name\".txt"),
            ("120000", "link"),
            ("100644", "src/a.txt"),
        ]
    );
    assert_eq!(
        repo.shown(&made, "src/a.txt"),
        "one\r\ntwo\nno newline at end"
    );
    assert_eq!(
        repo.shown(&made, "dir/new \"name\".txt"),
        "moved\r\nand more\r\n"
    );
    for change in &new.changes.0 {
        if let Some((path, content, mode)) = change.after() {
            let found = repo.forge.file(&made, path).await.unwrap().unwrap();
            assert_eq!((found.content, found.mode), (content.0.clone(), mode));
        }
    }
}

#[tokio::test]
async fn a_commit_has_its_message_key_author_and_committer() {
    let repo = Repository::new().await;
    let mut new = new_commit(BRANCH, repo.at("main"), "k-1", Vec::new());
    new.message = "codespar: \u{fc}ber\n\nRequested-by: @x".to_owned();
    let made = repo.forge.commit(&new).await.unwrap();
    let shown = repo.git(&["show", "-s", "--format=%an <%ae>|%cn <%ce>|%B", &made.0]);
    assert_eq!(
        shown,
        "Gr\u{e4}ce <grace@example.invalid>|Ada <ada@example.invalid>|codespar: \u{fc}ber\n\n\
         Requested-by: @x\nCodeSpar-Key: k-1"
    );
    assert_eq!(repo.files(&made), ["b.txt", "src/a.txt"], "an empty commit");
}

#[tokio::test]
async fn without_an_identity_the_forge_has_its_own() {
    let repo = Repository::new().await;
    repo.git(&["config", "user.name", ""]);
    let forge = forge_of(repo.home.path(), &repo.root).await;
    assert_eq!(forge.whoami().await.unwrap(), "CodeSpar");
    let mut new = new_commit(BRANCH, repo.at("main"), "k", Vec::new());
    new.author = None;
    let made = forge.commit(&new).await.unwrap();
    assert_eq!(
        repo.git(&["show", "-s", "--format=%an <%ae> %cn <%ce>", &made.0]),
        "CodeSpar <codespar@localhost> CodeSpar <codespar@localhost>"
    );
}

#[tokio::test]
async fn a_commit_made_again_is_the_same_one() {
    let repo = Repository::new().await;
    let main = repo.at("main");
    let new = new_commit(BRANCH, main, "k", vec![added("c.txt", "c")]);
    let first = repo.forge.commit(&new).await.unwrap();
    assert_eq!(repo.forge.commit(&new).await.unwrap(), first);

    let next = repo.on(BRANCH, "k2", vec![added("d.txt", "d")]).await;
    assert_eq!(repo.forge.commit(&new).await.unwrap(), first);
    assert_eq!(repo.at(BRANCH), next, "the branch stays where it is");
}

#[tokio::test]
async fn a_branch_that_is_elsewhere_is_not_forced() {
    let repo = Repository::new().await;
    let main = repo.at("main");
    let found = repo.on(BRANCH, "k", vec![added("c.txt", "c")]).await;
    for key in ["other", "k2"] {
        let new = new_commit(BRANCH, main.clone(), key, vec![added("d.txt", "d")]);
        let refused = repo.forge.commit(&new).await.unwrap_err();
        assert!(
            matches!(&refused, ForgeError::Moved { branch, found: at, expected }
                if branch == BRANCH && *at == found && *expected == main),
            "{refused:?}"
        );
    }
    assert_eq!(repo.at(BRANCH), found);
}

#[tokio::test]
async fn a_merge_has_two_parents_and_the_files_of_the_second_with_the_changes() {
    let repo = Repository::new().await;
    let ours = repo.on(BRANCH, "ours", vec![added("ours", "o\n")]).await;
    let theirs = repo
        .on("codespar/b", "theirs", vec![added("theirs", "t\n")])
        .await;
    let merge = NewCommit {
        merged: Some(theirs.clone()),
        ..new_commit(BRANCH, ours.clone(), "merge", vec![added("ours", "o\n")])
    };
    let commit = repo.forge.commit(&merge).await.unwrap();
    assert_eq!(repo.parents(&commit), [ours, theirs]);
    assert_eq!(repo.shown(&commit, "theirs"), "t\n");
    assert_eq!(repo.shown(&commit, "ours"), "o\n");
    assert_eq!(repo.forge.commit(&merge).await.unwrap(), commit);
    assert_eq!(repo.at(BRANCH), commit);
}

#[tokio::test]
async fn of_two_commits_to_one_branch_at_once_one_is_told_that_it_moved() {
    let repo = Repository::new().await;
    for round in 0..4 {
        let branch = format!("codespar/race-{round}");
        let new = |key: &str| -> NewCommit {
            new_commit(&branch, repo.at("main"), key, vec![added(key, key)])
        };
        let (one, other) = (new("one"), new("other"));
        let (first, second) = tokio::join!(repo.forge.commit(&one), repo.forge.commit(&other));
        let (made, refused) = match (first, second) {
            (Ok(made), Err(refused)) | (Err(refused), Ok(made)) => (made, refused),
            other => panic!("{other:?}"),
        };
        assert!(
            matches!(&refused, ForgeError::Moved { found, .. } if *found == made),
            "{refused:?}"
        );
        assert_eq!(repo.at(&branch), made);
    }
}

#[tokio::test]
async fn the_same_commit_made_twice_at_once_is_made_once() {
    let repo = Repository::new().await;
    let new = new_commit(BRANCH, repo.at("main"), "k", vec![added("c", "c")]);
    let made = tokio::join!(repo.forge.commit(&new), repo.forge.commit(&new));
    assert_eq!(made.0.unwrap(), made.1.unwrap());
}

#[tokio::test]
async fn what_cannot_be_committed_is_refused_with_the_reason() {
    let repo = Repository::new().await;
    let main = repo.at("main");
    repo.git(&["branch", "looked-at"]);
    let tree = repo.home.path().join("other tree");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "looked-at"]);
    let gone = |at: &str| FileChange::Deleted { path: path(at) };
    for (branch, changes, reason) in [
        ("main", vec![], "main is the default branch"),
        ("a..b", vec![], "`a..b` cannot be the name of a branch"),
        ("-x", vec![], "`-x` cannot be the name of a branch"),
        ("looked-at", vec![], "branch looked-at is checked out in "),
        ("x", vec![gone("no")], "no is to go, but"),
        (
            "x",
            vec![added("b.txt", "")],
            "b.txt is to be new, but it is there",
        ),
        (
            "x",
            vec![modified("c", "")],
            "c is to be modified, but it is not there",
        ),
        (
            "x",
            vec![added("b.txt/c", "")],
            "b.txt cannot be a file and have b.txt/c below it",
        ),
        (
            "x",
            vec![added("src", "")],
            "src cannot be a file and have src/a.txt below it",
        ),
    ] {
        let new = new_commit(branch, main.clone(), "k", changes);
        let refused = repo.forge.commit(&new).await.unwrap_err();
        assert!(
            matches!(&refused, ForgeError::Refused(text) if text.contains(reason)),
            "{refused:?}"
        );
    }
    let nowhere = CommitId("1".repeat(40));
    let new = new_commit("x", nowhere, "k", Vec::new());
    let refused = repo.forge.commit(&new).await.unwrap_err();
    assert!(matches!(refused, ForgeError::NotFound(_)), "{refused:?}");
    assert_eq!(repo.forge.head("x").await.unwrap(), None);
}

#[tokio::test]
async fn hooks_and_other_settings_of_the_repository_do_not_run() {
    let repo = Repository::new().await;
    let mark = repo.root.join(".git/ran");
    let hook = format!("#!/bin/sh\ntouch '{}'\nexit 1\n", mark.display());
    for name in [
        "reference-transaction",
        "pre-commit",
        "post-merge",
        "post-checkout",
    ] {
        write(&repo.root, &format!(".git/hooks/{name}"), &hook);
        let path = repo.root.join(".git/hooks").join(name);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    repo.git(&["config", "commit.gpgSign", "true"]);
    let pull = repo.pull(BRANCH, vec![added("c.txt", "c")]).await;
    let order =
        crate::repository::order(codespar_protocol::MergeStrategy::Merge, &pull.head_commit);
    repo.forge.merge(1, &order).await.unwrap();
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_bare_repository_and_a_linked_work_tree_do_too() {
    let repo = Repository::new().await;
    let bare = repo.home.path().join("bare.git");
    git(
        repo.home.path(),
        &["clone", "-q", "--bare", "repo", bare.to_str().unwrap()],
    );
    let tree = repo.home.path().join("linked");
    let tree_text = tree.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", "-b", "side", tree_text]);
    for dir in [&bare, &tree] {
        let forge = forge_of(repo.home.path(), dir).await;
        assert_eq!(forge.default_branch().await.unwrap(), "main");
        let main = forge.head("main").await.unwrap().unwrap();
        let new = new_commit(BRANCH, main, "k", vec![added("c.txt", "c")]);
        let made = forge.commit(&new).await.unwrap();
        let pull = forge
            .open_pull_request(&crate::repository::request(BRANCH))
            .await
            .unwrap();
        assert_eq!((pull.number, &pull.head_commit), (1, &made));
    }
    // The linked work tree is of the same repository as the first.
    assert_eq!(repo.forge.pull_request(1).await.unwrap().head, BRANCH);
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_repository_with_long_names_of_commits_does_too() {
    let repo = Repository::new().await;
    let root = repo.home.path().join("long");
    std::fs::create_dir(&root).unwrap();
    git(
        &root,
        &["init", "-q", "-b", "main", "--object-format=sha256"],
    );
    init(&root);
    write(&root, "old", "x");
    let main = commit_all(&root, "start");
    let forge = forge_of(repo.home.path(), &root).await;
    let changes = vec![FileChange::Moved {
        from: path("old"),
        to: path("new"),
        content: Bytes(b"y".to_vec()),
        mode: FileMode::Regular,
    }];
    let made = forge
        .commit(&new_commit(BRANCH, main, "k", changes))
        .await
        .unwrap();
    assert_eq!(made.0.len(), 64);
    assert_eq!(git(&root, &["ls-tree", "--name-only", &made.0]), "new");
}

#[tokio::test]
async fn what_is_no_repository_or_has_no_commit_is_said() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&home.path().join("state")).await.unwrap();
    let store = std::sync::Arc::new(store);
    let none = home.path().join("none");
    std::fs::create_dir(&none).unwrap();
    for (dir, reason) in [
        (none, "not found: a git repository in "),
        (home.path().join("missing"), "not found: directory "),
    ] {
        let refused = LocalForge::open(&dir, Trust::Untrusted, store.clone(), None).await;
        let refused = refused.err().unwrap().to_string();
        assert!(refused.starts_with(reason), "{refused}");
    }
    let empty = home.path().join("empty");
    init(&empty);
    let forge = LocalForge::open(&empty, Trust::Untrusted, store, None)
        .await
        .unwrap();
    let refused = forge.default_branch().await.unwrap_err().to_string();
    assert!(refused.contains("make a first commit"), "{refused}");
    assert_eq!(forge.head("main").await.unwrap(), None);
}
