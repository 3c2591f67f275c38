//! From lines to the live region: what is shown when not everything fits.

use codespar_terminal::{Buffer, Line, Position, Rect};

/// A part of the live region, from top to bottom.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) lines: Vec<Line<'static>>,
    /// Relative to the part.
    pub(crate) cursor: Option<Position>,
    pub(crate) keep: Keep,
}

/// What is kept of a part that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Keep {
    /// Its last rows; the first to be cut.
    #[default]
    End,
    /// Its first rows.
    Beginning,
    /// All of it: what the user types, and questions.
    All,
}

/// The live region as it is painted.
pub(crate) struct Frame {
    pub(crate) buffer: Buffer,
    pub(crate) cursor: Option<Position>,
}

/// The parts below each other within so many rows. Parts are cut in the order of [`Keep`], those at
/// the top first. Even what is to be kept whole is cut in the end, from its top: on a very small
/// terminal the last rows matter most. The last part with a cursor has it.
pub(crate) fn compose(mut parts: Vec<Part>, columns: u16, rows: u16) -> Frame {
    let rows = usize::from(rows);
    let total = |parts: &[Part]| parts.iter().map(|part| part.lines.len()).sum::<usize>();
    for keep in [Keep::End, Keep::Beginning, Keep::All] {
        for part in 0..parts.len() {
            let over = total(&parts).saturating_sub(rows);
            if over == 0 {
                break;
            }
            let part = &mut parts[part];
            if part.keep != keep {
                continue;
            }
            let cut = over.min(part.lines.len());
            match keep {
                Keep::End | Keep::All => {
                    part.lines.drain(..cut);
                    part.cursor = part.cursor.and_then(|cursor| {
                        let y = usize::from(cursor.y).checked_sub(cut)?;
                        Some(Position::new(cursor.x, y as u16))
                    });
                }
                Keep::Beginning => {
                    part.lines.truncate(part.lines.len() - cut);
                }
            }
        }
    }
    let height = total(&parts) as u16;
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, height));
    let mut cursor = None;
    let mut y = 0;
    for part in parts {
        if let Some(at) = part.cursor {
            cursor = Some(Position::new(at.x.min(columns.saturating_sub(1)), y + at.y));
        }
        for line in part.lines {
            buffer.set_line(0, y, &line, columns);
            y += 1;
        }
    }
    Frame { buffer, cursor }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, count: usize, keep: Keep) -> Part {
        Part {
            lines: (0..count)
                .map(|n| Line::from(format!("{name}{n}")))
                .collect(),
            cursor: None,
            keep,
        }
    }

    fn rows(frame: &Frame) -> Vec<String> {
        let area = frame.buffer.area;
        let cell = |x: u16, y: u16| frame.buffer[(x, y)].symbol().to_owned();
        (0..area.height)
            .map(|y| (0..area.width).map(|x| cell(x, y)).collect::<String>())
            .map(|row| row.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn what_scrolls_is_cut_before_what_is_typed() {
        let parts = vec![
            part("answer", 5, Keep::End),
            part("list", 3, Keep::Beginning),
            part("typed", 2, Keep::All),
        ];
        let frame = compose(parts, 20, 6);
        assert_eq!(
            rows(&frame),
            ["answer4", "list0", "list1", "list2", "typed0", "typed1"]
        );
        let parts = vec![
            part("answer", 5, Keep::End),
            part("list", 3, Keep::Beginning),
            part("typed", 2, Keep::All),
        ];
        assert_eq!(rows(&compose(parts, 20, 3)), ["list0", "typed0", "typed1"]);
    }

    #[test]
    fn the_cursor_moves_with_its_part() {
        let mut typed = part("typed", 2, Keep::All);
        typed.cursor = Some(Position::new(3, 1));
        let frame = compose(vec![part("answer", 2, Keep::End), typed], 20, 10);
        assert_eq!(frame.cursor, Some(Position::new(3, 3)));
    }
}
