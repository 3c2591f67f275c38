//! Weighs the evidence: from an instruction to files in order, with reasons.

use crate::{
    evidence::{self, Evidence, normalise},
    index::Index,
    kind::FileKind,
    named::{Manner, Names},
    neighbours,
    past::past,
    query::Query,
};

/// How much each kind of evidence weighs.
///
/// Set by hand on issues and commit messages with known fixes, then held against some 800 commits
/// of 61 repositories that had no part in it: half or twice of any one weight gains nothing over
/// all of them. The share of the first line was chosen on both: it takes from what the text alone
/// weighed, so an instruction of one line does not know the difference; for a longer one, from
/// 0.4 to 0.7 is all the same.
const WEIGHTS: Evidence = Evidence {
    body: 0.6,
    title: 0.4,
    window: 0.4,
    symbols: 0.4,
    directory: 0.3,
    base: 0.4,
    written: 2.0,
    traced: 0.6,
    similar: 0.35,
    busy: 0.1,
    recent: 0.1,
};
/// How many files are looked at closely. Windows are computed for these alone.
const CANDIDATES: usize = 200;
/// So many stand on their own; behind them come their neighbours.
const FIRST: usize = 5;
/// What a kind of file that the instruction speaks of weighs at least.
const SPOKEN_OF: f32 = 0.5;
/// A reason is worth telling from this share of the score on.
const TELLING: f32 = 0.08;

/// Why a file is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The instruction names it.
    Named,
    /// It defines what the instruction speaks of.
    Symbol,
    /// Its path has words of the instruction.
    Path,
    /// Its text has.
    Content,
    /// Commits that were described alike changed it.
    History,
}

impl Reason {
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

/// The first `n` files for which anything speaks.
pub(crate) fn rank(index: &Index, instruction: &str, n: usize) -> Vec<Ranked> {
    let query = Query::read(instruction);
    let mut all = vec![Evidence::default(); index.files.len()];
    let hits = evidence::look_up(index, &query);
    evidence::lexical(index, &hits, &mut all);
    past(index, &query, &mut all);
    let mut priors: Vec<f32> = index
        .files
        .iter()
        .map(|file| prior(file.summary.kind, &query))
        .collect();
    let names = Names::new(index.files.iter().map(|file| file.listed.path.as_str()));
    for (file, manner) in names.in_text(instruction) {
        match manner {
            Manner::Titled => {
                all[file].written = 1.0;
                priors[file] = 1.0;
            }
            Manner::Written => all[file].written = 1.0,
            Manner::Traced => all[file].traced = 1.0,
        }
    }
    let normalised: [fn(&mut Evidence) -> &mut f32; 8] = [
        |one| &mut one.body,
        |one| &mut one.title,
        |one| &mut one.symbols,
        |one| &mut one.directory,
        |one| &mut one.base,
        |one| &mut one.similar,
        |one| &mut one.busy,
        |one| &mut one.recent,
    ];
    for of in normalised {
        normalise(&mut all, of);
    }
    let candidates = in_order(&all, &priors, CANDIDATES.max(n));
    let candidates: Vec<usize> = candidates.into_iter().map(|(_, file)| file).collect();
    evidence::windows(&hits, &candidates, &mut all);
    normalise(&mut all, |one| &mut one.window);
    let mut order = in_order(&all, &priors, CANDIDATES.max(n));
    if n > FIRST && order.len() > FIRST {
        let (first, rest) = order.split_at_mut(FIRST);
        neighbours::raise(index, &priors, first, rest);
    }
    let ranked = order.into_iter().take(n).map(|(score, file)| Ranked {
        path: index.files[file].listed.path.clone(),
        score,
        reasons: reasons(&all[file]),
    });
    ranked.collect()
}

/// Files for which something speaks with their scores, the best first, then by path. Being changed
/// often or lately alone makes no file a candidate.
fn in_order(all: &[Evidence], priors: &[f32], n: usize) -> Vec<(f32, usize)> {
    let speaks = |one: &Evidence| {
        one.body + one.symbols + one.directory + one.base + one.written + one.traced + one.similar
            > 0.0
    };
    let mut order: Vec<(f32, usize)> = all
        .iter()
        .enumerate()
        .filter(|(_, one)| speaks(one))
        .map(|(file, one)| (total(one) * priors[file], file))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    order.truncate(n);
    order
}

/// Most instructions are about source; the rest counts when they speak of it.
fn prior(kind: FileKind, query: &Query) -> f32 {
    let prior: f32 = match kind {
        FileKind::Source => 1.0,
        FileKind::Data => 0.4,
        FileKind::Test | FileKind::Docs | FileKind::Generated => 0.2,
        FileKind::Lock => 0.1,
        FileKind::Binary => 0.02,
    };
    match query.kinds.contains(&kind) {
        true => prior.max(SPOKEN_OF),
        false => prior,
    }
}

fn total(one: &Evidence) -> f32 {
    let w = &WEIGHTS;
    text(one)
        + one.symbols * w.symbols
        + one.directory * w.directory
        + one.base * w.base
        + one.written * w.written
        + one.traced * w.traced
        + one.similar * w.similar
        + one.busy * w.busy
        + one.recent * w.recent
}

fn text(one: &Evidence) -> f32 {
    let w = &WEIGHTS;
    one.body * w.body + one.title * w.title + one.window * w.window
}

fn reasons(one: &Evidence) -> Vec<Reason> {
    let w = &WEIGHTS;
    let least = total(one) * TELLING;
    let shares = [
        (
            Reason::Named,
            one.written * w.written + one.traced * w.traced,
        ),
        (Reason::Symbol, one.symbols * w.symbols),
        (
            Reason::Path,
            one.directory * w.directory + one.base * w.base,
        ),
        (Reason::Content, text(one)),
        (Reason::History, one.similar * w.similar),
    ];
    let telling = shares.iter().filter(|(_, share)| *share > least);
    telling.map(|(reason, _)| *reason).collect()
}
