//! What past commits said and which files they changed.
//!
//! Kept as hashes: the words of a message and the paths it changed. A path that was renamed since
//! matches no file of the index and counts for nothing.

use std::collections::HashMap;

use crate::{
    LocateError,
    codec::{Put, Take},
    git::Git,
    table::BuildIdentity,
    words::{self, Term},
};

/// How many commits are looked at. This also bounds what one `git log` costs.
pub(crate) const DEPTH: usize = 2000;
/// A commit that changes more files says little about each.
const WIDEST: usize = 40;
/// How much of a message is read.
const MESSAGE_BYTES: usize = 800;

/// A commit as it counts for the ranking. One that changes no file in scope, or too many, says
/// nothing and is empty; it is kept because it takes one of the [`DEPTH`] places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The hash of its name.
    pub(crate) id: u64,
    /// The terms of its message, each once.
    pub(crate) terms: Vec<Term>,
    /// The hashes of the paths it changed.
    pub(crate) files: Vec<u64>,
}

/// The newest commits up to a tip, in the order of `git log`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// The full name of the tip; empty if there is no history.
    pub(crate) tip: String,
    pub(crate) commits: Vec<Commit>,
}

impl History {
    /// Reads the commits that `old` does not have yet. Only what is reachable from `tip` counts.
    ///
    /// Which commits there are, and in which order, is asked of git each time: a merge brings in
    /// commits that are older than known ones, and each new one pushes an old one out. So the
    /// result is the same whether `old` has many of them or none.
    pub(crate) fn read(git: &Git, tip: &str, old: &Self) -> Result<Self, LocateError> {
        if old.tip == tip {
            return Ok(old.clone());
        }
        let commits = match old.commits.is_empty() {
            true => records(&git.log(tip, DEPTH)?).collect(),
            false => old.continued(git, tip)?,
        };
        Ok(Self {
            tip: tip.to_owned(),
            commits,
        })
    }

    fn continued(&self, git: &Git, tip: &str) -> Result<Vec<Commit>, LocateError> {
        let names = git.newest(tip, DEPTH)?;
        let known = self.commits.iter().map(|commit| (commit.id, commit));
        let known: HashMap<u64, &Commit, BuildIdentity> = known.collect();
        let id = |name: &String| words::hash(name.as_bytes());
        let fresh: Vec<&str> = names
            .iter()
            .filter(|name| !known.contains_key(&id(name)))
            .map(String::as_str)
            .collect();
        let log = git.log_of(&fresh)?;
        let read: HashMap<u64, Commit, BuildIdentity> =
            records(&log).map(|commit| (commit.id, commit)).collect();
        let commit = |name: &String| {
            let id = id(name);
            read.get(&id).or(known.get(&id).copied()).cloned()
        };
        Ok(names.iter().filter_map(commit).collect())
    }

    pub(crate) fn put_into(&self, buffer: &mut Vec<u8>) {
        buffer.put_bytes(self.tip.as_bytes());
        buffer.put_number(self.commits.len() as u64);
        for commit in &self.commits {
            buffer.extend_from_slice(&commit.id.to_le_bytes());
            for hashes in [&commit.terms, &commit.files] {
                buffer.put_number(hashes.len() as u64);
                for hash in hashes {
                    buffer.extend_from_slice(&hash.to_le_bytes());
                }
            }
        }
    }

    pub(crate) fn take(from: &mut Take) -> Option<Self> {
        let tip = String::from_utf8(from.bytes()?.to_vec()).ok()?;
        let count = from.count()?;
        let commits = (0..count)
            .map(|_| {
                Some(Commit {
                    id: from.fixed()?,
                    terms: hashes(from)?,
                    files: hashes(from)?,
                })
            })
            .collect::<Option<_>>()?;
        Some(Self { tip, commits })
    }
}

fn hashes(from: &mut Take) -> Option<Vec<u64>> {
    let count = from.count()?;
    (0..count).map(|_| from.fixed()).collect()
}

/// `\x01 name \x02 message \x02 path \0 path \0`, again and again.
pub(crate) fn records(log: &[u8]) -> impl Iterator<Item = Commit> {
    log.split(|byte| *byte == 1).filter_map(|record| {
        let start = memchr::memchr(2, record)?;
        let (name, rest) = (&record[..start], &record[start + 1..]);
        let end = memchr::memchr(2, rest)?;
        let message = &rest[..end.min(MESSAGE_BYTES)];
        let files: Vec<u64> = rest[end + 1..]
            .split(|byte| matches!(byte, 0 | b'\n'))
            .filter(|path| !path.is_empty())
            .map(words::hash)
            .collect();
        let says = !files.is_empty() && files.len() <= WIDEST;
        Some(Commit {
            id: words::hash(name),
            terms: if says {
                message_terms(message)
            } else {
                Vec::new()
            },
            files: if says { files } else { Vec::new() },
        })
    })
}

fn message_terms(message: &[u8]) -> Vec<Term> {
    let mut terms = Vec::new();
    for (_, identifier) in words::identifiers(message) {
        words::expand(identifier, |term, _| terms.push(term));
    }
    terms.sort_unstable();
    terms.dedup();
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_give_messages_and_files() {
        let log =
            b"\x01a\x02Fix login\n\x02\nsrc/a b.rs\0\0\x01b\x02Empty\n\x02\0\x01c\x02Other\n\x02\nx.rs\0y.rs\0";
        let commits: Vec<Commit> = records(log).collect();
        let files: Vec<&[u64]> = commits.iter().map(|commit| &commit.files[..]).collect();
        let hash = |path: &str| words::hash(path.as_bytes());
        assert_eq!(
            files,
            [
                &[hash("src/a b.rs")][..],
                &[],
                &[hash("x.rs"), hash("y.rs")]
            ]
        );
        assert_eq!(commits[0].terms.len(), 2);
        assert_eq!(commits[2].id, hash("c"));
    }

    #[test]
    fn history_comes_back_through_bytes() {
        let history = History {
            tip: "abc".into(),
            commits: vec![Commit {
                id: 7,
                terms: vec![1, 2],
                files: vec![3],
            }],
        };
        let mut bytes = Vec::new();
        history.put_into(&mut bytes);
        assert_eq!(History::take(&mut Take(&bytes)), Some(history));
    }
}
