//! Paths and base names that an instruction writes out.
//!
//! A word names a file if its last component is the base name of one, and as many components before
//! it as possible agree from the end. So a full path, the end of one, and a path on another machine
//! (`/home/me/app/src/login.ts`) all find `src/login.ts`, while `elsewhere/login.ts` finds nothing,
//! because not even its last directory agrees.

use std::collections::{HashMap, HashSet};

use crate::{
    kind,
    report::{self, Line, Zone},
    table::BuildIdentity,
    words,
};

/// A name that fits more files than this names none of them. `index.ts` alone says nothing in a
/// tree that has a dozen of them.
const MOST: usize = 4;

/// How a file is named, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Manner {
    /// On purpose, in the first line.
    Titled,
    /// On purpose, further on.
    Written,
    /// In an example, which may be about a file of its own with the same name.
    Coded,
    /// As a file on another machine.
    Elsewhere,
    /// As a module: `package.module.Name`.
    Module,
    /// In a stack trace, with so many other files of the tree between it and the error.
    Traced(u32),
}

/// The paths of a tree that the words of an instruction may name, by their base names.
struct Names<'p> {
    paths: &'p [&'p str],
    by_base: HashMap<&'p str, Vec<usize>>,
    /// Without a known extension: for names such as `src/auth/login`.
    by_stem: HashMap<&'p str, Vec<usize>>,
    /// Files that stand for their directory, such as `mod.rs`, by its name.
    by_directory: HashMap<&'p str, Vec<usize>>,
}

/// The files of `paths` that an instruction names, in its order, each once and in its best manner.
/// What a program wrote to a log names nothing.
pub(crate) fn names(paths: &[&str], instruction: &str) -> Vec<(usize, Manner)> {
    let lines = report::lines(instruction);
    Names::new(paths, &lines).in_lines(&lines)
}

impl<'p> Names<'p> {
    /// A tree has many paths and an instruction few words, so only paths that one of them may mean
    /// are kept.
    fn new(paths: &'p [&'p str], lines: &[Line]) -> Self {
        let mut names = Self {
            paths,
            by_base: HashMap::new(),
            by_stem: HashMap::new(),
            by_directory: HashMap::new(),
        };
        let wanted = last_names(lines);
        let is_wanted = |name: &str| wanted.contains(&words::hash(name.as_bytes()));
        for (number, path) in paths.iter().enumerate() {
            let base = base(path);
            // Whether an ending is known takes longer than whether a word is there.
            let short = base.bytes().rposition(|byte| byte == b'.');
            let short = &base[..short.unwrap_or(base.len())];
            let stands_for_directory = matches!(short, "__init__" | "mod" | "index" | "lib");
            let (has_base, has_short) = (is_wanted(base), is_wanted(short));
            if !has_base && !has_short && !stands_for_directory {
                continue;
            }
            let stem = stem(base);
            if has_base {
                names.by_base.entry(base).or_default().push(number);
            }
            if stem == short && has_short || stem == base && has_base {
                names.by_stem.entry(stem).or_default().push(number);
            }
            if stands_for_directory
                && stem == short
                && let Some(directory) = path.rsplit('/').nth(1)
                && is_wanted(directory)
            {
                names
                    .by_directory
                    .entry(directory)
                    .or_default()
                    .push(number);
            }
        }
        names
    }

    fn in_lines(&self, lines: &[Line]) -> Vec<(usize, Manner)> {
        let mut found: Vec<(usize, Manner)> = Vec::new();
        let mut trace: Vec<(usize, bool)> = Vec::new();
        for line in lines {
            if line.zone == Zone::Frame {
                let is_python = line.text.contains("File \"");
                let words = line.text.split(|c: char| !belongs(c));
                let files = words.flat_map(|word| self.of_word(trimmed(word)));
                trace.extend(files.map(|file| (file, is_python)));
                continue;
            }
            finish_trace(&mut trace, &mut found);
            for (file, manner) in self.in_line(line) {
                note(&mut found, file, manner);
            }
        }
        finish_trace(&mut trace, &mut found);
        found
    }

    fn in_line(&self, line: &Line) -> Vec<(usize, Manner)> {
        let usual = match line.zone {
            Zone::Title => Manner::Titled,
            Zone::Prose => Manner::Written,
            Zone::Code => Manner::Coded,
            Zone::Log | Zone::Environment | Zone::Frame => return Vec::new(),
        };
        let mut found = Vec::new();
        for word in line.text.split(|c: char| !belongs(c)) {
            let word = trimmed(word);
            let is_link = word.contains("://");
            if is_link && !is_link_to_file(word) {
                continue;
            }
            let is_elsewhere = !is_link && (word.starts_with('/') || word.contains(":/"));
            let manner = if is_elsewhere {
                Manner::Elsewhere
            } else {
                usual
            };
            let files = self.of_word(word);
            let modules = if files.is_empty() {
                self.of_module(word)
            } else {
                Vec::new()
            };
            found.extend(files.into_iter().map(|file| (file, manner)));
            found.extend(modules.into_iter().map(|file| (file, Manner::Module)));
        }
        found
    }

    /// The file of a dotted name: `package.module`, with or without up to two names that are
    /// defined in it. At least the file and its directory have to agree.
    fn of_module(&self, word: &str) -> Vec<usize> {
        let separator = if word.contains("::") { "::" } else { "." };
        let names: Vec<&str> = word
            .split(separator)
            .filter(|name| !name.is_empty())
            .collect();
        for cut in 0..3 {
            let Some(names) = names.len().checked_sub(cut).map(|end| &names[..end]) else {
                break;
            };
            let (Some(base), true) = (names.last(), names.len() > 1) else {
                break;
            };
            // Below its directory, the file has a name of its own.
            let below: Vec<&str> = names.iter().copied().chain([""]).collect();
            for (known, names, least) in [
                (&self.by_stem, names, 1),
                (&self.by_directory, below.as_slice(), 2),
            ] {
                let files = known.get(base).map_or(&[][..], Vec::as_slice);
                let agrees = |file: &&usize| self.shared(**file, names) >= least;
                let files: Vec<usize> = files.iter().filter(agrees).copied().collect();
                let nearest = self.nearest(&files, names);
                if !nearest.is_empty() {
                    return nearest;
                }
            }
        }
        Vec::new()
    }

    fn of_word(&self, word: &str) -> Vec<usize> {
        let names: Vec<&str> = word
            .split(['/', '\\'])
            .filter(|name| !matches!(*name, "" | "." | ".."))
            .collect();
        let Some(base) = names.last() else {
            return Vec::new();
        };
        match (self.by_base.get(base), self.by_stem.get(base)) {
            (Some(files), _) if names.len() > 1 || base.contains('.') || is_proper(base) => {
                self.nearest(files, &names)
            }
            // Without its extension a file is named by a path only.
            (None, Some(files)) if names.len() > 2 => self.nearest(files, &names),
            _ => Vec::new(),
        }
    }

    /// How many directories of a file, from the last on, are as they are written.
    fn shared(&self, file: usize, names: &[&str]) -> usize {
        let own = self.paths[file].rsplit('/').skip(1);
        let written = names.iter().rev().skip(1);
        own.zip(written)
            .take_while(|(own, one)| own == *one)
            .count()
    }

    /// Those that share most of the end of their path with the name that was written.
    fn nearest(&self, files: &[usize], names: &[&str]) -> Vec<usize> {
        let shared = |file: &usize| self.shared(*file, names);
        let most = files.iter().map(shared).max().unwrap_or(0);
        if names.len() > 1 && most == 0 {
            // The name of the root is no part of the paths in it: `project/setup.py`.
            let is_at_root = |file: &&usize| !self.paths[**file].contains('/');
            let at_root = files.iter().filter(|_| names.len() == 2).filter(is_at_root);
            return at_root.copied().collect();
        }
        let nearest: Vec<usize> = files
            .iter()
            .copied()
            .filter(|f| shared(f) == most)
            .collect();
        // A file at the very place that was written beats those that only end alike.
        let whole = names.join("/");
        if let Some(exact) = nearest.iter().find(|file| self.paths[**file] == whole) {
            return vec![*exact];
        }
        if nearest.len() > MOST {
            Vec::new()
        } else {
            nearest
        }
    }
}

/// The files of `paths` that an instruction names by their path, the end of it, or their base
/// name: in the order of the instruction, each once. A name that could mean many names none, and
/// neither does a path in a log or a stack trace.
///
/// ```
/// let paths = ["src/auth/login.ts", "src/auth/session.ts"];
/// let found = codespar_locate::named_paths("fix the timeout in `login.ts`", &paths);
/// assert_eq!(found, ["src/auth/login.ts"]);
/// ```
pub fn named_paths<'p, P: AsRef<str>>(instruction: &str, paths: &'p [P]) -> Vec<&'p str> {
    let paths: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
    let found = names(&paths, instruction).into_iter();
    found
        .filter(|(_, manner)| *manner < Manner::Module)
        .map(|(file, _)| paths[file])
        .collect()
}

/// The hashes of what may be the last name of a path or of a module, for each word of the lines.
fn last_names(lines: &[Line]) -> HashSet<u64, BuildIdentity> {
    let words = lines
        .iter()
        .flat_map(|line| line.text.split(|c| !belongs(c)));
    let parts = words.map(trimmed).flat_map(|word| {
        let path = word.split(['/', '\\']);
        path.chain(word.split("::")).chain(word.split('.'))
    });
    parts.map(|part| words::hash(part.as_bytes())).collect()
}

fn note(found: &mut Vec<(usize, Manner)>, file: usize, manner: Manner) {
    match found.iter_mut().find(|(known, _)| *known == file) {
        Some((_, known)) => *known = manner.min(*known),
        None => found.push((file, manner)),
    }
}

/// Counts the files of a trace from the error on: in Python it is written last.
fn finish_trace(trace: &mut Vec<(usize, bool)>, found: &mut Vec<(usize, Manner)>) {
    if trace.iter().any(|(_, is_python)| *is_python) {
        trace.reverse();
    }
    let mut seen: Vec<usize> = Vec::new();
    for (file, _) in trace.drain(..) {
        if !seen.contains(&file) {
            note(found, file, Manner::Traced(seen.len() as u32));
            seen.push(file);
        }
    }
}

/// Whether a link leads to a file of a repository, not to a page.
fn is_link_to_file(link: &str) -> bool {
    link.contains("/blob/") || link.contains("/tree/") || link.contains("/raw/")
}

fn base(path: &str) -> &str {
    let is_separator = |byte: u8| matches!(byte, b'/' | b'\\');
    let from = path.bytes().rposition(is_separator);
    &path[from.map_or(0, |at| at + 1)..]
}

fn stem(base: &str) -> &str {
    match base.rsplit_once('.') {
        Some((stem, extension)) if kind::is_known(extension) => stem,
        _ => base,
    }
}

/// Characters of paths, of the lines behind them, and of links to them.
fn belongs(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(
            c,
            '_' | '-' | '.' | '/' | '\\' | ':' | '@' | '+' | '#' | '$'
        )
}

/// Without line numbers, fragments and the punctuation of the sentence.
fn trimmed(word: &str) -> &str {
    let word = word.split('#').next().unwrap_or(word);
    let mut word = word.trim_matches(['.', ':', '-', '@', '+', '$']);
    while let Some((before, digits)) = word.rsplit_once(':')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        word = before;
    }
    word
}

/// A name without an extension counts if nothing but a file is spelled so: `Makefile`.
fn is_proper(base: &str) -> bool {
    base.ends_with("file") && base.starts_with(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TREE: &[&str] = &[
        "Makefile",
        "django/db/models/query.py",
        "src/auth/login.ts",
        "src/auth/session.ts",
        "src/a/index.ts",
        "src/b/index.ts",
        "src/c/index.ts",
        "src/d/index.ts",
        "src/e/index.ts",
        "web/session.ts",
    ];

    #[test]
    fn paths_ends_of_paths_and_base_names_are_found_in_order() {
        for (instruction, expected) in [
            ("look at login.ts.", &["src/auth/login.ts"][..]),
            (
                "see `src/auth/session.ts:12:4`, ok",
                &["src/auth/session.ts"],
            ),
            ("see session.ts", &["src/auth/session.ts", "web/session.ts"]),
            (
                "(auth/session.ts) then login.ts",
                &["src/auth/session.ts", "src/auth/login.ts"],
            ),
            ("src\\auth\\login.ts", &["src/auth/login.ts"]),
            (
                "https://host/o/r/blob/main/src/auth/login.ts#L3-L9",
                &["src/auth/login.ts"],
            ),
            (
                "at /home/me/app/src/auth/login.ts:3",
                &["src/auth/login.ts"],
            ),
            ("b/index.ts", &["src/b/index.ts"]),
            ("index.ts", &[]),
            ("elsewhere/login.ts", &[]),
            ("the Makefile", &["Makefile"]),
            ("project/Makefile", &["Makefile"]),
            ("node_modules/project/Makefile", &[]),
            ("log in", &[]),
        ] {
            assert_eq!(named_paths(instruction, TREE), expected, "{instruction}");
        }
    }

    #[test]
    fn the_manner_tells_purpose_from_traces() {
        let text = "login.ts breaks\nTraceback (most recent call last):\n\
            File \"/app/src/auth/session.ts\", line 9\n\
            File \"/usr/lib/django/db/models/query.py\", line 3\n\
            and web/session.ts, and login.ts again\n```\ncat Makefile\n```\n";
        assert_eq!(
            names(TREE, text),
            [
                (2, Manner::Titled),
                (1, Manner::Traced(0)),
                (3, Manner::Traced(1)),
                (9, Manner::Written),
                (0, Manner::Coded),
            ]
        );
    }

    #[test]
    fn a_path_in_a_log_or_a_stack_trace_is_not_named() {
        for text in [
            "it hangs\n2024-05-01 12:00:01 INFO compiled src/auth/login.ts",
            "it hangs\n[WARN] src/auth/login.ts is slow",
            "it hangs\nat check (/app/src/auth/login.ts:12:4)",
            "it hangs\n### Relevant log output\n```\nsrc/auth/login.ts\n```",
            "it hangs, see https://example.org/docs/auth/login.ts",
        ] {
            assert_eq!(named_paths(text, TREE), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_dotted_name_leads_to_its_module() {
        let tree = [
            "django/db/models/query.py",
            "sphinx/ext/autodoc/__init__.py",
            "query.py",
        ];
        for (text, expected) in [
            (
                "title\ndjango.db.models.query.QuerySet.filter fails",
                &[0][..],
            ),
            ("title\nsphinx.ext.autodoc drops it", &[1]),
            ("title\nself.query is empty", &[]),
        ] {
            let found = names(&tree, text).into_iter();
            let found: Vec<usize> = found.map(|(file, _)| file).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_names_files_of_the_tree_at_most(text in "[\\PC\n]*") {
            let found = named_paths(&text, TREE);
            prop_assert!(found.iter().all(|path| TREE.contains(path)));
        }
    }
}
