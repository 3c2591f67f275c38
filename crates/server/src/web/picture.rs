//! Pictures of a conversation. Only formats that a browser merely draws, checked by their content.
//!
//! In the page as an address of its own content, with a type that is decided here by the first bytes,
//! never by what a transcript says of it, so that nothing in one can run in the page.

use codespar_protocol::Image;
use maud::{Markup, html};
use serde_json::Value;

/// Characters of base64: about 3 MB of a picture.
const MOST: usize = 4 << 20;

/// A picture as an address of its own content; a note in place of what is none.
pub(super) fn shown(image: &Image) -> Markup {
    let source: Value = serde_json::from_str(image.source.get()).unwrap_or_default();
    match address(&source) {
        Some(address) => html! { img.picture src=(address) alt="A picture of the conversation"; },
        None => html! { p.note { "(an image)" } },
    }
}

/// SVG is not among the formats: it can have script in it. What the beginning of the content says
/// counts, not what the conversation says of it.
fn address(source: &Value) -> Option<String> {
    let data = source["data"].as_str().filter(|data| data.len() <= MOST)?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if source["type"] != "base64" || !data.bytes().all(is_base64) {
        return None;
    }
    // The first bytes of PNG, JPEG, GIF and WebP (RIFF), in base64.
    let kinds = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
    ];
    let (_, kind) = kinds.iter().find(|(start, _)| data.starts_with(start))?;
    Some(format!("data:{kind};base64,{data}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(data: &str) -> Option<String> {
        address(&json!({"type": "base64", "media_type": "image/svg+xml", "data": data}))
    }

    #[test]
    fn only_pictures_are_shown_whatever_they_are_said_to_be() {
        let png = "iVBORw0KGgoAAAANSUhEUg==";
        assert_eq!(of(png), Some(format!("data:image/png;base64,{png}")));
        // `<svg onload=…>`, text, and something that would leave the attribute.
        for other in [
            "PHN2ZyBvbmxvYWQ9",
            "aGVsbG8=",
            "",
            "iVBORw0KGgo\" onload=\"x",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        let elsewhere = json!({"type": "url", "url": "https://evil.example/x.png"});
        assert_eq!(address(&elsewhere), None);
    }
}
