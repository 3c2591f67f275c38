//! `codespar mcp serve --http`: who gets in, and what calls come to over a network.

use std::process::Command;

use codespar_testkit::{
    Gate, Script,
    process::{Running as Process, spawn},
};
use rmcp::{
    ServiceExt as _,
    model::CallToolRequestParams,
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, ended, parsed, wait_for},
    mcp_conformance::{node, suite},
    mcp_serve_client::{Running, Watcher, fine, names, refused},
    repository::{FIX, answer, greeting, script},
};

/// The secret of a new token.
fn token(bench: &Bench, role: &str) -> String {
    let made = bench.run(&["token", "create", "--json", "--role", role, "--name", role]);
    let made = parsed(&made.stdout);
    let secret = made["secret"].as_str();
    secret.unwrap_or_else(|| panic!("{made}")).to_owned()
}

/// A server and its address.
fn serve(bench: &Bench) -> (Process, String) {
    let server = bench.start(&["mcp", "serve", "--http", "127.0.0.1:0"]);
    wait_for("the address", || server.stdout_so_far().contains("/mcp"));
    let shown = server.stdout_so_far();
    let url = shown.trim().strip_prefix("listening on ").unwrap();
    let url = url.to_owned();
    let _ = rustls::crypto::ring::default_provider().install_default();
    (server, url)
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
}

async fn open(url: &str, token: &str) -> (Running, Watcher) {
    let config =
        StreamableHttpClientTransportConfig::with_uri(url.to_owned()).auth_header(token.to_owned());
    let transport = StreamableHttpClientTransport::from_config(config);
    let watcher = Watcher::default();
    let served = tokio::time::timeout(PATIENCE, watcher.clone().serve(transport)).await;
    (served.unwrap().unwrap(), watcher)
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_every_client_needs_a_token_and_no_page_of_another_site_gets_in() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (reader, writer) = (token(&bench, "read"), token(&bench, "write"));
    let (_server, url) = serve(&bench);
    let http = reqwest::Client::new();
    let send = |headers: Vec<(&'static str, String)>| {
        let mut request = http
            .post(&url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(hello().to_string());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        async { request.send().await.unwrap().status().as_u16() }
    };
    let bearer = |token: &str| ("authorization", format!("Bearer {token}"));
    assert_eq!(send(vec![]).await, 401);
    assert_eq!(send(vec![bearer("cspr_wrong")]).await, 401);
    let evil = ("origin", "http://evil.example".to_owned());
    assert_eq!(send(vec![bearer(&writer), evil]).await, 403);
    let rebound = ("host", "evil.example".to_owned());
    assert_eq!(send(vec![bearer(&writer), rebound]).await, 403);
    assert_eq!(send(vec![bearer(&reader)]).await, 200);
    let long = http
        .post(&url)
        .header("authorization", format!("Bearer {writer}"));
    let long = long
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body("x".repeat(3 << 20));
    assert_eq!(long.send().await.unwrap().status().as_u16(), 413);

    let reading = open(&url, &reader).await.0;
    assert!(!names(&reading).await.contains(&"dev".to_owned()));
    let why = refused(&reading, "dev", json!({"instruction": "x"})).await;
    assert!(why.contains("needs the role"), "{why}");
    let writing = open(&url, &writer).await.0;
    let order = json!({"instruction": "make it say hi"});
    let run = fine(&writing, "dev", order).await;
    assert_eq!(run["status"], "completed", "{run}");
    let why = refused(&writing, "merge", json!({"number": 1})).await;
    assert!(why.contains("needs the role"), "{why}");
}

/// A message with a token, in a session if one is named. Gives the status, the session and the text.
async fn post(
    url: &str,
    token: &str,
    session: Option<&str>,
    message: &Value,
) -> (u16, Option<String>, String) {
    let mut request = reqwest::Client::new()
        .post(url)
        .bearer_auth(token)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(message.to_string());
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let answer = tokio::time::timeout(PATIENCE, request.send()).await;
    let answer = answer.unwrap().unwrap();
    let session = answer.headers().get("mcp-session-id");
    let session = session.map(|id| id.to_str().unwrap().to_owned());
    let status = answer.status().as_u16();
    let text = tokio::time::timeout(PATIENCE, answer.text()).await;
    (status, session, text.unwrap().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lends_its_rights_to_no_other_token_and_ends_with_its_own() {
    let bench = greeting(Script::new());
    let (reader, writer) = (token(&bench, "read"), token(&bench, "write"));
    let (_server, url) = serve(&bench);
    let (status, session, _) = post(&url, &writer, None, &hello()).await;
    assert_eq!(status, 200);
    let session = session.unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&url, &writer, Some(&session), &ready).await.0, 202);
    let ask = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "ask", "arguments": {"question": "how many?"}}});
    let (_, _, said) = post(&url, &reader, Some(&session), &ask).await;
    assert!(said.contains("needs the role"), "{said}");
    assert_eq!(bench.server.request_count(), 0);
    for wrong in ["cspr_wrong", ""] {
        assert_eq!(post(&url, wrong, Some(&session), &ask).await.0, 401);
    }
    let revoked = bench.run(&["token", "revoke", "write"]);
    assert_eq!(revoked.status.code(), Some(0), "{}", revoked.stderr);
    assert_eq!(post(&url, &writer, Some(&session), &ask).await.0, 401);
    assert_eq!(bench.server.request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_progress_is_told_and_a_lost_call_stops_no_run() {
    let gate = Gate::closed();
    let held = answer("Say hi", FIX).held_by(&gate);
    let bench = greeting(script(&["greet.sh"], [held]));
    let writer = token(&bench, "write");
    let (_server, url) = serve(&bench);
    let (client, watcher) = open(&url, &writer).await;
    let mut order = CallToolRequestParams::new("dev");
    let instruction = json!({"instruction": "make it say hi"});
    order.arguments = instruction.as_object().cloned();
    let told = || watcher.progress.lock().unwrap().clone();
    let under_way = async {
        while !told().contains(&"locate".to_owned()) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            called = client.call_tool(order) => panic!("{called:?}"),
            () = under_way => {}
        }
    });
    waited.await.unwrap();
    let numbers = watcher.numbers.lock().unwrap().clone();
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{numbers:?}");
    let listed = fine(&client, "task_list", json!({})).await;
    let id = listed["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    gate.open();
    assert_eq!(ended(&bench, &id)["status"], "completed");
}

/// What a server without the fixtures of the suite can be asked. The others call tools, resources
/// and prompts that only its own example has, or (`dns-rebinding-protection`) send requests that
/// carry no token.
const SCENARIOS: [&str; 5] = [
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "server-sse-polling",
];

/// The suite has no option for a token: every request of its process gets one.
const WITH_TOKEN: &str = "const send = globalThis.fetch; globalThis.fetch = (to, how = {}) => { \
    const headers = new Headers(how.headers); \
    headers.set('authorization', 'Bearer ' + process.env.TOKEN); \
    return send(to, { ...how, headers }); };";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the conformance suite of MCP and node 22; cargo xtask test runs it"]
async fn the_conformance_suite_for_servers_finds_no_fault() {
    let bench = greeting(Script::new());
    let writer = token(&bench, "write");
    let (_server, url) = serve(&bench);
    let loaded = bench.room.home().join("token.mjs");
    std::fs::write(&loaded, WITH_TOKEN).unwrap();
    for scenario in SCENARIOS {
        let mut command = Command::new(node());
        command
            .arg("--import")
            .arg(&loaded)
            .args(suite().get_args())
            .args(["server", "--url", &url, "--scenario", scenario])
            .current_dir(bench.room.home())
            .env("TOKEN", &writer);
        let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        let said = format!("{scenario}: {} {}", finished.stdout, finished.stderr);
        assert_eq!(finished.status.code(), Some(0), "{said}");
        assert!(finished.stdout.contains("0 failed"), "{said}");
    }
}

#[test]
fn another_address_needs_tls() {
    let bench = Bench::new(Script::new());
    let refused = bench.run(&["mcp", "serve", "--http", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--tls-cert"), "{}", refused.stderr);
    let useless = bench.run(&["mcp", "serve", "--host", "spar.example"]);
    assert_eq!(useless.status.code(), Some(2), "{}", useless.stderr);
    assert!(
        useless.stderr.contains("go with --http"),
        "{}",
        useless.stderr
    );
}
