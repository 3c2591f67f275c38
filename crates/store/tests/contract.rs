//! What every back end of the store must do: one suite, run on each of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod backends;
mod common;

use std::path::PathBuf;

use codespar_protocol::{
    Cost, Entry, EntryBody, Message, SessionId, SessionMode, ToolUseId, Usage, Usd,
};
use codespar_store::{SessionFilter, SessionRecord, Store, StoreError};
use common::{answered, nanos, new_session, said, started, tokens, tool_answer};
use jiff::{Timestamp, ToSpan};

on_every_store!(
    a_new_session_reads_back_as_it_was_made,
    a_session_is_made_once,
    a_session_nobody_made_is_not_there,
    entries_get_places_ids_and_times_and_read_back_whole,
    entries_can_be_read_from_a_place_on,
    what_a_provider_sent_comes_back_byte_for_byte,
    an_append_to_a_session_that_moved_on_writes_nothing,
    an_empty_append_writes_nothing_but_still_checks_the_place,
    sums_follow_every_call_of_a_model,
    one_call_without_a_price_makes_the_sum_unknown,
    absurd_token_counts_do_not_make_a_session_unreadable,
    the_title_is_the_first_line_the_user_wrote,
    sessions_are_listed_most_recently_used_first,
    sessions_can_be_asked_for_by_directory_and_number,
    the_mode_can_be_changed,
    a_held_session_is_refused_to_others_until_let_go,
    a_removed_session_is_gone_with_its_entries,
    a_held_session_is_not_removed,
    old_sessions_are_removed_and_held_or_used_ones_stay,
    a_large_append_is_one_append,
    many_tasks_append_to_one_session_without_gaps,
);

async fn a_new_session_reads_back_as_it_was_made(store: &dyn Store) {
    let mut new = new_session("/srv/ünï code");
    new.mode = SessionMode::Coordinator;
    let made = store.create_session(new.clone()).await.unwrap();
    let expected = SessionRecord {
        id: new.id,
        title: None,
        cwd: new.cwd,
        model: new.model,
        mode: SessionMode::Coordinator,
        created_at: made.created_at,
        updated_at: made.created_at,
        last_seq: 0,
        usage: Usage::default(),
        cost: Cost::default(),
    };
    assert_eq!(made, expected);
    assert_eq!(store.session(new.id).await.unwrap(), expected);
    assert_eq!(store.entries(new.id, 1).await.unwrap(), Vec::<Entry>::new());
}

async fn a_session_is_made_once(store: &dyn Store) {
    let new = new_session("/work");
    let made = store.create_session(new.clone()).await.unwrap();
    let mut again = new.clone();
    again.model = "another".to_owned();
    let error = store.create_session(again).await.unwrap_err();
    assert!(error.to_string().contains(&new.id.to_string()), "{error}");
    assert_eq!(store.session(new.id).await.unwrap(), made);
}

async fn a_session_nobody_made_is_not_there(store: &dyn Store) {
    let id = SessionId::new();
    let errors = [
        store.session(id).await.unwrap_err(),
        store.entries(id, 1).await.unwrap_err(),
        store.append(id, 0, vec![said("hi")]).await.unwrap_err(),
        store.hold_session(id).await.unwrap_err(),
        store
            .set_session_mode(id, SessionMode::Normal)
            .await
            .unwrap_err(),
        store.remove_session(id).await.unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(error, StoreError::NoSuchSession(of) if of == id),
            "{error}"
        );
    }
}

async fn entries_get_places_ids_and_times_and_read_back_whole(store: &dyn Store) {
    let id = started(store).await;
    let bodies = vec![
        said("hello"),
        answered(10, nanos(1_500)),
        EntryBody::ToolStarted {
            tool_use_id: ToolUseId::from("t1"),
        },
        tool_answer("done\n\u{0} \u{1F980}"),
        EntryBody::SideCall {
            purpose: "read a page".to_owned(),
            model: "small".to_owned(),
            usage: tokens(1),
            cost: nanos(1),
        },
        EntryBody::Compaction {
            summary: "so far".to_owned(),
            keep_from: 2,
            usage: tokens(1),
            cost: nanos(1),
            model: "small".to_owned(),
        },
        EntryBody::Rewound {
            to: 1,
            undoes: Some(0),
        },
    ];
    let first = store.append(id, 0, bodies[..1].to_vec()).await.unwrap();
    let rest = store.append(id, 1, bodies[1..].to_vec()).await.unwrap();
    let all: Vec<Entry> = first.into_iter().chain(rest).collect();

    assert_eq!(
        all.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 7]
    );
    let said: Vec<EntryBody> = all.iter().map(|entry| entry.body.clone()).collect();
    assert_eq!(said, bodies);
    assert_eq!(store.entries(id, 0).await.unwrap(), all);
    assert_eq!(store.entries(id, 1).await.unwrap(), all);
    let session = store.session(id).await.unwrap();
    assert_eq!(session.last_seq, 7);
    // That of the prompt, unless what came after it came in another second.
    assert!(session.updated_at >= all[0].at);
    assert!(session.updated_at > all[6].at - 1.second());
    assert!(session.updated_at <= all[6].at);
}

async fn entries_can_be_read_from_a_place_on(store: &dyn Store) {
    let id = started(store).await;
    let bodies = vec![said("1"), said("2"), said("3")];
    let all = store.append(id, 0, bodies).await.unwrap();
    assert_eq!(store.entries(id, 2).await.unwrap(), all[1..]);
    assert_eq!(store.entries(id, 3).await.unwrap(), all[2..]);
    assert_eq!(store.entries(id, 4).await.unwrap(), []);
    assert_eq!(store.entries(id, u64::MAX).await.unwrap(), []);
}

async fn what_a_provider_sent_comes_back_byte_for_byte(store: &dyn Store) {
    let id = started(store).await;
    let json = r#"{"assistant":{"message":{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln/+="},{"type":"tool_use","id":"t","name":"Edit","input":{"z": 1.50,  "a" :"é\u00e9\u0000", "n":12345678901234567890123, "e":1E5},"caller":{"type" : "direct"}},{"type":"server_tool_use","id":"s","input":{"q": [1,  2]}}]},"message_id":"msg","model":"m","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation_1h_input_tokens":0},"cost":0.0015}}"#;
    let body: EntryBody = serde_json::from_str(json).unwrap();
    store.append(id, 0, vec![body]).await.unwrap();
    let read = store.entries(id, 1).await.unwrap();
    assert_eq!(serde_json::to_string(&read[0].body).unwrap(), json);
}

async fn an_append_to_a_session_that_moved_on_writes_nothing(store: &dyn Store) {
    let id = started(store).await;
    let all = store.append(id, 0, vec![said("1")]).await.unwrap();
    let before = store.session(id).await.unwrap();
    for stale in [0, 2, u64::MAX] {
        let bodies = vec![answered(10, nanos(10)), said("2")];
        let error = store.append(id, stale, bodies).await.unwrap_err();
        assert!(
            matches!(error, StoreError::MovedOn { id: of, expected, found: 1 }
                if of == id && expected == stale),
            "{error}"
        );
    }
    assert_eq!(store.session(id).await.unwrap(), before);
    assert_eq!(store.entries(id, 1).await.unwrap(), all);
}

async fn an_empty_append_writes_nothing_but_still_checks_the_place(store: &dyn Store) {
    let id = started(store).await;
    let before = store.session(id).await.unwrap();
    assert_eq!(store.append(id, 0, Vec::new()).await.unwrap(), []);
    assert_eq!(store.session(id).await.unwrap(), before);
    let error = store.append(id, 1, Vec::new()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::MovedOn { found: 0, .. }),
        "{error}"
    );
    assert_eq!(
        store.append(id, 0, vec![said("1")]).await.unwrap()[0].seq,
        1
    );
}

async fn sums_follow_every_call_of_a_model(store: &dyn Store) {
    let id = started(store).await;
    let compaction = EntryBody::Compaction {
        summary: "so far".to_owned(),
        keep_from: 1,
        usage: tokens(100),
        cost: nanos(30),
        model: "small".to_owned(),
    };
    let side_call = EntryBody::SideCall {
        purpose: "read a page".to_owned(),
        model: "small".to_owned(),
        usage: tokens(1_000),
        cost: nanos(400),
    };
    let bodies = vec![answered(1, nanos(1)), said("x"), answered(10, nanos(2))];
    store.append(id, 0, bodies).await.unwrap();
    store
        .append(id, 3, vec![compaction, side_call])
        .await
        .unwrap();
    let session = store.session(id).await.unwrap();
    let expected = Usage {
        web_search_requests: 0,
        input_tokens: 1_111,
        output_tokens: 8,
        cache_creation_input_tokens: 120,
        cache_read_input_tokens: 16,
        cache_creation_1h_input_tokens: 20,
    };
    assert_eq!((session.usage, session.cost), (expected, nanos(433)));
}

async fn one_call_without_a_price_makes_the_sum_unknown(store: &dyn Store) {
    let id = started(store).await;
    let unknown = Cost::Unknown(Usd::ZERO);
    store
        .append(id, 0, vec![answered(1, nanos(5)), answered(1, unknown)])
        .await
        .unwrap();
    store
        .append(id, 2, vec![answered(1, nanos(7))])
        .await
        .unwrap();
    let session = store.session(id).await.unwrap();
    assert_eq!(session.cost, Cost::Unknown(Usd::from_nanos(12)));
}

async fn absurd_token_counts_do_not_make_a_session_unreadable(store: &dyn Store) {
    let id = started(store).await;
    for after in 0..3 {
        let body = answered(u64::MAX, nanos(1));
        store.append(id, after, vec![body]).await.unwrap();
    }
    let session = store.session(id).await.unwrap();
    assert_eq!(session.usage.input_tokens, i64::MAX.unsigned_abs());
    assert_eq!(session.usage.output_tokens, 6);
    assert_eq!(store.entries(id, 1).await.unwrap().len(), 3);
}

async fn the_title_is_the_first_line_the_user_wrote(store: &dyn Store) {
    let id = started(store).await;
    let notice = EntryBody::User {
        message: Message::user("a notice"),
        synthetic: true,
    };
    store.append(id, 0, vec![notice]).await.unwrap();
    assert_eq!(store.session(id).await.unwrap().title, None);

    let text = format!("{}\nmore", "ß".repeat(100));
    let bodies = vec![said(&text), said("something else")];
    store.append(id, 1, bodies).await.unwrap();
    store.append(id, 3, vec![said("and more")]).await.unwrap();

    let title = store.session(id).await.unwrap().title;
    assert_eq!(title, Some(format!("{}…", "ß".repeat(79))));
}

async fn sessions_are_listed_most_recently_used_first(store: &dyn Store) {
    let (one, two, three) = (
        started(store).await,
        started(store).await,
        started(store).await,
    );
    store.append(two, 0, vec![said("again")]).await.unwrap();
    let listed = store.sessions(SessionFilter::default()).await.unwrap();
    let ids: Vec<SessionId> = listed.iter().map(|session| session.id).collect();
    assert_eq!(ids, [two, three, one]);
    assert_eq!(listed[0], store.session(two).await.unwrap());
}

async fn sessions_can_be_asked_for_by_directory_and_number(store: &dyn Store) {
    let mut here = Vec::new();
    for cwd in ["/here", "/here/below", "/here", "/there", "/here"] {
        let session = store.create_session(new_session(cwd)).await.unwrap();
        if cwd == "/here" {
            here.insert(0, session);
        }
    }
    let filter = SessionFilter {
        cwd: Some(PathBuf::from("/here")),
        limit: None,
    };
    assert_eq!(store.sessions(filter.clone()).await.unwrap(), here);
    let filter = SessionFilter {
        limit: Some(2),
        ..filter
    };
    assert_eq!(store.sessions(filter).await.unwrap(), here[..2]);
    let any = SessionFilter {
        cwd: None,
        limit: Some(1),
    };
    assert_eq!(store.sessions(any).await.unwrap(), here[..1]);
    let nowhere = SessionFilter {
        cwd: Some(PathBuf::from("/nowhere")),
        limit: None,
    };
    assert_eq!(store.sessions(nowhere).await.unwrap(), []);
}

async fn the_mode_can_be_changed(store: &dyn Store) {
    let id = started(store).await;
    let mut expected = store.session(id).await.unwrap();
    store
        .set_session_mode(id, SessionMode::Coordinator)
        .await
        .unwrap();
    expected.mode = SessionMode::Coordinator;
    assert_eq!(store.session(id).await.unwrap(), expected);
}

async fn a_held_session_is_refused_to_others_until_let_go(store: &dyn Store) {
    let (id, other) = (started(store).await, started(store).await);
    let hold = store.hold_session(id).await.unwrap();
    let error = store.hold_session(id).await.unwrap_err();
    let us = std::process::id();
    assert!(
        matches!(error, StoreError::SessionInUse { id: of, pid: Some(pid) }
            if of == id && pid == us),
        "{error}"
    );
    let _other = store.hold_session(other).await.unwrap();
    drop(hold);
    let _again = store.hold_session(id).await.unwrap();
    // A hold is about who may work on a session, not about what the holder does in it.
    store.append(id, 0, vec![said("mine")]).await.unwrap();
}

async fn a_removed_session_is_gone_with_its_entries(store: &dyn Store) {
    let (id, other) = (started(store).await, started(store).await);
    for of in [id, other] {
        let bodies = vec![said("x"), answered(1, nanos(1))];
        store.append(of, 0, bodies).await.unwrap();
    }
    store.remove_session(id).await.unwrap();
    let error = store.entries(id, 1).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchSession(_)), "{error}");
    assert_eq!(store.entries(other, 1).await.unwrap().len(), 2);

    // The same id begins anew: nothing of the old one is left to get in its way.
    let mut new = new_session("/work");
    new.id = id;
    store.create_session(new).await.unwrap();
    assert_eq!(store.entries(id, 1).await.unwrap(), []);
    let bodies = vec![answered(1, nanos(1)), answered(1, nanos(1))];
    store.append(id, 0, bodies).await.unwrap();
}

async fn a_held_session_is_not_removed(store: &dyn Store) {
    let id = started(store).await;
    let hold = store.hold_session(id).await.unwrap();
    let error = store.remove_session(id).await.unwrap_err();
    assert!(matches!(error, StoreError::SessionInUse { .. }), "{error}");
    store.session(id).await.unwrap();
    drop(hold);
    store.remove_session(id).await.unwrap();
}

async fn old_sessions_are_removed_and_held_or_used_ones_stay(store: &dyn Store) {
    let (old, held, older) = (
        started(store).await,
        started(store).await,
        started(store).await,
    );
    let hold = store.hold_session(held).await.unwrap();
    store.append(old, 0, vec![said("x")]).await.unwrap();
    let before = store.session(old).await.unwrap().updated_at + 1.microsecond();
    while Timestamp::now() < before {
        tokio::task::yield_now().await;
    }
    let new = started(store).await;

    let removed = store.remove_sessions_before(before).await.unwrap();

    assert_eq!(removed.sessions, [older, old]);
    let left = store.sessions(SessionFilter::default()).await.unwrap();
    let ids: Vec<SessionId> = left.iter().map(|session| session.id).collect();
    assert_eq!(ids, [new, held]);
    drop(hold);
    let removed = store.remove_sessions_before(before).await.unwrap();
    assert_eq!(removed.sessions, [held]);
}

async fn a_large_append_is_one_append(store: &dyn Store) {
    let id = started(store).await;
    let bodies = |turns: u64| -> Vec<EntryBody> {
        let turn = |turn: u64| [said(&turn.to_string()), answered(turn, nanos(2))];
        (0..turns).flat_map(turn).collect()
    };
    let entries = store.append(id, 0, bodies(500)).await.unwrap();
    assert_eq!(store.entries(id, 1).await.unwrap(), entries);
    let session = store.session(id).await.unwrap();
    assert_eq!(session.last_seq, 1_000);
    assert_eq!(session.usage.input_tokens, 499 * 500 / 2);
    assert_eq!(session.cost, nanos(1_000));
    assert_eq!(session.title, Some("0".to_owned()));

    let error = store.append(id, 999, bodies(500)).await.unwrap_err();
    assert!(
        matches!(error, StoreError::MovedOn { found: 1_000, .. }),
        "{error}"
    );
    assert_eq!(store.entries(id, 1).await.unwrap(), entries);
}

async fn many_tasks_append_to_one_session_without_gaps(store: &dyn Store) {
    let id = started(store).await;
    let append_five = async |task: u32| {
        let mut last = 0;
        for turn in 0..5 {
            loop {
                let body = said(&format!("{task}.{turn}"));
                match store
                    .append(id, last, vec![body, answered(1, nanos(1))])
                    .await
                {
                    Ok(entries) => {
                        last = entries[1].seq;
                        break;
                    }
                    Err(StoreError::MovedOn { found, .. }) => last = found,
                    Err(other) => panic!("{other}"),
                }
            }
        }
    };
    let (a, b, c, d) = (
        append_five(1),
        append_five(2),
        append_five(3),
        append_five(4),
    );
    tokio::join!(a, b, c, d);

    let entries = store.entries(id, 1).await.unwrap();
    let places: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(places, (1..=40).collect::<Vec<u64>>());
    let session = store.session(id).await.unwrap();
    assert_eq!((session.last_seq, session.cost), (40, nanos(20)));
}
