//! Single properties, each with an example.

use std::io;

use codespar_terminal::{
    Buffer, Color, Position, Rect, Size, Span, Style,
    painter::{Painter, Reflow},
    wrap::{Mark, OutputLine},
};

use crate::{
    emulators::{Alacritty, Emulator, Screen, Vt100},
    script::{Event, Log, frame},
};

pub(crate) fn rows(texts: &[&str], columns: u16) -> Buffer {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    frame(&texts, columns)
}

pub(crate) fn numbered(numbers: std::ops::Range<usize>) -> Vec<OutputLine> {
    numbers
        .map(|number| OutputLine::words(format!("line {number}")))
        .collect()
}

fn texts(screen: &Screen) -> Vec<String> {
    let rows = screen.rows.iter();
    let mut texts: Vec<String> = rows.map(|row| row.text.trim_end().to_owned()).collect();
    while texts.last().is_some_and(String::is_empty) {
        texts.pop();
    }
    texts
}

/// Moves what was written since the last time to the terminal.
pub(crate) fn feed(log: &Log, terminal: &mut dyn Emulator) {
    for event in log.0.take() {
        if let Event::Write(bytes) = event {
            terminal.write(&bytes);
        }
    }
}

pub(crate) fn show(log: &Log, terminal: &mut dyn Emulator) -> Vec<String> {
    feed(log, terminal);
    texts(&terminal.screen())
}

#[test]
fn nothing_is_written_when_nothing_changed() {
    let mut painter = Painter::new(Vec::new(), Size::new(40, 10), Reflow::Yes);
    let empty = rows(&[], 40);
    painter.draw(&empty, Some(Position::ORIGIN)).unwrap();
    assert_eq!(painter.bytes_written(), 0);
    let frame = rows(&["one", "two"], 40);
    painter.draw(&frame, Some(Position::new(2, 1))).unwrap();
    let written = painter.bytes_written();
    painter.draw(&frame, Some(Position::new(2, 1))).unwrap();
    painter.resize(Size::new(40, 10));
    painter.draw(&frame, Some(Position::new(2, 1))).unwrap();
    assert_eq!(painter.bytes_written(), written);
    painter.draw(&frame, Some(Position::new(1, 1))).unwrap();
    assert!(painter.bytes_written() > written);
}

#[test]
fn each_draw_is_one_write_and_synchronised_if_it_is_large() {
    let log = Log::default();
    let mut painter = Painter::new(log.clone(), Size::new(40, 10), Reflow::Yes);
    painter.commit(&numbered(0..100));
    painter.draw(&rows(&["a", "b"], 40), None).unwrap();
    painter.commit(&numbered(0..3));
    painter.draw(&rows(&["c"], 40), None).unwrap();
    let events = log.0.take();
    let writes = events.into_iter().map(|event| match event {
        Event::Write(bytes) => String::from_utf8(bytes).unwrap(),
        Event::Resize(..) => panic!("no resize"),
    });
    let [large, small] = &writes.collect::<Vec<_>>()[..] else {
        panic!("two draws")
    };
    assert!(large.starts_with("\x1b[?2026h") && large.ends_with("\x1b[?2026l"));
    assert!(small.len() < 256 && !small.contains("2026"));
}

#[test]
fn streaming_lines_costs_less_than_twice_their_text() {
    let mut painter = Painter::new(Vec::new(), Size::new(100, 30), Reflow::Yes);
    let region = rows(&["────────", "> ", "────────", "model · 12%"], 100);
    let cursor = Some(Position::new(2, 1));
    painter.draw(&region, cursor).unwrap();
    let before = painter.bytes_written();
    let text = "the quick brown fox jumps over the lazy dog, and then once more";
    for _ in 0..1000 {
        painter.commit(&[OutputLine::words(text)]);
        painter.draw(&region, cursor).unwrap();
    }
    let written = painter.bytes_written() - before;
    let plain = 1000 * text.len() as u64;
    assert!(written < 2 * plain, "{written} bytes for {plain}");
}

#[test]
fn a_long_answer_is_all_in_the_scrollback() {
    let size = Size::new(12, 12);
    for (count, batch) in [(300, 1), (2000, 7), (3000, 1000), (100_000, 100_000)] {
        let mut terminal = Alacritty::new(size);
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
        let region = rows(&["────", "> ", "────"], 12);
        for from in (0..count).step_by(batch) {
            painter.commit(&numbered(from..(from + batch).min(count)));
            painter.draw(&region, None).unwrap();
            feed(&log, &mut terminal);
        }
        let actual = texts(&terminal.screen());
        let lines = (0..count).map(|number| format!("line {number}"));
        let region = ["────", ">", "────"].map(str::to_owned);
        let expected: Vec<String> = lines.chain(region).collect();
        assert!(actual == expected, "{count} lines in batches of {batch}");
    }
}

/// Counts, and keeps nothing.
struct Sink;

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[test]
fn a_hundred_thousand_lines_need_no_memory() {
    let mut painter = Painter::new(Sink, Size::new(80, 24), Reflow::Yes);
    let region = rows(&["────", "> ", "────"], 80);
    let text = "wide enough to be wrapped by a terminal, ".repeat(3);
    let mut commit = |batch, count| {
        let lines = vec![OutputLine::whole(text.clone()); batch];
        for _ in 0..count {
            painter.commit(&lines);
            painter.draw(&region, None).unwrap();
        }
    };
    commit(2, 10);
    commit(1000, 3);
    let before = peak_kilobytes();
    commit(2, 1000);
    commit(1000, 98);
    let growth = peak_kilobytes() - before;
    assert!(painter.bytes_written() > 12_000_000);
    assert!(growth < 4000, "grew by {growth} kB");
}

#[test]
fn lines_of_exactly_the_width_leave_no_blank_row() {
    for columns in [10, 20, 40] {
        let size = Size::new(columns, 8);
        let mut terminal = Alacritty::new(size);
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
        let line = "abcdefghijklmnopqrstuvwxyzabcdefghijklmn";
        for _ in 0..3 {
            painter.commit(&[OutputLine::whole(line), OutputLine::words(line)]);
            painter.draw(&rows(&["LIVE"], columns), None).unwrap();
        }
        let actual = show(&log, &mut terminal);
        let all = line.repeat(6) + "LIVE";
        assert_eq!(actual.concat(), all);
        assert_eq!(actual.len(), 6 * 40 / usize::from(columns) + 1);
    }
}

#[test]
fn a_window_made_narrow_while_lines_stream_in_loses_none() {
    let log = Log::default();
    let first = Size::new(200, 50);
    let mut terminal = Alacritty::new(first);
    let mut painter = Painter::new(log.clone(), first, Reflow::Yes);
    let text = |number: usize| format!("{number}: {}", "some words of prose ".repeat(9));
    // A terminal that is not full yet moves rows of ours to the scrollback for no reason.
    let mut number = 60;
    let lines: Vec<OutputLine> = (0..number)
        .map(|number| OutputLine::words(text(number)))
        .collect();
    painter.commit(&lines);
    for columns in (40..=200).rev() {
        let size = Size::new(columns, 50);
        terminal.resize(size);
        painter.resize(size);
        if columns < 200 {
            painter.commit(&[OutputLine::words(text(number))]);
            number += 1;
        }
        let edge = "─".repeat(columns.into());
        let region = rows(&[&edge, "> typed", &edge, "status"], columns);
        painter.draw(&region, Some(Position::new(7, 1))).unwrap();
        feed(&log, &mut terminal);
    }
    let actual = texts(&terminal.screen());
    let (committed, live) = actual.split_at(actual.len() - 4);
    let edge = "─".repeat(40);
    assert_eq!(live, [edge.as_str(), "> typed", edge.as_str(), "status"]);
    let expected: String = (0..number).map(text).collect();
    let without_blanks = |text: &str| text.replace(' ', "");
    assert!(without_blanks(&committed.concat()) == without_blanks(&expected));
}

#[test]
fn no_text_can_emit_a_sequence() {
    let hostile =
        "\x1b[2J\x1b]0;title\x07\u{9b}31m\r\n\u{8}\u{7f}\u{202e}\x1b]8;;file:///etc\x1b\\x";
    let log = Log::default();
    let mut painter = Painter::new(log.clone(), Size::new(200, 10), Reflow::Yes);
    painter.commit(&[
        OutputLine::whole(Span::raw(hostile)),
        OutputLine::words(Span::raw(hostile)),
        OutputLine::words(Span::raw(format!("https://a.b/{hostile}"))).marked(Mark::Prompt),
    ]);
    let mut frame = Buffer::empty(Rect::new(0, 0, 200, 1));
    for (x, c) in (0..).zip(hostile.chars()) {
        frame[(x, 0)].set_char(c);
    }
    frame[(100, 0)].set_symbol(hostile);
    painter.draw(&frame, None).unwrap();
    let Some(Event::Write(bytes)) = log.0.take().pop() else {
        panic!("nothing was written")
    };
    let text = String::from_utf8(bytes).unwrap();
    let ours = [
        "\x1b[?",
        "\x1b[",
        "\x1b]8;;https://a.b/",
        "\x1b]8;;\x1b\\",
        "\x1b]133;A",
    ];
    for (at, _) in text.match_indices('\u{1b}') {
        let rest = &text[at..];
        assert!(
            rest.starts_with("\x1b\\") || ours.iter().any(|one| rest.starts_with(one)),
            "{rest:?}"
        );
        assert!(!rest.starts_with("\x1b[2J") && !rest.starts_with("\x1b]8;;file"));
    }
    let is_foreign = |c: char| c.is_control() && !"\u{1b}\r\n".contains(c);
    assert!(!text.contains(is_foreign), "{text:?}");
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn a_region_may_vanish_and_come_back() {
    let size = Size::new(20, 6);
    for mut terminal in emulators(size) {
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
        painter.commit(&numbered(0..2));
        painter.draw(&rows(&["A", "B"], 20), None).unwrap();
        assert_eq!(show(&log, &mut *terminal), ["line 0", "line 1", "A", "B"]);
        painter.commit(&numbered(2..4));
        painter.draw(&rows(&[], 20), None).unwrap();
        let lines = ["line 0", "line 1", "line 2", "line 3"];
        assert_eq!(show(&log, &mut *terminal), lines);
        painter.draw(&rows(&["C"], 20), None).unwrap();
        let lines = ["line 0", "line 1", "line 2", "line 3", "C"];
        assert_eq!(show(&log, &mut *terminal), lines);
    }
}

#[test]
fn after_the_end_the_prompt_of_the_shell_is_on_a_line_of_its_own() {
    let size = Size::new(20, 6);
    for mut terminal in emulators(size) {
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
        painter.commit(&numbered(0..9));
        painter.draw(&rows(&["A", "B", "C"], 20), None).unwrap();
        painter.commit(&numbered(9..10));
        painter.finish().unwrap();
        show(&log, &mut *terminal);
        terminal.write(b"$ ");
        let shown = texts(&terminal.screen());
        assert_eq!(shown[9..], ["line 9", "$"]);
        assert_eq!(terminal.screen().cursor.1, 2);
    }
}

#[test]
fn another_program_has_the_terminal_in_between() {
    let size = Size::new(20, 6);
    for mut terminal in emulators(size) {
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
        let region = rows(&["A", "B", "C"], 20);
        painter.commit(&numbered(0..1));
        painter.draw(&region, None).unwrap();
        painter.suspend().unwrap();
        painter.commit(&numbered(1..2));
        painter.draw(&region, None).unwrap();
        show(&log, &mut *terminal);
        terminal.write(b"$ fg\r\n");
        painter.resume();
        painter.draw(&region, None).unwrap();
        let shown = show(&log, &mut *terminal);
        assert_eq!(shown, ["line 0", "$ fg", "line 1", "A", "B", "C"]);
    }
}

#[test]
fn colours_end_with_their_row() {
    let mut terminal = Vt100::new(Size::new(20, 6));
    let log = Log::default();
    let mut painter = Painter::new(log.clone(), Size::new(20, 6), Reflow::No);
    let red = Style::new().fg(Color::Red);
    painter.commit(&[
        OutputLine::words(Span::styled("red and wrapped", red)),
        OutputLine::words("plain"),
    ]);
    painter.draw(&rows(&["LIVE"], 20), None).unwrap();
    show(&log, &mut terminal);
    let colour = |row| terminal.0.screen().cell(row, 0).unwrap().fgcolor();
    assert_eq!(colour(0), vt100::Color::Idx(1));
    assert_eq!(colour(1), vt100::Color::Default);
    assert_eq!(colour(2), vt100::Color::Default);
}

fn emulators(size: Size) -> [Box<dyn Emulator>; 2] {
    [Box::new(Vt100::new(size)), Box::new(Alacritty::new(size))]
}

#[test]
fn a_cursor_on_a_wide_character_at_the_new_edge_costs_no_line() {
    let size = Size::new(23, 3);
    let log = Log::default();
    let mut terminal = Alacritty::new(size);
    let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
    painter.commit(&numbered(0..2));
    let frame = rows(&["abcdefghijklmno漢pqrstu"], 23);
    painter.draw(&frame, Some(Position::new(15, 0))).unwrap();
    feed(&log, &mut terminal);
    let narrow = Size::new(16, 16);
    terminal.resize(narrow);
    painter.resize(narrow);
    painter.draw(&rows(&[], 16), None).unwrap();
    assert_eq!(show(&log, &mut terminal), ["line 0", "line 1"]);
}

#[test]
fn a_cursor_after_a_wide_character_that_moves_to_the_next_row_costs_no_line() {
    let size = Size::new(34, 3);
    let log = Log::default();
    let mut terminal = Alacritty::new(size);
    let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
    let line = "0123456789".repeat(7);
    painter.commit(&[OutputLine::whole(line.clone())]);
    let frame = rows(&["ABCDEFGH漢IJ"], 34);
    painter.draw(&frame, Some(Position::new(18, 0))).unwrap();
    feed(&log, &mut terminal);
    let narrow = Size::new(9, 3);
    terminal.resize(narrow);
    painter.resize(narrow);
    painter.draw(&rows(&[], 9), None).unwrap();
    assert_eq!(show(&log, &mut terminal).concat(), line);
}

#[test]
fn what_was_streamed_is_not_written_again() {
    let size = Size::new(40, 12);
    for mut terminal in emulators(size) {
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
        painter.commit(&numbered(0..1));
        painter
            .draw(&rows(&["first", "second", "STATUS"], 40), None)
            .unwrap();
        let before = painter.bytes_written();
        painter.commit(&[OutputLine::words("first"), OutputLine::words("second")]);
        painter.draw(&rows(&["third", "STATUS"], 40), None).unwrap();
        let shown = show(&log, &mut *terminal);
        assert_eq!(shown, ["line 0", "first", "second", "third", "STATUS"]);
        let written = painter.bytes_written() - before;
        assert!(written < 30, "{written} bytes for one row");
    }
}

#[test]
fn a_region_at_the_top_of_the_screen_leaves_nothing_in_the_scrollback() {
    let size = Size::new(40, 6);
    for mut terminal in emulators(size) {
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), size, Reflow::Yes);
        let texts = ["one one one", "two two two", "three three", "four four"];
        painter.draw(&rows(&texts[..3], 40), None).unwrap();
        painter.draw(&rows(&texts[1..], 40), None).unwrap();
        assert_eq!(show(&log, &mut *terminal), texts[1..]);
        assert_eq!(terminal.screen().history, 0);
    }
}
