//! The fleet as clients of this server see it: what belongs to other projects is counted and not
//! named.

use std::collections::BTreeMap;

use codespar_protocol::{Labels, TaskType};
use codespar_store::{FleetRunner, LimitScope, LimitUse, QueueDepth, StoreError};
use jiff::Timestamp;

use crate::{scope::Scope, state::Shared};

pub(crate) struct VisibleFleet {
    pub(crate) runners: Vec<VisibleRunner>,
    pub(crate) queues: Vec<VisibleQueue>,
    pub(crate) limits: Vec<LimitUse>,
}

pub(crate) struct VisibleRunner {
    /// It runs these tasks of projects of this server.
    pub(crate) runner: FleetRunner,
    /// How many it runs of other projects.
    pub(crate) others: u64,
}

pub(crate) struct VisibleQueue {
    pub(crate) task_type: TaskType,
    pub(crate) labels: Labels,
    /// None for all repositories together that are not of this server.
    pub(crate) repository: Option<String>,
    pub(crate) ready: u64,
    pub(crate) oldest_ready_at: Timestamp,
}

impl VisibleFleet {
    pub(crate) async fn now(state: &Shared) -> Result<Self, StoreError> {
        let report = state.store().fleet().await?;
        let mut runners = Vec::with_capacity(report.runners.len());
        for runner in report.runners {
            runners.push(VisibleRunner::of(runner, &state.scope).await?);
        }
        Ok(Self {
            runners,
            queues: visible_queues(report.queues, &state.scope),
            limits: visible_limits(report.limits, &state.scope),
        })
    }
}

impl VisibleRunner {
    async fn of(mut runner: FleetRunner, scope: &Scope) -> Result<Self, StoreError> {
        let mut others = 0;
        for mut task in std::mem::take(&mut runner.running) {
            if scope.includes_task(&task.task_id).await? {
                if let Some(name) = scope.repository_name(&task.repository) {
                    task.repository = name.to_owned();
                }
                runner.running.push(task);
            } else {
                others += 1;
            }
        }
        Ok(Self { runner, others })
    }
}

fn visible_queues(queues: Vec<QueueDepth>, scope: &Scope) -> Vec<VisibleQueue> {
    let mut visible: BTreeMap<(&str, Labels, Option<String>), VisibleQueue> = BTreeMap::new();
    for queue in queues {
        let repository = scope.repository_name(&queue.repository).map(str::to_owned);
        let key = (
            queue.task_type.as_str(),
            queue.labels.clone(),
            repository.clone(),
        );
        let sum = visible.entry(key).or_insert(VisibleQueue {
            task_type: queue.task_type,
            labels: queue.labels,
            repository,
            ready: 0,
            oldest_ready_at: queue.oldest_ready_at,
        });
        sum.ready += queue.ready;
        sum.oldest_ready_at = sum.oldest_ready_at.min(queue.oldest_ready_at);
    }
    visible.into_values().collect()
}

/// Limits of other repositories are left out.
pub(crate) fn visible_limits(limits: Vec<LimitUse>, scope: &Scope) -> Vec<LimitUse> {
    let visible = |mut one: LimitUse| {
        if one.limit.scope == LimitScope::Repository && !one.limit.name.is_empty() {
            one.limit.name = scope.repository_name(&one.limit.name)?.to_owned();
        }
        Some(one)
    };
    limits.into_iter().filter_map(visible).collect()
}
