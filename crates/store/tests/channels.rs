//! What every back end must do with chat channels: one suite, run on each of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod backends;

use codespar_protocol::{AccessRole, TaskId, TaskType, Usd};
use codespar_store::{
    ChangeKind, ChannelPerson, ChannelTimer, Database, Delivery, MessageChange, MessageStanding,
    MessageState, NewAudit, NewMessage, NewOutbound, OutboundPriority, Receipt, StartedMessage,
    StoreError, ThreadBinding, ThreadRef, TimerChange, TimerKind, TimerState,
};
use jiff::{SignedDuration, Timestamp};

on_every_store!(
    a_message_is_on_record_once_however_often_it_is_delivered,
    a_mention_that_comes_with_the_second_delivery_is_merged,
    a_mention_that_comes_while_a_message_is_looked_at_is_not_lost,
    a_message_is_amended_while_nobody_has_decided_on_it,
    a_step_of_the_work_is_all_or_nothing,
    the_first_task_chosen_for_a_message_stays,
    only_messages_that_are_not_settled_are_open,
    turns_are_counted_by_thread_and_by_person,
    spending_is_summed_by_time_and_repository,
    a_thread_keeps_what_it_is_about,
    a_conversation_has_one_default_repository,
    what_an_admin_says_of_a_person_replaces_what_was_said,
    a_message_to_people_is_revised_under_its_key,
    finals_are_sent_before_progress,
    a_delivery_keeps_the_name_of_the_platform,
    a_revision_that_is_left_out_may_have_arrived,
    the_audit_log_takes_no_changes,
    a_timer_and_its_message_are_written_together_and_once,
    strangers_and_their_refusals_are_counted_apart,
    parts_of_a_message_are_started_with_it,
    people_are_listed_and_removed,
    other_processes_see_messages_in_and_out,
);

fn thread(name: &str) -> ThreadRef {
    ThreadRef {
        channel: "test".to_owned(),
        conversation: "room".to_owned(),
        thread: name.to_owned(),
    }
}

fn message(identity: &str) -> NewMessage {
    NewMessage {
        identity: identity.to_owned(),
        at: thread("t"),
        speaker: "ann".to_owned(),
        mentioned: true,
        body: "{}".to_owned(),
    }
}

fn to(state: MessageState) -> MessageChange {
    MessageChange {
        state: Some(state),
        ..MessageChange::default()
    }
}

fn outbound(key: &str, body: &str, priority: OutboundPriority) -> NewOutbound {
    NewOutbound {
        key: key.to_owned(),
        at: thread("t"),
        kind: "text".to_owned(),
        body: body.to_owned(),
        priority,
    }
}

fn entry(decision: &str) -> NewAudit {
    NewAudit {
        at: thread("t"),
        identity: "m".to_owned(),
        speaker: "ann".to_owned(),
        role: Some(AccessRole::Write),
        action: "fix".to_owned(),
        decision: decision.to_owned(),
        detail: "the timeout".to_owned(),
        repository: Some("acme/api".to_owned()),
        task_id: None,
    }
}

fn hour_ago() -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(1)
}

async fn a_message_is_on_record_once_however_often_it_is_delivered(store: &dyn Database) {
    let first = NewMessage {
        body: "{\"text\":\"before\"}".to_owned(),
        ..message("a")
    };
    assert_eq!(store.receive_message(first).await.unwrap(), Receipt::New);
    let edited = NewMessage {
        body: "{\"text\":\"after\"}".to_owned(),
        ..message("a")
    };
    assert_eq!(store.receive_message(edited).await.unwrap(), Receipt::Known);
    let open = store.open_messages("test").await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].body, "{\"text\":\"before\"}");
    assert!(store.open_messages("other").await.unwrap().is_empty());
    let missing = store.message("b").await;
    assert!(
        matches!(&missing, Err(StoreError::NoSuchMessage(identity)) if identity == "b"),
        "{missing:?}"
    );
}

async fn a_mention_that_comes_with_the_second_delivery_is_merged(store: &dyn Database) {
    let plain = NewMessage {
        mentioned: false,
        ..message("a")
    };
    store.receive_message(plain.clone()).await.unwrap();
    // Before it was looked at.
    store.receive_message(message("a")).await.unwrap();
    assert!(store.message("a").await.unwrap().mentioned);

    // After it was found not to be for us.
    let later = NewMessage {
        identity: "b".to_owned(),
        ..plain
    };
    store.receive_message(later).await.unwrap();
    let ignored = to(MessageState::Ignored);
    store.change_message("b", ignored).await.unwrap();
    let receipt = store.receive_message(message("b")).await.unwrap();
    assert_eq!(receipt, Receipt::Renewed);
    let renewed = store.message("b").await.unwrap();
    assert_eq!(
        (renewed.mentioned, renewed.state),
        (true, MessageState::Received)
    );
    // A message that was handled is not handled again.
    let handled = to(MessageState::Handled);
    store.change_message("b", handled).await.unwrap();
    let receipt = store.receive_message(message("b")).await.unwrap();
    assert_eq!(receipt, Receipt::Known);
    assert_eq!(
        store.message("b").await.unwrap().state,
        MessageState::Handled
    );
}

async fn a_mention_that_comes_while_a_message_is_looked_at_is_not_lost(store: &dyn Database) {
    let plain = NewMessage {
        mentioned: false,
        ..message("a")
    };
    store.receive_message(plain).await.unwrap();
    let seen = store.message("a").await.unwrap();
    store.receive_message(message("a")).await.unwrap();
    assert!(!store.ignore_message(&seen).await.unwrap());
    let now = store.message("a").await.unwrap();
    assert_eq!((now.mentioned, now.state), (true, MessageState::Received));
    assert!(store.ignore_message(&now).await.unwrap());
}

async fn a_message_is_amended_while_nobody_has_decided_on_it(store: &dyn Database) {
    store.receive_message(message("m")).await.unwrap();
    let seen = store.message("m").await.unwrap();
    assert!(store.amend_message(&seen, "{\"a\":1}").await.unwrap());
    assert!(
        !store.amend_message(&seen, "{\"b\":1}").await.unwrap(),
        "it is not as it was seen any more"
    );
    let seen = store.message("m").await.unwrap();
    assert_eq!(seen.body, "{\"a\":1}");
    store
        .change_message("m", to(MessageState::Working))
        .await
        .unwrap();
    assert!(!store.amend_message(&seen, "{}").await.unwrap());
}

async fn a_step_of_the_work_is_all_or_nothing(store: &dyn Database) {
    store.receive_message(message("a")).await.unwrap();
    store.receive_message(message("b")).await.unwrap();
    let task = TaskId::new(TaskType::LocalWorkflow);
    let change = MessageChange {
        state: Some(MessageState::Working),
        task_id: Some(task.clone()),
        work: Some("{}".to_owned()),
        merged: vec!["b".to_owned()],
        repository: Some("acme/api".to_owned()),
        cost: None,
        binding: Some(ThreadBinding {
            repository: Some("acme/api".to_owned()),
            ..ThreadBinding::default()
        }),
        outbound: vec![outbound("a/progress", "x", OutboundPriority::Progress)],
        audit: vec![entry("allowed")],
        ..MessageChange::default()
    };
    let changed = store.change_message("a", change.clone()).await.unwrap();
    assert_eq!(changed.state, MessageState::Working);
    assert_eq!(changed.task_id, Some(task.clone()));
    assert_eq!(changed.repository.as_deref(), Some("acme/api"));
    assert_eq!(changed.work.as_deref(), Some("{}"));
    let merged = store.message("b").await.unwrap().state;
    assert_eq!(merged, MessageState::Handled);
    let of_task = store.message_of_task(&task).await.unwrap().unwrap();
    assert_eq!(of_task.identity, "a");
    let binding = store.thread_binding(&thread("t")).await.unwrap();
    assert_eq!(binding.repository.as_deref(), Some("acme/api"));
    assert_eq!(store.unsent("test").await.unwrap().len(), 1);
    assert_eq!(store.audit(0, 10).await.unwrap().len(), 1);

    let refused = store.change_message("nobody", change).await;
    assert!(refused.is_err());
    assert_eq!(store.audit(0, 10).await.unwrap().len(), 1);
}

async fn the_first_task_chosen_for_a_message_stays(store: &dyn Database) {
    store.receive_message(message("a")).await.unwrap();
    let choose = || MessageChange {
        task_id: Some(TaskId::new(TaskType::LocalWorkflow)),
        ..MessageChange::default()
    };
    let first = store.change_message("a", choose()).await.unwrap().task_id;
    let second = store.change_message("a", choose()).await.unwrap().task_id;
    assert!(first.is_some());
    assert_eq!(first, second);
}

async fn only_messages_that_are_not_settled_are_open(store: &dyn Database) {
    let states = [
        ("a", MessageState::Received),
        ("b", MessageState::Queued),
        ("c", MessageState::Working),
        ("d", MessageState::Handled),
        ("e", MessageState::Ignored),
    ];
    for (identity, state) in states {
        store.receive_message(message(identity)).await.unwrap();
        store.change_message(identity, to(state)).await.unwrap();
    }
    let open = store.open_messages("test").await.unwrap();
    let open: Vec<&str> = open.iter().map(|one| one.identity.as_str()).collect();
    assert_eq!(open, ["a", "b", "c"]);
}

async fn turns_are_counted_by_thread_and_by_person(store: &dyn Database) {
    for identity in ["a", "b", "c"] {
        store.receive_message(message(identity)).await.unwrap();
    }
    let elsewhere = NewMessage {
        at: thread("other"),
        ..message("d")
    };
    store.receive_message(elsewhere).await.unwrap();
    let ignored = to(MessageState::Ignored);
    store.change_message("c", ignored).await.unwrap();
    let last = store.message("d").await.unwrap();
    let second = store.message("b").await.unwrap();
    let turns = store.turns_of_thread(&second, hour_ago()).await;
    assert_eq!(turns.unwrap(), 2);
    let turns = store.turns_of_thread(&last, hour_ago()).await;
    assert_eq!(turns.unwrap(), 1);
    let turns = store.turns_of_speaker(&last, hour_ago()).await;
    assert_eq!(turns.unwrap(), 3);
    // Those that came after it do not count against a message.
    let turns = store.turns_of_speaker(&second, hour_ago()).await;
    assert_eq!(turns.unwrap(), 2);
    let later = Timestamp::now() + SignedDuration::from_hours(1);
    assert_eq!(store.turns_of_thread(&last, later).await.unwrap(), 0);
}

async fn spending_is_summed_by_time_and_repository(store: &dyn Database) {
    for (identity, repository, cents) in [("a", "x/y", 10), ("b", "x/z", 20), ("c", "x/y", 3)] {
        store.receive_message(message(identity)).await.unwrap();
        let change = MessageChange {
            repository: Some(repository.to_owned()),
            cost: Some(Usd::from_nanos(cents * 10_000_000)),
            ..MessageChange::default()
        };
        store.change_message(identity, change).await.unwrap();
    }
    let cents = |usd: Usd| usd.nanos() / 10_000_000;
    let all = store.channel_spending(hour_ago(), None).await.unwrap();
    assert_eq!(cents(all), 33);
    let one = store
        .channel_spending(hour_ago(), Some("x/y"))
        .await
        .unwrap();
    assert_eq!(cents(one), 13);
    let later = Timestamp::now() + SignedDuration::from_hours(1);
    assert_eq!(
        store.channel_spending(later, None).await.unwrap(),
        Usd::ZERO
    );
}

async fn a_thread_keeps_what_it_is_about(store: &dyn Database) {
    store.receive_message(message("a")).await.unwrap();
    let bind = |repository: Option<&str>, pull_request| MessageChange {
        binding: Some(ThreadBinding {
            repository: repository.map(str::to_owned),
            session: None,
            pull_request,
        }),
        ..MessageChange::default()
    };
    let at = thread("t");
    assert_eq!(
        store.thread_binding(&at).await.unwrap(),
        ThreadBinding::default()
    );
    for (repository, pull, expected) in [
        (Some("x/y"), None, ("x/y", None)),
        (None, Some(87), ("x/y", Some(87))),
        (Some("x/y"), None, ("x/y", Some(87))),
        // Numbers of another repository mean other pull requests.
        (Some("x/z"), None, ("x/z", None)),
    ] {
        store
            .change_message("a", bind(repository, pull))
            .await
            .unwrap();
        let binding = store.thread_binding(&at).await.unwrap();
        let found = (binding.repository.as_deref(), binding.pull_request);
        assert_eq!(found, (Some(expected.0), expected.1));
    }
}

async fn a_conversation_has_one_default_repository(store: &dyn Database) {
    let names = async || {
        let links = store.linked_repositories("test", "room").await.unwrap();
        let shown = links.iter().map(|link| {
            format!(
                "{}{}",
                link.repository,
                if link.is_default { "*" } else { "" }
            )
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(store.unlink_repository("test", "room").await.unwrap(), None);
    for repository in ["x/a", "x/b", "x/a"] {
        store
            .link_repository("test", "room", repository, "ann")
            .await
            .unwrap();
    }
    assert_eq!(names().await, "x/a* x/b");
    let unlinked = store.unlink_repository("test", "room").await.unwrap();
    assert_eq!(unlinked.as_deref(), Some("x/a"));
    assert_eq!(names().await, "x/b*");
    let elsewhere = store.linked_repositories("test", "other").await.unwrap();
    assert!(elsewhere.is_empty());
}

async fn what_an_admin_says_of_a_person_replaces_what_was_said(store: &dyn Database) {
    let person = ChannelPerson {
        channel: "test".to_owned(),
        user_id: "bob".to_owned(),
        role: Some(AccessRole::Write),
        forge_login: None,
        set_by: "ann".to_owned(),
    };
    assert_eq!(store.person("test", "bob").await.unwrap(), None);
    store.set_person(person.clone()).await.unwrap();
    assert_eq!(
        store.person("test", "bob").await.unwrap(),
        Some(person.clone())
    );
    let changed = ChannelPerson {
        role: None,
        forge_login: Some("bob-b".to_owned()),
        ..person
    };
    store.set_person(changed.clone()).await.unwrap();
    assert_eq!(store.person("test", "bob").await.unwrap(), Some(changed));
}

async fn a_message_to_people_is_revised_under_its_key(store: &dyn Database) {
    let put = async |body: &str| {
        let new = outbound("k", body, OutboundPriority::Progress);
        store.put_outbound(new).await.unwrap().revision
    };
    assert_eq!(put("a").await, 1);
    assert_eq!(put("a").await, 1);
    assert_eq!(put("b").await, 2);
    let row = store.outbound("k").await.unwrap().unwrap();
    assert_eq!((row.body.as_str(), row.sent_revision), ("b", 0));
    assert_eq!(store.outbound("other").await.unwrap(), None);
}

async fn finals_are_sent_before_progress(store: &dyn Database) {
    for (key, priority) in [
        ("d", OutboundPriority::Draft),
        ("p", OutboundPriority::Progress),
        ("r", OutboundPriority::Reply),
        ("f", OutboundPriority::Final),
        ("q", OutboundPriority::Question),
        ("f2", OutboundPriority::Final),
    ] {
        store
            .put_outbound(outbound(key, "x", priority))
            .await
            .unwrap();
    }
    let unsent = store.unsent("test").await.unwrap();
    let keys: Vec<&str> = unsent.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["f", "f2", "q", "r", "p", "d"]);
}

async fn a_revision_that_is_left_out_may_have_arrived(store: &dyn Database) {
    let new = |body| outbound("k", body, OutboundPriority::Draft);
    store.put_outbound(new("a")).await.unwrap();
    store.record_delivery("k", Delivery::Begun).await.unwrap();
    // The next one is put while the first is on its way, and is not left out with it.
    store.put_outbound(new("b")).await.unwrap();
    let skipped = Delivery::Skipped { revision: 1 };
    store.record_delivery("k", skipped).await.unwrap();
    let row = store.unsent("test").await.unwrap().remove(0);
    assert_eq!(
        (row.body.as_str(), row.attempts, row.message_id),
        ("b", 1, None)
    );
    let skipped = Delivery::Skipped { revision: 2 };
    store.record_delivery("k", skipped).await.unwrap();
    assert!(store.unsent("test").await.unwrap().is_empty());
}

async fn a_delivery_keeps_the_name_of_the_platform(store: &dyn Database) {
    let new = |body| outbound("k", body, OutboundPriority::Reply);
    store.put_outbound(new("a")).await.unwrap();
    store.record_delivery("k", Delivery::Begun).await.unwrap();
    assert_eq!(store.unsent("test").await.unwrap()[0].attempts, 1);
    let sent = Delivery::Sent {
        revision: 1,
        message_id: "17.5".to_owned(),
    };
    store.record_delivery("k", sent).await.unwrap();
    assert!(store.unsent("test").await.unwrap().is_empty());
    let found = store
        .outbound_by_message("test", "room", "17.5")
        .await
        .unwrap();
    assert_eq!(found.unwrap().key, "k");

    store.put_outbound(new("b")).await.unwrap();
    let until = Timestamp::from_second(4_000_000_000).unwrap();
    store
        .record_delivery("k", Delivery::Postponed { until })
        .await
        .unwrap();
    let row = store.unsent("test").await.unwrap().remove(0);
    assert_eq!(
        (row.message_id.as_deref(), row.not_before),
        (Some("17.5"), until)
    );
    let failed = Delivery::Failed {
        reason: "gone".to_owned(),
    };
    store.record_delivery("k", failed).await.unwrap();
    assert!(store.unsent("test").await.unwrap().is_empty());
    let last = store.sent_to("test", "room", 5).await.unwrap();
    assert_eq!(last[0].failure.as_deref(), Some("gone"));
}

async fn the_audit_log_takes_no_changes(store: &dyn Database) {
    store.append_audit(entry("refused")).await.unwrap();
    store.append_audit(entry("allowed")).await.unwrap();
    let all = store.audit(0, 10).await.unwrap();
    let decisions: Vec<&str> = all.iter().map(|one| one.entry.decision.as_str()).collect();
    assert_eq!(decisions, ["refused", "allowed"]);
    assert_eq!(store.audit(all[0].seq, 10).await.unwrap(), all[1..]);
    assert_eq!(store.audit(0, 1).await.unwrap(), all[..1]);
}

fn timer(id: &str, next_at: i64) -> ChannelTimer {
    ChannelTimer {
        id: id.to_owned(),
        kind: TimerKind::Schedule,
        at: thread("t"),
        body: "{}".to_owned(),
        state: TimerState::Active,
        next_at: Timestamp::from_second(next_at).unwrap(),
    }
}

async fn a_timer_and_its_message_are_written_together_and_once(store: &dyn Database) {
    let (first, second) = (timer("s-1", 1_000), timer("s-2", 2_000));
    for one in [&second, &first] {
        store.put_timer(one.clone()).await.unwrap();
    }
    let now = Timestamp::from_second(1_500).unwrap();
    let due = store.due_timers("test", now).await.unwrap();
    assert_eq!(due, std::slice::from_ref(&first));
    let later = Timestamp::from_second(3_000).unwrap();
    let due = store.due_timers("test", later).await.unwrap();
    assert_eq!(due, [first.clone(), second.clone()]);
    let change = TimerChange {
        body: "{}".to_owned(),
        state: TimerState::Active,
        next_at: Timestamp::from_second(5_000).unwrap(),
        message: Some(message("schedule/s-1/1000")),
        outbound: Vec::new(),
        audit: Vec::new(),
    };
    assert!(store.change_timer(&first, change.clone()).await.unwrap());
    // Another process saw the same.
    assert!(!store.change_timer(&first, change).await.unwrap());
    let open = store.open_messages("test").await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(store.due_timers("test", later).await.unwrap(), [second]);
    store.stop_timer("s-2", TimerState::Ended).await.unwrap();
    assert_eq!(store.due_timers("test", later).await.unwrap(), []);
    let listed = store.timers_of("test", "room", TimerKind::Schedule);
    assert_eq!(listed.await.unwrap().len(), 2);
    let watches = store.timers_of("test", "room", TimerKind::Watch);
    assert_eq!(watches.await.unwrap(), []);
}

async fn strangers_and_their_refusals_are_counted_apart(store: &dyn Database) {
    for name in ["a", "b", "c"] {
        store.receive_message(message(name)).await.unwrap();
    }
    let refused = MessageChange {
        state: Some(MessageState::Handled),
        standing: MessageStanding::Stranger,
        ..MessageChange::default()
    };
    let message = store.message("c").await.unwrap();
    let since = Timestamp::UNIX_EPOCH;
    assert_eq!(store.refusals(&message, since).await.unwrap(), (0, 0));
    store.change_message("a", refused).await.unwrap();
    assert_eq!(store.refusals(&message, since).await.unwrap(), (1, 1));
    assert_eq!(store.turns_of_thread(&message, since).await.unwrap(), 2);
    assert_eq!(store.turns_of_speaker(&message, since).await.unwrap(), 2);
}

async fn parts_of_a_message_are_started_with_it(store: &dyn Database) {
    store.receive_message(message("plan")).await.unwrap();
    let work = MessageChange {
        state: Some(MessageState::Handled),
        work: Some("{\"kind\":\"plan\"}".to_owned()),
        ..MessageChange::default()
    };
    store.change_message("plan", work).await.unwrap();
    let found = store.last_work(&thread("t"), "{\"kind\":\"plan\"").await;
    assert_eq!(found.unwrap().unwrap().identity, "plan");
    let none = store.last_work(&thread("t"), "{\"kind\":\"dev\"").await;
    assert_eq!(none.unwrap(), None);

    store.receive_message(message("approve")).await.unwrap();
    let task = TaskId::new(TaskType::LocalWorkflow);
    let started = StartedMessage {
        message: message("plan/1"),
        task_id: task.clone(),
        work: "{}".to_owned(),
        repository: "acme/api".to_owned(),
    };
    let change = MessageChange {
        state: Some(MessageState::Handled),
        started: vec![started.clone()],
        ..MessageChange::default()
    };
    store.change_message("approve", change).await.unwrap();
    let step = store.message("plan/1").await.unwrap();
    assert_eq!(step.state, MessageState::Working);
    assert_eq!(step.task_id.as_ref(), Some(&task));
    // Approved again, it keeps its task.
    let again = StartedMessage {
        task_id: TaskId::new(TaskType::LocalWorkflow),
        ..started
    };
    let change = MessageChange {
        started: vec![again],
        ..MessageChange::default()
    };
    store.change_message("approve", change).await.unwrap();
    assert_eq!(store.message("plan/1").await.unwrap(), step);
}

async fn people_are_listed_and_removed(store: &dyn Database) {
    let person = |channel: &str, user: &str| ChannelPerson {
        channel: channel.to_owned(),
        user_id: user.to_owned(),
        role: Some(AccessRole::Read),
        forge_login: None,
        set_by: "ann".to_owned(),
    };
    let (one, other) = (person("slack", "U1"), person("test", "bob"));
    for one in [&other, &one] {
        store.set_person(one.clone()).await.unwrap();
    }
    assert_eq!(store.people().await.unwrap(), [one, other.clone()]);
    assert!(store.remove_person("slack", "U1").await.unwrap());
    assert!(!store.remove_person("slack", "U1").await.unwrap());
    assert_eq!(store.people().await.unwrap(), [other]);
}

async fn other_processes_see_messages_in_and_out(store: &dyn Database) {
    let before = store.newest_change().await.unwrap();
    store.receive_message(message("a")).await.unwrap();
    let new = outbound("k", "a", OutboundPriority::Reply);
    store.put_outbound(new).await.unwrap();
    let changes = store.changes(before).await.unwrap();
    let kinds: Vec<&ChangeKind> = changes.iter().map(|change| &change.kind).collect();
    let channel = "test".to_owned();
    assert_eq!(
        kinds,
        [
            &ChangeKind::Inbound {
                channel: channel.clone()
            },
            &ChangeKind::Outbox { channel }
        ]
    );
}

#[tokio::test]
async fn the_database_refuses_to_change_or_remove_audit_entries() {
    use sqlx::{ConnectOptions, Executor, sqlite::SqliteConnectOptions};
    let dir = tempfile::tempdir().unwrap();
    let store = codespar_store::SqliteStore::open(dir.path()).await.unwrap();
    use codespar_store::ChannelStore;
    store.append_audit(entry("allowed")).await.unwrap();
    let mut connection = SqliteConnectOptions::new()
        .filename(dir.path().join("codespar.db"))
        .connect()
        .await
        .unwrap();
    for attack in [
        "UPDATE channel_audit SET decision = 'refused'",
        "DELETE FROM channel_audit",
    ] {
        let refused = connection.execute(attack).await.unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{attack}: {refused}");
    }
    assert_eq!(store.audit(0, 10).await.unwrap().len(), 1);
    store.close().await.unwrap();
}
