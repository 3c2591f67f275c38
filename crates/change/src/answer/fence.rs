//! A code fence around the body of a block, which models add and files do not have.
//!
//! A file that is no Markdown does not start with a fence, so one that opens its body must close
//! it, and both lines go. Markdown may start with a fence: there, only a pair tagged `markdown`
//! goes, any other tag is content, and a pair without a tag is refused, because either could be
//! meant. A backslash before the first fence always makes it content.

use super::markers::unescape_if;

/// A line that opens a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    letter: char,
    length: usize,
    tag: &'a str,
}

/// What is to be done with the body of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// It stays as it is.
    None,
    /// The lines at both ends, with blank lines outside them, go.
    Whole { first: usize, last: usize },
}

const MARKDOWN_ENDINGS: &[&str] = &[
    ".md",
    ".markdown",
    ".mdx",
    ".mdc",
    ".qmd",
    ".rmd",
    ".livemd",
];
const MARKDOWN_TAGS: &[&str] = &["markdown", "md", "mdx"];

/// Whether a file is Markdown, by its name.
pub(super) fn is_markdown(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    MARKDOWN_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// The fence that a line opens. At the left edge only: a fence that is indented belongs to a file.
pub(super) fn opening(line: &str) -> Option<Fence<'_>> {
    let line = line.trim_end();
    let letter = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let tag = line.trim_start_matches(letter);
    let length = line.len() - tag.len();
    let tag = tag.trim();
    let is_fence = length >= 3 && !(letter == '`' && tag.contains('`'));
    is_fence.then_some(Fence {
        letter,
        length,
        tag,
    })
}

impl Fence<'_> {
    /// Whether a line closes it.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        opening(line).is_some_and(|other| {
            other.tag.is_empty() && other.letter == self.letter && other.length >= self.length
        })
    }
}

/// The first and the last line that are not blank.
pub(super) fn edges(lines: &[&str]) -> Option<(usize, usize)> {
    let is_text = |line: &&str| !line.trim().is_empty();
    let first = lines.iter().position(is_text)?;
    let last = lines.iter().rposition(is_text)?;
    Some((first, last))
}

/// Whether the whole content of `path` is wrapped in a fence, or why that cannot be told.
pub(super) fn wrapping(path: &str, lines: &[&str]) -> Result<Wrapping, &'static str> {
    let Some((first, last)) = edges(lines) else {
        return Ok(Wrapping::None);
    };
    let Some(fence) = opening(lines[first]) else {
        return Ok(Wrapping::None);
    };
    let closes = last > first && fence.is_closed_by(lines[last]);
    let whole = Wrapping::Whole { first, last };
    if !is_markdown(path) {
        return if closes {
            Ok(whole)
        } else {
            Err(
                "the content starts with a code fence that does not close on its last line; leave \
                 fences and remarks out of the block (a backslash before the first fence keeps it \
                 as content)",
            )
        };
    }
    let tag = fence.tag.to_ascii_lowercase();
    if closes && MARKDOWN_TAGS.contains(&tag.as_str()) && is_even(&lines[first + 1..last]) {
        Ok(whole)
    } else if closes && tag.is_empty() {
        Err(
            "it is not clear whether the code fence around the content belongs to the file; leave \
             it out, or put a backslash before the first fence to keep it as content",
        )
    } else {
        Ok(Wrapping::None)
    }
}

/// Whether every fence that these lines open is closed in them.
fn is_even(lines: &[&str]) -> bool {
    let mut open: Option<Fence<'_>> = None;
    for line in lines {
        match (open, opening(line)) {
            (None, Some(fence)) => open = Some(fence),
            (Some(fence), Some(_)) if fence.is_closed_by(line) => open = None,
            _ => {}
        }
    }
    open.is_none()
}

/// The first line of content without the backslash that keeps a fence.
pub(super) fn unescape_fence(line: &str) -> &str {
    unescape_if(line, |rest| opening(rest).is_some())
}
