//! Commands: one line of the chat grammar, and the thread in which it was said.
//!
//! A line goes to the same core as the chat channels, in the channel `web`, and is believed to be of
//! the token that the request showed. Which role it needs is decided there, by the command.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use codespar_channels::{ThreadMessage, VouchedError, VouchedImage, VouchedLine, WEB};
use codespar_protocol::SessionId;
use codespar_store::{
    AccessToken, ChangeKind, ChannelMessage, MessageState, StoreChange, StoreError,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Named, Params, checked_text, page_size};
use crate::{
    access::Client, error::ApiError, providers::shown_name, scope::ProjectKey, state::Shared,
};

const MOST_TEXT: usize = 20_000;
const MOST_NAME: usize = 100;
const MOST_MESSAGES: u32 = 500;
const LONGEST_WAIT: u64 = 30;
const MOST_IMAGES: usize = 4;
const MOST_IMAGE_BYTES: usize = 4 * 1024 * 1024;

/// The path that pictures are sent to.
pub(crate) const COMMANDS: &str = "/api/v1/commands";
/// Bytes of a body with all the pictures that it can have, in base64, beside its text.
pub(crate) const MOST_COMMAND_BYTES: usize =
    MOST_IMAGES * (MOST_IMAGE_BYTES / 3 * 4 + 1024) + 256 * 1024;

/// A line of the chat grammar.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCommand {
    /// `fix the timeout in login.ts`, `merge PR #3 squash`, `help`.
    #[schema(min_length = 1, max_length = 20_000)]
    text: String,
    /// Where it is said: letters, digits, `-`, `_` and `.`. A new thread without.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,100}$")]
    thread: Option<String>,
    /// The key of the project; may be left out on a server with one.
    project: Option<String>,
    /// The id of a message that this one answers, such as a question.
    reply_to: Option<String>,
    /// Pictures that go with it: PNG, JPEG, GIF or WebP, at most 4 MB each.
    #[serde(default)]
    #[schema(max_items = 4)]
    images: Vec<CommandImage>,
}

/// A picture.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandImage {
    /// As people know it.
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// The bytes in base64.
    #[schema(max_length = 5_592_408)]
    data: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CommandParams {
    /// Wait so many seconds for the first reply, or the task; none by default.
    #[param(minimum = 0, maximum = 30)]
    wait: Option<u64>,
}

/// What became of a line so far.
#[derive(Serialize, ToSchema)]
pub(super) struct CommandReceipt {
    /// The key of its project.
    project: String,
    thread: String,
    message: ThreadEntry,
    /// The replies to it that are there already.
    replies: Vec<ThreadEntry>,
}

/// A thread with its last messages.
#[derive(Serialize, ToSchema)]
pub(super) struct CommandThread {
    project: String,
    thread: String,
    /// In the order in which they came. One that is edited keeps its place.
    messages: Vec<ThreadEntry>,
}

/// A message of a person or of CodeSpar.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ThreadEntry {
    /// For `reply_to`.
    pub(crate) id: String,
    pub(crate) from: EntryAuthor,
    /// Of the token that said it.
    pub(crate) name: Option<String>,
    /// Of a person: `received`, `queued`, `working`, `handled` or `ignored`. Of CodeSpar: `text`,
    /// `progress`, `question`, `settled` or `result`.
    pub(crate) state: String,
    pub(crate) text: String,
    /// The names of the pictures that went with it.
    pub(crate) images: Vec<String>,
    /// The task that the message asked for.
    pub(crate) task_id: Option<String>,
    /// What can be said in answer.
    pub(crate) choices: Vec<EntryChoice>,
    /// Grows when the message is edited.
    pub(crate) revision: u64,
    pub(crate) created_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryAuthor {
    Person,
    Codespar,
}

/// A button.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EntryChoice {
    pub(crate) label: String,
    /// The text that the button says.
    pub(crate) value: String,
}

/// Say a line of the chat grammar.
///
/// The role that it needs is that of its command (docs/channels.md). The header `Idempotency-Key`
/// makes a repeated request the same line. Pictures reach the agent with the text; one that cannot
/// be used is an error, and nothing is said then.
#[utoipa::path(
    post, path = "/api/v1/commands", tag = "commands", params(CommandParams),
    request_body = NewCommand, responses((status = 202, body = CommandReceipt))
)]
pub(super) async fn say(
    State(state): State<Shared>,
    client: Client,
    headers: HeaderMap,
    Params(params): Params<CommandParams>,
    Body(new): Body<NewCommand>,
) -> Result<impl IntoResponse, ApiError> {
    let wait = params.wait.unwrap_or(0);
    if wait > LONGEST_WAIT {
        let message = format!("`wait` is at most {LONGEST_WAIT}");
        return Err(ApiError::bad_request(message));
    }
    checked_text("text", &new.text, MOST_TEXT)?;
    let conversation = conversation(&state, new.project.as_deref())?;
    let thread = match new.thread {
        Some(name) if is_name(&name) => name,
        Some(_) => {
            return Err(ApiError::unprocessable(
                "`thread` has letters, digits, `-`, `_` and `.`, at most 100",
            ));
        }
        None => SessionId::new().to_string(),
    };
    if let Some(id) = &new.reply_to {
        checked_text("reply_to", id, 2 * MOST_NAME)?;
    }
    let line = VouchedLine {
        token: AccessToken {
            name: shown_name(&client.token.name),
            ..client.token
        },
        conversation: conversation.clone(),
        thread: thread.clone(),
        key: idempotency_key(&headers)?,
        text: new.text,
        reply_to: new.reply_to,
        images: images(new.images)?,
    };
    let mut changes = state.runtime.changes().follow().await?;
    let message = state.core.receive_vouched(line).await?;
    let deadline = Instant::now() + Duration::from_secs(wait);
    let matters = |change: &StoreChange| match &change.kind {
        ChangeKind::Inbound { channel } | ChangeKind::Outbox { channel } => channel == WEB,
        ChangeKind::Task { .. } => true,
        _ => false,
    };
    loop {
        let receipt = receipt(&state, &conversation, &message).await?;
        let has_news = has_news(&state, &message, &receipt).await?;
        if has_news || timeout_at(deadline, changes.until(matters)).await.is_err() {
            return Ok((StatusCode::ACCEPTED, Json(receipt)));
        }
    }
}

/// What is sent is looked at: neither its name nor the client says what it is.
fn images(sent: Vec<CommandImage>) -> Result<Vec<VouchedImage>, ApiError> {
    if sent.len() > MOST_IMAGES {
        let message = format!("`images` has at most {MOST_IMAGES}");
        return Err(ApiError::unprocessable(message));
    }
    let one = |(index, image): (usize, CommandImage)| {
        let name = match image.name {
            Some(name) => name,
            None => format!("picture {}", index + 1),
        };
        checked_text("name", &name, MOST_NAME)?;
        let bytes = BASE64_STANDARD.decode(image.data);
        let bytes = bytes.map_err(|_| {
            ApiError::unprocessable(format!("`images[{index}].data` is not base64"))
        })?;
        VouchedImage::new(name, bytes).map_err(ApiError::unprocessable)
    };
    sent.into_iter().enumerate().map(one).collect()
}

/// Show a thread with its last messages.
#[utoipa::path(
    get, path = "/api/v1/commands/{thread}", tag = "commands",
    params(("thread" = String, Path), ThreadParams),
    responses((status = 200, body = CommandThread))
)]
pub(super) async fn thread(
    State(state): State<Shared>,
    Named(thread): Named<String>,
    Params(params): Params<ThreadParams>,
) -> Result<Json<CommandThread>, ApiError> {
    let limit = page_size(params.limit, MOST_MESSAGES, MOST_MESSAGES)?;
    let project = conversation(&state, params.project.as_deref())?;
    let messages = match is_name(&thread) {
        true => entries(&state, &project, &thread, limit).await?,
        false => Vec::new(),
    };
    if messages.is_empty() {
        return Err(ApiError::not_found("nothing was said in this thread"));
    }
    Ok(Json(CommandThread {
        project,
        thread,
        messages,
    }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ThreadParams {
    /// The key of the project; may be left out on a server with one.
    project: Option<String>,
    /// At most so many, 500 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// The messages of a thread, without secrets.
pub(crate) async fn entries(
    state: &Shared,
    conversation: &str,
    thread: &str,
    limit: u32,
) -> Result<Vec<ThreadEntry>, ApiError> {
    let messages = state.core.page_thread(conversation, thread, limit).await?;
    Ok(messages.iter().map(|one| entry(state, one)).collect())
}

fn entry(state: &Shared, message: &ThreadMessage) -> ThreadEntry {
    let redacted = |text: &str| state.runtime.redactor().redact(text).into_owned();
    match message {
        ThreadMessage::Said {
            message,
            speaker,
            text,
            images,
        } => ThreadEntry {
            id: message.identity.clone(),
            from: EntryAuthor::Person,
            name: Some(redacted(&speaker.name)),
            state: state_word(message.state).to_owned(),
            text: redacted(text),
            images: images.iter().map(|name| redacted(name)).collect(),
            task_id: message.task_id.as_ref().map(ToString::to_string),
            choices: Vec::new(),
            revision: 1,
            created_at: message.received_at,
        },
        ThreadMessage::Ours { row, outbound } => ThreadEntry {
            id: row.key.clone(),
            from: EntryAuthor::Codespar,
            name: None,
            state: outbound.kind.as_str().to_owned(),
            text: redacted(&outbound.text),
            images: Vec::new(),
            task_id: None,
            choices: outbound
                .choices
                .iter()
                .map(|choice| EntryChoice {
                    label: choice.label.clone(),
                    value: choice.value.clone(),
                })
                .collect(),
            revision: row.revision,
            created_at: row.created_at,
        },
    }
}

fn state_word(state: MessageState) -> &'static str {
    match state {
        MessageState::Received => "received",
        MessageState::Queued => "queued",
        MessageState::Working => "working",
        MessageState::Handled => "handled",
        MessageState::Ignored => "ignored",
    }
}

/// The line as it stands now, with what was said in answer to it.
async fn receipt(
    state: &Shared,
    conversation: &str,
    message: &ChannelMessage,
) -> Result<CommandReceipt, ApiError> {
    let thread = message.at.thread.clone();
    let mut messages = entries(state, conversation, &thread, MOST_MESSAGES).await?;
    let own = messages.iter().position(|one| one.id == message.identity);
    let own = own.ok_or_else(|| ApiError::internal("the line is not on record"))?;
    let own = messages.remove(own);
    let of_line = format!("{}/", own.id);
    let of_task = own.task_id.as_ref().map(|task| format!("task/{task}/"));
    messages.retain(|one| {
        let is_of_task = |start: &String| one.id.starts_with(start.as_str());
        one.id.starts_with(&of_line) || of_task.as_ref().is_some_and(is_of_task)
    });
    Ok(CommandReceipt {
        project: conversation.to_owned(),
        thread,
        message: own,
        replies: messages,
    })
}

/// Whether there is something to wait for no longer: an answer, or a task that exists.
async fn has_news(
    state: &Shared,
    message: &ChannelMessage,
    receipt: &CommandReceipt,
) -> Result<bool, ApiError> {
    let now = state.store().message(&message.identity).await?;
    match (now.state, &now.task_id) {
        (MessageState::Received, _) => Ok(false),
        (MessageState::Working, Some(task)) => match state.store().task(task).await {
            Ok(_) => Ok(true),
            Err(StoreError::NoSuchTask(_)) => Ok(false),
            Err(error) => Err(error.into()),
        },
        // What settles a message puts its reply in the same transaction.
        _ => Ok(receipt.message.state == state_word(now.state)),
    }
}

/// A conversation is a project of this server.
fn conversation(state: &Shared, project: Option<&str>) -> Result<String, ApiError> {
    let root = match project {
        Some(key) => state.scope.root_by_key(key)?.to_owned(),
        None => state.scope.only_project()?.dir.root.clone(),
    };
    Ok(ProjectKey::of(&root).as_str().to_owned())
}

/// A name that is safe in keys and addresses. The slash ends the identity of a line in the keys of
/// its replies.
pub(crate) fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= MOST_NAME && text.chars().all(is_allowed)
}

/// The key that the client chose, or one that nobody else has.
fn idempotency_key(headers: &HeaderMap) -> Result<String, ApiError> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(SessionId::new().to_string());
    };
    let text = value.to_str().unwrap_or_default().trim_matches('"');
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(ApiError::bad_request(
            "`Idempotency-Key` has letters, digits, `-`, `_` and `.`, at most 100",
        )),
    }
}

impl From<VouchedError> for ApiError {
    fn from(error: VouchedError) -> Self {
        match error {
            VouchedError::KeyReused => Self::conflict("key_reused", error.to_string()),
            VouchedError::Picture(_) => Self::internal(error),
            VouchedError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_nothing_that_means_something_in_a_key() {
        for name in ["main", "a-b_c.9", &"x".repeat(100)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a/b", "a b", "ä", "a\n", "\"a\"", &"x".repeat(101)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
