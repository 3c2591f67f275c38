//! The OpenAI format, chunk by chunk.

use codespar_protocol::{StopReason, Usage};
use codespar_testkit::{Fault, Script, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::client::{Client, Reply, read, user};

fn script() -> Script {
    let usage = Usage {
        web_search_requests: 0,
        input_tokens: 10,
        output_tokens: 20,
        cache_creation_input_tokens: 30,
        cache_read_input_tokens: 40,
        cache_creation_1h_input_tokens: 0,
    };
    Script::of([
        Turn::new()
            .and_thinking("hmm", "c2ln")
            .and_text("Hello")
            .and_tool_with_id("call_1", "Bash", &json!({"a": 1}))
            .and_tool_with_id("call_2", "Read", &json!({}))
            .chunk(4)
            .usage(usage),
        Turn::text("{{last_tool_result}}").stop(StopReason::MaxTokens),
    ])
}

async fn chat(body: &Value) -> Reply {
    let server = ScriptedModel::start(script()).await.unwrap();
    Client::new(&server).chat(body).await
}

fn first_request() -> Value {
    json!({"model": "gpt-test", "messages": [
        {"role": "system", "content": "Be brief."}, user("go")]})
}

fn usage() -> Value {
    json!({"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100,
           "prompt_tokens_details": {"cached_tokens": 40}})
}

#[tokio::test]
async fn a_stream_has_every_chunk_of_the_real_one() {
    let mut body = first_request();
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let reply = chat(&body).await;
    let mut events = reply.events();
    let id = events[0]["id"].clone();
    assert_eq!(events.pop(), Some(json!("[DONE]")));
    let chunk = |choices: Value| {
        json!({"id": id, "object": "chat.completion.chunk", "created": 1_700_000_000,
               "model": "gpt-test", "choices": choices})
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let call = |index: usize, id: &str, name: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function",
                                     "function": {"name": name, "arguments": ""}}]}),
        )
    };
    let arguments = |index: usize, text: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}))
    };
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    let expected = vec![
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "hmm"})),
        delta(json!({"content": "Hell"})),
        delta(json!({"content": "o"})),
        call(0, "call_1", "Bash"),
        arguments(0, r#"{"a""#),
        arguments(0, ":1}"),
        call(1, "call_2", "Read"),
        arguments(1, "{}"),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])),
        last,
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_stream_reports_tokens_only_when_asked() {
    let mut body = first_request();
    body["stream"] = json!(true);
    let reply = chat(&body).await.text();
    assert!(!reply.contains("usage"), "{reply}");
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_one_object() {
    let mut json = chat(&first_request()).await.json();
    json["id"].take();
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let expected = json!({
        "id": null, "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-test",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Hello", "reasoning_content": "hmm",
            "tool_calls": [call("call_1", "Bash", r#"{"a":1}"#), call("call_2", "Read", "{}")],
        }}],
        "usage": usage(),
    });
    assert_eq!(json, expected);
}

fn tool_turn(results: &[(&str, &str)]) -> Value {
    let mut body = first_request();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}},
        {"id": "call_2", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]}));
    for (id, text) in results {
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    body
}

#[tokio::test]
async fn the_conversation_goes_on_with_tool_messages() {
    let json = chat(&tool_turn(&[("call_1", "one"), ("call_2", "two")]))
        .await
        .json();
    let choice = &json["choices"][0];
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "content": "two"})
    );
    assert_eq!(choice["finish_reason"], "length");
}

#[tokio::test]
async fn calls_without_answers_and_answers_without_calls_are_refused() {
    assert_eq!(
        chat(&tool_turn(&[("call_2", "two")])).await.refusal(),
        (
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding \
             to each 'tool_call_id'. The following tool_call_ids did not have response messages: \
             call_1"
                .to_owned()
        )
    );
    let twice = [("call_1", "one"), ("call_2", "two"), ("call_2", "again")];
    assert_eq!(
        chat(&tool_turn(&twice)).await.refusal(),
        (
            400,
            "messages[5]: messages with role 'tool' must be a response to a preceding message \
             with 'tool_calls', but nothing waits for `call_2`"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn what_the_format_requires_is_required() {
    let refused = async |body: Value| chat(&body).await.refusal();
    let invalid = |message: &str| (400, message.to_owned());
    assert_eq!(
        refused(json!({"messages": [user("a")]})).await,
        invalid("you must provide a model parameter")
    );
    assert_eq!(
        refused(json!({"model": "m", "messages": []})).await,
        invalid("messages: at least one message is required")
    );
    assert_eq!(
        refused(json!({"model": "m", "messages": [{"role": "user", "content": null}]})).await,
        invalid("messages[0].content: expected a string or a list, got null")
    );
    assert_eq!(
        refused(json!({"model": "m", "messages": [{"role": "robot", "content": "a"}]})).await,
        invalid("messages[0].role: `robot` is not one of system, developer, user, assistant, tool")
    );
    let call = json!({"id": "c", "type": "function", "function": {"name": "A", "arguments": {}}});
    assert_eq!(
        refused(json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}]}))
            .await,
        invalid("messages[0].tool_calls[0].function.arguments: expected a string")
    );
}

#[tokio::test]
async fn a_request_without_a_key_is_unauthenticated() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let client = Client::new(&server);
    let bare = client.bare("/v1/chat/completions", &first_request());
    assert_eq!(read(bare).await.unwrap().status, 401);
    let bearer = client
        .bare("/v1/chat/completions", &first_request())
        .bearer_auth("key");
    assert_eq!(read(bearer).await.unwrap().status, 200);
}

#[tokio::test]
async fn an_error_in_mid_stream_is_an_unnamed_event() {
    let turn = Turn::text("hello").fault(Fault::overloaded_after_events(1));
    let server = ScriptedModel::start(Script::of([turn])).await.unwrap();
    let mut body = first_request();
    body["stream"] = json!(true);
    let reply = Client::new(&server).chat(&body).await;
    let events = reply.events();
    assert_eq!(events.len(), 2);
    assert_eq!(
        events[1],
        json!({"error": {"type": "overloaded_error", "message": "Overloaded"}})
    );
    assert!(!reply.text().contains("event:"));
}
