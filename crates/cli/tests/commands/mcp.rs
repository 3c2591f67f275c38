//! MCP servers, their tools and monitors, through the real binary and real servers.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use codespar_testkit::{
    Conversation, Matcher, Script, Turn,
    mcp::program,
    process::{MARK, Running, spawn},
};
use serde_json::{Value, json};

use crate::common::{
    Bench, PATIENCE, ended, json_lines, parsed, tool_results, type_into, wait_for,
};

/// A command that waits for the file `go`.
const WAIT: &str = "while [ ! -e go ]; do sleep 0.1; done";
const KEY: &str = "sk-test-key-of-the-bench-0001";

fn server() -> PathBuf {
    program(Path::new(env!("CARGO_BIN_EXE_codespar"))).unwrap()
}

/// The testkit's server over standard streams, with the mark by which its processes are found.
pub(crate) fn entry(args: &[&str]) -> Value {
    json!({
        "command": server(),
        "args": args,
        "env": { MARK: format!("${{{MARK}}}"), "GREETING": "${GREETING:-hello}" },
    })
}

pub(crate) fn servers(entries: &[(&str, Value)]) -> String {
    let map: serde_json::Map<String, Value> = entries
        .iter()
        .map(|(name, entry)| ((*name).to_owned(), entry.clone()))
        .collect();
    json!({ "mcpServers": map }).to_string()
}

/// A bench whose person has this server, and its journal. `{home}` stands for the home.
pub(crate) fn bench(script: Script, args: &[&str]) -> (Bench, PathBuf) {
    let bench = Bench::new(script);
    let journal = bench.room.home().join("journal");
    let args = [args, &["--journal", "{home}/journal"]].concat();
    let settings =
        servers(&[("kit", entry(&args))]).replace("{home}", bench.room.home().to_str().unwrap());
    fs::write(bench.room.codespar_home().join("settings.json"), settings).unwrap();
    (bench, journal)
}

pub(crate) fn calls(calls: &[(&str, Value)]) -> Script {
    let mut script = Script::new();
    for (tool, input) in calls {
        script = script.turn(Turn::tool(format!("mcp__kit__{tool}"), input));
    }
    script.turn(Turn::text("Done."))
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

pub(crate) fn nobody_left(bench: &Bench) {
    let left = bench.room.wait_until_empty(PATIENCE).unwrap();
    assert_eq!(left, Vec::<u32>::new());
}

pub(crate) const ALLOWED: [&str; 2] = ["--allowedTools", "mcp__kit"];

pub(crate) fn stream(bench: &Bench, more: &[&str]) -> Vec<Value> {
    let (lines, code) = bench.stream(&[&["-p", "go"], more].concat());
    assert_eq!(code, Some(0), "{lines:?}");
    lines
}

#[test]
fn tools_of_a_server_are_called_and_answer() {
    let script = calls(&[
        ("echo", json!({"text": "back and forth"})),
        ("fail", json!({"text": "not today"})),
        ("refuse", json!({})),
        ("links", json!({})),
    ]);
    let (bench, journal) = bench(script, &[]);
    let lines = stream(&bench, &ALLOWED);
    let init = &lines[0];
    assert_eq!(
        init["mcp_servers"],
        json!([{"name": "kit", "status": "connected"}])
    );
    let tools: Vec<&str> = init["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| name.starts_with("mcp__"))
        .collect();
    assert_eq!(tools.len(), 14);
    assert_eq!(&tools[..2], ["mcp__kit__echo", "mcp__kit__fail"]);
    assert_eq!(
        tool_results(&lines),
        [
            "back and forth",
            "not today",
            "the MCP server `kit` refused: I refuse",
            "[resource file:///a (a)]\n[resource file:///b]\ninside b\n[audio of type `audio/wav` left \
             out: about 3 bytes]",
        ]
    );
    let errors: Vec<Value> = lines
        .iter()
        .filter(|line| line["type"] == "user")
        .map(|line| line["message"]["content"][0]["is_error"].clone())
        .collect();
    assert_eq!(errors, [json!(null), json!(true), json!(true), json!(null)]);
    let sent = &bench.server.requests()[0];
    assert!(sent.tool_names().contains(&"mcp__kit__slow"));
    assert_eq!(
        read(&journal).lines().skip(2).collect::<Vec<_>>(),
        [
            "called echo",
            "called fail",
            "called refuse",
            "called links",
            "ended"
        ]
    );
    nobody_left(&bench);
}

#[test]
fn pictures_stay_pictures_and_long_answers_go_to_a_file() {
    let script = calls(&[("picture", json!({})), ("big", json!({"count": 9000}))]);
    let (bench, _) = bench(script, &[]);
    let lines = stream(&bench, &ALLOWED);
    let results: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "user")
        .map(|line| &line["message"]["content"][0]["content"])
        .collect();
    assert_eq!(results[0][0]["text"], "one pixel");
    assert_eq!(results[0][1]["source"]["media_type"], "image/png");
    let long = results[1].as_str().unwrap();
    assert!(
        long.contains("characters left out; the whole is in "),
        "{}",
        long.len()
    );
    assert!(long.len() < 40_000 && long.ends_with("line 8999"));
}

#[test]
fn without_a_rule_a_call_is_denied_and_a_rule_may_deny_one_tool() {
    let script = calls(&[("echo", json!({})), ("fail", json!({}))]);
    let (bench, journal) = bench(script, &[]);
    let lines = stream(&bench, &["--disallowedTools", "mcp__other"]);
    let results = tool_results(&lines);
    assert!(
        results[0].contains("no rule allows `mcp__kit__echo`")
            && results[0].contains("--allowedTools \"mcp__kit__echo\""),
        "{results:?}"
    );
    assert!(!read(&journal).contains("called"));
    bench.file(
        ".codespar/settings.json",
        r#"{"permissions": {"allow": ["mcp__kit"], "deny": ["mcp__kit__fail"]}}"#,
    );
    bench.trust();
    let results = tool_results(&stream(&bench, &[]));
    assert_eq!(results[0], "(nothing)");
    assert_eq!(
        results[1],
        "permission denied: denied by `mcp__kit__fail` in .codespar/settings.json"
    );
    assert!(!read(&journal).contains("called fail"));
}

#[test]
fn a_tool_that_calls_itself_read_only_is_not_called_in_plan_mode() {
    let (bench, journal) = bench(calls(&[("echo", json!({"text": "x"}))]), &[]);
    let plan = [&ALLOWED[..], &["--permission-mode", "plan"]].concat();
    let results = tool_results(&stream(&bench, &plan));
    assert!(results[0].contains("plan mode is read-only"), "{results:?}");
    assert!(!read(&journal).contains("called echo"));
}

#[test]
fn a_server_of_the_project_waits_for_approval() {
    let (bench, _) = bench(Script::from_json(r#"["a", "b"]"#).unwrap(), &[]);
    let own = bench.room.codespar_home().join("settings.json");
    fs::remove_file(&own).unwrap();
    let journal = bench.room.home().join("project");
    let file = bench.file(
        ".mcp.json",
        &servers(&[("kit", entry(&["--journal", journal.to_str().unwrap()]))]),
    );
    let status = |more: &[&str]| stream(&bench, more)[0]["mcp_servers"][0]["status"].clone();
    assert_eq!(status(&[]), "needs-approval");
    assert!(!journal.exists(), "it was started all the same");
    let finished = bench.run(&["-p", "go"]);
    assert!(
        finished
            .stderr
            .contains("`kit` is not there: it comes with the repository and is not approved"),
        "{}",
        finished.stderr
    );
    bench.file(
        ".codespar/settings.local.json",
        r#"{"enabledMcpServers": ["kit"]}"#,
    );
    assert_eq!(status(&[]), "needs-approval", "a project approves nothing");
    let refused = bench.run(&["-p", "go", "--trust"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refused
            .stderr
            .contains("enabledMcpServers cannot be set by a project"),
        "{}",
        refused.stderr
    );
    fs::remove_file(bench.work().join(".codespar/settings.local.json")).unwrap();
    assert_eq!(
        status(&["--mcp-config", file.to_str().unwrap()]),
        "connected"
    );
    fs::write(&own, r#"{"enabledMcpServers": ["kit"]}"#).unwrap();
    assert_eq!(status(&[]), "needs-approval", "the name alone says nothing");
    assert_eq!(status(&["--trust"]), "connected");
    bench.trust();
    assert_eq!(status(&[]), "connected");
    fs::write(&own, r#"{"enableAllProjectMcpServers": true}"#).unwrap();
    assert_eq!(status(&[]), "connected");
    let definition = parsed(&read(&file))["mcpServers"].clone();
    let approvals = bench.room.codespar_home().join("mcp-approvals.json");
    let root = bench.work().canonicalize().unwrap();
    fs::remove_file(&own).unwrap();
    fs::write(
        &approvals,
        json!({ root.to_str().unwrap(): definition }).to_string(),
    )
    .unwrap();
    assert_eq!(status(&[]), "connected");
    bench.file(".mcp.json", &servers(&[("kit", entry(&["--newer"]))]));
    assert_eq!(status(&[]), "needs-approval", "it is another program now");
    fs::write(&own, r#"{"enableAllProjectMcpServers": true}"#).unwrap();
    assert_eq!(
        status(&[]),
        "needs-approval",
        "another program, by any name"
    );
}

pub(crate) fn typed(bench: &Bench, cues: &[(&str, &str)]) -> String {
    let program = env!("CARGO_BIN_EXE_codespar");
    let mut command = bench.room.command("script");
    type_into(command.args(["-qec", program, "/dev/null"]), cues)
}

#[test]
fn a_person_is_asked_about_a_server_of_the_project_and_always_is_kept() {
    let bench = Bench::new(Script::new());
    let journal = bench.room.home().join("journal");
    let text = servers(&[("kit", entry(&["--journal", journal.to_str().unwrap()]))]);
    bench.file(".mcp.json", &text);
    let untrusted = typed(&bench, &[("n no", "n"), ("›", "/quit")]);
    assert!(untrusted.contains("MCP server kit: "), "{untrusted}");
    assert!(!untrusted.contains("wants:"), "{untrusted}");
    bench.trust();
    let asked = "MCP server kit wants:";
    let shown = typed(&bench, &[("n no", "n"), ("›", "/quit")]);
    assert!(shown.contains(asked), "{shown}");
    assert!(
        shown.contains("takes from your environment: CODESPAR_TEST_MARK"),
        "{shown}"
    );
    assert!(!journal.exists(), "a no is a no");
    typed(
        &bench,
        &[("n no", "a"), ("›", "hello"), ("1 turn", "/quit")],
    );
    assert!(read(&journal).contains("started"));
    let shown = typed(&bench, &[("›", "/quit")]);
    assert!(!shown.contains(asked), "{shown}");
    nobody_left(&bench);
}

#[test]
fn a_server_sees_no_secrets_and_what_its_configuration_gives_it() {
    let (bench, _) = bench(calls(&[("environment", json!({}))]), &[]);
    let mut command = bench.command(&[
        "-p",
        "go",
        "--output-format",
        "stream-json",
        "--allowedTools",
        "mcp__kit",
    ]);
    command
        .env("GREETING", "good day")
        .env("GITHUB_TOKEN", "ghp_0123456789abcdefghijABCDEFGHIJ012345")
        .env("HARMLESS", "but not basic");
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    let told = tool_results(&json_lines(&finished.stdout)).remove(0);
    let told: serde_json::Map<String, Value> = serde_json::from_str(&told).unwrap();
    let names: Vec<&str> = told.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [MARK, "GREETING", "HOME", "LANG", "PATH", "TERM", "TMPDIR"]
    );
    assert_eq!(told["GREETING"], "good day");
    assert!(!finished.stdout.contains(KEY));
}

#[test]
fn a_server_that_crashes_is_told_and_taken_up_again() {
    let script = calls(&[
        ("crash", json!({})),
        ("echo", json!({"text": "still there"})),
    ]);
    let (bench, journal) = bench(script, &[]);
    let results = tool_results(&stream(&bench, &ALLOWED));
    assert_eq!(
        results,
        [
            "the MCP server `kit` went away during this call, whose outcome is unknown; it said: I am \
             about to crash. it was connected anew and may have lost what it knew; call again if that \
             is safe",
            "still there"
        ]
    );
    assert_eq!(read(&journal).matches("started").count(), 2);
}

#[test]
fn a_server_whose_reconnect_fails_is_tried_again_until_it_is_there() {
    let wait = "while [ ! -e go ]; do sleep 0.1; done; sleep 3";
    let script = Script::of([
        Turn::tool("mcp__kit__crash", &json!({})),
        Turn::tool("mcp__kit__echo", &json!({"text": "too early"})),
        Turn::tool("Bash", &json!({"command": wait})),
        Turn::tool("mcp__kit__echo", &json!({"text": "still there"})),
        Turn::text("Done."),
    ]);
    let bench = Bench::new(script);
    let home = bench.room.home();
    let (journal, up) = (home.join("journal"), home.join("up"));
    // It starts once, and then not before it is up again.
    let program = format!(
        "[ -e {home}/began ] && [ ! -e {home}/up ] && exit 1; : > {home}/began; exec {server} \
         --journal {home}/journal",
        home = home.display(),
        server = server().display()
    );
    let kit = json!({
        "command": "sh",
        "args": ["-c", program],
        "env": { MARK: format!("${{{MARK}}}") },
    });
    fs::write(
        bench.room.codespar_home().join("settings.json"),
        servers(&[("kit", kit)]),
    )
    .unwrap();
    let options = [
        "--output-format",
        "stream-json",
        "--allowedTools",
        "Bash,mcp__kit",
    ];
    let running = bench.start(&[&["-p", "go"], &options[..]].concat());
    bench.server.wait_for_requests_blocking(3).unwrap();
    fs::write(&up, "").unwrap();
    wait_for("the second start", || {
        read(&journal).matches("started").count() == 2
    });
    bench.file("go", "");
    let finished = running.wait(PATIENCE).unwrap();
    let results = tool_results(&json_lines(&finished.stdout));
    assert!(
        results[0].contains("it is tried again in the background"),
        "{results:?}"
    );
    assert!(
        results[1].contains("is down: ") && results[1].contains("tried again in the background"),
        "{results:?}"
    );
    assert_eq!(results[3], "still there");
    nobody_left(&bench);
}

/// The user has this program as a server of the name `kit`.
fn with_program(bench: &Bench, program: &str) {
    let kit = json!({
        "command": "sh",
        "args": ["-c", program],
        "env": { MARK: format!("${{{MARK}}}") },
    });
    let settings = bench.room.codespar_home().join("settings.json");
    fs::write(settings, servers(&[("kit", kit)])).unwrap();
}

#[test]
fn a_server_that_cannot_be_connected_at_first_is_tried_again_until_it_is_there() {
    let agent = json!({
        "description": "d", "prompt": "use the server", "subagent_type": "general-purpose",
    });
    let main = Conversation::new("main", Matcher::first_user_contains("go"))
        .turn(Turn::tool("Bash", &json!({"command": WAIT})))
        .turn(Turn::tool("Task", &agent))
        .turn(Turn::text("Done."));
    let worker = Conversation::new("worker", Matcher::first_user_contains("use the server"))
        .turn(Turn::tool("mcp__kit__echo", &json!({"text": "late"})))
        .turn(Turn::text("It answered."));
    let bench = Bench::new(Script::new().conversation(main).conversation(worker));
    let home = bench.room.home();
    let program = format!(
        "[ -e {home}/up ] || exit 1; exec {server} --journal {home}/journal",
        home = home.display(),
        server = server().display()
    );
    with_program(&bench, &program);
    let options = ["--allowedTools", "Bash,mcp__kit", "--verbose"];
    let args = [
        &["-p", "go", "--output-format", "stream-json"],
        &options[..],
    ]
    .concat();
    let running = bench.start(&args);
    bench.server.wait_for_requests_blocking(1).unwrap();
    fs::write(home.join("up"), "").unwrap();
    wait_for("the server is asked for its tools", || {
        read(&home.join("journal")).contains("started")
    });
    // What is asked of it after it has started comes at once.
    thread::sleep(Duration::from_secs(1));
    bench.file("go", "");
    let finished = running.wait(PATIENCE).unwrap();
    assert!(finished.status.success(), "{}", finished.stderr);
    assert!(finished.stderr.contains("kit") || finished.stdout.contains("\"failed\""));
    let sent = bench.server.requests();
    let used = sent
        .iter()
        .flat_map(|request| request.tool_results())
        .any(|result| result.text == "late" && !result.is_error);
    assert!(used, "{}", finished.stdout);
    nobody_left(&bench);
}

#[test]
fn a_database_that_is_removed_after_the_last_write_fails_the_run() {
    let bench = Bench::new(Script::of([Turn::text("all is well")]));
    let state = bench.room.codespar_home();
    // It goes on for a moment after the last turn, when servers are told to end.
    let program = format!(
        "{server}; rm {state}/codespar.db",
        server = server().display(),
        state = state.display()
    );
    with_program(&bench, &program);
    let finished = bench.run(&["-p", "go", "--output-format", "json"]);
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    let result = parsed(&finished.stdout);
    assert_eq!(result["is_error"], true, "{result}");
    let said = result["result"].as_str().unwrap();
    assert!(said.contains("all is well"), "{said}");
    assert!(said.contains("codespar.db was removed"), "{said}");
}

#[test]
fn a_server_that_cannot_start_fails_by_name_and_the_run_goes_on() {
    let (bench, _) = bench(Script::new().turn(Turn::text("Fine.")), &[]);
    let broken = json!({"command": "no-such-program-anywhere"});
    let path = bench.file("more.json", &servers(&[("broken", broken)]));
    let lines = stream(&bench, &["--mcp-config", path.to_str().unwrap()]);
    let servers = &lines[0]["mcp_servers"];
    assert_eq!(
        (
            &servers[0]["name"],
            &servers[0]["status"],
            &servers[1]["status"]
        ),
        (&json!("broken"), &json!("failed"), &json!("connected"))
    );
    let error = servers[0]["error"].as_str().unwrap();
    assert!(
        error.contains("no-such-program-anywhere cannot be started"),
        "{error}"
    );
    let bad = bench.file("bad.json", r#"{"mcpServers": {"x": {}}}"#);
    let refused = bench.run(&["-p", "go", "--mcp-config", bad.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refused
            .stderr
            .contains("bad.json:1: mcpServers.x: it needs `command`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn nothing_of_a_server_is_left_after_the_end_and_after_kill_9() {
    let (bench, _) = bench(calls(&[("child", json!({}))]), &[]);
    stream(&bench, &ALLOWED);
    nobody_left(&bench);
    let script = calls(&[("child", json!({})), ("slow", json!({"ms": 600_000}))]);
    let (bench, journal) = self::bench(script, &[]);
    let running = bench.start(&[&["-p", "go"], &ALLOWED[..]].concat());
    wait_for("the slow call", || read(&journal).contains("called slow"));
    // Found by their environment, of which the guard has none.
    assert!(bench.room.alive().unwrap().len() >= 3, "us, server, child");
    running.kill_9().unwrap();
    nobody_left(&bench);
}

#[test]
fn an_interrupt_is_passed_on_to_the_server() {
    let (bench, journal) = bench(calls(&[("slow", json!({"ms": 600_000}))]), &[]);
    let running = bench.start(&[&["-p", "go"], &ALLOWED[..]].concat());
    wait_for("the slow call", || read(&journal).contains("called slow"));
    running.interrupt().unwrap();
    assert_eq!(running.wait(PATIENCE).unwrap().status.code(), Some(130));
    assert!(read(&journal).contains("cancelled "), "{}", read(&journal));
    nobody_left(&bench);
}

#[test]
fn a_call_that_takes_too_long_is_an_error() {
    let (bench, _) = bench(calls(&[("slow", json!({"ms": 600_000}))]), &[]);
    bench.file(".codespar/settings.json", r#"{"mcpTimeoutMs": 200}"#);
    bench.trust();
    let results = tool_results(&stream(&bench, &ALLOWED));
    assert!(
        results[0].contains("gave no answer within 0.2 s"),
        "{results:?}"
    );
}

#[test]
fn a_server_of_the_newer_protocol_is_understood() {
    let (bench, _) = bench(calls(&[("echo", json!({"text": "new"}))]), &["--newer"]);
    let lines = stream(&bench, &ALLOWED);
    assert_eq!(lines[0]["mcp_servers"][0]["status"], "connected");
    assert_eq!(tool_results(&lines), ["new"]);
}

/// A server over HTTP, and its address.
pub(crate) fn http_server(bench: &Bench, args: &[&str]) -> (Running, String) {
    let mut command: Command = bench.room.command(server());
    command.args(["--http", "0"]).args(args);
    let mut running = spawn(&mut command).unwrap();
    running.wait_for_output("/mcp\n", PATIENCE).unwrap();
    let address = running.stdout_so_far().trim().to_owned();
    (running, address)
}

#[test]
fn a_server_over_http_is_called_with_its_headers() {
    let bench = Bench::new(calls(&[("echo", json!({"text": "over http"}))]));
    let (_server, url) = http_server(&bench, &["--token", "t0ken-of-the-test"]);
    let web = |token: &str| json!({"type": "http", "url": url, "headers": {"Authorization": format!("Bearer {token}")}});
    let config = |token: &str| {
        let text = servers(&[("kit", web(token))]);
        fs::write(bench.room.codespar_home().join("settings.json"), text).unwrap();
    };
    config("${WEB_TOKEN:-t0ken-of-the-test}");
    let lines = stream(&bench, &ALLOWED);
    assert_eq!(lines[0]["mcp_servers"][0]["status"], "connected");
    assert_eq!(tool_results(&lines), ["over http"]);
    config("wrong");
    let lines = stream(&bench, &ALLOWED);
    assert_eq!(
        lines[0]["mcp_servers"],
        json!([{"name": "kit", "status": "failed", "error": "it refuses the `Authorization` in its \
                `headers`"}])
    );
}

#[test]
fn agents_have_the_tools_that_their_kind_has() {
    let script = Script::from_json(
        &json!({
            "turns": [
                {"content": [{"type": "tool_use", "name": "Task", "input": {
                    "description": "d", "prompt": "You are the worker", "subagent_type": "general-purpose"}}]},
                {"content": [{"type": "tool_use", "name": "Task", "input": {
                    "description": "d", "prompt": "You are the looker", "subagent_type": "Explore"}}]},
                "Done.",
            ],
            "conversations": [
                {"name": "worker", "match": {"first_user_contains": "You are the worker"}, "turns": [
                    {"content": [{"type": "tool_use", "name": "mcp__kit__echo", "input": {"text": "deep"}}]},
                    "It said {{last_tool_result}}."]},
                {"name": "looker", "match": {"first_user_contains": "You are the looker"}, "turns": [
                    {"content": [{"type": "tool_use", "name": "mcp__kit__echo", "input": {"text": "x"}}]},
                    "It said {{last_tool_result}}."]},
            ],
        })
        .to_string(),
    )
    .unwrap();
    let (bench, journal) = bench(script, &[]);
    let results = tool_results(&stream(&bench, &ALLOWED));
    let told = results.join("\n");
    assert!(told.contains("It said deep."), "{told}");
    assert!(
        told.contains("there is no tool `mcp__kit__echo` here"),
        "{told}"
    );
    assert_eq!(read(&journal).matches("started").count(), 1, "one for all");
}

#[test]
fn a_coordinator_is_told_of_the_servers_and_workers_have_the_tools() {
    let (bench, _) = bench(Script::new().turn(Turn::text("Fine.")), &[]);
    stream(&bench, &["--coordinator"]);
    let system = bench.server.requests()[0].system_text();
    assert!(system.contains("Connected MCP servers: kit"), "{system}");
    assert!(system.contains("mcp__kit__echo"), "{system}");
}

#[test]
fn the_list_shows_how_each_server_stands() {
    let (bench, _) = bench(Script::new(), &[]);
    bench.file(
        ".mcp.json",
        "{\"mcpServers\": {\n\"theirs\": {\"command\": \"x\"},\n\"kit\": {\"command\": \"y\"},\n\"odd\": {}}}",
    );
    let listed = bench.run(&["mcp", "list", "--json"]);
    let told = parsed(&listed.stdout);
    let rows: Vec<(&str, &str, &str, usize)> = told["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["name"].as_str().unwrap(),
                row["status"].as_str().unwrap(),
                row["origin"].as_str().unwrap(),
                row["tools"].as_array().unwrap().len(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("kit", "connected", "user", 14),
            ("theirs", "needs-approval", "project", 0)
        ]
    );
    let problems = told["problems"].to_string();
    assert!(
        problems.contains(".mcp.json:4: mcpServers.odd: it needs"),
        "{problems}"
    );
    assert!(
        problems.contains("mcpServers.kit: left out, the server `kit` goes by that name already"),
        "{problems}"
    );
    assert_eq!(listed.status.code(), Some(1));
    let text = bench.run(&["mcp", "list"]).stdout;
    assert!(text.contains("kit  connected\n"), "{text}");
    assert!(
        bench
            .run(&["doctor"])
            .stdout
            .contains("kit, theirs (needs approval)"),
        "doctor does not tell"
    );
    nobody_left(&bench);
}

/// A bench whose server obeys a file, its journal and that file.
pub(crate) fn obedient(script: Script, more: &[&str]) -> (Bench, PathBuf, PathBuf) {
    let args = [&["--control", "{home}/control"], more].concat();
    let (bench, journal) = bench(script, &args);
    let control = bench.room.home().join("control");
    (bench, journal, control)
}

pub(crate) fn tell(control: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).open(control).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn monitor(bench: &Bench, metadata: &[&str]) -> String {
    let base = [
        "task",
        "create",
        "--json",
        "--type",
        "monitor_mcp",
        "--subject",
        "watch",
        "--metadata",
        "server=kit",
    ];
    let finished = bench.run(&[&base, metadata].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let id = parsed(&finished.stdout)["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(id.starts_with("m-"), "{id}");
    id
}

/// The output without its times.
fn events(bench: &Bench, id: &str) -> Vec<String> {
    let text = bench.run(&["task", "output", id]).stdout;
    let lines = text.lines();
    lines
        .map(|line| {
            line.split_once(' ')
                .map_or(line, |(_, rest)| rest)
                .to_owned()
        })
        .collect()
}

#[test]
fn a_monitor_records_what_a_server_tells_until_it_has_enough() {
    for era in [&[][..], &["--newer"]] {
        let (bench, journal, control) = obedient(Script::new(), era);
        let id = monitor(&bench, &["resources=note:///today", "max_events=3"]);
        wait_for("the subscription", || {
            read(&journal).contains("subscribed note:///today")
        });
        wait_for("the first line", || !events(&bench, &id).is_empty());
        for (count, line) in [(2, "update"), (3, "tools"), (4, "update")] {
            tell(&control, line);
            wait_for(line, || events(&bench, &id).len() == count);
        }
        let record = ended(&bench, &id);
        assert_eq!(record["status"], "completed", "{record}");
        assert_eq!(
            events(&bench, &id),
            [
                "watching `kit`: note:///today",
                "1 resource updated: note:///today",
                "2 list of tools changed",
                "3 resource updated: note:///today"
            ]
        );
        let result = record["metadata"]["result"].as_str().unwrap();
        assert!(
            result.starts_with("3 events: 1 × list of tools changed, 2 × resource updated\n"),
            "{result}"
        );
        nobody_left(&bench);
    }
}

#[test]
fn a_monitor_sees_a_death_a_return_and_the_end() {
    let (bench, journal, control) = obedient(Script::new(), &["--refuse", "{home}/refuse"]);
    let id = monitor(&bench, &["interval_s=1"]);
    wait_for("the first line", || !events(&bench, &id).is_empty());
    tell(&control, "log all is well");
    wait_for("the log", || events(&bench, &id).len() == 2);
    tell(&control, "die");
    wait_for("the second life", || {
        read(&journal).matches("subscribed").count() == 2
    });
    wait_for("the news of it", || events(&bench, &id).len() == 5);
    fs::write(bench.room.home().join("refuse"), "").unwrap();
    tell(&control, "die");
    let record = ended(&bench, &id);
    assert_eq!(record["status"], "failed");
    assert!(
        record["error"]
            .as_str()
            .unwrap()
            .contains("refusing to start"),
        "{record}"
    );
    assert_eq!(
        events(&bench, &id),
        [
            "watching `kit`: note:///today",
            "1 log warning: [testkit] all is well",
            "2 down: it has ended",
            "watching `kit`: note:///today",
            "3 up: connected anew",
            "4 down: it has ended",
            "5 gone: 5 tries to connect failed"
        ]
    );
    nobody_left(&bench);
}

#[test]
fn a_monitor_over_http_sees_an_update_and_that_nobody_answers_any_more() {
    let bench = Bench::new(Script::new());
    let (journal, control) = (bench.room.home().join("j"), bench.room.home().join("c"));
    let args = [
        "--journal",
        journal.to_str().unwrap(),
        "--control",
        control.to_str().unwrap(),
    ];
    let (running, url) = http_server(&bench, &args);
    let settings = servers(&[("kit", json!({ "url": url }))]);
    fs::write(bench.room.codespar_home().join("settings.json"), settings).unwrap();
    let id = monitor(&bench, &["interval_s=1", "max_events=2"]);
    wait_for("the watch", || {
        read(&journal).contains("streaming") && !events(&bench, &id).is_empty()
    });
    tell(&control, "update");
    wait_for("the update", || events(&bench, &id).len() == 2);
    running.kill_9().unwrap();
    assert_eq!(ended(&bench, &id)["status"], "completed");
    let told = events(&bench, &id);
    assert_eq!(told[1], "1 resource updated: note:///today");
    assert!(told[2].starts_with("2 down: "), "{told:?}");
    nobody_left(&bench);
}

#[test]
fn a_monitor_whose_process_dies_is_taken_up_again() {
    let (bench, journal, control) = obedient(Script::new(), &[]);
    let id = monitor(&bench, &["max_events=2"]);
    wait_for("the first line", || !events(&bench, &id).is_empty());
    tell(&control, "update");
    wait_for("the event", || events(&bench, &id).len() == 2);
    let runners = codespar_testkit::process::processes_with_cmdline("worker --until-idle").unwrap();
    let ours = bench.room.alive().unwrap();
    for runner in runners.into_iter().filter(|pid| ours.contains(pid)) {
        codespar_testkit::process::kill_9(runner).unwrap();
    }
    let watching = bench.start(&["task", "watch", &id]);
    wait_for("the second watch", || {
        read(&journal).matches("subscribed").count() == 2
    });
    tell(&control, "update");
    assert_eq!(watching.wait(PATIENCE).unwrap().status.code(), Some(0));
    assert_eq!(
        events(&bench, &id),
        [
            "watching `kit`: note:///today",
            "1 resource updated: note:///today",
            "taken up again; events in between are not known",
            "watching `kit`: note:///today",
            "2 resource updated: note:///today"
        ]
    );
    nobody_left(&bench);
}

#[test]
fn an_agent_starts_a_monitor_and_is_told_of_its_end() {
    let create = json!({
        "task_type": "monitor_mcp", "subject": "watch it",
        "metadata": {"server": "kit", "duration_s": 1},
    });
    let script = Script::new()
        .turn(Turn::tool("TaskCreate", &create))
        .turn(Turn::text("Watching."))
        .turn(Turn::text("Seen: {{last_user_text}}"));
    let (bench, _, control) = obedient(script, &[]);
    let running = bench.start(
        &[
            &["-p", "go", "--output-format", "stream-json"],
            &ALLOWED[..],
        ]
        .concat(),
    );
    let output = bench.room.codespar_home().join("task-output");
    let is_watching = || {
        let list = |dir| fs::read_dir(dir).into_iter().flatten().flatten();
        let mut files = list(output.clone()).flat_map(|tree| list(tree.path()));
        files.any(|file| read(&file.path()).contains("watching"))
    };
    wait_for("the watch", is_watching);
    tell(&control, "log hello");
    let finished = running.wait(PATIENCE).unwrap();
    let lines = json_lines(&finished.stdout);
    let progress = lines.iter().find(|line| line["subtype"] == "task_progress");
    assert_eq!(
        progress.unwrap()["description"],
        "1 log warning: [testkit] hello"
    );
    let result = lines.last().unwrap()["result"].as_str().unwrap();
    assert!(
        result.contains("<status>completed</status>")
            && result.contains("1 event: 1 × log warning"),
        "{result}"
    );
    nobody_left(&bench);
}

#[test]
fn a_monitor_of_a_server_that_is_not_there_is_refused_before_it_is_made() {
    let (bench, _) = bench(Script::new(), &[]);
    let create = |metadata: &str| {
        bench.run(&[
            "task",
            "create",
            "--type",
            "monitor_mcp",
            "--subject",
            "s",
            "--metadata",
            metadata,
        ])
    };
    let unknown = create("server=nobody");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        unknown
            .stderr
            .contains("there is no MCP server `nobody`; there are: kit"),
        "{}",
        unknown.stderr
    );
    bench.file(".mcp.json", &servers(&[("theirs", entry(&[]))]));
    let waiting = create("server=theirs");
    assert_eq!(waiting.status.code(), Some(1));
    assert!(
        waiting.stderr.contains("is not approved"),
        "{}",
        waiting.stderr
    );
    assert_eq!(
        parsed(&bench.run(&["task", "list", "--json"]).stdout)["tasks"],
        json!([])
    );
}

/// The reference server of the protocol's makers, installed by `cargo xtask test`.
#[test]
#[ignore = "needs a package of npm; cargo xtask test installs and runs it where npm is"]
fn the_reference_server_is_understood() {
    let target = Path::new(env!("CARGO_BIN_EXE_codespar"))
        .parent()
        .and_then(Path::parent)
        .unwrap();
    let script = target
        .join("mcp-reference/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    assert!(script.exists(), "cargo xtask test installs it, with npm");
    let bench = Bench::new(calls(&[
        ("echo", json!({"message": "reference"})),
        ("get-sum", json!({"a": 2, "b": 40})),
        ("get-tiny-image", json!({})),
    ]));
    let config = json!({"command": "node", "args": [script, "stdio"]});
    let settings = servers(&[("kit", config)]);
    fs::write(bench.room.codespar_home().join("settings.json"), settings).unwrap();
    let lines = stream(&bench, &ALLOWED);
    assert_eq!(lines[0]["mcp_servers"][0]["status"], "connected");
    let results = tool_results(&lines);
    assert_eq!(results[0], "Echo: reference");
    assert!(results[1].contains("42"), "{results:?}");
    let picture = lines.iter().rfind(|line| line["type"] == "user").unwrap();
    assert!(
        picture.to_string().contains("\"media_type\":\"image/png\""),
        "no picture"
    );
}
