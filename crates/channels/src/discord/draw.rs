//! Messages in Discord's own form.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::{Outbound, choices::with_choices, text::shortened};

/// Discord takes 2,000 characters as the text, and 4,096 in a box below it.
const MOST_OF_TEXT: usize = 1_900;
const MOST_OF_BOX: usize = 4_000;
/// Discord takes 80 characters on a button and 100 with it, five in a row and five rows.
const MOST_OF_LABEL: usize = 75;
const MOST_OF_DATA: usize = 100;
const IN_A_ROW: usize = 5;
const MOST_ROWS: usize = 5;
/// No previews of links.
const WITHOUT_PREVIEWS: u64 = 1 << 2;

/// The body of a new message and of an edit. Whom it may notify is said every time: an edit without
/// would notify anybody whom its text names.
pub(super) fn body(message: &Outbound) -> Value {
    let mut text = with_choices(message);
    let mut users = Vec::new();
    if let Some(mention) = &message.mention {
        text = format!("<@{}> {text}", mention.id);
        users.push(mention.id.clone());
    }
    let (text, rest) = split(&text);
    let mut body = json!({
        "content": text,
        "allowed_mentions": {"parse": [], "users": users, "replied_user": false},
        "components": rows(message),
    });
    match rest {
        "" => body["flags"] = json!(WITHOUT_PREVIEWS),
        rest => body["embeds"] = json!([{"description": shortened(rest, MOST_OF_BOX)}]),
    }
    body
}

/// What fits into a message, and what goes below it. Cut at the end of a line where there is one.
fn split(text: &str) -> (&str, &str) {
    let Some((end, _)) = text.char_indices().nth(MOST_OF_TEXT) else {
        return (text, "");
    };
    let cut = text[..end].rfind('\n').filter(|at| *at > end / 2);
    let (first, rest) = text.split_at(cut.unwrap_or(end));
    (first, rest.trim_start_matches('\n'))
}

fn rows(message: &Outbound) -> Vec<Value> {
    let buttons: Vec<Value> = message
        .choices
        .iter()
        .filter(|choice| choice.value.chars().count() <= MOST_OF_DATA)
        .map(|choice| {
            let label = shortened(&choice.label, MOST_OF_LABEL);
            json!({"type": 2, "style": 2, "label": label, "custom_id": choice.value})
        })
        .collect();
    let rows = buttons.chunks(IN_A_ROW).take(MOST_ROWS);
    rows.map(|row| json!({"type": 1, "components": row}))
        .collect()
}

/// The same for the same message: Discord makes no second one with it for some minutes.
pub(super) fn nonce(key: &str) -> String {
    let hash = digest(&SHA256, key.as_bytes());
    let bytes = &hash.as_ref()[..12];
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addressee, OutboundKind, ReplyChoice};

    fn message(text: &str) -> Outbound {
        Outbound {
            kind: OutboundKind::Result,
            mention: Some(Addressee {
                id: "7".to_owned(),
                name: "ann".to_owned(),
            }),
            text: text.to_owned(),
            choices: (0..7)
                .map(|number| ReplyChoice {
                    label: format!("No. {number}"),
                    value: number.to_string(),
                })
                .collect(),
        }
    }

    #[test]
    fn only_the_addressee_is_notified_and_buttons_are_in_rows() {
        let body = body(&message("<@8> @everyone"));
        assert_eq!(body["content"], "<@7> <@8> @everyone");
        let allowed = json!({"parse": [], "users": ["7"], "replied_user": false});
        assert_eq!(body["allowed_mentions"], allowed);
        assert_eq!(
            body["components"][0]["components"]
                .as_array()
                .unwrap()
                .len(),
            5
        );
        assert_eq!(body["components"][1]["components"][1]["custom_id"], "6");
    }

    #[test]
    fn a_long_text_goes_on_below() {
        let long = "a line of twenty-two…\n".repeat(150);
        let body = body(&message(&long));
        let (text, rest) = (
            body["content"].as_str().unwrap(),
            &body["embeds"][0]["description"],
        );
        assert!(text.chars().count() <= 2_000);
        let whole = format!("{text}\n{}", rest.as_str().unwrap());
        assert_eq!(whole, format!("<@7> {long}"));
        assert_eq!(body.get("flags"), None, "a box would not be shown with it");
    }

    #[test]
    fn a_nonce_fits_and_is_that_of_its_key() {
        assert_eq!(nonce("a").len(), 24);
        assert_eq!(nonce("a"), nonce("a"));
        assert_ne!(nonce("a"), nonce("b"));
    }
}
