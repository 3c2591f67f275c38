//! What a crash leaves behind, and summaries of long conversations.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use codespar_protocol::{
    ContentBlock, Cost, Entry, EntryBody, Message, Outcome, RawObject, StopReason, ToolUse, Usage,
};
use codespar_store::Store;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
use common::Bench;
use serde_json::{json, value::to_raw_value};
use tokio_util::sync::CancellationToken;

fn call(id: &str, command: &str) -> ContentBlock {
    ContentBlock::ToolUse(ToolUse {
        id: id.into(),
        name: "Bash".into(),
        input: to_raw_value(&json!({ "command": command })).unwrap(),
        extra: RawObject::default(),
    })
}

#[tokio::test]
async fn after_a_crash_every_call_has_a_result_and_none_is_run_again() {
    let script = Script::new()
        .turn(Turn::text("unused"))
        .turn(Turn::text("I will look first."));
    let mut bench = Bench::new(script).await;
    let left_behind = vec![
        EntryBody::User {
            message: Message::user("go"),
            synthetic: false,
        },
        EntryBody::Assistant {
            message: Message::assistant(vec![
                call("done", "touch done"),
                call("running", "touch running"),
                call("waiting", "touch waiting"),
            ]),
            message_id: None,
            model: "claude-haiku-4-5".into(),
            stop_reason: StopReason::ToolUse,
            usage: Usage::default(),
            cost: Cost::default(),
        },
        EntryBody::ToolStarted {
            tool_use_id: "done".into(),
        },
        EntryBody::ToolResult {
            result: ContentBlock::tool_result("done".into(), "ok", false),
            files: Vec::new(),
        },
        EntryBody::ToolStarted {
            tool_use_id: "running".into(),
        },
    ];
    bench
        .store
        .append(bench.session, 0, left_behind)
        .await
        .unwrap();

    let (mut agent, recovered) = bench.agent().await;
    assert_eq!(
        recovered.outcome_unknown,
        [r#"Bash {"command":"touch running"}"#]
    );
    assert_eq!(
        recovered.never_started,
        [r#"Bash {"command":"touch waiting"}"#]
    );
    let result = agent.run(None, CancellationToken::new()).await;
    assert_eq!(
        (result.outcome, result.result.as_str()),
        (Outcome::Success, "I will look first.")
    );
    let results = bench.last_results();
    assert_eq!(results[0], ("ok".to_owned(), false));
    assert!(
        results[1].0.starts_with("interrupted, outcome unknown"),
        "{results:?}"
    );
    assert!(results[2].0.contains("It changed nothing"), "{results:?}");
    for name in ["done", "running", "waiting"] {
        assert!(!bench.root.join(name).exists(), "{name} was run");
    }
}

#[tokio::test]
async fn older_turns_become_a_summary_and_the_instructions_are_read_anew() {
    let big = "x".repeat(4_000);
    let summary = Conversation::new("summary", Matcher::system_contains("You keep the memory"))
        .turn(Turn::text("SUMMARY: the user wants a.txt"));
    let turn = |n: u64| {
        let input = json!({"command": format!("echo {n} {big}")});
        Turn::tool("Bash", &input).usage(Usage {
            input_tokens: n * 1_000,
            output_tokens: 10,
            ..Usage::default()
        })
    };
    // After the summary the conversation is shorter, so the same turns come up again, with the
    // same ids; the run ends by its limit before an id is there twice.
    let script = Script::new()
        .turn(turn(1))
        .turn(turn(2))
        .turn(turn(3))
        .conversation(summary);
    let mut bench = Bench::new(script).await;
    bench.compact_at = 3_000;
    bench.limits.max_turns = Some(3);
    std::fs::write(bench.root.join("AGENTS.md"), "rule one\n").unwrap();
    let (mut agent, _) = bench.agent().await;
    std::fs::write(bench.root.join("AGENTS.md"), "rule two\n").unwrap();
    bench
        .context
        .as_ref()
        .unwrap()
        .set_todos(vec![codespar_protocol::Todo {
            content: "write a.txt".into(),
            status: codespar_protocol::TodoStatus::Pending,
            active_form: None,
        }]);
    agent
        .run(
            Some(Message::user("please make a.txt")),
            CancellationToken::new(),
        )
        .await;
    let requests = bench.server.requests();
    let after = requests
        .iter()
        .find(|request| request.messages()[0].to_string().contains("SUMMARY:"))
        .expect("no request after the summary");
    let first = after.messages()[0].to_string();
    assert!(first.contains("- [ ] write a.txt"), "{first}");
    assert!(after.system_text().contains("rule two"));
    assert_eq!(after.messages()[1]["role"], "assistant");
    let asked = requests
        .iter()
        .find(|request| request.system_text().contains("You keep the memory"))
        .expect("no summary was asked for");
    assert!(
        asked.messages()[0]
            .to_string()
            .contains("please make a.txt")
    );

    // A later process finds the same conversation.
    let shown: Vec<String> = agent
        .transcript()
        .messages()
        .iter()
        .map(|m| serde_json::to_string(&**m).unwrap())
        .collect();
    drop(agent);
    let (again, _) = bench.agent().await;
    let reread: Vec<String> = again
        .transcript()
        .messages()
        .iter()
        .map(|m| serde_json::to_string(&**m).unwrap())
        .collect();
    assert_eq!(shown, reread);
}

/// Between an answer and the start of its first call nothing can be lost, and no second
/// transaction is paid for. A call that somebody has to allow has not begun when it is asked for.
#[tokio::test]
async fn the_start_of_a_call_that_the_rules_allow_goes_on_record_with_its_answer() {
    let script = || {
        Script::of([
            Turn::tool("Bash", &json!({"command": "echo one"})),
            Turn::text("Done."),
        ])
    };
    let mut bench = Bench::new(script()).await;
    bench.run("go").await;
    let entries = bench.store.entries(bench.session, 0).await.unwrap();
    let [_, answer, start, result, ..] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert!(matches!(answer.body, EntryBody::Assistant { .. }));
    assert!(matches!(start.body, EntryBody::ToolStarted { .. }));
    assert!(matches!(result.body, EntryBody::ToolResult { .. }));
    assert_eq!(answer.at, start.at, "they are not of one transaction");
    assert!(result.at > start.at);

    let mut bench = Bench::new(script()).await;
    bench.allow.clear();
    bench.run("go").await;
    let entries = bench.store.entries(bench.session, 0).await.unwrap();
    let is_start = |entry: &Entry| matches!(entry.body, EntryBody::ToolStarted { .. });
    assert!(!entries.iter().any(is_start), "{entries:?}");
}
