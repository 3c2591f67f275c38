//! Offers to an engine: what is admitted, who begins it, and what is never done twice.

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
    TaskStatus::{Completed, Failed, Killed, Pending, Running},
    TaskType::{self, LocalAgent, LocalBash, LocalWorkflow, RemoteAgent},
};
use codespar_store::{
    Begun, Capacity, ClaimScope, Claimed, EngineState, LimitScope, MAX_TAKE_OVERS, NewTask,
    RunnerAbout, RunnerId, StoreError, TaskOffer,
};
use tasks_common::{
    Stores, about, after, authority, claimed, ending, gone, holds, made, room, runner, seen, task,
};

on_every_store!(
    an_offer_is_begun_once_and_ends_with_its_task,
    an_offered_task_is_claimed_by_nobody,
    a_runner_that_lives_keeps_what_it_began,
    what_a_lost_runner_began_is_begun_by_another,
    a_silent_runner_keeps_its_commands_and_loses_its_agents,
    what_was_handed_back_is_begun_under_the_same_offer,
    what_a_lost_runner_began_is_offered_anew_and_once,
    a_task_that_ended_or_was_stopped_leaves_nothing_to_begin,
    the_next_attempt_is_another_offer,
    a_task_that_ends_its_runners_is_given_up,
    no_more_than_the_window_is_offered,
    labels_and_classes_have_windows_of_their_own,
    limits_count_what_is_offered,
    a_limit_is_not_used_up_by_what_nobody_can_begin,
    a_limit_is_not_used_up_by_what_waits_for_a_busy_worker,
    repositories_take_turns_at_admission,
    what_is_reserved_for_a_live_process_is_left_to_it,
    what_was_born_running_is_offered_when_its_runner_is_lost,
    a_runner_with_an_engine_claims_only_what_is_reserved_for_it,
    only_the_types_that_are_asked_for_are_offered,
    open_offers_are_those_that_nobody_works_on,
    offers_that_are_withdrawn_can_be_claimed,
    labels_of_a_task_whose_runner_is_lost_have_a_queue,
    workers_that_reach_an_engine_dispatch_for_it,
    what_waits_for_another_is_not_offered,
);

/// More than any test offers.
const WIDE: u32 = 100;

async fn admitted(store: &dyn Stores, window: u32) -> Vec<TaskOffer> {
    store.admit_tasks(&TaskType::ALL, window).await.unwrap()
}

async fn offered(store: &dyn Stores, new: NewTask) -> TaskOffer {
    let id = made(store, new).await;
    let mut offers = admitted(store, WIDE).await;
    assert_eq!(offers.len(), 1, "{offers:?}");
    assert_eq!(offers[0].task, id);
    offers.remove(0)
}

async fn begin(store: &dyn Stores, who: &str, offer: &TaskOffer) -> Begun {
    let who = runner(who);
    let begun = store.begin_task(&who, &offer.task, offer.number).await;
    begun.unwrap()
}

async fn began(store: &dyn Stores, who: &str, offer: &TaskOffer) -> Claimed {
    match begin(store, who, offer).await {
        Begun::Claimed(claimed) => *claimed,
        other => panic!("{other:?}"),
    }
}

async fn assert_nothing(store: &dyn Stores, offer: &TaskOffer) {
    let begun = begin(store, "anyone", offer).await;
    assert!(matches!(begun, Begun::Nothing), "{begun:?}");
}

async fn status(store: &dyn Stores, id: &TaskId) -> codespar_protocol::TaskStatus {
    store.task(id).await.unwrap().status
}

async fn an_offer_is_begun_once_and_ends_with_its_task(store: &dyn Stores) {
    let offer = offered(store, task(RemoteAgent)).await;
    assert_eq!(status(store, &offer.task).await, Pending);
    assert_eq!(admitted(store, WIDE).await, [], "it is offered once");
    let mine = began(store, "a", &offer).await;
    assert_eq!(mine.record.status, Running);
    assert_eq!(mine.taken_from, None);
    let done = ending(Completed, None);
    store
        .finish_task(&offer.task, mine.epoch, done)
        .await
        .unwrap();
    // The answer to the engine was lost, and it brings the task once more.
    assert_nothing(store, &offer).await;
    assert_eq!(status(store, &offer.task).await, Completed);
}

async fn an_offered_task_is_claimed_by_nobody(store: &dyn Stores) {
    let offer = offered(store, task(RemoteAgent)).await;
    let other = made(store, task(RemoteAgent)).await;
    let taken = claimed(store, "by lease", 9).await;
    let taken: Vec<TaskId> = taken.into_iter().map(|task| task.record.task_id).collect();
    assert_eq!(taken, [other]);
    assert_eq!(status(store, &offer.task).await, Pending);
}

async fn a_runner_that_lives_keeps_what_it_began(store: &dyn Stores) {
    let offer = offered(store, task(RemoteAgent)).await;
    let mine = began(store, "a", &offer).await;
    // The engine could not reach `a`, and believes it is lost.
    for who in ["a", "b"] {
        let begun = begin(store, who, &offer).await;
        assert!(
            matches!(&begun, Begun::Held(holder) if holder.0 == "a"),
            "{begun:?}"
        );
    }
    let done = ending(Completed, None);
    store
        .finish_task(&offer.task, mine.epoch, done)
        .await
        .unwrap();
}

async fn what_a_lost_runner_began_is_begun_by_another(store: &dyn Stores) {
    let offer = offered(store, task(RemoteAgent)).await;
    let lost = began(store, "a", &offer).await;
    gone(store, "a").await;
    let next = began(store, "b", &offer).await;
    assert_eq!(next.taken_from, Some(runner("a")));
    assert!(next.epoch > lost.epoch);
    // `a` was frozen and comes back.
    let late = store
        .finish_task(&offer.task, lost.epoch, ending(Failed, Some("late")))
        .await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
    let beat = store
        .beat(&runner("a"), &about(), &[holds(&offer.task, lost.epoch)])
        .await
        .unwrap();
    assert_eq!(beat.lost, std::slice::from_ref(&offer.task));
    let done = ending(Completed, None);
    store
        .finish_task(&offer.task, next.epoch, done)
        .await
        .unwrap();
}

async fn what_a_lost_runner_began_is_offered_anew_and_once(store: &dyn Stores) {
    let first = offered(store, task(RemoteAgent)).await;
    began(store, "a", &first).await;
    assert_eq!(admitted(store, WIDE).await, [], "`a` works on it");
    gone(store, "a").await;
    let anew = admitted(store, WIDE).await;
    assert_eq!(anew.len(), 1);
    assert_eq!(anew[0].task, first.task);
    assert!(anew[0].number > first.number);
    assert_eq!(admitted(store, WIDE).await, [], "once");
    // The engine notices only now that the first was not worked on.
    assert_nothing(store, &first).await;
    let next = began(store, "b", &anew[0]).await;
    assert_eq!(next.taken_from, Some(runner("a")));
    assert_nothing(store, &first).await;
}

async fn a_silent_runner_keeps_its_commands_and_loses_its_agents(store: &dyn Stores) {
    let agent = offered(store, task(RemoteAgent)).await;
    began(store, "a", &agent).await;
    let command = offered(store, task(LocalBash)).await;
    began(store, "a", &command).await;
    store.mark_silent(&seen(store, "a").await).await.unwrap();
    began(store, "b", &agent).await;
    let begun = begin(store, "b", &command).await;
    assert!(matches!(begun, Begun::Held(_)), "{begun:?}");
}

async fn what_was_handed_back_is_begun_under_the_same_offer(store: &dyn Stores) {
    let offer = offered(store, task(RemoteAgent)).await;
    let mine = began(store, "a", &offer).await;
    store.release_task(&offer.task, mine.epoch).await.unwrap();
    assert_eq!(status(store, &offer.task).await, Pending);
    assert_eq!(admitted(store, WIDE).await, []);
    assert!(claimed(store, "by lease", 9).await.is_empty());
    let next = began(store, "b", &offer).await;
    assert_eq!(next.taken_from, None);
    assert_eq!(next.record.attempt, 1);
}

async fn a_task_that_ended_or_was_stopped_leaves_nothing_to_begin(store: &dyn Stores) {
    let stopped = offered(store, task(RemoteAgent)).await;
    store.stop_task(&stopped.task, "not wanted").await.unwrap();
    assert_eq!(status(store, &stopped.task).await, Killed);
    assert_nothing(store, &stopped).await;
    let unknown = TaskOffer {
        task: TaskId::new(RemoteAgent),
        ..stopped
    };
    assert_nothing(store, &unknown).await;
}

async fn the_next_attempt_is_another_offer(store: &dyn Stores) {
    let first = offered(store, task(RemoteAgent)).await;
    let mine = began(store, "a", &first).await;
    let done = ending(Completed, None);
    store
        .finish_task(&first.task, mine.epoch, done)
        .await
        .unwrap();
    store.send_mail(&first.task, "you", "go on").await.unwrap();
    let next = admitted(store, WIDE).await;
    assert_eq!(next.len(), 1);
    assert!(next[0].number > first.number);
    assert_nothing(store, &first).await;
    assert_eq!(began(store, "b", &next[0]).await.record.attempt, 2);
}

async fn a_task_that_ends_its_runners_is_given_up(store: &dyn Stores) {
    let offer = offered(store, task(RemoteAgent)).await;
    let dependent = made(store, after(LocalAgent, &[&offer.task])).await;
    for turn in 0..=MAX_TAKE_OVERS {
        let who = format!("r{turn}");
        began(store, &who, &offer).await;
        gone(store, &who).await;
    }
    assert_nothing(store, &offer).await;
    assert_eq!(status(store, &offer.task).await, Failed);
    assert_eq!(status(store, &dependent).await, Failed);
}

async fn no_more_than_the_window_is_offered(store: &dyn Stores) {
    for _ in 0..5 {
        made(store, task(RemoteAgent)).await;
    }
    let first = admitted(store, 2).await;
    assert_eq!(first.len(), 2);
    assert_eq!(admitted(store, 2).await, []);
    began(store, "a", &first[0]).await;
    assert_eq!(
        admitted(store, 2).await.len(),
        1,
        "one is out of the window"
    );
}

async fn labels_and_classes_have_windows_of_their_own(store: &dyn Stores) {
    let gpu: Labels = "gpu".parse().unwrap();
    for labels in [Labels::default(), gpu.clone()] {
        for kind in [LocalAgent, RemoteAgent, LocalBash, LocalWorkflow] {
            for _ in 0..3 {
                let labels = labels.clone();
                made(
                    store,
                    NewTask {
                        labels,
                        ..task(kind)
                    },
                )
                .await;
            }
        }
    }
    let offers = admitted(store, 2).await;
    // Agents of two types share a window.
    assert_eq!(offers.len(), 2 * 3 * 2, "{offers:?}");
    let of_gpu = offers.iter().filter(|offer| offer.labels == gpu).count();
    assert_eq!(of_gpu, 3 * 2);
    assert_eq!(store.label_sets().await.unwrap(), [Labels::default(), gpu]);
}

/// A worker that takes tasks from an engine.
async fn on_engine(store: &dyn Stores, who: &str, about: RunnerAbout) -> RunnerId {
    let id = RunnerId::of_worker(who);
    let about = RunnerAbout {
        engine: "temporal".to_owned(),
        ..about
    };
    store.beat(&id, &about, &[]).await.unwrap();
    id
}

async fn a_limit_is_not_used_up_by_what_nobody_can_begin(store: &dyn Stores) {
    on_engine(store, "a", about()).await;
    store.set_limit(LimitScope::All, "", Some(2)).await.unwrap();
    for _ in 0..3 {
        let labels = "windows".parse().unwrap();
        made(
            store,
            NewTask {
                labels,
                ..task(RemoteAgent)
            },
        )
        .await;
    }
    let anywhere = made(store, task(RemoteAgent)).await;
    let offers = admitted(store, WIDE).await;
    let offers: Vec<TaskId> = offers.into_iter().map(|offer| offer.task).collect();
    assert_eq!(offers, [anywhere]);
    // As soon as there is somebody.
    let labels = "windows".parse().unwrap();
    on_engine(store, "b", RunnerAbout { labels, ..about() }).await;
    assert_eq!(admitted(store, WIDE).await.len(), 1, "one place is left");
}

async fn a_limit_is_not_used_up_by_what_waits_for_a_busy_worker(store: &dyn Stores) {
    let gpu: Labels = "gpu".parse().unwrap();
    let small = RunnerAbout {
        labels: gpu.clone(),
        agents: 2,
        ..about()
    };
    let worker = on_engine(store, "a", small).await;
    store.set_limit(LimitScope::All, "", Some(5)).await.unwrap();
    for _ in 0..9 {
        let labels = gpu.clone();
        made(
            store,
            NewTask {
                labels,
                ..task(RemoteAgent)
            },
        )
        .await;
    }
    let offers = admitted(store, WIDE).await;
    assert_eq!(offers.len(), 2, "it has two places");
    let mine = began(store, &worker.0, &offers[0]).await;
    assert_eq!(admitted(store, WIDE).await, [], "one runs, one is offered");
    let done = ending(Completed, None);
    store
        .finish_task(&offers[0].task, mine.epoch, done)
        .await
        .unwrap();
    assert_eq!(admitted(store, WIDE).await.len(), 1);
}

async fn labels_of_a_task_whose_runner_is_lost_have_a_queue(store: &dyn Stores) {
    let gpu: Labels = "gpu".parse().unwrap();
    let labels = gpu.clone();
    let offer = offered(
        store,
        NewTask {
            labels,
            ..task(RemoteAgent)
        },
    )
    .await;
    began(store, "a", &offer).await;
    gone(store, "a").await;
    assert_eq!(admitted(store, WIDE).await.len(), 1, "it is offered anew");
    assert_eq!(store.label_sets().await.unwrap(), [gpu]);
}

async fn workers_that_reach_an_engine_dispatch_for_it(store: &dyn Stores) {
    let unreachable = RunnerAbout {
        engine_state: EngineState::Unreachable,
        ..about()
    };
    on_engine(store, "a", unreachable).await;
    let b = on_engine(store, "b", about()).await;
    let c = on_engine(store, "c", about()).await;
    let by_lease = RunnerId::of_worker("0");
    store.beat(&by_lease, &about(), &[]).await.unwrap();
    let dispatchers = async || store.dispatchers("temporal").await.unwrap();
    assert_eq!(dispatchers().await, [b.clone(), c.clone()]);
    store.mark_silent(&seen(store, &b.0).await).await.unwrap();
    assert_eq!(dispatchers().await, [c]);
    assert_eq!(store.dispatchers("other").await.unwrap(), []);
}

async fn limits_count_what_is_offered(store: &dyn Stores) {
    on_engine(store, "a", about()).await;
    store.set_limit(LimitScope::All, "", Some(2)).await.unwrap();
    for _ in 0..4 {
        made(store, task(RemoteAgent)).await;
    }
    let first = admitted(store, WIDE).await;
    assert_eq!(first.len(), 2);
    let mine = began(store, "a", &first[0]).await;
    assert_eq!(admitted(store, WIDE).await, [], "one runs, one is offered");
    let done = ending(Completed, None);
    store
        .finish_task(&first[0].task, mine.epoch, done)
        .await
        .unwrap();
    assert_eq!(admitted(store, WIDE).await.len(), 1);
}

async fn repositories_take_turns_at_admission(store: &dyn Stores) {
    let of = |repository: &str| NewTask {
        authority: Authority {
            repository: Some(repository.to_owned()),
            ..authority("/work")
        },
        ..task(RemoteAgent)
    };
    for _ in 0..50 {
        made(store, of("many")).await;
    }
    let single = made(store, of("single")).await;
    let offers = admitted(store, 4).await;
    assert!(
        offers.iter().any(|offer| offer.task == single),
        "{offers:?}"
    );
}

async fn what_is_reserved_for_a_live_process_is_left_to_it(store: &dyn Stores) {
    store.beat(&runner("mine"), &about(), &[]).await.unwrap();
    let reserved = NewTask {
        reserved_for: Some(runner("mine")),
        ..task(LocalAgent)
    };
    let id = made(store, reserved).await;
    assert_eq!(admitted(store, WIDE).await, []);
    gone(store, "mine").await;
    let offers = admitted(store, WIDE).await;
    assert_eq!(offers.len(), 1);
    assert_eq!(offers[0].task, id);
}

async fn what_was_born_running_is_offered_when_its_runner_is_lost(store: &dyn Stores) {
    let born = NewTask {
        reserved_for: Some(runner("mine")),
        start_here: Some(runner("mine")),
        ..task(LocalAgent)
    };
    let id = made(store, born).await;
    assert_eq!(status(store, &id).await, Running);
    assert_eq!(admitted(store, WIDE).await, []);
    gone(store, "mine").await;
    let offers = admitted(store, WIDE).await;
    assert_eq!(offers.len(), 1);
    assert_eq!(admitted(store, WIDE).await, [], "once");
    let next = began(store, "b", &offers[0]).await;
    assert_eq!(next.taken_from, Some(runner("mine")));
}

async fn a_runner_with_an_engine_claims_only_what_is_reserved_for_it(store: &dyn Stores) {
    made(store, task(LocalAgent)).await;
    let lost = made(store, task(LocalBash)).await;
    let capacity = Capacity {
        by_type: vec![(LocalBash, 1)],
        ..room(1)
    };
    let taken = store.claim_tasks(&runner("lost"), &capacity).await.unwrap();
    assert_eq!(taken[0].record.task_id, lost);
    gone(store, "lost").await;
    let reserved = NewTask {
        reserved_for: Some(runner("mine")),
        ..task(LocalAgent)
    };
    let reserved = made(store, reserved).await;
    let capacity = Capacity {
        scope: ClaimScope::Reserved,
        ..room(9)
    };
    let taken = store.claim_tasks(&runner("mine"), &capacity).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].record.task_id, reserved);
}

async fn only_the_types_that_are_asked_for_are_offered(store: &dyn Stores) {
    made(store, task(LocalBash)).await;
    let agent = made(store, task(RemoteAgent)).await;
    let offers = store.admit_tasks(&[RemoteAgent], WIDE).await.unwrap();
    assert_eq!(offers.len(), 1);
    assert_eq!(offers[0].task, agent);
}

async fn open_offers_are_those_that_nobody_works_on(store: &dyn Stores) {
    let waits = offered(store, task(RemoteAgent)).await;
    let runs = offered(store, task(RemoteAgent)).await;
    began(store, "alive", &runs).await;
    let over = offered(store, task(RemoteAgent)).await;
    let mine = began(store, "alive", &over).await;
    let done = ending(Completed, None);
    store
        .finish_task(&over.task, mine.epoch, done)
        .await
        .unwrap();
    let lost = offered(store, task(RemoteAgent)).await;
    began(store, "lost", &lost).await;
    gone(store, "lost").await;
    assert_eq!(store.open_offers().await.unwrap(), [waits, lost]);
}

async fn offers_that_are_withdrawn_can_be_claimed(store: &dyn Stores) {
    let waits = offered(store, task(RemoteAgent)).await;
    let runs = offered(store, task(RemoteAgent)).await;
    began(store, "a", &runs).await;
    let worker = on_engine(store, "w", about()).await;
    assert_eq!(store.withdraw_offers().await.unwrap(), 0, "`w` uses them");
    gone(store, &worker.0).await;
    gone(store, "a").await;
    assert_eq!(store.withdraw_offers().await.unwrap(), 1);
    assert_nothing(store, &waits).await;
    let taken = claimed(store, "by lease", 9).await;
    let taken: Vec<TaskId> = taken.into_iter().map(|task| task.record.task_id).collect();
    assert_eq!(taken, [runs.task, waits.task]);
}

async fn what_waits_for_another_is_not_offered(store: &dyn Stores) {
    let first = offered(store, task(RemoteAgent)).await;
    let second = made(store, after(RemoteAgent, &[&first.task])).await;
    assert_eq!(admitted(store, WIDE).await, []);
    let mine = began(store, "a", &first).await;
    let done = ending(Completed, None);
    store
        .finish_task(&first.task, mine.epoch, done)
        .await
        .unwrap();
    assert_eq!(admitted(store, WIDE).await[0].task, second);
}
