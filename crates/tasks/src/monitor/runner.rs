//! Watches one server until its time is up, it has told enough, it is gone for good, or somebody
//! stops it.
//!
//! ```text
//! settle → subscribe → wait for events, the end, checks ──trouble──▶ down → reconnect → up ─┐
//!                      ▲                                                                    │
//!                      └────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The server is the one that the agents of the project share: a call of an agent may connect it
//! anew, which the monitor sees by the number of the connection and reports. Events that come
//! between two connections are lost, and nothing claims otherwise.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_mcp::{Endpoint, McpServer, McpStatus, McpSubscription};
use codespar_policy::Redactor;
use codespar_protocol::{Backoff, Cost, Event, MonitorSpec, TaskSpec, TaskStatus, Usage};
use jiff::Timestamp;
use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant, sleep, sleep_until},
};

use super::{ServerSource, journal::Journal};
use crate::{
    StepLedger, TaskHub,
    runner::{Control, Runner, TaskOutcome},
};

const RECONNECT: Backoff = Backoff {
    first: Duration::from_millis(250),
    longest: Duration::from_secs(30),
};
/// A program that does not start so often in a row will not start. The pauses add up to about eight
/// seconds.
const PROGRAM_TRIES: u32 = 5;
/// A server elsewhere may be down for some minutes. The pauses add up to about four minutes.
const ADDRESS_TRIES: u32 = 14;
/// A monitor without an end.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

pub struct MonitorRunner {
    /// Where servers are found.
    pub servers: Arc<dyn ServerSource>,
    /// Who listens to tasks of this process.
    pub hub: Arc<TaskHub>,
    /// Takes secrets out of what servers say.
    pub redactor: Arc<Redactor>,
}

/// Why watching ends.
enum End {
    /// As ordered.
    Done,
    /// Somebody stopped it.
    Stopped,
    /// The server does not come back.
    Gone(String),
}

#[async_trait]
impl Runner for MonitorRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        let outcome = self.watch(&control).await;
        self.hub.forget_listener(&control.record.task_id);
        outcome.unwrap_or_else(TaskOutcome::failed)
    }
}

impl MonitorRunner {
    /// A server of a repository that nobody has approved is not started: the task fails and says
    /// so. Cancelling during `settle` is noticed at the first wait after it.
    async fn watch(&self, control: &Control) -> Result<TaskOutcome, String> {
        control.authority()?;
        let TaskSpec::Monitor(order) = control.spec()?.clone() else {
            return Err(control.wrong_kind());
        };
        let server = self.servers.server(&order.root, &order.server).await?;
        let status = tokio::select! {
            status = server.settle() => status,
            () = control.cancel.cancelled() => McpStatus::Pending,
        };
        if status == McpStatus::NeedsApproval {
            let error = codespar_mcp::McpError::NeedsApproval;
            return Err(format!("the MCP server `{}`: {error}", order.server));
        }
        let ledger = StepLedger::open(control)
            .await
            .map_err(|error| error.to_string())?;
        let mut watch = Watch {
            control,
            journal: Journal::open(&control.output, &self.redactor, ledger)?,
            hub: &self.hub,
            generation: server.generation(),
            subscription: None,
            until: until(control, &order),
            server,
            order,
        };
        let end = watch.follow().await;
        let outcome = conclude(&watch, end);
        watch.journal.finish();
        Ok(outcome)
    }
}

/// The clock runs from the first start, also when another process goes on with it. A task without
/// `duration_s` gets a year.
fn until(control: &Control, order: &MonitorSpec) -> Instant {
    let Some(seconds) = order.duration_s else {
        return Instant::now() + FOREVER;
    };
    let began = control.record.started_at.unwrap_or_else(Timestamp::now);
    let passed = Timestamp::now().duration_since(began);
    let passed = Duration::try_from(passed).unwrap_or_default();
    Instant::now()
        + Duration::from_secs(seconds)
            .saturating_sub(passed)
            .min(FOREVER)
}

struct Watch<'a> {
    control: &'a Control,
    order: MonitorSpec,
    server: Arc<McpServer>,
    journal: Journal,
    hub: &'a TaskHub,
    /// Which connection is watched.
    generation: u64,
    subscription: Option<McpSubscription>,
    until: Instant,
}

impl Watch<'_> {
    /// The receiver is subscribed before the connection is used, so no event of it is missed. One
    /// that falls behind by more than the channel holds is told as an event of its own.
    async fn follow(&mut self) -> End {
        let mut events = self.server.events();
        if self.control.was_lost() {
            self.journal
                .note("taken up again; events in between are not known");
        }
        // What ends it also ends the wait for a server that does not answer.
        if let Err(end) = self.begin().await {
            return end;
        }
        let interval = Duration::from_secs(self.order.interval_s);
        let mut next_check = Instant::now() + interval;
        loop {
            if self.is_enough() {
                return End::Done;
            }
            let trouble = tokio::select! {
                event = events.recv() => {
                    match event {
                        Ok(event) => self.tell(&event.to_string()).await,
                        Err(RecvError::Lagged(count)) => self.tell(&format!("missed: {count} events")).await,
                        Err(RecvError::Closed) => return End::Gone("it was let go of".to_owned()),
                    }
                    None
                }
                () = self.server.lost(self.generation) => self.loss(),
                () = sleep_until(next_check) => {
                    next_check = Instant::now() + interval;
                    tokio::select! {
                        answered = self.server.check() => answered.err(),
                        () = self.control.cancel.cancelled() => return End::Stopped,
                    }
                }
                () = sleep_until(self.until) => return End::Done,
                () = self.control.cancel.cancelled() => return End::Stopped,
            };
            if let Some(reason) = trouble {
                self.tell(&format!("down: {reason}")).await;
                if self.is_enough() {
                    return End::Done;
                }
                if let Err(end) = self.bring_back().await {
                    return end;
                }
                self.tell("up: connected anew").await;
                next_check = Instant::now() + interval;
            }
        }
    }

    /// What became of the connection, once it is lost.
    fn loss(&self) -> Option<String> {
        if self.server.is_gone() {
            Some("it has ended".to_owned())
        } else if self.server.generation() != self.generation {
            Some("it had ended and was connected anew by a call".to_owned())
        } else {
            None
        }
    }

    /// A server that is down at the start is treated like one that goes down later.
    async fn begin(&mut self) -> Result<(), End> {
        if let McpStatus::Failed(error) = self.server.status() {
            self.tell(&format!("down: {error}")).await;
            self.bring_back().await?;
            self.tell("up: connected").await;
            return Ok(());
        }
        match self.subscribe().await {
            Ok(()) => Ok(()),
            Err(_) if self.control.cancel.is_cancelled() => Err(End::Stopped),
            Err(error) => Err(End::Gone(error)),
        }
    }

    /// The generation is read before the request: if the connection is replaced meanwhile, it counts
    /// as lost at the next wait.
    async fn subscribe(&mut self) -> Result<(), String> {
        self.generation = self.server.generation();
        let subscription = tokio::select! {
            asked = self.server.subscribe(&self.order.resources) => asked?,
            () = self.control.cancel.cancelled() => return Err("stopped".to_owned()),
        };
        let resources = match subscription.resources.as_slice() {
            [] => "no resources".to_owned(),
            uris => uris.join(", "),
        };
        let server = &self.order.server;
        self.journal
            .note(&format!("watching `{server}`: {resources}"));
        self.subscription = Some(subscription);
        Ok(())
    }

    /// Connects and subscribes anew, with longer and longer pauses between the tries. No pause if
    /// somebody else has connected it already. `Err` carries how the monitor ends: gone after the
    /// last try, done when its time is up, stopped when it is told to.
    async fn bring_back(&mut self) -> Result<(), End> {
        self.subscription = None;
        let tries = match self.server.config().endpoint {
            Endpoint::Program { .. } => PROGRAM_TRIES,
            Endpoint::Http { .. } | Endpoint::Client => ADDRESS_TRIES,
        };
        let mut error = String::new();
        for attempt in 1..=tries {
            let (server, lost) = (self.server.clone(), self.generation);
            let is_back = || !server.is_gone() && server.generation() != lost;
            let connected = async {
                if is_back() {
                    return Ok(());
                }
                sleep(RECONNECT.delay(attempt)).await;
                // A call may have connected it during the pause; its connection is not replaced.
                match is_back() {
                    true => Ok(()),
                    false => server.reconnect().await,
                }
            };
            let connected = tokio::select! {
                connected = connected => connected,
                () = sleep_until(self.until) => return Err(End::Done),
                () = self.control.cancel.cancelled() => return Err(End::Stopped),
            };
            let watched = match connected {
                Ok(()) => self.subscribe().await,
                Err(error) => Err(error.to_string()),
            };
            match watched {
                Ok(()) => return Ok(()),
                Err(_) if self.control.cancel.is_cancelled() => return Err(End::Stopped),
                Err(message) => error = message,
            }
        }
        self.tell(&format!("gone: {tries} tries to connect failed"))
            .await;
        Err(End::Gone(format!("it does not come back: {error}")))
    }

    /// Events of earlier processes count.
    fn is_enough(&self) -> bool {
        let limit = self.order.max_events;
        limit.is_some_and(|limit| self.journal.count() >= limit)
    }

    async fn tell(&mut self, event: &str) {
        let line = self.journal.event(event).await;
        let id = &self.control.record.task_id;
        let progress = Event::TaskProgress {
            task_id: id.clone(),
            tool_uses: 0,
            total_tokens: 0,
            duration_ms: 0,
            summary: line
                .split_once(' ')
                .map_or(line.clone(), |(_, rest)| rest.to_owned()),
        };
        self.hub.publish(None, id, progress);
    }
}

/// A monitor that is stopped still has a summary of what it saw.
fn conclude(watch: &Watch<'_>, end: End) -> TaskOutcome {
    let (status, error) = match end {
        End::Done => (TaskStatus::Completed, None),
        End::Gone(error) => {
            let server = &watch.order.server;
            (
                TaskStatus::Failed,
                Some(format!("the MCP server `{server}`: {error}")),
            )
        }
        End::Stopped => (TaskStatus::Killed, Some(watch.control.reason_to_end())),
    };
    TaskOutcome {
        status,
        result: Some(watch.journal.summary()),
        error,
        exit_code: None,
        usage: Usage::default(),
        cost: Cost::default(),
        ..TaskOutcome::failed("")
    }
}
