//! Paths and base names that an instruction writes out.
//!
//! A word names a file if its last component is the base name of one, and as many components before
//! it as possible agree from the end. So a full path, the end of one, and a path on another machine
//! (`/home/me/app/src/login.ts`) all find `src/login.ts`, while `elsewhere/login.ts` finds nothing,
//! because not even its last directory agrees.

use std::collections::HashMap;

use crate::kind;

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
    /// In a stack trace, or as a file elsewhere.
    Traced,
}

/// The paths of a tree, by their base names.
pub(crate) struct Names<'p> {
    paths: Vec<&'p str>,
    by_base: HashMap<&'p str, Vec<usize>>,
    /// Without a known extension: for names such as `src/auth/login`.
    by_stem: HashMap<&'p str, Vec<usize>>,
}

impl<'p> Names<'p> {
    pub(crate) fn new(paths: impl Iterator<Item = &'p str>) -> Self {
        let paths: Vec<&str> = paths.collect();
        let mut by_base: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut by_stem: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, path) in paths.iter().enumerate() {
            let base = base(path);
            by_base.entry(base).or_default().push(number);
            by_stem.entry(stem(base)).or_default().push(number);
        }
        Self {
            paths,
            by_base,
            by_stem,
        }
    }

    /// The files that an instruction names, in its order, each once and in its best manner.
    pub(crate) fn in_text(&self, instruction: &str) -> Vec<(usize, Manner)> {
        let mut found: Vec<(usize, Manner)> = Vec::new();
        let lines = instruction.lines().filter(|line| !line.trim().is_empty());
        for (number, line) in lines.enumerate() {
            let is_trace = is_trace(line);
            for word in line.split(|c: char| !belongs(c)) {
                let word = trimmed(word);
                let is_elsewhere = word.starts_with('/') || word.contains(":/");
                let manner = match number {
                    _ if is_trace || is_elsewhere => Manner::Traced,
                    0 => Manner::Titled,
                    _ => Manner::Written,
                };
                for file in self.of_word(word) {
                    match found.iter_mut().find(|(known, _)| *known == file) {
                        Some((_, known)) => *known = manner.min(*known),
                        None => found.push((file, manner)),
                    }
                }
            }
        }
        found
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

    /// Those that share most of the end of their path with the name that was written.
    fn nearest(&self, files: &[usize], names: &[&str]) -> Vec<usize> {
        let shared = |file: &usize| {
            let own = self.paths[*file].rsplit('/').skip(1);
            let written = names.iter().rev().skip(1);
            own.zip(written)
                .take_while(|(own, one)| own == *one)
                .count()
        };
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
/// name: in the order of the instruction, each once. A name that could mean many names none.
///
/// ```
/// let paths = ["src/auth/login.ts", "src/auth/session.ts"];
/// let found = codespar_locate::named_paths("fix the timeout in `login.ts`", &paths);
/// assert_eq!(found, ["src/auth/login.ts"]);
/// ```
pub fn named_paths<'p, P: AsRef<str>>(instruction: &str, paths: &'p [P]) -> Vec<&'p str> {
    let names = Names::new(paths.iter().map(AsRef::as_ref));
    let found = names.in_text(instruction).into_iter();
    found.map(|(file, _)| names.paths[file]).collect()
}

fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
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

fn is_trace(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("File \"") || line.starts_with("at ") || line.contains("site-packages")
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
        let names = Names::new(TREE.iter().copied());
        let text = "login.ts breaks\n  File \"/usr/lib/django/db/models/query.py\", line 3\n\
            and web/session.ts, and login.ts again";
        assert_eq!(
            names.in_text(text),
            [
                (2, Manner::Titled),
                (1, Manner::Traced),
                (9, Manner::Written)
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_names_files_of_the_tree_at_most(text in "[\\PC\n]*") {
            let found = named_paths(&text, TREE);
            prop_assert!(found.iter().all(|path| TREE.contains(path)));
        }
    }
}
