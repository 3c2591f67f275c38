//! A process that runs tasks: a real store, a scheduler, real agents and the scripted model.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod maker;

use std::{path::PathBuf, sync::Arc, time::Duration};

use codespar_agent::{Agent, Sink};
use codespar_policy::{Redactor, RuleKind, RuleSet, RuleSource};
use codespar_protocol::{
    Authority, EntryBody, Message, Outcome, SessionId, SessionMode, ShellSpec, TaskId, TaskRecord,
    TaskType,
};
use codespar_store::{ChangeFeed, NewSession, SqliteStore, Store, TaskFilter, TaskStore};
use codespar_tasks::{
    AgentLaunch, AgentRunner, Attendance, Caller, Notify, QUESTION_TIME_LIMIT, Questions,
    Scheduler, SchedulerSetup, ShellRunner, ShellSetup, TaskExtra, TaskHub, Waited, builtin_kinds,
    coordinator_tools, rule_texts, subagent_tools,
};
use codespar_testkit::{CapturedRequest, Script, ScriptedModel};
use codespar_tools::{Registry, sandbox::Sandbox, standard_tools};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

pub(crate) use maker::Maker;

pub(crate) const MODEL: &str = "claude-haiku-4-5";
/// Known to the redactor as the value of `TOKEN`.
pub(crate) const SECRET: &str = "s3cr3t-value-of-the-environment";
/// Far more than any step of a test takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Fails the test if it takes too long.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let Ok(value) = tokio::time::timeout(PATIENCE, future).await else {
        panic!("{what} took more than {} s", PATIENCE.as_secs());
    };
    value
}

/// Everything one test needs. `session` is the conversation of the agent at the top.
pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) server: ScriptedModel,
    pub(crate) hub: Arc<TaskHub>,
    pub(crate) maker: Arc<Maker>,
    pub(crate) session: SessionId,
}

impl Bench {
    pub(crate) async fn new(script: Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for sub in ["repo", "tmp", "out"] {
            std::fs::create_dir(base.join(sub)).unwrap();
        }
        let root = base.join("repo");
        let store = Arc::new(SqliteStore::open(&base.join("state")).await.unwrap());
        let new = NewSession {
            id: SessionId::new(),
            cwd: root.clone(),
            model: MODEL.into(),
            mode: SessionMode::Normal,
        };
        let session = store.create_session(new).await.unwrap().id;
        let server = ScriptedModel::start(script).await.unwrap();
        let redactor = Arc::new(Redactor::new([("TOKEN", SECRET)]));
        let out = base.join("out");
        let setup = SchedulerSetup::with_leases(store.clone(), out, redactor.clone());
        let scheduler = Scheduler::new(setup);
        scheduler.add_project(root.clone());
        let questions = Questions::new(
            store.clone(),
            ChangeFeed::new(store.clone()),
            QUESTION_TIME_LIMIT,
            Attendance::Nobody,
        );
        let hub = TaskHub::new(
            store.clone(),
            store.clone(),
            scheduler.clone(),
            questions,
            builtin_kinds(),
            None,
        );
        let rules = Arc::new(RwLock::new(rules()));
        let sandbox = Arc::new(Sandbox::unsandboxed());
        let maker = Arc::new(Maker::new(
            store.clone(),
            hub.clone(),
            server.url(),
            root.clone(),
            rules.clone(),
            redactor.clone(),
        ));
        let shells = ShellSetup {
            sandbox,
            child_env: child_env(),
            temp_dir: base.join("tmp"),
            redactor,
            rules,
            home: None,
        };
        scheduler.serve(TaskType::LocalBash, Arc::new(ShellRunner(shells)));
        let agents = AgentRunner {
            maker: maker.clone(),
            hub: hub.clone(),
        };
        scheduler.serve(TaskType::LocalAgent, Arc::new(agents));
        Self {
            _dir: dir,
            root,
            store,
            server,
            hub,
            maker,
            session,
        }
    }

    /// The agent at the top as the caller of the hub.
    pub(crate) fn caller(&self) -> Caller {
        let authority = Authority {
            session: Some(self.session),
            tree: self.session,
            project_root: self.root.clone(),
            mode: "default".into(),
            rules: rule_texts(&rules()),
            extra_dirs: Vec::new(),
            max_budget_usd: None,
            repository: None,
            remote: None,
            user: None,
            trace: None,
        };
        Caller {
            session: self.session,
            task: None,
            name: "the coordinator".to_owned(),
            depth: 0,
            sink: silent(),
            root: self.root.clone(),
            authority: Arc::new(move || authority.clone()),
        }
    }

    async fn top_agent(&self, tools: Registry) -> Agent {
        let agent = self.maker.agent(self.session, None, tools, silent());
        within("making the agent", agent).await.unwrap()
    }

    /// An agent with the standard tools and `Task`, on the conversation so far.
    pub(crate) async fn parent(&self) -> Agent {
        let mut tools = standard_tools();
        for tool in subagent_tools(&self.hub, &self.caller()) {
            tools.add(tool);
        }
        self.top_agent(tools).await
    }

    pub(crate) async fn coordinator(&self) -> Agent {
        let tools = coordinator_tools(&self.hub, &self.caller());
        self.top_agent(tools).await
    }

    pub(crate) async fn shell(&self, subject: &str, command: &str) -> TaskRecord {
        let spec = ShellSpec {
            command: command.to_owned(),
            root: self.root.clone(),
            cwd: self.root.clone(),
            timeout_ms: None,
        };
        let extra = TaskExtra::default();
        let caller = self.caller();
        let made = self.hub.create_bash(&caller, subject, spec, extra);
        within("making the task", made).await.unwrap()
    }

    /// A task that runs a general-purpose agent; the session is told of its end.
    pub(crate) async fn agent_task(&self, subject: &str, prompt: &str) -> TaskRecord {
        let launch = AgentLaunch {
            description: subject.to_owned(),
            prompt: prompt.to_owned(),
            kind: "general-purpose".into(),
            model: None,
            max_turns: None,
            max_wall_seconds: None,
            max_budget: None,
            isolation: None,
            name: None,
            cwd: self.root.clone(),
            tool_use_id: None,
            notify: Notify::Session,
        };
        let extra = TaskExtra::default();
        let caller = self.caller();
        let made = self.hub.launch(&caller, launch, extra);
        within("making the task", made).await.unwrap()
    }

    /// The record of a task when it is over.
    pub(crate) async fn ended(&self, id: &TaskId) -> TaskRecord {
        let cancel = CancellationToken::new();
        match within("the task", self.hub.wait(id, &cancel)).await {
            Ok(Waited::Ended(record)) => *record,
            other => panic!("{other:?}"),
        }
    }

    /// All tasks, in order of creation.
    pub(crate) async fn tasks(&self) -> Vec<TaskRecord> {
        self.store.tasks(TaskFilter::default()).await.unwrap()
    }

    /// Notifications that were not delivered yet.
    pub(crate) async fn undelivered(&self) -> Vec<String> {
        let waiting = self.store.notifications(self.session).await.unwrap();
        waiting.into_iter().map(|notice| notice.body).collect()
    }

    /// What was delivered into the conversation of the agent at the top, in order.
    pub(crate) async fn delivered(&self) -> Vec<String> {
        let entries = self.store.entries(self.session, 0).await.unwrap();
        let text = |body| match body {
            EntryBody::User { message, synthetic } if synthetic => Some(message.text()),
            _ => None,
        };
        entries
            .into_iter()
            .filter_map(|entry| text(entry.body))
            .collect()
    }

    /// The requests of the conversation that began with this prompt, in order.
    pub(crate) fn requests_of(&self, prompt: &str) -> Vec<CapturedRequest> {
        let mut requests = self.server.requests();
        requests.retain(|request| texts(request)[0] == prompt);
        requests
    }
}

/// Runs an agent to its end and gives its final text.
pub(crate) async fn run(agent: &mut Agent, prompt: &str) -> String {
    let running = agent.run(Some(Message::user(prompt)), CancellationToken::new());
    let result = within("the run", running).await;
    assert_eq!(result.outcome, Outcome::Success, "{result:?}");
    result.result
}

/// The text of every message of a request, without calls and results of tools.
pub(crate) fn texts(request: &CapturedRequest) -> Vec<String> {
    let text = |message: &serde_json::Value| match message["content"].as_array() {
        None => message["content"].as_str().unwrap_or_default().to_owned(),
        Some(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect()
        }
    };
    request.messages().iter().map(text).collect()
}

fn silent() -> Sink {
    Arc::new(|_| {})
}

fn child_env() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())]
}

fn rules() -> RuleSet {
    let mut rules = RuleSet::default();
    for rule in ["Bash", "Edit"] {
        let source = RuleSource::named("the test");
        rules.add(RuleKind::Allow, rule.parse().unwrap(), &source);
    }
    rules
}
