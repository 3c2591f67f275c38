//! What the user makes of a call before answering: another text, fewer hunks.

use codespar_protocol::{Answer, PermissionRequest};
use serde_json::Value;

/// Fields that hold what a call does, by the names that tools use. A call without any of them is
/// edited as JSON.
const FIELDS: [(&str, &str); 4] = [
    ("command", "edit the command"),
    ("new_string", "edit the new text"),
    ("content", "edit the text"),
    ("new_source", "edit the text"),
];

/// `asked` never changes. `changed` is always a whole input, made from `asked` and the edited text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallDraft {
    asked: Value,
    /// In place of the input that was asked about.
    changed: Option<Value>,
    /// The change whose hunks these are.
    change: String,
    /// For each hunk whether it is refused. Empty where nothing can be chosen.
    refused: Vec<bool>,
    /// The hunk that the space bar is for.
    selected: usize,
}

impl CallDraft {
    pub(super) fn new(request: &PermissionRequest) -> Self {
        let change = request.change.as_ref();
        Self {
            asked: request.input.clone(),
            changed: None,
            change: change.map_or_else(String::new, |change| change.id.clone()),
            refused: vec![false; change.map_or(0, |change| change.hunks.len())],
            selected: 0,
        }
    }

    /// Where no call is behind the question there is nothing to change.
    pub(super) fn can_edit(&self) -> bool {
        self.asked.is_object()
    }

    fn input(&self) -> &Value {
        self.changed.as_ref().unwrap_or(&self.asked)
    }

    /// The field that is edited, and how that is offered. `None` if it is the input as a whole.
    fn field(&self) -> Option<(&'static str, &'static str)> {
        let is_text = |name: &str| self.asked.get(name).is_some_and(Value::is_string);
        FIELDS.into_iter().find(|(name, _)| is_text(name))
    }

    pub(super) fn offer(&self) -> &'static str {
        self.field()
            .map_or("edit the input (JSON)", |(_, offer)| offer)
    }

    pub(super) fn text(&self) -> String {
        let input = self.input();
        match self.field() {
            Some((name, _)) => input[name].as_str().unwrap_or_default().to_owned(),
            None => serde_json::to_string_pretty(input).unwrap_or_default(),
        }
    }

    /// The error says what is wrong with the text. A text like the one that was asked about is no
    /// change, and the call counts as asked again.
    pub(super) fn set_text(&mut self, text: &str) -> Result<(), String> {
        let input = match self.field() {
            Some((name, _)) => {
                let mut input = self.asked.clone();
                input[name] = Value::String(text.to_owned());
                input
            }
            None => serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?,
        };
        if !input.is_object() {
            return Err("the input must be a JSON object".to_owned());
        }
        self.changed = (input != self.asked).then_some(input);
        Ok(())
    }

    /// The changed text, for people.
    pub(super) fn changed_text(&self) -> Option<String> {
        self.changed.as_ref().map(|_| self.text())
    }

    /// The hunks and which of them are refused. Another text has other hunks.
    pub(super) fn hunks(&self) -> &[bool] {
        match self.changed {
            Some(_) => &[],
            None => &self.refused,
        }
    }

    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    /// The one before or after; stays within them.
    pub(super) fn select(&mut self, forward: isize) {
        let last = self.refused.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(forward).min(last);
    }

    /// Refuses or accepts a hunk, from zero. Whether there is such a hunk.
    pub(super) fn toggle(&mut self, hunk: usize) -> bool {
        if hunk >= self.hunks().len() {
            return false;
        }
        self.selected = hunk;
        self.refused[hunk] = !self.refused[hunk];
        true
    }

    /// Numbers from 1.
    pub(super) fn refused(&self) -> Vec<usize> {
        let hunks = self.hunks().iter().enumerate();
        let refused = hunks.filter(|(_, refused)| **refused);
        refused.map(|(index, _)| index + 1).collect()
    }

    pub(super) fn is_as_asked(&self) -> bool {
        self.changed.is_none() && self.refused().is_empty()
    }

    /// Yes to the call as it is now. The change is named by its id, so that the hunks of another
    /// proposal cannot be meant.
    pub(super) fn approval(&self) -> Result<Answer, String> {
        if let Some(input) = &self.changed {
            let input = input.clone();
            return Ok(Answer::OnceWith { input });
        }
        let refused = self.refused();
        match refused.len() {
            0 => Ok(Answer::Once),
            count if count == self.refused.len() => {
                Err("every hunk is refused; n refuses the call".to_owned())
            }
            _ => Ok(Answer::OnceWithout {
                change: self.change.clone(),
                refused,
            }),
        }
    }
}
