//! Choices of a message where people read them: numbered lines beside the buttons.
//!
//! Both say the same text, so whichever way a person answers, the core reads one message.

use crate::{Outbound, OutboundKind};

/// The text, with the choices of a question as numbered lines. Buttons have room for a few
/// characters, some clients show none, and a number is always an answer. A text that lists its
/// choices already stays as it is.
pub(crate) fn with_choices(message: &Outbound) -> String {
    let is_listed = |label: &str| message.text.contains(label);
    let mut text = message.text.clone();
    if message.kind != OutboundKind::Question
        || message.choices.iter().all(|one| is_listed(&one.label))
    {
        return text;
    }
    for choice in &message.choices {
        text.push_str(&format!("\n{}. {}", choice.value, choice.label));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplyChoice;

    #[test]
    fn choices_are_listed_once() {
        let choice = |label: &str, value: &str| ReplyChoice {
            label: label.to_owned(),
            value: value.to_owned(),
        };
        let mut message = Outbound {
            kind: OutboundKind::Question,
            mention: None,
            text: "May I?".to_owned(),
            choices: vec![choice("Yes, once", "1"), choice("No", "2")],
        };
        assert_eq!(with_choices(&message), "May I?\n1. Yes, once\n2. No");
        message.text = with_choices(&message);
        assert_eq!(with_choices(&message), "May I?\n1. Yes, once\n2. No");
        message.kind = OutboundKind::Result;
        message.text = "done".to_owned();
        assert_eq!(with_choices(&message), "done");
    }
}
