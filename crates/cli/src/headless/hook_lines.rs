//! Lines about hooks that run: `hook_started` and `hook_response`.

use codespar_policy::hooks::HookEventKind;
use codespar_protocol::EntryId;
use codespar_runtime::{HookEnd, HookObserver, HookOutcome, RunningHook};
use serde_json::{Value, json};

use crate::{printer, signals::Signals};

/// Of which hooks there are lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookEvents {
    All,
    /// Those that clients are told of in any case.
    SessionStart,
}

/// Prints them.
pub(crate) struct HookLines {
    events: HookEvents,
    signals: Signals,
}

impl HookLines {
    pub(crate) fn new(events: HookEvents, signals: Signals) -> Self {
        Self { events, signals }
    }

    fn line(&self, subtype: &str, run: &RunningHook, fields: Value) {
        let mut line = json!({
            "type": "system", "subtype": subtype, "hook_id": run.id, "hook_name": run.name,
            "hook_event": run.event.as_str(), "session_id": run.session, "uuid": EntryId::new(),
        });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        if let Err(error) = printer::json(&line.to_string()) {
            self.signals.write_failed(&error);
        }
    }
}

impl HookObserver for HookLines {
    fn wants(&self, event: HookEventKind) -> bool {
        self.events == HookEvents::All || event == HookEventKind::SessionStart
    }

    fn started(&self, run: &RunningHook) {
        self.line("hook_started", run, json!({}));
    }

    fn ended(&self, run: &RunningHook, end: &HookEnd) {
        let outcome = match end.outcome {
            HookOutcome::Success => "success",
            HookOutcome::Error => "error",
            HookOutcome::Cancelled => "cancelled",
        };
        let output = match end.stdout.is_empty() {
            true => &end.stderr,
            false => &end.stdout,
        };
        let mut fields = json!({
            "output": output, "stdout": end.stdout, "stderr": end.stderr, "outcome": outcome,
        });
        if let Some(code) = end.exit_code {
            fields["exit_code"] = json!(code);
        }
        self.line("hook_response", run, fields);
    }
}
