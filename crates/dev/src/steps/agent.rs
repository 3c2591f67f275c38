//! The agent engine: the agent loop with its tools works in a throw-away tree, and what it changed
//! there becomes the change. If the tests fail with it, the same agent is told so and goes on.
//!
//! What is on record, so that another process goes on where this one ended:
//!
//! ```text
//! agent_task        the agent that works in the tree
//! agent             what its first attempt came to
//! agent-told-N      which attempt it had made when it was told of the Nth failure
//! agent-repair-N    what it came to after that
//! ```
//!
//! The agent is a task of its own, a child of the run, with the authority of the run and what is
//! left of its budget. Its tree outlives attempts: an agent whose process ended goes on in it. The
//! change is collected by git from the tree, never taken from what the agent says.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_agent::Asked;
use codespar_change::verify::{Need, collect, detect};
use codespar_protocol::{
    ChangeSet, SessionId, TaskId, TaskRecord, TaskStatus, TaskType, ToolUseId, Usd,
};
use codespar_pulls::shorten;
use codespar_tasks::{
    AgentLaunch, Caller, DENIED, DEV_ENGINE, HubError, Notify, TaskExtra, TaskFilter, Waited,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Base, Located, Written, blocking};
use crate::{
    Failure, VerifyChoice,
    agent_tree::{AGENT_TREE, AgentTree, is_provided, mark_provided},
    run::{ANSWER, Run},
};

const PROMPT: &str = include_str!("../prompts/agent.md");
const REPAIR: &str = include_str!("../prompts/repair_agent.md");
const TAKE_OVER: &str = include_str!("../prompts/takeover_agent.md");
const TASK: &str = "agent_task";

impl Run {
    /// An agent that was started by an attempt that ended before it recorded the id is found among
    /// the children of the task, so that no second one is started.
    pub(crate) async fn write_by_agent(
        &self,
        base: &Base,
        located: &Located,
    ) -> Result<Written, Failure> {
        if let Some(written) = self.ledger.known("agent")? {
            return Ok(written);
        }
        let known = match self.ledger.known(TASK)? {
            Some(task) if self.is_to_be_replaced(&task).await? => self.launched(None).await?,
            Some(task) => Some(task),
            None => self.launched(None).await?,
        };
        let (path, is_kept) = self.agent_tree();
        let task: TaskId = match known {
            // Its tree is as it left it, here or on another host.
            Some(task) => {
                self.have_agent_tree(base, &task, &path).await?;
                task
            }
            None => {
                if !is_kept {
                    self.make_agent_tree(&path, base, ChangeSet::default())
                        .await?;
                }
                let prompt = self.prompt(base, &path, located);
                self.start_agent(&path, prompt).await?
            }
        };
        self.say("generate", &format!("🤖 Agent {task} works on it…"));
        let written = self.result_of(base, &task, &path).await?;
        self.ledger.record("agent", &written).await?;
        Ok(written)
    }

    /// Has the change mended by the agent that made it, told of the `round`th failure. A change
    /// that another made, and one whose agent cannot be continued, is taken over by a new agent, in
    /// a tree with the change in it.
    pub(crate) async fn repair_by_agent(
        &self,
        base: &Base,
        round: u32,
        written: &Written,
        failures: &str,
    ) -> Result<Written, Failure> {
        let step = format!("agent-repair-{round}");
        if let Some(mended) = self.ledger.known(&step)? {
            return Ok(mended);
        }
        self.check_stop()?;
        let (path, _) = self.agent_tree();
        if !path.is_dir() {
            self.make_agent_tree(&path, base, written.changes.clone())
                .await?;
        }
        let known: Option<TaskId> = self.ledger.known(TASK)?;
        let told = match &known {
            Some(task) => self.tell_agent(round, task, failures).await?,
            None => None,
        };
        let task = match told {
            Some(task) => task,
            None => match self.launched(known.as_ref()).await? {
                Some(task) => task,
                None => {
                    let located = self
                        .ledger
                        .known::<Located>("locate")?
                        .ok_or_else(|| Failure::Broken("no file was looked for yet".to_owned()))?;
                    let prompt = self.prompt(base, &path, &located);
                    let prompt = format!("{prompt}\n\n{}\n\n{failures}", TAKE_OVER.trim());
                    self.start_agent(&path, prompt).await?
                }
            },
        };
        self.say("verify", &format!("🤖 Agent {task} mends it…"));
        let mended = self.result_of(base, &task, &path).await?;
        self.ledger.record(&step, &mended).await?;
        Ok(mended)
    }

    /// Tells an agent of the failure, once: a message that arrived before a crash has made it
    /// pending, or had it begin another attempt. `None` if it cannot be continued from here.
    async fn tell_agent(
        &self,
        round: u32,
        task: &TaskId,
        failures: &str,
    ) -> Result<Option<TaskId>, Failure> {
        let record = self.hub.store().task(task).await?;
        let step = format!("agent-told-{round}");
        let attempt = match self.ledger.known(&step)? {
            Some(attempt) => attempt,
            None => {
                self.ledger.record(&step, &record.attempt).await?;
                record.attempt
            }
        };
        if record.attempt != attempt || !record.status.is_final() {
            return Ok(Some(task.clone()));
        }
        let caller = self.agent_caller(&self.agent_tree().0)?;
        let message = format!("{}\n\n{failures}", REPAIR.trim());
        let heard = ToolUseId(self.control.record.task_id.to_string());
        let sent = self
            .hub
            .send(&caller, task.as_str(), &message, Some(&heard));
        match sent.await {
            Ok(_) => Ok(Some(task.clone())),
            Err(HubError::Refused(reason)) => {
                self.note(&format!("   agent {task} cannot be continued: {reason}"));
                Ok(None)
            }
            Err(error) => Err(Failure::Broken(error.to_string())),
        }
    }

    /// Waits for an agent, and collects what is in its tree. What the agent spent is booked before
    /// its end is judged, so a failed agent counts, too. An agent that completed without a change
    /// is `NoChanges`, with its last message as explanation.
    async fn result_of(&self, base: &Base, task: &TaskId, path: &Path) -> Result<Written, Failure> {
        let record = self.wait_for_agent(task).await?;
        let said = self.redacted(&last_message(&record));
        self.book_agent(&record).await?;
        if record.status != TaskStatus::Completed {
            return Err(Failure::AgentFailed(format!(
                "agent {task} did not come to an end: {}",
                record.error.unwrap_or_default()
            )));
        }
        // It may have ended on another host.
        self.bring_agent_tree(base, task, path).await?;
        let (tree, commit, trust) = (path.to_owned(), base.commit.clone(), self.link.trust);
        let changes = blocking(move || Ok(collect(&tree, &commit, trust)?)).await?;
        if changes.is_empty() {
            return Err(Failure::NoChanges(said));
        }
        self.check_protected(&changes)?;
        Ok(Written {
            changes,
            title: self.title_of(&said),
            summary: said,
            model: (self.setup.names)(&self.order.task_model),
            answer: String::new(),
            is_simulated: false,
            why_simulated: None,
        })
    }

    /// Where the agent works, and whether the tree of an earlier attempt is there. It stays until
    /// the run is over: the agent may have to go on in it.
    fn agent_tree(&self) -> (PathBuf, bool) {
        let mut trees = self.dirs().map(|dir| dir.join(AGENT_TREE));
        match trees.find(|tree| tree.is_dir()) {
            Some(kept) if self.ledger.has(TASK) => (kept, true),
            _ => (self.dir().join(AGENT_TREE), false),
        }
    }

    /// A tree at the commit, with these changes in it. The tree is kept when this returns: dropping
    /// `Tree` would remove it.
    async fn make_agent_tree(
        &self,
        path: &Path,
        base: &Base,
        changes: ChangeSet,
    ) -> Result<(), Failure> {
        if self.link.clone.is_none() {
            return Err(Failure::Refused(
                "the agent engine needs a clone of the repository, and there is none".to_owned(),
            ));
        }
        let tree = self.open_tree("generate", path.to_path_buf(), base).await?;
        blocking(move || {
            if !changes.is_empty() {
                tree.set(&changes)?;
            }
            tree.keep();
            Ok(())
        })
        .await?;
        self.provide_agent_tree(path, base).await
    }

    async fn provide_agent_tree(&self, path: &Path, base: &Base) -> Result<(), Failure> {
        let tests = match &self.order.verify {
            VerifyChoice::Command(command) => Some(command.clone()),
            VerifyChoice::Detect | VerifyChoice::Skip => detect(path),
        };
        // What it does not get, it misses like anybody who works there.
        self.provide(path, base, tests.as_deref(), Need::Tests)
            .await?;
        mark_provided(path).map_err(Failure::Broken)
    }

    /// Sees to it that the tree of an agent that was begun on another host is here, with what the
    /// tests need.
    async fn have_agent_tree(
        &self,
        base: &Base,
        task: &TaskId,
        path: &Path,
    ) -> Result<(), Failure> {
        if self.setup.trees.is_none() || is_provided(path) {
            return Ok(());
        }
        self.bring_agent_tree(base, task, path).await?;
        self.provide_agent_tree(path, base).await
    }

    /// The run has come to its good end: no host goes on with the tree.
    pub(crate) async fn forget_agent_tree(&self) {
        if let (Some(trees), Ok(Some(task))) = (&self.setup.trees, self.ledger.known(TASK)) {
            // What stays goes with the record of the task.
            let _ = trees.forget_tree(&task).await;
        }
    }

    /// Makes the tree here what the agent left, wherever it worked last.
    async fn bring_agent_tree(
        &self,
        base: &Base,
        task: &TaskId,
        path: &Path,
    ) -> Result<(), Failure> {
        let Some(trees) = &self.setup.trees else {
            return Ok(());
        };
        let tree = AgentTree {
            linker: &*self.setup.linker,
            repository: &self.order.repository,
            path,
        };
        let kept = trees.kept_tree(task).await?;
        let opened = tree.open(&base.commit).await.map_err(Failure::Refused)?;
        if let Some(kept) = kept {
            opened.tree.bring(kept).await.map_err(Failure::Refused)?;
        }
        Ok(())
    }

    /// With no limit of its own after a stop, since an agent ends soon once its token is cancelled,
    /// and the cost is known only then.
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

    /// What an agent spent counts as spent here. As the answer of a step named after the agent's
    /// task. Booked again after a repair it replaces the earlier amount: a task's record has the
    /// sum of all its attempts.
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

    /// The agent of an earlier attempt that ended before it was on record; not the one that is.
    async fn launched(&self, known: Option<&TaskId>) -> Result<Option<TaskId>, Failure> {
        let filter = TaskFilter {
            parent_task_id: Some(self.control.record.task_id.clone()),
            task_type: Some(TaskType::LocalAgent),
            ..TaskFilter::default()
        };
        let found = self.hub.store().tasks(filter).await?;
        let mut found = found.into_iter().map(|record| record.task_id);
        Ok(found.find(|task| Some(task) != known))
    }

    /// The agent had tools, so nothing kept it from writing to any file of the tree. Both names of
    /// a moved file count.
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

    /// What the agent is asked: the goal, the tree, and the command that proves it.
    fn prompt(&self, base: &Base, tree: &Path, located: &Located) -> String {
        let command = match &self.order.verify {
            VerifyChoice::Command(command) => Some(command.clone()),
            VerifyChoice::Detect => detect(tree),
            VerifyChoice::Skip => None,
        };
        let command = match command {
            Some(command) => format!("The command that proves it: {command}"),
            None => "No test command is known: run what proves it yourself.".to_owned(),
        };
        let files: Vec<&str> = located.paths().collect();
        // The instruction last: what it says is not looked through for places to fill in.
        PROMPT
            .trim()
            .replace("{repository}", &self.place(base))
            .replace("{files}", &files.join(", "))
            .replace("{command}", &command)
            .replace("{instruction}", self.order.instruction.trim())
    }

    /// The dev agent as whoever starts its agents and writes to them. Events of the agent reach
    /// whoever follows the run. It has the authority of the run, never more.
    fn agent_caller(&self, tree: &Path) -> Result<Caller, Failure> {
        let sink_hub = Arc::downgrade(&self.hub);
        let own = self.control.record.task_id.clone();
        let authority = self.control.authority().map_err(Failure::Broken)?.clone();
        Ok(Caller {
            session: self
                .control
                .record
                .session_id
                .unwrap_or_else(SessionId::new),
            name: "the dev agent".to_owned(),
            task: Some(self.control.lease()),
            depth: 1,
            sink: Arc::new(move |event| {
                if let Some(hub) = sink_hub.upgrade() {
                    hub.publish(None, &own, event);
                }
            }),
            root: tree.to_path_buf(),
            authority: Arc::new(move || authority.clone()),
        })
    }

    async fn start_agent(&self, tree: &Path, prompt: String) -> Result<TaskId, Failure> {
        let launch = AgentLaunch {
            description: shorten(self.order.subject()),
            prompt,
            kind: DEV_ENGINE.to_owned(),
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
        let caller = self.agent_caller(tree)?;
        let record = self
            .hub
            .launch_dev(&caller, launch, TaskExtra::default())
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        self.ledger.record(TASK, &record.task_id).await?;
        Ok(record.task_id)
    }
}

/// What the agent said last. Calls that it was denied are noted below it for whoever started it;
/// readers of the pull request have no use for them.
fn last_message(record: &TaskRecord) -> String {
    let text = |name: &str| record.metadata.get(name).and_then(Value::as_str);
    let said = text("result").unwrap_or_default();
    let noted = text(DENIED).and_then(|note| note.lines().next());
    let end = noted.and_then(|first| said.rfind(&format!("\n\n{first}")));
    let said = &said[..end.unwrap_or(said.len())];
    // Where the rest of a long text is on this machine is nobody's business.
    let said = said.split("\n[… the whole is in ").next().unwrap_or(said);
    said.trim_end().to_owned()
}
