//! A process with nothing to do leaves the database alone, and is there when something comes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use std::{sync::Arc, time::Duration};

use codespar_policy::Redactor;
use codespar_protocol::{ShellSpec, TaskStatus};
use codespar_store::{ChangeFeed, LeaseStore, SqliteStore};
use codespar_tasks::{
    Attendance, QUESTION_TIME_LIMIT, Questions, Scheduler, SchedulerSetup, TaskExtra, TaskHub,
    builtin_kinds,
};
use codespar_testkit::Script;
use common::{Bench, within};

/// Heartbeats are a second apart.
const THREE_BEATS: Duration = Duration::from_secs(3);

/// So many heartbeats has the scheduler of the bench recorded.
async fn beats(bench: &Bench) -> u64 {
    let runners = bench.store.runners().await.unwrap();
    let ours = runners
        .iter()
        .find(|runner| runner.id == *bench.hub.scheduler().id());
    ours.map_or(0, |runner| runner.beats)
}

async fn until_paused(bench: &Bench) {
    let paused = async {
        loop {
            let before = beats(bench).await;
            tokio::time::sleep(THREE_BEATS).await;
            if before > 0 && beats(bench).await == before {
                return;
            }
        }
    };
    within("the pause", paused).await;
}

async fn idle_bench() -> Bench {
    let bench = Bench::new(Script::new()).await;
    let scheduler = bench.hub.scheduler();
    scheduler.follow(bench.hub.changes().clone());
    scheduler.ensure_running();
    until_paused(&bench).await;
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_scheduler_runs_what_its_own_process_makes() {
    let bench = idle_bench().await;
    let task = bench.shell("one", "echo one").await;
    assert_eq!(
        bench.ended(&task.task_id).await.status,
        TaskStatus::Completed
    );
    until_paused(&bench).await;
    let task = bench.shell("two", "echo two").await;
    assert_eq!(
        bench.ended(&task.task_id).await.status,
        TaskStatus::Completed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_scheduler_runs_what_another_process_makes() {
    let bench = idle_bench().await;
    // Another process with its own connection, which serves no tasks itself.
    let state = bench.root.parent().unwrap().join("state");
    let store = Arc::new(SqliteStore::open(&state).await.unwrap());
    let redactor = Arc::new(Redactor::by_shape());
    let setup = SchedulerSetup::with_leases(store.clone(), state.join("out"), redactor);
    let scheduler = Scheduler::new(setup);
    let feed = ChangeFeed::new(store.clone());
    let nobody = Attendance::Nobody;
    let questions = Questions::new(store.clone(), feed, QUESTION_TIME_LIMIT, nobody);
    let kinds = builtin_kinds();
    let other = TaskHub::new(store.clone(), store, scheduler, questions, kinds, None);
    let spec = ShellSpec {
        command: "echo from elsewhere".to_owned(),
        root: bench.root.clone(),
        cwd: bench.root.clone(),
        timeout_ms: None,
    };
    let caller = bench.caller();
    let made = other.create_bash(&caller, "elsewhere", spec, TaskExtra::default());
    let task = within("making the task", made).await.unwrap();
    // It is reserved for its maker until that leaves, later than the change is told.
    tokio::time::sleep(2 * THREE_BEATS).await;
    within("leaving", other.scheduler().leave()).await;
    assert_eq!(
        bench.ended(&task.task_id).await.status,
        TaskStatus::Completed
    );
}
