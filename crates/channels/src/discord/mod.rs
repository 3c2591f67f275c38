//! Discord: messages over its gateway, buttons over the gateway or an endpoint, posts over REST.
//!
//! ```text
//! gateway (WebSocket) ─▶ MESSAGE_CREATE, INTERACTION_CREATE on record, then the sequence number
//! POST /hooks/discord ─▶ Ed25519 over stamp and body ─▶ PING │ button on record, then its answer
//! ```
//!
//! The gateway delivers what came after a sequence number again to a session that is resumed. The
//! number is kept in a file and only moves on when a message is on record, so a process that dies
//! goes on where it was.

mod channel;
mod draw;
mod event;
mod gateway;
mod hook;
mod places;
mod rest;
mod session;

use std::path::PathBuf;

use secrecy::SecretString;
use url::Url;

pub use self::{
    channel::DiscordChannel,
    gateway::gateway,
    hook::{DiscordHook, DiscordKey},
    rest::DiscordApi,
};

/// The name of the channel.
pub const DISCORD: &str = "discord";

/// What is needed to be a bot.
pub struct DiscordSetup {
    pub bot_token: SecretString,
    /// `https://discord.com/api/v10/`.
    pub api: Url,
    pub proxy: Option<Url>,
    /// Where the session of the gateway is kept for the next process.
    pub session_file: PathBuf,
}
