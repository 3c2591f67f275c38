//! Where a message of Discord is said: a channel, a thread of one, or a direct chat.

use serde::Deserialize;

use super::{DISCORD, rest::DiscordApi};
use crate::{ThreadRef, client::CallError};

/// What a thread that is a channel of its own begins with; others are the id of a message.
pub(super) const OWN_CHANNEL: &str = "channel-";

/// A channel, as far as we need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChannelPlace {
    /// People reply to messages.
    Channel,
    /// A thread within another channel.
    Thread { parent: String },
}

#[derive(Deserialize)]
struct FoundChannel {
    #[serde(rename = "type")]
    kind: u64,
    #[serde(default)]
    parent_id: Option<String>,
}

impl FoundChannel {
    /// Threads of announcements, public ones and private ones.
    fn place(self) -> ChannelPlace {
        match (self.kind, self.parent_id) {
            (10..=12, Some(parent)) => ChannelPlace::Thread { parent },
            _ => ChannelPlace::Channel,
        }
    }
}

impl DiscordApi {
    /// The place of a message in a channel of a server. The thread is empty where it is a chain of
    /// replies.
    pub(super) async fn place(&self, channel: &str) -> Result<ThreadRef, CallError> {
        let known = self.places.lock().get(channel).cloned();
        let place = match known {
            Some(place) => place,
            None => self.find_place(channel).await?,
        };
        let (conversation, thread) = match place {
            ChannelPlace::Channel => (channel.to_owned(), String::new()),
            ChannelPlace::Thread { parent } => (parent, format!("{OWN_CHANNEL}{channel}")),
        };
        Ok(ThreadRef {
            channel: DISCORD.to_owned(),
            conversation,
            thread,
        })
    }

    async fn find_place(&self, channel: &str) -> Result<ChannelPlace, CallError> {
        let place = match self.get(&format!("channels/{channel}")).await {
            Ok(found) => {
                let found: Result<FoundChannel, _> = serde_json::from_value(found);
                found.map_or(ChannelPlace::Channel, FoundChannel::place)
            }
            // We are told of messages there, but may not look: it is taken for an ordinary one.
            Err(CallError::Refused { .. }) => ChannelPlace::Channel,
            Err(error) => return Err(error),
        };
        let mut places = self.places.lock();
        places.insert(channel.to_owned(), place.clone());
        Ok(place)
    }
}
