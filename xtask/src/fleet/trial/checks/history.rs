//! Ends, notifications, dependencies and limits, by the log of the database server.

use std::collections::HashMap;

use super::TrialCheck;
use crate::fleet::trial::{
    evidence::{LogEvent, LogLine},
    workload::PlannedTask,
};

/// No state follows but that of another attempt.
fn is_end(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "killed")
}

/// Each task has completed, and nothing else was ever recorded as its end.
pub(crate) fn check_ends(tasks: &[PlannedTask], log: &[LogLine]) -> TrialCheck {
    let mut ends: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in log {
        if let LogEvent::Task { id, status, .. } = &line.event
            && is_end(status)
        {
            ends.entry(id).or_default().push(status);
        }
    }
    let wrong = |task: &PlannedTask| {
        let found = ends
            .get(task.id.as_str())
            .map(Vec::as_slice)
            .unwrap_or_default();
        (found != ["completed"]).then(|| format!("{} has ended as {found:?}", task.id))
    };
    TrialCheck {
        name: "every task has completed once",
        found: format!("{} tasks", tasks.len()),
        problems: tasks.iter().filter_map(wrong).collect(),
    }
}

/// The session of a task is told once; of the others nobody is told.
pub(crate) fn check_notifications(tasks: &[PlannedTask], log: &[LogLine]) -> TrialCheck {
    let mut told: HashMap<&str, usize> = HashMap::new();
    for line in log {
        if let LogEvent::Notification { id } = &line.event {
            *told.entry(id).or_default() += 1;
        }
    }
    let wrong = |task: &PlannedTask| {
        let found = told.get(task.id.as_str()).copied().unwrap_or(0);
        let wanted = usize::from(task.notifies.is_some());
        (found != wanted).then(|| format!("{}: {found} notifications, not {wanted}", task.id))
    };
    TrialCheck {
        name: "each notification is recorded once",
        found: format!("{} notifications", told.values().sum::<usize>()),
        problems: tasks.iter().filter_map(wrong).collect(),
    }
}

/// No task was taken before all that it waits for had completed.
pub(crate) fn check_dependencies(tasks: &[PlannedTask], log: &[LogLine]) -> TrialCheck {
    let (mut began, mut ended) = (HashMap::new(), HashMap::new());
    for line in log {
        if let LogEvent::Task { id, status, .. } = &line.event {
            if status == "running" {
                began.entry(id.as_str()).or_insert(line.place);
            } else if is_end(status) {
                ended.entry(id.as_str()).or_insert(line.place);
            }
        }
    }
    let mut problems = Vec::new();
    let mut count = 0;
    for task in tasks {
        for blocker in &task.blocked_by {
            count += 1;
            let (began, ended) = (began.get(task.id.as_str()), ended.get(blocker.as_str()));
            if began.is_some() && (ended.is_none() || ended > began) {
                problems.push(format!("{} began before {blocker} had ended", task.id));
            }
        }
    }
    TrialCheck {
        name: "no task began before those it depends on had ended",
        found: format!("{count} dependencies"),
        problems,
    }
}

/// Never more ran at once than the limit allows; 0 is none. A task of a lost worker still counts as running.
pub(crate) fn check_limit(limit: usize, log: &[LogLine]) -> TrialCheck {
    let mut running = std::collections::HashSet::new();
    let (mut most, mut problems) = (0, Vec::new());
    for line in log {
        if let LogEvent::Task { id, status, .. } = &line.event {
            match &**status {
                "running" => running.insert(id),
                _ => running.remove(id),
            };
        }
        most = most.max(running.len());
        if limit > 0 && running.len() > limit && problems.is_empty() {
            problems.push(format!(
                "{} tasks run at place {}",
                running.len(),
                line.place
            ));
        }
    }
    TrialCheck {
        name: "never more tasks run than the limit allows",
        found: match limit {
            0 => format!("no limit, at most {most}"),
            _ => format!("at most {most} of {limit}"),
        },
        problems,
    }
}
