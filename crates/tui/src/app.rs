//! The state of the session's screen. Pure: inputs, events and the time go in; output lines, a
//! frame and actions come out.
//!
//! Output is given away once and belongs to the terminal's scrollback from then on. Everything else
//! is drawn anew for each frame from the state here, so nothing has to be undone on the screen.
//!
//! Who gets a key, the first that wants it:
//!
//! 1. a list to choose from (`picker`)
//! 2. the list of tasks, if it is open and has the focus
//! 3. a question, if it has the focus (see `question`)
//! 4. the search in the history, and the list of completions
//! 5. the queue of messages, while nothing is typed
//! 6. the keymap, then the editor

mod events;
mod input;
mod pane;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use codespar_protocol::{NoticeLevel, Todo, TodoStatus, ToolUseId};
use codespar_terminal::wrap::OutputLine;
use codespar_terminal::{Line, Size, Span, markdown::MarkdownStream, theme::Theme, width, wrap};

use crate::{
    Status, UserAction,
    activity::{Activity, Motion},
    boxes::Boxes,
    composer::Composer,
    handle::Message,
    keymap::{KeyAction, Keymap},
    layout::{Frame, Keep, Part, compose},
    picker::Picker,
    question::{Moment, OpenQuestion},
    queue::Queue,
    task_pane::TaskPane,
    text::Cleaner,
    tool_calls::ToolCalls,
};

/// Steps of the list that are shown.
const SHOWN_TODOS: usize = 8;
/// A second Ctrl-C within this time leaves.
const AGAIN: Duration = Duration::from_secs(2);

/// What the thread that has the terminal must do besides painting. In order; whoever carries them
/// out may have to give the terminal away in between.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Action(UserAction),
    /// Edit this text in the user's editor and hand the result back.
    ExternalEditor(String),
    /// Stop the process until the shell continues it.
    Suspend,
    /// Paint everything again.
    Repaint,
    /// The terminal is told that something needs attention.
    Notify(String),
}

/// Everything that is shown.
pub(crate) struct App {
    theme: Theme,
    motion: Motion,
    keymap: Keymap,
    cleaner: Cleaner,
    composer: Composer,
    queue: Queue,
    status: Status,
    todos: Vec<Todo>,
    activity: Option<Activity>,
    answer: Option<MarkdownStream>,
    boxes: Boxes,
    calls: ToolCalls,
    /// Calls whose result a box shows.
    boxed: HashSet<ToolUseId>,
    question: Option<OpenQuestion>,
    /// Questions that wait until the shown one is answered.
    questions: VecDeque<Message>,
    picker: Option<Picker>,
    task_pane: Option<TaskPane>,
    last_key: Option<Instant>,
    /// When Ctrl-C was pressed with nothing to cancel.
    asked_to_leave: Option<Instant>,
    is_focused: bool,
    /// Output that was not taken yet.
    output: Vec<OutputLine>,
    effects: Vec<Effect>,
    columns: u16,
}

/// What the state is made from.
pub(crate) struct AppParts {
    pub(crate) theme: Theme,
    pub(crate) motion: Motion,
    pub(crate) keymap: Keymap,
    pub(crate) cleaner: Cleaner,
    pub(crate) composer: Composer,
    pub(crate) size: Size,
}

impl App {
    pub(crate) fn new(parts: AppParts) -> Self {
        Self {
            theme: parts.theme,
            motion: parts.motion,
            keymap: parts.keymap,
            cleaner: parts.cleaner,
            composer: parts.composer,
            queue: Queue::default(),
            status: Status::default(),
            todos: Vec::new(),
            activity: None,
            answer: None,
            boxes: Boxes::default(),
            calls: ToolCalls::default(),
            boxed: HashSet::new(),
            question: None,
            questions: VecDeque::new(),
            picker: None,
            task_pane: None,
            last_key: None,
            asked_to_leave: None,
            is_focused: true,
            output: Vec::new(),
            effects: Vec::new(),
            columns: parts.size.width,
        }
    }

    /// Effects in the order in which they came up.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Lines that are final. Each is given once. Final blocks of the answer that streams in are
    /// among them; its open end is in the frame.
    pub(crate) fn take_output(&mut self) -> Vec<OutputLine> {
        if let Some(answer) = &mut self.answer {
            let stable = answer.take_stable(self.columns);
            self.output.extend(stable);
        }
        std::mem::take(&mut self.output)
    }

    pub(crate) fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.columns = size.width;
    }

    /// Whether output may come by itself.
    pub(crate) fn is_working(&self) -> bool {
        self.activity.is_some()
    }

    pub(crate) fn set_composer_text(&mut self, text: &str, now: Instant) {
        self.composer.set_text(text, now);
    }

    /// Before the process ends or is stopped.
    pub(crate) fn save(&mut self) {
        self.composer.save_draft();
    }

    /// What is drawn here is on the screen again, after keys that were for the pager. A key that
    /// was typed for it must not answer a question that nobody could see.
    pub(crate) fn uncover(&mut self, now: Instant) {
        self.last_key = Some(now);
        if let Some(question) = &mut self.question {
            question.uncover(now);
        }
    }

    /// Made anew for each key: an answer depends on the state in which the key came.
    fn moment(&self, now: Instant) -> Moment {
        Moment {
            now,
            last_key: self.last_key,
            // Keys that edit the queue are no answers either.
            composer_is_empty: self.composer.is_empty() && !self.queue.is_selecting(),
        }
    }

    /// What happens by itself at this time.
    pub(crate) fn on_time(&mut self, now: Instant) {
        self.composer.save_if_due(now);
        if self
            .asked_to_leave
            .is_some_and(|at| now.duration_since(at) >= AGAIN)
        {
            self.asked_to_leave = None;
        }
    }

    /// When something shown changes by itself, or something is due. `None`: nothing moves until an
    /// input or a message comes.
    pub(crate) fn next_time(&self, now: Instant) -> Option<Duration> {
        let boxes = (self.boxes.running() > 0).then_some(Duration::from_millis(500));
        let left = |at: Instant| (at + AGAIN).saturating_duration_since(now);
        [
            self.activity
                .as_ref()
                .and_then(|activity| activity.next_change(now, self.motion)),
            boxes,
            self.composer.next_save(now),
            self.question
                .as_ref()
                .and_then(|question| question.next_look(&self.moment(now))),
            self.asked_to_leave.map(left),
            self.task_pane
                .as_ref()
                .and_then(|pane| pane.next_change(now, self.last_key)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The live region, in at most half of the screen.
    pub(crate) fn frame(&mut self, size: Size, now: Instant) -> Frame {
        if self.picker.is_none()
            && let Some(frame) = self.pane_frame(size, now)
        {
            return frame;
        }
        let rows = live_rows(size);
        let columns = size.width;
        let theme = self.theme;
        let mut parts: Vec<Part> = self.answer_part(columns).into_iter().collect();
        let spinner = match self.motion {
            Motion::Full => "⠹",
            Motion::Reduced => "•",
        };
        let boxes_rows = usize::from(rows).saturating_sub(6).max(4);
        parts.push(Part {
            lines: self.boxes.lines(now, spinner, columns, boxes_rows, theme),
            cursor: None,
            keep: Keep::Beginning,
        });
        parts.push(Part {
            lines: self.todo_lines(),
            cursor: None,
            keep: Keep::Beginning,
        });
        if let Some(activity) = &mut self.activity {
            let key = self.keymap.key_of(KeyAction::Interrupt);
            parts.push(Part {
                lines: activity.lines(now, columns, theme, self.motion, &key),
                ..Part::default()
            });
        }
        parts.push(Part {
            lines: self.queue.lines(columns, theme),
            ..Part::default()
        });
        parts.extend(self.prompt_parts(columns, rows, now));
        compose(parts, columns, rows)
    }

    /// What takes keys: a list, a question with the composer, or the composer; then the status.
    fn prompt_parts(&mut self, columns: u16, rows: u16, now: Instant) -> Vec<Part> {
        let theme = self.theme;
        if let Some(picker) = &self.picker {
            return vec![Part {
                lines: picker.lines(columns, rows, theme),
                cursor: None,
                keep: Keep::All,
            }];
        }
        let mut parts = Vec::new();
        let mut question_cursor = None;
        let moment = self.moment(now);
        if let Some(question) = &mut self.question {
            let (lines, cursor) = question.lines(&moment, columns, theme, &self.cleaner);
            question_cursor = cursor;
            parts.push(Part {
                lines,
                cursor,
                keep: Keep::All,
            });
        }
        let mut composer = self.composer.parts(columns, rows / 2, theme);
        if question_cursor.is_some() {
            composer.iter_mut().for_each(|part| part.cursor = None);
        }
        parts.extend(composer);
        parts.push(Part {
            lines: vec![self.status_line(columns)],
            cursor: None,
            keep: Keep::All,
        });
        parts
    }

    fn status_line(&self, columns: u16) -> Line<'static> {
        match self.asked_to_leave {
            Some(_) => {
                let key = self.keymap.key_of(KeyAction::Cancel);
                Line::styled(format!("  {key} again leaves"), self.theme.warning())
            }
            None => {
                let vim = self.composer.vim_state();
                self.status.line_with(vim, columns, self.theme)
            }
        }
    }

    /// What of the answer is not final yet.
    fn answer_part(&self, columns: u16) -> Option<Part> {
        let tail = self.answer.as_ref()?.tail(columns);
        let lines = tail.iter().flat_map(|line| wrap::rows(line, columns));
        Some(Part {
            lines: lines.collect(),
            ..Part::default()
        })
    }

    /// The steps around the one in progress; nothing once all are done. Up to two steps before the
    /// present one stay, so that progress is seen.
    fn todo_lines(&self) -> Vec<Line<'static>> {
        let is_done = |todo: &Todo| todo.status == TodoStatus::Completed;
        if self.todos.iter().all(is_done) {
            return Vec::new();
        }
        let current = self.todos.iter().position(|todo| !is_done(todo));
        let last = self.todos.len().saturating_sub(SHOWN_TODOS);
        let first = current.unwrap_or(0).saturating_sub(2).min(last);
        let columns = usize::from(self.columns).saturating_sub(4);
        let shown = self.todos.iter().skip(first).take(SHOWN_TODOS);
        let mut lines: Vec<Line<'static>> = shown
            .map(|todo| {
                let (mark, style) = match todo.status {
                    TodoStatus::Completed => ("✓", self.theme.faint()),
                    TodoStatus::InProgress => ("▸", self.theme.strong()),
                    TodoStatus::Pending => ("☐", self.theme.faint()),
                };
                let text = match (todo.status, &todo.active_form) {
                    (TodoStatus::InProgress, Some(doing)) => doing,
                    _ => &todo.content,
                };
                let text = self.cleaner.line(text, columns);
                Line::styled(format!("  {mark} {text}"), style)
            })
            .collect();
        let left = self.todos.len().saturating_sub(first + SHOWN_TODOS);
        if left > 0 {
            lines.push(Line::styled(format!("  +{left} more"), self.theme.faint()));
        }
        lines
    }

    fn say(&mut self, line: impl Into<Line<'static>>) {
        self.output.push(OutputLine::hanging(line, 2));
    }

    /// A text of several lines; what a terminal would obey is escaped. Secrets are taken out as
    /// well.
    fn say_text(&mut self, text: &str, style: codespar_terminal::Style) {
        let text = self.cleaner.clean(text);
        for line in text.lines() {
            self.say(Line::styled(line.to_owned(), style));
        }
    }

    fn notice(&mut self, level: NoticeLevel, text: &str) {
        let style = match level {
            NoticeLevel::Warning => self.theme.warning(),
            NoticeLevel::Info => self.theme.faint(),
        };
        self.say_text(text, style);
    }

    /// What the user sent, where it was sent. The first lines only: what was pasted may be long,
    /// and the history has all of it.
    fn echo(&mut self, text: &str) {
        let text = self.cleaner.clean(text);
        let lines: Vec<&str> = text.lines().collect();
        let shown = 12;
        self.output.push(OutputLine::default());
        for (number, line) in lines.iter().take(shown).enumerate() {
            let mark = if number == 0 { "› " } else { "  " };
            let spans = vec![
                Span::styled(mark, self.theme.accent()),
                Span::styled(width::shortened(line, 2_000), self.theme.strong()),
            ];
            let output = OutputLine::hanging(spans, 2);
            self.output.push(match number {
                0 => output.marked(wrap::Mark::Prompt),
                _ => output,
            });
        }
        if lines.len() > shown {
            let left = lines.len() - shown;
            self.say(Line::styled(
                format!("  … {left} more lines"),
                self.theme.faint(),
            ));
        }
    }

    /// Whatever was streamed so far is final. Called before calls, questions, steps and output of
    /// the driver, so that these come after it.
    fn finish_answer(&mut self) {
        if let Some(mut answer) = self.answer.take() {
            let rest = answer.finish(self.columns);
            self.output.extend(rest);
        }
    }
}

/// At most half of the screen.
fn live_rows(size: Size) -> u16 {
    (size.height / 2).max(3).min(size.height)
}
