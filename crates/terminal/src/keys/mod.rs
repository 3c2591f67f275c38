//! Bytes from the terminal, understood as keys, pastes and replies.
//!
//! [`KeyParser`] takes the bytes as they are read. What one sequence means is in `sequences`; how a
//! key is written in a configuration is in `name`.

mod name;
mod parser;
mod sequences;
#[cfg(test)]
mod tests;

pub use name::UnknownKey;
pub use parser::KeyParser;

/// What a key is without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// Never a control character.
    Char(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Insert,
    Esc,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

/// A set of modifier keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modifiers(u8);

impl Modifiers {
    pub const NONE: Self = Self(0);
    pub const SHIFT: Self = Self(1);
    pub const ALT: Self = Self(2);
    pub const CTRL: Self = Self(4);
    pub const SUPER: Self = Self(8);

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl std::ops::BitOr for Modifiers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// A key that was pressed. Equal keys are equal values, whichever protocol they came by:
/// [`Key::new`] brings them into one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: KeyCode,
    pub modifiers: Modifiers,
}

impl Key {
    /// A letter carries its shift itself: shift and `a` are `A` without [`Modifiers::SHIFT`].
    /// Which character shift makes of others depends on the keyboard, so they keep it.
    pub const fn new(code: KeyCode, modifiers: Modifiers) -> Self {
        match code {
            KeyCode::Char(c) if c.is_ascii_alphabetic() && modifiers.contains(Modifiers::SHIFT) => {
                Self {
                    code: KeyCode::Char(c.to_ascii_uppercase()),
                    modifiers: modifiers.without(Modifiers::SHIFT),
                }
            }
            code => Self { code, modifiers },
        }
    }

    pub const fn plain(code: KeyCode) -> Self {
        Self::new(code, Modifiers::NONE)
    }

    pub const fn char(c: char) -> Self {
        Self::plain(KeyCode::Char(c))
    }

    pub const fn ctrl(c: char) -> Self {
        Self::new(KeyCode::Char(c), Modifiers::CTRL)
    }

    pub const fn alt(c: char) -> Self {
        Self::new(KeyCode::Char(c), Modifiers::ALT)
    }
}

/// What came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Key(Key),
    /// Lines end with `\n`, whatever they ended with. Everything else is as it was pasted, control
    /// characters too.
    Paste(String),
    FocusGained,
    FocusLost,
    Reply(TerminalReply),
}

/// What the terminal answered to a question of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalReply {
    /// OSC 11, scaled to 16 bits.
    Background { red: u16, green: u16, blue: u16 },
    /// XTVERSION: name and version of the terminal.
    Version(String),
    /// DA1. Every terminal answers it, so an unanswered question before it will stay so.
    DeviceAttributes,
    /// CPR, counted from 1.
    CursorPosition { row: u16, column: u16 },
    /// XTWINOPS 18: what the terminal has now, in rows and columns.
    Size { rows: u16, columns: u16 },
    /// The kitty keyboard flags that are on.
    KittyFlags(u32),
}
