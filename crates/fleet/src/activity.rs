//! The activity that runs one offer in a worker.
//!
//! It does no work itself: the dispatcher begins the task in the database and the scheduler runs the
//! attempt, as if a lease had been claimed. The activity waits for the end of it and sends heartbeats
//! meanwhile. Its result means nothing to anybody; what became of the task is in the database before
//! Temporal hears that the activity is over. So an answer that never arrives at Temporal costs one more
//! delivery, which finds nothing to do.
//!
//! The SDK cancels an activity for four reasons and names none of them: an operator asked for it, the
//! worker shuts down, no heartbeat got through for too long, the activity was ended by force. Only the
//! first and the last are about the task (`ActivityHost::pass_on`).

use std::{future::Future, sync::Arc, time::Duration};

use codespar_protocol::{TaskId, TaskType};
use codespar_store::TaskOffer;
use codespar_tasks::{Brought, Dispatcher, Scheduler};
use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};
use temporalio_client::{
    ActivityDescribeOptions, ActivityExecutionInfoLike as _, ActivityExecutionStatus, Client,
};
use temporalio_common::{ActivityDefinition, error::ApplicationFailure};
use temporalio_sdk::activities::{
    ActivityContext, ActivityDefinitions, ActivityError, ActivityImplementer, ExecutableActivity,
};

/// Between two heartbeats. A cancellation is heard of with the next.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Between two questions whether an activity was cancelled for good.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Temporal takes no delay for "as its policy says".
const AT_ONCE: Duration = Duration::from_millis(1);

/// What Temporal is told of a task. It is shown to operators and kept in Temporal's records, so it
/// holds ids only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OfferInput {
    task: TaskId,
    number: u64,
    task_type: TaskType,
}

impl From<&TaskOffer> for OfferInput {
    fn from(offer: &TaskOffer) -> Self {
        Self {
            task: offer.task.clone(),
            number: offer.number,
            task_type: offer.task_type,
        }
    }
}

/// The type of the activity.
pub(crate) struct RunTask;

impl ActivityDefinition for RunTask {
    type Input = OfferInput;
    type Output = ();

    fn name(&self) -> &str {
        "codespar-task"
    }
}

/// What activities of this process work with.
pub(crate) struct ActivityHost {
    pub(crate) client: Client,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) dispatcher: Arc<Dispatcher>,
}

/// One host for the workers of all queues.
pub(crate) struct SharedHost(pub(crate) Arc<ActivityHost>);

impl ActivityImplementer for SharedHost {
    fn register_all(self: Arc<Self>, definitions: &mut ActivityDefinitions) {
        definitions.register_activity::<RunTask>(self);
    }
}

impl ExecutableActivity for RunTask {
    type Implementer = SharedHost;
    const REQUIRES_INSTANCE: bool = true;

    fn definition() -> Self {
        Self
    }

    fn execute(
        host: Option<Arc<SharedHost>>,
        context: ActivityContext,
        input: OfferInput,
    ) -> BoxFuture<'static, Result<(), ActivityError>> {
        async move {
            match host {
                Some(host) => host.0.run(&context, input).await,
                None => Err(again(Duration::from_secs(1))),
            }
        }
        .boxed()
    }
}

impl ActivityHost {
    async fn run(&self, context: &ActivityContext, input: OfferInput) -> Result<(), ActivityError> {
        let OfferInput {
            task,
            number,
            task_type,
        } = input;
        let attempt = self.dispatcher.bring(&task, number, task_type);
        match self.with_heartbeats(context, &task, attempt).await {
            Brought::Over => Ok(()),
            Brought::Again(pause) => Err(again(pause)),
        }
    }

    /// Until the attempt is over. A cancellation is passed on to the task and changes nothing here:
    /// the task ends by it, or does not.
    async fn with_heartbeats(
        &self,
        context: &ActivityContext,
        task: &TaskId,
        attempt: impl Future<Output = Brought>,
    ) -> Brought {
        let mut beat = tokio::time::interval(HEARTBEAT);
        let (mut is_passed_on, passing_on) = (false, self.pass_on(context, task));
        tokio::pin!(attempt, passing_on);
        loop {
            tokio::select! {
                brought = &mut attempt => return brought,
                _ = beat.tick() => drop(context.record_heartbeat(()).await),
                () = &mut passing_on, if !is_passed_on => is_passed_on = true,
            }
        }
    }

    /// An activity is cancelled when an operator says so, but also when its worker leaves and when the
    /// server was out of reach for too long. Only the first is meant for the task. The SDK tells once,
    /// so after a cancellation of another kind, or while it is not known which, Temporal is asked again
    /// and again. Returns when the task was told.
    async fn pass_on(&self, context: &ActivityContext, task: &TaskId) {
        context.cancelled().await;
        loop {
            if !self.scheduler.leaving().is_cancelled() {
                let asked = cancellation(&self.client, &context.info().activity_id).await;
                if let Ok(Asked::Cancelled(reason)) = asked
                    && self.scheduler.ask_to_stop(task, &reason).await.is_ok()
                {
                    return;
                }
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }
}

/// How Temporal has an activity.
pub(crate) enum Asked {
    /// It waits, or a worker has it.
    Open,
    /// It is over and was not cancelled.
    Over,
    /// An operator cancelled it, or ended it by force.
    Cancelled(String),
}

/// Asks Temporal for the latest activity of this id.
pub(crate) async fn cancellation(client: &Client, id: &str) -> Result<Asked, String> {
    let handle = client.get_untyped_activity_handle(id.to_owned(), None::<String>);
    let options = ActivityDescribeOptions::builder().build();
    let described = handle.describe(options).await;
    let activity = described.map_err(|error| error.to_string())?;
    let reason = match (activity.canceled_reason(), activity.status()) {
        (Some(reason), _) => reason.to_owned(),
        (None, ActivityExecutionStatus::Terminated | ActivityExecutionStatus::Canceled) => {
            "its activity was ended".to_owned()
        }
        (None, ActivityExecutionStatus::Running) => return Ok(Asked::Open),
        _ => return Ok(Asked::Over),
    };
    Ok(Asked::Cancelled(format!("cancelled in Temporal: {reason}")))
}

/// To be brought again, here or elsewhere. Attempts of the activity are not counted; those of the task
/// are, in the database.
fn again(pause: Duration) -> ActivityError {
    let reason = std::io::Error::other("to be brought again");
    ApplicationFailure::builder(reason)
        .type_name("BringAgain".to_owned())
        .next_retry_delay(pause.max(AT_ONCE))
        .build()
        .into()
}
