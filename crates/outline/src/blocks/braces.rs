//! Blocks between braces: what stands before the first of them is the header.
//!
//! One pass over the bytes, with a stack of open braces. A statement begins after `;`, `{`, `}` or
//! a blank line, and in languages without semicolons at a line that is indented like the last one;
//! the line that the present statement began on is the header of a block that opens. So a signature
//! over several lines has its first line as header and the line of the brace as opening.
//!
//! Strings and comments are skipped, since braces in them count for nothing. Raw strings with
//! quotes in them, nested comments, heredocs and nested templates are not known: they cost errors,
//! and with too many errors the text is read by its indentation instead.

use super::{CodeBlock, indent};

/// Brackets that are closed too often or stay open, in this share of all, leave a text to its
/// indentation. In tenths: one error for ten braces is borne.
const MOST_ERRORS: usize = 10;

/// Blocks within so many others are part of the innermost of those. Whoever reads blocks goes down
/// them by recursion, and a hostile text would nest until the stack is full.
const DEEPEST: usize = 100;

/// `None` where the braces of a text do not add up.
pub(super) fn find(lines: &[&str], extension: &str) -> Option<Vec<CodeBlock>> {
    let mut scan = Scan {
        language: Language::of(extension),
        state: State::Code,
        open: Vec::new(),
        top: Vec::new(),
        statement: None,
        is_ended: true,
        errors: 0,
        braces: 0,
    };
    for (number, line) in lines.iter().enumerate() {
        scan.line(number, line);
    }
    scan.errors += scan.open.len();
    while let Some(open) = scan.open.pop() {
        scan.close(open, lines.len());
    }
    (scan.errors * MOST_ERRORS <= scan.braces).then_some(scan.top)
}

/// How strings and comments are written.
#[derive(Clone, Copy)]
struct Language {
    /// `'` is a character, not a string: `'a` alone is a lifetime or a label.
    has_characters: bool,
    /// `#` begins a comment.
    has_hash: bool,
    /// A slash may begin a regular expression.
    has_patterns: bool,
    /// A statement may end with its line.
    ends_with_line: bool,
}

impl Language {
    fn of(extension: &str) -> Self {
        let scripts = ["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"];
        let quotes = ["php", "dart", "groovy", "gradle", "css", "scss", "less"];
        let lines = [
            "go", "kt", "kts", "swift", "scala", "groovy", "gradle", "tf", "hcl",
        ];
        let is_script = scripts.contains(&extension);
        let has_hash = ["php", "pl", "pm", "r", "tf", "hcl", "awk"].contains(&extension);
        Self {
            has_characters: !is_script && !has_hash && !quotes.contains(&extension),
            has_hash,
            has_patterns: is_script,
            ends_with_line: is_script || lines.contains(&extension),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    Comment,
    /// In a string that ends with this byte and may go over several lines.
    Text(u8),
}

struct Opened {
    header: usize,
    opening: usize,
    /// Of the header.
    columns: usize,
    inner: Vec<CodeBlock>,
}

struct Scan {
    language: Language,
    state: State,
    open: Vec<Opened>,
    top: Vec<CodeBlock>,
    /// The line that the statement began on that is being read, and its indentation.
    statement: Option<(usize, usize)>,
    /// What comes next begins a statement.
    is_ended: bool,
    errors: usize,
    braces: usize,
}

impl Scan {
    fn line(&mut self, number: usize, line: &str) {
        let bytes = line.as_bytes();
        let columns = indent(line).unwrap_or(0);
        // A directive of the preprocessor is no statement.
        if self.state == State::Code && line.trim_start().starts_with('#') && !line.contains('{') {
            return;
        }
        if self.state == State::Code && self.begins_anew(line, columns) {
            self.is_ended = true;
        }
        let mut at = 0;
        let mut is_first = true;
        while at < bytes.len() {
            let byte = bytes[at];
            match self.state {
                State::Comment => match line[at..].find("*/") {
                    Some(length) => {
                        self.state = State::Code;
                        at += length + 2;
                        continue;
                    }
                    None => return,
                },
                State::Text(quote) => {
                    if byte == b'\\' {
                        at += 1;
                    } else if byte == quote {
                        self.state = State::Code;
                    }
                    at += 1;
                    continue;
                }
                State::Code => {}
            }
            if byte.is_ascii_whitespace() {
                at += 1;
                continue;
            }
            if bytes[at..].starts_with(b"//") || (byte == b'#' && self.language.has_hash) {
                break;
            }
            if bytes[at..].starts_with(b"/*") {
                self.state = State::Comment;
                at += 2;
                continue;
            }
            if self.is_ended && !b"})],;".contains(&byte) {
                self.statement = Some((number, columns));
                self.is_ended = false;
            }
            at = self.code(number, columns, bytes, at, is_first);
            is_first = false;
        }
        // Strings end with their line, but for these.
        if matches!(self.state, State::Text(quote) if quote != b'`') {
            self.state = State::Code;
        }
    }

    /// Whether a statement ended with the line before: a blank line says so, and where no semicolon
    /// is needed, a line that is indented like the first one of it. A closing bracket or an
    /// operator at the same indentation goes on with the statement.
    fn begins_anew(&self, line: &str, columns: usize) -> bool {
        let Some(first) = line.trim_start().chars().next() else {
            return true;
        };
        let is_level = self.statement.is_some_and(|(_, own)| own == columns);
        self.language.ends_with_line && is_level && (first.is_alphabetic() || "@_#".contains(first))
    }

    /// One byte of code that is not white space; where to go on.
    fn code(
        &mut self,
        number: usize,
        columns: usize,
        bytes: &[u8],
        at: usize,
        is_first: bool,
    ) -> usize {
        match bytes[at] {
            b'{' => {
                self.braces += 1;
                self.open.push(Opened {
                    header: self.statement.map_or(number, |(line, _)| line),
                    opening: number,
                    columns: self.statement.map_or(columns, |(_, own)| own.min(columns)),
                    inner: Vec::new(),
                });
                self.is_ended = true;
            }
            b'}' => {
                self.closing(number, columns, is_first);
                self.is_ended = true;
            }
            b';' => self.is_ended = true,
            b'"' | b'`' => self.state = State::Text(bytes[at]),
            b'\'' if !self.language.has_characters => self.state = State::Text(b'\''),
            b'\'' => return at + character(&bytes[at..]),
            b'/' if self.language.has_patterns && begins_pattern(&bytes[..at]) => {
                return at + pattern(&bytes[at..]);
            }
            _ => {}
        }
        at + 1
    }

    /// A brace that is the first on its line closes what is indented more as well: there a brace
    /// was missed. Without that, one brace lost in an unusual string would shift the ends of all
    /// blocks after it. A brace that closes nothing is an error and is skipped.
    fn closing(&mut self, number: usize, columns: usize, is_first: bool) {
        while is_first
            && self.open.len() > 1
            && self.open.last().is_some_and(|open| open.columns > columns)
        {
            self.errors += 1;
            if let Some(open) = self.open.pop() {
                self.close(open, number);
            }
        }
        match self.open.pop() {
            Some(open) => self.close(open, number + 1),
            None => self.errors += 1,
        }
    }

    /// Adds a block to the one around it. One in a single line is none, and one that begins where
    /// its neighbour ended begins after it. `end` is the line after the last one. This keeps the
    /// blocks of a list in order and apart, which `Definitions` and `units` rely on.
    fn close(&mut self, open: Opened, end: usize) {
        if self.open.len() >= DEEPEST {
            return;
        }
        let siblings = match self.open.last_mut() {
            Some(around) => &mut around.inner,
            None => &mut self.top,
        };
        let after = siblings.last().map_or(0, |last| last.end);
        let first = open.header.max(after);
        if end <= first + 1 {
            return;
        }
        siblings.push(CodeBlock {
            first,
            header: first,
            opening: open.opening.max(first),
            end,
            inner: open.inner,
        });
    }
}

/// The length of a character in quotes; of the quote alone if it is none. `bytes` begins with the
/// quote. At most twelve bytes are looked at, enough for the longest escape, `'\u{10FFFF}'`.
fn character(bytes: &[u8]) -> usize {
    let content = &bytes[1..bytes.len().min(12)];
    let escape = usize::from(content.first() == Some(&b'\\'));
    let from = (1 + escape).min(content.len());
    match memchr::memchr(b'\'', &content[from..]) {
        // One character, of up to four bytes; a longer one is an escape.
        Some(length) if escape == 1 || length <= 3 => 1 + from + length + 1,
        _ => 1,
    }
}

/// Whether a slash after this text begins a regular expression rather than divides. After a name, a
/// number or a closing bracket it divides.
fn begins_pattern(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    match before.last() {
        None => true,
        Some(byte) if b"(,=:[!&|?{};+~^<>".contains(byte) => true,
        Some(_) => before.ends_with(b"return") || before.ends_with(b"typeof"),
    }
}

/// The length of a regular expression; of the slash alone if it does not end on this line.
fn pattern(bytes: &[u8]) -> usize {
    let mut in_class = false;
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return at + 1,
            b'\n' => break,
            _ => {}
        }
        at += 1;
    }
    1
}
