//! Servers that are killed between the receipt of a message and the last edit, on every platform.
//!
//! What the core does is the same for all; platforms differ in how a message comes in and how one goes
//! out. So each platform is killed where its own messages come in, at the first calls of its outbox, and
//! at the steps of the run in between (`kill_points::PLATFORM_POINTS`): thirty points. Slack and the
//! terminal have thirty of their own, with more of what the core does (`kill_points::POINTS`). Every
//! kill is at a named point of the program; none is within a transaction of the database or a call over
//! the network.
//!
//! A message that was posted by a process that died before it could write that down is found again at
//! Slack and GitHub, and not made twice at Discord. Telegram and WhatsApp cannot be asked: there one
//! message may be shown twice after a kill during a call, and no more than that is asserted.

use std::{
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use codespar_store::{ChannelStore, SqliteStore, StoreError};
use codespar_testkit::Script;

use crate::{
    client::{Served, started},
    common::{Bench, PATIENCE, git::git, kill_points::at_each, wait_for},
    room::{FIX, Record, answer, decisions, pulls, script, writer},
};

/// What somebody asks for; the model knows what to do.
pub(crate) const INSTRUCTION: &str = "fix it to say hi";

/// Whether a message that is being posted when the server dies may be there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    Never,
    /// The platform cannot be asked what was posted.
    Posted,
}

/// A platform, a repository and a model, and a person who asks for one thing.
pub(crate) trait CrashScene: Sized {
    /// The name of the channel.
    const CHANNEL: &'static str;
    const REPEATS: Repeats = Repeats::Never;
    /// What the message of progress says at the end.
    const ENDED: &'static str = "✅ PR #1: Say hi";
    /// What the result begins with, after the mention.
    const RESULT: &'static str = "PR #1: Say hi is ready";

    /// Everything but the server, with a repository that is linked.
    fn set_up(script: Script) -> Self;

    fn bench(&self) -> &Bench;

    /// The command of a server that the platform delivers to.
    fn command(&self) -> Command;

    /// Somebody asks for [`INSTRUCTION`].
    fn ask(&self, served: &Served);

    /// The platform delivers again what was not acknowledged.
    fn ask_again(&self, served: &Served) {
        self.ask(served);
    }

    /// Our messages as they stand.
    fn texts(&self) -> Vec<String>;

    /// How many pull requests there are, and how many commits the branch of the first has.
    fn published(&self) -> (usize, usize);
}

/// The model may be asked again by a process that does not know the answer yet.
pub(crate) fn polite_script() -> Script {
    let answers = [answer("Say hi", FIX), answer("Say hi", FIX)];
    script([writer("say hi", answers)])
}

/// The messages of progress, and the results.
fn told<S: CrashScene>(scene: &S) -> (Vec<String>, Vec<String>) {
    let texts = scene.texts();
    let those = |part: &str| {
        let those = texts.iter().filter(|text| text.contains(part));
        those.cloned().collect::<Vec<_>>()
    };
    (those("🔍"), those(S::RESULT))
}

/// Waits until a server has died at its point, and counts it. One that has done everything before it
/// came to it is killed then.
fn dies<S: CrashScene>(scene: &S, served: Served) -> usize {
    let mut running = served.running;
    let began = Instant::now();
    let mut done_at: Option<Instant> = None;
    loop {
        if running.has_ended().unwrap() {
            return 1;
        }
        let (progress, results) = told(scene);
        if !results.is_empty() && progress.iter().any(|text| text.contains(S::ENDED)) {
            let done_at = done_at.get_or_insert_with(Instant::now);
            if done_at.elapsed() > Duration::from_secs(3) {
                running.kill_9().unwrap();
                return 0;
            }
        }
        assert!(began.elapsed() < PATIENCE, "{:#?}", scene.texts());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One of each, in the final state.
pub(crate) fn assert_done_once<S: CrashScene>(scene: &S, point: &str) {
    wait_for(&format!("{point}: the result"), || {
        !told(scene).1.is_empty()
    });
    wait_for(&format!("{point}: the end of the progress"), || {
        told(scene).0.iter().any(|text| text.contains(S::ENDED))
    });
    wait_until_sent(scene.bench(), S::CHANNEL);
    assert_eq!(Record::of(scene.bench()).tasks.len(), 1, "{point}");
    let (progress, results) = told(scene);
    let most = match S::REPEATS == Repeats::Posted && !is_between_calls(point) {
        true => 3,
        false => 2,
    };
    let all = progress.len() + results.len();
    assert!(all <= most, "{point}: {progress:#?} {results:#?}");
    assert!(
        progress.last().unwrap().contains(S::ENDED),
        "{point}: {progress:#?}"
    );
    assert_eq!(scene.published(), (1, 1), "{point}");
    let decisions = decisions(scene.bench());
    let of_run = decisions.iter().filter_map(|one| one.split_once(" dev "));
    let of_run: Vec<&str> = of_run.map(|(_, decision)| decision).collect();
    assert_eq!(of_run, ["allowed", "done"], "{point}");
}

/// Points at which nothing is on its way to the platform. At others, which are reached beside the
/// outbox, a message of ours may be.
fn is_between_calls(point: &str) -> bool {
    let points = ["arrived", "received", "noted", "sending", "sent"];
    points.iter().any(|between| point.starts_with(between))
}

/// Waits until nothing is left to be sent to a channel, on record too.
pub(crate) fn wait_until_sent(bench: &Bench, channel: &str) {
    wait_for("everything is sent", || {
        let unsent = with_store(bench, async |store| store.unsent(channel).await);
        unsent.is_empty()
    });
}

/// Asks the database of a server, whether it runs or not.
fn with_store<T>(
    bench: &Bench,
    asks: impl AsyncFnOnce(&SqliteStore) -> Result<T, StoreError>,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let home = bench.room.codespar_home();
        let store = SqliteStore::open(&home).await.unwrap();
        let answer = asks(&store).await.unwrap();
        store.close().await.unwrap();
        answer
    })
}

/// Dies at each of the points, and goes on.
pub(crate) fn killed_at_any_point_it_is_done_once<S: CrashScene>(points: &[(&str, &str)]) {
    let reached = AtomicUsize::new(0);
    at_each(points, |variable, point| {
        let scene = S::set_up(polite_script());
        let mut command = scene.command();
        command.env(format!("CODESPAR_TEST_DIE_{variable}"), point);
        let served = started(&mut command);
        scene.ask(&served);
        reached.fetch_add(dies(&scene, served), Ordering::Relaxed);
        let served = started(&mut scene.command());
        scene.ask_again(&served);
        assert_done_once(&scene, point);
    });
    // How many edits there are depends on the time that the run takes.
    let reached = reached.into_inner();
    assert!(reached + points.len() / 10 >= points.len(), "{reached}");
}

/// Links the repository of the tests, as an admin would: a server for that alone would cost as much
/// as the run.
pub(crate) fn link(bench: &Bench, (channel, conversation): (&str, &str)) {
    with_store(bench, async |store| {
        let linked = store.link_repository(channel, conversation, "acme/api", "admin");
        linked.await
    });
}

/// How many local pull requests there are, and how many commits the branch of the first has.
pub(crate) fn published_here(bench: &Bench) -> (usize, usize) {
    let pulls = pulls(bench);
    let Some(first) = pulls.first() else {
        return (0, 0);
    };
    let range = format!("main..{}", first["head"].as_str().unwrap());
    let commits = git(&bench.work(), &["rev-list", "--count", &range]);
    (pulls.len(), commits.trim().parse().unwrap())
}
