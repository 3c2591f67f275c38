//! An app: tokens for one repository, kept, renewed, and used for everything.

use std::sync::Arc;

use codespar_forge::{Forge, GitHubAccess, GitHubApp, GitHubForge, github_client};
use codespar_testkit::github::{APP_ID, APP_KEY_PKCS1, APP_KEY_PKCS8, GitHubFault, Level};
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use crate::world::{World, setup};

fn app(world: &World, id: &str, key: &str) -> Arc<GitHubApp> {
    let api: url::Url = world.github.base_url.parse().unwrap();
    let http = github_client(&api, None).unwrap();
    Arc::new(GitHubApp::new(id, &SecretString::from(key), api, http).unwrap())
}

fn forge(world: &World, app: &Arc<GitHubApp>) -> GitHubForge {
    let mut setup = setup(&world.github.base_url, "unused");
    setup.access = GitHubAccess::App(app.clone());
    GitHubForge::new(setup).unwrap()
}

#[tokio::test]
async fn a_token_of_an_installation_is_made_once_for_its_repository_and_kept() {
    let world = World::new().await;
    world.github.install_app("codespar");
    let app = app(&world, APP_ID, APP_KEY_PKCS8);
    for _ in 0..2 {
        let forge = forge(&world, &app);
        assert_eq!(forge.default_branch().await.unwrap(), "main");
    }
    assert_eq!(world.github.made_app_tokens(), 1);
    let requests = world.github.requests();
    let made = requests
        .iter()
        .find(|request| request.path.ends_with("/access_tokens"));
    assert_eq!(made.unwrap().body["repositories"][0], "shop");
    let last = requests.last().unwrap();
    let sent = last.header("authorization").unwrap();
    assert!(sent.starts_with("Bearer ghs_"), "{sent}");
    let shown = format!("{:?} {app:?}", GitHubAccess::App(app.clone()));
    assert!(!shown.contains("ghs_"), "{shown}");
}

#[tokio::test]
async fn a_token_that_ends_soon_or_is_refused_is_replaced() {
    let world = World::new().await;
    world.github.install_app("codespar");
    world
        .github
        .set_app_token_lifetime(SignedDuration::from_mins(4));
    let app = app(&world, APP_ID, APP_KEY_PKCS1);
    let forge = forge(&world, &app);
    forge.default_branch().await.unwrap();
    world
        .github
        .set_app_token_lifetime(SignedDuration::from_hours(1));
    forge.default_branch().await.unwrap();
    assert_eq!(world.github.made_app_tokens(), 2, "less than five minutes");
    forge.default_branch().await.unwrap();
    assert_eq!(world.github.made_app_tokens(), 2);
    world.github.revoke_app_tokens();
    forge.default_branch().await.unwrap();
    assert_eq!(world.github.made_app_tokens(), 3, "401 makes a new one");
    world
        .github
        .inject(GitHubFault::status("GET", "/repos/acme/shop", 401));
    world
        .github
        .inject(GitHubFault::status("GET", "/repos/acme/shop", 401));
    let refused = forge.default_branch().await.unwrap_err().to_string();
    assert!(refused.contains("does not accept the token"), "{refused}");
}

#[tokio::test]
async fn a_wrong_app_is_told_without_its_secrets() {
    let world = World::new().await;
    world.github.install_app("codespar");
    let app = app(&world, "999", APP_KEY_PKCS1);
    let error = forge(&world, &app).default_branch().await.unwrap_err();
    assert!(!error.to_string().contains("eyJ"), "{error}");
    assert!(app.facts().await.is_err());
}

#[tokio::test]
async fn deliveries_that_did_not_arrive_are_found_over_all_pages() {
    let world = World::new().await;
    world.github.install_app("codespar");
    let app = app(&world, APP_ID, APP_KEY_PKCS1);
    let hours = SignedDuration::from_hours;
    world.github.add_delivery(1, "too-old", hours(90), 500);
    world.github.add_delivery(2, "lost", hours(50), 0);
    world.github.add_delivery(3, "came-later", hours(40), 502);
    for id in 10..200 {
        let guid = format!("fine-{id}");
        world.github.add_delivery(id, &guid, hours(20), 200);
    }
    world.github.add_delivery(300, "came-later", hours(1), 200);
    let lost = app.undelivered(Timestamp::now() - hours(72)).await.unwrap();
    let ids: Vec<u64> = lost.iter().map(|one| one.id).collect();
    assert_eq!(ids, [2]);
    app.deliver_again(&lost[0]).await.unwrap();
    assert_eq!(world.github.redelivered(), [2]);
}

#[tokio::test]
async fn everybody_may_read_a_public_repository_and_nobody_gets_a_role_by_that() {
    let world = World::new().await;
    world.github.make_public();
    let forge = world.forge_as("alice-token");
    use codespar_protocol::Permission;
    world.github.set_level("dave", Level::Read);
    assert_eq!(forge.permission("dave").await.unwrap(), Permission::Read);
    assert_eq!(forge.permission("mallory").await.unwrap(), Permission::None);
    assert_eq!(forge.permission("bob").await.unwrap(), Permission::Write);
}
