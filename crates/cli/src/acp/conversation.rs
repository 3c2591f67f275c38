//! One session of the connection: a task that takes prompts one after the other.
//!
//! ```text
//! idle          a prompt │ news of a task: a turn of its own │ the session is closed
//! in a prompt   it is answered │ cancelled by the client │ the connection ends
//! ```
//!
//! A cancellation that comes before its prompt has begun still counts for it: the client sees one
//! order of messages, and so do we. The end of a prompt is told once, whatever happened: answered,
//! cancelled, or refused.

use std::sync::Arc;

use agent_client_protocol::{Error, ErrorCode, v1::schema::StopReason};
use codespar_policy::Mode;
use codespar_protocol::{
    Outcome, ReachedLimit, RunResult, SessionId, StopReason as ModelStopReason,
};
use codespar_runtime::Project;
use codespar_tui::UserAction;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{printing::CURRENT, prompt::Prompted, sessions::failure, view::AcpView};
use crate::{error::CommandError, session::HostedSession};

pub(super) type Answered = Result<StopReason, Error>;

/// A prompt on its way to the session.
struct Order {
    prompted: Prompted,
    cancel: CancellationToken,
    done: oneshot::Sender<Answered>,
}

/// A handle to the task.
pub(super) struct Conversation {
    pub(super) id: SessionId,
    pub(super) project: Arc<Project>,
    pub(super) view: Arc<AcpView>,
    orders: mpsc::UnboundedSender<Order>,
    actions: mpsc::UnboundedSender<UserAction>,
    /// The prompt under way.
    current: Arc<Mutex<Option<CancellationToken>>>,
    /// Ends this session alone.
    ending: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Conversation {
    pub(super) fn start(
        session: HostedSession,
        view: Arc<AcpView>,
        ending: CancellationToken,
    ) -> Self {
        let (orders, ordered) = mpsc::unbounded_channel();
        let current = Arc::default();
        let (id, project) = (session.id(), session.project().clone());
        let actions = session.actions();
        let worker = Worker {
            session,
            view: view.clone(),
            current: Arc::clone(&current),
            ending: ending.clone(),
        };
        let task = tokio::task::spawn_local(CURRENT.scope(view.clone(), worker.run(ordered)));
        Self {
            id,
            project,
            view,
            orders,
            actions,
            current,
            ending,
            task: Mutex::new(Some(task)),
        }
    }

    /// One at a time: a client waits for the end of a prompt, or cancels it.
    pub(super) fn prompt(&self, prompted: Prompted) -> Result<oneshot::Receiver<Answered>, Error> {
        let mut current = self.current.lock();
        if current.is_some() {
            return Err(Error::new(
                ErrorCode::INVALID_REQUEST,
                "a prompt is under way in this session; cancel it or wait for its end",
            ));
        }
        let cancel = CancellationToken::new();
        let (done, answered) = oneshot::channel();
        let order = Order {
            prompted,
            cancel: cancel.clone(),
            done,
        };
        if self.orders.send(order).is_err() {
            return Err(failure(&CommandError::Failed(
                "the session has ended".to_owned(),
            )));
        }
        *current = Some(cancel);
        Ok(answered)
    }

    /// Stops what is under way. The mark comes first: a prompt that has not begun yet finds it.
    pub(super) fn cancel(&self) {
        if let Some(cancel) = &*self.current.lock() {
            cancel.cancel();
        }
        let _ = self.actions.send(UserAction::Interrupt);
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        self.view.mode_was_set(mode.name());
        self.project.mode.set(mode);
    }

    /// Stops it and waits until it has let go of the session.
    pub(super) async fn end(&self) {
        self.view.end();
        self.ending.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

struct Worker {
    session: HostedSession,
    view: Arc<AcpView>,
    current: Arc<Mutex<Option<CancellationToken>>>,
    ending: CancellationToken,
}

impl Worker {
    async fn run(mut self, mut ordered: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                biased;
                () = self.ending.cancelled() => break,
                order = ordered.recv() => match order {
                    Some(order) => self.answer(order).await,
                    None => break,
                },
                () = self.session.news() => self.session.tell_news().await,
            }
        }
        self.view.end();
        self.session.end().await;
    }

    async fn answer(&mut self, order: Order) {
        let Order {
            prompted,
            cancel,
            done,
        } = order;
        self.session.forget_interruptions();
        let answered = match cancel.is_cancelled() {
            true => Ok(StopReason::Cancelled),
            false => {
                self.view.begin_prompt(prompted.attachments);
                let ended = self.session.prompt(prompted.text).await;
                self.outcome(ended, &cancel)
            }
        };
        *self.current.lock() = None;
        // The client may be gone.
        let _ = done.send(answered);
    }

    /// An error of a prompt that was cancelled is the cancellation.
    fn outcome(&self, ended: Result<(), CommandError>, cancel: &CancellationToken) -> Answered {
        let result = self.view.take_result();
        if cancel.is_cancelled() || self.ending.is_cancelled() {
            return Ok(StopReason::Cancelled);
        }
        ended.map_err(|error| failure(&error))?;
        result.as_ref().map_or(Ok(StopReason::EndTurn), stop_reason)
    }
}

/// Why the run ended, in the words of the protocol. What failed is an error with its text.
fn stop_reason(result: &RunResult) -> Answered {
    match result {
        _ if result.interrupted => Ok(StopReason::Cancelled),
        RunResult {
            limit: Some(ReachedLimit::Turns),
            ..
        } => Ok(StopReason::MaxTurnRequests),
        RunResult {
            outcome: Outcome::Success,
            stop_reason,
            ..
        } => Ok(match stop_reason {
            Some(ModelStopReason::MaxTokens) => StopReason::MaxTokens,
            Some(ModelStopReason::Refusal) => StopReason::Refusal,
            _ => StopReason::EndTurn,
        }),
        _ => Err(failure(&CommandError::Failed(result.result.clone()))),
    }
}
