//! Reads an instruction: which terms it holds, and how much each counts.
//!
//! The weight of a term is what its occurrences add up to, each by where it stands and how it is
//! written; then the square root, so that a word which is repeated in a long report does not drown
//! the others. How rare a term is in the repository is not known here; the ranking multiplies it
//! in.

use std::collections::HashMap;

use crate::{
    kind::FileKind,
    report::{self, Line, Zone},
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
    /// The terms of the part of the project that the first line begins with.
    pub(crate) scope: Vec<Term>,
}

/// How much a word counts by where it stands.
fn place_weight(zone: Zone) -> f32 {
    match zone {
        Zone::Title => 3.0,
        Zone::Prose => 1.0,
        Zone::Code => 0.5,
        Zone::Log | Zone::Frame => 0.25,
        Zone::Environment => 0.1,
    }
}
/// A word counts for more between backticks,
const QUOTED: f32 = 1.5;
/// and so does what is spelled like a name of the code.
const NAME: f32 = 2.0;
/// A whole identifier is surer than its parts.
const WHOLE: f32 = 1.5;
/// Two words that follow each other may be a name by chance.
const PAIR: f32 = 0.5;
/// A block of so many lines is read as it is; in a longer one each line counts for less, so that a
/// long paste does not drown what is said about it.
const BLOCK_LINES: f32 = 15.0;

impl Query {
    /// Weighs each line by what it is ([`report`]).
    pub(crate) fn read(instruction: &str) -> Self {
        let text = &instruction[..instruction.floor_char_boundary(READ_BYTES)];
        let mut reading = Reading::default();
        let lines = report::lines(text);
        for line in &lines {
            reading.line(line);
            if line.zone == Zone::Title {
                reading.titled = reading.order.len();
            }
        }
        let title = lines.first().map_or("", |line| line.text);
        Self {
            terms: reading.finish(),
            kinds: kinds(title),
            scope: scope(title),
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
    fn line(&mut self, line: &Line) {
        let block = (BLOCK_LINES / line.block as f32).min(1.0).sqrt();
        let place = place_weight(line.zone) * block;
        for (number, span) in line.text.split('`').enumerate() {
            let style = match (number % 2, line.zone) {
                (1, _) => Style::Quoted,
                (_, Zone::Title | Zone::Prose) => Style::Prose,
                _ => Style::Fenced,
            };
            let mut before: Option<&str> = None;
            for run in span.split_whitespace().filter_map(local_part) {
                self.run(run, place, style);
                if matches!(style, Style::Prose) {
                    before = self.pair(before, run, place);
                }
            }
        }
    }

    /// Two words of prose may be the parts of one name: "order by" is `orderBy` in the code.
    /// Returns the word that the next one may go with.
    fn pair<'t>(&mut self, before: Option<&str>, run: &'t str, place: f32) -> Option<&'t str> {
        let word = run.trim_matches(|c: char| !c.is_alphanumeric());
        let is_word = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_word || !run.starts_with(word) {
            return None;
        }
        if let Some(before) = before {
            let is_noise = |word: &str| stopwords::is_noise(&word.to_ascii_lowercase());
            if !(is_noise(before) && is_noise(word)) && before.len() + word.len() > 4 {
                let joined = format!("{before}{word}");
                self.add(words::term(joined.as_bytes()), Extent::Pair, place * PAIR);
            }
        }
        run.ends_with(word).then_some(word)
    }

    /// A run of characters without space. Stop words are dropped from prose and code blocks, but
    /// kept between backticks: `get` may be the name of something there. So may a single letter
    /// that is quoted alone or called.
    fn run(&mut self, run: &str, place: f32, style: Style) {
        self.letter(run, place, style);
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

    /// `h` between backticks, or `h(`: the index has the names of one letter that are defined.
    fn letter(&mut self, run: &str, place: f32, style: Style) {
        let is_quoted = matches!(style, Style::Quoted) && run.len() == 1;
        let is_called = run.as_bytes().get(1) == Some(&b'(');
        let letter = run
            .as_bytes()
            .first()
            .filter(|b| b.is_ascii_alphabetic() || **b == b'$');
        if let Some(letter) = letter.filter(|_| is_quoted || is_called) {
            self.add(words::term(&[*letter]), Extent::Whole, place * QUOTED);
        }
    }

    fn add(&mut self, term: Term, extent: Extent, weight: f32) {
        let order = &mut self.order;
        let entry = self.weights.entry(term).or_insert_with(|| {
            order.push(term);
            (0.0, extent)
        });
        entry.0 += weight;
        // A word that is also written as one counts as such.
        if entry.1 == Extent::Pair {
            entry.1 = extent;
        }
    }

    /// What is said again counts for more, but not as often as it is said.
    fn finish(self) -> Vec<Wanted> {
        let wanted = |(number, term): (usize, &Term)| {
            let (sum, extent) = self.weights.get(term)?;
            let factor = match extent {
                Extent::Part | Extent::Pair => 1.0,
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

/// The part of the project that a first line begins with: `fileserver: …`, `fix(parser): …`,
/// `[core] …`.
fn scope(title: &str) -> Vec<Term> {
    let bracketed = title
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let prefix = match (bracketed, title.split_once(": ")) {
        (Some((inside, _)), _) => inside,
        (None, Some((prefix, _))) => match prefix.split_once('(') {
            Some((_, inside)) => inside.trim_end_matches(')'),
            None => prefix,
        },
        _ => return Vec::new(),
    };
    let mut terms = Vec::new();
    if prefix.split_whitespace().count() <= 2 {
        for name in prefix.split(['/', ',', ' ']) {
            let is_noise = stopwords::is_noise(&name.to_ascii_lowercase());
            if !is_noise {
                // The whole comes last.
                let mut whole = None;
                words::expand(name.as_bytes(), |term, _| whole = Some(term));
                terms.extend(whole);
            }
        }
    }
    terms
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
    fn what_is_pasted_counts_less_than_what_is_said() {
        let query = Query::read(
            "Login broken\nthe session\n2024-05-01 12:00:01 WARN socket closed\n\
             ### Environment\n- gateway 1.2.3\n",
        );
        assert_eq!(weight(&query, "session"), Some(1.0));
        assert_eq!(weight(&query, "socket"), Some(0.375f32.sqrt()));
        assert!(weight(&query, "gateway") < weight(&query, "socket"));
        let short = Query::read("Login\n```\nstack\n```\n");
        let long = format!("Login\n```\nstack\n{}```\n", "other\n".repeat(60));
        assert!(weight(&Query::read(&long), "stack") < weight(&short, "stack"));
    }

    #[test]
    fn two_words_that_follow_each_other_may_be_one_name() {
        let extent = |text: &str, name: &str| {
            let mut term = None;
            words::expand(name.as_bytes(), |one, _| term = Some(one));
            let query = Query::read(text);
            let wanted = query.terms.iter().find(|one| Some(one.term) == term);
            wanted.map(|one| one.extent)
        };
        assert_eq!(
            extent("split column fails", "SplitColumn"),
            Some(Extent::Pair)
        );
        assert_eq!(extent("split. Column fails", "SplitColumn"), None);
        assert_eq!(
            extent("the filename is lost", "file_name"),
            Some(Extent::Part)
        );
        assert_eq!(extent("`h` is lost", "h"), None);
    }

    #[test]
    fn a_letter_counts_where_it_must_be_a_name() {
        assert!(weight(&Query::read("calling h() twice"), "h").is_some());
        assert!(weight(&Query::read("the `h` function"), "h").is_some());
        assert_eq!(weight(&Query::read("plan b fails"), "b"), None);
    }

    #[test]
    fn the_first_line_may_begin_with_a_part_of_the_project() {
        let terms = |name: &str| vec![words::term(name.as_bytes())];
        assert_eq!(scope("fileserver: add sizes"), terms("fileserver"));
        assert_eq!(scope("fix(parser): no loop"), terms("parser"));
        assert_eq!(scope("[core] no loop"), terms("core"));
        assert_eq!(scope("it is so that: it fails"), []);
        assert_eq!(scope("fix: no loop"), []);
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
