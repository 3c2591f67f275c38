//! Counts the terms of one file: in its text, its definitions and its path.
//!
//! Two passes keep this fast. The first counts each different identifier as it is written, in one
//! hash table; the second splits only the different ones into terms. The terms of an identifier are
//! remembered across files ([`Memory`]).

use crate::{
    kind::{self, FileKind},
    symbols::definitions,
    table::Table,
    words::{self, Extent, Memory, Term},
};

/// How many lines share a bit of a [`Posting::blocks`] at least.
const BLOCK_LINES: usize = 30;

/// The term stands in a directory of the path.
pub(crate) const IN_DIRECTORY: u8 = 1;
/// The term stands in the base name.
pub(crate) const IN_BASE: u8 = 2;

/// A term in a file. There is one for each pair of a term and a file, whatever the number of
/// places. The counts stop at the largest value of their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Posting {
    pub(crate) term: Term,
    pub(crate) file: u32,
    /// How often it stands in the text.
    pub(crate) body: u16,
    /// How often it stands in names that are defined.
    pub(crate) symbols: u8,
    /// [`IN_DIRECTORY`] and [`IN_BASE`].
    pub(crate) place: u8,
    /// In which of 64 blocks of lines it stands. Files of up to 1,920 lines have blocks of 30
    /// lines; longer ones have at most 64 equal blocks. Definitions and paths set no bit.
    pub(crate) blocks: u64,
}

/// What is kept of a file beside its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) kind: FileKind,
    /// The number of terms in the text. Parts and wholes of identifiers count each.
    pub(crate) length: u32,
    /// The number of terms in the base name.
    pub(crate) base_length: u8,
}

/// A different identifier of the text that is read: where it first stands, how often, and in which
/// blocks.
#[derive(Clone, Copy)]
struct Word {
    hash: u64,
    start: u32,
    length: u32,
    count: u32,
    blocks: u64,
}

/// Reads one file after the other. Each thread has its own and keeps it for all its files: the
/// tables keep their memory, and [`Memory`] grows with the vocabulary of the repository.
pub(crate) struct Reader {
    memory: Memory,
    seen: Table,
    words: Vec<Word>,
    terms: Table,
    postings: Vec<Posting>,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self {
            memory: Memory::default(),
            seen: Table::new(),
            words: Vec::new(),
            terms: Table::new(),
            postings: Vec::new(),
        }
    }

    /// The postings of a file; `text` is cut to what its kind is worth. The kind of a file can
    /// become another one by its content: binary, or generated when its head says so. A file
    /// without text still has the terms of its path.
    pub(crate) fn read(&mut self, file: u32, path: &str, text: &[u8]) -> (Summary, &[Posting]) {
        let mut kind = FileKind::of(path);
        let mut text = &text[..text.len().min(kind.readable_bytes())];
        if is_binary(text) {
            kind = FileKind::Binary;
            text = b"";
        } else if kind == FileKind::Source && (says_generated(text) || is_packed(text)) {
            kind = FileKind::Generated;
            text = &text[..text.len().min(kind.readable_bytes())];
        }
        self.seen.clear();
        self.words.clear();
        self.terms.clear();
        self.postings.clear();
        self.scan(text);
        let length = self.count(file, text);
        if matches!(kind, FileKind::Source | FileKind::Test) {
            self.define(file, text);
        }
        let base_length = self.place(file, path);
        let summary = Summary {
            kind,
            length,
            base_length,
        };
        (summary, &self.postings)
    }

    /// Counts the identifiers as they are written.
    fn scan(&mut self, text: &[u8]) {
        let lines = memchr::memchr_iter(b'\n', text).count() + 1;
        let per_block = BLOCK_LINES.max(lines.div_ceil(64));
        let mut line_end = memchr::memchr_iter(b'\n', text);
        let mut next_line = line_end.next().unwrap_or(text.len());
        let mut line = 0;
        for (start, identifier) in words::identifiers(text) {
            while start > next_line {
                line += 1;
                next_line = line_end.next().unwrap_or(usize::MAX);
            }
            let hash = words::hash(identifier);
            let fresh = self.words.len() as u32;
            let number = self.seen.number(hash, fresh);
            if number == fresh {
                self.words.push(Word {
                    hash,
                    start: start as u32,
                    length: identifier.len() as u32,
                    count: 0,
                    blocks: 0,
                });
            }
            let word = &mut self.words[number as usize];
            word.count += 1;
            word.blocks |= 1 << (line / per_block).min(63);
        }
    }

    /// Brings the identifiers together by their terms; returns how many terms there were.
    fn count(&mut self, file: u32, text: &[u8]) -> u32 {
        let mut length = 0;
        for word in &self.words {
            let start = word.start as usize;
            let identifier = &text[start..start + word.length as usize];
            for (term, _) in self.memory.terms(word.hash, identifier) {
                let posting = posting_of(&mut self.terms, &mut self.postings, *term, file);
                let count = u16::try_from(word.count).unwrap_or(u16::MAX);
                posting.body = posting.body.saturating_add(count);
                posting.blocks |= word.blocks;
                length += word.count;
            }
        }
        length
    }

    /// Counts the names that are defined, on top of the text, where they are counted already.
    fn define(&mut self, file: u32, text: &[u8]) {
        let Self {
            memory,
            terms,
            postings,
            ..
        } = self;
        definitions(text, |_, name| {
            for (term, _) in memory.terms(words::hash(name), name) {
                let posting = posting_of(terms, postings, *term, file);
                posting.symbols = posting.symbols.saturating_add(1);
            }
            let mut define = |term| {
                let posting = posting_of(terms, postings, term, file);
                posting.symbols = posting.symbols.saturating_add(1);
            };
            words::expand_pairs(name, &mut define);
            if name.len() == 1 {
                define(words::term(name));
            }
        });
    }

    /// Marks the terms of the path; returns how many parts the base name has.
    fn place(&mut self, file: u32, path: &str) -> u8 {
        let mut length = 0u8;
        each_place_term(path, |term, place, extent| {
            posting_of(&mut self.terms, &mut self.postings, term, file).place |= place;
            let is_part = place == IN_BASE && extent == Extent::Part;
            length = length.saturating_add(u8::from(is_part));
        });
        length
    }
}

fn posting_of<'p>(
    terms: &mut Table,
    postings: &'p mut Vec<Posting>,
    term: Term,
    file: u32,
) -> &'p mut Posting {
    let fresh = postings.len() as u32;
    let number = terms.number(term, fresh);
    if number == fresh {
        postings.push(Posting {
            term,
            file,
            body: 0,
            symbols: 0,
            place: 0,
            blocks: 0,
        });
    }
    &mut postings[number as usize]
}

/// Calls `each` with the terms of a path and where they stand, extensions left out. A name that
/// is put together with hyphens counts as one identifier.
pub(crate) fn each_place_term(path: &str, mut each: impl FnMut(Term, u8, Extent)) {
    let (directories, base) = path.rsplit_once('/').unwrap_or(("", path));
    for (part, place) in [(directories, IN_DIRECTORY), (base, IN_BASE)] {
        for name in part.split('/') {
            let name = match name.rsplit_once('.') {
                Some((stem, extension)) if kind::is_known(extension) => stem,
                _ => name,
            };
            words::expand(name.as_bytes(), |term, extent| each(term, place, extent));
            words::expand_pairs(name.as_bytes(), |term| each(term, place, Extent::Pair));
        }
    }
}

/// Whether bytes are not text: a NUL near the beginning, as git decides.
pub fn is_binary(text: &[u8]) -> bool {
    memchr::memchr(0, &text[..text.len().min(8000)]).is_some()
}

/// By the marks that generators leave, in the first 600 bytes: further on, a file may only speak of
/// them.
fn says_generated(text: &[u8]) -> bool {
    let head = text[..text.len().min(600)].to_ascii_lowercase();
    [
        b"@generated".as_slice(),
        b"code generated by",
        b"do not edit",
        b"autogenerated",
        b"auto-generated",
        b"automatically generated",
        b"file is generated",
        b"file was generated",
        b"made by gnu bison",
        b"generated by flex",
    ]
    .iter()
    .any(|mark| memchr::memmem::find(&head, mark).is_some())
}

/// Whether it is a bundle or minified: nobody writes lines that long.
fn is_packed(text: &[u8]) -> bool {
    const LONG: usize = 250;
    let lines = memchr::memchr_iter(b'\n', text).count() + 1;
    text.len() > 4096 && text.len() / lines > LONG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_wrote_is_known_by_its_mark_or_its_lines() {
        let kind = |text: &str| Reader::new().read(0, "src/a.js", text.as_bytes()).0.kind;
        let bundle = "var a=1;".repeat(1000);
        for text in [
            "// Code generated by stringer. DO NOT EDIT.\n",
            "/* A Bison parser, made by GNU Bison 3.8.2.  */\n",
            "# This file is autogenerated\n",
            &bundle,
        ] {
            assert_eq!(kind(text), FileKind::Generated, "{}", &text[..30]);
        }
        let written = "var a = 1;\n".repeat(1000);
        for text in ["// Generates code.\n", &written] {
            assert_eq!(kind(text), FileKind::Source);
        }
    }
}
