//! Puts questions of agents and MCP servers to the client: `can_use_tool` and `elicitation`.
//!
//! A yes of the client counts as one of the user. It is weighed by the agent like any other: a
//! changed input is inspected and decided on again, and a rule that denies holds. A client that is
//! gone, or answers with an error, has said no.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use codespar_agent::{Approver, NobodyThere};
use codespar_policy::{Mode, Rule, RuleKind, RuleSource};
use codespar_protocol::{
    Answer, Confinement, ElicitationRequest, PermissionRequest, Question, QuestionRequest,
};
use codespar_runtime::{Project, remember_rules};
use codespar_tasks::Respondent;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::client::Client;
use crate::args;

/// The turn under way, for those who may stop it.
#[derive(Clone, Default)]
pub(super) struct CurrentTurn(Arc<Mutex<Option<CancellationToken>>>);

impl CurrentTurn {
    /// From here on an answer with `interrupt` stops this turn.
    pub(super) fn begin(&self, cancel: CancellationToken) {
        *self.0.lock() = Some(cancel);
    }

    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }

    pub(super) fn stop(&self) {
        if let Some(cancel) = &*self.0.lock() {
            cancel.cancel();
        }
    }
}

/// Whether the client wants to be asked about calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prompts {
    ToClient,
    ToNobody,
}

/// Whether a client may switch permissions off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bypass {
    Possible,
    Refused,
}

/// A mode that a client wants.
pub(super) fn wanted_mode(name: &str, bypass: Bypass) -> Result<Mode, String> {
    let mode = args::mode(name)?;
    if mode == Mode::BypassPermissions && bypass == Bypass::Refused {
        return Err(
            "bypassPermissions needs --allow-dangerously-skip-permissions when the session starts"
                .to_owned(),
        );
    }
    Ok(mode)
}

/// Asks the client.
pub(super) struct ClientQuestions {
    pub(super) client: Client,
    pub(super) prompts: Prompts,
    pub(super) bypass: Bypass,
    pub(super) turn: CurrentTurn,
    /// Known when the project is open. Weak: the hub of the project owns who answers, and a strong
    /// reference here would keep both for ever.
    pub(super) project: OnceLock<Weak<Project>>,
}

/// What `can_use_tool` is answered with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    behavior: String,
    updated_input: Option<Value>,
    #[serde(default)]
    updated_permissions: Option<Vec<PermissionChange>>,
    message: Option<String>,
    #[serde(default)]
    interrupt: bool,
}

/// A change of rules or mode that comes with a yes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionChange {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    rules: Option<Vec<ClientRule>>,
    behavior: Option<String>,
    mode: Option<String>,
    destination: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientRule {
    tool_name: String,
    rule_content: Option<String>,
}

impl ClientRule {
    fn text(&self) -> String {
        match &self.rule_content {
            Some(content) => format!("{}({content})", self.tool_name),
            None => self.tool_name.clone(),
        }
    }
}

#[async_trait]
impl Respondent for ClientQuestions {
    async fn answer(&self, question: Question) -> Answer {
        let agent = question.task_id.as_ref().map(ToString::to_string);
        match &question.request {
            QuestionRequest::Permission(asked) if self.prompts == Prompts::ToNobody => {
                NobodyThere.ask(&question.key, asked.clone()).await
            }
            QuestionRequest::Permission(asked) => {
                let answer = self.permission(asked, agent).await;
                checked(&question.request, answer)
            }
            QuestionRequest::Elicitation(asked) => {
                checked(&question.request, self.elicitation(asked).await)
            }
            QuestionRequest::Clarification(_) => no("the client answers no questions of this kind"),
        }
    }

    fn name(&self) -> &'static str {
        "client"
    }
}

fn no(reason: impl Into<String>) -> Answer {
    Answer::No {
        reason: Some(reason.into()),
    }
}

/// An answer that does not fit is a no that says so. A program may not let commands run where no
/// sandbox works: nobody may be looking. The user's own settings can switch the sandbox off.
fn checked(request: &QuestionRequest, answer: Answer) -> Answer {
    let is_missing = matches!(request, QuestionRequest::Permission(asked)
        if asked.confinement == Some(Confinement::Unavailable));
    if is_missing && request.lets_run_unconfined(&answer) {
        return no(
            "no sandbox works here, and a client cannot allow a command without one; \
                   `codespar doctor` says what is missing",
        );
    }
    match request.check(&answer) {
        Ok(()) => answer,
        Err(why) => no(format!("the answer of the client cannot be used: {why}")),
    }
}

impl ClientQuestions {
    /// Sends everything that the client needs to decide without knowing our tools: the input, a
    /// title, why it is asked, and the rules that would make such a call free. An error of the
    /// client, or silence until it is gone, is a no.
    async fn permission(&self, asked: &PermissionRequest, agent: Option<String>) -> Answer {
        let mut request = json!({
            "subtype": "can_use_tool",
            "tool_name": asked.tool,
            "input": asked.input,
            "tool_use_id": asked.tool_use_id,
            "permission_suggestions": suggestions(&asked.suggested_rules),
            "decision_reason": asked.reason,
            "title": format!("{}: {}", asked.tool, asked.summary),
            "display_name": asked.tool,
            "description": asked.summary,
        });
        if let Some(agent) = agent {
            request["agent_id"] = json!(agent);
        }
        if let Some(path) = self.blocked_path(asked) {
            request["blocked_path"] = json!(path);
        }
        let verdict = match self.client.ask(request).await {
            Ok(verdict) => verdict,
            Err(why) => return no(format!("the client gave no answer: {why}")),
        };
        match serde_json::from_value(verdict) {
            Ok(verdict) => self.weigh(verdict, asked),
            Err(error) => no(format!("the answer of the client cannot be read: {error}")),
        }
    }

    /// The file outside of the project that the call is about.
    fn blocked_path(&self, asked: &PermissionRequest) -> Option<String> {
        let project = self.project.get()?.upgrade()?;
        let root = &project.dir.root;
        let fields = ["file_path", "path", "notebook_path"];
        let path = fields
            .iter()
            .find_map(|name| asked.input.get(name)?.as_str())?;
        let path = std::path::Path::new(path);
        (path.is_absolute() && !path.starts_with(root)).then(|| path.display().to_string())
    }

    /// Changes of rules count only with a yes. One that cannot be made is told to the client and
    /// does not turn the yes into a no: the call itself was allowed.
    fn weigh(&self, verdict: Verdict, asked: &PermissionRequest) -> Answer {
        if verdict.behavior != "allow" {
            if verdict.interrupt {
                self.turn.stop();
            }
            return Answer::No {
                reason: verdict.message.filter(|text| !text.trim().is_empty()),
            };
        }
        for change in verdict.updated_permissions.into_iter().flatten() {
            if let Err(why) = self.change(&change) {
                self.client.warn(&format!("updatedPermissions: {why}"));
            }
        }
        match verdict.updated_input {
            Some(input) if input != asked.input => Answer::OnceWith { input },
            _ => Answer::Once,
        }
    }

    /// Rules are added and never taken away: what a client allows lifts no rule that denies.
    fn change(&self, change: &PermissionChange) -> Result<(), String> {
        let Some(project) = self.project.get().and_then(Weak::upgrade) else {
            return Err("the session is not open".to_owned());
        };
        match change.kind.as_str() {
            "setMode" => {
                let name = change.mode.as_deref().unwrap_or_default();
                project.mode.set(wanted_mode(name, self.bypass)?);
                Ok(())
            }
            "addRules" => {
                let kind = match change.behavior.as_deref() {
                    Some("allow") => RuleKind::Allow,
                    Some("ask") => RuleKind::Ask,
                    Some("deny") => RuleKind::Deny,
                    other => return Err(format!("the behavior {other:?} is not known")),
                };
                let texts = change.rules.iter().flatten().map(ClientRule::text);
                let texts: Vec<String> = texts.collect();
                let rules = texts.iter().map(|text| Rule::parse(text));
                let rules: Vec<Rule> = rules
                    .collect::<Result<_, _>>()
                    .map_err(|error| error.to_string())?;
                let source = RuleSource::named("the client of this session");
                let in_force = project.rules();
                for rule in rules {
                    in_force.write().add(kind, rule, &source);
                }
                self.keep(&project, kind, change.destination.as_deref(), &texts)
            }
            other => Err(format!("`{other}` is not done here")),
        }
    }

    /// In a file where the client wants that. Only the file of this project that is not shared is
    /// written.
    fn keep(
        &self,
        project: &Project,
        kind: RuleKind,
        destination: Option<&str>,
        texts: &[String],
    ) -> Result<(), String> {
        match destination {
            None | Some("session" | "cliArg") => Ok(()),
            Some("localSettings") if kind == RuleKind::Allow => {
                let kept = remember_rules(&project.dir, texts);
                let kept = kept.map_err(|error| error.to_string())?;
                if let Some(warning) = kept.warning {
                    self.client.warn(&warning);
                }
                Ok(())
            }
            Some(other) => Err(format!(
                "rules hold for this session and are not kept in {other}"
            )),
        }
    }

    /// Anything but an acceptance is a no: an MCP server gets no values that nobody confirmed.
    async fn elicitation(&self, asked: &ElicitationRequest) -> Answer {
        let answer = self.client.ask(json!({
            "subtype": "elicitation",
            "mcp_server_name": asked.server,
            "message": asked.message,
            "mode": "form",
            "requested_schema": asked.schema,
        }));
        match answer.await {
            Ok(answer) if answer["action"] == "accept" => Answer::Form {
                content: match answer.get("content") {
                    Some(Value::Object(content)) => content.clone(),
                    _ => Map::new(),
                },
            },
            Ok(_) => no("the client declined"),
            Err(why) => no(format!("the client gave no answer: {why}")),
        }
    }
}

/// The rules that would make a call free from now on, as a client writes them.
fn suggestions(rules: &[String]) -> Vec<Value> {
    if rules.is_empty() {
        return Vec::new();
    }
    let rules: Vec<Value> = rules
        .iter()
        .map(
            |rule| match rule.strip_suffix(')').and_then(|it| it.split_once('(')) {
                Some((tool, content)) => json!({ "toolName": tool, "ruleContent": content }),
                None => json!({ "toolName": rule }),
            },
        )
        .collect();
    vec![json!({
        "type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings",
    })]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_lets_no_command_run_where_no_sandbox_works() {
        let asked = |confinement| {
            QuestionRequest::Permission(PermissionRequest {
                tool_use_id: "t".into(),
                tool: "Bash".to_owned(),
                summary: "make".to_owned(),
                input: json!({"command": "make"}),
                preview: None,
                change: None,
                confinement: Some(confinement),
                reason: "no rule".to_owned(),
                suggested_rules: Vec::new(),
            })
        };
        let changed = Answer::OnceWith {
            input: json!({"command": "ls"}),
        };
        for answer in [Answer::Once, changed] {
            let missing = checked(&asked(Confinement::Unavailable), answer.clone());
            assert!(matches!(missing, Answer::No { .. }), "{missing:?}");
            for confinement in [Confinement::Sandboxed, Confinement::SwitchedOff] {
                assert_eq!(checked(&asked(confinement), answer.clone()), answer);
            }
        }
    }
}
