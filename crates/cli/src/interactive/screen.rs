//! What the person sees: plain lines that scroll, so that copy, search and tmux work.

use std::{collections::HashSet, io::Write, sync::Arc};

use codespar_protocol::{
    ContentBlock, Event, Message, NoticeLevel, Outcome, Question, Role, RunResult, TaskStatus,
    TodoStatus, ToolUseId,
};
use codespar_store::{SessionFilter, Store};
use parking_lot::Mutex;

use super::{boxes, plain::plain};
use crate::{assemble::Ground, error::CommandError, place::Place, style};

/// How many lines of a tool's result are shown.
const RESULT_LINES: usize = 4;
const LINE_WIDTH: usize = 160;

/// Knows whether the cursor is in the middle of a line.
#[derive(Default)]
pub(crate) struct Screen {
    is_mid_line: Mutex<bool>,
    /// Calls whose result a box shows.
    boxed: Mutex<HashSet<ToolUseId>>,
}

impl Screen {
    pub(super) fn banner(&self, ground: &Ground) {
        self.say(&format!(
            "{} {}  {} · {}\n{}",
            style::strong("codespar"),
            env!("CARGO_PKG_VERSION"),
            ground.provider.choice.id,
            ground.place.cwd.display(),
            style::faint("/help for commands, Ctrl-D leaves"),
        ));
        if ground.provider.is_simulated() {
            let why = &ground.provider.why;
            self.say(&style::warning(format!(
                "simulated: no model is called ({why})"
            )));
        }
        for warning in &ground.warnings {
            self.say(&style::warning(warning));
        }
    }

    pub(super) fn prompt(&self) {
        self.finish_line();
        self.put(&format!("\n{} ", style::good("›")));
        *self.is_mid_line.lock() = false;
    }

    /// Whole lines.
    pub(crate) fn say(&self, text: &str) {
        self.finish_line();
        self.put(&format!("{text}\n"));
    }

    pub(super) fn question(&self, question: &Question) {
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
        *self.is_mid_line.lock() = true;
    }

    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::TextDelta { text } => {
                self.put(&plain(text));
                *self.is_mid_line.lock() = !text.ends_with('\n');
            }
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
            } => self.say(&style::warning(format!(
                "try {attempt} failed ({reason}); the answer starts anew in {:.1} s",
                *delay_ms as f64 / 1000.0
            ))),
            Event::Todos { todos } => {
                for todo in todos {
                    let line = match todo.status {
                        TodoStatus::Completed => style::faint(format!("  ✓ {}", todo.content)),
                        TodoStatus::InProgress => style::strong(format!(
                            "  ▸ {}",
                            todo.active_form.as_ref().unwrap_or(&todo.content)
                        )),
                        TodoStatus::Pending => format!("  · {}", todo.content),
                    };
                    self.say(&line);
                }
            }
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
                let lines = [format!("started as {task_id}")];
                self.say(&boxes::framed(&format!("{kind} · {subject}"), &lines));
            }
            Event::TaskEnded {
                task_id,
                status,
                subject,
                summary,
                usage,
                cost,
                tool_uses,
                duration_ms,
            } => {
                let mark = if *status == TaskStatus::Completed {
                    "✓"
                } else {
                    "✗"
                };
                let sums = format!(
                    "{mark} {tool_uses} tool calls · {} tokens · {cost} · {:.0} s",
                    boxes::count(usage.total_tokens()),
                    *duration_ms as f64 / 1000.0
                );
                self.say(&boxes::framed(
                    &format!("{task_id} {status} · {subject}"),
                    &[sums, summary.clone()],
                ));
            }
            Event::Notice {
                level: NoticeLevel::Warning,
                text,
            } => self.say(&style::warning(text)),
            Event::Notice {
                level: NoticeLevel::Info,
                text,
            } => self.say(&style::faint(text)),
            Event::TurnStarted { .. }
            | Event::ThinkingDelta { .. }
            | Event::Assistant { .. }
            | Event::ToolFinished { .. }
            | Event::PermissionAsked { .. }
            | Event::TaskProgress { .. }
            | Event::Subagent { .. }
            | Event::Finished(_) => {}
        }
    }

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

    /// The end of a conversation that is taken up again.
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

    pub(super) async fn sessions(
        &self,
        store: &dyn Store,
        place: &Place,
    ) -> Result<(), CommandError> {
        let filter = SessionFilter {
            cwd: Some(place.cwd.clone()),
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

    fn finish_line(&self) {
        if std::mem::take(&mut *self.is_mid_line.lock()) {
            self.put("\n");
        }
    }

    /// A terminal that went away is noticed by the input side.
    fn put(&self, text: &str) {
        let mut stdout = anstream::stdout().lock();
        let _ = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
    }
}

fn short(line: &str) -> String {
    let line = &*plain(line);
    match line.char_indices().nth(LINE_WIDTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
