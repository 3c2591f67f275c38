//! What stands between `===FILE: …===` and `===END===`: a whole content, or places and new lines.

use codespar_tools::matching::Block;

use super::{
    Op,
    fence::{Wrapping, edges, opening, unescape_fence, wrapping},
    markers::{Marker, is_divider, marker, unescape, unescape_long},
    unended,
};

/// Something wrong in a body: the line, from 0 at its start, and what to do.
pub(super) type BodyProblem = (usize, String);

/// Reads the body of the block of `path`. The lines are those between the two markers. The first
/// line that is not blank decides which of the two it is; a fence around all of it goes.
pub(super) fn read(path: &str, lines: &[&str]) -> Result<Op, BodyProblem> {
    let path = path.to_owned();
    match edit_lines(lines)? {
        Some((from, lines)) => {
            let edits = Pairs { lines, from, at: 0 }.read()?;
            Ok(Op::Edit { path, edits })
        }
        None => {
            let content = content(&path, lines)?;
            Ok(Op::Write { path, content })
        }
    }
}

/// The lines with the pairs, if there are any, without a fence around them, and where they start.
/// `None` if it is a whole content. A fence that opens before pairs must close on the last line:
/// the pairs themselves may hold fences of the file.
fn edit_lines<'s, 'a>(lines: &'s [&'a str]) -> Result<Option<(usize, &'s [&'a str])>, BodyProblem> {
    let Some((first, last)) = edges(lines) else {
        return Ok(None);
    };
    if is_search(lines[first]) {
        return Ok(Some((first, &lines[first..])));
    }
    let Some(fence) = opening(lines[first]) else {
        return Ok(None);
    };
    let after = first + 1;
    let Some((next, _)) = edges(&lines[after..]) else {
        return Ok(None);
    };
    if !is_search(lines[after + next]) {
        return Ok(None);
    }
    if !fence.is_closed_by(lines[last]) {
        let reason = "a code fence opens here and does not close on the block's last line; leave \
                      fences out of the block";
        return Err((first, reason.to_owned()));
    }
    Ok(Some((after, &lines[after..last])))
}

/// The content of a block that no marker ends, if all of it is content beyond doubt.
pub(super) fn unended(path: &str, lines: &[&str]) -> Result<Op, BodyProblem> {
    let Some((first, last)) = edges(lines) else {
        return Err((0, unended::refusal("nothing at all")));
    };
    let whole = &lines[..=last];
    let is_fenced = opening(lines[first]).is_some();
    let inner = if is_fenced {
        &lines[first + 1..last.max(first + 1)]
    } else {
        whole
    };
    let doubt = if is_fenced {
        // A second fence could be that of a remark.
        let fence = inner.iter().position(|line| opening(line).is_some());
        fence.map(|at| (first + 1 + at, "a code fence"))
    } else {
        unended::doubt(path, inner)
    };
    if let Some((at, what)) = doubt {
        return Err((at, unended::refusal(what)));
    }
    let content = content(path, whole)?;
    Ok(Op::Write {
        path: path.to_owned(),
        content,
    })
}

/// Whether a body has pairs, perhaps in a fence, rather than a whole content.
pub(super) fn has_pairs(lines: &[&str]) -> bool {
    let mut texts = lines.iter().filter(|line| !line.trim().is_empty());
    match texts.next() {
        Some(line) if opening(line).is_some() => texts.next().is_some_and(|line| is_search(line)),
        first => first.is_some_and(|line| is_search(line)),
    }
}

fn is_search(line: &str) -> bool {
    matches!(marker(line), Some(Marker::Search | Marker::LongSearch))
}

/// Every line gets a newline, also the last: whether a file that exists has one at its end is kept
/// by `apply`. A marker within is refused, since a block that was not ended looks like that.
fn content(path: &str, lines: &[&str]) -> Result<String, BodyProblem> {
    if let Some(at) = lines.iter().position(|line| marker(line).is_some()) {
        return Err((
            at,
            format!(
                "`{}` stands inside a whole content; a block has either the whole content or, from \
                 its first line, SEARCH/REPLACE pairs; a line of the file that looks like a marker \
                 is written with a backslash before it",
                lines[at].trim_end()
            ),
        ));
    }
    let kept = match wrapping(path, lines) {
        Ok(Wrapping::None) => lines,
        Ok(Wrapping::Whole { first, last }) => &lines[first + 1..last],
        Err(reason) => {
            let at = edges(lines).map_or(0, |(first, _)| first);
            return Err((at, reason.to_owned()));
        }
    };
    let first = edges(kept).map(|(first, _)| first);
    let mut content = String::new();
    for (index, line) in kept.iter().enumerate() {
        let line = if Some(index) == first && kept.len() == lines.len() {
            unescape_fence(line)
        } else {
            line
        };
        content.push_str(unescape(line));
        content.push('\n');
    }
    Ok(content)
}

/// Reads pairs, one after the other.
pub(super) struct Pairs<'s, 'a> {
    lines: &'s [&'a str],
    /// Where these lines start in the body.
    from: usize,
    pub(super) at: usize,
}

impl<'s, 'a> Pairs<'s, 'a> {
    pub(super) fn new(lines: &'s [&'a str]) -> Self {
        Self {
            lines,
            from: 0,
            at: 0,
        }
    }

    /// Blank lines and fences between two pairs are skipped; any other text there is refused, since
    /// it may be lines that belong to a pair.
    fn read(mut self) -> Result<Vec<Block>, BodyProblem> {
        let mut edits = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            match marker(line) {
                Some(Marker::Search) => edits.push(self.short()?),
                Some(Marker::LongSearch) => edits.push(self.long()?),
                None if line.trim().is_empty() || opening(line).is_some() => self.at += 1,
                _ => {
                    let line = line.trim_end();
                    return Err(self.problem(format!(
                        "`{line}` stands between two pairs; only SEARCH/REPLACE pairs may stand there"
                    )));
                }
            }
        }
        Ok(edits)
    }

    /// `<<<SEARCH`, `>>>REPLACE`, up to the next pair or the end.
    fn short(&mut self) -> Result<Block, BodyProblem> {
        let start = self.at;
        self.at += 1;
        let search = self.text(unescape, |_| false);
        if self.marker() != Some(Marker::Replace) {
            return Err(self.unanswered(start, "<<<SEARCH", ">>>REPLACE"));
        }
        self.at += 1;
        let replace = self.text(unescape, |_| false);
        match self.marker() {
            None | Some(Marker::Search | Marker::LongSearch) => Ok(Block { search, replace }),
            Some(_) => Err(self.problem(
                "this marker has no SEARCH of its own; a line of the file that looks like a marker \
                 is written with a backslash before it"
                    .to_owned(),
            )),
        }
    }

    /// The seven-character form.
    pub(super) fn long(&mut self) -> Result<Block, BodyProblem> {
        let start = self.at;
        self.at += 1;
        let search = self.text(unescape_long, is_divider);
        if !self.lines.get(self.at).is_some_and(|line| is_divider(line)) {
            return Err(self.unanswered(start, "<<<<<<< SEARCH", "======="));
        }
        self.at += 1;
        let replace = self.text(unescape_long, is_divider);
        if self.lines.get(self.at).is_some_and(|line| is_divider(line)) {
            return Err(self.problem(
                "a second `=======` in one pair; the one that belongs to the file is written with a \
                 backslash before it"
                    .to_owned(),
            ));
        }
        if self.marker() != Some(Marker::LongReplace) {
            return Err(self.unanswered(start, "<<<<<<< SEARCH", ">>>>>>> REPLACE"));
        }
        self.at += 1;
        Ok(Block { search, replace })
    }

    /// The lines up to the next marker, joined. Stops before the next marker, and before a line
    /// that `stops` accepts. `plain` takes the backslash off a line that would be a marker without
    /// it.
    pub(super) fn text(&mut self, plain: fn(&str) -> &str, stops: fn(&str) -> bool) -> String {
        let rest = &self.lines[self.at..];
        let count = rest
            .iter()
            .take_while(|line| marker(line).is_none() && !stops(line))
            .count();
        self.at += count;
        let lines: Vec<&str> = rest[..count].iter().map(|line| plain(line)).collect();
        lines.join("\n")
    }

    pub(super) fn marker(&self) -> Option<Marker<'a>> {
        self.lines.get(self.at).and_then(|line| marker(line))
    }

    /// At the line where the pair began.
    pub(super) fn unanswered(&self, start: usize, opened: &str, missing: &str) -> BodyProblem {
        (
            self.from + start,
            format!("`{opened}` without the `{missing}` that belongs to it; write the pair whole"),
        )
    }

    fn problem(&self, reason: String) -> BodyProblem {
        (self.from + self.at, reason)
    }
}
