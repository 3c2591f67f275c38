//! What speaks for each file: its text, its definitions, its path.
//!
//! Each kind of evidence (`Signal`) is a number for each file. Within a kind the numbers can be
//! compared; `normalise` brings them to at most one before `rank` weighs the kinds against each
//! other. Terms count as in BM25: more of a term adds less and less, rare terms say more, long
//! texts must have more of them. Rareness is counted among source files.

use crate::{
    document::{IN_BASE, IN_DIRECTORY, Posting},
    index::Index,
    kind::FileKind,
    query::{Query, Wanted},
    signal::{FileEvidence, Signal},
    spoken::Spoken,
    words::Extent,
};

/// How soon more of a term in a text adds nothing (BM25's k1).
const SATURATION: f32 = 2.0;
/// How much a long text must have more of a term (BM25's b).
const LENGTH: f32 = 0.4;
/// The same as the first for definitions.
const SYMBOL_SATURATION: f32 = 0.5;

/// Brings kinds of evidence of some files to at most one. No other file has any of it. Where the
/// most is less than `least`, that counts as one: what is weak for all files stays weak.
pub(crate) fn normalise(
    all: &mut [FileEvidence],
    files: &[usize],
    of: &[Signal],
    least: &FileEvidence,
) {
    let mut most = *least;
    for file in files {
        most.raise_to(&all[*file]);
    }
    let mut factors = FileEvidence::even(1.0);
    for signal in of {
        if most[*signal] > 0.0 {
            factors[*signal] = most[*signal].recip();
        }
    }
    for file in files {
        all[*file].multiply(&factors);
    }
}

/// How much it says that `having` of so many have a thing (BM25's idf).
pub(crate) fn rareness(having: usize, of: usize) -> f32 {
    let (having, of) = (having as f32, of as f32);
    ((of - having + 0.5).max(0.5) / (having + 0.5)).ln_1p()
}

/// A term of the query with the files that have it.
pub(crate) struct Hits {
    wanted: Wanted,
    postings: Vec<Posting>,
    /// How rare it is in the texts of source files.
    rare: f32,
}

/// Looks the terms of a query up. Those that are usual in messages count for less.
pub(crate) fn look_up(index: &Index, query: &Query, spoken: &Spoken) -> Vec<Hits> {
    let is_source = |file: u32| index.files[file as usize].summary.kind == FileKind::Source;
    let sources = (0..index.files.len() as u32).filter(|file| is_source(*file));
    let count = sources.count().max(1);
    let hits = |wanted: &Wanted| {
        let postings: Vec<Posting> = index
            .postings
            .get(wanted.term)
            .filter(|posting| (posting.file as usize) < index.files.len())
            .collect();
        let having = postings
            .iter()
            .filter(|one| one.body > 0 && is_source(one.file));
        Hits {
            wanted: Wanted {
                weight: wanted.weight * spoken.share(wanted.term),
                ..*wanted
            },
            rare: rareness(having.count(), count),
            postings,
        }
    };
    query.terms.iter().map(hits).collect()
}

/// The most that one term of the query says about a text: the measure for what others say.
pub(crate) fn strongest(hits: &[Hits]) -> f32 {
    let found = hits.iter().filter(|one| !one.postings.is_empty());
    let says = |one: &Hits| one.wanted.weight * one.rare;
    found.map(says).fold(0.0, f32::max)
}

/// Adds up what text, definitions and paths say.
pub(crate) fn lexical(index: &Index, hits: &[Hits], all: &mut [FileEvidence]) {
    let files = &index.files;
    let sources = files
        .iter()
        .filter(|file| file.summary.kind == FileKind::Source);
    let count = sources.clone().count().max(1);
    let terms: u64 = sources.map(|file| u64::from(file.summary.length)).sum();
    let average = (terms as f32 / count as f32).max(1.0);
    let mut met = vec![0u8; files.len()];
    for Hits {
        wanted,
        postings,
        rare,
    } in hits
    {
        let defining = postings.iter().filter(|one| one.symbols > 0).count();
        let placed = postings.iter().filter(|one| one.place > 0).count();
        let symbol = wanted.weight * rareness(defining, count);
        let place = wanted.weight * rareness(placed, files.len());
        let defined = match wanted.extent {
            Extent::Part => Signal::Symbols,
            Extent::Whole | Extent::Pair => Signal::Defines,
        };
        for posting in postings {
            let file = posting.file as usize;
            let evidence = &mut all[file];
            let length = files[file].summary.length as f32 / average;
            let body = f32::from(posting.body);
            let scale = SATURATION * (1.0 - LENGTH + LENGTH * length);
            let share = wanted.weight * rare * body / (body + scale);
            evidence[Signal::Body] += share;
            if wanted.titled {
                evidence[Signal::Title] += share;
            }
            let symbols = f32::from(posting.symbols);
            evidence[defined] += symbol * symbols / (symbols + SYMBOL_SATURATION);
            if posting.place & IN_DIRECTORY != 0 {
                evidence[Signal::Directory] += place;
            }
            if posting.place & IN_BASE != 0 {
                evidence[Signal::Base] += place;
                // `OAuth` is the first part of `oauth-provider`.
                met[file] = met[file].saturating_add(u8::from(wanted.extent != Extent::Pair));
            }
        }
    }
    // A base name that is met in part is met by chance more often.
    for ((evidence, file), met) in all.iter_mut().zip(files).zip(met) {
        let share = f32::from(met) / f32::from(file.summary.base_length.max(1));
        evidence[Signal::Base] *= share.min(1.0);
    }
}

/// Marks the files whose path has the scope that the first line begins with. One that most paths
/// have, the name of the project, says little. A scope is a prefix such as `parser:` in the way of
/// commit messages.
pub(crate) fn scopes(index: &Index, query: &Query, all: &mut [FileEvidence]) {
    let count = index.files.len();
    for term in &query.scope {
        let having = index.postings.get(*term).filter(|one| one.place > 0);
        let files: Vec<usize> = having.map(|one| one.file as usize).collect();
        let share = rareness(files.len(), count) / rareness(1, count);
        for file in files {
            if let Some(evidence) = all.get_mut(file) {
                evidence[Signal::Scope] += share;
            }
        }
    }
}

/// For the files of `order` alone: the most that a window of two blocks of lines has. A text is
/// divided into at most 64 blocks of lines, one bit of a posting for each. That words of the
/// instruction stand near each other says more than that they are in the same file.
pub(crate) fn windows(hits: &[Hits], order: &[usize], all: &mut [FileEvidence]) {
    let mut number_of = vec![None; all.len()];
    for (number, file) in order.iter().enumerate() {
        number_of[*file] = Some(number as u32);
    }
    let mut blocks = vec![[0f32; 64]; order.len()];
    for Hits {
        wanted,
        postings,
        rare,
    } in hits
    {
        for posting in postings {
            let Some(Some(number)) = number_of.get(posting.file as usize) else {
                continue;
            };
            // A term counts once in a window, wherever it stands in it.
            let mut windows = posting.blocks | posting.blocks << 1;
            while windows != 0 {
                let window = windows.trailing_zeros() as usize;
                blocks[*number as usize][window] += wanted.weight * rare;
                windows &= windows - 1;
            }
        }
    }
    for (blocks, file) in blocks.iter().zip(order) {
        all[*file][Signal::Window] = blocks.iter().copied().fold(0.0, f32::max);
    }
}
