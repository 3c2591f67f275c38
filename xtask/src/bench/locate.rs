//! `codespar locate` on a repository of 5,000 files: with no index, with one, and after a change.
//!
//! Warm runs have the index of the cold run before. In each round one file is changed, so the third
//! figure is that of an index which must be brought up to date.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use super::{
    Bench,
    cost::Cost,
    report::{Bar, Row, Section},
    samples::{Samples, Unit},
    stage::Stage,
    tree,
};

/// Bars, in milliseconds. For the whole process, its start included.
const COLD: f64 = 500.0;
const WARM: f64 = 30.0;

const FILES: usize = 5_000;
/// Of words that occur in the tree, so that ranking has something to do.
const QUESTION: &str =
    "the ledger of an invoice is wrong after a cursor moves past the last record";

/// The tree is made once and the state directory anew in each round, so every round has a cold run.
/// The change of a file stays for the next round, whose cold run then reads it like any other.
pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let folder = tempfile::tempdir()?;
    let tree = tree::grow_files(folder.path(), FILES).context("cannot make the tree")?;
    commit(folder.path())?;
    let (mut cold, mut warm, mut changed, mut grep) = (vec![], vec![], vec![], vec![]);
    for round in 0..bench.runs {
        let stage = Stage::new()?;
        let ask = || -> Result<Cost> {
            let mut command = bench.meter.command(stage.room(), &bench.codespar);
            command
                .args(["locate", QUESTION, "--json", "--repo"])
                .arg(folder.path());
            let measured = bench.meter.run(&mut command)?;
            ensure!(measured.stdout.contains("\"path\""), "{}", measured.stdout);
            Ok(measured.cost)
        };
        cold.push(ask()?);
        warm.push(ask()?);
        let touched = folder.path().join("part_0/module_0/file_0.rs");
        fs::write(&touched, format!("fn ledger_of_round_{round}() {{}}\n"))?;
        changed.push(ask()?);
        // The least that anybody must do who reads all files.
        let mut reading = bench.meter.command(stage.room(), "git");
        reading
            .arg("-C")
            .arg(folder.path())
            .args(["grep", "-c", "ledger"]);
        grep.push(bench.meter.run(&mut reading)?.cost);
    }
    let wall = |costs: &[Cost]| Samples::times(costs.iter().map(|cost| cost.wall));
    Ok(Section {
        title: "Locate",
        reading: format!(
            "`codespar locate` as a process of its own on a git repository of {FILES} files and {:.0} MB in one \
             commit, so without a history to learn from. Cold: there is no index. Warm: there is one, and \
             every file's state is looked at. `git grep -c` of one word is the least that reading all files \
             costs.",
            tree.bytes as f64 / 1e6
        ),
        columns: vec!["wall", "against `git grep`", "CPU", "peak memory"],
        bars: vec![
            Bar::at_most(COLD, "index and query of 5,000 files, cold", &wall(&cold)),
            Bar::at_most(WARM, "the same, warm", &wall(&warm)),
        ],
        rows: vec![
            row("`git grep -c ledger`", &grep, None),
            row("cold", &cold, Some(&grep)),
            row("warm", &warm, Some(&grep)),
            row("one file changed", &changed, Some(&grep)),
        ],
    })
}

/// Ratios are taken round by round, as the speed of the machine may change between rounds.
fn row(what: &str, costs: &[Cost], against: Option<&[Cost]>) -> Row {
    let ratios = against.map(|others| {
        let ratio = |(one, other): (&Cost, &Cost)| one.wall.div_duration_f64(other.wall);
        Samples::new(Unit::Times, costs.iter().zip(others).map(ratio))
    });
    Row::new(
        what,
        [
            Some(Samples::times(costs.iter().map(|cost| cost.wall))),
            ratios,
            Some(Samples::times(costs.iter().map(|cost| cost.cpu))),
            Some(Samples::megabytes(costs.iter().map(|cost| cost.peak))),
        ],
    )
}

/// With an author of its own; the user's configuration is not needed.
fn commit(root: &Path) -> Result<()> {
    let who = [
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.invalid",
    ];
    for args in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["commit", "--quiet", "--no-gpg-sign", "-m", "Begin"],
    ] {
        let status = Command::new("git")
            .arg("-C")
            .arg(root)
            .args(who)
            .args(args)
            .status()?;
        ensure!(status.success(), "git {args:?} failed");
    }
    Ok(())
}
