//! The cases of the localisation data, and the repositories they are about.
//!
//! A case is one line of JSON. Cases of repositories that are not there are skipped and counted, so
//! that part of the data can be used.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// An instruction, and the files that the real change touched.
#[derive(Debug, Deserialize)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) dataset: String,
    /// `owner/name`
    pub(super) repo: String,
    /// The commit before the change.
    pub(super) commit: String,
    pub(super) instruction: String,
    /// Paths relative to the root of the repository.
    pub(super) gold_files: Vec<String>,
    /// The change itself, if the data names it.
    #[serde(default)]
    pub(super) fix_commit: Option<String>,
}

/// All cases of the `*.jsonl` files of a directory, in the order of file names. A line that cannot
/// be read is an error that names file and line: a silently smaller set would change the result.
pub(super) fn read(directory: &Path) -> Result<Vec<Case>> {
    let mut files: Vec<PathBuf> = entries(directory)?
        .into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)
            .with_context(|| format!("cannot read `{}`", file.display()))?;
        for (number, line) in text.lines().enumerate() {
            let place = || format!("`{}`, line {}", file.display(), number + 1);
            cases.push(serde_json::from_str(line).with_context(place)?);
        }
    }
    ensure!(
        !cases.is_empty(),
        "no cases (`*.jsonl`) in `{}`",
        directory.display()
    );
    Ok(cases)
}

/// The first of each data set in the order of the files, so a limit always takes the same ones.
pub(super) fn chosen(cases: Vec<Case>, dataset: Option<&str>, limit: Option<usize>) -> Vec<Case> {
    let mut counts = HashMap::new();
    let is_wanted = |case: &Case| dataset.is_none_or(|name| *name == case.dataset);
    let mut is_in_limit = |case: &Case| {
        let count = counts.entry(case.dataset.clone()).or_insert(0);
        *count += 1;
        limit.is_none_or(|limit| *count <= limit)
    };
    let cases = cases.into_iter();
    cases
        .filter(|case| is_wanted(case) && is_in_limit(case))
        .collect()
}

/// The git directories below a directory: `owner+name`, or `repo` in such a one. By name in lower
/// case.
pub(super) struct Repositories(HashMap<String, PathBuf>);

impl Repositories {
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let mut known = HashMap::new();
        for path in entries(directory)? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let inner = path.join("repo");
            let name = name.to_lowercase();
            known.insert(name, if inner.is_dir() { inner } else { path });
        }
        Ok(Self(known))
    }

    /// Names differ in case between the data and the forge.
    pub(super) fn of(&self, repo: &str) -> Option<&Path> {
        let name = repo.to_lowercase().replace('/', "+");
        self.0.get(&name).map(PathBuf::as_path)
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("cannot list `{}`", directory.display());
    let entries = fs::read_dir(directory).with_context(context)?;
    let paths: Result<_, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    paths.with_context(context)
}
