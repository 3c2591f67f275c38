//! Which of the known breaks are attacked, and which of those attacks escape.

use std::collections::{BTreeMap, BTreeSet};

use super::{Failure, case::Case, profile::Profile};

/// Prints a row of a table for each number.
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
