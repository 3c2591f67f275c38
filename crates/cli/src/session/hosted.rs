//! A session that another program shows: an editor sends prompts and gets what happens.
//!
//! The driver is that of every session with a person; this part calls it for each prompt, instead of
//! waiting for what somebody types. Text that runs something without a question at a terminal
//! (`!command`, `#note`, `@codespar …`) is only text here: prompts may be put together by programs.

use std::sync::Arc;

use codespar_agent::{NamedBy, SessionEndReason};
use codespar_protocol::{Cost, NoticeLevel, SessionId, SessionMode, Usage};
use codespar_runtime::{Project, ProjectCommands, ProjectConfig, Runtime, WhichSession};
use codespar_tasks::Attendance;
use codespar_tools::sandbox::Sandbox;
use codespar_tui::UserAction;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    SessionDriver,
    person::Person,
    questions::{self, Turns},
    status::StatusKeeper,
    tasks::news,
    view::SessionView,
};
use crate::{
    error::CommandError,
    signals::Signals,
    slash::{self, Typed},
    style,
};

/// What a session is made of. It gets a project of its own: its mode, the rules it was given for the
/// session and its MCP servers are not those of another session in the same directory.
pub(crate) struct HostedSession {
    driver: SessionDriver,
    answering: JoinHandle<()>,
    actions: mpsc::UnboundedSender<UserAction>,
    id: SessionId,
    /// Whether a prompt was sent.
    has_begun: bool,
}

pub(crate) struct HostedSetup {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) config: ProjectConfig,
    /// Of this session.
    pub(crate) signals: Signals,
    /// The one to resume; a new one otherwise.
    pub(crate) resumed: Option<SessionId>,
    /// What the surface is called in records.
    pub(crate) surface: &'static str,
}

impl HostedSession {
    /// Opens the project and records the session. Its agent is made with the first prompt, or by
    /// [`HostedSession::open`].
    pub(crate) async fn begin<V: SessionView + 'static>(
        setup: HostedSetup,
        view: impl FnOnce(&Arc<Project>, SessionId) -> Arc<V>,
    ) -> Result<(Self, Arc<V>), CommandError> {
        let HostedSetup {
            runtime,
            config,
            signals,
            resumed,
            surface,
        } = setup;
        let (ask, asked) = mpsc::channel(64);
        let person = Person {
            questions: ask,
            ending: signals.token().clone(),
            surface,
        };
        let project = runtime.open_project(config, Attendance::Here(Arc::new(person)));
        let id = match resumed {
            Some(id) => project.store.session(id).await?.id,
            None => project.new_session().await?,
        };
        runtime.keep_for_session(id, &project);
        // Finding out what works takes a while; the model takes longer to ask for a command.
        Sandbox::warm_up(&project.sandbox);
        project.mcp.begin();
        runtime.start_tasks();
        let project_commands = Arc::new(ProjectCommands::load(
            &project.dir,
            &project.plugins,
            &project.options,
        ));
        let view = view(&project, id);
        let surface: Arc<dyn SessionView> = view.clone();
        let turns = Turns::default();
        let answering =
            questions::answer_all(asked, surface.clone(), project.clone(), turns.clone());
        let (send, actions) = mpsc::unbounded_channel();
        let driver = SessionDriver {
            status: StatusKeeper::new(surface.clone(), &project),
            view: surface,
            actions,
            which: WhichSession::Id(id.to_string()),
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
        let session = Self {
            driver,
            answering,
            actions: send,
            id,
            has_begun: false,
        };
        Ok((session, view))
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    pub(crate) fn project(&self) -> &Arc<Project> {
        &self.driver.project
    }

    pub(crate) fn commands(&self) -> &ProjectCommands {
        &self.driver.project_commands
    }

    /// Where an interruption of what is under way goes.
    pub(crate) fn actions(&self) -> mpsc::UnboundedSender<UserAction> {
        self.actions.clone()
    }

    /// Makes the agent now. The conversation of a resumed session is shown.
    pub(crate) async fn open(&mut self) -> Result<(), CommandError> {
        self.driver.open().await
    }

    /// Interruptions that came too late for what they were meant for are forgotten.
    pub(crate) fn forget_interruptions(&mut self) {
        while self.driver.actions.try_recv().is_ok() {}
    }

    /// A prompt or a slash command, to its end.
    pub(crate) async fn prompt(&mut self, text: String) -> Result<(), CommandError> {
        if !self.has_begun {
            self.has_begun = true;
            self.driver.ask_about_servers().await;
        }
        match slash::read(&text, &self.driver.project_commands) {
            Typed::Prompt(_)
            | Typed::Nothing
            | Typed::Mention(_)
            | Typed::Shell(_)
            | Typed::Note(_) => self.driver.prompt(text, NamedBy::User).await,
            Typed::Quit
            | Typed::Clear
            | Typed::Resume(_)
            | Typed::Rewind(_)
            | Typed::Copy(_)
            | Typed::Review(Some(_)) => {
                let notice = "this command works at a terminal; sessions begin and end in your \
                              editor";
                self.driver
                    .view
                    .notice(NoticeLevel::Warning, notice.to_owned());
                Ok(())
            }
            _ => {
                self.driver.open().await?;
                self.driver.obey(&text).await
            }
        }
    }

    /// Returns when a task has news for the agent. Never before the first prompt.
    pub(crate) async fn news(&self) {
        let agent = self.driver.agent.as_ref();
        let session = agent
            .filter(|_| self.has_begun)
            .map(|agent| agent.session());
        news(&self.driver.project, session).await;
    }

    /// A turn of the agent about the news.
    pub(crate) async fn tell_news(&mut self) {
        self.forget_interruptions();
        if let Err(error) = self.driver.turn(None).await {
            self.driver.say(&style::error(error));
        }
    }

    /// Tasks go on; the MCP servers of the session end.
    pub(crate) async fn end(mut self) {
        self.driver.leave(SessionEndReason::Exit).await;
        self.answering.abort();
        self.driver.project.mcp.close().await;
    }
}

/// Slash commands that work in a session that another program shows.
pub(crate) fn hosted_commands() -> impl Iterator<Item = &'static slash::SlashCommand> {
    const LEFT_OUT: [&str; 5] = ["quit", "clear", "resume", "rewind", "copy"];
    slash::COMMANDS
        .iter()
        .filter(|one| !LEFT_OUT.contains(&one.name))
}
