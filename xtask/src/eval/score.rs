//! Recall over data sets, and times over repositories of one size.
//!
//! Recall answers whether a model that is shown so many files would see those it has to change: 5
//! are shown by default, 30 are offered to the model that picks.

use std::{collections::BTreeMap, time::Duration};

/// What came of one case.
pub(super) struct Outcome {
    pub(super) dataset: String,
    /// The share of the gold files among the first five.
    pub(super) at_5: f64,
    /// The same among the first thirty.
    pub(super) at_30: f64,
    pub(super) files: usize,
    /// Index and query without a cache.
    pub(super) cold: Duration,
    /// The same with one.
    pub(super) warm: Duration,
}

/// The share of the gold files among the first `n`.
pub(super) fn recall(gold: &[String], ranked: &[String], n: usize) -> f64 {
    let first = &ranked[..ranked.len().min(n)];
    let found = gold.iter().filter(|path| first.contains(path)).count();
    found as f64 / gold.len().max(1) as f64
}

/// Two tables in words.
pub(super) fn report(outcomes: &[Outcome]) -> String {
    let mut lines = vec![heading()];
    for (dataset, own) in by(outcomes, |outcome| outcome.dataset.clone()) {
        lines.push(recall_line(&dataset, &own));
    }
    lines.push(recall_line("all", &outcomes.iter().collect::<Vec<_>>()));
    lines.push(String::new());
    lines.push(format!(
        "{:<24} {:>5} {:>9} {:>10}",
        "files", "cases", "cold", "warm"
    ));
    for (size, own) in by(outcomes, |outcome| size(outcome.files)) {
        let cold = median(own.iter().map(|outcome| outcome.cold).collect());
        let warm = median(own.iter().map(|outcome| outcome.warm).collect());
        let row = format!(
            "{:<24} {:>5} {:>6.0} ms {:>7.1} ms",
            SIZES[size].1,
            own.len(),
            millis(cold),
            millis(warm)
        );
        lines.push(row);
    }
    lines.join("\n")
}

/// The first line of a table of recall.
pub(super) fn heading() -> String {
    format!(
        "{:<24} {:>5} {:>9} {:>10}",
        "data set", "cases", "recall@5", "recall@30"
    )
}

fn recall_line(name: &str, own: &[&Outcome]) -> String {
    let shares: Vec<_> = own.iter().map(|one| (one.at_5, one.at_30)).collect();
    line(name, &shares)
}

/// A line of the table: the mean of the recall of cases among the first five and thirty.
pub(super) fn line(name: &str, shares: &[(f64, f64)]) -> String {
    let mean = |of: fn(&(f64, f64)) -> f64| {
        100.0 * shares.iter().map(of).sum::<f64>() / shares.len().max(1) as f64
    };
    let (at_5, at_30) = (mean(|share| share.0), mean(|share| share.1));
    format!("{name:<24} {:>5} {at_5:>9.1} {at_30:>10.1}", shares.len())
}

/// Upper bounds, both ends of a class in words.
const SIZES: [(usize, &str); 4] = [
    (1000, "up to 1,000"),
    (4000, "1,000 to 4,000"),
    (8000, "4,000 to 8,000"),
    (usize::MAX, "more"),
];

fn size(files: usize) -> usize {
    SIZES
        .iter()
        .position(|(most, _)| files <= *most)
        .unwrap_or(SIZES.len() - 1)
}

/// Groups in the order of their keys.
fn by<K: Ord>(outcomes: &[Outcome], key: impl Fn(&Outcome) -> K) -> BTreeMap<K, Vec<&Outcome>> {
    let mut groups: BTreeMap<K, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        groups.entry(key(outcome)).or_default().push(outcome);
    }
    groups
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_the_share_of_the_gold_files_that_are_found_in_time() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let gold = names(&["a", "b"]);
        let ranked = names(&["x", "a", "y", "b"]);
        let shares = [1, 2, 4, 9].map(|n| recall(&gold, &ranked, n));
        assert_eq!(shares, [0.0, 0.5, 1.0, 1.0]);
    }

    #[test]
    fn the_report_has_a_line_for_each_data_set_and_size() {
        let outcome = |dataset: &str, at_5: f64, files, millis| Outcome {
            dataset: dataset.into(),
            at_5,
            at_30: 1.0,
            files,
            cold: Duration::from_millis(millis),
            warm: Duration::from_millis(2),
        };
        let outcomes = [
            outcome("a", 1.0, 10, 30),
            outcome("b", 0.5, 5000, 400),
            outcome("b", 0.0, 5001, 600),
        ];
        assert_eq!(
            report(&outcomes),
            "\
data set                 cases  recall@5  recall@30
a                            1     100.0      100.0
b                            2      25.0      100.0
all                          3      50.0      100.0

files                    cases      cold       warm
up to 1,000                  1     30 ms     2.0 ms
4,000 to 8,000               2    600 ms     2.0 ms"
        );
    }
}
