//! Scripts in JSON: what they mean, and what is said when they are wrong.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use codespar_protocol::{StopReason, Usage};
use codespar_testkit::{
    AfterLast, Conversation, Fault, Garbage, Matcher, Script, ScriptedModel, Turn, Validation,
    process::{CleanRoom, spawn},
};
use serde_json::json;

use crate::client::{Client, ask, user};

const PATIENCE: Duration = Duration::from_secs(30);

fn read(json: &str) -> Script {
    Script::from_json(json).unwrap()
}

#[test]
fn the_short_forms_mean_the_long_ones() {
    let long = Script::of([Turn::text("a"), Turn::text("b")]);
    assert_eq!(read(r#"["a", "b"]"#), long);
    assert_eq!(
        read(r#"{"turns": [{"content": "a"}, {"content": ["b"]}]}"#),
        long
    );
    let blocks = r#"[{"content": [{"type": "text", "text": "a"}]}, "b"]"#;
    assert_eq!(read(blocks), long);
}

#[test]
fn everything_that_can_be_built_can_be_written() {
    let json = r#"{
      "turns": [
        {"content": [
           {"type": "thinking", "thinking": "t", "signature": "s"},
           {"type": "redacted_thinking", "data": "d"},
           {"type": "tool_use", "name": "A", "input": {"b":1}},
           {"type": "tool_use", "name": "B", "id": "i"},
           {"type": "tool_use", "name": "C", "input_text": "{"},
           {"type":"x","y":1}],
         "stop_reason": "refusal", "latency_ms": 1, "delay_ms": 2, "chunk": 3,
         "usage": {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 3,
                   "cache_read_input_tokens": 4, "cache_creation_1h_input_tokens": 5}},
        {"repeat": 2, "turn": "r"},
        {"repeat": 1, "turns": ["p", "q"]}],
      "after_last": "end", "strict": false,
      "conversations": [
        {"name": "n", "match": {"first_user_contains": "f", "system_contains": "s", "model": "m"},
         "turns": ["c"], "after_last": "repeat"}]
    }"#;
    let usage = Usage {
        web_search_requests: 0,
        input_tokens: 1,
        output_tokens: 2,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 4,
        cache_creation_1h_input_tokens: 5,
    };
    let first = Turn::new()
        .and_thinking("t", "s")
        .and_redacted_thinking("d")
        .and_tool("A", &json!({"b": 1}))
        .and_tool_with_id("i", "B", &json!({}))
        .and_tool_written(None, "C", "{")
        .and_raw(&json!({"type": "x", "y": 1}))
        .stop(StopReason::Refusal)
        .latency(Duration::from_millis(1))
        .delay(Duration::from_millis(2))
        .chunk(3)
        .usage(usage);
    let matcher = Matcher::first_user_contains("f")
        .and(Matcher::system_contains("s"))
        .and(Matcher::model("m"));
    let expected = Script::of([first])
        .turn(Turn::text("r"))
        .turn(Turn::text("r"))
        .turn(Turn::text("p"))
        .turn(Turn::text("q"))
        .after_last(AfterLast::End)
        .validation(Validation::Off)
        .conversation(
            Conversation::new("n", matcher)
                .turn(Turn::text("c"))
                .after_last(AfterLast::Repeat),
        );
    assert_eq!(read(json), expected);
}

#[test]
fn every_fault_can_be_written() {
    let json = r#"[{"content": "a", "faults": [
        {"status": 429, "retry_after_ms": 5},
        {"status": 503, "retry_after": "1", "should_retry": true,
         "error": {"type": "t", "message": "m"}},
        {"cut_after_bytes": 1}, {"cut_after_events": 2}, {"end_after_events": 3},
        {"error_after_events": 4},
        {"error_after_events": 4, "error": {"type": "t", "message": "m"}},
        {"hang_after_events": 5}, {"hang": "before_headers"},
        {"garbage": "json", "after_events": 6}, {"garbage": "sse"}, {"garbage": "page"},
        {"reset": "before_headers"}]}]"#;
    let faults = [
        Fault::status(429).retry_after_ms(5).into(),
        Fault::status(503)
            .retry_after("1")
            .worth_retrying()
            .error("t", "m")
            .into(),
        Fault::CutAfterBytes(1),
        Fault::CutAfterEvents(2),
        Fault::EndAfterEvents(3),
        Fault::overloaded_after_events(4),
        Fault::ErrorAfterEvents {
            events: 4,
            kind: "t".to_owned(),
            message: "m".to_owned(),
        },
        Fault::HangAfterEvents(5),
        Fault::HangBeforeHeaders,
        Fault::Garbage(Garbage::Json(6)),
        Fault::Garbage(Garbage::Sse(0)),
        Fault::Garbage(Garbage::Page),
        Fault::Reset,
    ];
    let turn = faults.into_iter().fold(Turn::text("a"), Turn::fault);
    assert_eq!(read(json), Script::of([turn]));
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    let wrong = [
        (
            "[\n\"a\",\n",
            "line 3: not JSON: EOF while parsing a value at line 3 column 0",
        ),
        (
            "{}",
            "line 1: script: it has neither turns nor conversations",
        ),
        (
            "{\"turn\": []}",
            "line 1: script: unknown field `turn`, expected one of `turns`, `after_last`, \
             `conversations`, `strict`, `longest_request`",
        ),
        (
            "[\n\"a\",\n{\"content\": \"b\",\n \"stop\": 1}]",
            "line 4: turn 2: unknown field `stop`, expected one of `content`, `stop_reason`, \
             `usage`, `latency_ms`, `delay_ms`, `chunk`, `faults`",
        ),
        (
            "[\n{\"stop_reason\": \"x\"}]",
            "line 2: turn 1: missing field `content`",
        ),
        (
            "[{\"repeat\": 3}, \"b\"]",
            "line 1: turn 1: `repeat` needs `turn` or `turns`",
        ),
        (
            "[{\"repeat\": 3, \"turn\": \"a\"},\n{\"content\": [\n{\"type\": \"text\"}]}]",
            "line 3: turn 4, block 1: missing field `text`",
        ),
        (
            "[{\"content\": [{\"type\": \"tool_use\", \"name\": \"A\", \"input\": {}, \
             \"input_text\": \"\"}]}]",
            "line 1: turn 1, block 1: give `input` or `input_text`, not both",
        ),
        (
            "[{\"content\": \"a\", \"faults\": [{\"status\": 500},\n{\"status\": 500, \
             \"garbage\": \"page\"}]}]",
            "line 2: turn 1, fault 2: a fault is of one kind; write two faults for two attempts",
        ),
        (
            "[{\"content\": \"a\", \"faults\": [{\"garbage\": \"page\", \"retry_after_ms\": 1}]}]",
            "line 1: turn 1, fault 1: `retry_after…` and `should_retry` go with `status`",
        ),
        (
            "{\"conversations\": [{\"name\": \"w\", \"turns\": [\"a\",\n 3]}]}",
            "line 2: conversation `w`, turn 2: invalid type: integer `3`, expected struct TurnForm",
        ),
    ];
    for (json, message) in wrong {
        let error = Script::from_json(json).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_mistake_in_a_file_names_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.json");
    std::fs::write(&path, "[\n{}]").unwrap();
    assert_eq!(
        Script::from_file(&path).unwrap_err().to_string(),
        format!("{}:2: turn 1: missing field `content`", path.display())
    );
    let absent = directory.path().join("absent.json");
    let error = Script::from_file(&absent).unwrap_err().to_string();
    let expected = format!("{}: cannot read the script: ", absent.display());
    assert!(error.starts_with(&expected), "{error}");
}

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scripts")
        .join(name)
}

#[test]
fn the_loop_of_fifty_alternates_two_tools_and_then_speaks() {
    let turn = |index: usize| {
        if index.is_multiple_of(2) {
            let input = r#"{"command": "echo turn {{turn}}"}"#;
            Turn::new().and_tool_written(None, "Bash", input)
        } else {
            Turn::new().and_tool_written(None, "Read", r#"{"file_path": "README.md"}"#)
        }
    };
    let expected = Script::of((0..50).map(turn)).turn(Turn::text("Fifty calls are done."));
    assert_eq!(Script::from_file(example("loop50.json")).unwrap(), expected);
}

#[tokio::test]
async fn the_examples_can_be_played() {
    let hello = Script::from_file(example("hello.json")).unwrap();
    let server = ScriptedModel::start(hello).await.unwrap();
    let reply = Client::new(&server)
        .messages(&ask(json!([user("hi")])))
        .await;
    assert_eq!(reply.said(), "Hello! You said: hi");

    let faults = Script::from_file(example("faults.json")).unwrap();
    let server = ScriptedModel::start(faults).await.unwrap();
    let client = Client::new(&server);
    let body = ask(json!([user("hi")]));
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let reply = client.try_messages(&body).await;
        let whole = |reply: crate::client::Reply| reply.body.is_ok().then_some(reply.status);
        statuses.push(reply.ok().and_then(whole));
    }
    assert_eq!(statuses, [Some(429), Some(529), None, None, Some(200)]);
}

#[test]
fn by_hand_it_prints_its_url_and_a_line_for_each_request() {
    let room = CleanRoom::new().unwrap();
    let mut command = room.command(env!("CARGO_BIN_EXE_codespar-testkit"));
    let mut running = spawn(command.arg(example("hello.json"))).unwrap();
    running
        .wait_for_output("Ctrl-C ends it.\n\n", PATIENCE)
        .unwrap();
    let greeting = running.stdout_so_far();
    let url = greeting.lines().next().unwrap();
    assert!(
        greeting.contains(&format!("ANTHROPIC_BASE_URL={url} ")),
        "{greeting}"
    );
    assert!(
        greeting.contains(&format!("OPENAI_BASE_URL={url}/v1 ")),
        "{greeting}"
    );
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream
        .write_all(b"GET /x HTTP/1.1\r\nconnection: close\r\n\r\n")
        .unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    running.interrupt().unwrap();
    let ended = running.wait(PATIENCE).unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(
        ended.stdout.strip_prefix(&greeting),
        Some("#1 GET /x 404: GET /x: not found\n1 requests\n")
    );
}

#[test]
fn by_hand_a_bad_script_is_reported() {
    let room = CleanRoom::new().unwrap();
    std::fs::write(room.work().join("bad.json"), "[3]").unwrap();
    let mut command = room.command(env!("CARGO_BIN_EXE_codespar-testkit"));
    let ended = spawn(command.arg("bad.json"))
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("bad.json:1: turn 1: invalid type"),
        "{}",
        ended.stderr
    );
}
