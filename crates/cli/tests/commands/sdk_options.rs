//! Options that programs pass, and what `initialize` says: what becomes of each of them.

use codespar_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::{
    common::Bench,
    sdk::{client, initialize},
};

#[test]
fn what_the_options_ask_for_reaches_the_model_and_what_is_unknown_is_an_error() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    bench.file("prompt.txt", "You are a test.");
    let agents =
        r#"{"me": {"description": "d", "prompt": "You are me.", "tools": ["Read", "Bash"]}}"#;
    let finished = bench.run(&[
        "--output-format",
        "json",
        "--system-prompt-file=prompt.txt",
        "--tools",
        "Read,Agent",
        "--effort",
        "max",
        "--thinking=adaptive",
        "--betas",
        "x",
        "go",
        "",
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let body = bench.server.requests().last().unwrap().json().clone();
    assert!(
        body["system"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("You are a test."),
        "{body}"
    );
    let names: Vec<&str> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Read", "Task"]);
    assert_eq!(
        (&body["output_config"]["effort"], &body["thinking"]["type"]),
        (&json!("max"), &json!("adaptive"))
    );
    let finished = bench.run(&[
        "-p", "go", "--agents", agents, "--agent", "me", "--tools", "",
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let body = bench.server.requests().last().unwrap().json().clone();
    assert!(
        body["system"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("You are me."),
        "{body}"
    );
    assert!(body["tools"].is_null(), "{body}");
    for (args, expected) in [
        (&["-p", "x", "--of-the-future"][..], "--of-the-future"),
        (&["-p", "x", "--agent", "none"], "there is no agent `none`"),
        (
            &["-p", "x", "--setting-sources", "moon"],
            "`moon` is not a source",
        ),
        (&["-p", "x", "--settings", "/no/such/file"], "is not there"),
        (
            &["-p", "x", "--mcp-config", "{\"mcpServers\": 1}"],
            "--mcp-config",
        ),
        (&["-p", "x", "--json-schema", "[]"], "--json-schema"),
        (
            &[
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "prompt",
            ],
            "standard input",
        ),
        (
            &["--input-format", "stream-json"],
            "--output-format stream-json",
        ),
        (
            &["-p", "x", "--permission-prompt-tool", "stdio"],
            "--input-format stream-json",
        ),
        (
            &["-p", "x", "--include-partial-messages"],
            "--output-format stream-json",
        ),
        (&["--json-schema", "{}", "x"], "--json-schema needs -p"),
    ] {
        let finished = bench.run(args);
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
fn settings_of_the_caller_count_and_deny_rules_of_files_that_do_not_count_hold() {
    let script = Script::new()
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "x"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let allow = r#"{"permissions": {"allow": ["Write"]}, "statusLine": {"type": "command"}}"#;
    let finished = bench.run(&["-p", "go", "--settings", allow]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(bench.work().join("a.txt").exists(), "{}", finished.stderr);
    std::fs::remove_file(bench.work().join("a.txt")).unwrap();
    bench.file(
        ".codespar/settings.json",
        r#"{"permissions": {"deny": ["Write"]}}"#,
    );
    let finished = bench.run(&["-p", "go", "--settings", allow, "--setting-sources", "user"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(!bench.work().join("a.txt").exists());
}

#[test]
fn a_log_goes_to_the_file_that_is_named_without_secrets() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    let log = bench.work().join("log.txt");
    let file = format!("--debug-file={}", log.display());
    let finished = bench.run(&["-p", "go", &file, "--debug=trace"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.is_empty() && !text.contains("sk-test-key-of-the-bench-0001"));
    let refused = bench.run(&["-p", "go", "--debug-file", "/no/such/dir/log"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
}

/// The last request to the model.
fn body(bench: &Bench) -> Value {
    bench.server.requests().last().unwrap().json().clone()
}

/// A run that succeeds, with these options; the request that it made, and its standard error.
fn run(bench: &Bench, args: &[&str]) -> (Value, String) {
    let finished = bench.run(&[&["-p", "go"], args].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    (body(bench), finished.stderr)
}

fn done() -> Bench {
    Bench::new(Script::new().turn(Turn::text("done")))
}

#[test]
fn a_text_is_added_to_the_system_prompt_from_the_line_or_a_file() {
    let bench = done();
    bench.file("more.txt", "Answer in French.");
    for added in [
        &["--append-system-prompt", "Answer in French."][..],
        &["--append-system-prompt-file", "more.txt"],
    ] {
        let (body, _) = run(&bench, added);
        let system = body["system"][0]["text"].as_str().unwrap();
        assert!(system.trim_end().ends_with("Answer in French."), "{system}");
        assert!(system.len() > 200, "{system}");
    }
}

#[test]
fn thinking_is_limited_by_a_number_of_tokens() {
    let (body, _) = run(
        &done(),
        &["--model", "haiku", "--max-thinking-tokens", "2000"],
    );
    assert_eq!(
        body["thinking"],
        json!({"type": "enabled", "budget_tokens": 2000})
    );
}

#[test]
fn names_of_models_of_the_other_tool_are_understood() {
    for (name, id) in [
        (
            "opusplan",
            run(&done(), &["--model", "opus"]).0["model"].clone(),
        ),
        ("fable", json!("claude-fable-5")),
    ] {
        assert_eq!(run(&done(), &["--model", name]).0["model"], id, "{name}");
    }
}

#[test]
fn names_of_modes_of_the_other_tool_are_understood() {
    for (name, mode) in [("auto", "acceptEdits"), ("manual", "default")] {
        let (lines, code) = done().stream(&["-p", "go", "--permission-mode", name]);
        assert_eq!(
            (code, &lines[0]["permissionMode"]),
            (Some(0), &json!(mode)),
            "{name}"
        );
    }
}

#[test]
fn several_directories_are_added_by_one_option() {
    let others = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let paths = others
        .each_ref()
        .map(|dir| dir.path().canonicalize().unwrap());
    let write = |dir: &std::path::Path| {
        Turn::tool(
            "Write",
            &json!({"file_path": dir.join("a.txt"), "content": "x"}),
        )
    };
    let script = Script::new()
        .turn(write(&paths[0]))
        .turn(write(&paths[1]))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let [one, other] = paths.each_ref().map(|path| path.to_str().unwrap());
    let args = ["--permission-mode", "acceptEdits", "--add-dir", one, other];
    run(&bench, &args);
    for path in &paths {
        assert!(path.join("a.txt").exists(), "{}", path.display());
    }
}

#[test]
fn options_without_meaning_are_accepted_and_named_where_somebody_wants_to_know() {
    let options = [
        "--betas=x",
        "--task-budget=1000",
        "--thinking-display=summarized",
        "--session-mirror",
        "--resume-drops-turn=0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e50",
        "--project-config-root=/nowhere",
        "--channels=one",
    ];
    let silent = [
        "--await-initialize",
        "--managed-settings-in-initialize",
        "--permission-prompts=none",
    ];
    let args = [&options[..], &silent].concat();
    let (_, said) = run(&done(), &args);
    assert!(!said.contains("no meaning"), "{said}");
    let (_, said) = run(&done(), &[&args[..], &["--verbose"]].concat());
    for option in options {
        let name = option.split('=').next().unwrap();
        let note = format!("{name} has no meaning here");
        assert!(said.contains(&note), "{name}: {said}");
    }
    assert_eq!(
        said.matches("has no meaning").count(),
        options.len(),
        "{said}"
    );
}

#[test]
fn deny_rules_of_managed_settings_hold_and_the_rest_is_named() {
    let script = || {
        Script::new()
            .turn(Turn::tool(
                "Write",
                &json!({"file_path": "a.txt", "content": "x"}),
            ))
            .turn(Turn::text("done"))
    };
    let settings = json!({"permissions": {"deny": ["Write(a.txt)"]}, "model": "opus"});
    let allow = ["--allowedTools", "Write"];
    let bench = Bench::new(script());
    let text = settings.to_string();
    let managed = ["--managed-settings", &text];
    let (_, said) = run(&bench, &[&allow[..], &managed].concat());
    assert!(said.contains("left out: model"), "{said}");
    assert!(!bench.work().join("a.txt").exists());
    let bench = Bench::new(script());
    let mut client = client(&bench, &allow);
    initialize(&mut client, &json!({"managedSettings": settings}));
    client.prompt("write").unwrap();
    let result = client.turn().unwrap().pop().unwrap();
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
    assert!(!bench.work().join("a.txt").exists());
    let wrong = bench.run(&["-p", "go", "--managed-settings", "[]"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stderr);
}

#[test]
fn nobody_is_asked_where_the_client_says_so() {
    let script = Script::new()
        .turn(Turn::tool(
            "Write",
            &json!({"file_path": "a.txt", "content": "x"}),
        ))
        .turn(Turn::text("done"));
    let bench = Bench::new(script);
    let nobody = [
        "--permission-prompt-tool",
        "stdio",
        "--permission-prompts",
        "none",
    ];
    let mut client = client(&bench, &nobody);
    client.prompt("write").unwrap();
    let lines = client.turn().unwrap();
    assert!(
        !lines.iter().any(|line| line["type"] == "control_request"),
        "{lines:#?}"
    );
    let result = lines.last().unwrap();
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
}

#[test]
fn a_plugin_comes_without_its_servers_where_they_are_not_wanted() {
    let bench = done();
    bench.file("plug/commands/greet.md", "Hello.");
    bench.file(
        "plug/.mcp.json",
        r#"{"mcpServers": {"kit": {"command": "false"}}}"#,
    );
    for (flag, servers) in [("--plugin-dir", 1), ("--plugin-dir-no-mcp", 0)] {
        let (lines, code) = bench.stream(&["-p", "go", flag, "plug"]);
        assert_eq!(code, Some(0));
        let init = &lines[0];
        assert_eq!(
            init["mcp_servers"].as_array().unwrap().len(),
            servers,
            "{init}"
        );
        let commands = init["slash_commands"].as_array().unwrap();
        assert!(commands.contains(&json!("plug:greet")), "{init}");
    }
}

#[test]
fn what_initialize_adds_reaches_the_model() {
    let bench = done();
    for name in ["tidy", "other"] {
        bench.file(
            &format!(".claude/skills/{name}/SKILL.md"),
            &format!("---\nname: {name}\ndescription: The skill {name}\n---\nDo it."),
        );
    }
    let mut client = client(&bench, &[]);
    let fields = json!({"appendSystemPrompt": "Answer in French.", "skills": ["tidy"]});
    initialize(&mut client, &fields);
    client.prompt("go").unwrap();
    let lines = client.turn().unwrap();
    assert_eq!(lines[0]["skills"], json!(["tidy"]));
    let system = bench.server.requests()[0].system_text();
    assert!(system.contains("Answer in French."), "{system}");
    assert!(
        system.contains("The skill tidy") && !system.contains("The skill other"),
        "{system}"
    );
}

#[test]
fn initialize_answers_with_commands_styles_and_the_account() {
    let bench = done();
    bench.file(
        ".claude/commands/greet.md",
        "---\ndescription: Greets\nargument-hint: [name]\n---\nHello $1.",
    );
    bench.file(
        ".claude/skills/tidy/SKILL.md",
        "---\nname: tidy\ndescription: Tidies up\nargument-hint: DIR\n---\nDo it.",
    );
    bench.file(".claude/output-styles/terse.md", "Be short.");
    let mut client = client(&bench, &[]);
    let told = initialize(&mut client, &json!({}));
    let commands = told["commands"].as_array().unwrap();
    for command in [
        json!({"name": "greet", "description": "Greets", "argumentHint": "[name]"}),
        json!({"name": "tidy", "description": "Tidies up", "argumentHint": "DIR"}),
    ] {
        assert!(commands.contains(&command), "{commands:?}");
    }
    assert_eq!(told["output_style"], "default");
    assert_eq!(told["available_output_styles"], json!(["default", "terse"]));
    let source = "ANTHROPIC_API_KEY";
    assert_eq!(
        told["account"],
        json!({"apiProvider": "firstParty", "apiKeySource": source, "tokenSource": source})
    );
}

#[test]
fn the_account_names_the_variable_of_the_key_that_is_used() {
    for (variable, provider, model) in [
        ("ANTHROPIC_AUTH_TOKEN", "firstParty", "sonnet"),
        ("OPENAI_API_KEY", "openai", "gpt-9"),
    ] {
        let bench = done();
        let stream = [
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ];
        let mut command = bench.command(&[&stream[..], &["--model", model]].concat());
        command
            .env_remove("ANTHROPIC_API_KEY")
            .env(variable, "sk-test-key-of-the-bench-0002");
        let mut client = codespar_testkit::SdkClient::start(&mut command).unwrap();
        let told = initialize(&mut client, &json!({}));
        assert_eq!(
            (
                &told["account"]["apiKeySource"],
                &told["account"]["apiProvider"]
            ),
            (&json!(variable), &json!(provider))
        );
    }
}
