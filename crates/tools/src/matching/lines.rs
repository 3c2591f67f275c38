//! A text as lines that remember their terminators.

/// The byte order mark some editors put first.
pub(super) const BOM: char = '\u{feff}';

/// One line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Without its terminator.
    pub(super) text: &'a str,
    /// `"\n"`, `"\r\n"`, or nothing on a last line that has none.
    pub(super) end: &'a str,
}

/// The byte order mark, if any, and the rest.
pub(super) fn split_bom(text: &str) -> (&str, &str) {
    match text.strip_prefix(BOM) {
        Some(rest) => text.split_at(text.len() - rest.len()),
        None => ("", text),
    }
}

/// The lines of a file. An empty file has none.
pub(super) fn file_lines(text: &str) -> Vec<Line<'_>> {
    text.split_inclusive('\n')
        .map(|whole| {
            let text = match whole.strip_suffix('\n') {
                Some(text) => text.strip_suffix('\r').unwrap_or(text),
                None => whole,
            };
            Line {
                text,
                end: &whole[text.len()..],
            }
        })
        .collect()
}

/// The lines of a block's text, which is lines *joined* by newlines: `"a\n"` is `a` and an empty
/// line. Carriage returns at line ends are no part of it.
pub(super) fn block_lines(text: &str) -> Vec<&str> {
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect()
}

/// Without white space at the end.
pub(super) fn trim_end(line: &str) -> &str {
    line.trim_end_matches([' ', '\t', '\r'])
}

/// Without white space at either end.
pub(super) fn trim(line: &str) -> &str {
    trim_end(line).trim_start_matches([' ', '\t'])
}

/// Whether there is only white space on the line.
pub(super) fn is_blank(line: &str) -> bool {
    trim(line).is_empty()
}

/// The white space a line starts with.
pub(super) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The terminator most lines have; `"\n"` when there is none to go by.
pub(super) fn usual_end(lines: &[Line<'_>]) -> &'static str {
    let crlf = lines.iter().filter(|line| line.end == "\r\n").count();
    let lf = lines.iter().filter(|line| line.end == "\n").count();
    if crlf > lf { "\r\n" } else { "\n" }
}
