//! Tool calls that a person decides on, and the changes that the person may make to them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, ToolUseId, question::refusal};

/// A tool call that the rules want a person to decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionRequest {
    pub tool_use_id: ToolUseId,
    /// The tool's name.
    pub tool: String,
    /// What it would do, in one line: the command, the path, the address.
    pub summary: String,
    /// The input it would have. Null where no tool call is behind the question.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// What would be written, shortened; for tools that write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The hunks that can be refused; none where there are fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ProposedChange>,
    /// Whether it would be confined; for commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    /// Why it is asked.
    pub reason: String,
    /// The rules that `always` would save; empty when no rule can cover the call.
    pub suggested_rules: Vec<String>,
}

/// Whether a command would run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    Sandboxed,
    /// No sandbox works on this machine.
    Unavailable,
    /// The settings switch it off.
    SwitchedOff,
}

/// A change to a file in parts, as it is shown. The texts are without secrets, so they are not what
/// is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedChange {
    /// Differs for every other text before or after the change.
    pub id: String,
    pub path: String,
    /// In the order of their lines, numbered from 1.
    pub hunks: Vec<ProposedHunk>,
}

/// Neighbouring changed lines with unchanged ones around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedHunk {
    /// Of the old text, from 1.
    pub first_line: usize,
    pub old: String,
    pub new: String,
}

impl PermissionRequest {
    /// Whether an answer fits, and why not. Whether rules are well-formed, and what a changed input
    /// would do, is not known here.
    pub(crate) fn check(&self, answer: &Answer) -> Result<(), String> {
        let no_rule = || Err("no rule can cover this call; answer yes or no".to_owned());
        match answer {
            Answer::Once | Answer::No { .. } => Ok(()),
            Answer::Always | Answer::AlwaysBy { .. } if self.suggested_rules.is_empty() => {
                no_rule()
            }
            Answer::Always => Ok(()),
            Answer::AlwaysBy { .. } | Answer::OnceWith { .. } if self.input.is_null() => {
                Err("nothing can be changed here; answer yes, always or no".to_owned())
            }
            Answer::AlwaysBy { rules } if rules.is_empty() => {
                Err("write a rule after `always`".to_owned())
            }
            Answer::AlwaysBy { .. } => Ok(()),
            Answer::OnceWith { input } if !input.is_object() => {
                Err("the changed input must be a JSON object".to_owned())
            }
            Answer::OnceWith { .. } => Ok(()),
            Answer::OnceWithout { change, refused } => self.check_hunks(change, refused),
            Answer::Text { .. } | Answer::Form { .. } => {
                Err("the answers are yes, always and no".to_owned())
            }
        }
    }

    fn check_hunks(&self, id: &str, refused: &[usize]) -> Result<(), String> {
        let Some(change) = self.change.as_ref().filter(|change| change.id == id) else {
            return Err("this change has no hunks that can be refused".to_owned());
        };
        let count = change.hunks.len();
        if let Some(wrong) = refused.iter().find(|number| !(1..=count).contains(*number)) {
            return Err(format!("there is no hunk {wrong}; there are {count}"));
        }
        match (1..=count).all(|number| refused.contains(&number)) {
            true => Err("without any hunk nothing is left; answer no".to_owned()),
            false => Ok(()),
        }
    }

    /// Reads what a person typed:
    ///
    /// ```text
    /// yes                        always                  no, because …
    /// yes without 2, 3           always Bash(git log *)
    /// yes {"command": "ls"}
    /// ```
    pub(crate) fn parse_answer(&self, typed: &str) -> Result<Answer, String> {
        let (word, rest) = typed
            .split_once(char::is_whitespace)
            .map_or((typed, ""), |(word, rest)| (word, rest.trim()));
        match (word, rest) {
            ("y" | "yes" | "once", "") => Ok(Answer::Once),
            ("a" | "always", "") => Ok(Answer::Always),
            ("a" | "always", rules) => Ok(Answer::AlwaysBy {
                rules: rules.lines().map(|rule| rule.trim().to_owned()).collect(),
            }),
            ("y" | "yes", input) if input.starts_with('{') => {
                let input = serde_json::from_str(input)
                    .map_err(|error| format!("the changed input is not JSON: {error}"))?;
                Ok(Answer::OnceWith { input })
            }
            ("y" | "yes", rest) if rest.starts_with("without") => {
                self.parse_hunks(&rest["without".len()..])
            }
            _ => {
                refusal(typed).ok_or_else(|| "y, a or n; `n because …` tells the model why".into())
            }
        }
    }

    fn parse_hunks(&self, typed: &str) -> Result<Answer, String> {
        let numbers = typed.split([',', ' ']).filter(|part| !part.is_empty());
        let refused: Result<Vec<usize>, String> = numbers
            .map(|part| {
                part.parse()
                    .map_err(|_| format!("`{part}` is not the number of a hunk"))
            })
            .collect();
        let change = self.change.as_ref().map(|change| change.id.clone());
        Ok(Answer::OnceWithout {
            change: change.unwrap_or_default(),
            refused: refused?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::QuestionRequest;

    fn request() -> PermissionRequest {
        let hunk = |first_line: usize| ProposedHunk {
            first_line,
            old: "a\n".to_owned(),
            new: "b\n".to_owned(),
        };
        PermissionRequest {
            tool_use_id: ToolUseId::from("t1"),
            tool: "Edit".to_owned(),
            summary: "a.txt".to_owned(),
            input: json!({"file_path": "a.txt"}),
            preview: None,
            change: Some(ProposedChange {
                id: "c1".to_owned(),
                path: "a.txt".to_owned(),
                hunks: vec![hunk(1), hunk(10), hunk(20)],
            }),
            confinement: None,
            reason: "no rule".to_owned(),
            suggested_rules: vec!["Edit(/a.txt)".to_owned()],
        }
    }

    fn typed(request: PermissionRequest, text: &str) -> Result<Answer, String> {
        QuestionRequest::Permission(request).parse_answer(text)
    }

    #[test]
    fn what_a_person_types_becomes_an_answer() {
        let read = |text: &str| typed(request(), text);
        assert_eq!(read(" y "), Ok(Answer::Once));
        assert_eq!(read("always"), Ok(Answer::Always));
        assert_eq!(
            read("no, use the other file"),
            Ok(Answer::No {
                reason: Some("the user says: use the other file".to_owned())
            })
        );
        assert_eq!(
            read("yes without 1, 3"),
            Ok(Answer::OnceWithout {
                change: "c1".to_owned(),
                refused: vec![1, 3]
            })
        );
        assert_eq!(
            read(r#"yes {"command": "ls -l"}"#),
            Ok(Answer::OnceWith {
                input: json!({"command": "ls -l"})
            })
        );
        assert_eq!(
            read("always Bash(git log *)"),
            Ok(Answer::AlwaysBy {
                rules: vec!["Bash(git log *)".to_owned()]
            })
        );
        for wrong in [
            "maybe",
            "yes please",
            "yes {",
            "yes without x",
            "yes without 4",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_fits_only_what_was_asked() {
        let without = |refused: &[usize]| Answer::OnceWithout {
            change: "c1".to_owned(),
            refused: refused.to_vec(),
        };
        assert_eq!(request().check(&without(&[2])), Ok(()));
        assert_eq!(
            request().check(&without(&[1, 2, 3])),
            Err("without any hunk nothing is left; answer no".to_owned())
        );
        let other = Answer::OnceWithout {
            change: "c2".to_owned(),
            refused: vec![1],
        };
        assert!(request().check(&other).is_err());
        let input = json!("ls");
        assert!(request().check(&Answer::OnceWith { input }).is_err());
        let without_rules = PermissionRequest {
            suggested_rules: Vec::new(),
            ..request()
        };
        assert!(without_rules.check(&Answer::Always).is_err());
        let without_call = PermissionRequest {
            input: Value::Null,
            ..request()
        };
        assert_eq!(without_call.check(&Answer::Always), Ok(()));
        let input = json!({});
        assert!(without_call.check(&Answer::OnceWith { input }).is_err());
        let rules = vec!["Bash".to_owned()];
        assert!(without_call.check(&Answer::AlwaysBy { rules }).is_err());
    }

    #[test]
    fn the_forms_on_record_do_not_change() {
        let forms = [
            (json!({"answer": "once"}), Answer::Once),
            (json!({"answer": "always"}), Answer::Always),
            (
                json!({"answer": "no", "reason": null}),
                Answer::No { reason: None },
            ),
            (
                json!({"answer": "once_with", "input": {"command": "ls"}}),
                Answer::OnceWith {
                    input: json!({"command": "ls"}),
                },
            ),
            (
                json!({"answer": "once_without", "change": "c1", "refused": [2]}),
                Answer::OnceWithout {
                    change: "c1".to_owned(),
                    refused: vec![2],
                },
            ),
            (
                json!({"answer": "always_by", "rules": ["Bash(ls *)"]}),
                Answer::AlwaysBy {
                    rules: vec!["Bash(ls *)".to_owned()],
                },
            ),
        ];
        for (form, answer) in forms {
            assert_eq!(serde_json::to_value(&answer).unwrap(), form);
            assert_eq!(serde_json::from_value::<Answer>(form).unwrap(), answer);
        }
        let old = json!({
            "tool_use_id": "t1", "tool": "Bash", "summary": "ls", "reason": "no rule",
            "suggested_rules": [],
        });
        let read: PermissionRequest = serde_json::from_value(old.clone()).unwrap();
        assert_eq!((&read.change, read.confinement), (&None, None));
        assert_eq!(serde_json::to_value(&read).unwrap(), old);
    }
}
