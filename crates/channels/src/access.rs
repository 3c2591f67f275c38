//! Who may do what: the role that a command needs, and the role of whoever speaks.

use codespar_protocol::{AccessRole, Permission};
use codespar_runtime::{ChannelAccess, ChannelSettings};
use codespar_store::{ChannelPerson, ThreadRef};

use crate::{ChatCommand, Speaker, SpeakerKind};

/// The role that a command needs.
pub fn needed_role(command: &ChatCommand) -> AccessRole {
    match command {
        ChatCommand::Ask { .. }
        | ChatCommand::Review { .. }
        | ChatCommand::Schedules
        | ChatCommand::PullRequests { .. }
        | ChatCommand::Status { .. }
        | ChatCommand::Logs { .. }
        | ChatCommand::Cost { .. }
        | ChatCommand::Whoami
        | ChatCommand::Help { .. } => AccessRole::Read,
        ChatCommand::Dev { .. }
        | ChatCommand::Plan { .. }
        | ChatCommand::Approve { .. }
        | ChatCommand::Watch { .. }
        | ChatCommand::Unwatch { .. }
        | ChatCommand::Resolve { .. }
        | ChatCommand::Unschedule { .. }
        | ChatCommand::Stop { .. }
        | ChatCommand::Retry { .. } => AccessRole::Write,
        // What is scheduled needs its own role too, now and at each run.
        ChatCommand::Schedule { request, .. } => {
            needed_role(&request.command).max(AccessRole::Write)
        }
        ChatCommand::Merge { .. } => AccessRole::Merge,
        ChatCommand::Link { .. } | ChatCommand::Unlink => AccessRole::Admin,
    }
}

/// What is known of a speaker. Nothing of it is what the speaker says of themselves.
#[derive(Debug, Clone, Copy)]
pub struct SpeakerStanding<'a> {
    pub settings: &'a ChannelSettings,
    /// What an admin has said of the person.
    pub person: Option<&'a ChannelPerson>,
    /// The person who owns the state directory, in the channel of the terminal.
    pub owner: Option<&'a str>,
    /// What the forge lets the linked account do.
    pub forge: Option<Permission>,
}

impl SpeakerStanding<'_> {
    /// The strongest role that applies; none for strangers, for bots that are not listed and for
    /// ourselves.
    pub fn role_of(&self, speaker: &Speaker, at: &ThreadRef) -> Option<AccessRole> {
        let nothing = ChannelAccess::default();
        let access = self.settings.access.get(&at.channel).unwrap_or(&nothing);
        match speaker.kind {
            SpeakerKind::Ourselves => return None,
            SpeakerKind::Bot if !access.bots.contains(&speaker.id) => return None,
            SpeakerKind::Bot | SpeakerKind::Person => {}
        }
        let owned = (self.owner == Some(speaker.id.as_str())).then_some(AccessRole::Admin);
        let forge = match self.forge {
            Some(Permission::Write | Permission::Admin) => Some(AccessRole::Merge),
            Some(Permission::Read) => Some(AccessRole::Read),
            Some(Permission::None) | None => None,
        };
        [
            access.users.get(&speaker.id).copied(),
            access.conversations.get(&at.conversation).copied(),
            access.everyone,
            self.person.and_then(|person| person.role),
            owned,
            forge,
        ]
        .into_iter()
        .flatten()
        .max()
    }
}
