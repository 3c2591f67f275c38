//! From nothing to the first request, and a run of one turn.
//!
//! `true` and `sh` show what starting any process costs on the machine. Runs are interleaved, so
//! that a change of the machine's speed touches all rows.

use anyhow::{Context, Result};
use codespar_testkit::{Script, Turn};

use super::{
    Bench,
    cost::Cost,
    report::{Bar, Row, Section},
    samples::{Samples, Unit},
    stage::{Run, Stage},
};

/// Bars, in milliseconds, megabytes and kilobytes.
const VERSION: f64 = 5.0;
pub(super) const PEAK: f64 = 25.0;
const FIRST_REQUEST: f64 = 10.0;

/// Programs that end at once vary most, so they are started more often. For each run of a turn, so
/// that both kinds see the same machine.
const QUICK: usize = 5;

/// One state directory is used again by all runs, as for a user of some days; the last row has a
/// new one each time, which includes making the database.
pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let mut nothing = Vec::new();
    let mut shell = Vec::new();
    let mut version = Vec::new();
    let mut used = Vec::new();
    let mut new = Vec::new();
    let stage = Stage::new()?.used(bench)?;
    let script = Script::of([Turn::text("Hello.")]);
    for _ in 0..bench.runs {
        for _ in 0..QUICK {
            let cost = |program: &std::path::Path, args: &[&str]| {
                let mut command = bench.meter.command(stage.room(), program);
                Ok::<_, anyhow::Error>(bench.meter.run(command.args(args))?.cost)
            };
            nothing.push(cost("true".as_ref(), &[])?);
            shell.push(cost("sh".as_ref(), &["-c", ":"])?);
            version.push(cost(&bench.codespar, &["--version"])?);
        }
        used.push(stage.run(bench, &script, &[])?);
        new.push(Stage::new()?.run(bench, &script, &[])?);
    }
    let version_wall = Samples::times(version.iter().map(|cost| cost.wall));
    let peak = Samples::megabytes(used.iter().map(|run| run.cost.peak));
    let size = size_of_first(&used)?;
    Ok(Section {
        title: "Start",
        reading: "Each as a process of its own, started one after the other in turns. \"To the \
                  first request\" is from the start of the process until the scripted model had \
                  the request. The model answers at once. A peak below that of `true` cannot be \
                  seen: it is that of the process that measures."
            .to_owned(),
        columns: vec![
            "wall",
            "against `true`",
            "CPU",
            "peak memory",
            "to the first request",
            "first request",
        ],
        bars: vec![
            Bar::at_most(VERSION, "`codespar --version`", &version_wall),
            Bar::at_most(PEAK, "peak memory of a run of one turn", &peak),
            Bar::at_most(FIRST_REQUEST, "size of the first request", &size),
        ],
        rows: vec![
            quick_row("`true`", &nothing, None),
            quick_row("`sh -c :`", &shell, Some(&nothing)),
            quick_row("`codespar --version`", &version, Some(&nothing)),
            run_row("`codespar -p hi`", &used)?,
            run_row("the same in a new state directory", &new)?,
        ],
    })
}

/// Ratios are taken pair by pair, from programs that were started one after the other.
fn quick_row(what: &str, costs: &[Cost], against: Option<&Vec<Cost>>) -> Row {
    let ratios = against.map(|others| {
        let pairs = costs.iter().zip(others);
        let ratio = |(cost, other): (&Cost, &Cost)| cost.wall.div_duration_f64(other.wall);
        Samples::new(Unit::Times, pairs.map(ratio))
    });
    Row::new(
        what,
        [
            Some(Samples::times(costs.iter().map(|cost| cost.wall))),
            ratios,
            Some(Samples::times(costs.iter().map(|cost| cost.cpu))),
            Some(Samples::megabytes(costs.iter().map(|cost| cost.peak))),
            None,
            None,
        ],
    )
}

fn run_row(what: &str, runs: &[Run]) -> Result<Row> {
    let firsts = runs.iter().filter_map(|run| run.arrivals.first().copied());
    Ok(Row::new(
        what,
        [
            Some(Samples::times(runs.iter().map(|run| run.cost.wall))),
            None,
            Some(Samples::times(runs.iter().map(|run| run.cost.cpu))),
            Some(Samples::megabytes(runs.iter().map(|run| run.cost.peak))),
            Some(Samples::times(firsts)),
            Some(size_of_first(runs)?),
        ],
    ))
}

/// The body of the first request: system prompt, tools and the prompt of the user.
fn size_of_first(runs: &[Run]) -> Result<Samples> {
    let mut sizes = Vec::new();
    for run in runs {
        let first = run.requests.first().context("no request came")?;
        sizes.push(first.body().len() as f64);
    }
    Ok(Samples::kilobytes(sizes))
}
