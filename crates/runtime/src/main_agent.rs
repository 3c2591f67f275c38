//! The agent of a session: the one that a person or a script talks to.
//!
//! It differs from the agents of tasks (`agents.rs`) in that it works in the user's own tree, has
//! the rules of the process as they are, and asks the user at this surface. At the top of its tree,
//! it owns the budget that its agents share.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::{Agent, AgentDefinition, Inbox, RunLimits, Sink, SteeredInbox, TreeShare};
use codespar_policy::Lifetime;
use codespar_protocol::{SessionId, SessionMode};
use codespar_tasks::{AtEnd, Caller, TaskInbox, coordinator_prompt};
use tokio::sync::OnceCell;

use crate::{Project, RuntimeError, Session, Surface, agent_setup::AgentSetup};

impl Project {
    /// The agent of a session.
    ///
    /// `session` must be open in this process; the agent holds its lock until it is dropped.
    /// `at_end` says whether the agent waits for its tasks when it has nothing more to do. Nothing
    /// is sent to the model yet.
    pub fn main_agent(
        self: &Arc<Self>,
        session: Session,
        surface: Surface,
        at_end: AtEnd,
    ) -> Result<Agent, RuntimeError> {
        let id = session.transcript.session();
        let surface = Surface {
            sink: self.hub.scheduler().events().sink_of(id, surface.sink),
            ..surface
        };
        let caller = self.caller(id, session.mode, surface.sink.clone());
        let style = self.output_style.as_ref();
        let style = style.filter(|_| session.mode == SessionMode::Normal);
        let own = self.own_definition();
        let role = match session.mode {
            SessionMode::Normal => own
                .map(|it| it.prompt.clone())
                .or_else(|| self.options.system_prompt.clone())
                .or_else(|| style.filter(|it| !it.adds).map(|it| it.text.clone())),
            SessionMode::Coordinator => Some(self.coordinator_role(&caller)?),
        };
        let inbox = TaskInbox {
            hub: self.hub.clone(),
            session: id,
            task: None,
            sink: surface.sink.clone(),
            at_end,
            expects_earlier: OnceCell::new(),
        };
        let inbox: Arc<dyn Inbox> = match surface.steering.clone() {
            Some(steering) => Arc::new(SteeredInbox {
                inbox: Arc::new(inbox),
                steering,
                redactor: self.redactor.clone(),
            }),
            None => Arc::new(inbox),
        };
        let mut tools = self.session_tools(session.mode, &caller);
        // At a terminal the user may ask for a team or a list at any time.
        if surface.steering.is_none() && session.mode == SessionMode::Normal {
            self.hold_back_task_tools(&mut tools);
        }
        let wanted = own.and_then(|it| it.model.as_deref());
        let wanted = wanted.filter(|_| self.options.model.is_none());
        let setup = AgentSetup {
            role,
            style: style.filter(|it| it.adds).map(|it| it.text.clone()),
            tools,
            choice: self.provider.choice_for(wanted, &self.settings),
            mode: self.mode.clone(),
            limits: RunLimits {
                max_turns: self.options.max_turns,
                turns_before: 0,
                max_budget: None,
                max_wall: self.settings.max_wall(),
                tree: Some(TreeShare::Root(self.budgets.of_session(id))),
            },
            root: self.dir.root.clone(),
            cwd: self.dir.cwd.clone(),
            rules: self.rules(),
            tree: id,
            workspace_dirs: self.workspace_dirs()?,
            free_dirs: Vec::new(),
            lifetime: Lifetime::Kept,
            inbox,
            task: None,
            kind: None,
            hooks: Vec::new(),
            gate: None,
            surface,
        };
        self.agent(session, setup)
    }

    /// The definition that the agent of a session works by.
    pub(crate) fn own_definition(&self) -> Option<&AgentDefinition> {
        self.agents.agents.get(self.options.agent.as_ref()?)
    }

    /// The agent of a session as one who asks for tasks. Depth 0: its tasks wait for a free place
    /// like any other.
    pub(crate) fn caller(
        self: &Arc<Self>,
        session: SessionId,
        mode: SessionMode,
        sink: Sink,
    ) -> Caller {
        let name = match mode {
            SessionMode::Normal => "the main agent",
            SessionMode::Coordinator => "the coordinator",
        };
        Caller {
            session,
            task: None,
            name: name.to_owned(),
            depth: 0,
            sink,
            root: self.dir.root.clone(),
            authority: self.authority(session),
        }
    }

    /// The names of tools are those that workers will have, sorted so that the prompt stays the
    /// same and can be cached.
    fn coordinator_role(self: &Arc<Self>, caller: &Caller) -> Result<String, RuntimeError> {
        let scratchpad = scratchpad(self.dir.state(), caller.session)?;
        let tools = self.worker_tools(&self.hub, caller);
        let mut names: Vec<String> = tools.names().into_iter().map(str::to_owned).collect();
        names.sort();
        let own = self.session_tools(SessionMode::Coordinator, caller);
        let own: Vec<String> = own.names().into_iter().map(str::to_owned).collect();
        Ok(coordinator_prompt(
            &own,
            &names,
            &self.mcp.connected(),
            &scratchpad,
        ))
    }
}

/// Where workers of a session share what they learn. Named after the session; it exists only for
/// coordinators, which is how agents find out that there is one.
fn scratchpad(state: &Path, session: SessionId) -> Result<PathBuf, RuntimeError> {
    let dir = state.join("scratchpads").join(session.to_string());
    std::fs::create_dir_all(&dir)
        .map_err(|error| RuntimeError::Failed(format!("cannot make {}: {error}", dir.display())))?;
    Ok(dir)
}
