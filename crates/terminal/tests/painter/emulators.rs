//! Terminals without a window.

use std::num::NonZeroU16;

use alacritty_terminal::{
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{Config, Term, cell::Flags},
    vte::ansi::Processor,
};
use codespar_terminal::Size;
use codespar_testkit::ScreenEmulator;

/// What a terminal shows, with the scrollback.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pub(crate) rows: Vec<Row>,
    /// How many of the rows are in the scrollback.
    pub(crate) history: usize,
    /// Row and column.
    pub(crate) cursor: (usize, usize),
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Row {
    pub(crate) text: String,
    /// Goes on in the next row.
    pub(crate) is_wrapped: bool,
}

pub(crate) trait Emulator {
    fn write(&mut self, bytes: &[u8]);
    fn resize(&mut self, size: Size);
    fn screen(&mut self) -> Screen;
}

/// Cuts rows.
pub(crate) struct Vt100(pub(crate) ScreenEmulator);

impl Vt100 {
    pub(crate) fn new(size: Size) -> Self {
        let (rows, columns) = sides(size);
        Self(ScreenEmulator::new(rows, columns, 300_000))
    }
}

fn sides(size: Size) -> (NonZeroU16, NonZeroU16) {
    let side = |side| NonZeroU16::new(side).unwrap();
    (side(size.height), side(size.width))
}

impl Emulator for Vt100 {
    fn write(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    fn resize(&mut self, size: Size) {
        let (rows, columns) = sides(size);
        self.0.screen_mut().set_size(rows, columns);
    }

    fn screen(&mut self) -> Screen {
        let screen = self.0.screen_mut();
        let columns = 1000;
        let history = screen.scrollback_len();
        let mut rows = Vec::new();
        for offset in (1..=history).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns));
        let (row, column) = screen.cursor_position();
        Screen {
            rows: rows
                .into_iter()
                .map(|text| Row {
                    text: text.trim_end().to_owned(),
                    is_wrapped: false,
                })
                .collect(),
            history,
            cursor: (history + usize::from(row), usize::from(column)),
        }
    }
}

/// Reflows rows.
pub(crate) struct Alacritty {
    term: Term<VoidListener>,
    processor: Processor,
}

struct Dimension(Size);

impl Dimensions for Dimension {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        self.0.height.into()
    }

    fn columns(&self) -> usize {
        self.0.width.into()
    }
}

impl Alacritty {
    pub(crate) fn new(size: Size) -> Self {
        let config = Config {
            scrolling_history: 300_000,
            ..Config::default()
        };
        Self {
            term: Term::new(config, &Dimension(size), VoidListener),
            processor: Processor::new(),
        }
    }
}

impl Emulator for Alacritty {
    fn write(&mut self, bytes: &[u8]) {
        self.processor.advance(&mut self.term, bytes);
    }

    fn resize(&mut self, size: Size) {
        self.term.resize(Dimension(size));
    }

    fn screen(&mut self) -> Screen {
        let grid = self.term.grid();
        let history = grid.history_size();
        let first = -i32::try_from(history).unwrap();
        let last = i32::try_from(grid.screen_lines()).unwrap();
        let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
        let rows = (first..last).map(|line| {
            let row = &grid[Line(line)];
            let mut text = String::new();
            for column in 0..grid.columns() {
                let cell = &row[Column(column)];
                if !cell.flags.intersects(spacers) {
                    text.push(cell.c);
                    text.extend(cell.zerowidth().into_iter().flatten());
                }
            }
            let last = &row[Column(grid.columns() - 1)];
            Row {
                text,
                is_wrapped: last.flags.contains(Flags::WRAPLINE),
            }
        });
        let point = grid.cursor.point;
        let line = usize::try_from(point.line.0).unwrap();
        Screen {
            rows: rows.collect(),
            history,
            cursor: (history + line, point.column.0),
        }
    }
}
