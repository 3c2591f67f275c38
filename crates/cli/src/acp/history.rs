//! A conversation that is loaded, as the updates that it would have been when it was new.

use std::{collections::HashMap, sync::Arc};

use agent_client_protocol::v1::schema::{
    ContentBlock as AcpBlock, ContentChunk, ImageContent, SessionUpdate, TextContent,
};
use codespar_protocol::{ContentBlock, Image, Message, Role, ToolUseId};
use serde::Deserialize;
use serde_json::Value;

use super::{
    tool_calls::Workplace,
    updates::{end_of_call, message, new_call, thought, update},
};
use crate::printer;

/// Diffs are shown as the model wrote them: the files have changed since.
pub(super) fn replay(messages: &[Arc<Message>], place: &Workplace<'_>) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    let mut diffs = HashMap::new();
    for one in messages {
        for block in &one.content {
            match block {
                ContentBlock::Text(text) if one.role == Role::User => {
                    let text = TextContent::new(printer::visible(&text.text));
                    updates.push(said_by_user(AcpBlock::Text(text)));
                }
                ContentBlock::Text(text) => updates.push(message(&text.text)),
                ContentBlock::Thinking(thinking) => updates.push(thought(&thinking.thinking)),
                ContentBlock::Image(image) if one.role == Role::User => {
                    updates.extend(picture(image).map(said_by_user));
                }
                ContentBlock::ToolUse(call) => {
                    let input: Value = serde_json::from_str(call.input.get()).unwrap_or_default();
                    let summary = summary(&input);
                    let diff = match call.name.as_str() {
                        "Edit" => place.diff("Edit", &input),
                        _ => None,
                    };
                    diffs.insert(call.id.clone(), diff);
                    let call = new_call(&call.id, &call.name, &summary, &input, place);
                    updates.push(SessionUpdate::ToolCall(call));
                }
                ContentBlock::ToolResult(result) => {
                    let id: &ToolUseId = &result.tool_use_id;
                    let diff = diffs.remove(id).flatten();
                    let fields = end_of_call(result.is_error, &result.content, diff);
                    updates.push(update(id, fields));
                }
                _ => {}
            }
        }
    }
    updates
}

fn said_by_user(block: AcpBlock) -> SessionUpdate {
    SessionUpdate::UserMessageChunk(ContentChunk::new(block))
}

/// What the tools themselves would say needs their context; the first text of the input does.
fn summary(input: &Value) -> String {
    let named = [
        "command",
        "file_path",
        "pattern",
        "path",
        "url",
        "description",
    ];
    let found = named.iter().find_map(|key| input.get(key)?.as_str());
    found.unwrap_or_default().to_owned()
}

fn picture(image: &Image) -> Option<AcpBlock> {
    #[derive(Deserialize)]
    struct Source {
        media_type: String,
        data: String,
    }
    let source: Source = serde_json::from_str(image.source.get()).ok()?;
    let image = ImageContent::new(source.data, source.media_type);
    Some(AcpBlock::Image(image))
}
