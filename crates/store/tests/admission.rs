//! Which tasks a runner may take: labels, limits, turns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[macro_use]
mod backends;
mod tasks_common;

use codespar_protocol::{
    Authority, Labels, TaskId,
    TaskStatus::{Completed, Pending, Running},
    TaskType::{LocalAgent, LocalBash, LocalWorkflow},
};
use codespar_store::{
    Capacity, Limit,
    LimitScope::{self, All, Repository, User},
    NewTask, StoreError, TaskChange,
};
use tasks_common::{Stores, authority, claimed, ending, gone, made, room, runner, task};

on_every_store!(
    a_task_is_taken_only_by_a_runner_that_offers_all_its_labels,
    what_a_lost_runner_held_keeps_its_labels,
    a_limit_of_all_is_never_exceeded_and_counts_what_ends,
    a_limit_of_each_repository_gives_way_to_one_of_its_own,
    a_limit_of_each_user_leaves_tasks_of_nobody_alone,
    a_limit_of_labels_is_for_exactly_these,
    tasks_at_their_limit_hide_no_others,
    what_a_task_makes_is_admitted_with_it,
    what_is_reserved_born_running_or_run_by_hand_is_not_counted,
    taking_over_admits_nothing,
    limits_are_set_replaced_and_removed,
    a_limit_that_means_nothing_is_refused,
    names_that_are_too_long_are_refused,
    a_thousand_tasks_of_one_repository_do_not_starve_another,
    repositories_take_turns_within_one_claim,
    one_repository_on_several_hosts_has_one_turn,
);

fn labels(text: &str) -> Labels {
    text.parse().unwrap()
}

fn labelled(text: &str) -> NewTask {
    NewTask {
        labels: labels(text),
        ..task(LocalAgent)
    }
}

/// A task of a repository that somebody asked for.
fn of(repository: &str, user: Option<&str>) -> NewTask {
    NewTask {
        authority: Authority {
            repository: Some(repository.to_owned()),
            user: user.map(str::to_owned),
            ..authority("/work")
        },
        ..task(LocalAgent)
    }
}

async fn made_all(store: &dyn Stores, new: Vec<NewTask>) -> Vec<TaskId> {
    let made = store.create_tasks(new).await.unwrap();
    made.into_iter().map(|task| task.task_id).collect()
}

/// Takes what a runner with these labels can.
async fn takes(store: &dyn Stores, who: &str, offered: &str, total: u32) -> Vec<TaskId> {
    let capacity = Capacity {
        labels: labels(offered),
        ..room(total)
    };
    let claimed = store.claim_tasks(&runner(who), &capacity).await.unwrap();
    claimed
        .into_iter()
        .map(|task| task.record.task_id)
        .collect()
}

async fn limit(store: &dyn Stores, scope: LimitScope, name: &str, limit: u32) {
    store.set_limit(scope, name, Some(limit)).await.unwrap();
}

async fn a_task_is_taken_only_by_a_runner_that_offers_all_its_labels(store: &dyn Stores) {
    let new = ["gpu", "gpu,repo:acme/api", "", "tpu"].map(labelled);
    let ids = made_all(store, new.to_vec()).await;
    let record = store.task(&ids[1]).await.unwrap();
    assert_eq!(record.labels, labels("repo:acme/api,gpu"));

    assert_eq!(takes(store, "plain", "", 9).await, [ids[2].clone()]);
    assert_eq!(takes(store, "other", "linux,repo:acme/api", 9).await, []);
    assert_eq!(takes(store, "gpu", "gpu,linux", 9).await, [ids[0].clone()]);
    let both = takes(store, "both", "gpu,repo:acme/api", 9).await;
    assert_eq!(both, [ids[1].clone()]);
    assert_eq!(store.task(&ids[3]).await.unwrap().status, Pending);
}

async fn what_a_lost_runner_held_keeps_its_labels(store: &dyn Stores) {
    let id = made(store, labelled("gpu")).await;
    assert_eq!(
        takes(store, "lost", "gpu", 1).await,
        std::slice::from_ref(&id)
    );
    gone(store, "lost").await;
    assert_eq!(takes(store, "plain", "", 9).await, []);
    assert_eq!(takes(store, "gpu", "gpu", 9).await, [id]);
}

async fn a_limit_of_all_is_never_exceeded_and_counts_what_ends(store: &dyn Stores) {
    limit(store, All, "", 2).await;
    let ids = made_all(
        store,
        vec![task(LocalAgent); 4].into_iter().map(fresh).collect(),
    )
    .await;
    let first = claimed(store, "r", 9).await;
    assert_eq!(first.len(), 2);
    assert_eq!(takes(store, "other", "", 9).await, []);
    let end = ending(Completed, None);
    store
        .finish_task(&ids[0], first[0].epoch, end)
        .await
        .unwrap();
    assert_eq!(takes(store, "other", "", 9).await, [ids[2].clone()]);
    // A lower limit stops nothing, a higher one lets the next begin.
    limit(store, All, "", 0).await;
    assert_eq!(takes(store, "other", "", 9).await, []);
    assert_eq!(store.task(&ids[2]).await.unwrap().status, Running);
    limit(store, All, "", 3).await;
    assert_eq!(takes(store, "other", "", 9).await, [ids[3].clone()]);
}

fn fresh(task: NewTask) -> NewTask {
    NewTask {
        id: TaskId::new(task.spec.task_type()),
        ..task
    }
}

async fn a_limit_of_each_repository_gives_way_to_one_of_its_own(store: &dyn Stores) {
    limit(store, Repository, "", 1).await;
    limit(store, Repository, "a", 2).await;
    limit(store, Repository, "/work", 0).await;
    let mut new: Vec<NewTask> = ["a", "b", "c"]
        .into_iter()
        .flat_map(|name| std::iter::repeat_with(move || of(name, None)).take(3))
        .collect();
    // Without a name it is that of its root.
    new.push(task(LocalAgent));
    let ids = made_all(store, new).await;
    let mut taken = takes(store, "r", "", 99).await;
    let place = |id: &TaskId| ids.iter().position(|other| other == id);
    taken.sort_by_key(place);
    let expected: Vec<TaskId> = [0, 1, 3, 6].map(|n: usize| ids[n].clone()).to_vec();
    assert_eq!(taken, expected);
}

async fn a_limit_of_each_user_leaves_tasks_of_nobody_alone(store: &dyn Stores) {
    limit(store, User, "", 1).await;
    limit(store, User, "bob", 2).await;
    let users = [
        Some("ann"),
        Some("ann"),
        Some("bob"),
        Some("bob"),
        Some("bob"),
        None,
        None,
    ];
    let new = users.map(|user| of("a", user)).to_vec();
    let ids = made_all(store, new).await;
    let taken = takes(store, "r", "", 99).await;
    let expected: Vec<TaskId> = [0, 2, 3, 5, 6].map(|n: usize| ids[n].clone()).to_vec();
    assert_eq!(taken, expected);
}

async fn a_limit_of_labels_is_for_exactly_these(store: &dyn Stores) {
    limit(store, LimitScope::Labels, "linux,gpu", 1).await;
    let new = ["gpu,linux", "linux,gpu", "gpu", "gpu", ""].map(labelled);
    let ids = made_all(store, new.to_vec()).await;
    let taken = takes(store, "r", "gpu,linux", 99).await;
    let expected: Vec<TaskId> = [0, 2, 3, 4].map(|n: usize| ids[n].clone()).to_vec();
    assert_eq!(taken, expected);
}

async fn tasks_at_their_limit_hide_no_others(store: &dyn Stores) {
    limit(store, User, "ann", 1).await;
    let mut new: Vec<NewTask> = (0..300).map(|_| of("a", Some("ann"))).collect();
    new.push(of("a", Some("bob")));
    let ids = made_all(store, new).await;
    assert_eq!(takes(store, "r", "", 1).await, [ids[0].clone()]);
    assert_eq!(takes(store, "r", "", 1).await, [ids[300].clone()]);
    assert_eq!(takes(store, "r", "", 9).await, []);
}

async fn what_a_task_makes_is_admitted_with_it(store: &dyn Stores) {
    limit(store, All, "", 1).await;
    let workflow = made(store, of("a", Some("ann"))).await;
    assert_eq!(
        takes(store, "r", "", 9).await,
        std::slice::from_ref(&workflow)
    );
    let waiting: Vec<NewTask> = (0..50).map(|_| of("a", Some("ann"))).collect();
    made_all(store, waiting).await;
    let step = NewTask {
        parent_task_id: Some(workflow),
        ..of("a", Some("ann"))
    };
    let (one, two) = (fresh(step.clone()), fresh(step));
    let steps = made_all(store, vec![one, two]).await;
    assert_eq!(takes(store, "r", "", 9).await, steps);
}

async fn what_is_reserved_born_running_or_run_by_hand_is_not_counted(store: &dyn Stores) {
    limit(store, All, "", 1).await;
    let reserved = NewTask {
        reserved_for: Some(runner("r")),
        ..task(LocalAgent)
    };
    let here = NewTask {
        start_here: Some(runner("r")),
        ..task(LocalAgent)
    };
    let by_hand = made(store, task(LocalWorkflow)).await;
    let begin = TaskChange {
        status: Some(Running),
        ..TaskChange::default()
    };
    store.change_task(&by_hand, begin).await.unwrap();
    let here = made(store, here).await;
    let new = vec![reserved, task(LocalAgent), task(LocalBash)];
    let ids = made_all(store, new).await;
    assert_eq!(takes(store, "r", "", 9).await, ids[..2]);
    // Nor is it when it is put back and taken again.
    store.release_task(&here, 1).await.unwrap();
    assert_eq!(takes(store, "r", "", 9).await, [here]);
}

async fn taking_over_admits_nothing(store: &dyn Stores) {
    limit(store, All, "", 1).await;
    let ids = made_all(store, vec![of("a", None), of("a", None)]).await;
    assert_eq!(takes(store, "lost", "", 9).await, [ids[0].clone()]);
    gone(store, "lost").await;
    limit(store, All, "", 0).await;
    let taken = claimed(store, "next", 9).await;
    let taken: Vec<_> = taken
        .into_iter()
        .map(|task| (task.record.task_id, task.taken_from))
        .collect();
    assert_eq!(taken, [(ids[0].clone(), Some(runner("lost")))]);
    limit(store, All, "", 1).await;
    assert_eq!(takes(store, "next", "", 9).await, [], "it still counts");
    limit(store, All, "", 2).await;
    assert_eq!(takes(store, "next", "", 9).await, [ids[1].clone()]);
}

async fn limits_are_set_replaced_and_removed(store: &dyn Stores) {
    assert_eq!(store.limits().await.unwrap(), []);
    for (scope, name, max) in [
        (User, "ann", 4),
        (All, "", 9),
        (LimitScope::Labels, "b,a", 1),
        (Repository, "", 2),
        (User, "ann", 5),
    ] {
        limit(store, scope, name, max).await;
    }
    store.set_limit(Repository, "x", None).await.unwrap();
    let limit = |scope, name: &str, limit| Limit {
        scope,
        name: name.to_owned(),
        limit,
    };
    let mut expected = vec![
        limit(All, "", 9),
        limit(LimitScope::Labels, "a,b", 1),
        limit(Repository, "", 2),
        limit(User, "ann", 5),
    ];
    assert_eq!(store.limits().await.unwrap(), expected);
    store.set_limit(All, "", None).await.unwrap();
    expected.remove(0);
    assert_eq!(store.limits().await.unwrap(), expected);
}

async fn a_limit_that_means_nothing_is_refused(store: &dyn Stores) {
    for (scope, name) in [
        (All, "some"),
        (LimitScope::Labels, ""),
        (LimitScope::Labels, "GPU"),
    ] {
        let refused = store.set_limit(scope, name, Some(1)).await;
        assert!(
            matches!(&refused, Err(StoreError::BadLimit { scope: of, .. }) if *of == scope),
            "{refused:?}"
        );
    }
    assert_eq!(store.limits().await.unwrap(), []);
}

async fn names_that_are_too_long_are_refused(store: &dyn Stores) {
    let long = "x".repeat(256);
    for new in [of(&long, None), of("a", Some(&long))] {
        let refused = store.create_tasks(vec![new]).await;
        assert!(
            matches!(refused, Err(StoreError::NotRecordable { .. })),
            "{refused:?}"
        );
    }
    made(store, of(&long[1..], Some(&long[1..]))).await;
}

async fn a_thousand_tasks_of_one_repository_do_not_starve_another(store: &dyn Stores) {
    let many = made_all(store, (0..1000).map(|_| of("a", None)).collect()).await;
    let one = made(store, of("b", None)).await;
    let mut taken = Vec::new();
    for who in ["r", "s", "r", "s"] {
        taken.extend(takes(store, who, "", 1).await);
    }
    let expected = [&many[0], &one, &many[1], &many[2]];
    assert_eq!(taken.iter().collect::<Vec<_>>(), expected);
}

async fn repositories_take_turns_within_one_claim(store: &dyn Stores) {
    let running = made(store, of("c", None)).await;
    assert_eq!(takes(store, "other", "", 1).await, [running]);
    let repositories = ["a", "a", "a", "a", "b", "b", "c"];
    let new = repositories.map(|name| of(name, None)).to_vec();
    let ids = made_all(store, new).await;
    let taken = takes(store, "r", "", 6).await;
    // Those of `a` and `b` as the first of theirs, then with `c` as the second.
    let expected: Vec<TaskId> = [0, 4, 1, 5, 6, 2].map(|n: usize| ids[n].clone()).to_vec();
    assert_eq!(taken, expected);
}

async fn one_repository_on_several_hosts_has_one_turn(store: &dyn Stores) {
    let at = |root: &str, repository| NewTask {
        authority: Authority {
            project_root: root.into(),
            ..of(repository, None).authority
        },
        ..task(LocalAgent)
    };
    let new = vec![at("/x", "a#1|%"), at("/y", "a#1|%"), at("/z", "b")];
    let ids = made_all(store, new).await;
    let taken = takes(store, "r", "", 2).await;
    assert_eq!(taken, [ids[0].clone(), ids[2].clone()]);
}
