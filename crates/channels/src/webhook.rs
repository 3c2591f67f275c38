//! What a platform delivers over HTTP, and what it is answered with.

use async_trait::async_trait;
use http::HeaderMap;

use crate::{ChannelCore, engine::ChainedMessage};

/// The most of a body that is read: events have a few kilobytes.
pub const MOST_HOOK_BYTES: usize = 1024 * 1024;

/// A delivery as it came.
#[derive(Debug, Clone, Copy)]
pub struct HookRequest<'a> {
    pub method: HookMethod,
    /// Without the question mark.
    pub query: &'a str,
    pub headers: &'a HeaderMap,
    /// Raw: signatures are over these bytes.
    pub body: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookMethod {
    /// Some platforms ask whether the address is ours.
    Get,
    Post,
}

/// What a webhook is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
}

impl HookResponse {
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: body.to_string(),
        }
    }
}

/// The webhook of a channel, at `/hooks/<channel>`. It is believed by its signature alone.
///
/// A message is on record before it is acknowledged; if that fails, the platform is told to deliver
/// it again (503). What is not for us is acknowledged too. A forged or old delivery is 401, one that
/// cannot be read 400, and what it says is not logged.
#[async_trait]
pub trait Webhook: Send + Sync {
    async fn handle(&self, request: HookRequest<'_>) -> HookResponse;
}

/// Puts what a platform delivered on record, all of it before it is acknowledged. The answer if that
/// fails has the platform deliver it again; what is on record by then is known.
pub(crate) async fn recorded(
    core: &ChannelCore,
    platform: &str,
    messages: Vec<ChainedMessage>,
) -> Result<(), HookResponse> {
    for message in messages {
        core.reach("arrived");
        if let Err(error) = core.receive_chained(message).await {
            return Err(not_recorded(platform, &error));
        }
    }
    Ok(())
}

/// The answer that has the platform deliver again.
pub(crate) fn not_recorded(platform: &str, error: &dyn std::fmt::Display) -> HookResponse {
    tracing::warn!("a message of {platform} is not on record: {error}");
    HookResponse::text(503, "try again")
}

/// The answer to what cannot be read. Its text is somebody's message and is not logged.
pub(crate) fn unreadable(platform: &str, error: &serde_json::Error) -> HookResponse {
    tracing::warn!("a delivery of {platform} cannot be read: {error}");
    HookResponse::text(400, "this cannot be read")
}
