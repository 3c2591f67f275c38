//! Cuts a long text to the regions that an instruction is about.
//!
//! Lines are scored like files: by the terms of the instruction, rare ones more. The score of a
//! line fades over its neighbours, so that the lines chosen form regions with some context instead
//! of single lines. Then as many of the best lines are kept as fit.

use std::{collections::HashMap, fmt::Write};

use crate::{
    query::Query,
    words::{self, Term},
};

/// What a line passes on to the next: twenty lines away hardly anything is left.
const FADE: f32 = 0.9;
/// The first lines say what a file is and uses.
const HEAD: f32 = 0.6;
/// A gap this small is not worth a marker.
const SMALL_GAP: usize = 3;

/// A text, or the regions of it that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The text; where lines are missing, a line says which.
    pub text: String,
    /// Whether lines are missing.
    pub partial: bool,
}

/// Cuts a text to at most `max_bytes`: the regions around what the instruction speaks of, whole
/// lines each, with a marker line wherever lines are left out.
///
/// A text that fits stays as it is.
pub fn regions(text: &str, instruction: &str, max_bytes: usize) -> Excerpt {
    if text.len() <= max_bytes {
        return Excerpt {
            text: text.to_owned(),
            partial: false,
        };
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let scores = faded(line_scores(&lines, instruction));
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    // The more lines, the longer: search for the most that fit.
    let fits = |count: usize| render(&lines, &order[..count]).len() <= max_bytes;
    let (mut most, mut too_many) = (0, lines.len());
    while most + 1 < too_many {
        let middle = most.midpoint(too_many);
        if fits(middle) {
            most = middle;
        } else {
            too_many = middle;
        }
    }
    let kept = match most {
        0 => beginning(text, max_bytes),
        _ => render(&lines, &order[..most]),
    };
    Excerpt {
        text: kept,
        partial: true,
    }
}

/// For a text of endless lines: what fits of the first.
fn beginning(text: &str, max_bytes: usize) -> String {
    text[..text.floor_char_boundary(max_bytes)].to_owned()
}

/// How much each line has of the instruction; what is rare in the text counts more.
fn line_scores(lines: &[&str], instruction: &str) -> Vec<f32> {
    let query = Query::read(instruction);
    let weights: HashMap<Term, f32> = query.terms.iter().map(|w| (w.term, w.weight)).collect();
    let mut found: Vec<Vec<Term>> = Vec::with_capacity(lines.len());
    let mut having: HashMap<Term, usize> = HashMap::new();
    for line in lines {
        let mut terms = Vec::new();
        for (_, identifier) in words::identifiers(line.as_bytes()) {
            words::expand(identifier, |term, _| {
                if weights.contains_key(&term) && !terms.contains(&term) {
                    terms.push(term);
                }
            });
        }
        for term in &terms {
            *having.entry(*term).or_default() += 1;
        }
        found.push(terms);
    }
    let count = lines.len() as f32;
    let score = |term: &Term| {
        let having = having.get(term).copied().unwrap_or(1) as f32;
        weights.get(term).copied().unwrap_or(0.0) * (count / having).ln_1p()
    };
    found
        .iter()
        .map(|terms| terms.iter().map(score).sum())
        .collect()
}

/// Each line shines on those around it.
fn faded(mut scores: Vec<f32>) -> Vec<f32> {
    let most = scores.iter().copied().fold(1.0, f32::max);
    if let Some(first) = scores.first_mut() {
        *first = first.max(most * HEAD);
    }
    for at in 1..scores.len() {
        scores[at] = scores[at].max(scores[at - 1] * FADE);
    }
    for at in (1..scores.len()).rev() {
        scores[at - 1] = scores[at - 1].max(scores[at] * FADE);
    }
    scores
}

/// The chosen lines in their order. A marker stands for every gap longer than `SMALL_GAP`; a
/// shorter one is filled with its lines.
fn render(lines: &[&str], chosen: &[usize]) -> String {
    let mut kept: Vec<usize> = chosen.to_vec();
    kept.sort_unstable();
    let mut text = String::new();
    let mut next = 0;
    for at in kept.into_iter().chain([lines.len()]) {
        let gap = at - next;
        if gap > SMALL_GAP {
            // Writing to a string does not fail.
            let _ = writeln!(text, "[… lines {}–{at} left out …]", next + 1);
        } else {
            text.extend(lines[next..at].iter().copied());
        }
        text.extend(lines.get(at).copied());
        next = at + 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn long(marked: &[usize]) -> String {
        (1..=400)
            .map(|number| match marked.contains(&number) {
                true => format!("    expire_session(user, {number})\n"),
                false => format!("    other work of line {number}\n"),
            })
            .collect()
    }

    #[test]
    fn a_text_that_fits_stays_whole() {
        let excerpt = regions("a\r\nb", "anything", 4);
        let whole = Excerpt {
            text: "a\r\nb".into(),
            partial: false,
        };
        assert_eq!(excerpt, whole);
    }

    #[test]
    fn a_long_text_keeps_its_head_and_the_regions_that_matter() {
        let excerpt = regions(&long(&[200, 330]), "sessions expire too fast", 2000);
        assert!(excerpt.partial && excerpt.text.len() <= 2000);
        assert!(excerpt.text.starts_with("    other work of line 1\n"));
        for line in [
            "session(user, 200)",
            "session(user, 330)",
            "line 199\n",
            "line 331\n",
        ] {
            assert!(excerpt.text.contains(line), "{line} in {}", excerpt.text);
        }
        assert_eq!(excerpt.text.matches("left out …]\n").count(), 3);
    }

    #[test]
    fn a_marker_says_which_lines_are_missing() {
        let excerpt = regions(&long(&[]), "nothing of that", 250);
        let (head, marker) = excerpt.text.trim_end().rsplit_once('\n').unwrap();
        let kept = head.lines().count();
        assert_eq!(marker, format!("[… lines {}–400 left out …]", kept + 1));
    }

    #[test]
    fn a_line_without_end_is_cut_on_a_character() {
        let excerpt = regions(&"é".repeat(100), "é", 11);
        let cut = Excerpt {
            text: "é".repeat(5),
            partial: true,
        };
        assert_eq!(excerpt, cut);
    }

    proptest! {
        #[test]
        fn an_excerpt_is_never_longer_than_asked(
            text in "(\\PC{0,40}\n){0,60}", words in "\\PC{0,60}", most in 0usize..800,
        ) {
            let excerpt = regions(&text, &words, most);
            prop_assert!(excerpt.text.len() <= most);
            prop_assert_eq!(excerpt.partial, text.len() > most);
        }
    }
}
