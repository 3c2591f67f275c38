//! Reading an answer: blocks and the text around them.

use super::{
    AnswerError, Op, ParsedAnswer, Problem, body,
    markers::{Marker, bare, is_near_miss, marker, unescape},
    summary,
};

/// Reads an answer. One without blocks has no ops.
///
/// Markers stand alone on their lines; in content they have one backslash before them, which is
/// taken away. A `FILE` block ends with `===END===` and nothing else: a cut answer, or content
/// that holds an unescaped marker, is a problem and never a shorter file.
pub fn parse(text: &str) -> Result<ParsedAnswer, AnswerError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        lines: text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .collect(),
        at: 0,
        outside: Vec::new(),
        ops: Vec::new(),
        problems: Vec::new(),
    };
    reader.read();
    if !reader.problems.is_empty() {
        return Err(AnswerError {
            problems: reader.problems,
        });
    }
    Ok(ParsedAnswer {
        summary: summary::clean(&reader.outside),
        ops: reader.ops,
    })
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    outside: Vec<&'a str>,
    ops: Vec<Op>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(&line) = self.lines.get(self.at) {
            let start = self.at;
            self.at += 1;
            match marker(line) {
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
                Some(Marker::End) => self.problem(
                    start,
                    None,
                    "an `===END===` that ends no block; if it is a line of a file, the line before \
                     which that block ended too early, write a backslash before it",
                ),
                Some(_) => self.problem(
                    start,
                    None,
                    "this line stands outside a block; SEARCH/REPLACE pairs stand between \
                     `===FILE: path===` and `===END===`",
                ),
            }
        }
    }

    fn file(&mut self, start: usize, path: &'a str) {
        let ends = |line: &&str| {
            matches!(
                marker(line),
                Some(Marker::End | Marker::File(_) | Marker::Delete(_) | Marker::Move(_))
            )
        };
        let Some(length) = self.lines[self.at..].iter().position(ends) else {
            self.at = self.lines.len();
            return self.problem(
                start,
                Some(path),
                "the block starts here and never ends; the answer seems to be cut: send the block \
                 whole, with `===END===` on a line of its own",
            );
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

    fn near_miss(&mut self, at: usize, line: &str) {
        let reason = format!(
            "`{}` is nearly a marker; write `===FILE: path===`, `===END===`, `===DELETE: path===` or \
             `===MOVE: old -> new===` exactly, alone on its line",
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
