//! Tool calls: from the model's wish to a result on record, for every call, whatever happens.
//!
//! The way of the calls of one message, in their order:
//!
//! ```text
//! changes things   the collected calls run first; then permit, mark as started, run alone, record
//! other calls      permit, then collect; run together, each recorded as it ends
//! refused          the reason is the result, on record at once
//! ```
//!
//! Every call gets exactly one result, also one that is refused, interrupted, unknown or that
//! panics. After that the model may be asked again. A result is on record before the model sees it,
//! and a call that may change something is on record as started before it starts; whatever a crash
//! leaves between the two is answered when the transcript is opened again.
//!
//! Results are recorded in the order in which they come; the transcript puts them into the order of
//! the calls.

use std::{
    panic::AssertUnwindSafe,
    path::PathBuf,
    time::{Duration, Instant},
};

use codespar_policy::Access;
use codespar_protocol::{
    ContentBlock, EntryBody, Event, RawObject, SeenFile, ToolResult, ToolResultContent, ToolUse,
};
use codespar_tools::{Call, Context, Effect, ToolOutput, bound};
use futures::FutureExt;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::{
    Agent, AgentError, WorkKept, permit::Permitted, spans, stop::Stop, tally::Tally,
    user_answer::UserChanges,
};

/// The calls of one message.
pub(crate) struct Calls {
    /// The first of them where the rules allow it and the others wait for it: its start is on
    /// record already, in one transaction with the message.
    pub(crate) started: Option<Permitted>,
    /// In the order of the message. Nothing has been decided about them.
    pub(crate) rest: Vec<ToolUse>,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.started.is_none() && self.rest.is_empty()
    }
}

/// A call that has its answer.
pub(crate) struct Ran {
    pub(crate) call: ToolUse,
    pub(crate) output: ToolOutput,
    /// The files that the agent has seen by it.
    files: Vec<SeenFile>,
    /// How long it ran; none if it was refused.
    pub(crate) took: Option<Duration>,
}

impl Ran {
    /// The answer to a call that was not made.
    fn refused(call: ToolUse, output: ToolOutput) -> Self {
        Self {
            call,
            output,
            files: Vec::new(),
            took: None,
        }
    }
}

/// The files that a call may read or write. Taken from what the decision was made on. Commands and
/// addresses are no files and are left out.
fn touched(access: &[Access]) -> Vec<PathBuf> {
    let paths = access.iter().filter_map(|access| match access {
        Access::Read(path) | Access::Write(path) => Some(path.clone()),
        _ => None,
    });
    paths.collect()
}

/// What the ledger has about these files after the call: a hash of what was last shown or written.
/// Files that it does not know are left out. Lines that a search showed come with it; of searches
/// side by side, the first to end may record the lines of another.
fn seen(context: &Context, paths: &[PathBuf]) -> Vec<SeenFile> {
    let ledger = context.ledger();
    let mut files = ledger.take_shown();
    files.extend(paths.iter().filter_map(|path| ledger.seen(path)));
    files
}

impl Agent {
    /// Runs the calls of one message: neighbours that only read side by side, the others alone.
    ///
    /// When the run is stopped, calls that have not begun are answered with "not run" instead of
    /// being dropped. An error means that a result could not be recorded, or that the conversation
    /// was handed over; then nothing more is run.
    pub(crate) async fn run_tools(
        &mut self,
        calls: Calls,
        tally: &mut Tally,
        stop: &Stop,
    ) -> Result<(), AgentError> {
        let Calls { started, rest } = calls;
        let count = usize::from(started.is_some()) + rest.len();
        tally.tool_uses += u32::try_from(count).unwrap_or(u32::MAX);
        match started {
            Some(permitted) if stop.token().is_cancelled() => {
                let refused = Ran::refused(permitted.call, not_run(stop));
                self.record_result(refused).await?;
            }
            Some(permitted) => self.run_alone(permitted, stop).await?,
            None => {}
        }
        let mut waiting = Vec::new();
        for call in rest {
            let tool = self.parts.tools.get(&call.name);
            let is_alone = tool
                .as_ref()
                .is_none_or(|tool| tool.effect() == Effect::Changes);
            if is_alone {
                self.run_side_by_side(std::mem::take(&mut waiting), stop)
                    .await?;
            }
            match self.permit(call, tool, tally, stop).await {
                Ok(permitted) if is_alone => {
                    self.transcript.append(permitted.marker()).await?;
                    self.run_alone(permitted, stop).await?;
                }
                Ok(permitted) => waiting.push(permitted),
                Err((call, output)) => self.record_result(Ran::refused(call, output)).await?,
            }
        }
        self.run_side_by_side(waiting, stop).await?;
        self.announce_results();
        self.record_side_calls().await
    }

    /// Runs these at the same time and records each result as it comes. Dropping the future stops
    /// them.
    async fn run_side_by_side(
        &mut self,
        waiting: Vec<Permitted>,
        stop: &Stop,
    ) -> Result<(), AgentError> {
        // Tasks of their own, not futures polled from here: one that waits for the store must go
        // on while a result of another is being recorded. Dropping the set stops them.
        let mut running = JoinSet::new();
        for permitted in waiting {
            if permitted.tool.effect() == Effect::SideBySide {
                self.transcript.append(permitted.marker()).await?;
            }
            running.spawn(self.start(permitted, stop));
        }
        while let Some(joined) = running.join_next().await {
            // A panic is caught inside, and nobody else stops these tasks.
            if let Ok(ran) = joined {
                self.record_result(ran).await?;
            }
        }
        Ok(())
    }

    /// Runs a call whose start is on record. Whether the list of steps changed is looked at here,
    /// because the tool that changes it is never run beside others.
    async fn run_alone(&mut self, permitted: Permitted, stop: &Stop) -> Result<(), AgentError> {
        let todos_before = self.parts.context.todos();
        let ran = self.start(permitted, stop).await;
        if let Some(keeper) = &self.keeper
            && keeper.keep().await == WorkKept::HandedOver
        {
            return Err(AgentError::HandedOver);
        }
        self.record_result(ran).await?;
        let todos = self.parts.context.todos();
        if todos != todos_before {
            self.emit(Event::Todos { todos });
        }
        Ok(())
    }

    /// The running call, holding nothing of the agent so that results can be recorded meanwhile.
    /// Its cancellation is a child of the run's. A tool that ignores it is dropped half a second
    /// after the wall time is over, not before: one that is interrupted by the user is waited for.
    pub(crate) fn start(
        &self,
        permitted: Permitted,
        stop: &Stop,
    ) -> impl Future<Output = Ran> + Send + use<> {
        self.emit(permitted.event());
        let input = permitted.input().to_owned();
        let Permitted {
            call,
            tool,
            access,
            approval,
            mut changes,
            ..
        } = permitted;
        let context = self.parts.context.clone();
        if let Some(checkpoints) = context.checkpoints() {
            checkpoints.set_turn(self.transcript.last_prompt());
        }
        let cancel = stop.token().child_token();
        let abandon = stop.abandon();
        let after = self.after_call(&call, &*tool);
        let instructions = self.path_instructions.clone();
        let paths = touched(&access);
        let span = spans::tool(&call);
        let running_in = span.clone();
        let run = async move {
            let note = changes.take_note();
            let hooked = after.map(|after| (after, input.get().to_owned()));
            let made = Call {
                id: call.id.clone(),
                input,
                access,
                cancel: cancel.clone(),
                approval,
                text: changes.text,
            };
            let began = Instant::now();
            let running = AssertUnwindSafe(tool.run(made, &context)).catch_unwind();
            let output = tokio::select! {
                ran = running => match ran {
                    Ok(output) => bounded(output, &context, tool.name()),
                    Err(_) => ToolOutput::error(format!(
                        "{} failed inside: this is a defect of CodeSpar, not of the call",
                        tool.name()
                    )),
                },
                () = abandon => ToolOutput::error(
                    "stopped: the limit on wall time was reached. What it had done by then was \
                     not undone.",
                ),
            };
            let output = UserChanges::tell(note, output);
            let took = began.elapsed();
            let (files, output) = match output.is_error {
                true => (Vec::new(), output),
                false => {
                    let files = seen(&context, &paths);
                    (files, UserChanges::tell(instructions.about(&paths), output))
                }
            };
            let output = match hooked {
                Some((after, input)) => after.run(&call, &input, output, took, &cancel).await,
                None => output,
            };
            spans::tell_output(&span, &output);
            Ran {
                call,
                output,
                files,
                took: Some(took),
            }
        };
        run.instrument(running_in)
    }

    /// A hand-over makes it an error before anything is written: the next process finds the call as
    /// started and gives it a result of its own.
    async fn record_result(&mut self, ran: Ran) -> Result<(), AgentError> {
        // It was broken off, or may have been: whoever goes on says that its outcome is unknown.
        if self.hand_over.now.is_cancelled() {
            return Err(AgentError::HandedOver);
        }
        let Ran {
            call,
            output,
            files,
            took,
        } = ran;
        let content = self.redacted(output.content);
        let finished = took.map(|took| Event::ToolFinished {
            tool_use_id: call.id.clone(),
            tool: call.name.clone(),
            is_error: output.is_error,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            result: content.clone(),
        });
        self.context_tokens += u64::try_from(content.text().len() / 4).unwrap_or(0);
        let result = ContentBlock::ToolResult(ToolResult {
            tool_use_id: call.id,
            content,
            is_error: output.is_error,
            extra: RawObject::default(),
        });
        self.transcript
            .append(EntryBody::ToolResult { result, files })
            .await?;
        if let Some(finished) = finished {
            self.emit(finished);
        }
        Ok(())
    }

    /// Text only; pictures are passed on as they are.
    pub(crate) fn redacted(&self, content: ToolResultContent) -> ToolResultContent {
        let redact = |text: String| self.parts.redactor.redact(&text).into_owned();
        match content {
            // Providers refuse an empty text.
            ToolResultContent::Text(text) if text.is_empty() => {
                ToolResultContent::Text("(nothing)".to_owned())
            }
            ToolResultContent::Text(text) => ToolResultContent::Text(redact(text)),
            ToolResultContent::Blocks(mut blocks) => {
                for block in &mut blocks {
                    if let ContentBlock::Text(text) = block {
                        text.text = redact(std::mem::take(&mut text.text));
                    }
                }
                ToolResultContent::Blocks(blocks)
            }
        }
    }

    /// What tools asked of models during these calls. The budget has been charged already.
    pub(crate) async fn record_side_calls(&mut self) -> Result<(), AgentError> {
        for call in self.parts.side_calls.take() {
            self.transcript.append(call.entry()).await?;
        }
        Ok(())
    }

    /// The results of the message as the model will see them, as one event.
    fn announce_results(&self) {
        if let (Some(id), Some(message)) = (
            self.transcript.last_entry(),
            self.transcript.messages().last(),
        ) {
            self.emit(Event::ToolResults {
                id,
                message: (**message).clone(),
            });
        }
    }
}

/// What a call is answered that came when the run was to end.
pub(crate) fn not_run(stop: &Stop) -> ToolOutput {
    ToolOutput::error(format!("not run: {}", stop.reason()))
}

/// A text that is too long goes to a file, with its ends in the result. Tools that return blocks
/// bound their own texts.
fn bounded(output: ToolOutput, context: &Context, tool: &str) -> ToolOutput {
    match output.content {
        ToolResultContent::Text(text) => {
            let content = ToolResultContent::Text(bound(text, context, tool));
            ToolOutput {
                content,
                is_error: output.is_error,
            }
        }
        ToolResultContent::Blocks(_) => output,
    }
}
