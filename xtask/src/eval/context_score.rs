//! Shares over data sets: useful bytes, visible hunks, bytes a request.

use std::collections::BTreeMap;

/// A part of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    all: usize,
    part: usize,
}

impl Share {
    pub(super) fn add(&mut self, all: usize, part: usize) {
        self.all += all;
        self.part += part;
    }

    fn percent(self) -> f64 {
        100.0 * self.part as f64 / self.all.max(1) as f64
    }
}

/// What one request shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    pub(super) dataset: String,
    /// Bytes of files.
    pub(super) bytes: usize,
    /// Of these, bytes of files that the change touched.
    pub(super) useful: usize,
    pub(super) hunks: Share,
    /// In files that are shown in part.
    pub(super) cut: Share,
    /// Files that are shown in part, and those of them with all hunks visible.
    pub(super) cut_files: Share,
    /// Bytes of all of it.
    pub(super) request: usize,
}

pub(super) fn report(name: &str, all: &[Shown]) -> String {
    let mut lines = vec![format!(
        "{name:<24} {:>5} {:>7} {:>7} {:>7} {:>13} {:>15} {:>7}",
        "cases", "useful", "hunks", "(of)", "in cut (of)", "cut files (of)", "bytes"
    )];
    let mut groups: BTreeMap<&str, Vec<&Shown>> = BTreeMap::new();
    for one in all {
        groups.entry(&one.dataset).or_default().push(one);
    }
    for (dataset, own) in groups {
        lines.push(line(dataset, &own));
    }
    lines.push(line("all", &all.iter().collect::<Vec<_>>()));
    lines.join("\n")
}

fn line(name: &str, own: &[&Shown]) -> String {
    let (mut useful, mut hunks) = (Share::default(), Share::default());
    let (mut cut, mut cut_files) = (Share::default(), Share::default());
    let mut bytes = 0;
    for one in own {
        useful.add(one.bytes, one.useful);
        hunks.add(one.hunks.all, one.hunks.part);
        cut.add(one.cut.all, one.cut.part);
        cut_files.add(one.cut_files.all, one.cut_files.part);
        bytes += one.request;
    }
    format!(
        "{name:<24} {:>5} {:>7.1} {:>7.1} {:>7} {:>7.1} {:>5} {:>9.1} {:>5} {:>7}",
        own.len(),
        useful.percent(),
        hunks.percent(),
        hunks.all,
        cut.percent(),
        cut.all,
        cut_files.percent(),
        cut_files.all,
        bytes / own.len().max(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_summed_over_the_cases_of_a_data_set() {
        let shown = |dataset: &str, bytes, useful, part| {
            let mut one = Shown {
                dataset: dataset.into(),
                bytes,
                useful,
                request: bytes + 100,
                ..Shown::default()
            };
            one.hunks.add(2, part);
            one
        };
        let all = [
            shown("a", 100, 50, 2),
            shown("a", 300, 300, 1),
            shown("b", 10, 0, 0),
        ];
        assert_eq!(
            report("picked", &all),
            "\
picked                   cases  useful   hunks    (of)   in cut (of)  cut files (of)   bytes
a                            2    87.5    75.0       4     0.0     0       0.0     0     300
b                            1     0.0     0.0       2     0.0     0       0.0     0     110
all                          3    85.4    50.0       6     0.0     0       0.0     0     236"
        );
    }
}
