//! What a family of runners has found so far, in bounded memory.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::clip::{Clip, first_bytes};

/// So many failures are kept; beyond that a run is broken as a whole.
const MOST: usize = 1_000;
/// So many of them keep what was said about them.
const MOST_MESSAGES: usize = 200;
/// The two ends of a message that are kept.
const MESSAGE: (usize, usize) = (3 << 10, 1 << 10);
const LONGEST_NAME: usize = 240;

/// What failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    #[default]
    Test,
    /// A compiler refused the code, so tests could not be run.
    Build,
    /// A line that speaks of a failure, of a runner that is not known.
    Other,
}

/// A test that failed, or another error of a test run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFailure {
    /// The name as the runner prints it.
    pub name: String,
    #[serde(default)]
    pub kind: FailureKind,
    /// What the runner says about it; both ends if it is long.
    #[serde(default)]
    pub message: String,
}

struct Item {
    name: String,
    message: Clip,
}

/// Failures in the order of their first mention, each name once. Bounded: at most `MOST` names, and
/// messages of `MESSAGE` bytes at both ends for the first `MOST_MESSAGES`. Whatever a program
/// prints, that is about a megabyte for each family.
pub(super) struct Collected {
    kind: FailureKind,
    items: Vec<Item>,
    by_name: HashMap<String, usize>,
}

/// The place of a failure in its collection.
pub(super) type Id = usize;

impl Collected {
    pub(super) fn new(kind: FailureKind) -> Self {
        Self {
            kind,
            items: Vec::new(),
            by_name: HashMap::new(),
        }
    }

    /// The failure of this name, new or known; none beyond the limit.
    pub(super) fn named(&mut self, name: &str) -> Option<Id> {
        let name = first_bytes(name.trim(), LONGEST_NAME);
        if name.is_empty() {
            return None;
        }
        if let Some(&id) = self.by_name.get(name) {
            return Some(id);
        }
        if self.items.len() == MOST {
            return None;
        }
        let (head, tail) = if self.items.len() < MOST_MESSAGES {
            MESSAGE
        } else {
            (0, 0)
        };
        self.by_name.insert(name.to_owned(), self.items.len());
        self.items.push(Item {
            name: name.to_owned(),
            message: Clip::new(head, tail),
        });
        Some(self.items.len() - 1)
    }

    /// The failure of this name if nothing was said about it so far: runners repeat themselves.
    pub(super) fn unexplained(&mut self, name: &str) -> Option<Id> {
        let id = self.named(name)?;
        self.items[id].message.is_empty().then_some(id)
    }

    /// Adds a line to what is said about a failure.
    pub(super) fn explain(&mut self, id: Option<Id>, line: &str) {
        if let Some(item) = id.and_then(|id| self.items.get_mut(id)) {
            item.message.push(line.trim_end());
        }
    }

    /// Adds what was gathered before the failure was known.
    pub(super) fn explain_all(&mut self, id: Option<Id>, lines: &str) {
        for line in lines.lines() {
            self.explain(id, line);
        }
    }

    pub(super) fn known(&self, name: &str) -> Option<Id> {
        self.by_name.get(name).copied()
    }

    /// Gives a failure its full name, unless another has it.
    pub(super) fn rename(&mut self, id: Id, name: &str) {
        let name = first_bytes(name.trim(), LONGEST_NAME);
        if let Some(item) = self.items.get_mut(id)
            && !self.by_name.contains_key(name)
        {
            self.by_name.remove(&item.name);
            self.by_name.insert(name.to_owned(), id);
            name.clone_into(&mut item.name);
        }
    }

    pub(super) fn finish(self) -> impl Iterator<Item = TestFailure> {
        let kind = self.kind;
        self.items.into_iter().map(move |item| TestFailure {
            message: item.message.text(),
            name: item.name,
            kind,
        })
    }
}
