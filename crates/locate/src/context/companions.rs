//! Files that go with those that change: their tests, the project's instructions, the changelog.

use std::collections::HashSet;

use super::{ContextBudget, ContextKind};
use crate::{
    Excerpt, FileKind,
    kind::{extension, is_code},
    regions::{Choice, excerpt_of, head},
};

/// Instruction files at the root of a project, or above a file.
const RULES: &[&str] = &["AGENTS.md", "CLAUDE.md"];
const CONTRIBUTING: &[&str] = &[
    "CONTRIBUTING.md",
    "CONTRIBUTING.rst",
    ".github/CONTRIBUTING.md",
    "docs/CONTRIBUTING.md",
];
const CHANGELOGS: &[&str] = &["changelog", "changes", "history", "news"];
/// Names that say nothing: the directory does.
const GENERAL: &[&str] = &[
    "index", "mod", "lib", "main", "__init__", "init", "base", "utils",
];
/// Test files that are shown.
const MOST_TESTS: usize = 2;
/// A test file that no name leads to is taken from so many of the best ranked.
const RANKED: usize = 40;
/// Bytes of each companion.
const TEST_BYTES: usize = 6 * 1024;
const RULES_BYTES: usize = 3 * 1024;
const CHANGELOG_BYTES: usize = 1024;
/// Instruction files that are shown.
const MOST_RULES: usize = 3;

/// What is shown besides the files to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Companions {
    pub tests: Vec<String>,
    /// Files with instructions for those who change the project.
    pub rules: Vec<String>,
    pub changelog: Option<String>,
}

impl Companions {
    /// Among the `paths` of a tree, what goes with the `chosen` ones. `ranked` are the files that
    /// the instruction seems to be about.
    pub fn find(paths: &[String], chosen: &[&str], ranked: &[String]) -> Self {
        let known: HashSet<&str> = paths.iter().map(String::as_str).collect();
        Self {
            tests: tests(paths, chosen, ranked),
            rules: rules(&known, chosen),
            changelog: changelog(paths).filter(|path| !chosen.contains(&path.as_str())),
        }
    }
}

fn tests(paths: &[String], chosen: &[&str], ranked: &[String]) -> Vec<String> {
    let is_free = |path: &&String| is_test(path) && !chosen.contains(&path.as_str());
    let all: Vec<&String> = paths.iter().filter(is_free).collect();
    let mut found: Vec<String> = Vec::new();
    for path in chosen {
        if !matches!(FileKind::of(path), FileKind::Source) {
            continue;
        }
        let scored = all
            .iter()
            .filter_map(|test| Some((fit(path, test)?, *test)));
        // The first of several that fit alike.
        let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
        if let Some((_, test)) = best
            && !found.contains(test)
        {
            found.push(test.clone());
        }
    }
    if found.is_empty() && !chosen.iter().any(|path| is_test(path)) {
        found.extend(ranked.iter().take(RANKED).find(is_free).cloned());
    }
    found.truncate(MOST_TESTS);
    found
}

fn is_test(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    FileKind::of(path) == FileKind::Test
        && is_code(extension(&base))
        && !path.split('/').any(|part| part.starts_with('.'))
}

/// How well a test goes with a file by its name and place; `None` if its name is another.
fn fit(path: &str, test: &str) -> Option<usize> {
    let (place, subject) = subject(path);
    let (test_place, test_subject) = subject_of_test(test);
    let is_same_language = path.rsplit('.').next() == test.rsplit('.').next();
    let by_name = match test_subject == subject {
        true => 100,
        // `tests/queries/test_ordering.py` goes with `queries.py` as well.
        false if place_ends(&test_place, &subject) && subject.len() > 3 => 40,
        false => return None,
    };
    let shared = place
        .iter()
        .filter(|part| test_place.contains(part))
        .count();
    Some(by_name + 10 * shared + usize::from(is_same_language) * 50)
}

fn place_ends(place: &[String], subject: &str) -> bool {
    place.last().is_some_and(|last| last == subject)
}

/// The directories of a path and what its name speaks of, in lower case without separators.
fn subject(path: &str) -> (Vec<String>, String) {
    let mut parts: Vec<&str> = path.split('/').collect();
    let base = parts.pop().unwrap_or_default();
    let name = base.split('.').find(|part| !part.is_empty());
    let mut name = plain(name.unwrap_or(base));
    if GENERAL.contains(&name.as_str())
        && let Some(directory) = parts.pop()
    {
        name = plain(directory);
    }
    (parts.into_iter().map(plain).collect(), name)
}

/// The same of a test: what is left without the words for a test.
fn subject_of_test(path: &str) -> (Vec<String>, String) {
    const WORDS: &[&str] = &["tests", "testcase", "test", "specs", "spec"];
    let (mut place, mut name) = subject(path);
    for word in WORDS {
        if let Some(rest) = name.strip_prefix(word).or_else(|| name.strip_suffix(word)) {
            name = rest.to_owned();
            break;
        }
    }
    place.retain(|part| !WORDS.contains(&part.as_str()));
    (place, name)
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

fn rules(known: &HashSet<&str>, chosen: &[&str]) -> Vec<String> {
    let mut places: Vec<&str> = vec![""];
    if let Some(first) = chosen.first() {
        // The nearest says most, so it comes first.
        let above = first.match_indices('/').map(|(at, _)| &first[..=at]);
        places = above.rev().chain([""]).collect();
    }
    let own = places
        .iter()
        .flat_map(|place| RULES.iter().map(move |name| format!("{place}{name}")));
    let general = CONTRIBUTING.iter().map(|name| (*name).to_owned());
    let mut found: Vec<String> = own
        .filter(|path| known.contains(path.as_str()))
        .take(MOST_RULES - 1)
        .collect();
    found.extend(general.filter(|path| known.contains(path.as_str())).take(1));
    found.retain(|path| !chosen.contains(&path.as_str()));
    found
}

fn changelog(paths: &[String]) -> Option<String> {
    let is_changelog = |path: &&String| {
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        CHANGELOGS.contains(&name.to_ascii_lowercase().as_str())
            && matches!(rest, "" | "md" | "rst" | "txt" | "markdown" | "adoc")
    };
    paths.iter().find(is_changelog).cloned()
}

/// What is shown of a file that goes with the others. Of tests, what shows how they are written:
/// the head, the test that is nearest to the instruction, and the tail, where new ones are added.
/// Of all others the head. `budget` is that of the files to change; the smaller it is, the less is
/// shown.
pub fn companion_excerpt(
    kind: ContextKind,
    (path, text): (&str, &str),
    instruction: &str,
    budget: ContextBudget,
) -> Excerpt {
    let most = match kind {
        ContextKind::Source | ContextKind::Test => TEST_BYTES,
        ContextKind::Rules => RULES_BYTES,
        ContextKind::Changelog => CHANGELOG_BYTES,
    };
    let most = most.min(budget.bytes / 8);
    match kind {
        ContextKind::Source | ContextKind::Test => {
            excerpt_of(path, text, instruction, most, Choice::HeadBestTail)
        }
        ContextKind::Rules | ContextKind::Changelog => head(text, most),
    }
}
