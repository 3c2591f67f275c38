//! Cross-validation over repositories: weights are chosen on some, and scored on others.
//!
//! Cases of one repository resemble each other, so a repository is never on both sides. What comes
//! out says how well the way of choosing weights does on repositories that had no part in it, which
//! the recall with weights chosen on all of them does not. Data sets differ more than repositories
//! do, in length and manner of what is said, so each is also scored with what the others choose.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use codespar_locate::{
    FileKind,
    tuning::{Candidate, Signal, Weights},
};

use super::{cases::Case, score};

/// Into how many parts the repositories are divided.
const FOLDS: usize = 5;
/// The weights that are tried for each kind of evidence. The text has a fixed one: only proportions
/// count.
const GRID: [f32; 13] = [
    0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.4, 2.0,
];
/// The weights that are tried for each kind of file; source files weigh one.
const KIND_GRID: [f32; 8] = [0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 1.0];
const KINDS: [FileKind; 4] = [
    FileKind::Test,
    FileKind::Docs,
    FileKind::Data,
    FileKind::Generated,
];
/// Where the search begins, whatever the weights in use are: all alike, but for the text and for
/// what is named.
const BEGINNING: f32 = 0.3;
const BODY: f32 = 0.6;
const WRITTEN: f32 = 1.0;
/// How far ahead in score a file is as good as surely ahead: the larger, the less.
const SHARPNESS: f32 = 3.0;
/// How much it costs to move away from the beginning. Without it a few cases decide about evidence
/// that is rare, and what is chosen does worse on other repositories.
const PULL: f64 = 0.01;
/// A pass tries each weight once; more than this change hardly anything.
const PASSES: usize = 5;

/// A case with the evidence for its candidates.
pub(super) struct Weighable {
    dataset: String,
    repo: String,
    gold: usize,
    candidates: Vec<Candidate>,
    /// Which candidates the change touched.
    found: Vec<usize>,
}

impl Weighable {
    pub(super) fn new(case: &Case, candidates: Vec<Candidate>) -> Self {
        let is_gold = |one: &Candidate| case.gold_files.contains(&one.path);
        Self {
            dataset: case.dataset.clone(),
            repo: case.repo.to_lowercase(),
            gold: case.gold_files.len().max(1),
            found: (0..candidates.len())
                .filter(|number| is_gold(&candidates[*number]))
                .collect(),
            candidates,
        }
    }

    /// The places of the files that the change touched, from zero on.
    fn places(&self, weights: &Weights, scores: &mut Vec<f32>) -> impl Iterator<Item = usize> {
        scores.clear();
        let score = |one: &Candidate| weights.score(&one.evidence, one.standing);
        scores.extend(self.candidates.iter().map(score));
        self.found.iter().map(|gold| {
            let own = scores[*gold];
            scores.iter().filter(|score| **score > own).count()
        })
    }

    /// Recall among the first five and the first thirty.
    fn recall(&self, weights: &Weights) -> (f64, f64) {
        let places: Vec<usize> = self.places(weights, &mut Vec::new()).collect();
        let among = |n: usize| places.iter().filter(|place| **place < n).count() as f64;
        (among(5) / self.gold as f64, among(30) / self.gold as f64)
    }

    /// How unlikely the files of the change are when each candidate is taken with a likelihood
    /// that grows with its score. Unlike recall it tells every step to the front from none, so few
    /// cases are enough to choose by it.
    fn surprise(&self, weights: &Weights, scores: &mut Vec<f32>) -> f64 {
        scores.clear();
        let score = |one: &Candidate| SHARPNESS * weights.score(&one.evidence, one.standing);
        scores.extend(self.candidates.iter().map(score));
        let most = scores.iter().copied().fold(f32::MIN, f32::max);
        let share = |number: usize| f64::from((scores[number] - most).exp());
        let others = (0..scores.len()).filter(|number| !self.found.contains(number));
        let others: f64 = others.map(share).sum();
        let surprise = |gold: &usize| {
            let own = share(*gold).max(f64::MIN_POSITIVE);
            ((own + others) / own).ln()
        };
        self.found.iter().map(surprise).sum::<f64>() / self.gold as f64
    }
}

/// What cross-validation found, in words: over parts of the repositories, then over data sets.
pub(super) fn report(cases: &[Weighable]) -> String {
    let folds = folds(cases);
    let mut lines = vec![format!(
        "cross-validated: weights chosen on {} of {FOLDS} parts, scored on the other",
        FOLDS - 1
    )];
    let fold = |case: &Weighable| folds[case.repo.as_str()];
    let chosen = held_out(cases, fold);
    lines.extend(recall(cases, |case| &chosen[&fold(case)]));
    lines.push(String::new());
    lines.push("weights chosen on the other data sets".to_owned());
    let of_others = held_out(cases, |case| case.dataset.as_str());
    lines.extend(recall(cases, |case| &of_others[case.dataset.as_str()]));
    lines.push(String::new());
    lines.push("weights chosen on all repositories, and the range over the parts".to_owned());
    let final_choice = choose(&cases.iter().collect::<Vec<_>>());
    let parts: Vec<Weights> = chosen.into_values().collect();
    lines.extend(table(&final_choice, &parts));
    lines.join("\n")
}

/// For each part of the cases the weights that all the others choose.
fn held_out<'c, P: Ord + Copy + Send + Sync>(
    cases: &'c [Weighable],
    part: impl Fn(&'c Weighable) -> P + Sync,
) -> BTreeMap<P, Weights> {
    let parts: BTreeSet<P> = cases.iter().map(&part).collect();
    std::thread::scope(|scope| {
        let part = &part;
        let choices: Vec<_> = parts
            .into_iter()
            .map(|held| {
                let others = cases.iter().filter(move |case| part(case) != held);
                let others: Vec<&Weighable> = others.collect();
                (held, scope.spawn(move || choose(&others)))
            })
            .collect();
        let choices = choices.into_iter();
        choices
            .map(|(held, choice)| (held, choice.join().unwrap_or_default()))
            .collect()
    })
}

/// A table of recall, each case ranked with the weights for it.
fn recall<'w>(cases: &[Weighable], weights: impl Fn(&Weighable) -> &'w Weights) -> Vec<String> {
    let mut shares: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut all = Vec::new();
    for case in cases {
        let recall = case.recall(weights(case));
        shares.entry(&case.dataset).or_default().push(recall);
        all.push(recall);
    }
    let mut lines = vec![score::heading()];
    let sets = shares.iter();
    lines.extend(sets.map(|(name, shares)| score::line(name, shares)));
    lines.push(score::line("all", &all));
    lines
}

/// Which part each repository belongs to: the largest first, each to the part with fewest cases.
fn folds(cases: &[Weighable]) -> HashMap<&str, usize> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases {
        *counts.entry(&case.repo).or_default() += 1;
    }
    let mut repositories: Vec<(&str, usize)> = counts.into_iter().collect();
    repositories.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut sizes = [0; FOLDS];
    let mut folds = HashMap::new();
    for (repository, count) in repositories {
        let smallest = (0..FOLDS).min_by_key(|fold| sizes[*fold]).unwrap_or(0);
        sizes[smallest] += count;
        folds.insert(repository, smallest);
    }
    folds
}

/// A weight that is chosen.
#[derive(Clone, Copy)]
enum Choice {
    Signal(Signal),
    Kind(FileKind),
}

impl Choice {
    fn all() -> impl Iterator<Item = Self> {
        let signals = Signal::ALL.into_iter().filter(|one| *one != Signal::Body);
        signals
            .map(Self::Signal)
            .chain(KINDS.into_iter().map(Self::Kind))
    }

    fn grid(self) -> &'static [f32] {
        match self {
            Self::Signal(_) => &GRID,
            Self::Kind(_) => &KIND_GRID,
        }
    }

    fn of(self, weights: &mut Weights) -> &mut f32 {
        match self {
            Self::Signal(signal) => &mut weights[signal],
            Self::Kind(kind) => weights.kind_mut(kind),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Signal(signal) => format!("{signal:?}"),
            Self::Kind(kind) => format!("kind {kind:?}"),
        }
    }
}

fn beginning() -> Weights {
    let mut weights = Weights::default();
    for signal in Signal::ALL {
        weights[signal] = BEGINNING;
    }
    weights[Signal::Body] = BODY;
    weights[Signal::Written] = WRITTEN;
    for (kind, weight) in KINDS.into_iter().zip([0.2, 0.2, 0.4, 0.2]) {
        *weights.kind_mut(kind) = weight;
    }
    weights
}

/// Tries each weight in turn with the others as they are, keeps the best, and begins again until
/// nothing gets better.
fn choose(cases: &[&Weighable]) -> Weights {
    let mut weights = beginning();
    let mut best = cost(cases, &mut weights);
    for _ in 0..PASSES {
        let before = best;
        for choice in Choice::all() {
            let mut kept = *choice.of(&mut weights);
            for value in choice.grid() {
                *choice.of(&mut weights) = *value;
                let reached = cost(cases, &mut weights);
                if reached < best {
                    (best, kept) = (reached, *value);
                }
            }
            *choice.of(&mut weights) = kept;
        }
        if best >= before {
            break;
        }
    }
    weights
}

/// What is to be small: the surprise, each data set counting alike however many cases it has, and
/// the way from the beginning.
fn cost(cases: &[&Weighable], weights: &mut Weights) -> f64 {
    let mut scores = Vec::new();
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for case in cases {
        let sum = sums.entry(&case.dataset).or_default();
        sum.0 += case.surprise(weights, &mut scores);
        sum.1 += 1.0;
    }
    let sets = sums.len().max(1) as f64;
    let surprise: f64 = sums.values().map(|(sum, count)| sum / count).sum();
    let mut beginning = beginning();
    let way = |choice: Choice| {
        let ratio = (*choice.of(weights) + 0.1) / (*choice.of(&mut beginning) + 0.1);
        f64::from(ratio.ln()).powi(2)
    };
    surprise / sets + PULL * Choice::all().map(way).sum::<f64>()
}

fn table(all: &Weights, parts: &[Weights]) -> Vec<String> {
    let row = |choice: Choice| {
        let of = |weights: &Weights| *choice.of(&mut weights.clone());
        let least = parts.iter().map(of).fold(f32::MAX, f32::min);
        let most = parts.iter().map(of).fold(0.0, f32::max);
        format!("{:<24} {:>5} {least:>9} {most:>10}", choice.name(), of(all))
    };
    Choice::all().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(repo: &str) -> Weighable {
        Weighable {
            dataset: "a".to_owned(),
            repo: repo.to_owned(),
            gold: 1,
            candidates: Vec::new(),
            found: Vec::new(),
        }
    }

    #[test]
    fn the_cases_of_a_repository_are_in_one_part_and_the_parts_are_about_equal() {
        let names = ["a", "b", "b", "b", "c", "d", "d", "e", "f", "g"];
        let cases: Vec<Weighable> = names.into_iter().map(case).collect();
        let folds = folds(&cases);
        let mut sizes = [0; FOLDS];
        cases
            .iter()
            .for_each(|case| sizes[folds[case.repo.as_str()]] += 1);
        assert_eq!(folds.len(), 7);
        assert_eq!(sizes, [3, 2, 2, 2, 1]);
    }

    #[test]
    fn without_cases_the_weights_stay_where_the_search_begins() {
        assert_eq!(choose(&[]), beginning());
    }
}
