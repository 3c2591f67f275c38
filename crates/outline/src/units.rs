//! Cuts a text into pieces that are shown whole or not at all: functions, small classes, and what
//! is between them.
//!
//! The context of the dev agent is chosen among these pieces by how well each fits the instruction.
//! So a piece must be of a size that can be compared, must be readable alone, and no line may be in
//! two of them.

use std::ops::Range;

use crate::blocks::{self, CodeBlock};

/// A block of up to so many lines is one piece. A longer one is taken apart: a class into its
/// methods, a long function into its branches.
const MOST_LINES: usize = 90;
/// Lines between blocks, and lists of data, are pieces of about so many lines.
const LOOSE_LINES: usize = 24;
/// Lines of a header that are repeated above a part of its block.
const HEADER_LINES: usize = 6;
/// Imports further down are not those of the file.
const IMPORT_LINES: usize = 120;

/// Lines that are shown together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub lines: Range<usize>,
    /// The headers of the blocks around it, the outermost first. They are shown above it, so that a
    /// method is seen with its class. At most `HEADER_LINES` lines each.
    pub headers: Vec<Range<usize>>,
}

/// All lines of a text, each in one unit, in order. No unit is longer than `most_bytes`, if its
/// lines are not. `most_bytes` counts the bytes of the lines as they are given, with their newlines
/// if they have any. A line that is longer is a unit of its own.
pub fn units(path: &str, lines: &[&str], most_bytes: usize) -> Vec<Unit> {
    let mut cutting = Cutting {
        lines,
        most_bytes,
        headers: Vec::new(),
        units: Vec::new(),
    };
    cutting.cut(0..lines.len(), &blocks::find(path, lines));
    cutting.units
}

struct Cutting<'t> {
    lines: &'t [&'t str],
    most_bytes: usize,
    headers: Vec<Range<usize>>,
    units: Vec<Unit>,
}

impl Cutting<'_> {
    /// The comments above a block and its header become loose lines of their own if the block is
    /// taken apart; its parts repeat the header only.
    fn cut(&mut self, range: Range<usize>, blocks: &[CodeBlock]) {
        let mut at = range.start;
        for block in blocks {
            let first = block.first.clamp(at, range.end);
            let end = block.end.clamp(first, range.end);
            self.loose(at..first);
            if end - first <= MOST_LINES && self.bytes(first..end) <= self.most_bytes {
                self.unit(first..end);
            } else {
                let body = (block.opening + 1).clamp(first, end);
                let header = block.header.clamp(first, body)..body;
                self.loose(first..body);
                let shown = header.start..header.end.min(header.start + HEADER_LINES);
                self.headers.push(shown);
                self.cut(body..end, &block.inner);
                self.headers.pop();
            }
            at = end;
        }
        self.loose(at..range.end);
    }

    /// Lines without a block around them: split at blank lines where that is possible.
    fn loose(&mut self, range: Range<usize>) {
        let (mut from, mut size, mut blank) = (range.start, 0, None);
        for at in range.clone() {
            let length = self.lines[at].len();
            let is_full = at - from >= LOOSE_LINES || size + length > self.most_bytes;
            if is_full && at > from {
                let to = blank.filter(|blank| *blank > from).unwrap_or(at);
                self.unit(from..to);
                size = self.bytes(to..at);
                (from, blank) = (to, None);
            }
            size += length;
            if self.lines[at].trim().is_empty() {
                blank = Some(at + 1);
            }
        }
        if from < range.end {
            self.unit(from..range.end);
        }
    }

    fn unit(&mut self, lines: Range<usize>) {
        if !lines.is_empty() {
            let headers = self.headers.clone();
            self.units.push(Unit { lines, headers });
        }
    }

    fn bytes(&self, range: Range<usize>) -> usize {
        self.lines[range].iter().map(|line| line.len()).sum()
    }
}

/// The lines of a text that say what it uses. Indices from 0, in order. Only lines at the left
/// edge: an import within a function is part of it. `const` counts if it is a `require` of
/// JavaScript.
pub fn imports(lines: &[&str]) -> Vec<usize> {
    let first = lines.iter().take(IMPORT_LINES).enumerate();
    first
        .filter(|(_, line)| is_import(line))
        .map(|(at, _)| at)
        .collect()
}

fn is_import(line: &str) -> bool {
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "import ", "from ", "use ", "#include", "require", "using ", "package ", "mod ", "pub use ",
        "pub mod ", "export * from", "namespace ", "#import", "extern crate", "const ", "@import",
    ];
    let is_required = !line.starts_with("const ") || line.contains("require(");
    is_required && WORDS.iter().any(|word| line.starts_with(word))
}
