//! Questions of agents: shown, never answered by a stray key.

use std::{
    fs,
    time::{Duration, Instant},
};

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::json;

use crate::{
    common::{Bench, PATIENCE},
    harness::{Terminal, focus, until},
};

#[test]
fn an_edit_is_shown_asked_about_and_made() {
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"});
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Edit", &edit))
            .turn(Turn::text("done")),
    );
    let file = bench.file("a.txt", "one\ntwo\nthree\n");
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("change it\r");
    terminal.shows("y yes, once");
    let screen = terminal.screen();
    assert!(screen.contains("2 - two"), "{screen}");
    assert!(screen.contains("2 + 2"), "{screen}");
    // A key that comes before the question was seen would be for the composer.
    focus(&mut terminal);
    terminal.types("y");
    terminal.shows("2 turns");
    assert_eq!(fs::read_to_string(file).unwrap(), "one\n2\nthree\n");
}

#[test]
fn typing_when_a_question_appears_approves_nothing() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Bash", &json!({"command": "touch made"})))
            .turn(Turn::text("done")),
    );
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("go\r");
    let began = Instant::now();
    while !terminal.screen().contains("tab answers this question") {
        terminal.types("y");
        std::thread::sleep(Duration::from_millis(30));
        assert!(began.elapsed() < PATIENCE, "{}", terminal.screen());
    }
    for _ in 0..20 {
        terminal.types("y");
        std::thread::sleep(Duration::from_millis(30));
    }
    let screen = terminal.screen();
    assert!(screen.contains("tab answers this question"), "{screen}");
    assert!(!bench.work().join("made").exists());
    terminal.types("\t");
    terminal.types("n\r");
    terminal.shows("2 turns");
    assert!(!bench.work().join("made").exists());
}

#[test]
fn a_question_of_a_background_agent_waits_in_the_session_for_its_answer() {
    let start = json!({
        "description": "make a file", "prompt": "make it", "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    let bench = Bench::new(
        Script::new()
            .conversation(
                Conversation::new("main", Matcher::first_user_contains("begin"))
                    .turn(Turn::tool("Task", &start))
                    .turn(Turn::text("it works"))
                    .turn(Turn::text("heard of it")),
            )
            .conversation(
                Conversation::new("agent", Matcher::first_user_contains("make it"))
                    .turn(Turn::tool("Bash", &json!({"command": "touch made"})))
                    .turn(Turn::text("made")),
            ),
    );
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("begin\r");
    terminal.shows("y yes, once");
    terminal.shows("it works");
    // The prompt is there meanwhile, and the question stays.
    terminal.types("half a thought");
    terminal.shows("› half a thought");
    assert!(terminal.screen().contains("touch made"));
    assert!(!bench.work().join("made").exists());
    terminal.types("\x03");
    focus(&mut terminal);
    terminal.types("y");
    until("the file", || bench.work().join("made").exists());
    terminal.shows("heard of it");
}

#[test]
fn an_edited_command_runs_as_it_was_edited() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Bash", &json!({"command": "touch made"})))
            .turn(Turn::text("done")),
    );
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("go\r");
    terminal.shows("y yes, once");
    focus(&mut terminal);
    terminal.types("e");
    terminal.shows("touch made");
    terminal.types("-by-me");
    terminal.shows("touch made-by-me");
    terminal.types("\r");
    // Keys right after an edit are not taken as an answer.
    std::thread::sleep(Duration::from_millis(1_500));
    terminal.types("y");
    terminal.shows("2 turns");
    assert!(bench.work().join("made-by-me").exists());
    assert!(!bench.work().join("made").exists());
    let request = bench.server.last_request().unwrap();
    let result = request.last_message().to_string();
    assert!(result.contains("touch made-by-me"), "{result}");
}

#[test]
fn a_hunk_that_is_refused_is_not_written_and_the_model_is_told() {
    let lines = |first: &str, last: &str| {
        let middle: String = (1..30).map(|n| format!("line {n}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    let new = lines("new first", "new last");
    let write = json!({"file_path": "a.txt", "content": new});
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool("Read", &json!({"file_path": "a.txt"})))
            .turn(Turn::tool("Write", &write))
            .turn(Turn::text("done")),
    );
    let file = bench.file("a.txt", &lines("old first", "old last"));
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("change it\r");
    terminal.shows("y yes, once");
    focus(&mut terminal);
    terminal.types("1");
    terminal.shows("yes, once, without hunk 1");
    // Keys right after an edit are not taken as an answer.
    std::thread::sleep(Duration::from_millis(1_500));
    terminal.types("y");
    terminal.shows("3 turns");
    let written = fs::read_to_string(file).unwrap();
    assert_eq!(written, lines("old first", "new last"));
    let request = bench.server.last_request().unwrap();
    let result = request.last_message().to_string();
    assert!(result.contains("refused"), "{result}");
}

#[test]
fn the_last_lines_of_a_running_command_are_shown() {
    let command = "for n in 1 2 3 4 5 6; do echo line $n of it; done; sleep 1000";
    let bench = Bench::new(Script::new().turn(Turn::tool("Bash", &json!({"command": command}))));
    let mut terminal = Terminal::start(&bench, "--permission-mode bypassPermissions");
    terminal.types("go\r");
    terminal.shows("line 6 of it");
    assert!(!terminal.screen().contains("line 3 of it"));
    terminal.types("\x1b");
    terminal.shows("interrupted");
}
