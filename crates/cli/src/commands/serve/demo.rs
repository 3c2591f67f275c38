//! `codespar serve --demo`: a sample repository, a recorded model and something to look at.
//!
//! Everything but the model's answers is real. State, settings and keys of the user are kept out,
//! and all of it is in a temporary directory that goes with the process.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_channels::{ChannelCore, VouchedLine};
use codespar_protocol::AccessRole;
use codespar_runtime::{ProjectDir, Runtime};
use codespar_server::{ProjectKey, create_token};

use crate::{
    commands::demo::{demo_dir, write_sample},
    error::CommandError,
};

/// A cassette whose lines are chosen by what is asked.
const ANSWERS: &str = include_str!("../../demo/server.jsonl");
/// The dev agent asks for one answer and has no tools: the recording has none of its calls.
const SETTINGS: &str = r#"{"dev": {"engine": "generate"}, "verify": {"command": "sh test.sh"}}"#;
/// What was said before the user came: thread and line.
const SAID: [(&str, &str); 3] = [
    ("numbers", "ask what can this repository do?"),
    ("numbers", "add the minimum of the numbers"),
    ("report", "fix the report"),
];

/// The place of a demo; it is removed with this.
pub(super) struct DemoPlace {
    dir: tempfile::TempDir,
    pub(super) project_dir: ProjectDir,
}

impl DemoPlace {
    pub(super) fn new(project_dir: &ProjectDir) -> Result<Self, CommandError> {
        let dir = tempfile::Builder::new()
            .prefix("codespar-demo-")
            .tempdir()?;
        let base = dir.path().canonicalize()?;
        let repository = base.join("sample");
        write_sample(&repository)?;
        let answers = base.join("answers.jsonl");
        std::fs::write(&answers, ANSWERS)?;
        let state = base.join("state");
        std::fs::create_dir_all(&state)?;
        std::fs::write(state.join("settings.json"), SETTINGS)?;
        let project_dir = demo_dir(project_dir, &base, &repository, &answers)?;
        Ok(Self { dir, project_dir })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
}

/// Says a few things as somebody else, so that there is something to look at: an answer, a pull
/// request, and a question that waits.
pub(super) async fn seed(
    runtime: &Arc<Runtime>,
    core: &Arc<ChannelCore>,
    root: &Path,
) -> Result<(), CommandError> {
    let (token, _) = create_token(&**runtime.store(), "Ada", AccessRole::Write).await?;
    for (number, (thread, text)) in SAID.iter().enumerate() {
        let line = VouchedLine {
            images: Vec::new(),
            token: token.clone(),
            conversation: ProjectKey::of(root).as_str().to_owned(),
            thread: (*thread).to_owned(),
            key: format!("demo-{number}"),
            text: (*text).to_owned(),
            reply_to: None,
        };
        let said = core.receive_vouched(line).await;
        said.map_err(|error| CommandError::Failed(error.to_string()))?;
    }
    Ok(())
}
