//! What a server answered, as a tool's output.
//!
//! Texts and embedded text resources are joined by line breaks. Pictures of kinds that providers
//! take stay pictures; everything else is named in a line with its size, so that the model knows
//! that something was left out.

use codespar_protocol::{ContentBlock, Image, ToolResultContent};
use codespar_tools::{Context, ToolOutput, bound};
use rmcp::model::{CallToolResult, ContentBlock as Part, ResourceContents};

/// Pictures that providers take.
const PICTURES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];
/// In base64; providers refuse larger ones.
const MAX_PICTURE: usize = 5 << 20;

/// Text is joined and bounded like that of any tool; pictures stay pictures. Structured content is
/// used only where there is no other: servers are to send it as text as well.
pub(super) fn output(result: CallToolResult, context: &Context, tool: &str) -> ToolOutput {
    let is_error = result.is_error == Some(true);
    let mut texts: Vec<String> = Vec::new();
    let mut pictures = Vec::new();
    for part in result.content {
        match shown(part) {
            Shown::Text(text) => texts.push(text),
            Shown::Picture(image) => pictures.push(image),
        }
    }
    if texts.is_empty()
        && pictures.is_empty()
        && let Some(structured) = result.structured_content
    {
        texts.push(structured.to_string());
    }
    let text = bound(texts.join("\n"), context, tool);
    if pictures.is_empty() {
        return ToolOutput {
            content: ToolResultContent::Text(text),
            is_error,
        };
    }
    let mut blocks = Vec::new();
    if !text.is_empty() {
        blocks.push(ContentBlock::text(text));
    }
    blocks.extend(pictures.into_iter().map(ContentBlock::Image));
    ToolOutput {
        content: ToolResultContent::Blocks(blocks),
        is_error,
    }
}

enum Shown {
    Text(String),
    Picture(Image),
}

fn shown(part: Part) -> Shown {
    match part {
        Part::Text(text) => Shown::Text(text.text),
        Part::Image(image) => picture(&image.mime_type, &image.data, "image"),
        Part::Audio(audio) => left_out("audio", &audio.mime_type, audio.data.len()),
        Part::ResourceLink(link) => {
            let mut text = format!("[resource {} ({})]", link.uri, link.name);
            if let Some(description) = link.description {
                text.push(' ');
                text.push_str(&description);
            }
            Shown::Text(text)
        }
        Part::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                Shown::Text(format!("[resource {uri}]\n{text}"))
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => picture(&mime_type.unwrap_or_default(), &blob, &uri),
            _ => Shown::Text("[a resource of an unknown kind]".to_owned()),
        },
        other => Shown::Text(
            serde_json::to_string(&other).unwrap_or_else(|_| "[unknown content]".to_owned()),
        ),
    }
}

/// A picture that providers would refuse must not come into the conversation: every later request
/// would fail with it.
fn picture(media_type: &str, data: &str, what: &str) -> Shown {
    if !PICTURES.contains(&media_type) || data.len() > MAX_PICTURE {
        return left_out(what, media_type, data.len());
    }
    match Image::base64(media_type, data) {
        Ok(image) => Shown::Picture(image),
        Err(_) => left_out(what, media_type, data.len()),
    }
}

/// `length` is that of the base64 text.
fn left_out(what: &str, media_type: &str, length: usize) -> Shown {
    Shown::Text(format!(
        "[{what} of type `{media_type}` left out: about {} bytes]",
        length / 4 * 3
    ))
}
