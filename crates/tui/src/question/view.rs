//! What is shown of a question: what is asked, as output; the choices, in the live region.
//!
//! What is asked is committed as output, in full, before the choices appear: it can be scrolled,
//! copied and found again, and is never cut to the height of the live region. Texts of models pass
//! the cleaner.

use codespar_protocol::{Confinement, PermissionRequest, ProposedHunk, QuestionRequest};
use codespar_terminal::wrap::{self, OutputLine};
use codespar_terminal::{Line, Position, Span, Style, editor::Editor, theme::Theme};

use super::{CallDraft, Entry, Moment, OpenQuestion, RuleScope};
use crate::{
    text::Cleaner,
    tool_calls::{Change, changes, diff},
};

/// Rows of an editor in a question.
const EDITOR_ROWS: u16 = 8;
/// Lines of a changed text that are shown.
const CHANGED_LINES: usize = 6;

impl OpenQuestion {
    /// The choices, below what was asked. The position of the cursor, if it has one.
    pub(crate) fn lines(
        &mut self,
        moment: &Moment,
        columns: u16,
        theme: Theme,
        cleaner: &Cleaner,
    ) -> (Vec<Line<'static>>, Option<Position>) {
        let has_focus = self.has_focus(moment);
        let mut lines = Vec::new();
        let mut cursor = None;
        if let Some(complaint) = &self.complaint {
            let complaint =
                Line::styled(format!("  {}", cleaner.clean(complaint)), theme.warning());
            lines.extend(wrap::rows(&OutputLine::hanging(complaint, 2), columns));
        }
        match &mut self.entry {
            Entry::Choice => {
                let style = match has_focus {
                    true => theme.heading(),
                    false => theme.faint(),
                };
                let QuestionRequest::Permission(asked) = &self.request else {
                    return (lines, None);
                };
                if let Some(draft) = &self.draft {
                    lines.extend(draft_lines(draft, columns, theme, cleaner));
                }
                lines.extend(choices(asked, self.draft.as_ref(), style, columns, cleaner));
            }
            Entry::Reason(editor)
            | Entry::Text(editor)
            | Entry::Call(editor)
            | Entry::Rules(editor, _) => {
                let top = lines.len() as u16;
                let (rows, at) = editor_rows(editor, columns, theme);
                lines.extend(rows);
                cursor = Some(Position::new(at.x, at.y + top));
            }
        }
        let hint = match (&self.entry, has_focus) {
            (_, false) => "  tab answers this question",
            (Entry::Choice, true) => "",
            (Entry::Reason(_), true) => "  why not, for the model · enter sends · esc goes back",
            (Entry::Text(_), true) => "  enter answers · esc declines",
            (Entry::Call(_), true) => "  enter takes the text, y then runs it · esc goes back",
            (Entry::Rules(_, RuleScope::Project), true) => {
                "  enter allows this always in this project · tab: for this session · esc goes back"
            }
            (Entry::Rules(_, RuleScope::Session), true) => {
                "  enter allows this for this session · tab: always in this project · esc goes back"
            }
        };
        if !hint.is_empty() {
            let hint = OutputLine::hanging(Line::styled(hint, theme.faint()), 2);
            lines.extend(wrap::rows(&hint, columns));
        }
        (lines, cursor.filter(|_| has_focus))
    }
}

fn editor_rows(editor: &mut Editor, columns: u16, theme: Theme) -> (Vec<Line<'static>>, Position) {
    let view = editor.render(columns.saturating_sub(2), EDITOR_ROWS, theme);
    let rows = view.rows.into_iter().enumerate().map(|(number, row)| {
        let mark = if number == 0 { "? " } else { "  " };
        let mut spans = vec![Span::styled(mark, theme.warning())];
        spans.extend(row.spans);
        Line::from(spans)
    });
    let rows = rows.collect();
    (rows, Position::new(view.cursor.x + 2, view.cursor.y))
}

/// The text that would run instead, and the hunks with what was decided about each.
fn draft_lines(
    draft: &CallDraft,
    columns: u16,
    theme: Theme,
    cleaner: &Cleaner,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(text) = draft.changed_text() {
        lines.push(Line::styled("  changed to:", theme.warning()));
        let all = text.lines().count();
        let width = usize::from(columns).saturating_sub(4);
        let shown = text.lines().take(CHANGED_LINES);
        lines.extend(shown.map(|line| Line::raw(format!("    {}", cleaner.line(line, width)))));
        if all > CHANGED_LINES {
            let more = format!("    … {} more lines", all - CHANGED_LINES);
            lines.push(Line::styled(more, theme.faint()));
        }
    }
    if !draft.hunks().is_empty() {
        let mut spans = vec![Span::raw("  hunks")];
        for (index, is_refused) in draft.hunks().iter().enumerate() {
            let cursor = match index == draft.selected() {
                true => "▸",
                false => " ",
            };
            let (mark, style) = match is_refused {
                true => ("✗", theme.error()),
                false => ("✓", theme.good()),
            };
            spans.push(Span::raw(format!(" {cursor}{}", index + 1)));
            spans.push(Span::styled(mark, style));
        }
        let hint = "   a number or space refuses one";
        spans.push(Span::styled(hint, theme.faint()));
        lines.extend(wrap::rows(&OutputLine::hanging(spans, 8), columns));
    }
    lines
}

/// Which of them are there follows the same conditions as `choose`.
fn choices(
    asked: &PermissionRequest,
    draft: Option<&CallDraft>,
    key_style: Style,
    columns: u16,
    cleaner: &Cleaner,
) -> Vec<Line<'static>> {
    let option = |key: &'static str, text: String| {
        OutputLine::hanging(
            vec![
                Span::raw("  "),
                Span::styled(key, key_style),
                Span::raw(format!(" {text}")),
            ],
            4,
        )
    };
    let refused = draft.map(CallDraft::refused).unwrap_or_default();
    let is_as_asked = draft.is_none_or(CallDraft::is_as_asked);
    let yes = match (is_as_asked, refused.as_slice()) {
        (true, _) => "yes, once".to_owned(),
        (false, []) => "yes, once, as changed".to_owned(),
        (false, numbers) => {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            format!("yes, once, without hunk {}", numbers.join(", "))
        }
    };
    let mut options = vec![option("y", yes)];
    if is_as_asked && !asked.suggested_rules.is_empty() {
        let rules = cleaner.clean(&asked.suggested_rules.join(", "));
        options.push(option("s", format!("yes, for this session: {rules}")));
        options.push(option("a", format!("always in this project: {rules}")));
    }
    if let Some(draft) = draft.filter(|draft| draft.can_edit()) {
        options.push(option("e", draft.offer().to_owned()));
    }
    options.push(option("n", "no".to_owned()));
    let rows = options.iter().flat_map(|line| wrap::rows(line, columns));
    rows.collect()
}

/// What is asked, as output: it stays where it was asked, whole, above the choices.
pub(crate) fn asked(
    request: &QuestionRequest,
    from: Option<&str>,
    columns: u16,
    theme: Theme,
    cleaner: &Cleaner,
) -> Vec<OutputLine> {
    let by = from.map_or_else(String::new, |name| format!("{} · ", cleaner.clean(name)));
    match request {
        QuestionRequest::Permission(asked) => permission(asked, &by, columns, theme, cleaner),
        QuestionRequest::Clarification(asked) => {
            let text = format!("? {by}{}", cleaner.clean(&asked.text));
            text.lines()
                .map(|line| OutputLine::hanging(Line::styled(line.to_owned(), theme.warning()), 2))
                .collect()
        }
        QuestionRequest::Elicitation(asked) => {
            let text = format!("? {by}{} asks: {}", asked.server, asked.message);
            let fields: Vec<String> = asked
                .fields()
                .into_iter()
                .map(|(name, _)| format!("{name}=…"))
                .collect();
            let text = cleaner.clean(&format!("{text}\n  {}", fields.join(" ")));
            text.lines()
                .map(|line| OutputLine::hanging(Line::styled(line.to_owned(), theme.warning()), 2))
                .collect()
        }
    }
}

/// The command in full, or the changed lines; then whether it is confined and why it is asked. A
/// command is shown as it would run, not as its summary says. Of an edit, each hunk is numbered as
/// the choices name them.
fn permission(
    asked: &PermissionRequest,
    by: &str,
    columns: u16,
    theme: Theme,
    cleaner: &Cleaner,
) -> Vec<OutputLine> {
    let heading = format!("? {by}{} wants:", asked.tool);
    let command = asked.input.get("command").and_then(|value| value.as_str());
    let what = command.unwrap_or(&asked.summary);
    let mut lines = vec![OutputLine::words(Line::styled(heading, theme.warning()))];
    let what = cleaner.clean(what);
    lines.extend(what.lines().map(|line| OutputLine::whole(line.to_owned())));
    let changes = changes(&asked.input);
    match (&asked.change, changes.is_empty()) {
        (Some(change), _) => {
            let count = change.hunks.len();
            for (index, hunk) in change.hunks.iter().enumerate() {
                let heading = format!("  hunk {} of {count}", index + 1);
                lines.push(OutputLine::words(Line::styled(heading, theme.faint())));
                lines.extend(hunk_lines(hunk, &change.path, columns, theme, cleaner));
            }
        }
        (None, false) => lines.extend(
            changes
                .iter()
                .flat_map(|change| diff(change, columns, theme, cleaner)),
        ),
        (None, true) => lines.extend(asked.preview.iter().flat_map(|preview| {
            let preview = cleaner.clean(preview);
            let lines: Vec<String> = preview.lines().map(str::to_owned).collect();
            lines
                .into_iter()
                .map(|line| OutputLine::whole(Line::styled(line, theme.faint())))
        })),
    }
    lines.extend(asked.confinement.map(|found| confinement(found, theme)));
    let reason = Line::styled(format!("  {}", cleaner.clean(&asked.reason)), theme.faint());
    lines.push(OutputLine::hanging(reason, 2));
    lines
}

fn hunk_lines(
    hunk: &ProposedHunk,
    path: &str,
    columns: u16,
    theme: Theme,
    cleaner: &Cleaner,
) -> Vec<OutputLine> {
    let change = Change {
        path: path.to_owned(),
        old: hunk.old.clone(),
        new: hunk.new.clone(),
        first_line: hunk.first_line,
    };
    diff(&change, columns, theme, cleaner)
}

fn confinement(found: Confinement, theme: Theme) -> OutputLine {
    let (text, style) = match found {
        Confinement::Sandboxed => ("  sandboxed", theme.faint()),
        Confinement::Unavailable => (
            "  NOT sandboxed: no sandbox works on this machine",
            theme.warning(),
        ),
        Confinement::SwitchedOff => (
            "  NOT sandboxed: the sandbox is switched off in the settings",
            theme.warning(),
        ),
    };
    OutputLine::hanging(Line::styled(text, style), 2)
}
