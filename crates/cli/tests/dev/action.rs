//! The scripts of the GitHub Action, with events as GitHub sends them, the real binary and a GitHub
//! over HTTP.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    process::{Command, Output},
};

use codespar_testkit::github::HookEvent;

use crate::github::{Hub, script};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The outputs of a step, as a runner reads them.
fn outputs(text: &str) -> HashMap<String, String> {
    let mut all = HashMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((name, mark)) = line.split_once("<<") {
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != mark).collect();
            all.insert(name.to_owned(), value.join("\n"));
        } else if let Some((name, value)) = line.split_once('=') {
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    all
}

struct Step {
    output: Output,
    outputs: HashMap<String, String>,
}

impl Step {
    fn get(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }
}

/// One step of the action, with the environment of a runner.
fn step(hub: &Hub, name: &str, event: &HookEvent, env: &[(&str, &str)]) -> Step {
    let temp = hub.bench.room.home().join("runner");
    fs::create_dir_all(&temp).unwrap();
    let (file, out) = (temp.join("event.json"), temp.join("output"));
    fs::write(&file, event.body.to_string()).unwrap();
    fs::write(&out, "").unwrap();
    let mut command: Command = hub.bench.room.command("sh");
    command
        .arg(root().join("action").join(name))
        .current_dir(hub.bench.work())
        .env("GITHUB_EVENT_PATH", &file)
        .env("GITHUB_EVENT_NAME", event.event)
        .env("GITHUB_OUTPUT", &out)
        .env("GITHUB_REPOSITORY", "acme/shop")
        .env("GITHUB_API_URL", &hub.github.base_url)
        .env("GITHUB_SERVER_URL", &hub.github.base_url)
        .env("GITHUB_TOKEN", "alice-token")
        .env("GITHUB_RUN_ID", "7")
        .env("RUNNER_TEMP", &temp)
        .env("CODESPAR", env!("CARGO_BIN_EXE_codespar"))
        .env("ACTION_PROGRESS_SECONDS", "1")
        .env("ANTHROPIC_BASE_URL", hub.bench.server.url())
        .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
        .env("OPENAI_API_KEY", "")
        .envs(env.iter().copied());
    let output = command.output().unwrap();
    Step {
        output,
        outputs: outputs(&fs::read_to_string(out).unwrap()),
    }
}

fn run(hub: &Hub, event: &HookEvent, decided: &Step) -> Step {
    assert_eq!(decided.get("run"), "true", "{:?}", decided.output);
    let env = [
        ("ACTION_COMMAND", decided.get("command")),
        ("ACTION_NUMBER", decided.get("number")),
        ("ACTION_PULL", decided.get("pull")),
        ("ACTION_TEXT", decided.get("text")),
    ];
    step(hub, "run.sh", event, &env)
}

#[test]
#[ignore = "needs curl and jq"]
fn a_comment_below_an_issue_becomes_a_pull_request_with_one_comment_of_progress() {
    let hub = Hub::new(script());
    let number = hub.github.open_issue("carol", "Greeting", "It says hello.");
    let event = hub
        .github
        .say(number, "bob", "Please, @codespar make it say hi");
    let decided = step(&hub, "decide.sh", &event, &[]);
    let ran = run(&hub, &event, &decided);
    assert!(ran.output.status.success(), "{:?}", ran.output);
    assert_eq!(hub.github.pull_count(), 1);
    assert!(
        ran.get("branch").starts_with("codespar/"),
        "{:?}",
        ran.outputs
    );
    assert!(!ran.get("pr").is_empty() && ran.get("pr-url").contains("/pull/"));
    assert!(ran.get("cost").parse::<f64>().is_ok(), "{:?}", ran.outputs);
    let report: serde_json::Value = serde_json::from_str(ran.get("structured-output")).unwrap();
    assert_eq!(report["branch"], ran.get("branch"));

    let comments = hub.github.comments(number);
    let ours: Vec<_> = comments
        .iter()
        .filter(|one| one.author == "alice")
        .collect();
    let [ours] = ours[..] else {
        panic!("{comments:?}");
    };
    assert!(
        ours.body.contains("✅ **CodeSpar** opened #"),
        "{}",
        ours.body
    );
    assert!(!ours.former.is_empty(), "it was edited");
    let all = format!("{ours:?}{:?}", ran.output);
    assert!(!all.contains("alice-token") && !all.contains("sk-test-key"));
}

#[test]
#[ignore = "needs curl and jq"]
fn who_may_not_write_a_bot_and_a_mention_in_a_word_start_nothing() {
    let hub = Hub::new(script());
    let number = hub.github.open_issue("carol", "Greeting", "It says hello.");
    let reason = |event: &HookEvent| {
        let decided = step(&hub, "decide.sh", event, &[]);
        assert!(decided.output.status.success(), "{:?}", decided.output);
        assert_eq!(decided.get("run"), "false", "{:?}", decided.outputs);
        decided.get("reason").to_owned()
    };
    let say = |who: &str, text: &str| hub.github.say(number, who, text);
    assert_eq!(
        reason(&say("carol", "@codespar fix it")),
        "carol may not write to acme/shop"
    );
    assert_eq!(
        reason(&say("mallory", "@codespar fix it")),
        "mallory may not write to acme/shop"
    );
    for text in [
        "fix it",
        "me@codespar.example",
        "@codespar-other fix",
        "see x/@codespar",
    ] {
        assert_eq!(
            reason(&say("bob", text)),
            "@codespar is not mentioned",
            "{text}"
        );
    }
    assert_eq!(
        reason(&say("bob", "@codespar  \n ")),
        "nothing follows @codespar"
    );
    let edited = say("bob", "@codespar fix it").with_action("edited");
    assert_eq!(reason(&edited), "only new comments are read");
    let mut bot = say("bob", "@codespar fix it");
    bot.body["comment"]["user"]["type"] = "Bot".into();
    assert_eq!(reason(&bot), "bob is not a person");
    assert_eq!(
        reason(&hub.github.label(number, "bob", "bug")),
        "it is another label"
    );
    assert_eq!(
        reason(&hub.github.label(number, "carol", "codespar")),
        "carol may not write to acme/shop"
    );
    let asked = step(
        &hub,
        "decide.sh",
        &hub.github.label(number, "bob", "codespar"),
        &[],
    );
    assert_eq!(asked.get("command"), "dev");
    let text = fs::read_to_string(asked.get("text")).unwrap();
    assert_eq!(
        text,
        format!("Fix issue #{number}: Greeting\n\nIt says hello.\n")
    );
}

#[test]
#[ignore = "needs curl and jq"]
fn a_pull_request_of_a_fork_is_reviewed_and_never_changed() {
    let hub = Hub::new(script());
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    hub.github.set_fork(1, "mallory");
    let fix = hub.github.say(1, "bob", "@codespar fix the tests");
    let decided = step(&hub, "decide.sh", &fix, &[]);
    assert_eq!(
        decided.get("reason"),
        "the pull request comes from a fork; it can only be reviewed"
    );
    let prompted = step(&hub, "decide.sh", &fix, &[("INPUT_PROMPT", "improve it")]);
    assert_eq!(prompted.get("run"), "false");
    let review = hub.github.say(1, "bob", "@codespar review");
    let decided = step(&hub, "decide.sh", &review, &[]);
    assert_eq!(decided.get("command"), "review");
    let ran = run(&hub, &review, &decided);
    assert!(ran.output.status.success(), "{:?}", ran.output);
    assert_eq!(hub.github.review_count(1), 1);
}

#[test]
#[ignore = "needs curl and jq"]
fn text_of_an_event_is_never_run_and_adds_no_output() {
    let hub = Hub::new(script());
    let number = hub
        .github
        .open_issue("carol", "$(touch pwned)\nrun=false", "`touch pwned`");
    let text =
        "@codespar $(touch pwned) `touch pwned`'\"; touch pwned #\ncommand=prompt\nrun=false";
    let event = hub.github.say(number, "bob", text);
    let decided = step(&hub, "decide.sh", &event, &[]);
    assert_eq!(
        (decided.get("run"), decided.get("command")),
        ("true", "dev")
    );
    let ran = run(&hub, &event, &decided);
    assert!(!hub.bench.work().join("pwned").exists(), "{:?}", ran.output);
    assert!(!root().join("pwned").exists());
    let asked = hub.bench.server.requests();
    let whole = asked
        .iter()
        .any(|request| request.messages()[0].to_string().contains("touch pwned"));
    assert!(whole, "the instruction arrives as it was written");
}
