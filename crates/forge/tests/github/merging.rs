//! Checks, mergeability and merging.

use codespar_forge::{Draft, Forge, ForgeError, MergeOrder, Mergeability, PullRequestChange};
use codespar_protocol::{Check, CheckState, CommitId, MergeStrategy, PullRequestState};
use codespar_testkit::github::{BranchRule, MergeMethods};

use crate::world::{World, new_commit};

fn order(strategy: MergeStrategy, head: &CommitId) -> MergeOrder {
    MergeOrder {
        strategy,
        expected_head: head.clone(),
        title: Some("Into main".to_owned()),
    }
}

#[tokio::test]
async fn checks_and_statuses_are_told_together_page_by_page() {
    let world = World::new().await;
    let main = world.main().await;
    for number in 0..101 {
        world
            .github
            .set_check_run(&main.0, &format!("run {number}"), Some("success"));
    }
    world
        .github
        .set_check_run(&main.0, "skipped", Some("skipped"));
    world
        .github
        .set_check_run(&main.0, "cancelled", Some("cancelled"));
    world.github.set_check_run(&main.0, "running", None);
    world.github.set_status(&main.0, "ci/lint", "error");
    world.github.set_status(&main.0, "ci/deploy", "pending");
    let checks = world.forge.checks(&main).await.unwrap().checks;
    let told: Vec<(&str, CheckState)> = checks
        .iter()
        .map(|check| (check.name.as_str(), check.state))
        .collect();
    assert_eq!(told.len(), 106);
    assert_eq!(
        told[101..],
        [
            ("skipped", CheckState::Success),
            ("cancelled", CheckState::Failure),
            ("running", CheckState::Pending),
            ("ci/lint", CheckState::Failure),
            ("ci/deploy", CheckState::Pending),
        ]
    );
    let expected = Check {
        name: "run 0".to_owned(),
        state: CheckState::Success,
        summary: Some("success".to_owned()),
        url: checks[0].url.clone(),
    };
    assert_eq!(checks[0], expected);
    let output = || world.forge.check_output(&main, "cancelled");
    assert_eq!(output().await.unwrap(), None);
    world
        .github
        .set_check_output(&main.0, "cancelled", "1 failed");
    assert_eq!(output().await.unwrap().as_deref(), Some("1 failed"));
}

#[tokio::test]
async fn mergeability_is_waited_for_and_told_with_its_reason() {
    let world = World::new().await;
    let pull = world.pull("codespar/a", "README.md", "x\n").await;
    world.github.set_mergeable_delay(3);
    let now = || world.forge.mergeability(1);
    assert_eq!(now().await.unwrap(), Mergeability::Clean);
    world
        .github
        .set_check_run(&pull.head_commit.0, "unit", Some("failure"));
    assert_eq!(
        now().await.unwrap(),
        Mergeability::Clean,
        "checks are told by `checks`"
    );
    world.github.set_rule("main", BranchRule::Approval);
    let blocked = |reason: &str| Mergeability::Blocked(reason.to_owned());
    assert_eq!(
        now().await.unwrap(),
        blocked("the rules of main are not met yet: reviews or checks that it requires")
    );
    world.github.set_rule("main", BranchRule::UpToDate);
    world
        .forge
        .commit(&new_commit("main", &world.main().await, "other.txt", "o"))
        .await
        .unwrap();
    assert_eq!(
        now().await.unwrap(),
        blocked("its branch is behind main and must be brought up to date first")
    );
    let mut clash = new_commit("main", &world.main().await, "README.md", "clash\n");
    clash.key = "clash".to_owned();
    world.forge.commit(&clash).await.unwrap();
    assert_eq!(now().await.unwrap(), Mergeability::Conflict(Vec::new()));
    let told = world.forge.activity(1).await.unwrap();
    assert_eq!(told.last().unwrap().text, "it conflicts with main");
    world.github.close(1);
    assert_eq!(now().await.unwrap(), blocked("it is closed"));
    world.pull("codespar/b", "run.sh", "x\n").await;
    world.github.set_mergeable_delay(1000);
    assert_eq!(
        world.forge.mergeability(2).await.unwrap(),
        Mergeability::Unknown
    );
}

#[tokio::test]
async fn each_strategy_merges_as_it_says_and_once() {
    for (strategy, subject, parents) in [
        (MergeStrategy::Merge, "Into main", 2),
        (MergeStrategy::Squash, "Into main", 1),
        (MergeStrategy::Rebase, "codespar: change README.md", 1),
    ] {
        let world = World::new().await;
        let pull = world.pull("codespar/a", "README.md", "x\n").await;
        let order = order(strategy, &pull.head_commit);
        let merged = world.forge.merge(1, &order).await.unwrap();
        assert_eq!(world.git(&["rev-parse", "main"]), merged.0);
        assert_eq!(world.git(&["log", "-1", "--format=%s", "main"]), subject);
        assert_eq!(world.git(&["rev-parse", "main^@"]).lines().count(), parents);
        assert_eq!(world.git(&["show", "main:README.md"]), "x");
        world.forge.delete_branch("codespar/a").await.unwrap();
        assert_eq!(world.forge.merge(1, &order).await.unwrap(), merged);
        let after = world.forge.pull_request(1).await.unwrap();
        assert_eq!(
            (after.state, after.merge_commit),
            (PullRequestState::Merged, Some(merged))
        );
        assert_eq!(world.count("PUT /pulls/1/merge"), 1);
    }
}

#[tokio::test]
async fn a_head_that_has_moved_is_not_merged() {
    let world = World::new().await;
    let pull = world.pull("codespar/a", "README.md", "x\n").await;
    let mut more = new_commit("codespar/a", &pull.head_commit, "README.md", "slipped in\n");
    more.key = "more".to_owned();
    let found = world.forge.commit(&more).await.unwrap();
    let before = world.main().await;
    let error = world
        .forge
        .merge(1, &order(MergeStrategy::Merge, &pull.head_commit))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "codespar/a has moved to {}; expected {}",
            found.short(),
            pull.head_commit.short()
        )
    );
    assert_eq!(world.main().await, before);
}

#[tokio::test]
async fn what_stands_in_the_way_of_a_merge_is_told() {
    let world = World::new().await;
    let pull = world.pull("codespar/a", "README.md", "x\n").await;
    let merge = |strategy| {
        let (forge, order) = (&world.forge, order(strategy, &pull.head_commit));
        async move { forge.merge(1, &order).await.unwrap_err() }
    };
    let what = "merging pull request #1 of acme/shop";
    world.github.set_merge_methods(MergeMethods {
        merge: true,
        squash: false,
        rebase: true,
    });
    assert_eq!(
        merge(MergeStrategy::Squash).await.to_string(),
        format!("{what}: Squash merges are not allowed on this repository. (405)")
    );
    world.github.set_rule("main", BranchRule::Approval);
    assert_eq!(
        merge(MergeStrategy::Merge).await.to_string(),
        format!(
            "{what}: At least 1 approving review is required by reviewers with write access. (405)"
        )
    );
    let draft = PullRequestChange {
        draft: Some(Draft::Draft),
        ..PullRequestChange::default()
    };
    world.forge.change_pull_request(1, &draft).await.unwrap();
    assert_eq!(
        merge(MergeStrategy::Merge).await.to_string(),
        format!("{what}: Pull Request is still a draft (405)")
    );
    assert_eq!(
        world.forge.mergeability(1).await.unwrap(),
        Mergeability::Blocked("it is a draft".to_owned())
    );
    let ready = PullRequestChange {
        draft: Some(Draft::Ready),
        ..PullRequestChange::default()
    };
    world.forge.change_pull_request(1, &ready).await.unwrap();
    world
        .forge
        .commit(&new_commit(
            "main",
            &world.main().await,
            "README.md",
            "clash\n",
        ))
        .await
        .unwrap();
    let error = merge(MergeStrategy::Merge).await;
    assert!(
        matches!(&error, ForgeError::Conflict(files) if files.is_empty()),
        "{error:?}"
    );
    let carol = world.forge_as("carol-token");
    let error = carol
        .merge(1, &order(MergeStrategy::Merge, &pull.head_commit))
        .await
        .unwrap_err();
    assert!(matches!(error, ForgeError::Forbidden { .. }), "{error}");
    world.github.close(1);
    assert_eq!(
        merge(MergeStrategy::Merge).await.to_string(),
        "pull request #1 of acme/shop is closed"
    );
}

#[tokio::test]
async fn checks_that_the_token_may_not_read_are_unknown_and_no_error() {
    let world = World::new().await;
    let pull = world.pull("fix", "README.md", "# Store\n").await;
    world
        .github
        .set_check_run(&pull.head_commit.0, "ci", Some("failure"));
    for status in [403, 404] {
        world.github.refuse_checks(status);
        let found = world.forge.checks(&pull.head_commit).await.unwrap();
        assert_eq!(found.checks, []);
        let reason = found.unknown.unwrap();
        assert!(
            reason.contains("hecks: read") && reason.contains("tatuses: read"),
            "{status}: {reason}"
        );
        world.forge.activity(pull.number).await.unwrap();
    }
    let gone = CommitId("1".repeat(40));
    world.github.refuse_checks(500);
    assert!(world.forge.checks(&gone).await.is_err());
}
