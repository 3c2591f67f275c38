//! Snapshots of work trees: what comes back on another host, and what does not get out of the tree.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use codespar_git::{Checkout, Git, Repository, Snapshot, SnapshotNames, SnapshotTaken, Trust};

use crate::scene::{Scene, git};

const MOST: usize = 1 << 20;

/// A repository and a clone of it that stands for another host.
struct Hosts {
    scene: Scene,
    other: PathBuf,
    base: String,
}

impl Hosts {
    fn new() -> Self {
        let scene = Scene::new();
        scene.write(".gitignore", "ignored/\n*.log\n");
        scene.write("run.sh", "#!/bin/sh\n");
        scene.write("gone", "gone\n");
        scene.write("dir/deep", "deep\n");
        let base = scene.commit("base");
        let other = scene.dir.path().join("other");
        let (from, to) = (scene.root.to_str().unwrap(), other.to_str().unwrap());
        git(scene.dir.path(), &["clone", "-q", from, to]);
        Self { scene, other, base }
    }

    fn linked(&self, root: &Path, name: &str) -> (Git, PathBuf) {
        let path = self.scene.dir.path().join(name);
        let branch = format!("work-{name}");
        git(root, &["branch", "-q", "-f", &branch, &self.base]);
        let repository = Repository::find(root, Trust::Untrusted).unwrap();
        let tree = repository.add_work_tree(&path, &self.base, Some(&branch));
        (tree.unwrap().git_with_files().unwrap(), path)
    }

    fn names(&self, tree: &str) -> SnapshotNames {
        SnapshotNames {
            base: self.base.clone(),
            head: self.base.clone(),
            tree: tree.to_owned(),
        }
    }
}

fn taken(git: &Git, base: &str) -> Snapshot {
    match git.snapshot(base, None, MOST).unwrap() {
        SnapshotTaken::Changed(snapshot) => snapshot,
        other => panic!("{other:?}"),
    }
}

fn change_everything(path: &Path) {
    fs::write(path.join("f.x"), [0, 159, 146, 150, 13, 10, 0]).unwrap();
    fs::set_permissions(path.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(path.join("gone")).unwrap();
    fs::rename(path.join("dir/deep"), path.join("moved")).unwrap();
    fs::create_dir_all(path.join("new/in it")).unwrap();
    fs::write(path.join("new/in it/ü.bin"), vec![7; 3000]).unwrap();
    symlink("../elsewhere", path.join("link")).unwrap();
    fs::create_dir(path.join("ignored")).unwrap();
    fs::write(path.join("ignored/secret"), "k").unwrap();
    fs::write(path.join("out.log"), "log").unwrap();
}

#[test]
fn everything_that_is_not_ignored_comes_back_as_it_was() {
    let hosts = Hosts::new();
    let (here, path) = hosts.linked(&hosts.scene.root, "one");
    change_everything(&path);
    // Committed, staged and neither.
    git(&path, &["add", "f.x"]);
    git(&path, &["commit", "-q", "-m", "Half"]);
    git(&path, &["add", "moved"]);
    let index = fs::read(hosts.scene.root.join(".git/worktrees/one/index")).unwrap();
    let loose = || git(&hosts.scene.root, &["count-objects"]);
    let before = loose();

    let snapshot = taken(&here, &hosts.base);

    let after = fs::read(hosts.scene.root.join(".git/worktrees/one/index")).unwrap();
    assert_eq!((index, before), (after, loose()), "nothing is left behind");
    let (there, other) = hosts.linked(&hosts.other, "two");
    // What an earlier attempt left there.
    fs::write(other.join("stray"), "x").unwrap();
    fs::create_dir(other.join("ignored")).unwrap();
    fs::write(other.join("ignored/own"), "own").unwrap();
    assert!(!there.is_at(&snapshot.names).unwrap());
    there.put_back(&snapshot, Some("work-two")).unwrap();
    assert!(there.is_at(&snapshot.names).unwrap());

    let listed = |dir: &Path| git(dir, &["status", "--porcelain", "--untracked-files=all"]);
    assert_eq!(git(&other, &["log", "-1", "--format=%s"]), "Half");
    let mut expected: Vec<String> = listed(&path)
        .lines()
        .map(|l| l[2..].trim().to_owned())
        .collect();
    expected.sort();
    let mut found: Vec<String> = listed(&other)
        .lines()
        .map(|l| l[2..].trim().to_owned())
        .collect();
    found.sort();
    assert_eq!(found, expected);
    let bytes = fs::read(other.join("f.x")).unwrap();
    assert_eq!(bytes, [0, 159, 146, 150, 13, 10, 0]);
    let mode = fs::metadata(other.join("run.sh")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o111, 0o111);
    assert_eq!(
        fs::read_link(other.join("link")).unwrap(),
        Path::new("../elsewhere")
    );
    assert_eq!(
        fs::read(other.join("new/in it/ü.bin")).unwrap(),
        vec![7; 3000]
    );
    assert!(!other.join("stray").exists() && !other.join("gone").exists());
    assert!(
        !other.join("ignored/secret").exists(),
        "ignored files stay behind"
    );
    assert!(other.join("ignored/own").exists() && !other.join("out.log").exists());
}

#[test]
fn a_copy_of_a_dev_run_comes_back_in_a_repository_without_files() {
    let hosts = Hosts::new();
    let repository = Repository::find(&hosts.scene.root, Trust::Untrusted).unwrap();
    let path = hosts.scene.dir.path().join("copy");
    let copy = Checkout::create(&repository, &path, &hosts.base).unwrap();
    change_everything(&path);
    let snapshot = taken(copy.git(), &hosts.base);

    let bare = hosts.scene.dir.path().join("bare.git");
    let (from, to) = (hosts.scene.root.to_str().unwrap(), bare.to_str().unwrap());
    git(hosts.scene.dir.path(), &["clone", "-q", "--bare", from, to]);
    let repository = Repository::find(&bare, Trust::Untrusted).unwrap();
    let other = hosts.scene.dir.path().join("copy2");
    let there = Checkout::create(&repository, &other, &hosts.base).unwrap();
    there.git().put_back(&snapshot, None).unwrap();

    assert_eq!(taken(there.git(), &hosts.base).names, snapshot.names);
    assert_eq!(
        fs::read_link(other.join("link")).unwrap(),
        Path::new("../elsewhere")
    );
    assert!(!other.join("gone").exists() && !other.join("ignored").exists());
}

#[test]
fn what_has_not_changed_is_not_taken_again_and_what_is_too_large_is_said() {
    let hosts = Hosts::new();
    let (here, path) = hosts.linked(&hosts.scene.root, "one");
    fs::write(path.join("f.x"), "changed\n").unwrap();
    let first = taken(&here, &hosts.base);
    let again = |most| {
        here.snapshot(&hosts.base, Some(&first.names), most)
            .unwrap()
    };
    assert_eq!(again(MOST), SnapshotTaken::Unchanged);
    let noise = std::iter::successors(Some(1_u32), |x| Some(x.wrapping_mul(1_664_525) + 7));
    let noise: Vec<u8> = noise.map(|x| (x >> 24) as u8).take(2 << 20).collect();
    fs::write(path.join("noise"), noise).unwrap();
    let SnapshotTaken::TooLarge { names, reason } = again(MOST) else {
        panic!("it fits");
    };
    assert_eq!(reason, "the changes have more than 1 MiB when packed");
    assert_ne!(names.tree, first.names.tree);
}

#[test]
fn a_change_of_the_same_size_in_the_same_second_is_seen() {
    for _ in 0..5 {
        let hosts = Hosts::new();
        let (here, path) = hosts.linked(&hosts.scene.root, "one");
        // As long as before.
        fs::write(path.join("f.x"), "niam\n").unwrap();
        let snapshot = taken(&here, &hosts.base);
        let text = git(&hosts.scene.root, &["rev-parse", "HEAD^{tree}"]);
        assert_ne!(snapshot.names.tree, text);
    }
}

#[test]
fn conflicts_and_repositories_within_do_not_keep_the_rest_from_being_taken() {
    let hosts = Hosts::new();
    let (here, path) = hosts.linked(&hosts.scene.root, "one");
    let merged = Command::new("git")
        .arg("-C")
        .arg(&path)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
        .args(["merge", "-q", "side"])
        .output()
        .unwrap();
    assert!(!merged.status.success());
    let nested = path.join("nested");
    fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    git(&nested, &["config", "core.fsmonitor", &hosts.scene.evil()]);
    git(&nested, &["commit", "-q", "--allow-empty", "-m", "x"]);
    hosts.scene.ran();
    fs::write(path.join("new"), "new\n").unwrap();

    let snapshot = taken(&here, &hosts.base);

    let (there, other) = hosts.linked(&hosts.other, "two");
    there.put_back(&snapshot, Some("work-two")).unwrap();
    let text = fs::read_to_string(other.join("f.x")).unwrap();
    assert!(text.contains("<<<<<<<") && text.contains("side"), "{text}");
    assert!(other.join("new").exists() && !other.join("nested").exists());
    assert!(!hosts.scene.ran());
}

/// Writes an object as it is, whatever it says, and gives its name.
fn object(root: &Path, kind: &str, content: &[u8]) -> String {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["hash-object", "-t", kind, "-w", "--literally", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(content).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let bytes = (0..id.len() / 2).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16));
    let mut entry = format!("{mode} {name}\0").into_bytes();
    entry.extend(bytes.map(Result::unwrap));
    entry
}

fn packed(root: &Path, ids: &[&str]) -> Vec<u8> {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["pack-objects", "--quiet", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let list = ids.join("\n") + "\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(list.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Everything outside of the trees.
fn outside(hosts: &Hosts) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut dirs = vec![hosts.scene.dir.path().to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let is_objects = path.ends_with("objects") || path.ends_with("tree");
            if path.is_dir() && !path.is_symlink() && !is_objects {
                dirs.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn a_hostile_snapshot_writes_nothing_outside_of_the_tree() {
    let hosts = Hosts::new();
    let evil = hosts.scene.dir.path().join("evil");
    git(
        hosts.scene.dir.path(),
        &["clone", "-q", hosts.scene.root.to_str().unwrap(), "evil"],
    );
    let blob = object(&evil, "blob", b"#!/bin/sh\ntouch pwned\n");
    let target = hosts.scene.dir.path().join("target");
    fs::create_dir(&target).unwrap();
    let link = object(&evil, "blob", target.to_str().unwrap().as_bytes());
    let file = entry("100755", "x", &blob);
    let inner = object(&evil, "tree", &file);
    let hooks = object(&evil, "tree", &entry("40000", "hooks", &inner));
    let attacks: Vec<(&str, Vec<u8>)> = vec![
        ("above", entry("40000", "..", &inner)),
        ("a slash", entry("100755", "../pwned", &blob)),
        ("absolute", entry("100755", "/tmp/pwned", &blob)),
        ("git", entry("40000", ".git", &hooks)),
        ("GIT", entry("40000", ".GIT", &hooks)),
        ("git for HFS", entry("40000", ".g\u{200c}it", &hooks)),
        ("git for NTFS", entry("40000", "git~1", &hooks)),
        (
            "a link and a directory of one name",
            [entry("120000", "a", &link), entry("40000", "a", &inner)].concat(),
        ),
        ("a link to modules", entry("120000", ".gitmodules", &link)),
    ];
    for (what, content) in attacks {
        let tree = object(&evil, "tree", &content);
        let pack = packed(&evil, &[&blob, &link, &inner, &hooks, &tree]);
        let (there, path) = hosts.linked(&hosts.other, "tree");
        let before = outside(&hosts);
        let snapshot = Snapshot {
            names: hosts.names(&tree),
            pack,
        };
        let refused = there.put_back(&snapshot, Some("work-tree"));
        assert!(refused.is_err(), "{what}");
        assert_eq!(outside(&hosts), before, "{what}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{what}");
        let repository = Repository::find(&hosts.other, Trust::Untrusted).unwrap();
        repository.remove_work_tree(&path).unwrap();
    }
    for name in ["--output=/tmp/pwned", "HEAD", ""] {
        let (there, path) = hosts.linked(&hosts.other, "tree");
        let snapshot = Snapshot {
            names: hosts.names(name),
            pack: Vec::new(),
        };
        assert!(there.put_back(&snapshot, None).is_err(), "{name}");
        let repository = Repository::find(&hosts.other, Trust::Untrusted).unwrap();
        repository.remove_work_tree(&path).unwrap();
    }
}

#[test]
fn links_that_lead_out_of_the_tree_are_replaced_and_not_followed() {
    let hosts = Hosts::new();
    let (here, path) = hosts.linked(&hosts.scene.root, "one");
    fs::create_dir(path.join("d")).unwrap();
    fs::write(path.join("d/x"), "evil\n").unwrap();
    fs::write(path.join("dir/deep"), "evil\n").unwrap();
    let snapshot = taken(&here, &hosts.base);
    let target = hosts.scene.dir.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("x"), "theirs\n").unwrap();
    fs::write(target.join("deep"), "theirs\n").unwrap();
    let (there, other) = hosts.linked(&hosts.other, "two");
    symlink(&target, other.join("d")).unwrap();
    fs::remove_dir_all(other.join("dir")).unwrap();
    symlink(&target, other.join("dir")).unwrap();

    there.put_back(&snapshot, Some("work-two")).unwrap();

    assert_eq!(fs::read_to_string(target.join("x")).unwrap(), "theirs\n");
    assert_eq!(fs::read_to_string(target.join("deep")).unwrap(), "theirs\n");
    assert_eq!(fs::read_to_string(other.join("d/x")).unwrap(), "evil\n");
    assert_eq!(
        fs::read_to_string(other.join("dir/deep")).unwrap(),
        "evil\n"
    );
    assert!(!other.join("d").is_symlink() && !other.join("dir").is_symlink());
}
