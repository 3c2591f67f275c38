//! Tests and the files they test, by their names.
//!
//! A test often says in more words what its subject does: the names of cases, the data of a bug
//! that was fixed before. What the instruction has in common with it speaks for the subject.

use std::collections::HashMap;

use crate::{
    index::Index,
    kind::FileKind,
    signal::{FileEvidence, Signal},
    table::BuildIdentity,
    words,
};

/// A test that fits more files than this tells nothing about any of them.
const MOST: usize = 3;
/// A name of more files, `index` or `main`, is not that of a subject.
const USUAL: usize = 32;

/// Names are compared up to here.
const LONGEST: usize = 80;

/// The files of a plain name, by its hash.
type Subjects = HashMap<u64, Vec<usize>, BuildIdentity>;

/// Gives the subjects of tests what the text of their tests has.
pub(crate) fn tested(index: &Index, all: &mut [FileEvidence]) {
    let mut subjects = Subjects::default();
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
fn subjects_of(index: &Index, path: &str, subjects: &Subjects) -> Vec<usize> {
    let name = without_mark(name_of(path));
    let directory = path.rsplit('/').nth(1).unwrap_or_default();
    let named = |name: &str| {
        let files = subjects.get(&plain(name)).filter(|_| name.len() > 2);
        files.filter(|files| files.len() <= USUAL)
    };
    let Some(files) = named(name).or_else(|| named(directory)) else {
        return Vec::new();
    };
    if let [only] = files[..] {
        return vec![only];
    }
    let own: Vec<&[u8]> = parts(path).collect();
    let shared = |file: usize| {
        let theirs = parts(&index.files[file].listed.path);
        theirs.filter(|part| own.contains(part)).count()
    };
    let counts: Vec<(usize, usize)> = files.iter().map(|file| (shared(*file), *file)).collect();
    let most = counts.iter().map(|(count, _)| *count).max().unwrap_or(0);
    let nearest = counts.iter().filter(|(count, _)| *count == most);
    let nearest: Vec<usize> = nearest.map(|(_, file)| *file).collect();
    if nearest.len() > MOST {
        Vec::new()
    } else {
        nearest
    }
}

/// The names of a path. They are short, so looking at each byte is quicker than a search.
fn parts(path: &str) -> impl Iterator<Item = &[u8]> {
    path.as_bytes().split(|byte| *byte == b'/')
}

/// The base name up to its first dot.
fn name_of(path: &str) -> &str {
    let bytes = path.as_bytes();
    let from = bytes.iter().rposition(|byte| *byte == b'/');
    let base = &path[from.map_or(0, |at| at + 1)..];
    let end = base.bytes().position(|byte| byte == b'.');
    &base[..end.unwrap_or(base.len())]
}

/// The hash of a name in lower case, without separators: `session-store` is tested by
/// `SessionStoreTest`.
fn plain(name: &str) -> u64 {
    let mut letters = [0u8; LONGEST];
    let mut length = 0;
    let bytes = name
        .bytes()
        .filter(|b| b.is_ascii_alphanumeric() || !b.is_ascii());
    for (room, byte) in letters.iter_mut().zip(bytes) {
        *room = byte.to_ascii_lowercase();
        length += 1;
    }
    words::hash(&letters[..length])
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
            let name = plain(without_mark(name_of(test)));
            assert_eq!(name, plain(subject), "{test}");
        }
    }
}
