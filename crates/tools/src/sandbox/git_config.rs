//! Just enough of git's configuration format to see where it leads.
//!
//! Used to find what a configuration names: paths to protect, and programs that git would run.
//! Subsections are ignored and conditions of `includeIf` count as true, so more is found than git
//! would use.

use std::path::Path;

/// A configuration that is longer than this is not read at all: a part of it would hide what comes
/// later.
const LONGEST: u64 = 16 << 20;

/// One setting: `section` and `key` in lower case. A key may occur any number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) key: String,
    pub(super) value: String,
}

/// The settings of a file. `None` if there is none that can be read whole: it is absent, no regular
/// file (a fifo would hold us up), or too long.
pub(super) fn read(path: &Path) -> Option<Vec<Setting>> {
    let text = codespar_files::read_real(path, LONGEST).ok()?;
    Some(parse(&String::from_utf8_lossy(&text)))
}

/// Lines that are not understood are passed over, as the question is only where a reader of the
/// file could be led. A key without a value is `true`, and a backslash at the end of a line joins
/// it with the next.
pub(super) fn parse(text: &str) -> Vec<Setting> {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in joined.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, after)) = rest.split_once(']') else {
                continue;
            };
            let name = name.split_whitespace().next().unwrap_or_default();
            // `[section.sub]` is an old way to write `[section "sub"]`.
            let name = name.split('.').next().unwrap_or_default();
            section = name.to_lowercase();
            line = after.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        settings.push(Setting {
            section: section.clone(),
            key: key.trim().to_lowercase(),
            value: unquote(value.trim()),
        });
    }
    settings
}

/// Without quotes, escapes and what follows a comment sign outside of quotes.
fn unquote(value: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            '#' | ';' if !quoted => break,
            other => out.push(other),
        }
    }
    if quoted {
        out
    } else {
        out.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_quotes_comments_and_continued_lines_are_read() {
        let text = "[core]\n\tbare\n\thooksPath = \"a b\" # why\n[includeIf \"gitdir:x/\"]\n\
                    path = one\\\n-two ; no\n[Include]Path=\"c#d\"\n";
        let found: Vec<_> = parse(text)
            .into_iter()
            .map(|setting| (setting.section, setting.key, setting.value))
            .collect();
        let expected = [
            ("core", "bare", "true"),
            ("core", "hookspath", "a b"),
            ("includeif", "path", "one-two"),
            ("include", "path", "c#d"),
        ];
        let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(found, expected);
    }
}
