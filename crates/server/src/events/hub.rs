//! One reader of changes and of what agents do, for all clients.
//!
//! Reading, redacting and rendering are done once for a change, however many clients follow. The
//! hub never waits for a client: its queue is bounded, and who falls behind is told that there is a
//! gap and reads the store. Events of agents, which are on no record, are dropped instead when
//! there are too many.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use codespar_protocol::{Event, SessionId, TaskId};
use codespar_runtime::Runtime;
use codespar_store::{StoreChange, StoreError};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::render::{self, LiveEvent};
use crate::scope::Scope;

/// Rendered events that are kept for slow clients, for all of them together.
const KEPT: usize = 256;
/// Events of agents that wait to be rendered; more are dropped, for the transcript has them.
const WAITING: usize = 1024;

/// What clients hear.
#[derive(Debug, Clone)]
pub(super) enum Heard {
    Event(Arc<LiveEvent>),
    /// Changes were missed; the database has them.
    Gap,
}

/// Takes secrets out of what is sent.
pub(super) type Redact = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// One for a server. Dropping it ends the subscription to the events of agents.
pub(crate) struct EventHub {
    sender: broadcast::Sender<Heard>,
    pub(super) scope: Arc<Scope>,
    pub(super) redact: Redact,
    pub(super) clients: AtomicUsize,
    /// Heard for as long as the server lives.
    _subscription: Box<dyn std::any::Any + Send + Sync>,
}

/// An event of an agent that waits to be rendered.
struct Said {
    session: Option<SessionId>,
    task: Option<TaskId>,
    event: Event,
}

impl EventHub {
    /// Begins to read. Nothing is rendered while nobody listens.
    pub(crate) fn start(
        runtime: &Arc<Runtime>,
        scope: Arc<Scope>,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        let sender = broadcast::channel(KEPT).0;
        let (say, said) = mpsc::channel(WAITING);
        let listeners = sender.clone();
        let subscription = runtime.events().subscribe(Arc::new(move |heard| {
            if listeners.receiver_count() > 0 && render::is_shown(heard.event) {
                let said = Said {
                    session: heard.session,
                    task: heard.task.cloned(),
                    event: heard.event.clone(),
                };
                // A full queue must not hold the agent up.
                let _ = say.try_send(said);
            }
        }));
        let redactor = runtime.redactor().clone();
        let hub = Arc::new(Self {
            sender,
            scope,
            redact: Arc::new(move |value: &mut Value| redactor.redact_json(value)),
            clients: AtomicUsize::new(0),
            _subscription: Box::new(subscription),
        });
        tokio::spawn(hub.clone().read(runtime.clone(), said, stopping));
        hub
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Heard> {
        self.sender.subscribe()
    }

    async fn read(
        self: Arc<Self>,
        runtime: Arc<Runtime>,
        mut said: mpsc::Receiver<Said>,
        stopping: CancellationToken,
    ) {
        let mut changes = match runtime.changes().follow().await {
            Ok(changes) => changes,
            Err(error) => return tracing::error!(%error, "changes cannot be followed"),
        };
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                change = changes.next() => self.tell(&runtime, change).await,
                Some(said) = said.recv() => self.tell_said(said).await,
            }
        }
    }

    async fn tell(&self, runtime: &Runtime, change: Option<StoreChange>) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        let heard = match change {
            None => Heard::Gap,
            Some(change) => {
                let rendered = self.render(runtime, &change).await;
                match rendered {
                    Ok(Some(event)) => Heard::Event(Arc::new(event)),
                    Ok(None) => return,
                    Err(error) => {
                        tracing::warn!(%error, "a change could not be read");
                        Heard::Gap
                    }
                }
            }
        };
        let _ = self.sender.send(heard);
    }

    pub(super) async fn render(
        &self,
        runtime: &Runtime,
        change: &StoreChange,
    ) -> Result<Option<LiveEvent>, StoreError> {
        render::change(&**runtime.store(), &self.scope, &*self.redact, change).await
    }

    async fn tell_said(&self, said: Said) {
        let Said {
            session,
            mut task,
            event,
        } = said;
        // A conversation tells its task; a task without a conversation tells its project itself.
        let placed = match session {
            Some(session) => self.scope.place(session).await.ok().flatten(),
            None => None,
        };
        let is_here = match (&placed, &task) {
            (Some(_), _) => true,
            (None, Some(task)) => self.scope.includes_task(task).await.unwrap_or(false),
            (None, None) => false,
        };
        if !is_here {
            return;
        }
        task = task.or_else(|| placed.and_then(|placed| placed.task));
        if let Some(event) = render::agent_event(session, task, &event, &*self.redact) {
            let _ = self.sender.send(Heard::Event(Arc::new(event)));
        }
    }
}
