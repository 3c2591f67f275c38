//! Programs of the official Agent SDKs, unchanged, with this program as the one that they start.

use std::{path::Path, process::Command};

use codespar_testkit::{Conversation, Matcher, Script, Turn, process::spawn};
use serde_json::json;

use crate::common::{Bench, PATIENCE};

const PARTS: [&str; 10] = [
    "one_shot",
    "turns",
    "interrupt",
    "permissions",
    "hooks",
    "servers",
    "agents",
    "sessions",
    "structured",
    "partial",
];

fn script() -> Script {
    let when = |name: &str, text: &str| Conversation::new(name, Matcher::first_user_contains(text));
    let write = |name: &str| Turn::tool("Write", &json!({"file_path": name, "content": "model"}));
    let poem = json!({"description": "a poem", "prompt": "write", "subagent_type": "poet"});
    Script::new()
        .conversation(when("one", "one shot").turn(Turn::text("hello")))
        .conversation(
            when("turns", "several turns")
                .turn(Turn::text("one"))
                .turn(Turn::text("two")),
        )
        .conversation(
            when("interrupt", "to be interrupted")
                .turn(Turn::tool("Bash", &json!({"command": "sleep 100"}))),
        )
        .conversation(
            when("permissions", "permission")
                .turn(write("yes.txt"))
                .turn(write("no.txt"))
                .turn(Turn::text("done")),
        )
        .conversation(
            when("hooks", "hooks")
                .turn(Turn::tool("Bash", &json!({"command": "echo hi"})))
                .turn(Turn::text("done")),
        )
        .conversation(
            when("servers", "servers")
                .turn(Turn::tool("mcp__calc__add", &json!({"a": 2, "b": 3})))
                .turn(Turn::text("done")),
        )
        .conversation(
            Conversation::new("poet", Matcher::system_contains("You write poems"))
                .turn(Turn::text("a poem")),
        )
        .conversation(
            when("agents", "agents")
                .turn(Turn::tool("Task", &poem))
                .turn(Turn::text("done")),
        )
        .conversation(
            when("sessions", "sessions")
                .turn(Turn::text("first"))
                .turn(Turn::text("second"))
                .turn(Turn::text("third")),
        )
        .conversation(
            when("structured", "structured")
                .turn(Turn::tool("StructuredOutput", &json!({"n": 7})))
                .turn(Turn::text("done")),
        )
        .conversation(when("partial", "partial").turn(Turn::text("in pieces")))
}

fn program(name: &str) -> String {
    format!("{}/tests/agent_sdk/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// In the room of the bench, with its model.
fn run(mut command: Command) {
    let finished = spawn(&mut command).unwrap().wait(PATIENCE * 3).unwrap();
    let done: Vec<&str> = finished.stdout.lines().collect();
    let expected = PARTS.map(|part| format!("ok {part}"));
    assert_eq!(done, expected, "{}", finished.stderr);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
}

fn command(bench: &Bench, interpreter: &Path, args: &[&str]) -> Command {
    let mut command = bench.room.command(interpreter.to_str().unwrap());
    command
        .current_dir(bench.work())
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
        .args(args);
    command
}

/// Where `cargo xtask` installs packages, unless the environment says otherwise.
fn installed(variable: &str, folder: &str) -> std::path::PathBuf {
    let usual = || {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../target")
            .join(folder)
    };
    std::env::var_os(variable).map_or_else(usual, Into::into)
}

#[test]
#[ignore = "needs the Agent SDK for Python"]
fn a_program_of_the_python_sdk_runs_unchanged() {
    let bench = Bench::new(script());
    let python = installed("CODESPAR_PYTHON_SDK", "claude-agent-sdk").join("bin/python3");
    let work = bench.work();
    let args = [
        &*program("program.py"),
        env!("CARGO_BIN_EXE_codespar"),
        work.to_str().unwrap(),
    ];
    run(command(&bench, &python, &args));
}

#[test]
#[ignore = "needs the Agent SDK for TypeScript"]
fn a_program_of_the_typescript_sdk_runs_unchanged() {
    let bench = Bench::new(script());
    let packages = installed("CODESPAR_TYPESCRIPT_SDK", "agent-sdk-typescript");
    let work = bench.work();
    let args = [
        &*program("program.mjs"),
        env!("CARGO_BIN_EXE_codespar"),
        work.to_str().unwrap(),
        packages.to_str().unwrap(),
    ];
    run(command(&bench, Path::new("node"), &args));
}
