//! What the server keeps of requests, and how it starts and ends.

use std::time::Duration;

use codespar_testkit::{
    AfterLast, RequestCapture, Script, ScriptedModel, SeenToolResult, Setup, Turn,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Client, ask, ask_stream, read, user};

fn script() -> Script {
    Script::of([Turn::text("ok")]).after_last(AfterLast::Repeat)
}

fn conversation() -> Value {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "A", "input": {}});
    json!({
        "model": "claude-test", "max_tokens": 100,
        "system": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
        "tools": [{"name": "A", "input_schema": {}}, {"name": "B", "input_schema": {}}],
        "messages": [
            user("go"),
            {"role": "assistant", "content": [call("a")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "first"}]},
            {"role": "assistant", "content": [call("b")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "is_error": true,
                 "content": [{"type": "text", "text": "second"}]}]},
        ],
    })
}

fn seen(id: &str, text: &str, is_error: bool) -> SeenToolResult {
    SeenToolResult {
        tool_use_id: id.to_owned(),
        text: text.to_owned(),
        is_error,
    }
}

#[tokio::test]
async fn a_request_is_kept_as_it_came() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let body = conversation();
    let request = Client::new(&server).request("/v1/messages?beta=true", &body);
    read(request.header("X-Extra", "yes")).await.unwrap();
    let kept = server.last_request().unwrap();
    assert_eq!(kept.order(), 1);
    assert_eq!(
        (kept.method(), kept.path()),
        ("POST", "/v1/messages?beta=true")
    );
    assert_eq!(kept.header("x-extra"), Some("yes"));
    assert_eq!(kept.header("X-Api-Key"), Some("scripted"));
    assert_eq!(kept.header("x-absent"), None);
    assert_eq!(kept.body(), body.to_string().as_bytes());
    assert_eq!(*kept.json(), body);
    assert_eq!(kept.model(), "claude-test");
    assert_eq!(kept.messages(), body["messages"].as_array().unwrap());
    assert_eq!(*kept.last_message(), body["messages"][4]);
    assert_eq!(kept.assistant_messages(), 2);
    assert_eq!(kept.tool_names(), ["A", "B"]);
    assert_eq!(kept.system_text(), "one\ntwo");
    let results = [seen("a", "first", false), seen("b", "second", true)];
    assert_eq!(kept.tool_results(), results);
    assert_eq!(kept.newest_tool_results(), results[1..]);
}

#[tokio::test]
async fn a_request_in_the_openai_format_is_read_alike() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let call = json!({"id": "a", "type": "function", "function": {"name": "A", "arguments": "{}"}});
    let body = json!({
        "model": "gpt-test",
        "tools": [{"type": "function", "function": {"name": "A", "parameters": {}}}],
        "messages": [
            {"role": "system", "content": "Be brief."}, user("go"),
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "out"},
        ],
    });
    Client::new(&server).chat(&body).await;
    let kept = server.last_request().unwrap();
    assert_eq!(kept.tool_names(), ["A"]);
    assert_eq!(kept.system_text(), "Be brief.");
    assert_eq!(kept.tool_results(), [seen("a", "out", false)]);
    assert_eq!(kept.newest_tool_results(), [seen("a", "out", false)]);
}

async fn orders_kept(capture: RequestCapture) -> (Vec<u64>, u64) {
    let setup = Setup {
        capture,
        ..Setup::default()
    };
    let server = ScriptedModel::start_with(script(), setup).await.unwrap();
    let client = Client::new(&server);
    for _ in 0..4 {
        client.messages(&ask(json!([user("go")]))).await;
    }
    let orders = server.requests().iter().map(|kept| kept.order()).collect();
    (orders, server.request_count())
}

#[tokio::test]
async fn as_many_requests_are_kept_as_asked_and_all_are_counted() {
    assert_eq!(
        orders_kept(RequestCapture::All).await,
        (vec![1, 2, 3, 4], 4)
    );
    assert_eq!(orders_kept(RequestCapture::Last(2)).await, (vec![3, 4], 4));
    assert_eq!(orders_kept(RequestCapture::Off).await, (vec![], 4));
}

#[tokio::test]
async fn requests_that_are_refused_are_kept_too() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let reply = Client::new(&server).messages(&ask(json!([]))).await;
    assert_eq!(reply.status, 400);
    assert_eq!(*server.last_request().unwrap().json(), ask(json!([])));
}

#[tokio::test]
async fn waiting_for_requests_ends_when_they_have_come() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let client = Client::new(&server);
    let asking = async {
        for _ in 0..2 {
            client.messages(&ask(json!([user("go")]))).await;
        }
    };
    let (kept, ()) = tokio::join!(server.wait_for_requests(2), asking);
    let kept = kept.unwrap();
    assert_eq!(kept.len(), 2);
    assert!(kept[0].at() <= kept[1].at());
}

#[tokio::test]
async fn an_answer_broken_off_by_the_client_is_counted() {
    let slow = Turn::text("many words ".repeat(100)).delay(Duration::from_millis(20));
    let server = ScriptedModel::start(Script::of([slow])).await.unwrap();
    let client = Client::new(&server);
    let body = ask_stream(json!([user("go")]));
    let mut response = client.request("/v1/messages", &body).send().await.unwrap();
    response.chunk().await.unwrap().unwrap();
    drop(response);
    server.wait_for_dropped(1).await.unwrap();
    assert_eq!((server.dropped(), server.request_count()), (1, 1));
}

#[tokio::test]
async fn an_answer_read_to_its_end_is_not_counted_as_broken_off() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let body = ask_stream(json!([user("go")]));
    {
        let client = Client::new(&server);
        client.messages(&body).await;
    }
    // The second answer is on another connection: by then the first is closed.
    Client::new(&server).messages(&body).await;
    assert_eq!(server.dropped(), 0);
}

/// Connecting may still succeed for a moment while the runtime closes the socket.
async fn is_refused_soon(address: std::net::SocketAddr) -> bool {
    for _ in 0..1000 {
        if TcpStream::connect(address).await.is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

#[tokio::test]
async fn dropping_the_server_closes_its_port_and_its_connections() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let address = server.address();
    let mut open = TcpStream::connect(address).await.unwrap();
    let client = Client::new(&server);
    client.messages(&ask(json!([user("go")]))).await;
    drop(server);
    assert!(is_refused_soon(address).await);
    assert_eq!(open.read(&mut [0; 8]).await.unwrap_or(0), 0);
    assert!(
        client
            .try_messages(&ask(json!([user("go")])))
            .await
            .is_err()
    );
}

#[test]
fn a_blocking_server_runs_by_itself_and_is_gone_when_dropped() {
    let server = ScriptedModel::start_blocking(script()).unwrap();
    let address = server.address();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = Client::new(&server);
    let reply = runtime.block_on(client.messages(&ask(json!([user("go")]))));
    assert_eq!(reply.said(), "ok");
    assert_eq!(server.wait_for_requests_blocking(1).unwrap().len(), 1);
    drop(server);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_port_in_use_is_an_error() {
    let first = ScriptedModel::start_blocking(script()).unwrap();
    let setup = Setup {
        port: first.address().port(),
        ..Setup::default()
    };
    let error = ScriptedModel::start_blocking_with(script(), setup)
        .err()
        .unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_body_in_chunks_is_read_and_a_connection_is_used_again() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let body = ask(json!([user("go")])).to_string();
    let (start, end) = body.split_at(10);
    let head = "POST /v1/messages HTTP/1.1\r\nx-api-key: k\r\nanthropic-version: v\r\n";
    let chunked = format!(
        "{head}transfer-encoding: chunked\r\n\r\na\r\n{start}\r\n{:x};x=y\r\n{end}\r\n0\r\n\r\n",
        end.len()
    );
    let plain = format!(
        "{head}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all((chunked + &plain).as_bytes())
        .await
        .unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2);
    let kept = server.requests();
    assert_eq!(kept[0].body(), body.as_bytes());
    assert_eq!(kept[1].body(), body.as_bytes());
}

#[tokio::test]
async fn a_head_that_makes_no_sense_is_refused() {
    let server = ScriptedModel::start(script()).await.unwrap();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request"), "{answer}");
    assert!(
        answer.contains("content-length is not a number"),
        "{answer}"
    );
}
