//! Long pastes and attached files, each shown as one short label.
//!
//! In the text a chip is one character, its mark, from the second private plane of Unicode; its
//! content is here. So motions, deletion, kills and undo treat it as one unit without knowing of
//! it. Such a character from outside becomes a chip that has it as its content, so nothing is lost.

use std::{borrow::Cow, collections::BTreeMap};

const MARKS: std::ops::RangeInclusive<char> = '\u{100000}'..='\u{10fffd}';

/// Longer pastes become chips. A paste of up to so many lines is text that can be edited.
const MOST_LINES: usize = 10;
const MOST_CHARACTERS: usize = 1000;

pub(super) fn is_mark(c: char) -> bool {
    MARKS.contains(&c)
}

pub(super) fn is_long(text: &str) -> bool {
    text.lines().nth(MOST_LINES).is_some() || text.chars().nth(MOST_CHARACTERS).is_some()
}

/// A path as one word: its blanks after backslashes, as in a shell.
pub(super) fn escaped(path: &str) -> String {
    path.replace(' ', "\\ ")
}

/// Contents by mark. Marks are not used again, so that undo finds what it had.
#[derive(Debug, Default)]
pub(super) struct Chips {
    contents: BTreeMap<char, String>,
    used: u32,
}

/// A part of a text.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Chip(&'a str),
}

impl Chips {
    /// The mark of a new chip. `None` if all 65,534 marks were used.
    pub(super) fn add(&mut self, content: &str) -> Option<char> {
        let mark = char::from_u32(u32::from(*MARKS.start()) + self.used).filter(|c| is_mark(*c))?;
        self.used += 1;
        self.contents.insert(mark, content.to_owned());
        Some(mark)
    }

    pub(super) fn content(&self, mark: char) -> Option<&str> {
        self.contents.get(&mark).map(String::as_str)
    }

    /// What is shown for a mark. Of a paste only how long it is, never a part of it.
    pub(super) fn label(&self, mark: char) -> String {
        let content = self.content(mark).unwrap_or_default();
        let lines = content.lines().count();
        match content.chars().count() {
            // A character of the range of marks that came from outside.
            1 => content.to_owned(),
            // Too short for a paste: the path of a file.
            ..=MOST_CHARACTERS if lines == 1 => {
                let name = content.rsplit('/').next().unwrap_or_default();
                format!("[{name}]")
            }
            _ if lines > MOST_LINES => format!("[pasted {lines} lines]"),
            characters => format!("[pasted {characters} characters]"),
        }
    }

    /// Text from outside with its own characters of the range of marks as chips.
    pub(super) fn admit<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if !text.contains(is_mark) {
            return Cow::Borrowed(text);
        }
        let admitted = text.chars().map(|c| match is_mark(c) {
            true => self
                .add(c.encode_utf8(&mut [0; 4]))
                .unwrap_or(char::REPLACEMENT_CHARACTER),
            false => c,
        });
        Cow::Owned(admitted.collect())
    }

    /// In the order of the text; no piece of text is empty.
    pub(super) fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Piece<'a>> {
        text.split_inclusive(is_mark).flat_map(|part| {
            let mark = part.chars().next_back().filter(|c| is_mark(*c));
            let plain = &part[..part.len() - mark.map_or(0, char::len_utf8)];
            let plain = (!plain.is_empty()).then_some(Piece::Text(plain));
            let chip = mark.map(|mark| Piece::Chip(self.content(mark).unwrap_or_default()));
            plain.into_iter().chain(chip)
        })
    }

    pub(super) fn expanded(&self, text: &str) -> String {
        let pieces = self.pieces(text).map(|piece| match piece {
            Piece::Text(text) | Piece::Chip(text) => text,
        });
        pieces.collect()
    }

    /// The text with labels in place of marks.
    pub(super) fn labelled<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains(is_mark) {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len() + 32);
        for c in text.chars() {
            match is_mark(c) {
                true => shown.push_str(&self.label(c)),
                false => shown.push(c),
            }
        }
        Cow::Owned(shown)
    }

    /// Forgets all contents but those whose marks are in one of the texts. Marks begin anew if
    /// nothing is left, which is why kills must be among the texts: they may hold marks.
    pub(super) fn keep_only<'a>(&mut self, texts: impl Iterator<Item = &'a String>) {
        let mut kept = BTreeMap::new();
        for mark in texts.flat_map(|text| text.chars()).filter(|c| is_mark(*c)) {
            if let Some(content) = self.contents.remove(&mark) {
                kept.insert(mark, content);
            }
        }
        if kept.is_empty() {
            self.used = 0;
        }
        self.contents = kept;
    }
}
