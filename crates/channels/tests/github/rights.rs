//! Who may do what, by the account at GitHub, and about which repository.

use codespar_testkit::github::{GitHubFault, Level};

use crate::{With, World};

#[tokio::test]
async fn a_role_is_that_of_the_account_at_this_moment_whatever_a_comment_says_of_it() {
    let world = World::new(With::App).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    // The comments of the fake all say that their author is an owner.
    for (login, expected) in [
        ("alice", "role merge"),
        ("bob", "role merge"),
        ("carol", "role read"),
        ("mallory", "you have no role here"),
    ] {
        world.say(issue, login, "@codespar whoami").await;
        let said = world.last(issue);
        assert!(said.contains(expected), "{login}: {said}");
        assert!(said.contains(&format!("@{login} ")), "{login}: {said}");
    }
    world
        .say(issue, "carol", "@codespar fix the greeting")
        .await;
    assert!(world.last(issue).contains("needs the role write"));
    world.github.make_public();
    world
        .say(issue, "mallory", "@codespar ask what is this?")
        .await;
    assert!(world.last(issue).contains("you have no role here"));
    world.github.set_level("bob", Level::None);
    world.say(issue, "bob", "@codespar merge PR #1").await;
    assert!(world.last(issue).contains("you have no role here"));
    assert!(world.room.tasks().await.is_empty());
    world.room.close().await;
}

#[tokio::test]
async fn a_comment_is_about_its_own_repository_and_no_other() {
    let world = World::new(With::Token).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    world
        .say(issue, "alice", "@codespar fix the greeting in acme/other")
        .await;
    assert!(
        world.last(issue).contains("not about acme/other"),
        "{}",
        world.last(issue)
    );
    world.say(issue, "alice", "@codespar link acme/other").await;
    assert!(
        world.last(issue).contains("role admin"),
        "{}",
        world.last(issue)
    );
    assert!(world.room.tasks().await.is_empty());
    world.room.close().await;
}

#[tokio::test]
async fn the_branch_of_a_fork_is_reviewed_for_those_who_may_write_and_never_changed() {
    let world = World::new(With::Token).await;
    world.branch("theirs");
    let pull = world.github.open_pull("mallory", "theirs", "main").unwrap();
    world.github.set_fork(pull, "mallory");
    for text in [
        "@codespar also update the tests",
        "@codespar fix the greeting",
        "@codespar merge PR #1",
    ] {
        world.say(pull, "alice", text).await;
        assert!(
            world.last(pull).contains("comes from a fork"),
            "{}",
            world.last(pull)
        );
    }
    world.say(pull, "carol", "@codespar review PR #1").await;
    assert!(
        world.last(pull).contains("needs the role write"),
        "{}",
        world.last(pull)
    );
    world.say(pull, "alice", "@codespar review PR #1").await;
    assert!(
        world.last(pull).contains("PR #1 in acme/shop: risk"),
        "{}",
        world.last(pull)
    );
    // From elsewhere it is the same.
    let issue = world.github.open_issue("alice", "Greeting", "");
    world.say(issue, "alice", "@codespar merge PR #1").await;
    let said = world.last(issue);
    assert!(said.contains("comes from a fork"), "{said}");
    // What GitHub does not tell is not guessed.
    for _ in 0..2 {
        world
            .github
            .inject(GitHubFault::status("GET", "/pulls/1", 500));
    }
    world.say(pull, "alice", "@codespar fix the greeting").await;
    assert!(
        world.last(pull).contains("say it again later"),
        "{}",
        world.last(pull)
    );
    assert!(world.room.tasks().await.is_empty());
    world.room.close().await;
}
