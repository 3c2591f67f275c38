//! Shell commands: what a sandbox costs, and what is ours beside it.

use std::{path::Path, time::Duration};

use anyhow::Result;

use super::{
    Bench,
    report::{Bar, Row, Section},
    samples::{Samples, Unit, median, milliseconds},
    stage::Stage,
    turns::{ALLOWED, OWN, Turns, commands},
};

const CALLS: usize = 20;

/// What one run showed, in milliseconds.
struct Shown {
    turn: f64,
    share: f64,
    bare: f64,
    first: f64,
}

pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let modes = ["bubblewrap", "landlock", "off"];
    let mut measured: [Vec<Shown>; 3] = Default::default();
    for _ in 0..bench.runs {
        for (mode, shown) in modes.iter().zip(&mut measured) {
            match one(bench, mode) {
                Ok(one) => shown.push(one),
                Err(why) => eprintln!("sandbox `{mode}` was not measured: {why:#}"),
            }
        }
    }
    let bars = measured[..1]
        .iter()
        .filter(|shown| !shown.is_empty())
        .map(|shown| {
            let what = "our own time in a turn with Bash, in bubblewrap";
            Bar::at_most(OWN, what, &own(shown))
        })
        .collect();
    let rows = modes.iter().zip(&measured);
    Ok(Section {
        title: "Commands",
        reading: format!(
            "{CALLS} turns, each with the command `echo` in Bash. The bare command is the same \
             `bash -c echo` started without us; for bubblewrap it is started by `bwrap` with the \
             same namespaces and all but two of the mounts. What is neither that nor the server's \
             share is ours: the loop, the record, the rules, the guard process in the sandbox. The \
             first command also tries out the sandbox."
        ),
        columns: vec![
            "a turn",
            "server's share",
            "bare command",
            "ours",
            "turn of the first command",
        ],
        bars,
        rows: rows.map(|(mode, shown)| row(mode, shown)).collect(),
    })
}

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
        "bubblewrap" => {
            let mut command = bench.meter.command(stage.room(), "bwrap");
            command.args(bubblewrap_words(stage.work())).arg(shell[0]);
            command
        }
        _ => bench.meter.command(stage.room(), shell[0]),
    };
    command.current_dir(stage.work()).args(&shell[1..]);
    Ok(bench.meter.run(&mut command)?.cost.wall)
}

fn bubblewrap_words(work: &Path) -> Vec<std::ffi::OsString> {
    let fixed = "--ro-bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc --as-pid-1 \
                 --unshare-net --cap-drop ALL --bind";
    let mut words: Vec<_> = fixed.split_whitespace().map(Into::into).collect();
    words.extend([work.into(), work.into()]);
    words.extend(["--chdir".into(), work.into(), "--".into()]);
    words
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
            Some(own(shown)),
            figure(|shown| shown.first),
        ],
    )
}

fn own(shown: &[Shown]) -> Samples {
    samples(shown, |shown| shown.turn - shown.share - shown.bare)
}

fn samples(shown: &[Shown], of: impl Fn(&Shown) -> f64) -> Samples {
    Samples::new(Unit::Milliseconds, shown.iter().map(of))
}
