//! Working trees of agents, on every database.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[macro_use]
mod backends;
mod tasks_common;

use codespar_protocol::{TaskId, TaskStatus, TaskType};
use codespar_store::{Database, KeptTree, StoreError, TaskLease, TreeContent};
use jiff::{Timestamp, ToSpan};
use tasks_common::{claimed, ending, gone, made, task};

on_every_store!(
    a_tree_is_read_as_it_was_kept_and_the_latest_counts,
    a_tree_under_a_stale_epoch_is_refused,
    a_task_that_does_not_run_keeps_no_tree,
    a_tree_goes_with_its_task_or_when_it_is_forgotten,
    several_trees_are_kept_at_once,
    only_a_server_is_shared_between_hosts,
);

/// Every byte, so that none is changed on its way.
fn pack() -> Vec<u8> {
    (0..=u8::MAX).cycle().take(100_000).collect()
}

fn tree(name: &str, content: TreeContent) -> KeptTree {
    KeptTree {
        base: "b".repeat(40),
        head: "c".repeat(40),
        tree: name.repeat(40),
        content,
    }
}

async fn running(store: &dyn Database, who: &str) -> TaskLease {
    made(store, task(TaskType::LocalAgent)).await;
    lease(store, who).await
}

async fn lease(store: &dyn Database, who: &str) -> TaskLease {
    let taken = claimed(store, who, 1).await.remove(0);
    TaskLease {
        task: taken.record.task_id,
        epoch: taken.epoch,
    }
}

async fn a_tree_is_read_as_it_was_kept_and_the_latest_counts(store: &dyn Database) {
    let lease = running(store, "a").await;
    assert_eq!(store.kept_tree(&lease.task).await.unwrap(), None);
    for kept in [
        tree("1", TreeContent::Pack(pack())),
        tree("2", TreeContent::Missing("too large".to_owned())),
        tree("3", TreeContent::Pack(Vec::new())),
    ] {
        store.keep_tree(&lease, &kept).await.unwrap();
        assert_eq!(store.kept_tree(&lease.task).await.unwrap(), Some(kept));
    }
}

async fn a_tree_under_a_stale_epoch_is_refused(store: &dyn Database) {
    let lost = running(store, "a").await;
    let first = tree("1", TreeContent::Pack(pack()));
    store.keep_tree(&lost, &first).await.unwrap();
    gone(store, "a").await;
    let current = lease(store, "b").await;
    assert_eq!(current.task, lost.task);
    let late = tree("2", TreeContent::Pack(pack()));
    let refused = store.keep_tree(&lost, &late).await;
    assert!(
        matches!(refused, Err(StoreError::LeaseLost(_))),
        "{refused:?}"
    );
    let kept = store.kept_tree(&lost.task).await.unwrap();
    assert_eq!(kept, Some(first), "what the lost runner had kept stays");
    store.keep_tree(&current, &late).await.unwrap();
    assert_eq!(store.kept_tree(&lost.task).await.unwrap(), Some(late));
}

async fn a_task_that_does_not_run_keeps_no_tree(store: &dyn Database) {
    let lease = running(store, "a").await;
    let end = ending(TaskStatus::Completed, None);
    store
        .finish_task(&lease.task, lease.epoch, end)
        .await
        .unwrap();
    let late = tree("1", TreeContent::Pack(pack()));
    let refused = store.keep_tree(&lease, &late).await;
    assert!(
        matches!(refused, Err(StoreError::NoSuchStep { .. })),
        "{refused:?}"
    );
    let unknown = TaskLease {
        task: TaskId::new(TaskType::LocalAgent),
        epoch: 1,
    };
    let refused = store.keep_tree(&unknown, &late).await;
    assert!(
        matches!(refused, Err(StoreError::NoSuchTask(_))),
        "{refused:?}"
    );
    assert_eq!(store.kept_tree(&unknown.task).await.unwrap(), None);
}

async fn a_tree_goes_with_its_task_or_when_it_is_forgotten(store: &dyn Database) {
    let lease = running(store, "a").await;
    let kept = tree("1", TreeContent::Pack(pack()));
    store.keep_tree(&lease, &kept).await.unwrap();
    store.forget_tree(&lease.task).await.unwrap();
    assert_eq!(store.kept_tree(&lease.task).await.unwrap(), None);
    store.keep_tree(&lease, &kept).await.unwrap();
    let end = ending(TaskStatus::Completed, None);
    store
        .finish_task(&lease.task, lease.epoch, end)
        .await
        .unwrap();
    let removed = store.remove_tasks_before(Timestamp::now() + 1.hour()).await;
    assert_eq!(removed.unwrap(), std::slice::from_ref(&lease.task));
    assert_eq!(store.kept_tree(&lease.task).await.unwrap(), None);
}

async fn several_trees_are_kept_at_once(store: &dyn Database) {
    let (one, other) = (running(store, "a").await, running(store, "a").await);
    let (first, second) = (
        tree("1", TreeContent::Pack(pack())),
        tree("2", TreeContent::Pack(pack())),
    );
    let (first_kept, second_kept) = tokio::join!(
        store.keep_tree(&one, &first),
        store.keep_tree(&other, &second)
    );
    first_kept.unwrap();
    second_kept.unwrap();
    assert_eq!(store.kept_tree(&one.task).await.unwrap(), Some(first));
    assert_eq!(store.kept_tree(&other.task).await.unwrap(), Some(second));
}

async fn only_a_server_is_shared_between_hosts(store: &dyn Database) {
    let is_server = store.describe().contains("PostgreSQL");
    assert_eq!(store.is_shared_between_hosts(), is_server);
}
