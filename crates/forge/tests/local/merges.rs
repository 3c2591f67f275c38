//! Merging.

use codespar_forge::{Forge, ForgeError, PullRequestChange};
use codespar_protocol::{CommitId, MergeStrategy, PullRequestState};

use crate::repository::{
    Repository, added, commit_all, forge_of, git, modified, new_commit, order, request, write,
};

use MergeStrategy::{Merge, Rebase, Squash};

/// Two commits on `one`, one more on `main`; `main` is not checked out.
async fn parted() -> (Repository, CommitId, CommitId) {
    let repo = Repository::new().await;
    let changed = "ONE\ntwo\nthree\nfour\nfive\n";
    repo.on("one", "k1", vec![modified("src/a.txt", changed)])
        .await;
    let head = repo.on("one", "k2", vec![added("c.txt", "c\r\n")]).await;
    repo.open("one").await;
    write(&repo.root, "src/a.txt", "one\ntwo\nthree\nfour\nFIVE\n");
    let base = commit_all(&repo.root, "five");
    repo.git(&["switch", "-q", "--detach"]);
    (repo, base, head)
}

fn assert_both_sides(repo: &Repository, merged: &CommitId) {
    assert_eq!(repo.files(merged), ["b.txt", "c.txt", "src/a.txt"]);
    assert_eq!(repo.shown(merged, "c.txt"), "c\r\n");
    assert_eq!(
        repo.shown(merged, "src/a.txt"),
        "ONE\ntwo\nthree\nfour\nFIVE\n"
    );
}

#[tokio::test]
async fn each_strategy_gives_the_same_tree_on_parents_of_its_own() {
    for strategy in [Merge, Squash, Rebase] {
        let (repo, base, head) = parted().await;
        let before = repo.git(&["status", "--porcelain", "--branch"]);

        let merged = repo.forge.merge(1, &order(strategy, &head)).await.unwrap();

        assert_both_sides(&repo, &merged);
        assert_eq!(repo.at("main"), merged);
        assert_eq!(repo.at("one"), head);
        assert_eq!(repo.git(&["status", "--porcelain", "--branch"]), before);
        let trailer = format!("CodeSpar-Merge: #1 {head}");
        let (parents, message) = match strategy {
            Merge => (
                vec![base.clone(), head.clone()],
                format!("Merge pull request #1 from one\n\nChange by one\n\n{trailer}"),
            ),
            Squash => (
                vec![base.clone()],
                format!("Change by one (#1)\n\n{trailer}"),
            ),
            Rebase => {
                let first = repo.at("main^");
                assert_eq!(repo.parents(&first), std::slice::from_ref(&base));
                assert_eq!(repo.message(&first), repo.message(&repo.at("one^")));
                let message = repo.message(&head);
                (vec![first], format!("{message}\n{trailer}"))
            }
        };
        assert_eq!(repo.parents(&merged), parents, "{strategy}");
        assert_eq!(repo.message(&merged), message);
        let pull = repo.forge.pull_request(1).await.unwrap();
        assert_eq!(
            (pull.state, pull.merge_commit.as_ref(), &pull.head_commit),
            (PullRequestState::Merged, Some(&merged), &head)
        );
        let again = repo.forge.merge(1, &order(strategy, &head)).await.unwrap();
        assert_eq!((again, repo.at("main")), (merged.clone(), merged));
    }
}

#[tokio::test]
async fn a_rebase_keeps_authors_and_leaves_out_what_the_base_has() {
    let (repo, _, _) = parted().await;
    repo.git(&["switch", "-q", "main"]);
    write(&repo.root, "c.txt", "c\r\n");
    let base = commit_all(&repo.root, "the same change");
    repo.on("one", "empty", Vec::new()).await;
    let head = repo.on("one", "k3", vec![added("d", "d")]).await;
    let about = |name: &str| repo.git(&["show", "-s", "--format=%an %ae %ad %s", name]);

    repo.forge.merge(1, &order(Rebase, &head)).await.unwrap();

    let list = repo.git(&[
        "log",
        "--format=%s",
        "--first-parent",
        &format!("{base}..main"),
    ]);
    assert_eq!(list, "codespar: k3\ncodespar: empty\ncodespar: k1");
    assert_eq!(about("main"), about("one"));
    assert_eq!(about("main~2"), about("one~3"));
}

#[tokio::test]
async fn a_rebase_that_would_lose_a_merge_is_refused() {
    let (repo, base, _) = parted().await;
    repo.git(&["switch", "-q", "one"]);
    repo.git(&["merge", "-q", "--no-ff", "--no-commit", "main"]);
    write(&repo.root, "only-in-the-merge", "x");
    let head = commit_all(&repo.root, "merge main");
    repo.git(&["switch", "-q", "--detach"]);
    let refused = repo
        .forge
        .merge(1, &order(Rebase, &head))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, ForgeError::Refused(text) if text.contains("merges that a rebase would lose")),
        "{refused:?}"
    );
    assert_eq!(repo.at("main"), base);
    let merged = repo.forge.merge(1, &order(Squash, &head)).await.unwrap();
    assert_eq!(repo.parents(&merged), [base]);
    assert_eq!(repo.shown(&merged, "only-in-the-merge"), "x");
}

#[tokio::test]
async fn a_title_of_ones_own_is_the_first_line() {
    for strategy in [Merge, Squash] {
        let (repo, _, head) = parted().await;
        let mut order = order(strategy, &head);
        order.title = Some("In with it".to_owned());
        let merged = repo.forge.merge(1, &order).await.unwrap();
        assert_eq!(repo.message(&merged).lines().next(), Some("In with it"));
    }
}

#[tokio::test]
async fn a_head_that_moved_is_not_merged() {
    let (repo, base, head) = parted().await;
    let pushed = repo.on("one", "k3", vec![added("evil", "x")]).await;
    let refused = repo.forge.merge(1, &order(Merge, &head)).await.unwrap_err();
    assert!(
        matches!(&refused, ForgeError::Moved { branch, found, expected }
            if branch == "one" && *found == pushed && *expected == head),
        "{refused:?}"
    );
    assert_eq!(repo.at("main"), base);
    repo.forge.merge(1, &order(Merge, &pushed)).await.unwrap();
    let refused = repo.forge.merge(1, &order(Merge, &head)).await.unwrap_err();
    assert!(matches!(refused, ForgeError::Moved { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_conflict_names_the_files_and_changes_nothing() {
    let (repo, _, _) = parted().await;
    repo.on(
        "two",
        "k",
        vec![modified("src/a.txt", "1\n"), added("e", "e")],
    )
    .await;
    // From where `main` was before, so that both changed the same line.
    let parent = repo.at("main^");
    let new = new_commit(
        "three",
        parent,
        "k",
        vec![
            modified("src/a.txt", "one\ntwo\nthree\nfour\n5\n"),
            added("e", "e"),
        ],
    );
    let head = repo.forge.commit(&new).await.unwrap();
    repo.open("three").await;
    let main = repo.at("main");
    for strategy in [Merge, Squash, Rebase] {
        let refused = repo
            .forge
            .merge(2, &order(strategy, &head))
            .await
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "it conflicts with its base in src/a.txt"
        );
    }
    assert_eq!(repo.at("main"), main);
    let pull = repo.forge.pull_request(2).await.unwrap();
    assert_eq!(pull.state, PullRequestState::Open);
}

#[tokio::test]
async fn what_is_closed_or_a_draft_is_not_merged() {
    let (repo, base, head) = parted().await;
    let change = |state, draft| PullRequestChange {
        state: Some(state),
        draft: Some(draft),
        ..PullRequestChange::default()
    };
    for (change, reason) in [
        (
            change(PullRequestState::Closed, codespar_forge::Draft::Ready),
            "#1 is closed; open it again to merge it",
        ),
        (
            change(PullRequestState::Open, codespar_forge::Draft::Draft),
            "#1 is a draft; mark it as ready to merge it",
        ),
    ] {
        repo.forge.change_pull_request(1, &change).await.unwrap();
        let refused = repo.forge.merge(1, &order(Merge, &head)).await.unwrap_err();
        assert_eq!(refused.to_string(), reason);
    }
    assert_eq!(repo.at("main"), base);
}

#[tokio::test]
async fn a_work_tree_on_the_base_comes_along_with_the_users_changes_kept() {
    for strategy in [Merge, Squash, Rebase] {
        let (repo, _, head) = parted().await;
        repo.git(&["switch", "-q", "main"]);
        write(&repo.root, "b.txt", "being edited\n");
        write(&repo.root, "staged.txt", "staged\n");
        repo.git(&["add", "staged.txt"]);
        write(&repo.root, "untracked.txt", "u\n");

        let merged = repo.forge.merge(1, &order(strategy, &head)).await.unwrap();

        assert_eq!(repo.at("HEAD"), merged);
        assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!(
            repo.git(&["status", "--porcelain"]),
            " M b.txt\nA  staged.txt\n?? untracked.txt"
        );
        let text = std::fs::read_to_string(repo.root.join("src/a.txt")).unwrap();
        assert_eq!(text, "ONE\ntwo\nthree\nfour\nFIVE\n");
        assert!(repo.root.join("c.txt").exists());
    }
}

#[tokio::test]
async fn changes_in_the_work_tree_that_a_merge_would_lose_refuse_it() {
    for (file, staged) in [("src/a.txt", false), ("src/a.txt", true), ("c.txt", false)] {
        let (repo, base, head) = parted().await;
        repo.git(&["switch", "-q", "main"]);
        write(&repo.root, file, "mine\n");
        if staged {
            repo.git(&["add", file]);
        }
        let before = repo.belongings();

        let refused = repo.forge.merge(1, &order(Merge, &head)).await.unwrap_err();

        assert_eq!(
            refused.to_string(),
            format!(
                "main is checked out in {}, with changes that are not committed in {file}; commit \
                 or stash them, then merge again",
                repo.root.display()
            )
        );
        assert_eq!(repo.belongings(), before);
        assert_eq!(repo.at("main"), base);
        let pull = repo.forge.pull_request(1).await.unwrap();
        assert_eq!(pull.state, PullRequestState::Open);
        repo.git(&["stash", "-q", "-u"]);
        repo.forge.merge(1, &order(Merge, &head)).await.unwrap();
    }
}

#[tokio::test]
async fn a_linked_work_tree_on_the_base_comes_along_too() {
    let (repo, _, head) = parted().await;
    let tree = repo.home.path().join("linked");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "main"]);
    repo.forge.merge(1, &order(Merge, &head)).await.unwrap();
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
    assert!(tree.join("c.txt").exists() && !repo.root.join("c.txt").exists());
}

#[tokio::test]
async fn a_merge_that_was_not_recorded_is_found_again() {
    for strategy in [Merge, Squash, Rebase] {
        let (repo, _, head) = parted().await;
        // Its store knows of the pull request but never hears of the merge, as after a crash.
        let crashed = forge_of(&repo.home.path().join("crashed"), &repo.root).await;
        repo.git(&["update-ref", "-d", "refs/codespar/pull/1/head"]);
        crashed.open_pull_request(&request("one")).await.unwrap();
        let merged = repo.forge.merge(1, &order(strategy, &head)).await.unwrap();
        repo.git(&["switch", "-q", "main"]);
        write(&repo.root, "later", "x");
        let later = commit_all(&repo.root, "later");
        repo.git(&["branch", "-q", "-D", "one"]);

        let pulls = crashed.pull_requests(None).await.unwrap();

        let states: Vec<_> = pulls
            .into_iter()
            .map(|pull| (pull.state, pull.merge_commit))
            .collect();
        assert_eq!(states, [(PullRequestState::Merged, Some(merged.clone()))]);
        let found = crashed.merge(1, &order(strategy, &head)).await.unwrap();
        assert_eq!((found, repo.at("main")), (merged, later), "{strategy}");
    }
}

#[tokio::test]
async fn two_merges_into_one_base_at_once_both_get_in() {
    let (repo, _, first) = parted().await;
    let second = repo.pull("two", vec![added("e", "e")]).await.head_commit;
    let third = repo.pull("three", vec![added("f", "f")]).await.head_commit;
    let orders = [&first, &second, &third].map(|head| order(Squash, head));
    let (one, two, three) = tokio::join!(
        repo.forge.merge(1, &orders[0]),
        repo.forge.merge(2, &orders[1]),
        repo.forge.merge(3, &orders[2]),
    );
    for merged in [one, two, three] {
        let merged = merged.unwrap();
        assert!(!repo.git(&["branch", "--contains", &merged.0]).is_empty());
    }
    assert_eq!(
        repo.files(&repo.at("main")),
        ["b.txt", "c.txt", "e", "f", "src/a.txt"]
    );
}

#[tokio::test]
async fn a_branch_merged_by_hand_is_recorded_as_merged() {
    let (repo, _, head) = parted().await;
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-edit", "one"]);
    let main = repo.at("main");
    assert_eq!(
        repo.forge.merge(1, &order(Merge, &head)).await.unwrap(),
        main
    );
    let pull = repo.forge.pull_request(1).await.unwrap();
    assert_eq!(pull.state, PullRequestState::Merged);
}
