//! Hooks that a client has registered: each is asked by a `hook_callback`.
//!
//! What the client answers is read like the output of a hook of the settings, and has the same
//! weight. A callback that fails counts as one that could not be run: where somebody relies on hooks
//! to refuse things that is a refusal, unless the client has said that its hook may fail.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_agent::{HookCall, HookRunner};
use codespar_policy::hooks::{HookAnswer, HookEventKind, HookFailure, HookMatcher};
use codespar_protocol::EntryId;
use codespar_runtime::{HookEnd, HookObserver, HookOutcome, RunningHook};
use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::client::Client;
use crate::{headless::hook_lines::HookLines, printer};

/// How long a callback may take that says nothing about it.
const USUAL_TIME: Duration = Duration::from_secs(60);
/// The longest time that a callback may ask for. In seconds.
const LONGEST: f64 = 24.0 * 3600.0;

/// What a callback that fails comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    /// As for other hooks of the event.
    Usual,
    Block,
    Continue,
}

/// The callbacks of one matcher.
struct ClientHook {
    event: HookEventKind,
    matcher: HookMatcher,
    callbacks: Vec<String>,
    timeout: Duration,
    on_failure: OnFailure,
}

/// Asks the client.
///
/// All that it has registered, with the client to ask. Hooks of the settings run beside these.
pub(super) struct ClientHooks {
    client: Client,
    hooks: Vec<ClientHook>,
    lines: Arc<HookLines>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    matcher: Option<String>,
    #[serde(default)]
    hook_callback_ids: Vec<String>,
    timeout: Option<f64>,
    on_failure: Option<String>,
}

impl ClientHooks {
    /// Reads what the client registers; `None` where that is nothing. Events that are not known here
    /// never happen, which is told on standard error.
    pub(super) fn read(
        registered: &Value,
        client: &Client,
        lines: &Arc<HookLines>,
    ) -> Result<Option<Self>, String> {
        let none = Map::new();
        let events = registered.as_object().unwrap_or(&none);
        let mut hooks = Vec::new();
        for (name, matchers) in events {
            let Some(event) = HookEventKind::by_name(name) else {
                // For whoever wrote the program, not for its user.
                printer::err(format_args!(
                    "codespar: hooks of the event {name} are never run: there is none here"
                ));
                continue;
            };
            let matchers: Vec<Written> = serde_json::from_value(matchers.clone())
                .map_err(|error| format!("hooks.{name}: {error}"))?;
            for written in matchers {
                hooks.push(hook(event, written).map_err(|error| format!("hooks.{name}: {error}"))?);
            }
        }
        Ok((!hooks.is_empty()).then(|| Self {
            client: client.clone(),
            hooks,
            lines: lines.clone(),
        }))
    }
}

fn hook(event: HookEventKind, written: Written) -> Result<ClientHook, String> {
    let matcher = written.matcher.as_deref().unwrap_or_default();
    let seconds = written.timeout.filter(|seconds| *seconds > 0.0);
    let on_failure = match written.on_failure.as_deref() {
        None => OnFailure::Usual,
        Some("continue") => OnFailure::Continue,
        Some(_) => OnFailure::Block,
    };
    Ok(ClientHook {
        event,
        matcher: HookMatcher::parse(matcher).map_err(|error| error.to_string())?,
        callbacks: written.hook_callback_ids,
        timeout: seconds.map_or(USUAL_TIME, |seconds| {
            Duration::from_secs_f64(seconds.min(LONGEST))
        }),
        on_failure,
    })
}

#[async_trait]
impl HookRunner for ClientHooks {
    fn listens(&self, event: HookEventKind) -> bool {
        self.hooks.iter().any(|hook| hook.event == event)
    }

    async fn run(&self, call: HookCall, cancel: &CancellationToken) -> HookAnswer {
        let subjects = || call.subjects.iter().map(String::as_str);
        let is_meant = |hook: &&ClientHook| {
            hook.event == call.event
                && (call.subjects.is_empty() || hook.matcher.is_about(subjects()))
        };
        let meant = self.hooks.iter().filter(is_meant);
        let runs = meant.flat_map(|hook| {
            let callbacks = hook.callbacks.iter();
            callbacks.map(|id| self.callback(hook, id, &call, cancel))
        });
        HookAnswer::merge(join_all(runs).await)
    }
}

impl ClientHooks {
    async fn callback(
        &self,
        hook: &ClientHook,
        id: &str,
        call: &HookCall,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        let lines = Some(&self.lines).filter(|lines| lines.wants(call.event));
        let run = RunningHook {
            id: EntryId::new(),
            event: call.event,
            name: format!("{}:callback", call.event),
            session: call.input["session_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        if let Some(lines) = lines {
            lines.started(&run);
        }
        let asked = self.asked(hook, id, call, cancel).await;
        if let Some(lines) = lines {
            lines.ended(&run, &end(&asked));
        }
        match asked {
            Ok((answer, _)) => answer,
            Err(failure) => failed(hook, &failure),
        }
    }

    async fn asked(
        &self,
        hook: &ClientHook,
        id: &str,
        call: &HookCall,
        cancel: &CancellationToken,
    ) -> Result<(HookAnswer, String), HookFailure> {
        let request = json!({
            "subtype": "hook_callback",
            "callback_id": id,
            "input": call.input,
            "tool_use_id": call.input.get("tool_use_id"),
        });
        let answer = tokio::select! {
            answer = tokio::time::timeout(hook.timeout, self.client.ask(request)) => answer,
            () = cancel.cancelled() => return Err(HookFailure::Interrupted),
        };
        let answer = answer
            .map_err(|_| HookFailure::TimedOut(hook.timeout.as_secs()))?
            .map_err(HookFailure::NotRun)?;
        let text = match &answer {
            Value::Null => String::new(),
            answer => answer.to_string(),
        };
        let read = HookAnswer::of_text(call.event, &text)?;
        Ok((read, text))
    }
}

fn end(asked: &Result<(HookAnswer, String), HookFailure>) -> HookEnd {
    let (outcome, stdout, stderr) = match asked {
        Ok((_, output)) => (HookOutcome::Success, output.clone(), String::new()),
        Err(HookFailure::Interrupted) => (HookOutcome::Cancelled, String::new(), String::new()),
        Err(failure) => (HookOutcome::Error, String::new(), failure.to_string()),
    };
    HookEnd {
        outcome,
        stdout,
        stderr,
        exit_code: None,
    }
}

fn failed(hook: &ClientHook, failure: &HookFailure) -> HookAnswer {
    let text = format!("{} hook of the client: {failure}", hook.event);
    let blocks = match hook.on_failure {
        OnFailure::Usual => hook.event.fails_closed(),
        OnFailure::Block => true,
        OnFailure::Continue => false,
    };
    let mut answer = match blocks {
        true => HookAnswer::deny(&*text),
        false => HookAnswer::default(),
    };
    if *failure != HookFailure::Interrupted {
        answer.warnings.push(text);
    }
    answer
}
