//! A tree in few lines: its directories, and what is in them.
//!
//! For a model that chooses files from a tree too large to list. Each file is counted once, in the
//! deepest directory shown above it:
//!
//! ```text
//! ./ 2 files (md)
//! src/ 3 files (ts)
//! web/ 2 files (css, html)
//! ```

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
};

use crate::kind;

/// The directories of a tree, one a line with the number of files below and their usual
/// extensions, as deep as `max_lines` allow.
///
/// The depth is the largest, up to 12, at which all directories fit; a level is shown as a whole or
/// not at all.
pub(crate) fn overview<'p>(
    paths: &(impl Iterator<Item = &'p str> + Clone),
    max_lines: usize,
) -> String {
    let mut shown = directories(paths.clone(), 0);
    for depth in 1..=12 {
        let deeper = directories(paths.clone(), depth);
        if deeper.len() > max_lines {
            break;
        }
        shown = deeper;
    }
    let mut text = String::new();
    for (directory, files) in shown.into_iter().take(max_lines) {
        let name = if directory.is_empty() { "." } else { directory };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}/ {}", files.summary());
    }
    text
}

#[derive(Default)]
struct Files<'p> {
    count: usize,
    extensions: HashMap<&'p str, usize>,
}

impl Files<'_> {
    fn summary(&self) -> String {
        let mut usual: Vec<(&str, usize)> = self
            .extensions
            .iter()
            .map(|(name, count)| (*name, *count))
            .collect();
        usual.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let usual: Vec<&str> = usual.into_iter().take(3).map(|(name, _)| name).collect();
        let noun = if self.count == 1 { "file" } else { "files" };
        match usual.is_empty() {
            true => format!("{} {noun}", self.count),
            false => format!("{} {noun} ({})", self.count, usual.join(", ")),
        }
    }
}

/// The directories down to a depth, each with the files that are below it and in no deeper one.
fn directories<'p>(
    paths: impl Iterator<Item = &'p str>,
    depth: usize,
) -> BTreeMap<&'p str, Files<'p>> {
    let mut found: BTreeMap<&str, Files> = BTreeMap::new();
    for path in paths {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let end = directory
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([directory.len()])
            .nth(depth.saturating_sub(1))
            .unwrap_or(directory.len());
        let end = if depth == 0 { 0 } else { end };
        let files = found.entry(&directory[..end]).or_default();
        files.count += 1;
        let extension = kind::extension(path.rsplit('/').next().unwrap_or(path));
        if !extension.is_empty() {
            *files.extensions.entry(extension).or_default() += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::overview;

    const TREE: &[&str] = &[
        "README.md",
        "src/auth/login.ts",
        "src/auth/session.ts",
        "src/main.ts",
        "web/a/b/c.css",
        "web/a/b/d.html",
        "LICENSE",
    ];

    #[test]
    fn directories_are_shown_as_deep_as_there_is_room() {
        let lines = |most| overview(&TREE.iter().copied(), most);
        assert_eq!(
            lines(10),
            "./ 2 files (md)\nsrc/ 1 file (ts)\nsrc/auth/ 2 files (ts)\nweb/a/b/ 2 files (css, html)\n"
        );
        assert_eq!(
            lines(3),
            "./ 2 files (md)\nsrc/ 3 files (ts)\nweb/ 2 files (css, html)\n"
        );
        assert_eq!(lines(1), "./ 7 files (ts, css, html)\n");
        assert_eq!(overview(&[].into_iter(), 5), "");
    }
}
