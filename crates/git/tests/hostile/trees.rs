//! Work trees and copies whose own git files were rewritten by what ran in them.

use std::{fs, os::unix::fs::symlink};

use codespar_git::{Checkout, GitError, Location, Repository, Staged, Trust};

use crate::scene::{Scene, git, plain};

/// A repository whose every use by plain git runs something.
fn trap(scene: &Scene, at: &str) -> std::path::PathBuf {
    let dir = scene.dir.path().join(at);
    fs::create_dir_all(&dir).unwrap();
    git(&dir, &["init", "-q"]);
    git(&dir, &["config", "core.fsmonitor", &scene.evil()]);
    git(&dir, &["config", "filter.evil.clean", &scene.evil()]);
    dir.join(".git")
}

#[test]
fn the_rewritten_git_file_of_a_work_tree_is_not_followed() {
    let scene = Scene::new();
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let path = scene.dir.path().join("linked");
    let tree = repository.add_work_tree(&path, "main", None).unwrap();
    assert_eq!(fs::read_to_string(path.join("f.x")).unwrap(), "main\n");
    assert_eq!(git(&path, &["status", "--porcelain"]), "");

    let trap = trap(&scene, "trap");
    fs::write(path.join(".git"), format!("gitdir: {}\n", trap.display())).unwrap();
    plain(&path, &["status"]);
    assert!(scene.ran());

    for found in [tree, repository.work_tree_at(&path).unwrap().unwrap()] {
        let status = found.git_with_files().unwrap();
        let status = status.run(["status", "--porcelain"]).unwrap().text();
        assert_eq!(status, "");
    }
    // It is no work tree of a branch as long as it does not say so itself.
    assert_eq!(repository.work_trees().unwrap().len(), 1);
    assert!(repository.remove_work_tree(&path).unwrap());
    assert!(!scene.ran() && !path.exists());
    assert_eq!(git(&scene.root, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_copy_is_read_by_our_git_directory_whatever_became_of_its_own() {
    let scene = Scene::new();
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let path = scene.dir.path().join("copy");
    let copy = Checkout::create(&repository, &path, "main").unwrap();
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
    let trap = trap(&scene, "trap");
    fs::remove_dir_all(path.join(".git")).unwrap();
    symlink(&trap, path.join(".git")).unwrap();
    fs::write(path.join("f.x"), "changed\n").unwrap();
    fs::write(path.join("new"), "new\n").unwrap();
    plain(&path, &["status"]);
    assert!(scene.ran());

    assert_eq!(copy.stage_all().unwrap(), Staged::All);
    let args = ["diff", "--cached", "--name-status", "HEAD"];
    let changed = copy.git().run(args).unwrap().text();
    assert_eq!(changed, "M\tf.x\nA\tnew");
    Checkout::open(&path, Trust::Untrusted)
        .unwrap()
        .reset("HEAD")
        .unwrap();
    assert_eq!(fs::read_to_string(path.join("f.x")).unwrap(), "main\n");
    assert!(!path.join("new").exists() && !scene.ran());
}

#[test]
fn a_repository_planted_in_a_copy_is_named_and_not_entered() {
    let scene = Scene::new();
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let path = scene.dir.path().join("copy");
    let copy = Checkout::create(&repository, &path, "main").unwrap();
    trap(&scene, "copy/deep/sub");
    let sub = path.join("deep/sub");
    git(
        &sub,
        &[
            "-c",
            "core.fsmonitor=",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    );
    scene.ran();
    assert_eq!(copy.stage_all().unwrap(), Staged::Nested("deep/sub".into()));
    assert!(!scene.ran());
}

#[test]
fn a_file_in_a_copy_that_is_too_large_is_named() {
    let scene = Scene::new();
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let path = scene.dir.path().join("copy");
    let copy = Checkout::create(&repository, &path, "main").unwrap();
    let file = fs::File::create(path.join("large")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(copy.stage_all().unwrap(), Staged::TooLarge("large".into()));
}

#[test]
fn git_files_that_are_pipes_or_lead_nowhere_are_errors() {
    let scene = Scene::new();
    let dir = scene.dir.path().join("other");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(".git"), "nonsense").unwrap();
    let error = Location::find(&dir).unwrap_err();
    assert!(matches!(error, GitError::File { .. }), "{error}");
    fs::remove_file(dir.join(".git")).unwrap();
    let error = Location::find(&dir).unwrap_err();
    assert!(matches!(error, GitError::NoRepository(_)), "{error}");

    fs::remove_file(scene.root.join(".git/config")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(scene.root.join(".git/config"))
        .status();
    assert!(made.unwrap().success());
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let error = repository.git().unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn files_that_look_like_a_bare_repository_do_not_take_its_place() {
    let scene = Scene::new();
    git(scene.dir.path(), &["init", "-q", "--bare", "fake"]);
    for name in ["HEAD", "config", "objects", "refs"] {
        fs::rename(
            scene.dir.path().join("fake").join(name),
            scene.root.join(name),
        )
        .unwrap();
    }
    let found = Location::find(&scene.root).unwrap();
    assert_eq!(found.git_dir, scene.root.join(".git"));
}
