//! Traces of the real binary, at a collector.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[allow(dead_code, reason = "the tests of the server use the rest")]
#[path = "../server/client.rs"]
mod client;
#[path = "../common/mod.rs"]
mod common;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the dev agent use the rest"
)]
#[path = "../dev/repository.rs"]
mod repository;

use std::process::Command;

use client::{Api, started, token};
use codespar_testkit::{
    CollectedSpan, Conversation, Matcher, Script, TraceCollector, Turn,
    process::{Finished, spawn},
};
use common::{Bench, PATIENCE, one_command};
use repository::{FIX, answer, greeting, script};
use serde_json::json;

/// A collector that processes of a bench send their spans to.
struct Traced {
    bench: Bench,
    collector: TraceCollector,
}

impl Traced {
    fn new(script: Script) -> Self {
        Self::on(Bench::new(script))
    }

    fn on(bench: Bench) -> Self {
        Self {
            bench,
            collector: TraceCollector::start().unwrap(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command
            .env("OTEL_TRACES_EXPORTER", "otlp")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", self.collector.url())
            .env(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "api-key=hunter2-of-the-collector",
            );
        command
    }

    fn run(&self, args: &[&str]) -> Finished {
        let running = spawn(&mut self.command(args)).unwrap();
        running.wait(PATIENCE).unwrap()
    }
}

fn named<'a>(spans: &'a [CollectedSpan], name: &str) -> &'a CollectedSpan {
    let found = spans.iter().find(|span| span.name == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {spans:#?}"))
}

fn attribute<'a>(span: &'a CollectedSpan, key: &str) -> &'a str {
    let value = span.attributes.get(key);
    value.unwrap_or_else(|| panic!("no `{key}` in {span:#?}"))
}

#[test]
fn a_run_is_a_trace_of_its_model_calls_and_tools_without_what_they_say() {
    let traced = Traced::new(one_command("echo secret-of-the-command; exit 3"));
    let finished = traced.run(&[
        "-p",
        "secret-of-the-prompt",
        "--permission-mode",
        "bypassPermissions",
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stderr, "");

    let spans = traced.collector.spans();
    let run = named(&spans, "invoke_agent");
    assert_eq!(run.parent, "");
    let calls: Vec<_> = spans
        .iter()
        .filter(|span| span.name.starts_with("chat "))
        .collect();
    assert_eq!(calls.len(), 2, "{spans:#?}");
    for call in calls {
        assert_eq!((&call.trace, &call.parent), (&run.trace, &run.id));
        assert_ne!(attribute(call, "gen_ai.usage.input_tokens"), "0");
        assert!(call.nanoseconds > 0 && !call.is_error);
    }
    let tool = named(&spans, "execute_tool Bash");
    assert_eq!((&tool.trace, &tool.parent), (&run.trace, &run.id));
    assert!(tool.is_error);
    assert_eq!(attribute(tool, "service.name"), "codespar");
    assert_eq!(
        attribute(tool, "service.version"),
        env!("CARGO_PKG_VERSION")
    );
    assert!(!traced.collector.has_text("secret-of-the"));
    assert!(
        traced
            .collector
            .has_header("api-key", "hunter2-of-the-collector")
    );
}

#[test]
fn a_dev_run_that_a_client_asks_a_server_for_is_part_of_the_trace_of_the_client() {
    let fix = script(&["greet.sh"], [answer("Say hi.", FIX)]);
    let traced = Traced::on(greeting(fix));
    let write = token(&traced.bench, "write");
    let served = started(&mut traced.command(&["serve", "--listen", "127.0.0.1:0"]));
    let api = Api::new(&served.base, &write);
    assert_eq!(api.get("/healthz").0, 200);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let instruction = json!({"instruction": "make it say hi"});
    let (status, task) = api.post_with(&[("traceparent", parent)], "/api/v1/tasks", &instruction);
    assert_eq!(status, 201, "{task}");
    assert_eq!(
        api.ended(task["task_id"].as_str().unwrap())["status"],
        "completed"
    );

    let is_attempt = |span: &CollectedSpan| span.name == "task local_workflow";
    let spans = traced.collector.wait_for(PATIENCE, is_attempt);
    let request = named(&spans, "POST /api/v1/tasks");
    assert_eq!(request.trace, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(request.parent, "b7ad6b7169203331");
    assert_eq!(attribute(request, "http.response.status_code"), "201");
    let attempt = named(&spans, "task local_workflow");
    assert_eq!(
        (&attempt.trace, &attempt.parent),
        (&request.trace, &request.id)
    );
    assert_eq!(attribute(attempt, "codespar.task.id"), task["task_id"]);
    assert_eq!(attribute(attempt, "codespar.task.status"), "completed");
    let steps: Vec<_> = spans
        .iter()
        .filter(|span| span.name.starts_with("step "))
        .collect();
    assert!(steps.len() > 3, "{spans:#?}");
    for step in &steps {
        assert_eq!((&step.trace, &step.parent), (&attempt.trace, &attempt.id));
    }
    let mut calls = spans.iter().filter(|span| span.name.starts_with("chat "));
    assert!(calls.all(|call| call.trace == attempt.trace && !call.parent.is_empty()));
    // What is asked for to see whether the server lives is left out.
    assert!(!spans.iter().any(|span| span.name.contains("healthz")));
    assert!(!traced.collector.has_text("make it say hi"));
}

#[test]
fn a_task_that_another_process_runs_is_in_the_trace_of_the_one_that_made_it() {
    let input = json!({"task_type": "remote_agent", "subject": "far", "prompt": "child far away"});
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &input))
        .turn(Turn::text("made"))
        .conversation(
            Conversation::new("child", Matcher::first_user_contains("child far away"))
                .turn(Turn::text("seen")),
        );
    let traced = Traced::new(script);
    let made = traced.run(&[
        "-p",
        "look far away",
        "--permission-mode",
        "bypassPermissions",
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let worked = traced.run(&["worker", "--until-idle"]);
    assert_eq!(worked.status.code(), Some(0), "{}", worked.stderr);

    let is_attempt = |span: &CollectedSpan| span.name == "task remote_agent";
    let spans = traced.collector.wait_for(PATIENCE, is_attempt);
    let call = named(&spans, "execute_tool TaskCreate");
    let attempt = named(&spans, "task remote_agent");
    assert_eq!((&attempt.trace, &attempt.parent), (&call.trace, &call.id));
    assert_ne!(
        attribute(attempt, "process.pid"),
        attribute(call, "process.pid")
    );
    let mut runs = spans.iter().filter(|span| span.name == "invoke_agent");
    assert!(runs.any(|run| run.parent == attempt.id), "{spans:#?}");
}

#[test]
fn without_the_variable_nothing_is_sent() {
    let traced = Traced::new(Script::new().turn(Turn::text("hello")));
    let mut command = traced.command(&["-p", "hi"]);
    let finished = spawn(command.env_remove("OTEL_TRACES_EXPORTER")).unwrap();
    let finished = finished.wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(traced.collector.spans(), []);
}

#[test]
fn a_collector_that_is_not_there_is_said_and_changes_nothing() {
    let traced = Traced::new(Script::new().turn(Turn::text("hello")));
    let mut command = traced.command(&["-p", "hi"]);
    // Nobody listens on that port.
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout.trim(), "hello");
    assert!(
        finished.stderr.contains("were not sent to the collector"),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("hunter2"), "{}", finished.stderr);
}

/// The headers hold a key: commands of agents do not get them.
#[test]
fn commands_do_not_see_the_headers_for_the_collector() {
    let traced = Traced::new(one_command("env | sort"));
    let finished = traced.run(&[
        "-p",
        "look",
        "--permission-mode",
        "bypassPermissions",
        "--output-format",
        "stream-json",
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("PATH="), "{}", finished.stdout);
    assert!(!finished.stdout.contains("hunter2"), "{}", finished.stdout);
}
