//! From arguments, settings and surroundings to an agent on a session.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::{
    Agent, AgentDefinitions, AgentParts, Approver, Briefing, DefinitionSource, Gate, Inbox, Limits,
    ModelChoice, ModelPageReader, Recovered, SideCalls, Sink, Transcript,
};
use codespar_policy::{Mode, Redactor, Rule, RuleKind, RuleSet, RuleSource, Scope, Shelter};
use codespar_protocol::{SessionId, SessionMode};
use codespar_store::{NewSession, SessionFilter, SqliteStore, Store};
use codespar_tools::{
    Context, ContextParts, Hidden, Registry, SkillDir, Skills, child_environment,
    sandbox::{Network, Sandbox, SandboxChoice},
    standard_tools,
};
use parking_lot::RwLock;

use crate::{
    args::{SessionArgs, matches_prefix},
    error::CommandError,
    place::Place,
    provider::{self, Provider},
    settings::Settings,
    works::truthy,
};

/// Names every tool of this version, for checking agent definitions.
pub(crate) fn tool_names() -> Vec<String> {
    let own = [
        "Task",
        "Agent",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "TaskStop",
        "TaskOutput",
    ];
    standard_tools()
        .names()
        .into_iter()
        .chain(own)
        .map(str::to_owned)
        .collect()
}

/// Everything that does not depend on the session.
pub(crate) struct Ground {
    pub(crate) place: Place,
    pub(crate) settings: Settings,
    pub(crate) args: SessionArgs,
    pub(crate) provider: Provider,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) mode: Mode,
    rules: Arc<RwLock<RuleSet>>,
    pub(crate) tools: Registry,
    /// Tools taken away by their bare name.
    pub(crate) denied: Vec<String>,
    pub(crate) agents: AgentDefinitions,
    skills: Arc<Skills>,
    pub(crate) sandbox: Arc<Sandbox>,
    /// What was wrong with files that are not vital.
    pub(crate) warnings: Vec<String>,
}

/// Who listens to an agent and who answers its questions.
pub(crate) struct Company {
    pub(crate) sink: Sink,
    pub(crate) approver: Arc<dyn Approver>,
    /// Added to the system prompt.
    pub(crate) note: Option<&'static str>,
}

/// What one agent is given.
pub(crate) struct Outfit {
    /// Its system prompt, if not the usual one.
    pub(crate) role: Option<String>,
    pub(crate) tools: Registry,
    pub(crate) choice: ModelChoice,
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    pub(crate) root: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Directories of the workspace besides those of the settings.
    pub(crate) extra_dirs: Vec<PathBuf>,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) company: Company,
}

/// A session that is open for work.
pub(crate) struct OpenSession {
    pub(crate) transcript: Transcript,
    pub(crate) recovered: Recovered,
    pub(crate) is_resumed: bool,
    pub(crate) mode: SessionMode,
}

impl Ground {
    /// Reads everything and opens the store.
    pub(crate) async fn prepare(place: Place, args: SessionArgs) -> Result<Self, CommandError> {
        let settings = Settings::load(&place)?;
        let redactor = Arc::new(redactor(&place));
        let provider = provider::choose(&place, &settings, args.model.as_deref(), &redactor)?;
        if args.max_budget_usd.is_some() && !provider.has_price() {
            return Err(CommandError::Usage(format!(
                "--max-budget-usd needs a price for `{}`: add it to {}",
                provider.choice.id,
                place.state.join("models.toml").display()
            )));
        }
        let (rules, mode) = rules(&settings, &args)?;
        let denied = denied(&args)?;
        let tools = standard_tools().filtered(None, &denied);
        let (skills, agents, mut warnings) = extras(&place);
        if place
            .home
            .as_deref()
            .is_some_and(|home| home.starts_with(&place.root))
        {
            warnings.push(
                "the workspace is your home directory: commands can change everything in it; start in \
                 a project instead"
                    .to_owned(),
            );
        }
        let sandbox = Arc::new(sandbox(&place, &settings)?);
        // Finding out what works takes a while; the model takes longer to ask for a command.
        Sandbox::warm_up(&sandbox);
        let store = Arc::new(SqliteStore::open(&place.state).await?);
        Ok(Self {
            place,
            settings,
            args,
            provider,
            store,
            redactor,
            mode,
            rules: Arc::new(RwLock::new(rules)),
            tools,
            denied,
            agents,
            skills,
            sandbox,
            warnings,
        })
    }

    /// The session that the arguments ask for.
    pub(crate) async fn open_session(&self) -> Result<OpenSession, CommandError> {
        self.open_session_as(self.args.resume.as_deref(), self.args.continue_last)
            .await
    }

    /// A session: one by id, the last one here, or a new one.
    pub(crate) async fn open_session_as(
        &self,
        resume: Option<&str>,
        continue_last: bool,
    ) -> Result<OpenSession, CommandError> {
        let store: Arc<dyn Store> = self.store.clone();
        let existing = if let Some(text) = resume {
            Some(find_session(&*self.store, text).await?)
        } else if continue_last {
            let filter = SessionFilter {
                cwd: Some(self.place.cwd.clone()),
                limit: Some(1),
            };
            let last = self.store.sessions(filter).await?.into_iter().next();
            Some(last.map(|session| session.id).ok_or_else(|| {
                CommandError::Usage(format!(
                    "there is no session in {} to continue",
                    self.place.cwd.display()
                ))
            })?)
        } else {
            None
        };
        let id = match existing {
            Some(id) => id,
            None => self.new_session().await?,
        };
        let mode = self.store.session(id).await?.mode;
        let (transcript, recovered) = Transcript::open(store, id).await?;
        Ok(OpenSession {
            transcript,
            recovered,
            is_resumed: existing.is_some(),
            mode,
        })
    }

    pub(crate) async fn new_session(&self) -> Result<SessionId, CommandError> {
        let new = NewSession {
            id: SessionId::new(),
            cwd: self.place.cwd.clone(),
            model: self.provider.choice.id.clone(),
            mode: self.wanted_mode(),
        };
        Ok(self.store.create_session(new).await?.id)
    }

    /// How a new session works.
    pub(crate) fn wanted_mode(&self) -> SessionMode {
        if self.args.coordinator || truthy(&self.place, "CODESPAR_COORDINATOR_MODE") {
            SessionMode::Coordinator
        } else {
            SessionMode::Normal
        }
    }

    /// An agent on the session.
    pub(crate) fn agent(
        &self,
        session: OpenSession,
        outfit: Outfit,
    ) -> Result<Agent, CommandError> {
        let side_calls = Arc::new(SideCalls::default());
        let page_reader = (!self.provider.is_simulated()).then(|| {
            Arc::new(ModelPageReader {
                model: self.provider.model.clone(),
                model_id: self.provider.small_model.clone(),
                catalogue: self.provider.catalogue.clone(),
                side_calls: side_calls.clone(),
            }) as Arc<_>
        });
        let dirs = SessionDirs::create(&self.place.state, session.transcript.session())?;
        let mut extra_dirs = extra_dirs(&self.settings, &self.args)?;
        extra_dirs.extend(outfit.extra_dirs.iter().cloned());
        let mut workspace = vec![outfit.root.clone()];
        workspace.extend(extra_dirs.iter().cloned());
        let mut free = vec![
            dirs.temp.clone(),
            dirs.output.clone(),
            self.place.state.join("task-output"),
        ];
        free.extend(outfit.extra_dirs);
        let scope = Scope {
            root: outfit.root.clone(),
            cwd: outfit.cwd.clone(),
            home: self.place.home.clone(),
            workspace,
            free,
            shelter: Shelter::Sandboxed,
        };
        let briefing = self.briefing(&outfit.root, &outfit.cwd, outfit.role, outfit.company.note);
        let context = Context::new(ContextParts {
            root: outfit.root,
            cwd: outfit.cwd,
            extra_dirs,
            temp_dir: dirs.temp,
            output_dir: dirs.output,
            child_env: self.child_env(),
            sandbox: self.sandbox.clone(),
            skills: self.skills.clone(),
            page_reader,
            hidden: hidden(&self.rules.read(), &scope),
        });
        context.set_todos(session.recovered.todos.clone());
        let parts = AgentParts {
            model: self.provider.model.clone(),
            choice: outfit.choice,
            catalogue: self.provider.catalogue.clone(),
            tools: outfit.tools,
            context: Arc::new(context),
            rules: self.rules.clone(),
            mode: outfit.mode,
            scope,
            redactor: self.redactor.clone(),
            approver: outfit.company.approver,
            sink: outfit.company.sink,
            limits: outfit.limits,
            briefing,
            side_calls,
            inbox: outfit.inbox,
            gate: outfit.gate,
        };
        Ok(Agent::new(parts, session.transcript))
    }

    fn briefing(
        &self,
        root: &Path,
        cwd: &Path,
        role: Option<String>,
        note: Option<&str>,
    ) -> Briefing {
        let mut user_dirs = vec![self.place.state.clone()];
        user_dirs.extend(self.place.home.iter().map(|home| home.join(".claude")));
        let append = [note, self.args.append_system_prompt.as_deref()];
        let append: Vec<&str> = append.into_iter().flatten().collect();
        Briefing {
            role,
            facts: facts(root, cwd),
            root: root.to_path_buf(),
            cwd: cwd.to_path_buf(),
            user_dirs,
            skills: self.skills.listing(),
            append: (!append.is_empty()).then(|| append.join("\n\n")),
        }
    }

    /// The environment of commands.
    pub(crate) fn child_env(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let pass = &self.settings.sandbox.pass_env;
        let extra = self
            .settings
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        child_environment(self.place.vars.iter().cloned(), extra, pass)
    }
}

impl Provider {
    fn has_price(&self) -> bool {
        let usage = codespar_protocol::Usage::default();
        self.catalogue
            .cost(&self.choice.id, &usage)
            .known()
            .is_some()
    }
}

/// Files that a deny rule covers are not shown by searches either.
fn hidden(rules: &RuleSet, scope: &Scope) -> Hidden {
    if rules.list(RuleKind::Deny).next().is_none() {
        return Hidden::default();
    }
    let (rules, scope) = (rules.clone(), scope.clone());
    Hidden::by(move |path| rules.read_denied(path, &scope).is_some())
}

/// Directories that belong to one session.
pub(crate) struct SessionDirs {
    pub(crate) temp: PathBuf,
    pub(crate) output: PathBuf,
}

impl SessionDirs {
    /// Where they are.
    pub(crate) fn of(state: &Path, session: SessionId) -> Self {
        let id = session.to_string();
        Self {
            temp: state.join("tmp").join(&id),
            output: state.join("outputs").join(&id),
        }
    }

    fn create(state: &Path, session: SessionId) -> Result<Self, CommandError> {
        let dirs = Self::of(state, session);
        for dir in [&dirs.temp, &dirs.output] {
            std::fs::create_dir_all(dir).map_err(|error| {
                CommandError::Failed(format!("cannot make {}: {error}", dir.display()))
            })?;
        }
        Ok(dirs)
    }

    /// Takes away what nobody will look for: the temporary files, and the outputs if empty.
    pub(crate) fn clean(&self) {
        let _ = std::fs::remove_dir_all(&self.temp);
        let _ = std::fs::remove_dir(&self.output);
    }
}

/// A session by its id or an unambiguous beginning of it.
pub(crate) async fn find_session(store: &dyn Store, text: &str) -> Result<SessionId, CommandError> {
    if let Ok(id) = text.parse() {
        return Ok(store.session(id).await?.id);
    }
    let sessions = store.sessions(SessionFilter::default()).await?;
    let matching: Vec<_> = sessions
        .iter()
        .map(|session| session.id)
        .filter(|id| matches_prefix(*id, text))
        .collect();
    match matching.as_slice() {
        [id] => Ok(*id),
        [] => Err(CommandError::Usage(format!(
            "there is no session `{text}`; `codespar session list` shows those there are"
        ))),
        many => Err(CommandError::Usage(format!(
            "`{text}` fits {} sessions; give more of the id",
            many.len()
        ))),
    }
}

/// Knows the secrets of the environment by name and value.
pub(crate) fn redactor(place: &Place) -> Redactor {
    let secrets = place.vars.iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        codespar_policy::is_secret_name(name).then(|| (name.to_owned(), value.to_owned()))
    });
    Redactor::new(secrets)
}

fn rules(settings: &Settings, args: &SessionArgs) -> Result<(RuleSet, Mode), CommandError> {
    let mut rules = settings.rules.clone();
    let flags = [
        ("--allowedTools", RuleKind::Allow, &args.allowed_tools),
        ("--disallowedTools", RuleKind::Deny, &args.disallowed_tools),
    ];
    for (flag, kind, values) in flags {
        for rule in parse_rules(flag, values)? {
            rules.add(kind, rule, &RuleSource::named(flag));
        }
    }
    let mode = if args.dangerously_skip_permissions {
        Mode::BypassPermissions
    } else {
        args.permission_mode.or(settings.mode).unwrap_or_default()
    };
    Ok((rules, mode))
}

fn parse_rules(flag: &str, values: &[String]) -> Result<Vec<Rule>, CommandError> {
    let mut rules = Vec::new();
    for value in values {
        let parsed = RuleSet::parse_list(value)
            .map_err(|error| CommandError::Usage(format!("{flag}: {error}")))?;
        rules.extend(parsed);
    }
    Ok(rules)
}

/// Tools that `--disallowedTools` takes away by their bare name.
fn denied(args: &SessionArgs) -> Result<Vec<String>, CommandError> {
    Ok(parse_rules("--disallowedTools", &args.disallowed_tools)?
        .iter()
        .map(ToString::to_string)
        .filter(|rule| !rule.contains('('))
        .collect())
}

fn extras(place: &Place) -> (Arc<Skills>, AgentDefinitions, Vec<String>) {
    let dirs: Vec<SkillDir> = place
        .config_dirs("skills")
        .into_iter()
        .map(|(path, origin)| SkillDir { path, origin })
        .collect();
    let (skills, problems) = Skills::load(&dirs);
    let agents = definitions(place);
    let mut warnings: Vec<String> = problems.iter().map(ToString::to_string).collect();
    warnings.extend(agents.problems.iter().map(ToString::to_string));
    (Arc::new(skills), agents, warnings)
}

/// Custom agents of the project and the person.
pub(crate) fn definitions(place: &Place) -> AgentDefinitions {
    let sources: Vec<DefinitionSource> = place
        .config_dirs("agents")
        .into_iter()
        .map(|(dir, origin)| DefinitionSource { dir, origin })
        .collect();
    let names = tool_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    AgentDefinitions::load(&sources, &names)
}

fn extra_dirs(settings: &Settings, args: &SessionArgs) -> Result<Vec<PathBuf>, CommandError> {
    let mut dirs = Vec::new();
    for dir in &args.add_dir {
        let dir = dir.canonicalize().map_err(|error| {
            CommandError::Usage(format!("--add-dir {}: {error}", dir.display()))
        })?;
        dirs.push(dir);
    }
    // A directory of the settings that is not there (any more) is no reason to stop.
    dirs.extend(
        settings
            .extra_dirs
            .iter()
            .filter_map(|dir| dir.canonicalize().ok()),
    );
    Ok(dirs)
}

/// How commands are confined; nothing is tried yet.
pub(crate) fn sandbox(place: &Place, settings: &Settings) -> Result<Sandbox, CommandError> {
    let choice = settings
        .sandbox
        .mode
        .map_or(SandboxChoice::Auto, SandboxChoice::from);
    let network = match settings.sandbox.network {
        Some(true) => Network::Allowed,
        _ => Network::Denied,
    };
    let self_exe = std::env::current_exe()?;
    let mut sandbox = Sandbox::probe(choice, self_exe).with_network(network);
    for dir in &settings.sandbox.allow_write {
        sandbox = sandbox
            .with_extra_writable(dir, place.home.as_deref())
            .map_err(|error| CommandError::Usage(format!("sandbox.allowWrite: {error}")))?;
    }
    Ok(sandbox)
}

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
