//! The text being typed, with its history, the search in it and completion.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_terminal::{
    Line, Position, Span,
    editor::{EditCommand, EditMode, Edited, Editor, EditorDraft, VimState},
    history::History,
    keys::{Key, KeyCode, Modifiers},
    theme::Theme,
    width,
};

use crate::{
    completion::{Completion, CompletionSource},
    draft::DraftFile,
    keymap::plain_char,
    layout::{Keep, Part},
};

/// A draft is written so long after the first change that it lacks, so at most about three times a
/// second.
const DRAFT_DELAY: Duration = Duration::from_millis(300);

/// The editor with what belongs to it.
pub(crate) struct Composer {
    editor: Editor,
    mode: EditMode,
    history: History,
    search: Option<Search>,
    completion: Option<Completion>,
    source: Arc<dyn CompletionSource>,
    draft: Option<DraftFile>,
    /// The draft is older than the text since then.
    changed_at: Option<Instant>,
}

/// A search in the history.
struct Search {
    query: String,
    /// How many newer matches were passed over.
    skip: usize,
    /// The text before the search.
    before: String,
}

impl Composer {
    pub(crate) fn new(
        history: History,
        draft: Option<DraftFile>,
        source: Arc<dyn CompletionSource>,
    ) -> Self {
        let left = draft.as_ref().and_then(DraftFile::load);
        Self {
            editor: left.as_ref().map(Editor::from_draft).unwrap_or_default(),
            mode: EditMode::default(),
            history,
            search: None,
            completion: None,
            source,
            draft,
            changed_at: None,
        }
    }

    pub(crate) fn with_mode(mut self, mode: EditMode) -> Self {
        self.mode = mode;
        self.editor.set_mode(mode);
        self
    }

    /// `None` outside of vim mode.
    pub(crate) fn vim_state(&self) -> Option<VimState> {
        self.editor.vim_state()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// With long pastes in full: what is sent, not what is shown.
    pub(crate) fn text(&self) -> String {
        self.editor.text()
    }

    /// The text, which goes to the history; the editor is empty after that. The draft on disk goes
    /// at once: a text that was sent must not come back after a crash.
    pub(crate) fn take(&mut self, now: Instant) -> String {
        let text = self.editor.text();
        self.history.push(&text);
        self.editor.clear();
        // The next text begins in insert state.
        self.editor.set_mode(self.mode);
        self.completion = None;
        self.search = None;
        self.changed_at = Some(now);
        self.save_draft();
        text
    }

    /// The text as it is typed, long pastes as chips.
    pub(crate) fn draft(&self) -> EditorDraft {
        self.editor.draft()
    }

    /// Another text takes the place of this one, with its own chips.
    pub(crate) fn load(&mut self, draft: &EditorDraft, now: Instant) {
        self.editor.load(draft);
        self.changed(now);
    }

    pub(crate) fn set_text(&mut self, text: &str, now: Instant) {
        self.editor.set_text(text);
        self.changed(now);
    }

    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        self.editor.paste(text);
        self.changed(now);
    }

    /// The path of a file that goes with the message, as one unit.
    pub(crate) fn insert_file(&mut self, path: &str, now: Instant) {
        self.editor.insert_file(path);
        self.changed(now);
    }

    /// The time of the first change that is not on disk stays.
    fn changed(&mut self, now: Instant) {
        self.completion = Completion::of(self.editor.before_cursor(), &*self.source);
        self.changed_at.get_or_insert(now);
    }

    /// When the draft has to be written.
    pub(crate) fn next_save(&self, now: Instant) -> Option<Duration> {
        let due = self.changed_at? + DRAFT_DELAY;
        Some(due.saturating_duration_since(now))
    }

    pub(crate) fn save_if_due(&mut self, now: Instant) {
        if self.next_save(now) == Some(Duration::ZERO) {
            self.save_draft();
        }
    }

    pub(crate) fn save_draft(&mut self) {
        if self.changed_at.take().is_some()
            && let Some(draft) = &self.draft
        {
            draft.save(&self.editor);
        }
    }

    /// Again while searching: the next older match.
    pub(crate) fn begin_search(&mut self) {
        match &mut self.search {
            Some(search) => search.skip += 1,
            None => {
                self.search = Some(Search {
                    query: String::new(),
                    skip: 0,
                    before: self.editor.text(),
                });
            }
        }
        self.completion = None;
    }

    pub(crate) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Whether a list of suggestions is open, which takes Tab, Enter and the arrows.
    pub(crate) fn is_completing(&self) -> bool {
        self.completion.is_some()
    }

    /// Keys of the search: typing narrows it, Enter and the arrows take what was found, Esc goes
    /// back.
    fn search_key(&mut self, key: &Key, now: Instant) {
        let Some(search) = &mut self.search else {
            return;
        };
        match key.code {
            KeyCode::Esc => {
                let before = std::mem::take(&mut search.before);
                self.search = None;
                self.editor.set_text(&before);
                return;
            }
            KeyCode::Backspace => {
                search.query.pop();
                search.skip = 0;
            }
            KeyCode::Char('c') if key.modifiers.contains(Modifiers::CTRL) => {
                let before = std::mem::take(&mut search.before);
                self.search = None;
                self.editor.set_text(&before);
                return;
            }
            _ => match plain_char(key) {
                Some(c) => {
                    search.query.push(c);
                    search.skip = 0;
                }
                None => {
                    self.search = None;
                    self.changed(now);
                    return;
                }
            },
        }
        self.show_found();
    }

    /// The match is shown in the editor itself, where it can be sent or edited. The text before the
    /// search comes back with Esc.
    pub(crate) fn show_found(&mut self) {
        let Some(search) = &mut self.search else {
            return;
        };
        if search.query.is_empty() {
            return;
        }
        let mut matches = self.history.search(&search.query);
        let found = matches.nth(search.skip).map(str::to_owned);
        match found {
            Some(text) => self.editor.set_text(&text),
            // The oldest one stays.
            None => search.skip = search.skip.saturating_sub(1),
        }
    }

    /// Whether the key was for the text. In the order search, completion, editor, history. What
    /// nobody takes is for the caller.
    pub(crate) fn key(&mut self, key: &Key, now: Instant) -> bool {
        if self.search.is_some() {
            self.search_key(key, now);
            return true;
        }
        if let Some(completion) = &mut self.completion
            && key.modifiers == Modifiers::default()
        {
            match key.code {
                KeyCode::Up => {
                    completion.up();
                    return true;
                }
                KeyCode::Down => {
                    completion.down();
                    return true;
                }
                KeyCode::Tab => {
                    self.complete(now);
                    return true;
                }
                KeyCode::Esc => {
                    self.completion = None;
                    return true;
                }
                _ => {}
            }
        }
        match self.editor.handle(key) {
            Edited::Changed => {
                self.history.stop_walking();
                self.changed(now);
            }
            Edited::Moved => {
                self.completion = None;
            }
            Edited::Ignored => return self.history_key(key),
        }
        true
    }

    /// Enter takes a suggestion that completes a command, and nothing else.
    pub(crate) fn complete_command(&mut self, now: Instant) {
        if self.editor.before_cursor().starts_with('/') && self.completion.is_some() {
            self.complete(now);
        }
        self.completion = None;
    }

    fn complete(&mut self, now: Instant) {
        if let Some(completion) = self.completion.take() {
            let chosen = completion.chosen();
            self.editor
                .replace_before_cursor(completion.replaces, &chosen);
            self.changed(now);
            if !chosen.ends_with('/') {
                self.completion = None;
            }
        }
    }

    /// For keys that the editor has no use for: on the first and last row, those that move up and
    /// down.
    fn history_key(&mut self, key: &Key) -> bool {
        let command = match (key.code, self.vim_state()) {
            (KeyCode::Char('k'), Some(VimState::Normal)) => Some(EditCommand::Up),
            (KeyCode::Char('j'), Some(VimState::Normal)) => Some(EditCommand::Down),
            _ => EditCommand::of(key),
        };
        let draft = match command {
            Some(EditCommand::Up) => self.history.previous(&self.editor.draft()),
            Some(EditCommand::Down) => self.history.next(),
            _ => return false,
        };
        if let Some(draft) = draft {
            self.editor.load(&draft);
        }
        true
    }

    /// The text with its prompt, then suggestions or the search. `rows` is for the text alone;
    /// suggestions come below it and are cut first.
    pub(crate) fn parts(&mut self, columns: u16, rows: u16, theme: Theme) -> Vec<Part> {
        let inner = columns.saturating_sub(2).max(1);
        let view = self.editor.render(inner, rows.max(1), theme);
        let mut lines: Vec<Line<'static>> = Vec::new();
        for (number, row) in view.rows.into_iter().enumerate() {
            let mark = if number == 0 { "› " } else { "  " };
            let mut spans = vec![Span::styled(mark, theme.accent())];
            spans.extend(row.spans);
            lines.push(Line::from(spans));
        }
        if self.editor.is_empty() && self.search.is_none() {
            let hint = "ask for anything, /help shows the commands";
            let hint = width::shortened(hint, usize::from(inner));
            lines = vec![Line::from(vec![
                Span::styled("› ", theme.accent()),
                Span::styled(hint, theme.faint()),
            ])];
        }
        let mut parts = vec![Part {
            lines,
            cursor: Some(Position::new(view.cursor.x + 2, view.cursor.y)),
            keep: Keep::All,
        }];
        if let Some(search) = &self.search {
            let text = format!("  search: {}", search.query);
            let text = width::shortened(&text, usize::from(columns));
            parts.push(Part {
                lines: vec![Line::styled(text, theme.accent())],
                cursor: None,
                keep: Keep::All,
            });
        } else if let Some(completion) = &self.completion {
            parts.push(Part {
                lines: completion.lines(columns, theme),
                cursor: None,
                keep: Keep::Beginning,
            });
        }
        parts
    }
}
