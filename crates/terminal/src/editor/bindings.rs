//! Which key is which command.
//!
//! Not here because the caller has them: Enter (submits), Tab, Esc, Ctrl-C, Ctrl-G, Ctrl-L, Ctrl-R,
//! Ctrl-T, Ctrl-Z, page keys. A key that the caller wants for something else it takes first.

use crate::keys::{Key, KeyCode, Modifiers};

/// What can be done with the text by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditCommand {
    Insert(char),
    Newline,
    /// Enter: a newline if there is a `\` before the cursor, in its place. Else the caller's.
    EnterKey,
    Left,
    Right,
    /// By rows on the screen; on the first and last row the caller's.
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    DeleteLeft,
    DeleteRight,
    KillWordLeft,
    KillWordRight,
    /// Back to a blank, whatever is between.
    KillBlankWordLeft,
    KillToLineStart,
    KillToLineEnd,
    Yank,
    /// Replaces what was just yanked by what was killed before it.
    YankOlder,
    Undo,
    Redo,
}

impl EditCommand {
    /// `None` for keys that are no editing, which the caller may use.
    pub fn of(key: &Key) -> Option<Self> {
        const CTRL: Modifiers = Modifiers::CTRL;
        const ALT: Modifiers = Modifiers::ALT;
        const NONE: Modifiers = Modifiers::NONE;
        if let KeyCode::Char(c) = key.code {
            return Self::of_char(c, key.modifiers);
        }
        // Shift with a motion would select; there is no selection, so it is the motion.
        let modifiers = match key.code {
            KeyCode::Enter | KeyCode::Tab => key.modifiers,
            _ => key.modifiers.without(Modifiers::SHIFT),
        };
        Some(match (key.code, modifiers) {
            (KeyCode::Enter, NONE) => Self::EnterKey,
            (KeyCode::Enter, Modifiers::SHIFT | ALT) => Self::Newline,
            (KeyCode::Left, NONE) => Self::Left,
            (KeyCode::Right, NONE) => Self::Right,
            (KeyCode::Up, NONE) => Self::Up,
            (KeyCode::Down, NONE) => Self::Down,
            (KeyCode::Left, CTRL | ALT) => Self::WordLeft,
            (KeyCode::Right, CTRL | ALT) => Self::WordRight,
            (KeyCode::Home, NONE) => Self::LineStart,
            (KeyCode::End, NONE) => Self::LineEnd,
            (KeyCode::Home, CTRL) => Self::TextStart,
            (KeyCode::End, CTRL) => Self::TextEnd,
            (KeyCode::Backspace, NONE) => Self::DeleteLeft,
            (KeyCode::Backspace, CTRL | ALT) => Self::KillWordLeft,
            (KeyCode::Delete, NONE) => Self::DeleteRight,
            (KeyCode::Delete, CTRL | ALT) => Self::KillWordRight,
            _ => return None,
        })
    }

    /// Keys with Super are left alone.
    fn of_char(c: char, modifiers: Modifiers) -> Option<Self> {
        let ctrl = modifiers.contains(Modifiers::CTRL);
        let alt = modifiers.contains(Modifiers::ALT);
        let shift = modifiers.contains(Modifiers::SHIFT);
        Some(match (ctrl, alt, c) {
            _ if modifiers.contains(Modifiers::SUPER) => return None,
            (false, false, c) => Self::Insert(c),
            // Terminals that do not tell what shift made of a key send `-` for `_`.
            (true, false, '_' | '/') => Self::Undo,
            (true, false, '-') if shift => Self::Undo,
            (false, true, '_') => Self::Redo,
            (false, true, '-') if shift => Self::Redo,
            (true, false, c) => return Self::of_ctrl(c),
            (false, true, c) => return Self::of_alt(c),
            (true, true, _) => return None,
        })
    }

    fn of_ctrl(c: char) -> Option<Self> {
        Some(match c {
            'a' => Self::LineStart,
            'b' => Self::Left,
            'd' => Self::DeleteRight,
            'e' => Self::LineEnd,
            'f' => Self::Right,
            'h' => Self::DeleteLeft,
            'j' => Self::Newline,
            'k' => Self::KillToLineEnd,
            'n' => Self::Down,
            'p' => Self::Up,
            'u' => Self::KillToLineStart,
            'w' => Self::KillBlankWordLeft,
            'y' => Self::Yank,
            _ => return None,
        })
    }

    fn of_alt(c: char) -> Option<Self> {
        Some(match c {
            'b' => Self::WordLeft,
            'd' => Self::KillWordRight,
            'f' => Self::WordRight,
            'y' => Self::YankOlder,
            '<' => Self::TextStart,
            '>' => Self::TextEnd,
            _ => return None,
        })
    }
}
