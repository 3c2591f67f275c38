//! Commands in the prompt of a headless run: of files, skills, MCP servers, and words that are none.

use std::path::Path;

use codespar_testkit::{Script, Turn, mcp::program};
use serde_json::{Value, json};

use crate::common::{Bench, json_lines, parsed};

fn bench() -> Bench {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    bench.file(
        ".claude/commands/greet.md",
        "---\nmodel: haiku\nargument-hint: [name]\n---\nSay hello to $ARGUMENTS.",
    );
    bench.file(
        ".claude/skills/tidy/SKILL.md",
        "---\nname: tidy\ndescription: Tidies up\n---\nSort the imports of $ARGUMENTS.",
    );
    bench
}

/// What the model was last sent.
fn sent(bench: &Bench) -> String {
    let requests = bench.server.requests();
    requests.last().unwrap().last_message().to_string()
}

fn commands(init: &Value) -> Vec<&str> {
    let names = init["slash_commands"].as_array().unwrap().iter();
    names.map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn commands_of_files_and_skills_are_carried_out_and_listed() {
    let bench = bench();
    let (lines, code) = bench.stream(&["-p", "/greet Ada"]);
    assert_eq!(code, Some(0));
    assert_eq!(commands(&lines[0]), ["compact", "greet", "tidy"]);
    assert_eq!(lines[0]["model"], "claude-haiku-5-5");
    assert!(sent(&bench).contains("Say hello to Ada."));
    let body = bench.server.requests().last().unwrap().json().clone();
    assert_eq!(body["model"], "claude-haiku-5-5");
    let finished = bench.run(&["-p", "/tidy src"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(sent(&bench).contains("Sort the imports of src."));
}

#[test]
fn a_command_may_be_piped_in_and_takes_piped_text_as_arguments() {
    let bench = bench();
    let finished = bench.run_with_stdin(&["-p"], "/greet Bob\n");
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(sent(&bench).contains("Say hello to Bob."));
    let finished = bench.run_with_stdin(&["-p", "/greet"], "Carl and Dora\n");
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(sent(&bench).contains("Say hello to Carl and Dora."));
}

#[test]
fn a_prompt_of_an_mcp_server_is_a_command_of_a_run() {
    let bench = bench();
    let server = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let servers = json!({"mcpServers": {"kit": {"command": server}}}).to_string();
    let with_server = ["--mcp-config", &servers, "--output-format", "stream-json"];
    let run = |prompt: &str| {
        bench.run(&[&["-p", prompt, "--strict-mcp-config"], &with_server[..]].concat())
    };
    let finished = run("/mcp__kit__greet Ann Bad Ems");
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let lines = json_lines(&finished.stdout);
    assert!(
        commands(&lines[0]).contains(&"mcp__kit__greet"),
        "{}",
        lines[0]
    );
    assert!(
        sent(&bench).contains("Greet Ann of Bad Ems"),
        "{}",
        sent(&bench)
    );
    for (prompt, code, expected) in [
        ("/mcp__kit__greet", 1, "`name` is missing"),
        ("/mcp__kit__none", 2, "there are: /mcp__kit__greet"),
    ] {
        let finished = run(prompt);
        assert_eq!(finished.status.code(), Some(code), "{}", finished.stderr);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
    assert_eq!(bench.server.requests().len(), 1);
}

#[test]
fn a_word_that_looks_like_a_command_and_is_none_costs_nothing() {
    let bench = bench();
    for (prompt, expected) in [
        ("/gret Ada", "did you mean /greet?"),
        ("/deploy", "there is no command /deploy"),
        ("/help", "at a terminal"),
        ("/clear", "a new session"),
    ] {
        let finished = bench.run(&["-p", prompt]);
        assert_eq!(
            finished.status.code(),
            Some(2),
            "{prompt}: {}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains(expected),
            "{prompt}: {}",
            finished.stderr
        );
    }
    assert_eq!(bench.server.requests().len(), 0);
    let listed = parsed(&bench.run(&["session", "list", "--json"]).stdout);
    assert_eq!(listed, json!({"sessions": []}));
    for text in ["/tmp is full", "/no/such/file is missing", "// TODO: why?"] {
        let finished = bench.run(&["-p", text]);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        assert!(sent(&bench).contains(text), "{}", sent(&bench));
    }
}

#[test]
fn what_a_command_runs_is_decided_by_rules_and_a_refusal_ends_the_run() {
    let bench = bench();
    bench.file(
        ".claude/commands/mark.md",
        "---\nallowed-tools: Bash(touch *), Bash(echo *)\n---\nMarked: !`touch made.txt && echo 4711`",
    );
    let made = bench.work().join("made.txt");
    let finished = bench.run(&["-p", "/mark", "--output-format", "json"]);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let result = parsed(&finished.stdout);
    assert_eq!(result["subtype"], "error_during_execution", "{result}");
    assert!(!made.exists());
    assert_eq!(bench.server.requests().len(), 0);
    bench.trust();
    let finished = bench.run(&["-p", "/mark"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(made.exists());
    assert!(sent(&bench).contains("Marked: 4711"), "{}", sent(&bench));
}

#[test]
fn a_short_conversation_is_not_summarised() {
    let bench = bench();
    let finished = bench.run(&["-p", "hello"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let finished = bench.run(&["-p", "/compact", "--continue"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(
        finished.stdout.trim(),
        "the conversation is too short to summarise"
    );
    assert_eq!(bench.server.requests().len(), 1);
}
