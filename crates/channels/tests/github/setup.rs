//! Apps and tokens: what is checked, and what was not delivered.

use codespar_channels::{ChannelAdapter, FindingKind, github::listen};
use codespar_runtime::{GitHubAccess, github_access};
use jiff::SignedDuration;
use serde_json::json;

use crate::{SETTINGS, With, World, common::Room};

#[tokio::test]
async fn the_check_names_what_an_app_lacks() {
    let world = World::new(With::App).await;
    let problems = async || -> Vec<String> {
        let findings = world.channel.check().await;
        let problems = findings
            .into_iter()
            .filter(|one| one.kind != FindingKind::Fine);
        problems.map(|one| one.text).collect()
    };
    assert_eq!(problems().await, Vec::<String>::new());
    let permissions = json!({"metadata": "read", "contents": "read", "issues": "write",
        "pull_requests": "write", "checks": "write"});
    world.github.set_app_rights(
        &permissions,
        &["issue_comment", "issues", "pull_request_review"],
    );
    world
        .github
        .add_delivery(1, "lost", SignedDuration::from_hours(1), 502);
    let found = problems().await;
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].contains("contents: write"), "{found:#?}");
    assert!(
        found[1].contains("pull_request_review_comment"),
        "{found:#?}"
    );
    assert!(
        found[2].contains("1 event of three days did not arrive"),
        "{found:#?}"
    );
    world.room.close().await;
    let world = World::new(With::Token).await;
    let findings = world.channel.check().await;
    assert!(findings[0].text.contains("speaks as bob"), "{findings:#?}");
    world.room.close().await;
}

#[tokio::test]
async fn deliveries_that_failed_are_asked_for_again_at_the_start() {
    let world = World::new(With::App).await;
    let hours = SignedDuration::from_hours;
    world.github.add_delivery(1, "old", hours(80), 500);
    world.github.add_delivery(2, "lost", hours(2), 0);
    world.github.add_delivery(3, "fine", hours(1), 200);
    let (core, cancel) = (world.room.core.clone(), world.room.cancel.clone());
    listen(world.channel.clone(), None, core, cancel).await;
    assert_eq!(world.github.redelivered(), [2]);
    world.room.close().await;
}

#[tokio::test]
async fn half_an_app_is_a_mistake() {
    for (name, value) in [
        ("GITHUB_APP_ID", "1"),
        ("GITHUB_APP_PRIVATE_KEY_FILE", "/x"),
    ] {
        let room = Room::with(SETTINGS, &[(name, value.to_owned())]).await;
        let error = github_access(&room.core_dir()).unwrap_err().to_string();
        assert!(error.contains("a GitHub App needs both"), "{error}");
        room.close().await;
    }
    let token = [("GITHUB_TOKEN", "t".to_owned())];
    let room = Room::with(SETTINGS, &token).await;
    let access = github_access(&room.core_dir()).unwrap();
    assert!(matches!(access, Some(GitHubAccess::Token(_))));
    room.close().await;
}
