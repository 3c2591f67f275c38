//! What was killed, to be yanked again.

use std::collections::VecDeque;

/// Further ones push out the oldest.
const MOST_KILLS: usize = 32;

/// On which side of what was killed just before new text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// Kills in a row are one entry. The newest is the last.
#[derive(Debug, Default)]
pub(super) struct KillRing {
    entries: VecDeque<String>,
    /// Steps back from the newest of the entry that was yanked last.
    yanked: usize,
}

impl KillRing {
    pub(super) fn add(&mut self, text: &str) {
        self.entries.push_back(text.to_owned());
        if self.entries.len() > MOST_KILLS {
            self.entries.pop_front();
        }
    }

    /// Adds to the newest entry.
    pub(super) fn join(&mut self, text: &str, side: Side) {
        match (self.entries.back_mut(), side) {
            (Some(newest), Side::Before) => newest.insert_str(0, text),
            (Some(newest), Side::After) => newest.push_str(text),
            (None, _) => self.add(text),
        }
    }

    pub(super) fn newest(&mut self) -> Option<&str> {
        self.yanked = 0;
        self.entries.back().map(String::as_str)
    }

    /// The entry before the one that was given last; after the oldest comes the newest.
    pub(super) fn older(&mut self) -> Option<&str> {
        self.yanked = (self.yanked + 1) % self.entries.len().max(1);
        let at = self.entries.len().checked_sub(self.yanked + 1)?;
        self.entries.get(at).map(String::as_str)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &String> {
        self.entries.iter()
    }
}
