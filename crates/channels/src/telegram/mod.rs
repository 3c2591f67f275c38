//! Telegram: updates by long polling or over a webhook, messages over the Bot API.
//!
//! ```text
//! getUpdates ──────────────────────▶ each update on record, then the next offset
//! POST /hooks/telegram ─▶ secret ──▶ each update on record, then 200
//! ```
//!
//! Telegram delivers an update until it is acknowledged, by an offset after it or by 200. Either is
//! given only once the message is on record, so a process that dies in between gets it again.

mod api;
mod channel;
mod draw;
mod hook;
mod poll;
mod reaction;
mod text;
mod update;

use secrecy::SecretString;
use url::Url;

pub use self::{api::TelegramApi, channel::TelegramChannel, hook::TelegramHook, poll::updates};

/// The name of the channel.
pub const TELEGRAM: &str = "telegram";

/// What is needed to be a bot.
pub struct TelegramSetup {
    /// From BotFather. It is a part of every address, so no address is shown anywhere.
    pub bot_token: SecretString,
    /// `https://api.telegram.org/`.
    pub api: Url,
    pub proxy: Option<Url>,
    pub delivery: TelegramDelivery,
}

/// How updates come.
#[derive(Debug, Clone)]
pub enum TelegramDelivery {
    /// No public address is needed.
    Polling,
    /// With what was given to `setWebhook` as `secret_token`.
    Webhook { secret: SecretString },
}
