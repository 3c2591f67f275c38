//! Which key does what. The keys of the editor itself are fixed; these can be set.

use std::{collections::BTreeMap, fmt, str::FromStr};

use codespar_terminal::keys::{Key, KeyCode, Modifiers};

/// What a key can be set to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyAction {
    /// Send the text: a prompt, or a message to the agent at work.
    Submit,
    /// Send the text after the turn.
    Queue,
    /// Stop the turn. Never clears the text.
    Interrupt,
    /// The text goes to the history; without text the turn is stopped; twice leaves.
    Cancel,
    /// Leave, if there is no text.
    Leave,
    /// The next permission mode.
    NextMode,
    /// Search the history.
    Search,
    /// Edit the text in `$EDITOR`.
    ExternalEditor,
    /// The whole transcript.
    Transcript,
    /// Attach the picture on the clipboard.
    PastePicture,
    Suspend,
    Repaint,
}

impl KeyAction {
    /// Name in the settings, action, usual key.
    const ALL: [(&'static str, Self, &'static str); 12] = [
        ("submit", Self::Submit, "enter"),
        ("queue", Self::Queue, "tab"),
        ("interrupt", Self::Interrupt, "esc"),
        ("cancel", Self::Cancel, "ctrl-c"),
        ("leave", Self::Leave, "ctrl-d"),
        ("nextMode", Self::NextMode, "shift-tab"),
        ("search", Self::Search, "ctrl-r"),
        ("externalEditor", Self::ExternalEditor, "ctrl-g"),
        ("transcript", Self::Transcript, "ctrl-t"),
        ("pastePicture", Self::PastePicture, "ctrl-v"),
        ("suspend", Self::Suspend, "ctrl-z"),
        ("repaint", Self::Repaint, "ctrl-l"),
    ];

    /// As the settings and the help have it.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, action, _)| *action == self);
        found.map_or("", |(name, ..)| name)
    }
}

/// A setting of keys that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeymapError {
    UnknownAction(String),
    UnknownKey { action: String, key: String },
}

impl fmt::Display for KeymapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAction(name) => {
                let known: Vec<&str> = KeyAction::ALL.iter().map(|(name, ..)| *name).collect();
                let known = known.join(", ");
                write!(
                    f,
                    "terminal.keys: `{name}` is no action; there are: {known}"
                )
            }
            Self::UnknownKey { action, key } => write!(
                f,
                "terminal.keys: `{key}` for `{action}` is no key; write it like ctrl-r, alt-enter \
                 or f2"
            ),
        }
    }
}

impl std::error::Error for KeymapError {}

/// Keys and their actions.
#[derive(Debug, Clone)]
pub struct Keymap(Vec<(Key, KeyAction)>);

impl Default for Keymap {
    fn default() -> Self {
        let keys = KeyAction::ALL.iter().filter_map(|(_, action, key)| {
            let key = Key::from_str(key).ok()?;
            Some((key, *action))
        });
        Self(keys.collect())
    }
}

impl Keymap {
    /// The usual keys with those of the settings in their place: action to key. A key that is given
    /// to an action is taken away from the one that had it, which may be left without.
    pub fn with(settings: &BTreeMap<String, String>) -> Result<Self, KeymapError> {
        let mut keymap = Self::default();
        for (name, key) in settings {
            let known = KeyAction::ALL.iter().find(|(known, ..)| known == name);
            let Some((_, action, _)) = known else {
                return Err(KeymapError::UnknownAction(name.clone()));
            };
            let parsed = Key::from_str(key).map_err(|_| KeymapError::UnknownKey {
                action: name.clone(),
                key: key.clone(),
            })?;
            keymap
                .0
                .retain(|(other, held)| held != action && *other != parsed);
            keymap.0.push((parsed, *action));
        }
        Ok(keymap)
    }

    pub(crate) fn action(&self, key: &Key) -> Option<KeyAction> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, action)| *action)
    }

    /// For hints; empty if no key has the action.
    pub(crate) fn key_of(&self, action: KeyAction) -> String {
        let found = self.0.iter().find(|(_, held)| *held == action);
        found.map_or_else(String::new, |(key, _)| key.to_string())
    }
}

/// A character without Ctrl, Alt or Super.
pub(crate) fn plain_char(key: &Key) -> Option<char> {
    let others = [Modifiers::CTRL, Modifiers::ALT, Modifiers::SUPER];
    match key.code {
        KeyCode::Char(c) if others.iter().all(|one| !key.modifiers.contains(*one)) => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_replaces_the_usual_key() {
        let settings = BTreeMap::from([("submit".to_owned(), "ctrl-s".to_owned())]);
        let keymap = Keymap::with(&settings).unwrap();
        assert_eq!(keymap.key_of(KeyAction::Submit), "ctrl-s");
        assert_eq!(keymap.action(&Key::from_str("enter").unwrap()), None);
    }

    #[test]
    fn a_wrong_setting_names_what_is_wrong() {
        let wrong = |name: &str, key: &str| {
            let settings = BTreeMap::from([(name.to_owned(), key.to_owned())]);
            Keymap::with(&settings).unwrap_err().to_string()
        };
        assert!(wrong("sumbit", "enter").contains("`sumbit` is no action"));
        assert!(wrong("submit", "hyper-q").contains("`hyper-q` for `submit` is no key"));
    }
}
