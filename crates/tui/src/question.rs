//! Questions of agents.
//!
//! A key that was meant for the composer must never answer a question. So a question has the focus
//! only while the composer is empty, no key came within a second, and it has been on the screen for
//! a moment. Any other key goes to the composer; then the user gives the question the focus with
//! Tab.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use codespar_protocol::{Answer, PermissionRequest, QuestionRequest};
use codespar_terminal::wrap::OutputLine;
use codespar_terminal::{
    Line, Position, Span, Style,
    editor::Editor,
    keys::{Key, KeyCode, Modifiers},
    theme::Theme,
};
use tokio::sync::oneshot;

use crate::{
    handle::QuestionReply,
    keymap::plain_char,
    text::Cleaner,
    tool_calls::{changes, diff},
};

/// A question takes the focus by itself only so long after the last key.
const QUIET: Duration = Duration::from_secs(1);
/// How long it must have been on the screen before a key can answer it.
const SEEN: Duration = Duration::from_millis(700);

/// Tells questions apart within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuestionNumber(u64);

impl QuestionNumber {
    pub(crate) fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// What decides whether a key is for the question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) last_key: Option<Instant>,
    pub(crate) composer_is_empty: bool,
}

/// What is being typed into the question.
enum Entry {
    /// A letter chooses.
    Choice,
    /// Why not.
    Reason(Editor),
    /// A clarification or the values of a form.
    Text(Editor),
}

/// The question that is shown.
pub(crate) struct OpenQuestion {
    pub(crate) number: QuestionNumber,
    request: QuestionRequest,
    reply: Option<oneshot::Sender<QuestionReply>>,
    shown_at: Instant,
    /// The user gave it the focus.
    is_chosen: bool,
    entry: Entry,
    /// What was wrong with the last answer.
    complaint: Option<String>,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It is for the composer.
    NotForUs,
    Open,
    Closed,
}

impl OpenQuestion {
    pub(crate) fn new(
        number: QuestionNumber,
        request: QuestionRequest,
        reply: oneshot::Sender<QuestionReply>,
        now: Instant,
    ) -> Self {
        let entry = match &request {
            QuestionRequest::Permission(_) => Entry::Choice,
            _ => Entry::Text(Editor::default()),
        };
        Self {
            number,
            request,
            reply: Some(reply),
            shown_at: now,
            is_chosen: false,
            entry,
            complaint: None,
        }
    }

    /// When it gets the focus by itself, unless a key comes before.
    fn focus_at(&self, last_key: Option<Instant>) -> Instant {
        let seen = self.shown_at + SEEN;
        last_key.map_or(seen, |at| seen.max(at + QUIET))
    }

    fn has_focus(&self, moment: &Moment) -> bool {
        let is_quiet = moment.now >= self.focus_at(moment.last_key);
        self.is_chosen || moment.composer_is_empty && is_quiet
    }

    /// When what is shown of it changes by itself.
    pub(crate) fn next_look(&self, moment: &Moment) -> Option<Duration> {
        if self.is_chosen || !moment.composer_is_empty {
            return None;
        }
        let at = self.focus_at(moment.last_key);
        at.checked_duration_since(moment.now)
            .filter(|left| !left.is_zero())
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    pub(crate) fn paste(&mut self, text: &str, moment: &Moment) -> Answered {
        if !self.has_focus(moment) {
            return Answered::NotForUs;
        }
        match &mut self.entry {
            // A paste never chooses.
            Entry::Choice => {
                self.is_chosen = false;
                return Answered::NotForUs;
            }
            Entry::Reason(editor) | Entry::Text(editor) => editor.paste(text),
        }
        Answered::Open
    }

    pub(crate) fn key(&mut self, key: &Key, moment: &Moment) -> Answered {
        let is_tab = key.code == KeyCode::Tab && key.modifiers == Modifiers::default();
        if !self.has_focus(moment) {
            self.is_chosen = is_tab;
            return match is_tab {
                true => Answered::Open,
                false => Answered::NotForUs,
            };
        }
        let is_cancel = key.code == KeyCode::Char('c') && key.modifiers.contains(Modifiers::CTRL);
        if is_cancel {
            return self.close(QuestionReply::Interrupted);
        }
        match &mut self.entry {
            Entry::Choice => self.choose(key),
            Entry::Reason(editor) => match key.code {
                KeyCode::Enter => {
                    let text = editor.text();
                    let text = text.trim();
                    let reason = (!text.is_empty()).then(|| format!("the user says: {text}"));
                    self.close(QuestionReply::Answer(Answer::No { reason }))
                }
                KeyCode::Esc => {
                    self.entry = Entry::Choice;
                    Answered::Open
                }
                _ => {
                    editor.handle(key);
                    Answered::Open
                }
            },
            Entry::Text(editor) => match key.code {
                KeyCode::Enter => {
                    self.is_chosen = true;
                    let typed = editor.text();
                    match self.request.parse_answer(&typed) {
                        Ok(answer) => self.close(QuestionReply::Answer(answer)),
                        Err(wanted) => {
                            self.complaint = Some(wanted);
                            Answered::Open
                        }
                    }
                }
                KeyCode::Esc => self.close(QuestionReply::Answer(Answer::No { reason: None })),
                _ => {
                    self.is_chosen = true;
                    editor.handle(key);
                    Answered::Open
                }
            },
        }
    }

    fn choose(&mut self, key: &Key) -> Answered {
        if key.code == KeyCode::Esc {
            return self.close(QuestionReply::Answer(Answer::No { reason: None }));
        }
        let has_rules = match &self.request {
            QuestionRequest::Permission(asked) => !asked.suggested_rules.is_empty(),
            _ => false,
        };
        match plain_char(key) {
            Some('y') => self.close(QuestionReply::Answer(Answer::Once)),
            Some('s') if has_rules => self.close(QuestionReply::ForSession),
            Some('a') if has_rules => self.close(QuestionReply::Answer(Answer::Always)),
            Some('n') => {
                self.entry = Entry::Reason(Editor::default());
                self.is_chosen = true;
                Answered::Open
            }
            // The beginning of a message.
            _ => {
                self.is_chosen = false;
                Answered::NotForUs
            }
        }
    }

    fn close(&mut self, reply: QuestionReply) -> Answered {
        if let Some(waiting) = self.reply.take() {
            let _ = waiting.send(reply);
        }
        Answered::Closed
    }

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
            lines.push(Line::styled(cleaner.clean(complaint), theme.warning()));
        }
        match &mut self.entry {
            Entry::Choice => {
                let style = match has_focus {
                    true => theme.heading(),
                    false => theme.faint(),
                };
                lines.extend(choices(&self.request, style, columns, cleaner));
            }
            Entry::Reason(editor) | Entry::Text(editor) => {
                let view = editor.render(columns.saturating_sub(2), 4, theme);
                let top = lines.len() as u16;
                for (number, row) in view.rows.into_iter().enumerate() {
                    let mark = if number == 0 { "? " } else { "  " };
                    let mut spans = vec![Span::styled(mark, theme.warning())];
                    spans.extend(row.spans);
                    lines.push(Line::from(spans));
                }
                cursor = Some(Position::new(view.cursor.x + 2, view.cursor.y + top));
            }
        }
        let hint = match (&self.entry, has_focus) {
            (_, false) => "  tab answers this question",
            (Entry::Choice, true) => "",
            (Entry::Reason(_), true) => "  why not, for the model · enter sends · esc goes back",
            (Entry::Text(_), true) => "  enter answers · esc declines",
        };
        if !hint.is_empty() {
            lines.push(Line::styled(hint, theme.faint()));
        }
        (lines, cursor.filter(|_| has_focus))
    }
}

fn choices(
    request: &QuestionRequest,
    key_style: Style,
    columns: u16,
    cleaner: &Cleaner,
) -> Vec<Line<'static>> {
    let QuestionRequest::Permission(asked) = request else {
        return Vec::new();
    };
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
    let mut options = vec![option("y", "yes, once".to_owned())];
    if !asked.suggested_rules.is_empty() {
        let rules = cleaner.clean(&asked.suggested_rules.join(", "));
        options.push(option("s", format!("yes, for this session: {rules}")));
        options.push(option("a", format!("always in this project: {rules}")));
    }
    options.push(option("n", "no".to_owned()));
    let rows = options
        .iter()
        .flat_map(|line| codespar_terminal::wrap::rows(line, columns));
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

/// The command in full, or the changed lines; then why it is asked.
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
    match changes.is_empty() {
        false => lines.extend(
            changes
                .iter()
                .flat_map(|change| diff(change, columns, theme, cleaner)),
        ),
        true => lines.extend(asked.preview.iter().flat_map(|preview| {
            let preview = cleaner.clean(preview);
            let lines: Vec<String> = preview.lines().map(str::to_owned).collect();
            lines
                .into_iter()
                .map(|line| OutputLine::whole(Line::styled(line, theme.faint())))
        })),
    }
    let reason = Line::styled(format!("  {}", cleaner.clean(&asked.reason)), theme.faint());
    lines.push(OutputLine::hanging(reason, 2));
    lines
}
