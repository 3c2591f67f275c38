//! The session at a terminal: the driver between `codespar_tui` and the agent.
//!
//! ```text
//! at the prompt    an action of the user │ news of a task │ a signal
//! during a turn    the end of the run │ an action: steer, interrupt, a command │ a signal
//! ```
//!
//! Questions of agents are shown by a task of their own (`questions.rs`), whatever the driver waits
//! for. What commands print goes through the printer, which hands it to the surface
//! (`diverted.rs`). A session is created when the first prompt is sent.

mod attachments;
mod commands;
mod completion;
mod diverted;
mod open;
mod questions;
mod requests;
mod status;

use std::{io::IsTerminal, process::ExitCode, sync::Arc};

use codespar_agent::{Agent, Steering};
use codespar_policy::Mode;
use codespar_protocol::{Cost, Message, NoticeLevel, SessionMode, Usage};
use codespar_runtime::{
    ProcessRole, Project, ProjectConfig, ProjectDir, Runtime, SessionDirs, WhichSession,
};
use codespar_tasks::Attendance;
use codespar_tui::{Tui, UserAction};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use self::{questions::Turns, status::StatusKeeper};
use crate::{
    args::Cli,
    commands::gc,
    error::CommandError,
    plain_session::{self, Person, news},
    printer, session_parts,
    signals::Signals,
    slash::ProjectCommands,
    style,
};

/// Whether the terminal can show it and nobody asked for the plain one.
pub(crate) fn is_possible(cli: &Cli) -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !cli.plain && !is_dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Runs it until the user leaves. A signal gives the exit code whatever else happened.
pub(crate) async fn run(cli: Cli, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    let config = ProjectConfig::load(project_dir, cli.session.project_options())?;
    if config.terminal().plain == Some(true) {
        return plain_session::run_with(cli, config).await;
    }
    let first = Some(cli.prompt.join(" ")).filter(|text| !text.trim().is_empty());
    let wants_session = cli.session.resume.is_some() || cli.session.continue_last;
    let (ask, asked) = mpsc::channel(64);
    let signals = Signals::watch_for_end(CancellationToken::new())?;
    let person = Person {
        questions: ask,
        ending: signals.token().clone(),
    };
    let (runtime, project) = Runtime::with_project(
        config,
        Attendance::Here(Arc::new(person)),
        ProcessRole::Session,
    )
    .await?;
    let project_commands = Arc::new(ProjectCommands::load(&project.dir));
    let options = open::options(&project, &project_commands)?;
    let (tui, actions) =
        Tui::start(options).map_err(|error| CommandError::Failed(error.to_string()))?;
    let status = StatusKeeper::new(tui.clone(), &project);
    let turns = Turns::default();
    let answering = questions::answer_all(asked, tui.clone(), project.clone(), turns.clone());
    let mut session = TerminalSession {
        tui: tui.clone(),
        actions,
        which: cli.session.which_session(),
        runtime,
        project,
        project_commands,
        agent: None,
        mode: SessionMode::Normal,
        choice: None,
        status,
        turns,
        steering: Arc::default(),
        usage: Usage::default(),
        cost: Cost::default(),
        resized: signal(SignalKind::window_change())?,
        continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        signals,
    };
    restore_on_panic();
    let diverted = printer::divert(diverted::to(tui.clone()));
    session.runtime.start_tasks();
    let hint = "/help shows commands and keys, Ctrl-D leaves";
    session.say(&session_parts::banner(&session.project, hint));
    gc::daily(&session.project.dir, &session.project.settings);
    session.ask_about_servers().await;
    let outcome = match wants_session {
        true => session.open().await,
        false => Ok(()),
    };
    if outcome.is_ok() {
        session.until_the_end(first).await;
    }
    session.leave().await;
    answering.abort();
    drop(diverted);
    tui.stop().await;
    let closed = session.runtime.close().await;
    match session.signals.exit_code() {
        Some(code) => Ok(ExitCode::from(code)),
        None => {
            outcome?;
            closed?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A panic of the thread that draws, or of the main one, ends the session: the terminal is given
/// back before the message is printed. Others are caught where they happen; their message is output
/// like any other.
fn restore_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        match thread.name() {
            Some("main" | codespar_tui::THREAD_NAME) => {
                codespar_tui::restore_terminal();
                usual(panic);
            }
            _ => printer::err(format_args!("{panic}")),
        }
    }));
}

/// One sitting. Lives as long as the process; the agent and its session may change.
struct TerminalSession {
    tui: Tui,
    actions: mpsc::UnboundedReceiver<UserAction>,
    runtime: Arc<Runtime>,
    project: Arc<Project>,
    project_commands: Arc<ProjectCommands>,
    /// None before the first prompt, after `/clear`, and while a turn has it.
    agent: Option<Agent>,
    /// Of the session, once it is open.
    mode: SessionMode,
    /// The model that `/model` chose.
    choice: Option<String>,
    /// Which session is opened next. A new one again when a session is left.
    which: WhichSession,
    status: StatusKeeper,
    /// The turn under way, for those who may stop it.
    turns: Turns,
    steering: Arc<Steering>,
    /// Of this sitting, over all its sessions.
    usage: Usage,
    cost: Cost,
    resized: Signal,
    continued: Signal,
    signals: Signals,
}

/// What happened while the driver waited.
enum Happened {
    Action(UserAction),
    News,
    Ended,
}

impl TerminalSession {
    /// An error of one command is shown and the session goes on.
    async fn until_the_end(&mut self, mut next: Option<String>) {
        loop {
            let action = match next.take() {
                Some(text) => Happened::Action(UserAction::Submit(text)),
                None => self.listen().await,
            };
            let done = match action {
                Happened::Ended | Happened::Action(UserAction::Leave) => return,
                Happened::Action(UserAction::Submit(text) | UserAction::Steer(text)) => {
                    if self.is_quit(&text) {
                        return;
                    }
                    self.obey(&text).await
                }
                Happened::News => self.turn(None).await,
                Happened::Action(action) => {
                    self.small_action(&action);
                    Ok(())
                }
            };
            if let Err(error) = done {
                self.say(&style::error(error));
            }
            // What came too late for the turn is the next prompt.
            let late = self.steering.take();
            next = (!late.is_empty()).then(|| late.join("\n\n"));
        }
    }

    async fn listen(&mut self) -> Happened {
        let session = self.agent.as_ref().map(Agent::session);
        let project = self.project.clone();
        let news = news(&project, session);
        tokio::pin!(news);
        loop {
            tokio::select! {
                action = self.actions.recv() => {
                    return action.map_or(Happened::Ended, Happened::Action);
                }
                () = &mut news => return Happened::News,
                _ = self.resized.recv() => self.tui.resized(),
                _ = self.continued.recv() => self.tui.continued(),
                () = self.signals.token().cancelled() => return Happened::Ended,
            }
        }
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
        self.turns.begin(cancel.clone());
        self.tui.turn_started();
        let stop = cancel.clone();
        let mut run = tokio::spawn(async move {
            let result = agent.run(prompt, stop).await;
            (agent, result)
        });
        let ended = loop {
            tokio::select! {
                ended = &mut run => break ended,
                action = self.actions.recv() => match action {
                    Some(UserAction::Steer(text)) => self.steering.push(text),
                    Some(UserAction::Interrupt) => cancel.cancel(),
                    Some(UserAction::Submit(text)) => self.obey_beside(&text, &cancel).await,
                    Some(UserAction::Leave) | None => {
                        self.signals.token().cancel();
                    }
                    Some(action) => self.small_action(&action),
                },
                _ = self.resized.recv() => self.tui.resized(),
                _ = self.continued.recv() => self.tui.continued(),
            }
        };
        self.turns.end();
        let (agent, result) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.tui.turn_ended();
                return Err(CommandError::Failed(error.to_string()));
            }
        };
        self.status.context(&agent.context_usage());
        self.agent = Some(agent);
        self.usage += result.usage;
        self.cost += result.cost;
        self.status.cost(&self.cost);
        self.tui.turn_ended();
        Ok(())
    }

    /// What takes no time and may be done at any time.
    fn small_action(&mut self, action: &UserAction) {
        match action {
            UserAction::NextMode => {
                let next = match self.project.mode.get() {
                    Mode::Default => Mode::AcceptEdits,
                    Mode::AcceptEdits => Mode::Plan,
                    _ => Mode::Default,
                };
                self.set_mode(next);
            }
            UserAction::Transcript => self.show_transcript(),
            _ => {}
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        self.project.mode.set(mode);
        self.status.mode(mode);
    }

    /// A text for the user, with styles as marks.
    fn say(&self, text: &str) {
        self.tui.output(diverted::lines(text));
    }

    fn notice(&self, text: impl Into<String>) {
        self.tui.notice(NoticeLevel::Info, text);
    }

    /// Lets go of the session; it stays in the store. Dropping the agent releases its lock, so the
    /// session can be resumed elsewhere. Tasks go on.
    async fn leave(&mut self) {
        if let Some(agent) = self.agent.take() {
            let id = agent.session();
            drop(agent);
            SessionDirs::of(self.project.dir.state(), id).clean();
            let text = format!("Resume with: codespar --resume {id}");
            self.say(&style::faint(text));
        }
        self.which = WhichSession::New;
    }
}
