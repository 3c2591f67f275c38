//! The same story on every platform: what a platform must bring to it, and the story itself.

use std::process::Command;

use codespar_testkit::{
    Gate, Script, Turn,
    chat::{ChatControl, ChatMessage},
};
use serde_json::json;

use crate::{
    client::{Served, client_builder, started},
    common::{Bench, PATIENCE, git::git, wait_for},
    crash::{CrashScene, INSTRUCTION, Repeats, link, published_here, wait_until_sent},
    room::{FIX, answer, decisions, greeting, pulls, script, settings, story_held_by, writer},
};

/// A small picture.
pub(crate) const PICTURE: &[u8] = &[
    0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0,
    0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 13, b'I', b'D', b'A', b'T',
    0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0, 0,
    0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// Ann may do everything, Bob may read, Eve is a stranger.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Person {
    Ann,
    Bob,
    Eve,
}

/// Something that somebody says.
#[derive(Clone, Copy)]
pub(crate) struct Saying<'a> {
    pub(crate) by: Person,
    /// The platform's number of the message.
    pub(crate) number: u64,
    pub(crate) text: &'a str,
    /// A message of ours that it replies to.
    pub(crate) reply_to: Option<&'a ChatMessage>,
    /// The id of a file that goes with it.
    pub(crate) picture: Option<&'a str>,
}

impl<'a> Saying<'a> {
    pub(crate) fn new(by: Person, number: u64, text: &'a str) -> Self {
        Self {
            by,
            number,
            text,
            reply_to: None,
            picture: None,
        }
    }

    fn in_reply(self, to: &'a ChatMessage) -> Self {
        Self {
            reply_to: Some(to),
            ..self
        }
    }
}

/// A server that webhooks can be delivered to.
pub(crate) struct Link<'a> {
    pub(crate) base: &'a str,
    client: &'a reqwest::Client,
    runtime: &'a tokio::runtime::Runtime,
}

impl Link<'_> {
    /// The status of a delivery, or 0 if there was no answer.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, String)], body: String) -> u16 {
        let mut request = self.client.post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(body);
        let sent = self.runtime.block_on(async { request.send().await });
        sent.map_or(0, |response| response.status().as_u16())
    }
}

/// What a platform brings to the story.
pub(crate) trait Stage: Sized {
    const NAME: &'static str;

    /// The chat or channel in which Ann speaks.
    const CONVERSATION: &'static str;

    /// How often a message of progress is said, at least: once where nothing can be edited.
    const LEAST_REVISIONS: usize = 2;

    /// What the message of progress of [`INSTRUCTION`] says at the end.
    const ENDED: &'static str = "✅ PR #1: Say hi";

    const REPEATS: Repeats = Repeats::Never;

    async fn start() -> Self;

    fn control(&self) -> &ChatControl;

    fn environment(&self) -> Vec<(&'static str, String)>;

    /// The platform's id of somebody.
    fn user(person: Person) -> &'static str {
        match person {
            Person::Ann => "1",
            Person::Bob => "2",
            Person::Eve => "3",
        }
    }

    /// Delivers a message that is for us.
    fn say(&self, link: &Link<'_>, saying: &Saying<'_>);

    /// Delivers again what was not acknowledged; platforms that are asked for messages do it anyway.
    fn say_again(&self, link: &Link<'_>, saying: &Saying<'_>) {
        self.say(link, saying);
    }

    /// Presses the button of a message that stands for a text. It must be there.
    fn press(&self, link: &Link<'_>, by: Person, on: &ChatMessage, value: &str);
}

/// A platform that tells of reactions.
pub(crate) trait ReactingStage: Stage {
    /// Reactions that stop nothing, and the one that stops.
    const SIGNS: [&'static str; 2];

    fn react(&self, by: Person, on: &ChatMessage, sign: &str);
}

/// What somebody who may only read is told where everybody sees the question.
pub(crate) const NEEDS_WRITE: &str = "an answer needs the role write";

/// A platform, a repository with failing tests, and a model.
pub(crate) struct Theatre<S> {
    pub(crate) bench: Bench,
    pub(crate) stage: S,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

impl<S: Stage> Theatre<S> {
    pub(crate) fn new(script: Script) -> Self {
        let bench = greeting(script);
        let users = json!({(S::user(Person::Ann)): "admin", (S::user(Person::Bob)): "read"});
        settings(
            &bench,
            &json!({
                "access": {(S::NAME): {"users": users}},
                "repositories": {"acme/api": bench.work()},
            }),
        );
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let stage = runtime.block_on(S::start());
        stage.control().keep_file("picture", PICTURE);
        Self {
            bench,
            stage,
            runtime,
            client: client_builder().build().unwrap(),
        }
    }

    fn command(&self) -> Command {
        let mut command = self.bench.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.envs(self.stage.environment());
        command
    }

    pub(crate) fn serve(&self) -> Served {
        started(&mut self.command())
    }

    pub(crate) fn link<'a>(&'a self, served: &'a Served) -> Link<'a> {
        Link {
            base: &served.base,
            client: &self.client,
            runtime: &self.runtime,
        }
    }

    fn say(&self, served: &Served, saying: Saying<'_>) {
        self.stage.say(&self.link(served), &saying);
    }

    fn press(&self, served: &Served, by: Person, on: &ChatMessage, value: &str) {
        self.stage.press(&self.link(served), by, on, value);
    }

    /// Waits for a message of ours that has this text; the last one.
    pub(crate) fn read(&self, text: &str) -> ChatMessage {
        let found = || {
            let messages = self.stage.control().messages();
            let mut those = messages.into_iter().filter(|one| one.text().contains(text));
            those.next_back()
        };
        wait_for(text, || found().is_some());
        found().unwrap()
    }

    fn linked(&self, served: &Served) {
        self.say(served, Saying::new(Person::Ann, 1, "link acme/api"));
        self.read("acme/api is linked here");
    }

    /// Messages whose pictures are on the disk.
    fn pictures(&self) -> usize {
        let kept = self.bench.room.codespar_home();
        let kept = kept.join("channel-pictures").join(S::NAME);
        std::fs::read_dir(kept).map_or(0, Iterator::count)
    }

    fn progress(&self) -> Vec<ChatMessage> {
        let messages = self.stage.control().messages();
        let is_progress = |one: &ChatMessage| one.text().contains('🔍');
        messages.into_iter().filter(is_progress).collect()
    }
}

impl<S: Stage> CrashScene for Theatre<S> {
    const CHANNEL: &'static str = S::NAME;
    const REPEATS: Repeats = S::REPEATS;
    const ENDED: &'static str = S::ENDED;

    fn set_up(script: Script) -> Self {
        let theatre = Self::new(script);
        link(&theatre.bench, (S::NAME, S::CONVERSATION));
        theatre
    }

    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn command(&self) -> Command {
        Self::command(self)
    }

    fn ask(&self, served: &Served) {
        self.say(served, Saying::new(Person::Ann, 2, INSTRUCTION));
    }

    fn ask_again(&self, served: &Served) {
        let saying = Saying::new(Person::Ann, 2, INSTRUCTION);
        self.stage.say_again(&self.link(served), &saying);
    }

    fn texts(&self) -> Vec<String> {
        let messages = self.stage.control().messages();
        messages.iter().map(|one| one.text().to_owned()).collect()
    }

    fn published(&self) -> (usize, usize) {
        published_here(&self.bench)
    }
}

/// Mention with a picture → progress → pull request → refused merge → follow-up → review → merge.
pub(crate) fn from_a_mention_to_the_merge<S: Stage>() {
    let gate = Gate::closed();
    let theatre = Theatre::<S>::new(story_held_by(&gate));
    let served = theatre.serve();
    let (ann, bob, eve) = (Person::Ann, Person::Bob, Person::Eve);
    theatre.linked(&served);
    theatre.say(&served, Saying::new(eve, 2, "fix the greeting"));
    theatre.read("you have no role here");

    let friendlier = Saying {
        picture: Some("picture"),
        ..Saying::new(ann, 3, "fix the greeting: make it friendlier")
    };
    theatre.say(&served, friendlier);
    theatre.read("🔍 acme/api · ");
    wait_for("the picture is kept", || theatre.pictures() == 1);
    gate.open();
    let result = theatre.read("PR #1 (draft): Say hey is ready");
    wait_for("no picture is kept", || theatre.pictures() == 0);
    let requests = theatre.bench.server.requests();
    let has_picture = |one: &codespar_testkit::CapturedRequest| {
        one.json().to_string().contains("\"type\":\"image\"")
    };
    assert!(requests.iter().any(has_picture), "the picture is seen");
    let merge = Saying::new(ann, 4, "merge PR #1").in_reply(&result);
    theatre.say(&served, merge);
    theatre.read("is a draft");
    let more = Saying::new(ann, 5, "also make the tests pass").in_reply(&result);
    theatre.say(&served, more);
    let result = theatre.read("is ready (the tests pass with it)");
    let commits = git(
        &theatre.bench.work(),
        &["rev-list", "--count", &head(&theatre.bench)],
    );
    assert_eq!(
        commits, "3\n",
        "the follow-up is a commit of the same branch"
    );
    wait_until_sent(&theatre.bench, S::NAME);
    let progress = theatre.progress();
    assert_eq!(progress.len(), 2, "one message for each run: {progress:#?}");
    let revisions = progress[0].revisions.len();
    assert!(revisions >= S::LEAST_REVISIONS, "{progress:#?}");

    theatre.press(&served, ann, &result, "review PR #1");
    theatre.read("hi is short");
    theatre.press(&served, bob, &result, "merge PR #1");
    theatre.read("needs the role merge");
    let ready = theatre.bench.run(&["pr", "ready", "1", "--anyway"]);
    assert_eq!(ready.status.code(), Some(0), "{}", ready.stderr);
    let merge = Saying::new(ann, 6, "merge PR #1 squash").in_reply(&result);
    theatre.say(&served, merge);
    theatre.read("merged PR #1 into main by squash");
    let merged = git(&theatre.bench.work(), &["show", "main:greet.sh"]);
    assert!(merged.contains("greeting=hi"), "{merged}");
}

fn head(bench: &Bench) -> String {
    let pulls = pulls(bench);
    assert_eq!(pulls.len(), 1, "{pulls:#?}");
    pulls[0]["head"].as_str().unwrap().to_owned()
}

/// The buttons of a question count with the rights of who presses them: a reader is told `refusal`.
pub(crate) fn a_question_is_answered_by_a_button<S: Stage>(refusal: &str) {
    let asks = "Which greeting do you mean?\n1. the one in greet.sh\n2. the one in test.sh";
    let turns = [Turn::text(asks), answer("Say hi", FIX)];
    let theatre = Theatre::<S>::new(script([writer("be polite", turns)]));
    let served = theatre.serve();
    theatre.linked(&served);
    let polite = Saying::new(Person::Ann, 2, "fix the greeting to be polite");
    theatre.say(&served, polite);
    let question = theatre.read("Which greeting do you mean?");
    theatre.press(&served, Person::Bob, &question, "1");
    theatre.read(refusal);
    theatre.press(&served, Person::Ann, &question, "1");
    theatre.read("PR #1: Say hi is ready");
    let last = theatre.bench.server.requests().pop().unwrap();
    let last = last.json().to_string();
    assert!(last.contains("the one in greet.sh"), "{last}");
}

/// A stop sign on the message of progress counts with the rights of who gave it, and once.
pub(crate) fn a_stop_sign_stops_the_run<S: ReactingStage>() {
    let gate = Gate::closed();
    let turn = answer("Say hi", FIX).held_by(&gate);
    let theatre = Theatre::<S>::new(script([writer("say hi", [turn])]));
    let served = theatre.serve();
    theatre.linked(&served);
    theatre.say(&served, Saying::new(Person::Ann, 2, "fix it to say hi"));
    let progress = theatre.read("Writing the change");
    let [other, stop] = S::SIGNS;
    theatre.stage.react(Person::Bob, &progress, stop);
    theatre.read("this needs the role write");
    theatre.stage.react(Person::Eve, &progress, stop);
    theatre.read("you have no role here");
    theatre.stage.react(Person::Ann, &progress, other);
    theatre.stage.react(Person::Ann, &progress, stop);
    theatre.read("was stopped");
    theatre.read("⏹ Stopped");
    gate.open();
    assert!(pulls(&theatre.bench).is_empty());
    let decisions = decisions(&theatre.bench);
    let stops = decisions.iter().filter(|one| one.contains(" stop "));
    let of = |person, verdict| format!("{} stop {verdict}", S::user(person));
    assert_eq!(
        stops.cloned().collect::<Vec<_>>(),
        [of(Person::Bob, "refused"), of(Person::Ann, "done")]
    );
}

/// `codespar serve` with these variables and no others of the platform is refused by this name.
pub(crate) fn half_a_setup_is_refused(given: &[(&str, &str)], missing: &str) {
    let bench = Bench::new(Script::new());
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.envs(given.iter().copied());
    let refused = codespar_testkit::process::spawn(&mut command).unwrap();
    let refused = refused.wait(PATIENCE).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let text = format!("{missing} is not");
    assert!(refused.stderr.contains(&text), "{}", refused.stderr);
}
