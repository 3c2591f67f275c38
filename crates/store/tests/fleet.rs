//! The fleet report.

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
    Authority, SessionId, TaskId, TaskRecord, TaskSpec, TaskStatus,
    TaskType::{InProcessTeammate, LocalAgent, LocalBash},
    TeamItemSpec,
};
use codespar_store::{
    Capacity, FleetReport, FleetRunner, FleetTask, Limit,
    LimitScope::{All, Repository, User},
    LimitUse, NewTask, QueueDepth, RunnerAbout, RunnerState, TaskChange,
};
use jiff::Timestamp;
use tasks_common::{
    Stores, a_moment, about, after, authority, claimed, ending, gone, made, room, runner, task,
};

on_every_store!(
    the_report_of_an_empty_store_is_empty,
    the_report_names_who_runs_what_and_what_waits,
    what_a_gone_runner_left_is_still_shown,
    a_runner_says_what_it_is_with_its_heartbeat,
    limits_tell_what_runs_under_them,
    a_dependent_waits_from_the_end_of_the_last_task_before_it,
    what_is_handed_back_or_continued_waits_from_then_on,
    an_edit_does_not_begin_the_wait_anew,
    what_has_failed_is_not_changed_by_the_end_of_other_tasks_before_it,
);

fn of(repository: &str, labels: &str) -> NewTask {
    NewTask {
        authority: Authority {
            repository: Some(repository.to_owned()),
            user: Some("ann".to_owned()),
            ..authority("/work")
        },
        labels: labels.parse().unwrap(),
        ..task(LocalAgent)
    }
}

fn running(task: &TaskRecord, repository: &str, take_overs: u32) -> FleetTask {
    FleetTask {
        task_id: task.task_id.clone(),
        task_type: task.task_type,
        subject: task.subject.clone(),
        repository: repository.to_owned(),
        started_at: task.started_at,
        attempt: task.attempt,
        take_overs,
    }
}

async fn the_report_of_an_empty_store_is_empty(store: &dyn Stores) {
    let empty = FleetReport {
        runners: Vec::new(),
        queues: Vec::new(),
        limits: Vec::new(),
    };
    assert_eq!(store.fleet().await.unwrap(), empty);
}

async fn the_report_names_who_runs_what_and_what_waits(store: &dyn Stores) {
    store.beat(&runner("ann"), &about(), &[]).await.unwrap();
    made(store, of("a", "")).await;
    made(store, task(LocalBash)).await;
    let taken = claimed(store, "bob", 9).await;
    let oldest = store.create_tasks(vec![of("a", "gpu")]).await.unwrap();
    made(store, of("a", "gpu")).await;
    let plain = store.create_tasks(vec![task(LocalBash)]).await.unwrap();
    // Neither of these is ready to run.
    let blocked = NewTask {
        blocked_by: vec![plain[0].task_id.clone()],
        ..task(LocalBash)
    };
    made(store, blocked).await;
    let item = NewTask {
        spec: TaskSpec::TeamItem(TeamItemSpec {
            team: "red".to_owned(),
        }),
        session_id: Some(SessionId::new()),
        ..task(InProcessTeammate)
    };
    made(store, item).await;

    let report = store.fleet().await.unwrap();

    let runner = |id: &str, about, running| FleetRunner {
        id: id.to_owned(),
        beats: 1,
        is_silent: false,
        about,
        running,
    };
    let records: Vec<_> = taken.iter().map(|task| &task.record).collect();
    let held = vec![running(records[0], "a", 0), running(records[1], "/work", 0)];
    let expected = FleetReport {
        runners: vec![
            runner("ann", Some(about()), Vec::new()),
            runner("bob", None, held),
        ],
        queues: vec![
            QueueDepth {
                task_type: LocalAgent,
                labels: "gpu".parse().unwrap(),
                repository: "a".to_owned(),
                ready: 2,
                oldest_ready_at: oldest[0].created_at,
            },
            QueueDepth {
                task_type: LocalBash,
                labels: "".parse().unwrap(),
                repository: "/work".to_owned(),
                ready: 1,
                oldest_ready_at: plain[0].created_at,
            },
        ],
        limits: Vec::new(),
    };
    assert_eq!(report, expected);
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<FleetReport>(&json).unwrap(), report);
}

async fn what_a_gone_runner_left_is_still_shown(store: &dyn Stores) {
    made(store, of("a", "")).await;
    let taken = claimed(store, "lost", 1).await;
    gone(store, "lost").await;
    let report = store.fleet().await.unwrap();
    let lost = FleetRunner {
        id: "lost".to_owned(),
        beats: 0,
        is_silent: true,
        about: None,
        running: vec![running(&taken[0].record, "a", 0)],
    };
    assert_eq!(report.runners, [lost]);
    assert_eq!(report.runners[0].state(), RunnerState::Gone);
    let taken = claimed(store, "next", 1).await;
    let report = store.fleet().await.unwrap();
    assert_eq!(report.runners[0].id, "next");
    let held = [running(&taken[0].record, "a", 1)];
    assert_eq!(report.runners[0].running, held);
}

async fn a_runner_says_what_it_is_with_its_heartbeat(store: &dyn Stores) {
    let first = about();
    let later = RunnerAbout {
        labels: "gpu".parse().unwrap(),
        ..about()
    };
    let mut shown = Vec::new();
    for about in [&first, &first, &later] {
        store.beat(&runner("r"), about, &[]).await.unwrap();
        shown.push(store.fleet().await.unwrap().runners[0].about.clone());
    }
    assert_eq!(
        shown,
        [Some(first.clone()), Some(first), Some(later.clone())]
    );
    // Nothing but a heartbeat changes it.
    let seen = store.runners().await.unwrap().remove(0);
    store.mark_silent(&seen).await.unwrap();
    let silent = store.fleet().await.unwrap().runners.remove(0);
    assert_eq!(silent.state(), RunnerState::Silent);
    store.claim_tasks(&runner("r"), &room(1)).await.unwrap();
    let runners = store.fleet().await.unwrap().runners;
    assert_eq!(runners[0].about, Some(later));
    assert_eq!(runners[0].state(), RunnerState::Alive);
}

async fn limits_tell_what_runs_under_them(store: &dyn Stores) {
    for (scope, name) in [
        (All, ""),
        (Repository, ""),
        (Repository, "a"),
        (User, "bob"),
    ] {
        store.set_limit(scope, name, Some(9)).await.unwrap();
    }
    for name in ["a", "a", "a", "b", "c", "c"] {
        made(store, of(name, "gpu")).await;
    }
    let child = NewTask {
        parent_task_id: Some(made(store, of("c", "tpu")).await),
        ..of("c", "gpu")
    };
    made(store, child).await;
    let capacity = Capacity {
        labels: "gpu".parse().unwrap(),
        ..room(9)
    };
    let taken = store.claim_tasks(&runner("r"), &capacity).await.unwrap();
    assert_eq!(taken.len(), 7);
    let with_use = |scope, name: &str, running| LimitUse {
        limit: Limit {
            scope,
            name: name.to_owned(),
            limit: 9,
        },
        running,
    };
    let expected = [
        with_use(All, "", 6),
        // The most of those without their own: `c`, without what a task of it made.
        with_use(Repository, "", 2),
        with_use(Repository, "a", 3),
        with_use(User, "bob", 0),
    ];
    assert_eq!(store.fleet().await.unwrap().limits, expected);
}

/// Since when the only queue has waited. The oldest of all is the same.
async fn waiting_since(store: &dyn Stores) -> Timestamp {
    let queues = store.fleet().await.unwrap().queues;
    assert_eq!(queues.len(), 1, "{queues:?}");
    let since = queues[0].oldest_ready_at;
    assert_eq!(store.oldest_ready().await.unwrap(), Some(since));
    since
}

/// Ends what was claimed, and gives the time.
async fn ended(store: &dyn Stores, id: &TaskId, epoch: u64, status: TaskStatus) -> Timestamp {
    let ending = ending(status, None);
    store.finish_task(id, epoch, ending).await.unwrap();
    store.task(id).await.unwrap().ended_at.unwrap()
}

async fn a_dependent_waits_from_the_end_of_the_last_task_before_it(store: &dyn Stores) {
    let first = made(store, task(LocalBash)).await;
    let second = made(store, task(LocalBash)).await;
    let last = made(store, after(LocalBash, &[&first, &second])).await;
    let taken = claimed(store, "r", 9).await;
    assert_eq!(taken.len(), 2);
    let earlier = ended(store, &first, taken[0].epoch, TaskStatus::Completed).await;
    assert!(store.fleet().await.unwrap().queues.is_empty());
    a_moment().await;
    let later = ended(store, &second, taken[1].epoch, TaskStatus::Completed).await;
    assert!(earlier < later);
    assert_eq!(waiting_since(store).await, later);
    assert_eq!(store.task(&last).await.unwrap().updated_at, later);
}

async fn what_is_handed_back_or_continued_waits_from_then_on(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    let taken = claimed(store, "r", 1).await.remove(0);
    a_moment().await;
    store.release_task(&id, taken.epoch).await.unwrap();
    let handed_back = store.task(&id).await.unwrap();
    assert!(handed_back.created_at < handed_back.updated_at);
    assert_eq!(waiting_since(store).await, handed_back.updated_at);

    let taken = claimed(store, "r", 1).await.remove(0);
    let over = ended(store, &id, taken.epoch, TaskStatus::Completed).await;
    a_moment().await;
    let continued = store.send_mail(&id, "me", "go on").await.unwrap();
    assert!(over < continued.updated_at);
    assert_eq!(waiting_since(store).await, continued.updated_at);
}

async fn an_edit_does_not_begin_the_wait_anew(store: &dyn Stores) {
    let id = made(store, task(LocalBash)).await;
    a_moment().await;
    let change = TaskChange {
        subject: Some("another name".to_owned()),
        ..TaskChange::default()
    };
    let edited = store.change_task(&id, change).await.unwrap();
    assert!(edited.created_at < edited.updated_at);
    assert_eq!(waiting_since(store).await, edited.created_at);
}

async fn what_has_failed_is_not_changed_by_the_end_of_other_tasks_before_it(store: &dyn Stores) {
    let first = made(store, task(LocalBash)).await;
    let second = made(store, task(LocalBash)).await;
    let last = made(store, after(LocalBash, &[&first, &second])).await;
    let taken = claimed(store, "r", 9).await;
    ended(store, &first, taken[0].epoch, TaskStatus::Failed).await;
    let failed = store.task(&last).await.unwrap();
    assert_eq!(failed.status, TaskStatus::Failed);
    a_moment().await;
    ended(store, &second, taken[1].epoch, TaskStatus::Completed).await;
    let later = store.task(&last).await.unwrap();
    assert_eq!(later.updated_at, failed.updated_at);
}
