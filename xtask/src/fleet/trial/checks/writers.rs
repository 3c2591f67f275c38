//! Stale writes, by the log of the database server: nobody but the holder of a task writes to its
//! conversation and records its end, at any moment.

use std::collections::HashMap;

use super::TrialCheck;
use crate::fleet::trial::{
    evidence::{LogEvent, LogLine},
    workload::PlannedTask,
};

/// Who holds a task, as the log tells it so far.
#[derive(Default)]
struct Lease<'a> {
    owner: Option<&'a str>,
    epoch: i64,
    is_over: bool,
}

/// Follows the log from its beginning.
#[derive(Default)]
struct Replay<'a> {
    leases: HashMap<&'a str, Lease<'a>>,
    /// The address of each runner.
    homes: HashMap<&'a str, &'a str>,
    take_overs: usize,
    writes: usize,
    problems: Vec<String>,
}

pub(crate) fn check_writers(tasks: &[PlannedTask], log: &[LogLine]) -> TrialCheck {
    let sessions: HashMap<String, &str> = tasks
        .iter()
        .map(|task| (task.session.to_string(), task.id.as_str()))
        .collect();
    let mut replay = Replay::default();
    for line in log {
        match &line.event {
            LogEvent::Task { .. } => replay.task(line),
            LogEvent::Entry { session } => {
                if let Some(task) = sessions.get(session.as_str()) {
                    replay.write(task, line, "an entry");
                }
            }
            LogEvent::Hold { session } => {
                if let Some(task) = sessions.get(session.as_str()) {
                    replay.write(task, line, "a hold");
                }
            }
            _ => {}
        }
    }
    TrialCheck {
        name: "nobody wrote who had lost the task",
        found: format!(
            "{} writes, {} take-overs, {} stale writes",
            replay.writes,
            replay.take_overs,
            replay.problems.len()
        ),
        problems: replay.problems,
    }
}

impl<'a> Replay<'a> {
    fn task(&mut self, line: &'a LogLine) {
        let LogEvent::Task {
            id,
            status,
            owner,
            owner_before,
            epoch,
        } = &line.event
        else {
            return;
        };
        let lease = self.leases.entry(id).or_default();
        if lease.owner != owner_before.as_deref() || *epoch < lease.epoch {
            let problem = format!("{id}: the log has a gap at place {}", line.place);
            self.problems.push(problem);
        }
        match owner {
            Some(owner) => {
                self.homes.entry(owner).or_insert(&line.writer);
                self.take_overs += usize::from(lease.owner.is_some());
            }
            // The end, or that it is put back: only for whoever holds it.
            None if lease.owner.is_some() => self.write(id, line, "its end"),
            None => {}
        }
        self.leases.insert(
            id,
            Lease {
                owner: owner.as_deref(),
                epoch: *epoch,
                is_over: status != "pending" && status != "running",
            },
        );
    }

    /// Only the host of the holder may write.
    fn write(&mut self, task: &str, line: &LogLine, what: &str) {
        self.writes += 1;
        let Some(lease) = self.leases.get(task) else {
            let problem = format!("{task}: {what} by {} before it was taken", line.writer);
            return self.problems.push(problem);
        };
        let home = lease.owner.and_then(|owner| self.homes.get(owner));
        if lease.is_over || home != Some(&&*line.writer) {
            let problem = format!(
                "{task}: {what} by {} at place {}, but it is {:?} that holds it (epoch {})",
                line.writer, line.place, home, lease.epoch
            );
            self.problems.push(problem);
        }
    }
}
