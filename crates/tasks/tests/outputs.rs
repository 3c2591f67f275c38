//! Outputs of tasks on several hosts: schedulers with directories of their own on one database.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{
    AgentSpec, Authority, Labels, OnDependencyFailure, SessionId, TaskId, TaskRecord, TaskSpec,
    TaskStatus, TaskType,
};
use codespar_store::{
    LeaseStore, NewTask, Notify, ObjectStore, OutputPlace, OutputRange, OutputState, OutputStore,
    PieceContent, SqliteStore, StoreError, TaskLease, TaskStore, open_object_store,
};
use codespar_tasks::{
    Control, OutputPart, OutputTail, Runner, Scheduler, SchedulerSetup, SharedOutputs, TaskLog,
    TaskOutcome, TaskOutputs,
};
use jiff::{Timestamp, ToSpan};
use serde_json::Map;

const PATIENCE: Duration = Duration::from_secs(30);
const SECRET: &str = "s3cr3t-value-of-the-environment";
/// As much as the database takes of one output.
const LIMIT: usize = 1 << 20;

/// Writes texts to the output, then waits or ends.
struct Scribe {
    texts: Vec<String>,
    then: Then,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Complete,
    /// Until it is to stop; then another process goes on.
    Wait,
}

#[async_trait]
impl Runner for Scribe {
    async fn run(&self, control: Control) -> TaskOutcome {
        let mut log = TaskLog::open(&control.output, &control.redactor).unwrap();
        for text in &self.texts {
            log.write(text);
        }
        if self.then == Then::Wait {
            tokio::select! {
                () = control.cancel.cancelled() => {}
                () = control.hand_over.soon.cancelled() => {}
            }
            log.write("late");
            return TaskOutcome::put_back("another process goes on");
        }
        TaskOutcome {
            status: TaskStatus::Completed,
            error: None,
            ..TaskOutcome::failed("")
        }
    }
}

/// One database, and a task in it.
struct Fleet {
    dir: tempfile::TempDir,
    store: Arc<SqliteStore>,
    objects: Option<Arc<dyn ObjectStore>>,
    id: TaskId,
}

impl Fleet {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&dir.path().join("state")).await.unwrap());
        let new = task(dir.path());
        let id = new.id.clone();
        store.create_tasks(vec![new]).await.unwrap();
        Self {
            dir,
            store,
            objects: None,
            id,
        }
    }

    /// With a directory for objects.
    async fn with_objects() -> Self {
        let mut fleet = Self::new().await;
        let url = format!("file://{}", fleet.objects_dir().display());
        fleet.objects = Some(open_object_store(&url, &[]).unwrap());
        fleet
    }

    fn objects_dir(&self) -> PathBuf {
        self.dir.path().join("objects")
    }

    fn shared(&self) -> SharedOutputs {
        SharedOutputs::new(self.store.clone(), self.objects.clone())
    }

    /// A process on a host of its own that runs the task.
    fn host(&self, name: &str, texts: &[&str], then: Then) -> Arc<Scheduler> {
        let scheduler = self.host_alone(name, texts, then);
        scheduler.outputs().share(self.shared());
        scheduler
    }

    /// One that shares no outputs.
    fn host_alone(&self, name: &str, texts: &[&str], then: Then) -> Arc<Scheduler> {
        let redactor = Arc::new(Redactor::new([("TOKEN", SECRET)]));
        let dir = self.dir.path().join(name);
        let setup = SchedulerSetup::with_leases(self.store.clone(), dir, redactor);
        let scheduler = Scheduler::new(setup);
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        scheduler.serve(TaskType::LocalAgent, Arc::new(Scribe { texts, then }));
        scheduler.add_project(self.dir.path().to_path_buf());
        scheduler
    }

    /// What a host sees that runs nothing.
    fn reader(&self) -> TaskOutputs {
        let outputs = TaskOutputs::new(self.dir.path().join("reader"));
        outputs.share(self.shared());
        outputs
    }

    async fn record(&self) -> TaskRecord {
        self.store.task(&self.id).await.unwrap()
    }

    /// All of the output, as a host sees it.
    async fn output(&self, outputs: &TaskOutputs) -> String {
        let part = outputs.read(&self.record().await, 0, 64 << 20).await;
        part.unwrap().text
    }

    async fn stored_length(&self) -> u64 {
        let state = self.store.output_state(&self.id).await.unwrap();
        state.map_or(0, |state| state.length)
    }

    async fn until_stored(&self, length: u64) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.stored_length().await < length {
            assert!(tokio::time::Instant::now() < deadline, "it is not stored");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_completed(&self) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.record().await.status != TaskStatus::Completed {
            assert!(tokio::time::Instant::now() < deadline, "it does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn task(root: &Path) -> NewTask {
    let authority = Authority {
        session: None,
        tree: SessionId::new(),
        project_root: root.to_path_buf(),
        mode: "default".into(),
        rules: Vec::new(),
        extra_dirs: Vec::new(),
        max_budget_usd: None,
        repository: None,
        remote: None,
        user: None,
        trace: None,
    };
    NewTask {
        id: TaskId::new(TaskType::LocalAgent),
        spec: TaskSpec::Agent(AgentSpec {
            prompt: "go".to_owned(),
            subagent_type: "worker".to_owned(),
            model: None,
            max_turns: None,
            max_wall_seconds: None,
            max_budget_usd: None,
            name: None,
            isolation: None,
            root: root.to_path_buf(),
            cwd: root.to_path_buf(),
            agent_session: SessionId::new(),
            depth: 1,
            tool_use_id: None,
        }),
        authority,
        reserved_for: None,
        labels: Labels::default(),
        on_dependency_failure: OnDependencyFailure::Fail,
        subject: "write".into(),
        description: None,
        active_form: None,
        metadata: Map::new(),
        blocked_by: Vec::new(),
        output_file: Some(root.join("of another host.txt")),
        session_id: None,
        parent_task_id: None,
        notify: Notify::Nobody,
        made_under: None,
        start_here: None,
    }
}

/// A line as long as this, with its end.
fn line(bytes: usize) -> String {
    "x".repeat(bytes - 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_goes_on_with_the_output_where_it_stopped() {
    let fleet = Fleet::new().await;
    let first = fleet.host("a", &["one"], Then::Wait);
    first.ensure_running();
    fleet.until_stored(4).await;
    assert_eq!(
        fleet.output(&fleet.reader()).await,
        "one\n",
        "while it runs"
    );
    first.leave().await;
    let second = fleet.host("b", &["two"], Then::Complete);
    second.ensure_running();
    fleet.until_completed().await;
    let whole = "one\nlate\ntwo\n";
    let record = fleet.record().await;
    let file = |host: &Scheduler| std::fs::read_to_string(host.outputs().file(&record)).unwrap();
    assert_eq!(
        (file(&first), file(&second)),
        ("one\nlate\n".to_owned(), whole.to_owned())
    );
    // The first host has a file too, which is not the whole.
    for outputs in [first.outputs(), second.outputs(), &fleet.reader()] {
        assert_eq!(fleet.output(outputs).await, whole);
        let part = outputs.read(&record, 4, 5).await.unwrap();
        let (text, next) = ("late\n".to_owned(), 9);
        assert_eq!(part, OutputPart { text, next });
        let tail = outputs.tail(&record, 4).await.unwrap();
        let (text, length) = ("two\n".to_owned(), 13);
        assert_eq!(tail, OutputTail { text, length });
    }
    second.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_lost_its_task_adds_nothing() {
    let fleet = Fleet::new().await;
    let first = fleet.host("a", &["one"], Then::Wait);
    first.ensure_running();
    fleet.until_stored(4).await;
    fleet.store.withdraw_runner(first.id()).await.unwrap();
    let second = fleet.host("b", &["two"], Then::Complete);
    second.ensure_running();
    fleet.until_completed().await;
    // It has noticed.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while first.running() > 0 {
        assert!(tokio::time::Instant::now() < deadline, "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(fleet.output(&fleet.reader()).await, "one\ntwo\n");
    first.leave().await;
    second.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_beyond_the_limit_stays_on_its_host_and_the_copy_says_where() {
    let fleet = Fleet::new().await;
    let long = line(LIMIT + 100);
    let host = fleet.host("a", &[&long, "end"], Then::Complete);
    host.ensure_running();
    fleet.until_completed().await;
    let record = fleet.record().await;
    let file = host.outputs().file(&record);
    assert_eq!(fleet.stored_length().await, LIMIT as u64);
    let copy = fleet.output(&fleet.reader()).await;
    let (bytes, note) = copy.split_at(LIMIT);
    assert!(bytes.bytes().all(|byte| byte == b'x'));
    let there = format!(" in {}]\n", file.display());
    assert!(
        note.starts_with("\n[the rest of this output is on host "),
        "{note}"
    );
    assert!(note.ends_with(&there), "{note}");
    let next = copy.len() as u64;
    let after = fleet.reader().read(&record, next, 100).await.unwrap();
    let text = String::new();
    assert_eq!(after, OutputPart { text, next }, "it ends there");
    let tail = fleet.reader().tail(&record, note.len()).await.unwrap();
    assert_eq!(tail.text, note);
    // The host itself has all of it.
    assert!(fleet.output(host.outputs()).await.ends_with("x\nend\n"));
    host.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_beyond_the_limit_goes_to_the_object_store() {
    let fleet = Fleet::with_objects().await;
    let long = line(LIMIT + 5_000_000);
    let first = fleet.host("a", &[&long], Then::Wait);
    first.ensure_running();
    fleet.until_stored(LIMIT as u64 + (4 << 20)).await;
    first.leave().await;
    let second = fleet.host("b", &["two"], Then::Complete);
    second.ensure_running();
    fleet.until_completed().await;
    let whole = format!("{long}\nlate\ntwo\n");
    assert!(fleet.output(&fleet.reader()).await == whole);
    let record = fleet.record().await;
    let file = std::fs::read_to_string(second.outputs().file(&record)).unwrap();
    assert!(file == whole, "the file of the second host is whole");
    let over = fleet.reader().read(&record, LIMIT as u64 - 1, 3).await;
    assert_eq!(over.unwrap().text, "xxx", "from the database and an object");
    let tail = fleet.reader().tail(&record, 9).await.unwrap();
    assert_eq!(
        (tail.text.as_str(), tail.length),
        ("late\ntwo\n", whole.len() as u64)
    );
    second.leave().await;

    let later = Timestamp::now() + 1.hour();
    fleet.store.remove_tasks_before(later).await.unwrap();
    let objects = fleet.objects_dir().join("outputs");
    assert_eq!(std::fs::read_dir(&objects).unwrap().count(), 1);
    fleet.shared().remove_objects().await.unwrap();
    assert_eq!(std::fs::read_dir(&objects).unwrap().count(), 0);
    assert_eq!(fleet.store.removed_outputs().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_where_earlier_objects_cannot_be_read() {
    let mut fleet = Fleet::with_objects().await;
    let first = fleet.host("a", &[&line(LIMIT + 1_000)], Then::Wait);
    first.ensure_running();
    fleet.until_stored(LIMIT as u64).await;
    first.leave().await;
    fleet.objects = None;
    let second = fleet.host("b", &["two"], Then::Complete);
    second.ensure_running();
    fleet.until_completed().await;
    let record = fleet.record().await;
    let file = std::fs::read_to_string(second.outputs().file(&record)).unwrap();
    let (_, rest) = file.split_at(LIMIT);
    assert!(
        rest.starts_with("[earlier output could not be read: "),
        "{rest}"
    );
    assert!(rest.contains("set CODESPAR_OBJECT_STORE"), "{rest}");
    assert!(rest.ends_with("two\n"), "{rest}");
    assert_eq!(
        file.len(),
        LIMIT + 1_000 + "late\ntwo\n".len(),
        "places stay"
    );
    let error = fleet.reader().read(&record, LIMIT as u64, 9).await;
    let said = error.unwrap_err().to_string();
    assert!(said.contains("set CODESPAR_OBJECT_STORE"), "{said}");
    second.leave().await;
}

/// The outputs of a store that can be away.
struct Sometimes {
    store: Arc<SqliteStore>,
    is_away: AtomicBool,
}

impl Sometimes {
    fn there(&self) -> Result<&SqliteStore, StoreError> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(StoreError::Database("it is away".to_owned())),
            false => Ok(&self.store),
        }
    }
}

#[async_trait]
impl OutputStore for Sometimes {
    async fn begin_output(
        &self,
        lease: &TaskLease,
        place: &OutputPlace,
    ) -> Result<Option<OutputState>, StoreError> {
        self.there()?.begin_output(lease, place).await
    }

    async fn append_output(
        &self,
        lease: &TaskLease,
        at: u64,
        content: PieceContent,
    ) -> Result<u64, StoreError> {
        self.there()?.append_output(lease, at, content).await
    }

    async fn cut_output(&self, lease: &TaskLease) -> Result<(), StoreError> {
        self.there()?.cut_output(lease).await
    }

    async fn output_state(&self, task: &TaskId) -> Result<Option<OutputState>, StoreError> {
        self.there()?.output_state(task).await
    }

    async fn output(
        &self,
        task: &TaskId,
        from: u64,
        limit: u64,
    ) -> Result<Option<OutputRange>, StoreError> {
        self.there()?.output(task, from, limit).await
    }

    async fn removed_outputs(&self) -> Result<Vec<TaskId>, StoreError> {
        self.there()?.removed_outputs().await
    }

    async fn forget_removed_output(&self, task: &TaskId) -> Result<(), StoreError> {
        self.there()?.forget_removed_output(task).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_began_without_the_store_is_copied_when_it_answers() {
    let fleet = Fleet::new().await;
    let first = fleet.host("a", &["one"], Then::Wait);
    first.ensure_running();
    fleet.until_stored(4).await;
    first.leave().await;
    let outputs = Arc::new(Sometimes {
        store: fleet.store.clone(),
        is_away: AtomicBool::new(true),
    });
    let second = fleet.host_alone("b", &["two"], Then::Wait);
    second
        .outputs()
        .share(SharedOutputs::new(outputs.clone(), None));
    second.ensure_running();
    let file = second.outputs().file(&fleet.record().await);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while std::fs::read_to_string(&file).unwrap_or_default() != "two\n" {
        assert!(tokio::time::Instant::now() < deadline, "it does not begin");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before = "one\nlate\n";
    assert_eq!(fleet.stored_length().await, before.len() as u64);

    outputs.is_away.store(false, Ordering::SeqCst);
    fleet.until_stored("one\nlate\ntwo\n".len() as u64).await;
    for outputs in [second.outputs(), &fleet.reader()] {
        let output = fleet.output(outputs).await;
        assert_eq!(output, "one\nlate\ntwo\n", "its file lacks the beginning");
    }
    second.leave().await;
    // On the same host, where that file is.
    let third = fleet.host("b", &["three"], Then::Complete);
    third.ensure_running();
    fleet.until_completed().await;
    let whole = "one\nlate\ntwo\nlate\nthree\n";
    for outputs in [third.outputs(), &fleet.reader()] {
        assert_eq!(fleet.output(outputs).await, whole);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    third.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_restored_does_not_keep_the_rest_from_other_hosts() {
    let fleet = Fleet::new().await;
    let first = fleet.host("a", &["one"], Then::Wait);
    first.ensure_running();
    fleet.until_stored(4).await;
    first.leave().await;
    let second = fleet.host("b", &["two"], Then::Complete);
    let file = second.outputs().file(&fleet.record().await);
    // Where the file is made before it is renamed.
    std::fs::create_dir_all(file.with_extension("restored")).unwrap();
    second.ensure_running();
    fleet.until_completed().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
    for outputs in [second.outputs(), &fleet.reader()] {
        assert_eq!(fleet.output(outputs).await, "one\nlate\ntwo\n");
    }
    second.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_do_not_get_into_the_copy() {
    let fleet = Fleet::new().await;
    let said = format!("the token is {SECRET}.");
    let host = fleet.host("a", &[&said], Then::Complete);
    host.ensure_running();
    fleet.until_completed().await;
    let copy = fleet.output(&fleet.reader()).await;
    assert!(copy.starts_with("the token is "), "{copy}");
    assert!(!copy.contains(SECRET), "{copy}");
    host.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_copied_where_records_are_not_shared() {
    let fleet = Fleet::new().await;
    let file = fleet.dir.path().join("own.txt");
    let new = NewTask {
        output_file: Some(file.clone()),
        ..task(fleet.dir.path())
    };
    let id = new.id.clone();
    fleet.store.create_tasks(vec![new]).await.unwrap();
    let host = fleet.host_alone("a", &["one"], Then::Complete);
    host.ensure_running();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while fleet.store.task(&id).await.unwrap().status != TaskStatus::Completed {
        assert!(tokio::time::Instant::now() < deadline, "it does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let record = fleet.store.task(&id).await.unwrap();
    assert_eq!(host.outputs().file(&record), file);
    assert_eq!(
        host.outputs().read(&record, 0, 9).await.unwrap().text,
        "one\n"
    );
    assert_eq!(fleet.store.output_state(&id).await.unwrap(), None);
    host.leave().await;
}
