//! What a key does in the list.
//!
//! Stopping asks first, and only `y` confirms. A message has an editor of its own, whose text
//! survives leaving it with Esc.

use codespar_protocol::TaskId;
use codespar_terminal::{
    editor::Editor,
    keys::{Key, KeyCode, Modifiers},
};

use super::{Entry, Scope, TaskPane};
use crate::{UserAction, keymap::plain_char};

/// Rows that the page keys move by.
const PAGE: usize = 10;

/// What a key came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PaneKey {
    Stays,
    Closes,
    Acts(UserAction),
    /// It means nothing here.
    Unknown,
}

/// Where the selection goes.
#[derive(Clone, Copy)]
enum Step {
    Back(usize),
    Forward(usize),
}

impl TaskPane {
    /// The entry goes back to browsing unless the key keeps it.
    pub(crate) fn key(&mut self, key: &Key) -> PaneKey {
        self.awaits_quiet = false;
        self.note = None;
        match std::mem::replace(&mut self.entry, Entry::Browse) {
            Entry::Browse => self.browse(key),
            Entry::Stop(id) => self.confirm(id, key),
            Entry::Message(id, editor) => self.type_message(id, editor, key),
        }
    }

    /// Whether the text is for a message; a paste never does anything else.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        match &mut self.entry {
            Entry::Message(_, editor) => {
                editor.paste(text);
                true
            }
            Entry::Browse | Entry::Stop(_) => false,
        }
    }

    fn browse(&mut self, key: &Key) -> PaneKey {
        if is_cancel(key) {
            return PaneKey::Closes;
        }
        if key.modifiers != Modifiers::default() && plain_char(key).is_none() {
            return PaneKey::Unknown;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return PaneKey::Closes,
            KeyCode::Up | KeyCode::Char('k') => self.go(Step::Back(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go(Step::Forward(1)),
            KeyCode::PageUp => self.go(Step::Back(PAGE)),
            KeyCode::PageDown => self.go(Step::Forward(PAGE)),
            KeyCode::Home | KeyCode::Char('g') => self.go(Step::Back(usize::MAX)),
            KeyCode::End | KeyCode::Char('G') => self.go(Step::Forward(usize::MAX)),
            KeyCode::Enter | KeyCode::Char(' ') => self.toggle(),
            KeyCode::Right | KeyCode::Char('l') => self.expand(),
            KeyCode::Left | KeyCode::Char('h') => self.collapse(),
            KeyCode::Char('f') => self.change_scope(),
            KeyCode::Char('s') => self.ask_to_stop(),
            KeyCode::Char('m') => self.begin_message(),
            KeyCode::Char('o') => return self.open(),
            _ => return PaneKey::Unknown,
        }
        PaneKey::Stays
    }

    fn go(&mut self, step: Step) {
        let last = self.places.len().saturating_sub(1);
        self.selected = match step {
            Step::Back(rows) => self.selected.saturating_sub(rows),
            Step::Forward(rows) => self.selected.saturating_add(rows).min(last),
        };
    }

    fn toggle(&mut self) {
        let Some(row) = self.selected_row() else {
            return;
        };
        let id = row.id.clone();
        if !self.expanded.remove(&id) {
            self.expanded.insert(id);
        }
    }

    fn expand(&mut self) {
        if let Some(row) = self.selected_row() {
            let id = row.id.clone();
            self.expanded.insert(id);
        }
    }

    /// A row that is not expanded leads to its parent.
    fn collapse(&mut self) {
        let Some(row) = self.selected_row() else {
            return;
        };
        let id = row.id.clone();
        if self.expanded.remove(&id) {
            return;
        }
        let depth = self.places[self.selected].depth;
        let above = self.places[..self.selected].iter();
        if let Some(parent) = above.clone().rposition(|place| place.depth < depth) {
            self.selected = parent;
        }
    }

    fn change_scope(&mut self) {
        let selected = self.selected_row().map(|row| row.id.clone());
        self.scope = match self.scope {
            Scope::All => Scope::Unfinished,
            Scope::Unfinished => Scope::All,
        };
        self.arrange(selected.as_ref());
    }

    fn ask_to_stop(&mut self) {
        let Some(row) = self.selected_row() else {
            return;
        };
        match row.state.is_final() {
            true => self.note = Some(format!("{} is over", row.id)),
            false => self.entry = Entry::Stop(row.id.clone()),
        }
    }

    /// Only `y` stops; the task may have ended while the question was there.
    fn confirm(&mut self, id: TaskId, key: &Key) -> PaneKey {
        if plain_char(key) != Some('y') {
            return PaneKey::Stays;
        }
        if self.find(&id).is_none_or(|row| row.state.is_final()) {
            self.note = Some(format!("{id} is over"));
            return PaneKey::Stays;
        }
        self.note = Some(format!("stopping {id}"));
        PaneKey::Acts(UserAction::StopTask(id))
    }

    fn begin_message(&mut self) {
        let Some(row) = self.selected_row() else {
            return;
        };
        let id = row.id.clone();
        if !row.accepts_messages {
            self.note = Some(format!("{id} takes no messages"));
            return;
        }
        let begun = self.draft.take_if(|(to, _)| *to == id);
        let editor = begun.map_or_else(Box::<Editor>::default, |(_, editor)| editor);
        self.entry = Entry::Message(id, editor);
    }

    /// Enter alone sends; a new line is typed with the keys of the editor.
    fn type_message(&mut self, id: TaskId, mut editor: Box<Editor>, key: &Key) -> PaneKey {
        if key.code == KeyCode::Esc || is_cancel(key) {
            self.draft = (!editor.is_empty()).then_some((id, editor));
            return PaneKey::Stays;
        }
        let is_enter = *key == Key::plain(KeyCode::Enter);
        if !is_enter {
            editor.handle(key);
            self.entry = Entry::Message(id, editor);
            return PaneKey::Stays;
        }
        let text = editor.text();
        let text = text.trim();
        if text.is_empty() {
            return PaneKey::Stays;
        }
        self.note = Some(format!("sent to {id}"));
        PaneKey::Acts(UserAction::MessageTask(id, text.to_owned()))
    }

    fn open(&self) -> PaneKey {
        match self.selected_row() {
            Some(row) => PaneKey::Acts(UserAction::OpenTask(row.id.clone())),
            None => PaneKey::Stays,
        }
    }
}

fn is_cancel(key: &Key) -> bool {
    let is_letter = matches!(key.code, KeyCode::Char('c' | 'd'));
    is_letter && key.modifiers.contains(Modifiers::CTRL)
}
