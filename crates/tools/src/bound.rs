//! Results too long for the conversation: the model gets both ends and a path.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::Context;

/// A tool result has at most this many characters, its notice included.
pub const RESULT_LIMIT: usize = 30_000;

/// Characters kept at each end; together with the notice they stay below the limit. Both ends are
/// kept because commands say what they do at the start and what went wrong at the end.
pub(crate) const END: usize = 14_500;

/// A cut is moved to the end of a line if there is one this near.
const LINE_SEARCH: usize = 2_000;

/// Keeps a text that fits as it is. A longer one goes to a file in the context's output directory,
/// named after `name`; its head, its tail and the path are returned. Secrets are left out.
pub fn bound(text: String, context: &Context, name: &str) -> String {
    let text = match context.redactor().redact(&text) {
        Cow::Owned(redacted) => redacted,
        Cow::Borrowed(_) => text,
    };
    let count = text.chars().count();
    if count <= RESULT_LIMIT {
        return text;
    }
    let place = write_out(&text, context.output_dir(), name);
    let head = first(&text, END);
    let tail = last(&text, END);
    let between = text.get(head.len()..text.len() - tail.len());
    let left_out = between.map_or(0, |between| between.chars().count());
    join(head, tail, left_out, &place)
}

/// A full disk must not lose the result: both ends are returned in any case, with the reason why
/// the rest is missing.
fn write_out(text: &str, directory: &Path, name: &str) -> Place {
    let written = output_file(directory, name)
        .and_then(|(mut file, path)| file.write_all(text.as_bytes()).map(|()| path));
    match written {
        Ok(path) => Place::Whole(path),
        Err(error) => Place::Lost(error.to_string()),
    }
}

/// Where the rest of a long text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// All of it in a file.
    Whole(PathBuf),
    /// In a file, this many bytes of the middle dropped.
    WithoutMiddle(PathBuf, u64),
    /// It could not be written.
    Lost(String),
}

/// The form in which every long result is shown.
pub(crate) fn join(head: &str, tail: &str, left_out: usize, place: &Place) -> String {
    let place = match place {
        Place::Whole(path) => format!("the whole is in {}", path.display()),
        Place::WithoutMiddle(path, dropped) => format!(
            "{} has more, but not {dropped} bytes of the middle",
            path.display()
        ),
        Place::Lost(error) => format!("they could not be kept in a file: {error}"),
    };
    format!(
        "{}\n\n… {left_out} characters left out; {place} …\n\n{}",
        head.trim_end_matches('\n'),
        tail
    )
}

/// The first `limit` characters, or somewhat fewer to end with a line.
pub(crate) fn first(text: &str, limit: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return text;
    };
    let cut = &text[..end];
    match cut.rfind('\n') {
        Some(line) if end - line <= LINE_SEARCH => &text[..=line],
        _ => cut,
    }
}

/// The last `limit` characters, or somewhat fewer to begin with a line.
pub(crate) fn last(text: &str, limit: usize) -> &str {
    let Some((start, _)) = text.char_indices().rev().nth(limit.saturating_sub(1)) else {
        return text;
    };
    let cut = &text[start..];
    match cut.find('\n') {
        Some(line) if line <= LINE_SEARCH && line + 1 < cut.len() => &cut[line + 1..],
        _ => cut,
    }
}

/// A new file in the output directory, readable by its owner only. The name begins with that of the
/// tool and is otherwise random; it is not removed by us when the process ends.
pub(crate) fn output_file(directory: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    fs::create_dir_all(directory)?;
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    tempfile::Builder::new()
        .prefix(&format!("{name}-"))
        .suffix(".txt")
        .rand_bytes(8)
        .tempfile_in(directory)?
        .keep()
        .map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_cut_at_lines_where_there_are_some_and_at_characters_where_not() {
        assert_eq!(first("ab\ncd\nef", 4), "ab\n");
        assert_eq!(last("ab\ncd\nef", 4), "ef");
        assert_eq!(first("ééééé", 2), "éé");
        assert_eq!(last("ééééé", 2), "éé");
        assert_eq!((first("abc", 3), last("abc", 3)), ("abc", "abc"));
    }

    #[test]
    fn a_bounded_text_fits_even_with_a_long_path() {
        let end = "x".repeat(END);
        let path = PathBuf::from(format!("/{}", "p".repeat(500)));
        let text = join(
            &end,
            &end,
            usize::MAX,
            &Place::WithoutMiddle(path, u64::MAX),
        );
        assert!(text.chars().count() <= RESULT_LIMIT, "{}", text.len());
    }
}
