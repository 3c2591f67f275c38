//! A session with a person: the driver between a surface and the agent.
//!
//! ```text
//! at the prompt    an action of the user │ news of a task │ a signal
//! during a turn    the end of the run │ an action: steer, interrupt, a command │ a signal
//! ```
//!
//! The driver is the same for every surface ([`view::SessionView`]): one that draws at a terminal,
//! and plain lines for `--plain`, `TERM=dumb` and screen readers. Questions of agents are shown by a
//! task of their own (`questions.rs`), whatever the driver waits for. A session is created when the
//! first prompt is sent, so looking around leaves nothing in the store.

mod attachments;
mod clipboard;
mod commands;
mod hosted;
mod open;
mod parts;
mod person;
mod plain;
mod project_command;
mod questions;
mod requests;
mod rewind;
mod servers;
mod status;
mod task_pane;
mod tasks;
mod terminal;
mod view;

pub(crate) use self::{
    hosted::{HostedSession, HostedSetup, hosted_commands},
    view::SessionView,
};

use std::{io::IsTerminal, process::ExitCode, sync::Arc};

use codespar_agent::{Agent, SessionEndReason, Steering};
use codespar_policy::Mode;
use codespar_protocol::{Cost, Message, NoticeLevel, SessionId, SessionMode, Usage};
use codespar_runtime::{
    ProcessRole, Project, ProjectCommands, ProjectConfig, ProjectDir, Runtime, SessionDirs,
    WhichSession,
};
use codespar_tasks::Attendance;
use codespar_tui::UserAction;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::tasks::news;
use self::{
    person::Person, plain::PlainView, questions::Turns, status::StatusKeeper,
    task_pane::TaskFollower, terminal::TerminalView,
};
use crate::{
    args::Cli,
    commands::gc,
    error::CommandError,
    headless::{HURRIED_HOOKS, LEAVING_HOOKS},
    signals::Signals,
    style,
};

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
    let config = ProjectConfig::load(project_dir, cli.session.project_options()?)?;
    let is_plain = config.terminal().plain == Some(true) || !terminal::is_possible(&cli);
    let (ask, asked) = mpsc::channel(64);
    let signals = Signals::watch_for_end(CancellationToken::new())?;
    let person = Person {
        questions: ask,
        ending: signals.token().clone(),
        surface: "terminal",
    };
    let attendance = Attendance::Here(Arc::new(person));
    let (runtime, project) =
        Runtime::with_project(config, attendance, ProcessRole::Session).await?;
    let project_commands = Arc::new(ProjectCommands::load(
        &project.dir,
        &project.plugins,
        &project.options,
    ));
    let (view, actions) = view(is_plain, &project, &project_commands)?;
    let turns = Turns::default();
    let answering = questions::answer_all(asked, view.clone(), project.clone(), turns.clone());
    let mut session = SessionDriver {
        status: StatusKeeper::new(view.clone(), &project),
        view,
        actions,
        which: cli.session.which_session()?,
        runtime,
        project,
        project_commands,
        agent: None,
        open_session: None,
        mode: SessionMode::Normal,
        choice: None,
        turns,
        task_list: None,
        steering: Arc::default(),
        usage: Usage::default(),
        cost: Cost::default(),
        signals,
    };
    let outcome = session.run(&cli).await;
    session.view.leave_prompt();
    session.leave(SessionEndReason::Exit).await;
    answering.abort();
    session.view.stop().await;
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

type Surface = (Arc<dyn SessionView>, mpsc::UnboundedReceiver<UserAction>);

fn view(
    is_plain: bool,
    project: &Arc<Project>,
    commands: &Arc<ProjectCommands>,
) -> Result<Surface, CommandError> {
    if is_plain {
        let (view, actions) = PlainView::start()?;
        return Ok((Arc::new(view), actions));
    }
    let (view, actions) = TerminalView::start(project, commands)?;
    Ok((Arc::new(view), actions))
}

/// One sitting. Lives as long as the process; the agent and its session may change.
struct SessionDriver {
    view: Arc<dyn SessionView>,
    actions: mpsc::UnboundedReceiver<UserAction>,
    runtime: Arc<Runtime>,
    project: Arc<Project>,
    project_commands: Arc<ProjectCommands>,
    /// None before the first prompt, after `/clear`, and while a turn has it.
    agent: Option<Agent>,
    /// None where there is no agent, and it stays while a turn has the agent.
    open_session: Option<SessionId>,
    /// Of the session, once it is open.
    mode: SessionMode,
    /// The model that `/model` chose.
    choice: Option<String>,
    /// Which session is opened next. A new one again when a session is left.
    which: WhichSession,
    status: StatusKeeper,
    /// The turn under way, for those who may stop it.
    turns: Turns,
    /// Keeps the list of tasks up to date while it is open.
    task_list: Option<TaskFollower>,
    steering: Arc<Steering>,
    /// Of this sitting, over all its sessions.
    usage: Usage,
    cost: Cost,
    /// What ends the whole session. Ctrl-C is not among them.
    signals: Signals,
}

/// What happened while the driver waited.
enum Happened {
    Action(UserAction),
    News,
    Ended,
}

impl SessionDriver {
    async fn run(&mut self, cli: &Cli) -> Result<(), CommandError> {
        let first = Some(cli.prompt.join(" ")).filter(|text| !text.trim().is_empty());
        let wants_session = cli.session.resume.is_some() || cli.session.continue_last;
        self.runtime.start_tasks();
        self.say(&parts::banner(&self.project));
        gc::daily(&self.project.dir, &self.project.settings);
        self.ask_about_servers().await;
        if wants_session {
            self.open().await?;
        }
        self.until_the_end(first).await;
        Ok(())
    }

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
                Happened::Action(action) => self.small_action(&action).await,
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
        self.view.at_prompt();
        tokio::select! {
            action = self.actions.recv() => action.map_or(Happened::Ended, Happened::Action),
            () = news => Happened::News,
            () = self.signals.token().cancelled() => Happened::Ended,
        }
    }

    /// The agent runs as a task of its own and is given back by it. If that task panics the agent
    /// is lost with it, and the error is shown.
    async fn turn(&mut self, prompt: Option<Message>) -> Result<(), CommandError> {
        self.open().await?;
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        // A server that could not be connected at first may be there by now, and lists change.
        if self.mode == SessionMode::Normal {
            agent.set_server_tools(&self.project.server_tools());
        }
        let cancel = self.signals.token().child_token();
        self.turns.begin(cancel.clone());
        self.view.turn_started();
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
                    Some(action) => self.small_action_beside(&action).await,
                },
            }
        };
        self.turns.end();
        let (agent, result) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.view.turn_ended(None);
                return Err(CommandError::Failed(error.to_string()));
            }
        };
        self.status.context(&agent.context_usage());
        self.agent = Some(agent);
        self.usage += result.usage;
        self.cost += result.cost;
        self.status.cost(&self.cost);
        self.view.turn_ended(Some(&result));
        Ok(())
    }

    /// What takes no long time and may be done at any time.
    async fn small_action(&mut self, action: &UserAction) -> Result<(), CommandError> {
        if let Some(done) = self.task_action(action).await {
            return done;
        }
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
            UserAction::PastePicture => self.paste_picture().await,
            _ => {}
        }
        Ok(())
    }

    /// The same beside other work, which an error does not end.
    async fn small_action_beside(&mut self, action: &UserAction) {
        if let Err(error) = self.small_action(action).await {
            self.say(&style::error(error));
        }
    }

    /// The one that is open. While a turn has the agent, the one it works on.
    fn session(&self) -> Option<SessionId> {
        self.open_session
    }

    fn set_session(&mut self, session: Option<SessionId>) {
        self.open_session = session;
        self.status.session(session);
    }

    fn set_mode(&mut self, mode: Mode) {
        self.project.mode.set(mode);
        self.status.mode(mode);
    }

    /// A text for the user, with styles as marks.
    fn say(&self, text: &str) {
        self.view.say(text);
    }

    fn notice(&self, text: impl Into<String>) {
        self.view.notice(NoticeLevel::Info, text.into());
    }

    /// Lets go of the session; it stays in the store. Dropping the agent releases its lock, so the
    /// session can be resumed elsewhere. Tasks go on.
    async fn leave(&mut self, reason: SessionEndReason) {
        if let Some(agent) = self.agent.take() {
            let id = agent.session();
            let limit = match self.signals.exit_code() {
                Some(_) => HURRIED_HOOKS,
                None => LEAVING_HOOKS,
            };
            agent.end_session(reason, limit).await;
            self.set_session(None);
            drop(agent);
            SessionDirs::of(self.project.dir.state(), id).clean();
            let text = format!("Resume with: codespar --resume {id}");
            self.say(&style::faint(text));
        }
        self.which = WhichSession::New;
    }
}
