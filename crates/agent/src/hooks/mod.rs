//! Hooks in the life of an agent: when they are asked, what they are told, and what becomes of
//! their answers.
//!
//! The loop knows a [`HookRunner`] and nothing of commands, addresses or settings. Another runner
//! may ask a client over a protocol instead. Where no hook listens to an event nothing is built for
//! it, so an agent without hooks does what it did before there were any.
//!
//! ```text
//! turns    a conversation, prompt, turn or agent begins or ends; older turns are summarised
//! calls    a call is decided on, put to the user, has ended
//! ```
//!
//! A hook can make a decision stricter. What it allows counts where an allow rule would, and never
//! against a rule that denies or asks, the mode, or a missing sandbox.

mod calls;
mod transcript_file;
mod turns;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use codespar_policy::{
    Redactor, SharedMode,
    hooks::{HookAnswer, HookEventKind},
};
use codespar_protocol::{Event, NoticeLevel, SessionId};
use codespar_tools::Context;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use self::transcript_file::TranscriptFile;
pub use self::turns::{CompactTrigger, SessionEndReason, SessionSource};
use crate::{Agent, Sink};

/// An event for hooks.
#[derive(Debug, Clone)]
pub struct HookCall {
    pub event: HookEventKind,
    /// What matchers are compared with: the names of a tool, the kind of a start, …
    pub subjects: Vec<String>,
    /// All that hooks are told, as one object.
    pub input: Value,
    /// Where the agent stands.
    pub cwd: PathBuf,
}

/// Runs the hooks that an event concerns.
#[async_trait]
pub trait HookRunner: Send + Sync {
    /// Whether any hook listens to the event. Asked often; nothing is done for it.
    fn listens(&self, event: HookEventKind) -> bool;

    /// Runs them, and gives what their answers come to. Always comes to an answer: a hook that
    /// cannot be run is a warning in it, and a refusal where [`HookEventKind::fails_closed`] says so.
    /// Hooks under way end when `cancel` is cancelled.
    async fn run(&self, call: HookCall, cancel: &CancellationToken) -> HookAnswer;
}

/// Whose hooks they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookRole {
    /// The agent of a session.
    Session {
        /// How the conversation begins.
        source: SessionSource,
    },
    /// The agent of a task.
    Subagent {
        /// The task.
        id: String,
        /// The kind of agent.
        kind: String,
    },
}

/// What an agent needs for its hooks.
pub struct AgentHooksParts {
    pub runner: Arc<dyn HookRunner>,
    /// The session at the top: hooks of its agents know it by this one.
    pub session: SessionId,
    pub role: HookRole,
    /// Where the conversation is written for hooks to read.
    pub transcript: PathBuf,
    pub mode: SharedMode,
    pub context: Arc<Context>,
    /// Takes secrets out of what hooks say.
    pub redactor: Arc<Redactor>,
    /// Hears of what they have to say to the user.
    pub sink: Sink,
}

/// Asks the hooks that its settings name at the events of one agent, and writes the transcript
/// that they are pointed to.
pub struct AgentHooks {
    parts: AgentHooksParts,
    transcript: TranscriptFile,
    /// Hooks were told that the conversation began.
    is_started: AtomicBool,
    /// A hook has ended the run, for this reason.
    halt: Mutex<Option<String>>,
}

impl AgentHooks {
    pub fn new(parts: AgentHooksParts) -> Self {
        Self {
            transcript: TranscriptFile::new(parts.transcript.clone()),
            parts,
            is_started: AtomicBool::new(false),
            halt: Mutex::new(None),
        }
    }

    /// Runs the hooks of an event; `fields` are what it adds to the fields that all events have.
    /// What they say to the user is told at once, without secrets.
    async fn run(
        &self,
        event: HookEventKind,
        subjects: Vec<String>,
        fields: Value,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        let call = HookCall {
            event,
            subjects,
            input: self.input(event, fields),
            cwd: self.parts.context.cwd(),
        };
        let answer = self.parts.runner.run(call, cancel).await;
        let answer = answer.map_texts(|text| self.parts.redactor.redact(&text).into_owned());
        for text in &answer.warnings {
            self.notice(NoticeLevel::Warning, text.clone());
        }
        for text in &answer.messages {
            self.notice(NoticeLevel::Info, text.clone());
        }
        if let Some(reason) = &answer.halt {
            let mut halt = self.halt.lock();
            halt.get_or_insert_with(|| format!("stopped by a {event} hook: {reason}"));
        }
        answer
    }

    fn input(&self, event: HookEventKind, fields: Value) -> Value {
        let mut input = Map::new();
        let common = json!({
            "session_id": self.parts.session,
            "transcript_path": self.transcript.path(),
            "cwd": self.parts.context.cwd(),
            "permission_mode": self.parts.mode.get().to_string(),
            "hook_event_name": event.as_str(),
        });
        let of_agent = match &self.parts.role {
            HookRole::Session { .. } => Value::Null,
            HookRole::Subagent { id, kind } => json!({"agent_id": id, "agent_type": kind}),
        };
        for part in [common, of_agent, fields] {
            if let Value::Object(part) = part {
                input.extend(part);
            }
        }
        Value::Object(input)
    }

    pub(crate) fn notice(&self, level: NoticeLevel, text: String) {
        (self.parts.sink)(Event::Notice { level, text });
    }

    /// True the first time.
    fn begin(&self) -> bool {
        !self.is_started.swap(true, Ordering::SeqCst)
    }
}

impl Agent {
    /// The hooks, if one of them listens to the event; the file of the conversation is then as the
    /// conversation is now.
    fn hooks_of(&self, event: HookEventKind) -> Option<&Arc<AgentHooks>> {
        let hooks = self.parts.hooks.as_ref()?;
        if !hooks.parts.runner.listens(event) {
            return None;
        }
        hooks
            .transcript
            .write(&self.transcript, hooks.parts.session);
        Some(hooks)
    }

    /// Whether hooks have a say in calls before they are made.
    pub(crate) fn has_hooks_before_calls(&self) -> bool {
        let hooks = self.parts.hooks.as_ref();
        hooks.is_some_and(|hooks| hooks.parts.runner.listens(HookEventKind::PreToolUse))
    }

    /// Why a hook has ended the run, once.
    pub(crate) fn take_halt(&self) -> Option<String> {
        self.parts.hooks.as_ref()?.halt.lock().take()
    }
}

/// What a hook says to the model, marked as such: it is no word of the user. It cannot end the mark
/// or begin another, since hooks may repeat what they have read.
fn for_model(event: HookEventKind, texts: &[String]) -> Option<String> {
    let text = texts.join("\n").replace("</hook", "&lt;/hook");
    let text = text.replace("<hook", "&lt;hook");
    (!text.trim().is_empty()).then(|| format!("<hook event=\"{event}\">\n{text}\n</hook>"))
}
