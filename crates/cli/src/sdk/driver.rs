//! Turns of a session with a client: one at a time, with what the client asks for meanwhile.
//!
//! ```text
//! between turns    the next message │ news of a task │ a request │ a signal
//! during a turn    its end │ a message (it waits) │ a request │ a signal
//! ```
//!
//! At the end of the input what waits is done first; agents that run in the background are waited
//! for, and what they bring is answered.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use codespar_agent::{Agent, ContextUsage, ModelChoice, SessionEndReason};
use codespar_mcp::McpServers;
use codespar_protocol::{Cost, Message, RunResult, SessionId, TaskStatus, TaskType, Usage};
use codespar_runtime::{Project, ProjectCommands, SessionDirs, Surface, WhichSession};
use codespar_store::TaskFilter;
use codespar_tasks::AtEnd;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    client::Client,
    input::{ClientPrompt, Incoming},
    questions::{Bypass, CurrentTurn},
    servers::ClientServers,
};
use crate::{
    args::{ClientArgs, OutputFormat},
    error::CommandError,
    headless::{
        self, HURRIED_HOOKS, LEAVING_HOOKS,
        init::InitParts,
        lines::{self, UnknownCost},
        output::{Printer, PrinterParts},
        partial::Partials,
        structured::{StructuredAnswers, StructuredEnd, add_costs},
    },
    session::news,
    signals::Signals,
};

/// What a driver is made from.
///
/// Everything that is decided before the first message: the project, its commands, the form of
/// answers and what the client may change.
pub(super) struct DriverParts {
    pub(super) client: Client,
    pub(super) project: Arc<Project>,
    pub(super) commands: Arc<ProjectCommands>,
    pub(super) structured: Option<Arc<StructuredAnswers>>,
    pub(super) bypass: Bypass,
    pub(super) turn: CurrentTurn,
    pub(super) which: WhichSession,
    pub(super) args: ClientArgs,
    pub(super) verbose: bool,
}

/// One process with its client. The agent and its session may change.
pub(super) struct Driver {
    pub(super) parts: DriverParts,
    incoming: mpsc::Receiver<Incoming>,
    pub(super) signals: Signals,
    pub(super) servers: Arc<ClientServers>,
    pub(super) queue: VecDeque<ClientPrompt>,
    /// None before the first message, and while a turn has it.
    pub(super) agent: Option<Agent>,
    printer: Option<Arc<Printer>>,
    pub(super) session: Option<SessionId>,
    is_resumed: bool,
    /// What people should know when the first turn begins.
    notices: Vec<String>,
    tools: Vec<String>,
    /// The model that the client chose.
    pub(super) choice: Option<ModelChoice>,
    /// As of the end of the last turn.
    pub(super) usage: Option<ContextUsage>,
    /// Where the conversation stood when a message of the client was sent, by its uuid.
    pub(super) places: HashMap<String, u64>,
    /// Servers that the client added, and their tools.
    pub(super) added: Option<Arc<McpServers>>,
    pub(super) added_tools: Vec<String>,
    /// Servers that the client switched off.
    pub(super) disabled: HashSet<String>,
    /// The message that the current or last turn answers, by its uuid.
    pub(super) answering: Option<String>,
    /// What the session has cost in this process: every result of a client's session has the sum
    /// so far.
    spent: Spent,
    /// The client says nothing more.
    is_closed: bool,
    state: &'static str,
}

/// The agent, the end of its run, and the answer in the form that was asked for.
type Ended = (Agent, RunResult, Option<Value>);

impl Driver {
    pub(super) fn new(
        parts: DriverParts,
        incoming: mpsc::Receiver<Incoming>,
        signals: Signals,
        servers: Arc<ClientServers>,
    ) -> Self {
        Self {
            parts,
            incoming,
            signals,
            servers,
            queue: VecDeque::new(),
            agent: None,
            printer: None,
            session: None,
            is_resumed: false,
            notices: Vec::new(),
            tools: Vec::new(),
            choice: None,
            usage: None,
            places: HashMap::new(),
            added: None,
            added_tools: Vec::new(),
            disabled: HashSet::new(),
            answering: None,
            spent: Spent::default(),
            is_closed: false,
            state: "",
        }
    }

    /// `first` came before the project was open.
    pub(super) async fn run(&mut self, first: Option<Incoming>) -> Result<(), CommandError> {
        if let Some(first) = first {
            self.take(first).await;
        }
        loop {
            if self.signals.token().is_cancelled() {
                return Ok(());
            }
            if let Some(prompt) = self.queue.pop_front() {
                self.prompt(prompt).await?;
                continue;
            }
            let is_busy = self.has_agents_at_work().await;
            if self.is_closed && !is_busy {
                return Ok(());
            }
            if !is_busy {
                self.tell_state("idle");
            }
            let project = self.parts.project.clone();
            let session = self.agent.as_ref().map(Agent::session);
            tokio::select! {
                came = self.incoming.recv(), if !self.is_closed => match came {
                    Some(came) => self.take(came).await,
                    None => self.is_closed = true,
                },
                () = news(&project, session) => {
                    self.answering = None;
                    self.turn(None).await?;
                }
                () = self.signals.token().cancelled() => return Ok(()),
            }
        }
    }

    async fn take(&mut self, came: Incoming) {
        match came {
            Incoming::Prompt(prompt) => self.queue.push_back(prompt),
            Incoming::Request { id, request } => self.control(&id, &request).await,
            Incoming::Malformed(why) => self.parts.client.warn(&why),
            Incoming::Response { .. } | Incoming::Other => {}
        }
    }

    /// The agent on its session, opened when it is first needed. Servers are waited for here.
    pub(super) async fn open(&mut self) -> Result<(), CommandError> {
        if self.agent.is_some() {
            return Ok(());
        }
        let project = self.parts.project.clone();
        let session = project.open_session(&self.parts.which).await?;
        tokio::select! {
            () = project.mcp.settled() => {}
            () = self.signals.token().cancelled() => {}
        }
        let id = session.transcript.session();
        self.is_resumed = session.is_resumed;
        self.tools = project.tool_names(&session);
        let printer = Arc::new(Printer::new(PrinterParts {
            format: OutputFormat::StreamJson,
            verbose: self.parts.verbose,
            session: id,
            project: project.clone(),
            partials: self
                .parts
                .args
                .include_partial_messages
                .then(Partials::default),
            unknown_cost: UnknownCost::AtLeast,
            signals: self.signals.clone(),
        }));
        // On standard error it is told too, which few clients show.
        self.notices = project.dir.trust.notice().into_iter().collect();
        self.notices.extend(headless::notices(&project, &session));
        let sink = printer.clone();
        let surface = Surface {
            sink: Arc::new(move |event| sink.event(&event)),
            note: None,
            steering: None,
        };
        let agent = project.main_agent(session, surface, AtEnd::Return)?;
        self.usage = Some(agent.context_usage());
        self.agent = Some(agent);
        self.session = Some(id);
        self.printer = Some(printer);
        Ok(())
    }

    /// One turn, of a message or of news. The agent runs as a task of its own and is given back by
    /// it.
    pub(super) async fn turn(&mut self, prompt: Option<Message>) -> Result<(), CommandError> {
        self.open().await?;
        let (Some(mut agent), Some(printer)) = (self.agent.take(), self.printer.clone()) else {
            return Ok(());
        };
        self.prepare(&mut agent);
        self.tell_state("running");
        printer.init(&self.init_parts(agent.session()));
        printer.begin(&std::mem::take(&mut self.notices))?;
        let cancel = self.signals.token().child_token();
        self.parts.turn.begin(cancel.clone());
        let structured = self.parts.structured.clone();
        let mut run: JoinHandle<Ended> = tokio::spawn(async move {
            let end: StructuredEnd = match &structured {
                Some(answers) => answers.run(&mut agent, prompt, &cancel).await,
                None => agent.run(prompt, cancel).await.into(),
            };
            (agent, end.result, end.output)
        });
        let ended = loop {
            tokio::select! {
                ended = &mut run => break ended,
                came = self.incoming.recv(), if !self.is_closed => match came {
                    Some(came) => self.take(came).await,
                    None => self.is_closed = true,
                },
            }
        };
        self.parts.turn.end();
        let (agent, result, output) =
            ended.map_err(|error| CommandError::Failed(error.to_string()))?;
        self.usage = Some(agent.context_usage());
        self.agent = Some(agent);
        let result = self.spent.including(result);
        printer.result(&result, output.as_ref(), self.answering.as_deref());
        printer.check()
    }

    /// What the client changed since the last turn holds from now on.
    fn prepare(&mut self, agent: &mut Agent) {
        let unwanted = self.unwanted_tools();
        if !unwanted.is_empty() {
            agent.remove_tools(&unwanted);
        }
        agent.add_tools(&self.wanted_tools());
        let added = self.added.iter().flat_map(|servers| servers.tools());
        self.added_tools = added.map(|tool| tool.name().to_owned()).collect();
        if let Some(choice) = &self.choice {
            agent.set_choice(choice.clone());
        }
    }

    /// What the first line of a session tells: clients choose by it what they offer.
    fn init_parts(&self, session: SessionId) -> InitParts {
        let project = &self.parts.project;
        let model = match &self.choice {
            Some(choice) => choice.id.clone(),
            None => project.provider.choice.id.clone(),
        };
        let built_in = ["clear", "compact"].map(str::to_owned).into_iter();
        let prompts = self.server_prompts();
        let own = headless::commands::names(&self.parts.commands, &prompts);
        let mut tools = self.tools.clone();
        tools.retain(|name| !self.unwanted_tools().contains(name));
        for name in self.wanted_tools().names() {
            if !tools.iter().any(|known| known == name) {
                tools.push(name.to_owned());
            }
        }
        InitParts {
            session,
            is_resumed: self.is_resumed,
            tools,
            model,
            commands: built_in.chain(own).collect(),
        }
    }

    /// A message of the client as a line, where it wants to see them.
    pub(super) fn replay(&self, prompt: &ClientPrompt) {
        if let (true, Some(session)) = (self.parts.args.replay_user_messages, self.session) {
            self.parts.client.line(&json!({
                "type": "user", "message": prompt.message, "parent_tool_use_id": null,
                "isReplay": true, "session_id": session, "uuid": prompt.uuid,
            }));
        }
    }

    /// The end of a turn. Clients count on exactly one after each message.
    pub(super) fn result_line(&mut self, result: RunResult) {
        if let Some(printer) = &self.printer {
            let result = self.spent.including(result);
            printer.result(&result, None, self.answering.as_deref());
        }
    }

    /// Whether agents or workflows of the session are at work in the background: what they bring is
    /// answered in a turn. Commands and monitors may run for ever, and are not waited for.
    async fn has_agents_at_work(&self) -> bool {
        let Some(session) = self.session else {
            return false;
        };
        let filter = TaskFilter {
            tree: Some(session),
            ..TaskFilter::default()
        };
        let store = &self.parts.project.store;
        let tasks = store.tasks(filter).await.unwrap_or_default();
        let is_at_work = tasks.iter().any(|task| {
            matches!(task.status, TaskStatus::Pending | TaskStatus::Running)
                && matches!(
                    task.task_type,
                    TaskType::LocalAgent | TaskType::LocalWorkflow
                )
                && task.spec.is_some()
        });
        let waiting = store.notifications(session).await;
        is_at_work || waiting.is_ok_and(|waiting| !waiting.is_empty())
    }

    /// Whether the session works or waits, for clients that ask for it by a variable.
    fn tell_state(&mut self, state: &'static str) {
        let environment = &self.parts.project.dir.environment;
        let is_wanted = environment.is_enabled("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS");
        let is_for_host = environment.is_enabled("CLAUDE_CODE_SDK_READS_SESSION_STATE");
        let Some(session) = self.session.filter(|_| is_wanted || is_for_host) else {
            return;
        };
        if self.state == state {
            return;
        }
        self.state = state;
        let mut fields = json!({ "state": state });
        if !is_wanted {
            fields["sdk_host_only"] = json!(true);
        }
        let line = lines::system(session, "session_state_changed", fields);
        if let Some(printer) = &self.printer {
            printer.line(&line);
        }
    }

    /// Lets go of the session; it stays in the store unless the client wants otherwise.
    pub(super) async fn leave(&mut self) {
        let Some(agent) = self.agent.take() else {
            return;
        };
        let id = agent.session();
        let limit = match self.signals.exit_code() {
            Some(_) => HURRIED_HOOKS,
            None => LEAVING_HOOKS,
        };
        agent.end_session(SessionEndReason::Other, limit).await;
        drop(agent);
        let project = &self.parts.project;
        SessionDirs::of(project.dir.state(), id).clean();
        if self.parts.args.no_session_persistence {
            headless::forget(project, id).await;
        }
        self.session = None;
        self.spent = Spent::default();
        self.parts.which = WhichSession::New;
    }
}

/// What runs have cost together.
#[derive(Default)]
struct Spent {
    cost: Cost,
    by_model: Vec<(String, Usage, Cost)>,
}

impl Spent {
    /// The end of another run, with the sums in place of its own costs. Its tokens stay its own.
    fn including(&mut self, mut run: RunResult) -> RunResult {
        self.cost += run.cost;
        add_costs(&mut self.by_model, &run.by_model);
        run.cost = self.cost;
        run.by_model.clone_from(&self.by_model);
        run
    }
}
