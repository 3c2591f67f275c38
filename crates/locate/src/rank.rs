//! Weighs the evidence: from an instruction to files in order, with reasons.

use crate::{
    evidence::{self, normalise},
    index::Index,
    mirrors,
    named::{Manner, Names},
    neighbours, partners, past,
    query::Query,
    signal::{FileEvidence, FileStanding, Meant, Signal, Weights},
};

/// How many files are looked at closely. Windows are computed for these alone.
const CANDIDATES: usize = 200;
/// So many of the best are asked about others.
const FIRST: usize = 5;
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
/// for only among those that are ahead without it.
pub(crate) fn candidates(index: &Index, instruction: &str, n: usize) -> Vec<Candidate> {
    let weights = Weights::default();
    let query = Query::read(instruction);
    let numbers = past::numbers(index);
    let mut all = vec![FileEvidence::default(); index.files.len()];
    let hits = evidence::look_up(index, &query);
    evidence::lexical(index, &hits, &mut all);
    evidence::scopes(index, &query, &mut all);
    past::past(index, &numbers, &query, &mut all);
    let mut standings: Vec<FileStanding> = index
        .files
        .iter()
        .map(|file| FileStanding {
            kind: file.summary.kind,
            meant: match query.kinds.contains(&file.summary.kind) {
                true => Meant::Kind,
                false => Meant::Usual,
            },
        })
        .collect();
    name(index, instruction, &mut all, &mut standings);
    for signal in [
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
    ] {
        normalise(&mut all, signal);
    }
    partners::tested(index, &mut all);
    normalise(&mut all, Signal::Tested);
    let in_order = |all: &[FileEvidence]| in_order(&weights, all, &standings, CANDIDATES.max(n));
    let close: Vec<usize> = in_order(&all).into_iter().map(|(_, file)| file).collect();
    evidence::windows(&hits, &close, &mut all);
    normalise(&mut all, Signal::Window);
    let order = in_order(&all);
    let first = &order[..order.len().min(FIRST)];
    neighbours::mentioned(index, first, &order, &mut all);
    neighbours::siblings(index, &order, &mut all);
    past::together(index, &numbers, first, &mut all);
    for signal in [Signal::Mentioned, Signal::Siblings, Signal::Together] {
        normalise(&mut all, signal);
    }
    mirrors::damp(index, &in_order(&all), &mut all);
    let candidate = |(_, file): (f32, usize)| Candidate {
        path: index.files[file].listed.path.clone(),
        evidence: all[file],
        standing: standings[file],
    };
    in_order(&all).into_iter().map(candidate).collect()
}

/// Marks the files that the instruction names.
fn name(
    index: &Index,
    instruction: &str,
    all: &mut [FileEvidence],
    standings: &mut [FileStanding],
) {
    let names = Names::new(index.files.iter().map(|file| file.listed.path.as_str()));
    for (file, manner) in names.in_text(instruction) {
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

/// Files for which something speaks with their scores, the best first, then by path. Being changed
/// often or lately, or close to others, alone makes no file a candidate.
fn in_order(
    weights: &Weights,
    all: &[FileEvidence],
    standings: &[FileStanding],
    n: usize,
) -> Vec<(f32, usize)> {
    let speaks = |one: &FileEvidence| {
        let telling = Signal::ALL.iter().filter(|one| one.reason().is_some());
        telling.map(|signal| one[*signal]).sum::<f32>() > 0.0
    };
    let mut order: Vec<(f32, usize)> = all
        .iter()
        .enumerate()
        .filter(|(_, one)| speaks(one))
        .map(|(file, one)| (weights.score(one, standings[file]), file))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    order.truncate(n);
    order
}
