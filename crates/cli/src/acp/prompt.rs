//! A prompt of the client as a text and what goes with it.
//!
//! A link to a file becomes a mention, so that the file is read as if the user had named it: deny
//! rules hold. An embedded resource is text of the editor, marked with where it is from. Pictures
//! are recognised by their content, whatever type the client names.

use agent_client_protocol::v1::schema::{
    ContentBlock as AcpBlock, EmbeddedResourceResource, ImageContent, ResourceLink,
    TextResourceContents,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use codespar_protocol::{ContentBlock, Image};
use codespar_tools::{MAX_IMAGE_BYTES, picture_type};
use url::Url;

/// What is sent to the session.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Prompted {
    pub(super) text: String,
    pub(super) attachments: Vec<ContentBlock>,
}

/// An error says what of it cannot be used.
pub(super) fn read(blocks: &[AcpBlock]) -> Result<Prompted, String> {
    let mut prompted = Prompted::default();
    for block in blocks {
        match block {
            AcpBlock::Text(text) => prompted.text.push_str(&text.text),
            AcpBlock::Image(image) => prompted.attachments.push(picture(image)?),
            AcpBlock::ResourceLink(link) => prompted.text.push_str(&mention(link)),
            AcpBlock::Resource(embedded) => {
                let attachment = match &embedded.resource {
                    EmbeddedResourceResource::TextResourceContents(text) => resource(text),
                    EmbeddedResourceResource::BlobResourceContents(blob) => {
                        bytes(&blob.blob, &blob.uri)?
                    }
                    _ => return Err("a resource of an unknown kind".to_owned()),
                };
                prompted.attachments.push(attachment);
            }
            AcpBlock::Audio(_) => return Err("audio cannot be read".to_owned()),
            _ => return Err("a part of an unknown kind".to_owned()),
        }
    }
    if prompted.text.trim().is_empty() && prompted.attachments.is_empty() {
        return Err("the prompt is empty".to_owned());
    }
    Ok(prompted)
}

fn picture(image: &ImageContent) -> Result<ContentBlock, String> {
    bytes(&image.data, image.uri.as_deref().unwrap_or("an image"))
}

/// The only bytes that a model can look at are pictures.
fn bytes(data: &str, name: &str) -> Result<ContentBlock, String> {
    let data = data.trim();
    if data.len() as u64 > MAX_IMAGE_BYTES / 3 * 4 + 4 {
        return Err(format!(
            "{name} is longer than the {MAX_IMAGE_BYTES} bytes that can be shown"
        ));
    }
    let decoded = STANDARD.decode(data);
    let decoded = decoded.map_err(|error| format!("{name} is not base64: {error}"))?;
    let media_type = picture_type(&decoded);
    let media_type = media_type.ok_or_else(|| format!("{name} is not a picture"))?;
    let image = Image::base64(media_type, data).map_err(|error| error.to_string())?;
    Ok(ContentBlock::Image(image))
}

fn resource(text: &TextResourceContents) -> ContentBlock {
    ContentBlock::text(format!(
        "The user attached {}:\n\n{}",
        place(&text.uri),
        text.text
    ))
}

/// The path of a file, with quotes where a blank would end it; else the address.
fn mention(link: &ResourceLink) -> String {
    let path = place(&link.uri);
    match path.starts_with('/') {
        true if path.contains(char::is_whitespace) && !path.contains('"') => {
            format!("@\"{path}\"")
        }
        true => format!("@{path}"),
        false => path,
    }
}

fn place(uri: &str) -> String {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file");
    let path = url.and_then(|url| url.to_file_path().ok());
    match path.as_deref().and_then(|path| path.to_str()) {
        Some(path) => path.to_owned(),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{EmbeddedResource, TextContent};

    use super::*;

    /// The beginning of a PNG.
    const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n0000";

    #[test]
    fn text_links_resources_and_pictures_become_one_prompt() {
        let file = TextResourceContents::new("let a = 1;", "file:///w/a%20b.rs#L3");
        let file = EmbeddedResourceResource::TextResourceContents(file);
        let data = STANDARD.encode(PICTURE);
        let blocks = [
            AcpBlock::Text(TextContent::new("look at ")),
            AcpBlock::ResourceLink(ResourceLink::new("c.rs", "file:///w/c%20d.rs")),
            AcpBlock::Resource(EmbeddedResource::new(file)),
            AcpBlock::Image(ImageContent::new(data.clone(), "image/jpeg")),
        ];
        let prompted = read(&blocks).unwrap();
        assert_eq!(prompted.text, "look at @\"/w/c d.rs\"");
        let image = ContentBlock::Image(Image::base64("image/png", &data).unwrap());
        let text = ContentBlock::text("The user attached /w/a b.rs:\n\nlet a = 1;");
        assert_eq!(prompted.attachments, [text, image]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_reason() {
        let image = |data: &str| vec![AcpBlock::Image(ImageContent::new(data, "image/png"))];
        let long = "A".repeat(MAX_IMAGE_BYTES as usize * 2);
        for (blocks, reason) in [
            (Vec::new(), "empty"),
            (vec![AcpBlock::Text(TextContent::new(" \n"))], "empty"),
            (image("%%"), "not base64"),
            (image(&STANDARD.encode("#!/bin/sh")), "not a picture"),
            (image(&long), "longer than"),
        ] {
            let refused = read(&blocks).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
