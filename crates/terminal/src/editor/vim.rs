//! The keys of vim mode.
//!
//! In insert state all keys are as in a shell, but Esc. In normal state characters are commands;
//! Enter, Esc and keys with modifiers stay what they are elsewhere, so that submitting and
//! interrupting work from both. What is deleted or copied goes where kills go: a text that ends
//! with a newline is put back as a line.
//!
//! A small subset:
//!
//! | keys | |
//! |---|---|
//! | `i` `a` `I` `A` `o` `O` | insert |
//! | `h` `j` `k` `l` `w` `b` `e` `0` `$` | move |
//! | `d` `c` `y` | with a motion, or doubled for the line |
//! | `x` `D` `C` `p` `u` `.` | delete, delete and change to the end, put, undo, repeat |
//!
//! There are no counts, no registers and no visual mode. `.` replays the keys of the last change,
//! the inserted text included, instead of remembering what they did.

use std::ops::Range;

use super::{EditCommand, Edited, Editor, Previous, buffer::Kind, motions};
use crate::keys::{Key, KeyCode};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VimState {
    #[default]
    Insert,
    Normal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Copy,
}

impl Operator {
    fn key(self) -> char {
        match self {
            Self::Delete => 'd',
            Self::Change => 'c',
            Self::Copy => 'y',
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Vim {
    state: VimState,
    /// Waits for its motion.
    operator: Option<Operator>,
    /// The keys of the command that has begun and not ended.
    current: Vec<Key>,
    /// The keys of the last command that changed something, for `.`.
    last: Vec<Key>,
}

impl Vim {
    pub(super) fn state(&self) -> VimState {
        self.state
    }

    pub(super) fn handle(&mut self, editor: &mut Editor, key: &Key) -> Edited {
        match self.state {
            VimState::Insert => self.insert(editor, key),
            VimState::Normal => self.normal(editor, key),
        }
    }

    /// Esc ends what `.` will repeat, and moves the cursor onto a character.
    fn insert(&mut self, editor: &mut Editor, key: &Key) -> Edited {
        if *key != Key::plain(KeyCode::Esc) {
            let edited = editor.handle_as_shell(key);
            // Before the first command there is nothing that could be repeated.
            if !self.current.is_empty() && edited != Edited::Ignored {
                self.current.push(*key);
            }
            return edited;
        }
        if !self.current.is_empty() {
            self.current.push(*key);
            self.last = std::mem::take(&mut self.current);
        }
        self.state = VimState::Normal;
        editor.go(target(editor, 'h').unwrap_or_default());
        Edited::Moved
    }

    /// `Ignored` only for `j` and `k` at the edges of the text: the caller takes them for the
    /// history.
    fn normal(&mut self, editor: &mut Editor, key: &Key) -> Edited {
        let (KeyCode::Char(c), true) = (key.code, key.modifiers.is_empty()) else {
            return self.other(editor, key);
        };
        if c == '.' && self.operator.is_none() {
            return self.repeat(editor);
        }
        self.current.push(*key);
        let edited = match self.operator.take() {
            Some(operator) => self.operate(editor, operator, c),
            None => self.command(editor, c),
        };
        if self.operator.is_some() || self.state == VimState::Insert {
            return edited;
        }
        let keys = std::mem::take(&mut self.current);
        if edited == Edited::Changed && c != 'u' {
            self.last = keys;
        }
        stay_on_character(editor);
        edited
    }

    fn other(&mut self, editor: &mut Editor, key: &Key) -> Edited {
        self.current.clear();
        if self.operator.take().is_some() && key.code == KeyCode::Esc {
            return Edited::Moved;
        }
        let edited = match key.code {
            KeyCode::Backspace => editor.run(EditCommand::Left),
            _ => editor.handle_as_shell(key),
        };
        stay_on_character(editor);
        edited
    }

    fn repeat(&mut self, editor: &mut Editor) -> Edited {
        let keys = std::mem::take(&mut self.last);
        let mut edited = Edited::Moved;
        for key in &keys {
            if self.handle(editor, key) == Edited::Changed {
                edited = Edited::Changed;
            }
        }
        self.last = keys;
        edited
    }

    fn command(&mut self, editor: &mut Editor, c: char) -> Edited {
        let at = editor.buffer.cursor();
        match c {
            'j' => editor.run(EditCommand::Down),
            'k' => editor.run(EditCommand::Up),
            'd' => self.wait(Operator::Delete),
            'c' => self.wait(Operator::Change),
            'y' => self.wait(Operator::Copy),
            'D' => self.operate(editor, Operator::Delete, '$'),
            'C' => self.operate(editor, Operator::Change, '$'),
            'x' => match target(editor, 'l') {
                Some(end) => self.apply(editor, Operator::Delete, at..end),
                None => Edited::Moved,
            },
            'p' => put(editor),
            'u' => match editor.run(EditCommand::Undo) {
                Edited::Ignored => Edited::Moved,
                edited => edited,
            },
            'i' | 'a' | 'I' | 'A' | 'o' | 'O' => self.begin_insert(editor, c),
            // A character that means nothing must not reach the caller, who may have it as a key.
            c => {
                if let Some(to) = target(editor, c) {
                    editor.go(to);
                }
                Edited::Moved
            }
        }
    }

    fn wait(&mut self, operator: Operator) -> Edited {
        self.operator = Some(operator);
        Edited::Moved
    }

    fn begin_insert(&mut self, editor: &mut Editor, c: char) -> Edited {
        self.state = VimState::Insert;
        let (text, at) = (editor.buffer.text(), editor.buffer.cursor());
        let (start, end) = (motions::line_start(text, at), motions::line_end(text, at));
        match c {
            'a' => editor.go(target(editor, 'l').unwrap_or(at)),
            'I' => editor.go(start),
            'A' => editor.go(end),
            'o' => {
                editor.replace(end..end, "\n", Kind::Single);
                return Edited::Changed;
            }
            'O' => {
                editor.replace(start..start, "\n", Kind::Single);
                editor.go(start);
                return Edited::Changed;
            }
            _ => Edited::Moved,
        };
        Edited::Moved
    }

    /// An operator followed by a key that is no motion does nothing.
    fn operate(&mut self, editor: &mut Editor, operator: Operator, c: char) -> Edited {
        if c == operator.key() {
            return self.operate_on_line(editor, operator);
        }
        let (text, at) = (editor.buffer.text(), editor.buffer.cursor());
        let end = motions::line_end(text, at);
        // `cw` keeps the blanks after the word; `dw` on the last word keeps the line end.
        let to = match (operator, c) {
            (Operator::Change, 'w') if !text[at..].starts_with(char::is_whitespace) => {
                let word = motions::next_start(text, at);
                let kept = text[at..word].trim_end().len();
                Some(at + kept)
            }
            (_, 'w') => Some(motions::next_start(text, at).min(end.max(at))),
            (_, 'e') => Some(motions::right(text, motions::next_end(text, at))),
            _ => target(editor, c),
        };
        match to {
            Some(to) => self.apply(editor, operator, at.min(to)..at.max(to)),
            None => Edited::Moved,
        }
    }

    /// An empty range is no change, but `c` goes on to the insert state all the same.
    fn apply(&mut self, editor: &mut Editor, operator: Operator, range: Range<usize>) -> Edited {
        let text = editor.buffer.text()[range.clone()].to_owned();
        if !text.is_empty() {
            editor.kills.add(&text);
        }
        let edited = match operator {
            Operator::Copy => {
                editor.go(range.start);
                Edited::Moved
            }
            _ => editor.erase(range),
        };
        self.after(operator, edited)
    }

    fn operate_on_line(&mut self, editor: &mut Editor, operator: Operator) -> Edited {
        let (text, at) = (editor.buffer.text(), editor.buffer.cursor());
        let (start, end) = (motions::line_start(text, at), motions::line_end(text, at));
        editor.kills.add(&format!("{}\n", &text[start..end]));
        let edited = match operator {
            Operator::Copy => Edited::Moved,
            Operator::Change => editor.erase(start..end),
            Operator::Delete => {
                let whole = match end < text.len() {
                    true => start..end + 1,
                    false => start.saturating_sub(1)..end,
                };
                let edited = editor.erase(whole);
                let (text, at) = (editor.buffer.text(), editor.buffer.cursor());
                let start = motions::line_start(text, at);
                editor.go(start);
                edited
            }
        };
        self.after(operator, edited)
    }

    fn after(&mut self, operator: Operator, edited: Edited) -> Edited {
        if operator == Operator::Change {
            self.state = VimState::Insert;
        }
        match edited {
            Edited::Changed => Edited::Changed,
            _ => Edited::Moved,
        }
    }
}

/// Where a motion leads to; `None` if it can't go there or is none.
fn target(editor: &Editor, c: char) -> Option<usize> {
    let (text, at) = (editor.buffer.text(), editor.buffer.cursor());
    let (start, end) = (motions::line_start(text, at), motions::line_end(text, at));
    match c {
        'h' => (at > start).then(|| motions::left(text, at)).or(Some(at)),
        'l' => (at < end).then(|| motions::right(text, at)),
        'w' => Some(motions::next_start(text, at)),
        'b' => Some(motions::previous_start(text, at)),
        'e' => Some(motions::next_end(text, at)),
        '0' => Some(start),
        '$' => Some(end),
        _ => None,
    }
}

/// After the cursor, or as lines below.
fn put(editor: &mut Editor) -> Edited {
    let Some(text) = editor.kills.newest().map(str::to_owned) else {
        return Edited::Moved;
    };
    if let Some(lines) = text.strip_suffix('\n') {
        let end = motions::line_end(editor.buffer.text(), editor.buffer.cursor());
        editor.replace(end..end, &format!("\n{lines}"), Kind::Single);
        editor.go(end + 1);
    } else {
        let at = editor.buffer.cursor();
        let at = target(editor, 'l').unwrap_or(at);
        editor.replace(at..at, &text, Kind::Single);
        let last = motions::left(editor.buffer.text(), editor.buffer.cursor());
        editor.go(last);
    }
    Edited::Changed
}

/// In normal state the cursor is on a character, not after the last of a line.
fn stay_on_character(editor: &mut Editor) {
    let (text, at) = (editor.buffer.text(), editor.buffer.cursor());
    if at > motions::line_start(text, at) && at == motions::line_end(text, at) {
        let to = motions::left(text, at);
        let previous = editor.previous.clone();
        editor.go(to);
        // The column of a vertical motion outlives a short line.
        if let Previous::Vertical(_) = previous {
            editor.previous = previous;
        }
    }
}
