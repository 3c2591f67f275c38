//! Text of others in markdown of ours: it notifies nobody, hides nothing and stays in its place.
//!
//! The text is data for a reader, and the attacks are known: `@everybody` to notify people, an HTML
//! comment or tag to hide text or to break the layout, an image whose address reports who looked at
//! it, a heading that looks like a section of ours, a fence that is never closed and swallows what
//! we write after it, direction marks that show code in another order than it has.
//!
//! Nothing is escaped with backslashes: within code they would be shown. An invisible word joiner
//! after the character keeps each of them from working, and the text looks the same.

/// Invisible, and enough to make a mention, a tag or an image into plain text, also in code.
const JOINER: char = '\u{2060}';

/// Markdown from a model or a repository, for the middle of ours. Headings become the third level
/// or deeper: ours are above that. A fence that is still open at the end is closed with its own
/// marks.
pub(crate) fn foreign(text: &str) -> String {
    // First of all: what they hide could be a fence.
    let text: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    let mut result = String::with_capacity(text.len() + 16);
    let mut fence: Option<(char, usize)> = None;
    let mut has_text = false;
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            result.push('\n');
        }
        if let Some(open) = fence {
            if closes(line, open) {
                fence = None;
            }
            inline_into(line, &mut result);
            continue;
        }
        let trimmed = line.trim_start_matches([' ', '\t', '>']);
        fence = opening(line);
        // What a fence within a quote or a list comes to depends on the lines around it: there is
        // none. A heading of ours cannot be forged, in either of its two forms.
        let begins_within = fence.is_none() && marks(trimmed).is_some();
        if begins_within || (has_text && is_underline(trimmed)) {
            result.push_str(&line[..line.len() - trimmed.len()]);
            result.push(JOINER);
            inline_into(trimmed, &mut result);
        } else {
            if trimmed.starts_with('#') {
                let hashes = trimmed.bytes().take_while(|byte| *byte == b'#').count();
                let raised = 3_usize.saturating_sub(hashes);
                result.push_str(&"#".repeat(raised));
            }
            inline_into(line, &mut result);
        }
        has_text = !trimmed.trim().is_empty();
    }
    if let Some((mark, length)) = fence {
        result.push('\n');
        result.extend(std::iter::repeat_n(mark, length));
    }
    result
}

/// One line of such text. White space of any kind becomes one space, so it cannot leave its bullet
/// or its table cell.
pub(crate) fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut result = String::with_capacity(text.len() + 16);
    inline_into(&text, &mut result);
    result
}

/// Text of several lines for a commit. Forges show it as Markdown in places, so tags and images are
/// made plain there too.
pub(crate) fn lines(text: &str) -> String {
    let mut result = String::with_capacity(text.len() + 16);
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            result.push('\n');
        }
        let line: String = line.chars().filter(|c| !is_hidden(*c)).collect();
        inline_into(&line, &mut result);
    }
    result
}

/// For a commit, which is plain text in which mentions count all the same.
pub fn without_mentions(text: &str) -> String {
    let mut result = String::with_capacity(text.len() + 4);
    let mut before = [' '; 2];
    for c in text.chars().filter(|c| !is_hidden(*c)) {
        if is_mention(before[0], before[1], c) {
            result.push(JOINER);
        }
        result.push(c);
        before = [before[1], c];
    }
    result
}

/// The address of a person is none. `before` is the character in front of the `@`: `name@host`
/// notifies nobody.
fn is_mention(before: char, c: char, next: char) -> bool {
    // Letters past ASCII before it do not keep a forge from seeing one.
    c == '@' && !before.is_ascii_alphanumeric() && next.is_alphanumeric()
}

/// For between backticks. A backtick would end the code and a bar would end a cell of a table; both
/// are replaced by a character that looks similar.
pub(crate) fn code(text: &str) -> String {
    text.chars()
        .filter(|c| !is_hidden(*c))
        .map(|c| match c {
            '`' => '\'',
            '\n' | '\t' => ' ',
            '|' => '¦',
            c => c,
        })
        .collect()
}

/// The character and the length of the fence that a line opens. One of backticks has none behind
/// it. Only at the left edge.
fn opening(line: &str) -> Option<(char, usize)> {
    let (mark, length) = marks(line)?;
    (mark == '~' || !line[length..].contains('`')).then_some((mark, length))
}

/// Whether a line closes a fence: a few spaces, at least as many marks, nothing else.
fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let trimmed = line.trim_start_matches(' ');
    let is_indented = line.len() - trimmed.len() > 3;
    let is_long = marks(trimmed).is_some_and(|(_, other)| other >= length);
    !is_indented && is_long && is_only(trimmed, mark)
}

/// The marks of a fence that a line begins with.
fn marks(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    (length >= 3).then_some((mark, length))
}

/// Makes the line above it a heading.
fn is_underline(line: &str) -> bool {
    line.starts_with(['=', '-']) && (is_only(line, '=') || is_only(line, '-'))
}

fn is_only(line: &str, mark: char) -> bool {
    line.trim_end().chars().all(|c| c == mark)
}

/// Appends a line with a joiner after each character that would begin something. Hidden characters
/// go first, or one of them between `<` and a letter would keep the tag from being seen here.
fn inline_into(line: &str, out: &mut String) {
    let mut before = ' ';
    let mut chars = line.chars().filter(|c| !is_hidden(*c)).peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        out.push(c);
        let mentions = is_mention(before, c, next);
        let tags = c == '<' && (next.is_ascii_alphabetic() || matches!(next, '!' | '?' | '/'));
        let shows_image = c == '!' && next == '[';
        // Written as its number or its name, an `@` is one all the same.
        let is_entity = c == '&' && matches!(next, '#' | 'c');
        if mentions || tags || shows_image || is_entity {
            out.push(JOINER);
        }
        before = c;
    }
}

/// Control characters and those that turn the order of others round.
fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_notified_and_nothing_is_hidden() {
        assert_eq!(
            foreign("ask @team, a@b.example"),
            "ask @\u{2060}team, a@b.example"
        );
        assert_eq!(foreign("x <!-- hidden -->"), "x <\u{2060}!-- hidden -->");
        assert_eq!(
            foreign("<details><img src=x>"),
            "<\u{2060}details><\u{2060}img src=x>"
        );
        assert_eq!(
            foreign("![](https://x.example)"),
            "!\u{2060}[](https://x.example)"
        );
        assert_eq!(foreign("a\u{1b}[2J\u{202e}b\u{7}"), "a[2Jb");
        assert_eq!(foreign("1 < 2 and a @ b"), "1 < 2 and a @ b");
        assert_eq!(foreign("é@team"), "é@\u{2060}team");
        assert_eq!(
            foreign("&#64;team &commat;team a & b"),
            "&\u{2060}#64;team &\u{2060}commat;team a & b"
        );
    }

    #[test]
    fn a_fence_does_not_swallow_what_follows() {
        assert_eq!(foreign("\u{1}```py\nx"), "```py\nx\n```");
        // None of these lines closes, or opens, a fence.
        assert_eq!(foreign("```\n> ```"), "```\n> ```\n```");
        assert_eq!(foreign("```\n    ```"), "```\n    ```\n```");
        assert_eq!(foreign("``` a`b\n# x"), "\u{2060}``` a`b\n### x");
        assert_eq!(foreign("- a\n  ```\n# x"), "- a\n  \u{2060}```\n### x");
        assert_eq!(foreign("> ~~~\n# x"), "> \u{2060}~~~\n### x");
    }

    #[test]
    fn an_open_fence_is_closed_and_a_heading_stays_below_ours() {
        assert_eq!(foreign("a\n````py\n# b\n```"), "a\n````py\n# b\n```\n````");
        assert_eq!(foreign("~~~\nx\n~~~\ny"), "~~~\nx\n~~~\ny");
        assert_eq!(
            foreign("Verification\n---\n\n---\nx\n== "),
            "Verification\n\u{2060}---\n\n---\nx\n\u{2060}== "
        );
        assert_eq!(
            foreign("## Verification\n#### x"),
            "### Verification\n#### x"
        );
        assert_eq!(code("a`b\n@c"), "a'b @c");
        assert_eq!(line("a\n## @b"), "a ## @\u{2060}b");
        assert_eq!(without_mentions("@a <b@c.d>"), "@\u{2060}a <b@c.d>");
    }
}
