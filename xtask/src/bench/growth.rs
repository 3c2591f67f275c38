//! Longer and longer loops: a turn must not cost more because many came before it.
//!
//! The three lengths are measured in turns and not one after the other, so that a change of the
//! machine's speed touches all of them.

use anyhow::Result;

use super::{
    Bench,
    report::{Bar, Row, Section},
    samples::{Samples, Unit},
    stage::{Run, Stage},
    turns::{ALLOWED, OWN, Turns, reads, times},
};

const LENGTHS: [usize; 3] = [50, 200, 400];
/// Turns at the end that are looked at alone.
const LAST: usize = 25;
/// The state directory may grow by this much more a turn in the longest loop than in the shortest;
/// a store that writes the whole history each turn would be at 8.
const STATE: f64 = 1.2;

/// The ratio of state is one of medians, since runs of different lengths have no pairs.
pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let mut measured: [Vec<(Run, Turns)>; 3] = Default::default();
    for _ in 0..bench.runs {
        for (length, runs) in LENGTHS.into_iter().zip(&mut measured) {
            let script = reads(length);
            let run = Stage::new()?.used(bench)?.run(bench, &script, &ALLOWED)?;
            let turns = Turns::of(&run, &script, length)?;
            runs.push((run, turns));
        }
    }
    let [shortest, .., longest] = &measured;
    let own = times(longest, Turns::own);
    let (first, last) = (state(shortest, LENGTHS[0]), state(longest, LENGTHS[2]));
    let ratio = Samples::new(Unit::Times, [last.median() / first.median()]);
    let rows = LENGTHS.into_iter().zip(&measured);
    Ok(Section {
        title: "Longer loops",
        reading: format!(
            "Read alone, as above. The request grows with each turn, as the whole conversation \
             goes to the model each time, so sending it takes longer; nothing else should. \"At \
             the end\" is of the last {LAST} turns."
        ),
        columns: vec![
            "wall",
            "CPU",
            "peak memory",
            "a turn",
            "server's share",
            "ours",
            "ours at the end",
            "last request",
            "state a turn",
        ],
        bars: vec![
            Bar::at_most(OWN, "our own time in a turn with Read, 400 turns", &own),
            Bar::at_most(STATE, "state a turn, 400 turns against 50", &ratio),
        ],
        rows: rows.map(|(length, runs)| row(length, runs)).collect(),
    })
}

fn row(length: usize, runs: &[(Run, Turns)]) -> Row {
    let costs = || runs.iter().map(|(run, _)| &run.cost);
    let last_requests = runs.iter().filter_map(|(run, _)| run.requests.last());
    let sizes = last_requests.map(|request| request.body().len() as f64);
    Row::new(
        format!("{length} turns"),
        [
            Some(Samples::times(costs().map(|cost| cost.wall))),
            Some(Samples::times(costs().map(|cost| cost.cpu))),
            Some(Samples::megabytes(costs().map(|cost| cost.peak))),
            Some(times(runs, Turns::whole)),
            Some(times(runs, Turns::share)),
            Some(times(runs, Turns::own)),
            Some(times(runs, |turns| turns.own_of_last(LAST))),
            Some(Samples::kilobytes(sizes)),
            Some(state(runs, length)),
        ],
    )
}

/// Growth of the state directory divided by the number of turns.
fn state(runs: &[(Run, Turns)], length: usize) -> Samples {
    let a_turn = |(run, _): &(Run, Turns)| run.state_growth as f64 / length as f64;
    Samples::kilobytes(runs.iter().map(a_turn))
}
