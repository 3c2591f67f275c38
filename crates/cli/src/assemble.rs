//! From arguments, settings and surroundings to an agent on a session.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::{
    Agent, AgentDefinitions, AgentParts, Approver, Briefing, Gate, Inbox, Limits, ModelChoice,
    ModelPageReader, Recovered, SideCalls, Sink, Transcript, mcp::McpServers,
};
use codespar_policy::{Lifetime, Mode, Redactor, Repository, RuleSet, Scope, Shelter};
use codespar_protocol::{Authority, SessionId, SessionMode};
use codespar_store::{NewSession, SessionFilter, SqliteStore, Store};
use codespar_tasks::{AuthoritySource, rule_texts};
use codespar_tools::{
    Context, ContextParts, Hidden, Registry, Skills, child_environment, sandbox::Sandbox,
    standard_tools,
};
use parking_lot::RwLock;

use crate::{
    args::SessionArgs,
    error::CommandError,
    gather::{denied, extra_dirs, extras, redactor, rules, sandbox, unknown_tools},
    mcp::Gathered,
    place::Place,
    provider::{self, Provider},
    session_dirs::{SessionDirs, find_session},
    settings::Settings,
    works::truthy,
};

/// How many sessions are looked at for one to continue.
const RECENT: u32 = 50;

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
    /// MCP servers, shared by all agents of the process.
    pub(crate) mcp: Arc<McpServers>,
    /// What was wrong with files that are not vital.
    pub(crate) warnings: Vec<String>,
    /// Whom the dev agent can ask.
    pub(crate) person: Option<Arc<dyn codespar_dev::Person>>,
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
        warnings.extend(settings.warnings.iter().cloned());
        warnings.extend(unknown_tools(&args)?);
        let (mcp, about_servers) =
            Gathered::read(&place, &settings, &place.root, &args.mcp_config)?.servers(
                &place,
                &settings,
                &place.root,
            )?;
        warnings.extend(about_servers);
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
            mcp: Arc::new(mcp),
            warnings,
            person: None,
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
                limit: Some(RECENT),
            };
            let recent = self.store.sessions(filter).await?;
            // One in which nothing was said has nothing to go on with.
            let last = recent.into_iter().find(|session| session.last_seq > 0);
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
                redactor: self.redactor.clone(),
            }) as Arc<_>
        });
        let dirs = SessionDirs::create(&self.place.state, session.transcript.session())?;
        let mut extra_dirs = outfit.workspace_dirs;
        extra_dirs.extend(outfit.free_dirs.iter().cloned());
        let mut workspace = vec![outfit.root.clone()];
        workspace.extend(extra_dirs.iter().cloned());
        let mut free = vec![
            dirs.temp.clone(),
            dirs.output.clone(),
            self.place
                .state
                .join("task-output")
                .join(outfit.tree.to_string()),
        ];
        free.extend(outfit.free_dirs);
        let scope = Scope {
            root: outfit.root.clone(),
            cwd: outfit.cwd.clone(),
            home: self.place.home.clone(),
            workspace,
            free,
            shelter: Shelter::Sandboxed,
            repository: Repository::Project,
            lifetime: outfit.lifetime,
        };
        let hidden = Hidden::by_rules(&outfit.rules.read(), &scope);
        let briefing = Briefing {
            hidden: hidden.clone(),
            ..self.briefing(&outfit.root, &outfit.cwd, outfit.role, outfit.company.note)
        };
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
            hidden,
            redactor: self.redactor.clone(),
        });
        context.set_todos(session.recovered.todos.clone());
        context.ledger().restore(&session.recovered.files);
        let parts = AgentParts {
            model: self.provider.model.clone(),
            choice: outfit.choice,
            catalogue: self.provider.catalogue.clone(),
            tools: outfit.tools,
            context: Arc::new(context),
            rules: outfit.rules,
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

    /// The rules in force, shared by the agents that this process starts.
    pub(crate) fn rules(&self) -> Arc<RwLock<RuleSet>> {
        self.rules.clone()
    }

    /// Directories of the workspace besides the root.
    pub(crate) fn workspace_dirs(&self) -> Result<Vec<PathBuf>, CommandError> {
        extra_dirs(&self.settings, &self.args)
    }

    /// What tasks of a conversation of this process may do.
    pub(crate) fn authority(self: &Arc<Self>, session: SessionId) -> AuthoritySource {
        let ground = self.clone();
        Arc::new(move || Authority {
            session: Some(session),
            tree: session,
            project_root: ground.place.root.clone(),
            mode: ground.mode.to_string(),
            rules: rule_texts(&ground.rules.read()),
            // Without them it is the narrower.
            extra_dirs: ground.workspace_dirs().unwrap_or_default(),
            max_budget_usd: ground.args.max_budget_usd,
        })
    }

    /// The text of a skill that an agent begins with.
    pub(crate) fn skill_text(&self, name: &str) -> Result<String, String> {
        self.skills.text(name).map_err(|error| error.0)
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
            hidden: Hidden::default(),
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
