//! An agent on a real store, real tools and the scripted model.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

use std::{path::PathBuf, sync::Arc};

use codespar_agent::{
    Agent, AgentParts, Approver, Briefing, ModelChoice, NoInbox, NobodyThere, Recovered, RunLimits,
    SideCalls, Transcript,
};
use codespar_model::{AnthropicConfig, AnthropicModel, Catalogue, HttpClient, HttpOptions};
use codespar_policy::{
    Lifetime, Mode, Redactor, RepositoryScope, RuleKind, RuleSet, RuleSource, SandboxState, Scope,
};
use codespar_protocol::{Event, Message, RunResult, SessionId, SessionMode};
use codespar_store::{NewSession, SqliteStore, Store};
use codespar_testkit::{Script, ScriptedModel};
use codespar_tools::{
    ChangeAuthor, CheckpointStore, Checkpoints, Context, ContextParts, Registry, Skills,
    sandbox::Sandbox, standard_tools,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub(crate) const SECRET: &str = "s3cr3t-value-of-the-environment";

/// Everything one test needs.
pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) server: ScriptedModel,
    pub(crate) session: SessionId,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
    pub(crate) tools: Registry,
    pub(crate) allow: Vec<&'static str>,
    pub(crate) deny: Vec<&'static str>,
    pub(crate) limits: RunLimits,
    pub(crate) compact_at: u64,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) context: Option<Arc<Context>>,
}

impl Bench {
    pub(crate) async fn new(script: Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("repo");
        for sub in ["repo", "tmp", "out"] {
            std::fs::create_dir(base.join(sub)).unwrap();
        }
        let store = Arc::new(SqliteStore::open(&base.join("state")).await.unwrap());
        let new = NewSession {
            id: SessionId::new(),
            cwd: root.clone(),
            model: "claude-haiku-4-5".into(),
            mode: SessionMode::Normal,
        };
        let session = store.create_session(new).await.unwrap().id;
        Self {
            _dir: dir,
            root,
            store,
            server: ScriptedModel::start(script).await.unwrap(),
            session,
            events: Arc::default(),
            tools: standard_tools(),
            allow: vec!["Bash", "Edit"],
            deny: Vec::new(),
            limits: RunLimits::default(),
            compact_at: 150_000,
            approver: Arc::new(NobodyThere),
            context: None,
        }
    }

    pub(crate) async fn agent(&mut self) -> (Agent, Recovered) {
        let store: Arc<dyn Store> = self.store.clone();
        let (transcript, recovered) = Transcript::open(store, self.session).await.unwrap();
        let mut config = AnthropicConfig::new(self.server.url().parse().unwrap());
        config.api_key = Some("key".into());
        let http = HttpClient::new(HttpOptions::default());
        let base = self.root.parent().unwrap().to_path_buf();
        let context = Context::new(ContextParts {
            root: self.root.clone(),
            cwd: self.root.clone(),
            extra_dirs: Vec::new(),
            temp_dir: base.join("tmp"),
            output_dir: base.join("out"),
            child_env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
            sandbox: Arc::new(Sandbox::unsandboxed()),
            skills: Arc::new(Skills::default()),
            page_reader: None,
            hidden: codespar_tools::Hidden::default(),
            redactor: std::sync::Arc::new(codespar_policy::Redactor::by_shape()),
        });
        let checkpoints = Checkpoints::new(self.checkpoints(), ChangeAuthor::Main);
        let context = Arc::new(context.with_checkpoints(checkpoints));
        context.set_todos(recovered.todos.clone());
        context.ledger().restore(&recovered.files);
        self.context = Some(context.clone());
        let mut rules = RuleSet::default();
        let source = RuleSource::named("the test");
        let allowed = self.allow.iter().map(|rule| (RuleKind::Allow, rule));
        let denied = self.deny.iter().map(|rule| (RuleKind::Deny, rule));
        for (kind, rule) in allowed.chain(denied) {
            rules.add(kind, rule.parse().unwrap(), &source);
        }
        let events = self.events.clone();
        let parts = AgentParts {
            model: Arc::new(AnthropicModel::new(&config, &http).unwrap()),
            choice: ModelChoice {
                id: "claude-haiku-4-5".into(),
                context_window: 200_000,
                max_tokens: 8_000,
                effort: None,
                thinking: None,
                fallback: None,
                compact_at: self.compact_at,
            },
            catalogue: Arc::new(Catalogue::builtin()),
            tools: self.tools.clone(),
            context,
            rules: Arc::new(parking_lot::RwLock::new(rules)),
            mode: Mode::Default.into(),
            scope: Scope {
                root: self.root.clone(),
                cwd: self.root.clone(),
                home: None,
                workspace: vec![self.root.clone()],
                free: vec![base.join("tmp"), base.join("out")],
                sandbox_state: SandboxState::SwitchedOff,
                repository: RepositoryScope::Project,
                lifetime: Lifetime::Kept,
            },
            redactor: std::sync::Arc::new(Redactor::new([("TOKEN".to_owned(), SECRET.to_owned())])),
            approver: self.approver.clone(),
            sink: Arc::new(move |event| events.lock().push(event)),
            limits: self.limits.clone(),
            briefing: Briefing {
                root: self.root.clone(),
                cwd: self.root.clone(),
                ..Briefing::default()
            },
            side_calls: Arc::new(SideCalls::default()),
            inbox: Arc::new(NoInbox),
            gate: None,
            hooks: None,
        };
        (Agent::new(parts, transcript), recovered)
    }

    /// Where the session keeps what files were.
    pub(crate) fn checkpoints(&self) -> CheckpointStore {
        let base = self.root.parent().unwrap();
        CheckpointStore::new(&base.join("state"), self.session)
    }

    /// One run of a fresh agent on the session.
    pub(crate) async fn run(&mut self, prompt: &str) -> RunResult {
        let (mut agent, _) = self.agent().await;
        agent
            .run(Some(Message::user(prompt)), CancellationToken::new())
            .await
    }

    /// Tool results of the newest request, as (text, is_error).
    pub(crate) fn last_results(&self) -> Vec<(String, bool)> {
        let request = self.server.last_request().unwrap();
        request
            .newest_tool_results()
            .into_iter()
            .map(|seen| (seen.text, seen.is_error))
            .collect()
    }
}
