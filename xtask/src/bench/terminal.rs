//! The session at a terminal: from its start to the prompt, while it streams, and while it waits.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use codespar_testkit::{Script, ScriptedModel, Turn};

use super::{
    Bench,
    report::{Bar, Row, Section},
    samples::{Samples, Unit},
    stage::Stage,
};
use crate::pty::{PtySession, PtySize, VERSION};

/// Bars: milliseconds, megabytes, times, wake-ups in [`IDLE`].
const START: f64 = 60.0;
const MEMORY: f64 = 40.0;
const BYTES: f64 = 2.0;
const WAKE_UPS: f64 = 0.0;
const LATENCY: f64 = 1.5;

const SIZE: PtySize = PtySize {
    rows: 40,
    columns: 100,
};
/// What has not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(1);
/// Until a session that has nothing to do is quiet: its heartbeats pause after some seconds.
const CALM: Duration = Duration::from_secs(6);
const IDLE: Duration = Duration::from_secs(5);
/// As models stream: pieces of so many characters, this far apart.
const PIECE: usize = 20;
const APART: Duration = Duration::from_millis(10);
/// Entries of the longer session.
const ENTRIES: usize = 10_000;
/// Keys that are timed in each session.
const KEYS: usize = 15;

/// What one session showed.
struct Sitting {
    start: Duration,
    peak: u64,
    /// Bytes written for each byte of the answer.
    ratio: f64,
    wake_ups: f64,
    /// From a key to its character on the screen.
    latency: Vec<Duration>,
}

pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let stage = Stage::new()?.used(bench)?;
    let (answer, long) = (answer(), long_answer());
    let (mut short_runs, mut long_runs) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let turn = Turn::text(answer.clone()).chunk(PIECE).delay(APART);
        short_runs.push(sit(bench, &stage, turn, &answer)?);
        long_runs.push(sit(bench, &stage, Turn::text(long.clone()), &long)?);
    }
    let starts = short_runs.iter().chain(&long_runs).map(|run| run.start);
    let start = Samples::times(starts);
    let peak = Samples::megabytes(short_runs.iter().map(|run| run.peak));
    let bytes = Samples::new(Unit::Times, short_runs.iter().map(|run| run.ratio));
    let idle = Samples::new(Unit::Count, short_runs.iter().map(|run| run.wake_ups));
    let growth = short_runs.iter().zip(&long_runs).map(|(short, long)| {
        let middle = |run: &Sitting| super::samples::median(run.latency.iter().copied());
        middle(long) / middle(short)
    });
    let growth = Samples::new(Unit::Times, growth);
    Ok(Section {
        title: "Terminal",
        reading: format!(
            "The session in a pseudo-terminal of {} by {} with the scripted model. The first row \
             streams {} KB of markdown with code and a table, {PIECE} characters every {} ms; the \
             second has an answer of {ENTRIES} paragraphs at once. \"Written\" is what went to the \
             terminal during the answer, for each byte of it. Wake-ups are those of all threads in \
             {} s of waiting at the prompt. A key is timed until its character is on the screen.",
            SIZE.columns,
            SIZE.rows,
            answer.len() / 1000,
            APART.as_millis(),
            IDLE.as_secs(),
        ),
        columns: vec![
            "to the prompt",
            "peak memory",
            "written",
            "wake-ups",
            "a key",
        ],
        bars: vec![
            Bar::at_most(START, "from the start to the prompt", &start),
            Bar::at_most(MEMORY, "peak memory with an answer of code", &peak),
            Bar::at_most(BYTES, "written for each byte that streams", &bytes),
            Bar::at_most(WAKE_UPS, "wake-ups while waiting at the prompt", &idle),
            Bar::at_most(LATENCY, "a key after many entries, against few", &growth),
        ],
        rows: vec![
            row("an answer that streams", &short_runs),
            row("an answer of many entries", &long_runs),
        ],
    })
}

fn row(what: &str, runs: &[Sitting]) -> Row {
    let keys = runs.iter().flat_map(|run| run.latency.iter().copied());
    Row::new(
        what,
        [
            Some(Samples::times(runs.iter().map(|run| run.start))),
            Some(Samples::megabytes(runs.iter().map(|run| run.peak))),
            Some(Samples::new(Unit::Times, runs.iter().map(|run| run.ratio))),
            Some(Samples::new(
                Unit::Count,
                runs.iter().map(|run| run.wake_ups),
            )),
            Some(Samples::times(keys)),
        ],
    )
}

fn sit(bench: &Bench, stage: &Stage, turn: Turn, answer: &str) -> Result<Sitting> {
    let server = ScriptedModel::start_blocking(Script::of([turn]))?;
    let began = Instant::now();
    let (room, binary) = (stage.room(), &bench.codespar);
    let mut session = PtySession::start(room, stage.work(), binary, &server.url(), SIZE)?;
    wait_for(&session, "/help shows the commands")?;
    let start = began.elapsed();
    session.types(VERSION)?;
    session.types("go")?;
    wait_for(&session, "› go")?;
    let before = session.output().bytes;
    session.types("\r")?;
    wait_for(&session, "1 turn")?;
    let written = session.output().bytes - before;
    let mut latency = Vec::new();
    for number in 1..=KEYS {
        let typed = "x".repeat(number);
        let pressed = Instant::now();
        session.types("x")?;
        wait_for(&session, &format!("› {typed}"))?;
        latency.push(pressed.elapsed());
    }
    // A draft would be there again in the next session.
    session.types("\x03")?;
    wait_for(&session, "/help shows the commands")?;
    thread::sleep(CALM);
    let process = format!("/proc/{}", session.pid(binary)?);
    let wakes_before = switches(Path::new(&process))?;
    thread::sleep(IDLE);
    let wake_ups = switches(Path::new(&process))? - wakes_before;
    Ok(Sitting {
        start,
        peak: peak(Path::new(&process))?,
        ratio: written as f64 / answer.len() as f64,
        wake_ups: wake_ups as f64,
        latency,
    })
}

fn wait_for(session: &PtySession<'_>, cue: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let text = session.output().emulator.screen().contents();
        if text.contains(cue) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            bail!("waited {} s for `{cue}`:\n{text}", PATIENCE.as_secs());
        }
        thread::sleep(LOOK);
    }
}

/// How often the threads of a process were woken so far.
fn switches(process: &Path) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(process.join("task"))? {
        // A thread may have ended since it was listed.
        if let Ok(status) = fs::read_to_string(thread?.path().join("status")) {
            sum += number(&status, "voluntary_ctxt_switches:")?;
        }
    }
    Ok(sum)
}

/// The most memory that a process had, in bytes.
fn peak(process: &Path) -> Result<u64> {
    let status = fs::read_to_string(process.join("status"))?;
    Ok(number(&status, "VmHWM:")? * 1024)
}

fn number(status: &str, name: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|rest| rest.split_whitespace().next());
    let value = value.with_context(|| format!("no {name} in the status of a process"))?;
    Ok(value.parse()?)
}

/// Prose, a list, a table and code.
fn answer() -> String {
    let mut text = String::new();
    for part in 1..=24 {
        text.push_str(&format!(
            "## Part {part}\n\nThe session expires because the clock is read in seconds while the \
             limit is in *milliseconds*: `expires_at` is compared with a number that is a thousand \
             times too small. The fix belongs in `auth/session.rs`, where both are known.\n\n- read \
             the clock once\n- compare **durations**, not numbers\n- keep the limit in one place\n\n\
             | file | lines | what |\n|---|---|---|\n| auth/session.rs | 12 | compares |\n| \
             auth/limits.rs | 3 | names the limit |\n\n```rust\npub fn is_expired(&self, now: \
             Instant) -> bool {{\n    // Durations carry their unit.\n    \
             now.duration_since(self.started) >= SESSION_LIMIT * {part}\n}}\n```\n\n"
        ));
    }
    text
}

fn long_answer() -> String {
    let lines = (1..=ENTRIES).map(|number| format!("Entry {number} of the answer.\n\n"));
    lines.collect()
}
