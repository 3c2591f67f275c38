//! From text to terms: identifiers, their parts, stems, hashes.
//!
//! ```text
//! getOrderBy2  ->  identifier
//! get Order By2  ->  parts, in lower case and stemmed: one term each
//! getorderby2  ->  the whole, without separators and stemmed: one term more
//! ```
//!
//! `getOrderBy` and `get_order_by` thus share all their terms, and so does `get-order-by` in
//! instructions and paths. A whole is spelled like a single word: `fileName` and `filename` meet.
//! Strings are not kept: two words with the same 64-bit hash would be one, which for the vocabulary
//! of a repository does not happen in practice.

use std::collections::HashMap;

use crate::{stem::stem, table::BuildIdentity};

/// A word of the index: the hash of a stem, or of a whole compound identifier.
pub(crate) type Term = u64;

/// Whether a term stands for a part of an identifier or for all of one that has parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Part,
    Whole,
    /// Two parts that follow each other: of a defined name, or two words of an instruction.
    Pair,
}

/// Longer runs are no identifiers that anybody would write in an instruction.
const LONGEST: usize = 80;

/// Odd, and without a pattern in its bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash that is quick on short keys and the same on every machine. It is in caches on disk, so it
/// must not change without a new cache version. It does not resist chosen collisions.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const K: u64 = 0xff51_afd7_ed55_8ccd;
    let mut state = (bytes.len() as u64).wrapping_mul(GOLDEN);
    let (chunks, rest) = bytes.as_chunks::<8>();
    for chunk in chunks {
        state = (state ^ u64::from_le_bytes(*chunk)).wrapping_mul(K);
        state ^= state >> 32;
    }
    let mut last = 0u64;
    for (place, byte) in rest.iter().enumerate() {
        last |= u64::from(*byte) << (8 * place);
    }
    state = (state ^ last).wrapping_mul(K);
    state ^= state >> 29;
    state = state.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    state ^ (state >> 32)
}

const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        byte += 1;
    }
    table
};

/// Whether a byte can be part of an identifier. Letters beyond ASCII count.
pub(crate) fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

/// The identifiers of a text, with their places. Those of one byte or of more than `LONGEST` are
/// left out.
pub(crate) fn identifiers(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            while at < text.len() && !is_word(text[at]) {
                at += 1;
            }
            let start = at;
            while at < text.len() && is_word(text[at]) {
                at += 1;
            }
            match at - start {
                0 => return None,
                1 => {}
                n if n > LONGEST => {}
                _ => return Some((start, &text[start..at])),
            }
        }
    })
}

/// Calls `each` with every term of an identifier: its parts, and itself if it has more than one.
pub(crate) fn expand(identifier: &[u8], mut each: impl FnMut(Term, Extent)) {
    let mut whole = [0u8; LONGEST];
    let mut length = 0;
    let mut count = 0;
    for part in parts(identifier) {
        let end = (length + part.len()).min(LONGEST);
        let room = &mut whole[length..end];
        room.copy_from_slice(&part[..room.len()]);
        room.make_ascii_lowercase();
        length = end;
        count += 1;
        if part.len() > 1 {
            each(term(part), Extent::Part);
        }
    }
    if count > 1 {
        each(term(&whole[..length]), Extent::Whole);
    }
}

/// Calls `each` with every two neighbouring parts of an identifier that has more than two. Only
/// names that are defined, and base names, are looked up so: for all text there would be too many.
pub(crate) fn expand_pairs(identifier: &[u8], mut each: impl FnMut(Term)) {
    if parts(identifier).nth(2).is_none() {
        return;
    }
    let mut before: &[u8] = b"";
    for part in parts(identifier) {
        if !before.is_empty() && before.len() + part.len() <= LONGEST {
            let mut pair = [0u8; LONGEST];
            pair[..before.len()].copy_from_slice(before);
            pair[before.len()..before.len() + part.len()].copy_from_slice(part);
            each(term(&pair[..before.len() + part.len()]));
        }
        before = part;
    }
}

/// The term of a single word: its stem in lower case. Only ASCII letters change case.
pub(crate) fn term(word: &[u8]) -> Term {
    let mut room = [0u8; LONGEST];
    let length = word.len().min(LONGEST);
    let room = &mut room[..length];
    room.copy_from_slice(&word[..length]);
    room.make_ascii_lowercase();
    let stem = stem(room);
    hash(&room[..stem])
}

/// Splits at underscores and where the case changes: `HTTPServer_name` has three parts.
pub(crate) fn parts(identifier: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while identifier.get(at).is_some_and(|byte| !is_part(*byte)) {
            at += 1;
        }
        let start = at;
        while at < identifier.len() && is_part(identifier[at]) {
            at += 1;
            if at < identifier.len() && is_border(identifier, start, at) {
                break;
            }
        }
        (at > start).then(|| &identifier[start..at])
    })
}

fn is_part(byte: u8) -> bool {
    byte != b'_' && is_word(byte)
}

fn is_border(identifier: &[u8], start: usize, at: usize) -> bool {
    if !identifier[at].is_ascii_uppercase() {
        return false;
    }
    let before = identifier[at - 1];
    if before.is_ascii_lowercase() || before.is_ascii_digit() {
        return true;
    }
    // The last capital of a run begins a word, `HTTPServer`, unless it ends a plural, `URLs`.
    let next = |by: usize| identifier.get(at + by).copied();
    let is_plural = next(1) == Some(b's') && !next(2).is_some_and(|b| b.is_ascii_lowercase());
    at > start
        && before.is_ascii_uppercase()
        && next(1).is_some_and(|b| b.is_ascii_lowercase())
        && !is_plural
}

/// Remembers the terms of the identifiers that were met, since most are met again.
#[derive(Default)]
pub(crate) struct Memory {
    known: HashMap<u64, (u32, u8), BuildIdentity>,
    terms: Vec<(Term, Extent)>,
}

impl Memory {
    /// The terms of an identifier whose hash is at hand. The hash alone is compared.
    pub(crate) fn terms(&mut self, hash: u64, identifier: &[u8]) -> &[(Term, Extent)] {
        let (from, count) = match self.known.get(&hash) {
            Some(place) => *place,
            None => {
                let from = self.terms.len();
                expand(identifier, |term, extent| self.terms.push((term, extent)));
                let count = (self.terms.len() - from).min(usize::from(u8::MAX));
                let place = (from as u32, count as u8);
                self.known.insert(hash, place);
                place
            }
        };
        let from = from as usize;
        &self.terms[from..from + usize::from(count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(identifier: &str) -> Vec<String> {
        parts(identifier.as_bytes())
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect()
    }

    #[test]
    fn identifiers_fall_into_their_parts() {
        assert_eq!(split("getOrderBy"), ["get", "Order", "By"]);
        assert_eq!(split("HTTPServer_name"), ["HTTP", "Server", "name"]);
        assert_eq!(split("__init__"), ["init"]);
        assert_eq!(split("MAX_SIZE"), ["MAX", "SIZE"]);
        assert_eq!(split("base64Encode"), ["base64", "Encode"]);
        assert_eq!(split("parseURLs"), ["parse", "URLs"]);
        assert_eq!(split("___"), [""; 0]);
    }

    #[test]
    fn spellings_of_a_compound_share_all_their_terms() {
        let terms = |identifier: &str| {
            let mut terms = Vec::new();
            expand(identifier.as_bytes(), |term, extent| {
                terms.push((term, extent));
            });
            terms
        };
        assert_eq!(terms("getOrderBy"), terms("get_order_by"));
        assert_eq!(terms("GetOrderBy").len(), 4);
        assert_eq!(terms("order").len(), 1);
    }

    #[test]
    fn a_compound_is_the_word_it_is_when_it_is_joined() {
        let mut whole = None;
        expand(b"file_names", |term, _| whole = Some(term));
        assert_eq!(whole, Some(term(b"filename")));
        let mut pairs = Vec::new();
        expand_pairs(b"contentMapPage", |term| pairs.push(term));
        assert_eq!(pairs, [term(b"contentmap"), term(b"mappage")]);
        expand_pairs(b"contentMap", |_| panic!("the whole is a pair already"));
    }

    #[test]
    fn one_letter_and_endless_runs_are_no_identifiers() {
        let text = format!("a bc {} d_e", "x".repeat(81));
        let found: Vec<&[u8]> = identifiers(text.as_bytes()).map(|(_, id)| id).collect();
        assert_eq!(found, [b"bc".as_slice(), b"d_e"]);
    }
}
