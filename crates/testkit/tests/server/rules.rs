//! Requests that the real Anthropic API would refuse.

use codespar_protocol::StopReason;
use codespar_testkit::{AfterLast, Script, ScriptedModel, Turn, Validation};
use serde_json::{Value, json};

use crate::client::{Client, ask, assistant, read, user};

fn script() -> Script {
    Script::of([Turn::text("ok")]).after_last(AfterLast::Repeat)
}

async fn refusal(body: &Value) -> (u16, String) {
    let server = ScriptedModel::start(script()).await.unwrap();
    let reply = Client::new(&server).messages(body).await;
    let json = reply.json();
    assert_eq!(json["type"], "error", "accepted: {body}");
    assert_eq!(json["error"]["type"], "invalid_request_error");
    reply.refusal()
}

async fn assert_refused(body: Value, message: &str) {
    assert_eq!(refusal(&body).await, (400, message.to_owned()), "{body}");
    let server = ScriptedModel::start(script().validation(Validation::Off))
        .await
        .unwrap();
    let reply = Client::new(&server).messages(&body).await;
    assert_eq!(reply.status, 200, "without validation: {body}");
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "out"})
}

fn calls(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": calls})
}

fn results(ids: &[&str]) -> Value {
    let results: Vec<Value> = ids.iter().map(|id| result(id)).collect();
    json!({"role": "user", "content": results})
}

#[tokio::test]
async fn a_proper_conversation_is_accepted() {
    let body = json!({
        "model": "m", "max_tokens": 1,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "Bash", "input_schema": {"type": "object"}},
            {"name": "web", "type": "web_search", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            user("go"), calls(&["a", "b"]),
            {"role": "user", "content": [result("b"), result("a"), {"type": "text", "text": "x"}]},
            assistant("hm"),
            {"role": "user", "content": [
                {"type": "text", "text": "y", "cache_control": {"type": "ephemeral"}}]},
            calls(&["c"]),
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "is_error": true,
                 "content": [{"type": "text", "text": "x"}],
                 "cache_control": {"type": "ephemeral"}}]},
        ],
    });
    let server = ScriptedModel::start(script()).await.unwrap();
    assert_eq!(Client::new(&server).messages(&body).await.said(), "ok");
}

#[tokio::test]
async fn required_fields_are_required() {
    assert_refused(
        json!({"max_tokens": 1, "messages": [user("a")]}),
        "model: Field required",
    )
    .await;
    assert_refused(
        json!({"model": "m", "messages": [user("a")]}),
        "max_tokens: Field required",
    )
    .await;
    assert_refused(
        json!({"model": "m", "max_tokens": 0, "messages": [user("a")]}),
        "max_tokens: Input should be greater than or equal to 1",
    )
    .await;
    assert_refused(ask(json!([])), "messages: at least one message is required").await;
}

#[tokio::test]
async fn required_headers_are_required() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let client = Client::new(&server);
    let body = ask(json!([user("a")]));
    let bare = || client.bare("/v1/messages", &body);
    let version = ("anthropic-version", "2023-06-01");
    let reply = read(bare().header(version.0, version.1)).await.unwrap();
    assert_eq!(reply.json()["error"]["type"], "authentication_error");
    assert_eq!(
        reply.refusal(),
        (401, "x-api-key header is required".to_owned())
    );
    let reply = read(bare().header("x-api-key", "k")).await.unwrap();
    assert_eq!(
        reply.refusal(),
        (400, "anthropic-version: header is required".to_owned())
    );
    let bearer = bare().bearer_auth("token").header(version.0, version.1);
    assert_eq!(read(bearer).await.unwrap().said(), "ok");
}

#[tokio::test]
async fn a_call_without_a_result_in_the_next_message_is_refused() {
    let message = "messages.1: `tool_use` ids were found without `tool_result` blocks \
                   immediately after: b. Each `tool_use` block must have a corresponding \
                   `tool_result` block in the next message.";
    assert_refused(
        ask(json!([user("go"), calls(&["a", "b"]), results(&["a"])])),
        message,
    )
    .await;
    // A result that comes later does not count.
    let late = json!([
        user("go"),
        calls(&["b"]),
        user("wait"),
        assistant("yes"),
        results(&["b"])
    ]);
    assert_refused(ask(late), message).await;
}

#[tokio::test]
async fn a_result_without_a_call_in_the_message_before_is_refused() {
    let message = |index: usize| {
        format!(
            "messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: z. Each \
             `tool_result` block must have a corresponding `tool_use` block in the previous \
             message."
        )
    };
    assert_refused(ask(json!([results(&["z"])])), &message(0)).await;
    let extra = json!([user("go"), calls(&["a"]), results(&["a", "z"])]);
    assert_refused(ask(extra), &message(2)).await;
}

#[tokio::test]
async fn results_come_once_and_first_and_ids_are_not_used_again() {
    assert_refused(
        ask(json!([user("go"), calls(&["a"]), results(&["a", "a"])])),
        "messages.2: each tool_use must have a single result. Found multiple `tool_result` blocks \
         with id: a",
    )
    .await;
    let text_first =
        json!({"role": "user", "content": [{"type": "text", "text": "x"}, result("a")]});
    assert_refused(
        ask(json!([user("go"), calls(&["a"]), text_first])),
        "messages.2: `tool_result` blocks must come before other content, but a does not",
    )
    .await;
    let again = json!([
        user("go"),
        calls(&["a"]),
        results(&["a"]),
        calls(&["a"]),
        results(&["a"])
    ]);
    assert_refused(
        ask(again),
        "messages.3: `tool_use` ids must be unique, found `a` again",
    )
    .await;
}

#[tokio::test]
async fn roles_alternate_from_user_to_user() {
    assert_refused(
        ask(json!([assistant("a"), user("b")])),
        "messages: first message must use the \"user\" role",
    )
    .await;
    let in_a_row = |index, role| {
        format!(
            "messages.{index}: roles must alternate between \"user\" and \"assistant\", but found \
             multiple \"{role}\" roles in a row"
        )
    };
    assert_refused(ask(json!([user("a"), user("b")])), &in_a_row(1, "user")).await;
    assert_refused(
        ask(json!([
            user("a"),
            assistant("b"),
            assistant("c"),
            user("d")
        ])),
        &in_a_row(2, "assistant"),
    )
    .await;
    assert_refused(
        ask(json!([user("a"), assistant("b")])),
        "messages: the conversation must end with a user message",
    )
    .await;
    assert_refused(
        ask(json!([{"role": "system", "content": "a"}])),
        "messages: first message must use the \"user\" role",
    )
    .await;
    assert_refused(
        ask(json!([user("a"), {"role": "system", "content": "a"}])),
        "messages.1.role: Input should be 'user' or 'assistant', got `system`",
    )
    .await;
}

#[tokio::test]
async fn a_paused_turn_may_come_back_as_it_is() {
    let script = Script::of([
        Turn::text("wait").stop(StopReason::PauseTurn),
        Turn::text("now"),
        Turn::text("end"),
    ]);
    let server = ScriptedModel::start(script).await.unwrap();
    let client = Client::new(&server);
    let paused = json!([user("go"), assistant("wait")]);
    assert_eq!(client.messages(&ask(paused)).await.said(), "now");
    let on = json!([
        user("go"),
        assistant("wait"),
        assistant("now"),
        user("more")
    ]);
    assert_eq!(client.messages(&ask(on)).await.said(), "end");
    let not_paused = json!([user("go"), assistant("wait"), assistant("now")]);
    assert_eq!(client.messages(&ask(not_paused)).await.status, 400);
}

#[tokio::test]
async fn empty_content_is_refused() {
    let empty = "messages.0: all messages must have non-empty content";
    assert_refused(ask(json!([user("")])), empty).await;
    assert_refused(ask(json!([{"role": "user", "content": []}])), empty).await;
    let blank =
        |place: &str| format!("{place}: text content blocks must contain non-whitespace text");
    let block = json!([{"type": "text", "text": "a"}, {"type": "text", "text": " \n"}]);
    assert_refused(
        ask(json!([{"role": "user", "content": block}])),
        &blank("messages.0.content.1"),
    )
    .await;
    let mut body = ask(json!([user("a")]));
    body["system"] = block.clone();
    assert_refused(body, &blank("system.1")).await;
    let nested = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": block}]});
    assert_refused(
        ask(json!([user("go"), calls(&["a"]), nested])),
        &blank("messages.2.content.0.content.1"),
    )
    .await;
}

#[tokio::test]
async fn at_most_four_cache_marks_are_accepted_wherever_they_are() {
    let mark = json!({"type": "ephemeral"});
    let text = json!({"type": "text", "text": "a", "cache_control": mark});
    let nested = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": [text], "cache_control": mark}]});
    let mut body = ask(json!([{"role": "user", "content": [text]}, calls(&["a"]), nested]));
    body["system"] = json!([text]);
    body["tools"] = json!([{"name": "Bash", "input_schema": {}, "cache_control": mark}]);
    assert_refused(
        body,
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    )
    .await;
}

#[tokio::test]
async fn tools_have_unique_proper_names_and_a_schema() {
    let with_tools = |tools: Value| {
        let mut body = ask(json!([user("a")]));
        body["tools"] = tools;
        body
    };
    let tool = |name: &str| json!({"name": name, "input_schema": {}});
    assert_refused(
        with_tools(json!([tool("A"), tool("A")])),
        "tools: Tool names must be unique.",
    )
    .await;
    assert_refused(
        with_tools(json!([tool("A"), tool("a b")])),
        "tools.1.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$', got `a b`",
    )
    .await;
    assert_refused(
        with_tools(json!([{"name": "A"}])),
        "tools.0.input_schema: Field required",
    )
    .await;
}

#[tokio::test]
async fn blocks_stay_with_their_role_and_inputs_are_objects() {
    let as_text = json!({"type": "tool_use", "id": "a", "name": "A", "input": "{\"cut"});
    assert_refused(
        ask(json!([user("a"), {"role": "assistant", "content": [as_text]}, results(&["a"])])),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    )
    .await;
    assert_refused(
        ask(json!([{"role": "user", "content": [call("a")]}])),
        "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
    )
    .await;
    assert_refused(
        ask(json!([user("a"), {"role": "assistant", "content": [result("a")]}, user("b")])),
        "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_the_reason() {
    let (status, message) = refusal(&json!({"messages": [{"role": "user", "content": 3}]})).await;
    assert_eq!(status, 400);
    assert!(
        message.starts_with("The request body could not be read: invalid type: integer `3`"),
        "{message}"
    );
}

#[tokio::test]
async fn other_paths_are_not_found() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let client = Client::new(&server);
    let reply = read(client.request("/v1/else", &json!({}))).await.unwrap();
    assert_eq!(
        reply.refusal(),
        (404, "POST /v1/else: not found".to_owned())
    );
    let body = ask(json!([user("a")]));
    let query = read(client.request("/v1/messages?beta=true", &body))
        .await
        .unwrap();
    assert_eq!(query.said(), "ok");
}
