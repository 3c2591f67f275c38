//! What the agent of a lost process would still write beside its own conversation.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

#[macro_use]
mod backends;
mod tasks_common;

use codespar_protocol::{
    Answer, ClarificationRequest, QuestionRequest, SessionId, TaskStatus, TaskType,
};
use codespar_store::{
    Database, NewQuestion, NewTask, QuestionFilter, StoreError, TaskFilter, TaskLease, Team,
};
use jiff::{SignedDuration, Timestamp};
use tasks_common::{claimed, ending, gone, made, member, runner, session, task};

on_every_store!(
    a_lost_attempt_makes_no_tasks,
    a_lost_attempt_makes_no_team,
    a_lost_attempt_claims_no_paths,
    a_lost_attempt_asks_nothing_and_hears_no_answer,
    an_attempt_that_has_ended_makes_and_asks_nothing,
);

async fn lease(store: &dyn Database, who: &str) -> TaskLease {
    let taken = claimed(store, who, 1).await.remove(0);
    TaskLease {
        task: taken.record.task_id,
        epoch: taken.epoch,
    }
}

async fn running(store: &dyn Database) -> TaskLease {
    made(store, task(TaskType::LocalAgent)).await;
    lease(store, "frozen").await
}

/// The lease that a frozen process believes it has, and the one of the process that took over.
async fn taken_over(store: &dyn Database) -> (TaskLease, TaskLease) {
    let lost = running(store).await;
    gone(store, "frozen").await;
    let current = lease(store, "other").await;
    assert_eq!(current.task, lost.task);
    (lost, current)
}

/// As an agent starts one that it waits for: it would run, and cost money, at once.
fn child(maker: &TaskLease) -> NewTask {
    NewTask {
        parent_task_id: Some(maker.task.clone()),
        made_under: Some(maker.clone()),
        start_here: Some(runner("here")),
        ..task(TaskType::LocalAgent)
    }
}

fn question(session_id: SessionId, asker: &TaskLease) -> NewQuestion {
    NewQuestion {
        session_id,
        task_id: Some(asker.task.clone()),
        asked_under: Some(asker.clone()),
        project_root: "/work".into(),
        key: "call-1".to_owned(),
        request: QuestionRequest::Clarification(ClarificationRequest {
            text: "which file?".to_owned(),
        }),
        expires_at: Timestamp::now() + SignedDuration::from_hours(1),
    }
}

async fn tasks(store: &dyn Database) -> usize {
    store.tasks(TaskFilter::default()).await.unwrap().len()
}

async fn questions(store: &dyn Database, session: SessionId) -> usize {
    let all = store.questions(QuestionFilter::OfSession(session)).await;
    all.unwrap().len()
}

async fn a_lost_attempt_makes_no_tasks(store: &dyn Database) {
    let (lost, current) = taken_over(store).await;
    // The first of them is nobody's: all or none.
    let new = vec![task(TaskType::LocalBash), child(&lost), child(&lost)];
    let refused = store.create_tasks(new).await;
    assert!(
        matches!(&refused, Err(StoreError::LeaseLost(of)) if *of == lost.task),
        "{refused:?}"
    );
    assert_eq!(tasks(store).await, 1);
    let made = store.create_tasks(vec![child(&current)]).await.unwrap();
    assert_eq!(made[0].status, TaskStatus::Running);
}

async fn a_lost_attempt_makes_no_team(store: &dyn Database) {
    let (lost, _) = taken_over(store).await;
    let lead = session(store).await;
    let one = NewTask {
        spec: member("red", "one"),
        start_here: None,
        id: task(TaskType::InProcessTeammate).id,
        ..child(&lost)
    };
    let team = Team {
        name: "red".to_owned(),
        members: vec![("one".to_owned(), one.id.clone())],
    };
    let refused = store.create_team(lead, team, vec![one]).await;
    assert!(
        matches!(&refused, Err(StoreError::LeaseLost(of)) if *of == lost.task),
        "{refused:?}"
    );
    assert_eq!(tasks(store).await, 1);
    assert_eq!(store.teams(lead).await.unwrap(), []);
}

async fn a_lost_attempt_claims_no_paths(store: &dyn Database) {
    let (lost, current) = taken_over(store).await;
    let path = ["/w/a".into()];
    let refused = store.claim_paths(&lost, &path).await;
    assert!(
        matches!(&refused, Err(StoreError::LeaseLost(of)) if *of == lost.task),
        "{refused:?}"
    );
    // Nothing was claimed: another task can have it.
    made(store, task(TaskType::LocalAgent)).await;
    let second = lease(store, "other").await;
    assert_ne!(second.task, current.task);
    store.claim_paths(&second, &path).await.unwrap();
}

async fn a_lost_attempt_asks_nothing_and_hears_no_answer(store: &dyn Database) {
    let (lost, current) = taken_over(store).await;
    let session = session(store).await;
    let refused = store.ask_question(question(session, &lost)).await;
    assert!(
        matches!(&refused, Err(StoreError::LeaseLost(of)) if *of == lost.task),
        "{refused:?}"
    );
    assert_eq!(questions(store, session).await, 0);
    let asked = store.ask_question(question(session, &current)).await;
    let yes = Answer::Text {
        text: "a.rs".to_owned(),
    };
    let id = asked.unwrap().id;
    store.answer_question(&id, &yes, "ann").await.unwrap();
    let refused = store.ask_question(question(session, &lost)).await;
    assert!(
        matches!(refused, Err(StoreError::LeaseLost(_))),
        "the one that has the task acts on the answer: {refused:?}"
    );
    let again = store.ask_question(question(session, &current)).await;
    assert_eq!(again.unwrap().answer, Some(yes));
}

async fn an_attempt_that_has_ended_makes_and_asks_nothing(store: &dyn Database) {
    let over = running(store).await;
    let end = ending(TaskStatus::Completed, None);
    store
        .finish_task(&over.task, over.epoch, end)
        .await
        .unwrap();
    let refused = store.create_tasks(vec![child(&over)]).await;
    assert!(
        matches!(refused, Err(StoreError::NoSuchStep { .. })),
        "{refused:?}"
    );
    let session = session(store).await;
    let refused = store.ask_question(question(session, &over)).await;
    assert!(
        matches!(refused, Err(StoreError::NoSuchStep { .. })),
        "{refused:?}"
    );
    assert_eq!(
        (tasks(store).await, questions(store, session).await),
        (1, 0)
    );
}
