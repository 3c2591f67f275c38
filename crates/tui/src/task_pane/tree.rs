//! The order of the list: each task below the one that started it.

use std::collections::HashMap;

use codespar_protocol::TaskId;

use super::TaskRow;

/// Where a row is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) row: usize,
    /// How many tasks above it are its ancestors.
    pub(super) depth: usize,
}

/// The rows that are shown; those with the same parent stay in their order. A row whose parent is
/// not shown is below the nearest ancestor that is.
pub(super) fn places(rows: &[TaskRow], is_shown: impl Fn(&TaskRow) -> bool) -> Vec<Place> {
    let by_id: HashMap<&TaskId, usize> = rows.iter().map(|row| &row.id).zip(0..).collect();
    let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let shown: Vec<usize> = (0..rows.len()).filter(|n| is_shown(&rows[*n])).collect();
    for row in &shown {
        let parent = shown_ancestor(rows, &by_id, *row, &is_shown);
        children.entry(parent).or_default().push(*row);
    }
    let mut order = Order {
        children,
        is_placed: vec![false; rows.len()],
        places: Vec::with_capacity(shown.len()),
    };
    let roots = order.children.remove(&None).unwrap_or_default();
    order.place(&roots);
    // Rows that are each other's ancestors have no root; none is left out.
    for row in shown {
        order.place(&[row]);
    }
    order.places
}

/// Bounded by the number of rows: parents come from records and may form a cycle.
fn shown_ancestor(
    rows: &[TaskRow],
    by_id: &HashMap<&TaskId, usize>,
    row: usize,
    is_shown: impl Fn(&TaskRow) -> bool,
) -> Option<usize> {
    let mut at = row;
    for _ in 0..rows.len() {
        let parent = rows[at].parent.as_ref()?;
        at = *by_id.get(parent)?;
        if is_shown(&rows[at]) {
            return Some(at).filter(|ancestor| *ancestor != row);
        }
    }
    None
}

struct Order {
    children: HashMap<Option<usize>, Vec<usize>>,
    is_placed: Vec<bool>,
    places: Vec<Place>,
}

impl Order {
    /// These rows and all below them, each once. With a stack of its own, so depth does not matter.
    /// A row that is placed already is skipped.
    fn place(&mut self, roots: &[usize]) {
        let roots = roots.iter().rev();
        let mut left: Vec<Place> = roots
            .map(|row| Place {
                row: *row,
                depth: 0,
            })
            .collect();
        while let Some(next) = left.pop() {
            if std::mem::replace(&mut self.is_placed[next.row], true) {
                continue;
            }
            self.places.push(next);
            let below = self.children.remove(&Some(next.row)).unwrap_or_default();
            left.extend(below.into_iter().rev().map(|row| Place {
                row,
                depth: next.depth + 1,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use codespar_protocol::{Cost, TaskStatus};

    use super::*;

    const RUNNING: TaskStatus = TaskStatus::Running;
    const OVER: TaskStatus = TaskStatus::Completed;

    fn id(number: u32) -> TaskId {
        format!("a-{number:08}").parse().unwrap()
    }

    fn rows(tasks: &[(u32, Option<u32>, TaskStatus)]) -> Vec<TaskRow> {
        let row = |(number, parent, state): &(u32, Option<u32>, TaskStatus)| TaskRow {
            id: id(*number),
            parent: parent.map(id),
            subject: String::new(),
            kind: String::new(),
            state: *state,
            model: None,
            elapsed: Duration::ZERO,
            tokens: 0,
            cost: Cost::default(),
            output: Vec::new(),
            accepts_messages: true,
        };
        tasks.iter().map(row).collect()
    }

    fn placed(rows: &[TaskRow], is_shown: impl Fn(&TaskRow) -> bool) -> Vec<(TaskId, usize)> {
        let places = places(rows, is_shown);
        let named = places.iter().map(|at| (rows[at.row].id.clone(), at.depth));
        named.collect()
    }

    #[test]
    fn children_are_below_their_parents_in_their_order() {
        let rows = rows(&[
            (3, Some(1), RUNNING),
            (1, None, RUNNING),
            (4, Some(3), RUNNING),
            (2, None, RUNNING),
            (5, Some(1), RUNNING),
            (6, Some(9), RUNNING),
        ]);
        let wanted = [(1, 0), (3, 1), (4, 2), (5, 1), (2, 0), (6, 0)];
        let wanted = wanted.map(|(number, depth)| (id(number), depth));
        assert_eq!(placed(&rows, |_| true), wanted);
    }

    #[test]
    fn a_child_of_a_hidden_task_is_below_the_nearest_one_shown() {
        let rows = rows(&[
            (1, None, RUNNING),
            (2, Some(1), OVER),
            (3, Some(2), RUNNING),
            (4, Some(5), RUNNING),
            (5, None, OVER),
        ]);
        assert_eq!(
            placed(&rows, |row| row.state == RUNNING),
            [(id(1), 0), (id(3), 1), (id(4), 0)]
        );
    }

    #[test]
    fn tasks_that_are_each_others_parents_are_shown_once() {
        let rows = rows(&[
            (1, Some(2), RUNNING),
            (2, Some(1), RUNNING),
            (3, Some(3), RUNNING),
        ]);
        assert_eq!(
            placed(&rows, |_| true),
            [(id(3), 0), (id(1), 0), (id(2), 1)]
        );
    }
}
