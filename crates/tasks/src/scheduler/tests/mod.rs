//! The scheduler with a clock that the test moves and a store whose faults it decides about.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod clock;
mod fake;

use std::sync::Arc;

use codespar_protocol::{TaskStatus, TaskType};
use codespar_store::{RunnerId, TaskClass};
use tokio::sync::Notify;

use super::watch::{LOST, SILENT};
use crate::{runner::TaskStopReason, vital::Presence};
use fake::{Bench, THEM, Work};

#[tokio::test]
async fn work_whose_lease_is_lost_ends_quietly_and_writes_nothing() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    let id = bench.leases.add(TaskType::LocalAgent);
    bench.run();
    bench.pass(3).await;
    bench.leases.take_away(&id);
    bench
        .leases
        .state
        .lock()
        .runners
        .insert(RunnerId(THEM.to_owned()), (1, false));
    bench.pass(3).await;
    assert_eq!(bench.stops(), [Some(TaskStopReason::LeaseLost)]);
    let row = bench.leases.row(&id);
    assert_eq!(
        (row.record.status, row.record.error),
        (TaskStatus::Running, None)
    );
    assert_eq!(row.owner, Some(RunnerId(THEM.to_owned())));
    assert_eq!(bench.leases.state.lock().refused, Vec::<String>::new());
    assert_eq!(bench.started(), 1, "it is theirs");
}

#[tokio::test]
async fn a_place_that_is_kept_for_a_task_is_no_room_for_another() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    let limits = bench.scheduler.limits();
    let reserve = || bench.scheduler.reserve(TaskClass::Agents);
    let mut places: Vec<_> = (0..limits.agents).map(|_| reserve().unwrap()).collect();
    assert!(reserve().is_none());
    assert!(bench.scheduler.reserve(TaskClass::Commands).is_some());
    places.pop();
    places.push(reserve().unwrap());
    assert!(reserve().is_none());
    drop(places);
    assert!(reserve().is_some());
}

#[tokio::test]
async fn a_heartbeat_that_is_late_by_hours_loses_nothing() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    for _ in 0..5 {
        bench.leases.add(TaskType::LocalAgent);
        bench.leases.add(TaskType::LocalBash);
    }
    bench.run();
    bench.pass(2).await;
    assert_eq!(bench.started(), 10);
    // As when the machine sleeps: the clock moves, nothing runs.
    bench.clock.jump(std::time::Duration::from_secs(7_200));
    bench.pass(5).await;
    assert_eq!((bench.started(), bench.stops()), (10, vec![]));
}

#[tokio::test]
async fn a_locked_database_loses_nothing_and_ends_are_recorded_when_it_opens() {
    let bench = Bench::new(Work::InSteps, Presence::Unknown).await;
    let id = bench.leases.add(TaskType::LocalAgent);
    bench.run();
    bench.pass(2).await;
    bench.leases.state.lock().locked = true;
    bench.pass(30).await;
    assert_eq!(bench.stops(), []);
    bench.leases.state.lock().locked = false;
    bench.pass(2).await;
    bench.leases.state.lock().tasks.get_mut(&id).unwrap().stop = Some("enough".to_owned());
    bench.pass(2).await;
    let row = bench.leases.row(&id);
    assert_eq!(row.record.status, TaskStatus::Killed);
    assert_eq!(row.record.error.as_deref(), Some("enough"));
    assert_eq!(bench.started(), 1);
}

#[tokio::test]
async fn an_end_that_falls_into_a_lock_on_the_database_is_recorded_after_it() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    let id = bench.leases.add(TaskType::LocalBash);
    bench.run();
    bench.pass(2).await;
    bench.leases.state.lock().locked = true;
    let asked = TaskStopReason::Asked("enough".to_owned());
    assert!(bench.scheduler.signal(&id, asked));
    bench.pass(15).await;
    assert_eq!(bench.leases.status(&id), TaskStatus::Running);
    bench.leases.state.lock().locked = false;
    bench.pass(5).await;
    assert_eq!(bench.leases.status(&id), TaskStatus::Killed);
}

#[tokio::test]
async fn nothing_is_taken_while_no_sign_of_life_can_be_recorded() {
    let bench = Bench::new(Work::Quick, Presence::Unknown).await;
    bench.leases.add(TaskType::LocalBash);
    bench.leases.state.lock().locked = true;
    bench.run();
    bench.pass(20).await;
    assert_eq!(bench.leases.state.lock().claims, 0);
    bench.leases.state.lock().locked = false;
    bench.pass(2).await;
    assert_eq!(bench.started(), 1);
}

/// A task of another runner that was last heard of before we looked.
async fn another_holds(bench: &Bench, task_type: TaskType) -> codespar_protocol::TaskId {
    let id = bench.leases.add(task_type);
    bench.leases.take_away(&id);
    let mut state = bench.leases.state.lock();
    state.runners.insert(RunnerId(THEM.to_owned()), (7, false));
    drop(state);
    bench.run();
    id
}

#[tokio::test]
async fn a_runner_out_of_sight_loses_its_agents_when_it_is_silent_for_ten_heartbeats() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    another_holds(&bench, TaskType::LocalAgent).await;
    bench.pass(u64::from(SILENT) - 2).await;
    assert_eq!(bench.started(), 0);
    bench.pass(4).await;
    assert_eq!(bench.started(), 1);
}

#[tokio::test]
async fn a_process_that_exists_keeps_its_tasks_however_long_it_is_silent() {
    for presence in [Presence::Stopped, Presence::Running] {
        let bench = Bench::new(Work::UntilStopped, presence).await;
        another_holds(&bench, TaskType::LocalAgent).await;
        bench.pass(10 * u64::from(LOST)).await;
        assert_eq!(bench.started(), 0, "{presence:?}");
    }
}

#[tokio::test]
async fn a_dead_process_loses_its_tasks_at_once() {
    let bench = Bench::new(Work::UntilStopped, Presence::Dead).await;
    another_holds(&bench, TaskType::LocalAgent).await;
    bench.pass(2).await;
    assert_eq!(bench.started(), 1);
}

#[tokio::test]
async fn time_in_which_we_could_not_write_counts_for_nobody() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    another_holds(&bench, TaskType::LocalAgent).await;
    bench.pass(5).await;
    bench.leases.state.lock().locked = true;
    bench.pass(600).await;
    {
        // Both were kept from writing; the other is the first to get through.
        let mut state = bench.leases.state.lock();
        state.locked = false;
        state.runners.insert(RunnerId(THEM.to_owned()), (8, false));
    }
    bench.pass(5).await;
    assert_eq!(bench.started(), 0);
}

#[tokio::test]
async fn one_that_leaves_lets_a_step_come_to_its_end_and_hands_the_task_back() {
    let bench = Bench::new(Work::InSteps, Presence::Unknown).await;
    let id = bench.leases.add(TaskType::LocalAgent);
    bench.run();
    bench.pass(1).await;
    bench.leave().await;
    assert_eq!(bench.leases.status(&id), TaskStatus::Pending);
    assert_eq!(bench.leases.row(&id).ending.map(|end| end.status), None);
    assert!(bench.leases.state.lock().runners.is_empty());
}

#[tokio::test]
async fn one_that_leaves_breaks_off_what_does_not_come_to_an_end_and_hands_it_back() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    let agent = bench.leases.add(TaskType::LocalAgent);
    let command = bench.leases.add(TaskType::LocalBash);
    bench.run();
    bench.pass(1).await;
    bench.leave().await;
    assert_eq!(bench.leases.status(&agent), TaskStatus::Pending);
    let command = bench.leases.row(&command).record;
    assert_eq!(command.status, TaskStatus::Killed);
    assert_eq!(
        command.error.as_deref(),
        Some("the process that ran it ended")
    );
}

#[tokio::test]
async fn the_heartbeat_goes_on_until_the_last_work_is_recorded() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    bench.leases.add(TaskType::LocalAgent);
    bench.run();
    bench.pass(1).await;
    let before = bench.leases.state.lock().beats_while_working;
    bench.leave().await;
    let after = bench.leases.state.lock().beats_while_working;
    assert!(after >= before + 4, "{before} {after}");
    let last = bench.leases.state.lock().beats;
    bench.pass(10).await;
    assert_eq!(bench.leases.state.lock().beats, last, "it ends");
}

#[tokio::test]
async fn a_task_claimed_while_leaving_is_handed_back_and_never_begun() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    let gate = Arc::new(Notify::new());
    *bench.leases.slow_claim.lock() = Some(gate.clone());
    let id = bench.leases.add(TaskType::LocalBash);
    bench.run();
    bench.pass(2).await;
    assert_eq!(bench.leases.status(&id), TaskStatus::Running);
    let scheduler = bench.scheduler.clone();
    let leaving = tokio::spawn(async move { scheduler.leave().await });
    bench.pass(1).await;
    gate.notify_one();
    leaving.await.unwrap();
    assert_eq!(bench.leases.status(&id), TaskStatus::Pending);
    assert_eq!(bench.started(), 0);
}

#[tokio::test]
async fn a_task_whose_session_is_busy_is_tried_again_later_and_does_not_fail() {
    let bench = Bench::new(Work::Busy(4), Presence::Unknown).await;
    let id = bench.leases.add(TaskType::LocalAgent);
    bench.run();
    bench.pass(2).await;
    // After 0.25, 0.5 and 1 s more: not at every look.
    assert!((2..=4).contains(&bench.started()), "{}", bench.started());
    bench.pass(10).await;
    assert_eq!(bench.leases.status(&id), TaskStatus::Completed);
    assert_eq!(bench.started(), 5);
}

#[tokio::test]
async fn a_task_that_is_ours_and_that_nobody_works_on_is_handed_back() {
    let bench = Bench::new(Work::Quick, Presence::Unknown).await;
    let id = bench.leases.add(TaskType::LocalBash);
    {
        // The answer to the claim never came.
        let mut state = bench.leases.state.lock();
        let row = state.tasks.get_mut(&id).unwrap();
        row.owner = Some(RunnerId(fake::US.to_owned()));
        row.record.status = TaskStatus::Running;
        row.epoch = 1;
    }
    bench.run();
    bench.pass(30).await;
    assert_eq!(bench.leases.status(&id), TaskStatus::Completed);
    assert_eq!(bench.attempts.lock().started, [(id, 2)]);
}

#[tokio::test]
async fn whoever_follows_a_task_that_ends_in_another_process_is_let_go() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    let (ended, open) = (
        bench.leases.add(TaskType::LocalAgent),
        bench.leases.add(TaskType::LocalAgent),
    );
    for id in [&ended, &open] {
        bench.leases.take_away(id);
        let listener: codespar_agent::Sink = Arc::new(|_| {});
        let session = codespar_protocol::SessionId::new();
        bench.scheduler.events.follow_task(id, session, listener);
        bench.scheduler.end_of(id);
    }
    {
        let mut state = bench.leases.state.lock();
        state.runners.insert(RunnerId(THEM.to_owned()), (1, false));
        let row = state.tasks.get_mut(&ended).unwrap();
        row.record.status = TaskStatus::Completed;
        row.owner = None;
    }
    bench.run();
    for beat in 2..30 {
        let them = RunnerId(THEM.to_owned());
        bench
            .leases
            .state
            .lock()
            .runners
            .insert(them, (beat, false));
        bench.pass(1).await;
    }
    let listening: Vec<_> = bench.scheduler.events.followed_tasks();
    let waiting: Vec<_> = bench.scheduler.waiters.lock().keys().cloned().collect();
    assert_eq!((listening, waiting), (vec![open.clone()], vec![open]));
}

#[tokio::test]
async fn commands_that_find_all_places_taken_do_not_ask_the_store() {
    let bench = Bench::new(Work::UntilStopped, Presence::Unknown).await;
    for _ in 0..8 {
        bench.leases.add(TaskType::LocalBash);
    }
    bench.run();
    bench.pass(2).await;
    assert_eq!(bench.started(), 8);
    let claims = bench.leases.state.lock().claims;
    for _ in 0..100 {
        bench.scheduler.made(TaskType::LocalBash);
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.leases.state.lock().claims, claims);
    // An agent has a place.
    bench.leases.add(TaskType::LocalAgent);
    bench.scheduler.made(TaskType::LocalAgent);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.started(), 9);
}
