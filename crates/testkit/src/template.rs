//! Values of the request that a script may speak of: `{{turn}}` and its kin.
//!
//! ```text
//! {{turn}}              number of the turn, from 1
//! {{last_tool_result}}  text of the newest tool result
//! {{last_user_text}}    text of the newest message of the user
//! {{task_id}}           the first task id in that text
//! {{result_task_id}}    the first task id in the newest tool result
//! ```
//!
//! They let a script without state react to what happened: wait for the task that was just
//! announced, or repeat what a command printed. A `task_id` without any id in the text stays as it
//! is, so that a test shows it.

use std::borrow::Cow;

use crate::asked::Asked;

/// Whether the text that holds the template is JSON, where a value must be escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Text,
    Json,
}

/// Puts the values in. What is between braces and not known stays as it is. Values are not looked
/// at again, so a result that contains `{{turn}}` stays as it is.
pub(crate) fn fill<'a>(text: &'a str, asked: &Asked, within: Within) -> Cow<'a, str> {
    if !text.contains("{{") {
        return Cow::Borrowed(text);
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let known = rest.find("}}").and_then(|end| {
            let value = value_of(rest[2..end].trim(), asked)?;
            Some((value, end + 2))
        });
        match known {
            Some((value, length)) => {
                push(&mut filled, &value, within);
                rest = &rest[length..];
            }
            None => {
                // One brace only: in `{{{turn}}` the template starts at the second.
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    Cow::Owned(filled)
}

/// `None` for a name that is not known.
fn value_of<'a>(name: &str, asked: &'a Asked) -> Option<Cow<'a, str>> {
    Some(match name {
        "turn" => Cow::Owned((asked.turn + 1).to_string()),
        "last_tool_result" => Cow::Borrowed(&asked.last_tool_result),
        "last_user_text" => Cow::Borrowed(&asked.last_user_text),
        "result_task_id" => Cow::Borrowed(first_task_id(&asked.last_tool_result)?),
        "task_id" => Cow::Borrowed(first_task_id(&asked.last_user_text)?),
        _ => return None,
    })
}

/// A letter, `-` and eight hexadecimal digits, as the ids of tasks are.
fn first_task_id(text: &str) -> Option<&str> {
    let is_id = |word: &&str| {
        word.split_once('-').is_some_and(|(letter, digits)| {
            letter.len() == 1 && digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit())
        })
    };
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .find(is_id)
}

/// In JSON the value stands within quotes of the script, so it is escaped and gets none of its own.
fn push(filled: &mut String, value: &str, within: Within) {
    match within {
        Within::Text => filled.push_str(value),
        Within::Json => {
            let quoted = serde_json::Value::from(value).to_string();
            filled.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked {
            turn: 2,
            last_tool_result: "a \"b\"\n".to_owned(),
            last_user_text: "go".to_owned(),
            ..Asked::default()
        }
    }

    #[test]
    fn the_first_task_of_the_last_user_text_can_be_named() {
        let asked = Asked {
            last_user_text: "[Message from x]\nt-1f3c2b8a is yours (after b-00000000)".to_owned(),
            ..asked()
        };
        assert_eq!(
            fill("do {{task_id}}", &asked, Within::Text),
            "do t-1f3c2b8a"
        );
    }

    #[test]
    fn known_names_are_replaced_and_others_stay() {
        let text = "{{turn}} {{ last_user_text }} {{unknown}} {{{turn}}} {{";
        assert_eq!(
            fill(text, &asked(), Within::Text),
            "3 go {{unknown}} {3} {{"
        );
    }

    #[test]
    fn a_value_within_json_is_escaped() {
        let text = r#"{"command":"echo {{last_tool_result}}"}"#;
        assert_eq!(
            fill(text, &asked(), Within::Json),
            r#"{"command":"echo a \"b\"\n"}"#
        );
    }
}
