//! The line-based session: a prompt, the answer as it comes, questions when the rules have them.
//!
//! One task reads the events of the agent, the input thread, questions and signals, so there is one
//! place that decides who may use the terminal:
//!
//! ```text
//! at the prompt    a line → command or prompt │ a question │ news of a task │ Ctrl-C twice leaves
//! during a turn    the end of the run │ a question │ a second has passed │ Ctrl-C cancels the turn
//! at a question    a line → answer │ settled elsewhere │ Ctrl-C or end of input → no
//! ```
//!
//! A session is created when the first prompt is sent, so looking around leaves nothing in the
//! store.

mod approver;
mod boxes;
mod further;
mod input;
mod page;
mod requests;
mod screen;
mod servers;
pub(crate) mod tasks;

use std::{io::IsTerminal, process::ExitCode, sync::Arc, time::Duration};

use codespar_agent::Agent;
use codespar_protocol::{Answer, Cost, Message, SessionMode, Usage};
use codespar_tasks::{AtEnd, Attendance};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use self::input::Input;
pub(crate) use self::{
    approver::{PendingQuestion, Person},
    screen::Screen,
    servers::question as server_question,
    tasks::news,
};
use crate::{
    args::Cli,
    commands::gc,
    error::CommandError,
    headless::{mode_notice, recovery_notices},
    session_parts,
    signals::Signals,
    slash::{self, ProjectCommands, Typed},
    style,
};
use codespar_runtime::{
    ProcessRole, Project, ProjectConfig, ProjectDir, Runtime, SessionDirs, Surface, WhichSession,
    find_session,
};

/// What `/help` says after the commands.
const KEYS: &str =
    "A line that ends in \\ goes on on the next. Ctrl-C interrupts an answer, twice leaves.";

/// How often the boxes of tasks count the time. Only during a turn.
const SECOND: Duration = Duration::from_secs(1);

/// Runs it until the user leaves.
///
/// The session is left and the runtime closed also when the first session cannot be opened. A
/// signal gives the exit code whatever else happened.
pub(crate) async fn run(cli: Cli, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::Usage(
            "standard input is not a terminal; use `codespar -p` for a headless run".to_owned(),
        ));
    }
    let config = ProjectConfig::load(project_dir, cli.session.project_options())?;
    run_with(cli, config).await
}

/// The same with a configuration that was read already.
pub(crate) async fn run_with(cli: Cli, config: ProjectConfig) -> Result<ExitCode, CommandError> {
    let first = Some(cli.prompt.join(" ")).filter(|text| !text.trim().is_empty());
    let wants_session = cli.session.resume.is_some() || cli.session.continue_last;
    let screen = Arc::new(Screen::default());
    let (ask, questions) = mpsc::channel(64);
    let signals = Signals::watch_for_end(CancellationToken::new())?;
    let person = Person {
        questions: ask,
        ending: signals.token().clone(),
    };
    let attendance = Attendance::Here(Arc::new(person));
    let (runtime, project) =
        Runtime::with_project(config, attendance, ProcessRole::Session).await?;
    runtime.start_tasks();
    screen.say(&session_parts::banner(
        &project,
        "/help for commands, Ctrl-D leaves",
    ));
    let mut conversation = Conversation {
        input: Input::start(screen.clone()),
        screen,
        which: cli.session.which_session(),
        runtime,
        project_commands: ProjectCommands::load(&project.dir),
        project,
        questions,
        agent: None,
        mode: SessionMode::Normal,
        usage: Usage::default(),
        cost: Cost::default(),
        interrupt: signal(SignalKind::interrupt())?,
        signals,
    };
    gc::daily(&conversation.project.dir, &conversation.project.settings);
    conversation.ask_about_servers().await;
    let outcome = match wants_session {
        true => conversation.open().await,
        false => Ok(()),
    };
    if outcome.is_ok() {
        conversation.until_the_end(first).await;
    }
    conversation.leave().await;
    let closed = conversation.runtime.close().await;
    match conversation.signals.exit_code() {
        Some(code) => Ok(ExitCode::from(code)),
        None => {
            outcome?;
            closed?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// One sitting. Lives as long as the process; the agent and its session may change.
struct Conversation {
    runtime: Arc<Runtime>,
    project: Arc<Project>,
    project_commands: ProjectCommands,
    input: Input,
    screen: Arc<Screen>,
    /// From the agent of this session and from those of its tasks, in the order they were asked.
    questions: mpsc::Receiver<PendingQuestion>,
    /// None before the first prompt, after `/clear`, and while a turn has it.
    agent: Option<Agent>,
    /// Of the session, once it is open.
    mode: SessionMode,
    /// Which session is opened next. A new one again when a session is left.
    which: WhichSession,
    /// Of this sitting, over all its sessions.
    usage: Usage,
    cost: Cost,
    /// Ctrl-C; registered once, so that one that comes between two waits is not lost.
    interrupt: Signal,
    /// What ends the whole session. Ctrl-C is not among them.
    signals: Signals,
}

/// What came of a question. Only an answer may be kept as a rule.
enum Heard {
    Answer(Answer),
    /// Somebody answered elsewhere, or the agent that asked was stopped.
    Settled,
    /// The reason is for the model.
    Interrupt(&'static str),
}

/// What the user did at the prompt.
///
/// End of input and a second Ctrl-C mean the same as `/quit`.
enum Said {
    Text(String),
    Leave,
}

impl Conversation {
    /// An error of one command is shown and the session goes on.
    async fn until_the_end(&mut self, mut next: Option<String>) {
        while !self.signals.token().is_cancelled() {
            let said = match next.take() {
                Some(text) => Said::Text(text),
                None => self.listen().await,
            };
            let text = match said {
                Said::Text(text) => text,
                Said::Leave => return,
            };
            let typed = slash::read(&text, &self.project_commands);
            if typed == Typed::Quit {
                return;
            }
            if let Err(error) = self.obey(typed).await {
                self.screen.say(&style::error(error));
            }
        }
    }

    /// Quitting is handled by the caller.
    async fn obey(&mut self, typed: Typed) -> Result<(), CommandError> {
        match typed {
            Typed::Nothing | Typed::Quit => {}
            Typed::Prompt(prompt) => self.turn(Some(Message::user(prompt))).await?,
            Typed::Mention(text) => self.carry_out(&text).await?,
            Typed::Help => self.screen.say(&slash::help(KEYS)),
            Typed::Cost => self.show_cost(),
            Typed::Tasks(which) => {
                let session = self.agent.as_ref().map(Agent::session);
                let text = tasks::list(&self.project, session, which).await?;
                self.screen.say(&text);
            }
            Typed::TaskStatus(id) => {
                let text = tasks::status(&self.project, &id).await?;
                self.screen.say(&text);
            }
            Typed::Stop(id) => {
                let text = tasks::stop(&self.project, &id).await?;
                self.screen.say(&text);
            }
            Typed::Clear => {
                self.leave().await;
                self.screen
                    .say("a new session begins with your next prompt");
            }
            Typed::Compact => self.compact().await,
            Typed::Resume(id) => self.go_on_with(id).await?,
            Typed::Unknown(word, nearest) => {
                self.screen.say(&slash::unknown(&word, nearest.as_deref()));
            }
            typed => self.further_command(typed).await?,
        }
        Ok(())
    }

    /// A notification begins a turn of its own, without a prompt: the agent reads what its task
    /// reported. Ctrl-C counts as a request to leave only the second time in a row.
    async fn listen(&mut self) -> Said {
        let mut warned = false;
        loop {
            self.screen.prompt();
            let session = self.agent.as_ref().map(Agent::session);
            tokio::select! {
                line = self.input.paragraph() => return line.map_or(Said::Leave, Said::Text),
                Some(asked) = self.questions.recv() => {
                    let nothing = CancellationToken::new();
                    self.put(asked, &nothing).await;
                }
                () = tasks::news(&self.project, session) => {
                    self.screen.leave_prompt();
                    if let Err(error) = self.turn(None).await {
                        self.screen.say(&style::error(error));
                    }
                }
                _ = self.interrupt.recv() => {
                    if warned {
                        return Said::Leave;
                    }
                    warned = true;
                    self.screen.say("\n(Ctrl-C again, Ctrl-D or /quit leaves)");
                }
                () = self.signals.token().cancelled() => return Said::Leave,
            }
        }
    }

    /// Puts a question to the user and passes the answer on. Without one the run that
    /// `cancel` stops is over, before it hears a no that it might go on from.
    async fn put(&mut self, mut pending: PendingQuestion, cancel: &CancellationToken) {
        match self.hear(&mut pending).await {
            Heard::Answer(answer) => {
                if let Some(rules) = pending.request.rules_to_keep(&answer) {
                    let kept = session_parts::keep_rules(&self.project, rules);
                    self.screen.say(&kept);
                }
                pending.give(answer);
            }
            Heard::Settled => self
                .screen
                .say(&style::faint("settled without an answer here")),
            Heard::Interrupt(reason) => {
                cancel.cancel();
                pending.give(Answer::No {
                    reason: Some(reason.to_owned()),
                });
            }
        }
    }

    /// Lines that were typed before the question was shown are dropped: they were not meant as its
    /// answer.
    async fn hear(&mut self, pending: &mut PendingQuestion) -> Heard {
        self.input.forget().await;
        self.screen.question(&pending.request);
        loop {
            let line = tokio::select! {
                line = self.input.line() => line,
                () = pending.is_settled() => return Heard::Settled,
                _ = self.interrupt.recv() => return Heard::Interrupt("the user interrupted"),
                () = self.signals.token().cancelled() => {
                    return Heard::Interrupt("the session was ended");
                }
            };
            let Some(line) = line else {
                return Heard::Interrupt("the terminal was closed");
            };
            match pending.request.parse_answer(&line) {
                Ok(answer) => return Heard::Answer(answer),
                Err(wanted) => self.screen.say(&wanted),
            }
        }
    }

    /// The agent on its session, opened when it is first needed.
    ///
    /// MCP servers are waited for here, once: the tools of an agent are set when it is made.
    async fn open(&mut self) -> Result<(), CommandError> {
        if self.agent.is_some() {
            return Ok(());
        }
        let project = &self.project;
        let session = project.open_session(&self.which).await?;
        let notices = recovery_notices(&session.recovered)
            .into_iter()
            .chain(mode_notice(project, &session));
        for notice in notices {
            self.screen.say(&style::warning(notice));
        }
        if session.is_resumed {
            self.screen.recall(session.transcript.messages());
        }
        let screen = self.screen.clone();
        let surface = Surface {
            sink: Arc::new(move |event| screen.event(&event)),
            note: None,
            steering: None,
        };
        // Their tools belong to the agent; it is made once.
        tokio::select! {
            () = project.mcp.settled() => {}
            () = self.signals.token().cancelled() => {}
        }
        for notice in codespar_runtime::mcp::notices(&project.mcp) {
            self.screen.say(&style::warning(notice));
        }
        self.mode = session.mode;
        self.agent = Some(self.project.main_agent(session, surface, AtEnd::Return)?);
        Ok(())
    }

    /// The agent runs as a task of its own and is given back by it. If that task panics the agent
    /// is lost with it, and the error is shown.
    async fn turn(&mut self, prompt: Option<Message>) -> Result<(), CommandError> {
        self.open().await?;
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        // A server that could not be connected at first may be there by now.
        if self.mode == SessionMode::Normal {
            agent.add_tools(&self.project.server_tools());
        }
        let cancel = self.signals.token().child_token();
        self.screen.go_on();
        let mut second = tokio::time::interval(SECOND);
        // A task of its own: it goes on while the user thinks about a question.
        let stop = cancel.clone();
        let mut run = tokio::spawn(async move {
            let result = agent.run(prompt, stop).await;
            (agent, result)
        });
        let (agent, result) = loop {
            tokio::select! {
                ended = &mut run => {
                    break ended.map_err(|error| CommandError::Failed(error.to_string()))?;
                }
                _ = second.tick() => self.screen.tick(),
                Some(asked) = self.questions.recv() => {
                    self.put(asked, &cancel).await;
                }
                _ = self.interrupt.recv() => cancel.cancel(),
            }
        };
        self.agent = Some(agent);
        self.usage += result.usage;
        self.cost += result.cost;
        self.screen.end_of_turn(&result);
        Ok(())
    }

    /// Tokens that were written to the cache count as input.
    fn show_cost(&self) {
        self.screen.say(&format!(
            "{} tokens in, {} from the cache, {} out · {}",
            self.usage.input_tokens + self.usage.cache_creation_input_tokens,
            self.usage.cache_read_input_tokens,
            self.usage.output_tokens,
            self.cost
        ));
    }

    /// Cancelling leaves the conversation as it was: the summary is appended only when it is
    /// complete.
    async fn compact(&mut self) {
        let Some(agent) = &mut self.agent else {
            self.screen.say("there is nothing to summarise yet");
            return;
        };
        let cancel = self.signals.token().child_token();
        let outcome = {
            let mut compacting = std::pin::pin!(agent.compact_now(&cancel));
            loop {
                tokio::select! {
                    outcome = &mut compacting => break outcome,
                    _ = self.interrupt.recv() => cancel.cancel(),
                }
            }
        };
        match outcome {
            Ok(true) => {}
            _ if cancel.is_cancelled() => self.screen.say("stopped; the conversation is as it was"),
            Ok(false) => self
                .screen
                .say("the conversation is too short to summarise"),
            Err(error) => self.screen.say(&style::error(error)),
        }
    }

    /// Without an id the sessions of this directory are listed.
    async fn go_on_with(&mut self, id: Option<String>) -> Result<(), CommandError> {
        let Some(id) = id else {
            let project = &self.project;
            return self.screen.sessions(&*project.store, &project.dir).await;
        };
        // Looked for before the current one is let go.
        let id = find_session(&*self.project.store, &id).await?;
        self.leave().await;
        self.which = WhichSession::Id(id.to_string());
        let opened = self.open().await;
        self.which = WhichSession::New;
        opened
    }

    /// Lets go of the session; it stays in the store. Dropping the agent releases its lock, so the
    /// session can be resumed elsewhere. Tasks go on.
    async fn leave(&mut self) {
        if let Some(agent) = self.agent.take() {
            let id = agent.session();
            drop(agent);
            SessionDirs::of(self.project.dir.state(), id).clean();
            let text = format!("Resume with: codespar --resume {id}");
            self.screen.say(&style::faint(text));
        }
        self.which = WhichSession::New;
    }
}
