//! Sessions with a client on standard input, as the Agent SDKs drive them.

use std::{io::Write, process::Stdio};

use codespar_testkit::{Conversation, Fault, Gate, Matcher, Script, SdkClient, Turn};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, wait_for};

const STREAM: [&str; 5] = [
    "--output-format",
    "stream-json",
    "--verbose",
    "--input-format",
    "stream-json",
];

pub(crate) fn client(bench: &Bench, args: &[&str]) -> SdkClient {
    SdkClient::start(&mut bench.command(&[&STREAM[..], args].concat())).unwrap()
}

pub(crate) fn initialize(client: &mut SdkClient, fields: &Value) -> Value {
    let mut request = json!({"subtype": "initialize"});
    request
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    client.request(&request).unwrap().unwrap()
}

pub(crate) fn result_of(lines: &[Value]) -> &Value {
    lines.last().unwrap()
}

pub(crate) fn results(bench: &Bench) -> Vec<String> {
    let requests = bench.server.requests();
    let last = requests.last().unwrap();
    last.newest_tool_results()
        .iter()
        .map(|result| result.text.clone())
        .collect()
}

#[test]
fn several_turns_run_in_one_process_and_the_end_of_the_input_ends_it() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::text("one"))
            .turn(Turn::text("two")),
    );
    let mut client = client(&bench, &["--system-prompt", "", "--setting-sources="]);
    let told = initialize(&mut client, &json!({}));
    assert!(
        told["commands"].is_array() && told["models"].is_array(),
        "{told}"
    );
    let names: Vec<&str> = told["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"Explore"), "{names:?}");
    client.prompt("first").unwrap();
    client.prompt("second").unwrap();
    for expected in ["one", "two"] {
        let lines = client.turn().unwrap();
        assert_eq!(lines[0]["subtype"], "init");
        for field in [
            "claude_code_version",
            "apiKeySource",
            "tools",
            "mcp_servers",
            "slash_commands",
            "skills",
            "agents",
            "plugins",
            "output_style",
            "permissionMode",
        ] {
            assert!(!lines[0][field].is_null(), "{field}: {}", lines[0]);
        }
        let result = result_of(&lines);
        assert_eq!(
            (&result["subtype"], &result["result"]),
            (&json!("success"), &json!(expected))
        );
        assert!(result["total_cost_usd"].is_number(), "{result}");
        let model = &result["modelUsage"]["claude-sonnet-5-5"];
        assert_eq!(model["contextWindow"], 200_000);
        assert!(model["maxOutputTokens"].as_u64().unwrap() > 0);
    }
    let (status, rest) = client.finish().unwrap();
    assert_eq!((status.code(), rest), (Some(0), Vec::<Value>::new()));
}

#[test]
fn what_waits_at_the_end_of_the_input_is_done_first() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::text("one"))
            .turn(Turn::text("two")),
    );
    let mut client = client(&bench, &[]);
    client.prompt("first").unwrap();
    client.prompt("second").unwrap();
    let (status, lines) = client.finish().unwrap();
    let results: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "result")
        .map(|line| &line["result"])
        .collect();
    assert_eq!(
        (status.code(), results),
        (Some(0), vec![&json!("one"), &json!("two")])
    );
}

#[test]
fn the_client_decides_on_calls_and_may_change_their_input() {
    let script = Script::new()
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "model"}),
        ))
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "b.txt", "content": "model"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--permission-prompt-tool", "stdio"]);
    initialize(&mut client, &json!({}));
    client.prompt("write").unwrap();
    let asked = client.asked("can_use_tool").unwrap();
    assert_eq!(asked["request"]["tool_name"], "Write");
    assert_eq!(asked["request"]["input"]["content"], "model");
    assert!(
        asked["request"]["tool_use_id"].is_string() && asked["request"]["description"].is_string()
    );
    let suggestion = &asked["request"]["permission_suggestions"][0];
    assert_eq!(
        (&suggestion["type"], &suggestion["behavior"]),
        (&json!("addRules"), &json!("allow"))
    );
    let changed = json!({"file_path": asked["request"]["input"]["file_path"], "content": "client"});
    client
        .answer(
            &asked,
            &json!({"behavior": "allow", "updatedInput": changed}),
        )
        .unwrap();
    let asked = client.asked("can_use_tool").unwrap();
    client
        .answer(
            &asked,
            &json!({"behavior": "deny", "message": "not this one"}),
        )
        .unwrap();
    let lines = client.turn().unwrap();
    let denied = lines
        .iter()
        .find(|line| line["subtype"] == "permission_denied")
        .unwrap();
    assert!(
        denied["message"].as_str().unwrap().contains("not this one"),
        "{denied}"
    );
    assert_eq!(
        result_of(&lines)["permission_denials"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        std::fs::read_to_string(bench.work().join("a.txt")).unwrap(),
        "client"
    );
    assert!(!bench.work().join("b.txt").exists());
    assert!(results(&bench)[0].contains("not this one"));
}

#[test]
fn a_yes_of_the_client_lifts_no_deny_rule_also_for_a_changed_input() {
    let script = Script::new()
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "x"}),
        ))
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "secret.txt", "content": "x"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(
        &bench,
        &[
            "--permission-prompt-tool",
            "stdio",
            "--disallowedTools",
            "Write(secret.txt),Edit(secret.txt)",
        ],
    );
    initialize(&mut client, &json!({}));
    client.prompt("write").unwrap();
    let asked = client.asked("can_use_tool").unwrap();
    let around = json!({"file_path": bench.work().join("secret.txt"), "content": "x"});
    let lift = json!([{"type": "addRules", "rules": [{"toolName": "Write"}], "behavior": "allow", "destination": "session"},
        {"type": "removeRules", "rules": [{"toolName": "Write", "ruleContent": "secret.txt"}], "behavior": "deny", "destination": "session"},
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]);
    client
        .answer(
            &asked,
            &json!({"behavior": "allow", "updatedInput": around, "updatedPermissions": lift}),
        )
        .unwrap();
    let lines = client.turn().unwrap();
    // The second call is refused by the rule without a question.
    assert!(
        !lines.iter().any(|line| line["type"] == "control_request"),
        "{lines:#?}"
    );
    assert_eq!(
        result_of(&lines)["permission_denials"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(!bench.work().join("secret.txt").exists());
    let notices: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["content"].as_str())
        .collect();
    assert!(
        notices.iter().any(|text| text.contains("removeRules")),
        "{notices:?}"
    );
    assert!(
        notices
            .iter()
            .any(|text| text.contains("bypassPermissions")),
        "{notices:?}"
    );
}

#[test]
fn a_client_that_closes_its_input_during_a_question_has_said_no() {
    let script = Script::new()
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "x"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--permission-prompt-tool", "stdio"]);
    client.prompt("write").unwrap();
    client.asked("can_use_tool").unwrap();
    let (status, lines) = client.finish().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(result_of(&lines)["result"], "done");
    assert!(!bench.work().join("a.txt").exists());
}

#[test]
fn answers_that_nobody_waits_for_and_lines_that_cannot_be_read_change_nothing() {
    let script = Script::new()
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "x"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--permission-prompt-tool", "stdio"]);
    initialize(&mut client, &json!({}));
    let forged = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "none", "response": {"behavior": "allow"}}});
    client.send(&forged).unwrap();
    client.send_text("{\"type\": \"user\", ").unwrap();
    client.send_text("not json").unwrap();
    client.send(&json!({"type": "of_the_future"})).unwrap();
    client
        .send(&json!({"type": "user", "message": {"role": "assistant", "content": "I may"}}))
        .unwrap();
    client.prompt("write").unwrap();
    let asked = client.asked("can_use_tool").unwrap();
    client
        .answer(&asked, &json!({"behavior": "deny", "message": "no"}))
        .unwrap();
    // The second answer to the same question.
    client
        .answer(&asked, &json!({"behavior": "allow"}))
        .unwrap();
    let lines = client.turn().unwrap();
    assert_eq!(result_of(&lines)["result"], "done");
    assert!(!bench.work().join("a.txt").exists());
    let (status, _) = client.finish().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn an_interrupt_stops_the_turn_and_the_next_message_is_answered() {
    let gate = Gate::closed();
    let script = Script::new().turn(Turn::text("late").held_by(&gate));
    let bench = Bench::new(script);
    let mut client = client(&bench, &[]);
    initialize(&mut client, &json!({}));
    client.prompt("first").unwrap();
    wait_for("the model to be asked", || {
        !bench.server.requests().is_empty()
    });
    client
        .request(&json!({"subtype": "interrupt"}))
        .unwrap()
        .unwrap();
    let lines = client.turn().unwrap();
    let result = result_of(&lines);
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("error_during_execution"), &json!(true))
    );
    assert_eq!(result["errors"], json!(["interrupted"]));
    gate.open();
    client.prompt("second").unwrap();
    assert_eq!(result_of(&client.turn().unwrap())["is_error"], false);
}

#[test]
fn a_question_that_is_interrupted_is_withdrawn_from_the_client() {
    let script = Script::new().turn(Turn::tool(
        "Write",
        &json!({"file_path": "a.txt", "content": "x"}),
    ));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--permission-prompt-tool", "stdio"]);
    initialize(&mut client, &json!({}));
    client.prompt("write").unwrap();
    let asked = client.asked("can_use_tool").unwrap();
    client
        .request(&json!({"subtype": "interrupt"}))
        .unwrap()
        .unwrap();
    let lines = client.turn().unwrap();
    let cancelled = lines
        .iter()
        .find(|line| line["type"] == "control_cancel_request")
        .unwrap();
    assert_eq!(cancelled["request_id"], asked["request_id"]);
}

#[test]
fn model_and_mode_are_changed_between_turns_and_unknown_requests_are_errors() {
    let script = Script::new()
        .turn(Turn::text("one"))
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "x"}),
        ))
        .turn(Turn::text("three"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--model", "sonnet[1m]"]);
    initialize(&mut client, &json!({}));
    client.prompt("first").unwrap();
    client.turn().unwrap();
    let ask = |client: &mut SdkClient, request: Value| client.request(&request).unwrap();
    ask(
        &mut client,
        json!({"subtype": "set_model", "model": "haiku"}),
    )
    .unwrap();
    ask(
        &mut client,
        json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}),
    )
    .unwrap();
    ask(
        &mut client,
        json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 2000}),
    )
    .unwrap();
    let wrong = [
        (
            json!({"subtype": "set_model", "model": "gpt-99"}),
            "unknown model",
        ),
        (
            json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
            "--allow-dangerously-skip-permissions",
        ),
        (
            json!({"subtype": "set_model", "model": 7}),
            "the name of a model",
        ),
        (
            json!({"subtype": "set_permission_mode", "mode": "yolo"}),
            "is not a permission mode",
        ),
        (json!({"subtype": "initialize"}), "once"),
        (json!({"subtype": "of_the_future"}), "not known"),
        (json!({"subtype": "stop_task", "task_id": "a-00000000"}), ""),
        (
            json!({"subtype": "mcp_toggle", "serverName": "none", "enabled": false}),
            "no MCP server",
        ),
    ];
    for (request, expected) in wrong {
        let error = ask(&mut client, request.clone()).unwrap_err();
        assert!(error.contains(expected), "{request}: {error}");
    }
    client.prompt("second").unwrap();
    let lines = client.turn().unwrap();
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(
        (&init["model"], &init["permissionMode"]),
        (&json!("claude-haiku-5-5"), &json!("acceptEdits"))
    );
    assert_eq!(
        std::fs::read_to_string(bench.work().join("a.txt")).unwrap(),
        "x"
    );
    let body = bench.server.requests().last().unwrap().json().clone();
    assert_eq!(
        body["thinking"],
        json!({"type": "enabled", "budget_tokens": 2000})
    );
    let usage = ask(&mut client, json!({"subtype": "get_context_usage"})).unwrap();
    assert_eq!(usage["maxTokens"], 200_000);
    assert!(usage["totalTokens"].as_u64().unwrap() > 0, "{usage}");
    assert_eq!(
        ask(&mut client, json!({"subtype": "mcp_status"})).unwrap(),
        json!({"mcpServers": []})
    );
}

#[test]
fn hooks_of_the_client_refuse_and_change_calls_and_one_that_fails_refuses() {
    let script = Script::new()
        .turn(Turn::tool("Read", &json!({"file_path": "a.txt"})))
        .turn(Turn::tool("Read", &json!({"file_path": "a.txt"})))
        .turn(Turn::tool("Read", &json!({"file_path": "a.txt"})))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    bench.file("a.txt", "first file\n");
    let other = bench.file("b.txt", "second file\n");
    let mut client = client(&bench, &["--include-hook-events"]);
    let hooks = json!({"PreToolUse": [{"matcher": "Read", "hookCallbackIds": ["hook_0"]}], "OfTheFuture": [{"hookCallbackIds": ["x"]}]});
    let told = initialize(&mut client, &json!({"hooks": hooks}));
    assert_eq!(told["hook_on_failure_supported"], true);
    client.prompt("read").unwrap();
    let asked = client.asked("hook_callback").unwrap();
    assert_eq!(asked["request"]["callback_id"], "hook_0");
    assert_eq!(asked["request"]["input"]["tool_name"], "Read");
    assert_eq!(
        asked["request"]["tool_use_id"],
        asked["request"]["input"]["tool_use_id"]
    );
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "look elsewhere"}});
    client.answer(&asked, &deny).unwrap();
    let asked = client.asked("hook_callback").unwrap();
    assert!(
        results(&bench)[0].contains("look elsewhere"),
        "{:?}",
        results(&bench)
    );
    let change = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"file_path": other}}});
    client.answer(&asked, &change).unwrap();
    let asked = client.asked("hook_callback").unwrap();
    assert!(
        results(&bench)[0].contains("second file"),
        "{:?}",
        results(&bench)
    );
    let id = &asked["request_id"];
    client.send(&json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": "boom"}})).unwrap();
    let lines = client.turn().unwrap();
    assert!(results(&bench)[0].contains("boom"), "{:?}", results(&bench));
    assert!(
        lines
            .iter()
            .any(|line| line["subtype"] == "hook_response" && line["outcome"] == "error"),
        "{lines:#?}"
    );
}

#[test]
fn an_answer_has_the_form_of_the_schema_or_the_turn_says_that_it_has_not() {
    let schema =
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let script = Script::new()
        .turn(Turn::tool("StructuredOutput", &json!({"n": "seven"})))
        .turn(Turn::text("forgot"))
        .turn(Turn::tool("StructuredOutput", &json!({"n": 7})))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--json-schema", schema]);
    initialize(&mut client, &json!({}));
    client.prompt("count").unwrap();
    let lines = client.turn().unwrap();
    let result = result_of(&lines);
    assert_eq!(
        (&result["subtype"], &result["structured_output"]),
        (&json!("success"), &json!({"n": 7}))
    );
    assert_eq!(result["num_turns"], 4);
    let wrong: Vec<String> = bench.server.requests()[1]
        .newest_tool_results()
        .iter()
        .map(|it| it.text.clone())
        .collect();
    assert!(wrong[0].contains("$.n: expected integer"), "{wrong:?}");
    let without = Bench::new(
        Script::new()
            .turn(Turn::text("no"))
            .after_last(codespar_testkit::AfterLast::Repeat),
    );
    let finished = without.run(&[
        "-p",
        "count",
        "--json-schema",
        schema,
        "--output-format",
        "json",
    ]);
    let result: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(finished.status.code(), Some(1));
}

#[test]
fn agents_of_the_client_are_started_and_their_messages_are_marked() {
    let script = Script::new()
        .conversation(
            Conversation::new("poet", Matcher::system_contains("You write poems"))
                .turn(Turn::text("a poem")),
        )
        .turn(Turn::tool(
            "Task",
            &json!({"description": "a poem", "prompt": "write", "subagent_type": "poet"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &[]);
    let agents = json!({"poet": {"description": "Writes poems", "prompt": "You write poems.", "tools": ["Read"]}});
    let told = initialize(&mut client, &json!({"agents": agents}));
    assert!(
        told["agents"]
            .as_array()
            .unwrap()
            .iter()
            .any(|agent| agent["name"] == "poet"),
        "{told}"
    );
    client.prompt("a poem").unwrap();
    let lines = client.turn().unwrap();
    assert_eq!(result_of(&lines)["result"], "done");
    let started = lines
        .iter()
        .find(|line| line["subtype"] == "task_started")
        .unwrap();
    assert_eq!(started["task_type"], "local_agent");
    let ended = lines
        .iter()
        .find(|line| line["subtype"] == "task_notification")
        .unwrap();
    assert_eq!(ended["status"], "completed");
    assert!(
        ended["output_file"].is_string() && ended["usage"]["duration_ms"].is_number(),
        "{ended}"
    );
    let is_marked =
        |line: &&Value| line["type"] == "assistant" && line["parent_tool_use_id"].is_string();
    assert_eq!(lines.iter().filter(is_marked).count(), 1);
}

#[test]
fn a_session_is_resumed_forked_and_cut_by_its_messages() {
    let script = Script::new()
        .turn(Turn::text("one"))
        .turn(Turn::text("two"))
        .turn(Turn::text("three"));
    let bench = Bench::new(script);
    let id = "0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e5f";
    let one_turn = |args: &[&str], text: &str| {
        let mut client = client(&bench, args);
        initialize(&mut client, &json!({}));
        client.prompt(text).unwrap();
        let lines = client.turn().unwrap();
        assert_eq!(client.finish().unwrap().0.code(), Some(0));
        lines
    };
    let first = one_turn(&[&format!("--session-id={id}")], "first");
    assert_eq!(result_of(&first)["session_id"], id);
    let answered = first
        .iter()
        .find(|line| line["type"] == "assistant")
        .unwrap();
    let at = answered["uuid"].as_str().unwrap();
    let second = one_turn(&[&format!("--resume={id}")], "second");
    assert_eq!(
        (
            &result_of(&second)["result"],
            &result_of(&second)["session_id"]
        ),
        (&json!("two"), &json!(id))
    );
    let fork = one_turn(&[&format!("--resume={id}"), "--fork-session"], "third");
    assert_eq!(result_of(&fork)["result"], "three");
    assert_ne!(result_of(&fork)["session_id"], id);
    // From the first answer on, in a copy and in place.
    let cut = one_turn(
        &[
            &format!("--resume={id}"),
            "--fork-session",
            &format!("--resume-session-at={at}"),
        ],
        "another second",
    );
    assert_eq!(result_of(&cut)["result"], "two");
    let cut = one_turn(
        &[
            &format!("--resume={id}"),
            &format!("--resume-session-at={at}"),
            "--no-session-persistence",
        ],
        "another second",
    );
    assert_eq!(result_of(&cut)["result"], "two");
    let gone = bench.run(&["-p", "x", "--resume", id]);
    assert_eq!(gone.status.code(), Some(1), "{}", gone.stderr);
    let taken = result_of(&fork)["session_id"].as_str().unwrap();
    let taken = bench.run(&["-p", "x", "--session-id", taken]);
    assert!(taken.stderr.contains("is in use"), "{}", taken.stderr);
}

#[test]
fn pieces_of_answers_and_messages_of_the_client_are_printed_on_demand() {
    let script = Script::new()
        .turn(
            Turn::new()
                .and_thinking("hm", "sig")
                .and_text("hello")
                .and_tool("Read", &json!({"file_path": "a.txt"})),
        )
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    bench.file("a.txt", "x\n");
    let mut client = client(
        &bench,
        &["--include-partial-messages", "--replay-user-messages"],
    );
    initialize(&mut client, &json!({}));
    client.send(&json!({"type": "user", "uuid": "0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e50", "message": {"role": "user", "content": [{"type": "text", "text": "go"}]}})).unwrap();
    let lines = client.turn().unwrap();
    let replay = lines.iter().find(|line| line["isReplay"] == true).unwrap();
    assert_eq!(replay["uuid"], "0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e50");
    let kinds: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "stream_event")
        .map(|line| line["event"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..2], ["message_start", "content_block_start"]);
    let first = kinds
        .iter()
        .position(|kind| *kind == "message_stop")
        .unwrap();
    let blocks = kinds[..first]
        .iter()
        .filter(|kind| **kind == "content_block_start")
        .count();
    assert_eq!(blocks, 3, "{kinds:?}");
    let user = lines
        .iter()
        .find(|line| line["type"] == "user" && line["isReplay"] != true)
        .unwrap();
    assert!(
        user["tool_use_result"].as_str().unwrap().contains('x'),
        "{user}"
    );
}

#[test]
fn files_go_back_to_before_a_message_of_the_client() {
    let write = |text: &str| Turn::tool("Write", &json!({"file_path": "a.txt", "content": text}));
    let script = Script::new()
        .turn(write("one"))
        .turn(Turn::text("done"))
        .turn(write("two"))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(
        &bench,
        &["--permission-mode", "acceptEdits", "--replay-user-messages"],
    );
    initialize(&mut client, &json!({}));
    client.prompt("first").unwrap();
    client.turn().unwrap();
    client.prompt("second").unwrap();
    let lines = client.turn().unwrap();
    let uuid = lines.iter().find(|line| line["isReplay"] == true).unwrap()["uuid"].clone();
    let file = bench.work().join("a.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
    client
        .request(&json!({"subtype": "rewind_files", "user_message_id": uuid}))
        .unwrap()
        .unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    let unknown = client
        .request(&json!({"subtype": "rewind_files", "user_message_id": "none"}))
        .unwrap();
    assert!(unknown.unwrap_err().contains("no message none"));
}

#[test]
fn a_client_that_is_gone_takes_everything_with_it() {
    let command = "touch started; sleep 1000";
    let script = Script::new()
        .turn(Turn::tool("Bash", &json!({"command": command})))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut command = bench.command(&[&STREAM[..], &["--allowedTools", "Bash"]].concat());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "sleep"}});
    writeln!(stdin, "{prompt}").unwrap();
    wait_for("the command to run", || {
        bench.work().join("started").exists()
    });
    // As the system does for a client that is killed.
    drop((stdin, child.stdout.take()));
    assert_eq!(bench.room.wait_until_empty(PATIENCE).unwrap(), [0; 0]);
    assert_eq!(child.wait().unwrap().code(), Some(141));
    assert_eq!(bench.server.requests().len(), 1);
}

#[test]
fn rules_that_come_with_a_yes_hold_for_the_next_calls() {
    let write = |name: &str| Turn::tool("Write", &json!({"file_path": name, "content": "x"}));
    let script = Script::new()
        .turn(write("a.txt"))
        .turn(write("b.txt"))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--permission-prompt-tool=stdio"]);
    initialize(&mut client, &json!({}));
    client.prompt("write").unwrap();
    let asked = client.asked("can_use_tool").unwrap();
    let suggested = &asked["request"]["permission_suggestions"];
    let yes = json!({"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]});
    assert!(suggested.is_array());
    client.answer(&asked, &yes).unwrap();
    let lines = client.turn().unwrap();
    assert!(
        !lines.iter().any(|line| line["type"] == "control_request"),
        "{lines:#?}"
    );
    assert!(bench.work().join("a.txt").exists() && bench.work().join("b.txt").exists());
}

#[test]
fn a_no_that_interrupts_ends_the_turn() {
    let script = Script::new()
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "x"}),
        ))
        .turn(Turn::text("never"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &["--permission-prompt-tool", "stdio"]);
    client.prompt("write").unwrap();
    let asked = client.asked("can_use_tool").unwrap();
    client
        .answer(
            &asked,
            &json!({"behavior": "deny", "message": "stop", "interrupt": true}),
        )
        .unwrap();
    let lines = client.turn().unwrap();
    assert_eq!(result_of(&lines)["subtype"], "error_during_execution");
    assert_eq!(bench.server.requests().len(), 1);
}

#[test]
fn an_overloaded_model_is_replaced_by_the_one_to_fall_back_to() {
    let overloaded = || Fault::status(529).retry_after_ms(1).into();
    let mut turn = Turn::text("done");
    for _ in 0..20 {
        turn = turn.fault(overloaded());
    }
    let script = Script::new()
        .conversation(
            Conversation::new("other", Matcher::model("claude-haiku-5-5"))
                .turn(Turn::text("from haiku")),
        )
        .turn(turn);
    let bench = Bench::new(script);
    let finished = bench.run(&[
        "-p",
        "go",
        "--fallback-model",
        "haiku",
        "--output-format",
        "json",
    ]);
    let result: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(result["result"], "from haiku", "{}", finished.stderr);
}

#[test]
fn what_agents_in_the_background_bring_is_answered_before_the_end() {
    let gate = Gate::closed();
    let call = json!({"description": "look", "prompt": "slow work", "subagent_type": "Explore", "run_in_background": true});
    let script = Script::new()
        .conversation(
            Conversation::new("worker", Matcher::first_user_contains("slow work"))
                .turn(Turn::text("found it").held_by(&gate)),
        )
        .turn(Turn::tool("Task", &call))
        .turn(Turn::text("started"))
        .turn(Turn::text("heard of it"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &[]);
    initialize(&mut client, &json!({}));
    client.prompt("look").unwrap();
    assert_eq!(result_of(&client.turn().unwrap())["result"], "started");
    client.close_input();
    gate.open();
    let (status, lines) = client.finish().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(result_of(&lines)["result"], "heard of it", "{lines:#?}");
    assert!(
        lines
            .iter()
            .any(|line| line["subtype"] == "task_notification"),
        "{lines:#?}"
    );
}

#[test]
fn commands_of_the_project_are_carried_out_unless_the_message_is_verbatim() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::text("one"))
            .turn(Turn::text("two")),
    );
    bench.file(".claude/commands/greet.md", "Say hello to $ARGUMENTS.");
    let mut client = client(&bench, &[]);
    let told = initialize(&mut client, &json!({}));
    assert!(
        told["commands"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["name"] == "greet"),
        "{told}"
    );
    client.prompt("/greet Ada").unwrap();
    client.turn().unwrap();
    let said = |bench: &Bench| {
        bench
            .server
            .requests()
            .last()
            .unwrap()
            .last_message()
            .to_string()
    };
    assert!(said(&bench).contains("Say hello to Ada."));
    let verbatim = json!({"type": "user", "client_composed": true, "message": {"role": "user", "content": "/greet Bob"}});
    client.send(&verbatim).unwrap();
    client.turn().unwrap();
    assert!(said(&bench).contains("/greet Bob"));
}

#[test]
fn an_interrupt_may_take_back_the_messages_that_wait() {
    let gate = Gate::closed();
    let script = Script::new()
        .turn(Turn::text("late").held_by(&gate))
        .turn(Turn::text("third"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &[]);
    initialize(&mut client, &json!({}));
    client.prompt("first").unwrap();
    wait_for("the model to be asked", || {
        !bench.server.requests().is_empty()
    });
    let uuid = "0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e51";
    let second =
        json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "second"}});
    client.send(&second).unwrap();
    let interrupt = json!({"subtype": "interrupt", "cancel_queued": true});
    let told = client.request(&interrupt).unwrap().unwrap();
    assert_eq!(told, json!({"still_queued": [], "cancelled": [uuid]}));
    assert_eq!(result_of(&client.turn().unwrap())["is_error"], true);
    gate.open();
    client.prompt("third").unwrap();
    client.turn().unwrap();
    let sent = bench.server.requests().last().unwrap().json()["messages"].to_string();
    assert!(sent.contains("third") && !sent.contains("second"), "{sent}");
}

#[test]
fn a_task_of_the_session_is_stopped_by_the_client() {
    let gate = Gate::closed();
    let call = json!({"description": "look", "prompt": "slow work", "subagent_type": "Explore", "run_in_background": true});
    let script = Script::new()
        .conversation(
            Conversation::new("worker", Matcher::first_user_contains("slow work"))
                .turn(Turn::text("found it").held_by(&gate)),
        )
        .turn(Turn::tool("Task", &call))
        .turn(Turn::text("started"))
        .turn(Turn::text("heard of it"));
    let bench = Bench::new(script);
    let mut client = client(&bench, &[]);
    initialize(&mut client, &json!({}));
    client.prompt("look").unwrap();
    let lines = client.turn().unwrap();
    let started = lines
        .iter()
        .find(|line| line["subtype"] == "task_started")
        .unwrap();
    let stop = json!({"subtype": "stop_task", "task_id": started["task_id"]});
    assert_eq!(client.request(&stop).unwrap(), Ok(json!({})));
    let lines = client
        .until(|line| line["subtype"] == "task_notification")
        .unwrap();
    let ended = result_of(&lines);
    assert_eq!(
        (&ended["task_id"], &ended["status"]),
        (&started["task_id"], &json!("stopped"))
    );
    gate.open();
    let (status, _) = client.finish().unwrap();
    assert_eq!(status.code(), Some(0));
}
