//! What every back end must do with pull requests: one suite, run on each of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod backends;

use std::{collections::BTreeSet, env, path::Path, process::Command};

use codespar_protocol::{
    Check, CheckState, CommitId, PullRequest, PullRequestState, ReviewComment, Verdict,
};
use codespar_store::{
    NewPull, NewPullReview, PullChange, PullStore, RecordedCheck, SqliteStore, StoreError,
};
use jiff::Timestamp;

use PullRequestState::{Closed, Merged, Open};

on_every_store!(
    a_new_pull_request_reads_back_as_it_was_made,
    each_repository_counts_for_itself,
    a_branch_has_one_open_pull_request,
    lists_are_latest_first_and_by_state,
    a_change_leaves_the_rest_as_it_is,
    what_is_merged_stays_merged,
    a_review_is_added_once_by_its_key,
    a_check_is_replaced_by_name_and_dated_by_its_state,
    what_is_not_there_is_said_by_number,
);

const HERE: &str = "/repos/here/.git";

fn commit(digit: &str) -> CommitId {
    CommitId(digit.repeat(40))
}

fn new(head: &str) -> NewPull {
    NewPull {
        head: head.to_owned(),
        head_commit: commit("a"),
        base: "main".to_owned(),
        title: "Fix it".to_owned(),
        body: "All of \u{fc}ber\r\n".to_owned(),
        draft: true,
        author: "Ada".to_owned(),
        above: 0,
    }
}

async fn made(store: &dyn PullStore, head: &str) -> PullRequest {
    store.create_pull(HERE, new(head)).await.unwrap()
}

fn numbers(pulls: &[PullRequest]) -> Vec<u64> {
    pulls.iter().map(|pull| pull.number).collect()
}

fn to(state: PullRequestState) -> PullChange {
    PullChange {
        state: Some(state),
        ..PullChange::default()
    }
}

async fn a_new_pull_request_reads_back_as_it_was_made(store: &dyn PullStore) {
    let before = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap();
    let made = made(store, "codespar/one").await;
    assert!(made.created_at >= before);
    let expected = PullRequest {
        number: 1,
        title: "Fix it".to_owned(),
        body: "All of \u{fc}ber\r\n".to_owned(),
        state: Open,
        draft: true,
        head: "codespar/one".to_owned(),
        head_commit: commit("a"),
        base: "main".to_owned(),
        author: "Ada".to_owned(),
        url: None,
        created_at: made.created_at,
        updated_at: made.created_at,
        merge_commit: None,
    };
    assert_eq!(made, expected);
    assert_eq!(store.pull(HERE, 1).await.unwrap(), expected);
}

async fn each_repository_counts_for_itself(store: &dyn PullStore) {
    assert_eq!(made(store, "one").await.number, 1);
    assert_eq!(made(store, "two").await.number, 2);
    let there = store.create_pull("/there", new("one")).await.unwrap();
    assert_eq!(there.number, 1);
    assert_eq!(numbers(&store.pulls(HERE, None).await.unwrap()), [2, 1]);
}

async fn a_branch_has_one_open_pull_request(store: &dyn PullStore) {
    let first = made(store, "one").await;
    let other = NewPull {
        title: "Something else".to_owned(),
        ..new("one")
    };
    let again = store.create_pull(HERE, other).await.unwrap();
    assert_eq!(again, first);

    store.change_pull(HERE, 1, to(Closed)).await.unwrap();
    assert_eq!(made(store, "one").await.number, 2);
    let second = store.change_pull(HERE, 1, to(Open)).await;
    assert!(
        matches!(&second, Err(StoreError::HeadHasPull { head, number: 2 }) if head == "one"),
        "{second:?}"
    );
    store.change_pull(HERE, 2, to(Closed)).await.unwrap();
    let opened = store.change_pull(HERE, 1, to(Open)).await.unwrap();
    assert_eq!((opened.number, opened.state), (1, Open));
}

async fn lists_are_latest_first_and_by_state(store: &dyn PullStore) {
    for head in ["one", "two", "three", "four"] {
        made(store, head).await;
    }
    store.change_pull(HERE, 1, to(Merged)).await.unwrap();
    store.change_pull(HERE, 3, to(Closed)).await.unwrap();
    for (state, expected) in [
        (None, vec![4, 3, 2, 1]),
        (Some(Open), vec![4, 2]),
        (Some(Merged), vec![1]),
        (Some(Closed), vec![3]),
    ] {
        let listed = store.pulls(HERE, state).await.unwrap();
        assert_eq!(numbers(&listed), expected, "{state:?}");
    }
    assert_eq!(store.pulls("/there", None).await.unwrap(), []);
}

async fn a_change_leaves_the_rest_as_it_is(store: &dyn PullStore) {
    let made = made(store, "one").await;
    let change = PullChange {
        title: Some("Better".to_owned()),
        draft: Some(false),
        head_commit: Some(commit("b")),
        ..PullChange::default()
    };
    let changed = store.change_pull(HERE, 1, change).await.unwrap();
    assert!(changed.updated_at >= made.updated_at);
    let expected = PullRequest {
        title: "Better".to_owned(),
        draft: false,
        head_commit: commit("b"),
        updated_at: changed.updated_at,
        ..made
    };
    assert_eq!(changed, expected);
    let change = PullChange {
        body: Some("Other".to_owned()),
        state: Some(Merged),
        merge_commit: Some(commit("c")),
        ..PullChange::default()
    };
    let merged = store.change_pull(HERE, 1, change).await.unwrap();
    let expected = PullRequest {
        body: "Other".to_owned(),
        state: Merged,
        merge_commit: Some(commit("c")),
        updated_at: merged.updated_at,
        ..expected
    };
    assert_eq!(merged, expected);
    assert_eq!(store.pull(HERE, 1).await.unwrap(), expected);
}

async fn what_is_merged_stays_merged(store: &dyn PullStore) {
    made(store, "one").await;
    store.change_pull(HERE, 1, to(Merged)).await.unwrap();
    for state in [Open, Closed] {
        let refused = store.change_pull(HERE, 1, to(state)).await;
        assert!(matches!(refused, Err(StoreError::PullMerged { number: 1 })));
    }
    let again = store.change_pull(HERE, 1, to(Merged)).await.unwrap();
    assert_eq!(again.state, Merged);
}

async fn a_review_is_added_once_by_its_key(store: &dyn PullStore) {
    made(store, "one").await;
    made(store, "two").await;
    let review = |key: &str, verdict| NewPullReview {
        key: key.to_owned(),
        author: "Grace".to_owned(),
        verdict,
        body: "Look\n".to_owned(),
        comments: vec![ReviewComment {
            path: "src/\u{fc}.rs".to_owned(),
            line: 7,
            body: "here".to_owned(),
        }],
        commit: commit("a"),
    };
    let approve = review("k1", Verdict::Approve);
    let first = store.add_review(HERE, 1, approve.clone()).await.unwrap();
    let otherwise = review("k1", Verdict::Comment);
    assert_eq!(store.add_review(HERE, 1, otherwise).await.unwrap(), first);
    assert_eq!(
        (&first.id[..], first.verdict, &first.comments, &first.commit),
        ("1.1", Verdict::Approve, &approve.comments, &commit("a"))
    );
    let changes = review("k2", Verdict::RequestChanges);
    let second = store.add_review(HERE, 1, changes).await.unwrap();
    assert_eq!(
        store.pull_reviews(HERE, 1).await.unwrap(),
        [first, second.clone()]
    );
    assert_eq!(
        (&second.id[..], second.verdict, &second.body[..]),
        ("1.2", Verdict::RequestChanges, "Look\n")
    );
    assert_eq!(store.pull_reviews(HERE, 2).await.unwrap(), []);
}

async fn a_check_is_replaced_by_name_and_dated_by_its_state(store: &dyn PullStore) {
    let check = |name: &str, state, summary: Option<&str>| Check {
        name: name.to_owned(),
        state,
        summary: summary.map(str::to_owned),
        url: None,
    };
    let set = async |check: &Check| store.set_check(HERE, &commit("a"), check).await.unwrap();
    let read = async || store.checks(HERE, &commit("a")).await.unwrap();
    set(&check("tests", CheckState::Pending, None)).await;
    set(&check("lint", CheckState::Success, Some("ok"))).await;
    let first = read().await;
    assert_eq!(
        first
            .iter()
            .map(|found| found.check.clone())
            .collect::<Vec<_>>(),
        [
            check("lint", CheckState::Success, Some("ok")),
            check("tests", CheckState::Pending, None),
        ]
    );
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    set(&check("lint", CheckState::Success, Some("fine"))).await;
    set(&check("tests", CheckState::Failure, Some("2 failed"))).await;
    let second = read().await;
    assert_eq!(
        second[0],
        RecordedCheck {
            check: check("lint", CheckState::Success, Some("fine")),
            at: first[0].at,
        }
    );
    assert_eq!(
        second[1].check,
        check("tests", CheckState::Failure, Some("2 failed"))
    );
    assert!(second[1].at > first[1].at);
    assert_eq!(store.checks(HERE, &commit("b")).await.unwrap(), []);
    assert_eq!(store.checks("/there", &commit("a")).await.unwrap(), []);
}

async fn what_is_not_there_is_said_by_number(store: &dyn PullStore) {
    made(store, "one").await;
    let review = NewPullReview {
        key: "k".to_owned(),
        author: "Ada".to_owned(),
        verdict: Verdict::Comment,
        body: String::new(),
        comments: Vec::new(),
        commit: commit("a"),
    };
    for refused in [
        store.pull(HERE, 2).await.map(drop),
        store.pull("/there", 2).await.map(drop),
        store.change_pull(HERE, 2, to(Closed)).await.map(drop),
        store.add_review(HERE, 2, review).await.map(drop),
        store.pull_reviews(HERE, 2).await.map(drop),
    ] {
        assert!(matches!(refused, Err(StoreError::NoSuchPull { number: 2 })));
    }
}

const DIR: &str = "STORE_TEST_DIR";
const EACH: u32 = 20;

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_opens_pull_requests() {
    let Ok(dir) = env::var(DIR) else { return };
    let store = SqliteStore::open(Path::new(&dir)).await.unwrap();
    for turn in 0..EACH {
        made(&store, &format!("{}-{turn}", std::process::id())).await;
        made(&store, &format!("shared-{turn}")).await;
    }
}

#[tokio::test]
async fn several_processes_that_open_pull_requests_get_distinct_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let start = |_| {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "child_opens_pull_requests", "--ignored"])
            .env(DIR, dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let pulls = store.pulls(HERE, Some(Open)).await.unwrap();
    let all = u64::from(EACH) * 5;
    let distinct: BTreeSet<u64> = pulls.iter().map(|pull| pull.number).collect();
    assert_eq!(distinct, (1..=all).collect());
    let heads: BTreeSet<&str> = pulls.iter().map(|pull| pull.head.as_str()).collect();
    assert_eq!(heads.len(), pulls.len());
}
