//! Tables: drawn with lines if they fit, as records if not.
//!
//! There are lines between columns and below the header only: a frame around a table would be most
//! of the bytes that it takes to show it.

use pulldown_cmark::Alignment;
use ratatui_core::text::{Line, Span};

use super::inline::{Spans, TableSource};
use crate::{
    theme::Theme,
    width,
    wrap::{self, OutputLine},
};

/// Columns that are narrower than their content stay at least this wide.
const MIN_WIDTH: usize = 8;

/// Drawn rows are at most `columns` wide, so the terminal does not wrap them.
pub(super) fn draw(table: TableSource, theme: Theme, columns: usize) -> Vec<OutputLine> {
    match widths(&table, columns) {
        Some(widths) => Drawing {
            table: &table,
            theme,
            widths,
        }
        .lines(),
        None => records(table, theme),
    }
}

fn width_of(spans: &Spans) -> usize {
    spans.iter().map(|span| width::of(&span.content)).sum()
}

/// How wide each column is drawn: as its content if that fits, else wide ones share what narrow
/// ones leave. None if that would be too narrow to read. Narrow columns keep their width, in
/// rounds: each round gives the others more.
fn widths(table: &TableSource, columns: usize) -> Option<Vec<usize>> {
    let count = table.alignments.len();
    let natural = |column| {
        let cells = table.rows.iter().filter_map(|row| row.get(column));
        cells.map(width_of).max().unwrap_or(0).max(1)
    };
    let natural: Vec<usize> = (0..count).map(natural).collect();
    let available = columns.checked_sub(3 * count.saturating_sub(1))?;
    let mut widths = natural.clone();
    let mut wide: Vec<usize> = (0..count).collect();
    let mut left = available;
    loop {
        if wide.is_empty() {
            return Some(widths);
        }
        let share = left / wide.len();
        let (fitting, wider): (Vec<usize>, Vec<usize>) =
            wide.iter().partition(|column| natural[**column] <= share);
        if fitting.is_empty() {
            let spare = left % wide.len();
            for (at, column) in wider.iter().enumerate() {
                widths[*column] = share + usize::from(at < spare);
            }
            return (share >= MIN_WIDTH).then_some(widths);
        }
        left -= fitting.iter().map(|column| natural[*column]).sum::<usize>();
        wide = wider;
    }
}

struct Drawing<'a> {
    table: &'a TableSource,
    theme: Theme,
    widths: Vec<usize>,
}

impl Drawing<'_> {
    fn lines(&self) -> Vec<OutputLine> {
        let rows: Vec<_> = self
            .table
            .rows
            .iter()
            .map(|row| self.wrapped(row))
            .collect();
        let height = |row: &Vec<Vec<Line<'static>>>| row.iter().map(Vec::len).max().unwrap_or(1);
        // Cells of several lines need a line between rows to be told apart.
        let is_tall = rows.iter().skip(1).any(|row| height(row) > 1);
        let mut lines = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            lines.extend((0..height(row)).map(|part| self.row(row, part)));
            let is_last = at + 1 == rows.len();
            if at == 0 || (is_tall && !is_last) {
                lines.push(self.rule());
            }
        }
        lines
    }

    fn wrapped(&self, row: &[Spans]) -> Vec<Vec<Line<'static>>> {
        let cell = |(column, width): (usize, &usize)| {
            let spans = row.get(column).cloned().unwrap_or_default();
            let width = u16::try_from(*width).unwrap_or(u16::MAX);
            wrap::rows(&OutputLine::words(Line::from(spans)), width)
        };
        self.widths.iter().enumerate().map(cell).collect()
    }

    /// One line of a row whose cells may have several. Blanks at its end are not written.
    fn row(&self, cells: &[Vec<Line<'static>>], part: usize) -> OutputLine {
        let faint = self.theme.faint();
        let mut spans = Vec::new();
        for (column, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            if column > 0 {
                spans.push(Span::styled(" │ ", faint));
            }
            let text = cell.get(part).map(|line| line.spans.clone());
            let text = text.unwrap_or_default();
            let spare = width.saturating_sub(width_of(&text));
            let before = match self.table.alignments.get(column) {
                Some(Alignment::Right) => spare,
                Some(Alignment::Center) => spare / 2,
                _ => 0,
            };
            spans.push(Span::raw(" ".repeat(before)));
            spans.extend(text);
            spans.push(Span::raw(" ".repeat(spare - before)));
        }
        while spans
            .last()
            .is_some_and(|span| span.content.trim_end().is_empty())
        {
            spans.pop();
        }
        if let Some(last) = spans.last_mut() {
            last.content = last.content.trim_end().to_owned().into();
        }
        spans.retain(|span| !span.content.is_empty());
        OutputLine::whole(Line::from(spans))
    }

    fn rule(&self) -> OutputLine {
        let parts: Vec<String> = self.widths.iter().map(|w| "─".repeat(*w)).collect();
        OutputLine::whole(Span::styled(parts.join("─┼─"), self.theme.faint()))
    }
}

/// `header: value` lines, with a blank line between rows.
fn records(table: TableSource, theme: Theme) -> Vec<OutputLine> {
    let mut rows = table.rows.into_iter();
    let header = rows.next().unwrap_or_default();
    let mut lines = Vec::new();
    for (at, row) in rows.enumerate() {
        if at > 0 {
            lines.push(OutputLine::whole(""));
        }
        for (name, value) in header.iter().zip(row) {
            let mut spans = name.clone();
            spans.push(Span::styled(": ", theme.strong()));
            spans.extend(value);
            lines.push(OutputLine::hanging(Line::from(spans), 2));
        }
    }
    if lines.is_empty() {
        let names = header.into_iter().map(Line::from);
        lines.extend(names.map(OutputLine::words));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::inline;

    fn drawn(source: &str, columns: usize) -> Vec<String> {
        let table = inline::table(source, Theme::default()).unwrap();
        let lines = draw(table, Theme::default(), columns);
        lines.iter().map(|line| line.line.to_string()).collect()
    }

    const TABLE: &str = "| name | what it does |\n|---|--:|\n| a | reads the whole file |\n";

    #[test]
    fn a_table_that_fits_is_as_wide_as_its_content() {
        assert_eq!(
            drawn(TABLE, 40),
            [
                "name │         what it does",
                "─────┼─────────────────────",
                "a    │ reads the whole file",
            ]
        );
    }

    #[test]
    fn wide_cells_are_wrapped() {
        assert_eq!(
            drawn(TABLE, 20),
            [
                "name │  what it does",
                "─────┼──────────────",
                "a    │     reads the",
                "     │    whole file",
            ]
        );
    }

    #[test]
    fn a_table_without_room_becomes_records() {
        assert_eq!(
            drawn(TABLE, 14),
            ["name: a", "what it does: reads the whole file"]
        );
    }
}
