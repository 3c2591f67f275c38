//! The list of tasks on the screen: what is shown around it, and which keys it gets.

use std::time::Instant;

use codespar_terminal::{Line, Size, keys::Key};

use super::{App, Effect, live_rows};
use crate::{
    TaskRow, UserAction,
    keymap::KeyAction,
    layout::{Frame, Keep, Part, compose},
    task_pane::{PaneKey, TaskPane},
};

/// Rows of the text in the composer that stay visible below the list.
const COMPOSER_ROWS: u16 = 2;

impl App {
    /// If something is being typed, the list takes keys only after a pause: the rest of the word is
    /// still for the composer.
    pub(super) fn show_tasks(&mut self, rows: Vec<TaskRow>, now: Instant) {
        match self.task_pane {
            Some(_) => self.update_tasks(rows, now),
            None => {
                let pane = TaskPane::new(rows, &self.cleaner, now);
                self.task_pane = Some(match self.composer.is_empty() {
                    true => pane,
                    false => pane.after_quiet(),
                });
            }
        }
    }

    /// A list that the user has closed stays closed.
    pub(super) fn update_tasks(&mut self, rows: Vec<TaskRow>, now: Instant) {
        if let Some(pane) = &mut self.task_pane {
            pane.update(rows, &self.cleaner, now);
        }
    }

    /// Whether the key was for the list. Keys that mean nothing in the list are dropped rather than
    /// handed on, but for suspending and repainting.
    pub(super) fn pane_key(&mut self, key: &Key, now: Instant) -> bool {
        let Some(pane) = &mut self.task_pane else {
            return false;
        };
        if !pane.has_focus(now, self.last_key) {
            return false;
        }
        match pane.key(key) {
            PaneKey::Stays => {}
            PaneKey::Closes => {
                self.task_pane = None;
                self.effects.push(Effect::Action(UserAction::TasksClosed));
            }
            PaneKey::Acts(action) => self.effects.push(Effect::Action(action)),
            PaneKey::Unknown => match self.keymap.action(key) {
                Some(KeyAction::Suspend) => self.effects.push(Effect::Suspend),
                Some(KeyAction::Repaint) => self.effects.push(Effect::Repaint),
                _ => {}
            },
        }
        true
    }

    /// Whether the text was for a message in the list; else it is for the composer, which shows it.
    pub(super) fn pane_paste(&mut self, text: &str) -> bool {
        let pane = self.task_pane.as_mut();
        pane.is_some_and(|pane| pane.paste(text))
    }

    /// The live region while the list is open: the end of the answer, what is under way, the list,
    /// and the text that was begun. Boxes and queue come back when the list is closed.
    pub(super) fn pane_frame(&mut self, size: Size, now: Instant) -> Option<Frame> {
        let last_key = self.last_key;
        let has_focus = self.task_pane.as_ref()?.has_focus(now, last_key);
        let rows = live_rows(size);
        let columns = size.width;
        let mut parts: Vec<Part> = self.answer_part(columns).into_iter().collect();
        if let Some(activity) = &mut self.activity {
            // Esc closes the list first.
            let key = match has_focus {
                true => String::new(),
                false => self.keymap.key_of(KeyAction::Interrupt),
            };
            let lines = activity.lines(now, columns, self.theme, self.motion, &key);
            parts.push(Part {
                lines: lines.into_iter().next_back().into_iter().collect(),
                cursor: None,
                keep: Keep::Beginning,
            });
        }
        let mut below = match self.composer.is_empty() {
            true => Vec::new(),
            false => self.composer.parts(columns, COMPOSER_ROWS, self.theme),
        };
        if has_focus {
            below.iter_mut().for_each(|part| part.cursor = None);
        }
        if self.question.is_some() {
            let text = "  a question waits for your answer · esc closes this list";
            below.push(whole(Line::styled(text, self.theme.warning())));
        }
        below.push(whole(self.status_line(columns)));
        let used: usize = below.iter().map(|part| part.lines.len()).sum();
        // Of what is under way, one row stays.
        let used = used + usize::from(!parts.is_empty());
        let room = rows.saturating_sub(used as u16).max(3);
        let theme = self.theme;
        let pane = self.task_pane.as_mut()?;
        let (lines, cursor) = pane.lines(now, columns, room, theme);
        parts.push(Part {
            lines,
            cursor: cursor.filter(|_| has_focus),
            keep: Keep::All,
        });
        parts.extend(below);
        Some(compose(parts, columns, rows))
    }
}

fn whole(line: Line<'static>) -> Part {
    Part {
        lines: vec![line],
        cursor: None,
        keep: Keep::All,
    }
}
