//! What GitHub delivers: what is one request, and what starts nothing.

use codespar_channels::github::GITHUB;
use codespar_testkit::github::hook_signature;

use crate::{SECRET, With, World};

#[tokio::test]
async fn a_mention_is_one_piece_of_work_with_one_comment_of_progress_however_often_it_is_delivered()
{
    for with in [With::Token, With::App] {
        let world = World::new(with).await;
        let issue = world
            .github
            .open_issue("mallory", "Greeting", "It is rude.");
        let event = world
            .github
            .say(issue, "alice", "@codespar fix the greeting");
        for _ in 0..3 {
            assert_eq!(world.deliver(&event).await, 200);
        }
        world.room.idle(GITHUB).await;
        assert_eq!(world.deliver(&event).await, 200);
        assert_eq!(
            world.deliver(&event.clone().with_action("edited")).await,
            200
        );
        world.room.idle(GITHUB).await;
        // Without a model nothing is begun on GitHub, which is told as any other end.
        let ours = world.ours(issue);
        assert_eq!(ours.len(), 2, "{ours:#?}");
        for text in [
            "acme/shop · ❌ Not started",
            "\n@alice it could not be started",
        ] {
            let count = ours.iter().filter(|one| one.body.contains(text)).count();
            assert_eq!(count, 1, "{text}: {ours:#?}");
        }
        world.room.close().await;
    }
}

#[tokio::test]
async fn what_is_forged_or_broken_gets_its_status_and_starts_nothing() {
    let world = World::new(With::Token).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    let event = world
        .github
        .say(issue, "alice", "@codespar fix the greeting");
    let body = event.body.to_string();
    let signed = |body: &str| hook_signature(SECRET, body.as_bytes());
    let large = "x".repeat(10 << 20);
    for (name, signature, body, expected) in [
        ("issue_comment", signed("another body"), body.as_str(), 401),
        (
            "issue_comment",
            hook_signature("guess", body.as_bytes()),
            &body,
            401,
        ),
        ("issue_comment", "sha256=".to_owned(), &body, 401),
        ("issue_comment", signed("{"), "{", 400),
        ("issue_comment", signed("{}"), "{}", 400),
        ("ping", signed("{"), "{", 400),
        ("issue_comment", signed(&large), &large, 413),
        ("ping", signed("{\"zen\": \"x\"}"), "{\"zen\": \"x\"}", 200),
        ("star", signed("{}"), "{}", 200),
    ] {
        let status = world.post(name, &signature, body.as_bytes()).await;
        assert_eq!(status, expected, "{name} {body:.40}");
    }
    world.room.idle(GITHUB).await;
    assert!(world.room.tasks().await.is_empty());
    assert!(world.ours(issue).is_empty());
    world.room.close().await;
}

#[tokio::test]
async fn a_repository_that_is_not_served_is_not_worked_on_and_not_answered() {
    let settings = r#"{"channels": {"githubRepositories": ["acme/other", "corp/*"]}}"#;
    let world = World::set(With::App, settings).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    world
        .say(issue, "alice", "@codespar fix the greeting")
        .await;
    assert!(world.room.tasks().await.is_empty());
    assert!(world.ours(issue).is_empty());
    assert_eq!(
        world.github.made_app_tokens(),
        0,
        "GitHub is not even asked"
    );
    world.room.close().await;
}

#[tokio::test]
async fn quotations_code_bots_and_our_own_text_start_nothing() {
    let world = World::new(With::Token).await;
    let issue = world
        .github
        .open_issue("alice", "Greeting", "@codespar fix the greeting");
    for (login, text) in [
        ("alice", "> @codespar fix the greeting\n\nwhat about this?"),
        ("alice", "`@codespar fix the greeting`"),
        ("alice", "```\n@codespar fix the greeting\n```"),
        ("alice", "<!-- @codespar fix the greeting -->"),
        ("alice", "@codesparrow fix the greeting"),
        ("ci[bot]", "@codespar fix the greeting"),
        ("codespar[bot]", "@codespar fix the greeting"),
        // Posted with the token of a person, who may do everything.
        ("bob", "<!-- codespar:0123 -->\n@codespar fix the greeting"),
    ] {
        world.say(issue, login, text).await;
    }
    let event = world
        .github
        .say(issue, "alice", "@codespar fix it")
        .with_action("edited");
    assert_eq!(world.deliver(&event).await, 200);
    assert_eq!(world.deliver(&event.with_action("deleted")).await, 200);
    world.room.idle(GITHUB).await;
    assert!(world.room.tasks().await.is_empty());
    assert_eq!(
        world.github.comments(issue).len(),
        9,
        "nothing was answered"
    );
    world.room.close().await;
}

#[tokio::test]
async fn a_review_and_its_remarks_are_one_request_in_either_order() {
    for reversed in [false, true] {
        let world = World::new(With::Token).await;
        world.branch("ours");
        let pull = world.github.open_pull("bob", "ours", "main").unwrap();
        let mut events = world.github.submit_review(
            pull,
            "alice",
            "",
            &[
                ("greet.sh", 1, "@codespar say hi"),
                ("greet.sh", 1, "and be kind"),
            ],
        );
        if reversed {
            events.reverse();
        }
        for event in &events {
            assert_eq!(world.deliver(event).await, 200);
            world.room.idle(GITHUB).await;
        }
        let ours = world.ours(pull);
        let begun = ours.iter().filter(|one| one.body.contains("🔍"));
        assert_eq!(begun.count(), 1, "{ours:#?}");
        assert_eq!(ours.len(), 2, "{ours:#?}");
        world.room.close().await;
    }
}

/// Installed by `cargo xtask test`.
const EXAMPLES: &str = "../../target/github-webhooks/node_modules/@octokit/webhooks-examples/api.github.com/index.json";

#[tokio::test]
#[ignore = "needs GitHub's examples of deliveries; `cargo xtask test` installs them"]
async fn every_example_of_a_delivery_of_github_is_acknowledged() {
    let world = World::set(
        With::Token,
        r#"{"channels": {"githubRepositories": ["Codertocat/*", "octokit/*"]}}"#,
    )
    .await;
    let examples = std::fs::read(EXAMPLES).unwrap();
    let examples: Vec<serde_json::Value> = serde_json::from_slice(&examples).unwrap();
    let mut delivered = 0;
    for kind in &examples {
        let name = kind["name"].as_str().unwrap();
        for example in kind["examples"].as_array().unwrap() {
            let body = example.to_string();
            let signature = hook_signature(SECRET, body.as_bytes());
            let status = world.post(name, &signature, body.as_bytes()).await;
            assert_eq!(status, 200, "{name} {body:.300}");
            delivered += 1;
        }
    }
    assert!(delivered > 100, "{delivered}");
    world.room.idle(GITHUB).await;
    assert!(
        world.room.tasks().await.is_empty(),
        "none of them is for us"
    );
    world.room.close().await;
}
