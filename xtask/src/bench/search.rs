//! The Grep tool beside ripgrep, over a large tree.

use std::{collections::BTreeSet, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use codespar_testkit::{CapturedRequest, Script, Turn};
use serde_json::{Value, json};

use super::{
    Bench,
    cost::Cost,
    report::{Bar, Row, Section},
    samples::{Samples, Unit},
    stage::Stage,
    tree::{self, RARE_WORD},
};
use crate::tools::on_path;

/// As many times as long as `rg` we may take.
const RATIO: f64 = 1.2;

/// One search, as each side is asked for it.
struct Search {
    what: &'static str,
    input: Value,
    words: Vec<&'static str>,
}

/// Times of one search, in the order of the runs.
#[derive(Default)]
struct Times {
    ours: Vec<Duration>,
    theirs: Vec<Duration>,
}

fn searches() -> Vec<Search> {
    let search = |what, input, words: &[&'static str]| Search {
        what,
        input,
        words: words.to_vec(),
    };
    let count = |pattern: &str| json!({"pattern": pattern, "output_mode": "count"});
    vec![
        search(
            "a rare word, lines",
            json!({"pattern": RARE_WORD, "output_mode": "content"}),
            &["-n", RARE_WORD],
        ),
        search(
            "a rare word, files",
            json!({"pattern": RARE_WORD}),
            &["-l", RARE_WORD],
        ),
        search("a common word, counts", count("return"), &["-c", "return"]),
        search(
            "a common word, lines (ours stops at 25,000 characters)",
            json!({"pattern": "return", "output_mode": "content"}),
            &["-n", "return"],
        ),
        search(
            "an expression with words, counts",
            count(r"fn \w+_(index|cursor)\("),
            &["-c", r"fn \w+_(index|cursor)\("],
        ),
        search(
            "an expression without words, counts",
            count(r"[a-z]+_[0-9]{3}\b"),
            &["-c", r"[a-z]+_[0-9]{3}\b"],
        ),
        search(
            "any case, counts",
            json!({"pattern": "config", "-i": true, "output_mode": "count"}),
            &["-c", "-i", "config"],
        ),
    ]
}

pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let folder = tempfile::tempdir()?;
    let tree = tree::grow(folder.path()).context("cannot make the tree")?;
    let stage = Stage::new()?.below(folder.path());
    let searches = searches();
    let script = Script::of(
        searches
            .iter()
            .map(|search| Turn::tool("Grep", &search.input))
            .chain([Turn::text("Done.")]),
    );
    let has_rg = on_path("rg");
    let mut times: Vec<Times> = searches.iter().map(|_| Times::default()).collect();
    let (mut our_costs, mut their_costs) = (Vec::new(), Vec::new());
    // The first round fills the page cache and is not counted.
    for round in 0..=bench.runs {
        let run = stage.run(bench, &script, &[])?;
        let mut theirs = Vec::new();
        for (search, request) in searches.iter().zip(&run.requests[1..]) {
            if has_rg {
                let (cost, found) = ripgrep(bench, &stage, &search.words)?;
                same(search, request, &found)?;
                theirs.push(cost);
            }
        }
        if round == 0 {
            continue;
        }
        for (times, pair) in times.iter_mut().zip(run.arrivals.windows(2)) {
            times.ours.push(pair[1].saturating_sub(pair[0]));
        }
        for (times, cost) in times.iter_mut().zip(&theirs) {
            times.theirs.push(cost.wall);
        }
        our_costs.push(run.cost);
        their_costs.push(theirs);
    }
    Ok(section(
        &searches,
        &times,
        &our_costs,
        &their_costs,
        tree.bytes,
    ))
}

fn section(
    searches: &[Search],
    times: &[Times],
    our_costs: &[Cost],
    their_costs: &[Vec<Cost>],
    bytes: u64,
) -> Section {
    let mut rows: Vec<Row> = searches
        .iter()
        .zip(times)
        .map(|(search, times)| row(search.what, times))
        .collect();
    let sum = |costs: &Vec<Cost>| costs.iter().map(|cost| cost.cpu).sum::<Duration>();
    let largest = |costs: &Vec<Cost>| costs.iter().map(|cost| cost.peak).max().unwrap_or(0);
    let they_ran = their_costs.iter().any(|costs| !costs.is_empty());
    rows.push(Row::new(
        "CPU of all of them",
        [
            Some(Samples::times(our_costs.iter().map(|cost| cost.cpu))),
            they_ran.then(|| Samples::times(their_costs.iter().map(sum))),
            None,
        ],
    ));
    rows.push(Row::new(
        "peak memory",
        [
            Some(Samples::megabytes(our_costs.iter().map(|cost| cost.peak))),
            they_ran.then(|| Samples::megabytes(their_costs.iter().map(largest))),
            None,
        ],
    ));
    let bars = searches.iter().zip(times).filter_map(|(search, times)| {
        let what = format!("Grep against `rg`: {}", search.what);
        Some(Bar::at_most(RATIO, what, &times.ratios()?))
    });
    Section {
        title: "Search",
        reading: format!(
            "{} files, {} MB, in nested directories, some ignored, some binary; all in the page \
             cache. Ours is a whole turn of the agent with one call of Grep; `rg` is a process of \
             its own with the same pattern over the same files{}. What both found is compared, too.",
            tree::FILES,
            bytes / 1_000_000,
            if they_ran {
                ""
            } else {
                " (it is not installed here)"
            },
        ),
        columns: vec!["ours", "`rg`", "ours against `rg`"],
        bars: bars.collect(),
        rows,
    }
}

impl Times {
    /// Run by run, as the machine changes its mind between runs.
    fn ratios(&self) -> Option<Samples> {
        let pairs = self.ours.iter().zip(&self.theirs);
        let ratios = pairs.map(|(ours, theirs)| ours.div_duration_f64(*theirs));
        (!self.theirs.is_empty()).then(|| Samples::new(Unit::Times, ratios))
    }
}

fn row(what: &str, times: &Times) -> Row {
    let theirs = times.theirs.iter().copied();
    Row::new(
        what,
        [
            Some(Samples::times(times.ours.iter().copied())),
            (!times.theirs.is_empty()).then(|| Samples::times(theirs)),
            times.ratios(),
        ],
    )
}

fn ripgrep(bench: &Bench, stage: &Stage, words: &[&str]) -> Result<(Cost, String)> {
    let mut command = bench.meter.command(stage.room(), Path::new("rg"));
    // Sees what the tool sees: hidden files too, and a `.gitignore` outside of a repository.
    command
        .args(["--no-config", "--hidden", "--no-require-git"])
        .args(words)
        .current_dir(stage.work());
    let measured = bench.meter.run(&mut command)?;
    Ok((measured.cost, measured.stdout))
}

/// Both must have found the same, or they did not do the same work.
fn same(search: &Search, request: &CapturedRequest, theirs: &str) -> Result<()> {
    let results = request.newest_tool_results();
    let ours = &results.last().context("there is no tool result")?.text;
    let last = ours.lines().last().unwrap_or_default();
    if search.input["output_mode"] == "count" {
        let files = theirs.lines().count();
        let counts = theirs.lines().filter_map(|line| line.rsplit_once(':'));
        let matches: u64 = counts
            .filter_map(|(_, count)| count.parse::<u64>().ok())
            .sum();
        let expected = format!("({matches} matches in {files} files)");
        ensure!(
            ours.contains(&expected),
            "{}: rg found {expected}, we: {last}",
            search.what
        );
    } else if !last.ends_with("narrow the search)") {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        ensure!(
            lines(ours) == lines(theirs),
            "{}: rg found other lines than we",
            search.what
        );
    }
    Ok(())
}
