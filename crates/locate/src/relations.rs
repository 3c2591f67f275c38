//! How units of one file belong together: what the best ones call is worth seeing, and so is what
//! calls them.

use std::collections::HashMap;

use codespar_outline::Unit;

use crate::{symbols, words};

/// So many of the best units pass something on,
const BEST: usize = 12;
/// this share of their score.
const SHARE: f32 = 0.4;
/// A shorter name, or one that is defined more often, says nothing.
const SHORTEST: usize = 4;
const MOST_DEFINED: usize = 3;
/// Tests inside a source file have the words of the instruction more often than the code has.
const IN_TESTS: f32 = 0.35;
/// So does a long comment.
const COMMENT: f32 = 0.5;

/// Adds to each score what comes from the best units.
pub(crate) fn relate(lines: &[&str], units: &[Unit], own: &mut [f32]) {
    let mut defined: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (unit, one) in units.iter().enumerate() {
        for line in &lines[one.lines.clone()] {
            symbols::definitions(line.as_bytes(), |_, name| {
                if name.len() >= SHORTEST {
                    defined.entry(name).or_default().push(unit);
                }
            });
        }
    }
    defined.retain(|_, places| places.len() <= MOST_DEFINED);
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|a, b| own[*b].total_cmp(&own[*a]).then(a.cmp(b)));
    order.truncate(BEST);
    let mut gained = vec![0.0_f32; units.len()];
    for (unit, one) in units.iter().enumerate() {
        let is_best = order.contains(&unit);
        for (_, name) in lines[one.lines.clone()]
            .iter()
            .flat_map(|line| words::identifiers(line.as_bytes()))
        {
            for place in defined.get(name).into_iter().flatten().copied() {
                if is_best {
                    gained[place] = gained[place].max(own[unit] * SHARE);
                }
                if order.contains(&place) {
                    gained[unit] = gained[unit].max(own[place] * SHARE);
                }
            }
        }
    }
    for (score, gained) in own.iter_mut().zip(gained) {
        *score += gained;
    }
}

/// What a unit counts for: less if it is a comment, or a test inside a file of other code.
pub(crate) fn substance(lines: &[&str], unit: &Unit) -> f32 {
    let is_test = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.starts_with("mod test")
    };
    let mut headers = unit.headers.iter();
    let in_tests = headers.any(|header| lines[header.clone()].iter().any(|line| is_test(line)));
    let own = &lines[unit.lines.clone()];
    let comments = own.iter().filter(|line| is_comment(line)).count();
    let comment = if comments * 4 > own.len() * 3 {
        COMMENT
    } else {
        1.0
    };
    comment * if in_tests { IN_TESTS } else { 1.0 }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    let marks = ["//", "/*", "*", "# "];
    line.trim_end().is_empty() || marks.iter().any(|mark| line.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use codespar_outline::units;

    #[test]
    fn what_the_best_unit_calls_and_what_calls_it_gain() {
        let text = "def first():\n    second_one()\n\ndef second_one():\n    pass\n\n\
                    def third():\n    first_of_all()\n\ndef other():\n    first()\n";
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let units = units("a.py", &lines, 1000);
        let starts = |unit: &Unit| lines[unit.lines.start].trim_end().to_owned();
        let place = |name: &str| units.iter().position(|unit| starts(unit) == name).unwrap();
        let mut scores = vec![0.0; units.len()];
        scores[place("def first():")] = 1.0;
        relate(&lines, &units, &mut scores);
        assert!(scores[place("def second_one():")] > 0.0, "{scores:?}");
        assert!(scores[place("def other():")] > 0.0, "{scores:?}");
        assert!(scores[place("def third():")] == 0.0, "{scores:?}");
    }

    #[test]
    fn tests_inside_a_file_and_comments_count_less() {
        let lines = [
            "mod tests {\n",
            "    fn a() {}\n",
            "}\n",
            "// one\n",
            "// two\n",
        ];
        let unit = |lines, headers| Unit { lines, headers };
        assert!(substance(&lines, &unit(1..2, std::iter::once(0..1).collect())) < 1.0);
        assert!(substance(&lines, &unit(3..5, vec![])) < 1.0);
        assert!(substance(&lines, &unit(1..2, vec![])) >= 1.0);
    }
}
