//! Reactions to messages: a stop sign stops the run that a message of ours is about.
//!
//! The reactions that everybody has at Telegram know no stop sign. It is given as an emoji of a pack,
//! where the group allows those; Telegram tells its id alone, and is asked which emoji it stands for.

use serde::Deserialize;
use serde_json::json;

use super::{
    TELEGRAM, TelegramApi,
    api::BotAccount,
    poll::PollError,
    update::{Chat, User, speaker},
};
use crate::{
    ChannelCore, StopReaction,
    client::CallError,
    engine::{chained_identity, is_stop_sign},
};

/// All reactions of somebody to a message, before and after a change.
#[derive(Deserialize)]
pub(super) struct Reacted {
    chat: Chat,
    message_id: i64,
    /// Absent for somebody who speaks as a chat: nobody's rights could be looked up.
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    old_reaction: Vec<Reaction>,
    #[serde(default)]
    new_reaction: Vec<Reaction>,
}

#[derive(PartialEq, Eq, Deserialize)]
struct Reaction {
    #[serde(default)]
    emoji: Option<String>,
    #[serde(default)]
    custom_emoji_id: Option<String>,
}

/// A reaction that is new.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReactionChange {
    /// What it is taken for if it is a stop sign.
    stop: StopReaction,
    sign: Sign,
}

#[derive(Debug, PartialEq, Eq)]
enum Sign {
    Stop,
    /// Emojis of packs, by their ids.
    Custom(Vec<String>),
}

impl Reacted {
    /// Nothing where no sign is new that could be a stop sign. The number of the update tells it
    /// from a later one.
    pub(super) fn change(self, number: i64, account: &BotAccount) -> Option<ReactionChange> {
        let added = self.new_reaction.iter();
        let added: Vec<&Reaction> = added
            .filter(|one| !self.old_reaction.contains(one))
            .collect();
        let mut emojis = added.iter().filter_map(|one| one.emoji.as_deref());
        let sign = match emojis.any(is_stop_sign) {
            true => Sign::Stop,
            false => {
                let ids = added.iter().filter_map(|one| one.custom_emoji_id.clone());
                Sign::Custom(ids.collect())
            }
        };
        if sign == Sign::Custom(Vec::new()) {
            return None;
        }
        let (chat, message_id) = (self.chat.id.to_string(), self.message_id.to_string());
        let identity = chained_identity(TELEGRAM, &chat, &message_id);
        Some(ReactionChange {
            stop: StopReaction {
                identity: format!("{identity}:stop:{number}"),
                channel: TELEGRAM.to_owned(),
                conversation: chat,
                message_id,
                speaker: speaker(&self.user?, account),
            },
            sign,
        })
    }
}

/// An emoji of a pack.
#[derive(Deserialize)]
struct Sticker {
    #[serde(default)]
    emoji: Option<String>,
}

impl TelegramApi {
    /// Puts a reaction on record if it is a stop sign. Telegram is asked only about reactions to
    /// messages that can be stopped by one.
    pub(super) async fn take_reaction(
        &self,
        core: &ChannelCore,
        change: ReactionChange,
    ) -> Result<(), PollError> {
        let is_ours = core.is_stoppable(&change.stop).await?;
        if is_ours && self.is_stop(&change.sign).await? {
            core.receive_stop(change.stop).await?;
        }
        Ok(())
    }

    /// What Telegram refuses to tell is no stop sign.
    async fn is_stop(&self, sign: &Sign) -> Result<bool, CallError> {
        let Sign::Custom(ids) = sign else {
            return Ok(true);
        };
        let asked = json!({"custom_emoji_ids": ids});
        let found = self.call("getCustomEmojiStickers", &asked).await;
        let stickers: Vec<Sticker> = match found {
            Ok(stickers) => stickers,
            Err(CallError::Refused { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut emojis = stickers.iter().filter_map(|one| one.emoji.as_deref());
        Ok(emojis.any(is_stop_sign))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(old: &Value, new: &Value, user: &Value) -> Option<ReactionChange> {
        let account = BotAccount {
            id: 99,
            username: "our_bot".to_owned(),
            can_join_groups: true,
        };
        let reacted = json!({
            "chat": {"id": -100, "type": "supergroup"}, "message_id": 5, "date": 1,
            "user": user, "old_reaction": old, "new_reaction": new,
        });
        let reacted: Reacted = serde_json::from_value(reacted).unwrap();
        reacted.change(7, &account)
    }

    #[test]
    fn only_a_sign_that_is_new_counts() {
        let none = json!([]);
        let emoji = |emoji: &str| json!([{"type": "emoji", "emoji": emoji}]);
        let ann = json!({"id": 1, "is_bot": false, "first_name": "Ann"});
        for sign in ["⏹", "⏹\u{fe0f}", "🛑"] {
            let found = read(&none, &emoji(sign), &ann).unwrap();
            assert_eq!(found.sign, Sign::Stop);
            assert_eq!(found.stop.identity, "telegram:-100:5:stop:7");
            assert_eq!(found.stop.speaker.id, "1");
        }
        let pack = json!([{"type": "custom_emoji", "custom_emoji_id": "55"}]);
        let found = read(&none, &pack, &ann).unwrap();
        assert_eq!(found.sign, Sign::Custom(vec!["55".to_owned()]));
        for (old, new) in [
            (none.clone(), emoji("👍")),
            (emoji("🛑"), none.clone()),
            (emoji("🛑"), emoji("🛑")),
            (pack.clone(), pack),
        ] {
            assert_eq!(read(&old, &new, &ann), None, "{old} {new}");
        }
        // Somebody who speaks as a group has no rights of their own.
        assert_eq!(read(&none, &emoji("🛑"), &Value::Null), None);
    }
}
