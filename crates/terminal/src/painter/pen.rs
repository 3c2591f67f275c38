//! Bytes for the terminal, and where its cursor is and what its style is after them.
//!
//! All movement between rows is relative to the first row of the live region.

use super::sgr::Look;

/// Whether the terminal goes on in the next row when a row is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Autowrap {
    On,
    Off,
}

pub(super) struct Pen {
    pub(super) bytes: Vec<u8>,
    columns: u16,
    row: u16,
    /// Not known after the last column was written: terminals differ.
    column: Option<u16>,
    look: Look,
    autowrap: Autowrap,
}

impl Pen {
    /// With the cursor in a row and column of the live region.
    pub(super) fn at(columns: u16, row: u16, column: u16, autowrap: Autowrap) -> Self {
        Self {
            bytes: Vec::new(),
            columns: columns.max(1),
            row,
            column: Some(column),
            look: Look::default(),
            autowrap,
        }
    }

    pub(super) fn sequence(&mut self, sequence: &str) {
        self.bytes.extend_from_slice(sequence.as_bytes());
    }

    /// `CSI count letter`; nothing for zero.
    pub(super) fn control(&mut self, count: usize, letter: char) {
        match count {
            0 => {}
            1 => self.sequence(&format!("\x1b[{letter}")),
            _ => self.sequence(&format!("\x1b[{count}{letter}")),
        }
    }

    pub(super) fn look(&mut self, look: Look) {
        look.write_change(self.look, &mut self.bytes);
        self.look = look;
    }

    /// The look for this text. Blanks are written in whatever look there is, if it cannot be seen
    /// on them: words in a style then need one change and not two for each.
    pub(super) fn look_for(&mut self, text: &str, look: Look) {
        let is_blank = text.bytes().all(|byte| byte == b' ');
        if !is_blank || look.shows_on_blank() || self.look.shows_on_blank() {
            self.look(look);
        }
    }

    pub(super) fn autowrap_now(&self) -> Autowrap {
        self.autowrap
    }

    pub(super) fn autowrap(&mut self, autowrap: Autowrap) {
        if self.autowrap != autowrap {
            self.sequence(match autowrap {
                Autowrap::On => "\x1b[?7h",
                Autowrap::Off => "\x1b[?7l",
            });
            self.autowrap = autowrap;
        }
    }

    /// Text for the terminal to show. Whatever it contains, nothing in it is obeyed.
    pub(super) fn text(&mut self, text: &str) {
        let is_clean = match text.is_ascii() {
            true => !text.bytes().any(|byte| byte.is_ascii_control()),
            false => !text.chars().any(char::is_control),
        };
        if !is_clean {
            let shown = text.replace(char::is_control, "?");
            self.bytes.extend_from_slice(shown.as_bytes());
        } else {
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    /// Text of a known width in the row of the cursor. At the last column the terminal's own
    /// position is in doubt, so ours is unknown then.
    pub(super) fn cell(&mut self, text: &str, width: u16) {
        self.text(text);
        let column = self.column.map(|column| column.saturating_add(width));
        self.column = column.filter(|column| *column < self.columns);
    }

    /// The beginning of the row.
    pub(super) fn home(&mut self) {
        if self.column != Some(0) {
            self.bytes.push(b'\r');
            self.column = Some(0);
        }
    }

    /// A row of the live region, by what is known of the column; one that is not known is left for
    /// the first one before the row changes.
    ///
    /// Down by line feeds. If the row is on the screen nothing scrolls. It may not be, on a terminal
    /// that is narrower by now and has wrapped what was written above: `CSI B` would end at the last
    /// row of the screen, and the way back up would lead to a committed line.
    pub(super) fn go(&mut self, row: u16, column: u16) {
        let down = usize::from(row.saturating_sub(self.row));
        if down > 0 || self.row != row && self.column.is_none() {
            self.home();
        }
        self.bytes.resize(self.bytes.len() + down, b'\n');
        self.control(usize::from(self.row.saturating_sub(row)), 'A');
        self.row = row;
        self.go_to_column(column);
    }

    fn go_to_column(&mut self, column: u16) {
        match self.column {
            Some(from) if from == column => {}
            Some(from) if from < column && column - from < 10 => {
                self.control(usize::from(column - from), 'C');
            }
            _ if column == 0 => self.home(),
            _ => self.go_to_column_for_sure(column),
        }
        self.column = Some(column);
    }

    /// A column whatever the terminal thought of the width of the text before it.
    pub(super) fn go_to_column_for_sure(&mut self, column: u16) {
        self.sequence(&format!("\x1b[{}G", column + 1));
        self.column = Some(column);
    }

    /// Terminals differ in where the cursor is after what was written.
    pub(super) fn forget_column(&mut self) {
        self.column = None;
    }

    /// The cursor is at the beginning of the live region, by what was written.
    pub(super) fn is_at_origin(&mut self) {
        self.row = 0;
        self.column = Some(0);
    }

    /// Rows were written from the beginning of this one to the beginning of the one after them.
    pub(super) fn wrote_rows(&mut self, rows: usize) {
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        self.row = self.row.saturating_add(rows);
        self.column = Some(0);
    }

    /// Line feeds: at the last row of the screen the terminal scrolls, which no movement does.
    pub(super) fn down_scrolling(&mut self, rows: usize) {
        self.bytes.resize(self.bytes.len() + rows, b'\n');
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        self.row = self.row.saturating_add(rows);
    }

    /// The row of the cursor, from the cursor on.
    pub(super) fn erase_rest_of_row(&mut self) {
        self.look(Look::default());
        self.sequence("\x1b[K");
    }

    /// The row of the cursor and all rows below it.
    ///
    /// From the first cell of the screen, tmux would move all of it to the scrollback; so that
    /// sequence is sent from the second column.
    pub(super) fn erase_from_here(&mut self) {
        self.home();
        self.erase_rest_of_row();
        self.sequence("\x1b[C\x1b[J\r");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn movement_takes_the_cursor_from_where_it_is() {
        let mut pen = Pen::at(10, 2, 3, Autowrap::On);
        pen.go(0, 5);
        assert_eq!(pen.bytes, b"\x1b[2A\x1b[2C");
        pen.bytes.clear();
        pen.cell("abcde", 5);
        pen.go(1, 9);
        assert_eq!(pen.bytes, b"abcde\r\n\x1b[9C");
        pen.bytes.clear();
        pen.go(1, 9);
        assert_eq!(pen.bytes, b"");
    }

    #[test]
    fn no_text_is_a_sequence() {
        let mut pen = Pen::at(10, 0, 0, Autowrap::On);
        pen.text("\x1b]0;x\x07\u{9b}2J");
        assert_eq!(pen.bytes, b"?]0;x??2J");
    }
}
