//! Workflows that are taken up again by another process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{
    Authority, Labels, OnDependencyFailure, SessionId, TaskId, TaskRecord, TaskSpec, TaskStatus,
    TaskType, WorkflowSpec,
};
use codespar_store::{
    Capacity, ChangeFeed, ClaimScope, LeaseStore, NewTask, Notify, Projects, RunnerId, SqliteStore,
    TaskFilter, TaskStore,
};
use codespar_tasks::{
    Attendance, Control, QUESTION_TIME_LIMIT, Questions, Runner, Scheduler, SchedulerSetup,
    TaskHub, TaskOutcome, WorkflowRunner, parse_workflow,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// Every command does what it should.
struct Well;

#[async_trait]
impl Runner for Well {
    async fn run(&self, control: Control) -> TaskOutcome {
        let mut outcome = TaskOutcome::failed("");
        outcome.status = TaskStatus::Completed;
        outcome.error = None;
        outcome.result = Some(format!("{} is done", control.record.subject));
        outcome
    }
}

/// Every command runs until it is stopped.
struct Endless;

#[async_trait]
impl Runner for Endless {
    async fn run(&self, control: Control) -> TaskOutcome {
        control.cancel.cancelled().await;
        let mut outcome = TaskOutcome::failed("the process that ran it ended");
        outcome.status = TaskStatus::Killed;
        outcome
    }
}

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// Every command fails with what it printed.
struct Telling;

#[async_trait]
impl Runner for Telling {
    async fn run(&self, control: Control) -> TaskOutcome {
        let mut outcome = TaskOutcome::failed(format!("hunter22hunter22 and {TOKEN}"));
        outcome.result = Some(format!("{} {TOKEN}", control.record.subject));
        outcome
            .metadata
            .insert("said".into(), json!([{"text": "hunter22hunter22"}]));
        outcome
    }
}

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new([("KEY", "hunter22hunter22")]))
}

const FILE: &str = "name = \"w\"\n[[step]]\nid = \"a\"\ncommand = \"x\"\nretry = 1\n\
                    [[step]]\nid = \"b\"\ncommand = \"y\"\nneeds = [\"a\"]\n";

/// A store with one workflow in it.
struct Bench {
    dir: tempfile::TempDir,
    store: Arc<SqliteStore>,
    id: TaskId,
}

/// A process that runs tasks.
struct Process {
    hub: Arc<TaskHub>,
}

impl Bench {
    /// `left` is what an earlier runner recorded of its progress.
    async fn new(left: Option<Value>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path()).await.unwrap());
        let spec = TaskSpec::Workflow(WorkflowSpec {
            file: "w.toml".into(),
            workflow: parse_workflow(FILE, Path::new("w.toml"), &[]).unwrap(),
            root: dir.path().to_path_buf(),
            cwd: dir.path().to_path_buf(),
            depth: 1,
        });
        let authority = Authority {
            session: None,
            tree: SessionId::new(),
            project_root: dir.path().to_path_buf(),
            mode: "default".into(),
            rules: Vec::new(),
            extra_dirs: Vec::new(),
            max_budget_usd: None,
            repository: None,
            remote: None,
            user: None,
            trace: None,
        };
        let id = TaskId::new(TaskType::LocalWorkflow);
        let new = NewTask {
            id: id.clone(),
            spec,
            authority,
            reserved_for: None,
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::Fail,
            subject: "w".into(),
            description: None,
            active_form: None,
            metadata: Map::new(),
            blocked_by: Vec::new(),
            output_file: None,
            session_id: None,
            parent_task_id: None,
            notify: Notify::Nobody,
            made_under: None,
            start_here: None,
        };
        store.create_tasks(vec![new]).await.unwrap();
        if let Some(left) = left {
            let runner = RunnerId("gone".into());
            let capacity = Capacity {
                by_type: vec![(TaskType::LocalWorkflow, 1)],
                total: 1,
                projects: Projects::All,
                skip: Vec::new(),
                labels: Labels::default(),
                scope: ClaimScope::Everything,
            };
            let claimed = store.claim_tasks(&runner, &capacity).await.unwrap();
            let epoch = claimed[0].epoch;
            store
                .record_step(&id, epoch, "progress", &left)
                .await
                .unwrap();
            store.release_task(&id, epoch).await.unwrap();
        }
        Self { dir, store, id }
    }

    fn process(&self, commands: impl Runner + 'static) -> Process {
        let store = self.store.clone();
        let output = self.dir.path().join("out");
        let setup = SchedulerSetup::with_leases(store.clone(), output, redactor());
        let scheduler = Scheduler::new(setup);
        scheduler.add_project(self.dir.path().to_path_buf());
        let changes = ChangeFeed::new(store.clone());
        let questions = Questions::new(
            store.clone(),
            changes,
            QUESTION_TIME_LIMIT,
            Attendance::Nobody,
        );
        let kinds = Vec::new();
        let hub = TaskHub::new(
            store.clone(),
            store,
            scheduler.clone(),
            questions,
            kinds,
            None,
        );
        scheduler.serve(TaskType::LocalBash, Arc::new(commands));
        let workflows = WorkflowRunner { hub: hub.clone() };
        scheduler.serve(TaskType::LocalWorkflow, Arc::new(workflows));
        tokio::spawn(scheduler.run());
        Process { hub }
    }

    async fn workflow(&self) -> TaskRecord {
        self.store.task(&self.id).await.unwrap()
    }

    async fn steps(&self) -> Vec<TaskRecord> {
        let filter = TaskFilter {
            parent_task_id: Some(self.id.clone()),
            ..TaskFilter::default()
        };
        self.store.tasks(filter).await.unwrap()
    }
}

impl Process {
    async fn finish(&self, id: &TaskId) {
        let cancel = CancellationToken::new();
        let wait = self.hub.wait(id, &cancel);
        let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
        waited.unwrap().unwrap();
        self.hub.scheduler().leave().await;
    }
}

#[tokio::test]
async fn a_step_that_was_noted_and_not_made_is_made_under_the_name_on_record() {
    let left = json!({"a": {"task_id": "b-0000000a", "retries": 0}});
    let bench = Bench::new(Some(left)).await;
    bench.process(Well).finish(&bench.id).await;
    let (workflow, steps) = (bench.workflow().await, bench.steps().await);
    assert_eq!(workflow.status, TaskStatus::Completed, "{workflow:?}");
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0].task_id.as_str(), "b-0000000a");
    assert_eq!(steps[1].blocked_by, [steps[0].task_id.clone()]);
    let b = &steps[1].task_id;
    assert_eq!(
        workflow.metadata["result"],
        json!(format!(
            "a: completed (b-0000000a)\nb: completed ({b})\n\nb:\nw: b is done"
        ))
    );
}

#[tokio::test]
async fn a_task_of_an_earlier_version_that_is_not_whole_fails_with_the_reason() {
    let bench = Bench::new(None).await;
    let process = bench.process(Well);
    let whole = bench.workflow().await;
    let cases = [
        (
            TaskRecord {
                spec: None,
                ..whole.clone()
            },
            "it was made by an earlier version, which did not write down all it runs; make it again",
        ),
        (
            TaskRecord {
                authority: None,
                ..whole
            },
            "it was made by an earlier version, which did not write down for which project; make it \
             again",
        ),
    ];
    for (record, error) in cases {
        let control = Control {
            record,
            epoch: 1,
            taken_from: None,
            hand_over: codespar_agent::HandOver::default(),
            cancel: CancellationToken::new(),
            stop_reason: Arc::default(),
            mail: Arc::default(),
            output: bench.dir.path().join("out.txt"),
            redactor: redactor(),
            store: bench.store.clone(),
        };
        let hub = process.hub.clone();
        let outcome = WorkflowRunner { hub }.run(control).await;
        assert_eq!(outcome.status, TaskStatus::Failed);
        assert_eq!(outcome.error.as_deref(), Some(error));
    }
    process.finish(&bench.id).await;
}

#[tokio::test]
async fn neither_the_log_nor_the_record_of_a_step_has_a_secret() {
    let bench = Bench::new(None).await;
    bench.process(Telling).finish(&bench.id).await;
    let workflow = bench.workflow().await;
    let log = bench.dir.path().join(format!("out/{}.txt", bench.id));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(
        log.contains("a: failed: [redacted:KEY] and [redacted] ("),
        "{log}"
    );
    let mut all = log + &serde_json::to_string(&workflow).unwrap();
    for step in bench.steps().await {
        all.push_str(&serde_json::to_string(&step).unwrap());
    }
    assert!(
        all.contains("\"said\":[{\"text\":\"[redacted:KEY]\"}]"),
        "{all}"
    );
    assert!(!all.contains("hunter22") && !all.contains("ghp_"), "{all}");
}

#[tokio::test]
async fn damaged_progress_is_an_error_not_a_second_run() {
    let bench = Bench::new(Some(json!({"a": 7}))).await;
    bench.process(Well).finish(&bench.id).await;
    let workflow = bench.workflow().await;
    assert_eq!(workflow.status, TaskStatus::Failed);
    let error = workflow.error.unwrap();
    assert!(
        error.starts_with("the record of step `progress` cannot be read: "),
        "{error}"
    );
    assert_eq!(bench.steps().await, []);
}

#[tokio::test]
async fn a_process_that_leaves_hands_its_workflow_on() {
    let bench = Bench::new(None).await;
    let first = bench.process(Endless);
    while bench.steps().await.first().map(|step| step.status) != Some(TaskStatus::Running) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.hub.scheduler().leave().await;
    assert_eq!(bench.workflow().await.status, TaskStatus::Pending);
    bench.process(Well).finish(&bench.id).await;
    assert_eq!(bench.workflow().await.status, TaskStatus::Completed);
    let statuses: Vec<TaskStatus> = bench.steps().await.iter().map(|step| step.status).collect();
    let (killed, completed) = (TaskStatus::Killed, TaskStatus::Completed);
    assert_eq!(statuses, [killed, completed, completed]);
}

#[tokio::test]
async fn who_heard_a_task_is_forgotten_at_its_end_though_nobody_waited() {
    let left = json!({"a": {"task_id": "b-0000000a", "retries": 0}});
    let bench = Bench::new(Some(left)).await;
    let process = bench.process(Well);
    let held = Arc::new(());
    let heard = held.clone();
    let step = "b-0000000a".parse().unwrap();
    process.hub.follow(
        &step,
        codespar_protocol::SessionId::new(),
        Arc::new(move |_| {
            let _ = &heard;
        }),
    );
    assert_eq!(Arc::strong_count(&held), 2);
    process.finish(&bench.id).await;
    assert_eq!(Arc::strong_count(&held), 1);
}
