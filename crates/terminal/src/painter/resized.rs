//! What a resize does to the terminal, and where the live region is after it.

use std::{io::Write, time::Duration};

use ratatui_core::layout::Size;

use super::{
    Painter, QUERY_SIZE, State,
    answers::{Before, Found, Sent, SizeQueries, Way},
    pen::Pen,
    region::Region,
};

/// What the terminal does with its rows when its width changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reflow {
    /// Rows that do not fit go on in the next one.
    Yes,
    /// As `Yes`, but one row is cut, that of the cursor, and the cursor does not stay in its row:
    /// as xterm.js does it. It can be followed over one resize, so draw after each.
    XtermJs,
    /// Rows that do not fit are cut.
    No,
}

/// When a program learns of a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SizeNews {
    /// With the resize.
    #[default]
    AtOnce,
    /// Up to some hundred milliseconds after it (tmux). Until then frames are drawn for a width
    /// that the terminal has no longer. Where it cannot be asked, committed lines are written below
    /// an erased live region, where it does not matter how the terminal wraps them, and a frame
    /// that was drawn just before the news is taken for cut and not for wrapped: a piece of it may
    /// stay, but no line is lost.
    Late,
}

/// Frames that are younger may have been drawn after a resize that is learned of late.
const LATE: Duration = Duration::from_millis(500);

impl<W: Write> Painter<W> {
    /// Whether the next frames ask the terminal for its size. Hand in what it answers.
    pub fn set_size_queries(&mut self, queries: SizeQueries) {
        self.answers.queries = queries;
    }

    /// The caller asks the terminal for its size, and hands in the answer like those to frames. The
    /// next draw waits for it.
    pub fn asked(&mut self) {
        self.answers.asked();
    }

    /// The terminal answered with its size. Answers come in the order of the frames.
    pub fn answered(&mut self, size: Size) {
        self.answers.answered(size, self.options);
    }

    /// Whether an answer is to come, which another program must not read.
    pub fn is_answer_due(&self) -> bool {
        self.answers.is_any_due()
    }

    /// Whether an answer is to come that the next draw needs to find what the terminal shows.
    pub fn is_in_doubt(&self) -> bool {
        let is_new = matches!(self.state, State::Resized | State::ResizedAgain);
        let is_unknown = is_new || self.answers.is_astray();
        self.answers.is_asked() || self.answers.is_waiting() && is_unknown
    }

    /// The answers do not come, or too late.
    pub fn stop_waiting(&mut self) {
        self.answers.stop_waiting();
    }

    /// The terminal was resized. What it did to the live region is put right by the next draw,
    /// which should come before another resize.
    pub fn resize(&mut self, size: Size) {
        if size != self.size {
            self.state = match self.state {
                State::Drawn => State::Resized,
                State::Resized => State::ResizedAgain,
                other => other,
            };
        }
        self.size = size;
    }

    /// Asks for the size, if the terminal is to be asked, and notes what it shows before the frame.
    pub(super) fn question(&self, pen: &mut Pen) -> Option<Sent> {
        if !self.answers.may_ask() {
            return None;
        }
        pen.sequence(QUERY_SIZE);
        Some(Sent {
            before: Before {
                region: self.region.clone(),
                cursor: self.cursor,
                size: self.drawn,
                up: 0,
            },
            size: self.size,
            way: Way::Written,
            lines: None,
        })
    }

    /// Makes the rows of the terminal what `self.region` says: after a resize that is nothing.
    /// Returns how many rows above the cursor it takes the region to begin.
    pub(super) fn begin(&mut self, next: &Region, pen: &mut Pen) -> usize {
        let is_nothing_there = self.region.height() == 0;
        if is_nothing_there && next.height() == 0 && self.queue.is_empty() {
            return 0;
        }
        if self.state == State::Drawn && self.answers.is_astray() {
            // It was resized and has its size again.
            self.state = State::ResizedAgain;
        }
        let mut up = usize::from(self.cursor.0);
        match self.state {
            State::Drawn | State::Suspended => return up,
            State::Fresh => pen.erase_from_here(),
            State::Resized | State::ResizedAgain
                if is_nothing_there && !self.answers.is_astray() =>
            {
                pen.sequence("\r");
            }
            State::Resized | State::ResizedAgain => {
                up = self.find_region();
                pen.sequence("\r");
                pen.control(up, 'A');
                pen.is_at_origin();
                pen.erase_from_here();
                self.region.truncate(0);
            }
        }
        self.state = State::Drawn;
        up
    }

    /// How many rows above the cursor that begins which has to be painted again after a resize.
    fn find_region(&mut self) -> usize {
        let row = usize::from(self.cursor.0);
        let was_astray = self.answers.is_astray();
        let height = self.region.rows.len();
        match self.answers.find(self.size, self.reflow, height) {
            Some(Found { above, lines }) if self.state == State::Resized => {
                self.queue.splice(0..0, lines);
                row + above
            }
            // Too few rows up leave a piece of the region, too many erase a line.
            _ if was_astray => row,
            _ => {
                let sizes = (self.drawn, self.size);
                let reflow = self.reflow_now();
                self.region.rows_above(self.cursor, sizes, reflow)
            }
        }
    }

    /// How the terminal treated the frame that it shows.
    fn reflow_now(&self) -> Reflow {
        let is_young = self.drawn_at.is_some_and(|at| at.elapsed() < LATE);
        let is_unknown = is_young && !self.answers.is_last_in_place();
        match (self.size_news, self.state) {
            (SizeNews::Late, _) if is_unknown => Reflow::No,
            (_, State::ResizedAgain) => Reflow::No,
            _ => self.reflow,
        }
    }
}
