//! Every fault, and what comes after it.

use codespar_testkit::{Fault, Garbage, Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use std::error::Error;

use crate::client::{Client, after, ask, ask_stream, events, user};

const TEXT: &str = "It worked in the end.";

async fn with(faults: impl IntoIterator<Item = Fault>) -> (ScriptedModel, Client) {
    let turn = faults.into_iter().fold(Turn::text(TEXT), Turn::fault);
    let server = ScriptedModel::start(Script::of([turn])).await.unwrap();
    let client = Client::new(&server);
    (server, client)
}

fn whole() -> Value {
    ask(json!([user("go")]))
}

fn streamed() -> Value {
    ask_stream(json!([user("go")]))
}

/// The bytes that arrive before the connection breaks.
async fn until_it_breaks(client: &Client, body: &Value) -> (Vec<u8>, reqwest::Error) {
    let request = client.request("/v1/messages", body);
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => panic!("the body ended in good order"),
            Err(error) => return (bytes, error),
        }
    }
}

async fn well_played(client: &Client) -> String {
    client.messages(&streamed()).await.text()
}

#[tokio::test]
async fn faults_are_met_one_after_the_other_and_then_the_turn_is_played() {
    let (_server, client) = with([
        Fault::status(429).into(),
        Fault::status(529).into(),
        Fault::status(500).into(),
    ])
    .await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(client.messages(&whole()).await.status);
    }
    assert_eq!(statuses, [429, 529, 500, 200, 200]);
    assert_eq!(client.messages(&whole()).await.said(), TEXT);
}

#[tokio::test]
async fn each_conversation_and_each_turn_meets_its_own_faults() {
    let flaky = |text: &str| Turn::text(text).fault(Fault::status(529).into());
    let script = Script::of([flaky("one"), flaky("two")]);
    let server = ScriptedModel::start(script).await.unwrap();
    let client = Client::new(&server);
    let mut statuses = Vec::new();
    for (first, answers) in [("a", 0), ("b", 0), ("a", 0), ("a", 1), ("b", 0), ("a", 1)] {
        let body = ask(after(first, answers));
        statuses.push(client.messages(&body).await.status);
    }
    assert_eq!(statuses, [529, 529, 200, 529, 200, 200]);
}

#[tokio::test]
async fn a_status_comes_with_its_headers_and_its_error() {
    let (_server, client) = with([
        Fault::status(429).retry_after_ms(5).retry_after("1").into(),
        Fault::status(400)
            .error("invalid_request_error", "prompt is too long")
            .worth_retrying()
            .into(),
        Fault::status(529).not_worth_retrying().into(),
    ])
    .await;
    let first = client.messages(&whole()).await;
    assert_eq!(first.header("retry-after-ms"), Some("5"));
    assert_eq!(first.header("retry-after"), Some("1"));
    assert_eq!(first.header("x-should-retry"), None);
    assert_eq!(
        first.json(),
        json!({"type": "error", "error": {"type": "rate_limit_error",
               "message": "scripted: rate_limit_error"}})
    );
    let second = client.messages(&streamed()).await;
    assert_eq!(second.refusal(), (400, "prompt is too long".to_owned()));
    assert_eq!(second.header("x-should-retry"), Some("true"));
    let third = client.messages(&streamed()).await;
    assert_eq!(third.header("x-should-retry"), Some("false"));
    assert_eq!(third.json()["error"]["type"], "overloaded_error");
}

#[tokio::test]
async fn a_stream_is_cut_after_so_many_bytes() {
    let (_server, client) = with([Fault::CutAfterBytes(40)]).await;
    let (bytes, error) = until_it_breaks(&client, &streamed()).await;
    assert!(error.is_body() || error.is_decode(), "{error:?}");
    assert_eq!(bytes, well_played(&client).await.as_bytes()[..40]);
}

#[tokio::test]
async fn a_stream_is_cut_after_so_many_events() {
    let (_server, client) = with([Fault::CutAfterEvents(3)]).await;
    let (bytes, _) = until_it_breaks(&client, &streamed()).await;
    let all = events(&well_played(&client).await);
    assert_eq!(events(std::str::from_utf8(&bytes).unwrap()), all[..3]);
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_cut_too() {
    let (_server, client) = with([Fault::CutAfterBytes(10), Fault::CutAfterEvents(1)]).await;
    let (ten, _) = until_it_breaks(&client, &whole()).await;
    let (half, _) = until_it_breaks(&client, &whole()).await;
    let all = client.messages(&whole()).await.text().into_bytes();
    assert_eq!(ten, all[..10]);
    assert_eq!(half, all[..all.len() / 2]);
}

#[tokio::test]
async fn a_body_can_end_too_early_and_in_good_order() {
    let (_server, client) = with([Fault::EndAfterEvents(3), Fault::EndAfterEvents(0)]).await;
    let short = client.messages(&streamed()).await.events();
    let empty = client.messages(&streamed()).await.text();
    let all = client.messages(&streamed()).await.events();
    assert_eq!(short, all[..3]);
    assert_eq!(empty, "");
}

#[tokio::test]
async fn an_error_event_comes_in_mid_stream() {
    let (_server, client) = with([Fault::overloaded_after_events(2)]).await;
    let broken = client.messages(&streamed()).await;
    assert_eq!(broken.status, 200);
    let mut expected = client.messages(&streamed()).await.events();
    expected.truncate(2);
    expected.push(json!({"type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    assert_eq!(broken.events(), expected);
}

#[tokio::test]
async fn garbage_is_sent_with_status_200() {
    let (_server, client) = with([
        Fault::Garbage(Garbage::Json(2)),
        Fault::Garbage(Garbage::Sse(2)),
        Fault::Garbage(Garbage::Page),
    ])
    .await;
    let json = client.messages(&streamed()).await;
    let sse = client.messages(&streamed()).await;
    let page = client.messages(&streamed()).await;
    let good = client.messages(&streamed()).await;
    assert_eq!([json.status, sse.status, page.status], [200, 200, 200]);
    assert_eq!(json.events()[..2], good.events()[..2]);
    let data = r#"{"type": "content_block_delta", "index": "#;
    assert_eq!(json.events()[2..], [json!(data)]);
    let bytes = sse.body.unwrap();
    assert!(String::from_utf8(bytes.clone()).is_err());
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let good_part = &good.text()[..good.text().find("event: content_block_delta").unwrap()];
    assert!(text.starts_with(good_part), "{text}");
    assert_eq!(page.header("content-type"), Some("text/html"));
    assert!(page.text().starts_with("<html>"));
}

#[tokio::test]
async fn a_whole_answer_can_be_garbage_too() {
    let (_server, client) = with([Fault::Garbage(Garbage::Json(0))]).await;
    let reply = client.messages(&whole()).await;
    assert_eq!(reply.status, 200);
    assert!(serde_json::from_slice::<Value>(&reply.body.unwrap()).is_err());
}

#[tokio::test]
async fn a_hanging_stream_says_its_events_and_no_more_until_the_client_leaves() {
    let (server, client) = with([Fault::HangAfterEvents(2)]).await;
    let request = client.request("/v1/messages", &streamed());
    let mut response = request.send().await.unwrap();
    let chunk = response.chunk().await.unwrap().unwrap();
    let heard = events(std::str::from_utf8(&chunk).unwrap());
    let silence = tokio::time::timeout(std::time::Duration::from_millis(50), response.chunk());
    assert!(silence.await.is_err(), "something came after the events");
    assert_eq!(server.dropped(), 0);
    drop(response);
    server.wait_for_dropped(1).await.unwrap();
    assert_eq!(client.messages(&streamed()).await.events()[..2], heard);
}

#[tokio::test]
async fn a_server_can_be_silent_from_the_start() {
    let (server, client) = with([Fault::HangBeforeHeaders]).await;
    let body = streamed();
    let waiting = client.try_messages(&body);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), waiting);
    assert!(waited.await.is_err(), "an answer came");
    server.wait_for_dropped(1).await.unwrap();
    assert_eq!(client.messages(&whole()).await.said(), TEXT);
}

#[tokio::test]
async fn a_connection_is_reset_before_any_header() {
    let (server, client) = with([Fault::Reset]).await;
    let error = client.try_messages(&streamed()).await.err().unwrap();
    let mut source: Option<&(dyn Error + 'static)> = Some(&error);
    let mut kinds = Vec::new();
    while let Some(error) = source {
        kinds.extend(
            error
                .downcast_ref::<std::io::Error>()
                .map(std::io::Error::kind),
        );
        source = error.source();
    }
    assert_eq!(kinds, [std::io::ErrorKind::ConnectionReset], "{error:?}");
    assert_eq!(server.request_count(), 1);
    assert_eq!(client.messages(&whole()).await.said(), TEXT);
}
