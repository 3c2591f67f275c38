//! Shell commands: what a sandbox costs, and what is ours beside it.
//!
//! The comparison is with `bwrap` started by hand, since that is what somebody would do who wants a
//! command confined and nothing else. Modes that do not work on the machine have an empty row
//! instead of an error.

use std::{path::Path, time::Duration};

use anyhow::Result;

use super::{
    Bench,
    report::{Bar, Row, Section},
    samples::{Samples, Unit, median, milliseconds},
    stage::Stage,
    turns::{ALLOWED, Turns, commands},
};

const CALLS: usize = 20;

/// A turn in the best sandbox against bubblewrap alone.
const SANDBOXED: f64 = 1.5;

/// A turn without a sandbox against a loop that only asks and runs.
const UNSANDBOXED: f64 = 2.0;

/// The modes of the sandbox, the one that is taken by default first. The order is that of the rows,
/// and the bars refer to places in it.
const MODES: [&str; 4] = ["namespaces", "bubblewrap", "landlock", "off"];

/// What one run showed, in milliseconds.
///
/// `share` is what the server takes for a turn; `first` is the turn that also finds out which
/// sandbox works.
struct Shown {
    turn: f64,
    share: f64,
    bare: f64,
    first: f64,
}

/// All modes are measured in every round, and not one after the other, so that a change of the
/// machine's speed touches all of them.
pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let mut measured: [Vec<Shown>; 4] = Default::default();
    for _ in 0..bench.runs {
        for (mode, shown) in MODES.iter().zip(&mut measured) {
            match one(bench, mode) {
                Ok(one) => shown.push(one),
                Err(why) => eprintln!("sandbox `{mode}` was not measured: {why:#}"),
            }
        }
    }
    let bars = [
        (
            0,
            SANDBOXED,
            "a turn with Bash in the sandbox against bare bubblewrap",
        ),
        (
            3,
            UNSANDBOXED,
            "a turn with Bash without a sandbox against a bare loop",
        ),
    ];
    let bars = bars
        .into_iter()
        .filter(|(mode, ..)| !measured[*mode].is_empty())
        .map(|(mode, most, what)| Bar::at_most(most, what, &times(MODES[mode], &measured[mode])))
        .collect();
    let rows = MODES.iter().zip(&measured);
    Ok(Section {
        title: "Commands",
        reading: format!(
            "{CALLS} turns, each with the command `echo` in Bash. The bare command is the same \
             `bash -c echo` started without us; for the sandboxes it is started by `bwrap` with \
             its namespaces and the workspace writable, none of our other mounts and no filter. \
             The ratio is that of the whole turn to the bare command; without a sandbox the \
             server's share counts as bare too, as a loop has to ask. The first command also \
             tries out the sandbox."
        ),
        columns: vec![
            "a turn",
            "server's share",
            "bare command",
            "ratio",
            "turn of the first command",
        ],
        bars,
        rows: rows.map(|(mode, shown)| row(mode, shown)).collect(),
    })
}

/// The first turn is left out of the median: it is shown by itself.
fn one(bench: &Bench, mode: &str) -> Result<Shown> {
    let stage = Stage::new()?.used(bench)?;
    stage.settings(&format!(r#"{{"sandbox": {{"mode": "{mode}"}}}}"#))?;
    let script = commands(CALLS);
    let run = stage.run(bench, &script, &ALLOWED)?;
    let turns = Turns::of(&run, &script, CALLS)?;
    let bare: Vec<Duration> = (0..CALLS)
        .map(|_| bare(bench, &stage, mode))
        .collect::<Result<_>>()?;
    Ok(Shown {
        turn: median(turns.gaps[1..].iter().copied()),
        share: turns.share(),
        bare: median(bare),
        first: milliseconds(turns.gaps[0]),
    })
}

/// The time of the command without us.
fn bare(bench: &Bench, stage: &Stage, mode: &str) -> Result<Duration> {
    let shell = ["bash", "-c", "echo turn"];
    let mut command = match mode {
        "off" => bench.meter.command(stage.room(), shell[0]),
        _ => {
            let mut command = bench.meter.command(stage.room(), "bwrap");
            command.args(bubblewrap_args(stage.work())).arg(shell[0]);
            command
        }
    };
    command.current_dir(stage.work()).args(&shell[1..]);
    Ok(bench.meter.run(&mut command)?.cost.wall)
}

/// Plain confinement: everything read-only but the workspace, no network, namespaces of its own.
/// What our own sandbox has besides (hidden files, limits, a filter of system calls) is its price.
fn bubblewrap_args(work: &Path) -> Vec<std::ffi::OsString> {
    let fixed = "--ro-bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc --as-pid-1 \
                 --unshare-net --cap-drop ALL --bind";
    let mut args: Vec<_> = fixed.split_whitespace().map(Into::into).collect();
    args.extend([work.into(), work.into()]);
    args.extend(["--chdir".into(), work.into(), "--".into()]);
    args
}

fn row(mode: &str, shown: &[Shown]) -> Row {
    if shown.is_empty() {
        return Row::new(format!("{mode}: does not work here"), [const { None }; 5]);
    }
    let figure = |of: fn(&Shown) -> f64| Some(samples(shown, of));
    let what = match mode {
        "off" => "no sandbox",
        mode => mode,
    };
    Row::new(
        what,
        [
            figure(|shown| shown.turn),
            figure(|shown| shown.share),
            figure(|shown| shown.bare),
            Some(times(mode, shown)),
            figure(|shown| shown.first),
        ],
    )
}

/// The ratio of the whole turn, so what we add around the command counts fully.
fn times(mode: &str, shown: &[Shown]) -> Samples {
    let ratios = shown.iter().map(|shown| match mode {
        "off" => shown.turn / (shown.share + shown.bare),
        _ => shown.turn / shown.bare,
    });
    Samples::new(Unit::Times, ratios)
}

fn samples(shown: &[Shown], of: impl Fn(&Shown) -> f64) -> Samples {
    Samples::new(Unit::Milliseconds, shown.iter().map(of))
}
