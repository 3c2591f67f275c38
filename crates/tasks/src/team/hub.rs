//! Making a team and taking it apart.
//!
//! A team is a row that names its members; each member is a task of type `in_process_teammate` with
//! a conversation of its own. Both are written in one transaction, so there is no team without
//! members. Deleting a team keeps the tasks of its members and its list of work.

use std::collections::HashSet;

use codespar_protocol::{
    AgentSpec, Event, Labels, OnDependencyFailure, SessionId, SessionMode, TaskId, TaskRecord,
    TaskSpec, TaskStatus, TaskType, TeammateSpec, ToolUseId,
};
use codespar_store::{NewSession, NewTask, Notify, StoreError, Team};
use serde_json::Map;

use super::PIECES;
use crate::{Caller, HubError, TaskHub};

/// In characters.
const NAME_LENGTH: usize = 40;
/// Words that a message's `to` has other uses for. `*` needs no entry: it is not a letter.
const RESERVED: [&str; 3] = ["all", "lead", "coordinator"];
/// The sender of notes to agents, in any case.
const OURSELVES: &str = "codespar";

/// A member to be.
#[derive(Debug, Clone)]
pub struct NewMember {
    /// What the others call it.
    pub name: String,
    pub kind: String,
    /// What it begins with; without, it waits for a message or an item of the list.
    pub prompt: Option<String>,
    /// Its model, if not the kind's.
    pub model: Option<String>,
}

impl TaskHub {
    /// Makes a team; its members begin at once.
    ///
    /// All members are checked and their conversations created before the team is recorded. What a
    /// refused call has created until then is empty sessions, which nothing refers to. Members are
    /// pending: the scheduler starts them within its limit of agents, unlike a subagent that its
    /// parent waits for.
    pub async fn create_team(
        &self,
        caller: &Caller,
        name: &str,
        members: Vec<NewMember>,
        cwd: &std::path::Path,
        call: Option<&ToolUseId>,
    ) -> Result<Vec<TaskRecord>, HubError> {
        if let Some(reason) = &self.disabled {
            return Err(HubError::Refused(reason.clone()));
        }
        let there_are = self.store.teams(caller.session).await?;
        check(name, &members, &there_are)?;
        let mut team = Team {
            name: name.to_owned(),
            members: Vec::new(),
        };
        let mut tasks = Vec::new();
        let mut shown = Vec::new();
        for member in members {
            self.check_limits(caller).await?;
            let kind = self.kind(&member.kind)?;
            self.check_model(member.model.as_deref())?;
            let model = member.model.clone().or_else(|| kind.model.clone());
            shown.push(match &model {
                Some(model) => format!("{} · {model}", kind.name),
                None => kind.name.clone(),
            });
            let agent_session = self.conversation(cwd, model.unwrap_or_default()).await?;
            let agent = AgentSpec {
                prompt: member.prompt.unwrap_or_default(),
                subagent_type: kind.name.clone(),
                model: member.model,
                max_budget_usd: None,
                max_turns: Some(kind.max_turns.saturating_mul(PIECES)),
                max_wall_seconds: None,
                name: Some(member.name.clone()),
                isolation: kind.isolation,
                root: caller.root.clone(),
                cwd: cwd.to_path_buf(),
                agent_session,
                depth: caller.depth + 1,
                tool_use_id: call.cloned(),
            };
            let teammate = TeammateSpec {
                team: name.to_owned(),
                name: member.name.clone(),
                agent,
            };
            let task = self.member_task(caller, teammate);
            team.members.push((member.name, task.id.clone()));
            tasks.push(task);
        }
        for task in &tasks {
            self.listen(&task.id, caller, call);
        }
        let made = self.store.create_team(caller.session, team, tasks).await?;
        for (record, kind) in made.iter().zip(shown) {
            (caller.sink)(Event::TaskStarted {
                task_id: record.task_id.clone(),
                task_type: record.task_type,
                subject: record.subject.clone(),
                tool_use_id: call.cloned(),
                kind: Some(kind),
            });
        }
        self.wake();
        Ok(made)
    }

    /// The session of a member; it lives as long as the member, over all its attempts.
    async fn conversation(
        &self,
        cwd: &std::path::Path,
        model: String,
    ) -> Result<SessionId, HubError> {
        let new = NewSession {
            id: SessionId::new(),
            cwd: cwd.to_path_buf(),
            model,
            mode: SessionMode::Normal,
        };
        Ok(self.sessions.create_session(new).await?.id)
    }

    /// Reserved for this process while it lives. No budget of its own: it pays from that of the
    /// tree.
    fn member_task(&self, caller: &Caller, teammate: TeammateSpec) -> NewTask {
        let id = TaskId::new(TaskType::InProcessTeammate);
        let authority = (caller.authority)();
        NewTask {
            output_file: Some(self.scheduler.output_file(authority.tree, &id)),
            id,
            subject: teammate.name.clone(),
            spec: TaskSpec::Teammate(teammate),
            authority,
            reserved_for: Some(self.scheduler.id().clone()),
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::Fail,
            description: None,
            active_form: None,
            metadata: Map::new(),
            blocked_by: Vec::new(),
            session_id: Some(caller.session),
            parent_task_id: caller.task_id(),
            notify: Notify::Session,
            made_under: caller.task.clone(),
            start_here: None,
        }
    }

    /// Forgets a team and stops its members; what they had taken is free again. Gives the team
    /// and the members that were at work.
    ///
    /// The team is forgotten first, so that no item is given to a member that is being stopped. If
    /// stopping fails, the team is gone all the same and the error is returned.
    pub async fn delete_team(
        &self,
        session: SessionId,
        name: &str,
    ) -> Result<(Team, Vec<TaskId>), HubError> {
        let team = self.store.delete_team(session, name).await?;
        let mut at_work = Vec::new();
        for (_, member) in &team.members {
            match self.store.task(member).await {
                Ok(record) if !record.status.is_final() => at_work.push(member.clone()),
                Ok(_) | Err(StoreError::NoSuchTask(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let reason = format!("team {name} was deleted");
        let stops = at_work.iter().map(|member| self.stop(member, &reason));
        for stopped in futures::future::join_all(stops).await {
            match stopped {
                // One that came to its end meanwhile has nothing left to stop.
                Ok(_) | Err(HubError::Store(StoreError::WrongState { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((team, at_work))
    }

    /// The members of a session's teams, killed ones left out. Costs one read for each member.
    /// Completed and failed ones are there: a message starts them again.
    pub(super) async fn members(
        &self,
        session: SessionId,
        team: Option<&str>,
    ) -> Result<Vec<(String, TaskId)>, HubError> {
        let mut members = Vec::new();
        for of_session in self.store.teams(session).await? {
            if team.is_some_and(|team| team != of_session.name) {
                continue;
            }
            for (name, id) in of_session.members {
                match self.store.task(&id).await {
                    Ok(record) if record.status != TaskStatus::Killed => members.push((name, id)),
                    Ok(_) | Err(StoreError::NoSuchTask(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(members)
    }
}

/// What can be wrong with a team, said before anything is made. Names of members are unique over
/// all teams of the session, because a message names only the member.
fn check(name: &str, members: &[NewMember], there_are: &[Team]) -> Result<(), HubError> {
    let refused = |message: String| Err(HubError::Refused(message));
    if there_are.iter().any(|team| team.name == name) {
        return Err(StoreError::TeamExists { name: name.into() }.into());
    }
    if members.is_empty() {
        return refused("a team needs at least one member".to_owned());
    }
    for word in [name]
        .into_iter()
        .chain(members.iter().map(|member| member.name.as_str()))
    {
        if !is_name(word) {
            return refused(format!(
                "`{word}` is no name for a team or a member: letters, digits, `-` and `_`, at most \
                 {NAME_LENGTH}, and not {}",
                RESERVED.join(", ")
            ));
        }
    }
    let mut names = HashSet::new();
    for member in members {
        let name = &member.name;
        if !names.insert(name) {
            return refused(format!("two members are called `{name}`"));
        }
        let taken = there_are
            .iter()
            .find(|team| team.members.iter().any(|(other, _)| other == name));
        if let Some(team) = taken {
            return refused(format!(
                "team {} has a member `{name}` already; choose another name",
                team.name
            ));
        }
    }
    Ok(())
}

/// A text that is an id of a task is no name: `to` would be ambiguous.
fn is_name(word: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    !word.is_empty()
        && word.chars().count() <= NAME_LENGTH
        && word.chars().all(fits)
        && !RESERVED.contains(&word)
        && !word.eq_ignore_ascii_case(OURSELVES)
        && word.parse::<TaskId>().is_err()
}
