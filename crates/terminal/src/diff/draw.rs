//! Changed lines as people read them: numbers, signs, and what differs within a line.

use std::ops::Range;

use ratatui_core::{
    style::Style,
    text::{Line, Span},
};
use similar::{Algorithm, DiffOp, DiffTag};
use unicode_segmentation::UnicodeSegmentation;

use super::{groups, lines};
use crate::{
    highlight::Highlighter,
    theme::Theme,
    width,
    wrap::{self, OutputLine},
};

/// From this width on, old and new stand side by side.
const SIDE_BY_SIDE: u16 = 160;
/// Longer lines are not compared word by word. In bytes. Word by word, the comparison is quadratic
/// in the worst case.
const MAX_COMPARED: usize = 2_000;
/// Lines that have less than this in common are shown as different altogether.
const MIN_COMMON: f32 = 0.4;

#[derive(Debug, Clone, Copy)]
pub struct DiffOptions {
    pub theme: Theme,
    pub columns: u16,
    /// Unchanged lines around a change.
    pub context: usize,
    /// The number of the first line of the texts in their file.
    pub first_line: usize,
    /// For the colours of unchanged lines; changed ones have the colour of their sign.
    pub language: Option<&'static str>,
    pub max_lines: usize,
}

/// The changed lines with their numbers; beyond `max_lines` only how many more there are. Lines are
/// cleaned of control characters here; secrets are the caller's part. Lines of code are coloured
/// from the beginning of each group, so one that begins within a comment has wrong colours.
pub fn changed_lines(old: &str, new: &str, options: &DiffOptions) -> Vec<OutputLine> {
    let (old, new) = (lines(old), lines(new));
    let largest = options.first_line + old.len().max(new.len());
    let mut drawing = Drawing {
        options,
        old: &old,
        new: &new,
        digits: largest.to_string().len(),
        highlighter: Highlighter::new(options.language.unwrap_or_default()),
        rows: Vec::new(),
        drawn: 0,
        left_out: 0,
    };
    for (at, group) in groups(&old, &new, options.context).iter().enumerate() {
        if at > 0 && drawing.left_out == 0 {
            drawing.separator();
        }
        // A comment or string may have begun in lines that are not shown.
        drawing.highlighter = Highlighter::new(options.language.unwrap_or_default());
        group.iter().for_each(|op| drawing.op(op));
    }
    drawing.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Same,
    Added,
    Removed,
}

/// One side of a row.
struct Cell {
    sign: Sign,
    number: usize,
    text: Line<'static>,
}

/// What stands on the left and on the right. When not side by side, a row with both sides is
/// drawn as two, except for lines that are the same.
enum Row {
    Lines(Option<Cell>, Option<Cell>),
    Note(String),
}

struct Drawing<'a> {
    options: &'a DiffOptions,
    old: &'a [&'a str],
    new: &'a [&'a str],
    digits: usize,
    highlighter: Highlighter,
    rows: Vec<Row>,
    drawn: usize,
    /// Changed lines that are not drawn.
    left_out: usize,
}

impl Drawing<'_> {
    fn separator(&mut self) {
        let blanks = " ".repeat(self.digits.saturating_sub(1));
        self.rows.push(Row::Note(format!("{blanks}⋮")));
    }

    /// Where a replacement does not fit, half of the room is for each side.
    fn op(&mut self, op: &DiffOp) {
        let (tag, old, new) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            for (old_at, new_at) in old.zip(new) {
                self.same(old_at, new_at);
            }
            return;
        }
        let room = self.options.max_lines.saturating_sub(self.drawn);
        // Of a long change both sides are shown, not only what was removed.
        let shown_old = old.len().min(room.saturating_sub(new.len()).max(room / 2));
        let shown_new = new.len().min(room - shown_old);
        self.left_out += old.len() + new.len() - shown_old - shown_new;
        self.drawn += shown_old + shown_new;
        let old = old.start..old.start + shown_old;
        let new = new.start..new.start + shown_new;
        self.changed(&old, &new);
    }

    fn same(&mut self, old_at: usize, new_at: usize) {
        if self.drawn >= self.options.max_lines {
            return;
        }
        self.drawn += 1;
        let text = shown(self.new[new_at]);
        let text = self.highlighter.line(&text, self.options.theme);
        let cell = |at| Cell {
            sign: Sign::Same,
            number: self.options.first_line + at,
            text: text.clone(),
        };
        let row = Row::Lines(Some(cell(old_at)), Some(cell(new_at)));
        self.rows.push(row);
    }

    fn changed(&mut self, old: &Range<usize>, new: &Range<usize>) {
        let mut pairs = Vec::new();
        for at in 0..old.len().max(new.len()) {
            let old_at = (at < old.len()).then_some(old.start + at);
            let new_at = (at < new.len()).then_some(new.start + at);
            pairs.push(self.pair(old_at, new_at));
        }
        if self.is_wide() {
            let rows = pairs.into_iter().map(|(old, new)| Row::Lines(old, new));
            return self.rows.extend(rows);
        }
        let (removed, added): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let removed = removed.into_iter().flatten();
        self.rows
            .extend(removed.map(|cell| Row::Lines(Some(cell), None)));
        let added = added.into_iter().flatten();
        self.rows
            .extend(added.map(|cell| Row::Lines(None, Some(cell))));
    }

    /// A line of the old text beside one of the new, by their order within the change. If they
    /// differ only in how they end, that is named, since nothing else could be seen.
    fn pair(
        &mut self,
        old_at: Option<usize>,
        new_at: Option<usize>,
    ) -> (Option<Cell>, Option<Cell>) {
        let theme = self.options.theme;
        let old = old_at.map(|at| self.old[at]);
        let new = new_at.map(|at| self.new[at]);
        let (mut old_text, mut new_text) = match (old, new) {
            (Some(old), Some(new)) => compared(&shown(old), &shown(new), theme),
            (old, new) => (
                Line::styled(old.map(shown).unwrap_or_default(), theme.removed()),
                Line::styled(new.map(shown).unwrap_or_default(), theme.added()),
            ),
        };
        if let (Some(old), Some(new)) = (old, new)
            && end_of_line(old) != end_of_line(new)
        {
            old_text.push_span(Span::styled(end_of_line(old), theme.faint()));
            new_text.push_span(Span::styled(end_of_line(new), theme.faint()));
        }
        let cell = |sign, at, text| Cell {
            sign,
            number: self.options.first_line + at,
            text,
        };
        (
            old_at.map(|at| cell(Sign::Removed, at, old_text)),
            new_at.map(|at| cell(Sign::Added, at, new_text)),
        )
    }

    fn is_wide(&self) -> bool {
        self.options.columns >= SIDE_BY_SIDE
    }

    fn finish(mut self) -> Vec<OutputLine> {
        if self.left_out > 0 {
            let note = match self.left_out {
                1 => "… 1 more changed line".to_owned(),
                count => format!("… {count} more changed lines"),
            };
            self.rows.push(Row::Note(note));
        }
        let mut out = Vec::new();
        for row in std::mem::take(&mut self.rows) {
            match row {
                Row::Note(note) => {
                    let note = Span::styled(note, self.options.theme.faint());
                    out.push(OutputLine::words(note));
                }
                Row::Lines(old, new) if self.is_wide() => self.side_by_side(old, new, &mut out),
                Row::Lines(old, new) => out.extend(new.or(old).map(|cell| self.unified(cell))),
            }
        }
        out
    }

    fn style(&self, sign: Sign) -> Style {
        match sign {
            Sign::Same => self.options.theme.faint(),
            Sign::Added => self.options.theme.added(),
            Sign::Removed => self.options.theme.removed(),
        }
    }

    /// `12 + text`; rows after the first are under the text.
    fn unified(&self, cell: Cell) -> OutputLine {
        let sign = match cell.sign {
            Sign::Same => ' ',
            Sign::Added => '+',
            Sign::Removed => '-',
        };
        let gutter = format!("{:>digits$} {sign} ", cell.number, digits = self.digits);
        let hanging = u16::try_from(gutter.len()).unwrap_or(0);
        let mut spans = vec![Span::styled(gutter, self.style(cell.sign))];
        let style = cell.text.style;
        let text = cell.text.spans.into_iter();
        spans.extend(text.map(|span| Span::styled(span.content, style.patch(span.style))));
        OutputLine::hanging(Line::from(spans), hanging)
    }

    /// Each row is complete, with blanks up to the divider, since the terminal must not wrap it.
    fn side_by_side(&self, old: Option<Cell>, new: Option<Cell>, out: &mut Vec<OutputLine>) {
        let half = (self.options.columns - 3) / 2;
        let rows = |cell: Option<Cell>| {
            let line = cell.map(|cell| self.unified(cell));
            line.map_or_else(Vec::new, |line| wrap::rows(&line, half))
        };
        let (old, new) = (rows(old), rows(new));
        for at in 0..old.len().max(new.len()) {
            let mut spans = old.get(at).map_or_else(Vec::new, |row| row.spans.clone());
            let used: usize = spans.iter().map(|span| width::of(&span.content)).sum();
            let blanks = usize::from(half).saturating_sub(used);
            spans.push(Span::raw(" ".repeat(blanks)));
            spans.push(Span::styled(" │ ", self.options.theme.faint()));
            spans.extend(new.get(at).into_iter().flat_map(|row| row.spans.clone()));
            out.push(OutputLine::whole(Line::from(spans)));
        }
    }
}

/// A line as it is shown: without its end, without tabs and control characters.
fn shown(line: &str) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line);
    width::shown(line.strip_suffix('\r').unwrap_or(line))
}

/// Named where two lines differ in it.
fn end_of_line(line: &str) -> &'static str {
    match line {
        _ if line.ends_with("\r\n") => " (CRLF)",
        _ if line.ends_with('\n') => " (LF)",
        _ => " (no newline)",
    }
}

/// Both lines with what differs emphasised, if they have enough in common.
fn compared(old: &str, new: &str, theme: Theme) -> (Line<'static>, Line<'static>) {
    let (removed, added) = (theme.removed(), theme.added());
    let plain = || {
        let old = Line::styled(old.to_owned(), removed);
        (old, Line::styled(new.to_owned(), added))
    };
    if old == new || old.len() > MAX_COMPARED || new.len() > MAX_COMPARED {
        return plain();
    }
    let old_words: Vec<&str> = old.split_word_bounds().collect();
    let new_words: Vec<&str> = new.split_word_bounds().collect();
    let ops = similar::capture_diff_slices(Algorithm::Myers, &old_words, &new_words);
    let same = ops.iter().filter(|op| op.tag() == DiffTag::Equal);
    let common: usize = same
        .flat_map(|op| &old_words[op.old_range()])
        .map(|word| word.trim().len())
        .sum();
    let letters = |text: &str| text.split_whitespace().map(str::len).sum::<usize>();
    let longer = letters(old).max(letters(new)).max(1);
    if (common as f32) < MIN_COMMON * longer as f32 {
        return plain();
    }
    let (mut old_spans, mut new_spans) = (Vec::new(), Vec::new());
    for op in &ops {
        let style = |line| match op.tag() {
            DiffTag::Equal => line,
            _ => theme.changed(line),
        };
        let push = |spans: &mut Vec<_>, words: &[&str], line| {
            if !words.is_empty() {
                spans.push(Span::styled(words.concat(), style(line)));
            }
        };
        push(&mut old_spans, &old_words[op.old_range()], removed);
        push(&mut new_spans, &new_words[op.new_range()], added);
    }
    (Line::from(old_spans), Line::from(new_spans))
}

#[cfg(test)]
mod tests;
