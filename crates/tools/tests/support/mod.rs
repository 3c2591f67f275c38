//! A project in a temporary directory, and shell commands in it.
#![allow(dead_code)]

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_tools::{
    Bash, Call, Context, ContextParts, PageReader, Skills, Tool, ToolOutput,
    sandbox::{Network, Sandbox, SandboxChoice},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The guard program, built as an example next to the tests.
pub(crate) fn guard() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let build = test.parent().unwrap().parent().unwrap();
    let guard = build.join("examples/sandbox_child");
    assert!(guard.is_file(), "{} was not built", guard.display());
    guard
}

/// Not in `/tmp`, which is another one inside of bubblewrap.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

pub(crate) struct Bench {
    dir: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) temp: PathBuf,
    pub(crate) outputs: PathBuf,
    pub(crate) context: Context,
}

impl Bench {
    pub(crate) fn unsandboxed() -> Self {
        Self::with(Sandbox::unsandboxed())
    }

    pub(crate) fn new(choice: SandboxChoice) -> Self {
        Self::with(Sandbox::probe(choice, guard()))
    }

    pub(crate) fn sandboxed(choice: SandboxChoice) -> Self {
        Self::sandboxed_with(choice, Network::Denied)
    }

    pub(crate) fn sandboxed_with(choice: SandboxChoice, network: Network) -> Self {
        let sandbox = Sandbox::probe(choice, guard()).with_network(network);
        assert_eq!(
            sandbox.sandbox_state(),
            codespar_policy::SandboxState::Sandboxed,
            "install bubblewrap and use a kernel with Landlock: {:?}",
            sandbox.report()
        );
        Self::with(sandbox)
    }

    pub(crate) fn with(sandbox: Sandbox) -> Self {
        Self::in_dir(directory(), "root", sandbox, None)
    }

    pub(crate) fn reading(reader: Arc<dyn PageReader>) -> Self {
        let dir = directory();
        Self::in_dir(dir, "root", Sandbox::unsandboxed(), Some(reader))
    }

    /// With files that a rule forbids to read.
    pub(crate) fn hiding(sandbox: Sandbox, hidden: codespar_tools::Hidden) -> Self {
        Self::build(directory(), "root", sandbox, None, hidden)
    }

    pub(crate) fn in_dir(
        dir: TempDir,
        root: &str,
        sandbox: Sandbox,
        page_reader: Option<Arc<dyn PageReader>>,
    ) -> Self {
        let hidden = codespar_tools::Hidden::default();
        Self::build(dir, root, sandbox, page_reader, hidden)
    }

    fn build(
        dir: TempDir,
        root: &str,
        sandbox: Sandbox,
        page_reader: Option<Arc<dyn PageReader>>,
        hidden: codespar_tools::Hidden,
    ) -> Self {
        let base = dir.path().canonicalize().unwrap();
        let [root, home, state] = [root, "home", "state"].map(|name| base.join(name));
        let [temp, outputs] = ["tmp", "outputs"].map(|name| state.join(name));
        for directory in [&root, &home, &temp, &outputs] {
            fs::create_dir_all(directory).unwrap();
        }
        let sandbox = sandbox.with_home(Some(home.clone()), state.clone());
        let context = Context::new(ContextParts {
            root: root.clone(),
            cwd: root.clone(),
            extra_dirs: Vec::new(),
            temp_dir: temp.clone(),
            output_dir: outputs.clone(),
            child_env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            sandbox: Arc::new(sandbox),
            skills: Arc::new(Skills::default()),
            page_reader,
            hidden,
            redactor: std::sync::Arc::new(codespar_policy::Redactor::by_shape()),
        });
        Self {
            dir,
            root,
            home,
            state,
            temp,
            outputs,
            context,
        }
    }

    /// Beside the workspace.
    pub(crate) fn outside(&self) -> PathBuf {
        let outside = self.dir.path().canonicalize().unwrap().join("outside");
        fs::create_dir_all(&outside).unwrap();
        outside
    }

    pub(crate) async fn bash(&self, command: &str) -> ToolOutput {
        self.call(&Bash::new(), json!({"command": command})).await
    }

    /// The output of a command that succeeds.
    pub(crate) async fn ok(&self, command: &str) -> String {
        let output = self.bash(command).await;
        assert!(!output.is_error, "{}", output.content.text());
        output.content.text()
    }

    /// The output of a command that fails.
    pub(crate) async fn fails(&self, command: &str) -> String {
        let output = self.bash(command).await;
        assert!(output.is_error, "{}", output.content.text());
        output.content.text()
    }

    pub(crate) async fn call(&self, tool: &dyn Tool, input: Value) -> ToolOutput {
        self.call_until(tool, input, CancellationToken::new()).await
    }

    pub(crate) async fn call_until(
        &self,
        tool: &dyn Tool,
        input: Value,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let input = serde_json::value::to_raw_value(&input).unwrap();
        let intent = match tool.inspect(&input, &self.context) {
            Ok(intent) => intent,
            Err(error) => return error.into(),
        };
        let call = Call {
            id: "call".into(),
            input,
            access: intent.access,
            cancel,
            approval: codespar_tools::sandbox::Approval::Rules,
            text: None,
        };
        tool.run(call, &self.context).await
    }
}

/// A number of seconds nobody else sleeps.
pub(crate) fn marker() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("98765.{}{next:03}", std::process::id())
}

/// How many processes have `marker` as an argument.
pub(crate) fn alive(marker: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|word| word == marker.as_bytes())
        })
        .count()
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
