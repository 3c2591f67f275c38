//! Slash commands, and commands of the project and the user.

use std::fs;

use codespar_testkit::{Script, Turn};
use serde_json::json;

use crate::{
    common::Bench,
    harness::{Terminal, focus},
};

#[test]
fn commands_of_the_session_work() {
    let bench = Bench::new(Script::new().turn(Turn::text("ran it")));
    bench.file(".codespar/commands/git/tidy.md", "Tidy up $ARGUMENTS");
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("/modle\r");
    terminal.shows("did you mean /model?");
    terminal.types("#always run the tests\r");
    terminal.shows("noted in ");
    let notes = fs::read_to_string(bench.work().join("AGENTS.md")).unwrap();
    assert_eq!(notes, "- always run the tests\n");
    terminal.types("!echo from the shell\r");
    terminal.shows("Bash echo from the shell");
    terminal.types("/git:tidy the branches\r");
    terminal.shows("1 turn");
    let request = bench.server.last_request().unwrap();
    let sent = String::from_utf8_lossy(request.body()).into_owned();
    assert!(sent.contains("Tidy up the branches"), "{sent}");
    assert!(sent.contains("from the shell"), "{sent}");
    terminal.types("/mode plan\r");
    terminal.shows("· plan ·");
    terminal.types("\x1b[Z");
    terminal.shows("· default ·");
    terminal.types("/quit\r");
    assert_eq!(terminal.exit_code(), Some(0));
}

const TOUCH: &str =
    "---\nallowed-tools: Bash(touch *), Bash(echo *)\n---\nIt says: !`touch made; echo made it`";

#[test]
fn a_command_in_a_file_of_the_user_runs_by_its_own_rules_for_one_turn() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::text("one"))
            .turn(Turn::tool("Bash", &json!({"command": "touch later"})))
            .turn(Turn::text("two")),
    );
    let file = bench.room.home().join(".claude/commands/make.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, TOUCH).unwrap();
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("/make\r");
    terminal.shows("one");
    assert!(bench.work().join("made").exists());
    let request = bench.server.last_request().unwrap();
    let last = request.last_message().to_string();
    assert!(last.contains("It says: made it"), "{last}");
    // The rule is gone with its turn.
    terminal.types("again\r");
    terminal.shows("y yes, once");
    focus(&mut terminal);
    terminal.types("n\r");
    terminal.shows("two");
    assert!(!bench.work().join("later").exists());
}

#[test]
fn a_command_in_a_file_of_an_untrusted_project_is_asked_about() {
    let bench = Bench::new(Script::new().turn(Turn::text("one")));
    bench.file(".claude/commands/make.md", TOUCH);
    let mut terminal = Terminal::start_untrusted(&bench);
    terminal.types("/make\r");
    terminal.shows("y yes, once");
    focus(&mut terminal);
    terminal.types("n\r");
    terminal.shows("permission denied");
    assert!(!bench.work().join("made").exists());
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn a_file_of_a_project_reads_nothing_outside_without_a_question() {
    let bench = Bench::new(Script::new().turn(Turn::text("one")));
    let outside = bench.room.home().join("private.txt");
    fs::write(&outside, "not for the model").unwrap();
    let command = format!("Read @{} for me", outside.display());
    bench.file(".codespar/commands/read.md", &command);
    let mut terminal = Terminal::start(&bench, "");
    terminal.types("/read\r");
    terminal.shows("y yes, once");
    focus(&mut terminal);
    terminal.types("n\r");
    terminal.shows("was not attached");
    terminal.shows("one");
    let request = bench.server.last_request().unwrap();
    let sent = String::from_utf8_lossy(request.body()).into_owned();
    assert!(!sent.contains("not for the model"), "{sent}");
}

#[test]
fn going_back_restores_files_and_conversation_and_can_be_undone() {
    let bench = Bench::new(
        Script::new()
            .turn(Turn::tool(
                "Write",
                &json!({"file_path": "a.txt", "content": "new text\n"}),
            ))
            .turn(Turn::text("written"))
            .turn(Turn::text("and now")),
    );
    let mut terminal = Terminal::start(&bench, "--permission-mode acceptEdits");
    terminal.types("write it\r");
    terminal.shows("written");
    let file = bench.work().join("a.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new text\n");
    terminal.types("/rewind\r");
    terminal.shows("Go back to before");
    terminal.shows("a.txt");
    terminal.types("\r");
    terminal.shows("What goes back");
    terminal.types("\r");
    terminal.shows("would remove a.txt");
    assert!(file.exists());
    terminal.types("\r");
    terminal.shows("/rewind undo takes it back");
    assert!(!file.exists());
    // The message is there again, to be changed and sent.
    terminal.shows("› write it");
    terminal.types("\x03");
    terminal.types("/rewind undo\r");
    terminal.shows("would create a.txt");
    terminal.types("\r");
    terminal.shows("messages are again part");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new text\n");
    terminal.types("again\r");
    terminal.shows("and now");
    let request = bench.server.last_request().unwrap();
    assert_eq!(request.messages().len(), 5);
}
