//! Task queues of Temporal: one for each set of labels and class of tasks.
//!
//! Temporal gives the tasks of a queue to whoever polls it, so a queue must not hold a task that one of
//! its pollers cannot take. A task that requires `gpu` is in the queue of exactly that set, and a worker
//! that offers `gpu` and `linux` polls the queues of every set that is a part of what it offers. Sets
//! that no task uses have no queue: with eight labels there would be 256 of them.
//!
//! Classes are apart because their limits are: 64 commands that wait must not keep agents from a worker
//! that has room for agents.

use codespar_protocol::Labels;
use codespar_store::{TaskClass, TaskOffer};

/// What a worker takes together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TaskQueue {
    pub(crate) labels: Labels,
    pub(crate) class: TaskClass,
}

impl TaskQueue {
    pub(crate) fn of(offer: &TaskOffer) -> Self {
        Self {
            labels: offer.labels.clone(),
            class: TaskClass::of(offer.task_type),
        }
    }

    /// `codespar-agents`, `codespar-agents[gpu,repo:acme/api]`: labels are sorted, so a set has one
    /// name.
    pub(crate) fn name(&self) -> String {
        let class = self.class.as_str();
        match self.labels.is_empty() {
            true => format!("codespar-{class}"),
            false => format!("codespar-{class}[{}]", self.labels),
        }
    }
}

/// The queues that a worker with these labels takes from, of those that are in use. The one for
/// tasks without labels always is.
pub(crate) fn taken_by(labels: &Labels, in_use: Vec<Labels>) -> Vec<TaskQueue> {
    let mut sets = in_use;
    sets.retain(|set| labels.include(set));
    sets.push(Labels::default());
    sets.sort();
    sets.dedup();
    let queues = sets.into_iter().flat_map(|labels| {
        TaskClass::ALL.map(|class| TaskQueue {
            labels: labels.clone(),
            class,
        })
    });
    queues.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn a_worker_takes_from_the_sets_that_it_offers() {
        let labels = |text: &str| text.parse::<Labels>().unwrap();
        let in_use = vec![labels("gpu"), labels("gpu,x"), labels("other"), labels("")];
        let queues = taken_by(&labels("x,gpu"), in_use);
        let names: Vec<String> = queues.iter().map(TaskQueue::name).collect();
        let expected = [
            "codespar-agents",
            "codespar-commands",
            "codespar-waiting",
            "codespar-agents[gpu]",
            "codespar-commands[gpu]",
            "codespar-waiting[gpu]",
            "codespar-agents[gpu,x]",
            "codespar-commands[gpu,x]",
            "codespar-waiting[gpu,x]",
        ];
        assert_eq!(names, expected);
    }
}
