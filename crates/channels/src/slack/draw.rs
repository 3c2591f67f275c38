//! Messages in Slack's own form.

use serde_json::{Value, json};

use crate::{Outbound, OutboundKind, outgoing::pieces, text::shortened};

/// A section takes 3,000 characters, of which the text may have more once it is escaped.
const MOST_OF_SECTION: usize = 2_900;
/// A message takes 50 blocks and some 13,000 characters; the core sends less.
const MOST_SECTIONS: usize = 4;
/// Slack takes 75 characters on a button.
const MOST_OF_LABEL: usize = 70;

/// The body of `chat.postMessage` and `chat.update`, without channel and thread. The key is kept
/// with the message as metadata, by which it is found again after a crash.
pub(super) fn body(key: &str, message: &Outbound) -> Value {
    let mut text = escaped(&message.text);
    if let Some(mention) = &message.mention {
        text = format!("<@{}> {text}", mention.id);
    }
    if message.kind == OutboundKind::Question {
        for choice in &message.choices {
            text.push_str(&format!("\n{}. {}", choice.value, escaped(&choice.label)));
        }
    }
    let sections = pieces(&text, MOST_OF_SECTION, MOST_SECTIONS);
    let section = |text: &String| {
        json!({
            "type": "section",
            "text": {"type": "mrkdwn", "text": text, "verbatim": true},
        })
    };
    let mut blocks: Vec<Value> = sections.iter().map(section).collect();
    if !message.choices.is_empty() {
        let buttons = message.choices.iter().enumerate().map(|(index, choice)| {
            let label = shortened(&choice.label, MOST_OF_LABEL);
            json!({
                "type": "button",
                "action_id": format!("codespar-{index}"),
                "text": {"type": "plain_text", "text": label},
                "value": choice.value,
            })
        });
        let buttons: Vec<Value> = buttons.collect();
        blocks.push(json!({"type": "actions", "elements": buttons}));
    }
    json!({
        "text": text,
        "blocks": blocks,
        "metadata": {"event_type": "codespar_message", "event_payload": {"key": key}},
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// The begin of an answer as the text of a stream, which is markdown of the usual kind. Each is the
/// begin of the next, as long as the texts are.
pub(super) fn draft(message: &Outbound) -> String {
    let text = escaped(&message.text);
    match &message.mention {
        Some(mention) => format!("<@{}> {text}", mention.id),
        None => text,
    }
}

/// The three characters that Slack gives a meaning to.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addressee, ReplyChoice};

    #[test]
    fn only_the_addressee_is_mentioned() {
        let message = Outbound {
            kind: OutboundKind::Question,
            mention: Some(Addressee {
                id: "U1".to_owned(),
                name: "ann".to_owned(),
            }),
            text: "<!channel> a & b <@U2>".to_owned(),
            choices: vec![ReplyChoice {
                label: "Yes".to_owned(),
                value: "1".to_owned(),
            }],
        };
        let body = body("k", &message);
        assert_eq!(
            body["text"],
            "<@U1> &lt;!channel&gt; a &amp; b &lt;@U2&gt;\n1. Yes"
        );
        assert_eq!(body["blocks"][1]["elements"][0]["value"], "1");
        assert_eq!(body["metadata"]["event_payload"]["key"], "k");
    }
}
