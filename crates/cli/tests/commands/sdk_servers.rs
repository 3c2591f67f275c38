//! MCP servers of a session with a client: in the program of the client, set and switched while it
//! runs.

use std::path::Path;

use codespar_testkit::{Script, Turn, mcp::program};
use serde_json::{Value, json};

use crate::{
    common::Bench,
    sdk::{client, initialize, results},
};

#[test]
fn a_server_in_the_program_of_the_client_has_tools() {
    let script = Script::new()
        .turn(Turn::tool("mcp__calc__add", &json!({"a": 2, "b": 3})))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let servers = r#"{"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}"#;
    let mut client = client(
        &bench,
        &["--mcp-config", servers, "--allowedTools", "mcp__calc__add"],
    );
    client.send(&json!({"type": "control_request", "request_id": "init", "request": {"subtype": "initialize"}})).unwrap();
    client.prompt("add").unwrap();
    loop {
        let line = client.next_line().unwrap().unwrap();
        if line["type"] == "result" {
            break;
        }
        if line["type"] != "control_request" {
            continue;
        }
        let message = &line["request"]["message"];
        let result = match message["method"].as_str().unwrap() {
            "initialize" => {
                json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}})
            }
            "tools/list" => {
                json!({"tools": [{"name": "add", "description": "Adds", "inputSchema": {"type": "object"}}]})
            }
            "tools/call" => {
                let given = &message["params"]["arguments"];
                let sum = given["a"].as_i64().unwrap() + given["b"].as_i64().unwrap();
                json!({"content": [{"type": "text", "text": format!("sum {sum}")}]})
            }
            _ => json!({}),
        };
        let answer =
            json!({"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}});
        client.answer(&line, &answer).unwrap();
    }
    assert_eq!(results(&bench), ["sum 5"]);
    let status = client
        .request(&json!({"subtype": "mcp_status"}))
        .unwrap()
        .unwrap();
    assert_eq!(status["mcpServers"][0]["status"], "connected");
    assert_eq!(status["mcpServers"][0]["tools"][0]["name"], "add");
    client
        .request(&json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": false}))
        .unwrap()
        .unwrap();
    let status = client
        .request(&json!({"subtype": "mcp_status"}))
        .unwrap()
        .unwrap();
    assert_eq!(status["mcpServers"][0]["status"], "disabled");
}

#[test]
fn servers_are_set_while_the_session_runs_and_their_questions_reach_the_client() {
    let script = Script::new()
        .turn(Turn::text("no server yet"))
        .turn(Turn::tool("mcp__late__echo", &json!({"text": "hi"})))
        .turn(Turn::tool("mcp__kit__ask", &json!({})))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let server = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let servers = json!({"mcpServers": {"kit": {"command": server}}}).to_string();
    let args = [
        "--mcp-config",
        &servers,
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__kit,mcp__late",
    ];
    let mut client = client(&bench, &args);
    initialize(&mut client, &json!({}));
    client.prompt("first").unwrap();
    client.turn().unwrap();
    let mut set = |servers: Value| {
        let request = json!({"subtype": "mcp_set_servers", "servers": servers});
        client.request(&request).unwrap()
    };
    let wrong = set(json!({"late": {"command": 7}}));
    assert!(wrong.unwrap_err().contains("mcpServers.late"));
    let taken = set(json!({"kit": {"command": server}}));
    assert!(taken.unwrap_err().contains("is there already"));
    let failed = set(json!({"late": {"command": "false"}})).unwrap();
    assert_eq!(failed["added"], json!([]));
    assert!(failed["errors"]["late"].is_string(), "{failed}");
    let set = set(json!({"late": {"command": server}})).unwrap();
    assert_eq!(
        (&set["added"], &set["removed"]),
        (&json!(["late"]), &json!(["late"]))
    );
    client.prompt("second").unwrap();
    let asked = client.asked("elicitation").unwrap();
    assert_eq!(asked["request"]["mcp_server_name"], "kit");
    assert_eq!(
        asked["request"]["requested_schema"]["required"],
        json!(["colour"])
    );
    let accept = json!({"action": "accept", "content": {"colour": "red"}});
    client.answer(&asked, &accept).unwrap();
    client.turn().unwrap();
    assert!(results(&bench)[0].contains("red"), "{:?}", results(&bench));
    let all = bench.server.requests();
    let echoed: Vec<String> = all[2]
        .newest_tool_results()
        .iter()
        .map(|it| it.text.clone())
        .collect();
    assert!(echoed[0].contains("hi"), "{echoed:?}");
}

#[test]
fn a_server_is_switched_off_and_on_again_and_connected_anew() {
    let script = Script::new()
        .turn(Turn::text("without"))
        .turn(Turn::tool("mcp__kit__echo", &json!({"text": "back"})))
        .turn(Turn::text("with"))
        .turn(Turn::tool("mcp__kit__echo", &json!({"text": "anew"})))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let server = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let servers = json!({"mcpServers": {"kit": {"command": server}}}).to_string();
    let args = [
        "--mcp-config",
        &servers,
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__kit",
    ];
    let mut client = client(&bench, &args);
    initialize(&mut client, &json!({}));
    let offered = |bench: &Bench| {
        let requests = bench.server.requests();
        let names = requests.last().unwrap().tool_names();
        names.contains(&"mcp__kit__echo")
    };
    let mut ask = |request: Value| client.request(&request).unwrap();
    let toggle = |on: bool| json!({"subtype": "mcp_toggle", "serverName": "kit", "enabled": on});
    assert_eq!(ask(toggle(false)), Ok(json!({})));
    client.prompt("first").unwrap();
    client.turn().unwrap();
    assert!(!offered(&bench));
    let mut ask = |request: Value| client.request(&request).unwrap();
    assert_eq!(ask(toggle(true)), Ok(json!({})));
    let status = ask(json!({"subtype": "mcp_status"})).unwrap();
    assert_eq!(status["mcpServers"][0]["status"], "connected", "{status}");
    client.prompt("second").unwrap();
    client.turn().unwrap();
    assert!(offered(&bench));
    assert!(results(&bench)[0].contains("back"), "{:?}", results(&bench));
    let mut ask = |request: Value| client.request(&request).unwrap();
    let reconnect = |name: &str| json!({"subtype": "mcp_reconnect", "serverName": name});
    assert_eq!(ask(reconnect("kit")), Ok(json!({})));
    let unknown = ask(reconnect("none")).unwrap_err();
    assert!(unknown.contains("there are: kit"), "{unknown}");
    client.prompt("third").unwrap();
    client.turn().unwrap();
    assert!(results(&bench)[0].contains("anew"), "{:?}", results(&bench));
}

#[test]
fn prompts_of_servers_are_commands_of_the_session() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    let server = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let servers = json!({"mcpServers": {"kit": {"command": server}}}).to_string();
    let mut client = client(&bench, &["--mcp-config", &servers, "--strict-mcp-config"]);
    initialize(&mut client, &json!({}));
    client.prompt("/mcp__kit__greet Ann Bad Ems").unwrap();
    let lines = client.turn().unwrap();
    let names = lines[0]["slash_commands"].as_array().unwrap();
    assert!(names.contains(&json!("mcp__kit__greet")), "{names:?}");
    let sent = bench.server.requests()[0].last_message().to_string();
    assert!(sent.contains("Greet Ann of Bad Ems"), "{sent}");
    client.prompt("/mcp__kit__greet").unwrap();
    let result = client.turn().unwrap().pop().unwrap();
    let why = result["errors"][0].as_str().unwrap();
    assert!(why.contains("`name` is missing"), "{result}");
    assert_eq!(bench.server.requests().len(), 1);
}
