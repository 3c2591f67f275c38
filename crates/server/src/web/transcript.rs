//! A conversation as people read it, in chunks of which a page shows a few: a long one is read as
//! one scrolls.
//!
//! Chunks have fixed places in the transcript, which only grows, so the address of a chunk stays right. Text of models and tools goes through the redactor and
//! through markdown of our own, and reaches the browser without an element of its author's.

use std::collections::{HashMap, HashSet};

use axum::{extract::State, response::Html};
use codespar_protocol::{ContentBlock, Entry, EntryBody, SessionId, ToolResult, ToolUse};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{
    layout::{self, View},
    markdown, picture, text, tool_call,
};
use crate::{
    access::Client,
    api::{Named, Params},
    error::ApiError,
    state::Shared,
};

/// Entries of a chunk; chunk `n` begins with entry `n * 50 + 1`.
const CHUNK: u64 = 50;
/// Chunks of a page as it is loaded.
const SHOWN: u64 = 3;

#[derive(Deserialize, Default)]
pub(crate) struct TranscriptParams {
    /// The first chunk to show; the latest ones otherwise.
    pub(super) chunk: Option<u64>,
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Named(id): Named<String>,
    Params(params): Params<TranscriptParams>,
) -> Result<Html<String>, ApiError> {
    let (session, placed) = state.scope.session(&id).await?;
    let title = session.title.as_deref().unwrap_or("Session");
    let title = text::line(&state, title);
    let content = html! {
        div.head { div {
            h1 { (title) }
            p.facts {
                @if let Some(task) = &placed.task { a href={ "/tasks/" (task) } { (task) } }
                span { (text::clean(&state, &session.model)) }
                span { (text::tokens(&session.usage)) }
                span { (text::cost(session.cost)) }
                span { "last used " (text::ago(session.updated_at)) }
            }
        } }
        (section(&state, session.id, &params).await?)
    };
    layout::page(&state, &client, View::Board, &title, content).await
}

/// The part of a page that shows a conversation.
pub(super) async fn section(
    state: &Shared,
    id: SessionId,
    params: &TranscriptParams,
) -> Result<Markup, ApiError> {
    let last = last_chunk(state.store().session(id).await?.last_seq);
    let first = params
        .chunk
        .unwrap_or_else(|| (last + 1).saturating_sub(SHOWN))
        .min(last);
    let until = (first + SHOWN - 1).min(last);
    let mut chunks = Vec::new();
    for index in first..=until {
        chunks.push(rendered(state, id, index).await?);
    }
    Ok(html! {
        section.panel aria-labelledby="transcript-title" {
            h2 id="transcript-title" { "Conversation" }
            a.more id="older" href={ "?chunk=" (first.saturating_sub(SHOWN)) } hidden[first == 0] { "Older" }
            div id="transcript" data-session=(id) data-chunks={ "/sessions/" (id) "/chunks" }
                data-last=(last) { @for chunk in &chunks { (chunk) } }
            a.more id="newer" href={ "?chunk=" (until + 1) } hidden[until >= last] { "Newer" }
            div id="live" class="live" {}
        }
    })
}

fn last_chunk(last_seq: u64) -> u64 {
    last_seq.saturating_sub(1) / CHUNK
}

/// One chunk alone, and which is the last now.
pub(crate) async fn chunk(
    State(state): State<Shared>,
    Named((id, index)): Named<(String, u64)>,
) -> Result<Html<String>, ApiError> {
    let (session, _) = state.scope.session(&id).await?;
    let last = last_chunk(session.last_seq);
    if index > last {
        return Err(ApiError::not_found("the conversation is shorter"));
    }
    let shown = html! {
        div data-last=(last) { (rendered(&state, session.id, index).await?) }
    };
    Ok(Html(shown.into_string()))
}

async fn rendered(state: &Shared, id: SessionId, index: u64) -> Result<Markup, ApiError> {
    let from = index * CHUNK + 1;
    let found = state.store().entries_page(id, from, CHUNK as u32).await?;
    let mut entries = Vec::with_capacity(found.len());
    for entry in &found {
        entries.push(without_secrets(state, entry)?);
    }
    Ok(html! {
        div.chunk id={ "chunk-" (index) } data-index=(index) {
            @let page = Page::of(&entries);
            @for entry in &entries { (page.entry(entry)) }
        }
    })
}

pub(super) fn without_secrets(state: &Shared, entry: &Entry) -> Result<Entry, ApiError> {
    let mut body = serde_json::to_value(&entry.body).map_err(ApiError::internal)?;
    state.runtime.redactor().redact_json(&mut body);
    Ok(Entry {
        id: entry.id,
        seq: entry.seq,
        at: entry.at,
        // A mark in place of a secret can make it something else than it was; then it is left out.
        body: serde_json::from_str(&body.to_string()).unwrap_or(EntryBody::Rewound {
            to: entry.seq.saturating_sub(1),
            undoes: None,
        }),
    })
}

/// Entries that are shown together: a result goes with its call.
struct Page<'a> {
    results: HashMap<&'a str, &'a ToolResult>,
    calls: HashSet<&'a str>,
}

impl<'a> Page<'a> {
    fn of(entries: &'a [Entry]) -> Self {
        let mut page = Self {
            results: HashMap::new(),
            calls: HashSet::new(),
        };
        for entry in entries {
            match &entry.body {
                EntryBody::ToolResult {
                    result: ContentBlock::ToolResult(result),
                    ..
                } => {
                    page.results.insert(result.tool_use_id.0.as_str(), result);
                }
                EntryBody::Assistant { message, .. } => {
                    page.calls
                        .extend(message.content.iter().filter_map(|block| match block {
                            ContentBlock::ToolUse(call) => Some(call.id.0.as_str()),
                            _ => None,
                        }));
                }
                _ => {}
            }
        }
        page
    }

    fn entry(&self, entry: &Entry) -> Markup {
        match &entry.body {
            EntryBody::User { message, synthetic } => {
                let who = if *synthetic { "Notice" } else { "User" };
                let class = if *synthetic {
                    "entry small"
                } else {
                    "entry user"
                };
                html! {
                    article class=(class) id={ "e-" (entry.seq) } {
                        (self.header(who, entry, &html! {}))
                        @for (index, block) in message.content.iter().enumerate() {
                            (self.block(entry, index, block))
                        }
                    }
                }
            }
            EntryBody::Assistant {
                message,
                model,
                usage,
                cost,
                ..
            } => html! {
                article.entry id={ "e-" (entry.seq) } {
                    (self.header("Agent", entry, &html! {
                        span { (codespar_runtime::printable(model)) }
                        span { (text::tokens(usage)) }
                        span { (text::cost(*cost)) }
                    }))
                    @for (index, block) in message.content.iter().enumerate() {
                        (self.block(entry, index, block))
                    }
                }
            },
            // Its call shows it.
            EntryBody::ToolResult {
                result: ContentBlock::ToolResult(result),
                ..
            } if self.calls.contains(result.tool_use_id.0.as_str()) => html! {},
            EntryBody::ToolResult {
                result: ContentBlock::ToolResult(result),
                ..
            } => html! {
                article.entry id={ "e-" (entry.seq) } {
                    details.call.error[result.is_error] id={ "r-" (entry.seq) } {
                        summary { span.name { "Result" } " " (outcome(Some(result))) }
                        div { (tool_call::block(&result.content.text())) }
                    }
                }
            },
            EntryBody::ToolStarted { .. } | EntryBody::ToolResult { .. } => html! {},
            EntryBody::SideCall {
                purpose,
                model,
                cost,
                ..
            } => self.remark(
                entry,
                &format!(
                    "{}: {model}, {}",
                    codespar_runtime::printable(purpose),
                    text::cost(*cost),
                ),
            ),
            EntryBody::Compaction { summary, .. } => html! {
                article.entry.small id={ "e-" (entry.seq) } {
                    details id={ "s-" (entry.seq) } {
                        summary { "The conversation so far was summarised" }
                        (markdown::render(summary))
                    }
                }
            },
            EntryBody::Rewound { to, .. } => {
                self.remark(entry, &format!("The conversation went back to entry {to}."))
            }
        }
    }

    fn remark(&self, entry: &Entry, text: &str) -> Markup {
        html! { article.entry.small id={ "e-" (entry.seq) } { (text) } }
    }

    fn header(&self, who: &str, entry: &Entry, more: &Markup) -> Markup {
        html! {
            header {
                b { (who) }
                (more)
                a.quiet href={ "#e-" (entry.seq) } { span.hidden { "Entry " (entry.seq) ", " } (text::ago(entry.at)) }
            }
        }
    }

    fn block(&self, entry: &Entry, index: usize, block: &ContentBlock) -> Markup {
        match block {
            ContentBlock::Text(said) => markdown::render(&said.text),
            ContentBlock::ToolUse(call) => self.call(entry, index, call),
            ContentBlock::Thinking(thought) if !thought.thinking.trim().is_empty() => html! {
                details.quiet id={ "t-" (entry.seq) "-" (index) } {
                    summary { "Thinking" }
                    (markdown::render(&thought.thinking))
                }
            },
            ContentBlock::Image(image) => picture::shown(image),
            ContentBlock::ToolResult(result) => tool_call::block(&result.content.text()),
            _ => html! {},
        }
    }

    fn call(&self, entry: &Entry, index: usize, call: &ToolUse) -> Markup {
        let input: Value = serde_json::from_str(call.input.get()).unwrap_or_default();
        let result = self.results.get(call.id.0.as_str()).copied();
        let is_error = result.is_some_and(|result| result.is_error);
        html! {
            details.call.error[is_error] id={ "c-" (entry.seq) "-" (index) } {
                summary {
                    span.name { (codespar_runtime::printable(&call.name)) } " "
                    span.what { (tool_call::summary(&input)) } " "
                    (outcome(result))
                }
                div {
                    h4 { "Input" }
                    (tool_call::input(&call.name, &input))
                    @if let Some(result) = result {
                        h4 { "Result" }
                        (tool_call::block(&result.content.text()))
                    }
                }
            }
        }
    }
}

fn outcome(result: Option<&ToolResult>) -> Markup {
    let word = match result {
        None => "running, or in another part".to_owned(),
        Some(result) if result.is_error => "failed".to_owned(),
        Some(result) => match result.content.text().lines().count() {
            1 => "1 line".to_owned(),
            count => format!("{count} lines"),
        },
    };
    html! { span.outcome { "· " (word) } }
}
