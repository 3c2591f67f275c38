//! What is said about the files that match, within bounds.
//!
//! Lines are added until one of the bounds is reached: `head_limit`, or the size of a report. A cut
//! report says how many lines or files it has and that there are more. Files come newest first
//! where only names are asked for, otherwise in the order of their paths.

use std::{io, path::Path};

use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use tokio_util::sync::CancellationToken;

use super::{
    Input, OutputMode,
    search::{Hit, search, searcher},
};
use crate::{FileLedger, ToolError, blocking, glob::newest_first, paths};

/// Characters of a report, below what the conversation takes of one result. Measured in bytes, so
/// text beyond ASCII gets less.
const MAX_CHARS: usize = 25_000;
/// Characters of a line. Longer lines are mostly minified code or data.
const LINE_CHARS: usize = 500;

/// The report in the mode asked for. No match is an answer, not an error: a model that searches for
/// something absent has learnt that it is absent.
pub(super) fn report(
    input: &Input,
    hits: Vec<Hit>,
    path: &Path,
    cwd: &Path,
    matcher: &RegexMatcher,
    ledger: &FileLedger,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    if hits.is_empty() {
        return Ok("No matches found".to_owned());
    }
    let limit = input.head_limit.unwrap_or(usize::MAX);
    let mut lines = Lines::new(limit);
    match input.output_mode.unwrap_or_default() {
        OutputMode::FilesWithMatches => {
            let all = hits.len();
            for file in newest_first(hits.into_iter().map(|hit| hit.path).collect()) {
                if !lines.push(&paths::shown(&file, cwd)) {
                    break;
                }
            }
            Ok(lines.finish(&format!("of {all} files")))
        }
        OutputMode::Count => {
            let all: u64 = hits.iter().map(|hit| hit.count).sum();
            let files = hits.len();
            for hit in &hits {
                if !lines.push(&format!("{}:{}", paths::shown(&hit.path, cwd), hit.count)) {
                    break;
                }
            }
            lines
                .text
                .push_str(&format!("({all} matches in {files} files)\n"));
            Ok(lines.finish(&format!("of {files} files")))
        }
        OutputMode::Content => {
            for hit in &hits {
                if cancel.is_cancelled() {
                    return Err(blocking::cancelled());
                }
                let name = (hit.path != path).then(|| paths::shown(&hit.path, cwd));
                content(input, hit, name, matcher, (&mut lines, ledger));
                if lines.cut {
                    break;
                }
            }
            Ok(lines.finish("lines; there are more matches"))
        }
    }
}

/// Searches one file again and prints its matches. `-A` and `-B` override `-C`. With context,
/// groups of lines are separated by `--`, also between files.
fn content(
    input: &Input,
    hit: &Hit,
    name: Option<String>,
    matcher: &RegexMatcher,
    (lines, ledger): (&mut Lines, &FileLedger),
) {
    let around = input.around.unwrap_or(0);
    let (before, after) = (
        input.before.unwrap_or(around),
        input.after.unwrap_or(around),
    );
    let numbers = input.line_numbers != Some(false);
    let mut searcher = searcher(input)
        .line_number(true)
        .before_context(before)
        .after_context(after)
        .build();
    if before + after > 0 && !lines.text.is_empty() {
        lines.push("--");
    }
    let mut printer = Printer {
        path: &hit.path,
        name,
        numbers,
        lines,
        ledger,
    };
    // The file was readable a moment ago; if it is gone by now it has nothing to show.
    let _ = search(&mut searcher, matcher, &hit.path, &mut printer);
}

/// Lines of a report, up to the bounds. Once a line did not fit, `cut` stays set.
struct Lines {
    text: String,
    count: usize,
    limit: usize,
    cut: bool,
}

impl Lines {
    fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            count: 0,
            limit,
            cut: false,
        }
    }

    /// Adds a line; false when there is no more room.
    fn push(&mut self, line: &str) -> bool {
        if self.count >= self.limit || self.text.len() + line.len() > MAX_CHARS {
            self.cut = true;
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
        true
    }

    /// The text without its last newline; `of` completes the sentence "the first N …".
    fn finish(mut self, of: &str) -> String {
        if self.cut {
            self.text.push_str(&format!(
                "(the first {} {of}; narrow the search)\n",
                self.count
            ));
        }
        self.text.pop();
        self.text
    }
}

/// Writes matches and their context the way grep does: `path:line:text`, `path-line-text`.
/// Returning `false` from a sink ends the search of the file.
struct Printer<'a> {
    path: &'a Path,
    /// `None` when the call named this one file: repeating it on every line would be noise.
    name: Option<String>,
    /// Whether lines are shown with their numbers.
    numbers: bool,
    lines: &'a mut Lines,
    /// Told of the lines that are shown whole.
    ledger: &'a FileLedger,
}

impl Printer<'_> {
    /// Bytes that are not UTF-8 are replaced. A line is cut by characters, not bytes.
    fn print(&mut self, bytes: &[u8], number: Option<u64>, mark: char) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        let mut line = String::new();
        if let Some(name) = &self.name {
            line.push_str(name);
            line.push(mark);
        }
        if let Some(number) = number.filter(|_| self.numbers) {
            line.push_str(&format!("{number}{mark}"));
        }
        let cut = text.char_indices().nth(LINE_CHARS);
        match cut {
            Some((cut, _)) => line.push_str(&format!("{}… [line cut]", &text[..cut])),
            None => line.push_str(text),
        }
        let is_shown = self.lines.push(&line);
        if let (true, None, Some(number)) = (is_shown, cut, number) {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            self.ledger.record_line(self.path, number, text);
        }
        is_shown
    }
}

impl Sink for Printer<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        for (index, line) in (0..).zip(found.lines()) {
            let number = found.line_number().map(|first| first + index);
            if !self.print(line, number, ':') {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.print(context.bytes(), context.line_number(), '-'))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.lines.push("--"))
    }
}
