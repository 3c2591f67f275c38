//! `codespar -p` as scripts see it.

use codespar_protocol::Usage;
use codespar_testkit::{AfterLast, Conversation, Fault, Gate, Matcher, Script, Turn};
use serde_json::json;

use crate::common::{Bench, PATIENCE, json_lines, tool_results, wait_for};

fn usage(input: u64, output: u64, read: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        cache_read_input_tokens: read,
        ..Usage::default()
    }
}

#[test]
fn a_fifty_turn_loop_streams_to_its_result_with_usage_and_cost() {
    let mut script = Script::new();
    for turn in 1..=50 {
        let call = if turn % 2 == 0 {
            Turn::tool("Read", &json!({"file_path": "a.txt"}))
        } else {
            Turn::tool("Bash", &json!({"command": format!("echo turn {turn}")}))
        };
        script = script.turn(call.usage(usage(100, 10, 1000)));
    }
    let bench = Bench::new(script.turn(Turn::text("all done").usage(usage(100, 10, 1000))));
    bench.file("a.txt", "hello\n");
    let (lines, code) = bench.stream(&[
        "-p",
        "go",
        "--allowedTools",
        "Bash Read",
        "--model",
        "sonnet",
    ]);
    assert_eq!(code, Some(0));
    assert_eq!(lines[0]["subtype"], "init");
    assert_eq!(lines[0]["model"], "claude-sonnet-5-5");
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "assistant").count(),
        51
    );
    assert_eq!(kinds.iter().filter(|kind| **kind == "user").count(), 50);
    let results = tool_results(&lines);
    assert!(
        results[0].contains("turn 1") && results[1].contains("hello"),
        "{results:?}"
    );
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["subtype"]),
        (&json!("result"), &json!("success"))
    );
    assert_eq!(
        (&last["num_turns"], &last["result"]),
        (&json!(51), &json!("all done"))
    );
    assert_eq!(
        last["usage"],
        json!({"input_tokens": 5100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 51000, "output_tokens": 510})
    );
    // 2 dollars in, 10 out, 0.10 read from the cache, per million.
    let cost = 51.0 * (100.0 * 2.0 + 10.0 * 10.0 + 1000.0 * 0.1) / 1e6;
    assert!(
        (last["total_cost_usd"].as_f64().unwrap() - cost).abs() < 1e-12,
        "{last}"
    );
    assert_eq!(last["modelUsage"]["claude-sonnet-5-5"]["outputTokens"], 510);
    assert_eq!(last["permission_denials"], json!([]));
    for line in &lines {
        assert_eq!(line["session_id"], lines[0]["session_id"]);
    }
}

/// What the model is told of before it has made a task.
const AT_FIRST: [&str; 12] = [
    "Read",
    "Write",
    "Edit",
    "LS",
    "Glob",
    "Grep",
    "Bash",
    "WebFetch",
    "TodoWrite",
    "Skill",
    "TaskCreate",
    "Task",
];

/// What follows from a task.
const WITH_TASKS: [&str; 8] = [
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskStop",
    "TaskOutput",
    "TeamCreate",
    "TeamDelete",
    "SendMessage",
];

#[test]
fn tools_for_tasks_are_described_once_there_is_one_and_can_be_called_before() {
    let sorted = |mut names: Vec<&str>| {
        names.sort_unstable();
        names.join(" ")
    };
    let all = sorted([&AT_FIRST[..], &WITH_TASKS].concat());
    let command = json!({"command": "echo hi", "run_in_background": true});
    let script = Script::new()
        .turn(Turn::tool("TaskList", &json!({})))
        .turn(Turn::tool("Bash", &command))
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat);
    let bench = Bench::new(script);
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0), "{lines:?}");
    // The list of the run is what the agent has, described or not.
    let listed = lines[0]["tools"].as_array().unwrap().iter();
    let listed = listed.map(|name| name.as_str().unwrap()).collect();
    assert_eq!(sorted(listed), all);
    let requests = bench.server.requests();
    assert_eq!(requests[1].newest_tool_results()[0].text, "no tasks");
    for request in &requests[..2] {
        assert_eq!(request.tool_names(), AT_FIRST);
    }
    for request in &requests[2..] {
        assert_eq!(sorted(request.tool_names()), all);
    }
    // A resumed session has its task from the start; so has one whose user named the tools.
    let session = lines[0]["session_id"].as_str().unwrap();
    bench.run(&["-p", "more", "--resume", session]);
    let resumed = bench.server.last_request().unwrap();
    assert_eq!(sorted(resumed.tool_names()), all);
    bench.run(&["-p", "new", "--allowedTools", "TeamCreate,SendMessage"]);
    let named = bench.server.last_request().unwrap();
    let wanted = [&AT_FIRST[..], &["TeamCreate", "SendMessage"]].concat();
    assert_eq!(sorted(named.tool_names()), sorted(wanted));
}

/// Two agents in the background: one request to start them, one in which the parent has nothing
/// more to do, one when both have ended. None while they work.
#[test]
fn waiting_for_agents_in_the_background_costs_no_request() {
    let gate = Gate::closed();
    let start =
        |prompt: &str| json!({"description": "d", "prompt": prompt, "run_in_background": true});
    let child = |prompt: &str| Conversation::new(prompt, Matcher::first_user_contains(prompt));
    let script = Script::new()
        .turn(
            Turn::new()
                .and_tool("Task", &start("first child"))
                .and_tool("Task", &start("second child")),
        )
        .turn(Turn::text("started"))
        .turn(Turn::text("done"))
        .after_last(AfterLast::Repeat)
        .conversation(
            child("first child")
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": "sleep 1; echo x | wc -l"}),
                ))
                .turn(Turn::text("one").held_by(&gate)),
        )
        .conversation(child("second child").turn(Turn::text("two").held_by(&gate)));
    let bench = Bench::new(script);
    let running = bench.start(&["-p", "go", "--allowedTools", "Bash"]);
    let of_parent = || {
        let requests = bench.server.requests();
        let is_parents = |request: &&codespar_testkit::CapturedRequest| {
            request.messages()[0].to_string().contains("go")
        };
        requests.iter().filter(is_parents).count()
    };
    wait_for("both at work", || bench.server.requests().len() == 5);
    assert_eq!(of_parent(), 2);
    gate.open();
    let finished = running.wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    // The ends may come together or one after the other.
    assert!((3..=4).contains(&of_parent()), "{}", of_parent());
}

#[test]
fn the_first_request_is_small_and_caches_what_repeats() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    bench.run(&["-p", "hello"]);
    let request = bench.server.last_request().unwrap();
    let sizes: Vec<(&str, usize)> = request.json()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool.to_string().len()))
        .collect();
    assert!(
        request.body().len() <= 10 * 1024,
        "{} bytes: {sizes:?}",
        request.body().len()
    );
    assert_eq!(request.tool_names(), AT_FIRST);
    let body = request.json();
    assert!(body["tools"].as_array().unwrap().last().unwrap()["cache_control"].is_object());
    assert!(body["system"][0]["cache_control"].is_object());
    assert!(body.get("temperature").is_none());
    assert_eq!(
        request.header("x-api-key"),
        Some("sk-test-key-of-the-bench-0001")
    );
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
}

#[test]
fn text_prints_the_answer_alone_and_json_the_result_alone() {
    let bench = Bench::new(Script::new().turn(Turn::text("forty-two")));
    let text = bench.run(&["-p", "what?"]);
    assert_eq!(
        (text.stdout.as_str(), text.stderr.as_str()),
        ("forty-two\n", "")
    );
    let json = bench.run(&["-p", "--output-format", "json", "what?"]);
    let lines = json_lines(&json.stdout);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["result"], "forty-two");
}

#[test]
fn the_prompt_comes_from_stdin_too_and_is_added_below_one_that_is_given() {
    let bench = Bench::new(Script::new().turn(Turn::text("ok")));
    let sent = || bench.server.last_request().unwrap().messages()[0].to_string();
    bench.run_with_stdin(&["-p"], "from the pipe");
    assert!(sent().contains("from the pipe"));
    bench.run_with_stdin(&["-p", "explain:"], "some log");
    assert!(sent().contains("explain:\\n\\nsome log"), "{}", sent());
    let nothing = bench.run(&["-p"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        nothing.stderr.contains("there is no prompt"),
        "{}",
        nothing.stderr
    );
}

#[test]
fn limits_end_a_run_with_their_own_words_and_exit_code_one() {
    let bench = Bench::new(Script::tool_loop(
        9,
        "Bash",
        |_| json!({"command": "true"}),
        "x",
    ));
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash", "--max-turns", "2"]);
    assert_eq!(
        (code, &lines.last().unwrap()["subtype"]),
        (Some(1), &json!("error_max_turns"))
    );
    let (lines, code) = bench.stream(&[
        "-p",
        "go",
        "--allowedTools",
        "Bash",
        "--max-budget-usd",
        "0.000001",
    ]);
    assert_eq!(
        (code, &lines.last().unwrap()["subtype"]),
        (Some(1), &json!("error_max_budget_usd"))
    );
    assert_eq!(lines.last().unwrap()["is_error"], true);
    bench.file(".codespar/settings.json", r#"{"maxWallSeconds": 0}"#);
    let (lines, code) = bench.stream(&["-p", "go"]);
    assert_eq!(code, Some(1));
    let last = lines.last().unwrap();
    assert!(
        last["result"].as_str().unwrap().contains("wall time"),
        "{last}"
    );
    bench.file(".codespar/settings.json", "{}");
    let unpriced = bench.run(&["-p", "go", "--model", "mystery", "--max-budget-usd", "1"]);
    assert_eq!(unpriced.status.code(), Some(2));
    assert!(
        unpriced.stderr.contains("needs a price for `mystery`"),
        "{}",
        unpriced.stderr
    );
}

#[test]
fn a_model_without_a_price_gets_one_by_the_lines_that_the_error_shows() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    let args = ["-p", "go", "--model", "mystery", "--max-budget-usd", "1"];
    let refused = bench.run(&args);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    let (reason, lines) = refused.stderr.split_once('\n').unwrap();
    let file = reason.rsplit(' ').next().unwrap();
    std::fs::write(file, lines).unwrap();
    let priced = bench.run(&args);
    assert_eq!(priced.status.code(), Some(0), "{}", priced.stderr);
    assert_eq!(bench.server.request_count(), 1);
}

#[test]
fn an_unknown_model_has_an_unknown_cost() {
    let bench = Bench::new(Script::new().turn(Turn::text("hi")));
    let (lines, _) = bench.stream(&["-p", "go", "--model", "mystery-9"]);
    assert_eq!(lines.last().unwrap()["total_cost_usd"], json!(null));
}

#[test]
fn transient_faults_are_retried_in_sight_and_lasting_ones_are_errors() {
    let bench = Bench::new(
        Script::new().turn(
            Turn::text("at last")
                .fault(Fault::status(429).retry_after_ms(1).into())
                .fault(Fault::status(529).retry_after_ms(1).into())
                .fault(Fault::CutAfterEvents(3)),
        ),
    );
    let (lines, code) = bench.stream(&["-p", "go"]);
    assert_eq!(code, Some(0));
    let retries: Vec<_> = lines
        .iter()
        .filter(|line| line["subtype"] == "api_retry")
        .collect();
    assert_eq!(retries.len(), 3);
    assert_eq!(lines.last().unwrap()["result"], "at last");

    let bench = Bench::new(
        Script::new().turn(
            Turn::text("never").fault(
                Fault::status(401)
                    .error("authentication_error", "bad key")
                    .into(),
            ),
        ),
    );
    let finished = bench.run(&["-p", "go"]);
    assert_eq!(finished.status.code(), Some(1));
    assert!(
        finished.stderr.contains("ANTHROPIC_API_KEY"),
        "{}",
        finished.stderr
    );
    assert!(
        !finished.stderr.contains("sk-test-key"),
        "{}",
        finished.stderr
    );
}

#[test]
fn an_unknown_block_passes_through_and_comes_back() {
    let block = json!({"type": "of_the_future", "n": 1});
    let bench = Bench::new(
        Script::new()
            .turn(
                Turn::new()
                    .and_raw(&block)
                    .and_tool("Bash", &json!({"command": "true"})),
            )
            .turn(Turn::text("fine")),
    );
    let (lines, code) = bench.stream(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(code, Some(0));
    let seen = lines
        .iter()
        .find(|line| line["type"] == "assistant")
        .unwrap();
    assert_eq!(seen["message"]["content"][0], block);
    assert_eq!(
        bench.server.last_request().unwrap().messages()[1]["content"][0],
        block
    );
}

#[test]
fn without_any_key_the_answer_is_simulated_and_says_so() {
    let bench = Bench::new(Script::new());
    let mut command = bench.command(&["-p", "do things", "--simulate"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let finished = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(crate::common::PATIENCE)
        .unwrap();
    assert_eq!(finished.status.code(), Some(0));
    assert!(
        finished.stdout.starts_with("[Simulated]"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stderr.contains("no model is called"),
        "{}",
        finished.stderr
    );
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn the_openai_format_works_end_to_end() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Bash", &json!({"command": "echo over there"})))
            .turn(Turn::text("done")),
    );
    let mut command = bench.command(&[
        "-p",
        "go",
        "--model",
        "local-model",
        "--allowedTools",
        "Bash",
        "--output-format",
        "stream-json",
    ]);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env("OPENAI_API_KEY", "k")
        .env("OPENAI_BASE_URL", bench.server.openai_url());
    let finished = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(crate::common::PATIENCE)
        .unwrap();
    let lines = json_lines(&finished.stdout);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(tool_results(&lines)[0].contains("over there"));
    assert_eq!(lines.last().unwrap()["result"], "done");
}

#[test]
fn signals_end_a_run_in_good_order() {
    for (signal, code) in [("interrupt", 130), ("terminate", 143)] {
        let bench = Bench::new(
            Script::new()
                .turn(Turn::tool(
                    "Bash",
                    &json!({"command": "echo here; touch begun; sleep 300"}),
                ))
                .turn(Turn::text("later")),
        );
        let mut running = bench.start(&[
            "-p",
            "go",
            "--allowedTools",
            "Bash",
            "--output-format",
            "stream-json",
        ]);
        running
            .wait_for_output("\"assistant\"", crate::common::PATIENCE)
            .unwrap();
        while !bench.work().join("begun").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if signal == "interrupt" {
            running.interrupt().unwrap();
        } else {
            running.terminate().unwrap();
        }
        let finished = running.wait(crate::common::PATIENCE).unwrap();
        assert_eq!(finished.status.code(), Some(code), "{}", finished.stderr);
        let lines = json_lines(&finished.stdout);
        assert_eq!(lines.last().unwrap()["type"], "result");
        assert_eq!(
            bench
                .room
                .wait_until_empty(crate::common::PATIENCE)
                .unwrap(),
            Vec::<u32>::new()
        );
    }
}

#[test]
fn usage_errors_name_the_thing_and_exit_with_two() {
    let bench = Bench::new(Script::new());
    for (args, expected) in [
        (vec!["-p", "x", "--output-format", "yaml"], "stream-json"),
        (
            vec!["-p", "x", "--permission-mode", "yolo"],
            "bypassPermissions",
        ),
        (vec!["-p", "x", "--max-turns", "0"], "--max-turns"),
        (
            vec!["-p", "x", "--allowedTools", "Bash(git log"],
            "Bash(git log",
        ),
        (
            vec!["-p", "x", "--resume", "nothing-like-it"],
            "session list",
        ),
        (vec!["-p", "x", "--continue"], "no session"),
        (vec!["-p", "x", "--cwd", "/no/such/dir"], "/no/such/dir"),
        (vec!["-p", "x", "--add-dir", "/no/such/dir"], "/no/such/dir"),
        (
            vec!["-p", "--add-dir", "/", "say hi"],
            "--add-dir say hi: there is no such directory; --add-dir takes every value after it: a \
             prompt goes before the option, or after `--`",
        ),
        (
            vec!["-p", "--mcp-config", "{\"mcpServers\": {}}", "say hi"],
            "--mcp-config say hi: there is no such file; --mcp-config takes every value after it: a \
             prompt goes before the option, or after `--`",
        ),
        (vec!["frobnicate"], "not a terminal"),
        (vec!["--model", "opus", "doctor"], "comes first"),
    ] {
        let finished = bench.run(&args);
        assert_eq!(
            finished.status.code(),
            Some(2),
            "{args:?}: {}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains(expected),
            "{args:?}: {}",
            finished.stderr
        );
    }
}

#[test]
fn a_misspelt_command_is_pointed_out_and_costs_nothing() {
    let bench = Bench::new(Script::new());
    for (args, meant) in [
        (&["docter"][..], "codespar doctor"),
        (&["sessions", "list"], "codespar session"),
        (&["hlep"], "codespar help"),
    ] {
        let finished = bench.run(args);
        assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains(meant), "{}", finished.stderr);
    }
    let help = bench.run(&["help"]);
    assert_eq!(help.status.code(), Some(0), "{}", help.stderr);
    assert!(help.stdout.contains("codespar doctor"), "{}", help.stdout);
    let help = bench.run(&["help", "doctor"]);
    assert!(help.stdout.contains("--json"), "{}", help.stdout);
    assert!(bench.server.requests().is_empty());
}
