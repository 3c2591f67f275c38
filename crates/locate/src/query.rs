//! Reads an instruction: which terms it holds, and how much each counts.
//!
//! The weight of a term is what its occurrences add up to, each by where it stands and how it is
//! written; then the square root, so that a word which is repeated in a long report does not drown
//! the others. How rare a term is in the repository is not known here; the ranking multiplies it
//! in.

use std::collections::HashMap;

use crate::{
    kind::FileKind,
    stopwords,
    words::{self, Extent, Term},
};

/// What an instruction says beyond this is hardly about the place.
const READ_BYTES: usize = 24_000;

/// A term of an instruction. Each term is there once, in the order in which the instruction first
/// has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) term: Term,
    pub(crate) extent: Extent,
    pub(crate) weight: f32,
    /// Whether it stands in the first line.
    pub(crate) titled: bool,
}

/// An instruction as the ranking sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) terms: Vec<Wanted>,
    /// Kinds of files, beside source, that the first line speaks of. Files of these kinds weigh at
    /// least half of what source files do.
    pub(crate) kinds: Vec<FileKind>,
}

/// What stands in the first line counts for more,
const TITLE: f32 = 3.0;
/// in a block of code for less,
const FENCED: f32 = 0.5;
/// between backticks for more,
const QUOTED: f32 = 1.5;
/// and so does what is spelled like a name of the code.
const NAME: f32 = 2.0;
/// A whole identifier is surer than its parts.
const WHOLE: f32 = 1.5;

impl Query {
    /// Blank lines, HTML comments and the fences of code blocks are skipped; the first line that is
    /// left is the title, also if it is inside a code block.
    pub(crate) fn read(instruction: &str) -> Self {
        let text = &instruction[..instruction.floor_char_boundary(READ_BYTES)];
        let mut reading = Reading::default();
        let mut is_title = true;
        let mut is_fenced = false;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with("<!--") {
                continue;
            }
            if line.starts_with("```") || line.starts_with("~~~") {
                is_fenced = !is_fenced;
                continue;
            }
            reading.line(line, is_title, is_fenced);
            if is_title {
                reading.titled = reading.order.len();
            }
            is_title = false;
        }
        let title = text.lines().find(|line| !line.trim().is_empty());
        Self {
            terms: reading.finish(),
            kinds: kinds(title.unwrap_or_default()),
        }
    }
}

#[derive(Default)]
struct Reading {
    weights: HashMap<Term, (f32, Extent)>,
    order: Vec<Term>,
    /// So many of the order stand in the first line.
    titled: usize,
}

impl Reading {
    fn line(&mut self, line: &str, is_title: bool, is_fenced: bool) {
        let place = match (is_title, is_fenced) {
            (true, _) => TITLE,
            (_, true) => FENCED,
            _ => 1.0,
        };
        for (number, span) in line.split('`').enumerate() {
            let style = match number % 2 {
                1 => Style::Quoted,
                _ if is_fenced => Style::Fenced,
                _ => Style::Prose,
            };
            for run in span.split_whitespace().filter_map(local_part) {
                self.run(run, place, style);
            }
        }
    }

    /// A run of characters without space. Stop words are dropped from prose and code blocks, but
    /// kept between backticks: `get` may be the name of something there.
    fn run(&mut self, run: &str, place: f32, style: Style) {
        for (start, identifier) in words::identifiers(run.as_bytes()) {
            let after = run.as_bytes().get(start + identifier.len());
            let is_name = is_compound(identifier) || after == Some(&b'(');
            let lower = String::from_utf8_lossy(identifier).to_ascii_lowercase();
            let factor = match style {
                _ if is_name => NAME,
                Style::Quoted => QUOTED,
                _ if stopwords::is_noise(&lower) => continue,
                Style::Fenced => QUOTED,
                Style::Prose => 1.0,
            };
            words::expand(identifier, |term, extent| {
                self.add(term, extent, place * factor);
            });
        }
        if run.contains('-') {
            let name = run.trim_matches(|c: char| !c.is_alphanumeric());
            words::expand(name.as_bytes(), |term, extent| {
                if extent == Extent::Whole {
                    self.add(term, extent, place);
                }
            });
        }
    }

    fn add(&mut self, term: Term, extent: Extent, weight: f32) {
        let order = &mut self.order;
        let entry = self.weights.entry(term).or_insert_with(|| {
            order.push(term);
            (0.0, extent)
        });
        entry.0 += weight;
    }

    /// What is said again counts for more, but not as often as it is said.
    fn finish(self) -> Vec<Wanted> {
        let wanted = |(number, term): (usize, &Term)| {
            let (sum, extent) = self.weights.get(term)?;
            let factor = match extent {
                Extent::Part => 1.0,
                Extent::Whole => WHOLE,
            };
            Some(Wanted {
                term: *term,
                extent: *extent,
                weight: sum.sqrt() * factor,
                titled: number < self.titled,
            })
        };
        self.order.iter().enumerate().filter_map(wanted).collect()
    }
}

/// How a word is set off.
#[derive(Clone, Copy)]
enum Style {
    Prose,
    Quoted,
    Fenced,
}

/// Of a link, the part that may be a path of the repository; nothing of other links.
fn local_part(run: &str) -> Option<&str> {
    let Some(at) = run.find("://") else {
        return Some(run);
    };
    let link = &run[at + 3..];
    let (_, rest) = link
        .split_once("/blob/")
        .or_else(|| link.split_once("/tree/"))?;
    let (_, path) = rest.split_once('/')?;
    Some(path.split(['#', '?', ')']).next().unwrap_or(path))
}

/// Whether it is spelled like a name of the code: `getOrderBy`, `order_by`.
fn is_compound(identifier: &[u8]) -> bool {
    words::parts(identifier).nth(1).is_some()
}

/// The kinds of files that a line speaks of.
fn kinds(title: &str) -> Vec<FileKind> {
    let mut kinds = Vec::new();
    for word in title.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let kind = match word.to_ascii_lowercase().as_str() {
            "test" | "tests" | "testing" | "spec" | "specs" | "unittest" | "fixture"
            | "fixtures" => FileKind::Test,
            "doc" | "docs" | "documentation" | "readme" | "changelog" | "tutorial" | "example"
            | "examples" | "docstring" | "benchmark" | "benchmarks" => FileKind::Docs,
            "lock" | "lockfile" | "lockfiles" => FileKind::Lock,
            "generated" | "vendored" | "vendor" => FileKind::Generated,
            "json" | "yaml" | "yml" | "toml" | "css" | "html" | "workflow" | "workflows"
            | "dockerfile" | "makefile" => FileKind::Data,
            _ => continue,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weight(query: &Query, word: &str) -> Option<f32> {
        let term = words::term(word.as_bytes());
        query
            .terms
            .iter()
            .find(|one| one.term == term)
            .map(|one| one.weight)
    }

    #[test]
    fn where_and_how_a_word_is_written_gives_its_weight() {
        let query = Query::read("Login broken\n\nThe `cache` and the session\n```\nstack\n```\n");
        assert_eq!(weight(&query, "login"), Some(3f32.sqrt()));
        assert_eq!(weight(&query, "cache"), Some(1.5f32.sqrt()));
        assert_eq!(weight(&query, "session"), Some(1.0));
        assert_eq!(weight(&query, "stack"), Some(0.75f32.sqrt()));
        assert_eq!(weight(&query, "the"), None);
    }

    #[test]
    fn the_terms_of_the_first_line_are_known_apart() {
        let query = Query::read("\nLogin broken\n\nThe session of a login\n");
        let titled = |word: &str| {
            let term = words::term(word.as_bytes());
            let mut terms = query.terms.iter();
            terms.find(|one| one.term == term).map(|one| one.titled)
        };
        assert_eq!(
            ["login", "broken", "session"].map(titled),
            [Some(true), Some(true), Some(false)]
        );
    }

    #[test]
    fn links_count_only_for_the_path_they_lead_to() {
        let query = Query::read(
            "see https://host.org/o/r/blob/main/src/login.ts#L3 and https://other.net/page",
        );
        assert!(weight(&query, "login").is_some() && weight(&query, "src").is_some());
        assert_eq!(weight(&query, "host"), None);
        assert_eq!(weight(&query, "page"), None);
    }

    #[test]
    fn the_first_line_says_which_kinds_of_files_are_meant() {
        assert_eq!(
            kinds("add tests and a README entry"),
            [FileKind::Test, FileKind::Docs]
        );
        assert_eq!(kinds("the latest protest"), []);
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "[\\PC\n`]*") {
            let query = Query::read(&text);
            prop_assert!(query.terms.iter().all(|one| one.weight > 0.0));
        }
    }
}
