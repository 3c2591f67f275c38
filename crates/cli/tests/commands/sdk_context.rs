//! `get_context_usage`: its parts add up to the whole, before the first turn and after it.

use std::path::Path;

use codespar_testkit::{Script, Turn, mcp::program};
use serde_json::{Value, json};

use crate::{
    common::Bench,
    sdk::{client, initialize},
};

fn tokens(value: &Value) -> u64 {
    value["tokens"].as_u64().unwrap()
}

/// Checks that what is used adds up to the total, and the parts of the lists to their category.
fn check(usage: &Value) {
    let categories = usage["categories"].as_array().unwrap();
    let of_kind = |kind: &str| -> u64 {
        let wanted = categories.iter().filter(|one| one["kind"] == kind);
        wanted.map(tokens).sum()
    };
    let total = usage["totalTokens"].as_u64().unwrap();
    assert_eq!(of_kind("used"), total, "{usage}");
    assert_eq!(Some(of_kind("free") + total), usage["maxTokens"].as_u64());
    for (list, id) in [("memoryFiles", "memory_files"), ("mcpTools", "mcp_tools")] {
        let parts: u64 = usage[list].as_array().unwrap().iter().map(tokens).sum();
        let category = categories.iter().find(|one| one["id"] == id).unwrap();
        assert_eq!(parts, tokens(category), "{list}: {usage}");
    }
}

fn names<'a>(usage: &'a Value, list: &str, key: &str) -> Vec<&'a str> {
    let parts = usage[list].as_array().unwrap().iter();
    parts.map(|part| part[key].as_str().unwrap()).collect()
}

#[test]
fn the_parts_of_the_context_are_named_and_add_up() {
    let bench = Bench::new(Script::new().turn(Turn::text("done")));
    let shared = bench.file("AGENTS.md", &"Use tabs. ".repeat(50));
    let own = bench.file("CLAUDE.local.md", "My machine is slow.");
    let server = program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap();
    let servers = json!({"mcpServers": {"kit": {"command": server}}}).to_string();
    let mut client = client(&bench, &["--mcp-config", &servers, "--strict-mcp-config"]);
    initialize(&mut client, &json!({}));
    let mut usage = || {
        let request = json!({"subtype": "get_context_usage"});
        client.request(&request).unwrap().unwrap()
    };
    let before = usage();
    check(&before);
    assert_eq!(
        names(&before, "memoryFiles", "path"),
        [shared.to_str().unwrap(), own.to_str().unwrap()]
    );
    assert_eq!(names(&before, "memoryFiles", "type"), ["Project", "Local"]);
    assert_eq!(before["memoryFiles"][0]["tokens"], 124);
    assert!(names(&before, "mcpTools", "name").contains(&"mcp__kit__echo"));
    assert!(
        names(&before, "mcpTools", "serverName")
            .iter()
            .all(|name| *name == "kit")
    );
    client.prompt("hello").unwrap();
    client.turn().unwrap();
    let request = json!({"subtype": "get_context_usage"});
    let after = client.request(&request).unwrap().unwrap();
    check(&after);
    let ids = |usage: &Value| names(usage, "mcpTools", "name").join(" ");
    assert_eq!(ids(&before), ids(&after));
}
