//! A small hash table that is emptied without touching its memory.
//!
//! Indexing counts the terms of every file in a table of its own. A map from the standard library
//! would have to be cleared or allocated for each; here a slot belongs to the current file only if
//! it carries the current round, so clearing is one addition. Keys are hashes already and are used
//! as they are, with linear probing.

use std::hash::{BuildHasherDefault, Hasher};

/// For keys that are hashes already. A repository whose words collide on purpose can slow its own
/// indexing down, and nothing else.
#[derive(Default)]
pub(crate) struct Identity(u64);

pub(crate) type BuildIdentity = BuildHasherDefault<Identity>;

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: u64,
    round: u32,
    value: u32,
}

/// From hashes to numbers, for one file after the other. The number of slots is a power of two and
/// about twice that of the keys or more.
pub(crate) struct Table {
    slots: Vec<Slot>,
    /// Slots of another round are free. Never 0, which is what new slots have.
    round: u32,
    used: usize,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![Slot::default(); 1 << 13],
            round: 1,
            used: 0,
        }
    }

    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.slots.fill(Slot::default());
            self.round = 1;
        }
    }

    /// The number of a key; a new key gets `fresh`.
    pub(crate) fn number(&mut self, key: u64, fresh: u32) -> u32 {
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
        let place = self.place(key);
        let slot = &mut self.slots[place];
        if slot.round != self.round {
            *slot = Slot {
                key,
                round: self.round,
                value: fresh,
            };
            self.used += 1;
        }
        slot.value
    }

    fn place(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = (key as usize) & mask;
        while self.slots[place].round == self.round && self.slots[place].key != key {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let larger = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        for slot in old {
            if slot.round == self.round {
                let place = self.place(slot.key);
                self.slots[place] = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn a_key_keeps_its_number_until_the_table_is_cleared() {
        let mut table = Table::new();
        for key in 0..20_000u64 {
            assert_eq!(table.number(key, key as u32), key as u32);
        }
        for key in 0..20_000u64 {
            assert_eq!(table.number(key, 7), key as u32);
        }
        table.clear();
        assert_eq!(table.number(5, 9), 9);
    }
}
