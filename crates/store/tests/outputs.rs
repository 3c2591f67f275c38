//! Outputs of tasks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[macro_use]
mod backends;
mod tasks_common;

use codespar_protocol::{TaskId, TaskStatus, TaskType::LocalAgent};
use codespar_store::{
    OutputPiece, OutputPlace, OutputRemainder, OutputState, OutputStore, PieceContent, StoreError,
    TaskLease, TaskStore,
};
use jiff::{Timestamp, ToSpan};
use tasks_common::{claimed, ending, gone, made, task};

on_every_store!(
    what_was_appended_is_read_by_range,
    the_same_bytes_again_are_harmless,
    nothing_is_written_after_a_gap,
    the_next_attempt_finds_what_the_last_one_left,
    a_stale_attempt_writes_nothing,
    an_attempt_that_did_not_begin_the_output_writes_nothing,
    a_task_that_is_over_has_no_new_output,
    short_pieces_are_joined_and_long_ones_are_not,
    objects_follow_the_bytes,
    a_cut_is_told_until_more_is_added,
    outputs_go_with_their_tasks_and_objects_are_remembered,
    a_task_without_output_has_none,
);

trait Outputs: TaskStore + OutputStore {}

impl<T: TaskStore + OutputStore> Outputs for T {}

fn place(host: &str) -> OutputPlace {
    OutputPlace {
        host: host.to_owned(),
        file: format!("/{host}/ünï.txt"),
    }
}

fn bytes(text: &str) -> PieceContent {
    PieceContent::Bytes(text.as_bytes().to_vec())
}

fn object(key: &str, length: u64) -> PieceContent {
    PieceContent::Object {
        key: key.to_owned(),
        length,
    }
}

fn state(host: &str, length: u64, remainder: OutputRemainder) -> OutputState {
    OutputState {
        place: place(host),
        length,
        remainder,
    }
}

/// A task that runs, with its lease.
async fn running(store: &dyn Outputs) -> TaskLease {
    made(store, task(LocalAgent)).await;
    taken(store, "first").await
}

async fn taken(store: &dyn Outputs, who: &str) -> TaskLease {
    let claimed = claimed(store, who, 1).await.remove(0);
    TaskLease {
        task: claimed.record.task_id,
        epoch: claimed.epoch,
    }
}

/// One that has begun its output.
async fn begun(store: &dyn Outputs) -> TaskLease {
    let lease = running(store).await;
    let before = store.begin_output(&lease, &place("a")).await.unwrap();
    assert_eq!(before, None);
    lease
}

async fn pieces(store: &dyn Outputs, id: &TaskId, from: u64, limit: u64) -> Vec<OutputPiece> {
    store.output(id, from, limit).await.unwrap().unwrap().pieces
}

/// The bytes of a range.
async fn text(store: &dyn Outputs, id: &TaskId, from: u64, limit: u64) -> String {
    let mut text = Vec::new();
    for piece in pieces(store, id, from, limit).await {
        let PieceContent::Bytes(bytes) = piece.content else {
            panic!("{piece:?}");
        };
        let ours = |(at, _): &(u64, u8)| (from..from + limit).contains(at);
        let numbered = (piece.at..).zip(bytes);
        text.extend(numbered.filter(ours).map(|(_, byte)| byte));
    }
    String::from_utf8(text).unwrap()
}

async fn what_was_appended_is_read_by_range(store: &dyn Outputs) {
    let lease = begun(store).await;
    let id = &lease.task;
    let long = "y".repeat(20_000);
    let mut at = 0;
    for part in ["one ", "tw\u{0}o ", &long, &long, "end"] {
        at = store.append_output(&lease, at, bytes(part)).await.unwrap();
    }
    assert_eq!(at, 40_012);
    let whole = format!("one tw\u{0}o {long}{long}end");
    assert_eq!(text(store, id, 0, 50_000).await, whole);
    for (from, limit) in [(0, 4), (3, 3), (8, 1), (19_000, 2_000), (40_010, 99)] {
        let end = (from + limit).min(40_012);
        let wanted = &whole[from as usize..end as usize];
        assert_eq!(text(store, id, from, limit).await, wanted, "{from}");
    }
    assert_eq!(pieces(store, id, 40_012, 10).await, []);
    assert_eq!(pieces(store, id, 99_999, 10).await, []);
    assert_eq!(pieces(store, id, 9, 10).await.len(), 1);
    let found = store.output_state(id).await.unwrap();
    assert_eq!(found, Some(state("a", 40_012, OutputRemainder::None)));
}

async fn the_same_bytes_again_are_harmless(store: &dyn Outputs) {
    let lease = begun(store).await;
    for (at, part, length) in [(0, "abc", 3), (0, "abc", 3), (1, "bcde", 5), (5, "", 5)] {
        let after = store.append_output(&lease, at, bytes(part)).await.unwrap();
        assert_eq!(after, length, "{part} at {at}");
    }
    assert_eq!(text(store, &lease.task, 0, 99).await, "abcde");
}

async fn nothing_is_written_after_a_gap(store: &dyn Outputs) {
    let lease = begun(store).await;
    store.append_output(&lease, 0, bytes("abc")).await.unwrap();
    for content in [bytes("later"), object("k", 7)] {
        let after = store.append_output(&lease, 4, content).await.unwrap();
        assert_eq!(after, 3);
    }
    assert_eq!(text(store, &lease.task, 0, 99).await, "abc");
}

async fn the_next_attempt_finds_what_the_last_one_left(store: &dyn Outputs) {
    let first = begun(store).await;
    store.append_output(&first, 0, bytes("one ")).await.unwrap();
    gone(store, "first").await;
    let second = taken(store, "second").await;
    let before = store.begin_output(&second, &place("b")).await.unwrap();
    assert_eq!(before, Some(state("a", 4, OutputRemainder::None)));
    // Begun again, as after an answer that did not arrive.
    let again = store.begin_output(&second, &place("b")).await.unwrap();
    assert_eq!(again, Some(state("b", 4, OutputRemainder::None)));
    store.append_output(&second, 4, bytes("two")).await.unwrap();
    assert_eq!(text(store, &second.task, 0, 99).await, "one two");
}

async fn a_stale_attempt_writes_nothing(store: &dyn Outputs) {
    let first = begun(store).await;
    store.append_output(&first, 0, bytes("one")).await.unwrap();
    gone(store, "first").await;
    let second = taken(store, "second").await;
    for begins in [false, true] {
        if begins {
            store.begin_output(&second, &place("b")).await.unwrap();
        }
        let refused = [
            store.append_output(&first, 3, bytes("x")).await.map(drop),
            store
                .append_output(&first, 3, object("k", 7))
                .await
                .map(drop),
            store.begin_output(&first, &place("a")).await.map(drop),
            store.cut_output(&first).await,
        ];
        for refused in refused {
            assert!(
                matches!(refused, Err(StoreError::LeaseLost(_))),
                "{refused:?}"
            );
        }
    }
    let found = store.output_state(&first.task).await.unwrap();
    assert_eq!(found, Some(state("b", 3, OutputRemainder::None)));
}

async fn an_attempt_that_did_not_begin_the_output_writes_nothing(store: &dyn Outputs) {
    let lease = running(store).await;
    let refused = store.append_output(&lease, 0, bytes("x")).await;
    assert!(
        matches!(refused, Err(StoreError::LeaseLost(_))),
        "{refused:?}"
    );
    assert_eq!(store.output_state(&lease.task).await.unwrap(), None);
}

async fn a_task_that_is_over_has_no_new_output(store: &dyn Outputs) {
    let lease = begun(store).await;
    let end = ending(TaskStatus::Completed, None);
    store
        .finish_task(&lease.task, lease.epoch, end)
        .await
        .unwrap();
    let refused = store.append_output(&lease, 0, bytes("x")).await;
    assert!(
        matches!(refused, Err(StoreError::WrongState { .. })),
        "{refused:?}"
    );
}

async fn short_pieces_are_joined_and_long_ones_are_not(store: &dyn Outputs) {
    let lease = begun(store).await;
    let mut at = 0;
    for _ in 0..100 {
        at = store
            .append_output(&lease, at, bytes("a line\n"))
            .await
            .unwrap();
    }
    assert_eq!(pieces(store, &lease.task, 0, 9_999).await.len(), 1);
    let long = "z".repeat(16 << 10);
    store.append_output(&lease, at, bytes(&long)).await.unwrap();
    let places: Vec<u64> = pieces(store, &lease.task, 0, 99_999)
        .await
        .iter()
        .map(|piece| piece.at)
        .collect();
    assert_eq!(places, [0, 700]);
}

async fn objects_follow_the_bytes(store: &dyn Outputs) {
    let lease = begun(store).await;
    store.append_output(&lease, 0, bytes("abc")).await.unwrap();
    for (at, key, length) in [(3, "k1", 103), (3, "again", 103), (50, "late", 103)] {
        let after = store.append_output(&lease, at, object(key, 100)).await;
        assert_eq!(after.unwrap(), length, "{key}");
    }
    store
        .append_output(&lease, 103, object("k2", 9))
        .await
        .unwrap();
    store
        .append_output(&lease, 112, bytes("end"))
        .await
        .unwrap();
    let piece = |at, content| OutputPiece { at, content };
    let all = [
        piece(0, bytes("abc")),
        piece(3, object("k1", 100)),
        piece(103, object("k2", 9)),
        piece(112, bytes("end")),
    ];
    assert_eq!(pieces(store, &lease.task, 0, 999).await, all);
    assert_eq!(pieces(store, &lease.task, 60, 44).await, all[1..3]);
}

async fn a_cut_is_told_until_more_is_added(store: &dyn Outputs) {
    let lease = begun(store).await;
    store.append_output(&lease, 0, bytes("abc")).await.unwrap();
    store.cut_output(&lease).await.unwrap();
    let found = store.output(&lease.task, 0, 9).await.unwrap().unwrap();
    assert_eq!(found.state, state("a", 3, OutputRemainder::OnHost));
    store
        .append_output(&lease, 3, object("k", 5))
        .await
        .unwrap();
    let found = store.output_state(&lease.task).await.unwrap();
    assert_eq!(found, Some(state("a", 8, OutputRemainder::None)));
}

async fn outputs_go_with_their_tasks_and_objects_are_remembered(store: &dyn Outputs) {
    let mut ids = Vec::new();
    for content in [bytes("abc"), object("k", 5)] {
        let lease = begun(store).await;
        store.append_output(&lease, 0, content).await.unwrap();
        let end = ending(TaskStatus::Completed, None);
        store
            .finish_task(&lease.task, lease.epoch, end)
            .await
            .unwrap();
        ids.push(lease.task);
    }
    assert_eq!(store.removed_outputs().await.unwrap(), []);
    let later = Timestamp::now() + 1.hour();
    let mut removed = store.remove_tasks_before(later).await.unwrap();
    removed.sort_unstable_by_key(|id| ids.iter().position(|one| one == id));
    assert_eq!(removed, ids);
    for id in &ids {
        assert_eq!(store.output(id, 0, 99).await.unwrap(), None);
    }
    assert_eq!(store.removed_outputs().await.unwrap(), ids[1..]);
    store.forget_removed_output(&ids[1]).await.unwrap();
    assert_eq!(store.removed_outputs().await.unwrap(), []);
}

async fn a_task_without_output_has_none(store: &dyn Outputs) {
    let lease = running(store).await;
    assert_eq!(store.output(&lease.task, 0, 99).await.unwrap(), None);
    let unknown = TaskId::new(LocalAgent);
    assert_eq!(store.output_state(&unknown).await.unwrap(), None);
    let lease = TaskLease {
        task: unknown,
        epoch: 1,
    };
    let refused = store.begin_output(&lease, &place("a")).await;
    assert!(
        matches!(refused, Err(StoreError::NoSuchTask(_))),
        "{refused:?}"
    );
}
