//! What a program does with a painter, and the bytes and resizes that come of it. The painter asks
//! nothing of the terminal, so a recording can be played to any.

use std::{cell::RefCell, io, rc::Rc};

use codespar_terminal::{
    Buffer, Position, Rect, Size, Style,
    painter::{Painter, Reflow},
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
    /// Shows the line in the live region as it grows, in so many draws, then commits it.
    Stream(OutputLine, usize),
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
        self.committed();
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
        self.painter.resize(size);
        for line in &mut recording.committed {
            line.narrowest = line.narrowest.min(size.width);
        }
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

/// A size and steps from there, with lines that are numbered so that no two are the same.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = (Size, Vec<Step>)> {
    let step = prop_oneof![
        3 => proptest::collection::vec(line(), 1..4).prop_map(Step::Commit),
        1 => proptest::collection::vec(line(), 4..40).prop_map(Step::Commit),
        4 => draw(),
        2 => size().prop_map(Step::Resize),
        1 => Just(Step::Suspend),
        4 => (line(), 1..5usize).prop_map(|(line, draws)| Step::Stream(line, draws)),
    ];
    let steps = proptest::collection::vec(step, 1..most);
    (size(), steps, draw()).prop_map(|(size, mut steps, last)| {
        steps.push(last);
        let mut number = 0;
        let mut columns = usize::from(size.width);
        for step in &mut steps {
            if let Step::Resize(size) = step {
                columns = usize::from(size.width);
            }
            let lines = match step {
                Step::Commit(lines) => &mut lines[..],
                Step::Stream(line, _) => std::slice::from_mut(line),
                _ => continue,
            };
            for line in lines.iter_mut().filter(|line| !line.line.spans.is_empty()) {
                let prefix = format!("{number}:");
                let text = &mut line.line.spans[0].content;
                if text.starts_with('x') {
                    *text = "x".repeat(text.len() * columns - prefix.len()).into();
                }
                line.line.spans.insert(0, prefix.into());
                number += 1;
            }
        }
        (size, steps)
    })
}
