//! What is asked for, where GitHub cannot reach the server: comments, labels, reviews.

use std::time::Duration;

use codespar_channels::github::{GITHUB, RepositoryPolling, listen};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{With, World, common::until};

/// A server that asks, and the file in which it keeps how far it is.
struct Polled {
    world: World,
    state: tempfile::TempDir,
}

/// A process that asks; another one goes on after it has ended.
struct Asking {
    cancel: CancellationToken,
    listening: JoinHandle<()>,
}

impl Asking {
    async fn end(self) {
        self.cancel.cancel();
        self.listening.await.unwrap();
    }
}

impl Polled {
    async fn new() -> Self {
        Self {
            world: World::new(With::Token).await,
            state: tempfile::tempdir().unwrap(),
        }
    }

    fn ask(&self) -> Asking {
        let polling = RepositoryPolling {
            repositories: vec!["acme/shop".to_owned()],
            file: self.state.path().join("poll.json"),
            interval: Duration::from_millis(50),
        };
        let cancel = self.world.room.cancel.child_token();
        let (channel, core) = (self.world.channel.clone(), self.world.room.core.clone());
        let listening = listen(channel, Some(polling), core, cancel.clone());
        Asking {
            listening: tokio::spawn(listening),
            cancel,
        }
    }

    /// Asks for the first time, and goes on once what is older does not count. GitHub counts whole
    /// seconds.
    async fn begin(&self) -> Asking {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let asking = self.ask();
        let file = self.state.path().join("poll.json");
        until("the first look", || file.exists()).await;
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        asking
    }

    /// Waits until we have said so much, and nothing is left to be done.
    async fn answered(&self, number: u64, count: usize) {
        until("it is answered", || self.world.ours(number).len() >= count).await;
        self.world.room.idle(GITHUB).await;
        assert_eq!(self.world.ours(number).len(), count);
    }

    /// Waits for some more looks.
    async fn looks_again(&self) {
        let asked = || self.world.github.requests().len();
        let before = asked();
        until("further looks", || asked() > before + 9).await;
        self.world.room.idle(GITHUB).await;
    }

    /// What was asked for and had not changed, by the ends of the addresses.
    fn unchanged(&self, end: &str) -> usize {
        let asked = self.world.github.requests();
        let those = asked.iter().filter(|one| one.status == 304);
        those.filter(|one| one.path.ends_with(end)).count()
    }
}

#[tokio::test]
async fn comments_that_are_polled_are_the_same_messages_and_old_ones_never_count() {
    let polled = Polled::new().await;
    let world = &polled.world;
    let issue = world.github.open_issue("alice", "Greeting", "");
    let old = world.github.say(issue, "alice", "hello");
    let old = old.body["comment"]["id"].as_u64().unwrap();
    let first = polled.begin().await;
    world.github.edit_comment(old, "@codespar fix the greeting");
    let event = world.github.say(issue, "carol", "@codespar whoami");
    polled.answered(issue, 1).await;
    first.end().await;
    // The next process goes on from there; what is delivered besides is the same message.
    let second = polled.ask();
    assert_eq!(world.deliver(&event).await, 200);
    world.github.say(issue, "carol", "@codespar whoami");
    polled.answered(issue, 2).await;
    polled.looks_again().await;
    second.end().await;
    assert_eq!(world.ours(issue).len(), 2);
    assert!(
        world.room.tasks().await.is_empty(),
        "an edit does not trigger"
    );
    for list in ["/issues/comments", "/issues/events", "/pulls"] {
        assert!(polled.unchanged(list) > 0, "{list} is free if unchanged");
    }
    polled.world.room.close().await;
}

#[tokio::test]
async fn an_issue_that_is_labelled_is_one_request_of_who_labelled_it() {
    let polled = Polled::new().await;
    let world = &polled.world;
    let old = world.github.open_issue("mallory", "Old", "");
    world.github.label(old, "alice", "codespar");
    let issue = world
        .github
        .open_issue("mallory", "Greeting", "It is rude.");
    let first = polled.begin().await;
    world.github.label(issue, "alice", "bug");
    world.github.label(issue, "mallory", "codespar");
    polled.answered(issue, 1).await;
    assert!(world.last(issue).contains("@mallory you have no role here"));
    // Another second: a label is known by its time.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let event = world.github.label(issue, "alice", "codespar");
    // Progress, and that nothing can be begun without a model.
    polled.answered(issue, 3).await;
    assert_eq!(world.said(issue, "@alice it could not be started"), 1);
    first.end().await;
    let second = polled.ask();
    assert_eq!(world.deliver(&event).await, 200, "the webhook tells it too");
    polled.looks_again().await;
    second.end().await;
    assert_eq!(world.ours(issue).len(), 3);
    assert!(world.ours(old).is_empty(), "older labels do not count");
    polled.world.room.close().await;
}

#[tokio::test]
async fn a_review_that_is_polled_is_one_request_with_its_remarks() {
    let polled = Polled::new().await;
    let world = &polled.world;
    world.branch("ours");
    let pull = world.github.open_pull("bob", "ours", "main").unwrap();
    let mention = [("greet.sh", 1, "@codespar say hi")];
    world.github.submit_review(pull, "alice", "", &mention);
    let first = polled.begin().await;
    world
        .github
        .submit_review(pull, "alice", "fine", &[("greet.sh", 1, "nothing for you")]);
    let remarks = [
        ("greet.sh", 1, "@codespar say hi"),
        ("greet.sh", 1, "and be kind"),
    ];
    let events = world.github.submit_review(pull, "alice", "", &remarks);
    // Progress, and that nothing can be begun without a model.
    polled.answered(pull, 2).await;
    first.end().await;
    let second = polled.ask();
    for event in &events {
        assert_eq!(world.deliver(event).await, 200, "the webhook tells it too");
    }
    let said = world
        .github
        .submit_review(pull, "carol", "@codespar do it", &[]);
    polled.answered(pull, 3).await;
    assert!(
        world
            .last(pull)
            .contains("@carol this needs the role write")
    );
    for event in &said {
        assert_eq!(world.deliver(event).await, 200);
    }
    polled.looks_again().await;
    second.end().await;
    assert_eq!(world.ours(pull).len(), 3);
    let ours = world.ours(pull);
    let begun = ours.iter().filter(|one| one.body.contains("🔍"));
    assert_eq!(begun.count(), 1, "{ours:#?}");
    polled.world.room.close().await;
}
