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
/// Characters of a text that goes with what the user sends.
const MAX_ATTACHED: usize = 100_000;

/// Text is joined and bounded like that of any tool; pictures stay pictures. Structured content is
/// used only where there is no other: servers are to send it as text as well.
/// `token` is what the server knows of the user's login, and no model is told.
pub(super) fn output(
    result: CallToolResult,
    context: &Context,
    tool: &str,
    token: Option<&str>,
) -> ToolOutput {
    let is_error = result.is_error == Some(true);
    let (mut texts, pictures) = parted(result.content.into_iter().map(shown));
    if texts.is_empty()
        && pictures.is_empty()
        && let Some(structured) = result.structured_content
    {
        texts.push(structured.to_string());
    }
    let text = bound(without(texts.join("\n"), token), context, tool);
    if pictures.is_empty() {
        return ToolOutput {
            content: ToolResultContent::Text(text),
            is_error,
        };
    }
    ToolOutput {
        content: ToolResultContent::Blocks(blocks_of(text, pictures)),
        is_error,
    }
}

/// A resource, as a tool's output.
pub(super) fn resource(
    contents: Vec<ResourceContents>,
    context: &Context,
    tool: &str,
    token: Option<&str>,
) -> ToolOutput {
    let (texts, pictures) = parted(contents.into_iter().map(shown_resource));
    let text = bound(without(texts.join("\n"), token), context, tool);
    match pictures.is_empty() {
        true => ToolOutput::text(text),
        false => ToolOutput::blocks(blocks_of(text, pictures)),
    }
}

/// The messages of a prompt, as what the user sends.
pub(super) fn attached(shown: impl Iterator<Item = Shown>) -> Vec<ContentBlock> {
    let (texts, pictures) = parted(shown);
    let text = texts.join("\n");
    let text = match text.char_indices().nth(MAX_ATTACHED) {
        None => text,
        Some((at, _)) => format!("{}\n[cut: it is longer]", &text[..at]),
    };
    blocks_of(text, pictures)
}

fn without(text: String, token: Option<&str>) -> String {
    match token.filter(|token| !token.is_empty()) {
        Some(token) => text.replace(token, "[token]"),
        None => text,
    }
}

fn parted(shown: impl Iterator<Item = Shown>) -> (Vec<String>, Vec<Image>) {
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for one in shown {
        match one {
            Shown::Text(text) => texts.push(text),
            Shown::Picture(image) => pictures.push(image),
        }
    }
    (texts, pictures)
}

fn blocks_of(text: String, pictures: Vec<Image>) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    if !text.is_empty() {
        blocks.push(ContentBlock::text(text));
    }
    blocks.extend(pictures.into_iter().map(ContentBlock::Image));
    blocks
}

pub(super) enum Shown {
    Text(String),
    Picture(Image),
}

pub(super) fn shown(part: Part) -> Shown {
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
        Part::Resource(embedded) => shown_resource(embedded.resource),
        other => Shown::Text(
            serde_json::to_string(&other).unwrap_or_else(|_| "[unknown content]".to_owned()),
        ),
    }
}

fn shown_resource(contents: ResourceContents) -> Shown {
    match contents {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_repeats_the_token_does_not_show_it_to_a_model() {
        let said = "you sent Bearer abc.def".to_owned();
        assert_eq!(without(said, Some("abc.def")), "you sent Bearer [token]");
        assert_eq!(without("x".to_owned(), Some("")), "x");
    }
}
