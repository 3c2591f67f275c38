//! The list of tasks: opened by the user, who moves through it, reads the end of a task's output,
//! stops it, sends it a message or opens its transcript. It has the keys until it is closed.
//!
//! ```text
//! tree   children below their parents
//! keys   what a key does
//! draw   from rows to lines
//! ```

mod draw;
mod keys;
mod tree;

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use codespar_protocol::{Cost, TaskId, TaskStatus};
use codespar_terminal::editor::Editor;

pub(crate) use self::keys::PaneKey;
use self::tree::Place;
use crate::text::Cleaner;

/// The list gets the keys so long after the last one, if text was being typed when it opened.
const QUIET: Duration = Duration::from_secs(1);
/// Lines of output that are kept of a task.
const TAIL: usize = 50;

/// A task as it is shown. Handed in by whoever drives the session.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    pub id: TaskId,
    /// The task that started it.
    pub parent: Option<TaskId>,
    pub subject: String,
    /// What runs: the name of an agent, `shell`.
    pub kind: String,
    pub state: TaskStatus,
    pub model: Option<String>,
    /// Until now, or until it ended. Goes on by itself while the task runs.
    pub elapsed: Duration,
    pub tokens: u64,
    pub cost: Cost,
    /// The last lines of its output, the newest last.
    pub output: Vec<String>,
    /// Whether a message can be sent to it.
    pub accepts_messages: bool,
}

/// Which tasks are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// Those that are not over.
    Unfinished,
}

impl Scope {
    fn includes(self, row: &TaskRow) -> bool {
        self == Self::All || !row.state.is_final()
    }
}

/// What the keys are for.
enum Entry {
    Browse,
    /// Whether this task is to be stopped.
    Stop(TaskId),
    Message(TaskId, Box<Editor>),
}

/// The list while it is open.
pub(crate) struct TaskPane {
    rows: Vec<TaskRow>,
    /// When the rows came.
    rows_at: Instant,
    /// The rows that pass the filter, in the order in which they are shown.
    places: Vec<Place>,
    scope: Scope,
    /// Among the places.
    selected: usize,
    expanded: HashSet<TaskId>,
    /// The first line of the list that is on the screen.
    top: usize,
    entry: Entry,
    /// A message that was begun and not sent.
    draft: Option<(TaskId, Box<Editor>)>,
    /// What the last key came to, until the next one.
    note: Option<String>,
    /// The user went on typing before the list was there: these keys are not for it.
    awaits_quiet: bool,
}

impl TaskPane {
    pub(crate) fn new(rows: Vec<TaskRow>, cleaner: &Cleaner, now: Instant) -> Self {
        let mut pane = Self {
            rows: Vec::new(),
            rows_at: now,
            places: Vec::new(),
            scope: Scope::All,
            selected: 0,
            expanded: HashSet::new(),
            top: 0,
            entry: Entry::Browse,
            draft: None,
            note: None,
            awaits_quiet: false,
        };
        pane.update(rows, cleaner, now);
        pane
    }

    /// For a list that opens while there is text in the composer.
    pub(crate) fn after_quiet(mut self) -> Self {
        self.awaits_quiet = true;
        self
    }

    /// The selected task stays selected, wherever it is now.
    pub(crate) fn update(&mut self, rows: Vec<TaskRow>, cleaner: &Cleaner, now: Instant) {
        let selected = self.selected_row().map(|row| row.id.clone());
        self.rows = rows.into_iter().map(|row| cleaned(row, cleaner)).collect();
        self.rows_at = now;
        self.arrange(selected.as_ref());
        let is_gone = |id: &TaskId| self.rows.iter().all(|row| row.id != *id);
        if matches!(&self.entry, Entry::Stop(id) if is_gone(id)) {
            self.entry = Entry::Browse;
        }
    }

    /// Puts the rows in order. Without the row that was selected, its neighbour is. `selected` is
    /// by id, since rows come and go between updates.
    fn arrange(&mut self, selected: Option<&TaskId>) {
        let scope = self.scope;
        self.places = tree::places(&self.rows, |row| scope.includes(row));
        let found = selected.and_then(|id| {
            let mut places = self.places.iter();
            places.position(|place| self.rows[place.row].id == *id)
        });
        let last = self.places.len().saturating_sub(1);
        self.selected = found.unwrap_or(self.selected).min(last);
    }

    fn selected_row(&self) -> Option<&TaskRow> {
        let place = self.places.get(self.selected)?;
        self.rows.get(place.row)
    }

    fn find(&self, id: &TaskId) -> Option<&TaskRow> {
        self.rows.iter().find(|row| row.id == *id)
    }

    fn running(&self) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.state == TaskStatus::Running).count()
    }

    /// Until when keys are for the composer; `None` once they are for the list.
    fn quiet_at(&self, last_key: Option<Instant>) -> Option<Instant> {
        last_key.filter(|_| self.awaits_quiet).map(|at| at + QUIET)
    }

    /// Always, unless it opened while something was being typed and no pause has come since.
    pub(crate) fn has_focus(&self, now: Instant, last_key: Option<Instant>) -> bool {
        self.quiet_at(last_key).is_none_or(|at| now >= at)
    }

    /// When what is shown changes by itself: running times, and the focus.
    pub(crate) fn next_change(&self, now: Instant, last_key: Option<Instant>) -> Option<Duration> {
        let time = (self.running() > 0).then_some(Duration::from_secs(1));
        let focus = self
            .quiet_at(last_key)
            .and_then(|at| at.checked_duration_since(now))
            .filter(|left| !left.is_zero());
        [time, focus].into_iter().flatten().min()
    }
}

/// Names and output come from models, commands and repositories.
fn cleaned(row: TaskRow, cleaner: &Cleaner) -> TaskRow {
    let first = row.output.len().saturating_sub(TAIL);
    let output = row.output[first..].iter();
    TaskRow {
        subject: cleaner.line(&row.subject, 400),
        kind: cleaner.line(&row.kind, 100),
        model: row.model.map(|model| cleaner.line(&model, 100)),
        output: output.map(|line| cleaner.line(line, 400)).collect(),
        ..row
    }
}
