//! Which of the known breaks are attacked, and which of those attacks escape.
//!
//! A known break is a finding of an earlier round of attacks, by its number.

use std::collections::{BTreeMap, BTreeSet};

use super::{Failure, case::Case, profile::Profile};

/// Prints a row of a table for each number. Controls without a sandbox do not count as escapes.
pub(super) fn print(cases: &[Case], failures: &[Failure]) {
    let escaped: BTreeSet<&str> = failures
        .iter()
        .filter(|(_, profile, _)| *profile != Profile::Unconfined)
        .map(|(name, _, _)| name.as_str())
        .collect();
    let mut rows: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for case in cases {
        // Those that belong to no number have a row of their own.
        let numbers = if case.breaks.is_empty() {
            &[0][..]
        } else {
            &case.breaks
        };
        for number in numbers {
            let (all, through) = rows.entry(*number).or_default();
            *all += 1;
            *through += usize::from(escaped.contains(case.name.as_str()));
        }
    }
    println!("\n| break | cases | escaped |\n|---|---|---|");
    for (number, (all, through)) in rows {
        match number {
            0 => println!("| other | {all} | {through} |"),
            number => println!("| {number} | {all} | {through} |"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// How many known breaks there are.
    const KNOWN: usize = 42;

    fn sources(dir: &Path, all: &mut String) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn every_known_break_has_a_row_and_the_tests_in_it_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let readme = fs::read_to_string(root.join("redteam/README.md")).unwrap();
        let mut code = String::new();
        sources(&root.join("crates"), &mut code);
        let rows = readme.lines().filter_map(|line| {
            let mut columns = line.split(" | ");
            let number = columns.next()?.strip_prefix("| ")?.parse::<usize>().ok()?;
            Some((number, columns.nth(3)?.to_owned()))
        });
        let rows: Vec<(usize, String)> = rows.collect();
        let numbers: Vec<usize> = rows.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=KNOWN).collect::<Vec<_>>());
        for (number, tests) in rows {
            for name in tests.split('`').skip(1).step_by(2) {
                assert!(code.contains(&format!("fn {name}(")), "{number}: {name}");
            }
        }
    }
}
