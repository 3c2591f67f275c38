//! Tasks of a session: the list of them, messages to their agents, and going back while they run.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::json;

use crate::{
    common::Bench,
    harness::{Terminal, until},
};

/// "begin" starts an agent in the background that runs a command.
fn with_agent(command: &str) -> Bench {
    let start = json!({
        "description": "count things", "prompt": "look", "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    let script = Script::new()
        .conversation(
            Conversation::new("main", Matcher::first_user_contains("begin"))
                .turn(Turn::tool("Task", &start))
                .turn(Turn::text("started"))
                .turn(Turn::text("heard of it")),
        )
        .conversation(
            Conversation::new("look", Matcher::first_user_contains("look"))
                .turn(Turn::tool("Bash", &json!({ "command": command })))
                .turn(Turn::text("I counted")),
        );
    Bench::new(script)
}

#[test]
fn the_list_of_tasks_shows_stops_and_opens_them() {
    let bench = with_agent("sleep 1000");
    let mut terminal = Terminal::start(&bench, "--allowedTools 'Bash(sleep *)'");
    terminal.types("begin\r");
    terminal.shows("started");
    terminal.shows("sleep 1000");
    terminal.types("/tasks\r");
    terminal.shows("1 running · 1 in all");
    terminal.types("o");
    terminal.shows("Transcript");
    terminal.shows("sleep 1000");
    terminal.types("q");
    terminal.shows("1 running · 1 in all");
    terminal.types("s");
    terminal.shows("y stops");
    terminal.types("y");
    terminal.shows("0 running · 1 in all");
    terminal.types("\x1b");
    terminal.shows("heard of it");
}

#[test]
fn a_message_from_the_list_of_tasks_reaches_the_agent() {
    let bench = with_agent("until [ -e go ]; do sleep 0.1; done");
    let mut terminal = Terminal::start(&bench, "--permission-mode bypassPermissions");
    terminal.types("begin\r");
    terminal.shows("started");
    terminal.shows("until [ -e go ]");
    terminal.types("/tasks\r");
    terminal.shows("1 running · 1 in all");
    terminal.types("m");
    terminal.types("count the tabs too");
    terminal.shows("count the tabs too");
    terminal.types("\r");
    terminal.types("\x1b");
    terminal.shows("/help shows the commands");
    bench.file("go", "");
    terminal.shows("heard of it");
    let requests = bench.server.requests();
    let has_message = |body: &[u8]| String::from_utf8_lossy(body).contains("count the tabs too");
    let told = requests
        .iter()
        .filter(|request| has_message(request.body()));
    assert_eq!(told.count(), 1);
}

#[test]
fn going_back_stops_the_agents_that_were_started_since() {
    let bench = with_agent("sleep 1000");
    let mut terminal = Terminal::start(&bench, "--allowedTools 'Bash(sleep *)'");
    terminal.types("begin\r");
    terminal.shows("started");
    terminal.shows("sleep 1000");
    let go_back = |terminal: &mut Terminal| {
        terminal.types("/rewind\r");
        terminal.shows("Go back to before");
        terminal.types("\r");
        terminal.shows("What goes back");
        terminal.types("\r");
        terminal.shows("1 task not over");
        assert!(terminal.screen().contains("count things"));
    };
    go_back(&mut terminal);
    // The second choice leaves everything.
    terminal.types("\x1b[B\r");
    terminal.shows("nothing was changed");
    go_back(&mut terminal);
    terminal.types("\r");
    terminal.shows("go back");
    terminal.types("\r");
    terminal.shows("/rewind undo takes it back");
    terminal.shows("› begin");
    terminal.types("\x03");
    terminal.types("/tasks\r");
    terminal.shows("0 running · 1 in all");
    terminal.types("\x1b");
    // The end of the agent is not told to a conversation that does not know of it.
    until("the end of the command", || {
        let requests = bench.server.requests();
        requests.len() == 3
    });
    terminal.types("/cost\r");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(bench.server.request_count(), 3);
}
