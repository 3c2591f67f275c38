//! A project in a temporary directory, and calls on it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_protocol::ToolUseId;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{
    Call, Context, ContextParts, Intent, Proposal, Skills, Tool, ToolError, ToolOutput,
    sandbox::Sandbox,
};

/// A project in a temporary directory with a context that stands in it.
pub(crate) struct Bench {
    _dir: TempDir,
    root: PathBuf,
    context: Context,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_skills(Skills::default())
    }

    pub(crate) fn with_skills(skills: Skills) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let context = Context::new(ContextParts {
            root: root.clone(),
            cwd: root.clone(),
            extra_dirs: Vec::new(),
            temp_dir: root.clone(),
            output_dir: root.clone(),
            child_env: Vec::new(),
            sandbox: Arc::new(Sandbox::unsandboxed()),
            skills: Arc::new(skills),
            page_reader: None,
            hidden: crate::Hidden::default(),
            redactor: std::sync::Arc::new(codespar_policy::Redactor::by_shape()),
        });
        Self {
            _dir: dir,
            root,
            context,
        }
    }

    /// The same project with another context.
    pub(crate) fn map_context(mut self, map: impl FnOnce(Context) -> Context) -> Self {
        self.context = map(self.context);
        self
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn text(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }

    /// Names in a directory, sorted.
    pub(crate) fn names(&self, relative: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(relative)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn inspect(&self, tool: &dyn Tool, input: &Value) -> Result<Intent, ToolError> {
        let raw = serde_json::value::to_raw_value(input).unwrap();
        tool.inspect(&raw, &self.context)
    }

    pub(crate) async fn call(&self, tool: &dyn Tool, input: Value) -> ToolOutput {
        self.call_with(tool, input, CancellationToken::new()).await
    }

    pub(crate) async fn call_with(
        &self,
        tool: &dyn Tool,
        input: Value,
        cancel: CancellationToken,
    ) -> ToolOutput {
        match self.inspect(tool, &input) {
            Ok(intent) => self.run_inspected(tool, input, intent, cancel).await,
            Err(error) => error.into(),
        }
    }

    /// The second half of a call, after the decision.
    pub(crate) async fn run_inspected(
        &self,
        tool: &dyn Tool,
        input: Value,
        intent: Intent,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let call = Call {
            id: ToolUseId::from("call"),
            input: serde_json::value::to_raw_value(&input).unwrap(),
            access: intent.access,
            cancel,
            approval: crate::sandbox::Approval::Rules,
            text: None,
        };
        tool.run(call, &self.context).await
    }

    /// A call of which the user refused these hunks.
    pub(crate) async fn run_without(
        &self,
        tool: &dyn Tool,
        input: Value,
        proposal: &Proposal,
        refused: &[usize],
    ) -> ToolOutput {
        let intent = self.inspect(tool, &input).unwrap();
        let call = Call {
            id: ToolUseId::from("call"),
            input: serde_json::value::to_raw_value(&input).unwrap(),
            access: intent.access,
            cancel: CancellationToken::new(),
            approval: crate::sandbox::Approval::Person,
            text: Some(proposal.without(refused)),
        };
        tool.run(call, &self.context).await
    }

    pub(crate) async fn propose(&self, tool: &dyn Tool, input: &Value) -> Option<Proposal> {
        let intent = self.inspect(tool, input).unwrap();
        let raw = serde_json::value::to_raw_value(input).unwrap();
        tool.propose(&raw, &intent.access, &self.context).await
    }

    /// The text of a call that succeeds.
    pub(crate) async fn run(&self, tool: &dyn Tool, input: Value) -> String {
        let output = self.call(tool, input).await;
        assert!(!output.is_error, "{}", output.content.text());
        output.content.text()
    }

    /// The text of a call that fails.
    pub(crate) async fn fail(&self, tool: &dyn Tool, input: Value) -> String {
        let output = self.call(tool, input).await;
        assert!(output.is_error, "{}", output.content.text());
        output.content.text()
    }
}
