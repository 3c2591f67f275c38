//! Messages that wait for the end of the turn. Each can be edited, dropped and moved.
//!
//! A queued message is still the user's: it goes to the agent only when the turn is over. The
//! selection begins only from an empty composer, so no text is lost by it.

use std::collections::VecDeque;

use codespar_terminal::{
    Line,
    editor::EditorDraft,
    keys::{Key, KeyCode, Modifiers},
    theme::Theme,
    width,
};

/// Messages that are shown at once.
const SHOWN: usize = 5;
/// Columns of a message that are kept to be shown.
const BEGINNING: usize = 400;

/// A message that waits.
struct Queued {
    /// As it was typed: a long paste is still a chip when the message is edited.
    draft: EditorDraft,
    /// What is shown of it.
    beginning: String,
}

impl Queued {
    fn new(draft: EditorDraft) -> Self {
        let text = draft.text();
        let first = text.lines().find(|line| !line.trim().is_empty());
        let beginning = width::shortened(first.unwrap_or_default(), BEGINNING);
        Self { draft, beginning }
    }
}

/// Messages in the order in which they will be sent.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Queued>,
    selected: Option<usize>,
    /// Where the message was that is in the composer now.
    edited: Option<usize>,
}

/// What a key came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueueKey {
    Done,
    /// This message is to be edited in the composer.
    Edit(EditorDraft),
    NotForUs,
}

impl Queue {
    /// At the end, or where it was before it was edited.
    pub(crate) fn push(&mut self, message: EditorDraft) {
        let end = self.waiting.len();
        let at = self.edited.take().map_or(end, |at| at.min(end));
        self.waiting.insert(at, Queued::new(message));
        self.selected = None;
    }

    /// The selection and the remembered place move along, since all messages have one place less.
    pub(crate) fn next(&mut self) -> Option<String> {
        let message = self.waiting.pop_front()?;
        self.selected = self.selected.and_then(|at| at.checked_sub(1));
        self.edited = self.edited.map(|at| at.saturating_sub(1));
        Some(message.draft.text())
    }

    pub(crate) fn is_selecting(&self) -> bool {
        self.selected.is_some()
    }

    pub(crate) fn select_nothing(&mut self) {
        self.selected = None;
    }

    /// What was being edited is not in the composer any more.
    pub(crate) fn forget_place(&mut self) {
        self.edited = None;
    }

    /// While the composer is empty. Up begins with the last message; beyond the first is the
    /// history.
    pub(crate) fn key(&mut self, key: &Key) -> QueueKey {
        let Some(at) = self.selected else {
            let is_up = *key == Key::plain(KeyCode::Up);
            self.selected = self.waiting.len().checked_sub(1).filter(|_| is_up);
            return match self.selected {
                Some(_) => QueueKey::Done,
                None => QueueKey::NotForUs,
            };
        };
        let last = self.waiting.len().saturating_sub(1);
        if key.modifiers == Modifiers::ALT {
            return self.move_to(match key.code {
                KeyCode::Up => at.checked_sub(1).unwrap_or(at),
                KeyCode::Down => (at + 1).min(last),
                _ => return self.leave(QueueKey::NotForUs),
            });
        }
        if !key.modifiers.is_empty() {
            return self.leave(QueueKey::NotForUs);
        }
        match key.code {
            KeyCode::Up if at > 0 => self.selected = Some(at - 1),
            KeyCode::Down => self.selected = Some(at + 1).filter(|next| *next <= last),
            KeyCode::Delete | KeyCode::Backspace => {
                self.waiting.remove(at);
                self.selected = last.checked_sub(1).map(|last| at.min(last));
            }
            KeyCode::Enter => return self.edit(at),
            KeyCode::Esc => return self.leave(QueueKey::Done),
            _ => return self.leave(QueueKey::NotForUs),
        }
        QueueKey::Done
    }

    fn leave(&mut self, came_to: QueueKey) -> QueueKey {
        self.selected = None;
        came_to
    }

    fn move_to(&mut self, to: usize) -> QueueKey {
        if let Some(at) = self.selected.replace(to) {
            self.waiting.swap(at, to);
        }
        QueueKey::Done
    }

    /// It leaves the queue while it is edited. If it is sent back to the queue it gets its place
    /// again.
    fn edit(&mut self, at: usize) -> QueueKey {
        self.selected = None;
        match self.waiting.remove(at) {
            Some(message) => {
                self.edited = Some(at);
                QueueKey::Edit(message.draft)
            }
            None => QueueKey::Done,
        }
    }

    /// Those around the selected one, or the first, with their places.
    pub(crate) fn lines(&self, columns: u16, theme: Theme) -> Vec<Line<'static>> {
        let columns = usize::from(columns);
        let count = self.waiting.len();
        let middle = self.selected.unwrap_or(0).saturating_sub(SHOWN / 2);
        let first = middle.min(count.saturating_sub(SHOWN));
        let shown = self.waiting.iter().enumerate().skip(first).take(SHOWN);
        let mut lines: Vec<Line<'static>> = shown
            .map(|(at, message)| {
                let (mark, style) = match self.selected == Some(at) {
                    true => ("›", theme.accent()),
                    false => (" ", theme.faint()),
                };
                let text = format!("{mark} queued {}: {}", at + 1, message.beginning);
                Line::styled(width::shortened(&text, columns), style)
            })
            .collect();
        if count > SHOWN {
            let text = format!("  {count} messages are queued");
            lines.push(Line::styled(text, theme.faint()));
        }
        if self.is_selecting() {
            let text = "  enter edits · delete drops · alt-up and alt-down move · esc goes back";
            let text = width::shortened(text, columns);
            lines.push(Line::styled(text, theme.faint()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn queue(texts: &[&str]) -> Queue {
        let mut queue = Queue::default();
        for text in texts {
            queue.push(EditorDraft::from(*text));
        }
        queue
    }

    fn press(queue: &mut Queue, keys: &[&str]) -> QueueKey {
        let mut came_to = QueueKey::Done;
        for key in keys {
            came_to = queue.key(&Key::from_str(key).unwrap());
        }
        came_to
    }

    fn sent(mut queue: Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.next()).collect()
    }

    #[test]
    fn any_message_can_be_dropped() {
        for (keys, left) in [
            (&["up", "delete"][..], ["one", "two"]),
            (&["up", "up", "backspace"], ["one", "three"]),
            (&["up", "up", "up", "delete"], ["two", "three"]),
        ] {
            let mut queue = queue(&["one", "two", "three"]);
            assert_eq!(press(&mut queue, keys), QueueKey::Done);
            assert_eq!(sent(queue), left);
        }
        let mut queue = queue(&["one"]);
        press(&mut queue, &["up", "delete"]);
        assert!(!queue.is_selecting());
        assert_eq!(press(&mut queue, &["up"]), QueueKey::NotForUs);
    }

    #[test]
    fn any_message_can_be_moved_and_stays_selected() {
        let mut queue = queue(&["one", "two", "three"]);
        press(&mut queue, &["up", "alt-up", "alt-up", "alt-up"]);
        assert_eq!(queue.selected, Some(0));
        press(&mut queue, &["down", "alt-down", "alt-down"]);
        assert_eq!(sent(queue), ["three", "two", "one"]);
    }

    #[test]
    fn an_edited_message_goes_back_to_its_place() {
        let mut queue = queue(&["one", "two", "three"]);
        let edit = press(&mut queue, &["up", "up", "enter"]);
        assert_eq!(edit, QueueKey::Edit(EditorDraft::from("two")));
        queue.push(EditorDraft::from("two and a half"));
        queue.push(EditorDraft::from("four"));
        assert_eq!(sent(queue), ["one", "two and a half", "three", "four"]);
    }

    #[test]
    fn a_message_that_is_sent_meanwhile_moves_the_others_up() {
        let mut queue = queue(&["one", "two", "three"]);
        press(&mut queue, &["up"]);
        queue.next();
        assert_eq!(press(&mut queue, &["delete"]), QueueKey::Done);
        assert_eq!(sent(queue), ["two"]);
    }

    #[test]
    fn other_keys_leave_the_queue_alone() {
        let mut queue = queue(&["one", "two"]);
        assert_eq!(press(&mut queue, &["a"]), QueueKey::NotForUs);
        assert_eq!(press(&mut queue, &["up", "a"]), QueueKey::NotForUs);
        assert!(!queue.is_selecting());
        assert_eq!(press(&mut queue, &["up", "esc"]), QueueKey::Done);
        assert_eq!(press(&mut queue, &["up", "down"]), QueueKey::Done);
        assert!(!queue.is_selecting());
        // Above the first message is the history.
        assert_eq!(press(&mut queue, &["up", "up", "up"]), QueueKey::NotForUs);
        assert_eq!(sent(queue), ["one", "two"]);
    }
}
