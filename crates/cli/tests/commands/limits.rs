//! Limits through the binary: whatever a run waits for, it ends at its limit, with everything
//! booked that a provider may charge for.

use std::time::{Duration, SystemTime};

use codespar_protocol::{StopReason, Usage};
use codespar_testkit::{
    AfterLast, Conversation, Fault, Garbage, Matcher, Script, Turn, process::Finished,
};
use serde_json::{Value, json};

use crate::common::{Bench, parsed};

/// What hangs takes longer; a limit of two seconds takes less, however busy the machine is.
const SOON: Duration = Duration::from_secs(30);

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        ..Usage::default()
    }
}

/// One turn that meets this fault every time.
fn always(turn: Turn, fault: &Fault) -> Script {
    Script::new().turn((0..50).fold(turn, |turn, _| turn.fault(fault.clone())))
}

/// Runs with two seconds of wall time; the process must have ended well before any other limit.
fn run_out_of_time(bench: &Bench, args: &[&str]) -> Value {
    let settings = bench.room.codespar_home().join("settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, r#"{"maxWallSeconds": 2}"#).unwrap();
    let args = [&["-p", "go", "--output-format", "json"], args].concat();
    let finished = bench.start(&args).wait(SOON).unwrap();
    result(&finished, 1)
}

fn result(finished: &Finished, code: i32) -> Value {
    assert_eq!(finished.status.code(), Some(code), "{finished:?}");
    parsed(&finished.stdout)
}

/// Input tokens on the account of the session.
fn booked_input(bench: &Bench, result: &Value) -> u64 {
    let id = result["session_id"].as_str().unwrap();
    let list = parsed(&bench.run(&["session", "list", "--json"]).stdout);
    let sessions = list["sessions"].as_array().unwrap();
    let session = sessions.iter().find(|session| session["id"] == id).unwrap();
    session["usage"]["input_tokens"].as_u64().unwrap()
}

#[test]
fn a_budget_of_a_cent_and_two_megabytes_on_stdin_spend_nothing() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    let finished = bench.run_with_stdin(
        &["-p", "--max-budget-usd", "0.01", "--output-format", "json"],
        &"some text of a log, 0123456789\n".repeat(65_000),
    );
    let result = result(&finished, 1);
    assert_eq!(result["subtype"], "error_max_budget_usd");
    let said = result["result"].as_str().unwrap();
    assert!(
        said.starts_with("stopped at $0.0000 of $0.0100 (--max-budget-usd): the next call of "),
        "{said}"
    );
    assert_eq!(result["total_cost_usd"], 0.0);
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn a_small_budget_lowers_the_limit_on_the_answer() {
    let turn = Turn::text("hi").usage(usage(5_000, 10));
    let bench = Bench::new(Script::new().turn(turn));
    let finished = bench.run(&[
        "-p",
        "hi",
        "--model",
        "claude-haiku-4-5",
        "--max-budget-usd",
        "0.05",
    ]);
    assert!(finished.status.success(), "{finished:?}");
    let sent = bench.server.last_request().unwrap();
    let max = sent.json()["max_tokens"].as_u64().unwrap();
    assert!((256..10_000).contains(&max), "{max}");
}

#[test]
fn a_hung_model_ends_at_the_wall_limit_with_an_estimate_booked() {
    let bench = Bench::new(always(Turn::text("never"), &Fault::HangBeforeHeaders));
    let result = run_out_of_time(&bench, &[]);
    assert_eq!(
        result["result"],
        "stopped after 2 s of wall time (maxWallSeconds)"
    );
    let input = result["usage"]["input_tokens"].as_u64().unwrap();
    assert!(input > 1_000, "{result}");
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0, "{result}");
    assert_eq!(booked_input(&bench, &result), input);
}

#[test]
fn endless_pings_end_at_the_wall_limit_with_the_input_booked() {
    let turn = Turn::text("never").usage(usage(4_321, 9));
    let bench = Bench::new(always(turn, &Fault::PingAfterEvents(1)));
    let result = run_out_of_time(&bench, &[]);
    assert_eq!(
        result["result"],
        "stopped after 2 s of wall time (maxWallSeconds)"
    );
    assert_eq!(result["usage"]["input_tokens"], 4_321);
    assert_eq!(booked_input(&bench, &result), 4_321);
}

#[test]
fn a_long_command_ends_at_the_wall_limit() {
    let call = json!({"command": "echo begun > mark; sleep 600", "timeout": 600_000});
    let turn = Turn::tool("Bash", &call).usage(usage(777, 9));
    let bench = Bench::new(Script::new().turn(turn));
    let result = run_out_of_time(&bench, &["--allowedTools", "Bash"]);
    assert_eq!(
        result["result"],
        "stopped after 2 s of wall time (maxWallSeconds)"
    );
    assert!(bench.work().join("mark").exists());
    assert_eq!(result["usage"]["input_tokens"], 777);
}

#[test]
fn a_subagent_ends_with_the_run_that_waits_for_it() {
    let script = always(Turn::text("never"), &Fault::HangBeforeHeaders).conversation(
        Conversation::new("main", Matcher::first_user_contains("go")).turn(Turn::tool(
            "Task",
            &json!({"description": "d", "prompt": "wait", "subagent_type": "general-purpose"}),
        )),
    );
    let bench = Bench::new(script);
    let result = run_out_of_time(&bench, &[]);
    assert_eq!(
        result["result"],
        "stopped after 2 s of wall time (maxWallSeconds)"
    );
}

#[test]
fn a_storm_of_429_ends_at_the_wall_limit_and_costs_nothing() {
    // A request that is on its way when the time is up may have been read: its input is booked.
    let one_request = 0.02;
    for (wait, said, most) in [
        ("0.2", "answered 429", one_request),
        ("100", "the next try would be in 100 s", 0.0),
        ("3600", "it asks to wait 3600 s", 0.0),
    ] {
        let storm = Fault::status(429).retry_after(wait).into();
        let bench = Bench::new(always(Turn::text("never"), &storm));
        let result = run_out_of_time(&bench, &[]);
        let text = result["result"].as_str().unwrap();
        assert!(
            text.contains(said) || text.contains("wall time (maxWallSeconds)"),
            "{text}"
        );
        let cost = result["total_cost_usd"].as_f64().unwrap();
        assert!(cost <= most, "{cost} with {wait}");
    }
}

#[test]
fn broken_streams_are_booked_and_the_budget_holds_over_them() {
    // Not more than so long a request can have: the limit is kept by an upper bound.
    let turn = Turn::text("never").usage(usage(6_000, 5));
    let bench = Bench::new(always(turn, &Fault::Garbage(Garbage::Sse(1))));
    let finished = bench.run(&[
        "-p",
        "go",
        "--model",
        "claude-haiku-4-5",
        "--max-budget-usd",
        "0.05",
        "--output-format",
        "json",
    ]);
    let result = result(&finished, 1);
    assert_eq!(result["subtype"], "error_max_budget_usd", "{result}");
    let cost = result["total_cost_usd"].as_f64().unwrap();
    assert!(cost > 0.0 && cost <= 0.05, "{result}");
    let sent = bench.server.request_count();
    assert_eq!(result["usage"]["input_tokens"], sent * 6_000);
}

#[test]
fn a_provider_that_pauses_or_cuts_for_ever_is_a_failure() {
    for (reason, most) in [(StopReason::PauseTurn, 20), (StopReason::MaxTokens, 20)] {
        let script = Script::new()
            .turn(Turn::text("and ").stop(reason.clone()))
            .after_last(AfterLast::Repeat);
        let bench = Bench::new(script);
        let result = result(&bench.run(&["-p", "go", "--output-format", "json"]), 1);
        let text = result["result"].as_str().unwrap();
        assert!(text.contains(&format!("`{}`", reason.as_str())), "{text}");
        assert!(bench.server.request_count() <= most);
    }
}

#[test]
fn old_sessions_are_removed_by_itself_once_a_day() {
    let script = Script::new().turn(Turn::text("hi"));
    let bench = Bench::new(script);
    let home = bench.room.codespar_home();
    let sessions = || {
        let list = parsed(&bench.run(&["session", "list", "--json"]).stdout);
        list["sessions"].as_array().unwrap().len()
    };
    bench.run(&["-p", "one"]);
    std::fs::write(home.join("settings.json"), r#"{"cleanupPeriodDays": 0}"#).unwrap();
    bench.run(&["-p", "two"]);
    assert_eq!(sessions(), 2, "it was not due");
    let two_days_ago = SystemTime::now() - Duration::from_secs(48 * 3600);
    let mark = std::fs::File::options()
        .write(true)
        .open(home.join("last-gc"))
        .unwrap();
    mark.set_modified(two_days_ago).unwrap();
    bench.run(&["-p", "three"]);
    assert_eq!(sessions(), 0);
    bench.run(&["-p", "four"]);
    assert_eq!(sessions(), 1, "it was due again too soon");
}

#[test]
fn a_project_does_not_say_what_is_removed() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    bench.run(&["-p", "one"]);
    let planted = bench.file(".codespar/settings.json", r#"{"cleanupPeriodDays": 0}"#);
    bench.run(&["gc"]);
    std::fs::remove_file(planted).unwrap();
    let list = parsed(&bench.run(&["session", "list", "--json"]).stdout);
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_project_does_not_loosen_a_limit_of_the_user() {
    let bench = Bench::new(always(Turn::text("never"), &Fault::HangBeforeHeaders));
    bench.file(".codespar/settings.json", r#"{"maxWallSeconds": 600}"#);
    let result = run_out_of_time(&bench, &[]);
    assert_eq!(
        result["result"],
        "stopped after 2 s of wall time (maxWallSeconds)"
    );
}
