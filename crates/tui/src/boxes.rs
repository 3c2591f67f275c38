//! Subagents as boxes that are updated in place: side by side where they fit, stacked where not.
//!
//! ```text
//! ┌─ Explore · haiku · find the parser ───┐ ┌─ Explore · haiku · map the store ─────┐
//! │ ✓ 12 tool calls · 8.1k tokens · 6 s   │ │ ⠹ 4 tool calls · Grep fn open         │
//! │ Found 3 relevant files                │ │                                       │
//! └───────────────────────────────────────┘ └───────────────────────────────────────┘
//! ```
//!
//! A box stays in the live region until all of them are over; then they become output.

use std::time::Instant;

use codespar_protocol::{Cost, TaskId, TaskStatus, counted, short_count};
use codespar_terminal::wrap::OutputLine;
use codespar_terminal::{Line, Span, Style, theme::Theme, width};

use crate::text::duration;

/// Columns of a box with its frame. At most three stand side by side.
const NARROWEST: usize = 40;
/// Rows of a box: its frame and two lines.
const ROWS: usize = 4;
/// Lines of a result that become output.
const RESULT_LINES: usize = 5;

/// A task and what is known of it.
struct TaskBox {
    id: TaskId,
    title: String,
    since: Instant,
    tool_uses: u32,
    tokens: u64,
    cost: Cost,
    doing: String,
    end: Option<End>,
}

struct End {
    status: TaskStatus,
    seconds: u64,
    result: Vec<String>,
    /// Lines of the result that are not in it.
    left: usize,
}

/// The sums of a task that ended.
pub(crate) struct Sums {
    pub(crate) status: TaskStatus,
    pub(crate) tool_uses: u32,
    pub(crate) tokens: u64,
    pub(crate) cost: Cost,
    pub(crate) duration_ms: u64,
}

/// The boxes that are shown.
#[derive(Default)]
pub(crate) struct Boxes(Vec<TaskBox>);

impl Boxes {
    /// Another attempt of the same task replaces its box.
    pub(crate) fn begin(&mut self, id: TaskId, title: String, now: Instant) {
        self.0.retain(|other| other.id != id);
        self.0.push(TaskBox {
            id,
            title,
            since: now,
            tool_uses: 0,
            tokens: 0,
            cost: Cost::default(),
            doing: String::new(),
            end: None,
        });
    }

    fn find(&mut self, id: &TaskId) -> Option<&mut TaskBox> {
        self.0.iter_mut().find(|one| one.id == *id)
    }

    /// What comes for a task without a box is ignored: its beginning was not seen.
    pub(crate) fn step(&mut self, id: &TaskId, tool_uses: u32, doing: String) {
        if let Some(one) = self.find(id) {
            one.tool_uses = tool_uses;
            one.doing = doing;
        }
    }

    /// Tokens and costs so far; the end brings the sums of the record.
    pub(crate) fn spent(&mut self, id: &TaskId, tokens: u64, cost: Cost) {
        if let Some(one) = self.find(id) {
            one.tokens += tokens;
            one.cost += cost;
        }
    }

    /// A task whose beginning was not seen gets its box now.
    pub(crate) fn end(
        &mut self,
        id: &TaskId,
        subject: String,
        sums: &Sums,
        result: &str,
        now: Instant,
    ) {
        if self.find(id).is_none() {
            self.begin(id.clone(), subject, now);
        }
        let Some(one) = self.find(id) else { return };
        let lines = result.lines().filter(|line| !line.trim().is_empty());
        one.tool_uses = sums.tool_uses;
        one.tokens = sums.tokens;
        one.cost = sums.cost;
        one.end = Some(End {
            status: sums.status,
            seconds: sums.duration_ms.div_ceil(1_000),
            result: lines
                .clone()
                .take(RESULT_LINES)
                .map(str::to_owned)
                .collect(),
            left: lines.count().saturating_sub(RESULT_LINES),
        });
    }

    pub(crate) fn running(&self) -> usize {
        self.0.iter().filter(|one| one.end.is_none()).count()
    }

    /// All of them as output, once none runs any more.
    pub(crate) fn take_ended(&mut self, theme: Theme) -> Vec<OutputLine> {
        if self.running() > 0 {
            return Vec::new();
        }
        let boxes = std::mem::take(&mut self.0);
        boxes.iter().flat_map(|one| one.output(theme)).collect()
    }

    /// Within so many rows; how many boxes are left out is said.
    pub(crate) fn lines(
        &self,
        now: Instant,
        frame: &str,
        columns: u16,
        rows: usize,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        if self.0.is_empty() || rows < ROWS {
            return Vec::new();
        }
        let columns = usize::from(columns);
        let per_row = ((columns + 1) / (NARROWEST + 1))
            .clamp(1, self.0.len())
            .min(3);
        let wide = (columns + 1) / per_row - 1;
        let fit = rows / ROWS * per_row;
        let shown = match self.0.len() > fit {
            // The line that counts the others needs a row too.
            true => ((rows - 1) / ROWS * per_row).max(1),
            false => self.0.len(),
        };
        let mut lines = Vec::new();
        // Those that run come before those that are over.
        let mut order: Vec<&TaskBox> = self.0.iter().collect();
        if shown < self.0.len() {
            order.sort_by_key(|one| one.end.is_some());
        }
        for group in order[..shown].chunks(per_row) {
            let drawn: Vec<[Line<'static>; ROWS]> = group
                .iter()
                .map(|one| one.drawn(now, frame, wide, theme))
                .collect();
            for row in 0..ROWS {
                let mut spans: Vec<Span<'static>> = Vec::new();
                for (place, one) in drawn.iter().enumerate() {
                    if place > 0 {
                        spans.push(Span::raw(" "));
                    }
                    spans.extend(one[row].spans.iter().cloned());
                }
                lines.push(Line::from(spans));
            }
        }
        let hidden = self.0.len() - shown;
        if hidden > 0 && lines.len() < rows {
            lines.push(Line::styled(format!("+{hidden} more"), theme.faint()));
        }
        lines
    }
}

impl TaskBox {
    fn sums(&self, seconds: u64) -> String {
        format!(
            "{} · {} tokens · {} · {}",
            counted(self.tool_uses as usize, "tool call"),
            short_count(self.tokens),
            self.cost,
            duration(seconds)
        )
    }

    /// Always `ROWS` lines of exactly `wide` columns, so that boxes can be put side by side.
    fn drawn(&self, now: Instant, frame: &str, wide: usize, theme: Theme) -> [Line<'static>; ROWS] {
        let (mark, style, first, second) = match &self.end {
            None => {
                let seconds = now.duration_since(self.since).as_secs();
                (
                    frame,
                    theme.accent(),
                    self.sums(seconds),
                    self.doing.clone(),
                )
            }
            Some(end) => {
                let (mark, style) = end_mark(end.status, theme);
                let result = end.result.first().cloned().unwrap_or_default();
                (mark, style, self.sums(end.seconds), result)
            }
        };
        let inner = wide.saturating_sub(4);
        let title = width::shortened(&self.title, inner.saturating_sub(2));
        let rest = inner.saturating_sub(width::of(&title) + 1);
        let border = theme.faint();
        let row = |spans: Vec<Span<'static>>| {
            let used: usize = spans.iter().map(|span| width::of(&span.content)).sum();
            let mut all = vec![Span::styled("│ ", border)];
            all.extend(spans);
            all.push(Span::raw(" ".repeat(inner.saturating_sub(used))));
            all.push(Span::styled(" │", border));
            Line::from(all)
        };
        [
            Line::from(vec![
                Span::styled("┌─ ", border),
                Span::styled(title, theme.strong()),
                Span::styled(format!(" {}┐", "─".repeat(rest)), border),
            ]),
            row(vec![
                Span::styled(format!("{mark} "), style),
                Span::styled(
                    width::shortened(&first, inner.saturating_sub(2)),
                    theme.faint(),
                ),
            ]),
            row(vec![Span::raw(width::shortened(&second, inner))]),
            // A span, since boxes side by side become one line and a line has one style.
            Line::from(Span::styled(
                format!("└{}┘", "─".repeat(wide.saturating_sub(2))),
                border,
            )),
        ]
    }

    /// Without a frame: output is wrapped and copied.
    fn output(&self, theme: Theme) -> Vec<OutputLine> {
        let Some(end) = &self.end else {
            return Vec::new();
        };
        let (mark, style) = end_mark(end.status, theme);
        let mut lines = vec![
            OutputLine::hanging(
                vec![
                    Span::styled(format!("{mark} "), style),
                    Span::styled(self.title.clone(), theme.strong()),
                    Span::styled(format!(" · {}", self.id), theme.faint()),
                ],
                2,
            ),
            OutputLine::hanging(
                Line::styled(format!("  {}", self.sums(end.seconds)), theme.faint()),
                2,
            ),
        ];
        let result = end.result.iter();
        lines.extend(result.map(|line| OutputLine::hanging(format!("  {line}"), 2)));
        if end.left > 0 {
            let more = counted(end.left, "more line");
            let text = format!("  … {more} · /task-status {}", self.id);
            lines.push(OutputLine::hanging(Line::styled(text, theme.faint()), 2));
        }
        lines
    }
}

fn end_mark(status: TaskStatus, theme: Theme) -> (&'static str, Style) {
    match status {
        TaskStatus::Completed => ("✓", theme.good()),
        _ => ("✗", theme.error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> TaskId {
        format!("a-{n:08}").parse().unwrap()
    }

    fn shown(boxes: &Boxes, columns: u16, rows: usize) -> Vec<String> {
        let lines = boxes.lines(Instant::now(), "⠹", columns, rows, Theme::default());
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn boxes_are_side_by_side_where_they_fit_and_never_wider_than_the_terminal() {
        let mut boxes = Boxes::default();
        let now = Instant::now();
        boxes.begin(id(1), "Explore · haiku · find the parser".into(), now);
        boxes.begin(id(2), "Explore · haiku · map the store".into(), now);
        assert_eq!(shown(&boxes, 120, 12).len(), 4);
        assert_eq!(shown(&boxes, 60, 12).len(), 8);
        for columns in [20, 40, 60, 81, 120, 200] {
            for line in shown(&boxes, columns, 12) {
                assert!(
                    width::of(&line) <= usize::from(columns),
                    "{columns}: {line}"
                );
            }
        }
    }

    #[test]
    fn the_whole_frame_has_one_style() {
        let mut boxes = Boxes::default();
        boxes.begin(id(1), "one".into(), Instant::now());
        boxes.begin(id(2), "two".into(), Instant::now());
        let theme = Theme::default();
        let lines = boxes.lines(Instant::now(), "⠹", 120, 12, theme);
        let mut corners = 0;
        for span in lines.iter().flat_map(|line| &line.spans) {
            if span.content.contains(['┌', '┐', '└', '┘', '│']) {
                assert_eq!(span.style, theme.faint(), "{span:?}");
                corners += 1;
            }
        }
        assert_eq!(corners, 14);
    }

    #[test]
    fn boxes_that_do_not_fit_are_counted() {
        let mut boxes = Boxes::default();
        for n in 0..20 {
            boxes.begin(id(n), format!("task {n}"), Instant::now());
        }
        let lines = shown(&boxes, 60, 10);
        assert_eq!(lines.len(), 9);
        assert_eq!(lines[8], "+18 more");
    }

    #[test]
    fn they_become_output_when_the_last_one_is_over() {
        let mut boxes = Boxes::default();
        let now = Instant::now();
        boxes.begin(id(1), "one".into(), now);
        boxes.begin(id(2), "two".into(), now);
        let sums = Sums {
            status: TaskStatus::Completed,
            tool_uses: 3,
            tokens: 8_100,
            cost: Cost::default(),
            duration_ms: 5_500,
        };
        boxes.end(&id(1), "one".into(), &sums, "a\nb\n\nc\nd\ne\nf\ng", now);
        assert!(boxes.take_ended(Theme::default()).is_empty());
        boxes.end(&id(2), "two".into(), &sums, "", now);
        let output = boxes.take_ended(Theme::default());
        let text: Vec<String> = output.iter().map(|one| one.line.to_string()).collect();
        assert!(text.contains(&"  e".to_owned()), "{text:?}");
        assert!(text.iter().any(|line| line.contains("2 more lines")));
        assert_eq!(boxes.running(), 0);
    }
}
