//! Makes real agents on the scripted model, for the runner and for the agent at the top.

use std::{collections::VecDeque, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_agent::{
    Agent, AgentParts, Briefing, ModelChoice, NobodyThere, RunLimits, SideCalls, Sink, Transcript,
};
use codespar_model::{AnthropicConfig, AnthropicModel, Catalogue, HttpClient, HttpOptions};
use codespar_policy::{Lifetime, Mode, Redactor, RepositoryScope, RuleSet, SandboxState, Scope};
use codespar_protocol::{AgentSpec, SessionId, TaskId};
use codespar_store::{SqliteStore, Store, StoreError};
use codespar_tasks::{
    AgentMaker, AtEnd, Caller, Control, MadeAgent, MakeError, TaskHub, TaskInbox, WORKER,
    subagent_tools, task_tools,
};
use codespar_tools::{
    Context, ContextParts, Hidden, Registry, Skills, sandbox::Sandbox, standard_tools,
};
use parking_lot::{Mutex, RwLock};
use tokio::sync::OnceCell;

use super::{MODEL, child_env};

pub(crate) struct Maker {
    store: Arc<SqliteStore>,
    hub: Arc<TaskHub>,
    url: String,
    root: PathBuf,
    rules: Arc<RwLock<RuleSet>>,
    redactor: Arc<Redactor>,
    /// What the next calls of `make` fail with, one each. Without any it makes an agent.
    failures: Mutex<VecDeque<MakeError>>,
}

impl Maker {
    pub(super) fn new(
        store: Arc<SqliteStore>,
        hub: Arc<TaskHub>,
        url: String,
        root: PathBuf,
        rules: Arc<RwLock<RuleSet>>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self {
            store,
            hub,
            url,
            root,
            rules,
            redactor,
            failures: Mutex::default(),
        }
    }

    pub(crate) fn fail_next(&self, error: MakeError) {
        self.failures.lock().push_back(error);
    }

    /// How many of the failures have not come yet.
    pub(crate) fn failures_left(&self) -> usize {
        self.failures.lock().len()
    }

    /// An agent that waits at its end for the tasks it made. `task` is its own, if it has one.
    pub(super) async fn agent(
        &self,
        session: SessionId,
        task: Option<TaskId>,
        tools: Registry,
        sink: Sink,
    ) -> Result<Agent, StoreError> {
        let store: Arc<dyn Store> = self.store.clone();
        let (transcript, _) = Transcript::open(store, session).await?;
        let inbox = TaskInbox {
            hub: self.hub.clone(),
            session,
            task,
            sink: sink.clone(),
            at_end: AtEnd::Wait,
            expects_earlier: OnceCell::new(),
        };
        let mut config = AnthropicConfig::new(self.url.parse().unwrap());
        config.api_key = Some("key".into());
        let http = HttpClient::new(HttpOptions::default());
        let parts = AgentParts {
            model: Arc::new(AnthropicModel::new(&config, &http).unwrap()),
            choice: ModelChoice {
                id: MODEL.into(),
                context_window: 200_000,
                max_tokens: 8_000,
                effort: None,
                thinking: None,
                fallback: None,
                compact_at: 150_000,
            },
            catalogue: Arc::new(Catalogue::builtin()),
            tools,
            context: self.context(),
            rules: self.rules.clone(),
            mode: Mode::Default.into(),
            scope: self.scope(),
            redactor: self.redactor.clone(),
            approver: Arc::new(NobodyThere),
            sink,
            limits: RunLimits::default(),
            briefing: Briefing {
                root: self.root.clone(),
                cwd: self.root.clone(),
                ..Briefing::default()
            },
            side_calls: Arc::new(SideCalls::default()),
            inbox: Arc::new(inbox),
            gate: None,
            hooks: None,
        };
        Ok(Agent::new(parts, transcript))
    }

    fn context(&self) -> Arc<Context> {
        Arc::new(Context::new(ContextParts {
            root: self.root.clone(),
            cwd: self.root.clone(),
            extra_dirs: Vec::new(),
            temp_dir: self.root.with_file_name("tmp"),
            output_dir: self.root.with_file_name("out"),
            child_env: child_env(),
            sandbox: Arc::new(Sandbox::unsandboxed()),
            skills: Arc::new(Skills::default()),
            page_reader: None,
            hidden: Hidden::default(),
            redactor: self.redactor.clone(),
        }))
    }

    fn scope(&self) -> Scope {
        Scope {
            root: self.root.clone(),
            cwd: self.root.clone(),
            home: None,
            workspace: vec![self.root.clone()],
            free: vec![
                self.root.with_file_name("tmp"),
                self.root.with_file_name("out"),
            ],
            sandbox_state: SandboxState::SwitchedOff,
            repository: RepositoryScope::Project,
            lifetime: Lifetime::Kept,
        }
    }
}

#[async_trait]
impl AgentMaker for Maker {
    /// All tools, but no `Task` for a worker.
    async fn make(
        &self,
        spec: &AgentSpec,
        control: &Control,
        sink: Sink,
    ) -> Result<MadeAgent, MakeError> {
        if let Some(error) = self.failures.lock().pop_front() {
            return Err(error);
        }
        let authority = control.authority()?.clone();
        let task = control.record.task_id.clone();
        let caller = Caller {
            session: spec.agent_session,
            task: Some(control.lease()),
            name: task.to_string(),
            depth: spec.depth,
            sink: sink.clone(),
            root: spec.root.clone(),
            authority: Arc::new(move || authority.clone()),
        };
        let mut tools = standard_tools();
        for tool in task_tools(&self.hub, &caller) {
            tools.add(tool);
        }
        if spec.subagent_type != WORKER {
            for tool in subagent_tools(&self.hub, &caller) {
                tools.add(tool);
            }
        }
        let session = spec.agent_session;
        let agent = self.agent(session, Some(task), tools, sink).await?;
        let after = Box::pin(std::future::ready(None));
        Ok(MadeAgent { agent, after })
    }
}
