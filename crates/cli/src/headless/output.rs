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
use serde_json::Value;

use super::{
    init::{self, InitParts},
    lines::{self, ResultParts, UnknownCost},
    partial::Partials,
};
use std::sync::Arc;

use crate::{args::OutputFormat, error::CommandError, printer, signals::Signals, style};
use codespar_runtime::Project;

/// Prints a run as it goes.
///
/// Called from any thread that emits an event; the lock keeps lines whole.
pub(crate) struct Printer {
    format: OutputFormat,
    verbose: bool,
    session: SessionId,
    project: Arc<Project>,
    /// None where pieces of answers are not wanted.
    partials: Option<Partials>,
    unknown_cost: UnknownCost,
    /// The first failure to write; it stops the run.
    failed: Mutex<Option<std::io::Error>>,
    signals: Signals,
}

/// What a printer is made from.
pub(crate) struct PrinterParts {
    pub(crate) format: OutputFormat,
    pub(crate) verbose: bool,
    pub(crate) session: SessionId,
    pub(crate) project: Arc<Project>,
    pub(crate) partials: Option<Partials>,
    pub(crate) unknown_cost: UnknownCost,
    pub(crate) signals: Signals,
}

impl Printer {
    /// A printer for the session.
    pub(crate) fn new(parts: PrinterParts) -> Self {
        Self {
            format: parts.format,
            verbose: parts.verbose,
            session: parts.session,
            project: parts.project,
            partials: parts.partials,
            unknown_cost: parts.unknown_cost,
            failed: Mutex::new(None),
            signals: parts.signals,
        }
    }

    /// The first line of a run or a turn.
    pub(crate) fn init(&self, parts: &InitParts) {
        if self.format == OutputFormat::StreamJson {
            self.line(&init::init(&self.project, parts).to_string());
        }
    }

    /// Before the first event. A write that fails here ends the command before the model is called.
    pub(crate) fn begin(&self, notices: &[String]) -> Result<(), CommandError> {
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
            if let Some(partials) = &self.partials {
                let model = &self.project.provider.choice.id;
                for line in partials.lines(event, self.session, model) {
                    self.line(&line);
                }
            }
            if let Some(line) = lines::line(event, self.session) {
                self.line(&line);
            }
            return;
        }
        if let Some(text) = progress(event, self.verbose) {
            printer::err(format_args!("{text}"));
        }
    }

    /// The end of a turn as a line; of which message of a client, if it has an id.
    pub(crate) fn result(
        &self,
        result: &RunResult,
        structured_output: Option<&Value>,
        message: Option<&str>,
    ) {
        let parts = ResultParts {
            catalogue: &self.project.provider.catalogue,
            unknown_cost: self.unknown_cost,
            structured_output,
            message,
        };
        self.line(&lines::result(result, &parts));
    }

    /// The end.
    ///
    /// On failure the command to resume is shown in every format, on standard error.
    pub(crate) fn finish(
        &self,
        result: &RunResult,
        structured_output: Option<&Value>,
    ) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::StreamJson | OutputFormat::Json => {
                self.result(result, structured_output, None);
            }
            OutputFormat::Text
                if result.outcome == Outcome::Success && structured_output.is_some() =>
            {
                let text = structured_output.map(Value::to_string).unwrap_or_default();
                self.line(&text);
            }
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

    /// A line of JSON, whole.
    pub(crate) fn line(&self, line: &str) {
        self.keep_failure(|| printer::json(line));
    }

    /// Only the first failure is kept, and after it nothing more is written.
    fn keep_failure(&self, write: impl FnOnce() -> std::io::Result<()>) {
        let mut failed = self.failed.lock();
        if failed.is_none() {
            *failed = write().err();
            if let Some(error) = &*failed {
                self.signals.write_failed(error);
            }
        }
    }

    /// Takes the failure, so it is reported once.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
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
