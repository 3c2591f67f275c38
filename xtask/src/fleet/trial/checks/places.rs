//! Where tasks ran: only where their labels are offered, and by both builds where there are two.

use std::collections::{HashMap, HashSet};

use codespar_protocol::Labels;

use super::TrialCheck;
use crate::fleet::trial::{
    evidence::{LogEvent, LogLine},
    hosts::Host,
    workload::{MARKS, PlannedTask},
};

/// A host with a worker, and the labels that it offers.
pub(crate) struct WorkerPlace<'a> {
    pub(crate) host: &'a Host,
    pub(crate) labels: &'a Labels,
}

/// Each time that a process took a task: which, and the address that it did so from.
fn taken(log: &[LogLine]) -> impl Iterator<Item = (&str, &str)> {
    log.iter().filter_map(|line| match &line.event {
        LogEvent::Task {
            id,
            owner: Some(owner),
            owner_before,
            ..
        } if Some(owner) != owner_before.as_ref() => Some((&**id, &*line.writer)),
        _ => None,
    })
}

/// A task with labels is taken only where they are offered, also by whoever takes it over, and its
/// command leaves its mark there and nowhere else.
pub(crate) fn check_labels(
    tasks: &[PlannedTask],
    places: &[WorkerPlace<'_>],
    log: &[LogLine],
) -> TrialCheck {
    let labelled: HashMap<&str, &PlannedTask> = tasks
        .iter()
        .filter(|task| !task.labels.is_empty())
        .map(|task| (task.id.as_str(), task))
        .collect();
    let offers = |place: &WorkerPlace<'_>, task: &PlannedTask| place.labels.include(&task.labels);
    let (mut times, mut once, mut problems) = (0, HashSet::new(), Vec::new());
    for (id, writer) in taken(log) {
        let Some(task) = labelled.get(id) else {
            continue;
        };
        times += 1;
        once.insert(id);
        let place = places
            .iter()
            .find(|place| place.host.address.to_string() == writer);
        if !place.is_some_and(|place| offers(place, task)) {
            problems.push(format!(
                "{id} requires {} and {writer} took it",
                task.labels
            ));
        }
    }
    for task in labelled.values() {
        for place in places.iter().filter(|place| !offers(place, task)) {
            if place
                .host
                .project()
                .join(MARKS)
                .join(task.prompt())
                .exists()
            {
                problems.push(format!(
                    "the command of {} ran on {}",
                    task.id, place.host.name
                ));
            }
        }
    }
    if once.len() != labelled.len() || labelled.is_empty() {
        problems.push(format!("{} of {} were taken", once.len(), labelled.len()));
    }
    TrialCheck {
        name: "tasks ran only where their labels are offered",
        found: format!("{} tasks with labels, taken {times} times", labelled.len()),
        problems,
    }
}

/// The other build took tasks, and so did this one.
pub(crate) fn check_builds(other: &Host, version: &str, log: &[LogLine]) -> TrialCheck {
    let address = other.address.to_string();
    let (others, ours): (Vec<_>, Vec<_>) = taken(log).partition(|(_, writer)| *writer == address);
    let (others, ours) = (others.len(), ours.len());
    let mut problems = Vec::new();
    if others == 0 || ours == 0 {
        problems.push(format!(
            "{others} tasks were taken by the other build, {ours} by this one"
        ));
    }
    TrialCheck {
        name: "two builds worked side by side",
        found: format!("{ours} times taken by this build, {others} by the other ({version})"),
        problems,
    }
}
