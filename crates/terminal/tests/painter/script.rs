//! What a program does with a painter, and the bytes and resizes that come of it. The painter asks
//! nothing of the terminal, so a recording can be played to any.

use std::{cell::RefCell, io, rc::Rc};

use codespar_terminal::{
    Buffer, Position, Rect, Size, Style,
    painter::{Painter, Reflow, SizeQueries},
    width,
    wrap::{self, Flow, OutputLine},
};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Commit(Vec<OutputLine>),
    /// Rows that do not fit into half of the screen are left out.
    Draw(Vec<String>, Option<(u16, u16)>),
    Resize(Size),
    Suspend,
    /// The terminal has another width, and draws that were on their way come after that.
    LateResize(u16, Vec<Late>),
    /// Shows the line in the live region as it grows, in so many draws, then commits it.
    Stream(OutputLine, usize),
}

/// A draw that does not know of a resize.
#[derive(Debug, Clone)]
pub(crate) struct Late {
    lines: Vec<OutputLine>,
    rows: Vec<String>,
    cursor: Option<(u16, u16)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    Write(Vec<u8>),
    Resize(Resized),
}

#[derive(Debug, Clone)]
pub(crate) struct Resized {
    pub(crate) size: Size,
    /// How many logical lines and rows were committed before.
    pub(crate) lines: usize,
    pub(crate) rows: usize,
    /// Characters of the live region, which the terminal may keep.
    pub(crate) live: usize,
}

#[derive(Clone, Default)]
pub(crate) struct Log(pub(crate) Rc<RefCell<Vec<Event>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().push(Event::Write(bytes.to_vec()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A committed line on the terminal.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// Of a terminal that reflows: lines without those breaks that it made itself.
    pub(crate) logical: Vec<String>,
    /// Of a terminal that cuts.
    pub(crate) rows: Vec<String>,
    /// The narrowest that the terminal has been since.
    pub(crate) narrowest: u16,
}

#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) first: Size,
    pub(crate) events: Vec<Event>,
    pub(crate) committed: Vec<Written>,
    pub(crate) region: Vec<String>,
    pub(crate) cursor: Option<(u16, u16)>,
}

pub(crate) fn frame(rows: &[String], columns: u16) -> Buffer {
    let height = u16::try_from(rows.len()).unwrap();
    let mut frame = Buffer::empty(Rect::new(0, 0, columns, height));
    for (y, row) in (0..).zip(rows) {
        frame.set_string(0, y, row, Style::new());
    }
    frame
}

/// A painter, and what it should have made of the terminal.
struct Recorder {
    log: Log,
    painter: Painter<Log>,
    queue: Vec<OutputLine>,
    recording: Recording,
}

/// Plays the steps; a draw ends them.
pub(crate) fn record(first: Size, reflow: Reflow, steps: &[Step]) -> Recording {
    let log = Log::default();
    let mut recorder = Recorder {
        painter: Painter::new(log.clone(), first, reflow),
        log,
        queue: Vec::new(),
        recording: Recording {
            first,
            ..Recording::default()
        },
    };
    for step in steps {
        recorder.play(step);
    }
    let mut recording = recorder.recording;
    recording.events = recorder.log.0.take();
    recording
}

impl Recorder {
    fn play(&mut self, step: &Step) {
        match step {
            Step::Commit(lines) => self.commit(lines),
            Step::Draw(rows, cursor) => self.draw(rows, *cursor),
            Step::Resize(size) => self.resize(*size),
            Step::LateResize(width, draws) => self.late_resize(*width, draws),
            Step::Suspend => {
                self.painter.suspend().unwrap();
                self.painter.resume();
                self.recording.region.clear();
                self.committed();
            }
            Step::Stream(line, draws) => self.stream(line, *draws),
        }
    }

    fn commit(&mut self, lines: &[OutputLine]) {
        self.painter.commit(lines);
        self.queue.extend_from_slice(lines);
    }

    fn draw(&mut self, rows: &[String], cursor: Option<(u16, u16)>) {
        self.write_frame(rows, cursor);
        self.committed();
    }

    fn write_frame(&mut self, rows: &[String], cursor: Option<(u16, u16)>) {
        let size = self.painter.size();
        let height = rows.len().min(usize::from(size.height / 2));
        let rows = &rows[..height];
        let cursor = cursor
            .filter(|_| height > 0)
            .map(|(x, y)| (x % size.width, y % u16::try_from(height).unwrap()));
        let before = self.log.0.borrow().len();
        self.painter
            .draw(&frame(rows, size.width), cursor.map(Position::from))
            .unwrap();
        let writes = self.log.0.borrow().len() - before;
        assert!(writes <= 1, "one draw, {writes} writes");
        self.recording.region = rows.iter().map(|row| visible(row, size.width)).collect();
        self.recording.cursor = cursor;
    }

    /// What was queued is on the terminal.
    fn committed(&mut self) {
        let columns = self.painter.size().width;
        let drawn = self.queue.drain(..).map(|line| written(&line, columns));
        self.recording.committed.extend(drawn);
    }

    fn resize(&mut self, size: Size) {
        self.terminal_resizes(size);
        self.painter.resize(size);
    }

    fn terminal_resizes(&mut self, size: Size) {
        let recording = &mut self.recording;
        let lines = recording.committed.iter().map(|line| line.logical.len());
        let rows = recording.committed.iter().map(|line| line.rows.len());
        let live = recording.region.iter();
        let live = live.map(|row| row.chars().filter(|c| is_live(*c)).count());
        let resized = Resized {
            size,
            lines: lines.sum(),
            rows: rows.sum(),
            live: live.sum(),
        };
        self.log.0.borrow_mut().push(Event::Resize(resized));
        for line in &mut recording.committed {
            line.narrowest = line.narrowest.min(size.width);
        }
    }

    /// The terminal answers with the size that it has, the painter hears of it after that.
    fn late_resize(&mut self, width: u16, draws: &[Late]) {
        let size = Size {
            width,
            height: self.painter.size().height,
        };
        // What is shown now is what the painter knows, and what is written stays on the screen.
        self.draw(&self.recording.region.clone(), self.recording.cursor);
        if !self.fits(width, draws) {
            return self.resize(size);
        }
        self.terminal_resizes(size);
        self.painter.set_size_queries(SizeQueries::On);
        let before = self.log.0.borrow().len();
        for draw in draws {
            self.commit(&draw.lines);
            self.write_frame(&draw.rows, draw.cursor);
        }
        let written = self.log.0.borrow().len() - before;
        self.painter.set_size_queries(SizeQueries::Off);
        self.painter.resize(size);
        for _ in 0..written {
            assert!(self.painter.is_answer_due());
            self.painter.answered(size);
        }
        assert!(!self.painter.is_answer_due());
        self.draw(&["LAST".to_owned()], None);
    }

    /// Whether all rows are on the screen, however the terminal wraps them, and terminals agree on
    /// how they do: else the lines stay as they came, and what is to be seen depends on the terminal.
    fn fits(&self, width: u16, draws: &[Late]) -> bool {
        let size = self.painter.size();
        let columns = width.min(size.width);
        let wrapped = |text: &str| width::of(text) * 2 / usize::from(columns) + 1;
        let shown = self.recording.region.iter().map(|row| wrapped(row));
        let lines = draws.iter().flat_map(|draw| &draw.lines);
        let lines = lines.map(|line| wrapped(&line.line.to_string()));
        let highest = draws.iter().map(|draw| draw.rows.len()).max().unwrap_or(0);
        let late = draws.iter().flat_map(|draw| &draw.lines);
        let mut late = late.map(|line| line.line.to_string());
        let is_agreed =
            late.all(|text| width::is_certain(&text) || width::of(&text) <= usize::from(columns));
        is_agreed && shown.chain(lines).sum::<usize>() + highest <= usize::from(size.height)
    }

    /// As a session does it: the end of what came so far above the rest of the region.
    fn stream(&mut self, line: &OutputLine, draws: usize) {
        let size = self.painter.size();
        let below = ["STATUS".to_owned()];
        let text = line.line.to_string();
        let graphemes: Vec<&str> = text.graphemes(true).collect();
        for part in 1..=draws {
            let so_far = graphemes[..graphemes.len() * part / draws].concat();
            let so_far = OutputLine {
                line: so_far.into(),
                ..line.clone()
            };
            let rows = wrap::rows(&so_far, size.width).into_iter();
            let mut rows: Vec<String> = rows.map(|row| row.to_string()).collect();
            let room = usize::from(size.height / 2).saturating_sub(below.len());
            rows.drain(..rows.len().saturating_sub(room));
            rows.extend(below.clone());
            self.draw(&rows, None);
        }
        self.commit(std::slice::from_ref(line));
        self.draw(&below, None);
    }
}

/// What a frame of this width has of a row.
fn visible(row: &str, columns: u16) -> String {
    let frame = frame(&[row.to_owned()], columns);
    let mut text = String::new();
    let mut x = 0;
    while x < columns {
        let symbol = frame[(x, 0)].symbol();
        text.push_str(symbol);
        let width = unicode_width::UnicodeWidthStr::width(symbol);
        x += u16::try_from(width.max(1)).unwrap();
    }
    text.trim_end().to_owned()
}

fn written(line: &OutputLine, columns: u16) -> Written {
    let rows = wrap::rows(line, columns).into_iter();
    let rows: Vec<String> = rows.map(|row| row.to_string()).collect();
    let text = line.line.to_string();
    let is_whole = line.flow == Flow::Whole
        && (width::is_certain(&text) || width::of(&text) <= usize::from(columns));
    Written {
        logical: match is_whole {
            true => vec![text],
            false => rows.clone(),
        },
        rows,
        narrowest: columns,
    }
}

/// Small letters: committed. Capitals: live. So each row shows whose it is.
pub(crate) fn is_live(c: char) -> bool {
    c.is_ascii_uppercase() || "漢─🚀".contains(c)
}

fn text(alphabet: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(alphabet), 0..most)
        .prop_map(|parts| parts.concat().trim().to_owned())
}

const ASCII: &[&str] = &["a", "b", "c", "de", "fgh", " ", "  "];
const WIDE: &[&str] = &["a", "字", "字", " ", "b"];
const ANY: &[&str] = &["a", "字", "🙂", "👩\u{200d}💻", "e\u{301}", "…", " ", "bcd"];
const LIVE: &[&str] = &["A", "BC", "DEF", "漢", "─", " ", "GHIJKLMN"];

fn line() -> impl Strategy<Value = OutputLine> {
    prop_oneof![
        text(ASCII, 60).prop_map(OutputLine::words),
        (text(ANY, 40), 0..4u16).prop_map(|(text, hanging)| OutputLine::hanging(text, hanging)),
        text(ASCII, 120).prop_map(OutputLine::whole),
        // Made as wide as so many rows by `steps`.
        (1..5usize).prop_map(|rows| OutputLine::whole("x".repeat(rows))),
        text(WIDE, 60).prop_map(OutputLine::whole),
        text(ANY, 40).prop_map(OutputLine::whole),
        Just(OutputLine::default()),
    ]
}

fn rows() -> impl Strategy<Value = Vec<String>> {
    let row = prop_oneof![
        text(LIVE, 30),
        Just("─".repeat(200)),
        Just(String::new()),
        (1..40usize).prop_map(|n| "M".repeat(n)),
    ];
    proptest::collection::vec(row, 0..12)
}

fn size() -> impl Strategy<Value = Size> {
    // Most that is difficult happens where little fits.
    let width = prop_oneof![6..60u16, 6..12u16];
    (width, 3..30u16).prop_map(|(width, height)| Size { width, height })
}

fn draw() -> impl Strategy<Value = Step> {
    (rows(), proptest::option::of((any::<u16>(), any::<u16>())))
        .prop_map(|(rows, cursor)| Step::Draw(rows, cursor))
}

fn late() -> impl Strategy<Value = Late> {
    let lines = proptest::collection::vec(line(), 0..3);
    let rows = proptest::collection::vec(text(LIVE, 12), 0..4);
    let cursor = proptest::option::of((any::<u16>(), any::<u16>()));
    (lines, rows, cursor).prop_map(|(lines, rows, cursor)| Late {
        lines,
        rows,
        cursor,
    })
}

/// A size and steps from there, with lines that are numbered so that no two are the same.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = (Size, Vec<Step>)> {
    let step = prop_oneof![
        3 => proptest::collection::vec(line(), 1..4).prop_map(Step::Commit),
        1 => proptest::collection::vec(line(), 4..40).prop_map(Step::Commit),
        4 => draw(),
        2 => size().prop_map(Step::Resize),
        2 => (6..60u16, proptest::collection::vec(late(), 0..3))
            .prop_map(|(width, draws)| Step::LateResize(width, draws)),
        1 => Just(Step::Suspend),
        4 => (line(), 1..5usize).prop_map(|(line, draws)| Step::Stream(line, draws)),
    ];
    let steps = proptest::collection::vec(step, 1..most);
    (size(), steps, draw()).prop_map(|(size, mut steps, last)| {
        steps.push(last);
        let mut number = 0;
        let mut columns = usize::from(size.width);
        for step in &mut steps {
            let lines: Vec<&mut OutputLine> = match step {
                Step::Commit(lines) => lines.iter_mut().collect(),
                Step::Stream(line, _) => vec![line],
                Step::LateResize(_, draws) => {
                    draws.iter_mut().flat_map(|draw| &mut draw.lines).collect()
                }
                _ => Vec::new(),
            };
            for line in lines.into_iter().filter(|line| !line.line.spans.is_empty()) {
                let prefix = format!("{number}:");
                let text = &mut line.line.spans[0].content;
                if text.starts_with('x') {
                    *text = "x".repeat(text.len() * columns - prefix.len()).into();
                }
                line.line.spans.insert(0, prefix.into());
                number += 1;
            }
            match step {
                Step::Resize(size) => columns = usize::from(size.width),
                Step::LateResize(width, _) => columns = usize::from(*width),
                _ => {}
            }
        }
        (size, steps)
    })
}
