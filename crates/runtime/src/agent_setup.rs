//! From a project and a session to an agent.
//!
//! Used for the agent of a session and for those of tasks: both decide what goes into an
//! `AgentSetup`, and the rest is the same. What an agent may touch is decided by three things made
//! here from one source: the scope that rules are evaluated in, the files that are hidden by deny
//! rules, and the context of its tools.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::{
    Agent, AgentParts, Briefing, Inbox, ModelChoice, RunLimits, SideCalls, SideModel, Sink,
    Steering, WriteGate,
};
use codespar_policy::{
    Lifetime, RepositoryScope, RuleSet, SandboxState, Scope, SharedMode, hooks::Hook,
};
use codespar_protocol::SessionId;
use codespar_store::TaskLease;
use codespar_tasks::QuestionSource;
use codespar_tools::{
    ChangeAuthor, CheckpointStore, Checkpoints, Context, ContextParts, Hidden, Registry,
};
use parking_lot::RwLock;

use crate::{Project, RuntimeError, Session, session_dirs::SessionDirs};

/// Where an agent is shown.
pub struct Surface {
    /// Hears every event.
    pub sink: Sink,
    /// Added to the system prompt. For example that nobody can answer a question.
    pub note: Option<&'static str>,
    /// What its user says while it works.
    pub steering: Option<Arc<Steering>>,
}

/// What one agent is given.
pub(crate) struct AgentSetup {
    /// Its system prompt, if not the usual one.
    pub(crate) role: Option<String>,
    /// How it speaks, besides.
    pub(crate) style: Option<String>,
    pub(crate) tools: Registry,
    pub(crate) choice: ModelChoice,
    pub(crate) mode: SharedMode,
    pub(crate) limits: RunLimits,
    pub(crate) root: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) rules: Arc<RwLock<RuleSet>>,
    /// The session at the top, whose tasks it sees.
    pub(crate) tree: SessionId,
    /// Directories of the workspace besides the root.
    pub(crate) workspace_dirs: Vec<PathBuf>,
    /// Further ones, which need no asking.
    pub(crate) free_dirs: Vec<PathBuf>,
    /// Whether the tree was made for this agent alone.
    pub(crate) lifetime: Lifetime,
    pub(crate) inbox: Arc<dyn Inbox>,
    /// The attempt it belongs to; none for the agent of a session.
    pub(crate) task: Option<TaskLease>,
    /// The kind of agent; none for the agent of a session.
    pub(crate) kind: Option<String>,
    /// Those of its kind, besides those of the project.
    pub(crate) hooks: Vec<Hook>,
    /// Asked before each write; none where nobody else writes to the tree.
    pub(crate) gate: Option<Arc<dyn WriteGate>>,
    pub(crate) surface: Surface,
}

impl AgentSetup {
    /// `free` are directories that need no permission: temporary files, spilled results, the output
    /// of tasks of the same tree, and the scratchpad. The output of other trees is not among them.
    fn scope(&self, project: &Project, dirs: &SessionDirs) -> Scope {
        let mut workspace = vec![self.root.clone()];
        workspace.extend(self.workspace_dirs.iter().cloned());
        workspace.extend(self.free_dirs.iter().cloned());
        let outputs = project.dir.state().join("task-output");
        let mut free = vec![
            dirs.temp.clone(),
            dirs.output.clone(),
            outputs.join(self.tree.to_string()),
        ];
        free.extend(self.free_dirs.iter().cloned());
        Scope {
            root: self.root.clone(),
            cwd: self.cwd.clone(),
            home: project.dir.home().map(Path::to_path_buf),
            workspace,
            free,
            sandbox_state: SandboxState::Sandboxed,
            repository: RepositoryScope::Project,
            lifetime: self.lifetime,
        }
    }
}

impl Project {
    /// An agent on the session. The directories of the session are created here. Hidden files are
    /// computed once, from the rules at this moment.
    pub(crate) fn agent(&self, session: Session, setup: AgentSetup) -> Result<Agent, RuntimeError> {
        let side_calls = Arc::new(SideCalls::default());
        let dirs = SessionDirs::create(self.dir.state(), session.transcript.session())?;
        let scope = setup.scope(self, &dirs);
        let hidden = Hidden::by_rules(&setup.rules.read(), &scope);
        let briefing = self.briefing(&setup, hidden.clone());
        let approver = self.hub.questions().of(QuestionSource {
            session: session.transcript.session(),
            task: setup.task.clone(),
            project_root: self.dir.root.clone(),
        });
        let context = Arc::new(self.tool_context(&setup, &session, dirs, hidden, &side_calls));
        let hooks = self.hooks_of(&setup, &session, &context, &side_calls);
        if let Some(steering) = &setup.surface.steering {
            steering.set_hooks(hooks.clone());
        }
        let parts = AgentParts {
            model: self.provider.model.clone(),
            choice: setup.choice,
            catalogue: self.provider.catalogue.clone(),
            tools: setup.tools,
            context,
            rules: setup.rules,
            mode: setup.mode,
            scope,
            redactor: self.redactor.clone(),
            approver,
            sink: setup.surface.sink,
            limits: setup.limits,
            briefing,
            side_calls,
            inbox: setup.inbox,
            gate: setup.gate,
            hooks,
        };
        Ok(Agent::new(parts, session.transcript))
    }

    /// A resumed session gets its to-do list and the record of files it has read, so that it may
    /// edit those that have not changed without reading them again. Pages are not read by a model
    /// in simulation.
    fn tool_context(
        &self,
        setup: &AgentSetup,
        session: &Session,
        dirs: SessionDirs,
        hidden: Hidden,
        side_calls: &Arc<SideCalls>,
    ) -> Context {
        let page_reader = (!self.provider.is_simulated())
            .then(|| Arc::new(self.side_model(side_calls)) as Arc<_>);
        let mut extra_dirs = setup.workspace_dirs.clone();
        extra_dirs.extend(setup.free_dirs.iter().cloned());
        let context = Context::new(ContextParts {
            root: setup.root.clone(),
            cwd: setup.cwd.clone(),
            extra_dirs,
            temp_dir: dirs.temp,
            output_dir: dirs.output,
            child_env: self.child_env(),
            sandbox: self.sandbox.clone(),
            skills: self.skills.clone(),
            page_reader,
            hidden,
            redactor: self.redactor.clone(),
        });
        let own = [context.temp_dir(), context.output_dir()].map(Path::to_path_buf);
        let context = match self.checkpoints(setup, &own) {
            Some(checkpoints) => context.with_checkpoints(checkpoints),
            None => context,
        };
        context.set_todos(session.recovered.todos.clone());
        context.ledger().restore(&session.recovered.files);
        context
    }

    /// The small model, for questions beside the conversation.
    pub(crate) fn side_model(&self, side_calls: &Arc<SideCalls>) -> SideModel {
        SideModel {
            model: self.provider.model.clone(),
            model_id: self.provider.small_model.clone(),
            catalogue: self.provider.catalogue.clone(),
            side_calls: side_calls.clone(),
            redactor: self.redactor.clone(),
        }
    }

    /// The files of one tree of agents are kept together, so that the user can go back through what
    /// all of them did. A tree that is thrown away needs no going back, nor do directories of the
    /// session itself.
    fn checkpoints(&self, setup: &AgentSetup, own: &[PathBuf]) -> Option<Checkpoints> {
        let author = match setup.task {
            None => ChangeAuthor::Main,
            Some(_) => ChangeAuthor::Subagent,
        };
        let store = CheckpointStore::new(self.dir.state(), setup.tree);
        let left_out = [own, &setup.free_dirs].concat();
        (setup.lifetime == Lifetime::Kept)
            .then(|| Checkpoints::new(store, author).leave_out(left_out))
    }

    /// What the system prompt is made of. Instruction files are read by the agent itself, below
    /// `root` and in the directories of the user.
    fn briefing(&self, setup: &AgentSetup, hidden: Hidden) -> Briefing {
        let has_tool = |start: &str| {
            let mut names = setup.tools.offered();
            names.any(|tool| tool.name().starts_with(start))
        };
        let servers = self.mcp.instructions(has_tool);
        let append = [
            servers.as_deref(),
            setup.surface.note,
            self.options.append_system_prompt.as_deref(),
        ];
        let append: Vec<&str> = append.into_iter().flatten().collect();
        Briefing {
            role: setup.role.clone(),
            style: setup.style.clone(),
            facts: facts(&setup.root, &setup.cwd),
            root: setup.root.clone(),
            cwd: setup.cwd.clone(),
            user_dirs: self.options.instruction_dirs(&self.dir),
            project_files: self.options.project_instructions(),
            tools: setup
                .tools
                .offered()
                .map(|tool| tool.name().to_owned())
                .collect(),
            skills: self.skills.listing(),
            append: (!append.is_empty()).then(|| append.join("\n\n")),
            hidden,
        }
    }
}

/// A few lines at the head of the prompt; the date is that of the time zone of the machine.
fn facts(root: &Path, cwd: &Path) -> Vec<String> {
    let mut facts = vec![format!("Directory: {}", cwd.display())];
    if root != cwd {
        facts.push(format!("Project root: {}", root.display()));
    }
    match branch(root) {
        Some(branch) => facts.push(format!("Git branch: {branch}")),
        None if root.join(".git").exists() => facts.push("A git repository".to_owned()),
        None => facts.push("Not a git repository".to_owned()),
    }
    facts.push(format!(
        "System: {} {}",
        std::env::consts::OS,
        std::env::consts::ARCH
    ));
    facts.push(format!("Date: {}", jiff::Zoned::now().date()));
    facts
}

/// Read from the file rather than asked of git: start-up time is a feature.
fn branch(root: &Path) -> Option<String> {
    let head = std::fs::read_to_string(root.join(".git/HEAD")).ok()?;
    head.trim()
        .strip_prefix("ref: refs/heads/")
        .map(str::to_owned)
}
