//! Questions of agents.
//!
//! A key that was meant for the composer must never answer a question. So a question has the focus
//! only while the composer is empty, no key came within a second, and it has been on the screen for
//! a moment. Any other key goes to the composer; then the user gives the question the focus with
//! Tab.
//!
//! The same holds for a call that the user edits: a message that begins with an `e` may have been
//! meant for the composer, and its Enter too. So Enter in the editor takes the text and approves
//! nothing; what would run is shown, keys are discarded for a moment, and then `y` approves it. The
//! same after a hunk was chosen: a message may begin with a number.

mod call_draft;
mod view;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use codespar_policy::Rule;
use codespar_protocol::{Answer, QuestionRequest};
use codespar_terminal::{
    editor::Editor,
    keys::{Key, KeyCode, Modifiers},
};
use tokio::sync::oneshot;

use crate::{handle::QuestionReply, keymap::plain_char};
use call_draft::CallDraft;
pub(crate) use view::asked;

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
    /// The command or the text of the call.
    Call(Editor),
    /// The rules, one in each line.
    Rules(Editor, RuleScope),
}

/// How long rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleScope {
    Project,
    Session,
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
    /// What the user changed so far; for permissions.
    draft: Option<CallDraft>,
    /// Until then keys are discarded: the call that they would approve has just changed.
    deaf_until: Option<Instant>,
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
        let (entry, draft) = match &request {
            QuestionRequest::Permission(asked) => (Entry::Choice, Some(CallDraft::new(asked))),
            _ => (Entry::Text(Editor::default()), None),
        };
        Self {
            number,
            request,
            reply: Some(reply),
            shown_at: now,
            is_chosen: false,
            entry,
            draft,
            deaf_until: None,
            complaint: None,
        }
    }

    /// It was hidden, and is on the screen again: from now on it can be seen.
    pub(crate) fn uncover(&mut self, now: Instant) {
        self.shown_at = now;
    }

    /// When it gets the focus by itself, unless a key comes before.
    fn focus_at(&self, last_key: Option<Instant>) -> Instant {
        let seen = self.shown_at + SEEN;
        last_key.map_or(seen, |at| seen.max(at + QUIET))
    }

    /// `is_chosen` overrides the timing: the user pressed Tab, or is typing into it.
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
            Entry::Reason(editor)
            | Entry::Text(editor)
            | Entry::Call(editor)
            | Entry::Rules(editor, _) => editor.paste(text),
        }
        Answered::Open
    }

    /// A key that is not for the question takes the focus away from it that Tab gave.
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
        let is_deaf = self.is_deaf(key, moment.now);
        let is_enter = key.code == KeyCode::Enter && key.modifiers == Modifiers::default();
        match &mut self.entry {
            Entry::Choice
                if self
                    .draft
                    .as_mut()
                    .is_some_and(|draft| choose_hunk(draft, key)) =>
            {
                self.complaint = None;
                self.is_chosen = true;
                self.discard_keys(moment.now)
            }
            Entry::Choice if is_deaf => self.discard_keys(moment.now),
            Entry::Choice => self.choose(key),
            Entry::Text(_) if key.code == KeyCode::Esc => {
                self.close(QuestionReply::Answer(Answer::No { reason: None }))
            }
            _ if key.code == KeyCode::Esc => self.back(),
            _ if is_enter => self.entered(moment.now),
            Entry::Rules(_, scope) if is_tab => {
                *scope = match scope {
                    RuleScope::Project => RuleScope::Session,
                    RuleScope::Session => RuleScope::Project,
                };
                Answered::Open
            }
            Entry::Reason(editor)
            | Entry::Text(editor)
            | Entry::Call(editor)
            | Entry::Rules(editor, _) => {
                self.is_chosen = true;
                editor.handle(key);
                Answered::Open
            }
        }
    }

    /// Whether the call changed just now, so that a key may have been meant for what it was before.
    /// Esc can do no harm.
    fn is_deaf(&self, key: &Key, now: Instant) -> bool {
        key.code != KeyCode::Esc && self.deaf_until.is_some_and(|until| now < until)
    }

    /// Until none came for a moment.
    fn discard_keys(&mut self, now: Instant) -> Answered {
        self.deaf_until = Some(now + SEEN);
        Answered::Open
    }

    fn back(&mut self) -> Answered {
        self.entry = Entry::Choice;
        self.complaint = None;
        Answered::Open
    }

    /// Enter in an editor. A wrong answer (a form that lacks a field, a rule that cannot be read)
    /// is told, and the text stays.
    fn entered(&mut self, now: Instant) -> Answered {
        self.is_chosen = true;
        let answer = match &mut self.entry {
            Entry::Choice => return Answered::Open,
            Entry::Reason(editor) => {
                let text = editor.text();
                let text = text.trim();
                let reason = (!text.is_empty()).then(|| format!("the user says: {text}"));
                Ok(QuestionReply::Answer(Answer::No { reason }))
            }
            Entry::Text(editor) => {
                let typed = editor.text();
                self.request.parse_answer(&typed).map(QuestionReply::Answer)
            }
            Entry::Call(editor) => {
                let text = editor.text();
                match self.draft.as_mut().map(|draft| draft.set_text(&text)) {
                    Some(Err(wrong)) => Err(wrong),
                    _ => {
                        self.back();
                        return self.discard_keys(now);
                    }
                }
            }
            Entry::Rules(editor, scope) => {
                let (typed, scope) = (editor.text(), *scope);
                self.by_rules(&typed, scope)
            }
        };
        match answer {
            Ok(reply) => self.close(reply),
            Err(wrong) => {
                self.complaint = Some(wrong);
                Answered::Open
            }
        }
    }

    /// The error says which rule is wrong, and how it could be written. Unchanged suggestions are
    /// answered as such, so that they are recorded as they were suggested.
    fn by_rules(&self, typed: &str, scope: RuleScope) -> Result<QuestionReply, String> {
        let lines = typed.lines().map(str::trim).filter(|line| !line.is_empty());
        let rules: Vec<String> = lines.map(str::to_owned).collect();
        for rule in &rules {
            Rule::parse(rule).map_err(|error| error.to_string())?;
        }
        let are_suggested = rules == self.suggested_rules();
        Ok(match (scope, are_suggested) {
            _ if rules.is_empty() => return Err("write a rule, or go back with esc".to_owned()),
            (RuleScope::Project, true) => QuestionReply::Answer(Answer::Always),
            (RuleScope::Session, true) => QuestionReply::ForSession,
            (RuleScope::Project, false) => QuestionReply::Answer(Answer::AlwaysBy { rules }),
            (RuleScope::Session, false) => QuestionReply::ForSessionBy(rules),
        })
    }

    fn suggested_rules(&self) -> &[String] {
        match &self.request {
            QuestionRequest::Permission(asked) => &asked.suggested_rules,
            _ => &[],
        }
    }

    /// Rules are offered only for the call as it was asked about: they were derived from it.
    fn choose(&mut self, key: &Key) -> Answered {
        if key.code == KeyCode::Esc {
            return self.close(QuestionReply::Answer(Answer::No { reason: None }));
        }
        let Some(draft) = &self.draft else {
            return Answered::NotForUs;
        };
        let (can_edit, is_as_asked) = (draft.can_edit(), draft.is_as_asked());
        let has_rules = is_as_asked && !self.suggested_rules().is_empty();
        match plain_char(key) {
            Some('y') => match self.draft.as_ref().map(CallDraft::approval) {
                Some(Ok(answer)) => self.close(QuestionReply::Answer(answer)),
                Some(Err(wrong)) => {
                    self.complaint = Some(wrong);
                    Answered::Open
                }
                None => Answered::NotForUs,
            },
            Some('s') if has_rules => self.close(QuestionReply::ForSession),
            // Where no call is behind the question its rules are only a description.
            Some('a') if has_rules && !can_edit => {
                self.close(QuestionReply::Answer(Answer::Always))
            }
            Some('a') if has_rules => {
                let rules = self.suggested_rules().join("\n");
                self.edit(Entry::Rules(with_text(&rules), RuleScope::Project))
            }
            Some('e') if can_edit => {
                let text = self.draft.as_ref().map(CallDraft::text);
                self.edit(Entry::Call(with_text(&text.unwrap_or_default())))
            }
            Some('n') => self.edit(Entry::Reason(Editor::default())),
            // The beginning of a message.
            _ => {
                self.is_chosen = false;
                Answered::NotForUs
            }
        }
    }

    fn edit(&mut self, entry: Entry) -> Answered {
        self.entry = entry;
        self.is_chosen = true;
        self.complaint = None;
        Answered::Open
    }

    /// Nobody may be waiting any more, which is no error.
    fn close(&mut self, reply: QuestionReply) -> Answered {
        if let Some(waiting) = self.reply.take() {
            let _ = waiting.send(reply);
        }
        Answered::Closed
    }
}

fn with_text(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.set_text(text);
    editor
}

/// Whether the key is about hunks.
fn choose_hunk(draft: &mut CallDraft, key: &Key) -> bool {
    if draft.hunks().is_empty() {
        return false;
    }
    match (key.code, plain_char(key)) {
        (KeyCode::Up | KeyCode::Left, _) => draft.select(-1),
        (KeyCode::Down | KeyCode::Right, _) => draft.select(1),
        (_, Some(' ')) => return draft.toggle(draft.selected()),
        (_, Some(digit)) => {
            let number = digit.to_digit(10).and_then(|number| number.checked_sub(1));
            return number.is_some_and(|index| draft.toggle(index as usize));
        }
        _ => return false,
    }
    true
}
