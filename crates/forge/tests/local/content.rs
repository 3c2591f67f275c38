//! Default branches, trees, files, search.

use codespar_forge::{FileAt, Forge, ForgeError, TreeEntry};
use codespar_protocol::{CommitId, FileMode, Permission};

use crate::repository::{Repository, commit_all, forge_of, git, path, write};

#[tokio::test]
async fn the_default_branch_is_the_origins_then_the_usual_then_the_current() {
    let repo = Repository::new().await;
    let default = async || repo.forge.default_branch().await.unwrap();
    assert_eq!(default().await, "main");
    repo.git(&["switch", "-q", "-c", "topic"]);
    assert_eq!(default().await, "main");
    repo.git(&["switch", "-q", "--detach"]);
    assert_eq!(default().await, "main");
    repo.git(&["branch", "trunk"]);
    repo.git(&["config", "init.defaultBranch", "trunk"]);
    assert_eq!(default().await, "trunk");
    repo.git(&["config", "init.defaultBranch", "not-there"]);
    assert_eq!(default().await, "main");
    repo.git(&["branch", "-q", "-m", "main", "master"]);
    assert_eq!(default().await, "master");
    repo.git(&["branch", "-q", "-D", "master", "trunk"]);
    assert_eq!(default().await, "topic", "from a detached HEAD");
    repo.git(&["switch", "-q", "-c", "other"]);
    assert_eq!(default().await, "other", "the current one");

    repo.git(&["branch", "-q", "develop"]);
    git(repo.home.path(), &["clone", "-q", "repo", "clone"]);
    let clone = repo.home.path().join("clone");
    git(&clone, &["branch", "-q", "main"]);
    let forge = forge_of(repo.home.path(), &clone).await;
    assert_eq!(forge.default_branch().await.unwrap(), "other");
}

#[tokio::test]
async fn trees_and_files_are_those_of_the_commit() {
    let repo = Repository::new().await;
    write(&repo.root, "d\u{ef}r/run \"it\".sh", "#!/bin/sh\r\n");
    let script = repo.root.join("d\u{ef}r/run \"it\".sh");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(script, mode).unwrap();
    std::os::unix::fs::symlink("b.txt", repo.root.join("link")).unwrap();
    let commit = commit_all(&repo.root, "more");
    std::fs::write(repo.root.join("b.txt"), "not committed").unwrap();
    let entry = |path: &str, mode, size| TreeEntry {
        path: path.to_owned(),
        mode,
        size: Some(size),
    };
    assert_eq!(
        repo.forge.tree(&commit).await.unwrap(),
        [
            entry("b.txt", FileMode::Regular, 2),
            entry("d\u{ef}r/run \"it\".sh", FileMode::Executable, 11),
            entry("link", FileMode::Symlink, 5),
            entry("src/a.txt", FileMode::Regular, 24),
        ]
    );
    let file = async |at: &str| repo.forge.file(&commit, &path(at)).await.unwrap();
    let found = |content: &str, mode| {
        Some(FileAt {
            content: content.into(),
            mode,
        })
    };
    assert_eq!(file("b.txt").await, found("b\n", FileMode::Regular));
    assert_eq!(
        file("d\u{ef}r/run \"it\".sh").await,
        found("#!/bin/sh\r\n", FileMode::Executable)
    );
    assert_eq!(file("link").await, found("b.txt", FileMode::Symlink));
    for missing in ["src", "no", "src/*", "b.txt/x"] {
        assert_eq!(file(missing).await, None, "{missing}");
    }
    let nowhere = CommitId("1".repeat(40));
    let refused = repo.forge.tree(&nowhere).await.unwrap_err();
    assert!(matches!(refused, ForgeError::NotFound(_)), "{refused:?}");
    let option = CommitId("--all".to_owned());
    let refused = repo.forge.tree(&option).await.unwrap_err();
    assert!(matches!(refused, ForgeError::NotFound(_)), "{refused:?}");
}

#[tokio::test]
async fn files_are_found_by_how_many_of_the_words_they_have() {
    let repo = Repository::new().await;
    write(&repo.root, "x/session.rs", "nothing");
    write(&repo.root, "x/both.rs", "The SESSION has a time.out\n");
    write(&repo.root, "x/one.rs", "session session session\n");
    write(&repo.root, "x/\u{fc}.rs", "\u{dc}BER, \u{dc}ber\n");
    write(&repo.root, "x/none.rs", "timexout\n");
    commit_all(&repo.root, "more");
    write(
        &repo.root,
        "x/later.rs",
        "session time.out, not committed\n",
    );
    let search = async |words: &[&str], limit| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        repo.forge.search(&words, limit).await.unwrap()
    };
    assert_eq!(
        search(&["session", "time.out", "Session", ""], 9).await,
        ["x/both.rs", "x/one.rs", "x/session.rs"]
    );
    assert_eq!(search(&["\u{dc}ber"], 9).await, ["x/\u{fc}.rs"]);
    assert_eq!(search(&["session", "time.out"], 1).await, ["x/both.rs"]);
    assert_eq!(search(&["-v"], 9).await, Vec::<String>::new());
    assert_eq!(search(&[], 9).await, Vec::<String>::new());
}

#[tokio::test]
async fn who_can_write_the_repository_may_do_everything() {
    let repo = Repository::new().await;
    let allowed = repo.forge.permission("anyone").await.unwrap();
    assert_eq!(allowed, Permission::Admin);
    assert_eq!(repo.forge.whoami().await.unwrap(), "Ada");
    assert_eq!(repo.forge.max_body_chars(), 65_536);
    let described = format!("the repository in {}", repo.root.display());
    assert_eq!(repo.forge.describe(), described);
}

#[tokio::test]
async fn a_submodule_is_a_repository_too() {
    let repo = Repository::new().await;
    let inner = repo.home.path().join("inner");
    crate::repository::init(&inner);
    write(&inner, "in.txt", "word\n");
    commit_all(&inner, "start");
    let url = inner.to_str().unwrap();
    let allow = ["-c", "protocol.file.allow=always"];
    repo.git(&[&allow[..], &["submodule", "--quiet", "add", url, "sub"]].concat());
    let outer = commit_all(&repo.root, "add sub");
    let forge = forge_of(repo.home.path(), &repo.root.join("sub")).await;
    assert_eq!(forge.default_branch().await.unwrap(), "main");
    let found = forge.search(&["word".to_owned()], 9).await.unwrap();
    assert_eq!(found, ["in.txt"]);
    let main = forge.head("main").await.unwrap().unwrap();
    let changes = vec![crate::repository::added("c", "c")];
    let new = crate::repository::new_commit("one", main, "k", changes);
    forge.commit(&new).await.unwrap();
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    // In the tree of the outer one it is no file.
    let entries = repo.forge.tree(&outer).await.unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, [".gitmodules", "b.txt", "src/a.txt"]);
}
