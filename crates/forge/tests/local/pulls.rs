//! Pull requests as records.

use codespar_forge::{
    Activity, Draft, Forge, ForgeError, Mergeability, NewPullRequest, NewReview, PullRequestChange,
};
use codespar_protocol::{
    Bytes, Check, CheckState, FileChange, FileMode, MergeStrategy, PullRequest, PullRequestState,
    ReviewComment, Verdict,
};

use crate::repository::{
    Repository, added, commit_all, forge_of, modified, order, path, request, write,
};

use PullRequestState::{Closed, Merged, Open};

fn to(state: PullRequestState) -> PullRequestChange {
    PullRequestChange {
        state: Some(state),
        ..PullRequestChange::default()
    }
}

#[tokio::test]
async fn a_pull_request_is_opened_once_and_follows_its_branch() {
    let repo = Repository::new().await;
    let first = repo.on("one", "k", vec![added("c", "c")]).await;
    let pull = repo.open("one").await;
    assert_eq!(
        pull,
        PullRequest {
            number: 1,
            title: "Change by one".to_owned(),
            body: "What and why".to_owned(),
            state: Open,
            draft: false,
            head: "one".to_owned(),
            head_commit: first,
            base: "main".to_owned(),
            author: "Ada".to_owned(),
            url: None,
            created_at: pull.created_at,
            updated_at: pull.created_at,
            merge_commit: None,
        }
    );
    assert_eq!(repo.open("one").await, pull);
    let second = repo.on("one", "k2", vec![added("d", "d")]).await;
    let again = forge_of(repo.home.path(), &repo.root).await;
    assert_eq!(again.pull_request(1).await.unwrap().head_commit, second);
    repo.pull("two", vec![added("e", "e")]).await;
    let numbers = async |state| -> Vec<u64> {
        let pulls = repo.forge.pull_requests(state).await.unwrap();
        pulls.iter().map(|pull| pull.number).collect()
    };
    assert_eq!(numbers(None).await, [2, 1]);
    repo.forge
        .change_pull_request(2, &to(Closed))
        .await
        .unwrap();
    assert_eq!(numbers(Some(Open)).await, [1]);
    assert_eq!(numbers(Some(Closed)).await, [2]);
    assert_eq!(numbers(Some(Merged)).await, [] as [u64; 0]);
}

#[tokio::test]
async fn a_pull_request_without_a_branch_or_a_commit_is_refused() {
    let repo = Repository::new().await;
    repo.git(&["branch", "same"]);
    repo.on("one", "k", vec![]).await;
    let open = async |head: &str, base: &str| {
        let new = NewPullRequest {
            base: base.to_owned(),
            ..request(head)
        };
        repo.forge
            .open_pull_request(&new)
            .await
            .unwrap_err()
            .to_string()
    };
    assert_eq!(open("none", "main").await, "not found: branch none");
    assert_eq!(open("one", "none").await, "not found: branch none");
    let same = "same has no commit that main does not have";
    assert_eq!(open("same", "main").await, same);
    let none = repo.forge.pull_request(7).await.unwrap_err().to_string();
    assert_eq!(none, "not found: pull request #7");
}

#[tokio::test]
async fn titles_bodies_drafts_and_states_change() {
    let repo = Repository::new().await;
    let pull = repo.pull("one", vec![added("c", "c")]).await;
    let change = PullRequestChange {
        title: Some("Better".to_owned()),
        body: Some("More".to_owned()),
        draft: Some(Draft::Draft),
        state: Some(Closed),
    };
    let changed = repo.forge.change_pull_request(1, &change).await.unwrap();
    assert_eq!(
        changed,
        PullRequest {
            title: "Better".to_owned(),
            body: "More".to_owned(),
            draft: true,
            state: Closed,
            updated_at: changed.updated_at,
            ..pull
        }
    );
    let opened = repo.forge.change_pull_request(1, &to(Open)).await.unwrap();
    assert_eq!(opened.state, Open);
    let refused = repo.forge.change_pull_request(1, &to(Merged)).await;
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, "#1 becomes merged by merging it");
    repo.forge
        .change_pull_request(1, &to(Closed))
        .await
        .unwrap();
    repo.forge.delete_branch("one").await.unwrap();
    let refused = repo.forge.change_pull_request(1, &to(Open)).await;
    assert!(matches!(refused, Err(ForgeError::NotFound(_))));
}

#[tokio::test]
async fn a_diff_is_what_the_branch_did_whatever_the_settings_are() {
    let repo = Repository::new().await;
    for (name, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("diff.renames", "false"),
        ("diff.context", "0"),
        ("color.ui", "always"),
    ] {
        repo.git(&["config", name, value]);
    }
    let changes = vec![
        modified("src/a.txt", "one\ntwo\nTHREE\nfour\nfive\n"),
        FileChange::Moved {
            from: path("b.txt"),
            to: path("\u{fc}.txt"),
            content: Bytes(b"b\n".to_vec()),
            mode: FileMode::Regular,
        },
    ];
    repo.pull("one", changes).await;
    write(&repo.root, "later.txt", "of main alone\n");
    commit_all(&repo.root, "later");
    let id =
        |commit: &str, at: &str| repo.git(&["rev-parse", "--short", &format!("{commit}:{at}")]);
    let expected = format!(
        "diff --git a/src/a.txt b/src/a.txt\nindex {}..{} 100644\n--- a/src/a.txt\n\
         +++ b/src/a.txt\n@@ -1,5 +1,5 @@\n one\n two\n-three\n+THREE\n four\n five\n\
         diff --git a/b.txt b/\u{fc}.txt\nsimilarity index 100%\nrename from b.txt\n\
         rename to \u{fc}.txt\n",
        id("main", "src/a.txt"),
        id("one", "src/a.txt"),
    );
    assert_eq!(repo.forge.diff(1).await.unwrap(), expected);
    for (number, strategy) in (1..).zip([
        MergeStrategy::Merge,
        MergeStrategy::Squash,
        MergeStrategy::Rebase,
    ]) {
        let branch = format!("branch-{number}");
        if number > 1 {
            let change = modified("later.txt", &format!("{number}\n"));
            repo.pull(&branch, vec![change]).await;
        }
        let before = repo.forge.diff(number).await.unwrap();
        let head = repo.forge.pull_request(number).await.unwrap().head_commit;
        repo.forge
            .merge(number, &order(strategy, &head))
            .await
            .unwrap();
        repo.forge.delete_branch(&branch).await.unwrap();
        repo.git(&["-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now"]);
        let after = repo.forge.diff(number).await.unwrap();
        assert_eq!(after, before, "{strategy}: the same when it is merged");
    }
}

fn review(repo: &Repository, key: &str, verdict: Verdict) -> NewReview {
    NewReview {
        commit: repo.at("one"),
        verdict,
        body: format!("Looks fine\n<!-- codespar-key: {key} -->"),
        comments: vec![ReviewComment {
            path: "c".to_owned(),
            line: 1,
            body: "why?".to_owned(),
        }],
        key: key.to_owned(),
    }
}

#[tokio::test]
async fn a_review_is_posted_once() {
    let repo = Repository::new().await;
    repo.pull("one", vec![added("c", "c")]).await;
    let new = review(&repo, "k", Verdict::RequestChanges);
    let posted = repo.forge.review(1, &new).await.unwrap();
    assert_eq!(repo.forge.review(1, &new).await.unwrap(), posted);
    assert_eq!(
        (
            &posted.author[..],
            posted.verdict,
            &posted.body,
            &posted.comments,
            &posted.commit
        ),
        (
            "Ada",
            Verdict::RequestChanges,
            &new.body,
            &new.comments,
            &new.commit
        )
    );
    assert_eq!(repo.forge.reviews(1).await.unwrap(), [posted]);
    let refused = repo.forge.review(2, &new).await;
    assert!(matches!(refused, Err(ForgeError::NotFound(_))));
}

#[tokio::test]
async fn checks_are_those_that_were_recorded() {
    let repo = Repository::new().await;
    let head = repo.pull("one", vec![added("c", "c")]).await.head_commit;
    assert_eq!(repo.forge.checks(&head).await.unwrap().checks, []);
    let mut check = Check {
        name: "cargo test".to_owned(),
        state: CheckState::Pending,
        summary: None,
        url: None,
    };
    repo.forge.record_check(&head, &check).await.unwrap();
    check.state = CheckState::Success;
    check.summary = Some("214 passed".to_owned());
    repo.forge.record_check(&head, &check).await.unwrap();
    assert_eq!(repo.forge.checks(&head).await.unwrap().checks, [check]);
    assert_eq!(
        repo.forge.checks(&repo.at("main")).await.unwrap().checks,
        []
    );
}

#[tokio::test]
async fn activity_is_reviews_checks_conflicts_and_the_end_each_by_its_key() {
    let repo = Repository::new().await;
    let head = repo
        .pull("one", vec![modified("b.txt", "theirs\n")])
        .await
        .head_commit;
    assert_eq!(repo.forge.activity(1).await.unwrap(), []);
    repo.forge
        .review(1, &review(&repo, "k", Verdict::Approve))
        .await
        .unwrap();
    let check = Check {
        name: "tests".to_owned(),
        state: CheckState::Failure,
        summary: Some("1 failed".to_owned()),
        url: None,
    };
    repo.forge.record_check(&head, &check).await.unwrap();
    write(&repo.root, "b.txt", "ours\n");
    let main = commit_all(&repo.root, "ours");
    let activity = |key: String, text: &str| Activity {
        key,
        text: text.to_owned(),
    };
    let mut expected = vec![
        activity(
            "review-1.1".to_owned(),
            "Ada approved: Looks fine\nc:1: why?",
        ),
        activity(
            format!("check-{head}-tests-failed"),
            &format!("check tests failed on {}: 1 failed", head.short()),
        ),
        activity(
            format!("conflict-{head}-{main}"),
            "#1 conflicts with main in b.txt",
        ),
    ];
    for _ in 0..2 {
        assert_eq!(repo.forge.activity(1).await.unwrap(), expected);
    }
    repo.forge
        .change_pull_request(1, &to(Closed))
        .await
        .unwrap();
    expected[2] = activity(format!("closed-{head}"), "#1 was closed");
    assert_eq!(repo.forge.activity(1).await.unwrap(), expected);

    let head = repo.pull("two", vec![added("d", "d")]).await.head_commit;
    let merged = repo
        .forge
        .merge(2, &order(MergeStrategy::Squash, &head))
        .await
        .unwrap();
    let text = format!("#2 was merged as {}", merged.short());
    assert_eq!(
        repo.forge.activity(2).await.unwrap(),
        [activity(format!("merged-{merged}"), &text)]
    );
}

#[tokio::test]
async fn mergeability_is_worked_out_anew_when_a_side_moves() {
    let repo = Repository::new().await;
    repo.pull("one", vec![modified("b.txt", "theirs\n"), added("c", "c")])
        .await;
    let asked = async || repo.forge.mergeability(1).await.unwrap();
    assert_eq!(asked().await, Mergeability::Clean);
    write(&repo.root, "b.txt", "ours\n");
    commit_all(&repo.root, "ours");
    let conflict = Mergeability::Conflict(vec!["b.txt".to_owned()]);
    assert_eq!(asked().await, conflict);
    write(&repo.root, "b.txt", "theirs\n");
    commit_all(&repo.root, "as they have it");
    assert_eq!(asked().await, Mergeability::Clean);
    repo.git(&["branch", "-q", "-D", "one"]);
    let gone = Mergeability::Blocked("its branch one is gone".to_owned());
    assert_eq!(asked().await, gone);
    repo.git(&["switch", "-q", "--orphan", "island"]);
    write(&repo.root, "i", "i");
    commit_all(&repo.root, "island");
    repo.open("island").await;
    let apart = "island and main have no commit in common".to_owned();
    assert_eq!(
        repo.forge.mergeability(2).await.unwrap(),
        Mergeability::Blocked(apart)
    );
}

#[tokio::test]
async fn branches_are_deleted_unless_someone_needs_them() {
    let repo = Repository::new().await;
    repo.on("one", "k", vec![]).await;
    repo.forge.delete_branch("one").await.unwrap();
    assert_eq!(repo.forge.head("one").await.unwrap(), None);
    repo.forge.delete_branch("one").await.unwrap();
    let refused = repo.forge.delete_branch("main").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "main is the default branch; it is not deleted"
    );
    repo.git(&["switch", "-q", "-c", "mine"]);
    let refused = repo
        .forge
        .delete_branch("mine")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("branch mine is checked out in "),
        "{refused}"
    );
    assert!(repo.forge.head("mine").await.unwrap().is_some());
}

#[tokio::test]
async fn a_number_that_the_repository_keeps_a_head_for_is_not_given_again() {
    let repo = Repository::new().await;
    let first = repo.pull("one", vec![added("c", "c")]).await;
    let moved = repo.root.with_file_name("moved");
    std::fs::rename(&repo.root, &moved).unwrap();
    let forge = forge_of(repo.home.path(), &moved).await;
    assert_eq!(forge.pull_requests(None).await.unwrap(), []);
    let again = forge.open_pull_request(&request("one")).await.unwrap();
    assert_eq!(
        (first.number, again.number, again.head_commit),
        (1, 2, first.head_commit)
    );
}
