//! A client of `codespar mcp serve`, that of the protocol's own crate.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};

use rmcp::{
    ClientHandler, RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam},
    service::{NotificationContext, RunningService},
};
use serde_json::Value;

use crate::common::{Bench, PATIENCE};

/// A client that keeps what it is told of progress.
#[derive(Clone, Default)]
pub(crate) struct Watcher {
    pub(crate) progress: Arc<Mutex<Vec<String>>>,
    pub(crate) numbers: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Watcher {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.numbers.lock().unwrap().push(params.progress);
        let message = params.message.unwrap_or_default();
        self.progress.lock().unwrap().push(message);
    }
}

pub(crate) type Running = RunningService<RoleClient, Watcher>;

pub(crate) async fn connect(
    bench: &Bench,
    args: &[&str],
) -> (Running, Watcher, tokio::process::Child) {
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

pub(crate) async fn call(client: &Running, name: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else {
        panic!("not an object");
    };
    let mut request = CallToolRequestParams::new(name);
    request.arguments = Some(arguments);
    let called = tokio::time::timeout(PATIENCE, client.call_tool(request)).await;
    called.unwrap().unwrap()
}

pub(crate) async fn fine(client: &Running, name: &'static str, arguments: Value) -> Value {
    let called = call(client, name, arguments).await;
    assert_eq!(called.is_error, Some(false), "{called:?}");
    called.structured_content.unwrap()
}

pub(crate) async fn refused(client: &Running, name: &'static str, arguments: Value) -> String {
    let called = call(client, name, arguments).await;
    assert_eq!(called.is_error, Some(true), "{called:?}");
    called.structured_content.unwrap().to_string()
}

pub(crate) async fn names(client: &Running) -> Vec<String> {
    let tools = client.list_all_tools().await.unwrap();
    tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect()
}
