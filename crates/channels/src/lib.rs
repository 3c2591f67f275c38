//! Chat channels: one grammar and one core, wherever people talk.
//!
//! `@codespar merge PR #1 squash` means the same in a terminal session, in a chat thread and in a
//! comment. The grammar reads the text and does nothing; the core decides who may do what, does it
//! and tells of it; an adapter speaks the wire format of one platform.

mod access;
mod adapter;
mod choices;
mod client;
mod configured;
pub mod discord;
mod engine;
pub mod github;
pub mod grammar;
mod hook_secret;
mod message;
mod names;
mod outgoing;
mod progress;
pub mod slack;
mod stored;
pub mod telegram;
mod text;
mod times;
mod web;
mod webhook;
mod websocket;
pub mod whatsapp;

pub use access::{SpeakerStanding, needed_role};
pub use adapter::{
    Acknowledgement, AddressedMessage, ChannelAdapter, ChannelFinding, FindingKind, Pace,
    PullBranch, SendError, ThreadActivity, WorkReport,
};
pub use client::{ClientError, client as platform_client, read_at_most};
pub use configured::{ConfiguredChannel, MakeWebhook, MessageSource};
pub use engine::{
    ChannelCore, ChannelSetup, ClaimedAccount, CrashPoint, LinkOwner, PendingLink, StopReaction,
    ThreadStop, Unlinked, numbered_options,
};
pub use grammar::{
    ChatCommand, ChatRequest, Names, NotACommand, PullRef, RequestOptions, StateFilter, Verb,
    mentioned, parse,
};
pub use message::{
    Addressee, ForgeOrigin, ImageSource, Inbound, InboundImage, Outbound, OutboundKind, Privacy,
    ReplyChoice, Speaker, SpeakerKind, ThreadRef,
};
pub use names::ProjectNames;
pub use outgoing::neutral;
pub use stored::StoredChannel;
pub use web::{PageProject, ThreadMessage, VouchedError, VouchedImage, VouchedLine, WEB};
pub use webhook::{HookMethod, HookRequest, HookResponse, MOST_HOOK_BYTES, Webhook};

/// The name of the channel of `codespar chat`.
pub const TERMINAL: &str = "terminal";
