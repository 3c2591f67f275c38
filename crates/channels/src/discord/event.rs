//! Events of Discord as messages.
//!
//! Only the fields that mean something here are read. A name, a nickname and an emoji's name are
//! chosen by their owners: who speaks is the id of the account, which Discord vouches for, and
//! whether it is a bot is Discord's word as well.

use serde::Deserialize;
use serde_json::Value;

use super::{DISCORD, rest::DiscordApi};
use crate::{
    ImageSource, Inbound, InboundImage, Privacy, Speaker, SpeakerKind, StopReaction, ThreadRef,
    client::CallError,
    engine::{ChainedMessage, chained_identity, is_stop_sign},
};

/// Message types that people write: an ordinary one and a reply.
const WRITTEN: [u64; 2] = [0, 19];
/// A reference of this type is a forwarded message.
const FORWARDED: u64 = 1;
/// A button was pressed.
const COMPONENT: u64 = 3;

/// As `MESSAGE_CREATE` has it. The text is there only in direct chats and where we are mentioned:
/// the bot does not ask for the content of everything that is said.
#[derive(Deserialize)]
pub(super) struct Message {
    id: String,
    channel_id: String,
    #[serde(default)]
    guild_id: Option<String>,
    author: User,
    #[serde(rename = "type", default)]
    kind: u64,
    #[serde(default)]
    content: String,
    #[serde(default)]
    mentions: Vec<User>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    #[serde(default)]
    message_reference: Option<Reference>,
    #[serde(default)]
    webhook_id: Option<String>,
}

#[derive(Deserialize)]
struct User {
    id: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    bot: bool,
}

#[derive(Deserialize)]
struct Attachment {
    url: String,
    filename: String,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(default)]
    message_id: Option<String>,
    #[serde(rename = "type", default)]
    kind: u64,
}

/// A button that was pressed, over the gateway or the endpoint; Discord sends the same to both.
#[derive(Deserialize)]
pub(super) struct Interaction {
    pub(super) id: String,
    pub(super) token: String,
    #[serde(rename = "type")]
    kind: u64,
    #[serde(default)]
    channel_id: Option<String>,
    #[serde(default)]
    guild_id: Option<String>,
    /// In a server.
    #[serde(default)]
    member: Option<Member>,
    /// In a direct chat.
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    message: Option<PressedOn>,
    #[serde(default)]
    data: Option<Pressed>,
}

#[derive(Deserialize)]
struct Member {
    user: User,
}

/// Somebody reacted to a message.
#[derive(Deserialize)]
pub(super) struct Reaction {
    user_id: String,
    channel_id: String,
    message_id: String,
    #[serde(default)]
    guild_id: Option<String>,
    /// In a server.
    #[serde(default)]
    member: Option<Member>,
    emoji: Emoji,
}

#[derive(Deserialize)]
struct Emoji {
    /// Absent for one of a server that is gone.
    #[serde(default)]
    name: Option<String>,
    /// Of one that a server made; its name is anybody's choice.
    #[serde(default)]
    id: Option<String>,
}

#[derive(Deserialize)]
struct PressedOn {
    id: String,
}

#[derive(Deserialize)]
struct Pressed {
    #[serde(default)]
    custom_id: String,
}

impl DiscordApi {
    /// Nothing for what nobody wrote, for forwarded text, which is somebody else's, and for what we
    /// are not shown.
    pub(super) async fn said(
        &self,
        message: Message,
        ours: &str,
    ) -> Result<Option<ChainedMessage>, CallError> {
        let reference = message.message_reference.as_ref();
        let is_forwarded = reference.is_some_and(|one| one.kind == FORWARDED);
        let is_empty = message.content.is_empty() && message.attachments.is_empty();
        if !WRITTEN.contains(&message.kind) || is_forwarded || is_empty {
            return Ok(None);
        }
        let at = self
            .at(&message.channel_id, message.guild_id.as_deref())
            .await?;
        let images = message.attachments.into_iter().map(|one| InboundImage {
            name: one.filename,
            source: ImageSource::Platform(one.url),
        });
        let mut speaker = speaker(&message.author, Some(ours));
        if message.webhook_id.is_some() {
            speaker.kind = SpeakerKind::Bot;
        }
        Ok(Some(ChainedMessage {
            inbound: Inbound {
                identity: chained_identity(DISCORD, &at.conversation, &message.id),
                at,
                speaker,
                mentioned: message.mentions.iter().any(|user| user.id == ours),
                privacy: privacy(message.guild_id.as_deref()),
                text: plain(&message.content, ours),
                images: images.collect(),
                reply_to: message.message_reference.and_then(|one| one.message_id),
            },
            message_id: message.id,
        }))
    }

    /// A button says the text that it stands for. It belongs to the thread of its message.
    pub(super) async fn pressed(
        &self,
        pressed: Interaction,
    ) -> Result<Option<ChainedMessage>, CallError> {
        let user = pressed.member.map(|member| member.user).or(pressed.user);
        let (COMPONENT, Some(channel), Some(user), Some(message), Some(data)) = (
            pressed.kind,
            pressed.channel_id,
            user,
            pressed.message,
            pressed.data,
        ) else {
            return Ok(None);
        };
        let at = self.at(&channel, pressed.guild_id.as_deref()).await?;
        let identity = chained_identity(DISCORD, &at.conversation, &message.id);
        Ok(Some(ChainedMessage {
            inbound: Inbound {
                identity: format!("{identity}:{}", pressed.id),
                at,
                speaker: speaker(&user, None),
                mentioned: true,
                privacy: privacy(pressed.guild_id.as_deref()),
                text: data.custom_id,
                images: Vec::new(),
                reply_to: Some(message.id.clone()),
            },
            message_id: message.id,
        }))
    }

    /// Nothing for what is no stop sign, and for our own reactions.
    pub(super) async fn stopped(
        &self,
        reaction: Reaction,
        ours: &str,
        number: Option<u64>,
    ) -> Result<Option<StopReaction>, CallError> {
        let emoji = &reaction.emoji;
        let name = emoji.name.as_deref().filter(|_| emoji.id.is_none());
        if !name.is_some_and(is_stop_sign) || reaction.user_id == ours {
            return Ok(None);
        }
        let (message, user) = (reaction.message_id, reaction.user_id);
        let at = self
            .at(&reaction.channel_id, reaction.guild_id.as_deref())
            .await?;
        let identity = chained_identity(DISCORD, &at.conversation, &message);
        let number = number.unwrap_or_default();
        Ok(Some(StopReaction {
            identity: format!("{identity}:stop:{user}:{number}"),
            channel: DISCORD.to_owned(),
            conversation: at.conversation,
            message_id: message,
            speaker: match &reaction.member {
                Some(member) => speaker(&member.user, Some(ours)),
                None => Speaker {
                    name: user.clone(),
                    id: user,
                    kind: SpeakerKind::Person,
                },
            },
        }))
    }

    async fn at(&self, channel: &str, guild: Option<&str>) -> Result<ThreadRef, CallError> {
        match guild {
            Some(_) => self.place(channel).await,
            None => Ok(ThreadRef {
                channel: DISCORD.to_owned(),
                conversation: channel.to_owned(),
                thread: String::new(),
            }),
        }
    }
}

/// A chat without a server is with us alone.
fn privacy(guild: Option<&str>) -> Privacy {
    match guild {
        Some(_) => Privacy::Room,
        None => Privacy::Direct,
    }
}

fn speaker(user: &User, ours: Option<&str>) -> Speaker {
    Speaker {
        id: user.id.clone(),
        name: user.username.clone(),
        kind: match user.bot {
            _ if ours == Some(user.id.as_str()) => SpeakerKind::Ourselves,
            true => SpeakerKind::Bot,
            false => SpeakerKind::Person,
        },
    }
}

/// Our own mention becomes `@codespar`, those of others their ids.
fn plain(text: &str, ours: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("<@") {
        result.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let named = after.split_once('>').filter(|(inside, _)| {
            let digits = inside.trim_start_matches(['!', '&']);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        match named {
            Some((inside, behind)) => {
                let is_ours = inside.trim_start_matches('!') == ours;
                result.push('@');
                result.push_str(if is_ours { "codespar" } else { inside });
                rest = behind;
            }
            None => {
                result.push_str("<@");
                rest = after;
            }
        }
    }
    result.push_str(rest);
    result
}

/// The data of a dispatched event as what it is.
pub(super) fn parsed<T: serde::de::DeserializeOwned>(data: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(data.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_mention_is_told_from_others() {
        for (text, expected) in [
            ("<@99> fix it", "@codespar fix it"),
            ("<@!99> ask <@8> and <@&99>", "@codespar ask @8 and @&99"),
            ("a <@99", "a <@99"),
            ("<@99x> <@> <", "<@99x> <@> <"),
            ("> <@99> merge", "> @codespar merge"),
        ] {
            assert_eq!(plain(text, "99"), expected);
        }
    }
}
