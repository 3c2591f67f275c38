//! Hooks at the beginnings and ends: of conversations, prompts, turns and agents.

use std::time::Duration;

use codespar_policy::hooks::{HookEventKind, HookVerdict};
use codespar_protocol::{Message, NoticeLevel};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{AgentHooks, HookRole, for_model};
use crate::{Agent, AgentError, conclude::Ending, stop::Stop};

/// How often in a row hooks may make an agent go on that has come to its end.
const MOST_HELD: u32 = 8;

/// How a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSource {
    /// A new one.
    Startup,
    /// One that is taken up again.
    Resume,
    /// After older turns were summarised.
    Compact,
}

impl SessionSource {
    fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
            Self::Compact => "compact",
        }
    }
}

/// Why a conversation is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEndReason {
    /// Another one begins.
    Clear,
    /// The user leaves.
    Exit,
    /// The run is over.
    Other,
}

impl SessionEndReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Exit => "prompt_input_exit",
            Self::Other => "other",
        }
    }
}

/// Why older turns are summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactTrigger {
    /// The user asked for it.
    Manual,
    /// The context is nearly full.
    Auto,
    /// The provider has refused the conversation as too long. No hook can prevent it.
    Forced,
}

impl AgentHooks {
    /// What is told to the model with a prompt of the user; the error says why it is not sent. The
    /// prompt of a subagent is a word of another agent and not asked about.
    pub(crate) async fn check_prompt(
        &self,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, String> {
        let event = HookEventKind::UserPromptSubmit;
        let is_session = matches!(self.parts.role, HookRole::Session { .. });
        if !is_session || !self.parts.runner.listens(event) {
            return Ok(None);
        }
        let fields = json!({ "prompt": prompt });
        let answer = self.run(event, Vec::new(), fields, cancel).await;
        if answer.verdict == Some(HookVerdict::Deny) {
            let reason = answer.reason.unwrap_or_default();
            return Err(format!("a {event} hook refused the prompt: {reason}"));
        }
        Ok(for_model(event, &answer.context))
    }
}

impl Agent {
    /// The conversation begins, or the agent of a task does: once for each agent that is made. What
    /// hooks have to say to the model comes before the prompt.
    pub(crate) async fn tell_start(&mut self, stop: &Stop) -> Result<(), AgentError> {
        let Some(hooks) = self.parts.hooks.clone() else {
            return Ok(());
        };
        if !hooks.begin() {
            return Ok(());
        }
        match &hooks.parts.role {
            HookRole::Session { source } => self.tell_session_start(*source, stop).await,
            HookRole::Subagent { kind, .. } => {
                let subjects = vec![kind.clone()];
                self.tell(HookEventKind::SubagentStart, subjects, json!({}), stop)
                    .await
            }
        }
    }

    /// Told after a summary, since what hooks said at first may be gone.
    pub(crate) async fn tell_compacted(&mut self, stop: &Stop) -> Result<(), AgentError> {
        let role = self.parts.hooks.as_ref().map(|hooks| &hooks.parts.role);
        match role {
            Some(HookRole::Session { .. }) => {
                self.tell_session_start(SessionSource::Compact, stop).await
            }
            _ => Ok(()),
        }
    }

    async fn tell_session_start(
        &mut self,
        source: SessionSource,
        stop: &Stop,
    ) -> Result<(), AgentError> {
        let fields = json!({"source": source.as_str(), "model": self.parts.choice.id});
        let subjects = vec![source.as_str().to_owned()];
        self.tell(HookEventKind::SessionStart, subjects, fields, stop)
            .await
    }

    /// Runs hooks that can add something to the conversation and stop nothing.
    async fn tell(
        &mut self,
        event: HookEventKind,
        subjects: Vec<String>,
        fields: serde_json::Value,
        stop: &Stop,
    ) -> Result<(), AgentError> {
        let Some(hooks) = self.hooks_of(event).cloned() else {
            return Ok(());
        };
        let answer = hooks.run(event, subjects, fields, stop.token()).await;
        if answer.verdict == Some(HookVerdict::Deny) {
            let reason = answer.reason.unwrap_or_default();
            hooks.notice(NoticeLevel::Warning, format!("{event} hook: {reason}"));
        }
        if let Some(text) = for_model(event, &answer.context) {
            self.say_for_the_user(&text).await?;
        }
        self.record_side_calls().await
    }

    /// The user has sent a prompt. The text for the model that goes with it, or the end of the run:
    /// a prompt that is refused is not put on record.
    pub(crate) async fn submit(
        &mut self,
        prompt: &Message,
        stop: &Stop,
    ) -> Result<Option<String>, Ending> {
        let Some(hooks) = self.hooks_of(HookEventKind::UserPromptSubmit) else {
            return Ok(None);
        };
        let checked = hooks.check_prompt(&prompt.text(), stop.token()).await;
        match (self.take_halt(), checked) {
            (Some(reason), _) | (None, Err(reason)) => Err(Ending::Failed(reason)),
            (None, Ok(added)) => Ok(added),
        }
    }

    /// The agent has come to its end with this answer. True if a hook makes it go on; `held` counts
    /// how often one did.
    pub(crate) async fn is_held_back(
        &mut self,
        answer: &str,
        held: &mut u32,
        stop: &Stop,
    ) -> Result<bool, AgentError> {
        let role = self.parts.hooks.as_ref().map(|hooks| &hooks.parts.role);
        let (event, subjects) = match role {
            None => return Ok(false),
            Some(HookRole::Session { .. }) => (HookEventKind::Stop, Vec::new()),
            Some(HookRole::Subagent { kind, .. }) => {
                (HookEventKind::SubagentStop, vec![kind.clone()])
            }
        };
        let Some(hooks) = self.hooks_of(event).cloned() else {
            return Ok(false);
        };
        let mut fields = json!({
            "stop_hook_active": *held > 0,
            "last_assistant_message": answer,
        });
        if event == HookEventKind::SubagentStop {
            fields["agent_transcript_path"] = json!(hooks.transcript.path());
        }
        let answer = hooks.run(event, subjects, fields, stop.token()).await;
        self.record_side_calls().await?;
        if answer.halt.is_some() || answer.verdict != Some(HookVerdict::Deny) {
            // The turn ends here in any case.
            self.take_halt();
            return Ok(false);
        }
        if *held >= MOST_HELD {
            let text = format!("{event} hooks wanted to go on {held} times in a row; it ends here");
            hooks.notice(NoticeLevel::Warning, text);
            return Ok(false);
        }
        *held += 1;
        let texts: Vec<String> = answer.reason.into_iter().chain(answer.context).collect();
        let text = for_model(event, &texts);
        let text = text.unwrap_or_else(|| format!("A {event} hook wants you to go on."));
        self.say_for_the_user(&text).await?;
        Ok(true)
    }

    /// Whether older turns may be summarised.
    pub(crate) async fn may_compact(&self, trigger: CompactTrigger, stop: &Stop) -> bool {
        let event = HookEventKind::PreCompact;
        let Some(hooks) = self.hooks_of(event) else {
            return true;
        };
        let word = match trigger {
            CompactTrigger::Manual => "manual",
            CompactTrigger::Auto | CompactTrigger::Forced => "auto",
        };
        let fields = json!({"trigger": word, "custom_instructions": ""});
        let answer = hooks
            .run(event, vec![word.to_owned()], fields, stop.token())
            .await;
        if answer.verdict != Some(HookVerdict::Deny) {
            return true;
        }
        let reason = answer.reason.unwrap_or_default();
        let (told, may) = match trigger {
            CompactTrigger::Forced => (
                "the conversation is too long and is summarised anyway",
                true,
            ),
            _ => ("older turns are not summarised", false),
        };
        hooks.notice(
            NoticeLevel::Warning,
            format!("a {event} hook refused ({reason}); {told}"),
        );
        may
    }

    /// The conversation is left. Hooks are told if they were told of its beginning. Those that have
    /// not ended by themselves after `limit` are killed; they have limits of their own besides.
    pub async fn end_session(&self, reason: SessionEndReason, limit: Duration) {
        let event = HookEventKind::SessionEnd;
        let Some(hooks) = self.hooks_of(event) else {
            return;
        };
        let is_session = matches!(hooks.parts.role, HookRole::Session { .. });
        if !is_session || hooks.begin() {
            return;
        }
        let fields = json!({"reason": reason.as_str()});
        let subjects = vec![reason.as_str().to_owned()];
        let never = CancellationToken::new();
        let told = hooks.run(event, subjects, fields, &never);
        let _ = tokio::time::timeout(limit, told).await;
    }
}
