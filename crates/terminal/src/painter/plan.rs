//! Which rows of the terminal stay where they are, which are moved and which are new.
//!
//! The rows of the committed lines and of the next frame are laid over those that the terminal
//! shows. What was streamed in the live region and is committed now is on the screen already; what
//! stands below it is moved by inserting and deleting rows, not written again.

use std::{borrow::Cow, ops::Range};

use super::{committed::Prepared, pen::Pen, region::Row};

/// About how many bytes it takes to make a new row between others, or to take one away.
const MOVED: usize = 12;
/// More pairs of rows are not compared. 64 rows on both sides; the table of costs has as many
/// entries, and is made for each frame.
const MOST_PAIRS: usize = 4096;

/// What a row of the terminal is to show.
pub(super) enum Goal<'a> {
    /// A row of the live region, or of a committed line that looks the same if it was painted
    /// piece by piece.
    Cells(Cow<'a, Row>),
    /// These rows of a committed line, which are written from here on as they are.
    Text(&'a Prepared, Range<usize>),
    /// Written with a row above.
    Rest,
}

/// For each goal the row that it is painted over; `None` for a new row. In order, none twice.
///
/// The first row is never deleted: some terminals move a row that is deleted at the top of the
/// screen to their scrollback (Alacritty), and a resize that is not known of yet may have put it
/// there.
#[derive(Debug, PartialEq)]
pub(super) struct Plan(Vec<Option<usize>>);

impl Goal<'_> {
    fn cost_over(&self, old: &Row) -> usize {
        match self {
            Self::Cells(row) => row.cost_over(old),
            Self::Text(..) | Self::Rest => Row::default().cost_over(old),
        }
    }

    fn is(&self, old: &Row) -> bool {
        matches!(self, Self::Cells(row) if **row == *old)
    }
}

impl Plan {
    /// The one that needs the fewest bytes. `None` if there is none within reason. Rows that are
    /// the same at both ends are taken first, so the table is small while an answer streams.
    pub(super) fn of(old: &[Row], goals: &[Goal<'_>]) -> Option<Self> {
        let pairs = || old.iter().zip(goals);
        let above = pairs().take_while(|(old, goal)| goal.is(old)).count();
        // A goal is left for the first row.
        let most = old.len().min(goals.len()).saturating_sub(above.max(1));
        let below = old.iter().rev().zip(goals.iter().rev()).take(most);
        let below = below.take_while(|(old, goal)| goal.is(old)).count();
        let middle = between(
            &old[above..old.len() - below],
            &goals[above..goals.len() - below],
            above,
        )?;
        let mut plan: Vec<Option<usize>> = (0..above).map(Some).collect();
        plan.extend(middle.into_iter().map(|row| row.map(|row| row + above)));
        plan.extend((old.len() - below..old.len()).map(Some));
        Some(Self(plan))
    }

    /// Makes the terminal show the goals where it shows `old`. There is room for them.
    pub(super) fn paint(&self, old: &[Row], goals: &[Goal<'_>], pen: &mut Pen) {
        make_room(old.len(), goals.len(), pen);
        self.delete(old.len(), pen);
        let blank = Row::default();
        let before = |y: usize| self.0[y].and_then(|row| old.get(row)).unwrap_or(&blank);
        let mut made = 0;
        for (y, goal) in goals.iter().enumerate() {
            self.insert(y, &mut made, pen);
            match goal {
                Goal::Cells(row) => row.paint(before(y), as_row(y), pen),
                Goal::Rest => {}
                Goal::Text(line, rows) => {
                    let rest = goals[y + 1..].iter();
                    let rest = rest.take_while(|goal| matches!(goal, Goal::Rest)).count();
                    // All of its rows are there and blank before the first is written.
                    for row in y..=y + rest {
                        self.insert(row, &mut made, pen);
                        blank.paint(before(row), as_row(row), pen);
                    }
                    pen.go(as_row(y), 0);
                    line.write_rows(rows.clone(), pen);
                    pen.wrote_rows(rest + 1);
                }
            }
        }
    }

    /// Makes the row at `y` and those after it, if they are new and not below all others, where
    /// rows are blank anyway. The rows before `made` are there.
    fn insert(&self, y: usize, made: &mut usize, pen: &mut Pen) {
        let is_below_all = self.0[y..].iter().all(Option::is_none);
        if y < *made || self.0[y].is_some() || is_below_all {
            return;
        }
        let rows = self.0[y..].iter().take_while(|row| row.is_none()).count();
        pen.go(as_row(y), 0);
        pen.control(rows, 'L');
        *made = y + rows;
    }

    /// Rows that no goal is painted over.
    fn delete(&self, rows: usize, pen: &mut Pen) {
        let kept: Vec<usize> = self.0.iter().flatten().copied().collect();
        let ends = kept.iter().copied().chain([rows]);
        let mut from = 0;
        for (row, kept) in ends.enumerate() {
            if kept > from {
                pen.go(as_row(row), 0);
                pen.control(kept - from, 'M');
            }
            from = kept + 1;
        }
    }
}

/// Rows below the last one, by scrolling if there are none. Before rows are moved: `CSI L` at the
/// end of the screen would push rows out that are still needed.
fn make_room(old: usize, new: usize, pen: &mut Pen) {
    if new > old {
        pen.go(as_row(old.saturating_sub(1)), 0);
        pen.down_scrolling(new - old);
    }
}

/// The cheapest way by the costs of all ways to the rows before: `costs[i][j]` is that of the
/// first `i` old rows and the first `j` goals. There are `above` rows before the old ones.
fn between(old: &[Row], goals: &[Goal<'_>], above: usize) -> Option<Vec<Option<usize>>> {
    if old.len() * goals.len() > MOST_PAIRS {
        return None;
    }
    const NEVER: usize = usize::MAX / 2;
    let delete = |row: usize| match above + row {
        0 => NEVER,
        _ => MOVED,
    };
    let over: Vec<Vec<usize>> = old
        .iter()
        .map(|row| goals.iter().map(|goal| goal.cost_over(row)).collect())
        .collect();
    let blank = Row::default();
    let new: Vec<usize> = goals
        .iter()
        .map(|goal| goal.cost_over(&blank) + MOVED)
        .collect();
    let mut costs = vec![vec![NEVER; goals.len() + 1]; old.len() + 1];
    costs[0][0] = 0;
    for i in 0..=old.len() {
        for j in 0..=goals.len() {
            let mut least = costs[i][j];
            if i > 0 {
                least = least.min(costs[i - 1][j] + delete(i - 1));
            }
            if j > 0 {
                least = least.min(costs[i][j - 1] + new[j - 1]);
            }
            if i > 0 && j > 0 {
                least = least.min(costs[i - 1][j - 1] + over[i - 1][j - 1]);
            }
            costs[i][j] = least;
        }
    }
    let (mut i, mut j) = (old.len(), goals.len());
    if costs[i][j] >= NEVER {
        return None;
    }
    let mut plan = vec![None; goals.len()];
    while i > 0 || j > 0 {
        let cost = costs[i][j];
        if i > 0 && j > 0 && cost == costs[i - 1][j - 1] + over[i - 1][j - 1] {
            (i, j) = (i - 1, j - 1);
            plan[j] = Some(i);
        } else if j > 0 && cost == costs[i][j - 1] + new[j - 1] {
            j -= 1;
        } else {
            i -= 1;
        }
    }
    Some(plan)
}

fn as_row(y: usize) -> u16 {
    u16::try_from(y).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use ratatui_core::text::Line;

    use super::*;
    use crate::painter::pen::Autowrap;

    fn rows(texts: &[&str]) -> Vec<Row> {
        let rows = texts.iter();
        rows.map(|text| Row::of_line(&Line::from((*text).to_owned()), 40))
            .collect()
    }

    fn painted(old: &[&str], new: &[&str]) -> String {
        let (old, new) = (rows(old), rows(new));
        let goals: Vec<Goal<'_>> = new
            .iter()
            .map(|row| Goal::Cells(Cow::Borrowed(row)))
            .collect();
        let mut pen = Pen::at(40, 0, 0, Autowrap::Off);
        let plan = Plan::of(&old, &goals).unwrap();
        plan.paint(&old, &goals, &mut pen);
        String::from_utf8(pen.bytes).unwrap().replace('\u{1b}', "^")
    }

    #[test]
    fn a_row_that_comes_in_between_moves_those_below_it() {
        let before = ["the first row", "spinner", "composer", "status"];
        let after = ["the first row", "and", "spinner", "composer", "status"];
        assert_eq!(painted(&before, &after), "\n\n\n\n^[3A^[Land");
        assert_eq!(painted(&before, &before), "");
    }

    #[test]
    fn a_row_that_goes_moves_those_below_it() {
        let before = [
            "title",
            "the first row",
            "the second row",
            "the third row",
            "status",
        ];
        let after = [
            "title",
            "the second row",
            "the third row",
            "the fourth row",
            "status",
        ];
        assert_eq!(painted(&before, &after), "\n^[M\n\n^[Lthe fourth row");
    }

    #[test]
    fn the_first_row_is_written_over_and_not_deleted() {
        let before = ["the first row", "the second row"];
        let painted = painted(&before, &["the second row"]);
        assert_eq!(painted, "\n^[M^[A^[4Csecond row");
    }
}
