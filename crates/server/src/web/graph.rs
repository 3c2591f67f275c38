//! Tasks that wait for each other as a graph, drawn on the server.
//!
//! ```text
//! waits for ──▶ this task ──▶ needed by
//! ```

use codespar_protocol::{TaskId, TaskRecord};
use maud::{Markup, html};

use super::text;
use crate::state::Shared;

const BOX: (f64, f64) = (180.0, 44.0);
const GAP: (f64, f64) = (46.0, 12.0);
/// More would be too small to read; the list below has them all.
const MOST: usize = 12;

/// A task in the graph.
struct Node {
    id: TaskId,
    title: String,
    status: &'static str,
}

async fn nodes(state: &Shared, ids: &[TaskId]) -> Vec<Node> {
    let mut nodes = Vec::new();
    for id in ids.iter().take(MOST) {
        // What is of another project is shown by its id alone.
        let found = state.scope.task(id.as_str()).await.ok();
        nodes.push(Node {
            id: id.clone(),
            title: found
                .as_ref()
                .map_or_else(String::new, |task| title(state, task)),
            status: found.map_or("pending", |task| task.status.as_str()),
        });
    }
    nodes
}

fn title(state: &Shared, task: &TaskRecord) -> String {
    let subject = task.subject.strip_prefix("dev: ").unwrap_or(&task.subject);
    text::shortened(&text::line(state, subject), 20)
}

/// What a task waits for on the left, what waits for it on the right; nothing where it is alone.
pub(super) async fn dependencies(state: &Shared, task: &TaskRecord) -> Markup {
    if task.blocked_by.is_empty() && task.blocks.is_empty() {
        return html! {};
    }
    let before = nodes(state, &task.blocked_by).await;
    let after = nodes(state, &task.blocks).await;
    let own = [Node {
        id: task.task_id.clone(),
        title: title(state, task),
        status: task.status.as_str(),
    }];
    let columns: Vec<&[Node]> = [&before[..], &own[..], &after[..]]
        .into_iter()
        .filter(|column| !column.is_empty())
        .collect();
    drawn(&columns)
}

/// Columns side by side; each box of one leads to each of the next.
fn drawn(columns: &[&[Node]]) -> Markup {
    let most = columns.iter().map(|column| column.len()).max().unwrap_or(1);
    let height = most as f64 * (BOX.1 + GAP.1);
    let width = columns.len() as f64 * (BOX.0 + GAP.0) - GAP.0;
    let left = |column: usize| column as f64 * (BOX.0 + GAP.0);
    let top = |column: usize, row: usize| {
        let tall = columns[column].len() as f64 * (BOX.1 + GAP.1);
        (height - tall) / 2.0 + row as f64 * (BOX.1 + GAP.1) + GAP.1 / 2.0
    };
    html! {
        svg.graph viewBox={ "-1 -1 " (width + 2.0) " " (height + 2.0) } role="img" aria-label="Dependencies" {
            @for column in 1..columns.len() {
                @for from in 0..columns[column - 1].len() {
                    @for to in 0..columns[column].len() {
                        line.edge x1=(left(column - 1) + BOX.0) y1=(top(column - 1, from) + BOX.1 / 2.0)
                            x2=(left(column)) y2=(top(column, to) + BOX.1 / 2.0) {}
                    }
                }
            }
            @for (column, nodes) in columns.iter().enumerate() {
                @for (row, node) in nodes.iter().enumerate() {
                    @let (x, y) = (left(column), top(column, row));
                    a href={ "/tasks/" (node.id) } {
                        rect class={ "node " (node.status) } x=(x) y=(y) width=(BOX.0) height=(BOX.1) rx="6" {}
                        text x=(x + 10.0) y=(y + 18.0) { (node.title) }
                        text.id x=(x + 10.0) y=(y + 35.0) { (node.id) " " (node.status) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use codespar_protocol::TaskType;

    use super::*;

    #[test]
    fn every_task_leads_to_those_that_wait_for_it_and_names_are_text() {
        let node = |title: &str| Node {
            id: TaskId::new(TaskType::LocalBash),
            title: title.to_owned(),
            status: "pending",
        };
        let (before, own) = ([node("a"), node("b")], [node("<script>")]);
        let shown = drawn(&[&before[..], &own[..]]).into_string();
        assert_eq!(shown.matches("class=\"edge\"").count(), 2);
        assert_eq!(shown.matches("<rect").count(), 3);
        assert!(!shown.contains("<script>"), "{shown}");
    }
}
