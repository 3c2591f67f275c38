//! Lines of output, and the rows they take on a terminal of some width.
//!
//! Prose is wrapped between words by us. Code, commands and URLs are written as one logical line
//! from the first column, which the terminal wraps: a copy of it is what was written.

use ratatui_core::{
    style::Style,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation;

use crate::width;

/// How a line goes on when it is wider than the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Between words; rows after the first are indented by so many columns.
    Words { hanging: u16 },
    /// The terminal wraps it, wherever it is full.
    #[default]
    Whole,
}

/// What a line is the beginning of, for terminals that can jump between messages (OSC 133).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A message of the user.
    Prompt,
    /// The answer to it.
    Output,
    /// The end of an answer.
    End,
}

/// A line of finished output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputLine {
    pub line: Line<'static>,
    pub flow: Flow,
    pub mark: Option<Mark>,
}

impl OutputLine {
    pub fn words(line: impl Into<Line<'static>>) -> Self {
        Self {
            line: line.into(),
            flow: Flow::Words { hanging: 0 },
            mark: None,
        }
    }

    pub fn hanging(line: impl Into<Line<'static>>, hanging: u16) -> Self {
        Self {
            line: line.into(),
            flow: Flow::Words { hanging },
            mark: None,
        }
    }

    pub fn whole(line: impl Into<Line<'static>>) -> Self {
        Self {
            line: line.into(),
            flow: Flow::Whole,
            mark: None,
        }
    }

    #[must_use]
    pub fn marked(mut self, mark: Mark) -> Self {
        self.mark = Some(mark);
        self
    }
}

/// The rows of a line on a terminal of this width; at least one, none wider than it. The style of
/// the line is kept on each row. Used by the painter for what is committed and by the surface for
/// what is live, so that a line looks the same in both.
pub fn rows(output: &OutputLine, columns: u16) -> Vec<Line<'static>> {
    let columns = usize::from(columns.max(1));
    let styled = Styled::of(&output.line);
    let breaks = match output.flow {
        Flow::Words { hanging } => {
            // A terminal that is too narrow for the indentation does without.
            let hanging = usize::from(hanging);
            let hanging = if hanging * 2 > columns { 0 } else { hanging };
            styled.broken_at_words(columns, hanging)
        }
        Flow::Whole => styled.broken_anywhere(columns),
    };
    let rows = breaks.iter().map(|row| styled.row(row, output.line.style));
    rows.collect()
}

/// Graphemes of a line with their styles and widths.
struct Styled<'a> {
    cells: Vec<(&'a str, Style, usize)>,
}

/// A row: cells from, to, and the indentation before them.
struct Row {
    from: usize,
    to: usize,
    indent: usize,
}

impl<'a> Styled<'a> {
    fn of(line: &'a Line<'_>) -> Self {
        let cells = line.spans.iter().flat_map(|span| {
            let graphemes = span.content.graphemes(true);
            graphemes.map(|one| (one, span.style, width::of_grapheme(one)))
        });
        Self {
            cells: cells.collect(),
        }
    }

    fn is_blank(&self, cell: usize) -> bool {
        self.cells[cell].0 == " "
    }

    fn broken_anywhere(&self, columns: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let (mut from, mut used) = (0, 0);
        for (at, (_, _, width)) in self.cells.iter().enumerate() {
            if used + width > columns && at > from {
                rows.push(Row {
                    from,
                    to: at,
                    indent: 0,
                });
                (from, used) = (at, 0);
            }
            used += width;
        }
        rows.push(Row {
            from,
            to: self.cells.len(),
            indent: 0,
        });
        rows
    }

    /// A word that is wider than a row is broken anywhere. Blanks at a break are left out.
    fn broken_at_words(&self, columns: usize, hanging: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let (mut from, mut used, mut indent) = (0, 0, 0);
        // After the last blank that may end this row.
        let mut last_break = None;
        let mut at = 0;
        while at < self.cells.len() {
            let width = self.cells[at].2;
            if used + width > columns - indent && at > from && !self.is_blank(at) {
                let next = last_break.filter(|next| *next > from).unwrap_or(at);
                rows.push(Row {
                    from,
                    to: self.without_blanks_at_end(from, next),
                    indent,
                });
                // What is as wide as the row goes without the indentation.
                let is_room = self.cells[next].2 <= columns - hanging;
                indent = if is_room { hanging } else { 0 };
                (from, at, used, last_break) = (next, next, 0, None);
                continue;
            }
            used += width;
            at += 1;
            if self.is_blank(at - 1) {
                last_break = Some(at);
            }
        }
        rows.push(Row {
            from,
            to: self.without_blanks_at_end(from, self.cells.len()),
            indent,
        });
        rows
    }

    fn without_blanks_at_end(&self, from: usize, mut to: usize) -> usize {
        while to > from && self.is_blank(to - 1) {
            to -= 1;
        }
        to
    }

    /// Neighbouring graphemes of one style become one span.
    fn row(&self, row: &Row, style: Style) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = Vec::new();
        if row.indent > 0 {
            spans.push(Span::raw(" ".repeat(row.indent)));
        }
        let mut text = String::new();
        let mut current = None;
        for (grapheme, style, _) in &self.cells[row.from..row.to] {
            if current.is_some_and(|current| current != *style) {
                spans.push(Span::styled(
                    std::mem::take(&mut text),
                    current.unwrap_or_default(),
                ));
            }
            current = Some(*style);
            text.push_str(grapheme);
        }
        if let Some(style) = current {
            spans.push(Span::styled(text, style));
        }
        Line::from(spans).style(style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(output: &OutputLine, columns: u16) -> Vec<String> {
        let rows = rows(output, columns);
        rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn prose_breaks_between_words_and_hangs() {
        let line = OutputLine::hanging("- the quick brown fox", 2);
        assert_eq!(texts(&line, 12), ["- the quick", "  brown fox"]);
        assert_eq!(texts(&line, 80), ["- the quick brown fox"]);
        assert_eq!(texts(&OutputLine::words(""), 10), [""]);
    }

    #[test]
    fn a_long_word_is_broken_where_the_row_is_full() {
        let line = OutputLine::words("see abcdefghijklm now");
        assert_eq!(texts(&line, 6), ["see", "abcdef", "ghijkl", "m now"]);
        let code = OutputLine::whole("let x  = 1;");
        assert_eq!(texts(&code, 6), ["let x ", " = 1;"]);
    }

    #[test]
    fn wide_characters_never_pass_the_edge() {
        let line = OutputLine::whole("a漢字b");
        assert_eq!(texts(&line, 4), ["a漢", "字b"]);
        assert_eq!(texts(&line, 2), ["a", "漢", "字", "b"]);
    }

    #[test]
    fn indentation_never_makes_a_row_too_wide() {
        let line = OutputLine::hanging("0:a👩\u{200d}💻", 3);
        assert_eq!(texts(&line, 6), ["0:a", "👩\u{200d}💻"]);
    }

    #[test]
    fn styles_survive_a_break() {
        let bold = Style::new().add_modifier(ratatui_core::style::Modifier::BOLD);
        let line = Line::from(vec![Span::raw("one "), Span::styled("two three", bold)]);
        let rows = rows(&OutputLine::words(line), 7);
        assert_eq!(rows[1].spans, vec![Span::styled("three", bold)]);
    }
}
