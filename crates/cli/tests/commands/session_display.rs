//! What a session shows of tasks beside the conversation.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::json;

use crate::common::{Bench, parsed, session};

#[test]
fn the_end_of_a_task_shows_the_first_lines_of_its_result_and_where_the_others_are() {
    let lines: Vec<String> = (1..=9).map(|n| format!("finding {n}")).collect();
    let start = json!({
        "description": "count things", "prompt": "look", "subagent_type": "Explore",
        "run_in_background": true,
    });
    let script = Script::new()
        .conversation(
            Conversation::new("main", Matcher::first_user_contains("begin"))
                .turn(Turn::tool("Task", &start))
                .turn(Turn::text("started"))
                .turn(Turn::text("all nine are there")),
        )
        .conversation(
            Conversation::new("look", Matcher::first_user_contains("look"))
                .turn(Turn::text(lines.join("\n"))),
        );
    let bench = Bench::new(script);
    let shown = session(
        &bench,
        &[
            ("›", "begin"),
            ("all nine are there", "/task-status"),
            ("local_agent", "/quit"),
        ],
    );
    let listed = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let id = listed["tasks"][0]["task_id"].as_str().unwrap();
    for text in [
        &format!("started as {id} · /task-status {id}"),
        "finding 1",
        "finding 5",
        &format!("… 4 more lines · /task-status {id}"),
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("finding 6"), "{shown}");
    // Nobody is asked for a line after the end.
    let last = shown.trim_end().lines().last().unwrap();
    assert!(last.contains("Resume with: codespar --resume"), "{shown}");

    let digits = id.split_once('-').unwrap().1;
    let shown = session(
        &bench,
        &[
            ("›", &format!("/task-status {}", &digits[..6])),
            ("finding 9", "/quit"),
        ],
    );
    assert!(shown.contains("finding 6"), "{shown}");
}
