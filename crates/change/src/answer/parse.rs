//! Reading an answer: blocks and the text around them.
//!
//! Line by line, with markers at the left edge only. All problems of an answer are collected, so
//! that one repair can mend all of them; with any problem there are no operations. White space at
//! the end of a marker's line and carriage returns before newlines do not count.

use super::{
    AnswerContext, AnswerEnding, AnswerError, Op, ParsedAnswer, Problem,
    bare::{self, BarePair, Named},
    body,
    fence::{Fence, opening},
    markers::{Marker, bare, begins, is_near_miss, marker, unescape},
    requests::{self, ContextRequest},
    summary,
};

/// Reads an answer. One without blocks has no ops.
///
/// Markers stand alone on their lines; in content they have one backslash before them, which is
/// taken away. A `FILE` block ends with `===END===`: a cut answer, or content that holds an
/// unescaped marker, is a problem and never a shorter file. The last block of an answer that is
/// known to be complete may lack it, and pairs may stand outside a block, where what is meant is
/// beyond doubt.
pub fn parse(text: &str, context: &AnswerContext<'_>) -> Result<ParsedAnswer, AnswerError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        lines: text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .collect(),
        context: *context,
        at: 0,
        block_end: 0,
        begun: None,
        outside: Vec::new(),
        ops: Vec::new(),
        requests: Vec::new(),
        problems: Vec::new(),
    };
    reader.read();
    reader.check_requests();
    if !reader.problems.is_empty() {
        return Err(AnswerError {
            problems: reader.problems,
        });
    }
    Ok(ParsedAnswer {
        summary: summary::clean(&reader.outside),
        ops: reader.ops,
        requests: reader.requests.into_iter().map(|(_, one)| one).collect(),
    })
}

struct Reader<'a, 'c> {
    lines: Vec<&'a str>,
    context: AnswerContext<'c>,
    at: usize,
    /// The first line after the last block or pair.
    block_end: usize,
    /// The file of the pairs that follow: its block was begun and has no end, or a pair of it ended
    /// at `block_end`.
    begun: Option<Begun<'a>>,
    outside: Vec<&'a str>,
    ops: Vec<Op>,
    /// With the lines they stand on.
    requests: Vec<(usize, ContextRequest)>,
    problems: Vec<Problem>,
}

struct Begun<'a> {
    path: String,
    /// By a `FILE` marker, not by a pair.
    by_marker: bool,
    /// Around the pairs, and still open.
    fence: Option<Fence<'a>>,
}

impl<'a> Reader<'a, '_> {
    /// `begun` is forgotten at any marker that is not the start of a pair: pairs after another
    /// block need their file named again.
    fn read(&mut self) {
        while let Some(&line) = self.lines.get(self.at) {
            let start = self.at;
            self.at += 1;
            let found = marker(line);
            if !matches!(found, None | Some(Marker::Search | Marker::LongSearch)) {
                self.begun = None;
            }
            match found {
                None if is_near_miss(line) => self.near_miss(start, line),
                None => self.outside.push(unescape(line)),
                Some(Marker::File(path)) => self.file(start, path),
                Some(Marker::Delete(path)) => {
                    if self.has_path(start, path) {
                        let path = path.to_owned();
                        self.ops.push(Op::Delete { path });
                    }
                    self.skip_end();
                }
                Some(Marker::Move(paths)) => {
                    self.moved(start, paths);
                    self.skip_end();
                }
                Some(Marker::Show(place)) => self.request(start, requests::show(place)),
                Some(Marker::Find(text)) => self.request(start, requests::search(text)),
                Some(Marker::End) => self.problem(
                    start,
                    None,
                    "an `===END===` that ends no block; if it is a line of a file, the line before \
                     which that block ended too early, write a backslash before it",
                ),
                Some(Marker::Search | Marker::LongSearch) => self.bare(start),
                Some(Marker::Replace | Marker::LongReplace) => self.problem(
                    start,
                    None,
                    "this line stands outside a block; SEARCH/REPLACE pairs stand between \
                     `===FILE: path===` and `===END===`",
                ),
            }
            if found.is_some() {
                self.block_end = self.at;
            }
        }
    }

    /// The last block, without its end. Pairs in it are read as those outside a block are.
    fn unended(&mut self, start: usize, path: &'a str) {
        if self.context.ending == AnswerEnding::Unknown {
            self.at = self.lines.len();
            return self.problem(
                start,
                Some(path),
                "the block starts here and never ends; the answer seems to be cut: send the block \
                 whole, with `===END===` on a line of its own",
            );
        }
        if !self.has_path(start, path) {
            self.at = self.lines.len();
            return;
        }
        let body = &self.lines[self.at..];
        if body::has_pairs(body) {
            self.begun = Some(Begun {
                path: path.to_owned(),
                by_marker: true,
                fence: None,
            });
            return;
        }
        let body_at = self.at;
        match body::unended(path, body) {
            Ok(op) => self.ops.push(op),
            Err((line, reason)) => self.problem(body_at + line, Some(path), &reason),
        }
        self.at = self.lines.len();
    }

    /// A pair outside a block, from its first marker. Successive pairs of one file stay separate
    /// operations; `apply` joins what concerns one file.
    fn bare(&mut self, start: usize) {
        let path = match self.file_of_pair(start) {
            Ok(path) => path,
            Err(reason) => {
                self.problem(start, None, &reason);
                return self.skip_pairs();
            }
        };
        let fence = self.fence_around(start);
        match bare::pair(&self.lines[start..], fence, &path, self.context.ending) {
            Ok(BarePair {
                block,
                used,
                in_fence,
            }) => {
                self.at = start + used;
                // Both fences are among the lines outside, where a pair that held only blocks goes.
                let last = self.lines[self.at - 1];
                if fence.is_some_and(|fence| fence.is_closed_by(last)) {
                    self.outside.push(last);
                }
                self.skip_end();
                self.begun = Some(Begun {
                    path: path.clone(),
                    by_marker: self.begun.as_ref().is_some_and(|begun| begun.by_marker),
                    fence: fence.filter(|_| in_fence),
                });
                self.ops.push(Op::Edit {
                    path,
                    edits: vec![block],
                });
            }
            Err((line, reason)) => {
                self.problem(start + line, Some(&path), &reason);
                self.skip_pairs();
            }
        }
    }

    /// After a problem with a pair, those that follow it would only repeat the problem.
    fn skip_pairs(&mut self) {
        let starts = |line: &&str| marker(line).is_some_and(begins);
        let rest = &self.lines[self.at..];
        self.at += rest.iter().position(starts).unwrap_or(rest.len());
    }

    /// The file that a pair outside a block is about, or why that cannot be told. The line above
    /// decides first. One that mentions a path among other words is believed only if that is the
    /// file one would assume without it. Names are compared as they are written.
    fn file_of_pair(&mut self, start: usize) -> Result<String, String> {
        let between = &self.lines[self.block_end..start];
        let mut above = between.iter().rev().filter(|line| !line.trim().is_empty());
        let mut line = above.next().copied();
        if line.is_some_and(|line| opening(line).is_some()) {
            line = above.next().copied();
        }
        let named = line.map_or(Named::Nothing, |line| bare::named(line, &self.context));
        let unclear = |path: &str| {
            Err(format!(
                "it is not clear whether the pair is about `{path}`; put it between `===FILE: path===` \
                 and `===END===`"
            ))
        };
        let begun = self.begun.as_ref();
        match (named, begun, self.context.shown) {
            (Named::Alone(path), Some(begun), _) if begun.by_marker && begun.path != path => {
                unclear(path)
            }
            (Named::Alone(path), ..) => {
                let name = line.map(str::trim_end);
                if let Some(at) = self
                    .outside
                    .iter()
                    .rposition(|line| Some(line.trim_end()) == name)
                {
                    // A name alone is no part of the summary.
                    self.outside.remove(at);
                }
                Ok(path.to_owned())
            }
            (Named::Nothing, Some(begun), _) if begun.by_marker || line.is_none() => {
                Ok(begun.path.clone())
            }
            (Named::Nothing, _, [only]) => Ok((*only).to_owned()),
            (Named::Mentioned(path), Some(begun), _) if begun.path == path => Ok(path.to_owned()),
            (Named::Mentioned(path), _, [only]) if *only == path => Ok(path.to_owned()),
            (Named::Mentioned(path), ..) => unclear(path),
            (Named::Nothing, ..) => Err(
                "this line stands outside a block, and nothing says which file it is about; \
                 SEARCH/REPLACE pairs stand between `===FILE: path===` and `===END===`"
                    .to_owned(),
            ),
        }
    }

    /// The fence that is open where a pair starts: directly above it, or around the pair before.
    fn fence_around(&self, start: usize) -> Option<Fence<'a>> {
        let between = &self.lines[self.block_end..start];
        let last = between.iter().rposition(|line| !line.trim().is_empty());
        match last {
            Some(last) if summary::is_open(&between[..=last]) => opening(between[last]),
            Some(_) => None,
            None => self.begun.as_ref()?.fence,
        }
    }

    /// The body ends at `===END===`. Another block before that means that the end was forgotten, or
    /// that the file has such a line unescaped; which of the two cannot be told.
    fn file(&mut self, start: usize, path: &'a str) {
        let ends = |line: &&str| marker(line).is_some_and(|one| one == Marker::End || begins(one));
        let Some(length) = self.lines[self.at..].iter().position(ends) else {
            return self.unended(start, path);
        };
        let body_at = self.at;
        let end = body_at + length;
        self.at = end;
        if marker(self.lines[end]) != Some(Marker::End) {
            return self.problem(
                end,
                Some(path),
                &format!(
                    "`{}` comes before the `===END===` of the block that starts at line {}; end that \
                     block first, or write a backslash before the line if it belongs to the file",
                    self.lines[end].trim_end(),
                    start + 1
                ),
            );
        }
        self.at += 1;
        if !self.has_path(start, path) {
            return;
        }
        match body::read(path, &self.lines[body_at..end]) {
            Ok(op) => self.ops.push(op),
            Err((line, reason)) => self.problem(body_at + line, Some(path), &reason),
        }
    }

    fn request(&mut self, start: usize, request: Result<ContextRequest, &str>) {
        match request {
            Ok(request) => self.requests.push((start, request)),
            Err(reason) => self.problem(start, None, reason),
        }
        self.skip_end();
    }

    /// An answer asks or changes: a change that was made without what was asked for is not meant.
    fn check_requests(&mut self) {
        let first = self.requests.first().map(|(line, _)| *line);
        if let Some(line) = first.filter(|_| !self.ops.is_empty()) {
            self.problem(
                line,
                None,
                "the answer asks for more and changes files at the same time; either ask and change \
                 nothing, or send the change without the line",
            );
        }
    }

    fn moved(&mut self, start: usize, paths: &str) {
        let parts: Vec<&str> = paths.split(" -> ").map(bare).collect();
        match parts.as_slice() {
            [from, to] if !from.is_empty() && !to.is_empty() => self.ops.push(Op::Move {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
            }),
            _ => self.problem(
                start,
                None,
                "a move names two paths: `===MOVE: old/path -> new/path===`",
            ),
        }
    }

    /// An `===END===` after a block of one line is superfluous and does no harm.
    fn skip_end(&mut self) {
        let rest = &self.lines[self.at..];
        if let Some(next) = rest.iter().position(|line| !line.trim().is_empty())
            && marker(rest[next]) == Some(Marker::End)
        {
            self.at += next + 1;
        }
    }

    fn has_path(&mut self, at: usize, path: &str) -> bool {
        if path.is_empty() {
            self.problem(at, None, "the block names no path");
        }
        !path.is_empty()
    }

    /// Taken as text, it would become part of the summary and its block would be lost without a
    /// word.
    fn near_miss(&mut self, at: usize, line: &str) {
        let reason = format!(
            "`{}` is nearly a marker; write `===FILE: path===`, `===END===`, `===DELETE: path===`, \
             `===MOVE: old -> new===`, `===SHOW: path===` or `===SEARCH: text===` exactly, alone on its line",
            line.trim_end()
        );
        self.problem(at, None, &reason);
    }

    fn problem(&mut self, at: usize, path: Option<&str>, reason: &str) {
        self.problems.push(Problem {
            line: at + 1,
            path: path.map(str::to_owned),
            reason: reason.to_owned(),
        });
    }
}
