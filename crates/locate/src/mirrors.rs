//! Copies of a file under several roots: `v2/` and `v3/`, packages that were forked.
//!
//! All that speaks for one speaks for its copies, which then fill the places of other files. The
//! best of them keeps its score; what is changed less, or is further from the words of the
//! instruction, comes after it.

use std::collections::HashMap;

use crate::{index::Index, signal::FileEvidence};

/// What is left of the evidence for a copy. Most of it: a fix is often made in all of them.
const COPY: f32 = 0.9;
/// Copies are of about the same length.
const ALIKE: f32 = 0.7;
/// So many of the best are looked at.
const CLOSE: usize = 60;

/// Weakens the evidence for files of which a copy comes earlier in `order`.
pub(crate) fn damp(index: &Index, order: &[(f32, usize)], all: &mut [FileEvidence]) {
    let mut by_base: HashMap<&str, Vec<usize>> = HashMap::new();
    for (_, file) in order.iter().take(CLOSE) {
        let path = index.files[*file].listed.path.as_str();
        let base = path.rsplit('/').next().unwrap_or(path);
        let earlier = by_base.entry(base).or_default();
        let length = |file: usize| index.files[file].summary.length as f32;
        let is_copy = |other: &usize| {
            let (one, two) = (length(*file), length(*other));
            one.min(two) > ALIKE * one.max(two)
                && are_mirrored(path, &index.files[*other].listed.path)
        };
        if earlier.iter().any(is_copy) {
            all[*file].scale(COPY);
        }
        earlier.push(*file);
    }
}

/// Whether two paths differ in the name of one directory, or one has a directory more.
fn are_mirrored(one: &str, two: &str) -> bool {
    let (one, two): (Vec<&str>, Vec<&str>) = (one.split('/').collect(), two.split('/').collect());
    let same = |a: &mut dyn Iterator<Item = (&&str, &&str)>| a.take_while(|(a, b)| a == b).count();
    let front = same(&mut one.iter().zip(&two));
    let back = same(&mut one.iter().rev().zip(two.iter().rev()));
    let longest = one.len().max(two.len());
    // A base name that is usual in every directory says nothing: more than it has to agree.
    one != two && back > 1 && front + back + 1 >= longest
}

#[cfg(test)]
mod tests {
    use super::are_mirrored;

    #[test]
    fn paths_that_differ_in_one_directory_are_mirrored() {
        for (one, two, expected) in [
            ("api/v2/user/read.go", "api/v3/user/read.go", true),
            ("packages/a/src/parse.ts", "packages/b/src/parse.ts", true),
            ("src/user/read.go", "src/v3/user/read.go", true),
            ("src/user/read.go", "src/order/read.go", false),
            ("web/ui/user/read.go", "api/v3/user/read.go", false),
            ("api/v2/user/read.go", "api/v2/user/read.go", false),
        ] {
            assert_eq!(are_mirrored(one, two), expected, "{one} {two}");
        }
    }
}
