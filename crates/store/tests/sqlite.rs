//! What is particular to the store in a SQLite file: several processes, killed processes,
//! damaged files, unusable directories, room on the disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod processes;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use codespar_protocol::{EntryBody, Message, SessionId};
use codespar_store::{SessionFilter, SessionRecord, SqliteStore, Store, StoreError};
use common::{answered, nanos, new_session, said, started, tool_answer};
use jiff::{Timestamp, ToSpan};
use sqlx::{ConnectOptions, Connection, Executor, Row, SqliteConnection};
use tempfile::TempDir;

fn state_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(dir).await.unwrap()
}

/// The database, from behind the store's back.
async fn database(dir: &Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new()
        .filename(dir.join("codespar.db"))
        .connect()
        .await
        .unwrap()
}

async fn tamper(dir: &Path, sql: &'static str) {
    let mut database = database(dir).await;
    database.execute(sql).await.unwrap();
    database.close().await.unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn file_names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_missing_directory_is_made_and_nobody_else_can_read_it() {
    let parent = state_dir();
    let dir = parent.path().join("a/b");
    let store = open(&dir).await;
    let _hold = store.hold_session(started(&store).await).await.unwrap();
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("locks")), 0o700);
    for name in ["codespar.db", "codespar.db-wal", "codespar.db-shm"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_closed_store_leaves_one_whole_file_and_refuses_further_work() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    store.close().await.unwrap();
    assert_eq!(file_names(dir.path()), ["codespar.db", "setup.lock"]);
    let error = store.session(id).await.unwrap_err();
    assert_eq!(error.to_string(), "the database says: the store was closed");
    store.close().await.unwrap();
    open(dir.path()).await.session(id).await.unwrap();
}

#[tokio::test]
async fn two_stores_of_one_process_see_each_others_work() {
    let dir = state_dir();
    let (one, two) = (open(dir.path()).await, open(dir.path()).await);
    let id = started(&one).await;
    two.append(id, 0, vec![said("from two")]).await.unwrap();
    let error = one.append(id, 0, vec![said("late")]).await.unwrap_err();
    assert!(
        matches!(error, StoreError::MovedOn { found: 1, .. }),
        "{error}"
    );
    let _hold = one.hold_session(id).await.unwrap();
    let error = two.hold_session(id).await.unwrap_err();
    assert!(matches!(error, StoreError::SessionInUse { .. }), "{error}");
}

#[tokio::test]
async fn each_call_of_a_model_has_its_row_of_usage() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    let unknown = codespar_protocol::Cost::Unknown(codespar_protocol::Usd::ZERO);
    let bodies = vec![said("x"), answered(7, nanos(9)), answered(8, unknown)];
    let entries = store.append(id, 0, bodies).await.unwrap();
    let columns = "SELECT session_id, seq, model, input_tokens, output_tokens, \
                   cache_creation_input_tokens, cache_read_input_tokens, \
                   cache_creation_1h_input_tokens, cost_nanos, at FROM usage ORDER BY seq";
    let rows = database(dir.path()).await.fetch_all(columns).await.unwrap();
    type UsageRow = (String, i64, String, [i64; 5], Option<i64>, i64);
    let read: Vec<UsageRow> = rows
        .iter()
        .map(|row| {
            let tokens = [3, 4, 5, 6, 7].map(|column: usize| row.get(column));
            let (id, seq, model) = (row.get(0), row.get(1), row.get(2));
            (id, seq, model, tokens, row.get(8), row.get(9))
        })
        .collect();
    let (id, model) = (id.to_string(), "claude-haiku-4-5".to_owned());
    let at = entries[1].at.as_microsecond();
    let expected = [
        (id.clone(), 2, model.clone(), [7, 2, 30, 4, 5], Some(9), at),
        (id, 3, model, [8, 2, 30, 4, 5], None, at),
    ];
    assert_eq!(read, expected);
}

#[tokio::test]
async fn a_path_that_is_not_text_is_refused_by_name() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let dir = state_dir();
    let odd = PathBuf::from(OsStr::from_bytes(b"/w\xff"));
    let store = open(dir.path()).await;
    let mut new = new_session("/w");
    new.cwd.clone_from(&odd);
    let error = store.create_session(new).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::NotText { path } if *path == odd),
        "{error}"
    );
    let odd = dir.path().join(OsStr::from_bytes(b"s\xff"));
    let error = SqliteStore::open(&odd).await.err().unwrap();
    assert!(
        matches!(&error, StoreError::NotText { path } if *path == odd),
        "{error}"
    );
}

// Damage.

async fn damaged_by(sql: &'static str) -> (SessionId, StoreError) {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    let bodies = vec![said("1"), said("2"), said("3")];
    store.append(id, 0, bodies).await.unwrap();
    tamper(dir.path(), sql).await;
    (id, store.entries(id, 1).await.unwrap_err())
}

#[tokio::test]
async fn a_damaged_entry_is_named_by_its_place() {
    let cases = [
        ("UPDATE entries SET body = '{\"user\"' WHERE seq = 2", 2),
        ("UPDATE entries SET body = x'ff00' WHERE seq = 3", 3),
        ("UPDATE entries SET id = 'who' WHERE seq = 1", 1),
        ("UPDATE entries SET at = 'noon' WHERE seq = 2", 2),
        ("DELETE FROM entries WHERE seq = 1", 1),
        ("DELETE FROM entries WHERE seq = 2", 2),
        ("DELETE FROM entries WHERE seq = 3", 3),
        ("DELETE FROM entries", 1),
    ];
    for (sql, place) in cases {
        let (id, error) = damaged_by(sql).await;
        assert!(
            matches!(&error, StoreError::Damaged { id: of, seq, message }
                if *of == id && *seq == place && !message.is_empty()),
            "{sql}: {error}"
        );
    }
}

#[tokio::test]
async fn a_damaged_session_is_named_and_can_be_removed() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    tamper(dir.path(), "UPDATE sessions SET mode = 'sideways'").await;
    let error = store.session(id).await.unwrap_err();
    let expected = format!(
        "session {id}, entry 0 is damaged: the session's own row: `sideways` is not a mode"
    );
    assert_eq!(error.to_string(), expected);
    store.remove_session(id).await.unwrap();
    let left = store.sessions(SessionFilter::default()).await.unwrap();
    assert_eq!(left, Vec::<SessionRecord>::new());
}

fn assert_unusable(error: &StoreError, dir: &Path, why: &str) {
    assert!(
        matches!(error, StoreError::Unusable { path, .. } if path.starts_with(dir)),
        "{error:?}"
    );
    let message = error.to_string();
    assert!(
        message.contains(why) && message.contains("CODESPAR_HOME"),
        "{message}"
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_said_to_be_damaged_and_left_alone() {
    let dir = state_dir();
    let path = dir.path().join("codespar.db");
    let text = "this was never a database\n".repeat(1000);
    fs::write(&path, &text).unwrap();
    let error = SqliteStore::open(dir.path()).await.err().unwrap();
    assert_unusable(&error, dir.path(), "codespar.db is damaged");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_database_with_ruined_pages_is_said_to_be_damaged() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    store.append(id, 0, vec![said("x")]).await.unwrap();
    store.close().await.unwrap();
    let path = dir.path().join("codespar.db");
    let mut bytes = fs::read(&path).unwrap();
    // All but the header and the schema on the first page.
    bytes[4096..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let outcome = match SqliteStore::open(dir.path()).await {
        Ok(store) => store.entries(id, 1).await.map(drop),
        Err(error) => Err(error),
    };
    assert_unusable(&outcome.unwrap_err(), dir.path(), "codespar.db is damaged");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    started(&store).await;
    store.close().await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
                 execution_time) VALUES (9999, 'later', TRUE, x'00', 0)";
    tamper(dir.path(), newer).await;
    let path = dir.path().join("codespar.db");
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::open(dir.path()).await.err().unwrap();
    assert!(
        matches!(&error, StoreError::TooNew { path: at } if *at == path),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_database_that_lacks_our_tables_gets_them() {
    let dir = state_dir();
    let path = dir.path().join("codespar.db");
    fs::write(&path, "").unwrap();
    tamper(dir.path(), "CREATE TABLE other (x TEXT)").await;
    let store = open(dir.path()).await;
    started(&store).await;
    store.close().await.unwrap();
    tamper(dir.path(), "INSERT INTO other VALUES ('kept')").await;
}

#[tokio::test]
async fn what_a_process_killed_while_making_the_database_left_is_made_anew() {
    let dir = state_dir();
    fs::write(dir.path().join("codespar.db.new"), "half").unwrap();
    fs::write(dir.path().join("codespar.db.new-journal"), "half").unwrap();
    let store = open(dir.path()).await;
    started(&store).await;
    store.close().await.unwrap();
    assert_eq!(file_names(dir.path()), ["codespar.db", "setup.lock"]);
}

// Directories that cannot be used. Permission bits do not bind root, so there is more than one.

#[tokio::test]
async fn a_file_in_place_of_the_directory_is_said_to_be_one() {
    let parent = state_dir();
    let file = parent.path().join("state");
    fs::write(&file, "mine").unwrap();
    let error = SqliteStore::open(&file).await.err().unwrap();
    assert_unusable(&error, &file, "it is not a directory");
    let below = file.join("codespar");
    let error = SqliteStore::open(&below).await.err().unwrap();
    assert_unusable(&error, &below, "Not a directory");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_said_to_be_unusable() {
    let dir = Path::new("/proc/codespar");
    let error = SqliteStore::open(dir).await.err().unwrap();
    assert_unusable(&error, dir, "(os error");
}

#[tokio::test]
async fn a_directory_where_the_database_should_be_is_said_to_be_unusable() {
    let dir = state_dir();
    fs::create_dir(dir.path().join("codespar.db")).unwrap();
    let error = SqliteStore::open(dir.path()).await.err().unwrap();
    assert_unusable(&error, dir.path(), "unable to open database file");
}

// Room on the disk.

#[tokio::test]
async fn a_clean_up_gives_the_room_back_to_the_disk_and_says_how_much() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let (gone, kept) = (started(&store).await, started(&store).await);
    let text = "0123456789abcdef".repeat(64 * 1024);
    for place in 0..4 {
        let bodies = vec![tool_answer(&text)];
        store.append(gone, place, bodies).await.unwrap();
    }
    let between = Timestamp::now() + 1.microsecond();
    while Timestamp::now() <= between {
        tokio::task::yield_now().await;
    }
    store.append(kept, 0, vec![said("stay")]).await.unwrap();

    let removed = store.remove_sessions_before(between).await.unwrap();

    assert_eq!(removed.sessions, [gone]);
    assert!(removed.bytes >= 4 << 20, "{removed:?}");
    let size = |name| fs::metadata(dir.path().join(name)).unwrap().len();
    assert!(size("codespar.db") < 1 << 20);
    assert_eq!(size("codespar.db-wal"), 0);
    assert_eq!(store.entries(kept, 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_of_a_removed_session_can_be_found_in_the_files() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    let secret = "sk-very-secret";
    let bodies = (0..200).map(|n| tool_answer(&format!("{secret} {n}")));
    store.append(id, 0, bodies.collect()).await.unwrap();
    let holding = |secret: &str| {
        let names = file_names(dir.path());
        let holds = |name: &String| {
            let bytes = fs::read(dir.path().join(name)).unwrap_or_default();
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        };
        names.into_iter().filter(holds).collect::<Vec<String>>()
    };
    let other = EntryBody::User {
        message: Message::user("plain"),
        synthetic: false,
    };
    let kept = started(&store).await;
    store.append(kept, 0, vec![other]).await.unwrap();
    store.remove_session(id).await.unwrap();
    assert_eq!(holding(secret), Vec::<String>::new());
    assert_eq!(holding("plain"), ["codespar.db"]);
}

#[tokio::test]
async fn lock_files_go_with_their_holds_and_stale_ones_with_the_clean_up() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    let hold = store.hold_session(id).await.unwrap();
    let locks = dir.path().join("locks");
    let stale = locks.join(format!("{}.lock", SessionId::new()));
    fs::write(&stale, "4194304\n").unwrap();
    fs::write(locks.join("notes.txt"), "not a lock").unwrap();

    let removed = store.remove_sessions_before(Timestamp::MAX).await.unwrap();

    assert_eq!(removed.sessions, []);
    let held = format!("{id}.lock");
    assert_eq!(file_names(&locks), [held, "notes.txt".to_owned()]);
    drop(hold);
    assert_eq!(file_names(&locks), ["notes.txt"]);
}

#[tokio::test]
async fn an_empty_database_file_is_refused_and_not_replaced() {
    let dir = state_dir();
    let path = dir.path().join("codespar.db");
    fs::write(&path, "").unwrap();
    let error = SqliteStore::open(dir.path()).await.err().unwrap();
    let text = error.to_string();
    assert!(
        text.contains("codespar.db is an empty file") && text.contains("restore"),
        "{text}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[tokio::test]
async fn a_log_without_its_database_is_not_applied_to_a_new_one() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    store.append(id, 0, vec![said("x")]).await.unwrap();
    let log = dir.path().join("codespar.db-wal");
    let bytes = fs::read(&log).unwrap();
    store.close().await.unwrap();
    fs::remove_file(dir.path().join("codespar.db")).unwrap();
    fs::write(&log, bytes).unwrap();
    let text = SqliteStore::open(dir.path()).await.err().unwrap();
    let text = text.to_string();
    assert!(text.contains("codespar.db is missing"), "{text}");
    assert!(!dir.path().join("codespar.db").exists());
}

#[tokio::test]
async fn a_removed_or_replaced_database_records_nothing_more() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    let path = dir.path().join("codespar.db");
    let away = dir.path().join("away.db");
    fs::rename(&path, &away).unwrap();
    let error = store.append(id, 0, vec![said("x")]).await.unwrap_err();
    assert!(
        error.to_string().contains("codespar.db was removed"),
        "{error}"
    );
    fs::copy(&away, &path).unwrap();
    let error = store.append(id, 0, vec![said("x")]).await.unwrap_err();
    assert!(
        error.to_string().contains("codespar.db was replaced"),
        "{error}"
    );
    fs::rename(&away, &path).unwrap();
    store.append(id, 0, vec![said("x")]).await.unwrap();
    fs::remove_file(&path).unwrap();
    let error = store.close().await.unwrap_err();
    assert!(
        error.to_string().contains("codespar.db was removed"),
        "{error}"
    );
}
