//! A running server, and a client of it.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_testkit::process::{Running, spawn};
use parking_lot::Mutex;
use serde_json::Value;

use crate::common::{Bench, PATIENCE, parsed};

pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) base: String,
}

/// Starts `codespar serve` on a free port and waits for its address.
pub(crate) fn serve(bench: &Bench, args: &[&str]) -> Served {
    serve_at(bench, "127.0.0.1:0", args)
}

pub(crate) fn serve_at(bench: &Bench, listen: &str, args: &[&str]) -> Served {
    started(&mut bench.command(&[&["serve", "--listen", listen], args].concat()))
}

pub(crate) fn started(command: &mut Command) -> Served {
    let mut running = spawn(command).unwrap();
    running.wait_for_output("listening on ", PATIENCE).unwrap();
    running.wait_for_output("\n", PATIENCE).unwrap();
    let shown = running.stdout_so_far();
    let base = shown.split_once("listening on ").unwrap().1;
    let base = base.lines().next().unwrap().trim().to_owned();
    Served { running, base }
}

pub(crate) fn token(bench: &Bench, role: &str) -> String {
    let made = bench.run(&["token", "create", "--role", role, "--name", role, "--json"]);
    let made = parsed(&made.stdout);
    made["secret"].as_str().unwrap().to_owned()
}

pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(PATIENCE)
}

/// Asks with one token.
pub(crate) struct Api {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    base: String,
    token: String,
}

impl Api {
    pub(crate) fn new(base: &str, token: &str) -> Self {
        let builder = client_builder();
        Self::with(builder, base, token)
    }

    pub(crate) fn with(builder: reqwest::ClientBuilder, base: &str, token: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Self {
            runtime: runtime.unwrap(),
            client: builder.build().unwrap(),
            base: base.to_owned(),
            token: token.to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.send(self.client.get(format!("{}{path}", self.base)))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.post_with(&[], path, body)
    }

    pub(crate) fn post_with(
        &self,
        headers: &[(&str, &str)],
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let mut request = self.client.post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("content-type", "application/json");
        self.send(request.body(body.to_string()))
    }

    fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        self.runtime.block_on(async {
            let response = request.bearer_auth(&self.token).send().await.unwrap();
            let status = response.status().as_u16();
            let text = response.text().await.unwrap();
            (
                status,
                serde_json::from_str(&text).unwrap_or(Value::String(text)),
            )
        })
    }

    /// Follows events in the background, from a place on.
    pub(crate) fn follow(&self, after: Option<u64>) -> Heard {
        let mut request = self
            .client
            .get(format!("{}/api/v1/events", self.base))
            .bearer_auth(&self.token);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let heard = Heard::default();
        let (events, is_over) = (heard.events.clone(), heard.is_over.clone());
        self.runtime.spawn(async move {
            let Ok(mut response) = request.send().await else {
                *is_over.lock() = true;
                return;
            };
            let mut text = String::new();
            while let Ok(Some(chunk)) = response.chunk().await {
                text.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((block, rest)) = text.split_once("\n\n") {
                    let (block, rest) = (block.to_owned(), rest.to_owned());
                    text = rest;
                    events.lock().extend(event_of(&block));
                }
            }
            *is_over.lock() = true;
        });
        heard
    }

    /// Waits until a task is over.
    pub(crate) fn ended(&self, id: &str) -> Value {
        let began = Instant::now();
        loop {
            let (status, task) = self.get(&format!("/api/v1/tasks/{id}"));
            assert_eq!(status, 200, "{task}");
            if !matches!(task["status"].as_str(), Some("pending" | "running")) {
                return task;
            }
            assert!(began.elapsed() < PATIENCE, "{task}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct HeardEvent {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

fn event_of(block: &str) -> Option<HeardEvent> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .map(str::to_owned)
    };
    Some(HeardEvent {
        id: field("id: ").and_then(|id| id.parse().ok()),
        name: field("event: ")?,
        data: serde_json::from_str(&field("data: ")?).unwrap(),
    })
}

#[derive(Default)]
pub(crate) struct Heard {
    events: Arc<Mutex<Vec<HeardEvent>>>,
    is_over: Arc<Mutex<bool>>,
}

impl Heard {
    pub(crate) fn all(&self) -> Vec<HeardEvent> {
        self.events.lock().clone()
    }

    /// The last place that was told.
    pub(crate) fn place(&self) -> Option<u64> {
        self.events
            .lock()
            .iter()
            .filter_map(|event| event.id)
            .next_back()
    }

    /// Waits for an event.
    pub(crate) fn wait_for(&self, what: &str, is_it: impl Fn(&HeardEvent) -> bool) -> HeardEvent {
        let began = Instant::now();
        loop {
            if let Some(found) = self.events.lock().iter().find(|event| is_it(event)) {
                return found.clone();
            }
            assert!(began.elapsed() < PATIENCE, "{what} in {:?}", self.all());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn wait_for_end(&self) {
        let began = Instant::now();
        while !*self.is_over.lock() {
            assert!(
                began.elapsed() < PATIENCE,
                "the stream goes on: {:?}",
                self.all()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
