//! How long the tasks of a lost worker wait for another one.
//!
//! For each disturbance the log tells which tasks the worker held at that moment, and when each of
//! them was claimed by another process. A task that was put back in good order counts from the
//! disturbance as well: what matters is when somebody goes on with it.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{
    disturbances::{Disturbance, DisturbanceKind},
    evidence::{LogEvent, LogLine},
    numbers::Spread,
};

/// All disturbances of a kind.
#[derive(Debug, Serialize)]
pub(super) struct TakeOvers {
    pub(super) kind: DisturbanceKind,
    pub(super) disturbances: usize,
    /// Those that the worker held at that moment and that another process went on with.
    pub(super) tasks_taken_over: usize,
    /// Those that it held and brought to their end itself.
    pub(super) tasks_kept: usize,
    /// Seconds until the first task of a disturbance was another's.
    pub(super) first: Spread,
    /// Seconds until the last was.
    pub(super) last: Spread,
}

/// Who has a task at a moment, and since when.
#[derive(Clone)]
struct Held {
    owner: String,
    writer: String,
    since: i64,
}

pub(super) fn take_overs(disturbances: &[Disturbance], log: &[LogLine]) -> Vec<TakeOvers> {
    let of_kind = |kind: DisturbanceKind| {
        let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
        let (mut taken, mut kept, mut count) = (0, 0, 0);
        for one in disturbances.iter().filter(|one| one.kind == kind) {
            count += 1;
            let (times, own_ends) = times_of(one, disturbances, log);
            kept += own_ends;
            taken += times.len();
            let seconds = |time: &i64| *time as f64 / 1e6;
            firsts.extend(times.iter().min().map(seconds));
            lasts.extend(times.iter().max().map(seconds));
        }
        TakeOvers {
            kind,
            disturbances: count,
            tasks_taken_over: taken,
            tasks_kept: kept,
            first: Spread::of(firsts),
            last: Spread::of(lasts),
        }
    };
    DisturbanceKind::ALL.into_iter().map(of_kind).collect()
}

/// Microseconds until each task was another process's, and how many tasks the worker ended itself.
/// What an earlier process of the host had left behind is not counted.
fn times_of(one: &Disturbance, disturbances: &[Disturbance], log: &[LogLine]) -> (Vec<i64>, usize) {
    let split = log.partition_point(|line| line.at <= one.at);
    let mut earlier = disturbances.iter().filter(|before| {
        let is_new_process = !before.kind.is_long();
        is_new_process && before.at < one.at && before.writer == one.writer
    });
    let born = earlier.next_back().map_or(0, |before| before.at);
    let mut lost = held_by(&one.writer, &log[..split]);
    lost.retain(|_, held| held.since > born);
    let (mut times, mut kept) = (Vec::new(), 0);
    for line in &log[split..] {
        let LogEvent::Task {
            id, status, owner, ..
        } = &line.event
        else {
            continue;
        };
        let Some(before) = lost.get(id) else {
            continue;
        };
        match owner {
            Some(owner) if *owner != before.owner => times.push(line.at - one.at),
            None if status != "pending" => kept += 1,
            // It was put back, and waits for another.
            _ => continue,
        }
        lost.remove(id);
    }
    (times, kept)
}

/// What the processes of a host held at the end of this part of the log.
fn held_by(writer: &str, log: &[LogLine]) -> HashMap<String, Held> {
    let mut held: BTreeMap<&str, Held> = BTreeMap::new();
    for line in log {
        if let LogEvent::Task { id, owner, .. } = &line.event {
            match owner {
                Some(owner) => {
                    let (owner, writer) = (owner.clone(), line.writer.clone());
                    let since = line.at;
                    held.insert(
                        id,
                        Held {
                            owner,
                            writer,
                            since,
                        },
                    );
                }
                None => drop(held.remove(id.as_str())),
            }
        }
    }
    let ours = held.into_iter().filter(|(_, held)| held.writer == writer);
    ours.map(|(id, held)| (id.to_owned(), held)).collect()
}
