//! Makes the agents of tasks: their tools, prompt, model, place and company.

use std::{
    path::Path,
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use codespar_agent::{Approver, Gate, Inbox, Limits, ModelChoice, Sink, Transcript, TreeShare};
use codespar_policy::Lifetime;
use codespar_protocol::{AgentSpec, Isolation, SessionMode, TaskId, Usd};
use codespar_store::Store;
use codespar_tasks::{
    AgentKind, AgentMaker, AtEnd, Caller, Control, MadeAgent, MakeError, Seat, TaskHub, TaskInbox,
    TeamInbox, ToolSet, subagent_tools, task_tools, teammate_tools,
};
use codespar_tools::{Registry, standard_tools, worktree::Worktree};

use crate::{
    assemble::{Company, Ground, OpenSession, Outfit},
    dev,
    powers::Powers,
    session_dirs::SessionDirs,
    trees::Trees,
};

/// Only these, for workers of `CODESPAR_SIMPLE`.
const SIMPLE: [&str; 3] = ["Bash", "Read", "Edit"];
/// So that the model of a subagent does not end in a question that nobody will see.
const NOTE: &str = "You report to another agent: nobody can answer a question. Decide yourself what \
                    is not said, and say what you assumed.";

/// Makes subagents.
pub(crate) struct Maker {
    pub(crate) ground: Arc<Ground>,
    pub(crate) hub: Weak<TaskHub>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) trees: Arc<Trees>,
}

#[async_trait]
impl AgentMaker for Maker {
    async fn make(
        &self,
        spec: &AgentSpec,
        control: &Control,
        sink: Sink,
    ) -> Result<MadeAgent, MakeError> {
        let hub = (self.hub.upgrade()).ok_or_else(|| "the process is leaving".to_owned())?;
        let powers = Powers::of(spec, control, &self.ground, &hub, &self.trees).await?;
        let kind = &powers.kind;
        if kind.tools.may_have("mcp__") {
            self.ground.mcp.settled().await;
        }
        let task = &control.record.task_id;
        let worktree = match spec.isolation {
            Some(Isolation::Worktree) => Some(self.worktree(spec, task).await?),
            None => None,
        };
        let (root, cwd) = match &worktree {
            Some(tree) => (
                tree.path().to_path_buf(),
                tree.matching(&spec.root, &spec.cwd),
            ),
            None => (spec.root.clone(), spec.cwd.clone()),
        };
        let caller = Caller {
            session: spec.agent_session,
            task: Some(task.clone()),
            depth: spec.depth,
            sink: sink.clone(),
            root: root.clone(),
            authority: powers.authority(spec.agent_session),
        };
        let store: Arc<dyn Store> = self.ground.store.clone();
        let (transcript, recovered) = Transcript::open(store, spec.agent_session).await?;
        let session = OpenSession {
            transcript,
            recovered,
            is_resumed: control.was_lost(),
            mode: SessionMode::Normal,
        };
        let pad = control
            .record
            .session_id
            .map(|parent| {
                self.ground
                    .place
                    .state
                    .join("scratchpads")
                    .join(parent.to_string())
            })
            .filter(|pad| pad.is_dir());
        let inbox = TaskInbox {
            hub: hub.clone(),
            session: spec.agent_session,
            task: Some(task.clone()),
            sink: sink.clone(),
            at_end: AtEnd::Wait,
        };
        let (inbox, team): (Arc<dyn Inbox>, _) = match Seat::of(&control.record) {
            Some(seat) => {
                let teams = hub.store().teams(seat.session).await;
                let note = seat.prompt(&teams.map_err(|error| error.to_string())?);
                let inbox = TeamInbox::new(inbox, task.clone(), seat.clone());
                (Arc::new(inbox), Some((seat, note)))
            }
            None => (Arc::new(inbox), None),
        };
        let mut role = role(kind, pad.as_deref());
        if let Some(tree) = &worktree
            && let Some(note) = codespar_dev::lfs_note(&tree.lfs_pointers().await)
        {
            role.push_str("\n\n");
            role.push_str(&note);
        }
        for skill in &kind.skills {
            let text = self.ground.skill_text(skill);
            let text = text.map_err(|error| format!("agent `{}`: {error}", kind.name))?;
            role.push_str(&format!("\n\nSkill {skill}.\n{text}"));
        }
        if let Some((_, note)) = &team {
            role.push_str("\n\n");
            role.push_str(note);
        }
        let seat = team.map(|(seat, _)| seat);
        let gate = worktree.is_none().then(|| {
            Arc::new(PathGate {
                hub: hub.clone(),
                task: task.clone(),
            }) as Arc<dyn Gate>
        });
        let left = self.left_of_budget(spec).await?;
        let lifetime = match worktree.is_some() || dev::is_throw_away(&self.ground.place, &root) {
            true => Lifetime::ThrowAway,
            false => Lifetime::Kept,
        };
        let outfit = Outfit {
            role: Some(role),
            tools: self.tools(&hub, &powers, &caller, seat.as_ref()),
            choice: self.choice(spec, kind),
            mode: powers.mode,
            rules: powers.rules,
            tree: powers.authority.tree,
            limits: Limits {
                max_turns: Some(spec.max_turns.unwrap_or(kind.max_turns)),
                turns_before: 0,
                max_budget: left,
                max_wall: self.ground.settings.max_wall(),
                tree: Some(TreeShare::Branch(powers.budget)),
            },
            root,
            cwd,
            workspace_dirs: powers.authority.extra_dirs,
            free_dirs: pad.into_iter().collect(),
            lifetime,
            inbox,
            gate,
            company: Company {
                sink,
                approver: self.approver.clone(),
                note: Some(NOTE),
            },
        };
        let agent = self
            .ground
            .agent(session, outfit)
            .map_err(|error| error.to_string())?;
        let dirs = SessionDirs::of(&self.ground.place.state, spec.agent_session);
        let after = Box::pin(async move {
            dirs.clean();
            worktree?.settle().await
        });
        Ok(MadeAgent { agent, after })
    }
}

impl Maker {
    fn tools(
        &self,
        hub: &Arc<TaskHub>,
        powers: &Powers,
        caller: &Caller,
        seat: Option<&Seat>,
    ) -> Registry {
        let kind = &powers.kind;
        let mut all = match &kind.tools {
            ToolSet::Worker => worker_tools(&self.ground, hub, caller),
            _ => {
                let mut tools = standard_tools();
                let added = task_tools(hub, caller)
                    .into_iter()
                    .chain(subagent_tools(hub, caller))
                    .chain(self.ground.mcp.tools());
                for tool in added {
                    tools.add(tool);
                }
                tools
            }
        };
        let team = seat
            .map(|seat| teammate_tools(hub, caller, seat))
            .unwrap_or_default();
        for tool in team.by_kind {
            if all.get(tool.name()).is_some() {
                all.add(tool);
            }
        }
        let mut all = match &kind.tools {
            ToolSet::Only(names) => all.filtered(Some(names), &[]),
            _ => all,
        };
        for tool in team.always {
            all.add(tool);
        }
        let denied = [&powers.denied_tools[..], &self.ground.denied[..]].concat();
        with_aliases(all.filtered(None, &denied))
    }

    fn choice(&self, spec: &AgentSpec, kind: &AgentKind) -> ModelChoice {
        let wanted = spec.model.as_deref().or(kind.model.as_deref());
        self.ground
            .provider
            .choice_for(wanted, &self.ground.settings)
    }

    /// What an agent with a budget of its own may still spend; earlier attempts count, also those
    /// of processes that died.
    async fn left_of_budget(&self, spec: &AgentSpec) -> Result<Option<Usd>, String> {
        let Some(max) = spec.max_budget_usd else {
            return Ok(None);
        };
        let session = self.ground.store.session(spec.agent_session).await;
        let spent = session.map_err(|error| error.to_string())?.cost.at_least();
        Ok(Some(Usd::from_nanos(
            max.nanos().saturating_sub(spent.nanos()),
        )))
    }

    async fn worktree(&self, spec: &AgentSpec, task: &TaskId) -> Result<Worktree, String> {
        let path = self
            .ground
            .place
            .state
            .join("worktrees")
            .join(task.as_str());
        let branch = format!("codespar/{task}");
        let trust = self.ground.place.project_at(&spec.root).git();
        Worktree::open(&spec.root, &path, &branch, trust)
            .await
            .map_err(|error| format!("no worktree could be made: {error}"))
    }
}

/// Workers have everything but the coordinator's own tools.
pub(crate) fn worker_tools(ground: &Ground, hub: &Arc<TaskHub>, caller: &Caller) -> Registry {
    if ground
        .place
        .var("CODESPAR_SIMPLE")
        .is_some_and(|value| value != "0")
    {
        return standard_tools().filtered(Some(&SIMPLE.map(str::to_owned)), &[]);
    }
    let mut tools = standard_tools();
    for tool in task_tools(hub, caller)
        .into_iter()
        .chain(ground.mcp.tools())
    {
        tools.add(tool);
    }
    tools
}

/// Names that models of other agents call some tools by.
pub(crate) fn with_aliases(mut tools: Registry) -> Registry {
    for (alias, name) in [
        ("Agent", "Task"),
        ("BashOutput", "TaskOutput"),
        ("KillShell", "TaskStop"),
    ] {
        if tools.get(name).is_some() {
            tools.alias(alias, name);
        }
    }
    tools
}

fn role(kind: &AgentKind, scratchpad: Option<&Path>) -> String {
    match scratchpad {
        Some(pad) => format!("{}\n\nScratchpad: {}", kind.prompt, pad.display()),
        None => kind.prompt.clone(),
    }
}

/// Files have one writer among the agents of a state directory.
struct PathGate {
    hub: Arc<TaskHub>,
    task: TaskId,
}

#[async_trait]
impl Gate for PathGate {
    async fn claim(&self, path: &Path) -> Result<(), String> {
        self.hub
            .store()
            .claim_paths(&self.task, &[path.to_path_buf()])
            .await
            .map_err(|error| error.to_string())
    }
}
