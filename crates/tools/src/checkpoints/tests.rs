//! Files changed by the real tools, and put back.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use codespar_protocol::SessionId;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{edit::Edit, read::Read, testing::Bench, write::Write};

/// A project whose changes are kept in a state directory of its own.
struct Room {
    bench: Bench,
    state: TempDir,
    store: CheckpointStore,
}

impl Room {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let store = CheckpointStore::new(state.path(), SessionId::new());
        let bench = Bench::new().map_context(|context| {
            let left_out = vec![context.root().join("tmp")];
            let checkpoints = Checkpoints::new(store.clone(), ChangeAuthor::Main);
            context.with_checkpoints(checkpoints.leave_out(left_out))
        });
        Self {
            bench,
            state,
            store,
        }
    }

    fn turn(&self, prompt: u64) {
        self.bench.context().checkpoints().unwrap().set_turn(prompt);
    }

    async fn write(&self, name: &str, content: &str) {
        let input = json!({"file_path": name, "content": content});
        if self.bench.path(name).exists() {
            self.bench.run(&Read, json!({"file_path": name})).await;
        }
        self.bench.run(&Write, input).await;
    }

    async fn edit(&self, name: &str, old: &str, new: &str) {
        let input = json!({"file_path": name, "old_string": old, "new_string": new});
        self.bench.run(&Edit, input).await;
    }

    fn records(&self) -> Vec<ChangeRecord> {
        self.store.records().unwrap()
    }

    fn blobs(&self) -> usize {
        let dir = self.dir().join("blobs");
        fs::read_dir(dir).map_or(0, Iterator::count)
    }

    fn dir(&self) -> PathBuf {
        let sessions = fs::read_dir(self.state.path().join("checkpoints")).unwrap();
        sessions.map(|entry| entry.unwrap().path()).next().unwrap()
    }

    /// Turns and rewinds have their places in one order.
    fn restore(&self, place: u64) -> Restore {
        Restore {
            store: self.store.clone(),
            cause: ChangeCause::Rewind { place },
        }
    }

    /// Steps to before a turn.
    fn steps_before(&self, turn: u64) -> Vec<RestoreStep> {
        let records = self.records();
        let since = records.iter().filter(|record| match record.cause {
            ChangeCause::Turn { prompt } => prompt >= turn,
            ChangeCause::Rewind { place } => place >= turn,
            ChangeCause::Subagent | ChangeCause::Undo { .. } => false,
        });
        RestoreStep::all(since)
    }

    fn rewind(&self, place: u64, turn: u64, on_conflict: OnConflict) -> Vec<RestoreOutcome> {
        let restore = self.restore(place);
        let steps = self.steps_before(turn);
        let run = |step: &RestoreStep| restore.run(step, on_conflict).unwrap();
        steps.iter().map(run).collect()
    }

    /// Takes back the rewind at a place, by another one right after it.
    fn undo(&self, place: u64) -> Vec<RestoreOutcome> {
        let records = self.records();
        let cause = ChangeCause::Rewind { place };
        let steps = RestoreStep::all(records.iter().filter(|record| record.cause == cause));
        let restore = self.restore(place + 1);
        let run = |step: &RestoreStep| restore.run(step, OnConflict::LeaveAlone).unwrap();
        steps.iter().map(run).collect()
    }
}

fn left(conflict: FileConflict) -> Vec<RestoreOutcome> {
    vec![RestoreOutcome::LeftAlone(conflict)]
}

#[tokio::test]
async fn edits_of_several_turns_are_taken_back_and_again_made() {
    let room = Room::new();
    room.bench.write("a.txt", "one\r\ntwo\r\n");
    for (turn, old, new) in [
        (1, "one", "1"),
        (2, "two", "2"),
        (2, "2", "zwei"),
        (3, "1", "I"),
    ] {
        room.turn(turn);
        room.edit("a.txt", old, new).await;
    }
    assert_eq!(room.records().len(), 4);
    // Once a turn, though the second had two edits.
    assert_eq!(room.blobs(), 3);
    assert_eq!(room.bench.text("a.txt"), "I\r\nzwei\r\n");
    let outcomes = room.rewind(4, 2, OnConflict::LeaveAlone);
    assert_eq!(outcomes, [RestoreOutcome::Restored]);
    assert_eq!(room.bench.text("a.txt"), "1\r\ntwo\r\n");
    assert_eq!(room.undo(4), [RestoreOutcome::Restored]);
    assert_eq!(room.bench.text("a.txt"), "I\r\nzwei\r\n");
    assert_eq!(room.undo(5), [RestoreOutcome::Restored]);
    assert_eq!(room.bench.text("a.txt"), "1\r\ntwo\r\n");
    room.rewind(7, 1, OnConflict::LeaveAlone);
    assert_eq!(room.bench.text("a.txt"), "one\r\ntwo\r\n");
}

#[tokio::test]
async fn a_new_file_goes_with_its_directories_and_comes_back() {
    let room = Room::new();
    room.bench.write("old/kept.txt", "");
    room.turn(1);
    room.write("old/new/deep/a.txt", "a").await;
    room.write("old/b.txt", "b").await;
    room.rewind(1, 1, OnConflict::LeaveAlone);
    assert_eq!(room.bench.names("."), ["old"]);
    assert_eq!(room.bench.names("old"), ["kept.txt"]);
    room.undo(1);
    assert_eq!(room.bench.text("old/new/deep/a.txt"), "a");
    assert_eq!(room.bench.text("old/b.txt"), "b");
    // A directory with something else in it stays.
    room.bench.write("old/new/mine.txt", "");
    room.rewind(3, 1, OnConflict::LeaveAlone);
    assert_eq!(room.bench.names("old"), ["kept.txt", "new"]);
    assert_eq!(room.bench.names("old/new"), ["mine.txt"]);
}

#[tokio::test]
async fn modes_and_bytes_that_are_no_text_come_back_as_they_were() {
    let room = Room::new();
    let script = room.bench.write("run.sh", "#!/bin/sh\n");
    let bytes = [0, 159, 146, 150, 13, 10, 255];
    let binary = room.bench.write("data.bin", bytes);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    let ledger = room.bench.context().ledger();
    ledger.record(&binary, &fs::metadata(&binary).unwrap(), &bytes);
    room.turn(1);
    room.write("run.sh", "#!/bin/bash\n").await;
    let input = json!({"file_path": "data.bin", "content": "text"});
    room.bench.run(&Write, input).await;
    room.rewind(1, 1, OnConflict::LeaveAlone);
    assert_eq!(room.bench.text("run.sh"), "#!/bin/sh\n");
    assert_eq!(fs::read(&binary).unwrap(), bytes);
    assert_eq!(mode(&script), 0o750);
    // One that was removed gets its mode back; one that is there keeps what a command gave it.
    room.turn(2);
    room.write("run.sh", "2\n").await;
    fs::remove_file(&script).unwrap();
    room.rewind(3, 2, OnConflict::Overwrite);
    assert_eq!(
        (room.bench.text("run.sh").as_str(), mode(&script)),
        ("#!/bin/sh\n", 0o750)
    );
    room.turn(4);
    room.write("run.sh", "3\n").await;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    room.rewind(5, 4, OnConflict::LeaveAlone);
    assert_eq!(
        (room.bench.text("run.sh").as_str(), mode(&script)),
        ("#!/bin/sh\n", 0o700)
    );
}

#[tokio::test]
async fn what_the_user_or_a_command_changed_is_left_alone_unless_overwriting_is_wanted() {
    let room = Room::new();
    let path = room.bench.write("a.txt", "one\n");
    room.turn(1);
    room.edit("a.txt", "one", "two").await;
    fs::write(&path, "mine\n").unwrap();
    let outcomes = room.rewind(1, 1, OnConflict::LeaveAlone);
    assert_eq!(outcomes, left(FileConflict::Changed));
    // Moved away.
    fs::rename(&path, room.bench.path("b.txt")).unwrap();
    let outcomes = room.rewind(2, 1, OnConflict::LeaveAlone);
    assert_eq!(outcomes, left(FileConflict::Removed));
    assert_eq!(room.bench.names("."), ["b.txt"]);
    fs::rename(room.bench.path("b.txt"), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let outcomes = room.rewind(3, 1, OnConflict::Overwrite);
    assert_eq!(outcomes, left(FileConflict::ReadOnly));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(room.bench.text("a.txt"), "mine\n");
    // None of these left a record.
    assert_eq!(room.records().len(), 1);
    let outcomes = room.rewind(4, 1, OnConflict::Overwrite);
    assert_eq!(outcomes, [RestoreOutcome::Restored]);
    assert_eq!(room.bench.text("a.txt"), "one\n");
    room.undo(4);
    assert_eq!(room.bench.text("a.txt"), "mine\n");
}

#[tokio::test]
async fn a_link_in_the_place_of_a_file_or_a_directory_is_not_followed() {
    let room = Room::new();
    let outside = Bench::new();
    let victim = outside.write("a.txt", "two\n");
    room.bench.write("d/a.txt", "one\n");
    room.turn(1);
    room.edit("d/a.txt", "one", "two").await;
    room.write("d/new.txt", "new\n").await;
    let file = room.bench.path("d/a.txt");
    fs::remove_file(&file).unwrap();
    symlink(&victim, &file).unwrap();
    for on_conflict in [OnConflict::LeaveAlone, OnConflict::Overwrite] {
        let outcomes = room.rewind(1, 1, on_conflict);
        let refused = RestoreOutcome::LeftAlone(FileConflict::NotRegular);
        assert_eq!(outcomes[0], refused);
    }
    fs::remove_file(&file).unwrap();
    fs::rename(room.bench.path("d"), room.bench.path("away")).unwrap();
    outside.write("new.txt", "new\n");
    symlink(outside.root(), room.bench.path("d")).unwrap();
    let refused = RestoreOutcome::LeftAlone(FileConflict::NotRegular);
    let outcomes = room.rewind(2, 1, OnConflict::Overwrite);
    assert_eq!(outcomes, [refused.clone(), refused]);
    assert_eq!(outside.text("a.txt"), "two\n");
    assert_eq!(outside.text("new.txt"), "new\n");
}

#[tokio::test]
async fn a_checkpoint_directory_that_was_swapped_for_a_link_is_not_used() {
    let room = Room::new();
    let outside = Bench::new();
    room.bench.write("a.txt", "one\n");
    room.turn(1);
    room.edit("a.txt", "one", "two").await;
    let steps = room.steps_before(1);
    let dir = room.dir();
    let away = outside.path("away");
    fs::rename(&dir, &away).unwrap();
    symlink(&away, &dir).unwrap();
    assert!(room.store.records().is_err());
    // Neither read nor written through, and no file is changed without its checkpoint.
    let outcome = room.restore(1).run(&steps[0], OnConflict::LeaveAlone);
    assert!(matches!(
        outcome,
        Ok(RestoreOutcome::LeftAlone(FileConflict::Unreadable(_)))
    ));
    let input = json!({"file_path": "a.txt", "old_string": "two", "new_string": "three"});
    let error = room.bench.fail(&Edit, input).await;
    assert!(error.contains("cannot use the checkpoints"), "{error}");
    assert_eq!(room.bench.text("a.txt"), "two\n");
    assert_eq!(fs::read_dir(away.join("blobs")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_blob_that_was_changed_is_not_restored() {
    let room = Room::new();
    room.bench.write("a.txt", "one\n");
    room.turn(1);
    room.edit("a.txt", "one", "two").await;
    let blob = fs::read_dir(room.dir().join("blobs")).unwrap().next();
    fs::write(blob.unwrap().unwrap().path(), "rm -rf\n").unwrap();
    let outcomes = room.rewind(1, 1, OnConflict::Overwrite);
    let [RestoreOutcome::LeftAlone(FileConflict::Unreadable(reason))] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    assert!(reason.ends_with("is missing or damaged"), "{reason}");
    assert_eq!(room.bench.text("a.txt"), "two\n");
}

#[tokio::test]
async fn a_kill_between_the_checkpoint_and_the_write_leaves_nothing_to_take_back() {
    let room = Room::new();
    let path = room.bench.write("a.txt", "one\n");
    room.turn(1);
    room.edit("a.txt", "one", "two").await;
    let existing = Existing {
        metadata: fs::metadata(&path).unwrap(),
        content: fs::read(&path).unwrap(),
    };
    // The first half of a second edit.
    let upcoming = Upcoming {
        path: &path,
        before: Some(&existing),
        after: b"three\n",
        new_dirs: 0,
    };
    let checkpoints = room.bench.context().checkpoints().unwrap();
    checkpoints.capture(&upcoming).unwrap();
    // And a record that the kill cut off.
    let log = room.dir().join("log");
    let mut text = fs::read(&log).unwrap();
    text.extend_from_slice(b"\n{\"at\":\"2026-");
    fs::write(&log, text).unwrap();
    assert_eq!(room.records().len(), 2);
    let outcomes = room.rewind(1, 1, OnConflict::LeaveAlone);
    assert_eq!(outcomes, [RestoreOutcome::Restored]);
    assert_eq!(room.bench.text("a.txt"), "one\n");
    assert_eq!(room.records().len(), 3);
}

#[tokio::test]
async fn a_kill_between_two_steps_of_a_restore_is_made_good_by_restoring_again() {
    let room = Room::new();
    for name in ["a", "b", "c"] {
        room.bench.write(name, "old\n");
    }
    room.turn(1);
    for name in ["a", "b", "c"] {
        room.edit(name, "old", "new").await;
    }
    let steps = room.steps_before(1);
    let restore = room.restore(1);
    restore.run(&steps[0], OnConflict::LeaveAlone).unwrap();
    // Recorded, and then killed.
    let prepared = restore.prepare(&steps[1], OnConflict::LeaveAlone).unwrap();
    drop(prepared.unwrap_or_else(|outcome| panic!("{outcome:?}")));
    let texts = || ["a", "b", "c"].map(|name| room.bench.text(name));
    assert_eq!(texts(), ["old\n", "new\n", "new\n"]);
    let outcomes = room.rewind(2, 1, OnConflict::LeaveAlone);
    let expected = [
        RestoreOutcome::Unneeded,
        RestoreOutcome::Restored,
        RestoreOutcome::Restored,
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(texts(), ["old\n", "old\n", "old\n"]);
    // Both halves can be undone, the later first.
    room.undo(2);
    room.undo(1);
    assert_eq!(texts(), ["new\n", "new\n", "new\n"]);
}

#[tokio::test]
async fn a_file_that_is_too_large_to_be_kept_is_recorded_and_not_restored() {
    let room = Room::new();
    let large = vec![b'x'; usize::try_from(MOST_KEPT_BYTES).unwrap() + 1];
    let path = room.bench.write("a.txt", &large);
    let ledger = room.bench.context().ledger();
    ledger.record(&path, &fs::metadata(&path).unwrap(), &large);
    room.turn(1);
    let input = json!({"file_path": "a.txt", "content": "small\n"});
    room.bench.run(&Write, input).await;
    let size = large.len() as u64;
    assert_eq!(room.records()[0].before, FileState::NotKept { size });
    let outcomes = room.rewind(1, 1, OnConflict::Overwrite);
    assert_eq!(outcomes, left(FileConflict::NotKept));
    assert_eq!(
        (room.bench.text("a.txt").as_str(), room.blobs()),
        ("small\n", 0)
    );
}

#[tokio::test]
async fn checkpoints_are_for_their_owner_alone_and_a_turn_without_edits_makes_none() {
    let room = Room::new();
    room.bench.write("a.txt", "one\n");
    room.turn(1);
    room.bench.run(&Read, json!({"file_path": "a.txt"})).await;
    let input = json!({"file_path": "a.txt", "old_string": "none", "new_string": "x"});
    room.bench.fail(&Edit, input).await;
    // Nor does a change of what is nobody's file.
    room.write("tmp/notes.txt", "x").await;
    assert_eq!(fs::read_dir(room.state.path()).unwrap().count(), 0);
    assert_eq!(room.records(), []);
    room.edit("a.txt", "one", "two").await;
    let dir = room.dir();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(room.state.path().join("checkpoints")), 0o700);
    assert_eq!((mode(dir.clone()), mode(dir.join("blobs"))), (0o700, 0o700));
    assert_eq!(mode(dir.join("log")), 0o600);
    let blob = fs::read_dir(dir.join("blobs")).unwrap().next();
    assert_eq!(mode(blob.unwrap().unwrap().path()), 0o600);
}
