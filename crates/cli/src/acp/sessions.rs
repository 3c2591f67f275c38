//! The sessions of the connection, by their ids.
//!
//! One connection may have several sessions, each with a project of its own even in the same
//! directory: its mode, its rules and its MCP servers are what the editor gave this session. A
//! session that is closed, or whose connection ends, stays on record and can be loaded again.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agent_client_protocol::{
    Client, Error, ErrorCode,
    v1::{
        ConnectionTo,
        schema::{ListSessionsRequest, ListSessionsResponse, McpServer, SessionInfo},
    },
};
use codespar_protocol::SessionId;
use codespar_runtime::{
    ProcessRole, ProjectConfig, ProjectDir, ProjectOptions, Runtime, ServerText,
};
use codespar_store::SessionFilter;
use codespar_tasks::{RunnerLimits, agent_sessions};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::{
    capabilities,
    conversation::Conversation,
    servers,
    view::{AcpView, Replay},
};
use crate::{
    error::CommandError,
    printer,
    session::{HostedSession, HostedSetup},
    signals::Signals,
};

/// Sessions of one page of a list.
const PAGE: usize = 100;
/// More than that is not listed.
const MOST_LISTED: u32 = 10_000;
/// How long sessions may take to end when the client is gone.
const LEAVING: Duration = Duration::from_secs(10);
/// A client with more sessions at once has lost track of them.
const MOST_OPEN: usize = 64;

/// What a client says of a session that it wants.
pub(super) struct Wanted {
    pub(super) cwd: PathBuf,
    pub(super) more_dirs: Vec<PathBuf>,
    pub(super) servers: Vec<McpServer>,
    /// The one to resume, and how; a new one otherwise.
    pub(super) resumed: Option<(String, Replay)>,
}

pub(super) struct Sessions {
    /// Where the process was started.
    dir: ProjectDir,
    options: ProjectOptions,
    signals: Signals,
    /// Opened with the first session.
    runtime: OnceCell<Arc<Runtime>>,
    open: Mutex<HashMap<SessionId, Arc<Conversation>>>,
}

/// The text of an error is for the user: nothing in it is obeyed by a terminal.
pub(super) fn failure(error: &CommandError) -> Error {
    let code = match error {
        CommandError::Usage(_) => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    Error::new(code, printer::visible(&error.to_string()))
}

fn usage(message: impl Into<String>) -> Error {
    failure(&CommandError::Usage(message.into()))
}

impl Sessions {
    pub(super) fn new(dir: ProjectDir, options: ProjectOptions, signals: Signals) -> Self {
        Self {
            dir,
            options,
            signals,
            runtime: OnceCell::new(),
            open: Mutex::default(),
        }
    }

    async fn runtime(&self, limits: RunnerLimits) -> Result<&Arc<Runtime>, CommandError> {
        let open = || async {
            let environment = self.dir.environment.clone();
            let options = ProjectOptions::default();
            Runtime::open(environment, ProcessRole::Session, limits, options).await
        };
        Ok(self.runtime.get_or_try_init(open).await?)
    }

    /// Trust is looked up for each directory; `--trust` counts for the one of the process.
    fn project_dir(&self, cwd: &Path) -> Result<ProjectDir, CommandError> {
        if !cwd.is_absolute() {
            return Err(CommandError::Usage(format!(
                "the directory of a session must be an absolute path, not {}",
                cwd.display()
            )));
        }
        let found = ProjectDir::find(self.dir.environment.clone(), cwd)?;
        if found.root != self.dir.root {
            return Ok(found);
        }
        let own = ProjectDir {
            cwd: found.cwd,
            ..self.dir.clone()
        };
        Ok(own.reread())
    }

    fn config(&self, wanted: &Wanted) -> Result<ProjectConfig, Error> {
        let dir = self
            .project_dir(&wanted.cwd)
            .map_err(|error| failure(&error))?;
        for dir in &wanted.more_dirs {
            let shown = dir.display();
            if !dir.is_absolute() {
                return Err(usage(format!("{shown} is not an absolute path")));
            }
            if !dir.is_dir() {
                return Err(usage(format!("{shown} is not a directory")));
            }
        }
        let options = ProjectOptions {
            add_dirs: wanted.more_dirs.clone(),
            mcp_config: servers::as_text(&wanted.servers)
                .map_err(usage)?
                .into_iter()
                .map(ServerText::Passed)
                .collect(),
            ..self.options.clone()
        };
        let config = ProjectConfig::load(dir, options);
        let config = config.map_err(|error| failure(&error.into()))?;
        match config.missing_key() {
            Some(what) => Err(Error::new(
                ErrorCode::AUTH_REQUIRED,
                format!("a session needs a model: {what}"),
            )),
            None => Ok(config),
        }
    }

    /// Opens a session; the client is told of its commands by the caller.
    pub(super) async fn open(
        &self,
        connection: ConnectionTo<Client>,
        wanted: Wanted,
    ) -> Result<Arc<Conversation>, Error> {
        let resumed = match &wanted.resumed {
            Some((id, replay)) => Some((self.to_resume(id)?, *replay)),
            None => None,
        };
        if self.open.lock().len() >= MOST_OPEN {
            return Err(usage(format!(
                "{MOST_OPEN} sessions are open; close one first"
            )));
        }
        let config = self.config(&wanted)?;
        let conversation = self.start(connection, config, resumed).await;
        let conversation = Arc::new(conversation.map_err(|error| failure(&error))?);
        let mut open = self.open.lock();
        open.insert(conversation.id, conversation.clone());
        Ok(conversation)
    }

    fn to_resume(&self, id: &str) -> Result<SessionId, Error> {
        let id: SessionId = id
            .parse()
            .map_err(|_| usage(format!("`{id}` is not the id of a session")))?;
        match self.open.lock().contains_key(&id) {
            true => Err(usage(format!("the session {id} is open already"))),
            false => Ok(id),
        }
    }

    async fn start(
        &self,
        connection: ConnectionTo<Client>,
        config: ProjectConfig,
        resumed: Option<(SessionId, Replay)>,
    ) -> Result<Conversation, CommandError> {
        let runtime = self.runtime(config.limits()).await?.clone();
        let signals = self.signals.of_one();
        let ending = signals.token().clone();
        let replay = resumed.map_or(Replay::Nothing, |(_, replay)| replay);
        let setup = HostedSetup {
            runtime,
            config,
            signals,
            resumed: resumed.map(|(id, _)| id),
            surface: "editor",
        };
        let view = |project: &Arc<_>, id: SessionId| {
            Arc::new(AcpView::new(
                connection,
                id.to_string().into(),
                project,
                replay,
            ))
        };
        let (mut session, view) = HostedSession::begin(setup, view).await?;
        if resumed.is_some()
            && let Err(error) = session.open().await
        {
            view.end();
            session.end().await;
            return Err(error);
        }
        let commands = capabilities::commands(session.commands());
        view.offer(commands);
        Ok(Conversation::start(session, view, ending))
    }

    pub(super) fn find(&self, id: &str) -> Result<Arc<Conversation>, Error> {
        let id = id.parse().ok();
        let found = id.and_then(|id: SessionId| self.open.lock().get(&id).cloned());
        found.ok_or_else(|| usage("there is no such session open; load it first"))
    }

    pub(super) async fn close_one(&self, id: &str) -> Result<(), Error> {
        let conversation = self.find(id)?;
        conversation.end().await;
        self.open.lock().remove(&conversation.id);
        Ok(())
    }

    /// Those in which something was said, the newest first. A cursor is the number of those before.
    pub(super) async fn list(
        &self,
        request: &ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let from = match request.cursor.as_deref() {
            None => 0,
            Some(text) => text
                .parse()
                .map_err(|_| usage("this is no cursor of ours"))?,
        };
        let sessions = self.recorded(request.cwd.as_deref()).await;
        let sessions = sessions.map_err(|error| failure(&error))?;
        let left = sessions.len().saturating_sub(from);
        let page = sessions.into_iter().skip(from).take(PAGE);
        let next = (left > PAGE).then(|| (from + PAGE).to_string());
        Ok(ListSessionsResponse::new(page.collect()).next_cursor(next))
    }

    async fn recorded(&self, cwd: Option<&Path>) -> Result<Vec<SessionInfo>, CommandError> {
        let runtime = self.runtime(RunnerLimits::default()).await?;
        let cwd = cwd.map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.to_path_buf()));
        let filter = SessionFilter {
            cwd,
            limit: Some(MOST_LISTED),
        };
        let sessions = runtime.store().sessions(filter).await?;
        let of_agents = agent_sessions(&**runtime.store()).await?;
        let shown = sessions
            .into_iter()
            .filter(|session| session.last_seq > 0 && !of_agents.contains(&session.id))
            .map(|session| {
                let title = session
                    .title
                    .map(|title| printer::plain(&title).into_owned());
                SessionInfo::new(session.id.to_string(), session.cwd)
                    .title(title)
                    .updated_at(session.updated_at.to_string())
            });
        Ok(shown.collect())
    }

    /// The client is gone: all of them end, then the process.
    pub(super) async fn close(&self) -> Result<(), CommandError> {
        let open: Vec<Arc<Conversation>> = self.open.lock().drain().map(|(_, one)| one).collect();
        let ending = async {
            for conversation in &open {
                conversation.end().await;
            }
        };
        // What does not end is ended with the process.
        let _ = tokio::time::timeout(LEAVING, ending).await;
        match self.runtime.get() {
            Some(runtime) => Ok(runtime.close().await?),
            None => Ok(()),
        }
    }
}
