//! What a model may ask for instead of an answer: a file, some of its lines, or a text in all
//! files.

use std::fmt;

use super::markers::bare;

/// Something that the model wants to see. Paths are as they were written: whoever shows them judges
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextRequest {
    /// `===SHOW: path===` or `===SHOW: path:from-to===`
    Show {
        path: String,
        /// The first and the last line, from 1.
        lines: Option<(usize, usize)>,
    },
    /// `===SEARCH: text===`
    Search { text: String },
}

impl fmt::Display for ContextRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Show { path, lines: None } => f.write_str(path),
            Self::Show {
                path,
                lines: Some((from, to)),
            } => write!(f, "{path}:{from}-{to}"),
            Self::Search { text } => write!(f, "\"{text}\""),
        }
    }
}

/// A longer text is no search.
const LONGEST: usize = 200;

/// Reads what stands after `SHOW:`. A colon is part of the path unless line numbers follow it.
pub(super) fn show(place: &str) -> Result<ContextRequest, &'static str> {
    let (path, lines) = match place
        .rsplit_once(':')
        .map(|(path, range)| (path, lines(range)))
    {
        Some((path, Some(lines))) => (path.trim(), Some(lines)),
        _ => (place, None),
    };
    if path.is_empty() {
        return Err("this asks for a file and names none: `===SHOW: path===`");
    }
    if lines.is_some_and(|(from, to)| from == 0 || to < from) {
        return Err("these are no lines: they count from 1, and the first comes before the last");
    }
    let path = bare(path).to_owned();
    Ok(ContextRequest::Show { path, lines })
}

/// `12-40`, or `12` for one line.
fn lines(range: &str) -> Option<(usize, usize)> {
    let range = range.trim();
    let (from, to) = range.split_once(['-', '–']).unwrap_or((range, range));
    Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
}

/// Reads what stands after `SEARCH:`.
pub(super) fn search(text: &str) -> Result<ContextRequest, &'static str> {
    match text.len() {
        0 => Err("this looks for nothing: `===SEARCH: text===`"),
        1..=LONGEST => Ok(ContextRequest::Search {
            text: text.to_owned(),
        }),
        _ => Err("this text is too long to be looked for; at most 200 bytes of one line"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{AnswerContext, parse};

    fn show(path: &str, lines: Option<(usize, usize)>) -> ContextRequest {
        let path = path.to_owned();
        ContextRequest::Show { path, lines }
    }

    fn requests(text: &str) -> Vec<ContextRequest> {
        let parsed = parse(text, &AnswerContext::default()).unwrap();
        assert_eq!(parsed.ops, []);
        parsed.requests
    }

    fn problem(text: &str) -> String {
        let context = AnswerContext::default();
        parse(text, &context).unwrap_err().to_string()
    }

    #[test]
    fn several_requests_stand_in_one_answer() {
        let text = "I need to see more.\n\n===SHOW: src/a.rs===\n===SHOW: `b c.py`:3-9===\n\
                    ===SHOW: d.go:7===\n===SEARCH: fn main(===\n===END===\n";
        let expected = [
            show("src/a.rs", None),
            show("b c.py", Some((3, 9))),
            show("d.go", Some((7, 7))),
            ContextRequest::Search {
                text: "fn main(".to_owned(),
            },
        ];
        assert_eq!(requests(text), expected);
    }

    #[test]
    fn a_colon_may_be_part_of_a_path() {
        assert_eq!(requests("===SHOW: a:b.rs===\n"), [show("a:b.rs", None)]);
    }

    #[test]
    fn an_answer_asks_or_changes() {
        let text = "===SHOW: a===\n===DELETE: b===\n";
        assert!(problem(text).contains("asks for more and changes files"));
    }

    #[test]
    fn a_request_in_the_content_of_a_file_is_escaped() {
        let block = |line: &str| format!("===FILE: a.md===\n{line}\n===END===\n");
        let read = parse(&block("\\===SHOW: b===\n"), &AnswerContext::default()).unwrap();
        let crate::answer::Op::Write { content, .. } = &read.ops[0] else {
            panic!("{read:?}");
        };
        assert_eq!(content, "===SHOW: b===\n\n");
        assert_eq!(read.requests, []);
        let told = problem(&block("===SHOW: b==="));
        assert!(told.contains("comes before the `===END===`"), "{told}");
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        for (line, told) in [
            ("===SHOW: ===", "names none"),
            ("===SHOW: a:0-3===", "these are no lines"),
            ("===SHOW: a:9-3===", "these are no lines"),
            ("===SEARCH: ===", "looks for nothing"),
            ("===SHOW a===\n===SHOW: b", "nearly a marker"),
            ("=== search: b ===", "nearly a marker"),
        ] {
            assert!(problem(line).contains(told), "{line}: {}", problem(line));
        }
        let long = format!("===SEARCH: {}===", "x".repeat(201));
        assert!(problem(&long).contains("too long"));
        assert_eq!(requests("== Search: better ==\n"), []);
    }
}
