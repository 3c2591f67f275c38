//! A list to choose from: filtered by typing, moved through with the arrows.
//!
//! It has all keys while it is open. Whoever asked gets the number of the choice in the list that
//! was handed in, not among those that the filter left.

use codespar_terminal::{
    Line, Span,
    keys::{Key, KeyCode, Modifiers},
    theme::Theme,
    width,
};
use tokio::sync::oneshot;

use crate::{Choice, keymap::plain_char};

/// A list that is open.
pub(crate) struct Picker {
    title: String,
    choices: Vec<Choice>,
    filter: String,
    /// Among those that pass the filter.
    selected: usize,
    reply: Option<oneshot::Sender<Option<usize>>>,
}

/// Whether a picker stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picked {
    Open,
    Closed,
}

impl Picker {
    pub(crate) fn new(
        title: String,
        choices: Vec<Choice>,
        reply: oneshot::Sender<Option<usize>>,
    ) -> Self {
        Self {
            title,
            choices,
            filter: String::new(),
            selected: 0,
            reply: Some(reply),
        }
    }

    /// All words of the filter, in any order, in the label or the detail.
    fn matching(&self) -> Vec<usize> {
        let wanted = self.filter.to_lowercase();
        let passes = |choice: &Choice| {
            let text = format!("{} {}", choice.label, choice.detail).to_lowercase();
            wanted.split_whitespace().all(|word| text.contains(word))
        };
        let numbers = 0..self.choices.len();
        numbers.filter(|n| passes(&self.choices[*n])).collect()
    }

    pub(crate) fn key(&mut self, key: &Key) -> Picked {
        let matching = self.matching();
        let last = matching.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return self.close(None),
            KeyCode::Char('c' | 'd') if key.modifiers.contains(Modifiers::CTRL) => {
                return self.close(None);
            }
            KeyCode::Enter => {
                let chosen = matching.get(self.selected).copied();
                return self.close(chosen);
            }
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Backspace => {
                self.filter.pop();
                self.selected = 0;
            }
            _ => {
                if let Some(c) = plain_char(key) {
                    self.filter.push(c);
                    self.selected = 0;
                }
            }
        }
        Picked::Open
    }

    /// The reply goes out once.
    fn close(&mut self, chosen: Option<usize>) -> Picked {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(chosen);
        }
        Picked::Closed
    }

    /// At most so many rows, with the selected one among them.
    pub(crate) fn lines(&self, columns: u16, rows: u16, theme: Theme) -> Vec<Line<'static>> {
        let columns = usize::from(columns);
        let filter = match self.filter.is_empty() {
            true => Span::styled("type to filter", theme.faint()),
            false => Span::raw(self.filter.clone()),
        };
        let title = width::shortened(&self.title, columns.saturating_sub(20));
        let mut lines = vec![Line::from(vec![
            Span::styled(format!("{title}  "), theme.heading()),
            filter,
        ])];
        let matching = self.matching();
        let room = usize::from(rows).saturating_sub(2).max(1);
        let first = self.selected.saturating_sub(room - 1);
        for (place, number) in matching.iter().enumerate().skip(first).take(room) {
            let choice = &self.choices[*number];
            let is_selected = place == self.selected;
            let mark = if is_selected { "› " } else { "  " };
            let label = width::shortened(&choice.label, columns.saturating_sub(2));
            let room = columns.saturating_sub(4 + width::of(&label));
            let style = if is_selected {
                theme.accent()
            } else {
                Default::default()
            };
            lines.push(Line::from(vec![
                Span::styled(format!("{mark}{label}"), style),
                Span::styled(
                    format!("  {}", width::shortened(&choice.detail, room)),
                    theme.faint(),
                ),
            ]));
        }
        if matching.is_empty() {
            lines.push(Line::styled("  nothing matches", theme.faint()));
        }
        let left = matching.len().saturating_sub(first + room);
        let more = match left {
            0 => String::new(),
            n => format!("  +{n} more · "),
        };
        let text = format!("{more}  enter chooses · esc closes");
        lines.push(Line::styled(text, theme.faint()));
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn choice(label: &str) -> Choice {
        Choice {
            label: label.to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn typing_filters_and_enter_gives_the_place_in_the_whole_list() {
        let (reply, mut chosen) = oneshot::channel();
        let choices = vec![choice("one"), choice("two"), choice("three")];
        let mut picker = Picker::new("Pick".into(), choices, reply);
        for key in ["t", "down"] {
            assert_eq!(picker.key(&Key::from_str(key).unwrap()), Picked::Open);
        }
        assert_eq!(picker.key(&Key::from_str("enter").unwrap()), Picked::Closed);
        assert_eq!(chosen.try_recv(), Ok(Some(2)));
    }
}
