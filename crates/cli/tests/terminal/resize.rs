//! Resizes of the terminal while an answer comes.

use std::time::Duration;

use codespar_testkit::{Script, Turn};

use crate::{
    common::Bench,
    harness::{Terminal, until},
    reflowing::Reflowing,
};

pub(crate) const WIDTHS: [u16; 8] = [200, 40, 120, 40, 160, 60, 50, 140];

fn lines() -> Vec<String> {
    let lines = (0..400).map(|n| format!("row {n:05} of the answer"));
    lines.collect()
}

/// It comes for two seconds and more.
pub(crate) fn bench() -> Bench {
    let answer = format!("```\n{}\n```\n", lines().join("\n"));
    let turn = Turn::text(answer).chunk(20).delay(Duration::from_millis(5));
    Bench::new(Script::new().turn(turn))
}

/// What the terminal has once nothing is under way.
pub(crate) fn at_rest(mut seen: impl FnMut() -> Vec<String>) -> Vec<String> {
    let is_live = |row: &String| row.contains("esc interrupts");
    until("the end of the turn", || !seen().iter().any(is_live));
    seen()
}

/// Every line of the answer once and in order, and of nothing else more than there should be: what
/// was in the live region for a while has left no trace.
pub(crate) fn has_no_debris(seen: &[String]) {
    let is_answer = |row: &&String| row.contains("row ") || row.contains("of the");
    let answer: Vec<&String> = seen.iter().filter(is_answer).collect();
    assert_eq!(answer, lines().iter().collect::<Vec<_>>());
    let after = seen.iter().rposition(|row| row.contains("of the answer"));
    let begin = seen.iter().position(|row| row.starts_with("› count"));
    let (begin, after) = (begin.unwrap(), after.unwrap());
    let between = &seen[begin + 1..=after];
    let is_foreign = |row: &&String| !row.is_empty() && !row.contains("of the answer");
    let foreign: Vec<&String> = between.iter().filter(is_foreign).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
    let count = |text: &str| seen.iter().filter(|row| row.contains(text)).count();
    assert_eq!(count("/help shows the commands"), 1, "{seen:#?}");
}

#[test]
fn a_terminal_that_cuts_rows_has_no_debris_after_resizes_while_an_answer_comes() {
    let bench = bench();
    let mut terminal = Terminal::start(&bench, "");
    // What is sent before that stands above it.
    terminal.shows("Ctrl-D leaves");
    terminal.types("count\r");
    terminal.shows("row 00010");
    for columns in WIDTHS {
        terminal.resize(&bench, columns);
        std::thread::sleep(Duration::from_millis(150));
    }
    terminal.shows("1 turn");
    has_no_debris(&at_rest(|| terminal.scrollback(WIDTHS[7])));
}

#[test]
fn a_terminal_that_reflows_has_no_debris_after_resizes_while_an_answer_comes() {
    let bench = bench();
    let terminal = Reflowing::start(&bench);
    // What is sent before that stands above it.
    terminal.shows("Ctrl-D leaves");
    terminal.types("count\r");
    terminal.shows("row 00010");
    for columns in WIDTHS {
        terminal.resize(&bench, columns);
        std::thread::sleep(Duration::from_millis(150));
    }
    terminal.shows("1 turn");
    has_no_debris(&at_rest(|| terminal.lines()));
}
