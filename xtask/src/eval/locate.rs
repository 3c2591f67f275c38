//! `cargo xtask eval locate`: how many of the files that a real change touched are found.
//!
//! Each case is run twice: with an empty cache, which measures index and query, and with the index
//! that this left. Recall is a mean over cases, so a case with one file weighs as much as one with
//! ten. `--cross-validate` says how well weights do on repositories on which they were not chosen.

use std::{
    env,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use codespar_locate::Locator;

use super::{
    cases::{self, Case, Repositories},
    folds::{self, Weighable},
    score::{self, Outcome},
};
use crate::steps;

/// How many files are ranked: the shortlist for the picker model.
const SHORTLIST: usize = 30;
/// For how many files of a case weights are chosen.
const CANDIDATES: usize = 200;

/// Rank files for real instructions; print recall@5, recall@30 and times.
///
/// Each repository is read at the commit of the case, without a checkout and without anything
/// that came after it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory of git repositories, each named `owner+name`
    #[arg(long, value_name = "DIR")]
    repos: PathBuf,
    /// Directory with the cases, as `*.jsonl`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Only this data set
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// At most so many cases of each data set
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Also write the ranked files, a line of JSON for each case
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also choose weights on four fifths of the repositories and score them on the others
    #[arg(long)]
    cross_validate: bool,
    /// Keep the index of each case in this directory: the next run reads no repository, and its
    /// times say nothing
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// A case that fails is skipped with its reason and does not end the run. There is no bar here: the
/// figures are compared by whoever runs it.
pub(super) fn run(args: &Args, root: &Path) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_optimised(root);
    }
    let repositories = Repositories::read(&args.repos)?;
    let mut predictions = args.out.as_deref().map(create).transpose()?;
    let mut outcomes = Vec::new();
    let mut weighable = Vec::new();
    let mut skipped = 0;
    for case in cases::chosen(
        cases::read(&args.data)?,
        args.dataset.as_deref(),
        args.limit,
    ) {
        let Some(repository) = repositories.of(&case.repo) else {
            eprintln!("skipped {}: no repository `{}`", case.id, case.repo);
            skipped += 1;
            continue;
        };
        match try_case(&case, repository, args) {
            Ok(tried) => {
                outcomes.push(tried.outcome);
                if args.cross_validate {
                    let candidates = tried.locator.candidates(&case.instruction, CANDIDATES);
                    weighable.push(Weighable::new(&case, candidates));
                }
                if let Some(file) = &mut predictions {
                    let row = serde_json::json!({"id": case.id, "files": tried.ranked});
                    writeln!(file, "{row}").context("cannot write the predictions")?;
                }
            }
            Err(error) => {
                eprintln!("skipped {}: {error:#}", case.id);
                skipped += 1;
            }
        }
    }
    println!("{}", score::report(&outcomes));
    if args.cross_validate {
        println!("\n{}", folds::report(&weighable));
    }
    if skipped > 0 {
        println!("\n{skipped} cases skipped");
    }
    Ok(())
}

/// The same in an optimised build: figures of the other are of no use.
pub(super) fn run_optimised(root: &Path) -> Result<()> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["run", "--quiet", "--release", "--package", "xtask"])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--")
        .args(env::args_os().skip(1));
    steps::run_quietly(&mut command)
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write `{}`", path.display()))
}

struct Tried {
    outcome: Outcome,
    ranked: Vec<String>,
    locator: Locator,
}

/// The cache is fresh for each case, unless it is kept; nothing is learned from one to the next.
fn try_case(case: &Case, repository: &Path, args: &Args) -> Result<Tried> {
    let fresh = tempfile::tempdir()?;
    let cache = match &args.cache {
        Some(kept) => kept.join(case.id.replace(['/', '@'], "_")),
        None => fresh.path().to_owned(),
    };
    let (_, _, cold) = locate(case, repository, &cache)?;
    let (locator, ranked, warm) = locate(case, repository, &cache)?;
    let outcome = Outcome {
        dataset: case.dataset.clone(),
        at_5: score::recall(&case.gold_files, &ranked, 5),
        at_30: score::recall(&case.gold_files, &ranked, SHORTLIST),
        files: locator.paths().count(),
        cold,
        warm,
    };
    Ok(Tried {
        outcome,
        ranked,
        locator,
    })
}

/// The time includes opening the repository.
fn locate(
    case: &Case,
    repository: &Path,
    cache: &Path,
) -> Result<(Locator, Vec<String>, Duration)> {
    let begin = Instant::now();
    let locator = Locator::at_commit(repository, &case.commit, Some(cache))?;
    let ranked = locator.rank(&case.instruction, SHORTLIST);
    let time = begin.elapsed();
    let paths = ranked.into_iter().map(|ranked| ranked.path).collect();
    Ok((locator, paths, time))
}
