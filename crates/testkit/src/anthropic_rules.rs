//! Holds Anthropic Messages requests to the rules of the real API, so that tests find mistakes.
//!
//! A request that breaks a rule is answered with 400 (401 for a missing key) and a message in the
//! words of the API, as far as they are known. So a client that forgets a result fails its test by
//! the error it would meet in production, whatever the test looks at. `strict: false` in a script
//! turns the rules off.
//!
//! What is checked, in this order; the first that is broken is reported:
//!
//! - a key and a version in the headers, a model, at least one output token;
//! - names of tools, their schemas, no name twice;
//! - no more than four cache marks, counted over tools, system prompt and messages;
//! - roles in turns, the user first and last; two answers in a row only after a paused turn;
//! - no text block of white space alone, no empty message;
//! - calls in answers of the model, results in messages of the user, inputs that are objects;
//! - for every call exactly one result, at the beginning of the very next message; no id twice.

use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::{
    anthropic_request::{Block, Message, MessagesRequest},
    asked::{Content, Refused, decode, is_blank},
    http::Headers,
};

/// What the API allows in one request.
const MAX_CACHE_MARKS: usize = 4;

/// `paused` says whether the script's turn with this index ends in `pause_turn`, after which the
/// conversation comes back with the assistant's message last.
pub(crate) fn check(
    request: &MessagesRequest<'_>,
    headers: &Headers,
    paused: impl Fn(usize) -> bool,
) -> Result<(), Refused> {
    if headers.get("x-api-key").is_none() && headers.get("authorization").is_none() {
        return Err(Refused::unauthenticated("x-api-key header is required"));
    }
    if headers.get("anthropic-version").is_none() {
        return Err(Refused::invalid("anthropic-version: header is required"));
    }
    if request.model.map(decode).unwrap_or_default().is_empty() {
        return Err(Refused::invalid("model: Field required"));
    }
    match request.max_tokens {
        None => return Err(Refused::invalid("max_tokens: Field required")),
        Some(0) => {
            return Err(Refused::invalid(
                "max_tokens: Input should be greater than or equal to 1",
            ));
        }
        Some(_) => {}
    }
    check_tools(request)?;
    check_cache_marks(request)?;
    if let Some(Content::Blocks(blocks)) = &request.system {
        check_texts(blocks, "system")?;
    }
    check_roles(&request.messages, paused)?;
    for (index, message) in request.messages.iter().enumerate() {
        check_content(message, index)?;
    }
    check_tool_pairs(&request.messages)
}

fn check_tools(request: &MessagesRequest<'_>) -> Result<(), Refused> {
    let mut seen = HashSet::new();
    for (index, tool) in request.tools.iter().enumerate() {
        let name = tool.name.map(decode).unwrap_or_default();
        let proper = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 128 || !name.chars().all(proper) {
            return Err(Refused::invalid(format!(
                "tools.{index}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$', got `{name}`"
            )));
        }
        // A tool with a type is the provider's own and has no schema.
        if tool.input_schema.is_none() && tool.kind.is_none() {
            return Err(Refused::invalid(format!(
                "tools.{index}.input_schema: Field required"
            )));
        }
        if !seen.insert(name) {
            return Err(Refused::invalid("tools: Tool names must be unique."));
        }
    }
    Ok(())
}

/// Marks inside of tool results count too.
fn check_cache_marks(request: &MessagesRequest<'_>) -> Result<(), Refused> {
    let in_tools = request
        .tools
        .iter()
        .filter(|tool| tool.cache_control.is_some());
    let contents = request.messages.iter().map(|message| &message.content);
    let in_content: usize = request
        .system
        .iter()
        .chain(contents)
        .map(|content| match content {
            Content::Text(_) => 0,
            Content::Blocks(blocks) => blocks
                .iter()
                .map(|block| marks(block) + block.nested().iter().map(marks).sum::<usize>())
                .sum(),
        })
        .sum();
    let found = in_tools.count() + in_content;
    if found > MAX_CACHE_MARKS {
        return Err(Refused::invalid(format!(
            "A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {found}."
        )));
    }
    Ok(())
}

fn marks(block: &Block<'_>) -> usize {
    usize::from(block.cache_control.is_some())
}

/// An answer may follow an answer if the script paused there, and may come last for the same
/// reason.
fn check_roles(messages: &[Message<'_>], paused: impl Fn(usize) -> bool) -> Result<(), Refused> {
    let Some(first) = messages.first() else {
        return Err(Refused::invalid(
            "messages: at least one message is required",
        ));
    };
    if first.role != "user" {
        return Err(Refused::invalid(
            "messages: first message must use the \"user\" role",
        ));
    }
    let mut answers = 0;
    for (index, message) in messages.iter().enumerate() {
        match message.role.as_ref() {
            "user" | "assistant" => {}
            other => {
                return Err(Refused::invalid(format!(
                    "messages.{index}.role: Input should be 'user' or 'assistant', got `{other}`"
                )));
            }
        }
        let same = index > 0 && messages[index - 1].role == message.role;
        let continues = || message.role == "assistant" && answers > 0 && paused(answers - 1);
        if same && !continues() {
            return Err(Refused::invalid(format!(
                "messages.{index}: roles must alternate between \"user\" and \"assistant\", but \
                 found multiple \"{}\" roles in a row",
                message.role
            )));
        }
        answers += usize::from(message.role == "assistant");
    }
    let ends_with_answer = messages.last().is_some_and(|last| last.role == "assistant");
    if ends_with_answer && !paused(answers - 1) {
        return Err(Refused::invalid(
            "messages: the conversation must end with a user message",
        ));
    }
    Ok(())
}

/// A single message by itself; what calls and results have to do with each other comes after.
fn check_content(message: &Message<'_>, index: usize) -> Result<(), Refused> {
    let empty = || {
        Refused::invalid(format!(
            "messages.{index}: all messages must have non-empty content"
        ))
    };
    let blocks = match &message.content {
        Content::Text(text) if text.trim().is_empty() => return Err(empty()),
        Content::Text(_) => return Ok(()),
        Content::Blocks(blocks) if blocks.is_empty() => return Err(empty()),
        Content::Blocks(blocks) => blocks,
    };
    check_texts(blocks, &format!("messages.{index}.content"))?;
    for (at, block) in blocks.iter().enumerate() {
        let place = format!("messages.{index}.content.{at}");
        match block.kind.as_ref() {
            "tool_use" if message.role != "assistant" => {
                return Err(Refused::invalid(format!(
                    "{place}: `tool_use` blocks can only be in `assistant` messages"
                )));
            }
            "tool_use" if !block.input.is_some_and(is_object) => {
                return Err(Refused::invalid(format!(
                    "{place}.tool_use.input: Input should be a valid dictionary"
                )));
            }
            "tool_result" if message.role != "user" => {
                return Err(Refused::invalid(format!(
                    "{place}: `tool_result` blocks can only be in `user` messages"
                )));
            }
            "tool_result" => check_texts(&block.nested(), &format!("{place}.content"))?,
            _ => {}
        }
    }
    Ok(())
}

fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// `place` is the beginning of the path in the message, such as `messages.3.content`.
fn check_texts(blocks: &[Block<'_>], place: &str) -> Result<(), Refused> {
    for (index, block) in blocks.iter().enumerate() {
        if block.kind == "text" && block.text.is_none_or(is_blank) {
            return Err(Refused::invalid(format!(
                "{place}.{index}: text content blocks must contain non-whitespace text"
            )));
        }
    }
    Ok(())
}

/// Every call is answered in the very next message, once, before anything else it says.
fn check_tool_pairs(messages: &[Message<'_>]) -> Result<(), Refused> {
    let mut used = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let blocks: &[Block<'_>] = match &message.content {
            Content::Text(_) => &[],
            Content::Blocks(blocks) => blocks,
        };
        if message.role == "user" {
            check_results(blocks, index, &mut open)?;
        }
        if !open.is_empty() {
            return Err(unanswered(index - 1, &open));
        }
        if message.role == "assistant" {
            for block in blocks.iter().filter(|block| block.kind == "tool_use") {
                let id = block.id.map(decode).unwrap_or_default();
                if !used.insert(id.clone()) {
                    return Err(Refused::invalid(format!(
                        "messages.{index}: `tool_use` ids must be unique, found `{id}` again"
                    )));
                }
                open.push(id);
            }
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(unanswered(messages.len() - 1, &open))
}

/// Takes the ids that are answered out of `open`.
fn check_results(
    blocks: &[Block<'_>],
    index: usize,
    open: &mut Vec<String>,
) -> Result<(), Refused> {
    let asked = open.clone();
    let mut other_seen = false;
    for block in blocks {
        if block.kind != "tool_result" {
            other_seen = true;
            continue;
        }
        let id = block.tool_use_id.map(decode).unwrap_or_default();
        if !asked.contains(&id) {
            return Err(Refused::invalid(format!(
                "messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                 Each `tool_result` block must have a corresponding `tool_use` block in the \
                 previous message."
            )));
        }
        if !open.contains(&id) {
            return Err(Refused::invalid(format!(
                "messages.{index}: each tool_use must have a single result. Found multiple \
                 `tool_result` blocks with id: {id}"
            )));
        }
        if other_seen {
            return Err(Refused::invalid(format!(
                "messages.{index}: `tool_result` blocks must come before other content, but {id} \
                 does not"
            )));
        }
        open.retain(|waiting| *waiting != id);
    }
    Ok(())
}

/// `index` is the message with the calls.
fn unanswered(index: usize, open: &[String]) -> Refused {
    Refused::invalid(format!(
        "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately \
         after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the \
         next message.",
        open.join(", ")
    ))
}
