//! Several real processes on one state directory, and what a killed one leaves behind. A child
//! is this test program, run again for one of the `child_…` tests below.

use std::{
    collections::HashSet,
    env,
    io::{BufRead, BufReader, Lines, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
};

use codespar_protocol::{EntryBody, SessionId};
use codespar_store::{SessionFilter, SqliteStore, Store, StoreError};

use super::{assert_unusable, open, state_dir};
use crate::common::{answered, nanos, new_session, said, started};

const DIR: &str = "STORE_TEST_DIR";
const SESSION: &str = "STORE_TEST_SESSION";

/// What the child was told; `None` when the test was not started as a child.
fn told(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Out at once, past the test program's own capture: a killed process flushes nothing.
fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n> {line}").unwrap();
    out.flush().unwrap();
}

struct Started {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn command(program: &Path, test: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", &format!("processes::{test}"), "--ignored"])
        .args(["--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .stdout(Stdio::piped());
    command
}

fn start(mut command: Command) -> Started {
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Started { child, lines }
}

fn start_child(test: &str, dir: &Path, session: Option<SessionId>) -> Started {
    let mut command = command(&env::current_exe().unwrap(), test, dir);
    if let Some(id) = session {
        command.env(SESSION, id.to_string());
    }
    start(command)
}

impl Started {
    /// The next line the child reported, `None` at its end.
    fn reported(&mut self) -> Option<String> {
        let line = |line: Result<String, _>| Some(line.unwrap().strip_prefix("> ")?.to_owned());
        self.lines.find_map(line)
    }

    fn ended(mut self) -> (Vec<String>, ExitStatus) {
        let mut lines = Vec::new();
        while let Some(line) = self.reported() {
            lines.push(line);
        }
        (lines, self.child.wait().unwrap())
    }
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_makes_a_session() {
    let Some(dir) = told(DIR) else { return };
    let store = open(Path::new(&dir)).await;
    report(&started(&store).await.to_string());
}

#[tokio::test]
async fn several_processes_can_open_a_fresh_directory_at_once() {
    for _ in 0..4 {
        let parent = state_dir();
        let dir = parent.path().join("state");
        let start = |_| start_child("child_makes_a_session", &dir, None);
        let children: Vec<Started> = (0..6).map(start).collect();
        let mut made = HashSet::new();
        for child in children {
            let (lines, status) = child.ended();
            assert!(status.success());
            made.extend(lines);
        }
        let store = open(&dir).await;
        let found = store.sessions(SessionFilter::default()).await.unwrap();
        let found: HashSet<String> = found.iter().map(|session| session.id.to_string()).collect();
        assert_eq!(found, made);
        assert_eq!(made.len(), 6);
    }
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_appends_to_a_shared_and_an_own_session() {
    let (Some(dir), Some(shared)) = (told(DIR), told(SESSION)) else {
        return;
    };
    let store = open(Path::new(&dir)).await;
    let (shared, own) = (shared.parse().unwrap(), started(&store).await);
    let mut last = 0;
    for turn in 0..40 {
        let body = said(&format!("{} {turn}", std::process::id()));
        last = loop {
            let bodies = vec![body.clone(), answered(1, nanos(1))];
            match store.append(shared, last, bodies).await {
                Ok(entries) => break entries[1].seq,
                Err(StoreError::MovedOn { found, .. }) => last = found,
                Err(other) => panic!("{other}"),
            }
        };
        store.append(own, turn, vec![body]).await.unwrap();
    }
    report(&own.to_string());
}

#[tokio::test]
async fn several_processes_append_at_once_and_nothing_is_lost_or_doubled() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let shared = started(&store).await;
    let test = "child_appends_to_a_shared_and_an_own_session";
    let start = |_| start_child(test, dir.path(), Some(shared));
    let children: Vec<Started> = (0..4).map(start).collect();
    for child in children {
        let (lines, status) = child.ended();
        assert!(status.success());
        let own = store.entries(lines[0].parse().unwrap(), 1).await.unwrap();
        assert_eq!(own.len(), 40);
    }
    let entries = store.entries(shared, 1).await.unwrap();
    let places: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(places, (1..=320).collect::<Vec<u64>>());
    let said: HashSet<String> = entries
        .iter()
        .filter_map(|entry| match &entry.body {
            EntryBody::User { message, .. } => Some(message.text()),
            _ => None,
        })
        .collect();
    assert_eq!(said.len(), 160, "each once");
    let session = store.session(shared).await.unwrap();
    assert_eq!((session.last_seq, session.cost), (320, nanos(160)));
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_holds_a_session_and_appends_for_ever() {
    let (Some(dir), Some(id)) = (told(DIR), told(SESSION)) else {
        return;
    };
    let store = open(Path::new(&dir)).await;
    let id: SessionId = id.parse().unwrap();
    let _hold = store.hold_session(id).await.unwrap();
    let mut last = store.session(id).await.unwrap().last_seq;
    loop {
        let bodies = vec![said(&"words ".repeat(500)), answered(1, nanos(1))];
        last = store.append(id, last, bodies).await.unwrap()[1].seq;
        report(&last.to_string());
    }
}

#[tokio::test]
async fn a_process_killed_in_mid_append_loses_nothing_it_acknowledged_and_lets_go() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let id = started(&store).await;
    store.close().await.unwrap();
    for round in 0..8_u32 {
        let test = "child_holds_a_session_and_appends_for_ever";
        let mut child = start_child(test, dir.path(), Some(id));
        for _ in 0..=(round * 7) {
            child.reported().unwrap();
        }
        let store = open(dir.path()).await;
        let error = store.hold_session(id).await.unwrap_err();
        let pid = child.child.id();
        assert!(
            matches!(error, StoreError::SessionInUse { pid: Some(by), .. } if by == pid),
            "{error}"
        );
        store.close().await.unwrap();
        child.child.kill().unwrap();
        let (lines, status) = child.ended();
        assert_eq!(status.code(), None, "killed");

        let store = open(dir.path()).await;
        let _hold = store.hold_session(id).await.unwrap();
        // `entries` refuses a transcript with holes.
        let entries = store.entries(id, 1).await.unwrap();
        let session = store.session(id).await.unwrap();
        let places = u64::try_from(entries.len()).unwrap();
        let acknowledged = lines.last().map_or(0, |line| line.parse().unwrap());
        assert!(places >= acknowledged, "{places} of {acknowledged}");
        assert_eq!(places % 2, 0, "an append is there whole or not at all");
        assert_eq!(
            (session.last_seq, session.cost),
            (places, nanos(places / 2))
        );
        store.close().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_cannot_use_a_directory_of_others() {
    let Some(dir) = told(DIR) else { return };
    let dir = PathBuf::from(dir);
    // Another's database that we may read but not write, in a directory we may write.
    let writable = dir.join("writable");
    let error = match SqliteStore::open(&writable).await {
        Ok(store) => store.create_session(new_session("/w")).await.unwrap_err(),
        Err(error) => error,
    };
    assert_unusable(&error, &writable, "readonly database");
    for (name, why) in [
        ("empty", "Permission denied"),
        ("used", "readonly database"),
        ("used/below", "Permission denied"),
    ] {
        let dir = dir.join(name);
        let error = SqliteStore::open(&dir).await.err().unwrap();
        assert_unusable(&error, &dir, why);
    }
    report("refused everywhere");
}

/// Root is bound by no permission bits, so the child runs as somebody else.
#[tokio::test]
async fn a_directory_without_permission_to_write_is_said_to_be_unusable() {
    const NOBODY: u32 = 65_534;
    const ROOT: u32 = 0;

    let dir = state_dir();
    let allow = |path: &Path, bits: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    let [empty, used, writable] = ["empty", "used", "writable"].map(|name| dir.path().join(name));
    std::fs::create_dir(&empty).unwrap();
    for (dir, bits) in [(&used, 0o666), (&writable, 0o444)] {
        let store = open(dir).await;
        started(&store).await;
        store.close().await.unwrap();
        allow(&dir.join("codespar.db"), bits);
    }
    allow(dir.path(), 0o755);
    allow(&empty, 0o555);
    allow(&used, 0o555);
    allow(&writable, 0o777);
    // Where somebody else may reach it.
    let program = dir.path().join("program");
    std::fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let mut command = command(
        &program,
        "child_cannot_use_a_directory_of_others",
        dir.path(),
    );
    if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == ROOT {
        command.uid(NOBODY).gid(NOBODY);
    }
    let (lines, status) = start(command).ended();
    assert!(status.success());
    assert_eq!(lines, ["refused everywhere"]);
    // So that a temporary directory not of root can be removed again.
    allow(&empty, 0o755);
    allow(&used, 0o755);
}
