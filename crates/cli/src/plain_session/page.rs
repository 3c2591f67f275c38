//! Where on the terminal things stand: what is written is followed, so that a box further up can
//! be written anew without touching anything else.

use std::io::IsTerminal;

use unicode_width::UnicodeWidthChar;

use crate::printer::{self, To};

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// A row of the page, counted from the first that was written; it keeps its number when the
/// terminal scrolls.
pub(super) type Row = usize;

/// The page that scrolls by.
pub(super) struct Page {
    /// `None` where nothing can be written anew: a pipe, a terminal that cannot move its cursor.
    size: Option<Size>,
    row: Row,
    column: usize,
    /// Rows before this one cannot be reached any more.
    reachable_from: Row,
}

impl Page {
    /// The page of standard output.
    pub(super) fn new() -> Self {
        Self::of(terminal_size())
    }

    fn of(size: Option<Size>) -> Self {
        Self {
            size,
            row: 0,
            column: 0,
            reachable_from: 0,
        }
    }

    /// Whether something that was written can be written anew.
    pub(super) fn can_move(&self) -> bool {
        self.size.is_some()
    }

    /// How wide a line can be.
    pub(super) fn columns(&self) -> Option<usize> {
        self.size.map(|size| size.columns)
    }

    /// The row the cursor is in.
    pub(super) fn row(&self) -> Row {
        self.row
    }

    /// Whether the cursor is in the middle of a line.
    pub(super) fn is_mid_line(&self) -> bool {
        self.column > 0
    }

    /// Everything above the cursor stays as it is from now on: someone else has written, or the
    /// terminal has changed its size.
    pub(super) fn give_up_above(&mut self) {
        self.row += 1;
        self.reachable_from = self.row;
    }

    /// The cursor is at the beginning of a line, whoever brought it there.
    pub(super) fn begin_line(&mut self) {
        self.column = 0;
    }

    /// Looks whether the terminal is still as large as it was.
    pub(super) fn look(&mut self) {
        if self.size.is_some() {
            let size = terminal_size();
            if size != self.size {
                self.size = size;
                self.give_up_above();
            }
        }
    }

    /// Writes on at the cursor. A terminal that went away is noticed by the input side.
    pub(super) fn write(&mut self, text: &str) {
        let _ = printer::out(format_args!("{text}"));
        self.follow(&printer::visible(text));
    }

    /// Writes lines anew that begin in this row, in one go. False if they cannot be reached; then
    /// nothing is written.
    pub(super) fn rewrite(&mut self, first: Row, lines: &[String]) -> bool {
        let Some(moves) = self.moves(first, lines) else {
            return false;
        };
        let _ = printer::send(To::Stdout, &moves);
        true
    }

    /// The cursor goes up, writes each line over the old one, and comes back.
    fn moves(&self, first: Row, lines: &[String]) -> Option<String> {
        let size = self.size?;
        let up = self.row.checked_sub(first)?;
        // In the last column a terminal has not decided yet which row it is in.
        let is_between_rows = self.column >= size.columns;
        if first < self.reachable_from || up == 0 || up >= size.rows || is_between_rows {
            return None;
        }
        let mut moves = format!("\x1b7\x1b[{up}A\r");
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                moves.push_str("\x1b[1B\r");
            }
            moves.push_str(&printer::rendered(To::Stdout, line));
            moves.push_str("\x1b[K");
        }
        moves.push_str("\x1b8");
        Some(moves)
    }

    /// Without a terminal nothing but the end of the last line is tracked.
    fn follow(&mut self, text: &str) {
        let Some(size) = self.size else {
            // Only whether the last line is finished matters.
            if let Some(last) = text.chars().last() {
                self.column = usize::from(last != '\n');
            }
            return;
        };
        for c in text.chars() {
            self.step(c, size.columns);
        }
    }

    fn step(&mut self, c: char, columns: usize) {
        match c {
            '\n' => {
                self.row += 1;
                self.column = 0;
            }
            '\r' => self.column = 0,
            '\t' => self.column = ((self.column / 8 + 1) * 8).min(columns.saturating_sub(1)),
            c => {
                let width = c.width().unwrap_or(0);
                if self.column + width > columns {
                    self.row += 1;
                    self.column = 0;
                }
                self.column += width;
            }
        }
    }
}

fn terminal_size() -> Option<Size> {
    if !std::io::stdout().is_terminal()
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
    {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some(Size { columns, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(columns: usize, rows: usize) -> Page {
        Page::of(Some(Size { columns, rows }))
    }

    fn after(text: &str) -> (Row, usize) {
        let mut page = page(10, 5);
        page.follow(text);
        (page.row, page.column)
    }

    #[test]
    fn the_cursor_is_followed_over_wrapped_wide_and_coloured_text() {
        assert_eq!(after("abc"), (0, 3));
        assert_eq!(after("abc\nd"), (1, 1));
        assert_eq!(after("0123456789"), (0, 10));
        assert_eq!(after("0123456789a"), (1, 1));
        assert_eq!(after("012345678日"), (1, 2));
        let styled = format!("{}\tc", crate::style::strong("ab"));
        assert_eq!(after(&printer::plain(&styled)), (0, 9));
        assert_eq!(after("e\u{301}"), (0, 1));
    }

    #[test]
    fn only_what_is_still_on_the_screen_is_written_anew() {
        let lines = ["new".to_owned()];
        let mut page = page(10, 5);
        page.follow("a box\nbelow it\nand");
        assert_eq!(page.moves(2, &lines), None, "the cursor's own row");
        let up = page.moves(0, &lines).unwrap();
        assert!(up.starts_with("\u{1b}7\u{1b}[2A\r"), "{up:?}");
        assert!(up.ends_with("\u{1b}[K\u{1b}8"), "{up:?}");
        page.follow("\n\n\n");
        assert_eq!(page.moves(0, &lines), None, "scrolled away");
        assert!(page.moves(1, &lines).is_some());
        page.give_up_above();
        assert_eq!(page.moves(1, &lines), None, "somebody typed a line");
        page.follow("\n0123456789");
        assert_eq!(page.moves(6, &lines), None, "between two rows");
    }

    #[test]
    fn in_a_pipe_nothing_is_written_anew() {
        let mut page = Page::of(None);
        page.follow("abc");
        assert!(page.is_mid_line());
        page.follow("\n\n");
        assert!(!page.is_mid_line());
        assert_eq!(page.moves(0, &["x".to_owned()]), None);
    }
}
