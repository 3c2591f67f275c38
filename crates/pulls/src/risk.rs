//! How much care a change needs, computed from what it does.
//!
//! The level is the highest that any reason gives. Reasons are kept in the order of the rules, so
//! the same change always has the same text. The rules look at names and sizes only: a low level
//! says that nothing was found, not that a change is harmless.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    /// A glance will do.
    Low,
    /// Read it.
    Medium,
    /// Read it twice.
    High,
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// A level and what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    /// In one word.
    pub level: RiskLevel,
    pub reasons: Vec<String>,
}

/// One file of a change, as far as risk goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    pub path: String,
    /// Lines that are new.
    pub added: usize,
    /// Lines that are gone.
    pub removed: usize,
    /// The whole file goes.
    pub is_deleted: bool,
    /// Functions and classes whose lines change, as far as the layout tells.
    pub parts: Vec<String>,
}

impl Touched {
    /// How many lines are new and gone, as in `+3 −1`; empty if the text stays as it is.
    pub fn lines(&self) -> String {
        match (self.added, self.removed) {
            (0, 0) => String::new(),
            (added, 0) => format!("+{added}"),
            (0, removed) => format!("−{removed}"),
            (added, removed) => format!("+{added} −{removed}"),
        }
    }
}

/// How the change was proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Tests fail without it, and all pass with it.
    Proved,
    /// The tests pass with it, and some of them are new, in files that hold code, too.
    Tested,
    /// The tests pass with it; they may pass without it, too.
    Passed,
    /// They do not.
    Failed,
    /// Nobody ran them.
    None,
}

/// Added and removed lines together, from which on a change is of high risk whatever it touches.
const LARGE: usize = 400;
/// Lines from which on it is of medium risk.
const MIDDLING: usize = 100;
const MANY_FILES: usize = 10;

/// Parts of paths, and what they mean. A part is what stands between characters that are no letters
/// or digits, in any case; names of files count as a whole, too. `author` is not `auth`.
const SENSITIVE: [(&str, &[&str]); 6] = [
    (
        "authentication",
        &[
            "auth",
            "login",
            "session",
            "password",
            "permission",
            "oauth",
            "token",
            "acl",
        ],
    ),
    (
        "cryptography",
        &["crypto", "cipher", "encrypt", "tls", "ssl", "signing"],
    ),
    (
        "payments",
        &["payment", "billing", "invoice", "checkout", "stripe"],
    ),
    ("a migration", &["migration", "migrations", "schema"]),
    (
        "CI",
        &["workflows", "jenkinsfile", "ci", "circleci", "dockerfile"],
    ),
    (
        "dependencies",
        &[
            "cargo.toml",
            "cargo.lock",
            "package.json",
            "package-lock.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "go.mod",
            "go.sum",
            "requirements.txt",
            "pyproject.toml",
            "poetry.lock",
            "gemfile",
            "gemfile.lock",
            "composer.json",
            "pom.xml",
        ],
    ),
];

/// Computes the risk of a change. The first file of a kind is named in the reason, not all. A
/// change of prose alone needs no test and no proof.
pub fn risk(files: &[Touched], proof: Proof) -> Risk {
    let mut level = RiskLevel::Low;
    let mut reasons = Vec::new();
    let mut say = |at_least: RiskLevel, reason: String| {
        level = level.max(at_least);
        reasons.push(reason);
    };
    let lines: usize = files.iter().map(|file| file.added + file.removed).sum();
    match lines {
        LARGE.. => say(RiskLevel::High, format!("large change: {lines} lines")),
        MIDDLING.. => say(RiskLevel::Medium, format!("{lines} lines")),
        _ => {}
    }
    if files.len() >= MANY_FILES {
        say(RiskLevel::Medium, format!("{} files", files.len()));
    }
    for (what, words) in SENSITIVE {
        if let Some(file) = files.iter().find(|file| touches(&file.path, words)) {
            say(RiskLevel::Medium, format!("touches {what} ({})", file.path));
        }
    }
    let deleted: Vec<&str> = files
        .iter()
        .filter(|file| file.is_deleted)
        .map(|file| file.path.as_str())
        .collect();
    if !deleted.is_empty() {
        say(RiskLevel::Medium, format!("deletes {}", deleted.join(", ")));
    }
    let is_code = |file: &&Touched| !is_test(&file.path) && !is_prose(&file.path);
    let is_tested = proof == Proof::Tested || files.iter().any(tests);
    if files.iter().any(|file| is_code(&file)) && !is_tested {
        let at_least = match proof {
            // A test that failed before covers it.
            Proof::Proved => RiskLevel::Low,
            _ => RiskLevel::Medium,
        };
        say(at_least, "no test was added or changed".to_owned());
    }
    match proof {
        Proof::Proved => {
            reasons.push("the tests pass, and some fail without the change".to_owned());
        }
        Proof::Tested | Proof::Passed => reasons.push("the tests pass".to_owned()),
        Proof::Failed => {
            level = RiskLevel::High;
            reasons.push("the tests fail".to_owned());
        }
        Proof::None if files.iter().any(|file| is_code(&file)) => {
            level = level.max(RiskLevel::Medium);
            reasons.push("not verified".to_owned());
        }
        Proof::None => {}
    }
    Risk { level, reasons }
}

/// Whether a part of the path, or the name of the file, is one of the words.
fn touches(path: &str, words: &[&str]) -> bool {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    words.contains(&name)
        || path
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|part| words.contains(&part))
}

/// By a part of the path. A wrong yes costs one reason less, nothing else.
fn is_test(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| matches!(part, "test" | "tests" | "spec" | "specs" | "testing"))
}

/// Whether a file has tests that change: all of it, or some among its code.
fn tests(file: &Touched) -> bool {
    let names_test = |part: &String| is_test(&part.replace('_', "/"));
    is_test(&file.path) || file.parts.iter().any(names_test)
}

fn is_prose(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [".md", ".rst", ".txt", ".adoc"]
        .iter()
        .any(|end| path.ends_with(end))
}

/// The order in which files are worth a reader's time, first of all those with the lowest number.
/// Sensitive code, other code, tests, prose, generated files. Lock files are last although they are
/// sensitive: nobody reads them line by line.
pub(crate) fn care_needed(path: &str) -> u8 {
    const GENERATED: [&str; 7] = [
        ".lock",
        "-lock.json",
        "-lock.yaml",
        ".sum",
        ".min.js",
        ".svg",
        ".snap",
    ];
    let is_sensitive = |path: &str| SENSITIVE.iter().any(|(_, words)| touches(path, words));
    if GENERATED.iter().any(|end| path.ends_with(end)) {
        4
    } else if is_prose(path) {
        3
    } else if is_test(path) {
        2
    } else {
        u8::from(!is_sensitive(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, added: usize) -> Touched {
        Touched {
            path: path.to_owned(),
            added,
            removed: 0,
            is_deleted: false,
            parts: Vec::new(),
        }
    }

    #[test]
    fn a_change_without_a_test_raises_the_risk_and_one_beside_the_code_counts() {
        let untested = risk(&[file("src/list.rs", 3)], Proof::Passed);
        assert_eq!(untested.level, RiskLevel::Medium);
        assert_eq!(
            untested.reasons,
            ["no test was added or changed", "the tests pass"]
        );
        let inline = Touched {
            parts: vec!["push".to_owned(), "mod tests".to_owned()],
            ..file("src/list.rs", 3)
        };
        assert_eq!(risk(&[inline], Proof::Passed).level, RiskLevel::Low);
        assert_eq!(
            risk(&[file("README.md", 3)], Proof::None).level,
            RiskLevel::Low
        );
    }

    #[test]
    fn a_small_tested_change_is_low_and_reasons_say_what_was_seen() {
        let small = risk(
            &[file("src/list.rs", 3), file("tests/list.rs", 5)],
            Proof::Passed,
        );
        assert_eq!(
            small,
            Risk {
                level: RiskLevel::Low,
                reasons: vec!["the tests pass".to_owned()],
            }
        );
    }

    #[test]
    fn sensitive_paths_deletions_size_and_proof_raise_it() {
        let level = |files: &[Touched], proof| risk(files, proof).level;
        assert_eq!(
            level(&[file("src/auth/login.ts", 3)], Proof::Proved),
            RiskLevel::Medium
        );
        assert_eq!(
            level(&[file("Cargo.lock", 3)], Proof::Proved),
            RiskLevel::Medium
        );
        assert_eq!(
            level(
                &[file("src/author.rs", 3), file("tests/author.rs", 3)],
                Proof::Passed
            ),
            RiskLevel::Low
        );
        assert_eq!(
            level(&[file("src/author.rs", 3)], Proof::Proved),
            RiskLevel::Low
        );
        assert_eq!(
            risk(&[file("src/author.rs", 3)], Proof::Tested),
            Risk {
                level: RiskLevel::Low,
                reasons: vec!["the tests pass".to_owned()],
            }
        );
        // Without a test, that the others pass says little.
        assert_eq!(
            level(&[file("src/author.rs", 3)], Proof::Passed),
            RiskLevel::Medium
        );
        assert_eq!(
            level(&[file("src/a.rs", 400)], Proof::Passed),
            RiskLevel::High
        );
        assert_eq!(
            level(&[file("src/a.rs", 3)], Proof::Failed),
            RiskLevel::High
        );
        assert_eq!(
            level(&[file("src/a.rs", 3)], Proof::None),
            RiskLevel::Medium
        );
        assert_eq!(level(&[file("README.md", 3)], Proof::None), RiskLevel::Low);
        let gone = Touched {
            is_deleted: true,
            ..file("src/a.rs", 0)
        };
        let risk = risk(&[gone], Proof::Passed);
        assert_eq!(risk.level, RiskLevel::Medium);
        assert!(
            risk.reasons.contains(&"deletes src/a.rs".to_owned()),
            "{risk:?}"
        );
    }
}
