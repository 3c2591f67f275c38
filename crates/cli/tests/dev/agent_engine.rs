//! The agent engine: its prompt, its repairs, and when it is chosen.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::{
    common::{Bench, parsed},
    repair::talkative_with,
    repository::{FIX, GREET, answer, dev, dev_resume, git, greeting, killed_after, script},
};

fn read() -> Turn {
    Turn::tool("Read", &json!({"file_path": "greet.sh"}))
}

fn edit(old: &str, new: &str) -> Turn {
    let input = json!({"file_path": "greet.sh", "old_string": old, "new_string": new});
    Turn::tool("Edit", &input)
}

fn agent(turns: impl IntoIterator<Item = Turn>) -> Conversation {
    Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turns(turns)
}

/// An agent that is wrong at first, and right when it is told what fails.
fn mending() -> Script {
    script(&["greet.sh"], []).conversation(agent([
        read(),
        edit("hello", "hey"),
        Turn::text("Say hey"),
        edit("hey", "hi"),
        Turn::text("Say hi\n\nOne word changes."),
    ]))
}

fn agents(bench: &Bench) -> Vec<Value> {
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let tasks = tasks["tasks"].as_array().unwrap().iter();
    let agents = tasks.filter(|task| task["task_type"] == "local_agent");
    agents.cloned().collect()
}

fn published(bench: &Bench, report: &Value) -> String {
    let branch = report["branch"].as_str().unwrap();
    git(&bench.work(), &["show", &format!("{branch}:greet.sh")])
}

#[test]
fn the_same_agent_is_told_what_fails_and_goes_on() {
    let bench = talkative_with(mending());
    let (report, code) = dev(&bench, &["make it say hi", "--engine", "agent"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(published(&bench, &report), GREET.replace("hello", "hi"));
    assert_eq!(report["pull_request"]["title"], "Say hi");
    assert_eq!(report["summary"], "Say hi\n\nOne word changes.");
    let agents = agents(&bench);
    assert_eq!(
        (agents.len(), &agents[0]["attempt"]),
        (1, &json!(2)),
        "{agents:?}"
    );
    let last = bench.server.last_request().unwrap();
    let last = last.json();
    let system = last["system"].to_string();
    assert!(
        system.contains("You are the engineer who carries out one change"),
        "{system}"
    );
    assert!(!system.contains("a coordinator hands you"), "{system}");
    let messages = last["messages"].to_string();
    for expected in [
        "The command that proves it: make test",
        "The tests were run on them in a clean copy",
        "$ make test\\nbefore the change: 1 of 1 failed\\nwith the change: 1 of 1 failed",
    ] {
        assert!(
            messages.to_lowercase().contains(&expected.to_lowercase()),
            "{expected}: {messages}"
        );
    }
    // What all its attempts cost is counted once.
    let spent = agents[0]["cost_usd"].as_f64().unwrap();
    assert!(report["cost_usd"].as_f64().unwrap() >= spent, "{report}");
}

#[test]
fn killed_while_its_agent_mends_it_tells_the_agent_once() {
    for step in ["agent-told-1", "made agent-repair-1", "agent-repair-1"] {
        let bench = talkative_with(mending());
        let id = killed_after(&bench, step, &["--engine", "agent"]);
        let (report, code) = dev_resume(&bench, &id);
        assert_eq!(code, Some(0), "{step}: {report}");
        assert_eq!(
            published(&bench, &report),
            GREET.replace("hello", "hi"),
            "{step}"
        );
        assert_eq!(agents(&bench).len(), 1, "{step}");
        let last = bench.server.last_request().unwrap();
        let last = last.json();
        let told = last["messages"].to_string();
        assert_eq!(
            told.matches("Your changes were collected").count(),
            1,
            "{step}"
        );
    }
}

#[test]
fn an_agent_that_does_not_get_it_right_leaves_a_draft() {
    let bench = greeting(script(&["greet.sh"], []).conversation(agent([
        read(),
        edit("hello", "hey"),
        Turn::text("Say hey"),
        Turn::text("I cannot find it"),
        Turn::text("Nor now"),
    ])));
    let (report, code) = dev(&bench, &["make it say hi", "--engine", "agent"]);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(report["pull_request"]["draft"], true);
    assert_eq!(published(&bench, &report), GREET.replace("hello", "hey"));
}

#[test]
fn auto_makes_a_small_change_by_one_answer() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(agents(&bench), Vec::<Value>::new());
    let spec = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    assert_eq!(spec["tasks"][0]["spec"]["engine"], "auto", "{spec}");
}

#[test]
fn auto_hands_a_list_of_places_to_the_agent() {
    let script = script(&["greet.sh"], []).conversation(agent([
        read(),
        edit("hello", "hi"),
        Turn::text("Say hi"),
    ]));
    let bench = greeting(script);
    let list = "make it say hi:\n- in greet.sh\n- in docs/usage/greeting.md\n- in etc/motd.txt";
    let (report, code) = dev(&bench, &[list]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(agents(&bench).len(), 1);
    let id = report["task_id"].as_str().unwrap();
    let output = bench.run(&["task", "output", id]).stdout;
    let reason = "By the agent engine: the instruction lists changes in 3 places";
    assert!(output.contains(reason), "{output}");
}

#[test]
fn auto_hands_a_change_that_repairs_did_not_mend_to_the_agent() {
    let wrong = |[old, new]: [&str; 2]| {
        let block = FIX.replace("greeting=hi", new);
        answer("Say it", &block.replace("greeting=hello", old))
    };
    let steps = [
        ["greeting=hello", "greeting=a"],
        ["greeting=a", "greeting=b"],
        ["greeting=b", "greeting=c"],
    ];
    let answers = steps.map(wrong);
    let script = script(&["greet.sh"], answers).conversation(agent([
        read(),
        edit("greeting=c", "greeting=hi"),
        Turn::text("Say hi\n\nOne word changes."),
    ]));
    let bench = talkative_with(script);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(published(&bench, &report), GREET.replace("hello", "hi"));
    let last = bench.server.last_request().unwrap();
    let last = last.json();
    let first = last["messages"][0].to_string();
    for expected in [
        "A first attempt at the goal is in your tree",
        "1 of 1 failed",
    ] {
        assert!(first.contains(expected), "{first}");
    }
    // The same with the engine that was asked for: the draft stands.
    let answers = steps.map(wrong);
    let bench = talkative_with(crate::repository::script(&["greet.sh"], answers));
    let (report, code) = dev(&bench, &["make it say hi", "--engine", "generate"]);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(agents(&bench), Vec::<Value>::new());
}
