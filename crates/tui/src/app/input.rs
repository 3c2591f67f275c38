//! Keys, pastes and the focus of the terminal.
//!
//! `key` asks in a fixed order who wants it (see `app`). The time of the last key is noted after it
//! was handled: a question looks at the one before.

use std::time::Instant;

use codespar_terminal::keys::{Input, Key, KeyCode, Modifiers};

use super::{App, Effect};
use crate::{UserAction, keymap::KeyAction, picker::Picked, question::Answered, queue::QueueKey};

impl App {
    pub(crate) fn input(&mut self, input: Input, now: Instant) {
        match input {
            Input::Key(key) => {
                self.key(&key, now);
                self.last_key = Some(now);
            }
            Input::Paste(text) => {
                self.paste(&text, now);
                self.last_key = Some(now);
            }
            Input::FocusGained => self.is_focused = true,
            Input::FocusLost => self.is_focused = false,
            Input::Reply(_) => {}
        }
    }

    /// Never answers a question and never chooses in a list. It ends the selection in the queue.
    fn paste(&mut self, text: &str, now: Instant) {
        if self.picker.is_some() || self.pane_paste(text) {
            return;
        }
        let moment = self.moment(now);
        if self.task_pane.is_none()
            && let Some(question) = &mut self.question
            && question.paste(text, &moment) != Answered::NotForUs
        {
            return;
        }
        self.queue.select_nothing();
        self.composer.paste(text, now);
    }

    fn key(&mut self, key: &Key, now: Instant) {
        if let Some(picker) = &mut self.picker {
            if picker.key(key) == Picked::Closed {
                self.picker = None;
            }
            return;
        }
        if self.pane_key(key, now) {
            return;
        }
        let action = self.keymap.action(key);
        if action != Some(KeyAction::Cancel) {
            self.asked_to_leave = None;
        }
        let is_completing = self.composer.is_completing();
        let moment = self.moment(now);
        // The choices of a question are not on the screen while the list of tasks is.
        if self.task_pane.is_none()
            && let Some(question) = &mut self.question
            && !(is_completing && key.code == KeyCode::Tab)
        {
            match question.key(key, &moment) {
                Answered::NotForUs => {}
                Answered::Open => return,
                Answered::Closed => {
                    self.question = None;
                    if let Some(activity) = &mut self.activity {
                        activity.asks_model();
                    }
                    self.next_question(now);
                    return;
                }
            }
        }
        if self.composer.is_searching() && action != Some(KeyAction::Search) {
            self.composer.key(key, now);
            return;
        }
        if is_completing && self.is_for_completion(key) {
            self.composer.key(key, now);
            return;
        }
        if self.queue_key(key, now) {
            return;
        }
        match action {
            Some(action) => self.act(action, key, now),
            None => {
                self.composer.key(key, now);
            }
        }
    }

    /// Enter is not among them: it sends the text, and completes a command on the way.
    fn is_for_completion(&self, key: &Key) -> bool {
        let is_plain = key.modifiers == Modifiers::default();
        is_plain
            && matches!(
                key.code,
                KeyCode::Tab | KeyCode::Up | KeyCode::Down | KeyCode::Esc
            )
    }

    /// Whether the key was for the messages that wait, which it can be while nothing is typed.
    fn queue_key(&mut self, key: &Key, now: Instant) -> bool {
        if !self.composer.is_empty() {
            return false;
        }
        self.queue.forget_place();
        match self.queue.key(key) {
            QueueKey::Done => true,
            QueueKey::Edit(message) => {
                self.composer.load(&message, now);
                true
            }
            QueueKey::NotForUs => false,
        }
    }

    /// A key that an action has no use for at the moment goes to the editor.
    fn act(&mut self, action: KeyAction, key: &Key, now: Instant) {
        match action {
            KeyAction::Submit => self.submit(key, now),
            KeyAction::Queue => match self.activity.is_some() && !self.composer.is_empty() {
                true => {
                    let message = self.composer.draft();
                    self.composer.take(now);
                    self.queue.push(message);
                }
                false => {
                    self.composer.key(key, now);
                }
            },
            // Never clears text. Without a turn it does nothing.
            KeyAction::Interrupt => {
                if self.is_for_vim(key) && self.composer.key(key, now) {
                    return;
                }
                if self.activity.is_some() {
                    self.effects.push(Effect::Action(UserAction::Interrupt));
                }
            }
            KeyAction::Cancel => self.cancel(now),
            KeyAction::Leave => match self.composer.is_empty() {
                true => self.effects.push(Effect::Action(UserAction::Leave)),
                false => {
                    self.composer.key(key, now);
                }
            },
            KeyAction::NextMode => self.effects.push(Effect::Action(UserAction::NextMode)),
            KeyAction::Search => {
                self.composer.begin_search();
                self.composer.show_found();
            }
            KeyAction::ExternalEditor => {
                let text = self.composer.text();
                self.effects.push(Effect::ExternalEditor(text));
            }
            KeyAction::Transcript => self.effects.push(Effect::Action(UserAction::Transcript)),
            KeyAction::PastePicture => {
                self.effects.push(Effect::Action(UserAction::PastePicture));
            }
            KeyAction::Suspend => self.effects.push(Effect::Suspend),
            KeyAction::Repaint => self.effects.push(Effect::Repaint),
        }
    }

    /// Esc leads to the normal state first. With nothing to edit it interrupts at once.
    fn is_for_vim(&self, key: &Key) -> bool {
        let is_free = self.activity.is_none() || !self.composer.is_empty();
        is_free && self.composer.vim_state().is_some() && *key == Key::plain(KeyCode::Esc)
    }

    /// With text: the text goes to the history. Without: the turn is stopped. Twice: leaves.
    fn cancel(&mut self, now: Instant) {
        if !self.composer.is_empty() {
            self.composer.take(now);
            return;
        }
        if self.activity.is_some() {
            self.effects.push(Effect::Action(UserAction::Interrupt));
            return;
        }
        match self.asked_to_leave {
            Some(_) => self.effects.push(Effect::Action(UserAction::Leave)),
            None => self.asked_to_leave = Some(now),
        }
    }

    /// `exit` and `quit` alone leave, also while an agent works. While it works a text is a message
    /// to it, unless it is a command of the session.
    fn submit(&mut self, key: &Key, now: Instant) {
        self.composer.complete_command(now);
        // The editor knows a backslash before the cursor that asks for a new line.
        if self.composer.text().ends_with('\\') && self.composer.key(key, now) {
            return;
        }
        if self.composer.text().trim().is_empty() {
            return;
        }
        let text = self.composer.take(now);
        if matches!(text.trim(), "exit" | "quit") {
            self.effects.push(Effect::Action(UserAction::Leave));
            return;
        }
        self.echo(&text);
        let is_steering = self.activity.is_some() && !is_for_session(&text);
        self.effects.push(Effect::Action(match is_steering {
            true => UserAction::Steer(text),
            false => UserAction::Submit(text),
        }));
    }
}

/// Commands, shell commands and notes are for the session, also while the agent works.
fn is_for_session(text: &str) -> bool {
    text.starts_with(['/', '!', '#'])
}
