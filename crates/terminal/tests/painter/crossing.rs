//! Frames that are on their way to the terminal while it is resized.

use codespar_terminal::{
    Position, Size,
    painter::{Painter, Reflow, SizeQueries},
    wrap::OutputLine,
};

use crate::{
    emulators::{Alacritty, Emulator, Vt100},
    script::Log,
    single::{feed, numbered, rows, show},
};

#[test]
fn a_frame_that_crosses_a_resize_is_put_right_by_the_answer_to_it() {
    let (wide, narrow) = (Size::new(60, 20), Size::new(20, 20));
    let long = "L".repeat(55);
    let cursor = Some(Position::new(0, 2));
    let reflowing: Box<dyn Emulator> = Box::new(Alacritty::new(wide));
    let cutting: Box<dyn Emulator> = Box::new(Vt100::new(wide));
    for (reflow, mut terminal) in [(Reflow::Yes, reflowing), (Reflow::No, cutting)] {
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), wide, reflow);
        painter.set_size_queries(SizeQueries::On);
        // A screen that is not full is moved to the scrollback by some terminals.
        painter.commit(&numbered(0..30));
        let before = rows(&["first", &long, "status"], 60);
        painter.draw(&before, cursor).unwrap();
        painter.answered(wide);
        feed(&log, &mut *terminal);
        terminal.resize(narrow);
        painter.commit(&[OutputLine::words("first")]);
        let crossing = rows(&["second", &long, "status"], 60);
        painter.draw(&crossing, cursor).unwrap();
        feed(&log, &mut *terminal);
        painter.resize(narrow);
        assert!(painter.is_in_doubt());
        painter.answered(narrow);
        assert!(!painter.is_in_doubt());
        let after = rows(&["second", "short", "status"], 20);
        painter.draw(&after, cursor).unwrap();
        let shown = show(&log, &mut *terminal);
        let above = (0..30).map(|number| format!("line {number}"));
        let below = ["first", "second", "short", "status"].map(str::to_owned);
        let expected: Vec<String> = above.chain(below).collect();
        assert_eq!(shown, expected, "{reflow:?}");
    }
}

/// On a screen that is not full Alacritty moves rows to the scrollback when it wraps others, and
/// then the region is at the top of the screen.
#[test]
fn a_frame_that_crosses_a_resize_leaves_no_row_in_the_scrollback() {
    let (wide, narrow) = (Size::new(43, 15), Size::new(24, 15));
    let log = Log::default();
    let mut terminal = Alacritty::new(wide);
    let mut painter = Painter::new(log.clone(), wide, Reflow::Yes);
    painter.set_size_queries(SizeQueries::On);
    let line = "0123456789".repeat(4) + "0123";
    painter.commit(&[OutputLine::words(line.clone())]);
    let region = rows(&[&"A".repeat(37), &"─".repeat(43), "", ""], 43);
    painter.draw(&region, None).unwrap();
    painter.answered(wide);
    feed(&log, &mut terminal);
    terminal.resize(narrow);
    painter.draw(&rows(&[""], 43), None).unwrap();
    feed(&log, &mut terminal);
    painter.resize(narrow);
    painter.answered(narrow);
    painter.draw(&rows(&["LAST"], 24), None).unwrap();
    let expected = [&line[..24], &line[24..43], &line[43..], "LAST"];
    assert_eq!(show(&log, &mut terminal), expected);
}

/// `CSI B` ends at the last row of the screen, so the way back up would be too long.
#[test]
fn a_line_that_a_narrower_terminal_wraps_to_the_end_of_the_screen_costs_no_other() {
    let (wide, narrow) = (Size::new(54, 14), Size::new(29, 14));
    let long = "x".repeat(108);
    let reflowing: Box<dyn Emulator> = Box::new(Alacritty::new(wide));
    let cutting: Box<dyn Emulator> = Box::new(Vt100::new(wide));
    for (reflow, mut terminal) in [(Reflow::Yes, reflowing), (Reflow::No, cutting)] {
        let log = Log::default();
        let mut painter = Painter::new(log.clone(), wide, reflow);
        painter.set_size_queries(SizeQueries::On);
        painter.commit(&numbered(0..9));
        painter.draw(&rows(&["status 1"], 54), None).unwrap();
        painter.answered(wide);
        feed(&log, &mut *terminal);
        terminal.resize(narrow);
        painter.commit(&[OutputLine::whole(long.clone())]);
        let crossing = rows(&["", "status 2"], 54);
        painter.draw(&crossing, Some(Position::new(1, 0))).unwrap();
        feed(&log, &mut *terminal);
        painter.resize(narrow);
        painter.answered(narrow);
        painter.draw(&rows(&["LAST"], 29), None).unwrap();
        let shown = show(&log, &mut *terminal);
        let above = (0..9).map(|number| format!("line {number}"));
        let wrapped = [29, 29, 29, 21].map(|columns| "x".repeat(columns));
        let expected: Vec<String> = above.chain(wrapped).chain(["LAST".to_owned()]).collect();
        assert_eq!(shown, expected, "{reflow:?}");
    }
}

#[test]
fn an_answer_that_comes_too_late_changes_nothing() {
    let (wide, narrow) = (Size::new(60, 20), Size::new(20, 20));
    let mut painter = Painter::new(Vec::new(), wide, Reflow::Yes);
    painter.set_size_queries(SizeQueries::On);
    let frame = rows(&["one", "two"], 60);
    painter.draw(&frame, None).unwrap();
    assert!(painter.is_answer_due());
    painter.stop_waiting();
    assert!(!painter.is_in_doubt());
    painter.answered(narrow);
    assert!(!painter.is_answer_due());
    let written = painter.bytes_written();
    painter.draw(&frame, None).unwrap();
    assert_eq!(painter.bytes_written(), written);
}
