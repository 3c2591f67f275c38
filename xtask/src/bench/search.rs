//! The Grep tool beside ripgrep, over a large tree.
//!
//! Both sides search the same files with the same pattern, in turns, with the page cache filled
//! before. Results are compared as well: a faster search that finds less would be no success.
//!
//! One round is a session of ours with all searches, one call a turn, followed by the same searches
//! with `rg`. The figure of ours is from the request that asks for the call to the one that carries
//! its result, so parsing the answer, permissions, the search and the next request are all in it.

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

/// As many times as long as `rg` we may take. A search also carries a turn of the agent, which `rg`
/// does not have.
const RATIO: f64 = 1.0;

/// One search, as each side is asked for it. `input` is that of the tool, `args` those of `rg`.
struct Search {
    what: &'static str,
    input: Value,
    args: Vec<&'static str>,
}

/// Times of one search, in the order of the runs. `theirs` stays empty without `rg`.
#[derive(Default)]
struct Times {
    ours: Vec<Duration>,
    theirs: Vec<Duration>,
}

/// Few and many matches, lines and counts, literal and expression: each takes another path through
/// the search.
fn searches() -> Vec<Search> {
    let search = |what, input, args: &[&'static str]| Search {
        what,
        input,
        args: args.to_vec(),
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

/// All that was measured.
///
/// Filled round by round; `searches` and `times` are parallel.
struct Outcome {
    searches: Vec<Search>,
    times: Vec<Times>,
    /// One a round: all searches of a round are one process.
    our_costs: Vec<Cost>,
    /// Of each round, those of all searches.
    their_costs: Vec<Vec<Cost>>,
    /// The name of what we are compared with, if it is installed.
    rival: Option<String>,
    bytes: u64,
}

/// The run that fills the page cache also proves that the script works before anything is counted.
pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let folder = tempfile::tempdir()?;
    let tree = tree::grow(folder.path()).context("cannot make the tree")?;
    let stage = Stage::new()?.below(folder.path());
    let searches = searches();
    let calls = searches.iter().map(|one| Turn::tool("Grep", &one.input));
    let script = Script::of(calls.chain([Turn::text("Done.")]));
    let mut outcome = Outcome {
        times: searches.iter().map(|_| Times::default()).collect(),
        searches,
        our_costs: Vec::new(),
        their_costs: Vec::new(),
        rival: version(bench, &stage)?,
        bytes: tree.bytes,
    };
    // Fills the page cache; not counted.
    stage.run(bench, &script, &[])?;
    for _ in 0..bench.runs {
        outcome.round(bench, &stage, &script)?;
    }
    Ok(outcome.section())
}

impl Outcome {
    /// Our time of a search is the gap between two requests: the call, the search and sending the
    /// result.
    fn round(&mut self, bench: &Bench, stage: &Stage, script: &Script) -> Result<()> {
        let run = stage.run(bench, script, &[])?;
        for (times, pair) in self.times.iter_mut().zip(run.arrivals.windows(2)) {
            times.ours.push(pair[1].saturating_sub(pair[0]));
        }
        self.our_costs.push(run.cost);
        if self.rival.is_none() {
            return Ok(());
        }
        let mut costs = Vec::new();
        let asked = self.searches.iter().zip(&mut self.times);
        // The request after a call brings its result.
        for ((search, times), request) in asked.zip(&run.requests[1..]) {
            let (cost, found) = ripgrep(bench, stage, &search.args)?;
            same(search, request, &found)?;
            times.theirs.push(cost.wall);
            costs.push(cost);
        }
        self.their_costs.push(costs);
        Ok(())
    }

    /// Without `rg` there are times and no bars.
    fn section(&self) -> Section {
        let both = || self.searches.iter().zip(&self.times);
        let mut rows: Vec<Row> = both()
            .map(|(search, times)| row(search.what, times))
            .collect();
        rows.extend(self.totals());
        let bars = both().filter_map(|(search, times)| {
            let what = format!("Grep against `rg`: {}", search.what);
            Some(Bar::at_most(RATIO, what, &times.ratios()?))
        });
        let rival = match &self.rival {
            Some(name) => format!("`rg` ({name}) is a process of its own"),
            None => "`rg`, which is not installed here, would be a process of its own".to_owned(),
        };
        Section {
            title: "Search",
            reading: format!(
                "{} files, {} MB, in nested directories, some ignored, some binary; all in the \
                 page cache. Ours is a whole turn of the agent with one call of Grep; {rival} with \
                 the same pattern over the same files. What both found is compared, too. The rare \
                 word compares the search alone; where much is found, `rg` also prints every file \
                 and we do not.",
                tree::FILES,
                self.bytes / 1_000_000,
            ),
            columns: vec!["ours", "`rg`", "ours against `rg`"],
            bars: bars.collect(),
            rows,
        }
    }

    /// One process of ours does all searches, each of `rg` is its own: CPU is summed, memory is the
    /// largest.
    fn totals(&self) -> [Row; 2] {
        let ours = &self.our_costs;
        let sum = |costs: &Vec<Cost>| costs.iter().map(|cost| cost.cpu).sum::<Duration>();
        let largest = |costs: &Vec<Cost>| costs.iter().map(|cost| cost.peak).max().unwrap_or(0);
        let theirs = self.rival.is_some().then_some(&self.their_costs);
        [
            Row::new(
                "CPU of all of them",
                [
                    Some(Samples::times(ours.iter().map(|cost| cost.cpu))),
                    theirs.map(|all| Samples::times(all.iter().map(sum))),
                    None,
                ],
            ),
            Row::new(
                "peak memory",
                [
                    Some(Samples::megabytes(ours.iter().map(|cost| cost.peak))),
                    theirs.map(|all| Samples::megabytes(all.iter().map(largest))),
                    None,
                ],
            ),
        ]
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

/// `ripgrep 15.2.0`, if it is there.
fn version(bench: &Bench, stage: &Stage) -> Result<Option<String>> {
    if !on_path("rg") {
        return Ok(None);
    }
    let (_, version) = ripgrep(bench, stage, &["--version"])?;
    Ok(version.lines().next().map(str::to_owned))
}

/// The cost of one call and what it printed. The configuration file of the user is not read.
fn ripgrep(bench: &Bench, stage: &Stage, args: &[&str]) -> Result<(Cost, String)> {
    let mut command = bench.meter.command(stage.room(), Path::new("rg"));
    // Sees what the tool sees: hidden files too, and a `.gitignore` outside of a repository.
    command
        .args(["--no-config", "--hidden", "--no-require-git"])
        .args(args)
        .current_dir(stage.work());
    let measured = bench.meter.run(&mut command)?;
    Ok((measured.cost, measured.stdout))
}

/// Both must have found the same, or they did not do the same work. A result of ours that was cut
/// off cannot be compared line by line and is passed over.
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
