//! Messages and events: what of them is shown.
//!
//! Each text passes the cleaner where it enters, once: secrets are replaced and control characters
//! escaped before it is kept. A call, a question, a step or output of the driver makes what was
//! streamed final first; a notice within an answer does not.
//!
//! Events come in the order in which the agent sent them, also those of subagents between those of
//! the main agent. What can still change (a call that runs, the answer as it grows) is kept as
//! state and drawn; once it is final it is given away as output and never drawn again.

use std::time::Instant;

use codespar_protocol::{ContentBlock, Event, NoticeLevel, QuestionRequest, RunResult, retry_text};
use codespar_terminal::wrap::OutputLine;
use codespar_terminal::{Span, markdown::MarkdownStream, wrap};

use super::{App, Effect};
use crate::{
    UserAction,
    activity::Activity,
    boxes::Sums,
    handle::Message,
    picker::Picker,
    question::{self, OpenQuestion},
    tool_calls::Finished,
};

impl App {
    /// Messages about the terminal itself are handled before they come here.
    pub(crate) fn message(&mut self, message: Message, now: Instant) {
        match message {
            Message::Event(event) => self.event(event, now),
            Message::Output(lines) => {
                self.finish_answer();
                self.output.extend(lines);
            }
            Message::Notice(level, text) => {
                self.finish_answer();
                self.notice(level, &text);
            }
            Message::Ask { .. } => {
                self.questions.push_back(message);
                self.next_question(now);
            }
            Message::Withdraw(number) => {
                let is_it = |open: &OpenQuestion| open.number == number;
                if self.question.as_ref().is_some_and(is_it) {
                    self.question = None;
                    self.notice(NoticeLevel::Info, "  settled without an answer here");
                }
                self.questions.retain(
                    |waiting| !matches!(waiting, Message::Ask { number: other, .. } if *other == number),
                );
                self.next_question(now);
            }
            Message::Pick {
                title,
                choices,
                reply,
            } => self.picker = Some(Picker::new(title, choices, reply)),
            Message::ShowTasks(rows) => self.show_tasks(rows, now),
            Message::UpdateTasks(rows) => self.update_tasks(rows, now),
            Message::TurnStarted => self.activity = Some(Activity::new(now)),
            Message::TurnEnded => self.turn_ended(now),
            Message::Status(status) => self.status = *status,
            Message::Suggest(text) => {
                if self.composer.is_empty() {
                    self.composer.set_text(&text, now);
                }
            }
            Message::InsertFile(path) => self.composer.insert_file(&path, now),
            Message::Page { .. }
            | Message::Copy(_)
            | Message::Suspend(_)
            | Message::Resume
            | Message::Resized
            | Message::Continued
            | Message::Stop(_) => {}
        }
    }

    /// The next question that waits, if none is shown. What is asked becomes output; the choices
    /// are in the live region. One at a time, in the order in which they were asked; questions
    /// whose asker is gone are skipped.
    pub(super) fn next_question(&mut self, now: Instant) {
        if self
            .question
            .as_ref()
            .is_some_and(OpenQuestion::is_abandoned)
        {
            self.question = None;
        }
        while self.question.is_none() {
            let Some(Message::Ask {
                number,
                request,
                from,
                reply,
            }) = self.questions.pop_front()
            else {
                return;
            };
            if reply.is_closed() {
                continue;
            }
            self.finish_answer();
            let lines = question::asked(
                &request,
                from.as_deref(),
                self.columns,
                self.theme,
                &self.cleaner,
            );
            self.output.extend(lines);
            if let QuestionRequest::Permission(asked) = &*request {
                self.calls
                    .asked(asked.tool_use_id.clone(), asked.input.clone());
            }
            self.question = Some(OpenQuestion::new(number, *request, reply, now));
            if let Some(activity) = &mut self.activity {
                activity.waits_for_person();
            }
            if !self.is_focused {
                let text = "CodeSpar needs an answer".to_owned();
                self.effects.push(Effect::Notify(text));
            }
        }
    }

    /// The queue goes on where the turn ended. Messages of the queue are sent one for each turn.
    /// The user is notified if the terminal does not have the focus and the turn took ten seconds
    /// or more.
    fn turn_ended(&mut self, now: Instant) {
        self.finish_answer();
        self.calls.clear();
        let took = self.activity.take().map(|activity| activity.elapsed(now));
        if !self.is_focused && took.is_some_and(|took| took.as_secs() >= 10) {
            let text = "CodeSpar is done".to_owned();
            self.effects.push(Effect::Notify(text));
        }
        self.settle_boxes();
        if let Some(text) = self.queue.next() {
            self.echo(&text);
            self.effects.push(Effect::Action(UserAction::Submit(text)));
        }
    }

    /// Nothing until the last of them is over.
    fn settle_boxes(&mut self) {
        let ended = self.boxes.take_ended(self.theme);
        if !ended.is_empty() {
            self.finish_answer();
            self.output.extend(ended);
        }
    }

    /// The match has no wildcard, so a new kind of event must be given a place here.
    fn event(&mut self, event: Event, now: Instant) {
        match event {
            Event::TurnStarted { .. } => {
                if let Some(activity) = &mut self.activity {
                    activity.asks_model();
                }
            }
            Event::TextDelta { text } => self.text(&text),
            Event::ThinkingDelta { text } => {
                if let Some(activity) = &mut self.activity {
                    activity.thinks(text.len());
                }
            }
            Event::Retrying {
                attempt,
                delay_ms,
                reason,
            } => {
                let text = self.cleaner.clean(&retry_text(attempt, delay_ms, &reason));
                if let Some(activity) = &mut self.activity {
                    activity.retries(text.clone());
                }
                self.notice(NoticeLevel::Warning, &text);
            }
            Event::Assistant { usage, .. } => {
                self.finish_answer();
                if let Some(activity) = &mut self.activity {
                    activity.answered(usage.output_tokens);
                }
            }
            Event::CommandOutput { tool_use_id, lines } => {
                let lines = lines.iter().map(|line| self.cleaner.line(line, 400));
                if let Some(activity) = &mut self.activity {
                    activity.call_wrote(&tool_use_id, lines.collect());
                }
            }
            event @ (Event::ToolStarted { .. } | Event::ToolFinished { .. }) => {
                self.tool_event(event, now);
            }
            Event::PermissionDenied(denial) => {
                let text = format!("  denied: {}", denial.reason);
                self.notice(NoticeLevel::Warning, &text);
            }
            Event::Todos { todos } => self.todos = todos,
            Event::Compacted { tokens_before, .. } => {
                let text = format!("older turns were summarised at {tokens_before} tokens");
                self.notice(NoticeLevel::Info, &text);
            }
            Event::Step { text, .. } => {
                self.finish_answer();
                let style = Default::default();
                self.say_text(&text, style);
            }
            Event::Notice { level, text } => self.notice(level, &text),
            Event::Finished(result) => self.finished(&result),
            event @ (Event::Subagent { .. }
            | Event::TaskStarted { .. }
            | Event::TaskEnded { .. }) => self.task_event(event, now),
            Event::ToolResults { message, .. } => self.results_without_a_call(&message.content),
            Event::PermissionAsked { .. } | Event::TaskProgress { .. } => {}
        }
    }

    /// Of a call that a box shows, the box is the result.
    fn tool_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::ToolStarted {
                tool_use_id,
                tool,
                summary,
                input,
            } => {
                self.finish_answer();
                let summary = self.cleaner.line(&summary, 2_000);
                self.calls
                    .begin(tool_use_id.clone(), summary.clone(), &input);
                if let Some(activity) = &mut self.activity {
                    activity.call_started(tool_use_id, tool, summary, now);
                }
            }
            Event::ToolFinished {
                tool_use_id,
                tool,
                is_error,
                duration_ms,
                result,
            } => {
                if let Some(activity) = &mut self.activity {
                    activity.call_ended(&tool_use_id);
                }
                if self.boxed.remove(&tool_use_id) {
                    self.settle_boxes();
                    return;
                }
                let result = result.text();
                let finished = Finished {
                    id: &tool_use_id,
                    tool: &tool,
                    is_error,
                    duration_ms,
                    result: &result,
                };
                let lines = self
                    .calls
                    .finish(&finished, self.columns, self.theme, &self.cleaner);
                self.output.extend(lines);
            }
            _ => {}
        }
    }

    /// Subagents have boxes, which become output when the last of them is over.
    fn task_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Subagent { task_id, event, .. } => match *event {
                Event::Assistant { usage, cost, .. } => {
                    self.boxes.spent(&task_id, usage.total_tokens(), cost);
                }
                Event::TaskProgress {
                    tool_uses, summary, ..
                } => {
                    let doing = self.cleaner.line(&summary, 400);
                    self.boxes.step(&task_id, tool_uses, doing);
                }
                _ => {}
            },
            Event::TaskStarted {
                task_id,
                subject,
                kind,
                tool_use_id,
                ..
            } => {
                if let (Some(id), Some(activity)) = (&tool_use_id, &mut self.activity) {
                    activity.call_boxed(id);
                }
                self.boxed.extend(tool_use_id);
                let kind = kind.as_deref().unwrap_or("task");
                let title = self.cleaner.line(&format!("{kind} · {subject}"), 400);
                self.boxes.begin(task_id, title, now);
            }
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
                let sums = Sums {
                    status,
                    tool_uses,
                    tokens: usage.total_tokens(),
                    cost,
                    duration_ms,
                };
                let detail = self.cleaner.clean(&detail);
                let subject = self.cleaner.line(&subject, 400);
                self.boxes.end(&task_id, subject, &sums, &detail, now);
                self.settle_boxes();
            }
            _ => {}
        }
    }

    /// Calls that never began (denied, unknown) have no end of their own; what they were answered
    /// with was shown as a denial. Nothing else is left to show.
    fn results_without_a_call(&mut self, content: &[ContentBlock]) {
        for block in content {
            if let ContentBlock::ToolResult(result) = block {
                self.boxed.remove(&result.tool_use_id);
            }
        }
    }

    /// The first text of an answer is preceded by a blank line, which carries the mark for
    /// terminals that jump between answers.
    fn text(&mut self, text: &str) {
        let text = self.cleaner.clean(text);
        if let Some(activity) = &mut self.activity {
            activity.answers(text.len());
        }
        if self.answer.is_none() {
            self.output
                .push(OutputLine::default().marked(wrap::Mark::Output));
        }
        let theme = self.theme;
        let answer = self
            .answer
            .get_or_insert_with(|| MarkdownStream::new(theme));
        answer.push(&text);
    }

    /// Says why the turn ended, if not by itself, and what it has cost.
    fn finished(&mut self, result: &RunResult) {
        self.finish_answer();
        if result.interrupted {
            self.notice(NoticeLevel::Warning, "interrupted");
        } else if result.outcome != codespar_protocol::Outcome::Success {
            let style = self.theme.error();
            self.say_text(&result.result, style);
        }
        let turns = match result.num_turns {
            1 => "1 turn".to_owned(),
            n => format!("{n} turns"),
        };
        let text = format!(
            "{turns} · {} tokens · {} · {:.1} s",
            result.usage.total_tokens(),
            result.cost,
            result.duration_ms as f64 / 1_000.0
        );
        let line = vec![Span::styled(text, self.theme.faint())];
        self.output
            .push(OutputLine::words(line).marked(wrap::Mark::End));
    }
}
