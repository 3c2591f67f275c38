//! The tools it offers.
//!
//! ```text
//! echo {text}      says it back; marked as read-only
//! fail {text}      the same as a failed result
//! refuse           an error of the protocol (-32602) in place of a result
//! picture          a text and a picture of one pixel
//! links            a link, an embedded text, and audio
//! environment      all variables of the server, as JSON
//! big {count}      so many lines
//! slow {ms}        waits; ends early with "cancelled" when the call is not wanted any more
//! crash            writes to standard error and exits with 42
//! child            starts a process in a group of its own and says its id
//! ask              asks the user for a colour and says the answer
//! work {steps, ms} so many signs of progress, so far apart
//! added            there after the list has changed
//! ```

use std::{
    collections::BTreeMap,
    os::unix::process::CommandExt,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::host::Host;

/// A result, or an error with its code.
pub(super) type Answer = Result<Value, (i64, String)>;

/// One pixel.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Only `echo` claims to be read-only; the client must not take its word for more than order.
pub(super) fn list(has_more: bool) -> Value {
    let tool = |name: &str, description: &str, properties: Value| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": { "type": "object", "properties": properties },
        })
    };
    let text = json!({ "text": { "type": "string" } });
    let mut echo = tool("echo", "Says it back", text.clone());
    echo["annotations"] = json!({ "readOnlyHint": true });
    let mut all = json!([
        echo,
        tool("fail", "Fails with these words", text),
        tool("refuse", "Answers with an error of the protocol", json!({})),
        tool("picture", "Shows one pixel", json!({})),
        tool("links", "Points to resources", json!({})),
        tool("environment", "Tells its variables", json!({})),
        tool(
            "big",
            "Says much",
            json!({ "count": { "type": "integer" } })
        ),
        tool(
            "slow",
            "Takes a while",
            json!({ "ms": { "type": "integer" } })
        ),
        tool("crash", "Ends without an answer", json!({})),
        tool("child", "Starts a process that would stay", json!({})),
        tool("ask", "Asks the user for a colour", json!({})),
        tool(
            "work",
            "Tells of its progress",
            json!({ "steps": { "type": "integer" }, "ms": { "type": "integer" } })
        ),
    ]);
    if let (true, Value::Array(all)) = (has_more, &mut all) {
        all.push(tool("added", "Was not there before", json!({})));
    }
    all
}

/// `id` is that of the request, by which it may be cancelled. Every call is in the journal before
/// it begins.
pub(super) fn call(host: &Host, params: &Value, id: &Value) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    let given = &params["arguments"];
    let text = given["text"].as_str().unwrap_or_default();
    host.note(&format!("called {name}"));
    match name {
        "echo" => Ok(said(text)),
        "fail" => {
            let mut result = said(text);
            result["isError"] = json!(true);
            Ok(result)
        }
        "refuse" => Err((-32602, "I refuse".to_owned())),
        "picture" => Ok(json!({ "content": [
            { "type": "text", "text": "one pixel" },
            { "type": "image", "data": PICTURE, "mimeType": "image/png" },
        ] })),
        "links" => Ok(json!({ "content": [
            { "type": "resource_link", "uri": "file:///a", "name": "a" },
            { "type": "resource", "resource": { "uri": "file:///b", "text": "inside b" } },
            { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" },
        ] })),
        "environment" => {
            let all: BTreeMap<String, String> = std::env::vars().collect();
            Ok(said(&json!(all).to_string()))
        }
        "big" => {
            let count = given["count"].as_u64().unwrap_or(1);
            let lines: Vec<String> = (0..count).map(|number| format!("line {number}")).collect();
            Ok(said(&lines.join("\n")))
        }
        "slow" => Ok(said(&wait(host, given["ms"].as_u64().unwrap_or(0), id))),
        "crash" => {
            eprintln!("I am about to crash");
            std::process::exit(42);
        }
        "child" => {
            let mut command = Command::new("sleep");
            let child = command.arg("600").process_group(0).spawn();
            let id = child.map(|child| child.id()).unwrap_or_default();
            Ok(said(&id.to_string()))
        }
        "ask" => {
            let schema = json!({
                "type": "object",
                "properties": { "colour": { "type": "string", "enum": ["red", "blue"] } },
                "required": ["colour"],
            });
            let params = json!({ "message": "Which colour?", "requestedSchema": schema });
            Ok(said(&host.ask("elicitation/create", &params).to_string()))
        }
        "work" => {
            let steps = given["steps"].as_u64().unwrap_or(1);
            let pause = Duration::from_millis(given["ms"].as_u64().unwrap_or(0));
            for step in 1..=steps {
                thread::sleep(pause);
                let progress = json!({
                    "progressToken": params["_meta"]["progressToken"],
                    "progress": step, "total": steps, "message": format!("step {step}"),
                });
                host.tell("notifications/progress", progress);
            }
            Ok(said("worked"))
        }
        "added" => Ok(said("I am new")),
        other => Err((-32602, format!("there is no tool {other}"))),
    }
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Until the time has passed or the call is not wanted any more.
fn wait(host: &Host, millis: u64, id: &Value) -> String {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(millis) {
        if host.cancelled.lock().contains(&id.to_string()) {
            return "cancelled".to_owned();
        }
        thread::sleep(Duration::from_millis(5));
    }
    "waited".to_owned()
}
