//! The size of the terminal: what the system says, and what the terminal answers itself.
//!
//! While an agent works, frames ask for the size that they are shown at. After a resize, painting
//! waits for a moment for the answers to frames that were on their way.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use codespar_terminal::{
    Size, modes,
    painter::{SizeNews, SizeQueries},
};

use super::{Next, TuiError, Ui};
use crate::pace::Urgency;

/// What has not been answered by then is painted without.
const ANSWER: Duration = Duration::from_millis(150);
/// The system is told of a resize by then, also by tmux.
const TOLD: Duration = Duration::from_secs(1);

/// What the terminal said of its size.
#[derive(Debug, Default)]
pub(super) struct SizeAnswers {
    /// `None` if it does not answer, or not as the system does.
    order: Option<Order>,
    /// When the system is told of a resize.
    pub(super) news: SizeNews,
    /// The last answer.
    told: Option<Told>,
    /// Until when painting waits for an answer.
    held: Option<Instant>,
}

/// In which order it names rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    RowsFirst,
    /// As tmux does it up to 3.3.
    ColumnsFirst,
}

impl Order {
    fn size(self, (first, second): (u16, u16)) -> Size {
        match self {
            Self::RowsFirst => Size::new(second, first),
            Self::ColumnsFirst => Size::new(first, second),
        }
    }
}

#[derive(Debug)]
struct Told {
    size: Size,
    by_system: Size,
    at: Instant,
}

/// A terminal that does not know its size is taken for the usual one.
pub(super) fn by_system() -> Size {
    modes::size(rustix::stdio::stdout()).unwrap_or(Size::new(80, 24))
}

impl SizeAnswers {
    pub(super) fn new(news: SizeNews) -> Self {
        Self {
            news,
            ..Self::default()
        }
    }

    pub(super) fn held(&self) -> Option<Instant> {
        self.held
    }

    /// The terminal's own answer until the system is told; where that may be an older size, always.
    fn current(&self, now: Instant) -> Size {
        let by_system = by_system();
        let told = self.told.as_ref().filter(|told| {
            let is_newer = told.by_system == by_system;
            let is_young = now.saturating_duration_since(told.at) < TOLD;
            self.news == SizeNews::Late || is_newer && is_young
        });
        told.map_or(by_system, |told| told.size)
    }

    /// What the terminal said before something else had it is old.
    pub(super) fn forget(&mut self) {
        self.told = None;
    }
}

impl Ui {
    /// The system says that the size is another. Where that is late, the terminal is asked.
    pub(super) fn told_of_resize(&mut self) -> Result<(), TuiError> {
        let is_late = self.sizes.news == SizeNews::Late && self.sizes.order.is_some();
        if is_late && self.modes.is_some() {
            let mut out = io::stdout();
            out.write_all(modes::QUERY_SIZE)?;
            out.flush()?;
            self.painter.asked();
        }
        self.resized();
        Ok(())
    }

    pub(super) fn resized(&mut self) {
        let size = self.sizes.current(Instant::now());
        if size != self.size {
            self.size = size;
            self.app.resize(size);
            self.painter.resize(size);
        }
    }

    /// The first answer says whether the terminal can be asked. One that differs from the system at
    /// rest means something else. Rows first is the standard; the order is learned by comparing
    /// with the system, once.
    pub(super) fn size_answered(&mut self, answer: (u16, u16), now: Instant) {
        let Some(order) = self.sizes.order else {
            let by_system = by_system();
            let orders = [Order::RowsFirst, Order::ColumnsFirst];
            let order = orders.into_iter().find(|one| one.size(answer) == by_system);
            self.sizes.order = order;
            return;
        };
        let size = order.size(answer);
        self.painter.answered(size);
        self.sizes.told = Some(Told {
            size,
            by_system: by_system(),
            at: now,
        });
        if size != self.size {
            self.resized();
            self.pace.changed(Urgency::Next);
        }
        if self.sizes.held.is_some() && !self.painter.is_in_doubt() {
            self.sizes.held = None;
            self.pace.changed(Urgency::Next);
        }
    }

    /// Whether the next frame is asked about: only while something is shown by itself. A program
    /// that gets the terminal next must not get the answers.
    pub(super) fn choose_queries(&mut self) {
        let queries = match self.app.is_working() && self.sizes.order.is_some() {
            true => SizeQueries::On,
            false => SizeQueries::Off,
        };
        self.painter.set_size_queries(queries);
    }

    /// Whether painting has to wait for an answer.
    pub(super) fn must_wait_for_answer(&mut self, now: Instant) -> bool {
        if !self.painter.is_in_doubt() {
            self.sizes.held = None;
            return false;
        }
        let until = *self.sizes.held.get_or_insert(now + ANSWER);
        if now < until {
            return true;
        }
        self.sizes.held = None;
        self.sizes.forget();
        self.painter.stop_waiting();
        self.resized();
        false
    }

    /// Paints even if that has to wait: what follows needs the screen to be complete. Afterwards no
    /// answer is on its way.
    pub(super) fn paint_and_settle(&mut self) -> Result<(), TuiError> {
        self.settle()?;
        self.paint(Instant::now())?;
        self.settle()
    }

    /// Reads the answers that are on their way: the terminal is going to be another program's. For
    /// at most `ANSWER`; what comes later would be read by the other program as keys.
    pub(super) fn settle(&mut self) -> Result<(), TuiError> {
        self.read_answers()?;
        self.painter.stop_waiting();
        Ok(())
    }

    fn read_answers(&mut self) -> Result<(), TuiError> {
        let until = Instant::now() + ANSWER;
        while self.modes.is_some() && self.painter.is_answer_due() {
            let now = Instant::now();
            let left = until.saturating_duration_since(now);
            if left.is_zero() || self.read_within(left, now)? == Next::End {
                break;
            }
        }
        Ok(())
    }
}
