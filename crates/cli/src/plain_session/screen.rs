//! What the user sees: plain lines that scroll, so that copy, search and tmux work.
//!
//! Only boxes of subagents are ever rewritten, and only while the user is not typing. Everything
//! else is written once, from top to bottom. Text from outside goes through `plain` wherever its
//! width or its lines matter; the printer escapes the rest.
//!
//! What of an event is shown:
//!
//! ```text
//! TextDelta                     streamed as it comes
//! ToolStarted, ToolResults      one line, then the first lines of the result
//! TaskStarted … TaskEnded       a box, updated by the events of the subagent
//! denials, retries, notices     one line each
//! Assistant, thinking, turns    nothing: the text was streamed already
//! ```

use std::{collections::HashSet, sync::Arc};

use codespar_protocol::{
    ContentBlock, Event, Message, NoticeLevel, Outcome, PermissionRequest, QuestionRequest, Role,
    RunResult, TaskId, TaskStatus, Todo, TodoStatus, ToolUseId, retry_text,
};
use codespar_store::{SessionFilter, Store};
use parking_lot::Mutex;

use super::{
    boxes::{self, Boxes, End},
    page::Page,
};
use crate::{error::CommandError, printer::plain, style};
use codespar_runtime::ProjectDir;

/// How many lines of a tool's result are shown.
const RESULT_LINES: usize = 4;
/// In characters; longer lines of results and summaries are cut.
const LINE_WIDTH: usize = 160;

/// What is on the screen. Everything is written through one lock: several agents speak at once.
pub(crate) struct Screen {
    shown: Mutex<Shown>,
    /// Calls whose result a box shows. Their text would stand there twice.
    boxed: Mutex<HashSet<ToolUseId>>,
}

/// Page and boxes share a lock: a box may be rewritten only at the row where the page says it is.
struct Shown {
    page: Page,
    boxes: Boxes,
    /// The user is to type: nothing moves.
    is_still: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            shown: Mutex::new(Shown {
                page: Page::new(),
                boxes: Boxes::default(),
                is_still: false,
            }),
            boxed: Mutex::default(),
        }
    }
}

impl Screen {
    /// After this nothing is rewritten until a line comes: the terminal echoes what is typed, and
    /// where the cursor is then is not known.
    pub(super) fn prompt(&self) {
        self.finish_line();
        self.put(&format!("\n{} ", style::good("›")));
        self.be_still();
        // Whoever types ends the line.
        self.shown.lock().page.begin_line();
    }

    /// Something else comes before the user has typed. A notification arrived, for example.
    pub(super) fn leave_prompt(&self) {
        self.put("\n");
    }

    /// What the user types is not followed: what stands above stays as it is.
    fn be_still(&self) {
        let mut shown = self.shown.lock();
        shown.is_still = true;
        shown.page.give_up_above();
    }

    /// The user has typed a line, or is no longer asked for one.
    pub(super) fn go_on(&self) {
        let mut shown = self.shown.lock();
        shown.is_still = false;
        shown.page.give_up_above();
        shown.page.begin_line();
    }

    /// Time passed: boxes of tasks under way say so.
    pub(super) fn tick(&self) {
        self.with_boxes(|boxes, page| boxes.tick(page));
    }

    /// Does nothing while the user types. The size of the terminal is read each time, since nobody
    /// tells when it changes.
    fn with_boxes(&self, change: impl FnOnce(&mut Boxes, &mut Page)) {
        let Shown {
            page,
            boxes,
            is_still,
        } = &mut *self.shown.lock();
        if !*is_still {
            page.look();
            change(boxes, page);
        }
    }

    /// Whole lines. A line that was begun is ended first. Styles in `text` are marks; the page
    /// knows its width without them.
    pub(crate) fn say(&self, text: &str) {
        self.finish_line();
        self.put(&format!("{text}\n"));
    }

    /// The cursor stays on the line, after the choices.
    pub(super) fn question(&self, request: &QuestionRequest) {
        match request {
            QuestionRequest::Permission(asked) => self.permission(asked),
            QuestionRequest::Clarification(asked) => {
                self.say(&style::warning(plain(&asked.text)));
                self.put("  your answer, or nothing for no › ");
            }
            QuestionRequest::Elicitation(asked) => {
                let text = format!("{} asks: {}", asked.server, asked.message);
                self.say(&style::warning(plain(&text)));
                let fields = asked.fields().into_iter();
                let fields: Vec<String> = fields.map(|(name, _)| format!("{name}=…")).collect();
                self.put(&format!("  {} or n › ", plain(&fields.join(" "))));
            }
        }
        self.be_still();
    }

    /// Order: what is wanted, a preview, the reason, the choices with the rule that "always" would
    /// add.
    fn permission(&self, question: &PermissionRequest) {
        self.finish_line();
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
        self.put(&format!(
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
            Event::TextDelta { text } => self.put(&plain(text)),
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
                self.boxed.lock().extend(tool_use_id.clone());
                let kind = kind.as_deref().unwrap_or("task");
                self.begin_box(task_id, format!("{kind} · {subject}"));
            }
            Event::Step { text, .. } => self.say(&plain(text)),
            Event::Subagent { task_id, event, .. } => self.of_subagent(task_id, event),
            Event::TaskEnded {
                task_id,
                status,
                subject,
                summary: _,
                detail,
                usage,
                cost,
                tool_uses,
                duration_ms,
            } => {
                let mark = match status {
                    TaskStatus::Completed => "✓",
                    _ => "✗",
                };
                self.end_box(&End {
                    id: task_id,
                    title: format!("{task_id} {status} · {subject}"),
                    sums: format!(
                        "{mark} {tool_uses} tool calls · {} tokens · {cost} · {:.0} s",
                        boxes::count(usage.total_tokens()),
                        *duration_ms as f64 / 1000.0
                    ),
                    result: detail,
                });
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
            | Event::Finished(_) => {}
        }
    }

    /// A box begins also while the user is typing: it is new text and rewrites nothing.
    fn begin_box(&self, id: &TaskId, title: String) {
        self.finish_line();
        let Shown { page, boxes, .. } = &mut *self.shown.lock();
        boxes.begin(page, id, title);
    }

    /// Unlike an update it is never left out. Where the box cannot be reached a new one is written
    /// below.
    fn end_box(&self, end: &End<'_>) {
        let Shown { page, boxes, .. } = &mut *self.shown.lock();
        page.look();
        boxes.end(page, end);
    }

    /// A subagent's box says what it is at.
    fn of_subagent(&self, id: &TaskId, event: &Event) {
        match event {
            Event::Assistant { usage, cost, .. } => {
                let tokens = usage.total_tokens();
                self.shown.lock().boxes.spent(id, tokens, *cost);
            }
            Event::TaskProgress {
                tool_uses, summary, ..
            } => self.with_boxes(|boxes, page| boxes.step(page, id, *tool_uses, summary)),
            _ => {}
        }
    }

    /// The first lines of each result; the model has all of it. Results of calls that have a box
    /// are left out.
    fn results(&self, message: &Message) {
        for block in &message.content {
            let ContentBlock::ToolResult(result) = block else {
                continue;
            };
            if self.boxed.lock().remove(&result.tool_use_id) {
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
                lines.push(format!("  … {left} more lines"));
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
        self.finish_line();
        if result.interrupted {
            self.say(&style::warning("interrupted"));
        } else if result.outcome != Outcome::Success {
            self.say(&style::error(&result.result));
        }
        self.say(&style::faint(format!(
            "{} · {} tokens · {} · {:.1} s",
            if result.num_turns == 1 {
                "1 turn".to_owned()
            } else {
                format!("{} turns", result.num_turns)
            },
            result.usage.total_tokens(),
            result.cost,
            result.duration_ms as f64 / 1000.0
        )));
    }

    /// The end of a conversation that is taken up again. Of the last four messages those that have
    /// text.
    pub(super) fn recall(&self, messages: &[Arc<Message>]) {
        let from = messages.len().saturating_sub(4);
        for message in &messages[from..] {
            let text = message.text();
            if text.trim().is_empty() {
                continue;
            }
            match message.role {
                Role::User => self.say(&format!("{} {}", style::good("›"), text.trim())),
                Role::Assistant => self.say(text.trim()),
            }
        }
    }

    /// The last ten of this directory, for `/resume` without an id.
    pub(super) async fn sessions(
        &self,
        store: &dyn Store,
        project_dir: &ProjectDir,
    ) -> Result<(), CommandError> {
        let filter = SessionFilter {
            cwd: Some(project_dir.cwd.clone()),
            limit: Some(10),
        };
        let sessions = store.sessions(filter).await?;
        if sessions.is_empty() {
            self.say("no sessions in this directory yet");
        }
        for session in sessions {
            self.say(&format!(
                "{}  {}  {}",
                style::strong(session.id),
                session.updated_at.strftime("%Y-%m-%d %H:%M"),
                session.title.as_deref().unwrap_or("(empty)")
            ));
        }
        Ok(())
    }

    /// Whole lines begin in the first column, whatever was streamed before.
    fn finish_line(&self) {
        let page = &mut self.shown.lock().page;
        if page.is_mid_line() {
            page.write("\n");
        }
    }

    fn put(&self, text: &str) {
        self.shown.lock().page.write(text);
    }
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
