//! Committed lines above, a live region below them that is redrawn.
//!
//! A committed line is written once and belongs to the terminal from then on: it scrolls into the
//! scrollback, can be copied and searched, and is never touched again. The live region stands
//! directly below the last one. All movement is relative to the cursor; where the terminal answers,
//! it is asked at which size it shows a frame (`answers`):
//!
//! ```text
//! line 41                            line 41
//! line 42                            line 42
//! ┌ region ┐   line feeds at the     line 43        written where `CSI L` made room,
//! └────────┘   last row make room    ┌ region ┐     the region is moved, not redrawn
//!              below the region      └────────┘
//! ```
//!
//! A line that the region showed in the same cells is not written again when it is committed: the
//! region ends above it from then on.
//!
//! | module | part |
//! |---|---|
//! | `region` | the rows of the live region, and how they differ from the next frame |
//! | `committed` | finished lines as rows and bytes |
//! | `plan` | which rows are kept, moved or new, by the fewest bytes |
//! | `pen` | bytes, and where they leave the cursor |
//! | `resized`, `answers` | where everything is after a resize |
//!
//! Between two draws, in state `Drawn`: the cursor is at `cursor` within the region, the region is
//! exactly `region` in the rows around it, everything below it is blank, and autowrap is as in
//! `autowrap`.

mod answers;
mod committed;
mod links;
mod pen;
mod plan;
mod region;
mod resized;
mod sgr;

use std::{
    borrow::Cow,
    io::{self, Write},
    time::Instant,
};

use ratatui_core::{
    buffer::Buffer,
    layout::{Position, Rect, Size},
};

pub(crate) use self::answers::QUERY_SIZE;
pub use self::{
    answers::SizeQueries,
    resized::{Reflow, SizeNews},
};
use self::{
    answers::{Answers, Way},
    committed::Prepared,
    pen::{Autowrap, Pen},
    plan::{Goal, Plan},
    region::Region,
};
use crate::wrap::OutputLine;

const SYNCHRONISED: &str = "\x1b[?2026h";
const SYNCHRONISED_END: &str = "\x1b[?2026l";

/// A draw of so few bytes reaches the terminal in one piece: nothing would be seen half done, and
/// the marks would be most of it.
const SMALL_WRITE: usize = 256;

/// A draw of many lines is written in parts of about this size, so that its memory is bounded.
const LARGEST_WRITE: usize = 1 << 20;

/// What is written besides text and style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Web addresses in committed lines are links (OSC 8).
    pub links: bool,
    /// Messages are marked (OSC 133).
    pub marks: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            links: true,
            marks: true,
        }
    }
}

/// Whether the terminal is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The cursor is at the beginning of a row; nothing is known of that row and those below.
    Fresh,
    Drawn,
    /// The size changed since the last draw.
    Resized,
    /// It changed more than once: terminals differ in where that leaves the cursor.
    ResizedAgain,
    /// Another program writes to the terminal.
    Suspended,
}

/// Paints one terminal. The caller must not write to it by other means, except while suspended.
pub struct Painter<W: Write> {
    out: W,
    size: Size,
    /// Of the last draw.
    drawn: Size,
    reflow: Reflow,
    size_news: SizeNews,
    drawn_at: Option<Instant>,
    options: Options,
    state: State,
    queue: Vec<OutputLine>,
    region: Region,
    /// Of the terminal's cursor in the region: row and column.
    cursor: (u16, u16),
    is_cursor_shown: bool,
    /// Off while there is a live region.
    autowrap: Autowrap,
    answers: Answers,
    bytes_written: u64,
}

impl<W: Write> Painter<W> {
    /// The cursor of the terminal is at the beginning of a row.
    pub fn new(out: W, size: Size, reflow: Reflow) -> Self {
        Self {
            out,
            size,
            drawn: size,
            reflow,
            size_news: SizeNews::default(),
            drawn_at: None,
            options: Options::default(),
            state: State::Fresh,
            queue: Vec::new(),
            region: Region::default(),
            cursor: (0, 0),
            is_cursor_shown: true,
            autowrap: Autowrap::On,
            answers: Answers::default(),
            bytes_written: 0,
        }
    }

    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// Since the beginning, for measurements.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Once the terminal said what it is.
    pub fn set_reflow(&mut self, reflow: Reflow) {
        self.reflow = reflow;
    }

    pub fn set_size_news(&mut self, size_news: SizeNews) {
        self.size_news = size_news;
    }

    /// Finished lines; the next draw writes them, each once.
    pub fn commit(&mut self, lines: &[OutputLine]) {
        self.queue.extend_from_slice(lines);
    }

    /// Writes the committed lines and makes the live region show a frame, with the cursor at a
    /// position in it or hidden. Nothing is written if nothing changed. While suspended this does
    /// nothing.
    ///
    /// Ask the terminal for its size before: what was wrapped for another width is in disorder
    /// until the next resize.
    pub fn draw(&mut self, frame: &Buffer, cursor: Option<Position>) -> io::Result<()> {
        if self.state == State::Suspended {
            return Ok(());
        }
        let hidden = frame.area.height.saturating_sub(self.size.height);
        let height = frame.area.height - hidden;
        let is_shown = cursor.is_some();
        let cursor = match cursor {
            Some(at) if height > 0 => (
                at.y.saturating_sub(hidden).min(height - 1),
                at.x.min(self.size.width.saturating_sub(1)),
            ),
            // A hidden one where it is known best after a resize.
            _ if self.reflow == Reflow::XtermJs => (height.saturating_sub(1), 0),
            _ => (0, 0),
        };
        let region = Region::of(frame, self.size, cursor);
        let before = self.bytes_written;
        let mut pen = Pen::at(self.size.width, self.cursor.0, self.cursor.1, self.autowrap);
        pen.sequence(SYNCHRONISED);
        let mut sent = self.question(&mut pen);
        let start = pen.bytes.len();
        let up = self.begin(&region, &mut pen);
        let lines = std::mem::take(&mut self.queue);
        let (columns, options) = (self.size.width, self.options);
        let prepared = lines
            .iter()
            .map(|line| Prepared::of(line, columns, options));
        let way = self.paint(&region, cursor, prepared, &mut pen)?;
        if self.is_cursor_shown != is_shown {
            pen.sequence(if is_shown { "\x1b[?25h" } else { "\x1b[?25l" });
        }
        if region.height() == 0 {
            pen.autowrap(Autowrap::On);
        }
        self.region = region;
        self.drawn = self.size;
        self.cursor = cursor;
        self.is_cursor_shown = is_shown;
        self.autowrap = pen.autowrap_now();
        let is_first = self.bytes_written == before;
        if is_first && pen.bytes.len() == start {
            return Ok(());
        }
        if let Some(sent) = &mut sent {
            let can_be_kept = lines.len() <= usize::from(self.size.height);
            sent.lines = can_be_kept.then_some(lines);
            (sent.before.up, sent.way) = (up, way);
        }
        self.answers.sent(sent);
        self.drawn_at = Some(Instant::now());
        match is_first && pen.bytes.len() <= SYNCHRONISED.len() + SMALL_WRITE {
            true => self.write(&pen.bytes[SYNCHRONISED.len()..])?,
            false => {
                pen.sequence(SYNCHRONISED_END);
                self.write(&pen.bytes)?;
            }
        }
        self.out.flush()
    }

    /// The committed lines and the region, with the cursor in it. Two ways. If all of it fits on
    /// the screen, rows are moved and changed in place. Otherwise the region is erased, the lines
    /// are written from its first row on, and the region is painted anew below them.
    fn paint(
        &mut self,
        region: &Region,
        cursor: (u16, u16),
        mut lines: impl Iterator<Item = Prepared>,
        pen: &mut Pen,
    ) -> io::Result<Way> {
        let screen = usize::from(self.size.height);
        let rows = usize::from(region.height());
        // As many as fit on the screen with the region.
        let mut first = Vec::new();
        let mut above = 0;
        while above + rows <= screen
            && let Some(line) = lines.next()
        {
            above += line.height();
            first.push(line);
        }
        let is_over = above + rows <= screen && self.paint_over(region, cursor, &first, pen);
        if !is_over {
            self.shrink(region.height(), pen);
            self.write_committed(first.into_iter().chain(lines), pen)?;
            self.grow(region.height(), pen);
            region.paint(&self.region, pen);
            pen.go(cursor.0, cursor.1);
        }
        Ok(match is_over {
            true => Way::PaintedOver,
            false => Way::Written,
        })
    }

    /// All in one, with as much as possible of what the terminal shows. `false` if that cannot be.
    fn paint_over(
        &self,
        region: &Region,
        cursor: (u16, u16),
        lines: &[Prepared],
        pen: &mut Pen,
    ) -> bool {
        let is_unknown = self.size_news == SizeNews::Late && !self.answers.may_ask();
        let is_late = is_unknown && !lines.is_empty();
        if self.region.height() == 0 || region.height() == 0 || is_late {
            return false;
        }
        let mut goals: Vec<Goal<'_>> = lines.iter().flat_map(Prepared::goals).collect();
        let above = goals.len();
        goals.extend(
            region
                .rows
                .iter()
                .map(|row| Goal::Cells(Cow::Borrowed(row))),
        );
        let Some(plan) = Plan::of(&self.region.rows, &goals) else {
            return false;
        };
        plan.paint(&self.region.rows, &goals, pen);
        let above = u16::try_from(above).unwrap_or(u16::MAX);
        pen.go(above.saturating_add(cursor.0), cursor.1);
        true
    }

    /// Writes what was committed and erases the live region: the cursor is at the beginning of
    /// the row below the last committed line, and the terminal is another program's.
    pub fn suspend(&mut self) -> io::Result<()> {
        let nothing = Buffer::empty(Rect::new(0, 0, self.size.width, 0));
        // An answer would be read by the other program.
        self.answers.queries = SizeQueries::Off;
        self.draw(&nothing, Some(Position::ORIGIN))?;
        self.state = State::Suspended;
        Ok(())
    }

    /// The terminal is ours again, with the cursor at the beginning of a row; the next draw
    /// paints everything.
    pub fn resume(&mut self) {
        if self.state == State::Suspended {
            self.state = State::Fresh;
        }
    }

    /// As [`Painter::suspend`], for good.
    pub fn finish(mut self) -> io::Result<()> {
        self.suspend()
    }

    /// Only erases; the rows below the region stay blank.
    fn shrink(&mut self, height: u16, pen: &mut Pen) {
        if height >= self.region.height() {
            return;
        }
        pen.go(height, 0);
        match height {
            0 => pen.erase_from_here(),
            _ => pen.sequence("\x1b[J"),
        }
        self.region.truncate(height);
    }

    /// In place of the region: the terminal scrolls as for any program.
    fn write_committed(
        &mut self,
        lines: impl Iterator<Item = Prepared>,
        pen: &mut Pen,
    ) -> io::Result<()> {
        let mut lines = lines.peekable();
        if lines.peek().is_none() {
            return Ok(());
        }
        pen.go(0, 0);
        if self.region.height() > 0 {
            pen.erase_from_here();
            self.region.truncate(0);
        }
        for line in lines {
            line.write(pen);
            if pen.bytes.len() >= LARGEST_WRITE {
                self.write(&pen.bytes)?;
                pen.bytes.clear();
            }
        }
        pen.is_at_origin();
        Ok(())
    }

    /// Makes rows below the region until there are as many as the next frame has.
    fn grow(&self, height: u16, pen: &mut Pen) {
        let rows = self.region.height().max(1);
        if height > rows {
            pen.go(rows - 1, 0);
            pen.down_scrolling(usize::from(height - rows));
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.bytes_written += bytes.len() as u64;
        Ok(())
    }
}
