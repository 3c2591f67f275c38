//! The inverted index: from a term to the files it stands in, as compact bytes.
//!
//! The postings of a term are in the order of their files, and each is written like this:
//!
//! ```text
//! gap      variable   file number minus that of the posting before
//! flags    1 byte     bits 0-1: place in the path, 2: has symbols, 3: has body,
//!                     4-7: count in the body, 15 for that many or more
//! symbols  1 byte     if bit 2 is set
//! body     variable   if bit 3 is set and bits 4-7 are 15
//! blocks   variable   if bit 3 is set
//! ```

use std::sync::Mutex;

use crate::{
    codec::{Put, Take},
    document::Posting,
    words::Term,
};

/// Postings are gathered by the first byte of their term, so that each part sorts quickly.
const BUCKETS: usize = 256;

/// Postings in no order, on their way into an index. Each thread fills one of its own; they are
/// appended to each other, then sorted bucket by bucket. Term hashes are spread evenly, so the
/// buckets are of about equal size.
pub(crate) struct GatheredPostings(Vec<Vec<Posting>>);

impl GatheredPostings {
    pub(crate) fn new() -> Self {
        Self(vec![Vec::new(); BUCKETS])
    }

    pub(crate) fn push(&mut self, posting: Posting) {
        self.0[(posting.term >> 56) as usize].push(posting);
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        for (own, more) in self.0.iter_mut().zip(&mut other.0) {
            own.append(more);
        }
    }
}

/// The terms in order, and their postings. A lookup is a binary search over `terms` and a decoding
/// of a few bytes; nothing is expanded in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Postings {
    /// Each term with the end of its bytes; they begin where those of the term before end.
    terms: Vec<(Term, u32)>,
    bytes: Vec<u8>,
}

impl Postings {
    /// Sorts what was gathered, on all of `threads`. The buckets are joined in their order, which
    /// is that of the terms, so no second sort is needed. The result does not depend on the number
    /// of threads.
    pub(crate) fn of(gathered: GatheredPostings, threads: usize) -> Self {
        let work = Mutex::new(gathered.0.into_iter().enumerate());
        let done = Mutex::new(vec![Self::default(); BUCKETS]);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((place, bucket)) = next(&work) {
                        let part = Self::of_bucket(bucket);
                        if let Ok(mut done) = done.lock() {
                            done[place] = part;
                        }
                    }
                });
            }
        });
        let parts = done.into_inner().unwrap_or_default();
        let mut all = Self::default();
        all.bytes
            .reserve(parts.iter().map(|part| part.bytes.len()).sum());
        all.terms
            .reserve(parts.iter().map(|part| part.terms.len()).sum());
        for part in parts {
            let base = all.bytes.len() as u32;
            all.bytes.extend_from_slice(&part.bytes);
            all.terms
                .extend(part.terms.iter().map(|(term, end)| (*term, base + end)));
        }
        all
    }

    fn of_bucket(mut bucket: Vec<Posting>) -> Self {
        bucket.sort_unstable_by_key(|posting| (posting.term, posting.file));
        let mut part = Self::default();
        part.bytes.reserve(bucket.len() * 6);
        for same in bucket.chunk_by(|a, b| a.term == b.term) {
            let mut before = 0;
            for posting in same {
                put(&mut part.bytes, posting, posting.file - before);
                before = posting.file;
            }
            part.terms.push((same[0].term, part.bytes.len() as u32));
        }
        part
    }

    /// The files of a term. Empty if no file has it. Numbers may be out of range when the bytes
    /// come from a damaged cache.
    pub(crate) fn get(&self, term: Term) -> impl Iterator<Item = Posting> {
        let found = self.terms.binary_search_by_key(&term, |(term, _)| *term);
        let bytes = found.map_or(&[][..], |place| self.bytes_at(place));
        decode(term, bytes)
    }

    /// All postings, in the order of their terms.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Posting> {
        let terms = self.terms.iter().enumerate();
        terms.flat_map(|(place, (term, _))| decode(*term, self.bytes_at(place)))
    }

    /// Empty where the ends make no sense, as they may in a damaged cache.
    fn bytes_at(&self, place: usize) -> &[u8] {
        let start = match place {
            0 => 0,
            _ => self.terms[place - 1].1 as usize,
        };
        let end = self.terms[place].1 as usize;
        self.bytes.get(start..end).unwrap_or_default()
    }

    pub(crate) fn put_into(&self, buffer: &mut Vec<u8>) {
        buffer.put_number(self.terms.len() as u64);
        for (term, end) in &self.terms {
            buffer.extend_from_slice(&term.to_le_bytes());
            buffer.extend_from_slice(&end.to_le_bytes());
        }
        buffer.put_bytes(&self.bytes);
    }

    pub(crate) fn take(from: &mut Take) -> Option<Self> {
        let count = from.count()?;
        let table = from.exactly(count.checked_mul(12)?)?;
        let (rows, _) = table.as_chunks::<12>();
        let terms = rows
            .iter()
            .map(|[a, b, c, d, e, f, g, h, i, j, k, l]| {
                let term = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
                (term, u32::from_le_bytes([*i, *j, *k, *l]))
            })
            .collect();
        let bytes = from.bytes()?.to_vec();
        Some(Self { terms, bytes })
    }
}

fn next<T>(work: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    work.lock().ok()?.next()
}

const HAS_SYMBOLS: u8 = 4;
const HAS_BODY: u8 = 8;
/// A count from here on follows as a number; smaller ones are in the flags.
const MANY: u8 = 15;

fn put(bytes: &mut Vec<u8>, posting: &Posting, gap: u32) {
    bytes.put_number(u64::from(gap));
    let few = posting.body.min(u16::from(MANY)) as u8;
    let mut flags = posting.place | few << 4;
    if posting.symbols > 0 {
        flags |= HAS_SYMBOLS;
    }
    if posting.body > 0 {
        flags |= HAS_BODY;
    }
    bytes.push(flags);
    if posting.symbols > 0 {
        bytes.push(posting.symbols);
    }
    if posting.body > 0 {
        if few == MANY {
            bytes.put_number(u64::from(posting.body));
        }
        bytes.put_number(posting.blocks);
    }
}

/// Ends at the first posting that is cut off.
fn decode(term: Term, bytes: &[u8]) -> impl Iterator<Item = Posting> {
    let mut take = Take(bytes);
    let mut file = 0u32;
    std::iter::from_fn(move || {
        file = file.wrapping_add(take.number()? as u32);
        let flags = take.byte()?;
        let symbols = match flags & HAS_SYMBOLS {
            0 => 0,
            _ => take.byte()?,
        };
        let mut body = u16::from(flags >> 4);
        let mut blocks = 0;
        if flags & HAS_BODY != 0 {
            if body == u16::from(MANY) {
                body = take.number()? as u16;
            }
            blocks = take.number()?;
        }
        Some(Posting {
            term,
            file,
            body,
            symbols,
            place: flags & 3,
            blocks,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_come_back_by_term_and_through_bytes() {
        let posting = |term: u64, file, body, symbols| Posting {
            term,
            file,
            body,
            symbols,
            place: 2,
            blocks: if body > 0 { 1 << 40 | 1 } else { 0 },
        };
        let all = [
            posting(1, 3, 1, 0),
            posting(1, 900, 4000, 7),
            posting(u64::MAX, 0, 0, 1),
        ];
        let mut gathered = GatheredPostings::new();
        all.iter().rev().for_each(|one| gathered.push(*one));
        let postings = Postings::of(gathered, 2);
        assert_eq!(postings.iter().collect::<Vec<_>>(), all);
        assert_eq!(postings.get(1).collect::<Vec<_>>(), all[..2]);
        assert_eq!(postings.get(2).count(), 0);
        let mut bytes = Vec::new();
        postings.put_into(&mut bytes);
        assert_eq!(Postings::take(&mut Take(&bytes)), Some(postings));
    }
}
