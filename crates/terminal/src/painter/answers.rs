//! At which size the terminal showed a frame, by its own answers.
//!
//! A frame that is on its way while the terminal is resized is for a width that the terminal has no
//! longer: what it paints is at other rows than it was meant for. So a frame can ask for the size
//! before it paints (`CSI 18 t`). An answer with another size than the frame was made for says that
//! this frame went astray, and all after it. What was shown before is known, and so is how far
//! above it begins; from there on everything can be erased, and the lines that those frames
//! committed are written again.

use std::collections::VecDeque;

use ratatui_core::layout::Size;

use super::{Options, Reflow, committed::Prepared, region::Region};
use crate::wrap::OutputLine;

/// Asks for the size in rows and columns.
pub(crate) const QUERY_SIZE: &str = "\x1b[18t";

/// A terminal that is behind by more is not asked.
const MOST_WAITING: usize = 8;

/// Whether frames ask the terminal for its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SizeQueries {
    #[default]
    Off,
    On,
}

/// How committed lines came to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// As rows of the live region where that looks the same.
    PaintedOver,
    /// All as text.
    Written,
}

/// What the terminal showed before a frame.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) region: Region,
    /// Row and column in the region.
    pub(super) cursor: (u16, u16),
    pub(super) size: Size,
    /// How many rows above the cursor the frame took the region to begin.
    pub(super) up: usize,
}

/// A frame that was written and not answered for.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) before: Before,
    /// That the frame was made for.
    pub(super) size: Size,
    pub(super) way: Way,
    /// The lines that it committed; `None` if they do not fit on the screen.
    pub(super) lines: Option<Vec<OutputLine>>,
}

/// Frames that were shown at another size than they were made for.
#[derive(Debug)]
struct Astray {
    before: Before,
    /// At which they were shown.
    size: Size,
    /// Rows of their committed lines, as the terminal wrapped them.
    rows: usize,
    /// `None`: not all of it can be put right.
    lines: Option<Vec<OutputLine>>,
}

/// Where frames that went astray began, and what has to be written again.
pub(super) struct Found {
    /// Rows above those that the last of them took for the beginning of the region.
    pub(super) above: usize,
    pub(super) lines: Vec<OutputLine>,
}

#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) queries: SizeQueries,
    /// In the order of the questions; `None` for one that came with no frame.
    waiting: VecDeque<Option<Sent>>,
    /// Answers that will come too late.
    ignored: usize,
    astray: Option<Astray>,
    /// Whether the last frame was answered for.
    is_last_known: bool,
}

impl Answers {
    pub(super) fn may_ask(&self) -> bool {
        let waiting = self.waiting.len() + self.ignored;
        self.queries == SizeQueries::On && waiting < MOST_WAITING
    }

    /// A frame was written, with the question or without.
    pub(super) fn sent(&mut self, sent: Option<Sent>) {
        self.is_last_known = false;
        match sent {
            Some(sent) => self.waiting.push_back(Some(sent)),
            // It was made on top of others, and nothing tells where it is.
            None => self.stop_waiting(),
        }
    }

    /// The terminal was asked without a frame.
    pub(super) fn asked(&mut self) {
        self.waiting.push_back(None);
    }

    pub(super) fn answered(&mut self, size: Size, options: Options) {
        if self.ignored > 0 {
            self.ignored -= 1;
            return;
        }
        let Some(Some(sent)) = self.waiting.pop_front() else {
            return;
        };
        self.is_last_known = !self.waiting.iter().any(Option::is_some);
        match &mut self.astray {
            None if sent.size == size => {}
            None => {
                let lines = Some(Vec::new());
                let (rows, before) = (0, sent.before);
                let sent = (sent.lines, sent.size, sent.way);
                let mut astray = Astray {
                    before,
                    size,
                    rows,
                    lines,
                };
                astray.add(sent, size, options);
                self.astray = Some(astray);
            }
            Some(astray) => astray.add((sent.lines, sent.size, sent.way), size, options),
        }
    }

    /// For the answer about a frame.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(Option::is_some)
    }

    /// For an answer that was asked for without a frame.
    pub(super) fn is_asked(&self) -> bool {
        self.waiting.iter().any(Option::is_none)
    }

    /// Whether an answer is on its way, also one that nobody needs.
    pub(super) fn is_any_due(&self) -> bool {
        self.ignored > 0 || !self.waiting.is_empty()
    }

    pub(super) fn is_astray(&self) -> bool {
        self.astray.is_some()
    }

    /// Whether it is certain that the last frame was shown at the size it was made for.
    pub(super) fn is_last_in_place(&self) -> bool {
        self.is_last_known && self.astray.is_none()
    }

    pub(super) fn stop_waiting(&mut self) {
        self.ignored += self.waiting.len();
        self.waiting.clear();
        self.is_last_known = false;
    }

    /// For a terminal that has this size now and shows a region of so many rows. `None`: nothing
    /// went astray, or it cannot be known where it is.
    pub(super) fn find(&mut self, size: Size, reflow: Reflow, height: usize) -> Option<Found> {
        let astray = self.astray.take()?;
        let before = &astray.before;
        let sizes = (before.size, size);
        let begin = before.region.rows_above(before.cursor, sizes, reflow);
        // Else it took rows for its own that are not.
        let offset = begin.checked_sub(before.up)?;
        let above = offset + astray.rows;
        // What has left the screen cannot be erased.
        let is_on_screen = above + height <= usize::from(size.height);
        let lines = astray
            .lines
            .filter(|_| is_on_screen && astray.size == size)?;
        Some(Found { above, lines })
    }
}

impl Astray {
    fn add(
        &mut self,
        (lines, made_for, way): (Option<Vec<OutputLine>>, Size, Way),
        size: Size,
        options: Options,
    ) {
        let (Some(all), Some(lines)) = (&mut self.lines, lines) else {
            self.lines = None;
            return;
        };
        if size != self.size {
            self.lines = None;
            return;
        }
        let rows = lines.iter().map(|line| {
            let prepared = Prepared::of(line, made_for.width, options);
            prepared.height_at(size.width, way)
        });
        let Some(rows) = rows.sum::<Option<usize>>() else {
            self.lines = None;
            return;
        };
        self.rows += rows;
        all.extend(lines);
    }
}
