//! Schedules and watches with a real runtime, database and repository. Time is not waited for: what
//! is to be due is made due in the database.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::sync::Arc;

use codespar_channels::{
    Inbound, Outbound, Privacy, Speaker, SpeakerKind, StoredChannel, ThreadRef,
};
use codespar_protocol::{Check, CheckState, PullRequest};
use codespar_runtime::Pulls;
use codespar_store::{ChannelTimer, OutboxRow, TimerKind, TimerState};
use jiff::{SignedDuration, Timestamp};

use common::Room;

fn at() -> ThreadRef {
    ThreadRef {
        channel: "test".to_owned(),
        conversation: "room".to_owned(),
        thread: "t".to_owned(),
    }
}

fn message(identity: &str, user: &str, text: &str) -> Inbound {
    Inbound {
        identity: format!("test:{identity}"),
        at: at(),
        speaker: Speaker {
            id: user.to_owned(),
            name: user.to_owned(),
            kind: SpeakerKind::Person,
        },
        mentioned: true,
        privacy: Privacy::Room,
        text: text.to_owned(),
        images: Vec::new(),
        reply_to: None,
    }
}

async fn room() -> Room {
    let room = Room::new().await;
    room.serve(Arc::new(StoredChannel {
        name: "test".to_owned(),
    }));
    room
}

async fn say(room: &Room, identity: &str, user: &str, text: &str) -> String {
    room.say(message(identity, user, text)).await;
    room.idle("test").await;
    let key = format!("test:{identity}/reply");
    text_of(room.runtime.store().outbound(&key).await.unwrap().as_ref())
}

fn text_of(row: Option<&OutboxRow>) -> String {
    let body = row.map_or("", |row| row.body.as_str());
    let message: Option<Outbound> = serde_json::from_str(body).ok();
    message.map(|message| message.text).unwrap_or_default()
}

/// All texts of the room, in order.
async fn texts(room: &Room) -> Vec<String> {
    let rows = room.runtime.store().sent_to("test", "room", 1_000).await;
    rows.unwrap().iter().map(|row| text_of(Some(row))).collect()
}

async fn timers(room: &Room, kind: TimerKind) -> Vec<ChannelTimer> {
    let store = room.runtime.store();
    store.timers_of("test", "room", kind).await.unwrap()
}

/// Makes a timer due so long ago, and waits until what comes of it is done.
async fn make_due(room: &Room, timer: &ChannelTimer, ago: SignedDuration) -> Timestamp {
    let due = Timestamp::now() - ago;
    // As exact as the database is.
    let due = Timestamp::from_microsecond(due.as_microsecond()).unwrap();
    let mut timer = timer.clone();
    timer.next_at = due;
    room.runtime.store().put_timer(timer).await.unwrap();
    // A message has the loop look at what is due; in another thread, since this one may be watched
    // only while nothing else is under way in it.
    let mut nudge = message(&format!("look-{due}"), "ann", "whoami");
    nudge.at.thread = "other".to_owned();
    room.say(nudge).await;
    room.idle("test").await;
    due
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_runs_once_for_each_time_with_the_rights_of_that_time() {
    let room = room().await;
    // Half a day away from now: fifty hours ago was before the last two of these times, at
    // whatever time of the day this runs.
    let time = (Timestamp::now() + SignedDuration::from_hours(12)).strftime("%-H:%M");
    let line = format!("`prs` every day at {time}");
    let said = say(
        &room,
        "1",
        "ann",
        &format!("schedule every day at {time} prs"),
    )
    .await;
    assert!(
        said.contains(&format!("is scheduled: {line} (UTC) for ann; next 2")),
        "{said}"
    );
    let listed = say(&room, "2", "bob", "schedules").await;
    assert!(listed.contains(&line), "{listed}");

    let timer = timers(&room, TimerKind::Schedule).await.pop().unwrap();
    let due = make_due(&room, &timer, SignedDuration::from_hours(50)).await;
    let store = room.runtime.store();
    let identity = format!("schedule/{}/{due}", timer.id);
    let reply = store.outbound(&format!("{identity}/reply")).await.unwrap();
    assert!(text_of(reply.as_ref()).contains("no such pull request"));
    let note = store.outbound(&format!("{identity}/due")).await.unwrap();
    let note = text_of(note.as_ref());
    assert!(
        note.contains("it was missed 2 more times and is run once"),
        "{note}"
    );
    let next = timers(&room, TimerKind::Schedule).await.pop().unwrap();
    assert!(next.next_at > Timestamp::now(), "{next:?}");
    assert_eq!(next.state, TimerState::Active);
    let audit = store.audit(0, 100).await.unwrap();
    let is_run = |identity: &str| identity.starts_with("schedule/");
    let runs = audit.iter().filter(|entry| is_run(&entry.entry.identity));
    let runs: Vec<_> = runs.map(|entry| entry.entry.action.as_str()).collect();
    assert_eq!(runs, ["prs"]);

    let removed = say(&room, "3", "ann", &format!("unschedule {}", timer.id)).await;
    assert_eq!(removed, format!("{} is removed", timer.id));
    let listed = say(&room, "4", "bob", "schedules").await;
    assert_eq!(listed, "nothing is scheduled here");
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_of_someone_who_lost_their_role_is_refused_once_and_paused() {
    let room = room().await;
    say(&room, "1", "ann", "schedule every 2 hours whoami").await;
    let timer = timers(&room, TimerKind::Schedule).await.pop().unwrap();
    // As if ann had been mallory, who has no role any more.
    let gone = ChannelTimer {
        body: timer.body.replace("ann", "mallory"),
        ..timer.clone()
    };
    make_due(&room, &gone, SignedDuration::from_mins(1)).await;
    let said = texts(&room).await;
    let refused = said
        .iter()
        .filter(|text| text.contains("`whoami` is paused"));
    assert_eq!(refused.count(), 1, "{said:#?}");
    let timer = timers(&room, TimerKind::Schedule).await.pop().unwrap();
    assert_eq!(timer.state, TimerState::Paused);
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_have_limits_and_need_the_role_of_their_command() {
    let room = room().await;
    for (identity, user, text, reason) in [
        (
            "1",
            "bob",
            "schedule every day at 9:00 prs",
            "needs the role write",
        ),
        (
            "2",
            "ann",
            "schedule every 5 minutes prs",
            "at most every 15 minutes",
        ),
        ("3", "ann", "schedule soon prs", "is no time"),
        (
            "4",
            "ann",
            "unschedule s99",
            "there is no schedule `s99` here",
        ),
    ] {
        let said = say(&room, identity, user, text).await;
        assert!(said.contains(reason), "{text}: {said}");
    }
    for number in 0..20 {
        let identity = format!("many-{number}");
        let said = say(&room, &identity, "ann", "schedule every 2 hours prs").await;
        assert!(said.contains("is scheduled"), "{said}");
    }
    let said = say(&room, "5", "ann", "schedule every 2 hours prs").await;
    assert!(
        said.contains("this conversation has 20 schedules"),
        "{said}"
    );
    assert_eq!(timers(&room, TimerKind::Schedule).await.len(), 20);
    room.close().await;
}

/// A pull request of CodeSpar, by a simulated run.
async fn opened(room: &Room) -> Pulls {
    say(room, "open", "ann", "fix the greeting").await;
    let project = room.home();
    let repository = codespar_runtime::which(&project.dir, &project.settings, None).unwrap();
    let store = room.runtime.store().clone();
    Pulls::of(&project.dir, store, &repository).await.unwrap()
}

async fn check(pulls: &Pulls, pull: &PullRequest, state: CheckState) {
    let check = Check {
        name: "ci/build".to_owned(),
        state,
        summary: Some("2 tests failed".to_owned()),
        url: None,
    };
    let recorded = pulls.forge().record_check(&pull.head_commit, &check).await;
    recorded.unwrap();
}

/// Checks that have failed have settled after two looks.
async fn look_twice(room: &Room) {
    for _ in 0..2 {
        let timer = timers(room, TimerKind::Watch).await.pop().unwrap();
        if timer.state == TimerState::Active {
            make_due(room, &timer, SignedDuration::from_secs(1)).await;
        }
    }
}

fn instructions(tasks: &[codespar_protocol::TaskRecord]) -> usize {
    let is_fix = |task: &&codespar_protocol::TaskRecord| {
        task.subject.contains("fix the failing checks of PR #1")
    };
    tasks.iter().filter(is_fix).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_pull_request_gets_three_tries_for_red_checks_and_no_more() {
    let room = room().await;
    let pulls = opened(&room).await;
    let said = say(&room, "1", "ann", "watch PR #1").await;
    assert!(said.contains("PR #1 is watched"), "{said}");

    // Nothing is known of the head, then it is pending, then green: nothing to be done.
    look_twice(&room).await;
    for state in [CheckState::Pending, CheckState::Success] {
        let pull = pulls.show(1).await.unwrap();
        check(&pulls, &pull, state).await;
        look_twice(&room).await;
    }
    assert_eq!(instructions(&room.tasks().await), 0);

    let mut heads = Vec::new();
    for tries in 1..=3 {
        let pull = pulls.show(1).await.unwrap();
        assert!(!heads.contains(&pull.head_commit), "a run made a new head");
        heads.push(pull.head_commit.clone());
        check(&pulls, &pull, CheckState::Failure).await;
        look_twice(&room).await;
        assert_eq!(instructions(&room.tasks().await), tries);
        // The head that the run made has no checks yet.
        look_twice(&room).await;
        assert_eq!(instructions(&room.tasks().await), tries);
    }
    let pull = pulls.show(1).await.unwrap();
    check(&pulls, &pull, CheckState::Failure).await;
    look_twice(&room).await;
    assert_eq!(instructions(&room.tasks().await), 3);
    let said = texts(&room).await;
    let ended = "PR #1 is not watched any more: ci/build still failed after 3 tries";
    assert!(said.iter().any(|text| text == ended), "{said:#?}");
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_its_pull_request_or_when_it_is_told_to() {
    let room = room().await;
    let pulls = opened(&room).await;
    say(&room, "1", "ann", "watch PR #1").await;
    let said = say(&room, "2", "ann", "watch PR #1 off").await;
    assert_eq!(said, "PR #1 is not watched");
    let pull = pulls.show(1).await.unwrap();
    check(&pulls, &pull, CheckState::Failure).await;
    look_twice(&room).await;
    assert_eq!(instructions(&room.tasks().await), 0);

    say(&room, "3", "ann", "watch PR #1 on").await;
    pulls.close(1).await.unwrap();
    look_twice(&room).await;
    let said = texts(&room).await;
    let ended = "PR #1 is not watched any more: PR #1 is closed";
    assert!(said.iter().any(|text| text == ended), "{said:#?}");
    let said = say(&room, "4", "ann", "watch PR #1").await;
    assert!(
        said.contains("only open pull requests of CodeSpar"),
        "{said}"
    );
    assert_eq!(instructions(&room.tasks().await), 0);
    room.close().await;
}
