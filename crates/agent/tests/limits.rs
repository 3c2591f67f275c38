//! Limits that end a run in the middle of whatever it waits for, and answers that never end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_agent::{RunLimits, TreeBudget, TreeShare};
use codespar_protocol::{EntryBody, Event, Message, Outcome, RunResult, StopReason, Usage, Usd};
use codespar_store::Store;
use codespar_testkit::{AfterLast, Conversation, Fault, Matcher, Script, Turn};
use common::Bench;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Far more than a limit of a second takes on a busy machine; what hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        ..Usage::default()
    }
}

/// Runs with a limit of a second and expects the run to end of it.
async fn run_out_of_time(bench: &mut Bench) -> RunResult {
    bench.limits.max_wall = Some(Duration::from_secs(1));
    let result = tokio::time::timeout(PATIENCE, bench.run("go"))
        .await
        .expect("the limit did not end the run");
    assert_eq!(result.outcome, Outcome::ErrorDuringExecution);
    assert!(!result.interrupted);
    result
}

const OUT_OF_TIME: &str = "stopped after 1 s of wall time (maxWallSeconds)";

#[tokio::test]
async fn the_wall_limit_ends_a_hung_model_and_books_an_estimate() {
    let turn = Turn::text("never").fault(Fault::HangBeforeHeaders);
    let mut bench = Bench::new(Script::new().turn(turn)).await;
    let result = run_out_of_time(&mut bench).await;
    assert_eq!(result.result, OUT_OF_TIME);
    assert!(result.usage.input_tokens > 1_000, "{:?}", result.usage);
    let session = bench.store.session(bench.session).await.unwrap();
    assert_eq!(
        (session.usage, session.cost),
        (result.usage, result.cost),
        "the session's account differs from the result's"
    );
    let entries = bench.store.entries(bench.session, 0).await.unwrap();
    let estimated = entries.iter().any(|entry| {
        matches!(&entry.body, EntryBody::SideCall { purpose, .. }
            if purpose == "an answer that broke off (input estimated)")
    });
    assert!(estimated, "{entries:?}");
}

#[tokio::test]
async fn the_wall_limit_ends_a_stream_of_pings_and_books_what_was_counted() {
    let turn = Turn::text("never")
        .usage(usage(1_234, 50))
        .fault(Fault::PingAfterEvents(1));
    let mut bench = Bench::new(Script::new().turn(turn)).await;
    let result = run_out_of_time(&mut bench).await;
    assert_eq!(result.result, OUT_OF_TIME);
    assert_eq!(result.usage, usage(1_234, 1));
}

#[tokio::test]
async fn the_wall_limit_ends_a_command_that_does_not_want_to_end() {
    for command in [
        "sleep 600",
        "trap '' TERM; echo on; while :; do sleep 1; done",
    ] {
        let script = Script::new().turn(
            Turn::tool("Bash", &json!({"command": command, "timeout": 600_000}))
                .usage(usage(500, 20)),
        );
        let mut bench = Bench::new(script).await;
        let result = run_out_of_time(&mut bench).await;
        assert_eq!(result.result, OUT_OF_TIME);
        assert_eq!(result.usage, usage(500, 20));
        // The session goes on with a result for the call.
        let (agent, _) = bench.agent().await;
        let last = agent.transcript().messages().last().unwrap().clone();
        assert!(
            last.content
                .iter()
                .any(|block| matches!(block, codespar_protocol::ContentBlock::ToolResult(_))),
            "{last:?}"
        );
    }
}

#[tokio::test]
async fn the_wall_limit_ends_a_storm_of_429_without_waiting_for_what_comes_after_it() {
    let storm = |fault: Fault| (0..50).fold(Turn::text("never"), |t, _| t.fault(fault.clone()));
    let short = storm(Fault::status(429).retry_after_ms(100).into());
    let mut bench = Bench::new(Script::new().turn(short)).await;
    let result = run_out_of_time(&mut bench).await;
    assert!(
        result.result.contains("answered 429") || result.result == OUT_OF_TIME,
        "{}",
        result.result
    );
    assert_eq!(result.usage, Usage::default());
    let long = storm(Fault::status(429).retry_after("250").into());
    let mut bench = Bench::new(Script::new().turn(long)).await;
    let result = run_out_of_time(&mut bench).await;
    assert!(
        result
            .result
            .contains("the next try would be in 250 s, after the limit on wall time"),
        "{}",
        result.result
    );
    assert_eq!(bench.server.request_count(), 1);
}

#[tokio::test]
async fn an_interrupted_answer_is_booked_in_the_session() {
    let turn = Turn::text("hello there")
        .usage(usage(2_000, 50))
        .fault(Fault::HangAfterEvents(4));
    let mut bench = Bench::new(Script::new().turn(turn)).await;
    let (mut agent, _) = bench.agent().await;
    let cancel = CancellationToken::new();
    let (stopper, events) = (cancel.clone(), bench.events.clone());
    let watch = tokio::spawn(async move {
        let began = Instant::now();
        let shown = |event: &Event| matches!(event, Event::TextDelta { .. });
        while !events.lock().iter().any(shown) && began.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stopper.cancel();
    });
    let result = agent.run(Some(Message::user("go")), cancel).await;
    watch.await.unwrap();
    assert!(result.interrupted);
    assert_eq!(result.usage.input_tokens, 2_000);
    let session = bench.store.session(bench.session).await.unwrap();
    assert_eq!(session.usage, result.usage);
}

#[tokio::test]
async fn a_prompt_that_the_budget_cannot_pay_for_is_not_sent() {
    let mut bench = Bench::new(Script::new().turn(Turn::text("hi"))).await;
    bench.limits.max_budget = Usd::from_dollars(0.01);
    let result = bench.run(&"some text, 0123456789\n".repeat(90_000)).await;
    assert_eq!(
        (result.outcome, result.num_turns, result.usage),
        (Outcome::ErrorMaxBudgetUsd, 0, Usage::default())
    );
    assert!(
        result
            .result
            .starts_with("stopped at $0.0000 of $0.0100 (--max-budget-usd)"),
        "{}",
        result.result
    );
    assert_eq!(bench.server.request_count(), 0);
}

#[tokio::test]
async fn agents_of_one_tree_cannot_pass_its_budget_together() {
    // Each call is counted at 10,000 tokens of input and 1,000 of output: 1.5 cents.
    let turn = || {
        Turn::text("done")
            .usage(usage(10_000, 1_000))
            .latency(Duration::from_millis(50))
    };
    let tree = Arc::new(TreeBudget::new(Usd::from_dollars(0.05), None));
    let mut agents = Vec::new();
    let mut benches = Vec::new();
    for _ in 0..8 {
        let mut bench = Bench::new(Script::new().turn(turn())).await;
        bench.limits = RunLimits {
            tree: Some(TreeShare::Branch(tree.clone())),
            ..RunLimits::default()
        };
        agents.push(bench.agent().await.0);
        benches.push(bench);
    }
    let runs = agents
        .iter_mut()
        .map(|agent| agent.run(Some(Message::user("go")), CancellationToken::new()));
    let results = futures::future::join_all(runs).await;
    let outcomes: Vec<Outcome> = results
        .iter()
        .map(|result| result.outcome.clone())
        .collect();
    assert!(outcomes.contains(&Outcome::Success), "{outcomes:?}");
    assert!(
        outcomes.contains(&Outcome::ErrorMaxBudgetUsd),
        "{outcomes:?}"
    );
    let spent: Vec<_> = tree.budget().account().into_values().collect();
    let [(_, cost)] = &spent[..] else {
        panic!("{spent:?}");
    };
    assert!(
        cost.known().unwrap() <= Usd::from_dollars(0.05).unwrap(),
        "{cost}"
    );
}

#[tokio::test]
async fn turns_that_are_paused_for_ever_end_in_a_failure() {
    let script = Script::new()
        .turn(Turn::text("wait. ").stop(StopReason::PauseTurn))
        .after_last(AfterLast::Repeat);
    let mut bench = Bench::new(script).await;
    let result = bench.run("go").await;
    assert_eq!(result.outcome, Outcome::ErrorDuringExecution);
    assert_eq!(
        result.result,
        "gave up: the model stopped with `pause_turn` 17 times in a row and came to no end"
    );
    assert_eq!(bench.server.request_count(), 17);
}

#[tokio::test]
async fn answers_that_are_cut_for_ever_end_in_a_failure() {
    let text = Turn::text("and ").stop(StopReason::MaxTokens);
    let call = Turn::new()
        .and_tool_written(None, "Bash", r#"{"command": "ech"#)
        .stop(StopReason::MaxTokens);
    for turn in [text, call] {
        let script = Script::new().turn(turn).after_last(AfterLast::Repeat);
        let mut bench = Bench::new(script).await;
        let result = bench.run("go").await;
        assert_eq!(result.outcome, Outcome::ErrorDuringExecution);
        assert_eq!(
            result.result,
            "gave up: the model stopped with `max_tokens` 9 times in a row and came to no end"
        );
        assert_eq!(bench.server.request_count(), 9);
    }
}

#[tokio::test]
async fn a_call_id_that_was_used_before_is_never_sent_back() {
    // The script answers with the same id for ever; the server refuses a conversation with it.
    let call = || Turn::new().and_tool_with_id("same", "Bash", &json!({"command": "true"}));
    let script = Script::new().turn(call()).turn(call());
    let mut bench = Bench::new(script).await;
    bench.limits.max_wall = Some(Duration::from_secs(1));
    let result = bench.run("go").await;
    assert_eq!(result.outcome, Outcome::ErrorDuringExecution);
    let (agent, _) = bench.agent().await;
    let messages = agent.transcript().messages();
    let calls: usize = messages.iter().map(|m| m.tool_uses().count()).sum();
    assert_eq!(calls, 1, "{messages:?}");
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_the_window_is_cut_and_the_session_goes_on() {
    let script = Script::new()
        .turn(Turn::text("fine"))
        .turn(Turn::text("fine again"))
        .longest_request(150_000);
    let mut bench = Bench::new(script).await;
    let result = bench
        .run(&format!("begin {} end", "x".repeat(400_000)))
        .await;
    assert_eq!(
        (result.outcome, result.result.as_str()),
        (Outcome::Success, "fine")
    );
    let sent = bench.server.last_request().unwrap().messages()[0].to_string();
    assert!(sent.contains("begin xx") && sent.contains("xx end"));
    assert_eq!(bench.run("and now?").await.outcome, Outcome::Success);
}

#[tokio::test]
async fn a_summary_request_that_is_too_long_is_made_of_less() {
    let summaries = Conversation::new(
        "summaries",
        Matcher::system_contains("You keep the memory of a coding agent"),
    )
    .turn(Turn::text("They talked at length."))
    .after_last(AfterLast::Repeat);
    let mut script = Script::new()
        .conversation(summaries)
        .longest_request(60_000);
    for _ in 0..5 {
        script = script.turn(Turn::text("y".repeat(9_000)));
    }
    let mut bench = Bench::new(script.turn(Turn::text("end"))).await;
    for _ in 0..8 {
        let result = bench.run(&"z".repeat(9_000)).await;
        assert_eq!(result.outcome, Outcome::Success, "{}", result.result);
    }
    let summarised = bench
        .events
        .lock()
        .iter()
        .any(|event| matches!(event, Event::Compacted { .. }));
    assert!(summarised);
}
