//! Cuts a long text to the functions and classes that an instruction is about.
//!
//! The text is cut into units (functions, small classes, lines between them). Units are scored like
//! files: by the terms of the instruction, rare ones more, those in names that are defined most. A
//! part of a score passes on to the neighbours. Then the best units are kept as long as they fit,
//! each with the headers of the blocks around it, and with the imports of the file.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
    ops::Range,
};

use codespar_outline::{Unit, imports, units};

use crate::{
    mentions::Mentioned,
    query::Query,
    relations::{relate, substance},
    symbols,
    words::{self, Term},
};

/// What a unit passes on to the next.
const FADE: f32 = 0.5;
/// How much more a term counts in a name that a unit defines.
const DEFINED: f32 = 1.5;
/// The first lines say what a file is.
const HEAD_LINES: usize = 12;
/// The last lines of a file of tests show how one is added.
const TAIL_LINES: usize = 24;
/// A gap this small is not worth a marker.
const SMALL_GAP: usize = 3;
/// Names that a marker mentions.
const NAMED: usize = 8;
/// No unit may use more than one part in this of what is shown.
const PARTS: usize = 4;
/// How often a choice that came out too long is made again.
const ATTEMPTS: usize = 12;
/// What one more unit may add besides its lines: markers.
const MARKER_BYTES: usize = 160;

/// A text, or the regions of it that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The text; where lines are missing, a line says which, and what they define.
    pub text: String,
    /// Whether lines are missing.
    pub partial: bool,
    /// The lines that are there, from 1, both ends included.
    pub shown: Vec<(usize, usize)>,
}

impl Excerpt {
    /// The text as it is.
    pub fn whole(text: &str) -> Self {
        let count = text.split_inclusive('\n').count();
        Self {
            text: text.to_owned(),
            partial: false,
            shown: if count > 0 {
                vec![(1, count)]
            } else {
                Vec::new()
            },
        }
    }

    /// Whether a line, from 1, is there.
    pub fn has_line(&self, line: usize) -> bool {
        let mut shown = self.shown.iter();
        shown.any(|(first, last)| (*first..=*last).contains(&line))
    }
}

/// Cuts the text of the file at `path` to at most `max_bytes`: whole functions and classes around
/// what the instruction speaks of, whole lines in any case, with a marker line wherever lines are
/// left out.
///
/// A text that fits stays as it is.
pub fn regions(path: &str, text: &str, instruction: &str, max_bytes: usize) -> Excerpt {
    excerpt_of(path, text, instruction, max_bytes, Choice::Fill)
}

/// Which units are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All that fit, the best first.
    Fill,
    /// The first lines, the best unit and the last lines.
    HeadBestTail,
}

pub(crate) fn excerpt_of(
    path: &str,
    text: &str,
    instruction: &str,
    max_bytes: usize,
    choice: Choice,
) -> Excerpt {
    if text.len() <= max_bytes {
        return Excerpt::whole(text);
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let units = units(path, &lines, max_bytes / PARTS);
    let scores = scores(path, &lines, &units, instruction);
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let mut allowed = max_bytes;
    // Markers and filled gaps are not known before: with less to choose from, it fits in the end.
    for _ in 0..ATTEMPTS {
        let chosen = choose(&lines, &units, &order, allowed, choice);
        if chosen.is_empty() {
            break;
        }
        let excerpt = render(&lines, &chosen);
        let Some(over) = excerpt.text.len().checked_sub(max_bytes + 1) else {
            return excerpt;
        };
        allowed = allowed.saturating_sub(over + 1 + max_bytes / 50);
    }
    head(text, max_bytes)
}

/// The lines to show, in units by their order, the beginning and the imports first.
fn choose(
    lines: &[&str],
    units: &[Unit],
    order: &[usize],
    bytes: usize,
    choice: Choice,
) -> BTreeSet<usize> {
    let mut kept = Kept::new(lines, bytes);
    kept.add_lines(0..lines.len().min(HEAD_LINES));
    if choice == Choice::HeadBestTail {
        kept.add_lines(lines.len().saturating_sub(TAIL_LINES)..lines.len());
    }
    for at in imports(lines) {
        kept.add_lines(at..at + 1);
    }
    let most = match choice {
        Choice::Fill => order.len(),
        Choice::HeadBestTail => 1,
    };
    for unit in order.iter().take(most) {
        kept.add(&units[*unit]);
    }
    kept.chosen
}

/// The first lines of a text that fit, with a marker for the rest.
pub fn head(text: &str, max_bytes: usize) -> Excerpt {
    if text.len() <= max_bytes {
        return Excerpt::whole(text);
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut left = max_bytes.saturating_sub(MARKER_BYTES);
    let fits = |line: &&&str| {
        let does_fit = line.len() <= left;
        left = left.saturating_sub(line.len());
        does_fit
    };
    let count = lines.iter().take_while(fits).count();
    // A short rest is shown in place of a marker, and a marker may name much: both can be too long.
    let mut heads = (1..=count).rev();
    let fitting = heads.find_map(|count| {
        let excerpt = render(&lines, &(0..count).collect());
        (excerpt.text.len() <= max_bytes).then_some(excerpt)
    });
    fitting.unwrap_or_else(|| beginning(text, max_bytes))
}

/// For a text of endless lines: what fits of the first. No line is there in full.
fn beginning(text: &str, max_bytes: usize) -> Excerpt {
    Excerpt {
        text: text[..text.floor_char_boundary(max_bytes)].to_owned(),
        partial: true,
        shown: Vec::new(),
    }
}

/// The lines that are kept, and what they may still grow by.
struct Kept<'t> {
    lines: &'t [&'t str],
    left: usize,
    chosen: BTreeSet<usize>,
}

impl<'t> Kept<'t> {
    fn new(lines: &'t [&'t str], max_bytes: usize) -> Self {
        Self {
            lines,
            left: max_bytes.saturating_sub(MARKER_BYTES),
            chosen: BTreeSet::new(),
        }
    }

    /// Adds a unit with its headers if it fits.
    fn add(&mut self, unit: &Unit) {
        let parts = unit.headers.iter().chain([&unit.lines]);
        let new: Vec<usize> = parts
            .flat_map(|range| range.clone())
            .filter(|line| !self.chosen.contains(line))
            .collect();
        self.take(&new);
    }

    fn add_lines(&mut self, range: Range<usize>) {
        let new: Vec<usize> = range.filter(|line| !self.chosen.contains(line)).collect();
        self.take(&new);
    }

    fn take(&mut self, new: &[usize]) {
        let bytes: usize = new.iter().map(|line| self.lines[*line].len()).sum();
        // A marker is needed only where the lines before and after are not there.
        let is_apart = new.first().is_some_and(|first| {
            *first > 0 && !self.chosen.contains(&(first - 1)) && !new.contains(&(first - 1))
        });
        let cost = bytes + if is_apart { MARKER_BYTES } else { 0 };
        if !new.is_empty() && cost <= self.left {
            self.left -= cost;
            self.chosen.extend(new);
        }
    }
}

/// How much each unit has of the instruction; what is rare in the text counts more, and in a long
/// unit each term a little less.
fn scores(path: &str, lines: &[&str], units: &[Unit], instruction: &str) -> Vec<f32> {
    let query = Query::read(instruction);
    let weights: HashMap<Term, f32> = query.terms.iter().map(|w| (w.term, w.weight)).collect();
    let found: Vec<HashMap<Term, f32>> = units
        .iter()
        .map(|unit| terms(&lines[unit.lines.clone()], &weights))
        .collect();
    let mut having: HashMap<Term, usize> = HashMap::new();
    for term in found.iter().flat_map(HashMap::keys) {
        *having.entry(*term).or_default() += 1;
    }
    let count = units.len() as f32;
    let mean = lines.len() as f32 / count.max(1.0);
    let mut own: Vec<f32> = units
        .iter()
        .zip(&found)
        .map(|(unit, terms)| {
            let length = unit.lines.len() as f32 / mean;
            let known = query.terms.iter();
            // In the order of the instruction: sums of the same numbers differ with their order.
            let sum: f32 = known
                .filter_map(|wanted| {
                    let times = terms.get(&wanted.term)?;
                    let having = having.get(&wanted.term).copied().unwrap_or(1) as f32;
                    Some(wanted.weight * (count / having).ln_1p() * times)
                })
                .sum();
            sum / (0.75 + 0.25 * length)
        })
        .collect();
    for (unit, score) in units.iter().zip(&mut own) {
        *score *= substance(lines, unit);
    }
    let most = own.iter().copied().fold(0.0, f32::max);
    let mentioned = Mentioned::read(path, instruction);
    for (unit, score) in units.iter().zip(&mut own) {
        *score += most * mentioned.share(&lines[unit.lines.clone()], &unit.lines);
    }
    relate(lines, units, &mut own);
    faded(&own)
}

/// The terms of the instruction that lines have, with how much each counts: more if it comes again,
/// most in a name that is defined.
fn terms(lines: &[&str], weights: &HashMap<Term, f32>) -> HashMap<Term, f32> {
    let mut counts: HashMap<Term, f32> = HashMap::new();
    let mut add = |identifier: &[u8], much: f32| {
        words::expand(identifier, |term, _| {
            if weights.contains_key(&term) {
                *counts.entry(term).or_default() += much;
            }
        });
    };
    for line in lines {
        for (_, identifier) in words::identifiers(line.as_bytes()) {
            add(identifier, 1.0);
        }
        symbols::definitions(line.as_bytes(), |_, name| add(name, DEFINED * 2.0));
    }
    for much in counts.values_mut() {
        *much = 2.2 * *much / (*much + 1.2);
    }
    counts
}

/// Units next to a good one are worth more than others.
fn faded(own: &[f32]) -> Vec<f32> {
    let at = |place: Option<usize>| place.and_then(|place| own.get(place)).copied();
    let each = own.iter().enumerate().map(|(place, score)| {
        let before = at(place.checked_sub(1)).unwrap_or(0.0);
        let after = at(Some(place + 1)).unwrap_or(0.0);
        score + FADE * before.max(after)
    });
    each.collect()
}

/// The chosen lines in their order. A marker stands for every gap longer than `SMALL_GAP`; a
/// shorter one is filled with its lines.
fn render(lines: &[&str], chosen: &BTreeSet<usize>) -> Excerpt {
    let mut text = String::new();
    let mut shown: Vec<(usize, usize)> = Vec::new();
    let mut next = 0;
    let mut is_partial = false;
    for at in chosen.iter().copied().chain([lines.len()]) {
        let gap = next..at;
        let from = if gap.len() > SMALL_GAP {
            is_partial = true;
            let names = defined(&lines[gap.clone()]);
            // Writing to a string does not fail.
            let _ = writeln!(text, "[… lines {}–{at} left out{names} …]", next + 1);
            at
        } else {
            text.extend(lines[gap].iter().copied());
            next
        };
        text.extend(lines.get(at).copied());
        let last = (at + 1).min(lines.len());
        match shown.last_mut() {
            Some((_, end)) if *end == from => *end = last,
            _ if last > from => shown.push((from + 1, last)),
            _ => {}
        }
        next = at + 1;
    }
    Excerpt {
        text,
        partial: is_partial,
        shown,
    }
}

/// For a marker: what the lines it stands for define.
fn defined(lines: &[&str]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut more = false;
    for line in lines {
        symbols::definitions(line.as_bytes(), |_, name| {
            let name = String::from_utf8_lossy(name).into_owned();
            more |= names.len() == NAMED;
            if names.len() < NAMED && name.len() <= 40 && !names.contains(&name) {
                names.push(name);
            }
        });
    }
    let end = if more { ", …" } else { "" };
    match names.is_empty() {
        true => String::new(),
        false => format!(": {}{end}", names.join(", ")),
    }
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
