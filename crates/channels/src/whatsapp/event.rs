//! What WhatsApp delivers, as messages.
//!
//! One delivery may hold several messages, also to other numbers of the same business. What is read
//! is typed and as little as possible: fields that the platform adds change nothing, and a message
//! without a text is passed over instead of failing those beside it.

use serde::Deserialize;

use super::WHATSAPP;
use crate::{
    ImageSource, Inbound, InboundImage, Privacy, Speaker, SpeakerKind, ThreadRef,
    engine::{ChainedMessage, chained_identity},
};

#[derive(Deserialize)]
struct Delivery {
    entry: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    field: String,
    value: serde_json::Value,
}

/// What happened to one number of ours: messages of people, with who they are, and what became of
/// messages of ours, of which failures go to the log.
#[derive(Deserialize)]
struct Messages {
    metadata: Metadata,
    #[serde(default)]
    contacts: Vec<Contact>,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    statuses: Vec<Status>,
}

#[derive(Deserialize)]
struct Metadata {
    phone_number_id: String,
}

#[derive(Deserialize)]
struct Contact {
    #[serde(default)]
    wa_id: Option<String>,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    profile: Profile,
}

#[derive(Default, Deserialize)]
struct Profile {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Message {
    id: String,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    from_user_id: Option<String>,
    #[serde(default)]
    text: Option<Text>,
    #[serde(default)]
    image: Option<Media>,
    #[serde(default)]
    document: Option<Media>,
    #[serde(default)]
    interactive: Option<Interactive>,
    #[serde(default)]
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Text {
    body: String,
}

#[derive(Deserialize)]
struct Media {
    id: String,
    #[serde(default)]
    caption: Option<String>,
    #[serde(default)]
    filename: Option<String>,
}

#[derive(Deserialize)]
struct Interactive {
    #[serde(default)]
    button_reply: Option<ButtonReply>,
}

#[derive(Deserialize)]
struct ButtonReply {
    id: String,
}

#[derive(Deserialize)]
struct Context {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    forwarded: bool,
    #[serde(default)]
    frequently_forwarded: bool,
}

/// What became of a message of ours.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    errors: Vec<StatusError>,
}

#[derive(Deserialize)]
struct StatusError {
    code: i64,
    #[serde(default)]
    title: String,
}

/// The messages to our number in a delivery. Those to other numbers of the business are not ours.
pub(super) fn read(body: &[u8], number: &str) -> Result<Vec<ChainedMessage>, serde_json::Error> {
    let delivery: Delivery = serde_json::from_slice(body)?;
    let changes = delivery.entry.into_iter().flat_map(|entry| entry.changes);
    let mut found = Vec::new();
    for change in changes.filter(|change| change.field == "messages") {
        let value: Messages = serde_json::from_value(change.value)?;
        if value.metadata.phone_number_id != number {
            continue;
        }
        for error in value.statuses.iter().flat_map(|status| &status.errors) {
            tracing::warn!(
                "a message to {WHATSAPP} did not arrive: {} ({})",
                error.title,
                error.code
            );
        }
        let messages = value.messages.into_iter();
        found.extend(messages.filter_map(|message| said(message, &value.contacts)));
    }
    Ok(found)
}

/// Nothing for what has no text and for what was forwarded, which is somebody else's.
fn said(message: Message, contacts: &[Contact]) -> Option<ChainedMessage> {
    let context = message.context.as_ref();
    if context.is_some_and(|context| context.forwarded || context.frequently_forwarded) {
        return None;
    }
    let pressed = message.interactive.and_then(|one| one.button_reply);
    let media = message.image.or(message.document);
    let caption = media.as_ref().and_then(|media| media.caption.clone());
    let text = message.text.map(|text| text.body);
    let text = text.or(caption).or(pressed.map(|button| button.id))?;
    let speaker = speaker(message.from, message.from_user_id, contacts)?;
    let images = media.map(|media| InboundImage {
        name: media.filename.unwrap_or_else(|| "picture".to_owned()),
        source: ImageSource::Platform(media.id),
    });
    Some(ChainedMessage {
        inbound: Inbound {
            identity: chained_identity(WHATSAPP, &speaker.id, &message.id),
            at: ThreadRef {
                channel: WHATSAPP.to_owned(),
                conversation: speaker.id.clone(),
                thread: String::new(),
            },
            speaker,
            mentioned: true,
            privacy: Privacy::Direct,
            text,
            images: images.into_iter().collect(),
            reply_to: message.context.and_then(|context| context.id),
        },
        message_id: message.id,
    })
}

/// A person is known by the id that belongs to the business, where there is one: a number can
/// change hands, or be withheld.
fn speaker(number: Option<String>, user: Option<String>, contacts: &[Contact]) -> Option<Speaker> {
    let is_it = |contact: &&Contact| {
        (number.is_some() && contact.wa_id == number) || (user.is_some() && contact.user_id == user)
    };
    let contact = contacts.iter().find(is_it);
    let user = user.or_else(|| contact.and_then(|contact| contact.user_id.clone()));
    let id = user.or(number)?;
    let name = contact.map(|contact| contact.profile.name.clone());
    Some(Speaker {
        name: name
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| id.clone()),
        id,
        kind: SpeakerKind::Person,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn delivered(contact: &Value, message: &Value) -> Vec<Inbound> {
        let body = json!({"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [
            {"field": "messages", "value": {
                "messaging_product": "whatsapp", "metadata": {"phone_number_id": "55"},
                "contacts": [contact], "messages": [message],
            }},
            {"field": "account_update", "value": {}},
        ]}]});
        let read = read(body.to_string().as_bytes(), "55").unwrap();
        read.into_iter().map(|one| one.inbound).collect()
    }

    #[test]
    fn people_are_known_by_the_id_of_the_business_where_there_is_one() {
        let text = json!({"from": "491", "id": "wamid.A", "type": "text", "text": {"body": "hi"}});
        let by_number = json!({"wa_id": "491", "profile": {"name": "Ann"}});
        let found = delivered(&by_number, &text);
        assert_eq!(
            (found[0].speaker.id.as_str(), found[0].speaker.name.as_str()),
            ("491", "Ann")
        );
        let both = json!({"wa_id": "491", "user_id": "DE.7", "profile": {"name": "Ann"}});
        assert_eq!(delivered(&both, &text)[0].speaker.id, "DE.7");
        let without = json!({"from_user_id": "DE.7", "id": "wamid.A", "text": {"body": "hi"}});
        let hidden = json!({"user_id": "DE.7", "profile": {"name": "Ann"}});
        assert_eq!(
            delivered(&hidden, &without)[0].identity,
            "whatsapp:DE.7:wamid.A"
        );
    }

    #[test]
    fn pictures_and_buttons_are_read_and_forwarded_text_is_not() {
        let contact = json!({"wa_id": "491"});
        let picture = json!({"from": "491", "id": "a", "type": "image",
            "image": {"id": "77", "mime_type": "image/png", "caption": "fix it"}});
        let found = delivered(&contact, &picture);
        assert_eq!(
            found[0].images[0].source,
            ImageSource::Platform("77".to_owned())
        );
        let button = json!({"from": "491", "id": "b", "type": "interactive", "context": {"id": "q"},
            "interactive": {"type": "button_reply", "button_reply": {"id": "1", "title": "Yes"}}});
        let found = delivered(&contact, &button);
        assert_eq!(
            (found[0].text.as_str(), found[0].reply_to.as_deref()),
            ("1", Some("q"))
        );
        let forwarded = json!({"from": "491", "id": "c", "text": {"body": "fix it"},
            "context": {"forwarded": true}});
        assert_eq!(delivered(&contact, &forwarded), []);
        let voice = json!({"from": "491", "id": "d", "type": "audio", "audio": {"id": "8"}});
        assert_eq!(delivered(&contact, &voice), []);
    }
}
