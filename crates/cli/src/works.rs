//! Agents and the tasks they start, put together for one process.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use codespar_agent::{
    Agent, Approver, Gate, Limits, ModelChoice, Sink, Transcript, TreeBudget, TreeShare,
};
use codespar_policy::Mode;
use codespar_protocol::{SessionId, SessionMode, TaskId, TaskType};
use codespar_store::{Store, TaskStore};
use codespar_tasks::{
    AgentKind, AgentMaker, AgentOrder, AgentRunner, AtEnd, Caller, Control, DreamRunner, MadeAgent,
    RunnerLimits, Scheduler, ShellGround, ShellRunner, TaskHub, TaskInbox, ToolSet, WorkflowRunner,
    builtin_kinds, coordinator_prompt, coordinator_tools, dream_kind, subagent_tools, task_tools,
};
use codespar_tools::{Registry, standard_tools, worktree::Worktree};

use crate::{
    assemble::{Company, Ground, OpenSession, Outfit},
    error::CommandError,
    place::Place,
    session_dirs::SessionDirs,
    settings::Settings,
};

/// Only these, for workers of `CODESPAR_SIMPLE`.
const SIMPLE: [&str; 3] = ["Bash", "Read", "Edit"];
/// So that the model of a subagent does not end in a question that nobody will see.
const NOTE: &str = "You report to another agent: nobody can answer a question. Decide yourself what \
                    is not said, and say what you assumed.";

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
    tree: Arc<TreeBudget>,
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
        let scheduler = Scheduler::new(store.clone(), output_dir, limits);
        let hub = TaskHub::new(
            store,
            sessions,
            scheduler.clone(),
            kinds(&ground),
            disabled(&ground.place, &ground.settings),
        );
        let tree = Arc::new(TreeBudget::new(
            ground.args.max_budget_usd,
            ground.settings.max_tokens,
        ));
        let shells = ShellGround {
            sandbox: ground.sandbox.clone(),
            child_env: ground.child_env(),
            temp_dir: ground.place.state.join("tmp"),
        };
        scheduler.serve(TaskType::LocalBash, Arc::new(ShellRunner(shells)));
        let maker = Maker {
            ground: ground.clone(),
            hub: Arc::downgrade(&hub),
            approver,
            tree: tree.clone(),
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
        scheduler.serve(TaskType::LocalAgent, agents);
        let workflows = WorkflowRunner { hub: hub.clone() };
        scheduler.serve(TaskType::LocalWorkflow, Arc::new(workflows));
        tokio::spawn(scheduler.run());
        Self { ground, hub, tree }
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
        };
        let (role, tools) = match session.mode {
            SessionMode::Normal => (None, self.own_tools(&caller)),
            SessionMode::Coordinator => {
                let scratchpad = scratchpad(&ground.place.state, id)?;
                let workers = tool_names(&worker_tools(ground, &self.hub, &caller));
                let role = coordinator_prompt(&workers, &[], &scratchpad);
                (Some(role), coordinator_tools(&self.hub, &caller))
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
                max_budget: None,
                max_wall: ground.settings.max_wall(),
                tree: Some(TreeShare::Root(self.tree.clone())),
            },
            root: ground.place.root.clone(),
            cwd: ground.place.cwd.clone(),
            extra_dirs: Vec::new(),
            inbox: Arc::new(inbox),
            gate: None,
            company,
        };
        ground.agent(session, outfit)
    }

    /// The names of the tools that the person's agent has.
    pub(crate) fn tool_names(&self, session: &OpenSession) -> Vec<String> {
        let caller = Caller {
            session: session.transcript.session(),
            task: None,
            depth: 0,
            sink: Arc::new(|_| {}),
            root: self.ground.place.root.clone(),
        };
        let tools = match session.mode {
            SessionMode::Normal => self.own_tools(&caller),
            SessionMode::Coordinator => coordinator_tools(&self.hub, &caller),
        };
        tools.names().into_iter().map(str::to_owned).collect()
    }

    /// Standard tools and those for tasks, less what `--disallowedTools` takes away.
    fn own_tools(&self, caller: &Caller) -> Registry {
        let mut tools = self.ground.tools.clone();
        let added = task_tools(&self.hub, caller)
            .into_iter()
            .chain(subagent_tools(&self.hub, caller));
        for tool in added {
            tools.add(tool);
        }
        with_aliases(tools.filtered(None, &self.ground.denied))
    }

    /// Lets go of everything in good order.
    pub(crate) async fn close(&self) {
        self.hub.scheduler().leave().await;
        self.ground.store.close().await;
    }
}

/// Makes subagents.
struct Maker {
    ground: Arc<Ground>,
    hub: Weak<TaskHub>,
    approver: Arc<dyn Approver>,
    tree: Arc<TreeBudget>,
}

#[async_trait]
impl AgentMaker for Maker {
    async fn make(
        &self,
        order: &AgentOrder,
        control: &Control,
        sink: Sink,
    ) -> Result<MadeAgent, String> {
        let hub = self.hub.upgrade().ok_or("the process is leaving")?;
        let kind = match control.record.task_type {
            TaskType::Dream => dream_kind(),
            _ => hub
                .kind(&order.subagent_type)
                .map_err(|error| error.to_string())?
                .clone(),
        };
        let task = &control.record.task_id;
        let worktree = match order.isolation {
            Some(_) => Some(self.worktree(order, task).await?),
            None => None,
        };
        let (root, cwd) = match &worktree {
            Some(tree) => (
                tree.path().to_path_buf(),
                tree.matching(&order.root, &order.cwd),
            ),
            None => (order.root.clone(), order.cwd.clone()),
        };
        let caller = Caller {
            session: order.agent_session,
            task: Some(task.clone()),
            depth: order.depth,
            sink: sink.clone(),
            root: root.clone(),
        };
        let store: Arc<dyn Store> = self.ground.store.clone();
        let (transcript, recovered) = Transcript::open(store, order.agent_session)
            .await
            .map_err(|error| error.to_string())?;
        let session = OpenSession {
            transcript,
            recovered,
            is_resumed: control.was_lost,
            mode: SessionMode::Normal,
        };
        let pad = control
            .record
            .session_id
            .map(|parent| {
                self.ground
                    .place
                    .state
                    .join("scratchpads")
                    .join(parent.to_string())
            })
            .filter(|pad| pad.is_dir());
        let inbox = TaskInbox {
            hub: hub.clone(),
            session: order.agent_session,
            task: Some(task.clone()),
            sink: sink.clone(),
            at_end: AtEnd::Wait,
        };
        let gate = worktree.is_none().then(|| {
            Arc::new(PathGate {
                hub: hub.clone(),
                task: task.clone(),
            }) as Arc<dyn Gate>
        });
        let outfit = Outfit {
            role: Some(role(&kind, pad.as_deref())),
            tools: self.tools(&hub, &kind, &caller),
            choice: self.choice(order, &kind),
            mode: self.mode(&kind),
            limits: Limits {
                max_turns: Some(order.max_turns.unwrap_or(kind.max_turns)),
                max_budget: None,
                max_wall: self.ground.settings.max_wall(),
                tree: Some(TreeShare::Branch(self.tree.clone())),
            },
            root,
            cwd,
            extra_dirs: pad.into_iter().collect(),
            inbox: Arc::new(inbox),
            gate,
            company: Company {
                sink,
                approver: self.approver.clone(),
                note: Some(NOTE),
            },
        };
        let agent = self
            .ground
            .agent(session, outfit)
            .map_err(|error| error.to_string())?;
        let dirs = SessionDirs::of(&self.ground.place.state, order.agent_session);
        let after = Box::new(move || {
            dirs.clean();
            worktree.and_then(Worktree::settle)
        });
        Ok(MadeAgent { agent, after })
    }
}

impl Maker {
    fn tools(&self, hub: &Arc<TaskHub>, kind: &AgentKind, caller: &Caller) -> Registry {
        let all = match &kind.tools {
            ToolSet::Worker => worker_tools(&self.ground, hub, caller),
            _ => {
                let mut tools = standard_tools();
                let added = task_tools(hub, caller)
                    .into_iter()
                    .chain(subagent_tools(hub, caller));
                for tool in added {
                    tools.add(tool);
                }
                tools
            }
        };
        let all = match &kind.tools {
            ToolSet::Only(names) => all.filtered(Some(names), &[]),
            _ => all,
        };
        let custom = self.ground.agents.agents.get(&kind.name);
        let denied = custom
            .map(|agent| agent.disallowed_tools.clone())
            .unwrap_or_default();
        with_aliases(all.filtered(None, &[&denied[..], &self.ground.denied[..]].concat()))
    }

    fn mode(&self, kind: &AgentKind) -> Mode {
        let custom = self.ground.agents.agents.get(&kind.name);
        let own = custom.and_then(|agent| agent.permission_mode);
        // A definition comes with the repository: it may be stricter than the person, not looser.
        match own {
            Some(Mode::BypassPermissions | Mode::AcceptEdits) | None => self.ground.mode,
            Some(mode) => mode,
        }
    }

    fn choice(&self, order: &AgentOrder, kind: &AgentKind) -> ModelChoice {
        let wanted = order.model.as_deref().or(kind.model.as_deref());
        self.ground
            .provider
            .choice_for(wanted, &self.ground.settings)
    }

    async fn worktree(&self, order: &AgentOrder, task: &TaskId) -> Result<Worktree, String> {
        let path = self
            .ground
            .place
            .state
            .join("worktrees")
            .join(task.as_str());
        let (root, branch) = (order.root.clone(), format!("codespar/{task}"));
        tokio::task::spawn_blocking(move || Worktree::open(&root, &path, &branch))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("no worktree could be made: {error}"))
    }
}

/// Workers have everything but the coordinator's own tools.
fn worker_tools(ground: &Ground, hub: &Arc<TaskHub>, caller: &Caller) -> Registry {
    if ground
        .place
        .var("CODESPAR_SIMPLE")
        .is_some_and(|value| value != "0")
    {
        return standard_tools().filtered(Some(&SIMPLE.map(str::to_owned)), &[]);
    }
    let mut tools = standard_tools();
    for tool in task_tools(hub, caller) {
        tools.add(tool);
    }
    tools
}

fn with_aliases(mut tools: Registry) -> Registry {
    for (alias, name) in [
        ("Agent", "Task"),
        ("BashOutput", "TaskOutput"),
        ("KillShell", "TaskStop"),
    ] {
        if tools.get(name).is_some() {
            tools.alias(alias, name);
        }
    }
    tools
}

fn tool_names(tools: &Registry) -> Vec<String> {
    let mut names: Vec<String> = tools.names().into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

fn role(kind: &AgentKind, scratchpad: Option<&Path>) -> String {
    match scratchpad {
        Some(pad) => format!("{}\n\nScratchpad: {}", kind.prompt, pad.display()),
        None => kind.prompt.clone(),
    }
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
    let custom: Vec<AgentKind> = ground
        .agents
        .agents
        .values()
        .map(|agent| AgentKind {
            name: agent.name.clone(),
            description: agent.description.clone(),
            tools: match &agent.tools {
                Some(names) if !names.iter().any(|name| name == "*") => {
                    ToolSet::Only(names.clone())
                }
                _ => ToolSet::All,
            },
            model: agent.model.clone(),
            max_turns: agent.max_turns.unwrap_or(20),
            prompt: agent.prompt.clone(),
        })
        .collect();
    let mut kinds = builtin_kinds();
    kinds.retain(|kind| custom.iter().all(|other| other.name != kind.name));
    kinds.extend(custom);
    kinds
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

/// Files have one writer among the agents of a state directory.
struct PathGate {
    hub: Arc<TaskHub>,
    task: TaskId,
}

#[async_trait]
impl Gate for PathGate {
    async fn claim(&self, path: &Path) -> Result<(), String> {
        self.hub
            .store()
            .claim_paths(&self.task, &[path.to_path_buf()])
            .await
            .map_err(|error| error.to_string())
    }
}
