//! Hooks hold for the agent engine.

use codespar_testkit::{Conversation, Matcher, Turn};
use serde_json::json;

use crate::{
    repair::talkative_with,
    repository::{commit_all, dev, script},
};

#[test]
fn a_hook_of_the_repository_refuses_a_call_of_the_agent_engine() {
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool(
        "Bash",
        &json!({"command": "sed -i s/hello/hey/ greet.sh"}),
    ))
    .turn(Turn::tool("Read", &json!({"file_path": "greet.sh"})))
    .turn(Turn::tool(
        "Edit",
        &json!({"file_path": "greet.sh", "old_string": "hello", "new_string": "hi"}),
    ))
    .turn(Turn::text("Say hi"));
    let bench = talkative_with(script(&["greet.sh"], []).conversation(agent));
    let hook = json!({"type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/tools/check.sh"});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    bench.file(".claude/settings.json", &settings.to_string());
    bench.file("tools/check.sh", "echo edit with the tool >&2; exit 2\n");
    commit_all(&bench, "hooks");
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi", "--engine", "agent"]);
    assert_eq!(code, Some(0), "{report}");
    let requests = bench.server.requests();
    let last = requests.iter().rev().find(|request| {
        let first = request.messages()[0].to_string();
        first.contains("throw-away copy at one commit")
    });
    let results = last.unwrap().tool_results();
    assert_eq!(
        results[0].text.lines().next(),
        Some("permission denied: a PreToolUse hook refused it: edit with the tool")
    );
}
