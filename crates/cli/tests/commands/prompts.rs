//! What agents are told, as it reaches the model: nothing they cannot use, all they need.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::{Value, json};

use crate::common::Bench;

/// Names that are no English words: where one stands, the tool is meant.
const TOOLS: [&str; 17] = [
    "Grep",
    "Glob",
    "WebFetch",
    "TodoWrite",
    "Skill tool",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TaskStop",
    "TaskOutput",
    "TeamCreate",
    "TeamDelete",
    "SendMessage",
    "subscribe_pr_activity",
    "LS",
    "NotebookEdit",
];

const SKILL: &str = ".codespar/skills/deploy/SKILL.md";
const SKILL_TEXT: &str = "---\nname: deploy\ndescription: puts it on the server\n---\nRun it.\n";

/// System prompt, tool descriptions and schemas.
fn told(request: &Value) -> String {
    let system = request["system"].to_string();
    // A coordinator knows what its workers have.
    let (before, after) = system.split_once("Workers have: ").unwrap_or((&system, ""));
    let after = after.split_once("\\n").map_or("", |(_, after)| after);
    format!("{before}{after}\n{}", request["tools"])
}

fn names(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

fn mentions(text: &str, name: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(continues) && !after.is_some_and(continues)
    })
}

/// Every request that was made mentions only tools that it offers.
fn check_all(bench: &Bench) -> usize {
    let requests = bench.server.requests();
    for request in &requests {
        let request = request.json();
        let (text, offered) = (told(request), names(request));
        for tool in TOOLS {
            let name = tool.split(' ').next().unwrap();
            let has = offered.iter().any(|offered| offered == name);
            assert!(
                has || !mentions(&text, tool),
                "{tool} for {offered:?} in {text}"
            );
        }
    }
    requests.len()
}

fn with_a_skill(script: Script) -> Bench {
    let bench = Bench::new(script);
    bench.file(SKILL, SKILL_TEXT);
    bench
}

#[test]
fn no_agent_is_told_of_a_tool_that_it_lacks() {
    let mut turn = Turn::new();
    for kind in ["Explore", "Plan", "Bash", "general-purpose"] {
        let input = json!({"description": "a look", "prompt": "look", "subagent_type": kind});
        turn = turn.and_tool("Task", &input);
    }
    let script = Script::new()
        .conversation(
            Conversation::new("main", Matcher::first_user_contains("begin"))
                .turn(turn)
                .turn(Turn::text("done")),
        )
        .conversation(
            Conversation::new("others", Matcher::first_user_contains("look"))
                .turns((0..8).map(|_| Turn::text("seen"))),
        );
    let bench = with_a_skill(script);
    bench.run(&["--trust", "-p", "begin"]);
    assert_eq!(check_all(&bench), 6);

    let fewer = with_a_skill(Script::new().turn(Turn::text("hi")));
    let denied = "Grep,Glob,TodoWrite,Skill,WebFetch,LS,SendMessage";
    fewer.run(&["--trust", "-p", "hello", "--disallowedTools", denied]);
    assert_eq!(check_all(&fewer), 1);
}

#[test]
fn a_simple_worker_has_three_tools_and_its_prompts_know() {
    for variables in [
        ["CODESPAR_SIMPLE", "CODESPAR_COORDINATOR_MODE"],
        ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_COORDINATOR_MODE"],
    ] {
        let start = json!({"description": "a look", "prompt": "look"});
        let script = Script::new()
            .conversation(
                Conversation::new("main", Matcher::first_user_contains("begin"))
                    .turn(Turn::tool("Agent", &start))
                    .turn(Turn::text("waiting"))
                    .turn(Turn::text("done")),
            )
            .conversation(
                Conversation::new("worker", Matcher::first_user_contains("look"))
                    .turn(Turn::text("seen")),
            );
        let bench = with_a_skill(script);
        let mut command = bench.command(&["--trust", "-p", "begin"]);
        for variable in variables {
            command.env(variable, "1");
        }
        codespar_testkit::process::spawn(&mut command)
            .unwrap()
            .wait(crate::common::PATIENCE)
            .unwrap();
        assert_eq!(check_all(&bench), 4);
        let requests = bench.server.requests();
        let of_worker = requests
            .iter()
            .map(|request| request.json())
            .find(|request| names(request).contains(&"Bash".to_owned()))
            .unwrap();
        let mut offered = names(of_worker);
        offered.sort_unstable();
        assert_eq!(offered, ["Bash", "Edit", "Read"]);
        // Its workers cannot load skills, so the coordinator does not delegate them.
        let coordinator = requests[0].json()["system"].to_string();
        assert!(!coordinator.contains("load skills"), "{coordinator}");
    }
}

#[test]
fn a_coordinator_learns_its_work_within_nine_kilobytes() {
    let skill = (SKILL, SKILL_TEXT);
    let bench = crate::common::git::repository(Script::new().turn(Turn::text("hi")), &[skill]);
    bench.run(&["--trust", "-p", "hello", "--coordinator"]);
    let request = bench.server.last_request().unwrap();
    let request = request.json();
    let system = request["system"][0]["text"].as_str().unwrap();
    let prompt = system.split("\n\nWhere you are").next().unwrap();
    assert!(prompt.len() <= 9 * 1024, "{} bytes", prompt.len());
    for taught in [
        "Leave `model` out",
        "Never start one worker to check on another",
        "no worker is started to repeat, format or announce",
        "nobody wrote it and nobody wants thanks",
        "<summary>Agent \"Find session expiry\" completed</summary>",
        "continue it with the error: it has the context",
        "A stopped worker keeps all it has seen",
        "Each prompt has a purpose",
        "| situation | do |",
        "Good: ",
        "Bad: ",
        "## A short example",
        "subscribe_pr_activity",
        "Silence about conflicts means nothing",
        "Workers can load skills",
        "Workers have: ",
        "Scratchpad",
    ] {
        assert!(prompt.contains(taught), "{taught}: {prompt}");
    }
    assert!(!prompt.contains("{{"), "{prompt}");
}
