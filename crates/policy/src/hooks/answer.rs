//! What a hook answers, and what several answers come to.
//!
//! A hook answers by its exit code and by what it prints:
//!
//! ```text
//! exit 0            standard output: a JSON object, or plain text
//! exit 2            no; standard error is the reason
//! exit 126, 127     the command could not be run
//! any other         a warning; nothing is stopped
//! ```
//!
//! Of several answers the strictest wins: deny, then ask, then allow. An object that cannot be read
//! is a failure and not "nothing to say": it may have been a refusal.

use serde::Deserialize;
use serde_json::Value;

use crate::hooks::HookEventKind;

/// The longest text that is taken over from a hook. In characters.
const LONGEST_TEXT: usize = 10_000;
/// What a command exits with to refuse.
const REFUSES: i32 = 2;
/// What shells exit with for a program that cannot be executed, or is not there.
const NOT_RUN: [i32; 2] = [126, 127];

/// What ran and what it printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// The exit code.
    pub code: i32,
    pub stdout: String,
    /// Without secrets.
    pub stderr: String,
}

/// A hook that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookFailure {
    /// The script is missing, not executable, the address cannot be reached, …
    #[error("it cannot be run: {0}")]
    NotRun(String),
    #[error("it did not end within {0} s")]
    TimedOut(u64),
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    #[error("it was interrupted")]
    Interrupted,
}

/// What a hook says about what is about to happen. The order is that of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookVerdict {
    /// It need not be asked about, unless a rule says so.
    Allow,
    /// The user decides.
    Ask,
    /// It must not happen. After the fact: something is wrong with it.
    Deny,
}

/// One answer, of a hook or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookAnswer {
    /// Nothing to say if absent.
    pub verdict: Option<HookVerdict>,
    /// Told to the model, or to the user where they are asked.
    pub reason: Option<String>,
    /// In place of the input of the call.
    pub updated_input: Option<Value>,
    /// For the model.
    pub context: Vec<String>,
    /// The whole run ends, for this reason.
    pub halt: Option<String>,
    /// For the user.
    pub messages: Vec<String>,
    /// What went wrong with hooks, for the user.
    pub warnings: Vec<String>,
}

/// The object as it is written. Unknown fields are for others.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
    /// As `prompt` hooks answer.
    ok: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
    /// Of `PermissionRequest`.
    decision: Option<Decided>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Decided {
    behavior: Option<String>,
    message: Option<String>,
    updated_input: Option<Value>,
    interrupt: bool,
}

impl HookAnswer {
    /// A refusal.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self {
            verdict: Some(HookVerdict::Deny),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// What a command that ended says.
    pub fn of_output(event: HookEventKind, output: &HookOutput) -> Result<Self, HookFailure> {
        let said = cut(output.stderr.trim());
        match output.code {
            0 => Self::of_text(event, &output.stdout),
            REFUSES if said.is_empty() => Ok(Self::deny("refused without a reason")),
            REFUSES => Ok(Self::deny(said)),
            code if NOT_RUN.contains(&code) => {
                let why = match code {
                    126 => "the command is not executable",
                    _ => "the command was not found",
                };
                Err(HookFailure::NotRun(match said.is_empty() {
                    true => why.to_owned(),
                    false => format!("{why}: {said}"),
                }))
            }
            code => Ok(Self {
                warnings: vec![match said.is_empty() {
                    true => format!("it ended with exit code {code}"),
                    false => format!("it ended with exit code {code}: {said}"),
                }],
                ..Self::default()
            }),
        }
    }

    /// What a text says that a hook printed, an address answered or a model wrote.
    pub fn of_text(event: HookEventKind, text: &str) -> Result<Self, HookFailure> {
        let text = text.trim().trim_start_matches('\u{feff}');
        if text.starts_with('{') {
            let written: Written = serde_json::from_str(text)
                .map_err(|error| HookFailure::Unreadable(error.to_string()))?;
            return written.answer();
        }
        let mut answer = Self::default();
        if event.takes_plain_text() && !text.is_empty() {
            answer.context.push(cut(text));
        }
        Ok(answer)
    }

    /// What answers of several hooks come to, in the order of the hooks. A changed input is that of
    /// the last hook that gives one, and then only those count as allowing the call that have given
    /// the same: the others have seen another call.
    pub fn merge(answers: impl IntoIterator<Item = Self>) -> Self {
        let answers: Vec<Self> = answers.into_iter().collect();
        let changed = answers.iter().rev().find_map(|a| a.updated_input.clone());
        let mut merged = Self {
            verdict: answers
                .iter()
                .filter(|answer| {
                    answer.verdict != Some(HookVerdict::Allow) || answer.updated_input == changed
                })
                .filter_map(|answer| answer.verdict)
                .max(),
            updated_input: changed,
            ..Self::default()
        };
        let mut reasons: Vec<String> = Vec::new();
        for answer in answers {
            if answer.verdict == merged.verdict {
                reasons.extend(answer.reason);
            }
            merged.context.extend(answer.context);
            merged.messages.extend(answer.messages);
            merged.warnings.extend(answer.warnings);
            merged.halt = merged.halt.or(answer.halt);
        }
        merged.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        merged
    }

    /// The same with every text changed by `change`: secrets taken out.
    #[must_use]
    pub fn map_texts(mut self, change: impl Fn(String) -> String) -> Self {
        self.reason = self.reason.map(&change);
        self.halt = self.halt.map(&change);
        for texts in [&mut self.context, &mut self.messages, &mut self.warnings] {
            for text in texts {
                *text = change(std::mem::take(text));
            }
        }
        self
    }
}

impl Written {
    fn answer(self) -> Result<HookAnswer, HookFailure> {
        let specific = self.hook_specific_output.unwrap_or_default();
        let decided = specific.decision.unwrap_or_default();
        let words = [
            self.decision,
            specific.permission_decision,
            decided.behavior,
            self.ok
                .map(|ok| if ok { "none" } else { "block" }.to_owned()),
        ];
        let mut verdict = None;
        for word in words.into_iter().flatten() {
            verdict = verdict.max(read_verdict(&word)?);
        }
        let reason = specific
            .permission_decision_reason
            .or(decided.message)
            .or(self.reason);
        let halted = self.goes_on == Some(false) || decided.interrupt;
        let halt = halted.then(|| {
            let said = self.stop_reason.or_else(|| reason.clone());
            cut(&said.unwrap_or_else(|| "a hook stopped the run".to_owned()))
        });
        let full = |text: &String| !text.trim().is_empty();
        Ok(HookAnswer {
            verdict,
            reason: reason.filter(full).map(|text| cut(&text)),
            updated_input: specific.updated_input.or(decided.updated_input),
            context: specific
                .additional_context
                .filter(full)
                .map(|text| cut(&text))
                .into_iter()
                .collect(),
            halt,
            messages: self
                .system_message
                .filter(full)
                .map(|text| cut(&text))
                .into_iter()
                .collect(),
            warnings: Vec::new(),
        })
    }
}

/// `approve` and `block` are the older words. A word that is none is a failure: it was meant as
/// something.
fn read_verdict(word: &str) -> Result<Option<HookVerdict>, HookFailure> {
    match word {
        "allow" | "approve" => Ok(Some(HookVerdict::Allow)),
        "ask" => Ok(Some(HookVerdict::Ask)),
        "deny" | "block" => Ok(Some(HookVerdict::Deny)),
        "none" | "defer" | "" => Ok(None),
        other => Err(HookFailure::Unreadable(format!(
            "`{}` is not a decision: allow, ask or deny",
            cut(other)
        ))),
    }
}

/// The beginning of a text, in whole characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: i32, stdout: &str, stderr: &str) -> Result<HookAnswer, String> {
        of(HookEventKind::PreToolUse, code, stdout, stderr)
    }

    fn of(event: HookEventKind, code: i32, out: &str, err: &str) -> Result<HookAnswer, String> {
        let output = HookOutput {
            code,
            stdout: out.to_owned(),
            stderr: err.to_owned(),
        };
        HookAnswer::of_output(event, &output).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_exit_code_decides_and_standard_error_says_why() {
        assert_eq!(answer(2, "", "no rm\n"), Ok(HookAnswer::deny("no rm")));
        // What is printed beside a refusal changes nothing.
        let allow = r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#;
        assert_eq!(answer(2, allow, "no"), Ok(HookAnswer::deny("no")));
        assert_eq!(answer(0, "", "chatter"), Ok(HookAnswer::default()));
        assert_eq!(
            answer(1, "", "boom").unwrap().warnings,
            ["it ended with exit code 1: boom"]
        );
        assert_eq!(
            answer(127, "", "sh: x: not found"),
            Err("it cannot be run: the command was not found: sh: x: not found".to_owned())
        );
        assert!(answer(126, "", "").unwrap_err().contains("not executable"));
    }

    #[test]
    fn every_field_of_the_object_is_read() {
        let text = r#"{"continue": false, "stopReason": "enough", "systemMessage": "hello", "suppressOutput": true,
            "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
            "permissionDecisionReason": "look first", "updatedInput": {"command": "ls"}, "additionalContext": "note"}}"#;
        assert_eq!(
            answer(0, text, "").unwrap(),
            HookAnswer {
                verdict: Some(HookVerdict::Ask),
                reason: Some("look first".to_owned()),
                updated_input: Some(serde_json::json!({"command": "ls"})),
                context: vec!["note".to_owned()],
                halt: Some("enough".to_owned()),
                messages: vec!["hello".to_owned()],
                warnings: Vec::new(),
            }
        );
        let old = answer(0, r#"{"decision": "block", "reason": "tests fail"}"#, "");
        assert_eq!(old, Ok(HookAnswer::deny("tests fail")));
        let request = r#"{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "not now", "interrupt": true}}}"#;
        let request = answer(0, request, "").unwrap();
        assert_eq!(request.verdict, Some(HookVerdict::Deny));
        assert_eq!(request.halt.as_deref(), Some("not now"));
        let judged = answer(0, r#"{"ok": false, "reason": "unsafe"}"#, "");
        assert_eq!(judged, Ok(HookAnswer::deny("unsafe")));
        assert_eq!(answer(0, r#"{"ok": true}"#, ""), Ok(HookAnswer::default()));
    }

    #[test]
    fn an_object_that_cannot_be_read_is_a_failure() {
        for text in [
            r#"{"decision": "#,
            r#"{"decision": "perhaps"}"#,
            r#"{"hookSpecificOutput": {"permissionDecision": 7}}"#,
        ] {
            let failed = answer(0, text, "").unwrap_err();
            assert!(
                failed.starts_with("its answer cannot be read: "),
                "{failed}"
            );
        }
    }

    #[test]
    fn plain_text_is_for_the_model_where_a_conversation_or_prompt_begins() {
        for event in [HookEventKind::UserPromptSubmit, HookEventKind::SessionStart] {
            let told = of(event, 0, "the branch is red\n", "").unwrap();
            assert_eq!(told.context, ["the branch is red"]);
        }
        assert_eq!(answer(0, "done\n", ""), Ok(HookAnswer::default()));
        let long = of(HookEventKind::SessionStart, 0, &"é".repeat(20_000), "").unwrap();
        assert_eq!(long.context[0].chars().count(), LONGEST_TEXT + 1);
    }

    #[test]
    fn of_several_answers_the_strictest_wins() {
        let one = |verdict, reason: &str| HookAnswer {
            verdict: Some(verdict),
            reason: Some(reason.to_owned()),
            ..HookAnswer::default()
        };
        let (allow, ask) = (one(HookVerdict::Allow, "fine"), one(HookVerdict::Ask, "hm"));
        let deny = || HookAnswer::deny("no");
        let merged = HookAnswer::merge([allow.clone(), deny(), ask.clone(), deny()]);
        assert_eq!(merged.verdict, Some(HookVerdict::Deny));
        assert_eq!(merged.reason.as_deref(), Some("no; no"));
        let merged = HookAnswer::merge([allow.clone(), HookAnswer::default(), ask]);
        assert_eq!(merged.verdict, Some(HookVerdict::Ask));
        assert_eq!(HookAnswer::merge([]), HookAnswer::default());
        // Whoever allowed the call has not seen what another hook made of it.
        let changed = HookAnswer {
            updated_input: Some(serde_json::json!({"command": "rm -rf /"})),
            ..HookAnswer::default()
        };
        let merged = HookAnswer::merge([allow.clone(), changed.clone()]);
        assert_eq!(merged.verdict, None);
        assert_eq!(merged.updated_input, changed.updated_input);
        let own = HookAnswer {
            updated_input: changed.updated_input,
            ..allow
        };
        let merged = HookAnswer::merge([own, HookAnswer::default()]);
        assert_eq!(merged.verdict, Some(HookVerdict::Allow));
    }
}
