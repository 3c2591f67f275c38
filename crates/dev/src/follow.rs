//! Following a pull request: what happens to it reaches the session that asked, each thing once.
//!
//! A subscription is a task that waits for news and ends with them as its notification. Before it
//! ends it leaves a successor that knows what was told.

use std::{collections::HashSet, sync::Arc, time::Duration};

use codespar_protocol::{PullRequestState, TaskId, TaskRecord, TaskSpec, TaskStatus, TaskType};
use codespar_pulls::{Activity, Forge, ForgeError};
use codespar_tasks::{
    Caller, Control, HubError, Notify, StepLedger, StoreError, TaskExtra, TaskFilter, TaskHub,
    TaskOutcome, TaskStopReason,
};
use serde::{Deserialize, Serialize};

use crate::{DevSetup, Failure, FollowOrder, RepositoryRef};

/// How long it waits after the forge could not be asked, at most.
const MOST_WAIT: Duration = Duration::from_secs(300);
/// How often the forge may fail in a row before the subscription ends with its words.
const MOST_FAILURES: u32 = 20;

/// News, and the task that waits for the next.
#[derive(Serialize, Deserialize)]
struct News {
    texts: Vec<String>,
    /// None once nothing more can happen.
    next: Option<(TaskId, FollowOrder)>,
}

fn subject(order: &FollowOrder) -> String {
    format!("activity of pull request #{}", order.number)
}

/// Subscribes the caller's session. What has happened so far is not told.
pub async fn subscribe(
    hub: &Arc<TaskHub>,
    caller: &Caller,
    forge: &dyn Forge,
    repository: RepositoryRef,
    number: u64,
    interval: Duration,
) -> Result<TaskRecord, Failure> {
    let pull = forge.pull_request(number).await?;
    if pull.state != PullRequestState::Open {
        return Err(Failure::Refused(format!(
            "pull request #{number} is {}; nothing more happens to it",
            pull.state
        )));
    }
    if let Some(task) = subscription(hub, caller, &repository, number).await? {
        return Ok(task);
    }
    let seen = forge.activity(number).await?;
    let order = FollowOrder {
        repository,
        number,
        seen: seen.into_iter().map(|activity| activity.key).collect(),
        interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
    };
    create(hub, caller, TaskId::new(TaskType::LocalWorkflow), &order).await
}

/// Ends the session's subscription. `None` when there is none.
pub async fn unsubscribe(
    hub: &Arc<TaskHub>,
    caller: &Caller,
    repository: &RepositoryRef,
    number: u64,
) -> Result<Option<TaskRecord>, Failure> {
    match subscription(hub, caller, repository, number).await? {
        Some(task) => {
            let stopped = hub.stop(&task.task_id, "unsubscribed").await;
            Ok(Some(stopped.map_err(|error| broken(&error))?))
        }
        None => Ok(None),
    }
}

/// The session's subscription, if it has one.
async fn subscription(
    hub: &Arc<TaskHub>,
    caller: &Caller,
    repository: &RepositoryRef,
    number: u64,
) -> Result<Option<TaskRecord>, Failure> {
    let filter = TaskFilter {
        session_id: Some(caller.session),
        task_type: Some(TaskType::LocalWorkflow),
        ..TaskFilter::default()
    };
    let tasks = hub.store().tasks(filter).await?;
    Ok(tasks.into_iter().rev().find(|task| {
        !task.status.is_final()
            && matches!(&task.spec, Some(TaskSpec::FollowPullRequest(order))
                if order.number == number && order.repository == *repository)
    }))
}

async fn create(
    hub: &Arc<TaskHub>,
    caller: &Caller,
    id: TaskId,
    order: &FollowOrder,
) -> Result<TaskRecord, Failure> {
    hub.create_builtin(
        caller,
        id,
        &subject(order),
        TaskSpec::FollowPullRequest(order.clone()),
        TaskExtra::default(),
        Notify::Session,
    )
    .await
    .map_err(|error| broken(&error))
}

fn broken(error: &HubError) -> Failure {
    Failure::Broken(error.to_string())
}

/// Waits for news and ends with them.
pub(crate) async fn run(setup: &DevSetup, hub: &Arc<TaskHub>, control: &Control) -> TaskOutcome {
    match wait_for_news(setup, hub, control).await {
        Ok(texts) => TaskOutcome {
            status: TaskStatus::Completed,
            result: Some(texts.join("\n")),
            error: None,
            ..TaskOutcome::failed("")
        },
        Err(Failure::Stopped) => {
            let reason = match &*control.stop_reason.lock() {
                Some(TaskStopReason::Asked(reason)) => reason.clone(),
                _ => "the process that ran it ended".to_owned(),
            };
            TaskOutcome {
                status: TaskStatus::Killed,
                ..TaskOutcome::failed(reason)
            }
        }
        Err(failure) => TaskOutcome::failed(failure.to_string()),
    }
}

async fn wait_for_news(
    setup: &DevSetup,
    hub: &Arc<TaskHub>,
    control: &Control,
) -> Result<Vec<String>, Failure> {
    let authority = control.authority().map_err(Failure::Broken)?.clone();
    let ledger = StepLedger::open(control).await?;
    // On record before it is told: whoever takes over tells the same.
    let news: News = ledger
        .once("news", || async {
            let spec = control.spec().map_err(Failure::Broken)?.clone();
            let TaskSpec::FollowPullRequest(order) = spec else {
                return Err(Failure::Broken(control.wrong_kind()));
            };
            let forge = setup
                .linker
                .forge(&order.repository)
                .await
                .map_err(Failure::Refused)?;
            let mut news = watch(&*forge, order, control).await?;
            for text in &mut news.texts {
                *text = control.redactor.redact(text).into_owned();
            }
            Ok(news)
        })
        .await?;
    if let (Some((next, order)), Some(session)) = (&news.next, control.record.session_id) {
        let exists = match control.store.task(next).await {
            Ok(_) => true,
            Err(StoreError::NoSuchTask { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        if !exists {
            let caller = Caller {
                session,
                task: None,
                depth: 0,
                sink: Arc::new(|_| {}),
                root: authority.project_root.clone(),
                authority: Arc::new(move || authority.clone()),
            };
            create(hub, &caller, next.clone(), order).await?;
        }
    }
    Ok(news.texts)
}

/// Looks until there is something new.
async fn watch(forge: &dyn Forge, order: FollowOrder, control: &Control) -> Result<News, Failure> {
    let known: HashSet<&String> = order.seen.iter().collect();
    let interval = Duration::from_millis(order.interval_ms);
    let mut failures = 0;
    loop {
        let wait = match look(forge, order.number).await {
            Ok((all, state)) => {
                failures = 0;
                let fresh: Vec<&Activity> =
                    all.iter().filter(|one| !known.contains(&one.key)).collect();
                if !fresh.is_empty() || state != PullRequestState::Open {
                    return Ok(tell(&order, &all, &fresh, state));
                }
                interval
            }
            Err(error @ (ForgeError::Unavailable { .. } | ForgeError::RateLimited(_))) => {
                failures += 1;
                if failures > MOST_FAILURES {
                    return Err(error.into());
                }
                (interval * 2_u32.saturating_pow(failures.min(8))).min(MOST_WAIT)
            }
            Err(error) => return Err(error.into()),
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = control.cancel.cancelled() => return Err(Failure::Stopped),
        }
    }
}

async fn look(
    forge: &dyn Forge,
    number: u64,
) -> Result<(Vec<Activity>, PullRequestState), ForgeError> {
    let activity = forge.activity(number).await?;
    Ok((activity, forge.pull_request(number).await?.state))
}

fn tell(
    order: &FollowOrder,
    all: &[Activity],
    fresh: &[&Activity],
    state: PullRequestState,
) -> News {
    let mut texts: Vec<String> = fresh.iter().map(|one| one.text.clone()).collect();
    if texts.is_empty() {
        texts.push(format!("pull request #{} is {state}", order.number));
    }
    let mut seen = order.seen.clone();
    for one in all {
        if !seen.contains(&one.key) {
            seen.push(one.key.clone());
        }
    }
    let next = (state == PullRequestState::Open).then(|| {
        let order = FollowOrder {
            seen,
            ..order.clone()
        };
        (TaskId::new(TaskType::LocalWorkflow), order)
    });
    News { texts, next }
}
