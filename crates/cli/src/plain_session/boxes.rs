//! Boxes for subagents: what they are at, and what came of them.
//!
//! ```text
//! ┌─ Explore · haiku · find the parser ──────────────────────────────────────┐
//! │ 4 tool calls · 8.1k tokens · $0.01 · 12 s                                │
//! │ Grep fn parse                                                            │
//! └──────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A box is written where its task began and updated in place while it can be reached. One that has
//! scrolled away is written again below, at most every five seconds; the old one stays as it is.
//! Where nothing can be rewritten (a pipe) there are two boxes: one for the start, one for the end.

use std::time::{Duration, Instant};

use codespar_protocol::{Cost, TaskId, counted};
use unicode_width::UnicodeWidthChar;

use super::page::{Page, Row};
use crate::{printer::plain, style};

const WIDTH: usize = 76;
const NARROWEST: usize = 24;
/// Of a result, in its box.
const RESULT_LINES: usize = 5;
/// A box that scrolled away is shown again, but not all the time.
const AGAIN: Duration = Duration::from_secs(5);

/// A task under way. `shown` are the lines as they stand on the terminal, to write only those that
/// differ.
struct TaskBox {
    id: TaskId,
    title: String,
    began: Instant,
    tool_uses: u32,
    tokens: u64,
    cost: Cost,
    doing: Option<String>,
    /// Where it stands.
    top: Row,
    shown: Vec<String>,
    shown_at: Instant,
}

impl TaskBox {
    fn lines(&self, width: usize) -> Vec<String> {
        let first = match &self.doing {
            None => started(&self.id),
            Some(_) => format!(
                "{} tool calls · {} tokens · {} · {} s",
                self.tool_uses,
                count(self.tokens),
                self.cost,
                self.began.elapsed().as_secs()
            ),
        };
        let second = self.doing.clone().unwrap_or_default();
        framed(&self.title, &[first, second], width)
    }
}

/// Where a user can look while it runs.
fn started(id: &TaskId) -> String {
    format!("started as {id} · /task-status {id}")
}

/// The boxes of tasks under way.
#[derive(Default)]
pub(super) struct Boxes(Vec<TaskBox>);

/// What is known of a task's end.
pub(super) struct End<'a> {
    pub(super) id: &'a TaskId,
    /// For a box of its own.
    pub(super) title: String,
    pub(super) sums: String,
    /// What came of it; several lines.
    pub(super) result: &'a str,
}

impl End<'_> {
    /// The first lines, and where the others are.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.sums.clone()];
        let result = self.result.lines().filter(|line| !line.trim().is_empty());
        lines.extend(result.clone().take(RESULT_LINES).map(str::to_owned));
        let left = result.count().saturating_sub(RESULT_LINES);
        if left > 0 {
            lines.push(format!(
                "… {} · /task-status {}",
                counted(left, "more line"),
                self.id
            ));
        }
        lines
    }
}

impl Boxes {
    /// A task began.
    pub(super) fn begin(&mut self, page: &mut Page, id: &TaskId, title: String) {
        if !page.can_move() {
            let lines = [started(id)];
            page.write(&text(&framed(&title, &lines, WIDTH)));
            return;
        }
        let now = Instant::now();
        let mut new = TaskBox {
            id: id.clone(),
            title,
            began: now,
            tool_uses: 0,
            tokens: 0,
            cost: Cost::default(),
            doing: None,
            top: page.row(),
            shown: Vec::new(),
            shown_at: now,
        };
        self.0.retain(|other| other.id != *id);
        new.shown = new.lines(width(page));
        page.write(&text(&new.shown));
        self.0.push(new);
    }

    /// It used a tool. Unknown ids are ignored: a task of an earlier process has no box.
    pub(super) fn step(&mut self, page: &mut Page, id: &TaskId, tool_uses: u32, doing: &str) {
        if let Some(known) = self.0.iter_mut().find(|known| known.id == *id) {
            known.tool_uses = tool_uses;
            known.doing = Some(doing.to_owned());
            refresh(known, page);
        }
    }

    /// A call of its model is done; shown with the next step.
    pub(super) fn spent(&mut self, id: &TaskId, tokens: u64, cost: Cost) {
        if let Some(known) = self.0.iter_mut().find(|known| known.id == *id) {
            known.tokens += tokens;
            known.cost += cost;
        }
    }

    /// Time passed. A box out of reach is not written again for that.
    pub(super) fn tick(&mut self, page: &mut Page) {
        for known in &mut self.0 {
            let lines = known.lines(width(page));
            rewrite(known, page, lines);
        }
    }

    /// A task is over: its box says what came of it, or a new one does.
    pub(super) fn end(&mut self, page: &mut Page, end: &End<'_>) {
        let mut lines = end.lines();
        // A box on the screen cannot grow: what comes after it is there already.
        let room = 2;
        let index = self.0.iter().position(|known| known.id == *end.id);
        if let Some(mut known) = index.map(|index| self.0.remove(index)) {
            let mut short = lines.clone();
            short.resize(room, String::new());
            if lines.len() > room {
                short[room - 1] = "its result is below".to_owned();
            }
            let short = framed(&known.title, &short, width(page));
            let is_written = rewrite(&mut known, page, short);
            if is_written && lines.len() <= room {
                return;
            }
            if is_written {
                lines.remove(0);
            }
        }
        let width = if page.can_move() { width(page) } else { WIDTH };
        page.write(&text(&framed(&end.title, &lines, width)));
    }
}

/// In place, or once more below when it is out of reach.
fn refresh(known: &mut TaskBox, page: &mut Page) {
    let lines = known.lines(width(page));
    if rewrite(known, page, lines.clone()) {
        return;
    }
    if known.shown_at.elapsed() >= AGAIN && !page.is_mid_line() {
        known.top = page.row();
        page.write(&text(&lines));
        known.shown = lines;
        known.shown_at = Instant::now();
    }
}

/// Writes only the lines that changed; true if the box is as it should be.
fn rewrite(known: &mut TaskBox, page: &mut Page, lines: Vec<String>) -> bool {
    let is_new = |(index, line): &(usize, &String)| known.shown.get(*index) != Some(*line);
    let Some((first, _)) = lines.iter().enumerate().find(is_new) else {
        return true;
    };
    let last = lines.iter().enumerate().rfind(is_new);
    let last = last.map_or(first, |(index, _)| index);
    let is_done =
        lines.len() == known.shown.len() && page.rewrite(known.top + first, &lines[first..=last]);
    if is_done {
        known.shown = lines;
        known.shown_at = Instant::now();
    }
    is_done
}

fn width(page: &Page) -> usize {
    // One column stays free: a full row would leave the cursor between two.
    page.columns().map_or(WIDTH, |columns| {
        WIDTH.min(columns.saturating_sub(1)).max(NARROWEST)
    })
}

fn text(lines: &[String]) -> String {
    format!("{}\n", lines.join("\n"))
}

/// A box with a title in its upper edge.
///
/// Every line is equally wide in columns of the terminal, counting wide characters.
fn framed(title: &str, lines: &[String], width: usize) -> Vec<String> {
    let title = fit(title, width - 5);
    let rest = width.saturating_sub(wide(&title) + 5);
    let mut framed = vec![format!(
        "┌─ {} {}┐",
        style::strong(&title),
        "─".repeat(rest)
    )];
    for line in lines {
        let line = fit(line, width - 4);
        let pad = " ".repeat(width.saturating_sub(wide(&line) + 4));
        framed.push(format!("│ {line}{pad} │"));
    }
    framed.push(format!("└{}┘", "─".repeat(width - 2)));
    framed
}

/// The first line, harmless and no wider than this.
fn fit(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = plain(line).replace('\t', " ");
    if wide(&line) <= width {
        return line;
    }
    let mut cut = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// Columns, not characters.
fn wide(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// 812, 8.1k, 1.2M.
pub(super) fn count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_box_is_equally_wide() {
        let lines = framed(
            "Explore · Find äuth errors · haiku",
            &[
                "✓ 12 tool calls".into(),
                "x".repeat(200),
                "日本語".repeat(30),
                "\u{1b}[2J".into(),
            ],
            WIDTH,
        );
        let widths: Vec<usize> = lines.iter().map(|line| wide(&plain(line))).collect();
        assert_eq!(&widths[..3], [WIDTH; 3], "{lines:#?}");
        // A wide letter may not fit into the last column.
        assert_eq!(&widths[4..], [WIDTH; 2], "{lines:#?}");
        assert!(lines[4].contains("\\u{1b}[2J"), "{lines:#?}");
    }

    #[test]
    fn counts_are_short() {
        assert_eq!(
            [count(7), count(8_120), count(1_250_000)],
            ["7", "8.1k", "1.2M"]
        );
    }
}
