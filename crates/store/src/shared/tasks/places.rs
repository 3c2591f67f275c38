//! How much may be offered to an engine where limits count what is offered.
//!
//! An offer counts as running from the moment it is made. One that nobody can begin would use up a
//! limit for as long as it waits, and keep tasks from running that somebody could run. So where there
//! are limits, no more is offered than the workers that are there can begin at once.

use std::collections::HashMap;

use codespar_protocol::{Labels, TaskType};

use super::{
    super::{
        failure::Failure,
        rows::{count, field, message_of},
    },
    dispatch::Window,
    fleet,
    row::damaged,
};
use crate::engine::{self, Connection, Row};
use crate::{FleetRunner, LEASES, TaskClass, dispatch_sql as sql};

/// Workflows and monitors only wait; a worker has no limit for them.
const WAITING: u32 = 256;

/// The free places of workers that take tasks from an engine.
pub(super) struct Places(Vec<Worker>);

struct Worker {
    labels: Labels,
    free: HashMap<TaskClass, u32>,
}

impl Places {
    /// What waits in the hands of the engine has its places already.
    pub(super) async fn read(
        connection: &mut Connection,
        waiting: &HashMap<Window, u32>,
    ) -> Result<Self, Failure> {
        let running = running(connection).await?;
        let there = fleet::runners_about(connection).await?;
        let mut workers: Vec<Worker> = there
            .iter()
            .filter_map(|runner| Worker::of(runner, &running))
            .collect();
        // Those that can take the least are filled first.
        workers.sort_by_key(|worker| worker.labels.len());
        let mut places = Self(workers);
        for (window, count) in waiting {
            places.take(window, *count);
        }
        Ok(places)
    }

    /// How many tasks of a window can be begun at once.
    pub(super) fn left(&self, window: &Window) -> u32 {
        let free = self.0.iter().map(|worker| worker.free_for(window));
        free.fold(0, u32::saturating_add)
    }

    pub(super) fn take(&mut self, window: &Window, mut count: u32) {
        for worker in &mut self.0 {
            let taken = worker.free_for(window).min(count);
            if taken > 0 {
                worker
                    .free
                    .entry(window.1)
                    .and_modify(|free| *free -= taken);
                count -= taken;
            }
        }
    }
}

impl Worker {
    /// `None` for a process that takes nothing from an engine.
    fn of(runner: &FleetRunner, running: &Running) -> Option<Self> {
        let about = runner.about.as_ref()?;
        if !runner.takes_offers() {
            return None;
        }
        let free = |class, most: u32| {
            let used = running.get(&(runner.id.clone(), class));
            (
                class,
                most.saturating_sub(used.copied().unwrap_or_default()),
            )
        };
        Some(Self {
            labels: about.labels.clone(),
            free: HashMap::from([
                free(TaskClass::Agents, about.agents),
                free(TaskClass::Commands, about.shells),
                free(TaskClass::Waiting, WAITING),
            ]),
        })
    }

    fn free_for(&self, (labels, class): &Window) -> u32 {
        match self.labels.include(labels) {
            true => self.free.get(class).copied().unwrap_or_default(),
            false => 0,
        }
    }
}

impl FleetRunner {
    /// A worker that shows signs of life and takes tasks from an engine.
    pub(super) fn takes_offers(&self) -> bool {
        let is_worker = crate::RunnerId(self.id.clone()).is_worker();
        let about = self.about.as_ref();
        is_worker && !self.is_silent && about.is_some_and(|about| about.engine != LEASES)
    }
}

/// How many tasks of a class each runner has.
type Running = HashMap<(String, TaskClass), u32>;

async fn running(connection: &mut Connection) -> Result<Running, Failure> {
    let rows = engine::query(sql::RUNNING_BY_RUNNER)
        .fetch_all(connection)
        .await?;
    let mut running = Running::new();
    for row in &rows {
        let (runner, task_type, tasks) = read(row).map_err(damaged)?;
        let used = running.entry((runner, TaskClass::of(task_type)));
        let used = used.or_default();
        *used = used.saturating_add(tasks);
    }
    Ok(running)
}

fn read(row: &Row) -> Result<(String, TaskType, u32), String> {
    Ok((
        field(row, "lease_owner")?,
        field::<&str>(row, "task_type")?
            .parse()
            .map_err(message_of)?,
        u32::try_from(count(row, "tasks")?).unwrap_or(u32::MAX),
    ))
}
