//! Who a message of a lead or a teammate goes to.
//!
//! The lead reaches any agent of its session and all members of all its teams. A teammate reaches
//! the members of its own team and agents that it started itself, nobody else. The lead has no
//! mailbox: what a teammate has to say to it is the text that it ends with.

use codespar_protocol::{TaskId, TaskRecord, ToolUseId};

use super::TeamMember;
use crate::{Caller, HubError, TaskHub};

/// Everybody else of the team.
const ALL: [&str; 2] = ["all", "*"];
const LEAD: [&str; 2] = ["lead", "coordinator"];

impl TaskHub {
    /// Sends a message to one agent or to all of a team. `sender` is set if that is a teammate.
    /// Gives the records of those it went to. More than one only for `all`. If one of several
    /// cannot be written to, those before it have the message.
    pub async fn send_from(
        &self,
        caller: &Caller,
        sender: Option<&TeamMember>,
        to: &str,
        message: &str,
        call: Option<&ToolUseId>,
    ) -> Result<Vec<TaskRecord>, HubError> {
        if ALL.contains(&to) {
            return self.send_all(caller, sender, message, call).await;
        }
        let Some(sender) = sender else {
            return Ok(vec![self.send(caller, to, message, call).await?]);
        };
        if LEAD.contains(&to) {
            return Err(HubError::Refused(
                "the lead has no mailbox: it reads the text you end with".to_owned(),
            ));
        }
        let id = self.colleague(caller, sender, to).await?;
        Ok(vec![self.post(&id, &sender.name, message).await?])
    }

    /// The lead listens to each member, so that it sees the work that the message starts.
    async fn send_all(
        &self,
        caller: &Caller,
        sender: Option<&TeamMember>,
        message: &str,
        call: Option<&ToolUseId>,
    ) -> Result<Vec<TaskRecord>, HubError> {
        let (session, team, from) = match sender {
            Some(sender) => (
                sender.session,
                Some(sender.team.as_str()),
                sender.name.as_str(),
            ),
            None => (caller.session, None, "the lead"),
        };
        let mut others = self.members(session, team).await?;
        let own = caller.task_id();
        others.retain(|(_, id)| Some(id) != own.as_ref());
        if others.is_empty() {
            return Err(HubError::Refused(
                "there is nobody to write to: no team here has another member".to_owned(),
            ));
        }
        let mut records = Vec::new();
        for (_, id) in &others {
            if sender.is_none() {
                self.listen(id, caller, call);
            }
            records.push(self.post(id, from, message).await?);
        }
        Ok(records)
    }

    /// A teammate by name or id, or an agent that the teammate itself started. A task of the same
    /// tree that another agent started is found by id and refused here.
    async fn colleague(
        &self,
        caller: &Caller,
        sender: &TeamMember,
        to: &str,
    ) -> Result<TaskId, HubError> {
        let members = self.members(sender.session, Some(&sender.team)).await?;
        let named = |(name, id): &&(String, TaskId)| name == to || id.as_str() == to;
        if let Some((name, id)) = members.iter().find(named) {
            return if *name == sender.name {
                Err(HubError::Refused("that is you".to_owned()))
            } else {
                Ok(id.clone())
            };
        }
        let own = self.find(caller, to).await;
        if let Ok(id) = own {
            let is_own = self.store.task(&id).await?.session_id == Some(caller.session);
            if is_own {
                return Ok(id);
            }
        }
        let known: Vec<String> = members
            .iter()
            .filter(|(name, _)| *name != sender.name)
            .map(|(name, id)| format!("{name} ({id})"))
            .collect();
        Err(HubError::Refused(format!(
            "there is no `{to}` in team {}; with you: {}",
            sender.team,
            if known.is_empty() {
                "nobody".to_owned()
            } else {
                known.join(", ")
            }
        )))
    }

    /// Wakes the member here if it runs here; otherwise its own process learns of the mail by its
    /// heartbeat.
    async fn post(&self, to: &TaskId, from: &str, message: &str) -> Result<TaskRecord, HubError> {
        let record = self.store.send_mail(to, from, message).await?;
        self.scheduler.wake_for_mail(to);
        self.wake();
        Ok(record)
    }
}
