//! This build beside another one, an older one usually, in turns within one run.

use std::path::Path;

use anyhow::{Context, Result};
use codespar_testkit::{Script, Turn};

use super::{
    Bench,
    meter::Meter,
    report::{Row, Section},
    samples::{Samples, Unit},
    stage::{Run, Stage},
    turns::{ALLOWED, Turns, reads},
};

const TURNS: usize = 50;
const COLUMNS: [(&str, Unit); 6] = [
    ("`--version`", Unit::Milliseconds),
    ("to the first request", Unit::Milliseconds),
    ("peak memory", Unit::Megabytes),
    ("first request", Unit::Kilobytes),
    ("rest of a turn with Read", Unit::Milliseconds),
    ("peak memory of 50 turns", Unit::Megabytes),
];

/// One value for each column.
type Figures = [f64; COLUMNS.len()];

/// Ratios are taken pair by pair, from runs that came one after the other.
pub(super) fn measure(bench: &Bench, other: &Path) -> Result<Section> {
    let other = Bench {
        codespar: other.to_owned(),
        meter: Meter::new()?,
        runs: bench.runs,
    };
    // The first of each fills the page cache.
    figures(bench)?;
    figures(&other)?;
    let mut pairs = Vec::new();
    for _ in 0..bench.runs {
        pairs.push((figures(bench)?, figures(&other)?));
    }
    let ours = pairs.iter().map(|(ours, _)| *ours);
    let theirs = pairs.iter().map(|(_, theirs)| *theirs);
    let ratios = pairs.iter().map(|(ours, theirs)| {
        let ratio = |column: usize| ours[column] / theirs[column];
        std::array::from_fn(ratio)
    });
    let units = COLUMNS.map(|(_, unit)| unit);
    Ok(Section {
        title: "Against another build",
        reading: "Both programs in turns: `--version`; `-p hi` in a state directory that was used \
                  before; 50 turns with Read. Columns as in the tables above."
            .to_owned(),
        columns: COLUMNS.map(|(name, _)| name).to_vec(),
        bars: Vec::new(),
        rows: vec![
            row("this build", units, ours),
            row("the other", units, theirs),
            row("this against the other", units.map(|_| Unit::Times), ratios),
        ],
    })
}

fn row(what: &str, units: [Unit; COLUMNS.len()], figures: impl Iterator<Item = Figures>) -> Row {
    let figures: Vec<Figures> = figures.collect();
    let cell = |column: usize| {
        let values = figures.iter().map(|figures| figures[column]);
        Some(Samples::new(units[column], values))
    };
    Row::new(what, std::array::from_fn::<_, { COLUMNS.len() }, _>(cell))
}

fn figures(bench: &Bench) -> Result<Figures> {
    let stage = Stage::new()?.used(bench)?;
    let mut command = bench.meter.command(stage.room(), &bench.codespar);
    let version = bench.meter.run(command.arg("--version"))?.cost;
    let hello = stage.run(bench, &Script::of([Turn::text("Hello.")]), &[])?;
    let first = hello.requests.first().context("no request came")?;
    let script = reads(TURNS);
    let reading = Stage::new()?.used(bench)?.run(bench, &script, &ALLOWED)?;
    Ok([
        version.wall.as_secs_f64() * 1e3,
        hello.arrivals[0].as_secs_f64() * 1e3,
        megabytes(&hello),
        first.body().len() as f64 / 1e3,
        Turns::of(&reading, &script, TURNS)?.own(),
        megabytes(&reading),
    ])
}

fn megabytes(run: &Run) -> f64 {
    run.cost.peak as f64 / 1e6
}
