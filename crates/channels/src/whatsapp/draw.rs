//! Messages in the form of the Cloud API.

use codespar_store::ThreadRef;
use serde_json::{Value, json};

use crate::{Outbound, choices::with_choices, text::shortened};

/// WhatsApp takes 4,096 characters, and 1,024 above buttons.
const MOST_OF_TEXT: usize = 4_000;
const MOST_ABOVE_BUTTONS: usize = 1_000;
const MOST_BUTTONS: usize = 3;
/// WhatsApp takes 20 characters on a button and 256 with it.
const MOST_OF_LABEL: usize = 19;
const MOST_OF_DATA: usize = 256;

/// The body of a message. With more choices than there are buttons, they are numbered lines only.
pub(super) fn body(at: &ThreadRef, message: &Outbound) -> Value {
    let mut body = json!({
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        // Quotes what the thread began with.
        "context": {"message_id": at.thread},
    });
    // An id of a person has a country before a point; a number has none.
    let field = if at.conversation.contains('.') {
        "recipient"
    } else {
        "to"
    };
    body[field] = json!(at.conversation);
    let text = with_choices(message);
    let count = message.choices.len();
    let has_buttons = (1..=MOST_BUTTONS).contains(&count)
        && text.chars().count() <= MOST_ABOVE_BUTTONS
        && message
            .choices
            .iter()
            .all(|one| one.value.chars().count() <= MOST_OF_DATA);
    if has_buttons {
        let buttons = message.choices.iter().map(|choice| {
            let title = shortened(&choice.label, MOST_OF_LABEL);
            json!({"type": "reply", "reply": {"id": choice.value, "title": title}})
        });
        body["type"] = json!("interactive");
        body["interactive"] = json!({
            "type": "button",
            "body": {"text": text},
            "action": {"buttons": buttons.collect::<Vec<_>>()},
        });
    } else {
        body["type"] = json!("text");
        body["text"] = json!({"body": shortened(&text, MOST_OF_TEXT), "preview_url": false});
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutboundKind, ReplyChoice};

    fn drawn(person: &str, choices: usize) -> Value {
        let at = ThreadRef {
            channel: "whatsapp".to_owned(),
            conversation: person.to_owned(),
            thread: "wamid.1".to_owned(),
        };
        let choice = |number: usize| ReplyChoice {
            label: format!("the one in file number {number}"),
            value: number.to_string(),
        };
        let message = Outbound {
            kind: OutboundKind::Question,
            mention: None,
            text: "Which?".to_owned(),
            choices: (1..=choices).map(choice).collect(),
        };
        body(&at, &message)
    }

    #[test]
    fn three_choices_are_buttons_and_more_are_numbers() {
        let three = drawn("491", 3);
        let buttons = &three["interactive"]["action"]["buttons"];
        assert_eq!(buttons.as_array().unwrap().len(), 3);
        let title = buttons[0]["reply"]["title"].as_str().unwrap();
        assert!(title.chars().count() <= 20, "{title}");
        let four = drawn("491", 4);
        let text = four["text"]["body"].as_str().unwrap();
        assert!(text.ends_with("\n4. the one in file number 4"), "{text}");
        assert_eq!(four.get("interactive"), None);
    }

    #[test]
    fn people_are_written_to_by_what_they_are_known_by() {
        assert_eq!(drawn("491", 0)["to"], "491");
        assert_eq!(drawn("US.1", 0)["recipient"], "US.1");
        assert_eq!(drawn("US.1", 0).get("to"), None);
    }
}
