//! The list as lines, within the rows there are.
//!
//! ```text
//! Tasks  2 running · 3 in all
//! › • Explore · haiku · map the store        2.0k tokens · 4 s
//!     a-00000002 · running · child of a-00000001 · haiku
//!     │ the end of its output
//!     ✓ shell · cargo test                              1 m 2 s
//!   esc close · enter output · s stop
//! ```

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use codespar_protocol::{Cost, TaskStatus, Usd, short_count};
use codespar_terminal::{Line, Position, Span, Style, theme::Theme, width, wrap};

use super::{Entry, Scope, TaskPane, TaskRow, tree::Place};
use crate::text::duration;

/// Lines of output below an expanded task.
const SHOWN_OUTPUT: usize = 8;
/// Deeper tasks are not indented further.
const DEEPEST: usize = 5;
/// From so many columns the kind and the tokens are shown in the row.
const MEDIUM: usize = 60;
/// From so many the state and the cost too.
const WIDE: usize = 100;

const HINTS: &str = "  esc close · enter output · s stop · m message · o open · f filter";

/// What is drawn, and with what.
struct Drawing {
    now: Instant,
    columns: usize,
    theme: Theme,
}

impl TaskPane {
    /// At most so many rows, with the selected task among them. The cursor is in the message that
    /// is typed.
    pub(crate) fn lines(
        &mut self,
        now: Instant,
        columns: u16,
        rows: u16,
        theme: Theme,
    ) -> (Vec<Line<'static>>, Option<Position>) {
        let drawing = Drawing {
            now,
            columns: usize::from(columns),
            theme,
        };
        let (foot, cursor) = self.foot(&drawing);
        let room = usize::from(rows).saturating_sub(1 + foot.len()).max(1);
        let (body, selected) = self.body(&drawing, room);
        let lowest = selected.end.saturating_sub(room).min(selected.start);
        let last = body.len().saturating_sub(room);
        self.top = self.top.clamp(lowest, selected.start).min(last);
        let mut lines = vec![self.title(&drawing, body.len() > room)];
        lines.extend(body.into_iter().skip(self.top).take(room));
        let below = lines.len() as u16;
        lines.extend(foot);
        let cursor = cursor.map(|at| Position::new(at.x, at.y + below));
        (lines, cursor)
    }

    fn title(&self, drawing: &Drawing, is_cut: bool) -> Line<'static> {
        let mut text = match self.scope {
            Scope::All => format!("{} running · {} in all", self.running(), self.rows.len()),
            Scope::Unfinished => format!("{} of {} not over", self.places.len(), self.rows.len()),
        };
        if is_cut {
            text.push_str(&format!(" · {}/{}", self.selected + 1, self.places.len()));
        }
        let text = width::shortened(&text, drawing.columns.saturating_sub(7));
        Line::from(vec![
            Span::styled("Tasks  ", drawing.theme.heading()),
            Span::styled(text, drawing.theme.faint()),
        ])
    }

    /// All lines, and which of them are the selected task's. Lines of tasks that are out of sight
    /// are made as well: lists are short, and the scroll position needs their number.
    fn body(&self, drawing: &Drawing, room: usize) -> (Vec<Line<'static>>, Range<usize>) {
        let mut lines = Vec::new();
        let mut selected = 0..0;
        for (number, place) in self.places.iter().enumerate() {
            let row = &self.rows[place.row];
            let begin = lines.len();
            lines.push(self.head(drawing, row, *place, number == self.selected));
            if self.expanded.contains(&row.id) {
                lines.extend(drawing.detail(row, *place, room.saturating_sub(1)));
            }
            if number == self.selected {
                selected = begin..lines.len();
            }
        }
        if lines.is_empty() {
            let text = match self.scope {
                Scope::All => "  no tasks",
                Scope::Unfinished => "  all tasks are over",
            };
            lines.push(Line::styled(text, drawing.theme.faint()));
        }
        (lines, selected)
    }

    fn elapsed(&self, row: &TaskRow, now: Instant) -> Duration {
        match row.state {
            TaskStatus::Running => row.elapsed + now.duration_since(self.rows_at),
            _ => row.elapsed,
        }
    }

    fn head(
        &self,
        drawing: &Drawing,
        row: &TaskRow,
        place: Place,
        is_selected: bool,
    ) -> Line<'static> {
        let theme = drawing.theme;
        let (state, state_style) = state_mark(row.state, theme);
        let indent = "  ".repeat(place.depth.min(DEEPEST));
        let (mark, style) = match is_selected {
            true => ("› ", theme.accent()),
            false => ("  ", Style::default()),
        };
        let elapsed = duration(self.elapsed(row, drawing.now).as_secs());
        let sums = drawing.sums(row, &elapsed);
        let used = 4 + indent.len() + width::of(&sums) + 2;
        let room = drawing.columns.saturating_sub(used);
        let name = width::shortened(&drawing.name(row), room);
        let gap = room - width::of(&name) + 2;
        Line::from(vec![
            Span::styled(format!("{mark}{indent}"), style),
            Span::styled(format!("{state} "), state_style),
            Span::styled(name, style),
            Span::raw(" ".repeat(gap)),
            Span::styled(sums, theme.faint()),
        ])
    }

    /// The last lines: what is asked or typed, what came of the last key, or the keys there are.
    fn foot(&mut self, drawing: &Drawing) -> (Vec<Line<'static>>, Option<Position>) {
        let theme = drawing.theme;
        let columns = drawing.columns;
        let asked = match &self.entry {
            Entry::Stop(id) => self.find(id).map(|row| (id.to_string(), &row.subject)),
            _ => None,
        };
        if let Some((id, subject)) = asked {
            let text = format!("  stop {id} ({subject})?");
            let keys = "  y stops · any other key does not";
            let line = |text: &str| Line::styled(width::shortened(text, columns), theme.warning());
            return (vec![line(&text), line(keys)], None);
        }
        if let Entry::Message(id, editor) = &mut self.entry {
            let hint = format!("  to {id} · enter sends · esc goes back");
            let view = editor.render(columns.saturating_sub(2) as u16, 2, theme);
            let mut lines = vec![Line::styled(
                width::shortened(&hint, columns),
                theme.faint(),
            )];
            for (number, row) in view.rows.into_iter().enumerate() {
                let mark = if number == 0 { "» " } else { "  " };
                let mut spans = vec![Span::styled(mark, theme.accent())];
                spans.extend(row.spans);
                lines.push(Line::from(spans));
            }
            let cursor = Position::new(view.cursor.x + 2, view.cursor.y + 1);
            return (lines, Some(cursor));
        }
        let text = match &self.note {
            Some(note) => Line::styled(format!("  {note}"), theme.accent()),
            None => Line::styled(HINTS, theme.faint()),
        };
        let text = wrap::OutputLine::hanging(text, 2);
        (wrap::rows(&text, columns as u16), None)
    }
}

impl Drawing {
    /// What a row says of its task, by the room there is.
    fn name(&self, row: &TaskRow) -> String {
        if self.columns < MEDIUM {
            return row.subject.clone();
        }
        let model = row.model.as_deref().unwrap_or_default();
        let parts = [row.kind.as_str(), model, row.subject.as_str()];
        joined(parts.iter().copied())
    }

    fn sums(&self, row: &TaskRow, elapsed: &str) -> String {
        let tokens = tokens(row);
        let cost = cost(row);
        let (state, tokens, cost) = match self.columns {
            0..MEDIUM => ("", "", ""),
            MEDIUM..WIDE => ("", tokens.as_str(), ""),
            _ => (row.state.as_str(), tokens.as_str(), cost.as_str()),
        };
        // A task that waits has not begun to take time.
        let elapsed = match row.state {
            TaskStatus::Pending => "",
            _ => elapsed,
        };
        joined([state, tokens, cost, elapsed].into_iter())
    }

    /// Everything that is known of a task, and the end of its output, in at most so many lines.
    fn detail(&self, row: &TaskRow, place: Place, room: usize) -> Vec<Line<'static>> {
        let margin = " ".repeat(4 + 2 * place.depth.min(DEEPEST));
        let parent = row.parent.as_ref();
        let parent = parent.map_or_else(String::new, |id| format!("child of {id}"));
        let (id, tokens, cost) = (row.id.to_string(), tokens(row), cost(row));
        let model = row.model.as_deref().unwrap_or_default();
        let known = [
            id.as_str(),
            row.state.as_str(),
            &parent,
            &row.kind,
            model,
            &tokens,
            &cost,
        ];
        let text = format!("{margin}{}", joined(known.into_iter()));
        let known =
            wrap::OutputLine::hanging(Line::styled(text, self.theme.faint()), margin.len() as u16);
        let mut lines = wrap::rows(&known, self.columns as u16);
        lines.truncate(room);
        let shown = SHOWN_OUTPUT.min(room - lines.len());
        let first = row.output.len().saturating_sub(shown);
        let wide = self.columns.saturating_sub(margin.len() + 2);
        lines.extend(row.output[first..].iter().map(|line| {
            Line::from(vec![
                Span::styled(format!("{margin}│ "), self.theme.faint()),
                Span::raw(width::shortened(line, wide)),
            ])
        }));
        if row.output.is_empty() && shown > 0 {
            let text = format!("{margin}│ no output");
            lines.push(Line::styled(text, self.theme.faint()));
        }
        lines
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let said: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    said.join(" · ")
}

fn tokens(row: &TaskRow) -> String {
    match row.tokens {
        0 => String::new(),
        tokens => format!("{} tokens", short_count(tokens)),
    }
}

fn cost(row: &TaskRow) -> String {
    match row.cost {
        Cost::Known(Usd::ZERO) => String::new(),
        cost => cost.to_string(),
    }
}

fn state_mark(state: TaskStatus, theme: Theme) -> (&'static str, Style) {
    match state {
        TaskStatus::Pending => ("○", theme.faint()),
        TaskStatus::Running => ("•", theme.accent()),
        TaskStatus::Completed => ("✓", theme.good()),
        TaskStatus::Failed => ("✗", theme.error()),
        TaskStatus::Killed => ("■", theme.warning()),
    }
}
