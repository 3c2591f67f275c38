//! A real runtime, database and repository for tests of channels.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use codespar_channels::{
    ChannelAdapter, ChannelCore, ChannelSetup, HookMethod, HookRequest, Inbound, Unlinked, Webhook,
};
use codespar_protocol::TaskRecord;
use codespar_runtime::{
    Environment, ProcessRole, Project, ProjectConfig, ProjectDir, ProjectOptions, Runtime,
};
use codespar_store::{Receipt, TaskFilter};
use codespar_tasks::Attendance;
use http::HeaderMap;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = timeout(PATIENCE, waited).await;
    waited.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

/// Delivers to a webhook; the status and the body of the answer.
pub(crate) async fn deliver(hook: &dyn Webhook, headers: &HeaderMap, body: &str) -> (u16, String) {
    let request = HookRequest {
        method: HookMethod::Post,
        query: "",
        headers,
        body: body.as_bytes(),
    };
    let answer = hook.handle(request).await;
    (answer.status, answer.body)
}

/// A process with a repository, and a channel that a test chooses.
pub(crate) struct Room {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) core: Arc<ChannelCore>,
    pub(crate) cancel: CancellationToken,
    project_dir: ProjectDir,
    dir: tempfile::TempDir,
}

const SETTINGS: &str = r#"{"channels": {"access": {"test": {
    "users": {"ann": "admin", "bob": "read"}, "bots": ["ci"], "conversations": {"ops": "write"}
}, "slack": {"users": {"U1": "merge", "U2": "read"}},
   "telegram": {"users": {"1": "merge", "2": "read"}},
   "discord": {"users": {"1": "merge", "2": "read"}},
   "whatsapp": {"users": {"US.1": "merge", "491": "read"}}}}}"#;

impl Room {
    /// Without a model: runs are simulated.
    pub(crate) async fn new() -> Self {
        Self::with(SETTINGS, &[]).await
    }

    /// With a model that is asked questions; runs are simulated.
    pub(crate) async fn with_model(url: String) -> Self {
        let key = "sk-test-key-of-the-room-0001".to_owned();
        let vars = [("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", key)];
        Self::with(SETTINGS, &vars).await
    }

    /// With settings of the user and variables of the environment.
    pub(crate) async fn with(settings: &str, vars: &[(&str, String)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["state", "home", "work"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("state/settings.json"), settings).unwrap();
        repository(&base.join("work"));
        let vars = vars.iter().map(|(name, value)| (name.into(), value.into()));
        let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
        let environment = Environment {
            home: Some(base.join("home")),
            state: base.join("state"),
            vars: vars.chain([path]).collect(),
            program: PathBuf::from("/nonexistent/codespar"),
        };
        let found = ProjectDir::find(Arc::new(environment), &base.join("work")).unwrap();
        let project_dir = found.clone();
        let options = ProjectOptions {
            simulate: true,
            ..ProjectOptions::default()
        };
        let config = ProjectConfig::load(found, options).unwrap();
        let (runtime, home) =
            Runtime::with_project(config, Attendance::Elsewhere, ProcessRole::Session)
                .await
                .unwrap();
        let core = ChannelCore::new(ChannelSetup {
            runtime: runtime.clone(),
            home,
            unlinked: Unlinked::Home,
            pages: Vec::new(),
            owner: None,
            crash_point: None,
        });
        Self {
            runtime,
            core,
            cancel: CancellationToken::new(),
            project_dir,
            dir,
        }
    }

    /// The directory that the process was started in, with its environment.
    pub(crate) fn core_dir(&self) -> ProjectDir {
        self.project_dir.clone()
    }

    pub(crate) fn serve(&self, adapter: Arc<dyn ChannelAdapter>) {
        let (core, cancel) = (self.core.clone(), self.cancel.clone());
        tokio::spawn(async move { core.serve(adapter, cancel).await });
    }

    pub(crate) async fn say(&self, inbound: Inbound) -> Receipt {
        self.core.receive(inbound).await.unwrap()
    }

    pub(crate) async fn idle(&self, channel: &str) {
        timeout(PATIENCE, self.core.idle(channel))
            .await
            .expect("it comes to rest")
            .unwrap();
    }

    /// Waits until a message of ours is given up; the reason.
    pub(crate) async fn given_up(&self, key: &str) -> String {
        let store = self.runtime.store();
        let failed = async {
            loop {
                let row = store.outbound(key).await.unwrap();
                if let Some(failure) = row.and_then(|row| row.failure) {
                    return failure;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, failed).await.expect("it is given up")
    }

    /// The project of the repository.
    pub(crate) fn home(&self) -> Arc<Project> {
        let root = self.dir.path().canonicalize().unwrap().join("work");
        self.runtime.project_at(&root).unwrap()
    }

    pub(crate) async fn tasks(&self) -> Vec<TaskRecord> {
        let store = self.runtime.store();
        store.tasks(TaskFilter::default()).await.unwrap()
    }

    /// The state directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) async fn close(self) {
        self.cancel.cancel();
        self.runtime.close().await.unwrap();
        drop(self.dir);
    }
}

pub(crate) fn repository(dir: &Path) {
    std::fs::write(dir.join("greet.sh"), "echo hello\n").unwrap();
    for args in [
        &["init", "--quiet", "-b", "main"][..],
        &["config", "user.name", "Ada"],
        &["config", "user.email", "ada@example.invalid"],
        &["add", "--all", "."],
        &["commit", "--quiet", "--no-gpg-sign", "-m", "Begin"],
    ] {
        let status = Command::new("git").arg("-C").arg(dir).args(args).status();
        assert!(status.unwrap().success(), "git {args:?}");
    }
}
