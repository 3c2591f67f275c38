//! What a line of markdown begins with.
//!
//! Each function looks at one line, without the lines around it, and follows CommonMark, and GitHub
//! for tables and boxes. The caller has taken the marks of containers off.

/// A position in a line, which counts columns: a tab goes on to the next multiple of four.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
    column: usize,
    /// Columns of a tab of which only a part was taken.
    spare: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self {
            rest: line,
            column: 0,
            spare: 0,
        }
    }

    /// Columns of blanks ahead.
    pub(super) fn indent(&self) -> usize {
        let mut ahead = *self;
        ahead.skip_columns(usize::MAX);
        ahead.column - self.column
    }

    /// Takes at most so many columns of blanks.
    pub(super) fn skip_columns(&mut self, mut columns: usize) {
        while columns > 0 {
            if self.spare == 0 {
                self.spare = match self.rest.bytes().next() {
                    Some(b' ') => 1,
                    Some(b'\t') => 4 - self.column % 4,
                    _ => return,
                };
                self.rest = &self.rest[1..];
            }
            let taken = self.spare.min(columns);
            self.spare -= taken;
            self.column += taken;
            columns -= taken;
        }
    }

    /// Takes a mark of so many ASCII characters after its indentation.
    pub(super) fn skip_mark(&mut self, length: usize) {
        self.skip_columns(usize::MAX);
        self.rest = &self.rest[length..];
        self.column += length;
    }

    /// What is ahead, without its indentation.
    pub(super) fn trimmed(&self) -> &'a str {
        self.rest.trim_start_matches([' ', '\t'])
    }

    pub(super) fn is_blank(&self) -> bool {
        self.trimmed().is_empty()
    }

    /// What is ahead, with its indentation.
    pub(super) fn text(&self) -> String {
        format!("{}{}", " ".repeat(self.spare), self.rest)
    }
}

/// The mark that opened a fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) mark: char,
    pub(super) length: usize,
    /// Columns before the mark, which its lines lose too.
    pub(super) indent: usize,
}

impl Fence {
    /// The fence that a line opens, and its info string.
    pub(super) fn opened_by<'a>(cursor: &Cursor<'a>) -> Option<(Self, &'a str)> {
        let text = cursor.trimmed();
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        if length < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        let fence = Self {
            mark,
            length,
            indent: cursor.indent(),
        };
        Some((fence, info.trim()))
    }

    pub(super) fn is_closed_by(&self, cursor: &Cursor<'_>) -> bool {
        let text = cursor.trimmed();
        let rest = text.trim_start_matches(self.mark);
        cursor.indent() < 4 && text.len() - rest.len() >= self.length && rest.trim().is_empty()
    }
}

/// What kind of list an item belongs to: a different character begins another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    Bullet(char),
    Numbered(char),
}

/// The marker of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) kind: ListKind,
    /// 0 for a bullet.
    pub(super) number: u64,
    /// Characters of the marker.
    pub(super) length: usize,
    /// Whether nothing follows it.
    pub(super) alone: bool,
}

pub(super) fn list_marker(text: &str) -> Option<Marker> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = text[digits..].chars().next()?;
    let (kind, number) = match mark {
        '-' | '+' | '*' if digits == 0 => (ListKind::Bullet(mark), 0),
        '.' | ')' if (1..=9).contains(&digits) => {
            (ListKind::Numbered(mark), text[..digits].parse().ok()?)
        }
        _ => return None,
    };
    let rest = &text[digits + 1..];
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(Marker {
        kind,
        number,
        length: digits + 1,
        alone: rest.trim().is_empty(),
    })
}

/// The box at the beginning of a task item: whether it is ticked, and the text after it.
pub(super) fn task_box(text: &str) -> Option<(bool, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let ticked = match inside {
        " " => false,
        "x" | "X" => true,
        _ => return None,
    };
    rest.strip_prefix(' ').map(|rest| (ticked, rest))
}

pub(super) fn is_rule(text: &str) -> bool {
    let mut marks = text.chars().filter(|c| !matches!(c, ' ' | '\t'));
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else {
        return false;
    };
    let mut count = 1;
    marks.all(|c| {
        count += 1;
        c == first
    }) && count >= 3
}

/// The level of a heading that begins with `#`.
pub(super) fn heading_level(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let ends = rest.is_empty() || rest.starts_with([' ', '\t']);
    ((1..=6).contains(&level) && ends).then_some(level)
}

/// The level that a line gives to the paragraph above it.
pub(super) fn underline_level(text: &str) -> Option<usize> {
    let text = text.trim_end();
    match text.chars().next()? {
        '=' if text.chars().all(|c| c == '=') => Some(1),
        '-' if text.chars().all(|c| c == '-') => Some(2),
        _ => None,
    }
}

/// What ends a block of HTML that blank lines do not end.
pub(super) fn html_end(text: &str) -> Option<&'static str> {
    const BEGINNINGS: [(&str, &str); 8] = [
        ("<!--", "-->"),
        ("<?", "?>"),
        ("<![CDATA[", "]]>"),
        ("<!", ">"),
        ("<script", "</script>"),
        ("<pre", "</pre>"),
        ("<style", "</style>"),
        ("<textarea", "</textarea>"),
    ];
    let begins = |beginning: &str| {
        let start = text.get(..beginning.len());
        let is_name = beginning.ends_with(|c: char| c.is_ascii_alphabetic());
        let next = text.get(beginning.len()..).and_then(|r| r.chars().next());
        start.is_some_and(|start| start.eq_ignore_ascii_case(beginning))
            && (!is_name || next.is_none_or(|c| matches!(c, ' ' | '\t' | '>')))
            && (beginning != "<!" || next.is_some_and(|c| c.is_ascii_alphabetic()))
    };
    let found = BEGINNINGS.iter().find(|(beginning, _)| begins(beginning));
    found.map(|(_, end)| *end)
}

/// Whether this line makes a table of the line above it.
pub(super) fn is_table_start(header: &str, line: &str) -> bool {
    let is_delimiter = |cell: &str| {
        let cell = cell.trim();
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        !dashes.is_empty() && dashes.bytes().all(|b| b == b'-')
    };
    line.contains('|')
        && cells(line).all(is_delimiter)
        && cells(header).count() == cells(line).count()
}

fn cells(row: &str) -> impl Iterator<Item = &str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = match row.ends_with("\\|") {
        true => row,
        false => row.strip_suffix('|').unwrap_or(row),
    };
    let mut escaped = false;
    row.split(move |c| {
        let splits = c == '|' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
}

/// A table whose header has as many cells as its widest row: others would not be shown.
pub(super) fn widened(header: &str, rows: &str) -> String {
    let widest = rows
        .lines()
        .map(|row| cells(row).count())
        .max()
        .unwrap_or(0);
    let mut table = String::with_capacity(header.len() + rows.len());
    for (line, cell) in header.lines().zip(["  |", "---|"]) {
        let missing = widest.saturating_sub(cells(line).count());
        table.push_str(line.trim_end());
        if missing > 0 && (!line.trim_end().ends_with('|') || line.trim_end().ends_with("\\|")) {
            table.push('|');
        }
        table.push_str(&cell.repeat(missing));
        table.push('\n');
    }
    table + rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_through_tabs() {
        let mut cursor = Cursor::new(" \tcode");
        assert_eq!(cursor.indent(), 4);
        cursor.skip_columns(2);
        assert_eq!(cursor.text(), "  code");
        cursor.skip_columns(2);
        assert_eq!(cursor.text(), "code");
    }

    #[test]
    fn beginnings_of_blocks_are_told_apart() {
        assert!(is_rule("- - -") && is_rule("***") && !is_rule("--"));
        assert_eq!(heading_level("### x"), Some(3));
        assert_eq!(heading_level("#x"), None);
        assert_eq!(list_marker("12) x").map(|m| m.number), Some(12));
        assert_eq!(list_marker("-x"), None);
        assert_eq!(task_box("[x] done"), Some((true, "done")));
        assert_eq!(html_end("<PRE class>"), Some("</pre>"));
        assert_eq!(html_end("<preface>"), None);
        assert!(is_table_start("| a | b\\|c |", "|---|:-:|"));
        assert!(!is_table_start("a", "|---|---|"));
        assert_eq!(widened("|a|\n|-|\n", "|b|c|\n"), "|a|  |\n|-|---|\n|b|c|\n");
        assert_eq!(widened("a|b\n-|-\n", "c\n"), "a|b\n-|-\nc\n");
    }
}
