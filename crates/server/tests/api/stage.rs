//! A server on a free port with two projects, and tokens of every role. No tasks run: what they do
//! is recorded by the tests themselves.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use codespar_channels::{ChannelCore, ChannelSetup, PageProject, StoredChannel, Unlinked, WEB};
use codespar_protocol::{
    AccessRole, AgentSpec, Authority, EntryBody, Message, OnDependencyFailure, SessionId,
    SessionMode, ShellSpec, TaskId, TaskRecord, TaskSpec, TaskType,
};
use codespar_runtime::{
    Environment, ProcessRole, ProjectConfig, ProjectDir, ProjectOptions, Runtime,
};
use codespar_server::{
    ListenPlan, ProjectKey, ProxyChoice, ProxySignIn, ServedSurface, Server, ServerLimits,
    ServerSetup, SignInSetup, WebhookOutcomes, Webhooks, WorkerState, create_token,
};
use codespar_store::{Database, NewSession, NewTask, Notify};
use codespar_tasks::Attendance;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) core: Arc<ChannelCore>,
    pub(crate) client: reqwest::Client,
    pub(crate) sign_in: String,
    tokens: Vec<(AccessRole, String)>,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

/// Limits that tests do not run into by accident.
pub(crate) fn wide() -> ServerLimits {
    ServerLimits {
        request_burst: 100_000,
        failure_burst: 100_000,
        heartbeat: Duration::from_millis(200),
        ..ServerLimits::default()
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(wide()).await
    }

    pub(crate) async fn with(limits: ServerLimits) -> Self {
        Self::made(limits, None, SignInSetup::default()).await
    }

    /// Behind a proxy that names people.
    pub(crate) async fn behind(proxy: ProxySignIn) -> Self {
        Self::made(wide(), Some(proxy), SignInSetup::default()).await
    }

    /// With providers at which people sign in.
    pub(crate) async fn with_providers(sign_in: SignInSetup) -> Self {
        Self::made(wide(), None, sign_in).await
    }

    async fn made(limits: ServerLimits, proxy: Option<ProxySignIn>, sign_in: SignInSetup) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["state", "home", "a", "b", "elsewhere"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in ["a", "b"] {
            repository(&base.join(name));
        }
        let (runtime, roots) = runtime(&base).await;
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let hosts = ["spar.example".to_owned()];
        let stop = CancellationToken::new();
        let core = core(&runtime, &roots, &stop);
        let server = Server::bind(ServerSetup {
            runtime: runtime.clone(),
            projects: roots.clone(),
            plan: ListenPlan::new(address, None, ProxyChoice::None, &hosts).unwrap(),
            limits,
            worker: WorkerState::Elsewhere,
            proxy_sign_in: proxy,
            sign_in,
            webhooks: WebhookOutcomes::default(),
            hooks: Webhooks::default(),
            core: core.clone(),
            surface: ServedSurface::Everything,
        });
        let server = server.await.unwrap();
        let mut tokens = Vec::new();
        for role in AccessRole::ALL {
            let made = create_token(&**runtime.store(), role.as_str(), role).await;
            tokens.push((role, made.unwrap().1.reveal().to_owned()));
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            address: server.address().unwrap(),
            sign_in: server.sign_in_code(AccessRole::Admin).unwrap().path(),
            running: tokio::spawn(server.run(stop.clone())),
            dir,
            runtime,
            core,
            client,
            tokens,
            stop,
        }
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.running)
            .await
            .unwrap()
            .unwrap();
    }

    /// Serves another channel, whose messages are on record alone.
    pub(crate) fn serve_channel(&self, channel: &str) {
        serve(&self.core, channel, &self.stop);
    }

    pub(crate) fn begin_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn store(&self) -> &Arc<dyn Database> {
        self.runtime.store()
    }

    pub(crate) fn root(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn key(&self, name: &str) -> String {
        ProjectKey::of(&self.root(name)).as_str().to_owned()
    }

    pub(crate) fn token(&self, role: AccessRole) -> &str {
        let found = self.tokens.iter().find(|(known, _)| *known == role);
        &found.unwrap().1
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method: Method = method.parse().unwrap();
        self.client.request(method, self.url(path))
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    pub(crate) async fn get(&self, role: AccessRole, path: &str) -> Answer {
        let request = self.request("GET", path).bearer_auth(self.token(role));
        self.send(request).await
    }

    pub(crate) async fn post(&self, role: AccessRole, path: &str, body: &Value) -> Answer {
        let request = self.request("POST", path).bearer_auth(self.token(role));
        self.send(with_json(request, body)).await
    }

    /// A shell task that nobody runs.
    pub(crate) async fn task(&self, project: &str, subject: &str) -> TaskRecord {
        self.labelled(project, subject, "").await
    }

    /// A shell task that runs only where these labels are offered.
    pub(crate) async fn labelled(&self, project: &str, subject: &str, labels: &str) -> TaskRecord {
        let root = self.root(project);
        let spec = TaskSpec::Shell(ShellSpec {
            command: "true".to_owned(),
            root: root.clone(),
            cwd: root,
            timeout_ms: None,
        });
        self.record(project, subject, spec, labels).await
    }

    /// An agent with a conversation of its own, in a tree outside of its project.
    pub(crate) async fn agent(&self, project: &str) -> (TaskRecord, SessionId) {
        let session = self.session(&self.root("elsewhere")).await;
        let root = self.root("elsewhere");
        let spec = TaskSpec::Agent(AgentSpec {
            prompt: "go".to_owned(),
            subagent_type: "general-purpose".to_owned(),
            model: None,
            max_turns: None,
            max_wall_seconds: None,
            max_budget_usd: None,
            name: None,
            isolation: None,
            cwd: root.clone(),
            root,
            agent_session: session,
            depth: 1,
            tool_use_id: None,
        });
        (self.record(project, "an agent", spec, "").await, session)
    }

    async fn record(
        &self,
        project: &str,
        subject: &str,
        spec: TaskSpec,
        labels: &str,
    ) -> TaskRecord {
        let id = TaskId::new(spec.task_type());
        let tree = SessionId::new();
        let dir = self.runtime.outputs().dir().join(tree.to_string());
        fs::create_dir_all(&dir).unwrap();
        let new = NewTask {
            output_file: Some(dir.join(format!("{id}.txt"))),
            id,
            spec,
            authority: Authority {
                session: None,
                tree,
                project_root: self.root(project),
                mode: "default".to_owned(),
                rules: Vec::new(),
                extra_dirs: Vec::new(),
                max_budget_usd: None,
                repository: None,
                remote: None,
                user: None,
                trace: None,
            },
            reserved_for: None,
            labels: labels.parse().unwrap(),
            on_dependency_failure: OnDependencyFailure::Fail,
            subject: subject.to_owned(),
            description: None,
            active_form: None,
            metadata: Map::new(),
            blocked_by: Vec::new(),
            session_id: None,
            parent_task_id: None,
            notify: Notify::Nobody,
            made_under: None,
            start_here: None,
        };
        let made = self.store().create_tasks(vec![new]).await.unwrap();
        assert_ne!(made[0].task_type, TaskType::Dream);
        made.into_iter().next().unwrap()
    }

    pub(crate) async fn session(&self, cwd: &Path) -> SessionId {
        let new = NewSession {
            id: SessionId::new(),
            cwd: cwd.to_owned(),
            model: "m".to_owned(),
            mode: SessionMode::Normal,
        };
        self.store().create_session(new).await.unwrap().id
    }

    pub(crate) async fn say(&self, session: SessionId, after: u64, text: &str) {
        let said = EntryBody::User {
            message: Message::user(text),
            synthetic: false,
        };
        let appended = self.store().append(session, after, vec![said]).await;
        appended.unwrap();
    }
}

pub(crate) fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// Serves the channel of the page. Runs of the dev agent are recorded and wait.
fn core(runtime: &Arc<Runtime>, roots: &[PathBuf], stop: &CancellationToken) -> Arc<ChannelCore> {
    let page = |root: &PathBuf| PageProject {
        conversation: ProjectKey::of(root).as_str().to_owned(),
        name: root.file_name().unwrap().to_str().unwrap().to_owned(),
        root: root.clone(),
    };
    let core = ChannelCore::new(ChannelSetup {
        runtime: runtime.clone(),
        home: runtime.project_at(&roots[0]).unwrap(),
        unlinked: Unlinked::Nothing,
        pages: roots.iter().map(page).collect(),
        owner: None,
        crash_point: None,
    });
    serve(&core, WEB, stop);
    core
}

fn serve(core: &Arc<ChannelCore>, channel: &str, stop: &CancellationToken) {
    let adapter = Arc::new(StoredChannel {
        name: channel.to_owned(),
    });
    let (serving, stop) = (core.clone(), stop.clone());
    tokio::spawn(async move { serving.serve(adapter, stop).await });
}

async fn runtime(base: &Path) -> (Arc<Runtime>, Vec<PathBuf>) {
    let var = |name: &str, value: String| (name.into(), value.into());
    let environment = Arc::new(Environment {
        home: Some(base.join("home")),
        state: base.join("state"),
        vars: vec![
            var("PATH", std::env::var("PATH").unwrap()),
            var("SECRET_TOKEN", "correct-horse-battery".to_owned()),
        ],
        program: PathBuf::from("/nonexistent/codespar"),
    });
    let config = |name: &str| {
        let dir = ProjectDir::find(environment.clone(), &base.join(name)).unwrap();
        let options = ProjectOptions {
            simulate: true,
            ..ProjectOptions::default()
        };
        ProjectConfig::load(dir, options).unwrap()
    };
    let opened = Runtime::with_project(config("a"), Attendance::Elsewhere, ProcessRole::Client);
    let (runtime, first) = opened.await.unwrap();
    let second = runtime.open_project(config("b"), Attendance::Elsewhere);
    let roots = vec![first.dir.root.clone(), second.dir.root.clone()];
    (runtime, roots)
}

fn repository(dir: &Path) {
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    fs::write(dir.join("README.md"), "hello\n").unwrap();
    git(&["add", "."]);
    git(&[
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "commit",
        "-qm",
        "first",
    ]);
}
