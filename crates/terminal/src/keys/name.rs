//! Keys as people write them: `ctrl-r`, `shift-enter`, `alt-shift-b`.
//!
//! What `Display` writes, `FromStr` reads as the same key. Settings and hints use these names.

use std::{fmt, str::FromStr};

use super::{Key, KeyCode, Modifiers};

const MODIFIERS: [(&str, Modifiers); 4] = [
    ("ctrl", Modifiers::CTRL),
    ("alt", Modifiers::ALT),
    ("shift", Modifiers::SHIFT),
    ("super", Modifiers::SUPER),
];

/// Names that are read. The first of each key is the one written.
const CODES: [(&str, KeyCode); 22] = [
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("del", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("ins", KeyCode::Insert),
    ("esc", KeyCode::Esc),
    ("escape", KeyCode::Esc),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pgup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("pgdn", KeyCode::PageDown),
    ("space", KeyCode::Char(' ')),
    ("minus", KeyCode::Char('-')),
];

/// A key name in a configuration that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown key \"{0}\": write for example \"ctrl-r\", \"shift-enter\", \"alt-b\" or \"f2\"")]
pub struct UnknownKey(pub String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, modifiers) = match self.code {
            // Without other modifiers the letter alone says it; with them `ctrl-R` is read as `ctrl-r`.
            KeyCode::Char(c) if c.is_ascii_uppercase() && !self.modifiers.is_empty() => (
                KeyCode::Char(c.to_ascii_lowercase()),
                self.modifiers | Modifiers::SHIFT,
            ),
            code => (code, self.modifiers),
        };
        for (name, modifier) in MODIFIERS {
            if modifiers.contains(modifier) {
                write!(f, "{name}-")?;
            }
        }
        match code {
            KeyCode::F(number) => write!(f, "f{number}"),
            code => match CODES.iter().find(|(_, named)| *named == code) {
                Some((name, _)) => f.write_str(name),
                None => match code {
                    KeyCode::Char(c) => write!(f, "{c}"),
                    _ => Ok(()),
                },
            },
        }
    }
}

impl FromStr for Key {
    type Err = UnknownKey;

    /// Modifiers in any order and case, separated by `-` or `+`. With `ctrl`, `alt` or `super` the
    /// case of a letter means nothing: `Ctrl-R` is how many write `ctrl-r`.
    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let mut rest = text.trim();
        let mut modifiers = Modifiers::NONE;
        while let Some((modifier, after)) = leading_modifier(rest) {
            modifiers.insert(modifier);
            rest = after;
        }
        let code = code(rest).ok_or_else(|| UnknownKey(text.to_owned()))?;
        let code = match code {
            KeyCode::Char(c) if !modifiers.is_empty() => KeyCode::Char(c.to_ascii_lowercase()),
            code => code,
        };
        Ok(Self::new(code, modifiers))
    }
}

/// `-` alone is the key, not a separator: `ctrl--` is Ctrl with minus.
fn leading_modifier(text: &str) -> Option<(Modifiers, &str)> {
    let end = text.find(['-', '+'])?;
    let (name, rest) = (&text[..end], &text[end + 1..]);
    let found = MODIFIERS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    (!rest.is_empty()).then_some((found.1, rest))
}

fn code(name: &str) -> Option<KeyCode> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return (!c.is_control()).then_some(KeyCode::Char(c));
    }
    let lower = name.to_ascii_lowercase();
    if let Some((_, code)) = CODES.iter().find(|(known, _)| *known == lower) {
        return Some(*code);
    }
    let number = lower.strip_prefix('f')?.parse().ok()?;
    (1..=35).contains(&number).then_some(KeyCode::F(number))
}
