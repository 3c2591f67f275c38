//! What the history says: which files similar commits changed, and which change anyway.
//!
//! A commit whose message has rare words in common with the instruction speaks for the files it
//! changed, the less the more files it changed. Besides, files that change often or changed lately
//! are somewhat more likely to change again; this never makes a candidate of a file for which
//! nothing else speaks.

use std::collections::HashMap;

use crate::{
    history::History,
    index::Index,
    query::{Query, Wanted},
    signal::{FileEvidence, Signal},
    spoken::Spoken,
    table::BuildIdentity,
    words::{self, Term},
};

/// How many of the commits that are described most alike are heard. The others share little with
/// the instruction, but there are many of them.
const HEARD: usize = 30;
/// After so many commits a change counts half, for how often,
const BUSY_AGE: f32 = 1000.0;
/// and for how lately.
const RECENT_AGE: f32 = 60.0;

/// A commit that changes more files than this says little about which belong together.
const CLOSE: usize = 12;
/// So many changes of a file are needed before what was changed with it means much.
const FEW: f32 = 4.0;

/// From the hashes of paths to the numbers of files.
pub(crate) type Numbers = HashMap<u64, usize, BuildIdentity>;

pub(crate) fn numbers(index: &Index) -> Numbers {
    let files = index.files.iter().enumerate();
    files
        .map(|(number, file)| (words::hash(file.listed.path.as_bytes()), number))
        .collect()
}

/// Adds up what the history says.
pub(crate) fn past(
    index: &Index,
    numbers: &Numbers,
    query: &Query,
    spoken: &Spoken,
    all: &mut [FileEvidence],
) {
    let history = &index.history;
    for (age, commit) in history.commits.iter().enumerate() {
        let age = age as f32;
        for file in commit.files.iter().filter_map(|file| numbers.get(file)) {
            let evidence = &mut all[*file];
            evidence[Signal::Busy] += 1.0 / (1.0 + age / BUSY_AGE);
            let recent = 1.0 / (1.0 + age / RECENT_AGE);
            evidence[Signal::Recent] = evidence[Signal::Recent].max(recent);
        }
    }
    for evidence in all.iter_mut() {
        evidence[Signal::Busy] = evidence[Signal::Busy].ln_1p();
    }
    let mut alike = likeness(history, query, spoken);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (likeness, number) in alike.into_iter().take(HEARD) {
        let commit = &history.commits[number];
        let share = likeness * likeness / (commit.files.len().max(1) as f32).sqrt();
        for file in commit.files.iter().filter_map(|file| numbers.get(file)) {
            all[*file][Signal::Similar] += share;
        }
    }
}

/// How often files were changed together with the `first`, which are given with their scores: of
/// the changes of such a file, the share that changed the other one too. One that changed a few
/// times only proves little. Returns these files.
pub(crate) fn together(
    index: &Index,
    numbers: &Numbers,
    first: &[(f32, usize)],
    all: &mut [FileEvidence],
) -> Vec<usize> {
    let mut found = Vec::new();
    for (score, seed) in first {
        let seed = words::hash(index.files[*seed].listed.path.as_bytes());
        let mut changes = 0.0;
        let mut with: HashMap<u64, f32, BuildIdentity> = HashMap::default();
        let commits = index.history.commits.iter();
        for commit in commits.filter(|one| one.files.len() <= CLOSE && one.files.contains(&seed)) {
            changes += 1.0;
            for file in commit.files.iter().filter(|file| **file != seed) {
                *with.entry(*file).or_default() += 1.0;
            }
        }
        for (file, count) in with {
            // Once is no pattern.
            if let Some(number) = numbers.get(&file).filter(|_| count > 1.0) {
                all[*number][Signal::Together] += score * count / (changes + FEW);
                found.push(*number);
            }
        }
    }
    found
}

/// How much each commit's message is like the query.
fn likeness(history: &History, query: &Query, spoken: &Spoken) -> Vec<(f32, usize)> {
    let says = |one: &Wanted| Some((one.term, one.weight * spoken.rareness(one.term)?));
    let wanted: HashMap<Term, f32, BuildIdentity> = query.terms.iter().filter_map(says).collect();
    let commits = history.commits.iter().enumerate();
    commits
        .map(|(number, commit)| {
            let shared = commit.terms.iter().filter_map(|term| wanted.get(term));
            let sum: f32 = shared.sum();
            // A long message has more of everything.
            (sum / (commit.terms.len() as f32 + 3.0).sqrt(), number)
        })
        .collect()
}
