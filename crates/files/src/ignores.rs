//! Patterns that a repository or a model chooses, before they are compiled. That is done by
//! recursion and takes memory for every wildcard, so a hostile pattern could end the program.

use std::path::Path;

use crate::read;

/// Files in which a walk looks for patterns.
pub const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
/// A larger ignore file makes its directory not plain; it is never read in part.
const IGNORE_BYTES: u64 = 1 << 20;
const MOST_LINES: usize = 20_000;
const PATTERN_BYTES: usize = 4 << 10;
const MOST_BRACES: usize = 32;
const MOST_WILDCARDS: usize = 64;

/// Whether a pattern can be compiled: it is not endless, deeply nested or made of wildcards.
pub fn is_plain_pattern(pattern: &str) -> bool {
    let count = |wanted: &[u8]| pattern.bytes().filter(|byte| wanted.contains(byte)).count();
    pattern.len() <= PATTERN_BYTES && count(b"{") <= MOST_BRACES && count(b"*?[") <= MOST_WILDCARDS
}

/// Whether the ignore files of a directory, as far as there are any, can be read by a walk: they
/// are regular files, and their patterns can be compiled.
pub fn has_plain_ignore_files(dir: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| {
        let path = dir.join(name);
        // One that leads nowhere, or to what may not be read, is not read by a walk either.
        let Ok(facts) = path.metadata() else {
            return true;
        };
        let Ok(real) = path.canonicalize() else {
            return false;
        };
        let text = match facts.is_file() {
            true => read(&real, IGNORE_BYTES).map(String::from_utf8),
            false => return false,
        };
        match text {
            Ok(Ok(text)) => {
                text.lines().count() <= MOST_LINES && text.lines().all(is_plain_pattern)
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_endless_and_wild_patterns_are_not_plain() {
        assert!(is_plain_pattern("src/**/{a,b}/[a-z]*.rs"));
        assert!(!is_plain_pattern(&"{a,".repeat(40)));
        assert!(!is_plain_pattern(&"a*".repeat(100)));
        assert!(!is_plain_pattern(&"a".repeat(5000)));
    }

    #[test]
    fn a_directory_with_a_hostile_ignore_file_is_not_plain() {
        let dir = tempfile::tempdir().unwrap();
        assert!(has_plain_ignore_files(dir.path()));
        let file = dir.path().join(".gitignore");
        std::fs::write(&file, "target\n*.log\n!keep.log\n").unwrap();
        assert!(has_plain_ignore_files(dir.path()));
        std::fs::write(&file, "{a,".repeat(30_000)).unwrap();
        assert!(!has_plain_ignore_files(dir.path()));
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(!has_plain_ignore_files(dir.path()));
    }
}
