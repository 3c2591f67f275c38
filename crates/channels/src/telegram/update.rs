//! Updates of Telegram as messages.
//!
//! An update is one of several kinds, told apart by which field is there. Those that we did not ask
//! for are passed over. A message is known by its chat and its number, and a button by the message
//! that has it, so an update that Telegram delivers again is the message that is on record.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    TELEGRAM,
    api::BotAccount,
    reaction::{Reacted, ReactionChange},
    text::{Entity, MarkedText, marked},
};
use crate::{
    ImageSource, Inbound, InboundImage, Privacy, Speaker, SpeakerKind, ThreadRef,
    engine::{ChainedMessage, chained_identity},
};

/// What a thread that is a topic of a group begins with; others are the number of a message.
pub(super) const TOPIC: &str = "topic-";

/// What an update comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) message: Option<ChainedMessage>,
    /// The button that was pressed; its client waits for an answer.
    pub(super) pressed: Option<String>,
    /// It may be a stop sign.
    pub(super) reaction: Option<ReactionChange>,
}

/// Edits, channel posts and everything else that we do not ask for have other names.
#[derive(Deserialize)]
struct Update {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    callback_query: Option<Pressed>,
    #[serde(default)]
    message_reaction: Option<Reacted>,
}

#[derive(Deserialize)]
struct Message {
    message_id: i64,
    #[serde(default)]
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    #[serde(default)]
    from: Option<User>,
    chat: Chat,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    entities: Vec<Entity>,
    #[serde(default)]
    caption: Option<String>,
    #[serde(default)]
    caption_entities: Vec<Entity>,
    #[serde(default)]
    reply_to_message: Option<Box<Replied>>,
    #[serde(default)]
    photo: Vec<PhotoSize>,
    #[serde(default)]
    document: Option<Document>,
    #[serde(default)]
    forward_origin: Option<Value>,
    #[serde(default)]
    via_bot: Option<User>,
}

#[derive(Deserialize)]
struct Replied {
    message_id: i64,
    #[serde(default)]
    from: Option<User>,
}

#[derive(Deserialize)]
pub(super) struct User {
    pub(super) id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    username: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct PhotoSize {
    file_id: String,
    width: u64,
    height: u64,
}

#[derive(Deserialize)]
struct Document {
    file_id: String,
    #[serde(default)]
    file_name: Option<String>,
}

#[derive(Deserialize)]
struct Pressed {
    id: String,
    from: User,
    #[serde(default)]
    message: Option<PressedOn>,
    #[serde(default)]
    data: Option<String>,
}

/// Only its place counts; an old one has little else.
#[derive(Deserialize)]
struct PressedOn {
    message_id: i64,
    chat: Chat,
}

/// Ids are numbers in the API and texts with us.
pub(super) fn number(text: &str) -> Value {
    text.parse::<i64>()
        .map_or_else(|_| json!(text), Value::from)
}

/// Polling and the webhook bring the same JSON. What is no message of a person for us is nothing;
/// only what is no update at all is an error.
pub(super) fn read(update: &Value, account: &BotAccount) -> Result<Delivered, serde_json::Error> {
    let number = update["update_id"].as_i64().unwrap_or_default();
    let update: Update = serde_json::from_value(update.clone())?;
    Ok(Delivered {
        pressed: update.callback_query.as_ref().map(|one| one.id.clone()),
        reaction: update
            .message_reaction
            .and_then(|reacted| reacted.change(number, account)),
        message: match (update.message, update.callback_query) {
            (Some(message), _) => said(message, account),
            (None, Some(pressed)) => button(pressed, account),
            (None, None) => None,
        },
    })
}

/// Nothing for what is no message of a person to read: services, forwarded text (which is somebody
/// else's) and the further pictures of an album, which come as messages without text.
fn said(message: Message, account: &BotAccount) -> Option<ChainedMessage> {
    let from = message.from.as_ref()?;
    if message.forward_origin.is_some() {
        return None;
    }
    let (images, privacy) = (images(&message), privacy(&message.chat));
    let MarkedText { text, mentioned } = match (&message.text, &message.caption) {
        (Some(text), _) => marked(text, &message.entities, account),
        (None, Some(caption)) => marked(caption, &message.caption_entities, account),
        (None, None) => return None,
    };
    let topic = message
        .message_thread_id
        .filter(|_| message.is_topic_message);
    // In a topic everything that is no reply replies to its first message.
    let replied = message
        .reply_to_message
        .filter(|replied| Some(replied.message_id) != topic);
    let is_ours = |replied: &Replied| {
        let from = replied.from.as_ref();
        from.is_some_and(|from| from.id == account.id)
    };
    let mut speaker = speaker(from, account);
    if message.via_bot.is_some() {
        speaker.kind = SpeakerKind::Bot;
    }
    let (chat, id) = (message.chat.id.to_string(), message.message_id.to_string());
    Some(ChainedMessage {
        inbound: Inbound {
            identity: chained_identity(TELEGRAM, &chat, &id),
            at: ThreadRef {
                channel: TELEGRAM.to_owned(),
                conversation: chat,
                thread: topic
                    .map(|topic| format!("{TOPIC}{topic}"))
                    .unwrap_or_default(),
            },
            speaker,
            mentioned: mentioned || replied.as_deref().is_some_and(is_ours),
            privacy,
            text,
            images,
            reply_to: replied.map(|replied| replied.message_id.to_string()),
        },
        message_id: id,
    })
}

/// A button says the text that it stands for. It belongs to the thread of its message.
fn button(pressed: Pressed, account: &BotAccount) -> Option<ChainedMessage> {
    let (message, text) = (pressed.message?, pressed.data?);
    let (chat, id) = (message.chat.id.to_string(), message.message_id.to_string());
    let identity = chained_identity(TELEGRAM, &chat, &id);
    Some(ChainedMessage {
        inbound: Inbound {
            identity: format!("{identity}:{}", pressed.id),
            at: ThreadRef {
                channel: TELEGRAM.to_owned(),
                conversation: chat,
                thread: String::new(),
            },
            speaker: speaker(&pressed.from, account),
            mentioned: true,
            privacy: privacy(&message.chat),
            text,
            images: Vec::new(),
            reply_to: Some(id.clone()),
        },
        message_id: id,
    })
}

fn privacy(chat: &Chat) -> Privacy {
    match chat.kind.as_str() {
        "private" => Privacy::Direct,
        _ => Privacy::Room,
    }
}

pub(super) fn speaker(user: &User, account: &BotAccount) -> Speaker {
    Speaker {
        id: user.id.to_string(),
        name: user
            .username
            .clone()
            .unwrap_or_else(|| user.first_name.clone()),
        kind: match user.is_bot {
            _ if user.id == account.id => SpeakerKind::Ourselves,
            true => SpeakerKind::Bot,
            false => SpeakerKind::Person,
        },
    }
}

/// A photo comes in several sizes, of which the largest counts. A document may be anything; what it
/// is shows when it is fetched.
fn images(message: &Message) -> Vec<InboundImage> {
    let image = |name: &str, id: &str| InboundImage {
        name: name.to_owned(),
        source: ImageSource::Platform(id.to_owned()),
    };
    let photo = message
        .photo
        .iter()
        .max_by_key(|one| one.width * one.height);
    let photo = photo.map(|one| image("photo", &one.file_id));
    let document = message.document.as_ref().map(|one| {
        let name = one.file_name.as_deref().unwrap_or("document");
        image(name, &one.file_id)
    });
    photo.into_iter().chain(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(more: &Value) -> Option<Inbound> {
        let mut message = json!({
            "message_id": 5, "date": 1, "from": {"id": 1, "is_bot": false, "first_name": "Ann"},
            "chat": {"id": -100, "type": "supergroup"}, "text": "fix it",
        });
        for (key, value) in more.as_object().unwrap() {
            message[key] = value.clone();
        }
        let account = BotAccount {
            id: 99,
            username: "our_bot".to_owned(),
            can_join_groups: true,
        };
        let update = json!({"update_id": 1, "message": message});
        read(&update, &account)
            .unwrap()
            .message
            .map(|one| one.inbound)
    }

    #[test]
    fn a_reply_to_us_is_for_us_and_a_topic_is_a_thread() {
        let plain = message(&json!({})).unwrap();
        assert_eq!(plain.identity, "telegram:-100:5");
        assert_eq!((plain.mentioned, plain.privacy), (false, Privacy::Room));
        let ours = json!({"message_id": 4, "from": {"id": 99, "is_bot": true, "first_name": "B"}});
        let reply = message(&json!({"reply_to_message": ours})).unwrap();
        assert_eq!(
            (reply.mentioned, reply.reply_to.as_deref()),
            (true, Some("4"))
        );
        let topic = json!({"message_thread_id": 3, "is_topic_message": true,
            "reply_to_message": {"message_id": 3, "from": {"id": 99, "first_name": "B"}}});
        let topic = message(&topic).unwrap();
        assert_eq!(topic.at.thread, "topic-3");
        assert_eq!((topic.mentioned, topic.reply_to), (false, None));
    }

    #[test]
    fn text_of_others_is_not_what_the_sender_says() {
        assert_eq!(message(&json!({"forward_origin": {"type": "user"}})), None);
        let via = message(&json!({"via_bot": {"id": 8, "is_bot": true, "first_name": "B"}}));
        assert_eq!(via.unwrap().speaker.kind, SpeakerKind::Bot);
        let bot = json!({"from": {"id": 8, "is_bot": true, "first_name": "B"}});
        assert_eq!(message(&bot).unwrap().speaker.kind, SpeakerKind::Bot);
        let ours = json!({"from": {"id": 99, "is_bot": true, "first_name": "B"}});
        assert_eq!(message(&ours).unwrap().speaker.kind, SpeakerKind::Ourselves);
    }

    #[test]
    fn the_largest_size_of_a_photo_counts() {
        let sizes = json!([
            {"file_id": "small", "width": 90, "height": 60},
            {"file_id": "large", "width": 900, "height": 600},
            {"file_id": "middle", "width": 320, "height": 200},
        ]);
        let found = message(&json!({"photo": sizes, "text": null, "caption": "fix it"})).unwrap();
        let source = ImageSource::Platform("large".to_owned());
        assert_eq!(found.images[0].source, source);
        assert_eq!(message(&json!({"photo": sizes, "text": null})), None);
    }
}
