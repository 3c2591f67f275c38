//! A conversation of a project: opened anew, by its id, or the last one.

use std::sync::Arc;

use codespar_agent::{Recovered, Transcript};
use codespar_protocol::{EntryId, SessionId, SessionMode};
use codespar_store::{NewSession, SessionFilter, Store};
use codespar_tasks::agent_sessions;

use crate::{Project, RuntimeError, session_dirs::find_session};

/// How many sessions are looked at for one to continue.
const RECENT: u32 = 1_000;

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichSession {
    New,
    /// A new one with this id, which no other has.
    NewWith(SessionId),
    /// The one with this id, or a unique prefix of it.
    Id(String),
    /// The last one in the working directory in which something was said.
    Last,
    /// A session that exists, as it was after an entry; what was said since is left out from now
    /// on.
    At {
        from: Box<Self>,
        at: EntryId,
    },
    /// A new one that begins as a copy of another, up to an entry if one is named. Without an id it
    /// gets one.
    Fork {
        from: Box<Self>,
        at: Option<EntryId>,
        id: Option<SessionId>,
    },
}

/// A session that is open for work; no other process has it.
pub struct Session {
    pub transcript: Transcript,
    /// What a crash had left open in it.
    pub recovered: Recovered,
    /// Whether it existed before.
    pub is_resumed: bool,
    /// How it works.
    pub mode: SessionMode,
}

impl Project {
    /// Fails if another process has the session open. A new one is recorded before it is opened, so
    /// it has an id even if nothing is ever said in it.
    pub async fn open_session(&self, which: &WhichSession) -> Result<Session, RuntimeError> {
        let existing = self.existing(which).await?;
        let id = match (existing, which) {
            (Some(id), WhichSession::At { at, .. }) => {
                self.go_back(id, *at).await?;
                id
            }
            (Some(from), WhichSession::Fork { at, id, .. }) => {
                let id = id.unwrap_or_else(SessionId::new);
                self.fork(from, *at, id).await?;
                id
            }
            (Some(id), _) => id,
            (None, WhichSession::NewWith(id)) => self.new_session_with(*id).await?,
            (None, _) => self.new_session().await?,
        };
        let mode = self.store.session(id).await?.mode;
        let store: Arc<dyn Store> = self.store.clone();
        let (transcript, recovered) = Transcript::open(store, id).await?;
        Ok(Session {
            transcript,
            recovered,
            is_resumed: existing.is_some(),
            mode,
        })
    }

    /// The session that is resumed or copied; none where a new one begins.
    async fn existing(&self, which: &WhichSession) -> Result<Option<SessionId>, RuntimeError> {
        let named = match which {
            WhichSession::At { from, .. } | WhichSession::Fork { from, .. } => from,
            other => other,
        };
        Ok(match named {
            WhichSession::Id(text) => Some(find_session(&*self.store, text).await?),
            WhichSession::Last => Some(self.last_session().await?),
            _ => None,
        })
    }

    /// Records a new session.
    pub async fn new_session(&self) -> Result<SessionId, RuntimeError> {
        self.new_session_with(SessionId::new()).await
    }

    /// Records a new session of this id. Fails if there is one.
    pub(crate) async fn new_session_with(&self, id: SessionId) -> Result<SessionId, RuntimeError> {
        if self.store.session(id).await.is_ok() {
            return Err(RuntimeError::Usage(format!(
                "the session id {id} is in use; `--resume {id}` goes on with that session"
            )));
        }
        let new = NewSession {
            id,
            cwd: self.dir.cwd.clone(),
            model: self.provider.choice.id.clone(),
            mode: self.wanted_mode(),
        };
        Ok(self.store.create_session(new).await?.id)
    }

    async fn last_session(&self) -> Result<SessionId, RuntimeError> {
        let filter = SessionFilter {
            cwd: Some(self.dir.cwd.clone()),
            limit: Some(RECENT),
        };
        let recent = self.store.sessions(filter).await?;
        let of_agents = agent_sessions(&*self.store).await?;
        // One in which nothing was said has nothing to go on with.
        let last = recent
            .into_iter()
            .find(|session| session.last_seq > 0 && !of_agents.contains(&session.id));
        last.map(|session| session.id).ok_or_else(|| {
            RuntimeError::Usage(format!(
                "there is no session in {} to continue",
                self.dir.cwd.display()
            ))
        })
    }
}
