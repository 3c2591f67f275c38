//! Licences of the dependencies, held against those we accept.
//!
//! An expression is evaluated: of alternatives one must be accepted, of parts that apply together
//! all. Anything that cannot be parsed is refused, so a new spelling is looked at by a person once.

use crate::metadata::Package;

/// Permissive ones, and data under terms that ask nothing of a binary.
const ACCEPTED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that have a file with their licence and do not name it; the file was read.
const BY_FILE: &[(&str, &str)] = &[
    ("temporalio-client", "MIT"),
    ("temporalio-common", "MIT"),
    ("temporalio-common-wasm", "MIT"),
    ("temporalio-macros", "MIT"),
    ("temporalio-protos", "MIT"),
    ("temporalio-sdk", "MIT"),
    ("temporalio-sdk-core", "MIT"),
    ("temporalio-workflow", "MIT"),
];

/// Of all packages, those of the workspace included.
pub(crate) fn problems(packages: &[Package]) -> Vec<String> {
    packages.iter().filter_map(problem).collect()
}

fn problem(package: &Package) -> Option<String> {
    let Package { name, version, .. } = package;
    let by_file = BY_FILE.iter().find(|(known, _)| known == name);
    let by_file = by_file.map(|(_, licence)| *licence);
    match package.license.as_deref().or(by_file) {
        None => Some(format!("{name} {version} names no licence")),
        Some(licence) if !is_accepted(licence) => Some(format!(
            "{name} {version} has the licence `{licence}`, which is not on our list"
        )),
        Some(_) => None,
    }
}

/// An SPDX expression; `/` is an old way to write OR. Words after the end of the expression make it
/// invalid.
fn is_accepted(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words };
    let accepted = parser.either();
    accepted && parser.words.is_empty()
}

/// Recursive descent, one function for each level of precedence: `OR` binds less than `AND`.
struct Parser<'a> {
    words: &'a [&'a str],
}

impl Parser<'_> {
    /// Evaluates all alternatives, also after an accepted one, so that the words are consumed.
    fn either(&mut self) -> bool {
        let mut accepted = self.both();
        while self.take("OR") {
            accepted |= self.both();
        }
        accepted
    }

    fn both(&mut self) -> bool {
        let mut accepted = self.one();
        while self.take("AND") {
            accepted &= self.one();
        }
        accepted
    }

    /// A name, a name with an exception, or an expression in parentheses. A missing parenthesis is
    /// a refusal.
    fn one(&mut self) -> bool {
        if self.take("(") {
            let accepted = self.either();
            return self.take(")") && accepted;
        }
        let Some(name) = self.next() else {
            return false;
        };
        let name = if self.take("WITH") {
            format!("{name} WITH {}", self.next().unwrap_or_default())
        } else {
            name
        };
        ACCEPTED.contains(&name.as_str())
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.words.first() == Some(&word);
        if taken {
            self.words = &self.words[1..];
        }
        taken
    }

    fn next(&mut self) -> Option<String> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some((*first).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn one_accepted_choice_is_enough_but_all_parts_are_needed() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(is_accepted(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND GPL-3.0",
            "Apache-2.0 WITH some-exception",
            "(MIT",
            "MIT MIT",
        ] {
            assert!(!is_accepted(bad), "{bad}");
        }
    }
}
