//! The transcript on a screen of its own.

use codespar_testkit::{Script, Turn};
use serde_json::json;

use crate::{common::Bench, harness::Terminal};

#[test]
fn calls_are_folded_and_opened_by_a_key_and_by_a_search() {
    let print = |text: &str| {
        let command = format!("printf 'the %s {text}' result");
        Turn::tool("Bash", &json!({ "command": command }))
    };
    let bench = Bench::new(
        Script::new()
            .turn(print("number one"))
            .turn(print("number two"))
            .turn(Turn::text("That is all.")),
    );
    let mut terminal = Terminal::start(&bench, "--allowedTools 'Bash(printf *)'");
    terminal.types("go\r");
    terminal.shows("3 turns");
    terminal.types("\x14");
    terminal.shows("Transcript");
    let screen = terminal.screen();
    assert_eq!(screen.matches("▸ ● Bash").count(), 2, "{screen}");
    assert!(!screen.contains("the result number"), "{screen}");
    // The last call on the screen, then the one before it.
    terminal.types("\t\r");
    terminal.shows("the result number two");
    terminal.types("\r");
    terminal.types("\x1b[Z\r");
    terminal.shows("the result number one");
    let screen = terminal.screen();
    assert!(!screen.contains("the result number two"), "{screen}");
    // What is found is opened.
    terminal.types("/result number two\r");
    terminal.shows("the result number two");
    terminal.types("q");
    terminal.shows("That is all.");
    terminal.shows("3 turns");
}
