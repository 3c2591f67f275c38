//! Random keys, pastes and texts: what holds whatever is typed.

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::{
    tests::{press, type_text},
    *,
};
use crate::{theme::Theme, width};

/// Something that is done to an editor.
#[derive(Debug, Clone)]
enum Step {
    Key(&'static str),
    Type(String),
    Insert(String),
    Paste(String),
    Replace(usize, String),
    Set(String),
    Expand,
}

impl Step {
    fn on(&self, editor: &mut Editor) {
        match self {
            Self::Key(key) => {
                press(editor, key);
            }
            Self::Type(text) => type_text(editor, text),
            Self::Insert(text) => editor.insert(text),
            Self::Paste(text) => editor.paste(text),
            Self::Replace(bytes, text) => editor.replace_before_cursor(*bytes, text),
            Self::Set(text) => editor.set_text(text),
            Self::Expand => {
                editor.expand_chip_at_cursor();
            }
        }
    }
}

const KEYS: [&str; 24] = [
    "left",
    "right",
    "up",
    "down",
    "home",
    "end",
    "alt-b",
    "alt-f",
    "ctrl-home",
    "ctrl-end",
    "backspace",
    "delete",
    "ctrl-w",
    "ctrl-k",
    "ctrl-u",
    "alt-d",
    "alt-backspace",
    "ctrl-y",
    "alt-y",
    "ctrl-j",
    "enter",
    "ctrl-_",
    "alt-_",
    "space",
];

fn difficult_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("e\u{301}"),
        Just("\u{301}"),
        Just("👩\u{200d}"),
        Just("💻"),
        Just("🇩"),
        Just("🇪"),
        Just("漢"),
        Just("\r\n"),
        Just("\n"),
        Just(" "),
        Just("\t"),
        Just("ש"),
        Just("ab"),
        Just("\u{100001}"),
        Just("\u{1b}["),
        Just("\u{600}"),
        Just("क\u{94d}"),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::sample::select(KEYS.as_slice()).prop_map(Step::Key),
        3 => difficult_text().prop_map(Step::Type),
        1 => difficult_text().prop_map(Step::Insert),
        1 => (difficult_text(), 1..400usize).prop_map(|(text, times)| Step::Paste(text.repeat(times))),
        1 => (0..9usize, difficult_text()).prop_map(|(bytes, text)| Step::Replace(bytes, text)),
        1 => difficult_text().prop_map(Step::Set),
        1 => Just(Step::Expand),
    ]
}

fn is_grapheme_boundary(text: &str, at: usize) -> bool {
    at == text.len() || text.grapheme_indices(true).any(|(start, _)| start == at)
}

proptest! {
    #[test]
    fn the_cursor_stays_between_graphemes_and_on_the_screen(
        steps in prop::collection::vec(step(), 1..30),
        columns in 1..30u16,
        max_rows in 1..6u16,
    ) {
        let mut editor = Editor::new();
        for step in steps {
            step.on(&mut editor);
            prop_assert!(is_grapheme_boundary(editor.buffer.text(), editor.buffer.cursor()));
            prop_assert!(!editor.text().contains('\r'));
            let view = editor.render(columns, max_rows, Theme::default());
            prop_assert!(!view.rows.is_empty() && view.rows.len() <= usize::from(max_rows));
            prop_assert!(view.cursor.x < columns && usize::from(view.cursor.y) < view.rows.len());
            for row in &view.rows {
                prop_assert!(width::of(&row.to_string()) <= usize::from(columns));
            }
            let again = Editor::from_draft(&editor.draft());
            prop_assert_eq!(again.text(), editor.text());
            prop_assert_eq!(again.buffer.cursor(), editor.buffer.cursor());
        }
    }

    #[test]
    fn undo_leads_back_to_the_first_text_and_redo_to_the_last(
        first in difficult_text(),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut editor = Editor::new();
        editor.set_text(&first);
        editor.buffer.forget_changes();
        let first = editor.text();
        for step in steps {
            step.on(&mut editor);
        }
        // What was undone on the way is done again, so that the last text is the end of all changes.
        while press(&mut editor, "alt-_") == Edited::Changed {}
        let last = editor.text();
        while press(&mut editor, "ctrl-_") == Edited::Changed {}
        prop_assert_eq!(editor.text(), first);
        while press(&mut editor, "alt-_") == Edited::Changed {}
        prop_assert_eq!(editor.text(), last);
    }
}

/// The simplest editor there is: a list of units, each a character or a whole paste.
#[derive(Debug, Default)]
struct Model {
    units: Vec<String>,
    cursor: usize,
}

impl Model {
    fn put(&mut self, unit: &str) {
        self.units.insert(self.cursor, unit.to_owned());
        self.cursor += 1;
    }

    fn line_start(&self) -> usize {
        let before = self.units[..self.cursor].iter();
        before
            .clone()
            .rposition(|unit| unit == "\n")
            .map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let mut after = self.units[self.cursor..].iter();
        let newline = after.position(|unit| unit == "\n");
        newline.map_or(self.units.len(), |at| self.cursor + at)
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.units.drain(from..to);
        self.cursor = from;
    }

    fn press(&mut self, key: &str) {
        match key {
            "left" => self.cursor = self.cursor.saturating_sub(1),
            "right" => self.cursor = (self.cursor + 1).min(self.units.len()),
            "home" => self.cursor = self.line_start(),
            "end" => self.cursor = self.line_end(),
            "backspace" => self.remove(self.cursor.saturating_sub(1), self.cursor),
            "delete" => self.remove(self.cursor, (self.cursor + 1).min(self.units.len())),
            "ctrl-u" => {
                let start = self.line_start().min(self.cursor.saturating_sub(1));
                self.remove(start, self.cursor);
            }
            "ctrl-k" => {
                let end = self.line_end().max(self.cursor + 1);
                self.remove(self.cursor, end.min(self.units.len()));
            }
            "ctrl-j" => self.put("\n"),
            key => self.put(key),
        }
    }
}

const MODELLED: [&str; 12] = [
    "left",
    "right",
    "home",
    "end",
    "backspace",
    "delete",
    "ctrl-u",
    "ctrl-k",
    "ctrl-j",
    "a",
    "漢",
    "paste",
];

proptest! {
    #[test]
    fn the_text_is_that_of_a_simple_model(keys in prop::collection::vec(prop::sample::select(MODELLED.as_slice()), 1..60)) {
        let mut model = Model::default();
        let mut editor = Editor::new();
        for (at, key) in keys.into_iter().enumerate() {
            match key {
                "paste" => {
                    let text = format!("{at}\n").repeat(12);
                    editor.paste(&text);
                    model.put(&text);
                }
                key => {
                    press(&mut editor, key);
                    model.press(key);
                }
            }
            prop_assert_eq!(editor.text(), model.units.concat());
            prop_assert_eq!(
                editor.chips.expanded(editor.before_cursor()),
                model.units[..model.cursor].concat()
            );
        }
    }
}

proptest! {
    #[test]
    fn vim_keys_keep_the_cursor_between_graphemes(
        text in difficult_text(),
        keys in "[hjklwbe0$iaIAoOxdcypu.zDC漢\u{1b}\u{7f}\r]{0,40}",
    ) {
        let mut editor = Editor::new();
        editor.set_mode(EditMode::Vim);
        editor.set_text(&text);
        for c in keys.chars() {
            let key = match c {
                '\u{1b}' => Key::plain(crate::keys::KeyCode::Esc),
                '\u{7f}' => Key::plain(crate::keys::KeyCode::Backspace),
                '\r' => Key::plain(crate::keys::KeyCode::Enter),
                c => Key::char(c),
            };
            editor.handle(&key);
            prop_assert!(is_grapheme_boundary(editor.buffer.text(), editor.buffer.cursor()));
        }
    }
}
