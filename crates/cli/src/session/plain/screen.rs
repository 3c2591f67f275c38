//! What the user sees: plain lines that scroll, each written once, from top to bottom.
//!
//! Nothing is ever rewritten and nothing moves by itself, so a screen reader reads each line once.
//! Text from outside goes through `plain` wherever its width or its lines matter; the printer
//! escapes the rest.
//!
//! What of an event is shown:
//!
//! ```text
//! TextDelta                     streamed as it comes
//! ToolStarted, ToolResults      one line, then the first lines of the result
//! TaskStarted, TaskEnded        a line each, with the first lines of the result
//! denials, retries, notices     one line each
//! Assistant, thinking, turns    nothing: the text was streamed already
//! ```

use std::collections::HashSet;

use codespar_protocol::{
    ContentBlock, Event, Message, NoticeLevel, Outcome, PermissionRequest, QuestionRequest,
    RunResult, TaskId, TaskStatus, Todo, TodoStatus, ToolUseId, counted, retry_text, short_count,
};
use parking_lot::Mutex;

use crate::{
    printer::{self, To, plain},
    style,
};

/// How many lines of a tool's result are shown.
const RESULT_LINES: usize = 4;
/// How many lines of a task's result are shown.
const TASK_LINES: usize = 5;
/// In characters; longer lines of results and summaries are cut.
const LINE_WIDTH: usize = 160;

/// Everything is written through one lock: several agents speak at once.
#[derive(Default)]
pub(super) struct Screen {
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    row: Row,
    /// Calls that started a task. Their text would stand there twice.
    calls_of_tasks: HashSet<ToolUseId>,
}

/// Where the cursor is.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Row {
    #[default]
    Begun,
    /// After text without a line end.
    InText,
    /// After the prompt, where the user types.
    AtPrompt,
}

impl Shown {
    fn write(&mut self, text: &str) {
        let Some(last) = text.chars().last() else {
            return;
        };
        // Without anybody to read it the session ends by itself.
        let _ = printer::write(To::Stdout, text);
        self.row = match last {
            '\n' => Row::Begun,
            _ => Row::InText,
        };
    }

    fn begin_row(&mut self) {
        if self.row != Row::Begun {
            self.write("\n");
        }
    }

    fn prompt(&mut self) {
        self.begin_row();
        self.write(&format!("\n{} ", style::good("›")));
        self.row = Row::AtPrompt;
    }
}

impl Screen {
    pub(super) fn prompt(&self) {
        self.shown.lock().prompt();
    }

    /// Something else comes before the user has typed. A notification arrived, for example.
    pub(super) fn leave_prompt(&self) {
        let mut shown = self.shown.lock();
        if shown.row == Row::AtPrompt {
            shown.begin_row();
        }
    }

    /// The terminal has shown the line, and begun a new row.
    pub(super) fn line_was_typed(&self) {
        self.shown.lock().row = Row::Begun;
    }

    /// Whole lines. A line that was begun is ended first; a prompt stands below again. Styles in
    /// `text` are marks.
    pub(super) fn say(&self, text: &str) {
        let mut shown = self.shown.lock();
        let was_at_prompt = shown.row == Row::AtPrompt;
        shown.begin_row();
        shown.write(&format!("{text}\n"));
        if was_at_prompt {
            shown.prompt();
        }
    }

    /// The answer comes on the same line.
    pub(super) fn ask(&self, text: &str) {
        let mut shown = self.shown.lock();
        shown.begin_row();
        shown.write(text);
    }

    /// The cursor stays on the line, after the choices.
    pub(super) fn question(&self, request: &QuestionRequest) {
        match request {
            QuestionRequest::Permission(asked) => self.permission(asked),
            QuestionRequest::Clarification(asked) => {
                self.say_above(&style::warning(plain(&asked.text)));
                self.ask("  your answer, or nothing for no › ");
            }
            QuestionRequest::Elicitation(asked) => {
                let text = format!("{} asks: {}", asked.server, asked.message);
                self.say_above(&style::warning(plain(&text)));
                let fields = asked.fields().into_iter();
                let fields: Vec<String> = fields.map(|(name, _)| format!("{name}=…")).collect();
                self.ask(&format!("  {} or n › ", plain(&fields.join(" "))));
            }
        }
    }

    /// Order: what is wanted, a preview, the reason, the choices with the rule that "always" would
    /// add.
    fn permission(&self, question: &PermissionRequest) {
        let always = match question.suggested_rules.as_slice() {
            [] => String::new(),
            rules => format!("  {} always: {}", style::strong("a"), rules.join(", ")),
        };
        let preview: String = question
            .preview
            .iter()
            .flat_map(|text| text.lines())
            .map(|line| format!("  {}\n", style::faint(short(line))))
            .collect();
        self.ask(&format!(
            "{} {}\n{preview}  {}\n  {} once{always}  {} no › ",
            style::warning(format!("{} wants:", question.tool)),
            plain(&question.summary),
            style::faint(plain(&question.reason)),
            style::strong("y"),
            style::strong("n"),
        ));
    }

    /// Called by agents from other threads, in the order of their events. The match has no
    /// wildcard, so a new kind of event must be given a place here.
    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::TextDelta { text } => self.stream(&plain(text)),
            Event::ToolStarted { tool, summary, .. } => {
                self.say(&format!(
                    "{} {} {}",
                    style::good("▸"),
                    style::strong(tool),
                    short(summary)
                ));
            }
            Event::ToolResults { message, .. } => self.results(message),
            Event::PermissionDenied(denial) => {
                self.say(&style::warning(format!("  denied: {}", denial.reason)));
            }
            Event::Retrying {
                attempt,
                delay_ms,
                reason,
            } => self.say(&style::warning(retry_text(*attempt, *delay_ms, reason))),
            Event::Todos { todos } => todos.iter().for_each(|todo| self.say(&todo_line(todo))),
            Event::Compacted { tokens_before, .. } => {
                self.say(&style::faint(format!(
                    "older turns were summarised at {tokens_before} tokens"
                )));
            }
            Event::TaskStarted {
                task_id,
                subject,
                kind,
                tool_use_id,
                ..
            } => {
                self.shown.lock().calls_of_tasks.extend(tool_use_id.clone());
                let kind = kind.as_deref().unwrap_or("task");
                self.task_started(task_id, &format!("{kind} · {subject}"));
            }
            Event::Step { text, .. } => self.say(&plain(text)),
            Event::TaskEnded {
                task_id,
                status,
                subject,
                detail,
                usage,
                cost,
                tool_uses,
                duration_ms,
                ..
            } => {
                let mark = match status {
                    TaskStatus::Completed => style::good("✓"),
                    _ => style::error("✗"),
                };
                let title = format!("{task_id} {status} · {subject}");
                let sums = format!(
                    "{} · {} tokens · {cost} · {:.0} s",
                    counted(*tool_uses as usize, "tool call"),
                    short_count(usage.total_tokens()),
                    *duration_ms as f64 / 1000.0
                );
                let mut lines = vec![format!("{mark} {}", style::strong(short(&title)))];
                lines.push(format!("  {sums}"));
                lines.extend(first_lines(detail, task_id));
                self.say(&lines.join("\n"));
            }
            Event::Notice { level, text } => self.say(&match level {
                NoticeLevel::Warning => style::warning(text),
                NoticeLevel::Info => style::faint(text),
            }),
            Event::TurnStarted { .. }
            | Event::ThinkingDelta { .. }
            | Event::Assistant { .. }
            | Event::ToolFinished { .. }
            | Event::CommandOutput { .. }
            | Event::PermissionAsked { .. }
            | Event::TaskProgress { .. }
            | Event::Subagent { .. }
            | Event::Finished(_) => {}
        }
    }

    fn task_started(&self, id: &TaskId, title: &str) {
        self.say(&format!(
            "{} {}\n  started as {id} · /task-status {id}",
            style::good("▸"),
            style::strong(short(title))
        ));
    }

    /// The first lines of each result; the model has all of it. Results of calls that
    /// started a task are left out: the task says the same.
    fn results(&self, message: &Message) {
        for block in &message.content {
            let ContentBlock::ToolResult(result) = block else {
                continue;
            };
            if self.shown.lock().calls_of_tasks.remove(&result.tool_use_id) {
                continue;
            }
            let text = result.content.text();
            let mut lines: Vec<String> = text
                .lines()
                .take(RESULT_LINES)
                .map(|line| format!("  {}", short(line)))
                .collect();
            let left = text.lines().count().saturating_sub(RESULT_LINES);
            if left > 0 {
                lines.push(format!("  … {}", counted(left, "more line")));
            }
            let shown = lines.join("\n");
            self.say(&if result.is_error {
                style::warning(shown)
            } else {
                style::faint(shown)
            });
        }
    }

    /// Says why the turn ended, if not by itself, and what it has cost.
    pub(crate) fn end_of_turn(&self, result: &RunResult) {
        if result.interrupted {
            self.say(&style::warning("interrupted"));
        } else if result.outcome != Outcome::Success {
            self.say(&style::error(&result.result));
        }
        self.say(&style::faint(format!(
            "{} · {} tokens · {} · {:.1} s",
            counted(result.num_turns as usize, "turn"),
            result.usage.total_tokens(),
            result.cost,
            result.duration_ms as f64 / 1000.0
        )));
    }

    /// A question: the prompt does not come back below it.
    fn say_above(&self, text: &str) {
        let mut shown = self.shown.lock();
        shown.begin_row();
        shown.write(&format!("{text}\n"));
    }

    fn stream(&self, text: &str) {
        let mut shown = self.shown.lock();
        if shown.row == Row::AtPrompt {
            shown.begin_row();
        }
        shown.write(text);
    }
}

/// Of the result of a task; `/task-status` shows the others.
fn first_lines(result: &str, id: &TaskId) -> Vec<String> {
    let lines = result.lines().filter(|line| !line.trim().is_empty());
    let left = lines.clone().count().saturating_sub(TASK_LINES);
    let mut shown: Vec<String> = lines
        .take(TASK_LINES)
        .map(|line| format!("  {}", short(line)))
        .collect();
    if left > 0 {
        let more = counted(left, "more line");
        shown.push(format!("  … {more} · /task-status {id}"));
    }
    shown
}

/// Without control characters, and cut at [`LINE_WIDTH`].
fn short(line: &str) -> String {
    let line = &*plain(line);
    match line.char_indices().nth(LINE_WIDTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn todo_line(todo: &Todo) -> String {
    match todo.status {
        TodoStatus::Completed => style::faint(format!("  ✓ {}", todo.content)),
        TodoStatus::InProgress => {
            let doing = todo.active_form.as_ref().unwrap_or(&todo.content);
            style::strong(format!("  ▸ {doing}"))
        }
        TodoStatus::Pending => format!("  · {}", todo.content),
    }
}
