//! What happens is told in order, to this process and to others.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[macro_use]
mod backends;
mod tasks_common;

use std::{sync::Arc, time::Duration};

use codespar_protocol::{
    Answer, ClarificationRequest, QuestionRequest, QuestionStatus, SessionId, SessionMode,
    TaskStatus, TaskType,
};
use codespar_store::{
    ChangeCursor, ChangeFeed, ChangeKind, Database, NewQuestion, NewSession, QuestionFilter,
    StoreChange, StoreError,
};
use jiff::{SignedDuration, Timestamp};
use tasks_common::{claimed, ending, said, task};

/// One of two stores on the same database, as two processes have them.
type Opened = Arc<dyn Database>;

on_two_stores!(
    everything_that_happens_is_told_in_order_and_from_any_cursor,
    a_change_of_another_process_wakes_those_who_wait,
    any_number_follow_one_feed_from_their_own_moment_on,
    a_question_is_asked_once_and_answered_once,
    the_end_of_a_task_withdraws_its_questions,
);

const PATIENCE: Duration = Duration::from_secs(60);

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

async fn session(store: &Opened) -> SessionId {
    let new = NewSession {
        id: SessionId::new(),
        cwd: "/work".into(),
        model: "m".to_owned(),
        mode: SessionMode::Normal,
    };
    store.create_session(new).await.unwrap().id
}

fn clarification(session: SessionId, key: &str) -> NewQuestion {
    NewQuestion {
        session_id: session,
        task_id: None,
        asked_under: None,
        project_root: "/work".into(),
        key: key.to_owned(),
        request: QuestionRequest::Clarification(ClarificationRequest {
            text: "which file?".to_owned(),
        }),
        expires_at: Timestamp::now() + SignedDuration::from_hours(1),
    }
}

fn text(text: &str) -> Answer {
    Answer::Text {
        text: text.to_owned(),
    }
}

fn kinds(changes: &[StoreChange]) -> Vec<ChangeKind> {
    changes.iter().map(|change| change.kind.clone()).collect()
}

async fn everything_that_happens_is_told_in_order_and_from_any_cursor(store: Opened, _: Opened) {
    let session = session(&store).await;
    assert_eq!(store.newest_change().await.unwrap(), ChangeCursor(0));
    store.append(session, 0, vec![said("go")]).await.unwrap();
    let mut new = task(TaskType::LocalAgent);
    new.session_id = Some(session);
    new.notify = codespar_store::Notify::Session;
    let id = new.id.clone();
    store.create_tasks(vec![new]).await.unwrap();
    let taken = claimed(&*store, "r", 1).await.remove(0);
    store.send_mail(&id, "me", "hurry").await.unwrap();
    let question = store
        .ask_question(clarification(session, "k"))
        .await
        .unwrap();
    store
        .answer_question(&question.id, &text("a.rs"), "test")
        .await
        .unwrap();
    store
        .finish_task(&id, taken.epoch, ending(TaskStatus::Completed, None))
        .await
        .unwrap();

    let all = in_time(store.changes(ChangeCursor(0))).await.unwrap();
    let task = |status| ChangeKind::Task { status };
    let asked = ChangeKind::Question {
        id: question.id.clone(),
    };
    assert_eq!(
        kinds(&all),
        [
            ChangeKind::Entry { seq: 1 },
            task(TaskStatus::Pending),
            task(TaskStatus::Running),
            ChangeKind::Mail,
            asked.clone(),
            asked,
            ChangeKind::Notification,
            task(TaskStatus::Completed),
            // For the message that it has not read.
            task(TaskStatus::Pending),
        ]
    );
    for at in [1, 2, 3, 6, 7, 8] {
        assert_eq!(all[at].task_id.as_ref(), Some(&id), "{:?}", all[at]);
    }
    let rest = in_time(store.changes(all[3].cursor)).await.unwrap();
    assert_eq!(rest, all[4..]);
    assert_eq!(store.newest_change().await.unwrap(), all[8].cursor);
}

async fn a_change_of_another_process_wakes_those_who_wait(here: Opened, elsewhere: Opened) {
    let session = session(&here).await;
    let waiting = tokio::spawn({
        let here = here.clone();
        async move { here.changes(ChangeCursor(0)).await }
    });
    // Asleep by now, or on its way there: it is woken in both cases.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    elsewhere
        .append(session, 0, vec![said("go")])
        .await
        .unwrap();
    let heard = in_time(waiting).await.unwrap().unwrap();
    assert_eq!(kinds(&heard), [ChangeKind::Entry { seq: 1 }]);
    assert_eq!(heard[0].session_id, Some(session));
}

async fn any_number_follow_one_feed_from_their_own_moment_on(store: Opened, _: Opened) {
    let session = session(&store).await;
    let feed = ChangeFeed::new(store.clone());
    store
        .append(session, 0, vec![said("before")])
        .await
        .unwrap();
    let mut first = feed.follow().await.unwrap();
    store.append(session, 1, vec![said("one")]).await.unwrap();
    assert_eq!(
        in_time(first.next()).await.unwrap().kind,
        ChangeKind::Entry { seq: 2 }
    );
    let mut second = feed.follow().await.unwrap();
    store.append(session, 2, vec![said("two")]).await.unwrap();
    for follower in [&mut first, &mut second] {
        assert_eq!(
            in_time(follower.next()).await.unwrap().kind,
            ChangeKind::Entry { seq: 3 }
        );
    }
    // Everyone leaves and somebody comes again.
    drop((first, second));
    tokio::time::sleep(Duration::from_millis(50)).await;
    store
        .append(session, 3, vec![said("unheard")])
        .await
        .unwrap();
    let mut third = feed.follow().await.unwrap();
    store.append(session, 4, vec![said("heard")]).await.unwrap();
    let is_fifth = |change: &StoreChange| change.kind == ChangeKind::Entry { seq: 5 };
    in_time(third.until(is_fifth)).await;
}

async fn a_question_is_asked_once_and_answered_once(store: Opened, other: Opened) {
    let session = session(&store).await;
    let asked = store
        .ask_question(clarification(session, "1/t1"))
        .await
        .unwrap();
    let again = store
        .ask_question(clarification(session, "1/t1"))
        .await
        .unwrap();
    assert_eq!(asked, again);
    let open = store.questions(QuestionFilter::Open).await.unwrap();
    assert_eq!(open, std::slice::from_ref(&asked));

    let refused = store.answer_question(&asked.id, &Answer::Always, "x").await;
    assert!(
        matches!(refused, Err(StoreError::WrongAnswer { .. })),
        "{refused:?}"
    );
    let (a_text, b_text) = (text("a"), text("b"));
    let (one, two) = tokio::join!(
        store.answer_question(&asked.id, &a_text, "here"),
        other.answer_question(&asked.id, &b_text, "there"),
    );
    assert_ne!(one.is_ok(), two.is_ok(), "{one:?} {two:?}");
    let lost = one.as_ref().err().or(two.as_ref().err()).unwrap();
    assert!(
        matches!(lost, StoreError::QuestionNotOpen { .. }),
        "{lost:?}"
    );
    let answered = store.question(&asked.id).await.unwrap();
    assert_eq!(answered.status, QuestionStatus::Answered);
    let known = one.or(two).unwrap();
    assert_eq!(answered, known);
    // Whoever asks again after a crash finds the answer.
    let after = store
        .ask_question(clarification(session, "1/t1"))
        .await
        .unwrap();
    assert_eq!(after.answer, answered.answer);
    store.withdraw_question(&asked.id).await.unwrap();
    assert_eq!(
        store.question(&asked.id).await.unwrap().status,
        QuestionStatus::Answered
    );
    store.remove_session(session).await.unwrap();
    assert!(matches!(
        store.question(&asked.id).await,
        Err(StoreError::NoSuchQuestion(_))
    ));
}

async fn the_end_of_a_task_withdraws_its_questions(store: Opened, _: Opened) {
    let session = session(&store).await;
    let new = task(TaskType::LocalAgent);
    let id = new.id.clone();
    store.create_tasks(vec![new]).await.unwrap();
    let taken = claimed(&*store, "r", 1).await.remove(0);
    let asked = NewQuestion {
        task_id: Some(id.clone()),
        ..clarification(session, "k")
    };
    let asked = store.ask_question(asked).await.unwrap();
    store.release_task(&id, taken.epoch).await.unwrap();
    let status = |question: codespar_protocol::Question| question.status;
    let now = store.question(&asked.id).await.map(status).unwrap();
    assert_eq!(now, QuestionStatus::Open, "it waits for the next process");
    let taken = claimed(&*store, "r", 1).await.remove(0);
    store
        .finish_task(&id, taken.epoch, ending(TaskStatus::Failed, Some("no")))
        .await
        .unwrap();
    let now = store.question(&asked.id).await.map(status).unwrap();
    assert_eq!(now, QuestionStatus::Withdrawn);
}
