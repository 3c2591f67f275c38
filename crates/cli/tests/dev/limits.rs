//! A limit on wall time ends a run whatever it waits for, with everything spent on its account.

use std::time::Duration;

use codespar_protocol::Usage;
use codespar_testkit::{Conversation, Fault, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::{
    common::{Bench, parsed},
    repository::{FIX, answer, branches, dev_resume, greeting, script},
};

/// What hangs takes longer; a limit of two seconds takes less, however busy the machine is.
const SOON: Duration = Duration::from_secs(30);
const OUT_OF_TIME: &str = "stopped after 2 s of wall time (maxWallSeconds)";

fn always(turn: Turn, fault: &Fault) -> Turn {
    (0..50).fold(turn, |turn, _| turn.fault(fault.clone()))
}

fn limit(bench: &Bench, seconds: u32) {
    let settings = bench.room.codespar_home().join("settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, format!(r#"{{"maxWallSeconds": {seconds}}}"#)).unwrap();
}

/// Runs with two seconds of wall time; gives the record of the task.
fn run_out_of_time(bench: &Bench, args: &[&str]) -> Value {
    limit(bench, 2);
    let args = [&["dev", "make it say hi", "--json"], args].concat();
    let finished = bench.start(&args).wait(SOON).unwrap();
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    let id = parsed(&finished.stdout)["task_id"].clone();
    let hint = format!("codespar dev --resume {}", id.as_str().unwrap());
    assert!(finished.stderr.contains(&hint), "{}", finished.stderr);
    assert_eq!(branches(bench), Vec::<String>::new());
    let record = crate::common::task(bench, id.as_str().unwrap());
    assert_eq!(record["status"], "failed");
    record
}

fn input_of(record: &Value) -> u64 {
    record["usage"]["input_tokens"].as_u64().unwrap()
}

#[test]
fn a_hung_model_ends_the_run_with_an_estimate_booked_and_it_can_be_resumed() {
    let hung = answer("Say hi", FIX).fault(Fault::HangBeforeHeaders);
    let bench = greeting(script(&["greet.sh"], [hung]));
    let record = run_out_of_time(&bench, &[]);
    assert_eq!(record["error"], OUT_OF_TIME);
    // More than the picker's small request came to.
    assert!(input_of(&record) > 1_000, "{record}");
    assert!(record["cost_usd"].as_f64().unwrap() > 0.0, "{record}");
    limit(&bench, 60);
    let (report, code) = dev_resume(&bench, record["task_id"].as_str().unwrap());
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(branches(&bench).len(), 1);
}

#[test]
fn endless_pings_end_the_run_with_the_input_booked() {
    let usage = Usage {
        input_tokens: 43_210,
        output_tokens: 9,
        ..Usage::default()
    };
    let turn = answer("Say hi", FIX).usage(usage);
    let pings = always(turn, &Fault::PingAfterEvents(1));
    let bench = greeting(script(&["greet.sh"], [pings]));
    let record = run_out_of_time(&bench, &[]);
    assert_eq!(record["error"], OUT_OF_TIME);
    assert!(input_of(&record) >= 43_210, "{record}");
}

#[test]
fn a_storm_of_429_ends_the_run() {
    for (wait, said) in [
        ("0.2", "answered 429"),
        ("100", "the next try would be in 100 s"),
    ] {
        let storm = Fault::status(429).retry_after(wait).into();
        let bench = greeting(script(&["greet.sh"], [always(answer("x", FIX), &storm)]));
        let record = run_out_of_time(&bench, &[]);
        let error = record["error"].as_str().unwrap();
        assert!(error.contains(said) || error == OUT_OF_TIME, "{error}");
    }
}

#[test]
fn a_test_command_that_hangs_ends_with_the_run() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let record = run_out_of_time(&bench, &["--verify", "sleep 600"]);
    assert_eq!(record["error"], OUT_OF_TIME);
    assert!(record["cost_usd"].as_f64().unwrap() > 0.0, "{record}");
}

#[test]
fn a_hung_agent_ends_with_the_run_and_is_booked() {
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(always(Turn::text("never"), &Fault::HangBeforeHeaders));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(Script::new().conversation(picker).conversation(agent));
    let record = run_out_of_time(&bench, &["--engine", "agent"]);
    assert_eq!(record["error"], OUT_OF_TIME);
    assert!(input_of(&record) > 1_000, "{record}");
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let agents = tasks["tasks"].as_array().unwrap().iter();
    let agents: Vec<&Value> = agents
        .filter(|task| task["task_type"] == "local_agent")
        .collect();
    assert_eq!(agents.len(), 1);
    assert!(
        matches!(agents[0]["status"].as_str(), Some("killed" | "failed")),
        "{tasks}"
    );
}

#[test]
fn a_question_and_a_review_end_at_the_limit() {
    let hang = Fault::HangBeforeHeaders;
    let asked = Conversation::new(
        "ask",
        Matcher::system_contains("answers questions about software"),
    );
    let asked = asked.turn(always(Turn::text("never"), &hang));
    let review = Conversation::new("review", Matcher::system_contains("review"));
    let review = review.turn(always(Turn::text("never"), &hang));
    let script = script(&["greet.sh"], [answer("Say hi", FIX)]);
    let bench = greeting(script.conversation(asked).conversation(review));
    let made = bench.run(&["dev", "make it say hi"]);
    assert!(made.status.success(), "{}", made.stderr);
    limit(&bench, 2);
    for args in [&["ask", "what is 409?"], &["review", "1"]] {
        let finished = bench.start(args).wait(SOON).unwrap();
        assert_eq!(finished.status.code(), Some(1), "{finished:?}");
        assert!(finished.stderr.contains(OUT_OF_TIME), "{finished:?}");
    }
}

#[test]
fn a_project_can_shorten_the_time_and_not_prolong_it() {
    let hung = answer("Say hi", FIX).fault(Fault::HangBeforeHeaders);
    let bench = greeting(script(&["greet.sh"], [hung]));
    bench.file(
        ".codespar/settings.json",
        &json!({"maxWallSeconds": 600}).to_string(),
    );
    let record = run_out_of_time(&bench, &[]);
    assert_eq!(record["error"], OUT_OF_TIME);
}
