//! Weighs the evidence: from an instruction to files in order, with reasons.

use crate::{
    evidence::{self, Hits, normalise},
    index::Index,
    mirrors,
    named::{Manner, names},
    neighbours, partners, past,
    query::Query,
    signal::{FileEvidence, FileStanding, Meant, Signal, Weights},
    spoken::Spoken,
};

/// How many files are looked at closely. Windows are computed for these alone.
const CANDIDATES: usize = 200;
/// So many of the best are asked about others.
const FIRST: usize = 5;
/// What directories must say to count in full, as a share of what the strongest term says of texts.
const DIRECTORY: f32 = 0.5;
/// A reason is worth telling from this share of the score on.
const TELLING: f32 = 0.08;

/// Why a file is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The instruction names it.
    Named,
    /// It defines what the instruction speaks of.
    Symbol,
    /// Its path has words of the instruction, or stands in a stack trace of it.
    Path,
    /// Its text has words of the instruction.
    Content,
    /// Commits that were described alike changed it.
    History,
}

impl Reason {
    pub(crate) const ALL: [Self; 5] = [
        Self::Named,
        Self::Symbol,
        Self::Path,
        Self::Content,
        Self::History,
    ];

    /// The word for it: `named`, `symbol`, `path`, `content` or `history`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Symbol => "symbol",
            Self::Path => "path",
            Self::Content => "content",
            Self::History => "history",
        }
    }
}

/// A file with what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The path from the root of the tree, with forward slashes.
    pub path: String,
    /// The higher the better; scores of different instructions do not compare.
    pub score: f32,
    /// In the order of [`Reason`].
    pub reasons: Vec<Reason>,
}

/// A file that may be meant, before its evidence is weighed.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The path from the root of the tree, with forward slashes.
    pub path: String,
    /// What speaks for it.
    pub evidence: FileEvidence,
    /// Tests, documentation and the like need an instruction that speaks of them.
    pub standing: FileStanding,
}

/// The first `n` files for which anything speaks.
pub(crate) fn rank(index: &Index, instruction: &str, n: usize) -> Vec<Ranked> {
    let weights = Weights::default();
    let mut ranked: Vec<Ranked> = candidates(index, instruction, n)
        .into_iter()
        .map(|one| Ranked {
            score: weights.score(&one.evidence, one.standing),
            reasons: weights.reasons(&one.evidence, TELLING),
            path: one.path,
        })
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.path.cmp(&b.path)));
    ranked.truncate(n);
    ranked
}

/// The files for which most speaks, at least `n` if there are so many, in no order.
///
/// Evidence that needs the text of files close by, or that the best files give to others, is looked
/// for only among those that are ahead without it: all files are put in order once, and later only
/// those for which something changed.
pub(crate) fn candidates(index: &Index, instruction: &str, n: usize) -> Vec<Candidate> {
    let weights = Weights::default();
    let query = Query::read(instruction);
    let numbers = past::numbers(index);
    let mut all = vec![FileEvidence::default(); index.files.len()];
    let spoken = Spoken::count(&index.history, &query);
    let hits = evidence::look_up(index, &query, &spoken);
    evidence::lexical(index, &hits, &mut all);
    evidence::scopes(index, &query, &mut all);
    past::past(index, &numbers, &query, &spoken, &mut all);
    partners::tested(index, &mut all);
    let mut standings = standings(index, &query);
    name(index, instruction, &mut all, &mut standings);
    let files: Vec<usize> = (0..all.len()).collect();
    normalise(&mut all, &files, &WHOLE, &least(&hits));
    let in_order = |files: &[usize], all: &[FileEvidence]| {
        in_order(&weights, all, &standings, files, CANDIDATES.max(n))
    };
    let close = numbers_of(&in_order(&files, &all));
    evidence::windows(&hits, &close, &mut all);
    normalise(
        &mut all,
        &close,
        &[Signal::Window],
        &FileEvidence::default(),
    );
    let order = in_order(&close, &all);
    let first = &order[..order.len().min(FIRST)];
    neighbours::mentioned(index, first, &order, &mut all);
    neighbours::siblings(index, &order, &mut all);
    let mut pool = past::together(index, &numbers, first, &mut all);
    pool.extend(close);
    pool.sort_unstable();
    pool.dedup();
    normalise(&mut all, &pool, &NEAR, &FileEvidence::default());
    let order = in_order(&pool, &all);
    mirrors::damp(index, &order, &mut all);
    let candidate = |(_, file): (f32, usize)| Candidate {
        path: index.files[file].listed.path.clone(),
        evidence: all[file],
        standing: standings[file],
    };
    let order = in_order(&numbers_of(&order), &all);
    order.into_iter().map(candidate).collect()
}

/// Evidence that any file may have and that has no scale of its own.
const WHOLE: [Signal; 11] = [
    Signal::Body,
    Signal::Title,
    Signal::Symbols,
    Signal::Defines,
    Signal::Directory,
    Signal::Base,
    Signal::Scope,
    Signal::Similar,
    Signal::Busy,
    Signal::Recent,
    Signal::Tested,
];
/// Evidence that the best files give to others.
const NEAR: [Signal; 3] = [Signal::Mentioned, Signal::Siblings, Signal::Together];

/// Words of directories that half of the files have, and a scope that all have, say little even
/// where no others are met.
fn least(hits: &[Hits]) -> FileEvidence {
    let mut least = FileEvidence::default();
    least[Signal::Directory] = DIRECTORY * evidence::strongest(hits);
    least[Signal::Scope] = 1.0;
    least
}

fn numbers_of(order: &[(f32, usize)]) -> Vec<usize> {
    order.iter().map(|(_, file)| *file).collect()
}

fn standings(index: &Index, query: &Query) -> Vec<FileStanding> {
    let standing = |kind| FileStanding {
        kind,
        meant: match query.kinds.contains(&kind) {
            true => Meant::Kind,
            false => Meant::Usual,
        },
    };
    let files = index.files.iter();
    files.map(|file| standing(file.summary.kind)).collect()
}

/// Marks the files that the instruction names.
fn name(
    index: &Index,
    instruction: &str,
    all: &mut [FileEvidence],
    standings: &mut [FileStanding],
) {
    let files = index.files.iter();
    let paths: Vec<&str> = files.map(|file| file.listed.path.as_str()).collect();
    for (file, manner) in names(&paths, instruction) {
        let (signal, strength) = match manner {
            Manner::Titled => {
                standings[file].meant = Meant::File;
                (Signal::Written, 1.0)
            }
            Manner::Written => (Signal::Written, 1.0),
            Manner::Coded => (Signal::Coded, 1.0),
            Manner::Module => (Signal::Module, 1.0),
            Manner::Elsewhere => (Signal::Traced, 1.0),
            // The place of the error is nearer to its cause than those that led there.
            Manner::Traced(depth) => (Signal::Traced, 1.0 / (1.0 + 0.25 * depth as f32)),
        };
        all[file][signal] = strength;
    }
}

/// Those of the files for which something speaks with their scores, the best `n` in order, then by
/// path. Being changed often or lately, or close to others, alone makes no file a candidate.
fn in_order(
    weights: &Weights,
    all: &[FileEvidence],
    standings: &[FileStanding],
    files: &[usize],
    n: usize,
) -> Vec<(f32, usize)> {
    let mut order: Vec<(f32, usize)> = files
        .iter()
        .filter(|file| all[**file].speaks())
        .map(|file| (weights.score(&all[*file], standings[*file]), *file))
        .collect();
    let better = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if order.len() > n {
        order.select_nth_unstable_by(n, better);
        order.truncate(n);
    }
    order.sort_unstable_by(better);
    order
}
