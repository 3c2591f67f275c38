//! WhatsApp, experimental: messages over the webhook of the Cloud API, answers over the same API.
//!
//! ```text
//! GET  /hooks/whatsapp ─▶ verify token ─▶ the challenge
//! POST /hooks/whatsapp ─▶ HMAC over the raw body ─▶ messages on record, then 200
//! ```
//!
//! Messages cannot be edited: a run shows how it begins and what it comes to. People can only be
//! written to within 24 hours of their last message.

mod channel;
mod draw;
mod event;
mod graph;
mod hook;

use secrecy::SecretString;
use url::Url;

pub use self::{channel::WhatsAppChannel, graph::WhatsAppApi, hook::WhatsAppHook};

/// The name of the channel.
pub const WHATSAPP: &str = "whatsapp";

/// What is needed to answer as a business number.
pub struct WhatsAppSetup {
    pub access_token: SecretString,
    /// Not the number itself.
    pub phone_number_id: String,
    /// `https://graph.facebook.com/v25.0/`.
    pub api: Url,
    pub proxy: Option<Url>,
}

/// What makes a delivery believed.
pub struct WhatsAppSecrets {
    /// Signs what Meta sends.
    pub app_secret: SecretString,
    /// Chosen by us, given to Meta with the address.
    pub verify_token: SecretString,
}
