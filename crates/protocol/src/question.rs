//! Questions to a person: durable, asked by an agent anywhere, answered once from any surface.

use std::{fmt, path::PathBuf, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use crate::{
    Confinement, PermissionRequest, SessionId, TaskId,
    short_id::{are_digits, fresh_digits},
};

/// A question's name: `q-` and eight hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(String);

impl QuestionId {
    #[allow(clippy::new_without_default)] // Every call makes another.
    pub fn new() -> Self {
        Self(format!("q-{}", fresh_digits()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuestionId({})", self.0)
    }
}

/// A text is not the id of a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a question; one looks like q-1f3c2b8a")]
pub struct ParseQuestionIdError(String);

impl FromStr for QuestionId {
    type Err = ParseQuestionIdError;
    fn from_str(text: &str) -> Result<Self, ParseQuestionIdError> {
        match text.strip_prefix("q-") {
            Some(digits) if are_digits(digits) => Ok(Self(text.to_owned())),
            _ => Err(ParseQuestionIdError(text.to_owned())),
        }
    }
}

impl Serialize for QuestionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for QuestionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// A question as it stands on record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub id: QuestionId,
    /// The conversation of the agent that asks.
    pub session_id: SessionId,
    /// The task of that agent; none for the agent a person talks to.
    pub task_id: Option<TaskId>,
    /// The project whose people may answer.
    pub project_root: PathBuf,
    /// Tells it from the others of its session: whoever asks again finds the same question.
    pub key: String,
    #[serde(flatten)]
    pub request: QuestionRequest,
    pub asked_at: Timestamp,
    /// Not answered until then, it counts as answered with no.
    pub expires_at: Timestamp,
    pub status: QuestionStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The surface the answer came from, or `time limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStatus {
    Open,
    Answered,
    /// Whoever asked does not need to know any more: the call was stopped, or the task is over.
    Withdrawn,
}

impl QuestionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QuestionRequest {
    /// May this tool call run?
    Permission(PermissionRequest),
    /// What is meant? Answered with a text.
    Clarification(ClarificationRequest),
    /// An MCP server wants values that only a person can give.
    Elicitation(ElicitationRequest),
}

impl QuestionRequest {
    /// In one line, for lists.
    pub fn summary(&self) -> String {
        match self {
            Self::Permission(asked) => format!("{}: {}", asked.tool, first_line(&asked.summary)),
            Self::Clarification(asked) => first_line(&asked.text).to_owned(),
            Self::Elicitation(asked) => {
                format!("{}: {}", asked.server, first_line(&asked.message))
            }
        }
    }

    /// Whether an answer fits, and why not.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        match (self, answer) {
            (_, Answer::No { .. }) | (Self::Clarification(_), Answer::Text { .. }) => Ok(()),
            (Self::Permission(asked), answer) => asked.check(answer),
            (Self::Elicitation(asked), Answer::Form { content }) => asked.check(content),
            (Self::Clarification(_), _) => Err("the answer is a text, or no".to_owned()),
            (Self::Elicitation(asked), _) => Err(asked.expected()),
        }
    }
}

impl QuestionRequest {
    /// Reads what a person typed: `y`, `always`, `n` or `no, because …`, and the changes that
    /// `PermissionRequest` knows; a text; or the values of a form, `name=value
    /// name=value`. The error says what is wanted.
    pub fn parse_answer(&self, typed: &str) -> Result<Answer, String> {
        let typed = typed.trim();
        let answer = match self {
            Self::Clarification(_) if typed.is_empty() => Answer::No { reason: None },
            Self::Clarification(_) => Answer::Text {
                text: typed.to_owned(),
            },
            Self::Permission(asked) => asked.parse_answer(typed)?,
            Self::Elicitation(asked) => match refusal(typed) {
                Some(no) => no,
                None => Answer::Form {
                    content: asked.parse_form(typed)?,
                },
            },
        };
        self.check(&answer)?;
        Ok(answer)
    }

    /// Whether the answer lets a command run without a sandbox: only the user at a terminal of the
    /// machine decides that.
    pub fn lets_run_unconfined(&self, answer: &Answer) -> bool {
        let open = Some(Confinement::Unavailable);
        let off = Some(Confinement::SwitchedOff);
        let is_yes = !matches!(answer, Answer::No { .. });
        match self {
            Self::Permission(asked) => {
                is_yes && (asked.confinement == open || asked.confinement == off)
            }
            Self::Clarification(_) | Self::Elicitation(_) => false,
        }
    }

    /// The rules that an answer keeps for later sessions.
    pub fn rules_to_keep<'a>(&'a self, answer: &'a Answer) -> Option<&'a [String]> {
        match (self, answer) {
            (Self::Permission(asked), Answer::Always) => Some(&asked.suggested_rules),
            (Self::Permission(_), Answer::AlwaysBy { rules }) => Some(rules),
            _ => None,
        }
    }
}

/// `n`, `no` or nothing, and a reason after it.
pub(crate) fn refusal(typed: &str) -> Option<Answer> {
    let (word, reason) = typed
        .split_once([' ', ','])
        .map_or((typed, ""), |(word, reason)| (word, reason.trim()));
    if !matches!(word, "" | "n" | "no") {
        return None;
    }
    let reason = (!reason.is_empty()).then(|| format!("the user says: {reason}"));
    Some(Answer::No { reason })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClarificationRequest {
    /// What the agent wants to know.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationRequest {
    /// The MCP server that asks.
    pub server: String,
    /// What it wants to know.
    pub message: String,
    /// JSON Schema of the values: an object of strings, numbers, booleans and choices.
    pub schema: Value,
}

impl ElicitationRequest {
    /// The names of the values, and whether each is required.
    pub fn fields(&self) -> Vec<(&str, bool)> {
        let required: Vec<&str> = match self.schema.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flat_map(Map::keys);
        names
            .map(|name| (name.as_str(), required.contains(&name.as_str())))
            .collect()
    }

    /// A value as its field's type wants it, from what a person typed.
    pub fn value(&self, name: &str, text: &str) -> Result<Value, String> {
        let field = self
            .schema
            .pointer(&format!("/properties/{}", escaped(name)));
        let Some(field) = field else {
            return Err(format!("there is no field `{name}`; {}", self.expected()));
        };
        let value = match field.get("type").and_then(Value::as_str) {
            Some("boolean") => match text {
                "true" | "yes" => Value::Bool(true),
                "false" | "no" => Value::Bool(false),
                _ => return Err(format!("`{name}` is true or false, not `{text}`")),
            },
            Some("integer") => text
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| format!("`{name}` is a whole number, not `{text}`"))?,
            Some("number") => text
                .parse::<f64>()
                .map(Value::from)
                .map_err(|_| format!("`{name}` is a number, not `{text}`"))?,
            _ => Value::String(text.to_owned()),
        };
        match field.get("enum").and_then(Value::as_array) {
            Some(choices) if !choices.contains(&value) => {
                let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
                Err(format!("`{name}` is one of {}", choices.join(", ")))
            }
            _ => Ok(value),
        }
    }

    /// A value ends where the next field begins, so it may have spaces. With one field its name can
    /// be left out.
    fn parse_form(&self, typed: &str) -> Result<Map<String, Value>, String> {
        let fields = self.fields();
        let starts = |word: &str| {
            let name = word.split_once('=')?.0;
            fields
                .iter()
                .find(|(known, _)| *known == name)
                .map(|_| name.len())
        };
        if let [(only, _)] = fields[..]
            && starts(typed).is_none()
        {
            let value = self.value(only, typed)?;
            return Ok(Map::from_iter([(only.to_owned(), value)]));
        }
        let mut texts: Vec<(String, String)> = Vec::new();
        for word in typed.split(' ') {
            match (starts(word), texts.last_mut()) {
                (Some(length), _) => {
                    texts.push((word[..length].to_owned(), word[length + 1..].to_owned()));
                }
                (None, Some((_, value))) => *value = format!("{value} {word}"),
                (None, None) if matches!(word, "y" | "yes") && fields.is_empty() => {}
                (None, None) => return Err(self.expected()),
            }
        }
        let values = texts.into_iter().map(|(name, text)| {
            let value = self.value(&name, text.trim())?;
            Ok((name, value))
        });
        values.collect()
    }

    fn check(&self, content: &Map<String, Value>) -> Result<(), String> {
        let missing = |&(name, required): &(&str, bool)| required && !content.contains_key(name);
        match self.fields().iter().find(|field| missing(field)) {
            Some((name, _)) => Err(format!("`{name}` is missing; {}", self.expected())),
            None => Ok(()),
        }
    }

    fn expected(&self) -> String {
        let fields: Vec<String> = self
            .fields()
            .into_iter()
            .map(|(name, required)| match required {
                true => format!("{name}=…"),
                false => format!("[{name}=…]"),
            })
            .collect();
        match fields.is_empty() {
            true => "answer yes or no".to_owned(),
            false => format!("the answer is {}, or no", fields.join(" ")),
        }
    }
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The user's answer. The serialised form is stable: variants and fields may be added, never renamed
/// or removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// This time.
    Once,
    /// This time, with another input: a new call, which the rules may still deny.
    OnceWith {
        /// All of it, in the form that the tool takes.
        input: Value,
    },
    /// This time, without some hunks of the change.
    OnceWithout {
        /// The change that was shown, by its id.
        change: String,
        /// The numbers of the refused hunks, from 1.
        refused: Vec<usize>,
    },
    /// This time, and from now on by the suggested rules.
    Always,
    /// This time, and from now on by these rules, which the user wrote.
    AlwaysBy { rules: Vec<String> },
    /// No; the model is told why, if a reason is given.
    No {
        /// In the user's words.
        reason: Option<String>,
    },
    /// To a clarification.
    Text { text: String },
    /// To an elicitation.
    Form { content: Map<String, Value> },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn elicitation() -> ElicitationRequest {
        ElicitationRequest {
            server: "kit".to_owned(),
            message: "Which account?\nThe work or the private one".to_owned(),
            schema: json!({
                "type": "object",
                "properties": {
                    "account": {"type": "string", "enum": ["work", "private"]},
                    "days": {"type": "integer"},
                    "keep/it": {"type": "boolean"},
                },
                "required": ["account"],
            }),
        }
    }

    #[test]
    fn ids_are_read_back_and_others_refused() {
        let id = QuestionId::new();
        assert_eq!(id.as_str().parse(), Ok(id));
        for text in ["", "q-", "q-123", "a-12345678", "q-1234567g", "q-123456789"] {
            assert!(text.parse::<QuestionId>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_of_a_form_have_the_type_of_their_field() {
        let asked = elicitation();
        assert_eq!(asked.value("account", "work"), Ok(json!("work")));
        assert_eq!(asked.value("days", "3"), Ok(json!(3)));
        assert_eq!(asked.value("keep/it", "yes"), Ok(json!(true)));
        assert_eq!(
            asked.value("days", "three"),
            Err("`days` is a whole number, not `three`".to_owned())
        );
        assert_eq!(
            asked.value("account", "other"),
            Err("`account` is one of \"work\", \"private\"".to_owned())
        );
        assert_eq!(
            asked.value("colour", "red"),
            Err(
                "there is no field `colour`; the answer is account=… [days=…] [keep/it=…], or no"
                    .to_owned()
            )
        );
    }

    #[test]
    fn what_a_person_types_becomes_an_answer() {
        let asked = QuestionRequest::Elicitation(elicitation());
        let content = json!({"account": "work", "days": 3});
        assert_eq!(
            asked.parse_answer("account=work days=3"),
            Ok(Answer::Form {
                content: content.as_object().unwrap().clone()
            })
        );
        assert_eq!(asked.parse_answer("n"), Ok(Answer::No { reason: None }));
        assert!(asked.parse_answer("work").is_err());
        assert!(asked.parse_answer("days=3").is_err());
        let one = QuestionRequest::Elicitation(ElicitationRequest {
            schema: json!({"properties": {"name": {"type": "string"}}, "required": ["name"]}),
            ..elicitation()
        });
        for typed in ["Ann Lee", "name=Ann Lee"] {
            let content = json!({"name": "Ann Lee"});
            let content = content.as_object().unwrap().clone();
            assert_eq!(one.parse_answer(typed), Ok(Answer::Form { content }));
        }
    }

    #[test]
    fn an_answer_must_fit_its_question() {
        let asked = QuestionRequest::Elicitation(elicitation());
        let form = |content: Value| Answer::Form {
            content: content.as_object().unwrap().clone(),
        };
        assert_eq!(asked.check(&form(json!({"account": "work"}))), Ok(()));
        assert_eq!(asked.check(&Answer::No { reason: None }), Ok(()));
        assert!(asked.check(&form(json!({"days": 3}))).is_err());
        assert!(asked.check(&Answer::Once).is_err());
        let asked = QuestionRequest::Clarification(ClarificationRequest {
            text: "which file?".to_owned(),
        });
        let text = "a.rs".to_owned();
        assert_eq!(asked.check(&Answer::Text { text }), Ok(()));
        assert!(asked.check(&Answer::Always).is_err());
    }
}
