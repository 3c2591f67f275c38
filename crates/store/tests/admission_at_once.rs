//! Limits, while several processes claim or begin tasks at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[macro_use]
mod backends;
mod tasks_common;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use codespar_protocol::{
    Authority, TaskRecord,
    TaskStatus::{Completed, Running},
    TaskType::LocalAgent,
};
use codespar_store::{
    Begun, Capacity,
    LimitScope::{All, Labels, Repository, User},
    NewTask, RunnerAbout, RunnerId, TaskFilter,
};
use tasks_common::{Stores, about, authority, ending, room, runner, task};
use tokio::task::JoinSet;

on_two_stores!(
    limits_hold_however_many_claim_at_once,
    limits_hold_while_offers_are_made_and_begun_at_once,
);

const CLAIMERS: usize = 8;
const TASKS: usize = 200;
/// Long enough for a slow machine; a claimer that finds nothing left ends before.
const DEADLINE: Duration = Duration::from_secs(120);

/// Those of a task that a limit is of, by a number: all combinations occur.
fn nth(n: usize) -> NewTask {
    let labels = if n.is_multiple_of(5) { "gpu" } else { "" };
    NewTask {
        authority: Authority {
            repository: Some(["a", "b", "c"][n % 3].to_owned()),
            user: Some(["ann", "bob"][n % 2].to_owned()),
            ..authority("/work")
        },
        labels: labels.parse().unwrap(),
        ..task(LocalAgent)
    }
}

/// How many there may be, by what they have in common.
fn most(key: &str) -> u64 {
    match key {
        "all" => 6,
        "repository a" => 3,
        "user bob" => 4,
        "labels gpu" => 1,
        key if key.starts_with("repository ") => 2,
        _ => u64::MAX,
    }
}

async fn limits_hold_however_many_claim_at_once<S: Stores + 'static>(one: Arc<S>, other: Arc<S>) {
    let stores = [one, other];
    let ended = limited_tasks(&*stores[0]).await;
    let claimers = (0..CLAIMERS).map(|n| {
        let store = stores[n % 2].clone();
        work(store, format!("r{n}"), n, ended.clone())
    });
    assert_limits_held(claimers.collect(), &ended).await;
}

/// A task that begins while others are admitted is counted by them as offered or as running.
async fn limits_hold_while_offers_are_made_and_begun_at_once<S: Stores + 'static>(
    one: Arc<S>,
    other: Arc<S>,
) {
    let stores = [one, other];
    let ended = limited_tasks(&*stores[0]).await;
    let pump = tokio::spawn(admit(stores[0].clone(), ended.clone()));
    let beginners = (0..CLAIMERS).map(|n| {
        let store = stores[n % 2].clone();
        begin(store, format!("r{n}"), ended.clone())
    });
    assert_limits_held(beginners.collect(), &ended).await;
    pump.await.unwrap();
}

/// Gives the count of those that have ended.
async fn limited_tasks(store: &dyn Stores) -> Arc<AtomicUsize> {
    for (scope, name, max) in [
        (All, "", 6),
        (Repository, "", 2),
        (Repository, "a", 3),
        (User, "bob", 4),
        (Labels, "gpu", 1),
    ] {
        store.set_limit(scope, name, Some(max)).await.unwrap();
    }
    let new = (0..TASKS).map(nth).collect();
    store.create_tasks(new).await.unwrap();
    Arc::default()
}

/// The first that fails ends the test: what it had taken would keep the others waiting.
async fn assert_limits_held(mut runners: JoinSet<u64>, ended: &AtomicUsize) {
    let all = async {
        let mut busiest = 0;
        while let Some(seen) = runners.join_next().await {
            busiest = busiest.max(seen.unwrap());
        }
        busiest
    };
    let busiest = tokio::time::timeout(DEADLINE, all).await.expect("in time");
    assert_eq!(ended.load(Ordering::SeqCst), TASKS, "each ended once");
    assert!(
        busiest > 3,
        "{busiest} at once: they did run beside each other"
    );
}

/// Offers what is ready until all have ended.
async fn admit<S: Stores>(store: Arc<S>, ended: Arc<AtomicUsize>) {
    while ended.load(Ordering::SeqCst) < TASKS {
        store.admit_tasks(&[LocalAgent], 64).await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// Begins and ends what is offered, as an engine would bring it to several runners.
async fn begin<S: Stores>(store: Arc<S>, who: String, ended: Arc<AtomicUsize>) -> u64 {
    let (who, mut busiest) = (RunnerId::of_worker(who), 0);
    let on_engine = RunnerAbout {
        labels: "gpu".parse().unwrap(),
        engine: "temporal".to_owned(),
        ..about()
    };
    store.beat(&who, &on_engine, &[]).await.unwrap();
    while ended.load(Ordering::SeqCst) < TASKS {
        for offer in store.open_offers().await.unwrap() {
            let begun = store.begin_task(&who, &offer.task, offer.number);
            let Begun::Claimed(claimed) = begun.await.unwrap() else {
                continue;
            };
            busiest = busiest.max(check(&*store).await);
            let end = ending(Completed, None);
            store
                .finish_task(&offer.task, claimed.epoch, end)
                .await
                .unwrap();
            ended.fetch_add(1, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    busiest
}

/// Claims and ends until all have ended; gives the most that were seen to run at once.
async fn work<S: Stores>(store: Arc<S>, who: String, n: usize, ended: Arc<AtomicUsize>) -> u64 {
    let capacity = Capacity {
        labels: "gpu".parse().unwrap(),
        ..room(1 + u32::try_from(n % 3).unwrap())
    };
    let mut busiest = 0;
    while ended.load(Ordering::SeqCst) < TASKS {
        let claimed = store.claim_tasks(&runner(&who), &capacity).await.unwrap();
        busiest = busiest.max(check(&*store).await);
        if claimed.is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for task in claimed {
            let end = ending(Completed, None);
            let id = &task.record.task_id;
            store.finish_task(id, task.epoch, end).await.unwrap();
            ended.fetch_add(1, Ordering::SeqCst);
        }
    }
    busiest
}

/// All that run at one moment are within the limits; gives how many those are.
async fn check(store: &dyn Stores) -> u64 {
    let filter = TaskFilter {
        status: Some(Running),
        ..TaskFilter::default()
    };
    let mut counts: HashMap<String, u64> = HashMap::new();
    for task in store.tasks(filter).await.unwrap() {
        for key in keys(&task) {
            *counts.entry(key).or_default() += 1;
        }
    }
    for (key, count) in &counts {
        assert!(*count <= most(key), "{key}: {counts:?}");
    }
    counts.get("all").copied().unwrap_or_default()
}

fn keys(task: &TaskRecord) -> Vec<String> {
    let authority = task.authority.as_ref().unwrap();
    vec![
        "all".to_owned(),
        format!("repository {}", authority.repository.as_ref().unwrap()),
        format!("user {}", authority.user.as_ref().unwrap()),
        format!("labels {}", task.labels),
    ]
}
