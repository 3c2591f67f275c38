//! The list of work that a team shares: adding to it, taking from it, marking what is done.
//!
//! An item is a task record that nobody runs. Its status is set by members and the lead:
//!
//! ```text
//! pending ──taken──▶ running (owner set) ──▶ completed | failed
//!    ▲                  │
//!    └──given back──────┘   also when the owner fails, is stopped, or its team is deleted
//! ```

use codespar_protocol::{
    Labels, SessionId, TaskId, TaskRecord, TaskSpec, TaskStatus, TaskType, TeamItemSpec,
};
use codespar_store::{NewTask, Notify, OwnerRule, StoreError, TaskChange, TaskFilter};

use super::TeamMember;
use crate::{Caller, HubError, TaskExtra, TaskHub};

impl TaskHub {
    /// Puts a piece of work on a team's list; the team may stay unnamed where only one can be
    /// meant.
    ///
    /// `member` is the caller's place if it is a teammate; it can add to the list of its own team
    /// only. The item belongs to the session that made the team, whoever adds it. No output file
    /// and no notification: the report of the member who does it covers both.
    pub async fn add_item(
        &self,
        caller: &Caller,
        member: Option<&TeamMember>,
        subject: &str,
        extra: TaskExtra,
    ) -> Result<TaskRecord, HubError> {
        if let Some(reason) = &self.disabled {
            return Err(HubError::Refused(reason.clone()));
        }
        let named = extra.metadata.get("team").and_then(|name| name.as_str());
        let (session, team) = self.list(caller, member, named).await?;
        let new = NewTask {
            id: TaskId::new(TaskType::InProcessTeammate),
            spec: TaskSpec::TeamItem(TeamItemSpec { team }),
            authority: (caller.authority)(),
            reserved_for: None,
            labels: Labels::default(),
            on_dependency_failure: extra.on_dependency_failure,
            subject: subject.to_owned(),
            description: extra.description,
            active_form: extra.active_form,
            metadata: extra.metadata,
            blocked_by: extra.blocked_by,
            output_file: None,
            session_id: Some(session),
            parent_task_id: caller.task_id(),
            // Whoever does it tells of it.
            notify: Notify::Nobody,
            made_under: caller.task.clone(),
            start_here: None,
        };
        let record = self
            .store
            .create_tasks(vec![new])
            .await?
            .pop()
            .ok_or_else(|| HubError::Refused("the store gave no record back".to_owned()))?;
        self.wake();
        Ok(record)
    }

    /// The session and name of the team that is meant. The name comes from `metadata.team`.
    async fn list(
        &self,
        caller: &Caller,
        member: Option<&TeamMember>,
        named: Option<&str>,
    ) -> Result<(SessionId, String), HubError> {
        if let Some(member) = member {
            return match named {
                Some(other) if other != member.team => Err(HubError::Refused(format!(
                    "you are of team {}; its list is the only one you can add to",
                    member.team
                ))),
                _ => Ok((member.session, member.team.clone())),
            };
        }
        let teams = self.store.teams(caller.session).await?;
        let known: Vec<String> = teams.into_iter().map(|team| team.name).collect();
        match (named, known.as_slice()) {
            (None, [only]) => Ok((caller.session, only.clone())),
            (None, []) => Err(HubError::Refused(
                "there is no team yet: TeamCreate makes one".to_owned(),
            )),
            (None, many) => Err(HubError::Refused(format!(
                "say which team with `metadata.team`: {}",
                many.join(", ")
            ))),
            (Some(name), known) if known.iter().any(|team| team == name) => {
                Ok((caller.session, name.to_owned()))
            }
            (Some(name), _) => {
                let name = name.to_owned();
                Err(StoreError::NoSuchTeam { name, known }.into())
            }
        }
    }

    /// Changes an item as a lead or a teammate may: an item has one owner, and only that one or
    /// the lead says how it ended.
    ///
    /// Assigning to a member goes through the store's `take_item`, which also writes the message;
    /// the rest of the change is applied after that.
    pub async fn change_item(
        &self,
        caller: &Caller,
        member: Option<&TeamMember>,
        item: &TaskRecord,
        mut change: TaskChange,
    ) -> Result<TaskRecord, HubError> {
        let team = item.team_list().unwrap_or_default();
        let id = &item.task_id;
        let is_theirs = match member {
            Some(member) => item.session_id == Some(member.session) && member.team == team,
            None => item.session_id == Some(caller.session),
        };
        if !is_theirs {
            return Err(HubError::Refused(format!(
                "{id} stands on the list of team {team}, which is not yours"
            )));
        }
        match (member, &change.owner) {
            (Some(member), _) => check_member(member, item, &mut change)?,
            (None, Some(Some(name))) => {
                self.assign(caller.session, item, name).await?;
                change.owner = None;
                change.owner_must_be_free = OwnerRule::Replace;
            }
            (None, Some(None)) => change.owner_must_be_free = OwnerRule::Replace,
            (None, None) => {}
        }
        self.change(id, change).await
    }

    /// The lead hands an item to a member, which is told of it.
    async fn assign(
        &self,
        session: SessionId,
        item: &TaskRecord,
        name: &str,
    ) -> Result<(), HubError> {
        let members = self.members(session, item.team_list()).await?;
        let Some((_, member)) = members.iter().find(|(other, _)| other == name) else {
            let known: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
            return Err(HubError::Refused(format!(
                "there is no member `{name}`; there are: {}",
                known.join(", ")
            )));
        };
        self.store.take_item(member, Some(&item.task_id)).await?;
        self.scheduler.wake_for_mail(member);
        self.wake();
        Ok(())
    }

    /// Wakes members at rest for what is free on their lists.
    pub(crate) async fn assign_items(&self) -> Result<(), HubError> {
        if !self.store.assign_items().await?.is_empty() {
            self.wake();
        }
        Ok(())
    }

    /// What a teammate has taken and not ended. More than one if it took some by hand.
    pub(super) async fn held_by(&self, member: &TeamMember) -> Result<Vec<TaskRecord>, HubError> {
        let mut items = self.items(member, Some(TaskStatus::Running)).await?;
        items.retain(|item| item.owner.as_deref() == Some(&member.name));
        Ok(items)
    }

    /// The list of a teammate's team. Read from the session of the team, which is not that of the
    /// teammate itself.
    pub(crate) async fn items(
        &self,
        member: &TeamMember,
        status: Option<TaskStatus>,
    ) -> Result<Vec<TaskRecord>, HubError> {
        let filter = TaskFilter {
            session_id: Some(member.session),
            task_type: Some(TaskType::InProcessTeammate),
            status,
            ..TaskFilter::default()
        };
        let mut items = self.store.tasks(filter).await?;
        items.retain(|item| item.team_list() == Some(&member.team));
        Ok(items)
    }
}

/// A teammate takes for itself, and ends or gives back only what is its own.
///
/// Adapts the change to what the store checks: taking becomes a claim that is refused if another
/// member was faster. Subject, description and dependencies may be changed by any member.
fn check_member(
    member: &TeamMember,
    item: &TaskRecord,
    change: &mut TaskChange,
) -> Result<(), HubError> {
    let id = &item.task_id;
    let is_own = item.owner.as_deref() == Some(&member.name);
    if let Some(Some(name)) = &change.owner
        && *name != member.name
    {
        return Err(HubError::Refused(format!(
            "you are {}: take {id} for yourself or leave it to {name}",
            member.name
        )));
    }
    let takes = matches!(change.owner, Some(Some(_))) || change.status == Some(TaskStatus::Running);
    if takes && is_own {
        // Taken already: nothing changes.
        change.owner = None;
        change.status = change
            .status
            .filter(|status| *status != TaskStatus::Running);
        change.owner_must_be_free = OwnerRule::Replace;
        return Ok(());
    }
    if takes {
        change.owner = Some(Some(member.name.clone()));
        change.owner_must_be_free = OwnerRule::ClaimFree;
        return Ok(());
    }
    let ends_or_gives_back = change.status.is_some() || change.owner == Some(None);
    if ends_or_gives_back && !is_own {
        return Err(HubError::Refused(match &item.owner {
            Some(owner) => format!("{id} is {owner}'s"),
            None => format!(
                "{id} is not yours: take it first (`owner`: {})",
                member.name
            ),
        }));
    }
    change.owner_must_be_free = OwnerRule::Replace;
    Ok(())
}
