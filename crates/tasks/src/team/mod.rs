//! Teams: named, long-lived agents that write to each other and share a list of work.
//!
//! A teammate at rest is a task that has completed: no process, no model call. A message or an
//! item of the list makes it pending again, as its next attempt, with its whole conversation.

mod hub;
mod inbox;
mod items;
mod mail;
mod runner;

use codespar_protocol::{SessionId, TaskRecord, TaskSpec};
use codespar_store::Team;

pub use self::{hub::NewMember, inbox::TeamInbox, runner::TeammateRunner};

/// How many times the turns of its kind a teammate may take before it comes to rest: it does many
/// pieces of work in one go.
const PIECES: u32 = 10;

/// A teammate's place: whose team, which, and its own name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMember {
    /// The session that made the team.
    pub session: SessionId,
    pub team: String,
    /// The teammate's own name.
    pub name: String,
}

impl TeamMember {
    /// None for a task that is not a teammate.
    pub fn of(record: &TaskRecord) -> Option<Self> {
        let Some(TaskSpec::Teammate(teammate)) = &record.spec else {
            return None;
        };
        Some(Self {
            session: record.session_id?,
            team: teammate.team.clone(),
            name: teammate.name.clone(),
        })
    }

    /// What a teammate must know besides its kind's prompt.
    pub fn prompt(&self, teams: &[Team]) -> String {
        let others: Vec<&str> = teams
            .iter()
            .filter(|team| team.name == self.team)
            .flat_map(|team| &team.members)
            .map(|(name, _)| name.as_str())
            .filter(|name| *name != self.name)
            .collect();
        let others = match others.as_slice() {
            [] => "nobody else".to_owned(),
            names => names.join(", "),
        };
        format!(
            "You are {} of team {}. With you: {others}.\n{}",
            self.name,
            self.team,
            include_str!("../prompts/teammate.md").trim()
        )
    }
}
