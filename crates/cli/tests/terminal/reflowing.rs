//! A session in a terminal that reflows its rows on a resize and answers what it is asked:
//! `alacritty_terminal`.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use alacritty_terminal::{
    event::{Event, EventListener},
    grid::Dimensions,
    index::{Column, Line},
    term::{Config, Term, cell::Flags},
    vte::ansi::Processor,
};

use crate::{
    common::{Bench, PATIENCE},
    harness::{COLUMNS, PROGRAM, ROWS, in_terminal, tell_columns},
};

/// What the terminal answers goes to the program as if it was typed.
#[derive(Clone)]
struct Answers(Arc<Mutex<ChildStdin>>);

impl EventListener for Answers {
    fn send_event(&self, event: Event) {
        if let Event::PtyWrite(answer) = event {
            // The program may have ended.
            let _ = self.0.lock().unwrap().write_all(answer.as_bytes());
        }
    }
}

struct Dimension(u16);

impl Dimensions for Dimension {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        ROWS.into()
    }

    fn columns(&self) -> usize {
        self.0.into()
    }
}

pub(crate) struct Reflowing {
    child: Child,
    input: Arc<Mutex<ChildStdin>>,
    term: Arc<Mutex<Term<Answers>>>,
}

impl Reflowing {
    pub(crate) fn start(bench: &Bench) -> Self {
        let mut command = in_terminal(bench, &format!("exec {PROGRAM}"), "xterm-256color");
        let mut child = command.spawn().unwrap();
        let input = Arc::new(Mutex::new(child.stdin.take().unwrap()));
        let config = Config {
            scrolling_history: 100_000,
            ..Config::default()
        };
        let term = Term::new(config, &Dimension(COLUMNS), Answers(input.clone()));
        let term = Arc::new(Mutex::new(term));
        let (shown, mut written) = (term.clone(), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut processor: Processor = Processor::new();
            let mut buffer = [0; 65_536];
            while let Ok(count @ 1..) = written.read(&mut buffer) {
                processor.advance(&mut *shown.lock().unwrap(), &buffer[..count]);
            }
        });
        let terminal = Self { child, input, term };
        terminal.shows("/help shows the commands");
        // It has no name, and a terminal without one may not mark its pastes.
        terminal.types("\x1bP>|emulator 1\x1b\\");
        terminal
    }

    pub(crate) fn types(&self, text: &str) {
        let mut input = self.input.lock().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// The session hears of it after the terminal.
    pub(crate) fn resize(&self, bench: &Bench, columns: u16) {
        self.term.lock().unwrap().resize(Dimension(columns));
        tell_columns(bench, columns);
    }

    /// All lines that the terminal has, from the oldest on, without the breaks that it made itself.
    pub(crate) fn lines(&self) -> Vec<String> {
        let term = self.term.lock().unwrap();
        let grid = term.grid();
        let first = -i32::try_from(grid.history_size()).unwrap();
        let last = i32::from(ROWS);
        let mut lines = vec![String::new()];
        for row in (first..last).map(|line| &grid[Line(line)]) {
            let cells = (0..grid.columns()).map(|column| &row[Column(column)]);
            let is_text = |flags: Flags| !flags.contains(Flags::WIDE_CHAR_SPACER);
            let text: String = cells
                .filter(|cell| is_text(cell.flags))
                .map(|cell| cell.c)
                .collect();
            let last = &row[Column(grid.columns() - 1)];
            let line = lines.last_mut().unwrap();
            line.push_str(&text);
            if !last.flags.contains(Flags::WRAPLINE) {
                line.truncate(line.trim_end().len());
                lines.push(String::new());
            }
        }
        lines
    }

    pub(crate) fn shows(&self, text: &str) {
        let began = Instant::now();
        while !self.lines().iter().any(|line| line.contains(text)) {
            let lines = self.lines().join("\n");
            assert!(began.elapsed() < PATIENCE, "no {text:?}:\n{lines}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Reflowing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
