//! Questions that are no permission, as choices that a client can show.
//!
//! The protocol lets an agent ask for one of several options. A clarification whose options are
//! numbered is that, and so is a form with at most one value if there are few values to choose from.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse,
};
use codespar_channels::numbered_options;
use codespar_protocol::{Answer, ElicitationRequest, QuestionRequest};
use codespar_tui::QuestionReply;
use serde_json::{Map, Value};

use crate::printer;

const DECLINE: &str = "no";
/// A longer list is no choice that an editor shows well.
const MOST: usize = 20;

/// An answer, and what the user reads.
#[derive(Debug, PartialEq)]
pub(super) struct AnswerChoice {
    label: String,
    answer: Answer,
}

/// The answers to choose from; none where a question wants more than a choice.
pub(super) fn choices(request: &QuestionRequest) -> Vec<AnswerChoice> {
    let mut choices = match request {
        QuestionRequest::Permission(_) => Vec::new(),
        QuestionRequest::Clarification(asked) => numbered_options(&asked.text)
            .into_iter()
            .map(|text| AnswerChoice {
                label: text.clone(),
                answer: Answer::Text { text },
            })
            .collect(),
        QuestionRequest::Elicitation(asked) => of_form(asked),
    };
    choices.retain(|choice| request.check(&choice.answer).is_ok());
    match choices.len() {
        0..=MOST => choices,
        _ => Vec::new(),
    }
}

fn of_form(asked: &ElicitationRequest) -> Vec<AnswerChoice> {
    let form = |label: String, content: Map<String, Value>| AnswerChoice {
        label,
        answer: Answer::Form { content },
    };
    let name = match asked.fields()[..] {
        [] => return vec![form("Accept".to_owned(), Map::new())],
        [(name, _)] => name,
        _ => return Vec::new(),
    };
    let values = values(&asked.schema["properties"][name]).into_iter();
    let choices =
        values.map(|(label, value)| form(label, Map::from_iter([(name.to_owned(), value)])));
    choices.collect()
}

/// The values of a field with their titles: `enum` with or without `enumNames`, a list of constants,
/// or a boolean.
fn values(field: &Value) -> Vec<(String, Value)> {
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(values) = field["enum"].as_array() {
        let named = values.iter().enumerate().map(|(index, value)| {
            let title = field["enumNames"][index].as_str();
            let title = title.map_or_else(|| shown(value), str::to_owned);
            (title, value.clone())
        });
        return named.collect();
    }
    let constants = field["oneOf"].as_array().or(field["anyOf"].as_array());
    if let Some(constants) = constants {
        let named = constants.iter().filter_map(|one| {
            let value = one.get("const")?;
            let title = one["title"].as_str();
            Some((
                title.map_or_else(|| shown(value), str::to_owned),
                value.clone(),
            ))
        });
        return named.collect();
    }
    match field["type"].as_str() {
        Some("boolean") => vec![
            ("Yes".to_owned(), Value::Bool(true)),
            ("No".to_owned(), Value::Bool(false)),
        ],
        _ => Vec::new(),
    }
}

/// By their numbers from 1, and one to decline.
pub(super) fn options(choices: &[AnswerChoice]) -> Vec<PermissionOption> {
    let offered = choices.iter().enumerate().map(|(index, choice)| {
        let label = printer::plain(&choice.label).into_owned();
        let kind = PermissionOptionKind::AllowOnce;
        PermissionOption::new((index + 1).to_string(), label, kind)
    });
    let decline = PermissionOption::new(DECLINE, "Decline", PermissionOptionKind::RejectOnce);
    offered.chain([decline]).collect()
}

/// An option that was not offered is a no.
pub(super) fn reply(
    mut choices: Vec<AnswerChoice>,
    response: &RequestPermissionResponse,
) -> QuestionReply {
    let RequestPermissionOutcome::Selected(selected) = &response.outcome else {
        return QuestionReply::Interrupted;
    };
    let number: Option<usize> = selected.option_id.0.parse().ok();
    let chosen = number.filter(|number| (1..=choices.len()).contains(number));
    QuestionReply::Answer(match chosen {
        Some(number) => choices.swap_remove(number - 1).answer,
        None if &*selected.option_id.0 == DECLINE => Answer::No { reason: None },
        None => Answer::No {
            reason: Some("the editor chose an option that was not offered".to_owned()),
        },
    })
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::SelectedPermissionOutcome;
    use codespar_protocol::ClarificationRequest;
    use serde_json::json;

    use super::*;

    fn form(properties: &Value) -> QuestionRequest {
        QuestionRequest::Elicitation(ElicitationRequest {
            server: "s".to_owned(),
            message: "m".to_owned(),
            schema: json!({"type": "object", "properties": properties}),
        })
    }

    fn labels(request: &QuestionRequest) -> Vec<String> {
        let choices = choices(request).into_iter();
        choices.map(|choice| choice.label).collect()
    }

    #[test]
    fn a_question_with_few_answers_is_a_choice_among_them() {
        let asked = QuestionRequest::Clarification(ClarificationRequest {
            text: "Where?\n1. in login.ts\n2. in session.ts".to_owned(),
        });
        assert_eq!(labels(&asked), ["in login.ts", "in session.ts"]);
        let colours =
            json!({"c": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}});
        assert_eq!(labels(&form(&colours)), ["Red", "Blue"]);
        let titled = json!({"c": {"oneOf": [{"const": "r", "title": "Red"}, {"const": "b"}]}});
        assert_eq!(labels(&form(&titled)), ["Red", "b"]);
        assert_eq!(
            labels(&form(&json!({"sure": {"type": "boolean"}}))),
            ["Yes", "No"]
        );
        assert_eq!(labels(&form(&json!({}))), ["Accept"]);
    }

    #[test]
    fn what_wants_more_than_a_choice_is_none() {
        let free = QuestionRequest::Clarification(ClarificationRequest {
            text: "What is it called?".to_owned(),
        });
        let two = json!({"a": {"type": "boolean"}, "b": {"type": "boolean"}});
        let many: Vec<usize> = (0..=MOST).collect();
        for request in [
            free,
            form(&json!({"name": {"type": "string"}})),
            form(&two),
            form(&json!({"n": {"enum": many}})),
        ] {
            assert!(choices(&request).is_empty(), "{request:?}");
        }
    }

    #[test]
    fn only_an_option_that_was_offered_is_an_answer() {
        let asked = form(&json!({"c": {"enum": ["r", "b"]}}));
        let chosen = |id: &str| {
            let outcome = SelectedPermissionOutcome::new(id.to_owned());
            let outcome = RequestPermissionOutcome::Selected(outcome);
            reply(choices(&asked), &RequestPermissionResponse::new(outcome))
        };
        let content = Map::from_iter([("c".to_owned(), json!("b"))]);
        assert_eq!(chosen("2"), QuestionReply::Answer(Answer::Form { content }));
        for id in ["0", "3", "b", "no", ""] {
            let reply = chosen(id);
            assert!(
                matches!(reply, QuestionReply::Answer(Answer::No { .. })),
                "{id}: {reply:?}"
            );
        }
        assert_eq!(options(&choices(&asked)).len(), 3);
    }
}
