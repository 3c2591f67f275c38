//! `engine = "agent"`: the agent loop with its tools works in a throw-away tree, and what it
//! changed there becomes the change.

use std::{path::Path, sync::Arc};

use codespar_protocol::{
    Bytes, ChangeSet, CommitId, FileChange, FileMode, RepoPath, SessionId, TaskId, TaskStatus,
    ToolUseId,
};
use codespar_store::Notify;
use codespar_tasks::{AgentLaunch, Caller, TaskExtra, WORKER, Waited};
use serde_json::Value;

use super::{Base, Located, Written, blocking};
use crate::{
    Failure,
    asking::Asked,
    pull_text::shorten,
    run::{ANSWER, Run},
    verify::{Tree, git},
};

const PROMPT: &str = include_str!("../prompts/agent.md");
const TREE: &str = "agent-tree";

impl Run {
    pub(crate) async fn write_by_agent(
        &self,
        base: &Base,
        located: &Located,
    ) -> Result<Written, Failure> {
        if let Some(written) = self.ledger.known("agent")? {
            return Ok(written);
        }
        let clone = self.link.clone.clone().ok_or_else(|| {
            Failure::Refused(
                "the agent engine needs a clone of the repository, and there is none".to_owned(),
            )
        })?;
        let path = self.dir().join(TREE);
        let task: TaskId = match self.ledger.known("agent_task")? {
            // Its tree is as it left it.
            Some(task) => task,
            None => {
                let (to, commit) = (path.clone(), base.commit.clone());
                let tree = blocking(move || Tree::open(&clone, &to, &commit)).await?;
                tree.keep();
                let task = self.launch(&path, located).await?;
                self.ledger.record("agent_task", &task).await?;
                task
            }
        };
        self.say("generate", &format!("🤖 Agent {task} works on it…"));
        let record = match self.hub.wait(&task, &self.control.cancel).await {
            Ok(Waited::Ended(record)) => record,
            Ok(Waited::GaveUp) => {
                let _ = self.hub.stop(&task, "the dev task was stopped").await;
                return Err(Failure::Stopped);
            }
            Err(error) => return Err(Failure::Broken(error.to_string())),
        };
        let said = record
            .metadata
            .get("result")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let spent = Asked {
            text: String::new(),
            model: (self.ground.names)(&self.order.task_model),
            usage: record.usage,
            usd: record.cost_usd.at_least(),
            is_priced: record.cost_usd.known().is_some(),
            rounds: 1,
        };
        self.ledger
            .record(&format!("{ANSWER}agent"), &spent)
            .await?;
        if record.status != TaskStatus::Completed {
            return Err(Failure::Refused(format!(
                "agent {task} did not come to an end: {}",
                record.error.unwrap_or_default()
            )));
        }
        let (tree, commit) = (path.clone(), base.commit.clone());
        let changes = blocking(move || collect(&tree, &commit)).await?;
        if changes.is_empty() {
            return Err(Failure::NoChanges(said));
        }
        self.check_protected(&changes)?;
        let first = said.trim().lines().next().unwrap_or_default();
        let title = if first.is_empty() {
            self.order.subject()
        } else {
            first
                .trim_start_matches(['#', ' ', '*'])
                .trim_end_matches('*')
        };
        let written = Written {
            changes,
            title: shorten(title),
            summary: said.clone(),
            model: (self.ground.names)(&self.order.task_model),
            answer: String::new(),
            is_simulated: false,
        };
        self.ledger.record("agent", &written).await?;
        let _ = std::fs::remove_dir_all(&path);
        Ok(written)
    }

    fn check_protected(&self, changes: &ChangeSet) -> Result<(), Failure> {
        let rules = self.rules()?;
        let refused: Vec<String> = changes
            .0
            .iter()
            .flat_map(|change| [Some(change.path()), change.gone()])
            .flatten()
            .filter_map(|path| {
                Some(format!(
                    "`{path}` is protected by `{}`",
                    rules.protects(path)?
                ))
            })
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        Err(Failure::NotApplied(format!(
            "{}; give --allow-protected to allow it",
            refused.join("; ")
        )))
    }

    async fn launch(&self, tree: &Path, located: &Located) -> Result<TaskId, Failure> {
        let files: Vec<&str> = located.paths().collect();
        let prompt = PROMPT
            .trim()
            .replace("{instruction}", self.order.instruction.trim())
            .replace("{files}", &files.join(", "));
        let sink_hub = Arc::downgrade(&self.hub);
        let own = self.control.record.task_id.clone();
        let caller = Caller {
            session: self
                .control
                .record
                .session_id
                .unwrap_or_else(SessionId::new),
            task: Some(own.clone()),
            depth: 1,
            sink: Arc::new(move |event| {
                if let Some(hub) = sink_hub.upgrade() {
                    hub.tell(&own, event);
                }
            }),
            root: tree.to_path_buf(),
        };
        let launch = AgentLaunch {
            description: shorten(self.order.subject()),
            prompt,
            kind: WORKER.to_owned(),
            model: Some(self.order.task_model.clone()),
            max_turns: None,
            isolation: None,
            name: None,
            cwd: tree.to_path_buf(),
            // So that what it does is heard here.
            tool_use_id: Some(ToolUseId(self.control.record.task_id.to_string())),
            notify: Notify::Nobody,
        };
        let record = self
            .hub
            .launch(&caller, launch, TaskExtra::default())
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        Ok(record.task_id)
    }
}

/// What differs between the files and the commit.
fn collect(tree: &Path, commit: &CommitId) -> Result<ChangeSet, Failure> {
    // The index is a throw-away too: everything that is not ignored goes into it.
    git(tree, &["add", "--all", "."])?;
    let listed = git(
        tree,
        &[
            "diff",
            "--cached",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            "-z",
            &commit.0,
        ],
    )?;
    let mut fields = listed.split('\0').filter(|field| !field.is_empty());
    let mut changes = Vec::new();
    while let (Some(head), Some(name)) = (fields.next(), fields.next()) {
        let bad = |reason: String| Failure::NotApplied(format!("`{name}`: {reason}"));
        let path = RepoPath::new(name).map_err(|error| bad(error.reason.to_owned()))?;
        let mut words = head.trim_start_matches(':').split(' ');
        let (old, new) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        if new == "000000" {
            changes.push(FileChange::Deleted { path });
            continue;
        }
        let mode = FileMode::from_git(new)
            .filter(|mode| *mode != FileMode::Symlink)
            .ok_or_else(|| bad("is a link or a repository of its own".to_owned()))?;
        let content = std::fs::read(tree.join(name)).map_err(|error| bad(error.to_string()))?;
        let content = Bytes(content);
        changes.push(if old == "000000" {
            FileChange::Added {
                path,
                content,
                mode,
            }
        } else {
            FileChange::Modified {
                path,
                content,
                mode,
            }
        });
    }
    Ok(ChangeSet(changes))
}
