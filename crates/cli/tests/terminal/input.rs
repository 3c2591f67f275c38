//! What is typed and pasted.

use codespar_testkit::{Script, Turn};

use crate::{common::Bench, harness::Terminal};

#[test]
fn a_long_paste_is_sent_whole_and_once() {
    let bench = Bench::new(Script::new().turn(Turn::text("read")));
    let mut terminal = Terminal::start(&bench, "");
    let long = format!("<{}>", "x".repeat(100_000));
    terminal.types(&format!("\x1b[200~{long}\x1b[201~"));
    terminal.shows("[pasted 100002 characters]");
    terminal.types("\r");
    terminal.shows("1 turn");
    let request = bench.server.last_request().unwrap();
    let sent = String::from_utf8_lossy(request.body()).into_owned();
    assert_eq!(sent.matches(&long).count(), 1);
}

#[test]
fn a_paste_of_many_lines_is_sent_whole_and_once() {
    let bench = Bench::new(Script::new().turn(Turn::text("read")));
    let mut terminal = Terminal::start(&bench, "");
    let lines: Vec<String> = (0..2_000).map(|n| format!("line {n:04} of it")).collect();
    // As a program on Windows would have them.
    terminal.types(&format!("\x1b[200~{}\x1b[201~", lines.join("\r\n")));
    terminal.shows("[pasted 2000 lines]");
    assert_eq!(bench.server.request_count(), 0);
    terminal.types("\r");
    terminal.shows("1 turn");
    let request = bench.server.last_request().unwrap();
    let last = request.last_message().to_string();
    let whole = serde_json::to_string(&lines.join("\n")).unwrap();
    assert_eq!(last.matches(whole.trim_matches('"')).count(), 1);
    assert_eq!(bench.server.request_count(), 1);
}

#[test]
fn text_of_any_script_is_sent_as_it_was_typed() {
    let bench = Bench::new(Script::new().turn(Turn::text("read")));
    let mut terminal = Terminal::start(&bench, "");
    let text = "日本語 👩\u{200d}💻 שלום e\u{301} ﷽ end";
    terminal.types(text);
    terminal.shows("end");
    terminal.types("\r");
    terminal.shows("1 turn");
    let request = bench.server.last_request().unwrap();
    let last = request.last_message().to_string();
    assert!(last.contains(text), "{last}");
}
