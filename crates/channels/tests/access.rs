//! Who may give which command: a table of speakers, commands and channels.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use codespar_channels::{
    ChatCommand, ChatRequest, PullRef, RequestOptions, Speaker, SpeakerKind, SpeakerStanding,
    ThreadRef, needed_role,
};
use codespar_protocol::{AccessRole, Permission};
use codespar_runtime::ChannelSettings;
use codespar_store::ChannelPerson;

use AccessRole::{Admin, Merge, Read, Write};

fn pull() -> PullRef {
    PullRef {
        number: 1,
        repository: None,
        server: None,
    }
}

fn commands() -> Vec<(ChatCommand, AccessRole)> {
    let (text, id) = (|| "x".to_owned(), || "w-1".to_owned());
    let scheduled = |command| ChatCommand::Schedule {
        when: text(),
        request: Box::new(ChatRequest {
            command,
            options: RequestOptions::default(),
        }),
        line: text(),
    };
    vec![
        (ChatCommand::Ask { question: text() }, Read),
        (ChatCommand::Review { pull: pull() }, Read),
        (ChatCommand::PullRequests { state: None }, Read),
        (ChatCommand::Status { id: None }, Read),
        (ChatCommand::Logs { id: id() }, Read),
        (ChatCommand::Cost { id: None }, Read),
        (ChatCommand::Schedules, Read),
        (ChatCommand::Whoami, Read),
        (ChatCommand::Help { about: None }, Read),
        (
            ChatCommand::Dev {
                instruction: text(),
            },
            Write,
        ),
        (ChatCommand::Plan { feature: text() }, Write),
        (ChatCommand::Approve { steps: Vec::new() }, Write),
        (ChatCommand::Watch { pull: pull() }, Write),
        (ChatCommand::Unwatch { pull: pull() }, Write),
        (ChatCommand::Resolve { pull: pull() }, Write),
        (ChatCommand::Stop { id: Some(id()) }, Write),
        (ChatCommand::Retry { id: id() }, Write),
        (ChatCommand::Unschedule { id: id() }, Write),
        (scheduled(ChatCommand::Whoami), Write),
        (
            ChatCommand::Merge {
                pull: pull(),
                strategy: None,
            },
            Merge,
        ),
        (
            scheduled(ChatCommand::Merge {
                pull: pull(),
                strategy: None,
            }),
            Merge,
        ),
        (ChatCommand::Link { repository: text() }, Admin),
        (ChatCommand::Unlink, Admin),
    ]
}

fn settings() -> ChannelSettings {
    serde_json::from_str(
        r#"{"access": {
            "slack": {
                "users": {"U1": "admin", "U2": "read"},
                "conversations": {"dev": "write"},
                "bots": ["B1"]
            },
            "discord": {"everyone": "read"}
        }}"#,
    )
    .unwrap()
}

fn role(channel: &str, conversation: &str, id: &str, kind: SpeakerKind) -> Option<AccessRole> {
    let (settings, at) = (settings(), place(channel, conversation));
    let standing = SpeakerStanding {
        settings: &settings,
        person: None,
        owner: None,
        forge: None,
    };
    standing.role_of(&speaker(id, kind), &at)
}

fn place(channel: &str, conversation: &str) -> ThreadRef {
    ThreadRef {
        channel: channel.to_owned(),
        conversation: conversation.to_owned(),
        thread: "t".to_owned(),
    }
}

fn speaker(id: &str, kind: SpeakerKind) -> Speaker {
    Speaker {
        id: id.to_owned(),
        // Anybody may have any name.
        name: "U1".to_owned(),
        kind,
    }
}

#[test]
fn every_command_needs_its_role_and_every_stronger_one_is_enough() {
    for (command, needed) in commands() {
        assert_eq!(needed_role(&command), needed, "{command:?}");
    }
    let speakers = [
        ("slack", "general", "U1", SpeakerKind::Person, Some(Admin)),
        ("slack", "general", "U2", SpeakerKind::Person, Some(Read)),
        ("slack", "dev", "U2", SpeakerKind::Person, Some(Write)),
        ("slack", "dev", "U3", SpeakerKind::Person, Some(Write)),
        ("slack", "general", "U3", SpeakerKind::Person, None),
        ("slack", "dev", "B1", SpeakerKind::Bot, Some(Write)),
        ("slack", "dev", "B2", SpeakerKind::Bot, None),
        ("slack", "dev", "U1", SpeakerKind::Ourselves, None),
        ("discord", "dev", "U1", SpeakerKind::Person, Some(Read)),
        ("discord", "dev", "B1", SpeakerKind::Bot, None),
        ("telegram", "dev", "U1", SpeakerKind::Person, None),
    ];
    for (channel, conversation, id, kind, expected) in speakers {
        let found = role(channel, conversation, id, kind);
        assert_eq!(found, expected, "{channel} {conversation} {id} {kind:?}");
        for (command, needed) in commands() {
            let may = found.is_some_and(|role| role.allows(needed));
            let should = expected.is_some_and(|role| role >= needed);
            assert_eq!(may, should, "{id} {command:?}");
        }
    }
}

#[test]
fn a_linked_account_has_what_the_forge_gives_it() {
    let (settings, at) = (ChannelSettings::default(), place("slack", "dev"));
    for (permission, expected) in [
        (Permission::None, None),
        (Permission::Read, Some(Read)),
        (Permission::Write, Some(Merge)),
        // An admin of a repository is none of the channel.
        (Permission::Admin, Some(Merge)),
    ] {
        let standing = SpeakerStanding {
            settings: &settings,
            person: None,
            owner: None,
            forge: Some(permission),
        };
        let found = standing.role_of(&speaker("U9", SpeakerKind::Person), &at);
        assert_eq!(found, expected, "{permission:?}");
    }
}

#[test]
fn what_an_admin_said_of_a_person_counts_and_the_owner_is_an_admin() {
    let (settings, at) = (ChannelSettings::default(), place("terminal", "terminal"));
    let person = ChannelPerson {
        channel: "terminal".to_owned(),
        user_id: "bob".to_owned(),
        role: Some(Merge),
        forge_login: None,
        set_by: "ann".to_owned(),
    };
    let standing = SpeakerStanding {
        settings: &settings,
        person: Some(&person),
        owner: Some("ann"),
        forge: None,
    };
    let bob = standing.role_of(&speaker("bob", SpeakerKind::Person), &at);
    assert_eq!(bob, Some(Merge));
    let ann = standing.role_of(&speaker("ann", SpeakerKind::Person), &at);
    assert_eq!(ann, Some(Admin));
}
