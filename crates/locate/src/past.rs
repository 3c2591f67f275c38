//! What the history says: which files similar commits changed, and which change anyway.
//!
//! A commit whose message has rare words in common with the instruction speaks for the files it
//! changed, the less the more files it changed. Besides, files that change often or changed lately
//! are somewhat more likely to change again; this never makes a candidate of a file for which
//! nothing else speaks.

use std::collections::HashMap;

use crate::{
    evidence::{Evidence, rareness},
    history::History,
    index::Index,
    query::Query,
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

/// Adds up what the history says.
pub(crate) fn past(index: &Index, query: &Query, all: &mut [Evidence]) {
    let history = &index.history;
    let files = index.files.iter().enumerate();
    let number_of: HashMap<u64, usize, BuildIdentity> = files
        .map(|(number, file)| (words::hash(file.listed.path.as_bytes()), number))
        .collect();
    for (age, commit) in history.commits.iter().enumerate() {
        let age = age as f32;
        for file in commit.files.iter().filter_map(|file| number_of.get(file)) {
            let evidence = &mut all[*file];
            evidence.busy += 1.0 / (1.0 + age / BUSY_AGE);
            evidence.recent = evidence.recent.max(1.0 / (1.0 + age / RECENT_AGE));
        }
    }
    for evidence in all.iter_mut() {
        evidence.busy = evidence.busy.ln_1p();
    }
    let mut alike = likeness(history, query);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (likeness, number) in alike.into_iter().take(HEARD) {
        let commit = &history.commits[number];
        let share = likeness * likeness / (commit.files.len() as f32).sqrt();
        for file in commit.files.iter().filter_map(|file| number_of.get(file)) {
            all[*file].similar += share;
        }
    }
}

/// How much each commit's message is like the query.
fn likeness(history: &History, query: &Query) -> Vec<(f32, usize)> {
    let mut wanted: HashMap<Term, (f32, usize), BuildIdentity> = query
        .terms
        .iter()
        .map(|one| (one.term, (one.weight, 0)))
        .collect();
    for term in history.commits.iter().flat_map(|commit| &commit.terms) {
        if let Some((_, having)) = wanted.get_mut(term) {
            *having += 1;
        }
    }
    let count = history.commits.len();
    let commits = history.commits.iter().enumerate();
    commits
        .map(|(number, commit)| {
            let shared = commit.terms.iter().filter_map(|term| wanted.get(term));
            let sum: f32 = shared
                .map(|(weight, having)| weight * rareness(*having, count))
                .sum();
            // A long message has more of everything.
            (sum / (commit.terms.len() as f32 + 3.0).sqrt(), number)
        })
        .collect()
}
