//! What is done later for somebody who commented: with their account, in their repository, and with
//! the rights that the account has then.

use codespar_channels::github::GITHUB;
use codespar_store::{ChannelTimer, TimerKind, TimerState};
use codespar_testkit::github::Level;
use jiff::{SignedDuration, Timestamp};

use crate::{With, World};

impl World {
    async fn timer(&self, kind: TimerKind) -> ChannelTimer {
        let store = self.room.runtime.store();
        let timers = store.timers_of(GITHUB, "acme/shop", kind).await.unwrap();
        timers.into_iter().next_back().unwrap()
    }

    /// Has the time of a timer come, and waits until what comes of it is done.
    async fn when_due(&self, kind: TimerKind) {
        let mut timer = self.timer(kind).await;
        timer.next_at = Timestamp::now() - SignedDuration::from_secs(1);
        self.room.runtime.store().put_timer(timer).await.unwrap();
        // A message has the loop look at what is due.
        let other = self.github.open_issue("carol", "Another", "");
        self.say(other, "carol", "@codespar whoami").await;
    }

    /// `account decision repository` of the runs that were asked for.
    async fn runs(&self) -> Vec<String> {
        let entries = self.room.runtime.store().audit(0, 1_000).await.unwrap();
        let entries = entries.into_iter().map(|one| one.entry);
        let is_ours = |identity: &str| !identity.starts_with("github:comment");
        let of_timers = entries.filter(|one| is_ours(&one.identity));
        of_timers
            .map(|one| {
                let repository = one.repository.unwrap_or_default();
                format!("{} {} {repository}", one.speaker, one.decision)
            })
            .collect()
    }
}

#[tokio::test]
async fn a_schedule_is_run_for_the_account_and_refused_when_it_may_not_write_any_more() {
    let world = World::new(With::App).await;
    let issue = world.github.open_issue("alice", "Greeting", "");
    let command = "@codespar schedule every 2 hours fix the greeting";
    world.say(issue, "carol", command).await;
    assert!(world.last(issue).contains("needs the role write"));
    world.say(issue, "alice", command).await;
    let said = world.last(issue);
    assert!(said.contains("for alice"), "{said}");
    let alice = codespar_testkit::github::user_id("alice");

    world.when_due(TimerKind::Schedule).await;
    // Without a model nothing is begun: that it was tried shows the right to it.
    assert_eq!(world.said(issue, "@alice it could not be started"), 1);
    let allowed = format!("{alice} allowed acme/shop");
    assert_eq!(world.runs().await.first(), Some(&allowed));

    world.github.set_level("alice", Level::Read);
    world.when_due(TimerKind::Schedule).await;
    let refused = "@alice `fix the greeting` is paused: this needs the role write; you have read";
    assert_eq!(world.said(issue, refused), 1);
    let timer = world.timer(TimerKind::Schedule).await;
    assert_eq!(timer.state, TimerState::Paused);
    let runs = world.runs().await;
    let allowed = runs.iter().filter(|one| one.contains(" allowed "));
    assert_eq!(allowed.count(), 1, "{runs:?}");
    world.room.close().await;
}

#[tokio::test]
async fn a_watch_acts_for_the_account_and_is_refused_when_it_may_not_write_any_more() {
    let world = World::new(With::Token).await;
    world.branch("codespar/task-1");
    let pull = world.github.open_pull("bob", "codespar/task-1", "main");
    let pull = pull.unwrap();
    world.say(pull, "alice", "@codespar watch PR #1").await;
    let said = world.last(pull);
    assert!(said.contains("PR #1 is watched"), "{said}");
    let head = world.head("codespar/task-1");
    world.github.set_status(&head, "ci/build", "failure");
    let alice = codespar_testkit::github::user_id("alice");

    // Checks that have failed have settled after two looks.
    for _ in 0..2 {
        world.when_due(TimerKind::Watch).await;
    }
    assert_eq!(world.said(pull, "@alice it could not be started"), 1);
    let allowed = format!("{alice} allowed acme/shop");
    assert_eq!(world.runs().await.first(), Some(&allowed));

    world.github.set_level("alice", Level::None);
    for _ in 0..2 {
        world.when_due(TimerKind::Watch).await;
    }
    let refused = "@alice `fix the failing checks of PR #1` is paused: you have no role here";
    assert_eq!(world.said(pull, refused), 1);
    let timer = world.timer(TimerKind::Watch).await;
    assert_eq!(timer.state, TimerState::Paused);
    world.room.close().await;
}
