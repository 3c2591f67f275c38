//! Providers against a real server: retries, errors, cancellation and secrets.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod server;

use std::{sync::Arc, time::Duration};

use codespar_model::{
    AnthropicConfig, AnthropicModel, HttpClient, HttpOptions, Model, ModelError, ModelEvent,
    OpenAiConfig, OpenAiModel, Request, RetryPolicy, SetupError,
};
use codespar_protocol::{Message, StopReason};
use futures::{StreamExt, future::ready};
use secrecy::SecretString;
use server::{Reply, Server, answer, begun, stream};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-very-secret-value";

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"model\":\"claude-opus-5-5\",\"usage\":{\"input_tokens\":3}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n";
const END: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn hello() -> Reply {
    stream(&format!("{START}{END}"))
}

fn request() -> Request {
    Request {
        web_searches: 0,
        model: "claude-opus-5-5".to_owned(),
        system: Arc::from(""),
        messages: vec![Arc::new(Message::user("hi"))],
        tools: Arc::from([]),
        max_tokens: 10,
        temperature: None,
        effort: None,
        thinking: None,
        stop_sequences: Vec::new(),
    }
}

fn http() -> HttpClient {
    HttpClient::new(HttpOptions::default())
}

fn quick() -> RetryPolicy {
    RetryPolicy {
        max_tries: 3,
        first_delay: Duration::from_millis(1),
        ..RetryPolicy::default()
    }
}

fn config(url: &str) -> AnthropicConfig {
    AnthropicConfig {
        api_key: Some(SecretString::from(KEY)),
        retry: quick(),
        ..AnthropicConfig::new(url.parse().unwrap())
    }
}

fn anthropic(url: &str) -> AnthropicModel {
    AnthropicModel::new(&config(url), &http()).unwrap()
}

/// Everything that happens but the counting of tokens.
async fn collect(model: &dyn Model) -> Vec<Result<ModelEvent, ModelError>> {
    model
        .stream(request(), CancellationToken::new())
        .filter(|event| ready(!matches!(event, Ok(ModelEvent::Counted(_)))))
        .collect()
        .await
}

/// Events in short: retries by what they report, text, and how it ended.
async fn summary(model: &dyn Model) -> Vec<String> {
    let events = collect(model).await.into_iter().map(|event| match event {
        Ok(ModelEvent::Retrying {
            attempt, reason, ..
        }) => format!("retry {attempt}: {reason}"),
        Ok(ModelEvent::TextDelta(text)) => format!("text {text}"),
        Ok(ModelEvent::ThinkingDelta(text)) => format!("thinking {text}"),
        Ok(ModelEvent::Finished(response)) => format!("finished {}", response.message.text()),
        Ok(ModelEvent::Counted(usage)) => format!("counted {usage:?}"),
        Err(error) => format!("error: {error}"),
    });
    events.collect()
}

fn error_json(kind: &str, message: &str) -> String {
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
}

fn overloaded() -> String {
    error_json("overloaded_error", "Overloaded")
}

#[tokio::test]
async fn a_call_has_the_right_path_headers_and_body_and_comes_to_an_answer() {
    let server = Server::start(vec![hello()]).await;
    let model = AnthropicModel::new(
        &AnthropicConfig {
            auth_token: Some(SecretString::from("tok\n")),
            version: "2024-01-01".to_owned(),
            ..config(&format!("{}/proxy/", server.url))
        },
        &http(),
    )
    .unwrap();
    let mut events = collect(&model).await;
    let Some(Ok(ModelEvent::Finished(response))) = events.pop() else {
        panic!("{events:?}");
    };
    assert_eq!(response.message.text(), "hello");
    assert_eq!(response.stop_reason, StopReason::EndTurn);
    assert_eq!(response.usage.output_tokens, 2);
    let asked = server.requests().remove(0);
    assert!(
        asked.starts_with("POST /proxy/v1/messages HTTP/1.1\r\n"),
        "{asked}"
    );
    for header in [
        "x-api-key: sk-very-secret-value\r\n",
        "authorization: Bearer tok\r\n",
        "anthropic-version: 2024-01-01\r\n",
        "content-type: application/json\r\n",
    ] {
        assert!(asked.contains(header), "{header} is not in {asked}");
    }
    assert!(asked.ends_with(r#""stream":true}"#), "{asked}");
}

#[tokio::test]
async fn calls_one_after_another_share_a_connection() {
    let server = Server::start(vec![hello(), hello(), hello()]).await;
    let model = anthropic(&server.url);
    for _ in 0..3 {
        assert_eq!(summary(&model).await, ["text hello", "finished hello"]);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_overloaded_provider_is_asked_again() {
    let server = Server::start(vec![answer("529 Overloaded", "", &overloaded()), hello()]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        [
            "retry 1: anthropic answered 529: Overloaded",
            "text hello",
            "finished hello"
        ]
    );
    let [first, second] = &server.requests()[..] else {
        panic!("two requests");
    };
    assert_eq!(first, second);
}

#[tokio::test]
async fn the_delay_that_the_server_names_is_the_delay_reported() {
    let body = error_json("rate_limit_error", "slow down");
    let headers = "retry-after-ms: 7\r\nretry-after: 900\r\n";
    let server = Server::start(vec![answer("429 Too Many", headers, &body), hello()]).await;
    let events = collect(&anthropic(&server.url)).await;
    match &events[0] {
        Ok(ModelEvent::Retrying {
            attempt,
            delay,
            reason,
            may_be_charged,
        }) => {
            assert!(!may_be_charged);
            assert_eq!((*attempt, *delay), (1, Duration::from_millis(7)));
            assert_eq!(reason, "anthropic answered 429: slow down");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(events.last(), Some(Ok(ModelEvent::Finished(_)))));
}

#[tokio::test]
async fn the_server_can_forbid_a_retry_and_ask_for_one() {
    let forbidden = answer("529 Overloaded", "x-should-retry: false\r\n", &overloaded());
    let server = Server::start(vec![forbidden]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        ["error: anthropic answered 529: Overloaded"]
    );
    let wanted = answer("400 Bad Request", "x-should-retry: true\r\n", &overloaded());
    let server = Server::start(vec![wanted, hello()]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        [
            "retry 1: anthropic answered 400: Overloaded",
            "text hello",
            "finished hello"
        ]
    );
}

#[tokio::test]
async fn patience_ends_after_the_tries_that_were_set() {
    let failing = || answer("503 Unavailable", "", "<html>down</html>");
    let server = Server::start(vec![failing(), failing(), failing()]).await;
    let said = "anthropic answered 503: <html>down</html>";
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        [
            format!("retry 1: {said}"),
            format!("retry 2: {said}"),
            format!("error: {said}")
        ]
    );
}

#[tokio::test]
async fn requests_that_cannot_get_better_are_not_repeated() {
    for status in [400, 401, 403, 404, 422] {
        let body = error_json("some_error", "no");
        let server = Server::start(vec![answer(&format!("{status} No"), "", &body)]).await;
        let events = collect(&anthropic(&server.url)).await;
        match &events[..] {
            [
                Err(ModelError::Api {
                    status: got, kind, ..
                }),
            ] => {
                assert_eq!((*got, kind.as_str()), (status, "some_error"));
            }
            other => panic!("{status}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_has_an_error_of_its_own() {
    let long = error_json(
        "invalid_request_error",
        "prompt is too long: 9 tokens > 8 maximum",
    );
    let large = error_json("request_too_large", "Request exceeds the maximum size");
    for reply in [
        answer("400 Bad Request", "", &long),
        answer("413 Too Large", "", &large),
        answer("413 Too Large", "", "<html>nginx</html>"),
    ] {
        let server = Server::start(vec![reply]).await;
        let events = collect(&anthropic(&server.url)).await;
        assert!(
            matches!(&events[..], [Err(ModelError::ContextWindowExceeded { .. })]),
            "{events:?}"
        );
    }
}

#[tokio::test]
async fn a_refused_key_says_which_variable_to_set_and_is_never_shown() {
    let body = error_json("authentication_error", &format!("invalid x-api-key {KEY}"));
    let server = Server::start(vec![answer("401 Unauthorized", "", &body)]).await;
    let model = anthropic(&server.url);
    assert_eq!(
        summary(&model).await,
        [
            "error: anthropic answered 401: invalid x-api-key [redacted]; set ANTHROPIC_API_KEY \
             (or ANTHROPIC_AUTH_TOKEN for a bearer token) to a valid key"
        ]
    );
    let event = format!("event: error\ndata: {body}\n\n");
    let server = Server::start(vec![stream(&event)]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        ["error: anthropic answered 200: invalid x-api-key [redacted]"]
    );
    let shown = format!("{model:?} {:?} {:?}", config(&server.url), http());
    assert!(!shown.contains(KEY), "{shown}");
}

#[test]
fn a_key_that_cannot_be_sent_is_refused_without_being_shown() {
    let broken = AnthropicConfig {
        api_key: Some(SecretString::from("sk-very\nsecret")),
        ..config("http://localhost")
    };
    let error = AnthropicModel::new(&broken, &http()).unwrap_err();
    assert_eq!(
        error,
        SetupError::Secret {
            variable: "ANTHROPIC_API_KEY"
        }
    );
    assert!(!format!("{error} {error:?}").contains("sk-very"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_starts_anew() {
    let server = Server::start(vec![Reply::Cut(begun(START)), stream(START), hello()]).await;
    let events = summary(&anthropic(&server.url)).await;
    assert_eq!(events.len(), 6, "{events:?}");
    assert_eq!(events[0], "text hello");
    assert!(
        events[1].starts_with("retry 1: the answer from anthropic broke off: "),
        "{events:?}"
    );
    assert_eq!(
        events[2..],
        [
            "text hello",
            "retry 2: the answer from anthropic broke off: the stream ended before the message did",
            "text hello",
            "finished hello"
        ]
    );
}

#[tokio::test]
async fn an_error_inside_the_stream_is_tried_again_when_it_may_pass() {
    let failing = |kind: &str| {
        let event = format!("event: error\ndata: {}\n\n", error_json(kind, "Sorry"));
        stream(&format!("{START}{event}"))
    };
    let server = Server::start(vec![failing("overloaded_error"), hello()]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        [
            "text hello",
            "retry 1: anthropic answered 200: Sorry",
            "text hello",
            "finished hello"
        ]
    );
    let server = Server::start(vec![failing("invalid_request_error")]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        ["text hello", "error: anthropic answered 200: Sorry"]
    );
}

#[tokio::test]
async fn a_silent_stream_is_broken() {
    let server = Server::start(vec![Reply::Hold(begun(START)), hello()]).await;
    let options = HttpOptions {
        silence_timeout: Duration::from_millis(200),
        ..HttpOptions::default()
    };
    let model = AnthropicModel::new(&config(&server.url), &HttpClient::new(options));
    assert_eq!(
        summary(&model.unwrap()).await,
        [
            "text hello",
            "retry 1: the answer from anthropic broke off: nothing came for 0.2 seconds",
            "text hello",
            "finished hello"
        ]
    );
    server.client_left().await;
}

#[tokio::test]
async fn what_is_no_event_stream_is_refused_with_a_look_at_it() {
    let page = answer("200 OK", "content-type: text/html\r\n", "<h1>Log in</h1>");
    let server = Server::start(vec![page]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        [
            "error: anthropic sent something that is not its wire format: \
             text/html instead of an event stream: <h1>Log in</h1>"
        ]
    );
}

fn json(body: &str) -> Reply {
    answer("200 OK", "content-type: application/json\r\n", body)
}

const WHOLE: &str = r#"{"id":"m1","type":"message","role":"assistant","model":"claude-opus-5-5",
    "content":[{"type":"text","text":"hello"},
    {"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],
    "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":9}}"#;

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_read_whole() {
    let server = Server::start(vec![json(WHOLE)]).await;
    let mut events = collect(&anthropic(&server.url)).await;
    let Some(Ok(ModelEvent::Finished(response))) = events.pop() else {
        panic!("{events:?}");
    };
    assert!(matches!(&events[..], [Ok(ModelEvent::TextDelta(text))] if text == "hello"));
    assert_eq!(response.id.as_deref(), Some("m1"));
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    let call = response.message.tool_uses().next().unwrap();
    assert_eq!(call.input.get(), r#"{"command":"ls"}"#);
    assert_eq!(
        (response.usage.input_tokens, response.usage.output_tokens),
        (3, 9)
    );
}

#[tokio::test]
async fn json_that_is_no_answer_is_tried_again_and_shown_when_it_stays() {
    let starting = json(r#"{"status":"starting"}"#);
    let server = Server::start(vec![starting, json(&overloaded()), json(WHOLE)]).await;
    let events = summary(&anthropic(&server.url)).await;
    assert_eq!(events.len(), 4, "{events:?}");
    assert!(
        events[0].starts_with("retry 1: ") && events[0].contains(r#"{"status":"starting"}"#),
        "{events:?}"
    );
    assert!(events[1].starts_with("retry 2: ") && events[1].contains("Overloaded"));
    assert_eq!(events[3], "finished hello");

    let refused = error_json("invalid_request_error", "no such model");
    let server = Server::start(vec![json(&refused)]).await;
    let events = summary(&anthropic(&server.url)).await;
    assert!(
        matches!(&events[..], [one] if one.starts_with("error: ") && one.contains("no such model")),
        "{events:?}"
    );

    let half = json(&WHOLE[..100]);
    let server = Server::start(vec![half, json(WHOLE)]).await;
    let events = summary(&anthropic(&server.url)).await;
    assert_eq!(events.last().unwrap(), "finished hello", "{events:?}");
}

#[tokio::test]
async fn an_openai_compatible_server_may_answer_without_a_stream() {
    let whole = r#"{"id":"c1","object":"chat.completion","model":"gpt-4o-2024-08-06",
        "choices":[{"index":0,"message":{"role":"assistant","content":"hello","tool_calls":[
        {"id":"a","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"ls\"}"}},
        {"id":"b","type":"function","function":{"name":"Read","arguments":"{}"}}]},
        "finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":20,"completion_tokens":9,
        "prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":2}}}"#;
    let server = Server::start(vec![json(r#"{"object":"list"}"#), json(whole)]).await;
    let config = OpenAiConfig {
        retry: quick(),
        ..OpenAiConfig::new(format!("{}/v1", server.url).parse().unwrap())
    };
    let model = OpenAiModel::new(&config, &http()).unwrap();
    let mut events = collect(&model).await;
    let Some(Ok(ModelEvent::Finished(response))) = events.pop() else {
        panic!("{events:?}");
    };
    assert!(
        matches!(&events[0], Ok(ModelEvent::Retrying { reason, .. }) if reason.contains("list"))
    );
    let calls: Vec<_> = response.message.tool_uses().collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].input.get(), r#"{"command":"ls"}"#);
    assert_eq!(response.stop_reason, StopReason::ToolUse);
    let usage = response.usage;
    assert_eq!(
        (
            usage.input_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.output_tokens
        ),
        (10, 8, 2, 9)
    );
}

#[tokio::test]
async fn a_malformed_event_is_tried_again_like_a_broken_stream() {
    let malformed = || stream("data: {\"type\":\n\n");
    let said = "anthropic sent something that is not its wire format: event: \
                EOF while parsing a value at line 1 column 8";
    let server = Server::start(vec![malformed(), hello()]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        [&format!("retry 1: {said}"), "text hello", "finished hello"]
    );
    let server = Server::start(vec![malformed(), malformed(), malformed()]).await;
    let events = summary(&anthropic(&server.url)).await;
    assert_eq!(events[2..], [format!("error: {said}")]);
}

#[tokio::test]
async fn two_calls_with_one_id_are_an_answer_to_be_tried_again() {
    let call = |index: u32| {
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":\
             {{\"type\":\"tool_use\",\"id\":\"same\",\"name\":\"LS\",\"input\":{{}}}}}}\n\n"
        )
    };
    let doubled = stream(&format!("{START}{}{}{END}", call(1), call(2)));
    let server = Server::start(vec![doubled, hello()]).await;
    let events = summary(&anthropic(&server.url)).await;
    assert_eq!(
        events[1],
        "retry 1: anthropic sent something that is not its wire format: message_stop: the call id \
         `same` was used before"
    );
    assert_eq!(events[2..], ["text hello", "finished hello"]);
}

#[tokio::test]
async fn a_delay_beyond_all_patience_is_not_waited_for() {
    let later = answer("429 Too Many", "retry-after: 3600\r\n", &overloaded());
    let server = Server::start(vec![later]).await;
    assert_eq!(
        summary(&anthropic(&server.url)).await,
        [
            "error: anthropic answered 429: Overloaded; it asks to wait 3600 s, and a call waits \
             300 s in all"
        ]
    );
}

#[tokio::test]
async fn the_waits_of_a_call_are_bounded_together() {
    let failing = || answer("503 Unavailable", "retry-after-ms: 150\r\n", &overloaded());
    let server = Server::start(vec![failing(), failing(), failing(), failing()]).await;
    let mut config = config(&server.url);
    config.retry.max_tries = 100;
    config.retry.patience = Duration::from_millis(400);
    let model = AnthropicModel::new(&config, &http()).unwrap();
    let events = summary(&model).await;
    assert!(events.len() <= 3, "{events:?}");
    assert!(
        events.last().unwrap().contains("a call waits 0.4 s in all"),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_key_away() {
    let elsewhere = Server::start(Vec::new()).await;
    let location = format!("location: {}/v1/messages\r\n", elsewhere.url);
    let server = Server::start(vec![answer("307 Elsewhere", &location, "")]).await;
    let events = collect(&anthropic(&server.url)).await;
    assert!(
        matches!(&events[..], [Err(ModelError::Api { status: 307, .. })]),
        "{events:?}"
    );
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn nobody_there_is_a_connection_error_that_names_the_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let model = anthropic(&format!("http://user:{KEY}@{address}"));
    let events = summary(&model).await;
    assert_eq!(events.len(), 3, "{events:?}");
    let start = format!("error: cannot reach anthropic at http://{address}/v1/messages: ");
    assert!(events[2].starts_with(&start), "{events:?}");
    assert!(!events.concat().contains(KEY), "{events:?}");
}

#[tokio::test]
async fn cancelling_in_mid_stream_ends_the_call_and_drops_the_connection() {
    let server = Server::start(vec![Reply::Hold(begun(START))]).await;
    let cancel = CancellationToken::new();
    let mut events = anthropic(&server.url).stream(request(), cancel.clone());
    let counted = events.next().await;
    assert!(
        matches!(counted, Some(Ok(ModelEvent::Counted(usage))) if usage.input_tokens == 3),
        "{counted:?}"
    );
    let first = events.next().await;
    assert!(
        matches!(first, Some(Ok(ModelEvent::TextDelta(_)))),
        "{first:?}"
    );
    let waiting = tokio::spawn(async move { (events.next().await, events.next().await) });
    cancel.cancel();
    let (error, after) = waiting.await.unwrap();
    assert!(
        matches!(error, Some(Err(ModelError::Cancelled))),
        "{error:?}"
    );
    assert!(after.is_none());
    server.client_left().await;
}

#[tokio::test]
async fn cancelling_before_the_answer_begins_drops_the_connection() {
    let server = Server::start(vec![Reply::Hold(String::new())]).await;
    let cancel = CancellationToken::new();
    let mut events = anthropic(&server.url).stream(request(), cancel.clone());
    let waiting = tokio::spawn(async move { events.next().await });
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    let error = waiting.await.unwrap();
    assert!(
        matches!(error, Some(Err(ModelError::Cancelled))),
        "{error:?}"
    );
    server.client_left().await;
}

#[tokio::test]
async fn cancelling_while_waiting_to_try_again_ends_the_wait() {
    let later = answer("429 Too Many", "retry-after: 250\r\n", &overloaded());
    let server = Server::start(vec![later]).await;
    let cancel = CancellationToken::new();
    let mut events = anthropic(&server.url).stream(request(), cancel.clone());
    let retrying = events.next().await;
    match retrying {
        Some(Ok(ModelEvent::Retrying { delay, .. })) => {
            assert_eq!(delay, Duration::from_secs(250));
        }
        other => panic!("{other:?}"),
    }
    cancel.cancel();
    let error = events.next().await;
    assert!(
        matches!(error, Some(Err(ModelError::Cancelled))),
        "{error:?}"
    );
}

#[tokio::test]
async fn dropping_the_stream_drops_the_connection() {
    let server = Server::start(vec![Reply::Hold(begun(START))]).await;
    let mut events = anthropic(&server.url).stream(request(), CancellationToken::new());
    assert!(events.next().await.is_some());
    drop(events);
    server.client_left().await;
}

#[tokio::test]
async fn an_openai_compatible_server_answers_at_its_own_path() {
    let chunks = concat!(
        "data: {\"id\":\"c1\",\"model\":\"qwen\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n",
        ": keep-alive\n\n",
        "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    );
    let server = Server::start(vec![
        answer(
            "503 Loading",
            "",
            r#"{"error":{"message":"Loading model"}}"#,
        ),
        stream(chunks),
    ])
    .await;
    let config = OpenAiConfig {
        api_key: Some(SecretString::from(KEY)),
        retry: quick(),
        ..OpenAiConfig::new(format!("{}/v1", server.url).parse().unwrap())
    };
    let model = OpenAiModel::new(&config, &http()).unwrap();
    assert_eq!(
        summary(&model).await,
        [
            "retry 1: openai answered 503: Loading model",
            "text hello",
            "finished hello"
        ]
    );
    let asked = server.requests().remove(1);
    assert!(
        asked.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains(&format!("authorization: Bearer {KEY}\r\n")),
        "{asked}"
    );
    assert!(asked.contains(r#""max_tokens":10,"#), "{asked}");
    assert!(!format!("{model:?} {config:?}").contains(KEY));
}
