//! `codespar mcp serve` with the client of the protocol's own crate.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use codespar_testkit::{Gate, Script, Turn};
use rmcp::{
    ClientHandler, RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam},
    service::{NotificationContext, RunningService},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, ended, parsed, task},
    repository::{FIX, answer, greeting, script},
};

/// A client that keeps what it is told of progress.
#[derive(Clone, Default)]
struct Watcher {
    progress: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Watcher {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let message = params.message.unwrap_or_default();
        self.progress.lock().unwrap().push(message);
    }
}

type Running = RunningService<RoleClient, Watcher>;

async fn connect(bench: &Bench, args: &[&str]) -> (Running, Watcher, tokio::process::Child) {
    let mut command: tokio::process::Command =
        bench.command(&[&["mcp", "serve"], args].concat()).into();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let watcher = Watcher::default();
    let client = tokio::time::timeout(PATIENCE, watcher.clone().serve(streams)).await;
    (client.unwrap().unwrap(), watcher, child)
}

async fn call(client: &Running, name: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else {
        panic!("not an object");
    };
    let mut request = CallToolRequestParams::new(name);
    request.arguments = Some(arguments);
    let called = tokio::time::timeout(PATIENCE, client.call_tool(request)).await;
    called.unwrap().unwrap()
}

async fn fine(client: &Running, name: &'static str, arguments: Value) -> Value {
    let called = call(client, name, arguments).await;
    assert_eq!(called.is_error, Some(false), "{called:?}");
    called.structured_content.unwrap()
}

async fn refused(client: &Running, name: &'static str, arguments: Value) -> String {
    let called = call(client, name, arguments).await;
    assert_eq!(called.is_error, Some(true), "{called:?}");
    called.structured_content.unwrap().to_string()
}

async fn names(client: &Running) -> Vec<String> {
    let tools = client.list_all_tools().await.unwrap();
    tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_agent_has_a_change_made_and_merged_and_hears_of_the_steps() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (client, watcher, mut child) = connect(&bench, &[]).await;
    let order = json!({"instruction": "make it say hi"});
    let run = fine(&client, "dev", order).await;
    assert_eq!(run["status"], "completed", "{run}");
    let told = watcher.progress.lock().unwrap().clone();
    assert!(told.contains(&"locate".to_owned()), "{told:?}");
    let id = run["task_id"].as_str().unwrap();
    let shown = fine(&client, "task_show", json!({"task_id": id})).await;
    assert!(!shown["steps"].as_array().unwrap().is_empty(), "{shown}");
    let listed = fine(&client, "task_list", json!({"status": "completed"})).await;
    assert_eq!(listed["tasks"][0]["task_id"], id, "{listed}");
    let output = fine(&client, "task_output", json!({"task_id": id})).await;
    assert_eq!(output["status"], "completed", "{output}");
    let found = fine(
        &client,
        "locate",
        json!({"instruction": "greet.sh says hi"}),
    )
    .await;
    assert_eq!(found["files"][0]["path"], "greet.sh", "{found}");
    let merged = fine(&client, "merge", json!({"number": 1})).await;
    assert_eq!(merged["number"], 1, "{merged}");
    for (name, arguments) in [
        ("task_show", json!({"task_id": "w-00000000"})),
        ("task_stop", json!({"task_id": id})),
        ("merge", json!({"number": 99})),
        ("dev", json!({"instruction": ""})),
        ("dev", json!({"instruction": "x", "sandbox": "off"})),
        ("ask", json!({"question": " "})),
        ("ask", json!({"question": "x", "model": "no-such-model"})),
        ("locate", json!({"instruction": "x", "project": "../.."})),
    ] {
        refused(&client, name, arguments).await;
    }
    // What is no id reaches no path.
    let mut odd = CallToolRequestParams::new("task_show");
    odd.arguments = json!({"task_id": "../projects"}).as_object().cloned();
    assert!(client.call_tool(odd).await.is_err());
    client.cancel().await.unwrap();
    let left = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap();
    assert_eq!(left.unwrap().code(), Some(0));
    assert!(bench.room.wait_until_empty(PATIENCE).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_the_model() {
    let bench = greeting(Script::new().turn(Turn::text("forty-two")));
    let (client, _, _child) = connect(&bench, &["--role", "write"]).await;
    let reply = fine(&client, "ask", json!({"question": "how many?"})).await;
    assert_eq!(reply["answer"], "forty-two", "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_limits_what_a_client_may_do() {
    let bench = greeting(Script::new());
    let (client, _, _child) = connect(&bench, &["--role", "read"]).await;
    let offered = names(&client).await;
    assert!(offered.contains(&"locate".to_owned()), "{offered:?}");
    for (name, arguments) in [
        ("dev", json!({"instruction": "x"})),
        ("merge", json!({"number": 1})),
        ("ask", json!({"question": "x"})),
        ("task_stop", json!({"task_id": "w-00000000"})),
        (
            "task_answer",
            json!({"question_id": "q-00000000", "answer": "yes"}),
        ),
    ] {
        assert!(!offered.contains(&name.to_owned()), "{name}");
        let why = refused(&client, name, arguments).await;
        assert!(why.contains("needs the role"), "{why}");
    }
    assert_eq!(bench.server.request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_stops_its_run_and_a_client_that_leaves_does_not() {
    let gate = Gate::closed();
    let held = || answer("Say hi", FIX).held_by(&gate);
    let bench = greeting(script(&["greet.sh"], [held(), held()]));
    let (client, watcher, _child) = connect(&bench, &[]).await;
    let mut order = CallToolRequestParams::new("dev");
    order.arguments = json!({"instruction": "make it say hi"})
        .as_object()
        .cloned();
    let under_way = async {
        while !watcher
            .progress
            .lock()
            .unwrap()
            .contains(&"locate".to_owned())
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // Dropping the call tells the server that it is cancelled.
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            called = client.call_tool(order) => panic!("{called:?}"),
            () = under_way => {}
        }
    });
    waited.await.unwrap();
    let listed = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let id = listed["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&bench, &id)["status"], "killed");

    let order = json!({"instruction": "make it say hi", "wait": false});
    let run = fine(&client, "dev", order).await;
    let id = run["task_id"].as_str().unwrap().to_owned();
    drop(client);
    assert!(bench.room.wait_until_empty(PATIENCE).unwrap().is_empty());
    let status = task(&bench, &id)["status"].clone();
    assert!(status == "pending" || status == "running", "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_every_client_needs_a_token_and_no_page_of_another_site_gets_in() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let token = |role: &str| {
        let made = bench.run(&["token", "create", "--json", "--role", role, "--name", role]);
        let made = parsed(&made.stdout);
        made["secret"]
            .as_str()
            .unwrap_or_else(|| panic!("{made}"))
            .to_owned()
    };
    let (reader, writer) = (token("read"), token("write"));
    let server = bench.start(&["mcp", "serve", "--http", "127.0.0.1:0"]);
    crate::common::wait_for("the address", || server.stdout_so_far().contains("/mcp"));
    let shown = server.stdout_so_far();
    let url = shown
        .trim()
        .strip_prefix("listening on ")
        .unwrap()
        .to_owned();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let send = |headers: Vec<(&'static str, String)>| {
        let mut request = http
            .post(&url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(hello.to_string());
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

    let open = async |token: &str| -> Running {
        let config = StreamableHttpClientTransportConfig::with_uri(url.clone())
            .auth_header(token.to_owned());
        let transport = StreamableHttpClientTransport::from_config(config);
        let served = tokio::time::timeout(PATIENCE, Watcher::default().serve(transport)).await;
        served.unwrap().unwrap()
    };
    let reading = open(&reader).await;
    assert!(!names(&reading).await.contains(&"dev".to_owned()));
    let why = refused(&reading, "dev", json!({"instruction": "x"})).await;
    assert!(why.contains("needs the role"), "{why}");
    let writing = open(&writer).await;
    let order = json!({"instruction": "make it say hi"});
    let run = fine(&writing, "dev", order).await;
    assert_eq!(run["status"], "completed", "{run}");
    let why = refused(&writing, "merge", json!({"number": 1})).await;
    assert!(why.contains("needs the role"), "{why}");
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
