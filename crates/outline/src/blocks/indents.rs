//! Blocks by indentation: a line, what is indented more, and what closes it.
//!
//! For Python, Ruby, shell, YAML and whatever else is no language of braces, and for texts whose
//! braces do not add up. A block is a line with all lines after it that are indented more. Lines at
//! its own indentation belong to it only if they go on with it: a closing bracket, or a word such
//! as `else` or `end`. Blank lines at the end of a block are not part of it.

use super::{CodeBlock, indent};

/// Words that go on with the block above them.
#[rustfmt::skip]
const CONTINUING: &[&str] = &[
    "end", "else", "elsif", "elif", "rescue", "ensure", "except", "finally", "catch", "fi", "done",
    "esac", "then", "do", "in", "when", "begin", "until", "while", "after",
];
/// Deeper nesting is not looked into: nobody writes it, and the work would be endless. Recursion is
/// as deep as that, so a hostile file cannot exhaust the stack.
const MOST_LEVELS: usize = 24;

pub(super) fn find(lines: &[&str], extension: &str) -> Vec<CodeBlock> {
    let indents = indents(lines, extension);
    blocks(lines, &indents, 0, lines.len(), 0)
}

/// The indentation of each line; `None` for lines that say nothing about it. Those of a string over
/// several lines belong to the line it begins on.
fn indents(lines: &[&str], extension: &str) -> Vec<Option<usize>> {
    let is_python = matches!(extension, "py" | "pyx" | "pyi" | "pxd");
    let mut within: Option<&str> = None;
    let each = lines.iter().map(|line| {
        let was_within = within.is_some();
        if is_python {
            within = string_after(line, within);
        }
        let is_directive = line.starts_with('#') && !is_python && extension != "rb";
        match (was_within, is_directive) {
            (true, _) => Some(usize::MAX),
            (false, true) => None,
            (false, false) => indent(line),
        }
    });
    each.collect()
}

/// The quotes of the string that is open after a line. Only for Python's triple quotes, which hold
/// text at any indentation. A `#` before the quotes is taken for a comment, also within a string of
/// one line.
fn string_after<'q>(line: &str, mut within: Option<&'q str>) -> Option<&'q str> {
    let mut rest = line;
    loop {
        match within {
            Some(quotes) => match rest.find(quotes) {
                Some(at) => {
                    rest = &rest[at + 3..];
                    within = None;
                }
                None => return within,
            },
            None => {
                let comment = rest.find('#').unwrap_or(rest.len());
                let opens = ["\"\"\"", "'''"].into_iter();
                let first = opens
                    .filter_map(|quotes| Some((rest.find(quotes)?, quotes)))
                    .min();
                match first {
                    Some((at, quotes)) if at < comment => {
                        rest = &rest[at + 3..];
                        within = Some(quotes);
                    }
                    _ => return None,
                }
            }
        }
    }
}

/// The blocks between two lines. From `from` up to but without `to`. Each line is looked at once on
/// every level.
fn blocks(
    lines: &[&str],
    indents: &[Option<usize>],
    from: usize,
    to: usize,
    level: usize,
) -> Vec<CodeBlock> {
    let mut found = Vec::new();
    let mut at = from;
    while at < to {
        let Some(columns) = indents[at] else {
            at += 1;
            continue;
        };
        let (opening, end) = extent(lines, indents, at, to, columns);
        if end - at > 1 && level < MOST_LEVELS {
            found.push(CodeBlock {
                first: at,
                header: at,
                opening,
                end,
                inner: blocks(lines, indents, opening + 1, end, level + 1),
            });
        }
        at = end;
    }
    found
}

/// The last line of the header, and where the block that begins at a line ends. A block of a single
/// line is none; the caller sees that by its length.
fn extent(
    lines: &[&str],
    indents: &[Option<usize>],
    start: usize,
    to: usize,
    columns: usize,
) -> (usize, usize) {
    let (mut opening, mut end) = (start, start + 1);
    let mut at = start + 1;
    while at < to {
        match indents[at] {
            None => {}
            Some(own) if own > columns => end = at + 1,
            Some(own) if own == columns && goes_on(lines[at]) => {
                // `):` at the end of a signature: the body comes after it.
                let is_signature = lines[at].trim_start().starts_with([')', ']', '{']);
                if opening == start && is_signature && !lines[at].trim_end().ends_with(';') {
                    opening = at;
                }
                end = at + 1;
            }
            Some(_) => break,
        }
        at += 1;
    }
    // A closing bracket that ends the block is no header.
    (if opening + 1 < end { opening } else { start }, end)
}

/// Whether a line at the indentation of a block's first line is still part of the block.
fn goes_on(line: &str) -> bool {
    let line = line.trim_start();
    let word: &str = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default();
    line.starts_with([')', ']', '}', '{']) || CONTINUING.contains(&word)
}
