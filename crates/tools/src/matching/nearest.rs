//! The part of a file that comes nearest to a text that is not in it: for display only.
//!
//! A refusal with the place that was probably meant lets the model correct its text in one attempt
//! instead of reading the file again. Nothing here has an influence on where an edit goes.
//!
//! Two ways, the second only if the first finds nothing: lines that both texts have vote for where
//! the text would begin; else the one line that is most like the longest wanted line.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use serde::{Deserialize, Serialize};

use super::lines::{Line, indentation, is_blank, trim};

/// The nearest region of the file, and what differs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nearest {
    /// The number of its first line, from 1.
    pub first_line: usize,
    pub lines: Vec<String>,
    /// What differs, when it can be said in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// Lines of the file that are shown; the searched text may be longer.
const SHOWN_LINES: usize = 16;
/// Characters of a shown line.
const SHOWN_CHARS: usize = 160;
/// A line that occurs more often than this in the search says little about the place.
const MAX_REPEATS: usize = 8;
/// Longer lines are compared by their beginnings.
const COMPARED_BYTES: usize = 400;

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(difference) = &self.difference {
            write!(f, "{difference} ")?;
        }
        f.write_str("Nearest text:")?;
        for (index, line) in self.lines.iter().enumerate() {
            write!(f, "\n{:>6}\t{line}", self.first_line + index)?;
        }
        Ok(())
    }
}

/// The region that shares most with `wanted`, if any does. As many lines as were wanted are shown,
/// up to the limit. The difference is the first explanation that applies: line numbers copied
/// along, the change made already, the first line that differs.
pub(super) fn nearest(file: &[Line<'_>], wanted: &[&str], replacement: &[&str]) -> Option<Nearest> {
    let start = by_shared_lines(file, wanted).or_else(|| by_likeness(file, wanted))?;
    let end = file.len().min(start + wanted.len().clamp(1, SHOWN_LINES));
    let lines = file[start..end].iter().map(|line| shown(line.text));
    Some(Nearest {
        first_line: start + 1,
        lines: lines.collect(),
        difference: numbered(wanted)
            .or_else(|| already_there(file, wanted, replacement))
            .or_else(|| first_difference(file, start, wanted)),
    })
}

/// Each line both have votes for where the text would start; long lines weigh more.
fn by_shared_lines(file: &[Line<'_>], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        let line = trim(line);
        if line.chars().any(char::is_alphanumeric) {
            places.entry(line).or_default().push(index);
        }
    }
    places.retain(|_, at| at.len() <= MAX_REPEATS);
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, line) in file.iter().enumerate() {
        let line = trim(line.text);
        for wanted_at in places.get(line).into_iter().flatten() {
            *votes.entry(index.saturating_sub(*wanted_at)).or_default() += line.len();
        }
    }
    votes
        .into_iter()
        .max_by_key(|&(start, weight)| (weight, std::cmp::Reverse(start)))
        .map(|(start, _)| start)
}

/// The line most like the longest wanted one, when it is more than half alike.
///
/// Likeness is the share of pairs of neighbouring bytes that both lines have (Dice's coefficient):
/// linear, and tolerant of a changed name in the middle.
fn by_likeness(file: &[Line<'_>], wanted: &[&str]) -> Option<usize> {
    let (offset, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(index, line)| (trim(line).len(), std::cmp::Reverse(*index)))?;
    let pairs = |line: &str| -> HashSet<[u8; 2]> {
        let bytes = trim(line).as_bytes();
        let bytes = &bytes[..bytes.len().min(COMPARED_BYTES)];
        bytes.windows(2).map(|pair| [pair[0], pair[1]]).collect()
    };
    let ours = pairs(longest);
    let mut best = (0.5, None);
    for (index, line) in file.iter().enumerate() {
        let theirs = pairs(line.text);
        let shared = theirs.intersection(&ours).count();
        let likeness = 2.0 * shared as f64 / (ours.len() + theirs.len()).max(1) as f64;
        if likeness > best.0 {
            best = (likeness, Some(index.saturating_sub(offset)));
        }
    }
    best.1
}

/// The text carries the line numbers that Read shows.
fn numbered(wanted: &[&str]) -> Option<String> {
    let mut lines = wanted.iter().filter(|line| !is_blank(line)).peekable();
    lines.peek()?;
    let is_numbered = |line: &&str| {
        let rest = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.trim_start().len()
            && (rest.starts_with('\t') || rest.trim_start().starts_with('|'))
    };
    lines
        .all(is_numbered)
        .then(|| "The text carries line numbers; leave them out.".to_owned())
}

/// What should be written is in the file.
fn already_there(file: &[Line<'_>], wanted: &[&str], replacement: &[&str]) -> Option<String> {
    let new: Vec<&str> = replacement.iter().map(|line| trim(line)).collect();
    let known: HashSet<&str> = wanted.iter().map(|line| trim(line)).collect();
    if !new
        .iter()
        .any(|line| !line.is_empty() && !known.contains(line))
    {
        return None;
    }
    let at = super::ladder::find(file, replacement);
    match at {
        super::ladder::Found::Once { at, .. } => Some(format!(
            "The new text is already there, at line {}.",
            at + 1
        )),
        _ => None,
    }
}

/// Indentation is not a difference here: the ladder ignores it as well. `None` when no line differs
/// and the file does not end before the text.
fn first_difference(file: &[Line<'_>], start: usize, wanted: &[&str]) -> Option<String> {
    let differing = wanted
        .iter()
        .zip(&file[start..])
        .enumerate()
        .find(|(_, (ours, theirs))| trim(ours) != trim(theirs.text));
    let Some((index, (ours, theirs))) = differing else {
        return (file.len() - start < wanted.len())
            .then(|| "The file ends before the text does.".to_owned());
    };
    let line = start + index + 1;
    let theirs = theirs.text;
    let packed = |text: &str| -> String { text.split_whitespace().collect() };
    let what = if packed(ours) == packed(theirs) {
        "white space inside the line differs".to_owned()
    } else if trim(ours).to_lowercase() == trim(theirs).to_lowercase() {
        "upper and lower case differ".to_owned()
    } else if is_blank(ours) != is_blank(theirs) {
        "one has a blank line there".to_owned()
    } else {
        format!("the text has `{}` there", shown(trim(ours)))
    };
    let tabs = indentation(theirs).contains('\t') && indentation(ours).contains(' ');
    let tabs = if tabs {
        "; the file indents with tabs"
    } else {
        ""
    };
    Some(format!("Line {line} is the first to differ: {what}{tabs}."))
}

fn shown(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}
