//! `--json` of every command that prints data: the fields, and that the help names them.

use std::collections::BTreeSet;

use codespar_testkit::{Conversation, Matcher, Script, Turn, process::spawn};
use serde_json::Value;

use crate::common::{Bench, PATIENCE, git::repository, parsed};

const FIX: &str = "Say hi\n\n===FILE: a.txt===\n<<<SEARCH\nhello\n>>>REPLACE\nhi\n===END===\n";

/// A repository with a session, a task, a pull request, an MCP server, an agent and trust.
fn bench() -> Bench {
    let conversation = |name: &str, system: &str, answer: &str| {
        Conversation::new(name, Matcher::system_contains(system)).turn(Turn::text(answer))
    };
    let script = Script::new()
        .conversation(conversation("picker", "You choose the files", "[]"))
        .conversation(conversation("writer", "turns an instruction into", FIX))
        .conversation(conversation("ask", "answers questions about", "yes"))
        .turn(Turn::text("done"));
    let bench = repository(script, &[("a.txt", "hello\n")]);
    bench.file(
        ".mcp.json",
        r#"{"mcpServers": {"none": {"command": "false"}}}"#,
    );
    bench.file(
        ".codespar/agents/broken.md",
        "---\nname: broken\n---\nNo description.\n",
    );
    bench.trust();
    for args in [
        &["-p", "go"][..],
        &["dev", "make a.txt say hi", "--no-verify"],
    ] {
        let finished = bench.run(args);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    }
    bench
}

fn fields(value: &Value) -> BTreeSet<String> {
    let object = value.as_object();
    let object = object.unwrap_or_else(|| panic!("not an object: {value}"));
    object.keys().cloned().collect()
}

fn help_names(bench: &Bench, command: &[&str], fields: &[&str]) {
    let help = bench.run(&[command, &["--help"]].concat()).stdout;
    for field in fields {
        let quoted = format!("`{field}`");
        assert!(help.contains(&quoted), "{quoted} is not in {help}");
    }
}

fn names(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_command_that_prints_data_has_json_whose_fields_its_help_names() {
    let bench = bench();
    let first = |args: &[&str], list: &str, field: &str| {
        let all = parsed(&bench.run(args).stdout);
        all[list][0][field].as_str().unwrap().to_owned()
    };
    let session = first(&["session", "list", "--json"], "sessions", "id");
    let task = first(&["task", "list", "--json"], "tasks", "task_id");
    for (command, args, expected) in [
        (&["session", "list"][..], &[][..], &["sessions"][..]),
        (&["session", "show"], &[&*session], &["session", "entries"]),
        (&["task", "list"], &[], &["tasks"]),
        (
            &["task", "output"],
            &[&*task],
            &["task_id", "status", "output", "next_offset"],
        ),
        (
            &["agents", "list"],
            &[],
            &["agents", "problems", "warnings"],
        ),
        (
            &["agents", "check"],
            &[],
            &["checked", "problems", "warnings"],
        ),
        (&["mcp", "list"], &[], &["servers", "problems"]),
        (&["trust", "list"], &[], &["projects"]),
        (&["trust", "show"], &[], &["path", "files"]),
        (&["doctor"], &[], &["ok", "findings"]),
        (&["pr", "list"], &[], &["pull_requests"]),
        (
            &["pr", "show"],
            &["1"],
            &["pull_request", "reviews", "checks", "checks_unknown"],
        ),
        (&["pr", "diff"], &["1"], &["number", "diff"]),
        (&["locate"], &["hello"], &["files", "elapsed_ms"]),
        (&["gc"], &["--dry-run"], &["sessions", "bytes", "dry_run"]),
    ] {
        let finished = bench.run(&[command, args, &["--json"]].concat());
        let value: Value = parsed(&finished.stdout);
        assert_eq!(fields(&value), names(expected), "{command:?}");
        help_names(&bench, command, expected);
    }
}

/// A command, its arguments, a list that it prints, and fields of the objects in it.
type Listed = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
    &'static str,
);

const LISTED: [Listed; 9] = [
    (
        &["session", "list"],
        &[],
        "sessions",
        "id title cwd model mode created_at updated_at last_seq usage cost",
    ),
    (
        &["task", "list"],
        &[],
        "tasks",
        "task_id task_type status subject error exit_code usage cost_usd",
    ),
    (
        &["mcp", "list"],
        &[],
        "servers",
        "name status error origin file runs tools",
    ),
    (&["trust", "list"], &[], "projects", "path decided_at files"),
    (
        &["trust", "show"],
        &[],
        "files",
        "name grants standing difference",
    ),
    (&["agents", "list"], &[], "problems", "path line message"),
    (&["doctor"], &[], "findings", "name health says"),
    (
        &["pr", "list"],
        &[],
        "pull_requests",
        "number title state draft head base",
    ),
    (
        &["locate"],
        &["say hi in a.txt"],
        "files",
        "path score reasons",
    ),
];

#[test]
fn the_objects_in_lists_have_the_fields_that_the_help_names() {
    let bench = bench();
    for (command, args, list, expected) in LISTED {
        let expected: Vec<&str> = expected.split(' ').collect();
        let value = parsed(&bench.run(&[command, args, &["--json"]].concat()).stdout);
        let found = fields(&value[list][0]);
        let missing: Vec<_> = names(&expected).difference(&found).cloned().collect();
        assert_eq!(missing, Vec::<String>::new(), "{command:?}: {value}");
        let documented: &[&str] = match command {
            ["task", "list"] => &["task", "get"],
            command => command,
        };
        help_names(&bench, documented, &expected);
    }
}

#[test]
fn commands_that_change_or_ask_something_name_their_fields_too() {
    let bench = bench();
    let check = |command: &str, out: &str, expected: &[&str]| {
        assert_eq!(fields(&parsed(out)), names(expected), "{command}");
        help_names(&bench, &[command], expected);
    };
    let answer = "===FILE: new.txt===\nnew\n===END===\n";
    let applied = bench.run_with_stdin(&["apply", "--json"], answer);
    check("apply", &applied.stdout, &["applied", "blocks", "files"]);
    let asked = bench.run(&["ask", "is it?", "--json"]);
    let expected = ["answer", "model", "usage", "cost_usd"];
    check("ask", &asked.stdout, &expected);
    let mut review = bench.command(&["review", "1", "--json"]);
    review
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    let reviewed = spawn(&mut review).unwrap().wait(PATIENCE).unwrap();
    let expected = [
        "number",
        "findings",
        "unplaced",
        "unseen",
        "risk",
        "simulated",
        "review",
        "cost_usd",
    ];
    check("review", &reviewed.stdout, &expected);
    let merged = bench.run(&["merge", "1", "--json"]);
    let expected = [
        "number",
        "commit",
        "strategy",
        "base",
        "unchecked",
        "deleted_branch",
    ];
    check("merge", &merged.stdout, &expected);
}
