//! `engine = "agent"`: the agent loop with its tools works in a throw-away tree, and what it
//! changed there becomes the change.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::Asked;
use codespar_change::verify::{Need, Tree, collect, detect};
use codespar_protocol::{
    ChangeSet, SessionId, TaskId, TaskRecord, TaskStatus, TaskType, ToolUseId, Usd,
};
use codespar_pulls::shorten;
use codespar_tasks::{
    AgentLaunch, Caller, HubError, Notify, TaskExtra, TaskFilter, WORKER, Waited,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Base, Located, Written, blocking};
use crate::{
    Failure, VerifyChoice,
    run::{ANSWER, Run},
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
        let known = match self.ledger.known("agent_task")? {
            Some(task) if self.is_to_be_replaced(&task).await? => self.launched().await?,
            Some(task) => Some(task),
            None => self.launched().await?,
        };
        let (path, is_kept) = self.agent_tree();
        let task: TaskId = match known {
            // Its tree is as it left it.
            Some(task) => task,
            None => {
                if !is_kept {
                    self.make_agent_tree(clone, &path, base).await?;
                }
                let task = self.launch(base, &path, located).await?;
                self.ledger.record("agent_task", &task).await?;
                task
            }
        };
        self.say("generate", &format!("🤖 Agent {task} works on it…"));
        let record = self.wait_for_agent(&task).await?;
        let said = record
            .metadata
            .get("result")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let said = self.redacted(said);
        self.book_agent(&record).await?;
        if record.status != TaskStatus::Completed {
            return Err(Failure::AgentFailed(format!(
                "agent {task} did not come to an end: {}",
                record.error.unwrap_or_default()
            )));
        }
        let (tree, commit, trust) = (path.clone(), base.commit.clone(), self.link.trust);
        let changes = blocking(move || Ok(collect(&tree, &commit, trust)?)).await?;
        if changes.is_empty() {
            return Err(Failure::NoChanges(said));
        }
        self.check_protected(&changes)?;
        let written = Written {
            changes,
            title: self.title_of(&said),
            summary: said,
            model: (self.setup.names)(&self.order.task_model),
            answer: String::new(),
            is_simulated: false,
            why_simulated: None,
        };
        self.ledger.record("agent", &written).await?;
        blocking(move || {
            Tree::remove(&path);
            Ok(())
        })
        .await?;
        Ok(written)
    }

    /// Where the agent works, and whether the tree of an earlier attempt is there.
    fn agent_tree(&self) -> (PathBuf, bool) {
        let mut trees = self.dirs().map(|dir| dir.join(TREE));
        match trees.find(|tree| tree.is_dir()) {
            Some(kept) if self.ledger.has("agent_task") => (kept, true),
            _ => (self.dir().join(TREE), false),
        }
    }

    async fn make_agent_tree(
        &self,
        clone: PathBuf,
        path: &Path,
        base: &Base,
    ) -> Result<(), Failure> {
        let (to, commit) = (path.to_path_buf(), base.commit.clone());
        let trust = self.link.trust;
        let notes = blocking(move || {
            let tree = Tree::open(&clone, &to, &commit, trust)?;
            let notes = tree.notes();
            tree.keep();
            Ok(notes)
        })
        .await?;
        for note in notes {
            self.say("generate", &format!("   {note}"));
        }
        let tests = match &self.order.verify {
            VerifyChoice::Command(command) => Some(command.clone()),
            VerifyChoice::Detect | VerifyChoice::Skip => detect(path),
        };
        // What it does not get, it misses like anybody who works there.
        self.provide(path, base, tests.as_deref(), Need::Tests)
            .await?;
        Ok(())
    }

    async fn wait_for_agent(&self, task: &TaskId) -> Result<Box<TaskRecord>, Failure> {
        let broken = |error: HubError| Failure::Broken(error.to_string());
        match self.hub.wait(task, self.stop.token()).await {
            Ok(Waited::Ended(record)) => Ok(record),
            // Where the run only changes hands, its agent goes on too.
            Ok(Waited::GaveUp) if !self.is_to_end() => Err(Failure::Stopped),
            Ok(Waited::GaveUp) => {
                let stopped = self.hub.stop(task, "the dev task was stopped").await;
                stopped.map_err(broken)?;
                // Its end says what it spent.
                match self.hub.wait(task, &CancellationToken::new()).await {
                    Ok(Waited::Ended(record)) => self.book_agent(&record).await?,
                    Ok(Waited::GaveUp) => {}
                    Err(error) => return Err(broken(error)),
                }
                Err(Failure::Stopped)
            }
            Err(error) => Err(broken(error)),
        }
    }

    /// The first line of what the agent said, or of the instruction.
    fn title_of(&self, said: &str) -> String {
        let first = said.trim().lines().next().unwrap_or_default();
        if first.is_empty() {
            return shorten(&self.redacted(self.order.subject()));
        }
        let first = first.trim_start_matches(['#', ' ', '*']);
        shorten(first.trim_end_matches('*'))
    }

    /// What an agent spent counts as spent here.
    async fn book_agent(&self, agent: &TaskRecord) -> Result<(), Failure> {
        let spent = Asked {
            text: String::new(),
            model: (self.setup.names)(&self.order.task_model),
            usage: agent.usage,
            usd: agent.cost_usd.at_least(),
            is_priced: agent.cost_usd.known().is_some(),
            rounds: 1,
            is_complete: false,
        };
        let step = format!("{ANSWER}agent-{}", agent.task_id);
        Ok(self.ledger.record(&step, &spent).await?)
    }

    /// Whether an earlier run's agent failed or was stopped. Another one goes on in its tree.
    async fn is_to_be_replaced(&self, task: &TaskId) -> Result<bool, Failure> {
        if !self.ledger.is_inherited("agent_task") {
            return Ok(false);
        }
        let status = self.hub.store().task(task).await?.status;
        Ok(status.is_final() && status != TaskStatus::Completed)
    }

    /// The agent of an earlier attempt that ended before it was on record.
    async fn launched(&self) -> Result<Option<TaskId>, Failure> {
        let filter = TaskFilter {
            parent_task_id: Some(self.control.record.task_id.clone()),
            task_type: Some(TaskType::LocalAgent),
            ..TaskFilter::default()
        };
        let found = self.hub.store().tasks(filter).await?;
        Ok(found.into_iter().next().map(|record| record.task_id))
    }

    fn check_protected(&self, changes: &ChangeSet) -> Result<(), Failure> {
        let rules = self.rules()?;
        let refused: Vec<String> = changes
            .0
            .iter()
            .flat_map(|change| [Some(change.path()), change.gone()])
            .flatten()
            .filter_map(|path| Some(format!("`{path}` {}", rules.protects(path)?)))
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        Err(Failure::NotApplied(refused.join("; ")))
    }

    /// What of the budget is left for the agent.
    fn left_to_spend(&self) -> Option<Usd> {
        let spent = self.spent().1.at_least();
        let max = self.order.max_budget?;
        Some(Usd::from_nanos(max.nanos().saturating_sub(spent.nanos())))
    }

    async fn launch(&self, base: &Base, tree: &Path, located: &Located) -> Result<TaskId, Failure> {
        let files: Vec<&str> = located.paths().collect();
        let prompt = PROMPT
            .trim()
            .replace("{repository}", &self.place(base))
            .replace("{instruction}", self.order.instruction.trim())
            .replace("{files}", &files.join(", "));
        let sink_hub = Arc::downgrade(&self.hub);
        let own = self.control.record.task_id.clone();
        let authority = self.control.authority().map_err(Failure::Broken)?.clone();
        let caller = Caller {
            session: self
                .control
                .record
                .session_id
                .unwrap_or_else(SessionId::new),
            name: "the dev agent".to_owned(),
            task: Some(own.clone()),
            depth: 1,
            sink: Arc::new(move |event| {
                if let Some(hub) = sink_hub.upgrade() {
                    hub.publish(None, &own, event);
                }
            }),
            root: tree.to_path_buf(),
            authority: Arc::new(move || authority.clone()),
        };
        let launch = AgentLaunch {
            description: shorten(self.order.subject()),
            prompt,
            kind: WORKER.to_owned(),
            model: Some(self.order.task_model.clone()),
            max_turns: None,
            max_wall_seconds: None,
            max_budget: self.left_to_spend(),
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
