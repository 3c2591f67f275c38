//! Answers kept with their `ETag`: asking again for what did not change costs nothing of the limit.
//!
//! Following a pull request asks the same questions again and again. With a tag GitHub answers
//! `304` as long as nothing changed. The answers are bounded by number and size and live in memory
//! only. They cannot be out of date: each use is confirmed by GitHub first.

use std::collections::HashMap;

use parking_lot::Mutex;
use reqwest::header::HeaderValue;

use super::api::Answer;

const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Finding the oldest is a linear search, which is fast enough for this number.
const MOST_ENTRIES: usize = 512;
/// A larger answer would push all others out.
const LARGEST: usize = 2 * 1024 * 1024;

/// What we asked for: the address and the form.
pub(super) type Key = (String, &'static str);

/// The answers, oldest use first to go.
#[derive(Default)]
pub(super) struct Kept(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    clock: u64,
}

struct Entry {
    tag: HeaderValue,
    answer: Answer,
    used: u64,
}

impl Kept {
    /// The answer to this, and its tag.
    pub(super) fn get(&self, key: &Key) -> Option<(HeaderValue, Answer)> {
        let mut inner = self.0.lock();
        inner.clock += 1;
        let now = inner.clock;
        let entry = inner.entries.get_mut(key)?;
        entry.used = now;
        Some((entry.tag.clone(), entry.answer.clone()))
    }

    /// Keeps an answer, if it is not too large. An answer that replaces an older one for the same
    /// key is never left beside it, even if the new one is too large to keep.
    pub(super) fn put(&self, key: Key, tag: HeaderValue, answer: Answer) {
        let mut inner = self.0.lock();
        inner.forget(&key);
        let size = answer.body.len();
        if size > LARGEST {
            return;
        }
        while inner.bytes + size > MOST_BYTES || inner.entries.len() >= MOST_ENTRIES {
            let oldest = inner.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            inner.forget(&oldest);
        }
        inner.clock += 1;
        let used = inner.clock;
        inner.bytes += size;
        inner.entries.insert(key, Entry { tag, answer, used });
    }
}

impl Inner {
    fn forget(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.answer.body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(size: usize) -> Answer {
        Answer {
            body: vec![b'x'; size].into(),
            kind: String::new(),
            next: None,
        }
    }

    fn key(name: usize) -> Key {
        (name.to_string(), "json")
    }

    #[test]
    fn the_least_used_answers_go_when_there_is_no_room() {
        let kept = Kept::default();
        let tag = HeaderValue::from_static("\"t\"");
        for name in 0..8 {
            kept.put(key(name), tag.clone(), answer(LARGEST));
        }
        assert!(kept.get(&key(0)).is_some());
        kept.put(key(8), tag.clone(), answer(LARGEST));
        assert!(kept.get(&key(0)).is_some() && kept.get(&key(1)).is_none());
        kept.put(key(9), tag.clone(), answer(LARGEST + 1));
        assert!(kept.get(&key(9)).is_none());
        for name in 100..1000 {
            kept.put(key(name), tag.clone(), answer(1));
        }
        let inner = kept.0.lock();
        assert_eq!(inner.entries.len(), MOST_ENTRIES);
        assert_eq!(inner.bytes, MOST_ENTRIES);
    }
}
