//! Which part of the text is on which row of a terminal of some width.
//!
//! Rows break between words. The last column is left to the cursor. Blanks at the end of a row do
//! not begin another one: they hang over the edge, and the cursor among them is in the last column.
//!
//! Made for the whole text, kept until the text or the width changes, and used for drawing as well
//! as for motions up and down, so that the two agree. Most lines are short and plain, and take a
//! fast path.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use super::chips::{Chips, is_mark};
use crate::width;

const TAB: usize = 4;

/// A part of the text on one row, without the newline that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Rows of a whole text, in order; at least one.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) columns: u16,
    pub(super) rows: Vec<Row>,
}

/// A grapheme as it is shown.
pub(super) struct Cell<'a> {
    /// Where it is in the text.
    pub(super) at: usize,
    pub(super) grapheme: &'a str,
    pub(super) shown: Cow<'a, str>,
    pub(super) width: usize,
}

impl Cell<'_> {
    fn is_blank(&self) -> bool {
        matches!(self.grapheme, " " | "\t")
    }

    pub(super) fn is_chip(&self) -> bool {
        self.grapheme.contains(is_mark)
    }
}

/// In ASCII every byte is one, which is much faster to know; there is no `\r` in the text.
fn graphemes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let ascii = text.is_ascii();
    let bytes = ascii.then(|| (0..text.len()).map(|at| (at, &text[at..=at])));
    let others = (!ascii).then(|| text.grapheme_indices(true));
    let bytes = bytes.into_iter().flatten();
    bytes.chain(others.into_iter().flatten())
}

/// Nothing of the text reaches the terminal but through here: control characters are escaped.
fn cell<'a>(at: usize, grapheme: &'a str, column: usize, chips: &Chips) -> Cell<'a> {
    let (shown, width) =
        if grapheme.len() == 1 && (' '..='~').contains(&char::from(grapheme.as_bytes()[0])) {
            (Cow::Borrowed(grapheme), 1)
        } else if grapheme == "\t" {
            let width = TAB - column % TAB;
            (Cow::Owned(" ".repeat(width)), width)
        } else {
            let shown = match chips.labelled(grapheme) {
                Cow::Borrowed(grapheme) => codespar_policy::printable(grapheme),
                Cow::Owned(label) => Cow::Owned(codespar_policy::printable(&label).into_owned()),
            };
            let width = width::of(&shown);
            (shown, width)
        };
    Cell {
        at,
        grapheme,
        shown,
        width,
    }
}

/// The cells of a row, each with the column it begins at.
pub(super) fn cells<'a>(
    text: &'a str,
    row: Row,
    chips: &'a Chips,
) -> impl Iterator<Item = (usize, Cell<'a>)> {
    let mut column = 0;
    graphemes(&text[row.start..row.end]).map(move |(at, grapheme)| {
        let cell = cell(row.start + at, grapheme, column, chips);
        let begin = column;
        column += cell.width;
        (begin, cell)
    })
}

impl Layout {
    pub(super) fn of(text: &str, chips: &Chips, columns: u16) -> Self {
        let usable = usize::from(columns.saturating_sub(1).max(1));
        let mut rows = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            let row = Row {
                start,
                end: start + line.len(),
            };
            let is_simple =
                line.len() <= usable && line.bytes().all(|b| (b' '..=b'~').contains(&b));
            match is_simple {
                true => rows.push(row),
                false => break_line(text, row, chips, usable, &mut rows),
            }
            start = row.end + 1;
        }
        Self { columns, rows }
    }

    /// An offset where one row ends and the next begins belongs to the next.
    pub(super) fn row_of(&self, at: usize) -> usize {
        let after = self.rows.partition_point(|row| row.start <= at);
        after.saturating_sub(1)
    }

    pub(super) fn column_of(&self, text: &str, chips: &Chips, at: usize) -> usize {
        let row = Row {
            start: self.rows[self.row_of(at)].start,
            end: at,
        };
        cells(text, row, chips).map(|(_, cell)| cell.width).sum()
    }

    /// The offset in a row that is shown at a column, or else the last one of the row. Not the
    /// position after the last character of a row that goes on: that is the beginning of the next
    /// one.
    pub(super) fn offset_at(&self, text: &str, chips: &Chips, row: usize, column: usize) -> usize {
        let place = self.rows[row];
        let goes_on = self
            .rows
            .get(row + 1)
            .is_some_and(|next| next.start == place.end);
        let mut last = place.start;
        for (begin, cell) in cells(text, place, chips) {
            last = cell.at;
            if begin + cell.width > column {
                return last;
            }
        }
        match goes_on {
            true => last,
            false => place.end,
        }
    }
}

/// A word that is wider than a row is broken within. A cluster that is wider than the terminal gets
/// a row of its own and is cut when it is drawn.
fn break_line(text: &str, line: Row, chips: &Chips, usable: usize, rows: &mut Vec<Row>) {
    let (mut start, mut used) = (line.start, 0);
    // After the last blank of the row, and the width since.
    let (mut last_break, mut since_break) = (None, 0);
    for (at, grapheme) in graphemes(&text[line.start..line.end]) {
        let cell = cell(line.start + at, grapheme, used, chips);
        while used + cell.width > usable && cell.at > start && !cell.is_blank() {
            let end = last_break.take().unwrap_or(cell.at);
            rows.push(Row { start, end });
            used = if end == cell.at { 0 } else { since_break };
            start = end;
            since_break = used;
        }
        used += cell.width;
        since_break += cell.width;
        if cell.is_blank() {
            last_break = Some(cell.at + grapheme.len());
            since_break = 0;
        }
    }
    rows.push(Row {
        start,
        end: line.end,
    });
}
