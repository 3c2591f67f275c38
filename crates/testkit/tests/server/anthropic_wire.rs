//! The Anthropic format, event by event.

use codespar_protocol::{StopReason, Usage};
use codespar_testkit::{Script, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::client::{Client, Reply, ask, ask_stream, user};

async fn reply_to(turn: Turn, body: &Value) -> Reply {
    let server = ScriptedModel::start(Script::of([turn])).await.unwrap();
    Client::new(&server).messages(body).await
}

fn all_kinds() -> Turn {
    Turn::new()
        .and_thinking("hmm, well", "c2ln")
        .and_redacted_thinking("opaque")
        .and_text("äöü")
        .and_tool_written(Some("toolu_x".to_owned()), "Edit", r#"{"z": 1,"a":"é"}"#)
        .and_raw(&json!({"type": "of_the_future", "n": 1}))
        .chunk(5)
        .usage(Usage {
            web_search_requests: 0,
            input_tokens: 10,
            output_tokens: 20,
            cache_creation_input_tokens: 30,
            cache_read_input_tokens: 40,
            cache_creation_1h_input_tokens: 5,
        })
}

fn usage(output: u64) -> Value {
    json!({
        "input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 40,
        "cache_creation": {"ephemeral_5m_input_tokens": 25, "ephemeral_1h_input_tokens": 5},
        "output_tokens": output,
    })
}

fn start(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[tokio::test]
async fn a_stream_has_every_event_of_the_real_one() {
    let reply = reply_to(all_kinds(), &ask_stream(json!([user("go")]))).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    let mut events = reply.events();
    let id = events[0]["message"]["id"].take();
    assert!(id.as_str().unwrap().starts_with("msg_1_"), "{id}");
    let json_delta = |text: &str| {
        delta(
            3,
            &json!({"type": "input_json_delta", "partial_json": text}),
        )
    };
    let expected = vec![
        json!({"type": "message_start", "message": {
            "id": null, "type": "message", "role": "assistant", "model": "claude-test",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(1)}}),
        start(
            0,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, &json!({"type": "thinking_delta", "thinking": "hmm, "})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "well"})),
        delta(0, &json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        json!({"type": "ping"}),
        start(1, &json!({"type": "redacted_thinking", "data": "opaque"})),
        stop(1),
        start(2, &json!({"type": "text", "text": ""})),
        delta(2, &json!({"type": "text_delta", "text": "äöü"})),
        stop(2),
        start(
            3,
            &json!({"type": "tool_use", "id": "toolu_x", "name": "Edit", "input": {}}),
        ),
        json_delta(""),
        json_delta(r#"{"z":"#),
        json_delta(r#" 1,"a"#),
        json_delta(r#"":"é""#),
        json_delta("}"),
        stop(3),
        start(4, &json!({"type": "of_the_future", "n": 1})),
        stop(4),
        json!({"type": "message_delta",
               "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage(20)}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_one_object() {
    let reply = reply_to(all_kinds(), &ask(json!([user("go")]))).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(
        reply.text().contains(r#""input":{"z": 1,"a":"é"}"#),
        "the input is sent as written: {}",
        reply.text()
    );
    let mut json = reply.json();
    json["id"].take();
    let expected = json!({
        "id": null, "type": "message", "role": "assistant", "model": "claude-test",
        "content": [
            {"type": "thinking", "thinking": "hmm, well", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "äöü"},
            {"type": "tool_use", "id": "toolu_x", "name": "Edit", "input": {"z": 1, "a": "é"}},
            {"type": "of_the_future", "n": 1},
        ],
        "stop_reason": "tool_use", "stop_sequence": null, "usage": usage(20),
    });
    assert_eq!(json, expected);
}

#[tokio::test]
async fn the_stop_reason_follows_the_content_unless_it_is_set() {
    let reason = async |turn: Turn| {
        reply_to(turn, &ask(json!([user("go")]))).await.json()["stop_reason"].clone()
    };
    assert_eq!(reason(Turn::text("a")).await, "end_turn");
    assert_eq!(reason(Turn::tool("A", &json!({}))).await, "tool_use");
    let cut = Turn::tool("A", &json!({})).stop(StopReason::MaxTokens);
    assert_eq!(reason(cut).await, "max_tokens");
}

#[tokio::test]
async fn tokens_are_computed_from_sizes_unless_they_are_set() {
    let body = ask(json!([user("go")]));
    let usage = reply_to(Turn::text("12345678"), &body).await.json()["usage"].clone();
    assert_eq!(usage["input_tokens"], body.to_string().len().div_ceil(4));
    assert_eq!(usage["output_tokens"], 2);
}

#[tokio::test]
async fn a_turn_with_delays_says_the_same_as_one_without() {
    let long = "many words ".repeat(20);
    let body = ask_stream(json!([user("go")]));
    let slow = Turn::text(&long)
        .latency(std::time::Duration::from_millis(2))
        .delay(std::time::Duration::from_millis(1));
    let slow = reply_to(slow, &body).await.text();
    assert_eq!(slow, reply_to(Turn::text(&long), &body).await.text());
}
