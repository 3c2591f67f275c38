//! Databases of earlier versions.

use codespar_protocol::{Labels, TaskSpec, TaskStatus};
use sqlx::{ConnectOptions, Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{SqliteStore, open};
use crate::{
    Capacity, ClaimScope, LeaseStore, LimitScope, LimitStore, Projects, ReportStore, RunnerId,
    TaskFilter, TaskStore,
};

/// Tasks as the third version of the schema has them: id, type, queue, metadata.
const OLD: &[(&str, &str, &str, &str)] = &[
    (
        "b-00000001",
        "local_bash",
        "local_bash",
        r#"{"command":"make","root":"/p","cwd":"/p/a","note":"mine"}"#,
    ),
    (
        "a-00000002",
        "local_agent",
        "local_agent@ann",
        r#"{"prompt":"go","subagent_type":"worker","isolation":"worktree","root":"/p","cwd":"/p",
            "agent_session":"018f2b7a-7c1e-7d3a-8b1a-000000000001","depth":1,"runner_only":"ann"}"#,
    ),
    (
        "w-00000003",
        "local_workflow",
        "local_workflow",
        r#"{"file":"/p/w.toml","workflow":{"name":"w","steps":[{"id":"a","retry":0,"command":"x"}]},
            "root":"/p","cwd":"/p","depth":1,"steps":{"a":{"task_id":"b-0000000a","retries":0}}}"#,
    ),
    (
        "w-00000004",
        "local_workflow",
        "local_workflow",
        r#"{"builtin":"follow_pr","follow":{"repository":{"kind":"local","path":"/p"},"number":7,
            "seen":[],"interval_ms":10}}"#,
    ),
    (
        "t-00000005",
        "in_process_teammate",
        "team:red",
        r#"{"team":"red"}"#,
    ),
    (
        "t-00000006",
        "in_process_teammate",
        "in_process_teammate",
        r#"{"prompt":"","subagent_type":"worker","root":"/p","cwd":"/p","name":"ann",
            "member_of":"red","agent_session":"018f2b7a-7c1e-7d3a-8b1a-000000000002","depth":1}"#,
    ),
    // Not whole, and nonsense where an order should be.
    (
        "b-00000007",
        "local_bash",
        "local_bash",
        r#"{"command":"make"}"#,
    ),
    (
        "w-00000008",
        "local_workflow",
        "local_workflow",
        r#"{"builtin":"dev","dev":"nonsense"}"#,
    ),
];

/// A database of the version that had so many migrations.
async fn made_by(dir: &std::path::Path, migrations: usize) -> SqliteConnection {
    let mut connection = SqliteConnectOptions::new()
        .filename(dir.join(open::DATABASE))
        .create_if_missing(true)
        .connect()
        .await
        .unwrap();
    connection
        .execute("PRAGMA journal_mode = WAL")
        .await
        .unwrap();
    open::migrate(&mut connection, &open::MIGRATIONS[..migrations])
        .await
        .unwrap_or_else(|_| panic!("the old schema"));
    connection
}

async fn old_database(dir: &std::path::Path) {
    let mut connection = made_by(dir, 3).await;
    for (id, task_type, queue, metadata) in OLD {
        sqlx::query(
            "INSERT INTO tasks (id, task_type, status, subject, metadata, queue, run_anyway, \
             notify, unmet, created_at, updated_at) \
             VALUES ($1, $2, 'pending', 's', $4, $3, FALSE, FALSE, 0, 1, 1)",
        )
        .bind(*id)
        .bind(*task_type)
        .bind(*queue)
        .bind(*metadata)
        .execute(&mut connection)
        .await
        .unwrap();
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn tasks_of_an_earlier_version_are_sealed_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    old_database(dir.path()).await;
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let tasks = store.tasks(TaskFilter::default()).await.unwrap();
    assert_eq!(tasks.len(), OLD.len(), "all of them stay on record");
    let kinds: Vec<Option<&str>> = tasks
        .iter()
        .map(|task| {
            Some(match task.spec.as_ref()? {
                TaskSpec::Shell(shell) => shell.command.as_str(),
                TaskSpec::Agent(agent) if agent.isolation.is_some() => agent.prompt.as_str(),
                TaskSpec::Workflow(spec) => spec.workflow.name.as_str(),
                TaskSpec::FollowPullRequest(_) => "follow",
                TaskSpec::TeamItem(item) => item.team.as_str(),
                TaskSpec::Teammate(teammate) => teammate.name.as_str(),
                _ => "another",
            })
        })
        .collect();
    let expected = [
        Some("make"),
        Some("go"),
        Some("w"),
        Some("follow"),
        Some("red"),
        Some("ann"),
        None,
        None,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(tasks[0].metadata["note"], "mine");
    assert_eq!(tasks[1].reserved_for.as_deref(), Some("ann"));
    let steps = store.steps(&tasks[2].task_id).await.unwrap();
    assert_eq!(steps[0].0, "progress");
    assert_eq!(steps[0].1["a"]["task_id"], "b-0000000a");
    for task in tasks.iter().filter(|task| task.runs_agent()) {
        let authority = task.authority.as_ref().unwrap();
        assert_eq!(authority.mode, "default", "{task:?}");
        assert_eq!(authority.project_root.to_str(), Some("/p"));
    }
    // Another project takes only what belongs to nobody, to say that it cannot run.
    let capacity = |root: &str| Capacity {
        by_type: codespar_protocol::TaskType::ALL
            .map(|kind| (kind, 9))
            .to_vec(),
        total: 99,
        projects: Projects::Only([root.into()].into()),
        skip: Vec::new(),
        labels: Labels::default(),
        scope: ClaimScope::Everything,
    };
    let runner = RunnerId("r".into());
    let taken = store.claim_tasks(&runner, &capacity("/q")).await.unwrap();
    let ids: Vec<&str> = taken
        .iter()
        .map(|task| task.record.task_id.as_str())
        .collect();
    assert_eq!(ids, ["b-00000007", "w-00000008"]);
    let taken = store.claim_tasks(&runner, &capacity("/p")).await.unwrap();
    assert_eq!(taken.len(), 5);
    assert!(
        taken
            .iter()
            .all(|task| task.record.status == TaskStatus::Running)
    );
    store.close().await.unwrap();
}

/// Tasks as the ninth version has them: id, status, queue, parent, authority.
const BEFORE_FLEETS: &[(&str, &str, &str, Option<&str>, &str)] = &[
    ("a-00000001", "running", "local_agent#/p#1", None, AUTHORITY),
    ("a-00000002", "pending", "local_agent#/p#1", None, AUTHORITY),
    (
        "a-00000003",
        "pending",
        "local_agent#/p#1",
        Some("a-00000001"),
        AUTHORITY,
    ),
    (
        "a-00000004",
        "completed",
        "local_agent#/p#1",
        None,
        "nonsense",
    ),
    (
        "t-00000005",
        "pending",
        "team:red#1",
        Some("a-00000001"),
        AUTHORITY,
    ),
];

const AUTHORITY: &str = r#"{"session":null,"tree":"018f2b7a-7c1e-7d3a-8b1a-000000000001",
    "project_root":"/p#1","mode":"default"}"#;

#[tokio::test]
async fn tasks_from_before_there_were_fleets_are_admitted_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut old = made_by(dir.path(), 9).await;
    for (id, status, queue, parent, authority) in BEFORE_FLEETS {
        sqlx::query(
            "INSERT INTO tasks (id, task_type, status, subject, metadata, queue, run_anyway, \
             notify, unmet, created_at, updated_at, parent_task_id, authority, attempt, \
             lease_owner) VALUES ($1, 'local_agent', $2, 's', '{}', $3, FALSE, FALSE, 0, 1, 1, \
             $4, $5, 1, CASE WHEN $2 = 'running' THEN 'old' END)",
        )
        .bind(*id)
        .bind(*status)
        .bind(*queue)
        .bind(*parent)
        .bind(*authority)
        .execute(&mut old)
        .await
        .unwrap();
    }
    old.execute("INSERT INTO runners VALUES ('old', 7, FALSE)")
        .await
        .unwrap();
    old.close().await.unwrap();

    let store = SqliteStore::open(dir.path()).await.unwrap();

    let tasks = store.tasks(TaskFilter::default()).await.unwrap();
    assert_eq!(tasks.len(), BEFORE_FLEETS.len());
    assert!(tasks.iter().all(|task| task.labels.is_empty()));
    let fleet = store.fleet().await.unwrap();
    assert_eq!(fleet.runners[0].about, None);
    assert_eq!(fleet.runners[0].running[0].repository, "/p#1");
    assert_eq!((fleet.queues.len(), fleet.queues[0].ready), (1, 2));
    // The one that runs counts, and what it made is admitted with it.
    store
        .set_limit(LimitScope::Repository, "/p#1", Some(1))
        .await
        .unwrap();
    let capacity = Capacity {
        by_type: vec![(codespar_protocol::TaskType::LocalAgent, 9)],
        total: 9,
        projects: Projects::Only(["/p#1".into()].into()),
        ..Capacity::default()
    };
    let runner = RunnerId("new".into());
    let taken = store.claim_tasks(&runner, &capacity).await.unwrap();
    let taken: Vec<&str> = taken
        .iter()
        .map(|task| task.record.task_id.as_str())
        .collect();
    assert_eq!(taken, ["a-00000003"]);
    store.close().await.unwrap();
}
