//! Limits on requests, kept answers, Enterprise hosts.

use std::time::Duration;

use codespar_forge::{Draft, Forge, ForgeError, GitHubForge, PullRequestChange};
use codespar_testkit::github::{FaultKind, GitHubFault, GitHubOptions};

use crate::world::{World, new_commit, setup};

fn limited(error: &ForgeError) -> bool {
    matches!(error, ForgeError::RateLimited(_))
}

#[tokio::test]
async fn a_short_limit_is_waited_for_and_nothing_is_sent_meanwhile() {
    let world = World::new().await;
    world.github.inject(GitHubFault::new(
        "GET",
        "/acme/shop",
        FaultKind::PrimaryLimit {
            lifted_in: Duration::from_secs(1),
        },
    ));
    assert_eq!(world.forge.default_branch().await.unwrap(), "main");
    let statuses: Vec<u16> = world
        .github
        .requests()
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(statuses, [403, 200]);
}

#[tokio::test]
async fn a_long_limit_is_an_error_that_says_when() {
    let world = World::new().await;
    world.github.limit_requests(0, Duration::from_secs(1800));
    let error = world.forge.default_branch().await.unwrap_err();
    assert!(limited(&error), "{error:?}");
    let text = error.to_string();
    let start = "the forge's limit on requests is used up; it lets us in again at 20";
    assert!(text.starts_with(start) && text.ends_with('Z'), "{text}");
    // It is known now: nobody asks again before the time.
    assert!(limited(&world.forge.head("main").await.unwrap_err()));
    assert_eq!(world.github.requests().len(), 1);
}

#[tokio::test]
async fn the_last_request_of_the_hour_shuts_the_door_behind_it() {
    let world = World::new().await;
    world.github.limit_requests(1, Duration::from_secs(1800));
    assert_eq!(world.forge.default_branch().await.unwrap(), "main");
    assert!(limited(&world.forge.default_branch().await.unwrap_err()));
    assert_eq!(world.github.requests().len(), 1);
}

#[tokio::test]
async fn a_secondary_limit_is_waited_for_also_by_what_must_not_happen_twice() {
    let world = World::new().await;
    let parent = world.main().await;
    let limit = |retry_after| FaultKind::SecondaryLimit { retry_after };
    world
        .github
        .inject(GitHubFault::new("POST", "/git/refs", limit(Some(0))));
    world
        .github
        .inject(GitHubFault::new("POST", "/git/refs", limit(Some(1))));
    let new = new_commit("codespar/a", &parent, "README.md", "x");
    let made = world.forge.commit(&new).await.unwrap();
    assert_eq!(world.git(&["rev-parse", "codespar/a"]), made.0);
    assert_eq!(world.count("POST /git/refs"), 3);
    for retry_after in [Some(3600), None] {
        let fault = GitHubFault::new("GET", "/acme/shop", limit(retry_after));
        world.github.inject(fault);
        let error = world.forge.default_branch().await.unwrap_err();
        assert!(limited(&error), "{error:?}");
    }
}

#[tokio::test]
async fn what_has_not_changed_costs_nothing() {
    let world = World::new().await;
    let main = world.main().await;
    let tree = world.forge.tree(&main).await.unwrap();
    world.github.limit_requests(1, Duration::from_secs(1800));
    world.github.forget_requests();
    for _ in 0..3 {
        assert_eq!(world.main().await, main);
    }
    assert_eq!(world.forge.tree(&main).await.unwrap(), tree);
    let requests = world.github.requests();
    let statuses: Vec<u16> = requests.iter().map(|request| request.status).collect();
    assert_eq!(
        statuses, [304; 3],
        "trees never change and are not asked for at all"
    );
    assert!(
        requests
            .iter()
            .all(|request| request.header("if-none-match").is_some())
    );
    world.github.limit_requests(100, Duration::from_secs(1800));
    let made = world
        .forge
        .commit(&new_commit("main", &main, "README.md", "x"))
        .await
        .unwrap();
    assert_eq!(world.main().await, made);
}

#[tokio::test]
async fn every_request_says_who_and_which_version() {
    let world = World::new().await;
    world.pull("codespar/a", "README.md", "x").await;
    for request in world.github.requests() {
        assert_eq!(request.header("x-github-api-version"), Some("2022-11-28"));
        assert_eq!(request.header("authorization"), Some("Bearer bob-token"));
        assert!(
            request
                .header("user-agent")
                .unwrap()
                .starts_with("codespar/")
        );
        assert_eq!(
            request.header("accept"),
            Some("application/vnd.github+json")
        );
    }
}

#[tokio::test]
async fn enterprise_has_the_api_under_a_path() {
    let options = GitHubOptions {
        api_path: "/api/v3".to_owned(),
        ..GitHubOptions::default()
    };
    let world = World::with(options).await;
    world.pull("codespar/a", "README.md", "x").await;
    let change = PullRequestChange {
        draft: Some(Draft::Draft),
        ..PullRequestChange::default()
    };
    assert!(
        world
            .forge
            .change_pull_request(1, &change)
            .await
            .unwrap()
            .draft
    );
    let paths: Vec<String> = world
        .github
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert!(paths.contains(&"/api/graphql".to_owned()), "{paths:?}");
    let elsewhere = |path: &&String| !path.starts_with("/api/v3/repos/acme/shop");
    assert_eq!(paths.iter().filter(elsewhere).count(), 1);
    // A slash at the end makes no difference.
    let base = format!("{}/", world.github.base_url);
    let forge = GitHubForge::new(setup(&base, "bob-token")).unwrap();
    assert_eq!(forge.default_branch().await.unwrap(), "main");
}

#[tokio::test]
async fn a_repository_that_was_renamed_is_found_under_its_old_name() {
    let world = World::new().await;
    world.github.set_former_name("old-shop");
    let mut old = setup(&world.github.base_url, "bob-token");
    old.name = "old-shop".to_owned();
    let forge = GitHubForge::new(old).unwrap();
    let main = forge.head("main").await.unwrap().unwrap();
    let new = new_commit("codespar/a", &main, "README.md", "x");
    let made = forge.commit(&new).await.unwrap();
    assert_eq!(world.git(&["rev-parse", "codespar/a"]), made.0);
}

/// Answers everything with this, once per connection.
async fn server_that_says(answer: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn the_token_does_not_follow_to_another_host() {
    let world = World::new().await;
    let elsewhere = format!("{}/repos/acme/shop", world.github.base_url);
    let head = "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nConnection: close\r\nLocation: ";
    let base = server_that_says(format!("{head}{elsewhere}\r\n\r\n")).await;
    let forge = GitHubForge::new(setup(&base, "bob-token")).unwrap();
    let error = forge.default_branch().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "repository acme/shop: GitHub points to another host, 127.0.0.1; the token is not sent there"
    );
    assert_eq!(world.asked(), [""; 0]);
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_an_error_that_says_so() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]";
    let base = server_that_says(answer.to_owned()).await;
    let forge = GitHubForge::new(setup(&base, "bob-token")).unwrap();
    let error = forge.default_branch().await.unwrap_err().to_string();
    let start = "repository acme/shop: GitHub's answer is not what it should be: ";
    assert!(error.starts_with(start), "{error}");
}
