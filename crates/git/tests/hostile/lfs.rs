//! Git LFS, the one program that a trusted repository may have run: by its name, never by what the
//! configuration says.

use std::{fs, path::Path};

use codespar_git::{Checkout, Repository, Trust};

use crate::scene::{Scene, git};

const CONTENT: &str = "what is large\n";

/// A repository with a file that Git LFS keeps.
fn scene() -> Scene {
    let scene = Scene::new();
    for (key, value) in [
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.smudge", "git-lfs smudge -- %f"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.lfs.required", "true"),
    ] {
        git(&scene.root, &["config", key, value]);
    }
    scene.write(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    scene.write("large.bin", CONTENT);
    scene.commit("large");
    let kept = git(&scene.root, &["cat-file", "blob", "HEAD:large.bin"]);
    assert!(kept.starts_with("version https://git-lfs"), "{kept}");
    scene
}

fn checked_out(scene: &Scene, trust: Trust) -> (String, Vec<String>) {
    let repository = Repository::find(&scene.root, trust).unwrap();
    let path = scene.dir.path().join(format!("copy-{trust:?}"));
    let copy = Checkout::create(&repository, &path, "main").unwrap();
    (text(&path), copy.git().lfs_pointers().unwrap())
}

fn text(dir: &Path) -> String {
    fs::read_to_string(dir.join("large.bin")).unwrap()
}

#[test]
fn the_files_of_a_trusted_repository_are_brought_in_and_those_of_another_stay_pointers() {
    let scene = scene();
    let (content, pointers) = checked_out(&scene, Trust::Trusted);
    assert_eq!((content.as_str(), pointers), (CONTENT, Vec::new()));
    let (content, pointers) = checked_out(&scene, Trust::Untrusted);
    assert!(content.starts_with("version https://git-lfs"), "{content}");
    assert_eq!(pointers, ["large.bin"]);

    let repository = Repository::find(&scene.root, Trust::Trusted).unwrap();
    let path = scene.dir.path().join("tree");
    let tree = repository.add_work_tree(&path, "main", None).unwrap();
    assert_eq!(text(&path), CONTENT);
    let status = tree.git_with_files().unwrap();
    assert_eq!(status.run(["status", "--porcelain"]).unwrap().text(), "");
}

#[test]
fn a_changed_file_of_a_trusted_repository_becomes_a_pointer_again() {
    let scene = scene();
    let repository = Repository::find(&scene.root, Trust::Trusted).unwrap();
    let path = scene.dir.path().join("copy");
    let copy = Checkout::create(&repository, &path, "main").unwrap();
    fs::write(path.join("large.bin"), "larger\n").unwrap();
    copy.stage_all().unwrap();
    let staged = copy.git().run(["cat-file", "blob", ":large.bin"]).unwrap();
    let staged = staged.text();
    assert!(staged.starts_with("version https://git-lfs"), "{staged}");
}

#[test]
fn a_planted_lfs_command_is_not_run_in_a_trusted_repository_either() {
    let scene = scene();
    let evil = scene.evil();
    let program = scene.dir.path().join("transfer");
    scene.evil_program(&program);
    let program = program.to_str().unwrap();
    for (key, value) in [
        ("filter.lfs.clean", evil.as_str()),
        ("filter.lfs.smudge", &evil),
        ("filter.lfs.process", program),
        ("lfs.standalonetransferagent", "evil"),
        ("lfs.customtransfer.evil.path", program),
        ("lfs.customtransfer.evil.concurrent", "false"),
        ("lfs.extension.evil.clean", &evil),
        ("lfs.extension.evil.smudge", &evil),
        ("lfs.extension.evil.priority", "0"),
        ("core.sshCommand", program),
        ("credential.helper", program),
        ("remote.origin.url", "ssh://example.invalid/x"),
    ] {
        git(&scene.root, &["config", key, value]);
    }
    // What is not here has to be fetched.
    fs::remove_dir_all(scene.root.join(".git/lfs/objects")).unwrap();
    fs::write(
        scene.root.join(".lfsconfig"),
        format!("[lfs]\n\tstandalonetransferagent = evil\n[lfs \"customtransfer.evil\"]\n\tpath = {program}\n"),
    )
    .unwrap();
    let (content, pointers) = checked_out(&scene, Trust::Trusted);
    assert!(content.starts_with("version https://git-lfs"), "{content}");
    assert_eq!(pointers, ["large.bin"]);
    assert!(!scene.ran());
}
