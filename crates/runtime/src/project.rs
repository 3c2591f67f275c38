//! One repository: its settings, trust, rules, model, tools, servers, agents and budget.
//!
//! There are two forms. `ProjectConfig` is data: commands that only show or check something stop
//! there. `Project` is the same opened in a runtime, with a hub for its tasks, its budget and its
//! runners.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use codespar_agent::{AgentDefinitions, HookRunner};
use codespar_git::RemoteAddress;
use codespar_mcp::{ClientChannel, McpServers};
use codespar_policy::{Mode, Redactor, RuleSet, SharedMode};
use codespar_protocol::{Authority, SessionId, SessionMode};
use codespar_store::{Database, TreeStore};
use codespar_tasks::{
    AuthoritySource, QuestionSource, RunnerLimits, ServerQuestions, ShellSetup, TaskHub, rule_texts,
};
use codespar_tools::{Registry, Skills, child_environment, sandbox::Sandbox, standard_tools};
use parking_lot::RwLock;

use crate::{
    OutputStyle, Plugin, ProcessRole, ProjectDir, ProjectOptions, RuntimeError,
    budgets::Budgets,
    configuration::{
        denied, extra_dirs, extras, plugins, rules, sandbox, unknown_agent, unknown_tools,
    },
    fingerprint::Fingerprint,
    hook_events::HookObserver,
    mcp::{ServerList, ServerReach},
    provider::{self, Provider},
    repositories::shared_repository,
    runners::{self, Runners},
    settings::{Settings, TerminalSettings},
};

/// A project as its files, options and environment describe it; nothing is opened yet.
///
/// Consumed by `Runtime::open_project`. Changes of the files after this are seen by tasks that
/// start later: see `Runtime::project_at`.
pub struct ProjectConfig {
    pub(crate) dir: ProjectDir,
    pub(crate) settings: Settings,
    pub(crate) options: ProjectOptions,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) provider: Provider,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) mode: SharedMode,
    pub(crate) rules: RuleSet,
    pub(crate) denied: Vec<String>,
    pub(crate) agents: AgentDefinitions,
    pub(crate) skills: Arc<Skills>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) mcp: Arc<McpServers>,
    pub(crate) output_style: Option<OutputStyle>,
    pub(crate) plugins: Vec<Plugin>,
    pub(crate) warnings: Vec<String>,
    pub(crate) client_hooks: Option<Arc<dyn HookRunner>>,
    pub(crate) hook_observer: Option<Arc<dyn HookObserver>>,
}

/// What a client of the process does for the agents of a project.
#[derive(Default)]
pub struct ClientSide {
    /// Runs the hooks that it has registered.
    pub hooks: Option<Arc<dyn HookRunner>>,
    /// Reaches the MCP servers in its own program.
    pub servers: Option<Arc<dyn ClientChannel>>,
    /// Hears of the hooks of the project that run.
    pub hook_observer: Option<Arc<dyn HookObserver>>,
}

impl ProjectConfig {
    /// Adds what a client does. Before the project is opened.
    #[must_use]
    pub fn with_client(mut self, client: ClientSide) -> Self {
        self.client_hooks = client.hooks;
        self.hook_observer = client.hook_observer;
        if let Some(servers) = client.servers {
            self.mcp.set_client(servers);
        }
        self
    }

    /// What to set for a model to be called, where none can be and nobody asked for that.
    pub fn missing_key(&self) -> Option<&str> {
        self.provider.lacks_key.then_some(&*self.provider.why)
    }

    /// How the session at a terminal is to be.
    pub fn terminal(&self) -> &TerminalSettings {
        &self.settings.terminal
    }

    /// Reads everything. A mistake in a file of the user or in an option is an error; one in a file
    /// that is not vital becomes a warning.
    ///
    /// Nothing is sent and no server is started. A budget for a model without price is refused: it
    /// could not be kept.
    pub fn load(dir: ProjectDir, options: ProjectOptions) -> Result<Self, RuntimeError> {
        // Before anything is read: what changes meanwhile is seen as a change.
        let fingerprint = Fingerprint::of(&dir, &options);
        let mut settings = Settings::load_for(&dir, &options)?;
        let plugins = plugins(&dir, &options, &mut settings)?;
        let redactor = Arc::new(dir.environment.redactor());
        let mut provider = match options.simulate {
            true => provider::simulated(&dir, &settings)?,
            false => provider::choose(&dir, &settings, options.model.as_deref(), &redactor)?,
        };
        provider.fall_back_to(options.fallback_model.as_deref(), &settings)?;
        if options.max_budget_usd.is_some() && !provider.has_price() {
            return Err(RuntimeError::Usage(format!(
                "--max-budget-usd needs a price for `{}`: add these lines to {}\n{}",
                provider.choice.id,
                dir.state().join("models.toml").display(),
                codespar_model::price_lines(&provider.choice.id)
            )));
        }
        let (rules, mode) = rules(&settings, &options)?;
        let (skills, mut agents, mut warnings) = extras(&dir, &plugins, &options);
        for agent in &options.agents {
            agents.agents.insert(agent.name.clone(), agent.clone());
        }
        if let Some(name) = options
            .agent
            .as_ref()
            .filter(|it| !agents.agents.contains_key(*it))
        {
            return Err(unknown_agent(name, &agents));
        }
        warnings.extend(settings.warnings.iter().cloned());
        warnings.extend(options.warnings.iter().cloned());
        warnings.extend(unknown_tools(&options)?);
        let mut server_files = options.mcp_config.clone();
        server_files.extend(plugins.iter().flat_map(Plugin::servers));
        let reach = match options.strict_mcp_config {
            true => ServerReach::Named,
            false => ServerReach::All,
        };
        let servers = ServerList::read(&dir, &settings, &server_files, reach)?;
        let (mcp, about_servers) = servers.connectable(&dir, &settings)?;
        warnings.extend(about_servers);
        if dir.environment.has_home_in(&dir.root) {
            warnings.push(
                "the workspace is your home directory: commands can change everything in it; start in \
                 a project instead"
                    .to_owned(),
            );
        }
        let style = settings.output_style.as_deref();
        let style = style.map_or(Ok(None), |name| OutputStyle::find(&dir, &options, name));
        let output_style = style.unwrap_or_else(|told| {
            warnings.push(format!("outputStyle: {told}"));
            None
        });
        let sandbox = Arc::new(sandbox(&dir, &settings)?);
        Ok(Self {
            denied: denied(&options)?,
            dir,
            settings,
            options,
            fingerprint,
            provider,
            redactor,
            mode: mode.into(),
            rules,
            agents,
            skills,
            sandbox,
            mcp: Arc::new(mcp),
            output_style,
            plugins,
            warnings,
            client_hooks: None,
            hook_observer: None,
        })
    }

    /// How much a process that serves this project first runs at once.
    pub fn limits(&self) -> RunnerLimits {
        let usual = RunnerLimits::default();
        RunnerLimits {
            agents: self.settings.max_agents.unwrap_or(usual.agents),
            shells: self.settings.max_shells.unwrap_or(usual.shells),
        }
    }
}

/// A project that is open in a runtime.
pub struct Project {
    pub dir: ProjectDir,
    /// Its settings, merged.
    pub settings: Settings,
    /// What the caller asked for.
    pub options: ProjectOptions,
    /// Who answers.
    pub provider: Provider,
    /// Takes secrets out of texts.
    pub redactor: Arc<Redactor>,
    /// The permission mode of its sessions. Tasks get the one in force when they are made.
    pub mode: SharedMode,
    /// MCP servers, shared by all agents of the project.
    pub mcp: Arc<McpServers>,
    /// How commands are confined.
    pub sandbox: Arc<Sandbox>,
    pub agents: AgentDefinitions,
    /// What was wrong with files that are not vital.
    pub warnings: Vec<String>,
    /// The database of the runtime.
    pub store: Arc<dyn Database>,
    pub hub: Arc<TaskHub>,
    pub(crate) budgets: Arc<Budgets>,
    /// What its configuration was read from.
    pub(crate) fingerprint: Fingerprint,
    /// The mode as it was read; `mode` may have been changed by the user.
    configured_mode: Mode,
    /// The rules as they were read; `rules` has the answers "always" of this process too.
    configured_rules: RuleSet,
    /// Without those for commands and workflows in a session in plan mode.
    pub(crate) runners: Runners,
    /// Shared, because an answer "always" adds a rule while agents run.
    pub(crate) rules: Arc<RwLock<RuleSet>>,
    pub(crate) tools: Registry,
    /// Tools taken away by their bare name.
    pub(crate) denied: Vec<String>,
    pub(crate) skills: Arc<Skills>,
    /// How the agents of its sessions speak.
    pub output_style: Option<OutputStyle>,
    /// Named by the caller, or installed by the user.
    pub plugins: Vec<Plugin>,
    pub(crate) client_hooks: Option<Arc<dyn HookRunner>>,
    pub(crate) hook_observer: Option<Arc<dyn HookObserver>>,
    address: OnceLock<Option<RemoteAddress>>,
}

impl Project {
    /// A project with a budget of its own.
    pub(crate) fn new(
        config: ProjectConfig,
        store: Arc<dyn Database>,
        hub: Arc<TaskHub>,
        role: ProcessRole,
    ) -> Arc<Self> {
        let budgets = Budgets::new(config.options.max_budget_usd, config.settings.max_tokens);
        Self::with_budgets(config, store, hub, role, Arc::new(budgets))
    }

    /// The same project by the configuration of now. What holds for the process goes on: its
    /// budgets, the answers "always" and the mode of its user, and its MCP servers if they are the
    /// same. Those who use the project as it was keep it.
    pub(crate) fn renewed(
        self: &Arc<Self>,
        mut config: ProjectConfig,
        hub: Arc<TaskHub>,
        role: ProcessRole,
    ) -> Arc<Self> {
        let configured = rule_texts(&self.configured_rules);
        for (kind, rule, source) in self.rules.read().iter() {
            let mut one = RuleSet::default();
            one.add(kind, rule.clone(), source);
            if rule_texts(&one)
                .iter()
                .all(|text| !configured.contains(text))
            {
                config.rules.add(kind, rule.clone(), source);
            }
        }
        if config.mode.get() == self.configured_mode {
            config.mode = self.mode.clone();
        }
        let timeouts =
            |settings: &Settings| (settings.mcp.timeout_ms, settings.mcp.connect_timeout_ms);
        let is_same = timeouts(&self.settings) == timeouts(&config.settings);
        if is_same && self.mcp.is_like(&config.mcp) {
            config.mcp = self.mcp.clone();
        }
        config.client_hooks.clone_from(&self.client_hooks);
        config.hook_observer.clone_from(&self.hook_observer);
        let (store, budgets) = (self.store.clone(), self.budgets.clone());
        Self::with_budgets(config, store, hub, role, budgets)
    }

    /// Runners are made last, from the project itself. They get a weak reference: the project owns
    /// them, and a strong one would keep it alive for ever.
    fn with_budgets(
        config: ProjectConfig,
        store: Arc<dyn Database>,
        hub: Arc<TaskHub>,
        role: ProcessRole,
        budgets: Arc<Budgets>,
    ) -> Arc<Self> {
        if hub.questions().is_attended() {
            config.mcp.set_elicitor(Arc::new(ServerQuestions {
                questions: hub.questions().clone(),
                source: QuestionSource {
                    session: SessionId::new(),
                    task: None,
                    project_root: config.dir.root.clone(),
                },
            }));
        }
        Arc::new_cyclic(|weak| {
            let mut project = Self {
                runners: Runners::new(),
                tools: standard_tools()
                    .filtered(config.options.built_in_tools.only(), &config.denied),
                dir: config.dir,
                settings: config.settings,
                options: config.options,
                provider: config.provider,
                redactor: config.redactor,
                configured_mode: config.mode.get(),
                mode: config.mode,
                mcp: config.mcp,
                sandbox: config.sandbox,
                agents: config.agents,
                warnings: config.warnings,
                store,
                hub,
                budgets,
                fingerprint: config.fingerprint,
                configured_rules: config.rules.clone(),
                rules: Arc::new(RwLock::new(config.rules)),
                denied: config.denied,
                skills: config.skills,
                output_style: config.output_style,
                plugins: config.plugins,
                client_hooks: config.client_hooks,
                hook_observer: config.hook_observer,
                address: OnceLock::new(),
            };
            project.runners = runners::of_project(&project, weak, role);
            project
        })
    }

    /// Whether the files that it was read from are the same now.
    pub(crate) fn is_up_to_date(&self) -> bool {
        Fingerprint::of(&self.dir.reread(), &self.options) == self.fingerprint
    }

    /// How commands of its tasks are run.
    pub(crate) fn shell_setup(&self, sandbox: Arc<Sandbox>) -> ShellSetup {
        ShellSetup {
            sandbox,
            child_env: self.child_env(),
            temp_dir: self.dir.state().join("tmp"),
            redactor: self.redactor.clone(),
            rules: self.rules(),
            home: self.dir.home().map(Path::to_path_buf),
        }
    }

    /// The rules in force, shared by the agents that this process starts in the project.
    pub fn rules(&self) -> Arc<RwLock<RuleSet>> {
        self.rules.clone()
    }

    /// Where working trees are kept for other hosts; none where all processes are on this one.
    pub(crate) fn trees(&self) -> Option<Arc<dyn TreeStore>> {
        let is_shared = self.store.is_shared_between_hosts();
        is_shared.then(|| self.store.clone() as Arc<dyn TreeStore>)
    }

    /// Directories of the workspace besides the root.
    pub fn workspace_dirs(&self) -> Result<Vec<PathBuf>, RuntimeError> {
        extra_dirs(&self.settings, &self.options)
    }

    /// What tasks of a conversation of this process may do. Rules are read at each call, so a task
    /// gets those in force when it is made.
    pub fn authority(self: &Arc<Self>, session: SessionId) -> AuthoritySource {
        let project = self.clone();
        Arc::new(move || {
            let address = project.address();
            Authority {
                session: Some(session),
                tree: session,
                project_root: project.dir.root.clone(),
                mode: project.mode.get().to_string(),
                rules: rule_texts(&project.rules.read()),
                // Without them it is the narrower.
                extra_dirs: project.workspace_dirs().unwrap_or_default(),
                max_budget_usd: project.options.max_budget_usd,
                repository: address.map(|address| address.name().to_owned()),
                remote: address.map(|address| address.url().to_owned()),
                user: project.dir.environment.account().map(str::to_owned),
                trace: None,
            }
        })
    }

    /// Where other hosts can have its repository from. Looked for once.
    fn address(&self) -> Option<&RemoteAddress> {
        let address = self.address.get_or_init(|| shared_repository(&self.dir));
        address.as_ref()
    }

    /// How a new session works.
    pub fn wanted_mode(&self) -> SessionMode {
        let by_variable = || {
            let environment = &self.dir.environment;
            let names = ["CODESPAR_COORDINATOR_MODE", "CLAUDE_CODE_COORDINATOR_MODE"];
            names.into_iter().any(|name| environment.is_enabled(name))
        };
        if self.options.is_coordinator || by_variable() {
            SessionMode::Coordinator
        } else {
            SessionMode::Normal
        }
    }

    /// The environment of commands. The `env` setting is laid over the variables of the process;
    /// what looks like a secret is left out of both unless `sandbox.passEnv` names it.
    pub fn child_env(&self) -> Vec<(OsString, OsString)> {
        let pass = &self.settings.sandbox.pass_env;
        let extra = self
            .settings
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        child_environment(self.dir.environment.vars.iter().cloned(), extra, pass)
    }

    pub fn skill_names(&self) -> Vec<&str> {
        self.skills
            .iter()
            .map(|skill| skill.name.as_str())
            .collect()
    }

    /// The name of the output style in use.
    pub fn style_name(&self) -> &str {
        let style = self.output_style.as_ref();
        style.map_or("default", |style| &style.name)
    }

    /// The text of a skill that an agent begins with.
    pub(crate) fn skill_text(&self, name: &str) -> Result<String, String> {
        self.skills.text(name).map_err(|error| error.0)
    }
}
