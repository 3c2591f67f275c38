//! What every back end must do with tasks: one suite, run on each of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod backends;
mod tasks_common;

use std::path::PathBuf;

use codespar_protocol::{
    AttemptOptions, Cost, Labels, OnDependencyFailure, SessionId, TaskId, TaskRecord, TaskSpec,
    TaskStatus, TaskType, TeamItemSpec, Usage, Usd,
};
use codespar_store::{
    Afterwards, Capacity, ClaimScope, Claimed, HeldTask, MAX_TAKE_OVERS, NewTask, Notification,
    Notify, Outstanding, OwnerRule, Projects, StoreError, TaskChange, TaskEnding, TaskFilter,
    TaskLease, Team,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tasks_common::{
    Stores, a_moment, about, after, authority, claimed, ending, gone, holds, made, member, room,
    runner, said, seen, session, spec, task, told,
};

use TaskStatus::{Completed, Failed, Killed, Pending, Running};
use TaskType::{InProcessTeammate, LocalAgent, LocalBash};

on_every_store!(
    a_new_task_reads_back_as_it_was_made,
    tasks_are_recorded_all_or_none,
    a_task_can_begin_where_it_is_made,
    lists_are_in_order_of_creation_and_filtered,
    every_step_of_the_lifecycle_by_hand_is_taken_or_refused_with_both_states,
    every_ending_is_taken_or_refused_with_both_states,
    a_task_that_a_runner_has_can_only_be_stopped,
    a_change_adds_and_takes_away,
    only_one_can_take_a_free_task,
    both_views_of_a_dependency_agree,
    a_task_begins_when_all_it_waits_for_has_completed,
    unknown_tasks_are_refused_by_name,
    cycles_are_refused_and_printed,
    only_a_pending_task_can_be_made_to_wait,
    a_failure_fails_each_dependent_once,
    a_dependent_can_run_in_spite_of_a_failure,
    no_change_of_metadata_changes_what_runs_or_who_runs_it,
    what_a_runner_reports_is_not_for_others_to_write,
    a_process_takes_tasks_of_its_own_project_only,
    a_tree_of_sessions_lists_its_own_tasks,
    a_task_born_behind_a_failed_one_fails_at_once,
    claims_keep_to_capacity_and_the_order_of_creation,
    a_task_of_a_lost_runner_goes_to_another_and_the_first_is_fenced_off,
    a_runner_that_comes_back_keeps_what_nobody_took,
    a_runner_never_takes_what_it_holds_itself,
    a_sign_of_life_undoes_what_an_observer_was_about_to_do,
    a_silent_runner_keeps_its_commands_and_loses_what_can_be_continued,
    a_task_that_loses_its_runner_again_and_again_fails_and_says_so,
    a_task_that_ran_for_long_is_not_held_against,
    a_heartbeat_brings_news_and_what_was_forgotten,
    what_is_to_be_skipped_is_not_taken_and_does_not_hide_the_rest,
    a_released_task_is_as_it_was_before,
    a_task_of_one_runner_is_left_to_it_while_it_lives,
    a_stop_kills_what_waits_and_asks_what_runs,
    steps_are_kept_in_order_and_replaced_in_place,
    only_the_latest_runner_records_steps,
    sums_follow_every_attempt,
    options_of_a_message_are_kept_for_the_attempt_it_starts,
    a_task_that_ends_to_begin_again_is_told_and_pending_unless_it_is_to_stop,
    a_message_continues_a_finished_agent,
    a_restarted_task_is_not_failed_by_what_it_waited_for,
    a_message_is_read_into_one_conversation_once,
    each_attempt_is_told_once,
    endings_without_a_runner_are_told_too,
    a_notification_is_delivered_once,
    writers_do_not_share_paths,
    teams_have_unique_names,
    members_share_a_list_and_each_item_has_one_owner,
    what_a_member_had_taken_goes_back_when_it_fails_or_its_team_is_gone,
    a_message_that_meets_the_end_of_an_agent_continues_it,
    tasks_are_found_by_the_beginning_of_their_id,
    a_removed_session_takes_its_notifications_and_teams_along,
    runners_are_there_until_they_withdraw,
    tasks_of_a_reaped_runner_are_free_at_once,
    old_tasks_are_forgotten_with_all_that_hangs_on_them,
);

fn map(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn ids(records: &[TaskRecord]) -> Vec<TaskId> {
    records.iter().map(|task| task.task_id.clone()).collect()
}

fn to(status: TaskStatus) -> TaskChange {
    TaskChange {
        status: Some(status),
        ..TaskChange::default()
    }
}

fn wait_for(blockers: &[&TaskId]) -> TaskChange {
    TaskChange {
        add_blocked_by: blockers.iter().map(|id| (*id).clone()).collect(),
        ..TaskChange::default()
    }
}

async fn status(store: &dyn Stores, id: &TaskId) -> TaskStatus {
    store.task(id).await.unwrap().status
}

/// An agent takes its mail into a conversation.
async fn read_mail(store: &dyn Stores, id: &TaskId) {
    let conversation = session(store).await;
    let mail = store.mail(id).await.unwrap();
    let read: Vec<u64> = mail.iter().map(|message| message.seq).collect();
    let entry = vec![said("mail")];
    let appended = store.append_from_mail(conversation, 0, entry, &read).await;
    assert_eq!(appended.unwrap().len(), 1);
}

fn lease(id: &TaskId, epoch: u64) -> TaskLease {
    TaskLease {
        task: id.clone(),
        epoch,
    }
}

/// Claims the one task there is and ends it.
async fn ended(store: &dyn Stores, id: &TaskId, how: TaskStatus) {
    let taken = claimed(store, "r", 1).await;
    assert_eq!(taken[0].record.task_id, *id);
    let error = (how != Completed).then_some("exit 1");
    let ending = ending(how, error);
    store.finish_task(id, taken[0].epoch, ending).await.unwrap();
}

/// A task that has come so far.
async fn task_that_is(store: &dyn Stores, wanted: TaskStatus) -> (TaskId, u64) {
    let id = made(store, task(LocalBash)).await;
    match wanted {
        Pending => (id, 0),
        Running => (id, claimed(store, "r", 1).await[0].epoch),
        over => {
            ended(store, &id, over).await;
            (id, 1)
        }
    }
}

async fn a_new_task_reads_back_as_it_was_made(store: &dyn Stores) {
    let session = session(store).await;
    let parent = made(store, task(LocalAgent)).await;
    let new = NewTask {
        description: Some("all of it".to_owned()),
        active_form: Some("trying".to_owned()),
        metadata: map(json!({"prompt": "go", "n": [1, null]})),
        output_file: Some("/state/ünï.txt".into()),
        parent_task_id: Some(parent.clone()),
        blocked_by: vec![parent.clone(), parent.clone()],
        ..told(LocalAgent, session)
    };
    let made = store.create_tasks(vec![new.clone()]).await.unwrap();
    let expected = TaskRecord {
        task_id: new.id.clone(),
        task_type: LocalAgent,
        status: Pending,
        subject: new.subject,
        description: new.description.unwrap_or_default(),
        active_form: new.active_form,
        owner: Some("worker".to_owned()),
        spec: Some(new.spec),
        authority: Some(new.authority),
        reserved_for: None,
        labels: new.labels.clone(),
        on_dependency_failure: OnDependencyFailure::Fail,
        metadata: new.metadata,
        blocks: Vec::new(),
        blocked_by: vec![parent.clone()],
        output_file: Some("/state/ünï.txt".to_owned()),
        created_at: made[0].created_at,
        updated_at: made[0].created_at,
        started_at: None,
        ended_at: None,
        error: None,
        exit_code: None,
        attempt: 0,
        usage: Usage::default(),
        cost_usd: Cost::default(),
        session_id: Some(session),
        parent_task_id: Some(parent),
    };
    assert_eq!(made, std::slice::from_ref(&expected));
    assert_eq!(store.task(&new.id).await.unwrap(), expected);
}

async fn tasks_are_recorded_all_or_none(store: &dyn Stores) {
    let (good, twin) = (task(LocalBash), task(LocalBash));
    let wrong = NewTask {
        spec: spec(LocalAgent),
        ..task(LocalBash)
    };
    let nobody = TaskId::new(LocalAgent);
    let cases = [
        (
            vec![good.clone(), after(LocalBash, &[&nobody])],
            format!("there is no task {nobody}; `codespar task list` shows those there are"),
        ),
        (
            vec![good.clone(), twin.clone(), twin.clone()],
            format!("there already is a task {}", twin.id),
        ),
        (
            vec![good.clone(), wrong.clone()],
            format!(
                "{} cannot be the id of a local_agent task; those begin with `a-`",
                wrong.id
            ),
        ),
    ];
    for (new, expected) in cases {
        let error = store.create_tasks(new).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(store.tasks(TaskFilter::default()).await.unwrap(), []);
    made(store, twin.clone()).await;
    let error = store.create_tasks(vec![good, twin.clone()]).await;
    let expected = format!("there already is a task {}", twin.id);
    assert_eq!(error.unwrap_err().to_string(), expected);
    let there = store.tasks(TaskFilter::default()).await.unwrap();
    assert_eq!(ids(&there), [twin.id]);
}

async fn a_task_can_begin_where_it_is_made(store: &dyn Stores) {
    let here = NewTask {
        start_here: Some(runner("here")),
        ..task(LocalAgent)
    };
    let made = store.create_tasks(vec![here.clone()]).await.unwrap();
    assert_eq!((made[0].status, made[0].attempt), (Running, 1));
    assert_eq!(made[0].started_at, Some(made[0].created_at));
    assert_eq!(claimed(store, "other", 9).await.len(), 0);
    let waiting = NewTask {
        blocked_by: vec![here.id.clone()],
        id: TaskId::new(LocalAgent),
        ..here.clone()
    };
    let error = store.create_tasks(vec![waiting.clone()]).await.unwrap_err();
    let expected = format!("task {} waits for {}", waiting.id, here.id);
    assert_eq!(error.to_string(), expected);
    let ending = ending(Completed, None);
    store.finish_task(&here.id, 1, ending).await.unwrap();
    let made = store.create_tasks(vec![waiting]).await.unwrap();
    assert_eq!(made[0].status, Running);
}

async fn lists_are_in_order_of_creation_and_filtered(store: &dyn Stores) {
    let session = session(store).await;
    let first = made(store, told(LocalBash, session)).await;
    let second = made(store, task(LocalAgent)).await;
    let child = NewTask {
        parent_task_id: Some(second.clone()),
        ..after(LocalBash, &[&first])
    };
    let third = made(store, child).await;
    store.change_task(&second, to(Killed)).await.unwrap();
    let all = TaskFilter::default;
    let cases = [
        (all(), vec![&first, &second, &third]),
        (
            TaskFilter {
                limit: Some(2),
                ..all()
            },
            vec![&second, &third],
        ),
        (
            TaskFilter {
                status: Some(Pending),
                ..all()
            },
            vec![&first, &third],
        ),
        (
            TaskFilter {
                session_id: Some(session),
                ..all()
            },
            vec![&first],
        ),
        (
            TaskFilter {
                parent_task_id: Some(second.clone()),
                ..all()
            },
            vec![&third],
        ),
        (
            TaskFilter {
                task_type: Some(LocalBash),
                status: Some(Pending),
                limit: Some(1),
                ..all()
            },
            vec![&third],
        ),
    ];
    for (filter, expected) in cases {
        let found = store.tasks(filter.clone()).await.unwrap();
        assert_eq!(
            ids(&found).iter().collect::<Vec<_>>(),
            expected,
            "{filter:?}"
        );
        for record in found {
            assert_eq!(store.task(&record.task_id).await.unwrap(), record);
        }
    }
}

async fn every_step_of_the_lifecycle_by_hand_is_taken_or_refused_with_both_states(
    store: &dyn Stores,
) {
    for from in TaskStatus::ALL {
        for next in TaskStatus::ALL {
            let id = made(store, task(LocalBash)).await;
            if from != Pending {
                store.change_task(&id, to(Running)).await.unwrap();
            }
            if from.is_final() {
                store.change_task(&id, to(from)).await.unwrap();
            }
            let outcome = store.change_task(&id, to(next)).await;
            if from.may_become(next) {
                let record = outcome.unwrap();
                assert_eq!(record.status, next);
                assert_eq!(record.ended_at.is_some(), next.is_final());
                continue;
            }
            let expected = format!("task {id} is {from}; it cannot become {next}");
            assert_eq!(outcome.unwrap_err().to_string(), expected);
            assert_eq!(status(store, &id).await, from);
        }
    }
}

async fn every_ending_is_taken_or_refused_with_both_states(store: &dyn Stores) {
    for from in TaskStatus::ALL {
        for next in TaskStatus::ALL {
            let (id, epoch) = task_that_is(store, from).await;
            let outcome = store.finish_task(&id, epoch, ending(next, None)).await;
            if from == Running && next.is_final() {
                outcome.unwrap();
                assert_eq!(status(store, &id).await, next);
            } else {
                let expected = format!("task {id} is {from}; it cannot become {next}");
                assert_eq!(outcome.unwrap_err().to_string(), expected);
                assert_eq!(status(store, &id).await, from);
                // Out of the way of the next one.
                store.stop_task(&id, "next").await.ok();
            }
        }
    }
}

async fn a_task_that_a_runner_has_can_only_be_stopped(store: &dyn Stores) {
    let (id, _) = task_that_is(store, Running).await;
    let error = store.change_task(&id, to(Completed)).await.unwrap_err();
    let expected =
        format!("a runner has task {id}; it can only be stopped: `codespar task stop {id}`");
    assert_eq!(error.to_string(), expected);
}

async fn a_change_adds_and_takes_away(store: &dyn Stores) {
    let new = NewTask {
        metadata: map(json!({"keep": 1, "drop": 2, "turn": 3})),
        ..task(LocalBash)
    };
    let before = store
        .create_tasks(vec![new.clone()])
        .await
        .unwrap()
        .remove(0);
    let change = TaskChange {
        subject: Some("another".to_owned()),
        description: Some("more".to_owned()),
        metadata: map(json!({"drop": null, "turn": "x", "add": {}})),
        owner: Some(Some("ann".to_owned())),
        ..TaskChange::default()
    };
    let changed = store.change_task(&new.id, change).await.unwrap();
    let expected = TaskRecord {
        subject: "another".to_owned(),
        description: "more".to_owned(),
        metadata: map(json!({"keep": 1, "turn": "x", "add": {}})),
        owner: Some("ann".to_owned()),
        updated_at: changed.updated_at,
        ..before
    };
    assert_eq!(changed, expected);
    let back = TaskChange {
        owner: Some(None),
        ..TaskChange::default()
    };
    let given_back = store.change_task(&new.id, back).await.unwrap();
    assert_eq!(given_back.owner, None);
}

async fn only_one_can_take_a_free_task(store: &dyn Stores) {
    let first = made(store, task(LocalBash)).await;
    let second = made(store, after(LocalBash, &[&first])).await;
    let take = |who: &str| TaskChange {
        owner: Some(Some(who.to_owned())),
        owner_must_be_free: OwnerRule::ClaimFree,
        ..TaskChange::default()
    };
    let taken = store.change_task(&first, take("ann")).await.unwrap();
    assert_eq!(taken.owner.as_deref(), Some("ann"));
    let error = store.change_task(&first, take("bob")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("task {first} is taken by ann"));
    let error = store.change_task(&second, take("bob")).await.unwrap_err();
    let expected = format!("task {second} waits for {first}");
    assert_eq!(error.to_string(), expected);
    for step in [Running, Completed] {
        store.change_task(&first, to(step)).await.unwrap();
    }
    store.change_task(&second, take("bob")).await.unwrap();
}

async fn both_views_of_a_dependency_agree(store: &dyn Stores) {
    let [a, b] = [
        made(store, task(LocalBash)).await,
        made(store, task(LocalBash)).await,
    ];
    let c = made(store, after(LocalBash, &[&b, &a])).await;
    let d = made(store, after(LocalBash, &[&a])).await;
    store
        .change_task(&d, wait_for(&[&b, &c, &b]))
        .await
        .unwrap();
    let seen: Vec<_> = store
        .tasks(TaskFilter::default())
        .await
        .unwrap()
        .into_iter()
        .map(|task| (task.task_id, task.blocked_by, task.blocks))
        .collect();
    let expected = [
        (a.clone(), vec![], vec![c.clone(), d.clone()]),
        (b.clone(), vec![], vec![c.clone(), d.clone()]),
        (c.clone(), vec![b.clone(), a.clone()], vec![d.clone()]),
        (d, vec![a, b, c], vec![]),
    ];
    assert_eq!(seen, expected);
}

async fn a_task_begins_when_all_it_waits_for_has_completed(store: &dyn Stores) {
    let [a, b] = [
        made(store, task(LocalBash)).await,
        made(store, task(LocalBash)).await,
    ];
    let c = made(store, after(LocalBash, &[&a, &b])).await;
    let error = store.change_task(&c, to(Running)).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::StillWaiting { id, blockers } if *id == c && blockers.len() == 2),
        "{error}"
    );
    let taken = claimed(store, "r", 9).await;
    assert_eq!(taken.len(), 2);
    for (ready, task) in [(0, &taken[0]), (1, &taken[1])] {
        assert_eq!(claimed(store, "r", 9).await.len(), 0);
        let id = &task.record.task_id;
        let outcome = store.finish_task(id, task.epoch, ending(Completed, None));
        assert_eq!(outcome.await.unwrap(), []);
        let expected = Outstanding {
            pending: 1,
            ready,
            running: 1 - ready,
        };
        assert_eq!(store.outstanding().await.unwrap(), expected);
    }
    assert_eq!(claimed(store, "r", 9).await[0].record.task_id, c);
    // Behind what is done already, nothing is waited for.
    let d = made(store, after(LocalBash, &[&a, &b])).await;
    assert_eq!(claimed(store, "r", 9).await[0].record.task_id, d);
}

async fn unknown_tasks_are_refused_by_name(store: &dyn Stores) {
    let (id, known) = (TaskId::new(LocalAgent), made(store, task(LocalBash)).await);
    let session = session(store).await;
    let team = store.delete_team(session, "red").await.unwrap_err();
    assert_eq!(
        team.to_string(),
        "there is no team `red` in this session; it has none"
    );
    let errors = [
        store.task(&id).await.unwrap_err(),
        store.change_task(&id, to(Killed)).await.unwrap_err(),
        store
            .change_task(&known, wait_for(&[&id]))
            .await
            .unwrap_err(),
        store
            .finish_task(&id, 1, ending(Completed, None))
            .await
            .unwrap_err(),
        store.release_task(&id, 1).await.unwrap_err(),
        store.stop_task(&id, "why").await.unwrap_err(),
        store.record_step(&id, 1, "s", &json!(1)).await.unwrap_err(),
        store.send_mail(&id, "me", "hi").await.unwrap_err(),
        store.mail(&id).await.unwrap_err(),
        store
            .claim_paths(&lease(&id, 1), &["/w".into()])
            .await
            .unwrap_err(),
    ];
    for error in errors {
        let expected = format!("there is no task {id}; `codespar task list` shows those there are");
        assert_eq!(error.to_string(), expected);
    }
}

async fn cycles_are_refused_and_printed(store: &dyn Stores) {
    let expected = |ids: &[&TaskId]| {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        format!("tasks would wait for each other: {}", ids.join(" → "))
    };
    let [a, b] = [
        made(store, task(LocalAgent)).await,
        made(store, task(LocalBash)).await,
    ];
    let error = store.change_task(&a, wait_for(&[&a])).await.unwrap_err();
    assert_eq!(error.to_string(), expected(&[&a, &a]));
    store.change_task(&b, wait_for(&[&a])).await.unwrap();
    let error = store.change_task(&a, wait_for(&[&b])).await.unwrap_err();
    assert_eq!(error.to_string(), expected(&[&a, &b, &a]));
    assert_eq!(store.task(&a).await.unwrap().blocked_by, []);

    let mut own = task(LocalBash);
    own.blocked_by.push(own.id.clone());
    let error = store.create_tasks(vec![own.clone()]).await.unwrap_err();
    assert_eq!(error.to_string(), expected(&[&own.id, &own.id]));

    let mut chain: Vec<NewTask> = vec![task(LocalBash)];
    for place in 0..2000 {
        chain.push(after(LocalBash, &[&chain[place].id]));
    }
    store.create_tasks(chain.clone()).await.unwrap();
    let [first, .., last] = &chain[..] else {
        panic!()
    };
    let change = wait_for(&[&last.id]);
    let error = store.change_task(&first.id, change).await.unwrap_err();
    let mut around: Vec<&TaskId> = vec![&first.id];
    around.extend(chain.iter().rev().map(|task| &task.id));
    assert_eq!(error.to_string(), expected(&around));

    let mut ring = vec![task(LocalBash), task(LocalBash), task(LocalBash)];
    for place in 0..3 {
        let next = ring[(place + 1) % 3].id.clone();
        ring[place].blocked_by = vec![next];
    }
    let error = store.create_tasks(ring.clone()).await.unwrap_err();
    let [x, y, z] = [0, 1, 2].map(|place: usize| &ring[place].id);
    assert_eq!(error.to_string(), expected(&[x, y, z, x]));
}

async fn only_a_pending_task_can_be_made_to_wait(store: &dyn Stores) {
    let (id, _) = task_that_is(store, Running).await;
    let other = made(store, task(LocalBash)).await;
    let error = store.change_task(&id, wait_for(&[&other])).await;
    let expected =
        format!("task {id} is running; only a pending task can be made to wait for others");
    assert_eq!(error.unwrap_err().to_string(), expected);
}

async fn a_failure_fails_each_dependent_once(store: &dyn Stores) {
    let session = session(store).await;
    let root = task(LocalBash);
    let behind = |blockers: &[&TaskId]| NewTask {
        blocked_by: blockers.iter().map(|id| (*id).clone()).collect(),
        ..told(LocalBash, session)
    };
    let (left, right) = (behind(&[&root.id]), behind(&[&root.id]));
    let last = behind(&[&left.id, &right.id]);
    let new = vec![root.clone(), left.clone(), right.clone(), last.clone()];
    store.create_tasks(new).await.unwrap();
    let taken = claimed(store, "r", 9).await;
    let how = ending(Killed, Some("enough"));
    let fallen = store
        .finish_task(&root.id, taken[0].epoch, how)
        .await
        .unwrap();

    let mut sides = [left.id.clone(), right.id.clone()];
    sides.sort();
    assert_eq!(
        fallen,
        [sides[0].clone(), sides[1].clone(), last.id.clone()]
    );
    let waited = format!("it waited for {}, which was killed: enough", root.id);
    for side in &sides {
        let side = store.task(side).await.unwrap();
        assert_eq!((side.status, side.error), (Failed, Some(waited.clone())));
    }
    let error = store.task(&last.id).await.unwrap().error.unwrap();
    let expected = format!(
        "it waited for {}, which failed because {} was killed: enough",
        sides[0], root.id
    );
    assert_eq!(error, expected);
    let told = store.notifications(session).await.unwrap();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(store.outstanding().await.unwrap(), Outstanding::default());
}

async fn a_dependent_can_run_in_spite_of_a_failure(store: &dyn Stores) {
    let [a, b] = [
        made(store, task(LocalBash)).await,
        made(store, task(LocalBash)).await,
    ];
    let anyway = NewTask {
        on_dependency_failure: OnDependencyFailure::Run,
        ..after(LocalBash, &[&a, &b])
    };
    let anyway = made(store, anyway).await;
    let taken = claimed(store, "r", 9).await;
    for task in &taken {
        assert_eq!(status(store, &anyway).await, Pending);
        let how = ending(Failed, Some("no"));
        let fallen = store.finish_task(&task.record.task_id, task.epoch, how);
        assert_eq!(fallen.await.unwrap(), []);
    }
    assert_eq!(claimed(store, "r", 9).await[0].record.task_id, anyway);
    let late = NewTask {
        on_dependency_failure: OnDependencyFailure::Run,
        ..after(LocalBash, &[&a])
    };
    let late = made(store, late).await;
    assert_eq!(claimed(store, "r", 9).await[0].record.task_id, late);
}

async fn no_change_of_metadata_changes_what_runs_or_who_runs_it(store: &dyn Stores) {
    let failed = task_that_is(store, Failed).await.0;
    let behind = made(store, task(LocalBash)).await;
    let id = made(
        store,
        NewTask {
            reserved_for: Some(runner("ann")),
            ..after(LocalBash, &[&behind])
        },
    )
    .await;
    let before = store.task(&id).await.unwrap();
    let forged = map(json!({
        "command": "touch ~/owned",
        "root": "/home/person",
        "cwd": "/home/person",
        "builtin": "dev",
        "team": "red",
        "kind": "shell",
        "runner_only": "bob",
        "on_dependency_failure": "run",
        "spec": {"kind": "shell", "command": "touch ~/owned", "root": "/", "cwd": "/"},
        "authority": {"mode": "bypassPermissions"},
    }));
    let change = TaskChange {
        metadata: forged.clone(),
        ..TaskChange::default()
    };
    let changed = store.change_task(&id, change).await.unwrap();
    let updated_at = changed.updated_at;
    let expected = TaskRecord {
        metadata: forged,
        updated_at,
        ..before
    };
    assert_eq!(changed, expected);
    // It is still reserved, and still fails with what it waits for.
    store.beat(&runner("ann"), &about(), &[]).await.unwrap();
    let change = TaskChange {
        add_blocked_by: vec![failed],
        ..TaskChange::default()
    };
    let changed = store.change_task(&id, change).await.unwrap();
    assert_eq!(changed.status, Failed);
}

async fn what_a_runner_reports_is_not_for_others_to_write(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    for key in ["result", "tool_uses", "duration_ms", "memory_file"] {
        let expected = format!(
            "`{key}` in the metadata of {id} is what its runner reports; choose another name"
        );
        let change = TaskChange {
            metadata: map(json!({key: "forged"})),
            ..TaskChange::default()
        };
        let error = store.change_task(&id, change).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        let new = NewTask {
            metadata: map(json!({key: "forged"})),
            ..task(LocalAgent)
        };
        assert!(store.create_tasks(vec![new]).await.is_err());
    }
    assert_eq!(store.task(&id).await.unwrap().metadata, Map::new());
}

async fn a_process_takes_tasks_of_its_own_project_only(store: &dyn Stores) {
    let of = |root: &str| NewTask {
        authority: authority(root),
        ..task(LocalAgent)
    };
    let (here, there) = (
        made(store, of("/p/a")).await,
        made(store, of("/p/a#b@c")).await,
    );
    let of_project = |root: &str| Capacity {
        projects: Projects::Only([root.into()].into()),
        ..room(9)
    };
    let take = async |root: &str| {
        let (who, room) = (runner("r"), of_project(root));
        let taken = store.claim_tasks(&who, &room).await.unwrap();
        gone(store, "r").await;
        taken
            .into_iter()
            .map(|task| (task.record.task_id, task.taken_from))
            .collect::<Vec<_>>()
    };
    assert_eq!(take("/p").await, []);
    assert_eq!(take("/p/a").await, [(here.clone(), None)]);
    assert_eq!(take("/p/a#b@c").await, [(there.clone(), None)]);
    // A lost one is no different.
    assert_eq!(take("/p").await, []);
    let other = runner("other");
    let lost = store
        .claim_tasks(&other, &of_project("/p/a"))
        .await
        .unwrap();
    assert_eq!(ids_of(&lost), std::slice::from_ref(&here));
    gone(store, "other").await;
    let worker = claimed(store, "w", 9).await;
    let all: Vec<&TaskId> = worker.iter().map(|task| &task.record.task_id).collect();
    assert_eq!(all, [&here, &there]);
}

async fn a_tree_of_sessions_lists_its_own_tasks(store: &dyn Stores) {
    let ours = made(store, task(LocalBash)).await;
    made(store, task(LocalBash)).await;
    let tree = store.task(&ours).await.unwrap().authority.unwrap().tree;
    let filter = TaskFilter {
        tree: Some(tree),
        ..TaskFilter::default()
    };
    assert_eq!(ids(&store.tasks(filter).await.unwrap()), [ours]);
}

async fn a_task_born_behind_a_failed_one_fails_at_once(store: &dyn Stores) {
    let session = session(store).await;
    let (failed, _) = task_that_is(store, Failed).await;
    let one = NewTask {
        blocked_by: vec![failed.clone()],
        ..told(LocalBash, session)
    };
    let two = after(LocalBash, &[&one.id]);
    let made_now = store.create_tasks(vec![one.clone(), two]).await.unwrap();
    assert_eq!((made_now[0].status, made_now[1].status), (Failed, Failed));
    assert_eq!(store.notifications(session).await.unwrap().len(), 1);
    let later = made(store, task(LocalBash)).await;
    let later = store
        .change_task(&later, wait_for(&[&failed]))
        .await
        .unwrap();
    let expected = format!("it waited for {failed}, which failed: exit 1");
    assert_eq!((later.status, later.error), (Failed, Some(expected)));
}

async fn claims_keep_to_capacity_and_the_order_of_creation(store: &dyn Stores) {
    let mut new = Vec::new();
    for _ in 0..3 {
        new.extend([task(LocalAgent), task(LocalBash), task(InProcessTeammate)]);
    }
    store.create_tasks(new.clone()).await.unwrap();
    let capacity = |by_type: &[(TaskType, u32)], total| Capacity {
        by_type: by_type.to_vec(),
        total,
        projects: Projects::All,
        skip: Vec::new(),
        labels: Labels::default(),
        scope: ClaimScope::Everything,
    };
    for (room, places) in [
        (capacity(&[], 9), vec![]),
        (capacity(&[(LocalAgent, 5)], 0), vec![]),
        (
            capacity(&[(LocalBash, 2), (LocalAgent, 1)], 9),
            vec![0, 1, 4],
        ),
        (capacity(&[(LocalBash, 9), (LocalAgent, 9)], 2), vec![3, 6]),
        (
            capacity(&[(LocalBash, 9), (InProcessTeammate, 9)], 9),
            vec![2, 5, 7, 8],
        ),
        (capacity(&[(LocalBash, 9)], 9), vec![]),
    ] {
        let taken = store.claim_tasks(&runner("r"), &room).await.unwrap();
        let taken: Vec<&TaskId> = taken.iter().map(|task| &task.record.task_id).collect();
        let expected: Vec<&TaskId> = places.iter().map(|&place: &usize| &new[place].id).collect();
        assert_eq!(taken, expected, "{room:?}");
    }
}

async fn a_task_of_a_lost_runner_goes_to_another_and_the_first_is_fenced_off(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    let first = claimed(store, "first", 9).await.remove(0);
    assert_eq!(
        (first.epoch, first.taken_from, first.record.attempt),
        (1, None, 1)
    );
    assert_eq!(first.record.status, Running);
    let seen_now = seen(store, "first").await;
    store.reap_runner(&seen_now).await.unwrap();
    let second = claimed(store, "second", 9).await.remove(0);
    assert_eq!(
        (second.epoch, second.taken_from, second.record.attempt),
        (2, Some(runner("first")), 1)
    );
    assert_eq!(second.record.started_at, first.record.started_at);
    let lost =
        format!("another runner has task {id}; this one lost its lease, and nothing was written");
    let refused = [
        store
            .finish_task(&id, 1, ending(Completed, None))
            .await
            .map(drop),
        store.release_task(&id, 1).await,
        store.record_step(&id, 1, "late", &json!(1)).await,
    ];
    for outcome in refused {
        assert_eq!(outcome.unwrap_err().to_string(), lost);
    }
    let beat = store
        .beat(&runner("first"), &about(), &[holds(&id, 1)])
        .await;
    assert_eq!(beat.unwrap().lost, std::slice::from_ref(&id));
    assert_eq!(store.task(&id).await.unwrap(), second.record);
    store
        .finish_task(&id, 2, ending(Completed, None))
        .await
        .unwrap();
}

async fn a_runner_that_comes_back_keeps_what_nobody_took(store: &dyn Stores) {
    let [a, b] = [
        made(store, task(LocalAgent)).await,
        made(store, task(LocalBash)).await,
    ];
    claimed(store, "r", 9).await;
    store.reap_runner(&seen(store, "r").await).await.unwrap();
    let held = [holds(&a, 1), holds(&b, 1)];
    let beat = store.beat(&runner("r"), &about(), &held).await.unwrap();
    assert_eq!(beat.lost, []);
    assert_eq!(claimed(store, "other", 9).await.len(), 0);
    let own = store.finish_task(&a, 1, ending(Completed, None)).await;
    assert_eq!(own.unwrap(), []);
}

async fn a_runner_never_takes_what_it_holds_itself(store: &dyn Stores) {
    made(store, task(LocalAgent)).await;
    assert_eq!(claimed(store, "r", 9).await.len(), 1);
    store.mark_silent(&seen(store, "r").await).await.unwrap();
    assert_eq!(claimed(store, "r", 9).await.len(), 0);
    store.reap_runner(&seen(store, "r").await).await.unwrap();
    assert_eq!(claimed(store, "r", 9).await.len(), 0);
}

async fn a_sign_of_life_undoes_what_an_observer_was_about_to_do(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    claimed(store, "r", 9).await;
    let old = seen(store, "r").await;
    store
        .beat(&runner("r"), &about(), &[holds(&id, 1)])
        .await
        .unwrap();
    store.mark_silent(&old).await.unwrap();
    store.reap_runner(&old).await.unwrap();
    assert!(!seen(store, "r").await.is_silent);
    assert_eq!(claimed(store, "other", 9).await.len(), 0);
}

async fn a_silent_runner_keeps_its_commands_and_loses_what_can_be_continued(store: &dyn Stores) {
    let agent = made(store, task(LocalAgent)).await;
    let command = made(store, task(LocalBash)).await;
    claimed(store, "r", 9).await;
    store.mark_silent(&seen(store, "r").await).await.unwrap();
    let taken = claimed(store, "other", 9).await;
    assert_eq!(ids_of(&taken), std::slice::from_ref(&agent));
    let held = [holds(&agent, 1), holds(&command, 1)];
    let beat = store.beat(&runner("r"), &about(), &held).await.unwrap();
    assert_eq!(beat.lost, [agent]);
    let how = ending(Completed, None);
    store.finish_task(&command, 1, how).await.unwrap();
}

async fn a_task_that_loses_its_runner_again_and_again_fails_and_says_so(store: &dyn Stores) {
    let session = session(store).await;
    let id = made(store, told(LocalAgent, session)).await;
    let lose = async |who: u32| {
        let who = format!("r{who}");
        let taken = store.claim_tasks(&runner(&who), &room(9)).await;
        gone(store, &who).await;
        taken.unwrap().len()
    };
    for who in 0..=MAX_TAKE_OVERS {
        assert_eq!(lose(who).await, 1, "{who}");
    }
    assert_eq!(lose(99).await, 0);
    let record = store.task(&id).await.unwrap();
    assert_eq!(record.status, Failed);
    let error = record.error.unwrap();
    assert!(
        error.starts_with("given up: 10 processes in a row"),
        "{error}"
    );
    assert_eq!(store.notifications(session).await.unwrap().len(), 1);
    // A message is a new attempt, with a new count.
    store.send_mail(&id, "me", "again").await.unwrap();
    assert_eq!(lose(100).await, 1);
    assert_eq!(lose(101).await, 1);
}

async fn a_task_that_ran_for_long_is_not_held_against(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    for round in 0..(2 * MAX_TAKE_OVERS) {
        let who = format!("r{round}");
        let taken = store.claim_tasks(&runner(&who), &room(9)).await;
        let taken = taken.unwrap().remove(0);
        let held = HeldTask {
            is_stable: true,
            ..holds(&id, taken.epoch)
        };
        store.beat(&runner(&who), &about(), &[held]).await.unwrap();
        gone(store, &who).await;
    }
    assert_eq!(claimed(store, "last", 9).await.len(), 1);
}

async fn a_heartbeat_brings_news_and_what_was_forgotten(store: &dyn Stores) {
    let [a, b] = [
        made(store, task(LocalAgent)).await,
        made(store, task(LocalBash)).await,
    ];
    claimed(store, "r", 9).await;
    let held = [holds(&a, 1), holds(&b, 1)];
    let quiet = store.beat(&runner("r"), &about(), &held).await.unwrap();
    assert_eq!(
        (quiet.lost.len(), quiet.stop.len(), quiet.mail.len()),
        (0, 0, 0)
    );
    assert_eq!((quiet.unknown, quiet.others), (vec![], vec![]));
    assert_eq!(claimed(store, "other", 9).await.len(), 0);
    store.send_mail(&a, "me", "faster").await.unwrap();
    store.stop_task(&b, "enough").await.unwrap();
    store.stop_task(&b, "really").await.unwrap();
    let news = store.beat(&runner("r"), &about(), &held).await.unwrap();
    assert_eq!((news.lost, news.mail), (vec![], vec![a.clone()]));
    assert_eq!(news.stop, [(b.clone(), "enough".to_owned())]);
    assert_eq!(news.others, [seen(store, "other").await]);
    let forgotten = store
        .beat(&runner("r"), &about(), &held[..1])
        .await
        .unwrap();
    assert_eq!(forgotten.unknown, [(b, 1)]);
    let other = store.beat(&runner("other"), &about(), &held).await;
    assert_eq!(other.unwrap().lost.len(), 2);
}

async fn what_is_to_be_skipped_is_not_taken_and_does_not_hide_the_rest(store: &dyn Stores) {
    let (first, second) = (
        made(store, task(LocalAgent)).await,
        made(store, task(LocalAgent)).await,
    );
    let room = Capacity {
        skip: vec![first],
        ..room(1)
    };
    let taken = store.claim_tasks(&runner("r"), &room).await.unwrap();
    assert_eq!(ids_of(&taken), [second]);
}

async fn a_released_task_is_as_it_was_before(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    let before = store.task(&id).await.unwrap();
    claimed(store, "r", 9).await;
    store
        .claim_paths(&lease(&id, 1), &["/w".into()])
        .await
        .unwrap();
    store.release_task(&id, 1).await.unwrap();
    let released = store.task(&id).await.unwrap();
    let updated_at = released.updated_at;
    assert_eq!(
        released,
        TaskRecord {
            updated_at,
            ..before
        }
    );
    let again = claimed(store, "r", 9).await.remove(0);
    assert_eq!((again.epoch, again.taken_from), (2, None));
    // A stop that nobody saw in time.
    store.stop_task(&id, "enough").await.unwrap();
    store.release_task(&id, 2).await.unwrap();
    let killed = store.task(&id).await.unwrap();
    assert_eq!(
        (killed.status, killed.error.as_deref()),
        (Killed, Some("enough"))
    );
}

async fn a_task_of_one_runner_is_left_to_it_while_it_lives(store: &dyn Stores) {
    let only = |who: &str| NewTask {
        reserved_for: Some(runner(who)),
        ..task(LocalAgent)
    };
    let ann = runner("ann");
    store.beat(&ann, &about(), &[]).await.unwrap();
    let (hers, free) = (
        made(store, only("ann")).await,
        made(store, only("nobody")).await,
    );
    let taken = claimed(store, "bob", 9).await;
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].record.task_id, free);
    let taken = claimed(store, "ann", 9).await;
    assert_eq!(taken[0].record.task_id, hers);
    assert_eq!(claimed(store, "bob", 9).await.len(), 0);
    store.withdraw_runner(&ann).await.unwrap();
    let taken = claimed(store, "bob", 9).await;
    assert_eq!(taken[0].record.task_id, hers);
    assert_eq!(taken[0].taken_from, Some(ann));
}

async fn a_stop_kills_what_waits_and_asks_what_runs(store: &dyn Stores) {
    let id = made(store, task(LocalBash)).await;
    let behind = made(store, after(LocalBash, &[&id])).await;
    let killed = store.stop_task(&id, "enough").await.unwrap();
    assert_eq!(
        (killed.status, killed.error.as_deref()),
        (Killed, Some("enough"))
    );
    assert_eq!(status(store, &behind).await, Failed);
    let error = store.stop_task(&id, "again").await.unwrap_err();
    let expected = format!("task {id} is killed; there is nothing to stop");
    assert_eq!(error.to_string(), expected);
    let (id, _) = task_that_is(store, Running).await;
    assert_eq!(
        store.stop_task(&id, "enough").await.unwrap().status,
        Running
    );
    let by_hand = made(store, task(LocalBash)).await;
    store.change_task(&by_hand, to(Running)).await.unwrap();
    assert_eq!(
        store.stop_task(&by_hand, "enough").await.unwrap().status,
        Killed
    );
}

async fn steps_are_kept_in_order_and_replaced_in_place(store: &dyn Stores) {
    let (id, epoch) = task_that_is(store, Running).await;
    assert_eq!(store.steps(&id).await.unwrap(), []);
    let large = json!({"answer": "é\"\n\u{0}".repeat(1 << 20)});
    for (step, result) in [
        ("read", json!(["a.rs"])),
        ("generate", json!(null)),
        ("apply", json!(1.5)),
        ("generate", large.clone()),
    ] {
        store.record_step(&id, epoch, step, &result).await.unwrap();
    }
    let (other, other_epoch) = task_that_is(store, Running).await;
    store
        .record_step(&other, other_epoch, "read", &json!({}))
        .await
        .unwrap();
    let done = ending(Completed, None);
    store.finish_task(&id, epoch, done).await.unwrap();
    assert_eq!(
        store.steps(&id).await.unwrap(),
        [
            ("read".to_owned(), json!(["a.rs"])),
            ("generate".to_owned(), large),
            ("apply".to_owned(), json!(1.5)),
        ]
    );
    let steps = store.steps(&other).await.unwrap();
    assert_eq!(steps, [("read".to_owned(), json!({}))]);
}

async fn only_the_latest_runner_records_steps(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    let first = claimed(store, "one", 1).await[0].epoch;
    store
        .record_step(&id, first, "read", &json!(1))
        .await
        .unwrap();
    gone(store, "one").await;
    let second = claimed(store, "two", 1).await[0].epoch;

    let late = store.record_step(&id, first, "read", &json!(2)).await;

    assert!(matches!(late, Err(StoreError::LeaseLost(lost)) if lost == id));
    store
        .record_step(&id, second, "apply", &json!(3))
        .await
        .unwrap();
    assert_eq!(
        store.steps(&id).await.unwrap(),
        [
            ("read".to_owned(), json!(1)),
            ("apply".to_owned(), json!(3))
        ]
    );
    let unknown = TaskId::new(LocalAgent);
    for refused in [
        store.steps(&unknown).await.map(drop),
        store.record_step(&unknown, 1, "read", &json!(1)).await,
    ] {
        assert!(matches!(refused, Err(StoreError::NoSuchTask(id)) if id == unknown));
    }
}

async fn sums_follow_every_attempt(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    let mut how = ending(Failed, Some("cut"));
    how.exit_code = Some(-9);
    how.metadata = map(json!({"final": "text"}));
    claimed(store, "r", 9).await;
    store.finish_task(&id, 1, how).await.unwrap();
    let once = store.task(&id).await.unwrap();
    assert_eq!((once.exit_code, once.usage.input_tokens), (Some(-9), 5));
    assert_eq!(once.metadata, map(json!({"final": "text"})));
    store.send_mail(&id, "me", "go on").await.unwrap();
    claimed(store, "r", 9).await;
    read_mail(store, &id).await;
    let mut how = ending(Completed, None);
    how.usage.output_tokens = u64::MAX;
    store.finish_task(&id, 2, how).await.unwrap();
    let twice = store.task(&id).await.unwrap();
    assert_eq!(
        (twice.exit_code, twice.error, twice.attempt),
        (None, None, 2)
    );
    assert_eq!(twice.cost_usd, Cost::Known(Usd::from_nanos(14)));
    let most = i64::MAX.unsigned_abs();
    assert_eq!(
        (twice.usage.input_tokens, twice.usage.output_tokens),
        (10, most)
    );
}

async fn options_of_a_message_are_kept_for_the_attempt_it_starts(store: &dyn Stores) {
    let id = made(store, task(LocalAgent)).await;
    ended(store, &id, Failed).await;
    let options = AttemptOptions {
        model: Some("opus".to_owned()),
        max_turns: Some(3),
        max_wall_seconds: None,
    };
    let again = store.continue_with(&id, "me", "go on", &options).await;
    assert_eq!(again.unwrap().attempt, 2);
    let kept = (
        AttemptOptions::step(2),
        json!({"model": "opus", "max_turns": 3}),
    );
    assert_eq!(store.steps(&id).await.unwrap(), std::slice::from_ref(&kept));
    // A message to an attempt that is not over joins it.
    let refused = store.continue_with(&id, "me", "more", &options).await;
    let rule = "another model or limit can be given when it is over";
    let expected = format!("task {id} is pending; {rule}");
    assert_eq!(refused.unwrap_err().to_string(), expected);
    assert_eq!(store.mail(&id).await.unwrap().len(), 1);
    assert_eq!(store.steps(&id).await.unwrap(), [kept]);
}

async fn a_task_that_ends_to_begin_again_is_told_and_pending_unless_it_is_to_stop(
    store: &dyn Stores,
) {
    for stop in [false, true] {
        let id = made(store, task(LocalBash)).await;
        let claimed = claimed(store, "r", 9).await.remove(0);
        if stop {
            store.stop_task(&id, "enough").await.unwrap();
        }
        let ending = TaskEnding {
            afterwards: Afterwards::Again,
            ..ending(Completed, None)
        };
        store.finish_task(&id, claimed.epoch, ending).await.unwrap();
        let record = store.task(&id).await.unwrap();
        let expected = if stop { (Completed, 1) } else { (Pending, 2) };
        assert_eq!((record.status, record.attempt), expected);
        if !stop {
            store.stop_task(&id, "enough").await.unwrap();
        }
    }
}

async fn a_message_continues_a_finished_agent(store: &dyn Stores) {
    for over in [Completed, Failed, Killed] {
        let id = made(store, task(LocalAgent)).await;
        ended(store, &id, over).await;
        let again = store.send_mail(&id, "me", "go on").await.unwrap();
        assert_eq!((again.status, again.attempt), (Pending, 2));
        assert_eq!(
            (again.started_at, again.ended_at, again.error),
            (None, None, None)
        );
        let taken = claimed(store, "r", 9).await.remove(0);
        assert_eq!(
            (taken.epoch, taken.taken_from, taken.record.attempt),
            (2, None, 2)
        );
        let more = store.send_mail(&id, "you", "and on").await.unwrap();
        assert_eq!((more.status, more.attempt), (Running, 2));
        let mail = store.mail(&id).await.unwrap();
        let read: Vec<_> = mail
            .iter()
            .map(|m| (m.from.as_str(), m.body.as_str()))
            .collect();
        let note =
            (over == Killed).then_some(("", "You were stopped before you were done: exit 1"));
        let messages = [("me", "go on"), ("you", "and on")];
        assert_eq!(read, Vec::from_iter(note.into_iter().chain(messages)));
        let shell = made(store, task(LocalBash)).await;
        ended(store, &shell, over).await;
        let error = store.send_mail(&shell, "me", "go on").await.unwrap_err();
        let expected =
            format!("task {shell} is {over}; only an agent can be continued with a message");
        assert_eq!(error.to_string(), expected);
        assert_eq!(store.mail(&shell).await.unwrap(), []);
    }
}

async fn a_restarted_task_is_not_failed_by_what_it_waited_for(store: &dyn Stores) {
    let [a, b] = [
        made(store, task(LocalBash)).await,
        made(store, task(LocalBash)).await,
    ];
    let c = made(store, after(LocalAgent, &[&a, &b])).await;
    let taken = claimed(store, "r", 9).await;
    assert_eq!(taken.len(), 2);
    store
        .finish_task(&a, 1, ending(Failed, None))
        .await
        .unwrap();
    assert_eq!(status(store, &c).await, Failed);
    store.send_mail(&c, "me", "anyway").await.unwrap();
    let fallen = store
        .finish_task(&b, 1, ending(Failed, None))
        .await
        .unwrap();
    assert_eq!(fallen, []);
    assert_eq!(claimed(store, "r", 9).await[0].record.task_id, c);
}

async fn a_message_is_read_into_one_conversation_once(store: &dyn Stores) {
    let transcript = session(store).await;
    let id = made(store, task(LocalAgent)).await;
    for body in ["one", "two"] {
        store.send_mail(&id, "me", body).await.unwrap();
    }
    let mail = store.mail(&id).await.unwrap();
    let read = [mail[0].seq];
    let moved = store
        .append_from_mail(transcript, 7, vec![said("one")], &read)
        .await;
    assert!(
        matches!(moved, Err(StoreError::MovedOn { found: 0, .. })),
        "{moved:?}"
    );
    assert_eq!(store.mail(&id).await.unwrap(), mail);
    let entries = store
        .append_from_mail(transcript, 0, vec![said("one")], &read)
        .await;
    assert_eq!(entries.unwrap()[0].seq, 1);
    assert_eq!(store.mail(&id).await.unwrap(), mail[1..]);
    let both = [mail[1].seq, mail[0].seq];
    let error = store
        .append_from_mail(transcript, 1, vec![said("again")], &both)
        .await;
    let expected = format!(
        "message {} no longer waits to be delivered; nothing was written",
        mail[0].seq
    );
    assert_eq!(error.unwrap_err().to_string(), expected);
    assert_eq!(store.mail(&id).await.unwrap(), mail[1..]);
    assert_eq!(store.session(transcript).await.unwrap().last_seq, 1);
    // Work goes on after a refusal.
    store
        .append(transcript, 1, vec![said("next")])
        .await
        .unwrap();
}

async fn each_attempt_is_told_once(store: &dyn Stores) {
    let session = session(store).await;
    let id = made(store, told(LocalAgent, session)).await;
    let silent = NewTask {
        notify: Notify::Nobody,
        ..told(LocalAgent, session)
    };
    let silent = made(store, silent).await;
    for attempt in 1..=2 {
        for task in claimed(store, "r", 9).await {
            let how = ending(Completed, None);
            store
                .finish_task(&task.record.task_id, task.epoch, how)
                .await
                .unwrap();
        }
        let told = store.notifications(session).await.unwrap();
        assert_eq!(told.len(), usize::try_from(attempt).unwrap());
        let expected = Notification {
            seq: told.last().unwrap().seq,
            task_id: id.clone(),
            attempt,
            body: "it completed".to_owned(),
        };
        assert_eq!(told.last(), Some(&expected));
        for agent in [&id, &silent] {
            store.send_mail(agent, "me", "again").await.unwrap();
        }
    }
}

async fn endings_without_a_runner_are_told_too(store: &dyn Stores) {
    let session = session(store).await;
    let first = NewTask {
        subject: "a <b> &\n\"c\"".to_owned(),
        ..told(LocalAgent, session)
    };
    let second = NewTask {
        blocked_by: vec![first.id.clone()],
        ..told(LocalBash, session)
    };
    let (one, two) = (first.id.clone(), second.id.clone());
    store.create_tasks(vec![first, second]).await.unwrap();
    store.stop_task(&one, "it's enough").await.unwrap();
    let told = store.notifications(session).await.unwrap();
    let bodies: Vec<&str> = told.iter().map(|told| told.body.as_str()).collect();
    let expected = [
        format!(
            "<task-notification>\n<task-id>{one}</task-id>\n<status>killed</status>\n\
             <summary>Agent \"a &lt;b&gt; &amp; \"c\"\" was stopped</summary>\n\
             <reason>it's enough</reason>\n\
             </task-notification>"
        ),
        format!(
            "<task-notification>\n<task-id>{two}</task-id>\n<status>failed</status>\n\
             <summary>Command \"try it\" failed: it waited for {one}, which was killed: it's enough</summary>\n\
             </task-notification>"
        ),
    ];
    assert_eq!(bodies, expected);
    // Killed before it began, then continued, then killed again: three ends, three attempts.
    store.send_mail(&one, "me", "do").await.unwrap();
    claimed(store, "r", 9).await;
    store.release_task(&one, 1).await.unwrap();
    store.stop_task(&one, "no").await.unwrap();
    store.send_mail(&one, "me", "do").await.unwrap();
    store.stop_task(&one, "no").await.unwrap();
    let told = store.notifications(session).await.unwrap();
    let told: Vec<u32> = told
        .iter()
        .filter(|told| told.task_id == one)
        .map(|told| told.attempt)
        .collect();
    assert_eq!(told, [0, 1, 2]);
}

async fn a_notification_is_delivered_once(store: &dyn Stores) {
    let (transcript, other) = (session(store).await, session(store).await);
    for _ in 0..2 {
        let id = made(store, told(LocalBash, transcript)).await;
        store.stop_task(&id, "enough").await.unwrap();
    }
    let told = store.notifications(transcript).await.unwrap();
    let all: Vec<u64> = told.iter().map(|told| told.seq).collect();
    let expected = |seq: u64| {
        format!("notification {seq} no longer waits to be delivered; nothing was written")
    };
    let error = store.append_notified(other, 0, vec![said("x")], &all).await;
    assert_eq!(error.unwrap_err().to_string(), expected(all[0]));
    let bodies: Vec<_> = (0..200).map(|n| said(&n.to_string())).collect();
    let moved = store
        .append_notified(transcript, 1, bodies.clone(), &all)
        .await;
    assert!(
        matches!(moved, Err(StoreError::MovedOn { .. })),
        "{moved:?}"
    );
    assert_eq!(store.notifications(transcript).await.unwrap(), told);
    let entries = store
        .append_notified(transcript, 0, bodies, &all[..1])
        .await;
    assert_eq!(entries.unwrap().len(), 200);
    let error = store
        .append_notified(transcript, 200, vec![said("y")], &[all[1], all[0]])
        .await;
    assert_eq!(error.unwrap_err().to_string(), expected(all[0]));
    assert_eq!(store.notifications(transcript).await.unwrap(), told[1..]);
    assert_eq!(store.entries(transcript, 1).await.unwrap().len(), 200);
}

async fn writers_do_not_share_paths(store: &dyn Stores) {
    let path = PathBuf::from;
    let [a, b] = [
        made(store, task(LocalAgent)).await,
        made(store, task(LocalAgent)).await,
    ];
    let waiting = store.claim_paths(&lease(&a, 0), &[path("/w")]).await;
    let waiting = waiting.unwrap_err();
    let expected = format!("task {a} is pending; only a running task can claim paths");
    assert_eq!(waiting.to_string(), expected);
    claimed(store, "r", 9).await;
    let (by_a, by_b) = (lease(&a, 1), lease(&b, 1));
    store
        .claim_paths(&by_a, &[path("/w/src/a"), path("/w/./docs/x/..")])
        .await
        .unwrap();
    store
        .claim_paths(&by_a, &[path("/w/src/a"), path("/w/src/a/mod.rs")])
        .await
        .unwrap();
    for (wanted, held) in [
        ("/w/src/a", "/w/src/a"),
        ("/w/src/a/deep/file.rs", "/w/src/a"),
        ("/w/src", "/w/src/a"),
        ("/w/docs", "/w/docs"),
        ("/", "/w/docs"),
    ] {
        let error = store
            .claim_paths(&by_b, &[path("/free"), path(wanted)])
            .await
            .unwrap_err();
        let expected = format!("{wanted} cannot be claimed: task {a} holds {held}");
        assert_eq!(error.to_string(), expected);
    }
    let error = store.claim_paths(&by_b, &[path("src")]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "src cannot be claimed: it is not an absolute path"
    );
    store
        .claim_paths(&by_b, &[path("/w/src/a.rs"), path("/w/src/ab")])
        .await
        .unwrap();
    let error = store
        .claim_paths(&by_a, &[path("/free"), path("/w/src/ab")])
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::PathClaimed { .. }), "{error}");
    store
        .finish_task(&a, 1, ending(Completed, None))
        .await
        .unwrap();
    store.claim_paths(&by_b, &[path("/")]).await.unwrap();
}

async fn teams_have_unique_names(store: &dyn Stores) {
    let (here, there) = (session(store).await, session(store).await);
    let team = |name: &str, members: &[&str]| Team {
        name: name.to_owned(),
        members: members
            .iter()
            .map(|name| ((*name).to_owned(), TaskId::new(InProcessTeammate)))
            .collect(),
    };
    let (red, blue) = (team("red", &["zoe", "ann"]), team("blue", &[]));
    for new in [&red, &blue] {
        store
            .create_team(here, new.clone(), Vec::new())
            .await
            .unwrap();
    }
    let error = store
        .create_team(here, team("red", &["eve"]), Vec::new())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "there already is a team `red` in this session"
    );
    store
        .create_team(there, team("red", &[]), Vec::new())
        .await
        .unwrap();
    assert_eq!(
        store.teams(here).await.unwrap(),
        [blue.clone(), red.clone()]
    );
    let error = store.delete_team(here, "green").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no team `green` in this session; it has blue, red"
    );
    assert_eq!(store.delete_team(here, "red").await.unwrap(), red);
    assert_eq!(store.teams(here).await.unwrap(), [blue]);
    let nowhere = SessionId::new();
    let error = store
        .create_team(nowhere, team("red", &[]), Vec::new())
        .await
        .unwrap_err();
    assert!(
        matches!(error, StoreError::NoSuchSession(id) if id == nowhere),
        "{error}"
    );
}

/// A team of two that have come to their end, and tasks on its list, each after those before it
/// that are named by their place.
async fn team_at_rest(
    store: &dyn Stores,
    items: &[&[usize]],
) -> (SessionId, [TaskId; 2], Vec<TaskId>) {
    let here = session(store).await;
    let of_team = |spec: TaskSpec| NewTask {
        spec,
        ..told(InProcessTeammate, here)
    };
    let members = ["ann", "bob"].map(|name| of_team(member("red", name)));
    let ids = members.clone().map(|member| member.id);
    let team = Team {
        name: "red".to_owned(),
        members: vec![
            ("ann".to_owned(), ids[0].clone()),
            ("bob".to_owned(), ids[1].clone()),
        ],
    };
    let made = store.create_team(here, team, members.to_vec()).await;
    assert_eq!(made.unwrap().len(), 2);
    for task in claimed(store, "r", 9).await {
        let ending = ending(Completed, None);
        let id = &task.record.task_id;
        store.finish_task(id, task.epoch, ending).await.unwrap();
    }
    let mut list: Vec<NewTask> = Vec::new();
    for after in items {
        let mut item = of_team(TaskSpec::TeamItem(TeamItemSpec { team: "red".into() }));
        item.blocked_by = after.iter().map(|place| list[*place].id.clone()).collect();
        list.push(item);
    }
    let made = store.create_tasks(list).await.unwrap();
    (here, ids, crate::ids(&made))
}

async fn owner(store: &dyn Stores, id: &TaskId) -> (TaskStatus, Option<String>) {
    let task = store.task(id).await.unwrap();
    (task.status, task.owner)
}

fn by(name: &str) -> (TaskStatus, Option<String>) {
    (Running, Some(name.to_owned()))
}

async fn members_share_a_list_and_each_item_has_one_owner(store: &dyn Stores) {
    let (_, [ann, bob], items) = team_at_rest(store, &[&[], &[], &[], &[0]]).await;
    // No runner takes them, and nobody waits for them.
    assert_eq!(claimed(store, "r", 9).await.len(), 0);
    assert_eq!(store.outstanding().await.unwrap(), Outstanding::default());

    let woken = store.assign_items().await.unwrap();
    assert_eq!(woken, [ann.clone(), bob.clone()]);
    assert_eq!(store.assign_items().await.unwrap(), []);
    assert_eq!(owner(store, &items[0]).await, by("ann"));
    assert_eq!(owner(store, &items[1]).await, by("bob"));
    assert_eq!(owner(store, &items[2]).await, (Pending, None));
    let mail = store.mail(&ann).await.unwrap();
    assert_eq!((mail.len(), mail[0].from.as_str()), (1, "the task list"));
    let first = format!("{} is yours: try it\n", items[0]);
    assert!(mail[0].body.starts_with(&first), "{}", mail[0].body);

    // One at work takes the next by itself; what waits for another is not free.
    let running = claimed(store, "r", 9).await;
    assert_eq!(running.len(), 2);
    let third = store.take_item(&bob, None).await.unwrap().unwrap();
    assert_eq!(third.task_id, items[2]);
    assert_eq!(store.take_item(&bob, None).await.unwrap(), None);
    let error = store.take_item(&bob, Some(&items[0])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("task {} is taken by ann", items[0])
    );
    let error = store.take_item(&bob, Some(&items[3])).await.unwrap_err();
    assert!(matches!(error, StoreError::StillWaiting { .. }), "{error}");

    store.change_task(&items[0], to(Completed)).await.unwrap();
    let fourth = store.take_item(&bob, None).await.unwrap().unwrap();
    assert_eq!(fourth.task_id, items[3]);
    // By hand too, what is taken is begun, and what is given back is as it was.
    let give = |owner: Option<&str>| TaskChange {
        owner: Some(owner.map(str::to_owned)),
        ..TaskChange::default()
    };
    store.change_task(&items[3], give(None)).await.unwrap();
    assert_eq!(owner(store, &items[3]).await, (Pending, None));
    store
        .change_task(&items[3], give(Some("ann")))
        .await
        .unwrap();
    assert_eq!(owner(store, &items[3]).await, by("ann"));
    // An item is not an agent that could be continued.
    let error = store.send_mail(&items[0], "x", "y").await.unwrap_err();
    assert!(matches!(error, StoreError::WrongState { .. }), "{error}");
}

async fn what_a_member_had_taken_goes_back_when_it_fails_or_its_team_is_gone(store: &dyn Stores) {
    let (here, [ann, bob], items) = team_at_rest(store, &[&[], &[]]).await;
    store.assign_items().await.unwrap();
    let running = claimed(store, "r", 9).await;
    assert_eq!(owner(store, &items[0]).await, by("ann"));
    let failed = ending(Failed, Some("no more turns"));
    store
        .finish_task(&ann, running[0].epoch, failed)
        .await
        .unwrap();
    assert_eq!(owner(store, &items[0]).await, (Pending, None));
    // One that failed is not woken for it; one at work takes it.
    assert_eq!(store.assign_items().await.unwrap(), []);
    let taken = store.take_item(&bob, None).await.unwrap().unwrap();
    assert_eq!(taken.task_id, items[0]);

    // One that rests can be stopped: then it is not woken either, but by a message.
    store.change_task(&items[0], to(Completed)).await.unwrap();
    store.send_mail(&ann, "bob", "go on").await.unwrap();
    let again = claimed(store, "r", 9).await;
    read_mail(store, &ann).await;
    let rest = ending(Completed, None);
    store.finish_task(&ann, again[0].epoch, rest).await.unwrap();
    let stopped = store.stop_task(&ann, "enough").await.unwrap();
    assert_eq!(
        (stopped.status, stopped.error.as_deref()),
        (Killed, Some("enough"))
    );
    let more = TaskChange {
        owner: Some(None),
        ..TaskChange::default()
    };
    store.change_task(&items[1], more).await.unwrap();
    assert_eq!(store.assign_items().await.unwrap(), []);
    store.take_item(&bob, None).await.unwrap().unwrap();

    store.delete_team(here, "red").await.unwrap();
    assert_eq!(owner(store, &items[1]).await, (Pending, None));
    assert_eq!(store.take_item(&bob, None).await.unwrap(), None);
    assert_eq!(store.assign_items().await.unwrap(), []);
    assert_eq!(store.task(&items[0]).await.unwrap().status, Completed);
}

async fn a_message_that_meets_the_end_of_an_agent_continues_it(store: &dyn Stores) {
    for (how, then) in [(Completed, Pending), (Failed, Failed), (Killed, Killed)] {
        let agent = made(store, task(LocalAgent)).await;
        let running = claimed(store, "r", 9).await;
        store
            .send_mail(&agent, "me", "one more thing")
            .await
            .unwrap();
        let ending = ending(how, None);
        store
            .finish_task(&agent, running[0].epoch, ending)
            .await
            .unwrap();
        assert_eq!(status(store, &agent).await, then, "{how}");
        assert_eq!(store.mail(&agent).await.unwrap().len(), 1);
        if then == Pending {
            store.stop_task(&agent, "enough").await.unwrap();
        }
    }
}

async fn tasks_are_found_by_the_beginning_of_their_id(store: &dyn Stores) {
    let mut made = Vec::new();
    for id in ["b-00ff0001", "b-00ff0002", "b-00fe0001", "a-00ff0001"] {
        let id: TaskId = id.parse().unwrap();
        let kind = id.task_type().unwrap();
        made.push(NewTask { id, ..task(kind) });
    }
    store.create_tasks(made).await.unwrap();
    for (prefix, found) in [
        ("b-00ff", &["b-00ff0001", "b-00ff0002"][..]),
        ("b-00fe0001", &["b-00fe0001"]),
        ("a-", &["a-00ff0001"]),
        ("b-01", &[]),
    ] {
        let filter = TaskFilter {
            id_prefix: Some(prefix.to_owned()),
            ..TaskFilter::default()
        };
        let tasks = store.tasks(filter).await.unwrap();
        let ids: Vec<&str> = tasks.iter().map(|task| task.task_id.as_str()).collect();
        assert_eq!(ids, found, "{prefix}");
    }
}

async fn a_removed_session_takes_its_notifications_and_teams_along(store: &dyn Stores) {
    let gone = session(store).await;
    let over = made(store, told(LocalAgent, gone)).await;
    let left = made(store, told(LocalAgent, gone)).await;
    store.stop_task(&over, "enough").await.unwrap();
    let team = Team {
        name: "red".to_owned(),
        members: vec![("ann".to_owned(), left.clone())],
    };
    store.create_team(gone, team, Vec::new()).await.unwrap();
    let before = store.tasks(TaskFilter::default()).await.unwrap();
    store.remove_session(gone).await.unwrap();
    assert_eq!(store.notifications(gone).await.unwrap(), []);
    assert_eq!(store.teams(gone).await.unwrap(), []);
    assert_eq!(store.tasks(TaskFilter::default()).await.unwrap(), before);
    // It can still end, with nobody to tell.
    ended(store, &left, Completed).await;
    assert_eq!(store.notifications(gone).await.unwrap(), []);
}

async fn runners_are_there_until_they_withdraw(store: &dyn Stores) {
    let (one, two) = (runner("one"), runner("two"));
    assert_eq!(store.beat(&one, &about(), &[]).await.unwrap().others, []);
    assert_eq!(store.beat(&one, &about(), &[]).await.unwrap().others, []);
    let others = store.beat(&two, &about(), &[]).await.unwrap().others;
    assert_eq!((&others[0].id, others[0].beats, others.len()), (&one, 2, 1));
    store.withdraw_runner(&one).await.unwrap();
    assert_eq!(store.beat(&two, &about(), &[]).await.unwrap().others, []);
}

async fn tasks_of_a_reaped_runner_are_free_at_once(store: &dyn Stores) {
    let hers = made(store, task(LocalBash)).await;
    let epoch = claimed(store, "ann", 1).await[0].epoch;
    let his = made(store, task(LocalAgent)).await;
    claimed(store, "bob", 1).await;
    store.reap_runner(&seen(store, "ann").await).await.unwrap();
    let taken = claimed(store, "carl", 9).await;
    assert_eq!(taken.len(), 1, "{his} is held");
    assert_eq!(taken[0].record.task_id, hers);
    assert_eq!(taken[0].taken_from, Some(runner("ann")));
    let late = store
        .finish_task(&hers, epoch, ending(Completed, None))
        .await;
    assert!(late.is_err(), "whoever was reaped writes nothing");
}

async fn old_tasks_are_forgotten_with_all_that_hangs_on_them(store: &dyn Stores) {
    let session = session(store).await;
    let old = made(store, told(LocalAgent, session)).await;
    store.send_mail(&old, "me", "hi").await.unwrap();
    let behind = made(store, after(LocalAgent, &[&old])).await;
    let epoch = claimed(store, "r", 1).await[0].epoch;
    read_mail(store, &old).await;
    store
        .record_step(&old, epoch, "read", &json!(1))
        .await
        .unwrap();
    store
        .finish_task(&old, epoch, ending(Completed, None))
        .await
        .unwrap();
    a_moment().await;
    let between = Timestamp::now();
    let young = made(store, told(LocalAgent, session)).await;
    store.stop_task(&young, "enough").await.unwrap();
    assert_eq!(
        store.remove_tasks_before(between).await.unwrap(),
        std::slice::from_ref(&old)
    );
    let left = store.tasks(TaskFilter::default()).await.unwrap();
    assert_eq!(ids(&left), [behind.clone(), young.clone()]);
    assert_eq!(left[0].blocked_by, []);
    assert!(matches!(
        store.steps(&old).await,
        Err(StoreError::NoSuchTask(_))
    ));
    let told = store.notifications(session).await.unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].task_id, young);
    assert_eq!(store.remove_tasks_before(between).await.unwrap(), []);
    assert_eq!(claimed(store, "r", 9).await[0].record.task_id, behind);
}

fn ids_of(taken: &[Claimed]) -> Vec<TaskId> {
    let id = |task: &Claimed| task.record.task_id.clone();
    taken.iter().map(id).collect()
}
