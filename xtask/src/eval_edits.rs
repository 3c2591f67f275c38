//! How well edits are applied: cases from a directory, run through the real binary, and scored.
//!
//! Cases over whole lines go through `codespar apply`, those over strings through the Edit tool.
//!
//! No edit may be wrong: that fails the command. A refusal only lowers the share of those that are
//! right. Contested cases, about which the data says that several outcomes can be defended, are
//! counted apart and fail nothing.

mod case;
mod lines;
mod score;
mod strings;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use self::{
    case::{Case, Outcome},
    score::Score,
};
use crate::{metadata::Metadata, steps::cargo};

/// Apply the edits of cases whose outcome is known, and count what is right, refused and wrong.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory of the cases: `*_cases*.jsonl`, here or in `edits`.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Write what became of each case there, as JSON lines.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
}

/// Results are written also when an edit is wrong, so that it can be looked at.
pub(crate) fn run(args: &Args, root: &Path) -> Result<()> {
    let sets = sets(&args.data)?;
    let codespar = program(root)?;
    let mut rows = String::new();
    let mut wrong = 0;
    for (name, cases) in &sets {
        let outcomes = outcomes(&codespar, cases)?;
        for (case, outcome) in cases.iter().zip(&outcomes) {
            let row = match outcome {
                Outcome::Text(text) => json!({"id": case.id, "text": text}),
                Outcome::Refused(reason) => json!({"id": case.id, "refused": reason}),
            };
            rows.push_str(&format!("{row}\n"));
        }
        wrong += report(name, cases, &outcomes);
    }
    if let Some(file) = &args.results {
        fs::write(file, rows).with_context(|| format!("cannot write {}", file.display()))?;
    }
    ensure!(wrong == 0, "{wrong} edits are wrong; none may be");
    Ok(())
}

/// The cases by the name of their file, as it is before the first dot. `a_cases.jsonl` and
/// `a_cases_2.jsonl` are one set.
fn sets(data: &Path) -> Result<BTreeMap<String, Vec<Case>>> {
    let below = data.join("edits");
    let dir = if below.is_dir() { &below } else { data };
    let mut sets: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let Some((set, rest)) = name.split_once("_cases") else {
            continue;
        };
        if !rest.ends_with(".jsonl") {
            continue;
        }
        let cases = case::read(&file)?;
        sets.entry(set.to_owned()).or_default().extend(cases);
    }
    ensure!(!sets.is_empty(), "there are no cases in {}", dir.display());
    Ok(sets)
}

/// A debug build: what is measured is right or wrong, not fast or slow.
fn program(root: &Path) -> Result<PathBuf> {
    let args = ["build", "--workspace", "--bins"];
    let done = cargo(root).args(args).status()?;
    ensure!(
        done.success(),
        "`cargo {}` ended with {done}",
        args.join(" ")
    );
    Ok(Metadata::read(root)?
        .target_directory
        .join("debug/codespar"))
}

/// In the order of the cases. Those over strings share one run of the binary, since each start
/// would cost a session.
fn outcomes(codespar: &Path, cases: &[Case]) -> Result<Vec<Outcome>> {
    let of_strings: Vec<&Case> = cases.iter().filter(|case| !case.is_lines()).collect();
    let mut of_strings = strings::run(codespar, &of_strings)?.into_iter();
    let outcome = |case: &Case| {
        if case.is_lines() {
            lines::run(codespar, case)
        } else {
            of_strings.next().context("a case has no outcome")
        }
    };
    cases.iter().map(outcome).collect()
}

/// Prints the counts of a set; gives how many edits of it are wrong. Refused and wrong cases are
/// listed by id.
fn report(name: &str, cases: &[Case], outcomes: &[Outcome]) -> usize {
    let mut wrong = 0;
    for contested in [false, true] {
        let mut counts: BTreeMap<Score, Vec<&str>> = BTreeMap::new();
        for (case, outcome) in cases.iter().zip(outcomes) {
            if case.is_contested() == contested {
                let score = score::score(case, outcome);
                counts.entry(score).or_default().push(&case.id);
            }
        }
        let count = |score| counts.get(&score).map_or(0, Vec::len);
        let all: usize = counts.values().map(Vec::len).sum();
        if all == 0 {
            continue;
        }
        let note = if contested {
            " (contested, for information)"
        } else {
            ""
        };
        println!(
            "{name}{note}: {all} cases, {} ok ({:.1} %), {} refused, {} wrong",
            count(Score::Ok),
            100.0 * count(Score::Ok) as f64 / all as f64,
            count(Score::Refused),
            count(Score::Wrong),
        );
        for (score, ids) in counts.iter().filter(|(score, _)| **score != Score::Ok) {
            println!("  {score}: {}", ids.join(", "));
        }
        if !contested {
            wrong += count(Score::Wrong);
        }
    }
    wrong
}
