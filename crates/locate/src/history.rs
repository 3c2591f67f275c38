//! What past commits said and which files they changed.
//!
//! Kept as hashes: the words of a message and the paths it changed. A path that was renamed since
//! matches no file of the index and counts for nothing.

use crate::{
    LocateError,
    codec::{Put, Take},
    git::Git,
    words::{self, Term},
};

/// How many commits are looked at. This also bounds what one `git log` costs.
pub(crate) const DEPTH: usize = 2000;
/// A commit that changes more files says little about each.
const WIDEST: usize = 40;
/// How much of a message is read.
const MESSAGE_BYTES: usize = 800;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The terms of its message, each once.
    pub(crate) terms: Vec<Term>,
    /// The hashes of the paths it changed.
    pub(crate) files: Vec<u64>,
}

/// The newest commits up to a tip, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// The full name of the tip; empty if there is no history.
    pub(crate) tip: String,
    pub(crate) commits: Vec<Commit>,
}

impl History {
    /// Reads the commits that `old` does not have yet. Only what is reachable from `tip` counts.
    ///
    /// If `old` is of an ancestor, only the commits in between are read and put in front of it;
    /// otherwise, as after a rebase or a switch of branches, everything is read anew.
    pub(crate) fn read(git: &Git, tip: &str, old: &Self) -> Result<Self, LocateError> {
        if old.tip == tip {
            return Ok(old.clone());
        }
        let continues = !old.tip.is_empty() && git.is_ancestor(&old.tip, tip);
        let since = continues.then_some(old.tip.as_str());
        let log = git.log(tip, since, DEPTH)?;
        let mut commits: Vec<Commit> = records(&log).collect();
        if continues {
            commits.extend_from_slice(&old.commits);
            commits.truncate(DEPTH);
        }
        Ok(Self {
            tip: tip.to_owned(),
            commits,
        })
    }

    pub(crate) fn put_into(&self, buffer: &mut Vec<u8>) {
        buffer.put_bytes(self.tip.as_bytes());
        buffer.put_number(self.commits.len() as u64);
        for commit in &self.commits {
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

/// `\x01 message \x02 path \0 path \0`, again and again. Commits without a file in scope, or with
/// more than `WIDEST`, are left out.
pub(crate) fn records(log: &[u8]) -> impl Iterator<Item = Commit> {
    log.split(|byte| *byte == 1).filter_map(|record| {
        let end = memchr::memchr(2, record)?;
        let message = &record[..end.min(MESSAGE_BYTES)];
        let files: Vec<u64> = record[end + 1..]
            .split(|byte| matches!(byte, 0 | b'\n'))
            .filter(|path| !path.is_empty())
            .map(words::hash)
            .collect();
        let fits = !files.is_empty() && files.len() <= WIDEST;
        fits.then(|| Commit {
            terms: message_terms(message),
            files,
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
            b"\x01Fix login\n\x02\nsrc/a b.rs\0\0\x01Empty\n\x02\0\x01Other\n\x02\nx.rs\0y.rs\0";
        let commits: Vec<Commit> = records(log).collect();
        let files: Vec<&[u64]> = commits.iter().map(|commit| &commit.files[..]).collect();
        let hash = |path: &str| words::hash(path.as_bytes());
        assert_eq!(
            files,
            [&[hash("src/a b.rs")][..], &[hash("x.rs"), hash("y.rs")]]
        );
        assert_eq!(commits[0].terms.len(), 2);
    }

    #[test]
    fn history_comes_back_through_bytes() {
        let history = History {
            tip: "abc".into(),
            commits: vec![Commit {
                terms: vec![1, 2],
                files: vec![3],
            }],
        };
        let mut bytes = Vec::new();
        history.put_into(&mut bytes);
        assert_eq!(History::take(&mut Take(&bytes)), Some(history));
    }
}
