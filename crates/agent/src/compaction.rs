//! When the context nears the window: older turns become a summary, the last ones stay whole.
//!
//! The conversation is rewritten only for the model. A `Compaction` entry is appended that holds
//! the summary and the place from which entries stay whole; nothing is removed from the store.
//!
//! There are two ways to it. Before a request, when the guess of its size reaches `compact_at`; and
//! after a provider has refused a request as too long. What helps is tried in this order: a summary
//! by the model of the older turns; a summary of their beginning and end, shorter each time;
//! excerpts without a model; and at last the whole conversation cut to excerpts (`cut`).
//!
//! The system prompt is never summarised: instruction files are read anew, and the list of steps is
//! added to the summary as it stands.

use std::fmt::Write as _;

use codespar_model::{Answered, ModelError};
use codespar_protocol::{
    ContentBlock, Cost, EntryBody, Event, Message, NoticeLevel, Role, Todo, TodoStatus, Usage,
};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{Agent, AgentError, CompactTrigger, side_call, stop::Stop};

const COMPACT_PROMPT: &str = include_str!("prompts/compact.md");
/// The limit on the summary itself.
const SUMMARY_TOKENS: u32 = 8_192;
/// One part in so many of the window stays whole.
const KEPT_SHARE: u64 = 4;
/// How much of one call or result the summariser sees. In bytes. Long outputs would crowd out what
/// was said about them.
const EXCERPT: usize = 2_000;
/// A text of this size fits any window; when even that is refused, no summary can be had. In bytes.
const SHORTEST: usize = 8_000;
/// How often a conversation that does not fit is cut, each time to half of the size before.
pub(crate) const MAX_CUTS: u32 = 4;

impl Agent {
    /// A conversation that cannot be shortened is left alone here; if it does not fit, the provider
    /// says so.
    pub(crate) async fn compact_when_full(&mut self, stop: &Stop) -> Result<(), AgentError> {
        if self.context_tokens >= self.parts.choice.compact_at {
            self.compact(CompactTrigger::Auto, stop).await?;
        }
        Ok(())
    }

    /// Replaces older turns by a summary. False when there is nothing that could be replaced. At
    /// the request of the user. Not within a run, so there is no limit on time.
    pub fn compact_now<'a>(
        &'a mut self,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, AgentError>> {
        Box::pin(async move {
            let stop = Stop::new(cancel, None);
            self.compact(CompactTrigger::Manual, &stop).await
        })
    }

    /// False also when a hook prevents it, or the model's summary came back empty. Errors of the call are passed on, and
    /// the conversation stays as it was.
    pub(crate) async fn compact(
        &mut self,
        trigger: CompactTrigger,
        stop: &Stop,
    ) -> Result<bool, AgentError> {
        let Some((keep_from, older)) = self.older_turns() else {
            return Ok(false);
        };
        if !self.may_compact(trigger, stop).await {
            return Ok(false);
        }
        let body = match self.summarise(&older, stop).await? {
            Some(Answered { response, cost, .. }) => {
                let text = response.message.text();
                if text.trim().is_empty() {
                    self.notice(
                        NoticeLevel::Warning,
                        "the summary of older turns came back empty; they stay",
                    );
                    return Ok(false);
                }
                EntryBody::Compaction {
                    summary: summary_message(&text, &self.parts.context.todos()),
                    keep_from,
                    usage: response.usage,
                    cost,
                    model: response.model,
                }
            }
            None => self.excerpt_entry(&older, SHORTEST, keep_from),
        };
        self.replace(body).await?;
        self.tell_compacted(stop).await?;
        Ok(true)
    }

    /// A summary of the text, or of its ends where all of it is too much for the model. `None` when
    /// the model refuses even the shortest. Begins with as much text as three bytes for each token
    /// of the window, and halves it each time the model says that it is too much.
    async fn summarise(&mut self, text: &str, stop: &Stop) -> Result<Option<Answered>, AgentError> {
        let id = self.parts.choice.id.clone();
        let max_tokens = SUMMARY_TOKENS.min(self.parts.choice.max_tokens);
        let mut size = usize::try_from(self.parts.choice.context_window)
            .unwrap_or(usize::MAX)
            .saturating_mul(3)
            .min(text.len());
        loop {
            let question = ends(text, size);
            let asker = self.asker(stop);
            let exchange = side_call::ask(asker, &id, COMPACT_PROMPT, question, max_tokens).await;
            self.record_lost(exchange.lost).await?;
            match exchange.result {
                Ok(answered) => return Ok(Some(answered)),
                Err(ModelError::ContextWindowExceeded { .. }) if size > SHORTEST => {
                    size = (size / 2).max(SHORTEST);
                }
                Err(ModelError::ContextWindowExceeded { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Replaces the whole conversation by excerpts of it, without a model: the last resort when it
    /// does not fit and no summary makes it fit. The size is the window in bytes, halved `times`
    /// times. Nothing stays whole.
    pub(crate) async fn cut(&mut self, times: u32) -> Result<(), AgentError> {
        let mut text = String::new();
        for message in self.transcript.messages() {
            render(message, &mut text);
        }
        let window = usize::try_from(self.parts.choice.context_window).unwrap_or(usize::MAX);
        let size = window >> times.min(16);
        let body = self.excerpt_entry(&text, size, self.transcript.next_seq());
        self.replace(body).await?;
        self.notice(
            NoticeLevel::Warning,
            "the conversation did not fit the model's context window; it was cut to excerpts",
        );
        Ok(())
    }

    /// A summary that cost nothing: no model made it.
    fn excerpt_entry(&self, text: &str, size: usize, keep_from: u64) -> EntryBody {
        let summary = format!(
            "[It was too long to be summarised; these are its beginning and its end.]\n\n{}",
            ends(text, size)
        );
        EntryBody::Compaction {
            summary: summary_message(&summary, &self.parts.context.todos()),
            keep_from,
            usage: Usage::default(),
            cost: Cost::default(),
            model: self.parts.choice.id.clone(),
        }
    }

    /// Puts the summary on record and starts all estimates anew, since none of them fits the new
    /// conversation.
    async fn replace(&mut self, body: EntryBody) -> Result<(), AgentError> {
        let tokens_before = self.context_tokens;
        self.transcript.append(body).await?;
        self.refresh_briefing();
        self.path_instructions.forget();
        self.meter.reset();
        self.context_tokens = self.estimate_context();
        let entries_kept = self.transcript.messages().len() as u64 - 1;
        self.emit(Event::Compacted {
            tokens_before,
            entries_kept,
        });
        Ok(())
    }

    /// Where to cut, and everything before the cut as text. A cut falls before an answer or a
    /// prompt, never between a call and its result. Goes back from the end until the kept part
    /// would pass its share of the window. `None` when there is nothing before the last turn but
    /// the first message.
    fn older_turns(&self) -> Option<(u64, String)> {
        let turns: Vec<_> = self.transcript.with_origins().collect();
        let budget = self.parts.choice.context_window / KEPT_SHARE;
        let mut kept = 0;
        let mut cut = None;
        for (index, (origin, message)) in turns.iter().enumerate().rev() {
            kept += message_tokens(message);
            if kept > budget && cut.is_some() {
                break;
            }
            if begins_a_turn(message) {
                cut = Some((index, *origin));
            }
        }
        // When even the whole conversation fits the share, the last answer alone stays.
        let (index, keep_from) = cut.filter(|(index, _)| *index > 1).or_else(|| {
            let last = turns
                .iter()
                .rposition(|(_, message)| begins_a_turn(message))?;
            (last > 1).then(|| (last, turns[last].0))
        })?;
        let mut text = String::new();
        for (_, message) in &turns[..index] {
            render(message, &mut text);
        }
        Some((keep_from, text))
    }

    /// A guess from sizes, until the provider counts. Four bytes a token, without the tools. Where
    /// it is too low the provider refuses, and `ask_with_room` takes over.
    pub(crate) fn estimate_context(&self) -> u64 {
        let messages: u64 = self
            .transcript
            .messages()
            .iter()
            .map(|m| message_tokens(m))
            .sum();
        messages + self.system.len() as u64 / 4
    }
}

/// An answer, or a prompt without results in it.
fn begins_a_turn(message: &Message) -> bool {
    message.role == Role::Assistant
        || !message
            .content
            .iter()
            .any(|block| matches!(block, ContentBlock::ToolResult(_)))
}

fn message_tokens(message: &Message) -> u64 {
    let bytes: usize = message
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text(text) => text.text.len(),
            ContentBlock::ToolUse(call) => call.input.get().len() + call.name.len(),
            ContentBlock::ToolResult(result) => result.content.text().len(),
            ContentBlock::Thinking(thinking) => thinking.thinking.len(),
            // Pictures cost about this much, whatever their size in bytes.
            ContentBlock::Image(_) => 6_000,
            ContentBlock::RedactedThinking(_) | ContentBlock::Unknown(_) => 400,
        })
        .sum();
    bytes as u64 / 4 + 4
}

/// The conversation as text for the summariser. Thinking and pictures are left out.
fn render(message: &Message, out: &mut String) {
    let speaker = match message.role {
        Role::User => "person",
        Role::Assistant => "agent",
    };
    for block in &message.content {
        // Writing to a string cannot fail.
        let _ = match block {
            ContentBlock::Text(text) => writeln!(out, "<{speaker}>\n{}\n</{speaker}>", text.text),
            ContentBlock::ToolUse(call) => {
                writeln!(
                    out,
                    "<call tool=\"{}\">{}</call>",
                    call.name,
                    excerpt(call.input.get())
                )
            }
            ContentBlock::ToolResult(result) => {
                let word = if result.is_error { "failed" } else { "result" };
                writeln!(
                    out,
                    "<{word}>\n{}\n</{word}>",
                    excerpt(&result.content.text())
                )
            }
            _ => Ok(()),
        };
    }
}

fn excerpt(text: &str) -> String {
    ends(text, EXCERPT)
}

/// Head and tail of a text that is longer than this.
fn ends(text: &str, size: usize) -> String {
    if text.len() <= size {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(size * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - size / 3);
    format!(
        "{}\n[… {} bytes left out …]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}

/// What stands in place of the older turns, on the side of the user.
fn summary_message(summary: &str, todos: &[Todo]) -> String {
    let mut text = format!(
        "[Older turns of this conversation were replaced by this summary.]\n\n{}\n",
        summary.trim()
    );
    if !todos.is_empty() {
        text.push_str("\nThe list of steps as it stands:\n");
        for todo in todos {
            let mark = match todo.status {
                TodoStatus::Pending => " ",
                TodoStatus::InProgress => "~",
                TodoStatus::Completed => "x",
            };
            let _ = writeln!(text, "- [{mark}] {}", todo.content);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_keeps_both_ends_and_whole_characters() {
        let text = "é".repeat(3_000);
        let short = excerpt(&text);
        assert!(short.starts_with("éé") && short.ends_with("éé"));
        assert!(short.contains("bytes left out"));
        assert!(short.len() < 2_100);
    }

    #[test]
    fn the_list_of_steps_rides_with_the_summary() {
        let todos = [Todo {
            content: "run the tests".into(),
            status: TodoStatus::InProgress,
            active_form: None,
        }];
        assert!(summary_message("s", &todos).ends_with("- [~] run the tests\n"));
    }
}
