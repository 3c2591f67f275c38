//! Following a pull request: what happens to it reaches the session that asked, each thing once.
//!
//! A subscription is one task that waits for news. Each attempt ends with some as its notification,
//! and the task is pending again at once, until the pull request is merged or closed. What was told
//! is a step on record, so the next attempt tells only what is new, in whichever process.
//!
//! Nothing is told twice and nothing is lost: news are recorded with the number of the attempt
//! before the attempt ends with them. A process that dies after that leaves them to the next runner
//! of the same attempt, which returns them without looking. A later attempt begins with what all
//! earlier ones have seen.

use std::{collections::HashSet, sync::Arc, time::Duration};

use codespar_protocol::{
    Backoff, PullRequestState, TaskId, TaskRecord, TaskSpec, TaskStatus, TaskType,
};
use codespar_pulls::{Activity, Forge, ForgeError};
use codespar_tasks::{
    Afterwards, Caller, Control, HubError, Notify, StepLedger, TaskExtra, TaskFilter, TaskHub,
    TaskOutcome, TaskStopReason,
};
use serde::{Deserialize, Serialize};

use crate::{DevSetup, Failure, FollowOrder, RepositoryRef};

/// How long it waits after the forge could not be asked, at most. The wait doubles with each
/// failure in a row, from the interval of the subscription.
const MOST_WAIT: Duration = Duration::from_secs(300);
/// How often the forge may fail in a row before the subscription ends with its words.
const MOST_FAILURES: u32 = 20;

/// The step that holds what was found last.
const NEWS: &str = "news";

/// What an attempt has found.
#[derive(Serialize, Deserialize)]
struct News {
    /// The attempt that tells it.
    attempt: u32,
    texts: Vec<String>,
    /// All that is known after it.
    seen: Vec<String>,
    /// More can happen.
    is_open: bool,
}

fn subject(order: &FollowOrder) -> String {
    let number = order.number;
    match &order.repository {
        RepositoryRef::GitHub { owner, name } => {
            format!("activity of pull request #{number} of {owner}/{name}")
        }
        RepositoryRef::Local { .. } => format!("activity of pull request #{number}"),
    }
}

/// Subscribes the caller's session. What has happened so far is not told. A second subscription of
/// the same session to the same pull request is the first one again. What exists now is put into
/// the order as seen, before the task begins, so that what happens between this call and its first
/// look is told.
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
    let id = TaskId::new(TaskType::LocalWorkflow);
    hub.create_builtin(
        caller,
        id,
        &subject(&order),
        TaskSpec::FollowPullRequest(order),
        TaskExtra::default(),
        Notify::Session,
    )
    .await
    .map_err(|error| broken(&error))
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

/// The session's subscription, if it has one. Of several, which races can make, the one created
/// last.
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

fn broken(error: &HubError) -> Failure {
    Failure::Broken(error.to_string())
}

/// Waits for news and ends with them. Completed with `Afterwards::Again` while the pull request is
/// open: the store records the notification and makes the task pending again in one transaction.
/// Any failure ends the subscription with its text.
pub(crate) async fn run(setup: &DevSetup, control: &Control) -> TaskOutcome {
    match wait_for_news(setup, control).await {
        Ok(news) => TaskOutcome {
            status: TaskStatus::Completed,
            result: Some(news.texts.join("\n")),
            error: None,
            afterwards: match news.is_open {
                true => Afterwards::Again,
                false => Afterwards::Over,
            },
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

/// Texts are redacted before they are recorded: they hold what anybody wrote on the pull request.
async fn wait_for_news(setup: &DevSetup, control: &Control) -> Result<News, Failure> {
    let TaskSpec::FollowPullRequest(mut order) = control.spec().map_err(Failure::Broken)?.clone()
    else {
        return Err(Failure::Broken(control.wrong_kind()));
    };
    let ledger = StepLedger::open(control).await?;
    let attempt = control.record.attempt;
    match ledger.known::<News>(NEWS)? {
        // On record before it is told: whoever takes over tells the same.
        Some(news) if news.attempt == attempt => return Ok(news),
        Some(news) => order.seen = news.seen,
        None => {}
    }
    let forge = setup
        .linker
        .forge(&order.repository)
        .await
        .map_err(Failure::Refused)?;
    let mut news = watch(&*forge, order, control).await?;
    for text in &mut news.texts {
        *text = control.redactor.redact(text).into_owned();
    }
    ledger.record(NEWS, &news).await?;
    Ok(news)
}

/// Looks until there is something new. Only outages and rate limits are waited out. Other errors, a
/// pull request that is gone or a token without access, would not go away.
async fn watch(forge: &dyn Forge, order: FollowOrder, control: &Control) -> Result<News, Failure> {
    let known: HashSet<&String> = order.seen.iter().collect();
    let interval = Duration::from_millis(order.interval_ms);
    let backoff = Backoff {
        first: interval,
        longest: MOST_WAIT,
    };
    let mut failures = 0;
    loop {
        let wait = match look(forge, order.number).await {
            Ok((all, state)) => {
                failures = 0;
                let fresh: Vec<&Activity> =
                    all.iter().filter(|one| !known.contains(&one.key)).collect();
                if !fresh.is_empty() || state != PullRequestState::Open {
                    return Ok(tell(&order, &all, &fresh, state, control));
                }
                interval
            }
            Err(error @ (ForgeError::Unavailable { .. } | ForgeError::RateLimited(_))) => {
                failures += 1;
                if failures > MOST_FAILURES {
                    return Err(error.into());
                }
                backoff.delay(failures + 1)
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

/// A pull request that was merged or closed without an activity of its own is told by its state.
/// Keys that were seen are kept also when the forge does not list them any more.
fn tell(
    order: &FollowOrder,
    all: &[Activity],
    fresh: &[&Activity],
    state: PullRequestState,
    control: &Control,
) -> News {
    let mut texts = vec![format!(
        "Subscription {}, pull request #{}:",
        control.record.task_id, order.number
    )];
    texts.extend(fresh.iter().map(|one| one.text.clone()));
    if fresh.is_empty() {
        texts.push(format!("pull request #{} is {state}", order.number));
    }
    let mut seen = order.seen.clone();
    for one in all {
        if !seen.contains(&one.key) {
            seen.push(one.key.clone());
        }
    }
    News {
        attempt: control.record.attempt,
        texts,
        seen,
        is_open: state == PullRequestState::Open,
    }
}
