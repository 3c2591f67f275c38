//! What a terminal shows at one moment: cells with styles, and the cursor.
//!
//! Times and temporary paths are replaced by fixed ones, so that two runs of a scene give the same
//! picture.

use anyhow::{Result, bail};
use vt100::{Color, Screen};

/// How one cell is written. Colours are numbers of the palette of 16; `None` is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CellStyle {
    pub(super) foreground: Option<u8>,
    pub(super) background: Option<u8>,
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) italic: bool,
    pub(super) underline: bool,
    pub(super) inverse: bool,
}

/// A blank cell has a space as its text; the second half of a wide character has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DrawnCell {
    pub(super) text: String,
    pub(super) style: CellStyle,
}

impl DrawnCell {
    fn is_blank(&self) -> bool {
        let style = self.style;
        let is_painted = style.background.is_some() || style.inverse || style.underline;
        self.text.trim().is_empty() && !is_painted
    }

    fn digit(&self) -> bool {
        self.text.len() == 1 && self.text.as_bytes()[0].is_ascii_digit()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) columns: u16,
    pub(super) rows: Vec<Vec<DrawnCell>>,
    /// Row and column, if the cursor is visible.
    pub(super) cursor: Option<(u16, u16)>,
}

impl Picture {
    /// The screen without the blank rows at its end.
    pub(super) fn of(screen: &Screen) -> Result<Self> {
        let (height, columns) = screen.size();
        let (height, columns) = (height.get(), columns.get());
        let mut rows = Vec::new();
        for row in 0..height {
            let cells = (0..columns).map(|column| cell(screen, row, column));
            rows.push(cells.collect::<Result<Vec<_>>>()?);
        }
        let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
        let is_needed = |number: usize, row: &[DrawnCell]| {
            let has_cursor = cursor.is_some_and(|(row, _)| usize::from(row) == number);
            has_cursor || !row.iter().all(DrawnCell::is_blank)
        };
        while let Some(last) = rows.last()
            && !is_needed(rows.len() - 1, last)
        {
            rows.pop();
        }
        Ok(Self {
            columns,
            rows,
            cursor,
        })
    }

    pub(super) fn text(&self) -> String {
        let row = |cells: &Vec<DrawnCell>| {
            let text: String = cells.iter().map(|cell| cell.text.as_str()).collect();
            text.trim_end().to_owned()
        };
        self.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }

    /// Writes `~` for the home directory; what follows moves to the left. A path that is spread
    /// over two rows is an error, as the rows would be others with another temporary directory.
    pub(super) fn with_short_home(mut self, home: &str) -> Result<Self> {
        let length = home.chars().count();
        let is_home = |cells: &[DrawnCell]| {
            let text: String = cells.iter().map(|cell| cell.text.as_str()).collect();
            text == home
        };
        for row in &mut self.rows {
            while let Some(at) = row.windows(length).position(is_home) {
                "~".clone_into(&mut row[at].text);
                row.drain(at + 1..at + length);
                let blank = DrawnCell {
                    text: " ".to_owned(),
                    style: CellStyle::default(),
                };
                row.resize(self.columns.into(), blank);
            }
        }
        let unwrapped = self.text().replace('\n', "");
        if unwrapped.contains(home) {
            bail!("a path below {home} does not fit into a row: use a shorter TMPDIR");
        }
        Ok(self)
    }

    /// Replaces the digits of all durations. One of ten seconds or more has another length than
    /// others, and moves what comes after it: it is an error.
    pub(super) fn with_fixed_durations(mut self) -> Result<Self> {
        for row in &mut self.rows {
            for end in 1..row.len() {
                if is_unit_of_seconds(row, end) {
                    fix_duration(&mut row[..end])?;
                }
            }
        }
        Ok(self)
    }
}

fn cell(screen: &Screen, row: u16, column: u16) -> Result<DrawnCell> {
    let Some(cell) = screen.cell(row, column) else {
        bail!("the screen has no cell {column} in row {row}");
    };
    let text = match cell.contents() {
        "" if cell.is_wide_continuation() => "",
        "" => " ",
        text => text,
    };
    Ok(DrawnCell {
        text: text.to_owned(),
        style: CellStyle {
            foreground: colour(cell.fgcolor())?,
            background: colour(cell.bgcolor())?,
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underline: cell.underline(),
            inverse: cell.inverse(),
        },
    })
}

fn colour(colour: Color) -> Result<Option<u8>> {
    match colour {
        Color::Default => Ok(None),
        Color::Idx(index @ 0..16) => Ok(Some(index)),
        other => bail!("{other:?} is not in the palette of 16 colours, the only one that is drawn"),
    }
}

/// Whether ` s` begins at this cell, as a word of its own after a digit.
fn is_unit_of_seconds(row: &[DrawnCell], at: usize) -> bool {
    let text = |index: usize| row.get(index).map_or(" ", |cell| cell.text.as_str());
    row[at - 1].digit() && text(at) == " " && text(at + 1) == "s" && text(at + 2) == " "
}

/// `before` ends with a number: `7` or `7.1`.
fn fix_duration(before: &mut [DrawnCell]) -> Result<()> {
    let is_part = |cell: &DrawnCell| cell.digit() || cell.text == ".";
    let length = before.iter().rev().take_while(|cell| is_part(cell)).count();
    let start = before.len() - length;
    let fixed: &[&str] = match length {
        1 => &["4"],
        3 => &["4", ".", "2"],
        _ => {
            let number: String = before[start..]
                .iter()
                .map(|cell| cell.text.as_str())
                .collect();
            bail!("the scene took {number} s, and only times below 10 s are drawn: run it again");
        }
    };
    for (cell, text) in before[start..].iter_mut().zip(fixed) {
        cell.text = (*text).to_owned();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(text: &str) -> Picture {
        let mut parser = vt100::Parser::new(5.try_into().unwrap(), 40.try_into().unwrap(), 0);
        parser.process(text.as_bytes());
        Picture::of(parser.screen()).unwrap()
    }

    #[test]
    fn times_are_the_same_in_every_picture() {
        let fixed = picture("1 turn · $0.04 · 0.1 s\r\n• Working 0 s · 7 st\r\n│ 3 s │")
            .with_fixed_durations()
            .unwrap();
        assert_eq!(
            fixed.text(),
            "1 turn · $0.04 · 4.2 s\n• Working 4 s · 7 st\n│ 4 s │"
        );
    }

    #[test]
    fn the_home_directory_is_a_tilde_and_the_row_keeps_its_length() {
        let short = picture("in /tmp/x1/home/project now")
            .with_short_home("/tmp/x1/home")
            .unwrap();
        assert_eq!(short.text(), "in ~/project now");
        assert_eq!(short.rows[0].len(), 40);
    }

    #[test]
    fn a_home_directory_spread_over_two_rows_is_an_error() {
        let long = format!("{}/tmp/x1/home/project", " ".repeat(35));
        let error = picture(&long).with_short_home("/tmp/x1/home").unwrap_err();
        assert!(
            error.to_string().contains("use a shorter TMPDIR"),
            "{error}"
        );
    }

    #[test]
    fn a_time_that_would_move_what_follows_is_an_error() {
        let error = picture("Working 12 s ·")
            .with_fixed_durations()
            .unwrap_err();
        assert!(error.to_string().contains("took 12 s"), "{error}");
    }

    #[test]
    fn blank_rows_at_the_end_are_left_out_unless_the_cursor_is_there() {
        assert_eq!(picture("one\r\n\r\n\r\n").rows.len(), 4);
        assert_eq!(picture("one\r\n\r\n\r\n\x1b[?25l").rows.len(), 1);
    }

    #[test]
    fn a_colour_outside_of_the_palette_is_an_error() {
        let mut parser = vt100::Parser::new(2.try_into().unwrap(), 10.try_into().unwrap(), 0);
        parser.process(b"\x1b[38;5;200mx");
        let error = Picture::of(parser.screen()).unwrap_err();
        assert!(error.to_string().starts_with("Idx(200)"), "{error}");
    }
}
