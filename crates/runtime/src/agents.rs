//! Makes the agents of tasks: their tools, prompt, model, directory and limits.
//!
//! Called by the runner of agents for each attempt, in any process. The order matters: permissions
//! first, since they decide on everything else; then the place to work in, since a worktree can
//! fail; then the session, whose lock tells that no other process has the agent. A retried call
//! finds what an earlier one left: the same worktree, the same session.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use codespar_agent::{
    Inbox, ModelChoice, RunLimits, Sink, Transcript, TreeShare, WorkKeeper, WriteGate,
    lines_for_tools,
};
use codespar_policy::Lifetime;
use codespar_protocol::{AgentSpec, SessionMode, Usd};
use codespar_store::{Store, TaskLease};
use codespar_tasks::{
    AgentKind, AgentMaker, AtEnd, Caller, Control, MadeAgent, MakeError, TaskHub, TaskInbox,
    TeamInbox, TeamMember, ToolSet, subagent_tools, task_tools, teammate_tools,
};
use codespar_tools::{Registry, standard_tools};
use tokio::sync::OnceCell;

use crate::{
    Project, Session, Surface,
    agent_setup::AgentSetup,
    authority::AgentPermissions,
    dev,
    place::Place,
    session_dirs::SessionDirs,
    tools::{add_all, with_aliases, with_shell},
};

/// So that the model of a subagent does not end in a question that nobody will see.
const NOTE: &str = "You report to another agent: nobody can answer a question. Decide yourself what \
                    is not said, and say what you assumed.";

/// Makes the agents of one project.
pub(crate) struct ProjectAgents(pub(crate) Weak<Project>);

#[async_trait]
impl AgentMaker for ProjectAgents {
    /// MCP servers are waited for only if the kind can use their tools. `Busy` means that another
    /// process still has the session, for example one that is ending.
    async fn make(
        &self,
        spec: &AgentSpec,
        control: &Control,
        sink: Sink,
    ) -> Result<MadeAgent, MakeError> {
        let project = self.0.upgrade();
        let project = project.ok_or_else(|| "the process is leaving".to_owned())?;
        let permissions = AgentPermissions::of(spec, control, &project).await?;
        if permissions.kind.tools.may_have("mcp__") {
            project.mcp.settled().await;
        }
        let make = Make {
            project: &project,
            spec,
            control,
            permissions,
            sink,
        };
        make.run().await
    }
}

/// One agent in the making.
struct Make<'a> {
    project: &'a Arc<Project>,
    spec: &'a AgentSpec,
    control: &'a Control,
    permissions: AgentPermissions,
    sink: Sink,
}

impl Make<'_> {
    /// `after` keeps the files for other hosts, removes the temporary ones and settles the worktree, which is kept with its branch
    /// if there are changes in it. It must not run when another process goes on with the agent.
    async fn run(self) -> Result<MadeAgent, MakeError> {
        let (project, spec) = (self.project, self.spec);
        let place = Place::find(project, spec, self.control).await?;
        let session = self.session().await?;
        let caller = self.caller(&place.root);
        let scratchpad = self.scratchpad();
        let (inbox, team) = self.inbox().await?;
        let tools = self.tools(&caller, team.as_ref().map(|(member, _)| member));
        let note = team.map(|(_, note)| note);
        let role = self
            .role(&place, scratchpad.as_deref(), note, &tools)
            .await?;
        let limits = self.limits().await?;
        let setup = AgentSetup {
            role: Some(role),
            style: None,
            tools,
            choice: self.choice(),
            mode: self.permissions.mode.into(),
            rules: self.permissions.rules,
            tree: self.permissions.authority.tree,
            limits,
            lifetime: lifetime(project, &place),
            gate: gate(project, &place, self.control.lease()),
            root: place.root.clone(),
            cwd: place.cwd.clone(),
            workspace_dirs: self.permissions.authority.extra_dirs,
            free_dirs: scratchpad.into_iter().collect(),
            inbox,
            task: Some(self.control.lease()),
            kind: Some(self.permissions.kind.name.clone()),
            hooks: self.permissions.hooks,
            surface: Surface {
                sink: self.sink,
                note: Some(NOTE),
                steering: None,
            },
        };
        let mut agent = project
            .agent(session, setup)
            .map_err(|error| error.to_string())?;
        if let Some(keeper) = &place.keeper {
            agent.set_keeper(keeper.clone());
        }
        let dirs = SessionDirs::of(project.dir.state(), spec.agent_session);
        let Place {
            worktree, keeper, ..
        } = place;
        let after = Box::pin(async move {
            dirs.clean();
            if let Some(keeper) = keeper {
                // What commands in the background left; whoever collects it may be elsewhere.
                keeper.keep().await;
            }
            worktree?.settle().await
        });
        Ok(MadeAgent { agent, after })
    }

    /// Calls that a crash left open are closed here, before the agent runs.
    async fn session(&self) -> Result<Session, MakeError> {
        let store: Arc<dyn Store> = self.project.store.clone();
        let lease = self.control.lease();
        let session = self.spec.agent_session;
        let (transcript, recovered) = Transcript::open_for(store, session, &lease).await?;
        Ok(Session {
            transcript,
            recovered,
            is_resumed: self.control.was_lost(),
            mode: SessionMode::Normal,
        })
    }

    /// Tasks that the agent makes work in its own tree and have no more authority than it has.
    fn caller(&self, root: &Path) -> Caller {
        Caller {
            session: self.spec.agent_session,
            task: Some(self.control.lease()),
            name: self.name(),
            depth: self.spec.depth,
            sink: self.sink.clone(),
            root: root.to_path_buf(),
            authority: self.permissions.authority(self.spec.agent_session),
        }
    }

    /// How the agents that it writes to know it. With the id, so that a name given by a model cannot
    /// pass for the user or another agent.
    fn name(&self) -> String {
        let name = self.spec.name.as_ref().unwrap_or(&self.spec.subagent_type);
        format!("{name} ({})", self.control.record.task_id)
    }

    /// Where the workers of the same coordinator share what they learn. None if the parent is no
    /// coordinator.
    fn scratchpad(&self) -> Option<PathBuf> {
        let parent = self.control.record.session_id?;
        let pads = self.project.dir.state().join("scratchpads");
        Some(pads.join(parent.to_string())).filter(|pad| pad.is_dir())
    }

    /// The mailbox; that of a teammate with its place in the team and what it is told of it.
    async fn inbox(&self) -> Result<(Arc<dyn Inbox>, Option<(TeamMember, String)>), String> {
        let task = &self.control.record.task_id;
        let hub = &self.project.hub;
        let inbox = TaskInbox {
            hub: hub.clone(),
            session: self.spec.agent_session,
            task: Some(task.clone()),
            sink: self.sink.clone(),
            at_end: AtEnd::Wait,
            expects_earlier: OnceCell::new(),
        };
        let Some(member) = TeamMember::of(&self.control.record) else {
            return Ok((Arc::new(inbox), None));
        };
        let teams = hub.store().teams(member.session).await;
        let note = member.prompt(&teams.map_err(|error| error.to_string())?);
        let inbox = TeamInbox::new(inbox, task.clone(), member.clone());
        Ok((Arc::new(inbox), Some((member, note))))
    }

    /// In this order: the prompt of the kind, the scratchpad, a note about a move from another host
    /// and one about LFS files that are only
    /// pointers, its skills, its team. A skill that does not exist is an error, not left out in
    /// silence.
    async fn role(
        &self,
        place: &Place,
        scratchpad: Option<&Path>,
        team: Option<String>,
        tools: &Registry,
    ) -> Result<String, String> {
        let kind = &self.permissions.kind;
        let prompt = lines_for_tools(&kind.prompt, |tool| tools.offers(tool));
        let mut parts = vec![prompt];
        parts.extend(scratchpad.map(|pad| format!("Scratchpad: {}", pad.display())));
        parts.extend(place.note_of_move());
        if let Some(worktree) = &place.worktree {
            parts.extend(codespar_change::verify::lfs_note(
                &worktree.lfs_pointers().await,
            ));
        }
        for skill in &kind.skills {
            let text = self.project.skill_text(skill);
            let text = text.map_err(|error| format!("agent `{}`: {error}", kind.name))?;
            parts.push(format!("Skill {skill}.\n{text}"));
        }
        parts.extend(team);
        Ok(parts.join("\n\n"))
    }

    /// The tools of a teammate replace those of the same name, as far as its kind has them; the
    /// ones without which it could not work are added after the filter. What is denied is taken
    /// away last, from all. A kind that lists its tools has them described from the start.
    fn tools(&self, caller: &Caller, member: Option<&TeamMember>) -> Registry {
        let hub: &Arc<TaskHub> = &self.project.hub;
        let kind = &self.permissions.kind;
        let mut all = match &kind.tools {
            ToolSet::Worker => self.project.worker_tools(hub, caller),
            _ => {
                let mut tools = standard_tools();
                add_all(&mut tools, task_tools(hub, caller));
                add_all(&mut tools, subagent_tools(hub, caller));
                let mut tools = self.project.on_offer(tools);
                add_all(&mut tools, self.project.mcp.tools());
                tools
            }
        };
        let AgentPermissions { rules, mode, .. } = &self.permissions;
        self.project.add_web_search(&mut all, &rules.read(), *mode);
        let team = member
            .map(|member| teammate_tools(hub, caller, member))
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
        add_all(&mut all, team.always);
        let denied = [&self.permissions.denied_tools[..], &self.project.denied[..]].concat();
        let mut all = all.filtered(None, &denied);
        if member.is_none() && !matches!(kind.tools, ToolSet::Only(_)) {
            self.project.hold_back_task_tools(&mut all);
        }
        with_aliases(with_shell(all, hub, caller))
    }

    /// The call names a model, else the kind, else it is that of the session.
    fn choice(&self) -> ModelChoice {
        let kind: &AgentKind = &self.permissions.kind;
        let wanted = self.spec.model.as_deref().or(kind.model.as_deref());
        let project = self.project;
        project.provider.choice_for(wanted, &project.settings)
    }

    /// The runner sets `turns_before` afterwards. Wall time counts for each attempt.
    async fn limits(&self) -> Result<RunLimits, String> {
        let usual = self.permissions.kind.max_turns;
        Ok(RunLimits {
            max_turns: Some(self.spec.max_turns.unwrap_or(usual)),
            turns_before: 0,
            max_budget: self.left_of_budget().await?,
            max_wall: self.max_wall(),
            tree: Some(TreeShare::Branch(self.permissions.budget.clone())),
        })
    }

    /// The lowest of the limits of the call, the kind and the settings.
    fn max_wall(&self) -> Option<Duration> {
        let own = [
            self.spec.max_wall_seconds,
            self.permissions.kind.max_wall_seconds,
        ];
        let own = own.into_iter().flatten().map(Duration::from_secs);
        own.chain(self.project.settings.max_wall()).min()
    }

    /// What an agent with a budget of its own may still spend; earlier attempts count, also those
    /// of processes that died.
    async fn left_of_budget(&self) -> Result<Option<Usd>, String> {
        let Some(max) = self.spec.max_budget_usd else {
            return Ok(None);
        };
        let session = self.project.store.session(self.spec.agent_session).await;
        let spent = session.map_err(|error| error.to_string())?.cost.at_least();
        Ok(Some(Usd::from_nanos(
            max.nanos().saturating_sub(spent.nanos()),
        )))
    }
}

/// In a tree that is thrown away afterwards everything that the sandbox confines is free.
fn lifetime(project: &Project, place: &Place) -> Lifetime {
    match place.worktree.is_some() || dev::is_throw_away(&project.dir, &place.root) {
        true => Lifetime::ThrowAway,
        false => Lifetime::Kept,
    }
}

/// Agents in trees of their own need not claim files.
fn gate(project: &Project, place: &Place, lease: TaskLease) -> Option<Arc<dyn WriteGate>> {
    place.worktree.is_none().then(|| {
        Arc::new(PathGate {
            hub: project.hub.clone(),
            lease,
        }) as Arc<dyn WriteGate>
    })
}

/// Files have one writer among the agents of a state directory. A claim lasts until the attempt
/// ends; a second writer is refused with the holder named.
struct PathGate {
    hub: Arc<TaskHub>,
    lease: TaskLease,
}

#[async_trait]
impl WriteGate for PathGate {
    async fn claim(&self, path: &Path) -> Result<(), String> {
        self.hub
            .store()
            .claim_paths(&self.lease, &[path.to_path_buf()])
            .await
            .map_err(|error| error.to_string())
    }
}
