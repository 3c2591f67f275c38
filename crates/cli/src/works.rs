//! Agents and the tasks they start, put together for one process.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::{Agent, AgentDefinition, Approver, Limits, TreeShare};
use codespar_dev::{DevRunner, Workflows};
use codespar_policy::{Lifetime, Mode};
use codespar_protocol::{SessionId, SessionMode, TaskType};
use codespar_store::{Store, StoreError, TaskStore};
use codespar_tasks::{
    AgentKind, AgentRunner, AtEnd, Caller, DreamRunner, RunnerLimits, Scheduler, ShellGround,
    ShellRunner, TaskHub, TaskInbox, TeammateRunner, ToolSet, WorkflowRunner, builtin_kinds,
    coordinator_prompt, coordinator_tools, subagent_tools, task_tools, team_tools,
};
use codespar_tools::Registry;

use crate::{
    assemble::{Company, Ground, OpenSession, Outfit},
    error::CommandError,
    maker::{Maker, with_aliases, worker_tools},
    mcp,
    place::Place,
    settings::Settings,
    trees::Trees,
};

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It talks to a person or a script.
    Session,
    /// It takes tasks of others; remote agents too.
    Worker,
}

/// One process's agents and tasks.
pub(crate) struct Works {
    pub(crate) ground: Arc<Ground>,
    pub(crate) hub: Arc<TaskHub>,
    trees: Arc<Trees>,
}

impl Works {
    /// Starts taking tasks of the types this process can run.
    pub(crate) fn open(ground: Ground, approver: Arc<dyn Approver>, role: Role) -> Self {
        let ground = Arc::new(ground);
        let store: Arc<dyn TaskStore> = ground.store.clone();
        let sessions: Arc<dyn Store> = ground.store.clone();
        let limits = RunnerLimits {
            agents: ground
                .settings
                .max_agents
                .unwrap_or(RunnerLimits::default().agents),
            shells: ground
                .settings
                .max_shells
                .unwrap_or(RunnerLimits::default().shells),
        };
        let output_dir = ground.place.state.join("task-output");
        let redactor = ground.redactor.clone();
        let scheduler = match role {
            Role::Session => {
                let root = ground.place.root.clone();
                Scheduler::new(store.clone(), output_dir, limits, root, redactor)
            }
            Role::Worker => Scheduler::of_worker(store.clone(), output_dir, limits, redactor),
        };
        let hub = TaskHub::new(
            store,
            sessions,
            scheduler.clone(),
            kinds(&ground),
            disabled(&ground.place, &ground.settings),
        );
        let project = ground.place.project.clone();
        hub.guard_workflows(Arc::new(move |path: &Path, text: &str| {
            project.may_use_workflow(path, text)
        }));
        let trees = Arc::new(Trees::new(
            ground.args.max_budget_usd,
            ground.settings.max_tokens,
        ));
        let shells = ShellGround {
            sandbox: ground.sandbox.clone(),
            child_env: ground.child_env(),
            temp_dir: ground.place.state.join("tmp"),
            redactor: ground.redactor.clone(),
            rules: ground.rules(),
            home: ground.place.home.clone(),
        };
        // A session in plan mode runs no command and publishes nothing, not even what was approved
        // before in another mode: that waits for a process that may.
        let may_change = role == Role::Worker || ground.mode != Mode::Plan;
        if may_change {
            scheduler.serve(TaskType::LocalBash, Arc::new(ShellRunner(shells)));
        }
        let maker = Maker {
            ground: ground.clone(),
            hub: Arc::downgrade(&hub),
            approver,
            trees: trees.clone(),
        };
        let agents = Arc::new(AgentRunner {
            maker: Arc::new(maker),
            hub: hub.clone(),
        });
        if role == Role::Worker {
            scheduler.serve(TaskType::RemoteAgent, agents.clone());
        }
        let dreams = DreamRunner {
            agents: agents.clone(),
        };
        scheduler.serve(TaskType::Dream, Arc::new(dreams));
        let teammates = TeammateRunner {
            agents: agents.clone(),
        };
        scheduler.serve(TaskType::InProcessTeammate, Arc::new(teammates));
        scheduler.serve(TaskType::LocalAgent, agents);
        let workflows = Workflows {
            files: WorkflowRunner { hub: hub.clone() },
            dev: DevRunner {
                ground: crate::dev::ground(&ground),
                hub: hub.clone(),
            },
        };
        if may_change {
            scheduler.serve(TaskType::LocalWorkflow, Arc::new(workflows));
        }
        mcp::serve_monitors(&ground, &hub);
        if role == Role::Session {
            ground.mcp.begin();
        }
        tokio::spawn(scheduler.run());
        Self { ground, hub, trees }
    }

    /// The agent that talks to the person.
    pub(crate) fn main_agent(
        &self,
        session: OpenSession,
        company: Company,
        at_end: AtEnd,
    ) -> Result<Agent, CommandError> {
        let id = session.transcript.session();
        let ground = &self.ground;
        let caller = Caller {
            session: id,
            task: None,
            depth: 0,
            sink: company.sink.clone(),
            root: ground.place.root.clone(),
            authority: ground.authority(id),
        };
        let (role, tools) = match session.mode {
            SessionMode::Normal => (None, self.own_tools(&caller)),
            SessionMode::Coordinator => {
                let scratchpad = scratchpad(&ground.place.state, id)?;
                let workers = tool_names(&worker_tools(ground, &self.hub, &caller));
                let role = coordinator_prompt(&workers, &ground.mcp.connected(), &scratchpad);
                (Some(role), self.directing_tools(&caller))
            }
        };
        let inbox = TaskInbox {
            hub: self.hub.clone(),
            session: id,
            task: None,
            sink: company.sink.clone(),
            at_end,
        };
        let outfit = Outfit {
            role,
            tools,
            choice: ground.provider.choice.clone(),
            mode: ground.mode,
            limits: Limits {
                max_turns: ground.args.max_turns,
                turns_before: 0,
                max_budget: None,
                max_wall: ground.settings.max_wall(),
                tree: Some(TreeShare::Root(self.trees.of_session(id))),
            },
            root: ground.place.root.clone(),
            cwd: ground.place.cwd.clone(),
            rules: ground.rules(),
            tree: id,
            workspace_dirs: ground.workspace_dirs()?,
            free_dirs: Vec::new(),
            lifetime: Lifetime::Kept,
            inbox: Arc::new(inbox),
            gate: None,
            company,
        };
        ground.agent(session, outfit)
    }

    /// The names of the tools that the person's agent has.
    pub(crate) fn tool_names(&self, session: &OpenSession) -> Vec<String> {
        let id = session.transcript.session();
        let caller = Caller {
            session: id,
            task: None,
            depth: 0,
            sink: Arc::new(|_| {}),
            root: self.ground.place.root.clone(),
            authority: self.ground.authority(id),
        };
        let tools = match session.mode {
            SessionMode::Normal => self.own_tools(&caller),
            SessionMode::Coordinator => self.directing_tools(&caller),
        };
        tools.names().into_iter().map(str::to_owned).collect()
    }

    /// What a coordinator has; following pull requests too where there is a repository.
    fn directing_tools(&self, caller: &Caller) -> Registry {
        let mut tools = coordinator_tools(&self.hub, caller);
        // Followers are workflows, which plan mode does not run.
        if self.ground.mode != Mode::Plan {
            for tool in crate::dev::subscriptions(&self.ground, &self.hub, caller) {
                tools.add(tool);
            }
        }
        tools
    }

    /// Standard tools and those for tasks, less what `--disallowedTools` takes away.
    fn own_tools(&self, caller: &Caller) -> Registry {
        let mut tools = self.ground.tools.clone();
        let added = task_tools(&self.hub, caller)
            .into_iter()
            .chain(subagent_tools(&self.hub, caller))
            .chain(team_tools(&self.hub, caller))
            .chain(self.ground.mcp.tools());
        for tool in added {
            tools.add(tool);
        }
        with_aliases(tools.filtered(None, &self.ground.denied))
    }

    /// The tools of MCP servers that are connected now, for an agent that was made before.
    pub(crate) fn server_tools(&self) -> Registry {
        let mut tools = Registry::default();
        for tool in self.ground.mcp.tools() {
            tools.add(tool);
        }
        tools.filtered(None, &self.ground.denied)
    }

    /// Lets go of everything in good order. Fails when what was recorded is lost.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        self.hub.scheduler().leave().await;
        self.ground.mcp.close().await;
        self.ground.store.close().await
    }
}

fn tool_names(tools: &Registry) -> Vec<String> {
    let mut names: Vec<String> = tools.names().into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

/// Where workers of a session share what they learn.
fn scratchpad(state: &Path, session: SessionId) -> Result<PathBuf, CommandError> {
    let dir = state.join("scratchpads").join(session.to_string());
    std::fs::create_dir_all(&dir)
        .map_err(|error| CommandError::Failed(format!("cannot make {}: {error}", dir.display())))?;
    Ok(dir)
}

/// Built-in kinds and the definitions of project and person; a definition of the same name wins.
fn kinds(ground: &Ground) -> Vec<AgentKind> {
    let custom: Vec<AgentKind> = ground.agents.agents.values().map(kind_of).collect();
    let mut kinds = builtin_kinds();
    kinds.retain(|kind| custom.iter().all(|other| other.name != kind.name));
    kinds.extend(custom);
    kinds
}

/// The kind that a definition makes.
pub(crate) fn kind_of(agent: &AgentDefinition) -> AgentKind {
    AgentKind {
        name: agent.name.clone(),
        description: agent.description.clone(),
        tools: match &agent.tools {
            Some(names) if !names.iter().any(|name| name == "*") => ToolSet::Only(names.clone()),
            _ => ToolSet::All,
        },
        model: agent.model.clone(),
        max_turns: agent.max_turns.unwrap_or(20),
        prompt: agent.prompt.clone(),
        isolation: agent.isolation,
        background: agent.background,
        skills: agent.skills.clone(),
    }
}

/// Why no tasks may be made here, if so.
pub(crate) fn disabled(place: &Place, settings: &Settings) -> Option<String> {
    let by_variable = truthy(place, "DISABLE_BACKGROUND_TASKS");
    (by_variable || settings.disable_background_tasks == Some(true)).then(|| {
        "background tasks are switched off (DISABLE_BACKGROUND_TASKS in the environment, or \
         disableBackgroundTasks in the settings)"
            .to_owned()
    })
}

/// A variable that is set to something that means yes.
pub(crate) fn truthy(place: &Place, name: &str) -> bool {
    place
        .var(name)
        .is_some_and(|value| !matches!(value, "0" | "false" | "no"))
}
