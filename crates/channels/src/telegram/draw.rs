//! Messages in Telegram's own form.
//!
//! Plain text without a parse mode, so that nothing in it is markup. The buttons carry what pressing
//! them says, which must fit into 64 bytes; a choice that does not is a numbered line only.

use serde_json::{Value, json};

use crate::{Outbound, OutboundKind, choices::with_choices, text::shortened};

/// Telegram takes 4,096.
const MOST_OF_TEXT: usize = 3_900;
const MOST_OF_LABEL: usize = 40;
/// Telegram takes 64 bytes with a button.
const MOST_OF_DATA: usize = 64;

/// The body of `sendMessage` and `editMessageText`, without the chat. The text is plain: nothing in
/// it is read as markup, and the only mention is the one that is marked by its place.
pub(super) fn body(message: &Outbound) -> Value {
    let mut text = with_choices(message);
    let mut entities = Vec::new();
    if let Some(mention) = &message.mention {
        let name = shortened(&mention.name, MOST_OF_LABEL);
        // Telegram counts in UTF-16.
        let length = name.encode_utf16().count();
        if let Ok(id) = mention.id.parse::<i64>() {
            entities.push(json!({
                "type": "text_mention", "offset": 0, "length": length, "user": user(id, &name),
            }));
        }
        text = format!("{name} {text}");
    }
    let mut body = json!({
        "text": shortened(&text, MOST_OF_TEXT),
        "entities": entities,
        "link_preview_options": {"is_disabled": true},
    });
    let buttons = buttons(message);
    if !buttons.is_empty() {
        body["reply_markup"] = json!({"inline_keyboard": buttons});
    }
    body
}

fn user(id: i64, name: &str) -> Value {
    json!({"id": id, "is_bot": false, "first_name": name})
}

/// Rows of buttons: those of a question below each other, since they are sentences.
fn buttons(message: &Outbound) -> Vec<Vec<Value>> {
    let drawn = message
        .choices
        .iter()
        .filter(|choice| choice.value.len() <= MOST_OF_DATA)
        .map(|choice| {
            let label = shortened(&choice.label, MOST_OF_LABEL);
            json!({"text": label, "callback_data": choice.value})
        });
    match message.kind {
        OutboundKind::Question => drawn.map(|button| vec![button]).collect(),
        _ => {
            let row: Vec<Value> = drawn.collect();
            if row.is_empty() {
                Vec::new()
            } else {
                vec![row]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addressee, ReplyChoice};

    #[test]
    fn the_addressee_is_mentioned_and_buttons_that_do_not_fit_are_left_out() {
        let choice = |label: &str, value: &str| ReplyChoice {
            label: label.to_owned(),
            value: value.to_owned(),
        };
        let message = Outbound {
            kind: OutboundKind::Result,
            mention: Some(Addressee {
                id: "7".to_owned(),
                name: "Änn🙂".to_owned(),
            }),
            text: "*done* <b>it</b>".to_owned(),
            choices: vec![
                choice("Merge", "merge PR #1"),
                choice("Long", &"x".repeat(65)),
            ],
        };
        let body = body(&message);
        assert_eq!(body["text"], "Änn🙂 *done* <b>it</b>");
        assert_eq!(body["entities"][0]["length"], 5);
        assert_eq!(body["entities"][0]["user"]["id"], 7);
        let keyboard = json!([[{"text": "Merge", "callback_data": "merge PR #1"}]]);
        assert_eq!(body["reply_markup"]["inline_keyboard"], keyboard);
        assert_eq!(body.get("parse_mode"), None);
    }
}
