//! Answers the requests of one connection after another.
//!
//! A connection is a loop: read a request, decide on a plan, play it, and go on or close as the
//! plan ends. Connections share a `Room` and nothing else. The decision is made at once, without
//! waiting, so two requests that come together do not wait for each other.
//!
//! What is decided, in this order: too long, not readable, against the rules of the API, no turn
//! for it, the fault of this attempt, the turn.

use std::{
    collections::HashMap,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_protocol::StopReason;
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::{
    Conversation, Fault, RequestCapture, Script, Turn, Validation,
    answer::Wire,
    anthropic_request::MessagesRequest,
    anthropic_rules,
    asked::{Asked, Refused, digest},
    capture::Kept,
    gate::LOOK,
    http::{Connection, Gone, Request},
    openai_request::ChatRequest,
    plan::{Ending, Plan, Step, ping},
};

const BETWEEN_PINGS: Duration = Duration::from_millis(20);

/// Takes one line for each request.
pub type Log = Box<dyn Fn(&str) + Send + Sync>;

/// What all connections share.
pub(crate) struct Room {
    pub(crate) script: Script,
    pub(crate) capture: RequestCapture,
    pub(crate) log: Option<Log>,
    pub(crate) kept: Mutex<Kept>,
    pub(crate) counts: watch::Sender<Counts>,
    /// How often a turn with faults was tried: by conversation, index and digest of the first user
    /// message.
    attempts: Mutex<HashMap<(String, usize, u64), usize>>,
    started: Instant,
}

/// Watched by those who wait; `dropped` counts answers that the client broke off.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) dropped: u64,
}

/// A turn chosen for a request, with the fault it meets this time.
struct Chosen {
    conversation: String,
    turn: Turn,
    fault: Option<Fault>,
}

impl Room {
    pub(crate) fn new(script: Script, capture: RequestCapture, log: Option<Log>) -> Self {
        Self {
            script,
            capture,
            log,
            kept: Mutex::default(),
            counts: watch::Sender::new(Counts::default()),
            attempts: Mutex::default(),
            started: Instant::now(),
        }
    }

    /// Counts and keeps the request, and decides its answer.
    fn receive(&self, request: &Request) -> Plan {
        let at = self.started.elapsed();
        let order = self.kept.lock().add(self.capture, at, request);
        self.counts.send_modify(|counts| counts.requests += 1);
        let path = request.path.split('?').next().unwrap_or_default();
        let wire = match path {
            "/v1/chat/completions" => Wire::OpenAi,
            _ => Wire::Anthropic,
        };
        let decided = match (request.method.as_str(), path) {
            ("POST", "/v1/messages" | "/v1/chat/completions") => self.decide(wire, request),
            (method, path) => Err(Refused {
                status: 404,
                message: format!("{method} {path}: not found"),
            }),
        };
        let (plan, outcome) = match decided {
            Ok((asked, chosen)) => {
                let plan = Plan::new(wire, &chosen.turn, &asked, chosen.fault.as_ref());
                (plan, self.log.is_some().then(|| chosen.describe(&asked)))
            }
            Err(refused) => {
                let outcome = format!("{}: {}", refused.status, refused.message);
                (Plan::refusal(wire, &refused), Some(outcome))
            }
        };
        if let (Some(log), Some(outcome)) = (&self.log, outcome) {
            let (method, path) = (&request.method, &request.path);
            log(&format!("#{order} {method} {path} {outcome}"));
        }
        plan
    }

    /// An error is a refusal with its status; the request is counted and kept all the same.
    fn decide(&self, wire: Wire, request: &Request) -> Result<(Asked, Chosen), Refused> {
        let bytes = request.body.len();
        if let Some(most) = self.script.longest_request
            && bytes > most
        {
            let (tokens, window) = (bytes / 4, most / 4);
            return Err(Refused::invalid(format!(
                "prompt is too long: {tokens} tokens > {window} maximum"
            )));
        }
        match wire {
            Wire::Anthropic => {
                let read = MessagesRequest::read(&request.body)?;
                let asked = read.asked(bytes);
                let conversation = self.script.choose(&asked);
                if self.script.validation == Validation::Strict {
                    let paused = |index| conversation.is_some_and(|chosen| pauses(chosen, index));
                    anthropic_rules::check(&read, &request.headers, paused)?;
                }
                let chosen = self.chosen(conversation, &asked)?;
                Ok((asked, chosen))
            }
            Wire::OpenAi => {
                let read = ChatRequest::read(&request.body)?;
                if self.script.validation == Validation::Strict {
                    read.check(&request.headers)?;
                }
                let asked = read.asked(bytes);
                let chosen = self.chosen(self.script.choose(&asked), &asked)?;
                Ok((asked, chosen))
            }
        }
    }

    /// Takes the next fault of the turn: a request that is refused before this point uses none up.
    fn chosen(
        &self,
        conversation: Option<&Conversation>,
        asked: &Asked,
    ) -> Result<Chosen, Refused> {
        let conversation = conversation.ok_or_else(|| {
            Refused::invalid("no conversation of the script matches, and there is no default one")
        })?;
        let turn = conversation.play(asked.turn).map_err(Refused::invalid)?;
        let fault = self.next_fault(&conversation.name, &turn, asked);
        Ok(Chosen {
            conversation: conversation.name.clone(),
            turn,
            fault,
        })
    }

    /// The fault this attempt meets. Only turns with faults leave a trace, so that long runs of
    /// many conversations do not.
    fn next_fault(&self, conversation: &str, turn: &Turn, asked: &Asked) -> Option<Fault> {
        if turn.faults.is_empty() {
            return None;
        }
        let key = (
            conversation.to_owned(),
            asked.turn,
            digest(&asked.first_user),
        );
        let mut attempts = self.attempts.lock();
        let attempt = attempts.entry(key).or_default();
        let fault = turn.faults.get(*attempt).cloned();
        *attempt += 1;
        fault
    }
}

impl Chosen {
    /// For the log: the conversation, the number of the turn, and its stop reason or the fault.
    fn describe(&self, asked: &Asked) -> String {
        let what = match &self.fault {
            Some(fault) => format!("{fault:?}"),
            None => self.turn.stop_reason().as_str().to_owned(),
        };
        format!(
            "conversation `{}` turn {}: {what}",
            self.conversation,
            asked.turn + 1
        )
    }
}

/// Whether the turn ends in `pause_turn`, after which the client sends the conversation back as it
/// is.
fn pauses(conversation: &Conversation, index: usize) -> bool {
    let turn = conversation.play(index);
    turn.is_ok_and(|turn| turn.stop_reason() == StopReason::PauseTurn)
}

/// Serves until `stop` is dropped; then every connection is closed.
pub(crate) async fn accept(listener: TcpListener, room: Arc<Room>, stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let accepting = async {
        loop {
            // An accept fails for want of descriptors or by a client gone at once: go on.
            if let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, Arc::clone(&room)));
            }
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = stop => {}
    }
}

/// One connection, until either side closes it.
async fn converse(stream: TcpStream, room: Arc<Room>) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    loop {
        let request = match connection.read_request().await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(error) => return complain(connection, &error).await,
        };
        let plan = room.receive(&request);
        if play(&mut connection, &plan).await.is_err() {
            room.counts.send_modify(|counts| counts.dropped += 1);
            return;
        }
        match plan.ending {
            Ending::KeepAlive if request.wants_close() => return,
            Ending::KeepAlive => {}
            Ending::Cut => return,
            Ending::Reset => return connection.reset(),
            Ending::Ping => {
                while connection.send(&ping()).await.is_ok()
                    && connection.pause(BETWEEN_PINGS).await.is_ok()
                {}
                room.counts.send_modify(|counts| counts.dropped += 1);
                return;
            }
            Ending::Hang => {
                connection.gone().await;
                room.counts.send_modify(|counts| counts.dropped += 1);
                return;
            }
        }
    }
}

/// An error means that the client closed the connection, seen while sending or during a pause.
async fn play(connection: &mut Connection, plan: &Plan) -> Result<(), Gone> {
    for step in &plan.steps {
        match step {
            Step::Pause(time) => connection.pause(*time).await?,
            Step::Hold(gate) => {
                while !gate.is_open() {
                    connection.pause(LOOK).await?;
                }
            }
            Step::Send(bytes) => connection.send(bytes).await?,
        }
    }
    Ok(())
}

/// Tells a client that does not speak HTTP as we read it, and closes.
async fn complain(mut connection: Connection, error: &io::Error) {
    if error.kind() == io::ErrorKind::InvalidData {
        let refused = Refused::invalid(error.to_string());
        // The connection ends here whether or not the client still listens.
        let _ = play(&mut connection, &Plan::refusal(Wire::Anthropic, &refused)).await;
    }
}
