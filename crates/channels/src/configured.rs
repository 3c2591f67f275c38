//! A channel that is set up: what it needs to be served.
//!
//! Each platform is set up in its own way. What comes of it is the same for all, so the process
//! that serves channels knows no platform, and a channel that is added needs no change there.

use std::{future::Future, pin::Pin, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{ChannelAdapter, ChannelCore, Webhook};

/// Hands messages to the core until it is cancelled: a connection to the platform, or polling.
pub type MessageSource = Box<
    dyn FnOnce(Arc<ChannelCore>, CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>>
        + Send,
>;

/// Makes the webhook of a channel once the core is there.
pub type MakeWebhook = Box<dyn FnOnce(Arc<ChannelCore>) -> Arc<dyn Webhook> + Send>;

/// A channel and the ways in which its messages come: over a webhook, a source of its own, or both.
pub struct ConfiguredChannel {
    pub adapter: Arc<dyn ChannelAdapter>,
    pub webhook: Option<MakeWebhook>,
    pub source: Option<MessageSource>,
}
