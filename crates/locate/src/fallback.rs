//! Ranks by paths alone, for a tree whose texts are not at hand.

use std::{cmp::Reverse, collections::HashMap};

use crate::{
    document::{IN_BASE, each_place_term},
    kind::FileKind,
    query::Query,
    words::Term,
};

/// The `n` files of a tree that an instruction is about as far as their paths tell: code first,
/// and whatever else the instruction speaks of; then those below `src/`, then the shallow ones.
///
/// Files of other kinds (tests, documents, data) are left out unless the first line speaks of their
/// kind. A word in the base name counts twice as much as one in a directory. All sources are in the
/// result if `n` allows, also those that share nothing with the instruction.
pub fn by_path<'p, P: AsRef<str>>(instruction: &str, paths: &'p [P], n: usize) -> Vec<&'p str> {
    let query = Query::read(instruction);
    let weights: HashMap<Term, f32> = query.terms.iter().map(|w| (w.term, w.weight)).collect();
    let relevance = |path: &str| {
        let mut sum = 0.0;
        each_place_term(path, |term, place, _| {
            let factor = if place == IN_BASE { 2.0 } else { 1.0 };
            sum += factor * weights.get(&term).copied().unwrap_or(0.0);
        });
        (sum * 1000.0) as u64
    };
    let is_meant = |kind: FileKind| kind == FileKind::Source || query.kinds.contains(&kind);
    let mut found: Vec<&str> = paths
        .iter()
        .map(AsRef::as_ref)
        .filter(|path| is_meant(FileKind::of(path)))
        .collect();
    found.sort_by_cached_key(|path| {
        let is_outside = !path.split('/').any(|name| name == "src");
        let depth = path.matches('/').count();
        (Reverse(relevance(path)), is_outside, depth, *path)
    });
    found.truncate(n);
    found
}

#[cfg(test)]
mod tests {
    use super::by_path;

    const TREE: &[&str] = &[
        "README.md",
        "app.py",
        "logo.png",
        "src/auth/login.ts",
        "src/deep/er/util.ts",
        "src/main.ts",
        "tests/login_test.py",
    ];

    #[test]
    fn relevant_paths_come_first_then_what_is_below_src() {
        assert_eq!(
            by_path("the login page is slow", TREE, 9),
            [
                "src/auth/login.ts",
                "src/main.ts",
                "src/deep/er/util.ts",
                "app.py"
            ]
        );
        assert_eq!(
            by_path("the login page is slow", TREE, 1),
            ["src/auth/login.ts"]
        );
    }

    #[test]
    fn other_files_count_when_the_instruction_speaks_of_them() {
        assert_eq!(
            by_path("add a login test", TREE, 2),
            ["tests/login_test.py", "src/auth/login.ts"]
        );
        assert_eq!(by_path("say so in the readme", TREE, 1), ["README.md"]);
    }
}
