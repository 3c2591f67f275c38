//! Each key and file that makes plain git run a program. Every test first shows that the attack
//! works on plain git, then that everything we do with git leaves it unrun.

use std::{fs, path::Path};

use codespar_git::{Checkout, Quarantine, Repository, Trust};

use crate::scene::{Scene, git, plain};

/// All kinds of calls that the program makes.
fn use_everything(scene: &Scene, trust: Trust) {
    let repository = Repository::find(&scene.root, trust).unwrap();
    let objects = repository.git().unwrap();
    let head = objects.run(["rev-parse", "HEAD"]).unwrap().text();
    // Not all of these have to succeed in every repository here; none may run anything.
    for args in [
        &["log", "-p", "--stat", "--all"][..],
        &["ls-tree", "-r", "-l", "HEAD"],
        &["diff-tree", "-p", "main", "side"],
        &["diff", "main", "side"],
        &["show", "HEAD:f.x"],
        &["cat-file", "--filters", "HEAD:f.x"],
        &["grep", "-l", "one", "main"],
        &[
            "-c",
            "attr.tree=main",
            "merge-tree",
            "--write-tree",
            "main",
            "side",
        ],
        &["rev-list", "--objects", "--all"],
        &["update-ref", "refs/heads/made", "HEAD"],
        &["update-ref", "-d", "refs/heads/made"],
        &["fetch", "--all"],
    ] {
        let _ = objects.call(args).run().unwrap();
    }
    let quarantine = Quarantine::new(&objects, repository.location()).unwrap();
    let call = quarantine.git().call(["hash-object", "-w", "--stdin"]);
    call.input("new").run().unwrap().checked().unwrap();
    drop(quarantine.keep().unwrap());
    use_files(scene, &repository, &head);
}

fn use_files(scene: &Scene, repository: &Repository, head: &str) {
    let files = repository.git_with_files().unwrap();
    fs::write(scene.root.join("f.x"), "changed\n").unwrap();
    for args in [
        &["status", "--porcelain"][..],
        &["diff", "HEAD"],
        &["ls-files", "-m", "-o", "--exclude-standard"],
        &["read-tree", "--reset", "-u", "HEAD"],
        &["merge", "--ff-only", "--quiet", "ahead"],
        &["read-tree", "--reset", "-u", "main"],
    ] {
        let _ = files.call(args).run().unwrap();
    }
    let tree = scene.dir.path().join("linked");
    if repository.add_work_tree(&tree, head, None).is_ok() {
        assert!(repository.remove_work_tree(&tree).unwrap());
    }
    let tree = scene.dir.path().join("copy");
    if let Ok(copy) = Checkout::create(repository, &tree, head) {
        fs::write(tree.join("f.x"), "changed\n").unwrap();
        let _ = copy.stage_all().unwrap();
        copy.reset(head).unwrap();
    }
    Checkout::remove(&tree);
}

/// Plants something, shows that one of the commands runs it, and that we do not.
#[track_caller]
fn assert_not_run(plant: impl Fn(&Scene), commands: &[&[&str]]) {
    let scene = Scene::new();
    plant(&scene);
    for args in commands {
        plain(&scene.root, args);
    }
    assert!(
        scene.ran(),
        "plain git does not run it; the test shows nothing"
    );

    let scene = Scene::new();
    plant(&scene);
    scene.ran();
    for trust in [Trust::Untrusted, Trust::Trusted] {
        use_everything(&scene, trust);
        assert!(!scene.ran(), "{trust:?}");
    }
}

/// Changes a file so that git has to look at it again.
fn touched(scene: &Scene) {
    scene.write("f.x", "touched\n");
}

#[test]
fn planted_filters_are_not_run() {
    for key in ["clean", "smudge", "process"] {
        let plant = |scene: &Scene| {
            scene.config(&format!("filter.evil.{key}"), &scene.evil());
            scene.config("filter.evil.required", "true");
            touched(scene);
        };
        assert_not_run(plant, &[&["add", "f.x"], &["checkout", "-f", "side"]]);
    }
}

#[test]
fn filters_from_included_files_and_worktree_configuration_are_not_run() {
    for (key, path) in [
        ("include.path", "../planted"),
        ("includeIf.gitdir:**.path", "../planted"),
    ] {
        let plant = |scene: &Scene| {
            let text = format!("[filter \"evil\"]\n\tclean = {}\n", quoted(&scene.evil()));
            scene.write("planted", &text);
            scene.config(key, path);
            touched(scene);
        };
        assert_not_run(plant, &[&["add", "f.x"]]);
    }
    let plant = |scene: &Scene| {
        scene.config("extensions.worktreeConfig", "true");
        let text = format!("[filter \"evil\"]\n\tclean = {}\n", quoted(&scene.evil()));
        scene.write(".git/config.worktree", &text);
        touched(scene);
    };
    assert_not_run(plant, &[&["add", "f.x"]]);
}

fn quoted(value: &str) -> String {
    format!("\"{value}\"")
}

#[test]
fn a_filter_chosen_by_info_attributes_is_not_run() {
    let plant = |scene: &Scene| {
        scene.write(".git/info/attributes", "* filter=other\n");
        scene.config("filter.other.clean", &scene.evil());
        touched(scene);
    };
    assert_not_run(plant, &[&["add", "f.x"]]);
}

#[test]
fn difference_drivers_are_not_run() {
    for key in ["diff.evil.command", "diff.evil.textconv", "diff.external"] {
        let plant = |scene: &Scene| {
            scene.config(key, &scene.evil());
            touched(scene);
        };
        assert_not_run(plant, &[&["diff"]]);
    }
}

#[test]
fn merge_drivers_are_not_run_and_both_sides_are_a_conflict() {
    let plant = |scene: &Scene| scene.config("merge.evil.driver", &scene.evil());
    assert_not_run(plant, &[&["merge", "side"]]);

    let scene = Scene::new();
    plant(&scene);
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let args = [
        "-c",
        "attr.tree=main",
        "merge-tree",
        "--write-tree",
        "main",
        "side",
    ];
    let merged = repository.git().unwrap().call(args).run().unwrap();
    assert_eq!(merged.code, Some(1));
}

#[test]
fn monitors_and_hooks_are_not_run() {
    let plant = |scene: &Scene| scene.config("core.fsmonitor", &scene.evil());
    assert_not_run(plant, &[&["status"]]);
    let update: &[&str] = &["update-ref", "refs/heads/zz", "HEAD"];
    for place in ["planted", ".git/hooks"] {
        let plant = |scene: &Scene| {
            scene.evil_program(&scene.root.join(place).join("reference-transaction"));
            if place == "planted" {
                scene.config("core.hooksPath", place);
            }
        };
        assert_not_run(plant, &[update]);
    }
    let plant = |scene: &Scene| {
        scene.evil_program(&scene.root.join(".git/hooks/post-checkout"));
        scene.evil_program(&scene.root.join(".git/hooks/post-merge"));
        scene.evil_program(&scene.root.join(".git/hooks/post-index-change"));
    };
    assert_not_run(plant, &[&["checkout", "-q", "side"]]);
}

#[test]
fn signing_programs_are_not_run() {
    let plant = |scene: &Scene| {
        scene.evil_program(&scene.dir.path().join("gpg"));
        let program = scene.dir.path().join("gpg");
        scene.config("gpg.program", program.to_str().unwrap());
        scene.config("commit.gpgSign", "true");
        scene.config("log.showSignature", "true");
    };
    assert_not_run(plant, &[&["commit", "--allow-empty", "-m", "x"]]);
}

#[test]
fn a_promised_object_is_not_fetched() {
    for (key, url) in [
        ("protocol.ext.allow", "ext::sh -c PROGRAM%"),
        ("core.sshCommand", "ssh://localhost/x"),
        ("core.gitProxy", "git://localhost/x"),
        ("remote.origin.uploadpack", "file:///nonexistent"),
    ] {
        let plant = |scene: &Scene| {
            let program = scene.dir.path().join("fetcher");
            scene.evil_program(&program);
            let program = program.to_str().unwrap();
            let value = if key == "protocol.ext.allow" {
                "always"
            } else {
                program
            };
            scene.config(key, value);
            scene.config("remote.origin.url", &url.replace("PROGRAM%", program));
            scene.config("remote.origin.promisor", "true");
            scene.config("extensions.partialClone", "origin");
            let blob = git(&scene.root, &["rev-parse", "HEAD:f.x"]);
            let (dir, file) = blob.split_at(2);
            fs::remove_file(scene.root.join(".git/objects").join(dir).join(file)).unwrap();
        };
        assert_not_run(plant, &[&["show", "HEAD:f.x"], &["fetch", "origin"]]);
    }
}

#[test]
fn an_address_is_not_rewritten_into_a_command() {
    let plant = |scene: &Scene| {
        let program = scene.dir.path().join("fetcher");
        scene.evil_program(&program);
        let url = format!("ext::sh -c {}", program.display());
        scene.config(&format!("url.{url}.insteadOf"), "https://example.invalid/");
        scene.config("protocol.ext.allow", "always");
        scene.config("remote.origin.url", "https://example.invalid/");
    };
    assert_not_run(plant, &[&["fetch", "origin"]]);
}

#[test]
fn programs_of_a_repository_within_the_work_tree_are_not_run() {
    let plant = |scene: &Scene| {
        let sub = scene.root.join("sub");
        fs::create_dir(&sub).unwrap();
        git(&sub, &["init", "-q"]);
        fs::write(sub.join("a"), "a").unwrap();
        git(&sub, &["add", "a"]);
        git(&sub, &["commit", "-qm", "a"]);
        git(&scene.root, &["add", "sub"]);
        git(&sub, &["config", "core.fsmonitor", &scene.evil()]);
        git(&sub, &["config", "filter.evil.clean", &scene.evil()]);
        fs::write(sub.join(".gitattributes"), "* filter=evil\n").unwrap();
        fs::write(sub.join("a"), "b").unwrap();
        scene.ran();
    };
    assert_not_run(plant, &[&["status"]]);
}

#[test]
fn a_git_within_the_repository_is_not_used_though_the_search_path_names_it() {
    let scene = Scene::new();
    scene.evil_program(&scene.root.join("bin/git"));
    let program = std::env::current_exe().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = std::process::Command::new(program)
        .args(["--exact", "attacks::child_uses_everything", "--ignored"])
        .env("SCENE", scene.dir.path())
        .env("PATH", format!("{}/bin:bin:{path}", scene.root.display()))
        .current_dir(&scene.root)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("1 passed"), "{out}");
    assert!(!scene.ran());
}

#[test]
#[ignore = "a child process of another test"]
fn child_uses_everything() {
    let dir = std::env::var_os("SCENE").unwrap();
    let root = Path::new(&dir).canonicalize().unwrap().join("repo");
    let repository = Repository::find(&root, Trust::Untrusted).unwrap();
    let files = repository.git_with_files().unwrap();
    files.run(["status", "--porcelain"]).unwrap();
}
