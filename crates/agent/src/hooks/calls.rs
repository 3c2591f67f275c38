//! Hooks around tool calls: before one is decided on, when the user would be asked, and after it
//! has ended.
//!
//! The call on record stays as the model made it. A hook that changes the input makes it a new
//! call: the tool inspects it, and all rules decide on it as if the model had made it.

use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

use codespar_policy::{
    Decision, Mode,
    hooks::{HookAnswer, HookEventKind, HookVerdict},
    normalise,
};
use codespar_protocol::ToolUse;
use codespar_tools::{Intent, Tool, ToolOutput, sandbox::Approval};
use serde_json::{Value, json, value::to_raw_value};
use tokio_util::sync::CancellationToken;

use super::{AgentHooks, for_model};
use crate::{
    Agent,
    permit::Refusal,
    stop::Stop,
    user_answer::{Granted, LeftOpen, UserChanges},
};

/// Fields of inputs that hold the path of a file. Hooks compare them with paths of the project, so
/// they are given whole.
const PATH_FIELDS: [&str; 2] = ["file_path", "notebook_path"];

/// A call as hooks left it.
pub(crate) struct Hooked<'a> {
    /// With the input that is run.
    pub(crate) call: Cow<'a, ToolUse>,
    pub(crate) intent: Intent,
    verdict: Option<HookVerdict>,
    reason: String,
    /// For the model, with the result.
    note: Option<String>,
}

impl<'a> Hooked<'a> {
    fn untouched(call: &'a ToolUse, intent: Intent) -> Self {
        Self {
            call: Cow::Borrowed(call),
            intent,
            verdict: None,
            reason: String::new(),
            note: None,
        }
    }

    /// What rules and hooks together come to. A hook makes a decision stricter; one that allows the
    /// call answers a question that an allow rule could answer, and no other.
    pub(crate) fn decision(&self, by_rules: Decision, mode: Mode) -> Decision {
        let reason = self.reason.clone();
        match (by_rules, self.verdict) {
            (Decision::Allow { .. }, Some(HookVerdict::Ask)) if mode == Mode::DontAsk => {
                Decision::Deny {
                    reason: format!("dontAsk mode asks nobody, and a hook would ask: {reason}"),
                }
            }
            (Decision::Allow { .. }, Some(HookVerdict::Ask)) => Decision::Ask {
                reason,
                suggested: Vec::new(),
            },
            (Decision::Ask { suggested, .. }, Some(HookVerdict::Allow))
                if !suggested.is_empty() =>
            {
                Decision::Allow { reason }
            }
            (by_rules, _) => by_rules,
        }
    }

    /// The grant with what hooks changed: their input, unless the user gave another.
    pub(crate) fn finish(self, mut granted: Granted) -> Granted {
        if let Cow::Owned(changed) = self.call {
            granted.changes.input.get_or_insert(changed.input);
        }
        if let Some(note) = self.note {
            granted.changes.add_note(&note);
        }
        granted
    }
}

impl Agent {
    /// Asks hooks about a call before anything is decided. The error is a refusal.
    pub(crate) async fn before_call<'a>(
        &self,
        call: &'a ToolUse,
        tool: &dyn Tool,
        intent: Intent,
        stop: &Stop,
    ) -> Result<Hooked<'a>, (Intent, Refusal)> {
        let event = HookEventKind::PreToolUse;
        let Some(hooks) = self.hooks_of(event) else {
            return Ok(Hooked::untouched(call, intent));
        };
        let shown = self.shown_input(call);
        let fields = json!({
            "tool_name": tool.name(),
            "tool_input": shown,
            "tool_use_id": call.id,
        });
        let answer = hooks
            .run(event, names(call, tool), fields, stop.token())
            .await;
        let reason = answer.reason.clone().unwrap_or_default();
        if answer.verdict == Some(HookVerdict::Deny) || answer.halt.is_some() {
            let why = answer.halt.filter(|_| reason.is_empty()).unwrap_or(reason);
            let refusal = Refusal::by_hook(format!("a {event} hook refused it: {why}"));
            return Err((intent, refusal));
        }
        let mut hooked = Hooked {
            verdict: answer.verdict,
            reason: format!("a {event} hook: {reason}"),
            note: for_model(event, &answer.context),
            ..Hooked::untouched(call, intent)
        };
        let changed = answer.updated_input.filter(|input| *input != shown);
        if let Some(input) = changed {
            match self.changed_call(call, tool, &input) {
                Ok((call, intent)) => {
                    hooked.call = Cow::Owned(call);
                    hooked.intent = intent;
                    let told = vec![format!("A hook changed the input of this call to {input}.")];
                    let told = for_model(event, &told).into_iter().chain(hooked.note);
                    hooked.note = Some(told.collect::<Vec<_>>().join("\n"));
                }
                Err(why) => {
                    let why =
                        format!("a {event} hook changed its input, which cannot be used: {why}");
                    return Err((hooked.intent, Refusal::by_hook(why)));
                }
            }
        }
        Ok(hooked)
    }

    /// The call with another input, inspected anew.
    fn changed_call(
        &self,
        call: &ToolUse,
        tool: &dyn Tool,
        input: &Value,
    ) -> Result<(ToolUse, Intent), String> {
        if !input.is_object() {
            return Err("the input must be a JSON object".to_owned());
        }
        let input = to_raw_value(input).map_err(|error| error.to_string())?;
        let inspected = tool.inspect(&input, &self.parts.context);
        let intent = inspected.map_err(|error| error.to_string())?;
        Ok((
            ToolUse {
                input,
                ..call.clone()
            },
            intent,
        ))
    }

    /// The user is about to be asked: hooks may answer instead, and hear of it if they do not.
    /// `None` leaves it to the user.
    pub(crate) async fn answered_by_hooks(
        &self,
        call: &ToolUse,
        tool: &dyn Tool,
        intent: &Intent,
        open: &LeftOpen,
        stop: &Stop,
    ) -> Option<Result<Granted, Refusal>> {
        let event = HookEventKind::PermissionRequest;
        if let Some(hooks) = self.hooks_of(event) {
            let suggested: Vec<String> = open.suggested.iter().map(ToString::to_string).collect();
            let fields = json!({
                "tool_name": tool.name(),
                "tool_input": self.shown_input(call),
                "tool_use_id": call.id,
                "permission_suggestions": suggested,
            });
            let answer = hooks
                .run(event, names(call, tool), fields, stop.token())
                .await;
            let reason = answer.reason.clone().unwrap_or_default();
            match answer.verdict {
                Some(HookVerdict::Deny) => {
                    let why = format!("a {event} hook refused it: {reason}");
                    return Some(Err(Refusal::by_hook(why)));
                }
                // What no rule could allow, the user alone can.
                Some(HookVerdict::Allow) if !open.suggested.is_empty() => {
                    return Some(self.allowed_by_hook(call, tool, intent, answer));
                }
                _ => {}
            }
        }
        self.notify_of_question(tool, intent);
        None
    }

    fn allowed_by_hook(
        &self,
        call: &ToolUse,
        tool: &dyn Tool,
        intent: &Intent,
        answer: HookAnswer,
    ) -> Result<Granted, Refusal> {
        let shown = self.shown_input(call);
        let changed = answer.updated_input.filter(|input| *input != shown);
        let refused = |why: String| Refusal::by_hook(format!("a hook changed the call: {why}"));
        let Some(input) = changed else {
            return Ok(Granted {
                intent: intent.clone(),
                approval: Approval::Rules,
                changes: UserChanges::default(),
            });
        };
        let (changed, intent) = self.changed_call(call, tool, &input).map_err(refused)?;
        match self.decide(&call.name, tool, &intent) {
            Decision::Deny { reason } => return Err(refused(reason)),
            Decision::Ask { reason, suggested } if suggested.is_empty() => {
                return Err(refused(reason));
            }
            _ => {}
        }
        let mut changes = UserChanges::with_input(changed.input);
        changes.add_note(&format!(
            "A hook changed the input of this call to {input}."
        ));
        Ok(Granted {
            intent,
            approval: Approval::Rules,
            changes,
        })
    }

    /// Nobody waits for these hooks.
    fn notify_of_question(&self, tool: &dyn Tool, intent: &Intent) {
        let event = HookEventKind::Notification;
        let Some(hooks) = self.hooks_of(event).cloned() else {
            return;
        };
        let kind = "permission_prompt";
        let message = format!(
            "CodeSpar needs your permission to use {}: {}",
            tool.name(),
            intent.summary
        );
        let fields = json!({"message": message, "notification_type": kind});
        tokio::spawn(async move {
            let never = CancellationToken::new();
            hooks
                .run(event, vec![kind.to_owned()], fields, &never)
                .await;
        });
    }

    /// What hooks do when a call that now begins has ended; none if no hook listens.
    pub(crate) fn after_call(&self, call: &ToolUse, tool: &dyn Tool) -> Option<AfterCall> {
        let succeeded = self.hooks_of(HookEventKind::PostToolUse);
        let hooks = succeeded.or_else(|| self.hooks_of(HookEventKind::PostToolUseFailure))?;
        Some(AfterCall {
            hooks: hooks.clone(),
            subjects: names(call, tool),
            tool: tool.name().to_owned(),
            cwd: self.parts.context.cwd(),
        })
    }

    fn shown_input(&self, call: &ToolUse) -> Value {
        shown(call.input.get(), &self.parts.context.cwd())
    }
}

/// An input as hooks see it.
fn shown(input: &str, cwd: &Path) -> Value {
    let mut input: Value = serde_json::from_str(input).unwrap_or_default();
    for field in PATH_FIELDS {
        if let Some(Value::String(path)) = input.get_mut(field) {
            *path = normalise(&cwd.join(&*path)).to_string_lossy().into_owned();
        }
    }
    input
}

/// Every name that a matcher may know the tool by: its own, the one it was called by, and the newer
/// one of the tool for subagents.
fn names(call: &ToolUse, tool: &dyn Tool) -> Vec<String> {
    let mut names = vec![tool.name().to_owned()];
    if call.name != tool.name() {
        names.push(call.name.clone());
    }
    if tool.name() == "Task" && call.name != "Agent" {
        names.push("Agent".to_owned());
    }
    names
}

/// Hooks for the end of one call. Holds nothing of the agent, because calls end beside each other.
pub(crate) struct AfterCall {
    hooks: Arc<AgentHooks>,
    subjects: Vec<String>,
    tool: String,
    /// Where the call began.
    cwd: std::path::PathBuf,
}

impl AfterCall {
    /// The result with what hooks add to it for the model.
    pub(crate) async fn run(
        self,
        call: &ToolUse,
        input: &str,
        output: ToolOutput,
        took: Duration,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        let event = match output.is_error {
            false => HookEventKind::PostToolUse,
            true => HookEventKind::PostToolUseFailure,
        };
        if !self.hooks.parts.runner.listens(event) {
            return output;
        }
        let input = shown(input, &self.cwd);
        let mut fields = json!({
            "tool_name": self.tool,
            "tool_input": input,
            "tool_use_id": call.id,
            "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        let text = output.content.text();
        let text = self.hooks.parts.redactor.redact(&text);
        match event {
            HookEventKind::PostToolUse => {
                fields["tool_response"] = response(&self.tool, &input, &text);
            }
            _ => {
                fields["error"] = json!(text);
                fields["is_interrupt"] = json!(cancel.is_cancelled());
            }
        }
        let answer = self.hooks.run(event, self.subjects, fields, cancel).await;
        let complaint = answer
            .reason
            .filter(|_| answer.verdict == Some(HookVerdict::Deny));
        let texts: Vec<String> = complaint.into_iter().chain(answer.context).collect();
        UserChanges::tell(for_model(event, &texts), output)
    }
}

/// The result under the names that scripts look for, and always as `content`.
fn response(tool: &str, input: &Value, text: &str) -> Value {
    match tool {
        "Bash" => json!({"content": text, "stdout": text, "stderr": "", "interrupted": false}),
        "Write" | "Edit" => {
            json!({"content": text, "filePath": input.get("file_path"), "success": true})
        }
        _ => json!({"content": text}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_whole_so_that_hooks_can_compare_them() {
        let cwd = Path::new("/project/sub");
        let path =
            |text: &str| shown(&json!({"file_path": text}).to_string(), cwd)["file_path"].clone();
        assert_eq!(path("a.txt"), "/project/sub/a.txt");
        assert_eq!(path("../.env"), "/project/.env");
        assert_eq!(path("/etc/passwd"), "/etc/passwd");
        assert_eq!(
            shown(r#"{"command": "ls a"}"#, cwd),
            json!({"command": "ls a"})
        );
    }

    fn hooked(verdict: HookVerdict) -> Decision {
        let intent = Intent {
            summary: String::new(),
            access: Vec::new(),
        };
        let call = ToolUse {
            id: codespar_protocol::ToolUseId("t".to_owned()),
            name: "Bash".to_owned(),
            input: to_raw_value(&json!({})).unwrap(),
            extra: codespar_protocol::RawObject::default(),
        };
        let hooked = Hooked {
            verdict: Some(verdict),
            ..Hooked::untouched(&call, intent)
        };
        hooked.decision(
            Decision::Deny {
                reason: "a rule".to_owned(),
            },
            Mode::Default,
        )
    }

    #[test]
    fn no_answer_of_a_hook_loosens_a_denial() {
        for verdict in [HookVerdict::Allow, HookVerdict::Ask, HookVerdict::Deny] {
            let decision = hooked(verdict);
            assert!(matches!(decision, Decision::Deny { reason } if reason == "a rule"));
        }
    }
}
