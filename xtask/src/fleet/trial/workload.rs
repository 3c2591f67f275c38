//! The tasks of a trial: agents that depend on each other, and what the model tells them.

use std::{path::Path, time::Duration};

use anyhow::Result;
use codespar_protocol::{
    AgentSpec, Authority, Labels, OnDependencyFailure, RuleList, RuleText, SessionId, SessionMode,
    TaskId, TaskSpec, TaskType,
};
use codespar_store::{NewSession, NewTask, Notify, PostgresStore, Store, TaskStore};
use codespar_testkit::{AfterLast, Conversation, Matcher, Script, Turn};
use serde_json::{Map, json};

/// So many are recorded at once.
const BATCH: usize = 200;
/// A task depends on tasks that were made at most so long before it.
const NEAR: u64 = 60;
/// Each command of a task leaves a line in a file of this directory.
pub(super) const MARKS: &str = "ran";

/// Every second task requires some of these, in turn another set of them. An engine has a queue for
/// each set, and with few tasks one is mostly alone in its queue: what is lost with a worker is then
/// not brought along by others that wait.
pub(super) const LABELS: [&str; 4] = ["trial:a", "trial:b", "trial:c", "trial:d"];
const LABELLED: usize = 2;

/// What the prompts of agents begin with.
pub(super) const PROMPT: &str = "work-on-";
/// What people ask.
pub(super) const NEWS: &str = "what-is-new";

/// A task of a trial.
pub(super) struct PlannedTask {
    pub(super) id: TaskId,
    /// The conversation of its agent.
    pub(super) session: SessionId,
    pub(super) blocked_by: Vec<TaskId>,
    /// Who is notified of its end.
    pub(super) notifies: Option<SessionId>,
    /// Where it may run.
    pub(super) labels: Labels,
}

/// What is to be done, and the sessions that wait for it.
pub(super) struct PlannedWork {
    pub(super) tasks: Vec<PlannedTask>,
    pub(super) people: Vec<SessionId>,
}

impl PlannedTask {
    /// What its agent is told, which is also the name of the file that its command writes.
    pub(super) fn prompt(&self) -> String {
        format!("{PROMPT}{}", self.id)
    }
}

/// Numbers that look random and are the same for the same seed (SplitMix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

/// Each task waits for none, one or two of those shortly before it; every third has a session that
/// is notified, every second requires labels.
pub(super) fn plan(count: usize, seed: u64, people: Vec<SessionId>) -> Result<PlannedWork> {
    let mut dice = Dice(seed);
    let mut tasks: Vec<PlannedTask> = Vec::with_capacity(count);
    for number in 0..count {
        let mut blocked_by = Vec::new();
        for _ in 0..dice.below(3) {
            let back = usize::try_from(1 + dice.below(NEAR)).unwrap_or(1);
            let before = number.checked_sub(back).and_then(|at| tasks.get(at));
            if let Some(before) = before.filter(|task| !blocked_by.contains(&task.id)) {
                blocked_by.push(before.id.clone());
            }
        }
        let notifies = people.get(number / 3 % people.len().max(1)).copied();
        tasks.push(PlannedTask {
            id: TaskId::new(TaskType::RemoteAgent),
            session: SessionId::new(),
            blocked_by,
            notifies: notifies.filter(|_| number % 3 == 0),
            labels: labels_of(number)?,
        });
    }
    Ok(PlannedWork { tasks, people })
}

/// The sets follow each other as the bits of a number do.
fn labels_of(number: usize) -> Result<Labels> {
    if !number.is_multiple_of(LABELLED) {
        return Ok(Labels::default());
    }
    let sets = (1 << LABELS.len()) - 1;
    let set = 1 + number / LABELLED % sets;
    let chosen = LABELS.iter().enumerate();
    let chosen = chosen.filter(|(bit, _)| set & (1 << bit) != 0);
    Ok(Labels::new(chosen.map(|(_, label)| *label))?)
}

/// Agents: a command that leaves a mark, a file, a last word; the prompt is the name of the mark.
/// People are told what is new, and say nothing of it.
pub(super) fn script(project: &Path, thinking: Duration) -> Script {
    let command = format!("echo once >> {MARKS}/{{{{last_user_text}}}}");
    let file = project.join("README.md");
    let turns = [
        Turn::tool("Bash", &json!({ "command": command })),
        Turn::tool("Read", &json!({ "file_path": file })),
        Turn::text("done"),
    ];
    let noted = |name: &str, text: &str| {
        Conversation::new(name, Matcher::first_user_contains(text))
            .turn(Turn::text("noted"))
            .after_last(AfterLast::Repeat)
    };
    let agents = Conversation::new("agents", Matcher::first_user_contains(PROMPT))
        .turns(turns.map(|turn| turn.latency(thinking)));
    Script::new()
        .conversation(noted("people", "<task-notification>"))
        .conversation(noted("curious people", NEWS))
        .conversation(agents)
}

/// An empty conversation.
pub(super) async fn make_session(
    store: &PostgresStore,
    id: SessionId,
    project: &Path,
) -> Result<()> {
    let new = NewSession {
        id,
        cwd: project.to_owned(),
        model: String::new(),
        mode: SessionMode::Normal,
    };
    store.create_session(new).await?;
    Ok(())
}

/// Records them, through the interface that the program itself uses.
pub(super) async fn record(
    store: &PostgresStore,
    tasks: &[PlannedTask],
    project: &Path,
) -> Result<()> {
    for batch in tasks.chunks(BATCH) {
        for task in batch {
            make_session(store, task.session, project).await?;
        }
        let allowed = ["Bash", "Read"];
        let new = batch
            .iter()
            .map(|task| new_task(task, &task.prompt(), &allowed, project));
        store.create_tasks(new.collect()).await?;
    }
    Ok(())
}

/// An agent for any worker, with rules that allow it some tools.
pub(super) fn new_task(
    task: &PlannedTask,
    prompt: &str,
    allowed: &[&str],
    project: &Path,
) -> NewTask {
    let rule = |rule: &&str| RuleText {
        list: RuleList::Allow,
        rule: (*rule).to_owned(),
        source: "the trial".to_owned(),
        base: None,
    };
    NewTask {
        id: task.id.clone(),
        spec: TaskSpec::RemoteAgent(agent(task.session, prompt, project)),
        authority: Authority {
            session: task.notifies,
            tree: task.notifies.unwrap_or_else(SessionId::new),
            project_root: project.to_owned(),
            mode: "default".to_owned(),
            rules: allowed.iter().map(rule).collect(),
            extra_dirs: Vec::new(),
            max_budget_usd: None,
            repository: None,
            remote: None,
            user: None,
            trace: None,
        },
        reserved_for: None,
        labels: task.labels.clone(),
        on_dependency_failure: OnDependencyFailure::default(),
        subject: prompt.to_owned(),
        description: None,
        active_form: None,
        metadata: Map::new(),
        blocked_by: task.blocked_by.clone(),
        output_file: None,
        session_id: task.notifies,
        parent_task_id: None,
        notify: match task.notifies {
            Some(_) => Notify::Session,
            None => Notify::Nobody,
        },
        made_under: None,
        start_here: None,
    }
}

fn agent(session: SessionId, prompt: &str, project: &Path) -> AgentSpec {
    AgentSpec {
        prompt: prompt.to_owned(),
        subagent_type: "general-purpose".to_owned(),
        model: None,
        max_turns: None,
        max_wall_seconds: None,
        max_budget_usd: None,
        name: None,
        isolation: None,
        root: project.to_owned(),
        cwd: project.to_owned(),
        agent_session: session,
        depth: 1,
        tool_use_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_task_has_labels_and_their_sets_take_turns() {
        let work = plan(60, 1, Vec::new()).unwrap();
        let labelled = work.tasks.iter().map(|task| task.labels.to_string());
        let mut sets: Vec<String> = labelled.filter(|labels| !labels.is_empty()).collect();
        assert_eq!(sets[..3], ["trial:a", "trial:b", "trial:a,trial:b"]);
        assert_eq!(sets[..15], sets[15..]);
        sets.sort();
        sets.dedup();
        assert_eq!(sets.len(), 15);
    }
}
