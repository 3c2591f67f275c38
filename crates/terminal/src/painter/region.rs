//! The rows of the live region: what changes between two frames, and where the terminal puts them
//! when its width changes.

use ratatui_core::{
    buffer::{Buffer, Cell},
    layout::{Rect, Size},
    style::{Color, Modifier},
    text::Line,
};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    Reflow,
    pen::{Autowrap, Pen},
    sgr::Look,
};

/// The second half of a wide character.
const CONTINUATION: &str = "";

/// So many unchanged cells between two changed ones cost less than moving over them.
const GAP: usize = 4;

/// What the live region shows. Each row ends with its last cell that is not blank; the row of the
/// cursor not before the cursor. There blanks are written, because terminals disagree about where
/// a cursor goes on a resize that has nothing before it.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Region {
    pub(super) rows: Vec<Row>,
}

/// A wide character is one cell and empty ones after it.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Row {
    cells: Vec<Cell>,
}

impl Region {
    /// Of a frame; what is outside of the screen is left out, at the top and at the right. The
    /// cursor is a row and column of what remains.
    pub(super) fn of(frame: &Buffer, size: Size, cursor: (u16, u16)) -> Self {
        let area = frame.area;
        let hidden = area.height.saturating_sub(size.height);
        let columns = area.width.min(size.width);
        let rows = (hidden..area.height).map(|y| {
            let cells = (0..columns).filter_map(|x| frame.cell((area.x + x, area.y + y)));
            let least = match y - hidden == cursor.0 {
                true => usize::from(cursor.1),
                false => 0,
            };
            Row::of(cells, least)
        });
        Self {
            rows: rows.collect(),
        }
    }

    pub(super) fn height(&self) -> u16 {
        u16::try_from(self.rows.len()).unwrap_or(u16::MAX)
    }

    pub(super) fn truncate(&mut self, height: u16) {
        self.rows.truncate(usize::from(height));
    }

    /// Makes the terminal show this where it shows `old`. All rows are on the screen.
    pub(super) fn paint(&self, old: &Self, pen: &mut Pen) {
        let blank = Row::default();
        for (y, row) in (0..).zip(&self.rows) {
            let old = old.rows.get(usize::from(y)).unwrap_or(&blank);
            if row != old {
                row.paint(old, y, pen);
            }
        }
    }

    /// How many rows above that of the cursor the region begins, after a terminal was resized with
    /// the cursor at this row and column of the region.
    ///
    /// Where that cannot be known it is the smaller number: a row of ours that stays is better than
    /// a committed line that is erased.
    pub(super) fn rows_above(
        &self,
        (row, column): (u16, u16),
        (old, new): (Size, Size),
        reflow: Reflow,
    ) -> usize {
        let row = usize::from(row);
        let columns = usize::from(new.width.max(1));
        let added = |row: &Row| row.wrapped(columns);
        match (reflow, self.rows.get(row)) {
            (Reflow::Yes, Some(cursor)) => {
                let above: usize = self.rows.iter().take(row).map(added).sum();
                row + above + cursor.wrapped_before(usize::from(column), columns)
            }
            (Reflow::XtermJs, Some(_)) => {
                // It drops rows below the cursor first. Then it goes through them from the last to
                // the first, takes the cursor down by every row that it adds, and leaves out the
                // row that has the cursor by then.
                let dropped = usize::from(old.height.saturating_sub(new.height));
                let left = self.rows.len().saturating_sub(dropped).max(row + 1);
                let rows = self.rows.iter().take(left).enumerate().rev();
                rows.fold(row, |cursor, (index, one)| match cursor == index {
                    true => cursor,
                    false => cursor + added(one),
                })
            }
            (Reflow::No, _) | (_, None) => row,
        }
    }
}

impl Row {
    fn of<'a>(source: impl Iterator<Item = &'a Cell>, least: usize) -> Self {
        let mut cells: Vec<Cell> = Vec::new();
        let mut source = source.peekable();
        while let Some(cell) = source.next() {
            let mut cell = normal(cell);
            let width = cell.symbol().width();
            let start = cells.len();
            cells.push(cell.clone());
            cell.set_symbol(CONTINUATION);
            while cells.len() < start + width && source.next().is_some() {
                cells.push(cell.clone());
            }
            if cells.len() < start + width {
                // A wide character that the edge cuts.
                for cell in &mut cells[start..] {
                    cell.set_symbol(" ");
                }
            }
        }
        let blank = |cell: &Cell| cell.symbol() == " " && !Look::of_cell(cell).shows_on_blank();
        while cells.len() > least && cells.last().is_some_and(blank) {
            cells.pop();
        }
        Self { cells }
    }

    /// As the live region would show it, to compare the two.
    pub(super) fn of_line(line: &Line<'_>, columns: usize) -> Self {
        let mut buffer = Buffer::empty(Rect::new(0, 0, as_column(columns), 1));
        buffer.set_line(0, 0, line, as_column(columns));
        Self::of(buffer.content().iter(), 0)
    }

    /// Only cells that differ are written, in runs. From the first cell on that some terminals show
    /// as wide, the rest of the row is written in one piece; with a cell of disputed width, all of
    /// it.
    pub(super) fn paint(&self, old: &Self, y: u16, pen: &mut Pen) {
        if self == old {
            return;
        }
        // A terminal that is narrower by now must not wrap it.
        pen.autowrap(Autowrap::Off);
        self.paint_changes(old, y, pen);
        pen.look(Look::default());
    }

    fn width_is_disputed(&self) -> bool {
        self.cells.iter().any(is_disputed)
    }

    /// The first cell after which a terminal may show the cells in other columns.
    fn first_ambiguous(&self) -> usize {
        let first = self.cells.iter().position(is_ambiguous);
        first.unwrap_or(usize::MAX)
    }

    /// About how many bytes it takes to paint it where `old` is.
    pub(super) fn cost_over(&self, old: &Self) -> usize {
        const MOVE: usize = 6;
        if self == old {
            return 0;
        }
        if self.width_is_disputed() || old.width_is_disputed() {
            return self.cells.len() + 2 * MOVE;
        }
        let changed = (0..self.cells.len()).filter(|x| !self.is_same_at(*x, old));
        let erased = match old.cells.len() > self.cells.len() {
            true => MOVE,
            false => 0,
        };
        changed.count() + erased + MOVE
    }

    fn paint_changes(&self, old: &Self, y: u16, pen: &mut Pen) {
        // What is where is known only of what was written from here on in one piece.
        let mut loose = match self.width_is_disputed() || old.width_is_disputed() {
            true => 0,
            false => self.first_ambiguous().min(old.first_ambiguous()),
        };
        while self.is_continuation(loose) {
            loose -= 1;
        }
        let is_changed = |x: &usize| !self.is_same_at(*x, old);
        let longer = self.cells.len().max(old.cells.len());
        if loose < longer && (loose..longer).any(|x| is_changed(&x)) {
            let from = loose.min(self.cells.len());
            self.paint_cells(old, from, y, pen);
            pen.go(y, as_column(from));
            if old.cells.len() > from {
                pen.erase_rest_of_row();
            }
            self.write(from, self.cells.len(), pen);
            return;
        }
        self.paint_cells(old, self.cells.len(), y, pen);
        if old.cells.len() > self.cells.len() {
            pen.go(y, as_column(self.cells.len()));
            pen.erase_rest_of_row();
        }
    }

    /// Runs of changed cells before a column.
    fn paint_cells(&self, old: &Self, end: usize, y: u16, pen: &mut Pen) {
        let mut x = 0;
        while x < end {
            if self.is_same_at(x, old) {
                x += 1;
                continue;
            }
            let run = self.end_of_run(x, old).min(end);
            pen.go(y, as_column(x));
            self.write(x, run, pen);
            x = run;
        }
    }

    fn is_same_at(&self, x: usize, old: &Self) -> bool {
        let old = old.cells.get(x);
        old.is_some_and(|old| self.cells.get(x) == Some(old))
    }

    /// After the last changed cell before the next gap.
    fn end_of_run(&self, from: usize, old: &Self) -> usize {
        let mut end = from + 1;
        for x in from..self.cells.len() {
            if !self.is_same_at(x, old) {
                end = x + 1;
            } else if x >= end + GAP {
                break;
            }
        }
        // Both halves of a wide character are written or none.
        while self.is_continuation(end) {
            end += 1;
        }
        end
    }

    fn is_continuation(&self, x: usize) -> bool {
        let cell = self.cells.get(x);
        cell.is_some_and(|cell| cell.symbol() == CONTINUATION)
    }

    fn write(&self, from: usize, to: usize, pen: &mut Pen) {
        let mut x = from;
        while x < to {
            let cell = &self.cells[x];
            let width = self.width_at(x);
            pen.look_for(cell.symbol(), Look::of_cell(cell));
            pen.cell(cell.symbol(), as_column(width));
            x += width;
            if is_disputed(cell) && x < self.cells.len() {
                pen.go_to_column_for_sure(as_column(x));
            }
        }
        let is_loose = |cell: &Cell| is_disputed(cell) || is_ambiguous(cell);
        if self.cells[from..to].iter().any(is_loose) {
            pen.forget_column();
        }
    }

    /// In cells, the empty ones included.
    fn width_at(&self, x: usize) -> usize {
        let rest = self.cells[x + 1..].iter();
        1 + rest
            .take_while(|cell| cell.symbol() == CONTINUATION)
            .count()
    }

    /// How many rows a narrower terminal has before its last one.
    fn wrapped(&self, columns: usize) -> usize {
        let (mut rows, mut used, mut x) = (0, 0, 0);
        while x < self.cells.len() {
            let width = self.width_at(x);
            if used + width > columns {
                rows += 1;
                used = 0;
            }
            used += width;
            x += width;
        }
        rows
    }

    /// How many rows it has before that of a cursor.
    ///
    /// A wide character that no longer fits at the edge goes to the next row. Some terminals let
    /// the cursor follow the characters, others only count columns (Alacritty): they have fewer
    /// rows before it. Too few rows up leave a piece of the region, too many erase a line.
    fn wrapped_before(&self, column: usize, columns: usize) -> usize {
        match column < self.cells.len() {
            true => column / columns,
            // Beyond the text: a cursor just after a full row stays in it.
            false => column.saturating_sub(1) / columns,
        }
    }
}

/// A cell with only what we write of it.
fn normal(cell: &Cell) -> Cell {
    let mut normal = cell.clone();
    let symbol = cell.symbol();
    if symbol.chars().any(codespar_policy::is_unprintable) || symbol.contains(['\n', '\t']) {
        normal.set_symbol("?");
    } else if symbol.width() == 0 {
        normal.set_symbol(" ");
    }
    if normal.symbol() == " " && !Look::of_cell(cell).shows_on_blank() {
        normal.fg = Color::Reset;
        normal.modifier = Modifier::empty();
    }
    normal.set_diff_option(Default::default());
    normal
}

/// Whether terminals give it different widths: clusters of code points, and emoji, which are wide
/// since different versions of Unicode.
fn is_disputed(cell: &Cell) -> bool {
    let mut chars = cell.symbol().chars();
    chars.next().is_some_and(|first| first >= '\u{1f000}') || chars.next().is_some()
}

/// Whether some terminals show it as wide. What boxes and the status line are made of is left out:
/// they are in disorder there in any case, and would be written as a whole for each change.
fn is_ambiguous(cell: &Cell) -> bool {
    let first = cell.symbol().chars().next();
    first.is_some_and(|c| !c.is_ascii() && !is_ornament(c) && c.width() != c.width_cjk())
}

fn is_ornament(c: char) -> bool {
    c == '·' || ('\u{2500}'..='\u{259f}').contains(&c)
}

/// Whether a row that was painted piece by piece is the same as one that was written at once.
pub(super) fn is_the_same_painted(row: &Line<'_>) -> bool {
    let is_plain =
        |c: char| c < '\u{1f000}' && !is_ornament(c) && c.width().is_some_and(|width| width > 0);
    row.spans.iter().all(|span| {
        let mut graphemes = span.content.graphemes(true);
        span.content.is_ascii()
            || graphemes.all(|one| one.chars().nth(1).is_none() && one.chars().all(is_plain))
    })
}

fn as_column(x: usize) -> u16 {
    u16::try_from(x).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        let frame = Buffer::with_lines([text]);
        let mut region = Region::of(&frame, Size::new(200, 1), (0, 0));
        region.rows.remove(0)
    }

    fn painted(old: &str, new: &str) -> String {
        let mut pen = Pen::at(20, 0, 0, Autowrap::Off);
        row(new).paint(&row(old), 0, &mut pen);
        String::from_utf8(pen.bytes).unwrap().replace('\u{1b}', "^")
    }

    #[test]
    fn only_changed_runs_are_written() {
        assert_eq!(painted("one two three", "one two three"), "");
        assert_eq!(painted("one two three", "one 2wo three"), "^[4C2");
        assert_eq!(painted("", "one   "), "one");
        assert_eq!(painted("one two", "one"), "^[3C^[K");
        assert_eq!(painted("a         b", "x         y"), "x^[9Cy");
        assert_eq!(painted("a  b", "x  y"), "x  y");
    }

    #[test]
    fn a_wide_character_is_replaced_as_a_whole() {
        assert_eq!(painted("a漢b", "a字b"), "^[C字");
        assert_eq!(painted("a漢b", "axyb"), "^[Cxy");
        assert_eq!(painted("a漢", "ax"), "^[Cx^[K");
        assert_eq!(painted("axyb", "a漢b"), "^[C漢");
    }

    #[test]
    fn a_row_with_a_cluster_is_written_from_its_beginning() {
        let woman = "👩\u{200d}💻";
        let new = format!("a{woman}b");
        assert_eq!(painted("axxc", &new), format!("^[Ka{woman}^[4Gb"));
    }

    #[test]
    fn after_a_cluster_the_column_is_not_known() {
        let (first, second) = (row("a👩\u{200d}💻"), row("漢b"));
        let mut pen = Pen::at(20, 0, 0, Autowrap::Off);
        first.paint(&row(""), 0, &mut pen);
        pen.bytes.clear();
        second.paint(&row("漢"), 1, &mut pen);
        assert_eq!(pen.bytes, b"\r\n\x1b[2Cb");
    }

    #[test]
    fn after_an_ambiguous_character_the_rest_is_written_in_one_piece() {
        assert_eq!(painted("a b’c", "a b’c d"), "^[3C^[K’c d");
        assert_eq!(painted("a b’c", "x b’c"), "x");
        assert_eq!(painted("a b c", "a b’c"), "^[3C^[K’c");
        assert_eq!(painted("a b", "a b’c"), "^[3C’c");
        assert_eq!(painted("a b’c", "a b"), "^[3C^[K");
        assert_eq!(painted("a │ b", "a │ c"), "^[4Cc");
        assert_eq!(painted(" …", "漢"), "^[K漢");
        assert_eq!(painted("dbcd…", "bcd"), "bcd^[K");
    }

    #[test]
    fn a_narrower_terminal_wraps_rows_and_the_cursor_goes_along() {
        let text = row("0123456789");
        assert_eq!(text.wrapped(10), 0);
        assert_eq!(text.wrapped(5), 1);
        assert_eq!(text.wrapped(4), 2);
        assert_eq!(text.wrapped_before(5, 5), 1);
        assert_eq!(text.wrapped_before(4, 5), 0);
        assert_eq!(text.wrapped_before(10, 5), 1);
        assert_eq!(text.wrapped_before(11, 5), 2);
        assert_eq!(row("漢字漢字").wrapped(3), 3);
        assert_eq!(row("漢字漢字").wrapped_before(7, 3), 2);
        assert_eq!(row("").wrapped(3), 0);
    }
}
