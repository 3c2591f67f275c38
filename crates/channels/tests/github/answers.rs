//! Comments and reactions of ours, over an API that fails and in threads where others copy us.

use std::time::Duration;

use codespar_channels::{ChannelAdapter, github::GITHUB};
use codespar_testkit::github::{FaultKind, GitHubFault};

use crate::{With, World, common::PATIENCE};

#[tokio::test]
async fn limits_lost_answers_and_old_tokens_show_a_comment_once() {
    let world = World::new(With::App).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    let end = format!("/issues/{issue}/comments");
    let limit = FaultKind::SecondaryLimit {
        retry_after: Some(1),
    };
    world.github.inject(GitHubFault::new("POST", &end, limit));
    world.github.inject(GitHubFault::cut_after("POST", &end));
    // Somebody copies the mark that our comment will have; it is not taken for ours.
    world.say(issue, "carol", "@codespar whoami").await;
    let ours = world.ours(issue);
    assert_eq!(ours.len(), 1, "{ours:#?}");
    assert_eq!(ours[0].author, "codespar[bot]");
    world.github.revoke_app_tokens();
    world.say(issue, "carol", "@codespar whoami").await;
    assert_eq!(world.ours(issue).len(), 2);
    assert_eq!(world.github.faults_left(), 0);
    world.room.close().await;
}

#[tokio::test]
async fn a_copied_mark_does_not_hide_a_comment_of_ours() {
    let world = World::new(With::App).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    world.say(issue, "carol", "@codespar whoami").await;
    let mark = world.last(issue).lines().next().unwrap().to_owned();
    let other = world.github.open_issue("alice", "Another", "");
    world.github.comment(other, "mallory", &mark);
    let at = codespar_channels::ThreadRef {
        channel: GITHUB.to_owned(),
        conversation: "acme/shop".to_owned(),
        thread: other.to_string(),
    };
    let key = format!(
        "github:comment:{}:created/reply",
        world.github.comments(issue)[0].id
    );
    assert_eq!(world.channel.find_posted(&at, &key).await.unwrap(), None);
    let at = codespar_channels::ThreadRef {
        thread: issue.to_string(),
        ..at
    };
    assert!(
        world
            .channel
            .find_posted(&at, &key)
            .await
            .unwrap()
            .is_some()
    );
    world.room.close().await;
}

#[tokio::test]
async fn a_reaction_tells_that_it_was_read_and_what_came_of_it() {
    let world = World::new(With::Token).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    world.say(issue, "alice", "@codespar whoami").await;
    world.say(issue, "mallory", "@codespar whoami").await;
    world.say(issue, "alice", "nothing for you").await;
    let reactions = || -> Vec<Vec<String>> {
        let comments = world.github.comments(issue);
        let said = comments.iter().filter(|one| !one.body.starts_with("<!--"));
        said.map(|one| {
            one.reactions
                .iter()
                .map(|(_, content)| content.clone())
                .collect()
        })
        .collect()
    };
    let expected = [vec!["eyes", "rocket"], vec!["confused"], vec![]];
    // They are made beside the work.
    let begun = std::time::Instant::now();
    while reactions().iter().map(Vec::len).sum::<usize>() < 3 && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(reactions(), expected);
    world.room.close().await;
}
