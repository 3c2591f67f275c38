//! Indentation of new lines: a map from the levels of the searched text to those of the file.
//!
//! A block that is shifted as a whole, by the same white space on every line, is shifted back.
//! Otherwise the map is learnt line by line from the match. A level outside it is placed by the
//! straight line through the map, else relative to the nearest level it extends. What the evidence
//! leaves open is refused.
//!
//! Example: the model wrote two spaces a level, the file has four. The searched lines pair up with
//! the file's as 0 with 0 and 2 with 4, and a new line at 4 goes to 8:
//!
//! ```text
//! searched         file                 new line      written as
//! if x {           if x {
//!   a()                a()                  b()               b()
//! ```
//!
//! An example of evidence that is not enough: one searched line without indentation, found at 4.
//! Whether the model left out the indentation of that line or of the whole block cannot be told, so
//! new lines below it that are all deeper are refused.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use super::lines::{Line, indentation, is_blank, trim};

/// A new line whose indentation cannot be told. It becomes
/// [`MatchFailure::IndentationUnclear`](super::MatchFailure::IndentationUnclear).
#[derive(Debug)]
pub(super) struct Unclear<'a> {
    pub(super) line: &'a str,
    pub(super) difference: &'static str,
}

/// Indentation in the searched text and in the file, of one line.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    line: usize,
    ours: &'a str,
    theirs: &'a str,
}

impl Pair<'_> {
    fn is_same(&self) -> bool {
        self.ours == self.theirs
    }

    /// The text lost the indentation that the file has, as when it was copied from the first word
    /// on.
    fn was_stripped(&self) -> bool {
        self.ours.is_empty() && !self.theirs.is_empty()
    }
}

/// White space that every line of a block has too little or too much, in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shift<'a> {
    /// The file has it, the text does not.
    Lost(&'a str),
    /// The text has it, the file does not.
    Added(&'a str),
}

impl<'a> Shift<'a> {
    /// The shift that all lines share. One line says too little: it may have lost its indentation
    /// alone.
    fn of(pairs: &[Pair<'a>]) -> Option<Self> {
        let shift = |pair: &Pair<'a>| {
            let lost = pair.theirs.strip_suffix(pair.ours).map(Self::Lost);
            lost.or_else(|| pair.ours.strip_suffix(pair.theirs).map(Self::Added))
        };
        let [first, rest @ ..] = pairs else {
            return None;
        };
        let first = shift(first)?;
        let agreed = rest.iter().all(|pair| shift(pair) == Some(first));
        (agreed && !rest.is_empty()).then_some(first)
    }

    /// A level of the text as the file would have it. Tabs in front of spaces, or the reverse, are
    /// no level of any file.
    fn back(self, level: &str) -> Option<String> {
        match self {
            Self::Lost(lost) => {
                let is_mixed = !level.is_empty() && lost.contains('\t') != level.contains('\t');
                (!is_mixed).then(|| format!("{lost}{level}"))
            }
            Self::Added(added) => level.strip_prefix(added).map(str::to_owned),
        }
    }
}

/// Searched lines and the new lines that take their place.
#[derive(Debug)]
pub(super) struct Hunk {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// What was learnt from one match.
pub(super) struct Indentation<'a> {
    /// New lines are written as they came.
    same: bool,
    /// The block is shifted as a whole.
    shift: Option<Shift<'a>>,
    /// From the text's level to the file's; `None` where lines disagree. A level is the white space
    /// itself, not its width: a tab and four spaces are two levels.
    levels: BTreeMap<&'a str, Option<&'a str>>,
    /// The first line, when only it lost its indentation. It is then no part of the map, which it
    /// would distort.
    first: Option<Pair<'a>>,
    /// The old first line comes again below a new one.
    first_moved: bool,
    pairs: Vec<Pair<'a>>,
    /// Spaces of one level, as the file has it. `None` for a file without such lines; then any
    /// distance is believed.
    step: Option<i64>,
}

impl<'a> Indentation<'a> {
    /// Learns from the lines of the file at `lines`, the searched lines and the new lines. It is an
    /// error when the new lines share no level with the searched ones and are not written in the
    /// file's own terms either, or when a lone searched line says too little.
    pub(super) fn learn<'r>(
        file: &[Line<'a>],
        lines: Range<usize>,
        wanted: &[&'a str],
        replacement: &[&'r str],
    ) -> Result<Self, Unclear<'r>> {
        let there = &file[lines];
        let pairs: Vec<Pair<'a>> = wanted
            .iter()
            .zip(there)
            .enumerate()
            .filter(|(_, (ours, _))| !is_blank(ours))
            .map(|(line, (ours, theirs))| Pair {
                line,
                ours: indentation(ours),
                theirs: indentation(theirs.text),
            })
            .collect();
        let mut learnt = Self {
            same: pairs.iter().all(Pair::is_same),
            shift: Shift::of(&pairs),
            levels: BTreeMap::new(),
            first: None,
            first_moved: replacement.iter().skip(1).any(|line| {
                wanted
                    .first()
                    .is_some_and(|first| trim(first) == trim(line))
            }),
            pairs,
            step: None,
        };
        if learnt.same {
            return Ok(learnt);
        }
        if let Some(line) = learnt.foreign_line(replacement) {
            learnt.same = learnt.in_the_files_terms(replacement);
            return if learnt.same {
                Ok(learnt)
            } else {
                Err(learnt.unclear(line))
            };
        }
        if let Some(line) = learnt.beyond_a_lone_line(replacement) {
            return Err(learnt.unclear(line));
        }
        learnt.draw_map();
        learnt.step = usual_step(file);
        Ok(learnt)
    }

    /// Whether new lines are written as they came.
    pub(super) fn is_same(&self) -> bool {
        self.same
    }

    /// The indentation for `line`, number `index` of the replacement, which takes the place of
    /// searched lines together with the other new lines of `hunk`. In this order: the
    /// stripped first line; a level of the map; for other levels, the shift of the whole block; for a level on which the match disagrees, the replaced lines
    /// alone, if one new line takes their place; and for a level outside of the map, the straight
    /// line or the nearest shorter level.
    pub(super) fn of<'r>(
        &self,
        index: usize,
        line: &'r str,
        hunk: &Hunk,
    ) -> Result<String, Unclear<'r>> {
        let level = indentation(line);
        let found = match self.first {
            Some(first) if index == 0 && first.ours == level => self.of_first(hunk),
            _ => match self.levels.get(level) {
                Some(Some(theirs)) => Some((*theirs).to_owned()),
                Some(None) if hunk.new.len() == 1 => self.local(&hunk.old, level),
                Some(None) => None,
                // Nobody can tell the first column from an indentation that was lost again.
                None if self.first.is_some_and(|first| first.ours == level) => None,
                None => match self.shift {
                    Some(shift) => shift.back(level),
                    None => self.by_line(level).or_else(|| self.by_prefix(level)),
                },
            },
        };
        found.ok_or_else(|| self.unclear(line))
    }

    /// The new first line lost its indentation too. It stands where the old one did if it takes
    /// its place; when lines went or came, only if all those it may stand for agree.
    fn of_first(&self, hunk: &Hunk) -> Option<String> {
        let old = self
            .pairs
            .iter()
            .filter(|pair| hunk.old.contains(&pair.line));
        let mut old = old.map(|pair| pair.theirs);
        let first = old.next()?;
        let in_place = hunk.old.len() == hunk.new.len() || hunk.old.len() == 1;
        let agreed = in_place || old.all(|other| other == first);
        (agreed && !self.first_moved).then(|| first.to_owned())
    }

    /// The first new line, when no new line stands on a level of the searched text.
    fn foreign_line<'r>(&self, replacement: &[&'r str]) -> Option<&'r str> {
        let ours: HashSet<&str> = self.pairs.iter().map(|pair| pair.ours).collect();
        let mut new = replacement.iter().filter(|line| !is_blank(line));
        let first = new.clone().next()?;
        new.all(|line| !ours.contains(indentation(line)))
            .then_some(*first)
    }

    /// Whether the searched lines lost their indentation but the new lines did not: each stands on
    /// a level the file has there.
    fn in_the_files_terms(&self, replacement: &[&str]) -> bool {
        if self.pairs.iter().all(|pair| !pair.ours.is_empty()) {
            return false;
        }
        let theirs: HashSet<&str> = self.pairs.iter().map(|pair| pair.theirs).collect();
        let mut new = replacement.iter().filter(|line| !is_blank(line));
        new.all(|line| theirs.contains(indentation(line)))
    }

    /// From one searched line nobody can tell whether only that line lost its indentation or the
    /// whole block did. It matters when no later line returns to its level.
    fn beyond_a_lone_line<'r>(&self, replacement: &[&'r str]) -> Option<&'r str> {
        let [pair] = self.pairs.as_slice() else {
            return None;
        };
        let mut later = replacement.iter().filter(|line| !is_blank(line)).skip(1);
        let first_later = later.clone().next()?;
        later
            .all(|line| indentation(line) != pair.ours)
            .then_some(*first_later)
    }

    /// Draws the map from all lines; then, if the first line was stripped, from the others, when
    /// these are all written as in the file, or agree with each other only without the first.
    fn draw_map(&mut self) {
        self.levels = map_of(&self.pairs);
        let [first, rest @ ..] = self.pairs.as_slice() else {
            return;
        };
        if first.line != 0 || rest.is_empty() || !first.was_stripped() {
            return;
        }
        let without = map_of(rest);
        let disputed = self.levels.values().any(Option::is_none);
        let settled = without.values().all(Option::is_some);
        if rest.iter().all(Pair::is_same) || (disputed && settled) {
            self.first = Some(*first);
            self.levels = without;
        }
    }

    /// The file's level for `level` within the lines of one hunk, if they agree.
    fn local(&self, hunk: &Range<usize>, level: &str) -> Option<String> {
        let mut theirs = self
            .pairs
            .iter()
            .filter(|pair| hunk.contains(&pair.line) && pair.ours == level)
            .map(|pair| pair.theirs);
        let first = theirs.next()?;
        theirs.all(|other| other == first).then(|| first.to_owned())
    }

    /// Places a level on the straight line through all levels of the map. `None` where the levels
    /// are not on one line, the result is no whole number of characters or negative, or tabs and
    /// spaces are mixed within one side.
    fn by_line(&self, level: &str) -> Option<String> {
        let mut ours_of = Kind::Either;
        let mut theirs_of = Kind::Either;
        let target = count(level, &mut ours_of)?;
        let mut points = Vec::new();
        for (ours, theirs) in &self.levels {
            points.push((
                count(ours, &mut ours_of)?,
                count((*theirs)?, &mut theirs_of)?,
            ));
        }
        points.sort_unstable();
        let (&(x0, y0), &(x1, y1)) = (points.first()?, points.last()?);
        let alike = ours_of == theirs_of || theirs_of == Kind::Either;
        let (rise, run) = match (points.len(), alike) {
            // One level says how far to move, not whether a level is as wide as in the file.
            (1, true) if target < x0 => return None,
            (1, true) if ours_of == Kind::Spaces && !self.is_step(target - x0) => return None,
            (1, true) => (1, 1),
            (1, false) if x0 > 0 && y0 > 0 => (y0, x0),
            (1, false) => return None,
            _ => (y1 - y0, x1 - x0),
        };
        let on_line = |x: i64, y: i64| (y - y0) * run == (x - x0) * rise;
        if !points.iter().all(|&(x, y)| on_line(x, y)) {
            return None;
        }
        let y = y0 + (target - x0) * rise / run;
        let unit = match theirs_of {
            Kind::Either => ours_of,
            kind => kind,
        };
        (on_line(target, y) && y >= 0).then(|| unit.text().repeat(y.unsigned_abs() as usize))
    }

    /// Whether a distance is whole steps of the file, as far as is known.
    fn is_step(&self, distance: i64) -> bool {
        self.step.is_none_or(|step| distance % step == 0)
    }

    /// Places a level relative to the longest mapped level it begins with, both kinds of white
    /// space being the same.
    fn by_prefix(&self, level: &str) -> Option<String> {
        let (ours, theirs) = self
            .levels
            .iter()
            .filter(|(ours, _)| level.starts_with(**ours))
            .max_by_key(|(ours, _)| ours.len())?;
        let theirs = (*theirs)?;
        if self.levels.len() == 1 {
            return None;
        }
        let mixed = theirs.contains('\t') != ours.contains('\t') && !theirs.is_empty();
        (!mixed).then(|| theirs.to_owned() + &level[ours.len()..])
    }

    fn unclear<'r>(&self, line: &'r str) -> Unclear<'r> {
        let tabs = |mut of: Box<dyn Iterator<Item = &'a str> + '_>| of.any(|i| i.contains('\t'));
        let ours = tabs(Box::new(self.pairs.iter().map(|pair| pair.ours)));
        let theirs = tabs(Box::new(self.pairs.iter().map(|pair| pair.theirs)));
        Unclear {
            line,
            difference: match (ours, theirs) {
                (false, true) => "the indentation differs: the file uses tabs",
                (true, false) => "the indentation differs: the file uses spaces",
                _ => "the indentation differs from the file's",
            },
        }
    }
}

/// Levels on which lines disagree, or that the file has in another order, map to `None`. A deeper
/// level of the text has to be a deeper one in the file.
fn map_of<'a>(pairs: &[Pair<'a>]) -> BTreeMap<&'a str, Option<&'a str>> {
    let mut levels: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for pair in pairs {
        let known = levels.entry(pair.ours).or_insert(Some(pair.theirs));
        if *known != Some(pair.theirs) {
            *known = None;
        }
    }
    let mut order: Vec<(usize, usize, &str)> = levels
        .iter()
        .filter_map(|(ours, theirs)| Some((width(ours), width((*theirs)?), *ours)))
        .collect();
    order.sort_unstable();
    for pair in order.windows(2) {
        if pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1 {
            levels.insert(pair[0].2, None);
            levels.insert(pair[1].2, None);
        }
    }
    levels
}

/// How many spaces lines of the file are usually deeper than the line above them. Of steps that are
/// equally frequent the smallest counts.
fn usual_step(file: &[Line<'_>]) -> Option<i64> {
    let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
    let mut above = 0;
    for line in file.iter().filter(|line| !is_blank(line.text)) {
        let indent = indentation(line.text);
        if indent.len() > above && !indent.contains('\t') {
            *steps.entry(indent.len() - above).or_default() += 1;
        }
        above = indent.len();
    }
    let usual = steps
        .into_iter()
        .max_by_key(|&(step, count)| (count, std::cmp::Reverse(step)));
    usual.and_then(|(step, _)| i64::try_from(step).ok())
}

/// A width to put levels in order by.
fn width(indent: &str) -> usize {
    indent.bytes().map(|b| if b == b'\t' { 4 } else { 1 }).sum()
}

/// What indentation is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Either,
    Spaces,
    Tabs,
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Self::Tabs => "\t",
            Self::Either | Self::Spaces => " ",
        }
    }
}

/// How many characters of one kind; `None` when kinds are mixed, here or with `kind` so far.
fn count(indent: &str, kind: &mut Kind) -> Option<i64> {
    let this = match (indent.contains(' '), indent.contains('\t')) {
        (false, false) => return Some(0),
        (true, false) => Kind::Spaces,
        (false, true) => Kind::Tabs,
        (true, true) => return None,
    };
    if *kind != Kind::Either && *kind != this {
        return None;
    }
    *kind = this;
    i64::try_from(indent.len()).ok()
}
