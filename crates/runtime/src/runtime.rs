//! One process: its database, its scheduler, and the projects that are open in it.
//!
//! A runtime is made once and closed once. Dropping it without [`Runtime::close`] is like a crash:
//! tasks that run are found lost by other processes, which continue what can be continued.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use codespar_agent::EventBus;
use codespar_policy::Redactor;
use codespar_protocol::{Authority, Labels, SessionId, TaskId};
use codespar_store::{ChangeFeed, Database, Store, TaskStore};
use codespar_tasks::{
    Attendance, Questions, RunnerLimits, Scheduler, SchedulerKind, SchedulerSetup, TaskHub,
    TaskOutputs, Workload,
};
use codespar_tools::sandbox::Sandbox;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    Environment, Project, ProjectConfig, ProjectDir, ProjectOptions, RuntimeError, Settings,
    engine, environment::means_yes, fingerprint::Fingerprint, runners::ByProject, tools::kinds,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// It talks to a person or a script, and runs tasks of the projects it has opened.
    Session,
    /// It runs tasks of every project; remote agents too. Questions of its agents wait in the store
    /// for an answer from another process.
    Worker,
    /// It makes tasks and follows them, and runs none: workers do. Questions of agents wait in the
    /// store, as for a worker.
    Client,
}

/// One process.
pub struct Runtime {
    environment: Arc<Environment>,
    store: Arc<dyn Database>,
    scheduler: Arc<Scheduler>,
    changes: ChangeFeed,
    role: ProcessRole,
    redactor: Arc<Redactor>,
    /// For projects that are opened because a task needs them.
    options: ProjectOptions,
    /// By root. Runners and agents hold projects weakly or for as long as they run; this map keeps
    /// them open.
    projects: Mutex<HashMap<PathBuf, Arc<Project>>>,
    /// The projects of sessions that have one of their own, by session.
    of_sessions: Mutex<HashMap<SessionId, Weak<Project>>>,
    /// Projects that were replaced; those that are still used are closed with the process.
    replaced: Mutex<Vec<Weak<Project>>>,
    /// Held while a project is replaced.
    replacing: Mutex<()>,
}

impl Runtime {
    /// Opens the database. Tasks run here when this process makes one or [`Runtime::start_tasks`] is
    /// called. `options` count for projects that are opened for tasks alone.
    pub async fn open(
        environment: Arc<Environment>,
        role: ProcessRole,
        limits: RunnerLimits,
        options: ProjectOptions,
    ) -> Result<Arc<Self>, RuntimeError> {
        let store = environment.open_database().await?;
        let tasks: Arc<dyn TaskStore> = store.clone();
        let outputs = environment.output_dir();
        let shared = environment.shared_outputs(&store)?;
        let redactor = Arc::new(environment.redactor());
        let scheduler = Scheduler::new(SchedulerSetup {
            kind: match role {
                ProcessRole::Worker => SchedulerKind::Worker,
                ProcessRole::Session | ProcessRole::Client => SchedulerKind::Session,
            },
            engine: engine::of(&environment, &store, role)?,
            store: tasks,
            output_dir: outputs,
            limits,
            redactor: redactor.clone(),
        });
        if role == ProcessRole::Client {
            scheduler.abstain();
        }
        if let Some(shared) = shared {
            scheduler.outputs().share(shared);
        }
        let sessions: Arc<dyn Store> = store.clone();
        let changes = ChangeFeed::new(sessions);
        Ok(Arc::new(Self {
            environment,
            changes,
            store,
            scheduler,
            role,
            redactor,
            options,
            projects: Mutex::default(),
            of_sessions: Mutex::default(),
            replaced: Mutex::default(),
            replacing: Mutex::default(),
        }))
    }

    /// A runtime with its first project.
    ///
    /// MCP servers of the project start to connect now in a session and when they are first needed
    /// in a worker.
    pub async fn with_project(
        config: ProjectConfig,
        attendance: Attendance,
        role: ProcessRole,
    ) -> Result<(Arc<Self>, Arc<Project>), RuntimeError> {
        // Finding out what works takes a while; the model takes longer to ask for a command.
        Sandbox::warm_up(&config.sandbox);
        let options = ProjectOptions {
            add_dirs: Vec::new(),
            mcp_config: Vec::new(),
            plugin_dirs: Vec::new(),
            plugin_dirs_without_servers: Vec::new(),
            ..config.options.clone()
        };
        let environment = config.dir.environment.clone();
        let runtime = Self::open(environment, role, config.limits(), options).await?;
        let project = runtime.open_project(config, attendance);
        if role == ProcessRole::Session {
            project.mcp.begin();
        }
        Ok((runtime, project))
    }

    /// Opens a project, or replaces the one with the same root, and begins to run its tasks.
    ///
    /// The runner that is registered for a type of task is the same for all projects: it finds the
    /// project of each task by its authority. A project that is replaced goes on to serve the
    /// agents that hold it.
    pub fn open_project(
        self: &Arc<Self>,
        config: ProjectConfig,
        attendance: Attendance,
    ) -> Arc<Project> {
        let hub = self.hub(&config, attendance);
        let project = Project::new(config, self.store.clone(), hub, self.role);
        let root = project.dir.root.clone();
        self.projects.lock().insert(root.clone(), project.clone());
        for task_type in project.runners.keys().copied() {
            let runner = ByProject {
                runtime: Arc::downgrade(self),
                task_type,
            };
            self.scheduler.serve(task_type, Arc::new(runner));
        }
        self.scheduler.add_project(root);
        project
    }

    /// The project with this root, opened if it is not open yet, and by its configuration of now:
    /// if a file of it has changed since the project was opened, it is read again. What runs keeps
    /// the project it began with. The agents of a worker can be
    /// answered from elsewhere; in a session nobody has asked for this project.
    ///
    /// `root` comes from the authority of a task, never from a file of the repository. An error
    /// means that the directory is gone or that its settings cannot be read; the task then fails
    /// with it.
    pub fn project_at(self: &Arc<Self>, root: &Path) -> Result<Arc<Project>, RuntimeError> {
        let open = self.projects.lock().get(root).cloned();
        if let Some(project) = open {
            return self.up_to_date(project);
        }
        let dir = ProjectDir::at(self.environment.clone(), root)?;
        let config = ProjectConfig::load(dir, self.options.clone())?;
        let attendance = match self.role {
            ProcessRole::Worker | ProcessRole::Client => Attendance::Elsewhere,
            ProcessRole::Session => Attendance::Nobody,
        };
        Ok(self.open_project(config, attendance))
    }

    /// Tasks that this session starts are run by this project from now on, also if another session
    /// opens the same directory: with its own servers, and its questions go to its own user.
    pub fn keep_for_session(&self, session: SessionId, project: &Arc<Project>) {
        let mut kept = self.of_sessions.lock();
        kept.retain(|_, project| project.strong_count() > 0);
        kept.insert(session, Arc::downgrade(project));
    }

    /// The project that runs a task: that of its session if it has one whose files have not
    /// changed, else the one at its root.
    pub(crate) fn project_of(
        self: &Arc<Self>,
        authority: &Authority,
    ) -> Result<Arc<Project>, RuntimeError> {
        let root = &authority.project_root;
        let own = self.of_sessions.lock().get(&authority.tree).cloned();
        match own.and_then(|own| own.upgrade()) {
            Some(own) if own.dir.root == *root && own.is_up_to_date() => Ok(own),
            _ => self.project_at(root),
        }
    }

    pub(crate) fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// The page on which the engine shows a task, see [`engine::engine_page`].
    pub fn engine_page(&self, task: &TaskId) -> Option<String> {
        engine::engine_page(&self.environment, task)
    }

    /// How other processes know this one.
    pub(crate) fn runner_id(&self) -> String {
        self.scheduler.id().0.clone()
    }

    /// The roots of the projects that are open.
    pub fn project_roots(&self) -> Vec<PathBuf> {
        self.projects.lock().keys().cloned().collect()
    }

    /// An open project, read again if its files have changed. Trust is decided anew: a file of the
    /// repository that has changed grants nothing until the user trusts it.
    fn up_to_date(&self, project: Arc<Project>) -> Result<Arc<Project>, RuntimeError> {
        if project.is_up_to_date() {
            return Ok(project);
        }
        let _replacing = self.replacing.lock();
        let root = project.dir.root.clone();
        let current = self.projects.lock().get(&root).cloned();
        let project = current.unwrap_or(project);
        let dir = project.dir.reread();
        if Fingerprint::of(&dir, &project.options) == project.fingerprint {
            return Ok(project);
        }
        let config = ProjectConfig::load(dir, project.options.clone())?;
        let hub = project.hub.reconfigured(
            kinds(config.agents.agents.values()),
            tasks_disabled(&config.dir, &config.settings),
        );
        guard(&hub, &config);
        let renewed = project.renewed(config, hub, self.role);
        self.projects.lock().insert(root, renewed.clone());
        let mut replaced = self.replaced.lock();
        replaced.retain(|project| project.strong_count() > 0);
        replaced.push(Arc::downgrade(&project));
        Ok(renewed)
    }

    /// Starts to run tasks of the open projects that others made or left.
    pub fn start_tasks(&self) {
        self.scheduler.follow(self.changes.clone());
        self.scheduler.ensure_running();
    }

    /// Tasks that require these labels are taken, too. Before [`Runtime::start_tasks`], so that the
    /// first sign of life of this process names them.
    pub fn offer_labels(&self, labels: Labels) {
        self.scheduler.offer_labels(labels);
    }

    /// What the agents and tasks of this process do.
    pub fn events(&self) -> &EventBus {
        self.scheduler.events()
    }

    /// What is committed to the database, by this process or another.
    pub fn changes(&self) -> &ChangeFeed {
        &self.changes
    }

    /// Takes the secrets of the environment out of texts.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Whether tasks are taken here and the last sign of life is recent.
    pub fn runs_tasks(&self) -> bool {
        self.scheduler.is_alive()
    }

    /// How many tasks other processes took over from this one.
    pub fn lease_losses(&self) -> u64 {
        self.scheduler.lease_losses()
    }

    /// What tasks write.
    pub fn outputs(&self) -> &TaskOutputs {
        self.scheduler.outputs()
    }

    /// How many tasks run in this process, as it changes.
    pub fn workload(&self) -> watch::Receiver<Workload> {
        self.scheduler.workload()
    }

    pub fn store(&self) -> &Arc<dyn Database> {
        &self.store
    }

    /// Ends in good order: running tasks are handed over or stopped. Fails when what was recorded
    /// is lost.
    ///
    /// Tasks are handed over first, while servers and the database still work. Agents under way get
    /// five seconds to finish their step.
    pub async fn close(&self) -> Result<(), RuntimeError> {
        self.scheduler.leave().await;
        let projects: Vec<_> = self.projects.lock().drain().collect();
        let replaced: Vec<_> = self.replaced.lock().drain(..).collect();
        let replaced = replaced.iter().filter_map(Weak::upgrade);
        for project in projects
            .into_iter()
            .map(|(_, project)| project)
            .chain(replaced)
        {
            project.mcp.close().await;
        }
        Ok(self.store.close().await?)
    }

    /// What the tools and commands of a project use.
    fn hub(&self, config: &ProjectConfig, attendance: Attendance) -> Arc<TaskHub> {
        let tasks: Arc<dyn TaskStore> = self.store.clone();
        let sessions: Arc<dyn Store> = self.store.clone();
        let limit = config.settings.question_time_limit();
        let changes = self.changes.clone();
        let questions = Questions::new(sessions.clone(), changes, limit, attendance);
        let hub = TaskHub::new(
            tasks,
            sessions,
            self.scheduler.clone(),
            questions,
            kinds(config.agents.agents.values()),
            tasks_disabled(&config.dir, &config.settings),
        );
        guard(&hub, config);
        hub
    }
}

/// Says which models and workflows may be used in a project.
fn guard(hub: &TaskHub, config: &ProjectConfig) {
    hub.guard_models(config.provider.model_gate());
    let trust = config.dir.trust.clone();
    hub.guard_workflows(Arc::new(move |path: &Path, text: &str| {
        trust.may_use_workflow(path, text)
    }));
}

/// Why no background tasks may be made in a project, if so. The reason is shown by whatever is
/// refused.
pub fn tasks_disabled(dir: &ProjectDir, settings: &Settings) -> Option<String> {
    const NAME: &str = "DISABLE_BACKGROUND_TASKS";
    let by_env_setting = settings.env.get(NAME).is_some_and(|value| means_yes(value));
    let by_variable = dir.environment.is_enabled(NAME) || by_env_setting;
    (by_variable || settings.disable_background_tasks == Some(true)).then(|| {
        format!(
            "background tasks are switched off ({NAME} in the environment or in `env` of the \
             settings, or disableBackgroundTasks in the settings)"
        )
    })
}
