//! Changes on a real disk.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use codespar_protocol::Bytes;

use super::*;

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

fn bytes(text: &str) -> Bytes {
    Bytes(text.into())
}

fn added(at: &str, text: &str) -> FileChange {
    FileChange::Added {
        path: path(at),
        content: bytes(text),
        mode: FileMode::Regular,
    }
}

fn modified(at: &str, text: &str) -> FileChange {
    FileChange::Modified {
        path: path(at),
        content: bytes(text),
        mode: FileMode::Regular,
    }
}

fn moved(from: &str, to: &str, text: &str, mode: FileMode) -> FileChange {
    FileChange::Moved {
        from: path(from),
        to: path(to),
        content: bytes(text),
        mode,
    }
}

fn deleted(at: &str) -> FileChange {
    FileChange::Deleted { path: path(at) }
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let place = dir.path().join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    dir
}

/// Every path below, with its text; directories end with a slash.
fn listing(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let place = entry.unwrap().path();
            let name = place.strip_prefix(root).unwrap().display().to_string();
            if place.is_dir() {
                found.insert(name + "/", String::new());
                open.push(place);
            } else {
                found.insert(name, fs::read_to_string(&place).unwrap());
            }
        }
    }
    found
}

fn listed(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = files
        .iter()
        .map(|(name, text)| ((*name).into(), (*text).into()));
    owned.collect()
}

fn bits(place: &Path) -> u32 {
    fs::metadata(place).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_change_is_written_and_emptied_directories_go() {
    let dir = tree(&[
        ("a", "1\n"),
        ("d/e/b", "2\n"),
        ("d/c", "3\n"),
        ("x/y", "4\n"),
    ]);
    let changes = ChangeSet(vec![
        modified("a", "one\n"),
        added("n/e/w", "new"),
        deleted("d/e/b"),
        moved("x/y", "d/y", "four\n", FileMode::Regular),
    ]);
    write(dir.path(), &changes).unwrap();
    assert_eq!(
        listing(dir.path()),
        listed(&[
            ("a", "one\n"),
            ("d/", ""),
            ("d/c", "3\n"),
            ("d/y", "four\n"),
            ("n/", ""),
            ("n/e/", ""),
            ("n/e/w", "new"),
        ])
    );
}

#[test]
fn modes_stay_and_a_new_executable_can_be_run() {
    let dir = tree(&[("run", "#!\n"), ("private", "x\n"), ("old", "y\n")]);
    for (name, mode) in [("run", 0o750), ("private", 0o600), ("old", 0o711)] {
        fs::set_permissions(dir.path().join(name), Permissions::from_mode(mode)).unwrap();
    }
    let executable = |at: &str| FileChange::Added {
        path: path(at),
        content: bytes("#!\n"),
        mode: FileMode::Executable,
    };
    let changes = ChangeSet(vec![
        FileChange::Modified {
            path: path("run"),
            content: bytes("#!2\n"),
            mode: FileMode::Executable,
        },
        modified("private", "z\n"),
        moved("old", "new", "y\n", FileMode::Executable),
        executable("tool"),
    ]);
    write(dir.path(), &changes).unwrap();
    let modes = ["run", "private", "new"].map(|name| bits(&dir.path().join(name)));
    assert_eq!(modes, [0o750, 0o600, 0o711]);
    assert_eq!(bits(&dir.path().join("tool")) & 0o700, 0o700);
}

#[test]
fn a_file_that_cannot_be_staged_leaves_everything_as_it_was() {
    let dir = tree(&[("a", "1\n"), ("f", "2\n")]);
    let before = listing(dir.path());
    for (bad, expected) in [
        (added("f/below", "x"), "`f` is no directory"),
        (added("a", "x"), "something is there already"),
        (modified("gone", "x"), "there is no such file any more"),
        (deleted("gone"), "there is no such file"),
    ] {
        let changes = ChangeSet(vec![modified("a", "one\n"), added("n/w", "new"), bad]);
        let error = write(dir.path(), &changes).unwrap_err();
        assert_eq!(
            (error.reason.as_str(), error.state.as_str()),
            (expected, "nothing was changed")
        );
        assert_eq!(listing(dir.path()), before);
    }
}

#[test]
fn a_failure_on_the_way_puts_everything_back() {
    let dir = tree(&[("a", "1\n"), ("d/b", "2\n"), ("c", "3\n")]);
    fs::set_permissions(dir.path().join("a"), Permissions::from_mode(0o751)).unwrap();
    let before = listing(dir.path());
    let mut stage = Stage::new(Dir::open(dir.path()).unwrap());
    let changes = [
        modified("a", "one\n"),
        added("n/w", "new"),
        moved("c", "n/c", "three\n", FileMode::Regular),
        deleted("d/b"),
    ];
    for change in &changes {
        stage.prepare(change).map_err(|(_, error)| error).unwrap();
    }
    // The last file to go is gone before its turn.
    let missing = path("missing");
    let place = stage.place(&missing).unwrap();
    stage.removals.push((missing, place));
    let error = stage.commit().unwrap_err();
    assert_eq!(error.path, "missing");
    assert_eq!(error.state, "everything was put back as it was");
    assert_eq!(listing(dir.path()), before);
    assert_eq!(bits(&dir.path().join("a")), 0o751);
}

#[test]
fn nothing_is_written_through_a_link() {
    let outside = tree(&[("secret", "s\n")]);
    let dir = tree(&[("a", "1\n")]);
    symlink(outside.path(), dir.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), dir.path().join("link")).unwrap();
    for change in [
        added("out/new", "x"),
        modified("out/secret", "x"),
        deleted("out/secret"),
        modified("link", "x"),
        deleted("link"),
        moved("a", "out/a", "1\n", FileMode::Regular),
    ] {
        let error = write(dir.path(), &ChangeSet(vec![change])).unwrap_err();
        assert_eq!(error.state, "nothing was changed");
    }
    assert_eq!(listing(outside.path()), listed(&[("secret", "s\n")]));
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "1\n");
}

#[test]
fn of_hundreds_of_raced_changes_none_lands_outside() {
    let outside = tree(&[("a", "outside\n")]);
    let dir = tree(&[("d/a", "inside\n")]);
    let stop = Arc::new(AtomicBool::new(false));
    let racer = {
        let (dir, outside) = (dir.path().join("d"), outside.path().to_owned());
        let stop = stop.clone();
        thread::spawn(move || {
            let away = dir.with_extension("away");
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(&dir, &away);
                let _ = symlink(&outside, &dir);
                let _ = fs::remove_file(&dir);
                let _ = fs::rename(&away, &dir);
            }
        })
    };
    for turn in 0..400 {
        let changes = ChangeSet(vec![
            modified("d/a", "changed\n"),
            added(&format!("d/new-{turn}"), "x\n"),
        ]);
        // Whether a change succeeds is up to chance.
        let _ = write(dir.path(), &changes);
    }
    stop.store(true, Ordering::Relaxed);
    racer.join().unwrap();
    assert_eq!(listing(outside.path()), listed(&[("a", "outside\n")]));
}
