//! A loop of 50 turns, and how the time of a turn is divided.
//!
//! The time of a turn cannot be read from the client, which is the program under test. It is taken
//! at the server: the gap between two requests is the answer of the first, the work of the client
//! and the sending of the second.

use std::time::Duration;

use anyhow::{Result, ensure};
use codespar_testkit::{Script, Turn};
use serde_json::json;

use super::{
    Bench,
    replay::replay,
    report::{Bar, Row, Section},
    samples::{Samples, Unit, mean},
    stage::{Run, Stage},
    start::PEAK,
};

/// Milliseconds of our own that a turn may take.
pub(super) const OWN: f64 = 1.0;
const TURNS: usize = 50;

/// The times of the turns of one run.
pub(super) struct Turns {
    /// From the arrival of a request to that of the next.
    pub(super) gaps: Vec<Duration>,
    /// What a plain client takes for the same requests.
    pub(super) shares: Vec<Duration>,
}

impl Turns {
    /// `count` is how many calls the script makes.
    pub(super) fn of(run: &Run, script: &Script, count: usize) -> Result<Self> {
        ensure!(
            run.requests.len() == count + 1,
            "{} requests came for {count} calls",
            run.requests.len()
        );
        let pairs = run.arrivals.windows(2);
        Ok(Self {
            gaps: pairs.map(|pair| pair[1].saturating_sub(pair[0])).collect(),
            shares: replay(script, &run.requests[..count])?,
        })
    }

    /// Milliseconds of a turn, on average.
    pub(super) fn whole(&self) -> f64 {
        mean(&self.gaps)
    }

    /// Milliseconds of a turn that are the server's.
    pub(super) fn share(&self) -> f64 {
        mean(&self.shares)
    }

    /// Milliseconds of a turn that are ours and the tool's.
    pub(super) fn own(&self) -> f64 {
        self.own_of_last(self.gaps.len())
    }

    /// The same of the last turns alone.
    pub(super) fn own_of_last(&self, count: usize) -> f64 {
        let first = self.gaps.len().saturating_sub(count);
        mean(&self.gaps[first..]) - mean(&self.shares[first..])
    }
}

/// Calls of Read alone.
pub(super) fn reads(count: usize) -> Script {
    let input = |_| json!({"file_path": "README.md"});
    Script::tool_loop(count, "Read", input, "Done.")
}

/// Calls of Bash alone.
pub(super) fn commands(count: usize) -> Script {
    let input = |turn| json!({"command": format!("echo turn {turn}")});
    Script::tool_loop(count, "Bash", input, "Done.")
}

/// What a usual session does: commands and files in turns.
fn mixed(count: usize) -> Script {
    let turns = (1..=count).map(|turn| match turn % 2 {
        1 => Turn::tool("Bash", &json!({"command": format!("echo turn {turn}")})),
        _ => Turn::tool("Read", &json!({"file_path": "README.md"})),
    });
    Script::of(turns.chain([Turn::text("Done.")]))
}

/// Without these every call would be denied: nobody can be asked.
pub(super) const ALLOWED: [&str; 2] = ["--allowedTools", "Bash,Read"];

/// Each run has a state directory of its own that was used once, so that making the database is not
/// part of it.
pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let kinds = [
        ("Bash and Read in turns", mixed(TURNS)),
        ("Read alone", reads(TURNS)),
        ("Bash alone", commands(TURNS)),
    ];
    let mut measured: [Vec<(Run, Turns)>; 3] = Default::default();
    for _ in 0..bench.runs {
        for ((_, script), runs) in kinds.iter().zip(&mut measured) {
            let run = Stage::new()?.used(bench)?.run(bench, script, &ALLOWED)?;
            let turns = Turns::of(&run, script, TURNS)?;
            runs.push((run, turns));
        }
    }
    let own = times(&measured[1], Turns::own);
    let peak = Samples::megabytes(measured[0].iter().map(|(run, _)| run.cost.peak));
    let rows = kinds.iter().zip(&measured);
    Ok(Section {
        title: "A loop of 50 turns",
        reading:
            "`codespar -p` with one tool call a turn and output as JSON lines. A turn is from \
                  the arrival of a request at the scripted model to that of the next, on average. The server's \
                  share is what a plain client takes to send the same bytes and read the answer; \
                  the rest is ours and the tool's. Of a turn with Read nearly all of the rest is \
                  ours; a command's own time is taken apart below, under \"Commands\"."
                .to_owned(),
        columns: vec![
            "wall",
            "CPU",
            "CPU of commands",
            "peak memory",
            "a turn",
            "server's share",
            "rest of a turn",
        ],
        bars: vec![
            Bar::at_most(OWN, "our own time in a turn with Read, 50 turns", &own),
            Bar::at_most(PEAK, "peak memory of a loop of 50 turns", &peak),
        ],
        rows: rows.map(|((what, _), runs)| row(what, runs)).collect(),
    })
}

fn row(what: &str, runs: &[(Run, Turns)]) -> Row {
    let costs = || runs.iter().map(|(run, _)| &run.cost);
    Row::new(
        what,
        [
            Some(Samples::times(costs().map(|cost| cost.wall))),
            Some(Samples::times(costs().map(|cost| cost.cpu))),
            Some(Samples::times(costs().map(|cost| cost.children_cpu))),
            Some(Samples::megabytes(costs().map(|cost| cost.peak))),
            Some(times(runs, Turns::whole)),
            Some(times(runs, Turns::share)),
            Some(times(runs, Turns::own)),
        ],
    )
}

/// One figure of the turns of each run.
pub(super) fn times(runs: &[(Run, Turns)], of: impl Fn(&Turns) -> f64) -> Samples {
    let values = runs.iter().map(|(_, turns)| of(turns));
    Samples::new(Unit::Milliseconds, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_is_what_the_server_does_not_take() {
        let all = |times: [u64; 4]| times.map(Duration::from_millis).to_vec();
        let turns = Turns {
            gaps: all([5, 7, 9, 11]),
            shares: all([1, 1, 2, 2]),
        };
        assert_eq!(turns.whole(), 8.0);
        assert_eq!(turns.share(), 1.5);
        assert_eq!(turns.own(), 6.5);
        assert_eq!(turns.own_of_last(2), 8.0);
    }
}
