//! The loop against the scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::sync::Arc;

use async_trait::async_trait;
use codespar_agent::RunLimits;
use codespar_policy::Access;
use codespar_protocol::{Cost, Event, Message, Outcome, StopReason, Usage, Usd};
use codespar_testkit::{Script, Turn};
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput};
use common::{Bench, SECRET};
use serde_json::{json, value::RawValue};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        ..Usage::default()
    }
}

#[tokio::test]
async fn a_tool_loop_runs_to_its_answer_with_usage_and_cost() {
    let script = Script::new()
        .turn(
            Turn::tool("Bash", &json!({"command": "echo one > a.txt; cat a.txt"}))
                .usage(usage(1000, 100)),
        )
        .turn(Turn::tool("Read", &json!({"file_path": "a.txt"})).usage(usage(2000, 100)))
        .turn(Turn::text("done").usage(usage(3000, 10)));
    let mut bench = Bench::new(script).await;
    let result = bench.run("go").await;
    assert_eq!(
        (result.outcome, result.result.as_str()),
        (Outcome::Success, "done")
    );
    assert_eq!(result.num_turns, 3);
    assert_eq!(result.usage, usage(6000, 210));
    // claude-haiku-4-5: 1 dollar in and 5 out per million.
    assert_eq!(
        result.cost,
        Cost::Known(Usd::from_nanos(6_000_000 + 1_050_000))
    );
    assert_eq!(result.stop_reason, Some(StopReason::EndTurn));
    assert!(bench.last_results()[0].0.contains("one"));
}

#[tokio::test]
async fn an_answer_is_replayed_exactly_as_it_came() {
    let unknown = json!({"type": "of_the_future", "z": [1, {"b": 2, "a": 1}]});
    let script = Script::new()
        .turn(
            Turn::new()
                .and_thinking("hm", "c2lnbmF0dXJl")
                .and_redacted_thinking("b3BhcXVl")
                .and_text("look")
                .and_raw(&unknown)
                .and_tool_written(
                    None,
                    "Bash",
                    r#"{"description": "first",   "command":"true"}"#,
                ),
        )
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.run("go").await;
    let body = bench.server.last_request().unwrap().body().to_vec();
    let body = String::from_utf8(body).unwrap();
    for exact in [
        r#"{"type":"thinking","thinking":"hm","signature":"c2lnbmF0dXJl"},{"type":"redacted_thinking","data":"b3BhcXVl"},{"type":"text","text":"look"},{"type":"of_the_future","z":[1,{"b":2,"a":1}]}"#,
        r#""input":{"description": "first",   "command":"true"}"#,
    ] {
        assert!(body.contains(exact), "{exact}\nnot in\n{body}");
    }
}

#[tokio::test]
async fn every_call_gets_a_result_whatever_happens_to_it() {
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Teleport", &json!({}))
                .and_tool("Read", &json!({"path": "x"}))
                .and_tool(
                    "WebFetch",
                    &json!({"url": "https://example.com", "prompt": "?"}),
                )
                .and_tool("Bash", &json!({"command": "exit 3"}))
                .and_tool("Explode", &json!({})),
        )
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.tools.add(Arc::new(Explode));
    let result = bench.run("go").await;
    assert_eq!(result.outcome, Outcome::Success);
    let results = bench.last_results();
    assert_eq!(results.len(), 5);
    assert!(results.iter().all(|(_, is_error)| *is_error), "{results:?}");
    assert!(
        results[0]
            .0
            .starts_with("there is no tool `Teleport` here; there are: "),
        "{results:?}"
    );
    assert!(results[1].0.contains("file_path"), "{results:?}");
    assert!(
        results[2].0.starts_with("permission denied: "),
        "{results:?}"
    );
    assert!(results[3].0.contains("exit code 3"), "{results:?}");
    assert!(results[4].0.contains("failed inside"), "{results:?}");
    assert_eq!(result.permission_denials.len(), 1);
    assert_eq!(result.permission_denials[0].tool_name, "WebFetch");
}

/// A tool that panics.
struct Explode;

/// A tool that only returns when two calls of it run at once.
struct Meet(Barrier);

macro_rules! test_tool {
    ($type:ty, $name:literal, $effect:expr, |$this:ident| $run:expr) => {
        #[async_trait]
        impl Tool for $type {
            fn name(&self) -> &str {
                $name
            }
            fn description(&self) -> &str {
                "for a test"
            }
            fn input_schema(&self) -> Arc<RawValue> {
                serde_json::value::to_raw_value(&json!({"type": "object"})).unwrap().into()
            }
            fn effect(&self) -> Effect {
                $effect
            }
            fn inspect(&self, _: &RawValue, _: &Context) -> Result<Intent, ToolError> {
                Ok(Intent { summary: $name.into(), access: vec![Access::Nothing] })
            }
            async fn run(&self, call: Call, _: &Context) -> ToolOutput {
                let $this = self;
                let text: &str = $run;
                ToolOutput::text(format!("{} {text}", call.id))
            }
        }
    };
}
test_tool!(Explode, "Explode", Effect::ReadOnly, |_this| on_purpose());
test_tool!(Meet, "Meet", Effect::ReadOnly, |this| {
    this.0.wait().await;
    "met"
});

fn on_purpose() -> &'static str {
    panic!("on purpose")
}

#[tokio::test]
async fn read_only_calls_run_side_by_side_and_results_keep_the_order_of_calls() {
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool_with_id(
                    "a",
                    "Bash",
                    &json!({"command": "sleep 0.05; echo first > f"}),
                )
                .and_tool_with_id("b", "Meet", &json!({}))
                .and_tool_with_id("c", "Meet", &json!({}))
                .and_tool_with_id("d", "Bash", &json!({"command": "cat f"})),
        )
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.tools.add(Arc::new(Meet(Barrier::new(2))));
    bench.run("go").await;
    let request = bench.server.last_request().unwrap();
    let ids: Vec<String> = request
        .newest_tool_results()
        .into_iter()
        .map(|seen| seen.tool_use_id)
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert!(bench.last_results()[3].0.contains("first"));
}

#[tokio::test]
async fn the_limit_on_turns_ends_the_run_with_every_call_answered() {
    let mut bench = Bench::new(Script::tool_loop(
        9,
        "Bash",
        |_| json!({"command": "true"}),
        "x",
    ))
    .await;
    bench.limits = RunLimits {
        max_turns: Some(3),
        ..RunLimits::default()
    };
    let result = bench.run("go").await;
    assert_eq!(
        (result.outcome, result.num_turns),
        (Outcome::ErrorMaxTurns, 3)
    );
    assert_eq!(bench.server.request_count(), 3);
    bench.limits = RunLimits::default();
    assert_eq!(bench.run("go on").await.outcome, Outcome::Success);
}

#[tokio::test]
async fn the_limit_on_money_stops_before_it_is_passed() {
    let turn = |n: u64| Turn::tool("Bash", &json!({"command": "true"})).usage(usage(n, 1));
    let script = Script::new()
        .turn(turn(400_000))
        .turn(turn(400_000))
        .turn(turn(400_000));
    let mut bench = Bench::new(script).await;
    bench.limits = RunLimits {
        max_budget: Usd::from_dollars(0.8),
        ..RunLimits::default()
    };
    let result = bench.run("go").await;
    assert_eq!(
        (result.outcome, result.num_turns),
        (Outcome::ErrorMaxBudgetUsd, 1)
    );
    // The next call has all of this before it and could write it to the cache anew.
    assert_eq!(result.cost, Cost::Known(Usd::from_nanos(400_005_000)));
    assert_eq!(bench.server.request_count(), 1);
}

#[tokio::test]
async fn an_answer_cut_at_the_limit_is_continued_and_joined() {
    let script = Script::new()
        .turn(Turn::text("one, ").stop(StopReason::MaxTokens))
        .turn(Turn::text("two, ").stop(StopReason::MaxTokens))
        .turn(Turn::text("three"));
    let mut bench = Bench::new(script).await;
    let result = bench.run("count").await;
    assert_eq!(result.result, "one, two, three");
}

#[tokio::test]
async fn a_call_cut_at_the_limit_is_not_run_and_the_model_is_told() {
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool_written(None, "Bash", r#"{"command": "touch should-not-exist; ech"#)
                .stop(StopReason::MaxTokens),
        )
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    let result = bench.run("go").await;
    assert_eq!(result.outcome, Outcome::Success);
    assert!(
        bench.last_results()[0]
            .0
            .starts_with("not run: the call was cut off")
    );
    assert!(!bench.root.join("should-not-exist").exists());
}

#[tokio::test]
async fn a_paused_turn_goes_on_and_a_refusal_is_an_error() {
    let script = Script::new()
        .turn(Turn::text("thinking about it. ").stop(StopReason::PauseTurn))
        .turn(Turn::text("There."));
    let mut bench = Bench::new(script).await;
    let result = bench.run("go").await;
    assert_eq!(result.result, "thinking about it. There.");
    let request = bench.server.last_request().unwrap();
    assert_eq!(request.last_message()["role"], "assistant");

    let mut bench =
        Bench::new(Script::new().turn(Turn::text("no").stop(StopReason::Refusal))).await;
    let result = bench.run("go").await;
    assert_eq!(result.outcome, Outcome::ErrorDuringExecution);
    assert!(result.result.contains("declined"), "{}", result.result);
}

#[tokio::test]
async fn an_interrupt_stops_a_running_command_and_the_session_goes_on_later() {
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool(
                    "Bash",
                    &json!({"command": "echo started > mark; sleep 600"}),
                )
                .and_tool("Bash", &json!({"command": "touch second"})),
        )
        .turn(Turn::text("fine"));
    let mut bench = Bench::new(script).await;
    let (mut agent, _) = bench.agent().await;
    let cancel = CancellationToken::new();
    let mark = bench.root.join("mark");
    let stopper = cancel.clone();
    let watch = tokio::spawn(async move {
        while !mark.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        stopper.cancel();
    });
    let result = agent.run(Some(Message::user("go")), cancel).await;
    watch.await.unwrap();
    assert!(result.interrupted);
    assert!(!bench.root.join("second").exists());
    drop(agent);
    let result = bench.run("what happened?").await;
    assert_eq!(result.outcome, Outcome::Success);
    let request = bench.server.last_request().unwrap();
    let results = request.tool_results();
    assert_eq!(results.len(), 2);
    assert_eq!(results[1].text, "not run: the user interrupted");
    assert!(
        request
            .last_message()
            .to_string()
            .contains("The user interrupted here.")
    );
}

#[tokio::test]
async fn secrets_are_taken_out_of_results_and_prompts() {
    let script = Script::new()
        .turn(Turn::tool(
            "Bash",
            &json!({"command": format!("printf %s {SECRET} | rev | rev")}),
        ))
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.run(&format!("my token is {SECRET}")).await;
    // The model's own call carries what it wrote; results and prompts do not.
    let request = bench.server.last_request().unwrap();
    let prompt = request.messages()[0].to_string();
    assert!(
        !prompt.contains(SECRET) && prompt.contains("redacted"),
        "{prompt}"
    );
    let (text, _) = &bench.last_results()[0];
    assert!(
        !text.contains(SECRET) && text.contains("redacted"),
        "{text}"
    );
}

#[tokio::test]
async fn a_long_result_goes_to_a_file_and_the_model_gets_both_ends() {
    let script = Script::new()
        .turn(Turn::tool("Bash", &json!({"command": "seq 1 20000"})))
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.run("go").await;
    let (text, _) = &bench.last_results()[0];
    assert!(text.len() < 33_000, "{}", text.len());
    assert!(
        text.starts_with("1\n2\n") && text.contains("20000"),
        "{text}"
    );
    let files: Vec<_> = std::fs::read_dir(bench.root.parent().unwrap().join("out"))
        .unwrap()
        .collect();
    assert_eq!(files.len(), 1);
    let path = files[0].as_ref().unwrap().path();
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert_eq!(
        std::fs::read_to_string(path).unwrap().lines().count(),
        20_000
    );
}

#[tokio::test]
async fn the_todo_list_is_shown_and_survives_into_the_next_process() {
    let todos =
        json!({"todos": [{"content": "one", "status": "in_progress", "activeForm": "doing one"}]});
    let script = Script::new()
        .turn(Turn::tool("TodoWrite", &todos))
        .turn(Turn::text("done"));
    let mut bench = Bench::new(script).await;
    bench.run("go").await;
    let shown = bench
        .events
        .lock()
        .iter()
        .any(|event| matches!(event, Event::Todos { todos } if todos.len() == 1));
    assert!(shown);
    let (_agent, recovered) = bench.agent().await;
    assert_eq!(recovered.todos[0].content, "one");
}
