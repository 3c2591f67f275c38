//! Markdown as HTML of our own making. No element, attribute or address of the text gets through but
//! those written here.
//!
//! The text comes from models, people and forges. So nothing is cleaned here that a browser could
//! read in another way: each event of the parser is written as one of a few elements, and every
//! piece of text is escaped. What has no element here, such as HTML in the text, becomes text.

use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::text;

/// Longer texts are cut: a page is for reading.
const MOST_BYTES: usize = 200_000;

/// HTML in the text is shown as text. Links lead to web addresses only; images are links.
pub(super) fn render(source: &str) -> Markup {
    let source = codespar_runtime::printable(source);
    let shown = text::head(&source, MOST_BYTES);
    let mut writer = Writer::default();
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(shown, options) {
        writer.event(event);
    }
    if shown.len() < source.len() {
        writer
            .out
            .push_str("<p class=\"note\">The rest is not shown.</p>");
    }
    html! { div.markdown { (PreEscaped(writer.out)) } }
}

/// Writes what the parser tells, in order. The elements it opens it also closes, so that text
/// cannot reach out of its box on the page.
#[derive(Default)]
struct Writer {
    out: String,
    /// What ends each open link or image.
    links: Vec<&'static str>,
    in_head: bool,
}

impl Writer {
    /// The only way for text into the page.
    fn text(&mut self, text: &str) {
        text.render_to(&mut self.out);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => {
                self.out.push_str("<code>");
                self.text(&code);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(is_done) => {
                self.out.push_str(if is_done { "☑ " } else { "☐ " });
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(name) => self.text(&name),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.out.push('<');
                self.out.push_str(heading(level));
                self.out.push('>');
            }
            Tag::CodeBlock(kind) => {
                self.out.push_str("<pre tabindex=\"0\"");
                if let CodeBlockKind::Fenced(language) = kind
                    && let Some(word) = language.split_whitespace().next()
                {
                    self.out.push_str(" data-language=\"");
                    self.text(word);
                    self.out.push('"');
                }
                self.out.push_str("><code>");
            }
            Tag::List(Some(first)) => self.out.push_str(&format!("<ol start=\"{first}\">")),
            Tag::TableHead => {
                self.in_head = true;
                self.out.push_str("<thead><tr>");
            }
            Tag::TableCell => self
                .out
                .push_str(if self.in_head { "<th>" } else { "<td>" }),
            Tag::Link { dest_url, .. } => self.link(&dest_url, ""),
            Tag::Image { dest_url, .. } => self.link(&dest_url, "image: "),
            other => self.out.push_str(simple(&other.to_end()).0),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => {
                self.out.push_str("</");
                self.out.push_str(heading(level));
                self.out.push('>');
            }
            TagEnd::CodeBlock => self.out.push_str("</code></pre>"),
            TagEnd::List(true) => self.out.push_str("</ol>"),
            TagEnd::TableHead => {
                self.in_head = false;
                self.out.push_str("</tr></thead>");
            }
            TagEnd::TableCell => self
                .out
                .push_str(if self.in_head { "</th>" } else { "</td>" }),
            TagEnd::Link | TagEnd::Image => {
                let end = self.links.pop().unwrap_or_default();
                self.out.push_str(end);
            }
            other => self.out.push_str(simple(&other).1),
        }
    }

    /// An address that no browser should be led to leaves the text of the link without one.
    fn link(&mut self, address: &str, prefix: &str) {
        match web_address(address) {
            // A link cannot hold another.
            Some(address) if self.links.is_empty() => {
                self.out
                    .push_str("<a rel=\"noopener noreferrer nofollow\" href=\"");
                self.text(&address);
                self.out.push_str("\">");
                self.links.push("</a>");
            }
            _ => {
                self.out.push_str("<span>");
                self.links.push("</span>");
            }
        }
        self.out.push_str(prefix);
    }
}

/// What begins and ends an element without attributes.
fn simple(tag: &TagEnd) -> (&'static str, &'static str) {
    match tag {
        TagEnd::Paragraph => ("<p>", "</p>"),
        TagEnd::BlockQuote(_) => ("<blockquote>", "</blockquote>"),
        TagEnd::List(_) => ("<ul>", "</ul>"),
        TagEnd::Item => ("<li>", "</li>"),
        TagEnd::Table => (
            "<div class=\"scroll\" tabindex=\"0\"><table>",
            "</table></div>",
        ),
        TagEnd::TableRow => ("<tr>", "</tr>"),
        TagEnd::Emphasis => ("<em>", "</em>"),
        TagEnd::Strong => ("<strong>", "</strong>"),
        TagEnd::Strikethrough => ("<s>", "</s>"),
        TagEnd::HtmlBlock => ("<pre tabindex=\"0\">", "</pre>"),
        _ => ("", ""),
    }
}

/// Below the headings of the page.
fn heading(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h3",
        HeadingLevel::H2 => "h4",
        HeadingLevel::H3 => "h5",
        _ => "h6",
    }
}

/// An address that a browser may be led to, in its normal form; none of other schemes and of
/// addresses relative to this server, which a text could make look like our own links.
pub(super) fn web_address(text: &str) -> Option<String> {
    let url = url::Url::parse(text.trim()).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        render(source).into_string()
    }

    #[test]
    fn markdown_becomes_html() {
        let html = shown("# A\n\n*b* **c** `d`\n\n- e\n\n```rust\nlet x = 1 < 2;\n```\n");
        for part in [
            "<h3>A</h3>",
            "<em>b</em> <strong>c</strong> <code>d</code>",
            "<ul><li>e</li></ul>",
            "<pre tabindex=\"0\" data-language=\"rust\"><code>let x = 1 &lt; 2;",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        let table = shown("| a | b |\n|---|---|\n| 1 | 2 |\n");
        assert!(
            table.contains("<thead><tr><th>a</th><th>b</th></tr></thead>"),
            "{table}"
        );
        assert!(table.contains("<tr><td>1</td><td>2</td></tr>"), "{table}");
    }

    #[test]
    fn no_element_or_attribute_of_the_text_gets_through() {
        let attacks = [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<svg/onload=alert(1)>",
            "[a](javascript:alert(1))",
            "[a](JaVaScRiPt:alert(1))",
            "[a](java\tscript:alert(1))",
            "[a](data:text/html,<script>alert(1)</script>)",
            "[a](vbscript:x)",
            "![a](javascript:alert(1))",
            "<javascript:alert(1)>",
            "[a](https://e.example/\"onmouseover=\"alert(1))",
            "[a](https://e.example 'x\" onclick=\"alert(1)')",
            "```\"><script>alert(1)</script>\nx\n```",
            "| <script>alert(1)</script> |\n|---|\n| x |",
            "[x]: javascript:alert(1)\n\n[x]",
            "<iframe srcdoc='<script>alert(1)</script>'>",
            "<style>*{display:none}</style>",
        ];
        for attack in attacks {
            let html = shown(attack);
            let lower = html.to_lowercase();
            for element in ["<script", "<img", "<svg", "<iframe", "<style"] {
                assert!(!lower.contains(element), "{attack}: {html}");
            }
            for address in [
                "href=\"javascript",
                "href=\"data",
                "href=\"vbscript",
                "src=",
            ] {
                let is_text = address == "src=";
                let found = lower.replace("&lt;img src=", "").contains(address);
                assert!(!found || is_text, "{attack}: {html}");
            }
            // An attribute of ours ends where we end it.
            assert!(!lower.contains("\"onmouseover"), "{attack}: {html}");
            assert!(!lower.contains("\" onclick=\""), "{attack}: {html}");
        }
    }

    #[test]
    fn images_are_links_and_links_tell_nothing_of_us() {
        let html = shown("![cat](https://e.example/cat.png)");
        assert!(!html.contains("<img"), "{html}");
        assert!(
            html.contains("rel=\"noopener noreferrer nofollow\""),
            "{html}"
        );
        assert!(shown("[up](/logout)").contains("<span>up</span>"));
    }

    #[test]
    fn characters_that_mislead_are_visible() {
        let html = shown("user\u{202e}gnp.exe and `\u{200b}`");
        assert!(html.contains("\\u{202e}"), "{html}");
        assert!(html.contains("\\u{200b}"), "{html}");
    }
}
