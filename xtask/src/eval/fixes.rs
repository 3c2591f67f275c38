//! The change that really followed a case: which files it touched, and which lines of them.
//!
//! A case of recorded commits names its fix. One of an issue is looked for in the history after its
//! commit: by the number of its pull request, else the first commit that touches all gold files.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use super::cases::Case;

/// How far the history after a case is searched.
const MOST_COMMITS: &str = "--max-count=400";

/// A change, as far as old files are concerned.
pub(super) struct Fix {
    /// All files that it changed or took away.
    pub(super) touched: Vec<String>,
    /// Changed places of gold files.
    pub(super) hunks: Vec<Hunk>,
}

/// Lines of an old file that were replaced, or the place where new ones were put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) path: String,
    /// The first line, from 1. Of an insertion, the line that it follows.
    pub(super) line: usize,
    /// None for an insertion.
    pub(super) count: usize,
}

impl Hunk {
    /// Whether it is inside what is shown: all lines that change, or one of the two between which
    /// lines are put.
    pub(super) fn is_visible(&self, shows: impl Fn(usize) -> bool) -> bool {
        match self.count {
            0 => shows(self.line) || shows(self.line + 1),
            count => (self.line..self.line + count).all(shows),
        }
    }
}

/// The fix of a case, or `None` if the history does not have it.
pub(super) fn of(case: &Case, repository: &Path) -> Result<Option<Fix>> {
    let Some(commit) = find(case, repository)? else {
        return Ok(None);
    };
    let range = format!("{commit}^1..{commit}");
    let names = git(repository, &["diff", "--no-renames", "--name-only", &range])?;
    let touched: Vec<String> = names.lines().map(str::to_owned).collect();
    let mut hunks = Vec::new();
    for path in &case.gold_files {
        // Lines are counted as they are in the commit of the case: the parent of the fix may be
        // later.
        let args = [
            "diff",
            "-U0",
            "--no-renames",
            "--no-ext-diff",
            &range,
            "--",
            path,
        ];
        let diff = git(repository, &args)?;
        let moved = git(
            repository,
            &[
                "diff",
                "--quiet",
                &case.commit,
                &format!("{commit}^1"),
                "--",
                path,
            ],
        );
        if moved.is_ok() {
            hunks.extend(diff.lines().filter_map(|line| hunk(path, line)));
        }
    }
    Ok(Some(Fix { touched, hunks }))
}

fn find(case: &Case, repository: &Path) -> Result<Option<String>> {
    if let Some(fix) = &case.fix_commit {
        return Ok(Some(fix.clone()));
    }
    let after = format!("{}..HEAD", case.commit);
    let touches_gold = |commit: &String| {
        let range = format!("{commit}^1..{commit}");
        let names = git(repository, &["diff", "--no-renames", "--name-only", &range]);
        let names = names.unwrap_or_default();
        let all = |path: &String| names.lines().any(|name| name == path);
        case.gold_files.iter().all(all)
    };
    let number = case.id.rsplit('-').next().unwrap_or_default();
    let pattern = format!("--grep=#{number}([^0-9]|$)");
    let named = git(
        repository,
        &["log", "--reverse", "--format=%H", "-E", &pattern, &after],
    )?;
    let named: Vec<String> = named.lines().map(str::to_owned).collect();
    if let Some(found) = named.into_iter().find(touches_gold) {
        return Ok(Some(found));
    }
    let mut args = vec![
        "log",
        "--first-parent",
        "--format=%H",
        MOST_COMMITS,
        &after,
        "--",
    ];
    args.extend(case.gold_files.iter().map(String::as_str));
    let walked = git(repository, &args)?;
    let walked: Vec<String> = walked.lines().map(str::to_owned).collect();
    Ok(walked.into_iter().rev().find(touches_gold))
}

/// A line such as `@@ -12,3 +12,4 @@`.
fn hunk(path: &str, line: &str) -> Option<Hunk> {
    let old = line.strip_prefix("@@ -")?.split(' ').next()?;
    let (line, count) = old.split_once(',').unwrap_or((old, "1"));
    Some(Hunk {
        path: path.to_owned(),
        line: line.parse().ok()?,
        count: count.parse().ok()?,
    })
}

/// Git on a repository of the evaluation data, which whoever runs the evaluation trusts.
pub(super) fn git(repository: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(args)
        .output()
        .context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_is_visible_if_its_old_lines_are() {
        let hunk = |line| hunk("a", line).unwrap();
        let shows = |line| (10..20).contains(&line);
        for (line, expected) in [
            ("@@ -12,3 +12,4 @@ fn a()", true),
            ("@@ -18,3 +12,4 @@", false),
            ("@@ -10 +10 @@", true),
            ("@@ -9,0 +10,2 @@", true),
            ("@@ -19,0 +20 @@", true),
            ("@@ -20,0 +21 @@", false),
        ] {
            assert_eq!(hunk(line).is_visible(shows), expected, "{line}");
        }
    }
}
