//! The three output formats, fed by the one stream of events.
//!
//! ```text
//! text          the final text on standard output; warnings on standard error
//! json          the result line at the end
//! stream-json   an init line, a line per event, the result line
//! ```
//!
//! An error of writing is kept and cancels the run: there is no use in paying for output that is
//! lost.

use codespar_protocol::{Event, NoticeLevel, Outcome, RunResult, SessionId, retry_text};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::lines;
use std::sync::Arc;

use crate::{args::OutputFormat, error::CommandError, printer, signals::Signals, style};
use codespar_runtime::{Project, Session};

/// Prints a run as it goes.
///
/// Called from any thread that emits an event; the lock keeps lines whole.
pub(crate) struct Printer {
    format: OutputFormat,
    verbose: bool,
    session: SessionId,
    /// The first line of `stream-json`, made while the session is at hand.
    init: Value,
    /// The first failure to write; it stops the run.
    failed: Mutex<Option<std::io::Error>>,
    signals: Signals,
}

impl Printer {
    /// A printer for the session.
    pub(crate) fn new(
        format: OutputFormat,
        verbose: bool,
        project: &Arc<Project>,
        session: &Session,
        signals: Signals,
    ) -> Result<Self, CommandError> {
        let id = session.transcript.session();
        let kinds: Vec<&str> = project
            .hub
            .kinds()
            .iter()
            .map(|kind| kind.name.as_str())
            .collect();
        let init = json!({
            "type": "system",
            "subtype": "init",
            "session_id": id,
            "cwd": project.dir.cwd,
            "model": project.provider.choice.id,
            "provider": project.provider.model.provider(),
            "tools": project.tool_names(session),
            "agents": kinds,
            "permissionMode": project.mode.get(),
            "mcp_servers": project.mcp.statuses(),
            "resumed": session.is_resumed,
            "uuid": codespar_protocol::EntryId::new(),
        });
        Ok(Self {
            format,
            verbose,
            session: id,
            init,
            failed: Mutex::new(None),
            signals,
        })
    }

    /// Before the first event. A write that fails here ends the command before the model is called.
    pub(crate) fn begin(&self, notices: &[String]) -> Result<(), CommandError> {
        if self.format == OutputFormat::StreamJson {
            self.line(&self.init.to_string());
        }
        for text in notices {
            self.event(&Event::Notice {
                level: NoticeLevel::Warning,
                text: text.clone(),
            });
        }
        self.check()
    }

    /// A line of JSON in `stream-json`; in the other formats a line on standard error for what
    /// [`progress`] shows.
    pub(crate) fn event(&self, event: &Event) {
        if self.format == OutputFormat::StreamJson {
            if let Some(line) = lines::line(event, self.session) {
                self.line(&line);
            }
            return;
        }
        if let Some(text) = progress(event, self.verbose) {
            printer::err(format_args!("{text}"));
        }
    }

    /// The end.
    ///
    /// In `stream-json` the result line was an event already. On failure the command to resume is
    /// shown in every format, on standard error.
    pub(crate) fn finish(&self, result: &RunResult) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::StreamJson => {}
            OutputFormat::Json => self.line(&lines::result(result)),
            OutputFormat::Text if result.outcome == Outcome::Success => {
                let text = result.result.trim_end();
                self.keep_failure(|| printer::out(format_args!("{text}\n")));
            }
            OutputFormat::Text => {
                printer::err(format_args!(
                    "{} {}",
                    style::error("codespar:"),
                    result.result
                ));
            }
        }
        if result.outcome != Outcome::Success {
            let text = format!("Resume with: codespar -p --resume {}", result.session_id);
            printer::err(format_args!("{}", style::faint(text)));
        }
        self.check()
    }

    fn line(&self, line: &str) {
        self.keep_failure(|| printer::json(line));
    }

    /// Only the first failure is kept, and after it nothing more is written.
    fn keep_failure(&self, write: impl FnOnce() -> std::io::Result<()>) {
        let mut failed = self.failed.lock();
        if failed.is_none() {
            *failed = write().err();
            if let Some(error) = &*failed {
                match error.kind() {
                    std::io::ErrorKind::BrokenPipe => self.signals.output_closed(),
                    _ => self.signals.token().cancel(),
                }
            }
        }
    }

    /// Takes the failure, so it is reported once.
    fn check(&self) -> Result<(), CommandError> {
        match self.failed.lock().take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

/// What a person sees of an event on stderr: warnings always, the rest when asked for.
fn progress(event: &Event, verbose: bool) -> Option<String> {
    match event {
        Event::Notice {
            level: NoticeLevel::Warning,
            text,
        } => Some(style::warning(text)),
        Event::PermissionDenied(denial) => Some(style::warning(format!(
            "{} was denied: {}",
            denial.tool_name, denial.reason
        ))),
        Event::Retrying {
            attempt,
            delay_ms,
            reason,
        } => Some(style::warning(retry_text(*attempt, *delay_ms, reason))),
        Event::Notice { text, .. } if verbose => Some(style::faint(text)),
        Event::ToolStarted { tool, summary, .. } if verbose => {
            Some(format!("{} {summary}", style::strong(tool)))
        }
        Event::ToolFinished {
            tool,
            is_error,
            duration_ms,
            ..
        } if verbose => {
            let word = if *is_error { "failed" } else { "done" };
            Some(style::faint(format!("  {tool} {word} in {duration_ms} ms")))
        }
        Event::Compacted { tokens_before, .. } if verbose => Some(style::faint(format!(
            "older turns were summarised at {tokens_before} tokens"
        ))),
        _ => None,
    }
}
