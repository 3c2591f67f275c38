//! Tests and the files they test, by their names.
//!
//! A test often says in more words what its subject does: the names of cases, the data of a bug that
//! was fixed before. What the instruction has in common with it speaks for the subject.

use std::collections::HashMap;

use crate::{
    index::Index,
    kind::FileKind,
    signal::{FileEvidence, Signal},
};

/// A test that fits more files than this tells nothing about any of them.
const MOST: usize = 3;

/// Gives the subjects of tests what the text of their tests has.
pub(crate) fn tested(index: &Index, all: &mut [FileEvidence]) {
    let mut subjects: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, file) in index.files.iter().enumerate() {
        if file.summary.kind == FileKind::Source {
            let name = plain(name_of(&file.listed.path));
            subjects.entry(name).or_default().push(number);
        }
    }
    for (number, file) in index.files.iter().enumerate() {
        let share = all[number][Signal::Body];
        if file.summary.kind != FileKind::Test || share <= 0.0 {
            continue;
        }
        for subject in subjects_of(index, &file.listed.path, &subjects) {
            let tested = &mut all[subject][Signal::Tested];
            *tested = tested.max(share);
        }
    }
}

/// The files that a test is named after; without one, those that its directory is named after.
fn subjects_of(index: &Index, path: &str, subjects: &HashMap<String, Vec<usize>>) -> Vec<usize> {
    let name = without_mark(name_of(path));
    let directory = path.rsplit('/').nth(1).unwrap_or_default();
    let named = |name: &str| subjects.get(&plain(name)).filter(|_| name.len() > 2);
    let Some(files) = named(name).or_else(|| named(directory)) else {
        return Vec::new();
    };
    let shared = |file: &usize| {
        let own = index.files[*file].listed.path.split('/');
        own.filter(|part| path.split('/').any(|one| one == *part))
            .count()
    };
    let most = files.iter().map(shared).max().unwrap_or(0);
    let nearest: Vec<usize> = files
        .iter()
        .copied()
        .filter(|file| shared(file) == most)
        .collect();
    if nearest.len() > MOST {
        Vec::new()
    } else {
        nearest
    }
}

fn name_of(path: &str) -> &str {
    let base = path.rsplit('/').next().unwrap_or(path);
    base.split('.').next().unwrap_or(base)
}

/// In lower case, without separators: `session-store` is tested by `SessionStoreTest`.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// `test_login`, `login_test`, `LoginTest`, `TestLogin`, `login_spec`: `login`.
fn without_mark(name: &str) -> &str {
    for mark in ["test_", "Test", "test-", "tests_"] {
        if let Some(rest) = name.strip_prefix(mark) {
            return rest;
        }
    }
    for mark in [
        "_test", "_tests", "_spec", "-test", "Tests", "TestCase", "Test", "Spec",
    ] {
        if let Some(rest) = name.strip_suffix(mark) {
            return rest;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_named_after_its_subject() {
        for (test, subject) in [
            ("tests/test_session_store.py", "sessionstore"),
            ("src/SessionStoreTest.java", "sessionstore"),
            ("pkg/session_store_test.go", "sessionstore"),
            ("ui/session-store.spec.ts", "sessionstore"),
            ("spec/session_store_spec.rb", "sessionstore"),
        ] {
            assert_eq!(plain(without_mark(name_of(test))), subject, "{test}");
        }
    }
}
