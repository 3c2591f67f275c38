//! Searches of the web by the provider: who has them, what they cost, and that their blocks go back
//! as they came.

use codespar_protocol::Usage;
use codespar_testkit::{
    Script, Turn,
    process::{Finished, spawn},
};
use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, json_lines};

/// A server that searches, unless the variable says otherwise.
fn run(bench: &Bench, has_search: &str, args: &[&str]) -> Finished {
    let args = [&["-p", "go", "--output-format", "stream-json"], args].concat();
    let mut command = bench.command(&args);
    if !has_search.is_empty() {
        command.env("ANTHROPIC_WEB_SEARCH", has_search);
    }
    spawn(&mut command).unwrap().wait(PATIENCE).unwrap()
}

/// The search tool of the first request.
fn offered(bench: &Bench) -> Option<Value> {
    let requests = bench.server.requests();
    let tools = requests[0].json()["tools"].as_array().unwrap();
    let searches = |tool: &&Value| tool["name"] == "web_search" || tool["name"] == "WebSearch";
    tools.iter().find(searches).cloned()
}

#[test]
fn it_is_offered_where_the_provider_has_it_and_a_rule_allows_it() {
    let allow = ["--allowedTools", "WebSearch"];
    let expected = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5});
    for (has_search, args, is_offered) in [
        ("1", &allow[..], true),
        ("1", &["--permission-mode", "bypassPermissions"], true),
        (
            "1",
            &["--allowedTools", "WebSearch", "--permission-mode", "plan"],
            true,
        ),
        ("1", &[], false),
        ("1", &["--permission-mode", "acceptEdits"], false),
        ("1", &["--allowedTools", "WebFetch"], false),
        (
            "1",
            &[
                "--allowedTools",
                "WebSearch",
                "--disallowedTools",
                "WebSearch",
            ],
            false,
        ),
        (
            "1",
            &[
                "--disallowedTools",
                "WebSearch",
                "--permission-mode",
                "bypassPermissions",
            ],
            false,
        ),
        // Another server of the same API.
        ("", &allow, false),
        ("0", &allow, false),
    ] {
        let bench = Bench::new(Script::new().turn(Turn::text("hi")));
        let finished = run(&bench, has_search, args);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        let tool = offered(&bench);
        assert_eq!(tool, is_offered.then(|| expected.clone()), "{args:?}");
        let lines = json_lines(&finished.stdout);
        let names = lines[0]["tools"].as_array().unwrap();
        assert_eq!(names.contains(&json!("WebSearch")), is_offered, "{args:?}");
    }
}

#[test]
fn a_repository_cannot_allow_it_before_it_is_trusted() {
    for is_trusted in [false, true] {
        let bench = Bench::new(Script::new().turn(Turn::text("hi")));
        let rules = r#"{"permissions": {"allow": ["WebSearch"]}}"#;
        bench.file(".codespar/settings.json", rules);
        if is_trusted {
            bench.trust();
        }
        run(&bench, "1", &[]);
        assert_eq!(offered(&bench).is_some(), is_trusted);
    }
}

#[test]
fn its_blocks_go_back_as_they_came_and_each_search_is_paid_for() {
    let call = json!({
        "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": {"query": "rust  edition"}
    });
    let found = json!({
        "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{
            "type": "web_search_result", "url": "https://example.invalid/a", "title": "A",
            "encrypted_content": "EqgfCioIARgBIiQ3YTAw", "page_age": null
        }]
    });
    let usage = Usage {
        input_tokens: 1000,
        output_tokens: 100,
        web_search_requests: 3,
        ..Usage::default()
    };
    let after = Usage {
        input_tokens: 100,
        output_tokens: 10,
        ..Usage::default()
    };
    let script = Script::new()
        .turn(
            Turn::new()
                .and_raw(&call)
                .and_raw(&found)
                .and_text("It is 2024.")
                .and_tool("LS", &json!({}))
                .usage(usage),
        )
        .turn(Turn::text("done").usage(after));
    let bench = Bench::new(script);
    let finished = run(&bench, "1", &["--allowedTools", "WebSearch"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let last = bench.server.last_request().unwrap();
    let body = String::from_utf8(last.body().to_vec()).unwrap();
    for block in [&call, &found] {
        assert!(body.contains(&block.to_string()), "{block}\n{body}");
    }
    let lines = json_lines(&finished.stdout);
    let result = lines.last().unwrap();
    // 2 dollars in and 10 out per million tokens, 10 dollars per thousand searches.
    let expected = 3.0 * 0.01 + (1100.0 * 2.0 + 110.0 * 10.0) / 1e6;
    let cost = result["total_cost_usd"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-12, "{cost}");
}

#[test]
fn a_budget_that_cannot_pay_for_the_searches_allows_no_call_that_may_search() {
    for (args, code) in [(&["--allowedTools", "WebSearch"][..], 1), (&[], 0)] {
        let bench = Bench::new(Script::new().turn(Turn::text("hi")));
        let args = [args, &["--max-budget-usd", "0.06"]].concat();
        let finished = run(&bench, "1", &args);
        assert_eq!(finished.status.code(), Some(code), "{}", finished.stdout);
        assert_eq!(bench.server.request_count() == 0, code == 1, "{args:?}");
    }
}
