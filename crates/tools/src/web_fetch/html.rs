//! HTML to markdown, also for pages made to choke on.
//!
//! The converter builds a tree and walks it by recursion, so a page can exhaust the stack by depth
//! or memory by formatting that is never closed. Both are estimated beforehand by counting tags,
//! without parsing; a page that is over the bounds is reduced to the text between its tags.

/// Deeper nesting than browsers keep; converting is recursive.
const DEEPEST: usize = 512;

/// Unclosed formatting is repeated by the parser in every block that follows; more copies than
/// this are no page any more.
const MOST_COPIES: usize = 1_000_000;

/// Elements whose content nobody reads.
const UNREAD: [&str; 8] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "head",
];

/// Elements that have no end tag, or that end by themselves when their like begins.
const SELF_ENDING: [&str; 31] = [
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html",
    "img", "input", "li", "link", "meta", "optgroup", "option", "p", "param", "rp", "rt", "source",
    "tbody", "td", "tfoot", "th", "thead", "tr", "track",
];

/// Elements that the parser opens again where they were left open.
const FORMATTING: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

/// Markdown; of a page that is nested beyond reason, the bare text.
pub(super) fn to_markdown(html: &str) -> String {
    if is_beyond_reason(html) {
        return bare_text(html);
    }
    let converter = htmd::HtmlToMarkdown::builder()
        .skip_tags(UNREAD.to_vec())
        .build();
    converter.convert(html).unwrap_or_else(|_| bare_text(html))
}

/// An upper estimate: tags in scripts and comments count, and elements that the parser would close
/// itself count as open, except for the common ones in `SELF_ENDING`.
fn is_beyond_reason(html: &str) -> bool {
    let (mut depth, mut formatting, mut copies) = (0_usize, 0_usize, 0_usize);
    for tag in tags(html) {
        let is_formatting = FORMATTING.contains(&tag.name.as_str());
        let step: fn(usize) -> usize = if tag.closes {
            |count| count.saturating_sub(1)
        } else {
            |count| count + 1
        };
        if !SELF_ENDING.contains(&tag.name.as_str()) {
            depth = step(depth);
        }
        if is_formatting {
            formatting = step(formatting);
        }
        copies = copies.saturating_add(formatting);
        if depth > DEEPEST || copies > MOST_COPIES {
            return true;
        }
    }
    false
}

struct Tag {
    name: String,
    closes: bool,
}

/// Everything that looks like a tag, also inside scripts: too many is on the safe side.
fn tags(html: &str) -> impl Iterator<Item = Tag> {
    html.split('<').skip(1).filter_map(|piece| {
        let closes = piece.starts_with('/');
        let name: String = piece
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .take(16)
            .collect::<String>()
            .to_ascii_lowercase();
        (!name.is_empty()).then_some(Tag { name, closes })
    })
}

/// What stands between tags, one piece a line. Text before the first tag is dropped.
fn bare_text(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        let shown = piece.split_once('>').map_or("", |(_, shown)| shown).trim();
        if !shown.is_empty() {
            text.push_str(shown);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_markdown_without_its_scripts() {
        assert_eq!(
            to_markdown(
                "<html><head><title>t</title><script>let x = '<b>';</script></head><body>\
                 <h1>Title</h1><p>Some <b>bold</b> <a href=\"/x\">link</a>.</p>\
                 <ul><li>one<li>two</ul><script>no()</script></body></html>"
            ),
            "# Title\n\nSome **bold** [link](/x).\n\n*   one\n*   two"
        );
    }

    #[test]
    fn a_page_nested_beyond_reason_gives_its_text() {
        let page = format!(
            "{}deep{}",
            "<div>".repeat(100_000),
            "</div>".repeat(100_000)
        );
        assert_eq!(to_markdown(&page), "deep\n");
    }

    #[test]
    fn formatting_left_open_over_a_long_page_gives_its_text() {
        let open: String = (0..400).map(|number| format!("<b id={number}>")).collect();
        let page = format!("{open}{}", "<p>x".repeat(100_000));
        assert_eq!(to_markdown(&page).lines().count(), 100_000);
    }

    #[test]
    fn the_deepest_page_that_is_converted_does_not_break_the_stack() {
        let depth = DEEPEST - 1;
        let page = format!("{}deep{}", "<div>".repeat(depth), "</div>".repeat(depth));
        assert_eq!(to_markdown(&page), "deep");
    }

    #[test]
    fn long_lists_without_end_tags_are_ordinary() {
        let page = format!("<ul>{}</ul>", "<li><p>item".repeat(2_000));
        assert!(to_markdown(&page).starts_with("*   item\n"));
    }
}
