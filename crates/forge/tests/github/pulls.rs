//! Pull requests.

use codespar_forge::{Draft, Forge, ForgeError, PullRequestChange};
use codespar_protocol::{PullRequest, PullRequestState};

use crate::world::{World, new_commit, new_pull};

#[tokio::test]
async fn a_pull_request_is_opened_once() {
    let world = World::new().await;
    let head = world.branch("codespar/a", "README.md", "x\n").await;
    let opened = world
        .forge
        .open_pull_request(&new_pull("codespar/a"))
        .await
        .unwrap();
    let expected = PullRequest {
        number: 1,
        title: "Change on codespar/a".to_owned(),
        body: "What and why.".to_owned(),
        state: PullRequestState::Open,
        draft: false,
        head: "codespar/a".to_owned(),
        head_commit: head,
        base: "main".to_owned(),
        author: "bob".to_owned(),
        url: Some(format!("{}/acme/shop/pull/1", world.github.base_url)),
        created_at: opened.created_at,
        updated_at: opened.updated_at,
        merge_commit: None,
    };
    assert_eq!(opened, expected);
    let again = world
        .forge
        .open_pull_request(&new_pull("codespar/a"))
        .await
        .unwrap();
    assert_eq!(again, expected);
    assert_eq!(world.forge.pull_request(1).await.unwrap(), expected);
    assert_eq!(world.count("POST /pulls"), 1);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_shortened() {
    let world = World::new().await;
    world.branch("codespar/a", "README.md", "x\n").await;
    let mut new = new_pull("codespar/a");
    new.body = "ä".repeat(70_000);
    let opened = world.forge.open_pull_request(&new).await.unwrap();
    assert_eq!(opened.body.chars().count(), world.forge.max_body_chars());
}

#[tokio::test]
async fn what_github_refuses_is_told_in_its_words() {
    let world = World::new().await;
    let parent = world.main().await;
    let mut new = new_commit("codespar/a", &parent, "README.md", "x");
    new.changes.0.clear();
    let error = world
        .forge
        .open_pull_request(&new_pull("codespar/a"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a pull request for codespar/a of acme/shop: Validation Failed: PullRequest head invalid (422)"
    );
    world.git(&["branch", "codespar/a", "main"]);
    let error = world
        .forge
        .open_pull_request(&new_pull("codespar/a"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a pull request for codespar/a of acme/shop: Validation Failed: No commits between main and \
         codespar/a (422)"
    );
    let error = world.forge.pull_request(9).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not found: pull request #9 of acme/shop, or the token may not see it (it takes the \
         permission Pull requests: read)"
    );
}

#[tokio::test]
async fn title_body_state_and_draft_change() {
    let world = World::new().await;
    world.pull("codespar/a", "README.md", "x\n").await;
    let change = |change: PullRequestChange| {
        let forge = &world.forge;
        async move { forge.change_pull_request(1, &change).await }
    };
    let changed = change(PullRequestChange {
        title: Some("T".to_owned()),
        body: Some("B".to_owned()),
        draft: Some(Draft::Draft),
        ..PullRequestChange::default()
    });
    let changed = changed.await.unwrap();
    assert_eq!(
        (changed.title.as_str(), changed.body.as_str(), changed.draft),
        ("T", "B", true)
    );
    let draft = |draft| PullRequestChange {
        draft: Some(draft),
        ..PullRequestChange::default()
    };
    assert!(change(draft(Draft::Draft)).await.unwrap().draft);
    assert!(!change(draft(Draft::Ready)).await.unwrap().draft);
    assert_eq!(
        world.count("POST /graphql"),
        2,
        "no call where nothing changes"
    );
    let state = |state| PullRequestChange {
        state: Some(state),
        ..PullRequestChange::default()
    };
    for wanted in [PullRequestState::Closed, PullRequestState::Open] {
        assert_eq!(change(state(wanted)).await.unwrap().state, wanted);
    }
    let error = change(state(PullRequestState::Merged)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "pull request #1 of acme/shop: it is merged by merging it, not by changing its state"
    );
    let carol = world.forge_as("carol-token");
    let error = carol
        .change_pull_request(1, &draft(Draft::Draft))
        .await
        .unwrap_err();
    assert!(matches!(error, ForgeError::Forbidden { .. }), "{error}");
}

#[tokio::test]
async fn where_there_are_no_drafts_the_pull_request_is_not_one_and_says_so() {
    let world = World::new().await;
    world.branch("codespar/a", "README.md", "x\n").await;
    let mut new = new_pull("codespar/a");
    new.draft = Draft::Draft;
    world.github.refuse_drafts();
    assert!(!world.forge.open_pull_request(&new).await.unwrap().draft);
}

#[tokio::test]
async fn more_than_a_page_of_pull_requests_is_listed_latest_first() {
    let world = World::new().await;
    let main = world.main().await;
    let tree = world.git(&["rev-parse", "main^{tree}"]);
    let commit = world.git(&["commit-tree", &tree, "-p", &main.0, "-m", "empty"]);
    for number in 1..=205 {
        world.git(&["update-ref", &format!("refs/heads/b{number}"), &commit]);
        world.github.open_pull("bob", &format!("b{number}"), "main");
    }
    world.github.close(7);
    let numbers = |state| {
        let forge = &world.forge;
        async move {
            let pulls = forge.pull_requests(state).await.unwrap();
            pulls.iter().map(|pull| pull.number).collect::<Vec<u64>>()
        }
    };
    assert_eq!(numbers(None).await, (1..=205).rev().collect::<Vec<_>>());
    assert_eq!(world.count("GET /pulls"), 3);
    let open: Vec<u64> = (1..=205).rev().filter(|number| *number != 7).collect();
    assert_eq!(numbers(Some(PullRequestState::Open)).await, open);
    assert_eq!(numbers(Some(PullRequestState::Closed)).await, [7]);
    assert_eq!(numbers(Some(PullRequestState::Merged)).await, [0; 0]);
}

#[tokio::test]
async fn the_diff_comes_whole_or_file_by_file() {
    let world = World::new().await;
    world.pull("codespar/a", "README.md", "# Store\n").await;
    let whole = world.forge.diff(1).await.unwrap();
    let body = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Shop\n+# Store\n";
    assert!(
        whole.starts_with("diff --git a/README.md b/README.md\nindex "),
        "{whole}"
    );
    assert!(whole.ends_with(body), "{whole}");
    world.github.set_diff_limit(10);
    let pieced = world.forge_as("bob-token").diff(1).await.unwrap();
    assert_eq!(
        pieced,
        format!("diff --git a/README.md b/README.md\n{body}")
    );
}

#[tokio::test]
async fn what_happens_is_told_once_under_the_same_key() {
    let world = World::new().await;
    let pull = world.pull("codespar/a", "README.md", "x\n").await;
    let head = pull.head_commit.0.clone();
    world.github.set_check_run(&head, "unit", Some("failure"));
    world.github.set_check_run(&head, "slow", None);
    world.github.set_status(&head, "ci/lint", "success");
    world.github.comment(1, "carol", "@codespar why?");
    let texts = |all: Vec<codespar_forge::Activity>| -> Vec<String> {
        all.into_iter().map(|one| one.text).collect()
    };
    let first = world.forge.activity(1).await.unwrap();
    let mut told = texts(first.clone());
    told.sort();
    let short = pull.head_commit.short();
    assert_eq!(
        told,
        [
            "carol: @codespar why?".to_owned(),
            format!("check ci/lint passed on {short}"),
            format!("check unit failed on {short}"),
        ]
    );
    // The second look brings `mergeable`; from the third on nothing has changed.
    assert_eq!(world.forge.activity(1).await.unwrap(), first);
    world.github.forget_requests();
    assert_eq!(world.forge.activity(1).await.unwrap(), first);
    let statuses: Vec<u16> = world
        .github
        .requests()
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(statuses, [304; 6], "{:?}", world.asked());
    world.github.close(1);
    assert_eq!(
        texts(world.forge.activity(1).await.unwrap())
            .last()
            .unwrap(),
        "it was closed"
    );
}
