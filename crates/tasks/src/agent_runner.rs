//! Agents as tasks: the same loop, started, resumed and continued by the scheduler.
//!
//! `AgentRunner` also runs the agents of dreams and teammates, whose runners wrap its `attempt`.
//! The first attempt and a resumed one differ only in the conversation: an empty one begins with
//! the prompt of the spec, any other is continued from its last entry.

use std::{pin::Pin, sync::Arc, time::Instant};

use async_trait::async_trait;
use codespar_agent::{Agent, Sink};
use codespar_protocol::{
    AgentSpec, AttemptOptions, EntryBody, Event, Message, Outcome, ReachedLimit, RunResult,
    SessionId, TaskId, TaskSpec, TaskStatus,
};
use codespar_store::{Afterwards, StoreError};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::{
    LedgerError, StepLedger, TaskHub, TaskLog,
    runner::{Completeness, Control, Runner, TaskOutcome},
};

/// How many characters of what it has said are the result of an agent that reached a limit. Below
/// what a notification carries.
const PARTIAL_CHARS: usize = 1_900;
/// In place of a note about the user: others can stop the agent of a task. Who it was is said when
/// it is continued.
const STOPPED: &str = "[You were stopped here.]";

/// The entry of a record's metadata with the denied calls that its result ends with.
pub const DENIED: &str = "denied";

/// An agent ready to run, and what to do after.
pub struct MadeAgent {
    pub agent: Agent,
    /// Awaited once it is over; words about what is left (a branch) go into the result. Not awaited
    /// when another process goes on with the agent: that one needs the directories.
    pub after: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
}

/// Why an agent cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// Another process has its conversation, or works on the record of it: later it can be made.
    /// The task is put back and tried again.
    #[error("{0}")]
    Busy(String),
    /// It cannot be made from this spec.
    #[error("{0}")]
    Refused(String),
}

impl From<String> for MakeError {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

/// Errors that pass by themselves become `Busy`; the others would fail in the same way again.
impl From<StoreError> for MakeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::SessionInUse { .. } => Self::Busy(error.to_string()),
            passing if passing.is_passing() => Self::Busy(passing.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Makes agents from specs; the binary knows settings, models and rules. Here so that this crate
/// need not know how settings, trust and providers become an agent.
#[async_trait]
pub trait AgentMaker: Send + Sync {
    /// Makes the agent of a spec. The error says why it cannot be made.
    async fn make(
        &self,
        spec: &AgentSpec,
        control: &Control,
        sink: Sink,
    ) -> Result<MadeAgent, MakeError>;
}

pub struct AgentRunner {
    /// Makes them.
    pub maker: Arc<dyn AgentMaker>,
    /// Knows who listens.
    pub hub: Arc<TaskHub>,
}

#[async_trait]
impl Runner for AgentRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        let attempt = async {
            let (TaskSpec::Agent(agent) | TaskSpec::RemoteAgent(agent)) = control.spec()? else {
                return Err(control.wrong_kind());
            };
            self.attempt(&control, agent.clone()).await
        };
        match attempt.await {
            Ok(attempt) => attempt.outcome,
            Err(error) => TaskOutcome::failed(error),
        }
    }
}

/// Steps that cannot be read or recorded now are no reason to fail.
fn or_later(error: LedgerError) -> MakeError {
    match error {
        LedgerError::Store(error) => error.into(),
        damaged @ LedgerError::Damaged { .. } => MakeError::Refused(damaged.to_string()),
    }
}

/// How an agent came to its end. A dream writes `text` to a file, so what is added for the reader
/// of the result must not be in it.
pub(crate) struct Attempt {
    /// Its final text, nothing added.
    pub(crate) text: String,
    /// The same for the record, with what people should know besides.
    pub(crate) outcome: TaskOutcome,
}

impl Attempt {
    /// It is not over.
    fn put_back(reason: impl Into<String>) -> Self {
        Self {
            text: String::new(),
            outcome: TaskOutcome::put_back(reason),
        }
    }
}

impl AgentRunner {
    /// Runs the agent of a spec, or goes on with it.
    ///
    /// Errors are texts that fail the task. One whose record is out of reach is put back: the
    /// database may be restarting, and whoever goes on reads what is on record.
    pub(crate) async fn attempt(
        &self,
        control: &Control,
        spec: AgentSpec,
    ) -> Result<Attempt, String> {
        match self.attempt_now(control, spec).await {
            Ok(attempt) => Ok(attempt),
            Err(MakeError::Busy(reason)) => Ok(Attempt::put_back(reason)),
            Err(MakeError::Refused(reason)) => Err(reason),
        }
    }

    /// A handed-over agent is put back without `after`, so that its worktree and its temporary
    /// directory stay. Usage and cost are the difference between what the conversation has cost in
    /// all and what earlier attempts have recorded: that includes calls of a process that died
    /// before it could record them.
    async fn attempt_now(&self, control: &Control, spec: AgentSpec) -> Result<Attempt, MakeError> {
        let ledger = StepLedger::open(control).await?;
        let options: Option<AttemptOptions> = ledger
            .known(&AttemptOptions::step(control.record.attempt))
            .map_err(or_later)?;
        let spec = spec.with(&options.unwrap_or_default());
        let log = TaskLog::open(&control.output, &control.redactor)?;
        let sink = self.sink(control, log);
        let MadeAgent { mut agent, after } = self.maker.make(&spec, control, sink).await?;
        agent.set_hand_over(control.hand_over.clone());
        agent.set_interrupted_note(STOPPED);
        let turns = self.earlier_turns(control, &ledger, &agent, spec.agent_session);
        agent.count_earlier_turns(turns.await.map_err(or_later)?);
        let prompt = agent
            .transcript()
            .messages()
            .is_empty()
            .then_some(spec.prompt)
            // A teammate may begin with what is in its mailbox.
            .filter(|prompt| !prompt.is_empty())
            .map(Message::user);
        let result = agent.run(prompt, control.cancel.clone()).await;
        if agent.is_handed_over() {
            // Whoever goes on needs its directories and its tree.
            return Ok(Attempt::put_back("handed over to another process"));
        }
        if agent.is_without_record() {
            return Err(MakeError::Busy(result.result));
        }
        let found = agent.transcript().latest_texts(PARTIAL_CHARS);
        drop(agent);
        let left = after.await;
        let mut outcome = told(&result, found, control);
        // The conversation knows what the calls of a process that died have cost; we do not.
        if let Ok(session) = self.hub.sessions().session(spec.agent_session).await {
            outcome.usage = session.usage - control.record.usage;
            outcome.cost = session.cost - control.record.cost_usd;
        }
        Ok(Attempt {
            outcome: with_note(outcome, left),
            text: result.result,
        })
    }

    /// Model calls that earlier processes made in this attempt: a process that dies does not give
    /// an agent its turns back. Where the attempt began in the conversation is a step on record.
    async fn earlier_turns(
        &self,
        control: &Control,
        ledger: &StepLedger,
        agent: &Agent,
        session: SessionId,
    ) -> Result<u32, LedgerError> {
        let step = format!("attempt {} begins after", control.record.attempt);
        let Some(began) = ledger.known::<u64>(&step)? else {
            let place = agent.transcript().last_seq();
            ledger.record(&step, &place).await?;
            return Ok(0);
        };
        let entries = self.hub.sessions().entries(session, began + 1).await?;
        let is_turn = |body: &EntryBody| matches!(body, EntryBody::Assistant { .. });
        let turns = entries.iter().filter(|entry| is_turn(&entry.body)).count();
        Ok(u32::try_from(turns).unwrap_or(u32::MAX))
    }

    /// Events go to the output file, and to whoever waits for this task in this process.
    ///
    /// The lock is held for one event, so lines of the log are in the order of the events.
    fn sink(&self, control: &Control, log: TaskLog) -> Sink {
        let spec = control.record.spec.as_ref();
        let session = spec
            .and_then(TaskSpec::agent)
            .map(|agent| agent.agent_session);
        let hub = self.hub.clone();
        let watch = Mutex::new((log, Progress::new()));
        let task_id = control.record.task_id.clone();
        Arc::new(move |event: Event| {
            let (log, progress) = &mut *watch.lock();
            if let Some(line) = line_of(&event) {
                log.write(&line);
            }
            let step = progress.step(&task_id, &event);
            hub.publish(session, &task_id, event);
            if let Some(step) = step {
                hub.publish(session, &task_id, step);
            }
        })
    }
}

/// How far an agent is.
struct Progress {
    began: Instant,
    tool_uses: u32,
    total_tokens: u64,
}

impl Progress {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            tool_uses: 0,
            total_tokens: 0,
        }
    }

    /// Counts, and tells of each tool that is used.
    fn step(&mut self, task_id: &TaskId, event: &Event) -> Option<Event> {
        match event {
            Event::Assistant { usage, .. } => {
                self.total_tokens += usage.total_tokens();
                None
            }
            Event::ToolStarted { tool, summary, .. } => {
                self.tool_uses += 1;
                Some(Event::TaskProgress {
                    task_id: task_id.clone(),
                    tool_uses: self.tool_uses,
                    total_tokens: self.total_tokens,
                    duration_ms: u64::try_from(self.began.elapsed().as_millis())
                        .unwrap_or(u64::MAX),
                    summary: format!("{tool} {}", summary.lines().next().unwrap_or_default()),
                })
            }
            _ => None,
        }
    }
}

/// How the result of a run becomes the outcome of a task. An interrupted run is killed, one that
/// reached a limit or an error is failed, and its text is then the error and not the result. At a
/// limit the result is what the agent has said so far (`found`), marked as partial. Denied calls
/// are named in the result, because nobody was there to see them.
fn told(result: &RunResult, found: String, control: &Control) -> TaskOutcome {
    let mut outcome = TaskOutcome {
        status: TaskStatus::Completed,
        result: Some(result.result.clone()),
        completeness: Completeness::Whole,
        error: None,
        exit_code: None,
        usage: result.usage,
        cost: result.cost,
        afterwards: Afterwards::Over,
        tool_uses: result.tool_uses,
        metadata: Map::new(),
    };
    if result.interrupted {
        outcome.status = TaskStatus::Killed;
        outcome.result = None;
        outcome.error = Some(control.reason_to_end());
    } else if let Some(limit) = result.limit {
        outcome.status = TaskStatus::Failed;
        outcome.error = Some(at_limit(limit, &result.result, control));
        outcome.result = Some(found).filter(|text| !text.is_empty());
        outcome.completeness = Completeness::Partial;
    } else if result.outcome != Outcome::Success {
        outcome.status = TaskStatus::Failed;
        outcome.error = Some(result.result.clone());
        outcome.result = None;
    }
    let denied: Vec<String> = result
        .permission_denials
        .iter()
        .map(|denial| format!("{} was denied: {}", denial.tool_name, denial.reason))
        .collect();
    if !denied.is_empty() {
        let note = denied.join("\n");
        // For whoever passes the result on to readers whom it does not concern.
        outcome
            .metadata
            .insert(DENIED.to_owned(), Value::String(note.clone()));
        outcome = with_note(outcome, Some(note));
    }
    outcome
}

/// Which limit ended the agent, and how to go on. A budget that is used up stays so: resuming does
/// not help.
fn at_limit(limit: ReachedLimit, message: &str, control: &Control) -> String {
    let name = match limit {
        ReachedLimit::Turns => "the limit on turns was reached",
        ReachedLimit::WallTime => "the time limit was reached",
        ReachedLimit::Budget => return message.to_owned(),
    };
    format!(
        "{name}: {message}; its result is partial, resume {} to go on",
        control.record.task_id
    )
}

/// Only a result gets the note; a failure keeps its error as it is.
fn with_note(mut outcome: TaskOutcome, note: Option<String>) -> TaskOutcome {
    if let (Some(note), Some(result)) = (note, &mut outcome.result) {
        result.push_str("\n\n");
        result.push_str(&note);
    }
    outcome
}

/// What the output tells of an event.
fn line_of(event: &Event) -> Option<String> {
    match event {
        Event::Assistant { message, .. } => Some(message.text()).filter(|text| !text.is_empty()),
        Event::ToolStarted { tool, summary, .. } => Some(format!("▸ {tool} {summary}")),
        Event::ToolFinished {
            tool,
            is_error: true,
            ..
        } => Some(format!("  {tool} failed")),
        Event::PermissionAsked { question } => Some(format!(
            "? {} {}: {}",
            question.tool, question.summary, question.reason
        )),
        Event::PermissionDenied(denial) => Some(format!(
            "  {} was denied: {}",
            denial.tool_name, denial.reason
        )),
        _ => None,
    }
}
