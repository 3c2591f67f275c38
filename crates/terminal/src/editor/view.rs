//! The part of the text that is on the screen.

use ratatui_core::{
    layout::Position,
    text::{Line, Span},
};

use super::{
    Editor,
    layout::{Layout, Row, cells},
};
use crate::{theme::Theme, width};

/// What is to be drawn, at most as many rows as were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorView {
    /// At least one.
    pub rows: Vec<Line<'static>>,
    /// Relative to the first of the rows; always within the columns.
    pub cursor: Position,
    /// Rows of the text that are not shown.
    pub above: usize,
    pub below: usize,
}

impl Editor {
    /// Scrolled no further than needed for the cursor to be seen. Text of both directions is in the
    /// order in which it was typed: terminals that turn right-to-left text do it themselves.
    pub fn render(&mut self, columns: u16, max_rows: u16, theme: Theme) -> EditorView {
        let columns = columns.max(1);
        let max_rows = usize::from(max_rows.max(1));
        if self.columns != columns {
            self.layout = None;
            self.columns = columns;
        }
        let (text, at) = (self.buffer.text(), self.buffer.cursor());
        let layout = match self.layout.take() {
            Some(layout) => layout,
            None => Layout::of(text, &self.chips, columns),
        };
        let row = layout.row_of(at);
        let last_top = layout.rows.len().saturating_sub(max_rows);
        let lowest = row.saturating_sub(max_rows - 1);
        self.top = self.top.clamp(lowest, row).min(last_top);
        let end = layout.rows.len().min(self.top + max_rows);
        let shown = layout.rows[self.top..end].iter();
        let rows = shown
            .map(|row| self.line(*row, usize::from(columns), theme))
            .collect();
        let column = layout.column_of(text, &self.chips, at);
        let column = column.min(usize::from(columns) - 1);
        let view = EditorView {
            rows,
            cursor: Position {
                x: u16::try_from(column).unwrap_or(u16::MAX),
                y: u16::try_from(row - self.top).unwrap_or(u16::MAX),
            },
            above: self.top,
            below: layout.rows.len() - end,
        };
        debug_assert_eq!(layout.columns, columns);
        self.layout = Some(layout);
        view
    }

    /// Chips are separate spans, in the accent colour.
    fn line(&self, row: Row, columns: usize, theme: Theme) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut plain = String::new();
        for (begin, cell) in cells(self.buffer.text(), row, &self.chips) {
            // Blanks may hang over the edge, and a chip may be wider than the terminal.
            let shown = width::prefix(&cell.shown, columns.saturating_sub(begin));
            if cell.is_chip() {
                if !plain.is_empty() {
                    spans.push(Span::raw(std::mem::take(&mut plain)));
                }
                spans.push(Span::styled(shown.to_owned(), theme.accent()));
            } else {
                plain.push_str(shown);
            }
        }
        if !plain.is_empty() {
            spans.push(Span::raw(plain));
        }
        Line::from(spans)
    }
}
