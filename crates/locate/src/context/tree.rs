//! The directories of a repository, two levels deep, and what is near the chosen files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// All of it.
const MOST_BYTES: usize = 4 * 1024;
/// Lines for the directories.
const MOST_LINES: usize = 70;
/// Directories of chosen files that are listed in full,
const MOST_NEAR: usize = 4;
/// each with up to so many files.
const MOST_FILES: usize = 40;

/// At most four kilobytes: the first two levels of directories with the number of files in each,
/// the files of the root, then the directories of the chosen files in full.
pub fn tree(paths: &[String], chosen: &[&str]) -> String {
    let mut text = String::new();
    let mut add = |line: &str| {
        let fits = text.len() + line.len() < MOST_BYTES;
        if fits {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
        }
        fits
    };
    for directory in near(chosen) {
        add(&siblings(paths, directory));
    }
    for line in directories(paths) {
        if !add(&line) {
            break;
        }
    }
    text
}

/// The directories of the chosen files, in their order.
fn near<'p>(chosen: &[&'p str]) -> Vec<&'p str> {
    let mut seen = BTreeSet::new();
    let directories = chosen
        .iter()
        .map(|path| path.rsplit_once('/').map_or("", |(directory, _)| directory));
    directories
        .filter(|directory| !directory.is_empty() && seen.insert(*directory))
        .take(MOST_NEAR)
        .collect()
}

/// `src/auth/: login.ts session.ts tokens/`
fn siblings(paths: &[String], directory: &str) -> String {
    let below = paths.iter().filter_map(|path| {
        let rest = path.strip_prefix(directory)?.strip_prefix('/')?;
        Some(match rest.split_once('/') {
            Some((inner, _)) => format!("{inner}/"),
            None => rest.to_owned(),
        })
    });
    let names: BTreeSet<String> = below.collect();
    let more = names.len().saturating_sub(MOST_FILES);
    let shown: Vec<String> = names.into_iter().take(MOST_FILES).collect();
    let end = match more {
        0 => String::new(),
        more => format!(" … and {more} more"),
    };
    format!("{directory}/: {}{end}", shown.join(" "))
}

/// Each of the first two levels on a line of its own; hidden ones only at the first.
fn directories(paths: &[String]) -> Vec<String> {
    let mut top: BTreeMap<&str, (usize, BTreeMap<&str, usize>)> = BTreeMap::new();
    let mut files: Vec<&str> = Vec::new();
    for path in paths {
        let Some((first, rest)) = path.split_once('/') else {
            files.push(path);
            continue;
        };
        let (count, inner) = top.entry(first).or_default();
        *count += 1;
        if let Some((second, _)) = rest.split_once('/')
            && !first.starts_with('.')
        {
            *inner.entry(second).or_default() += 1;
        }
    }
    let mut lines = Vec::new();
    let more = files.len().saturating_sub(MOST_FILES);
    files.truncate(MOST_FILES);
    if !files.is_empty() {
        let end = if more > 0 { " …" } else { "" };
        lines.push(format!("./: {}{end}", files.join(" ")));
    }
    let wide = top
        .values()
        .map(|(_, inner)| inner.len() + 1)
        .sum::<usize>()
        > MOST_LINES;
    for (name, (count, inner)) in top {
        if inner.is_empty() || wide {
            // Too many for a line each.
            let names: Vec<&str> = inner.keys().take(MOST_FILES).copied().collect();
            let names = match names.is_empty() {
                true => String::new(),
                false => format!(": {}/", names.join("/ ")),
            };
            lines.push(format!("{name}/ ({count}){names}"));
            continue;
        }
        lines.push(format!("{name}/ ({count})"));
        let inner = inner.iter();
        lines.extend(inner.map(|(second, count)| format!("  {second}/ ({count})")));
    }
    lines
}
