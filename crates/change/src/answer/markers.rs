//! The lines that structure an answer, and how content that looks like one is told apart.

/// A line that structures an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker<'a> {
    File(&'a str),
    End,
    Delete(&'a str),
    /// What stands between the colon and the end: `old -> new`.
    Move(&'a str),
    /// A file to be shown: a path, perhaps with lines.
    Show(&'a str),
    /// A text to be looked for.
    Find(&'a str),
    Search,
    Replace,
    /// The seven-character forms.
    LongSearch,
    LongReplace,
}

/// Parts the two texts of the seven-character form. A marker only there: elsewhere it is an
/// underline.
pub(super) const DIVIDER: &str = "=======";

/// The marker that a line is. It stands alone, from the first column; white space at its end does
/// not count.
pub(super) fn marker(line: &str) -> Option<Marker<'_>> {
    let line = line.trim_end();
    Some(match line {
        "===END===" => Marker::End,
        "<<<SEARCH" => Marker::Search,
        ">>>REPLACE" => Marker::Replace,
        "<<<<<<< SEARCH" => Marker::LongSearch,
        ">>>>>>> REPLACE" => Marker::LongReplace,
        _ => return named(line),
    })
}

fn named(line: &str) -> Option<Marker<'_>> {
    let inner = line.strip_prefix("===")?.strip_suffix("===")?;
    if let Some(path) = inner.strip_prefix("FILE:") {
        Some(Marker::File(bare(path)))
    } else if let Some(path) = inner.strip_prefix("DELETE:") {
        Some(Marker::Delete(bare(path)))
    } else if let Some(place) = inner.strip_prefix("SHOW:") {
        Some(Marker::Show(bare(place)))
    } else if let Some(text) = inner.strip_prefix("SEARCH:") {
        Some(Marker::Find(bare(text)))
    } else {
        inner.strip_prefix("MOVE:").map(Marker::Move)
    }
}

/// A path without the white space and the backticks around it.
pub(super) fn bare(path: &str) -> &str {
    let path = path.trim();
    path.strip_prefix('`')
        .and_then(|path| path.strip_suffix('`'))
        .unwrap_or(path)
}

/// Whether a marker begins something new, so that a block before it should have ended.
pub(super) fn begins(marker: Marker<'_>) -> bool {
    matches!(
        marker,
        Marker::File(_) | Marker::Delete(_) | Marker::Move(_) | Marker::Show(_) | Marker::Find(_)
    )
}

/// Whether a line parts the two texts of the seven-character form.
pub(super) fn is_divider(line: &str) -> bool {
    line.trim_end() == DIVIDER
}

/// Whether a line was meant as a marker of a block and is not quite one.
pub(super) fn is_near_miss(line: &str) -> bool {
    if !line.starts_with("==") {
        return false;
    }
    let inner = line.trim_matches(['=', ' ', '\t', '\r']);
    let word: String = inner
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    let rest = &inner[word.len()..];
    match word.to_ascii_uppercase().as_str() {
        "FILE" | "DELETE" | "MOVE" => rest.trim_start().starts_with(':'),
        // With two signs it is a heading of some markup.
        "SHOW" | "SEARCH" => line.starts_with("===") && rest.trim_start().starts_with(':'),
        "END" => rest.is_empty(),
        _ => false,
    }
}

/// A line of content as the file has it: one backslash before a marker is taken away.
pub(super) fn unescape(line: &str) -> &str {
    unescape_if(line, |rest| marker(rest).is_some())
}

/// The same inside the seven-character form.
pub(super) fn unescape_long(line: &str) -> &str {
    unescape_if(line, |rest| marker(rest).is_some() || is_divider(rest))
}

/// One leading backslash is taken away where what follows all of them needs it.
pub(super) fn unescape_if(line: &str, needs_it: impl Fn(&str) -> bool) -> &str {
    match line.strip_prefix('\\') {
        Some(rest) if needs_it(rest.trim_start_matches('\\')) => rest,
        _ => line,
    }
}
