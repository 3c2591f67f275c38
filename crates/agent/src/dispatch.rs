//! Tool calls: from the model's wish to a result on record, for every call, whatever happens.

use std::{
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_policy::{Access, AccessRequest, Decision, RuleKind, RuleSource, Scope, decide};
use codespar_protocol::{
    Answer, ContentBlock, EntryBody, Event, PermissionDenial, PermissionRequest, RawObject,
    SeenFile, ToolResult, ToolResultContent, ToolUse,
};
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolOutput, bound, sandbox::Approval};
use futures::FutureExt;
use tokio::task::JoinSet;

use crate::{Agent, AgentError, Transcript, nested, stop::Stop, tally::Tally};

/// A call that may be made.
struct Permitted {
    call: ToolUse,
    tool: Arc<dyn Tool>,
    /// What the decision was made on.
    access: Vec<Access>,
    approval: Approval,
}

/// A call that has its answer.
struct Ran {
    call: ToolUse,
    output: ToolOutput,
    /// The files that the agent has seen by it.
    files: Vec<SeenFile>,
    /// How long it ran; none if it was refused.
    took: Option<Duration>,
}

/// The files that a call may read or write.
fn touched(access: &[Access]) -> Vec<PathBuf> {
    let paths = access.iter().filter_map(|access| match access {
        Access::Read(path) | Access::Write(path) => Some(path.clone()),
        _ => None,
    });
    paths.collect()
}

fn seen(context: &Context, paths: &[PathBuf]) -> Vec<SeenFile> {
    let ledger = context.ledger();
    paths.iter().filter_map(|path| ledger.seen(path)).collect()
}

impl Agent {
    /// Runs the calls of one message: neighbours that only read side by side, the others alone.
    pub(crate) async fn run_tools(
        &mut self,
        calls: Vec<ToolUse>,
        tally: &mut Tally,
        stop: &Stop,
    ) -> Result<(), AgentError> {
        tally.tool_uses += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let mut waiting = Vec::new();
        for call in calls {
            let tool = self.parts.tools.get(&call.name);
            let is_alone = tool
                .as_ref()
                .is_none_or(|tool| tool.effect() == Effect::Changes);
            if is_alone {
                self.run_side_by_side(std::mem::take(&mut waiting), stop)
                    .await?;
            }
            match self.permit(call, tool, tally, stop).await {
                Ok(permitted) if is_alone => self.run_alone(permitted, stop).await?,
                Ok(permitted) => waiting.push(permitted),
                Err((call, output)) => {
                    let files = Vec::new();
                    let refused = Ran {
                        call,
                        output,
                        files,
                        took: None,
                    };
                    self.record_result(refused).await?;
                }
            }
        }
        self.run_side_by_side(waiting, stop).await?;
        self.announce_results();
        self.record_side_calls().await
    }

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
                let tool_use_id = permitted.call.id.clone();
                self.transcript
                    .append(EntryBody::ToolStarted { tool_use_id })
                    .await?;
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

    async fn run_alone(&mut self, permitted: Permitted, stop: &Stop) -> Result<(), AgentError> {
        let tool_use_id = permitted.call.id.clone();
        self.transcript
            .append(EntryBody::ToolStarted { tool_use_id })
            .await?;
        let todos_before = self.parts.context.todos();
        let ran = self.start(permitted, stop).await;
        self.record_result(ran).await?;
        let todos = self.parts.context.todos();
        if todos != todos_before {
            self.emit(Event::Todos { todos });
        }
        Ok(())
    }

    /// The running call, holding nothing of the agent so that results can be recorded meanwhile.
    fn start(&self, permitted: Permitted, stop: &Stop) -> impl Future<Output = Ran> + Send + use<> {
        let Permitted {
            call,
            tool,
            access,
            approval,
        } = permitted;
        let context = self.parts.context.clone();
        let cancel = stop.token().child_token();
        let abandon = stop.abandon();
        let paths = touched(&access);
        async move {
            let input = Call {
                id: call.id.clone(),
                input: call.input.clone(),
                access,
                cancel,
                approval,
            };
            let began = Instant::now();
            let running = AssertUnwindSafe(tool.run(input, &context)).catch_unwind();
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
            let files = match output.is_error {
                true => Vec::new(),
                false => seen(&context, &paths),
            };
            Ran {
                call,
                output,
                files,
                took: Some(began.elapsed()),
            }
        }
    }

    /// Decides whether a call is made; if not, what is answered instead.
    async fn permit(
        &self,
        call: ToolUse,
        tool: Option<Arc<dyn Tool>>,
        tally: &mut Tally,
        stop: &Stop,
    ) -> Result<Permitted, (ToolUse, ToolOutput)> {
        if stop.token().is_cancelled() {
            let refusal = ToolOutput::error(format!("not run: {}", stop.reason()));
            return Err((call, refusal));
        }
        let Some(tool) = tool else {
            let known = self.parts.tools.names().join(", ");
            let message = format!("there is no tool `{}` here; there are: {known}", call.name);
            return Err((call, ToolOutput::error(message)));
        };
        // What was cut off is kept as a JSON string.
        if !call.input.get().starts_with('{') {
            return Err((
                call,
                ToolOutput::error(
                    "not run: the call was cut off at the limit on the answer's length. Make it \
                 shorter, for example by writing a long file in several edits.",
                ),
            ));
        }
        let intent = match tool.inspect(&call.input, &self.parts.context) {
            Ok(intent) => intent,
            Err(error) => return Err((call, error.into())),
        };
        match self.allowed(&call, &*tool, &intent, stop).await {
            Ok(approval) => {
                if let Err(holder) = self.claim_writes(&intent).await {
                    return Err((call, ToolOutput::error(holder)));
                }
                self.emit(Event::ToolStarted {
                    tool_use_id: call.id.clone(),
                    tool: tool.name().to_owned(),
                    summary: intent.summary,
                    input: serde_json::from_str(call.input.get()).unwrap_or_default(),
                });
                Ok(Permitted {
                    call,
                    tool,
                    access: intent.access,
                    approval,
                })
            }
            Err(reason) => {
                let denial = PermissionDenial {
                    tool_name: tool.name().to_owned(),
                    tool_use_id: call.id.clone(),
                    tool_input: serde_json::from_str(call.input.get()).unwrap_or_default(),
                    reason: reason.clone(),
                };
                tally.denials.push(denial.clone());
                if let Some(tree) = &self.parts.limits.tree {
                    tree.tree().deny(denial.clone());
                }
                self.emit(Event::PermissionDenied(denial));
                Err((
                    call,
                    ToolOutput::error(format!("permission denied: {reason}")),
                ))
            }
        }
    }

    /// Where several agents work on the same files, each file has one writer.
    async fn claim_writes(&self, intent: &Intent) -> Result<(), String> {
        let Some(gate) = &self.parts.gate else {
            return Ok(());
        };
        for access in &intent.access {
            if let Access::Write(path) = access {
                gate.claim(path).await?;
            }
        }
        Ok(())
    }

    async fn allowed(
        &self,
        call: &ToolUse,
        tool: &dyn Tool,
        intent: &Intent,
        stop: &Stop,
    ) -> Result<Approval, String> {
        let request = AccessRequest {
            tool: tool.name(),
            read_only: tool.effect() != Effect::Changes,
            access: &intent.access,
        };
        let scope = self.scope(intent);
        let decision = decide(&request, &self.parts.rules.read(), self.parts.mode, &scope);
        let (reason, suggested) = match decision {
            Decision::Allow { .. } => return Ok(Approval::Rules),
            Decision::Deny { reason } => return Err(reason),
            Decision::Ask { reason, suggested } => (reason, suggested),
        };
        let question = PermissionRequest {
            tool_use_id: call.id.clone(),
            tool: tool.name().to_owned(),
            summary: intent.summary.clone(),
            input: serde_json::from_str(call.input.get()).unwrap_or_default(),
            preview: preview(&call.input),
            reason: reason.clone(),
            suggested_rules: suggested.iter().map(ToString::to_string).collect(),
        };
        self.emit(Event::PermissionAsked {
            question: question.clone(),
        });
        let key = Transcript::question_key(self.transcript.last_answer_place(), &call.id);
        let answer = tokio::select! {
            answer = self.parts.approver.ask(&key, question) => answer,
            () = stop.token().cancelled() => {
                // Another process asks again, and waits for the same answer.
                if !self.hand_over.now.is_cancelled() {
                    self.parts.approver.withdraw(&call.id).await;
                }
                Answer::No { reason: Some("interrupted".to_owned()) }
            }
        };
        match answer {
            Answer::Once => Ok(Approval::Person),
            Answer::Always => {
                let source = RuleSource::named("the answer `always` in this session");
                let mut rules = self.parts.rules.write();
                for rule in suggested {
                    rules.add(RuleKind::Allow, rule, &source);
                }
                Ok(Approval::Person)
            }
            Answer::No { reason: None } => Err(format!("the user declined ({reason})")),
            // The store lets no such answer through.
            Answer::Text { .. } | Answer::Form { .. } => Err(reason),
            Answer::No { reason: Some(note) } => Err(format!("{reason}; {note}")),
        }
    }

    /// Where the agent stands now. Whether a sandbox works is found out only when a command is
    /// about to need it.
    fn scope(&self, intent: &Intent) -> Scope {
        let mut scope = Scope {
            cwd: self.parts.context.cwd(),
            ..self.parts.scope.clone()
        };
        if intent
            .access
            .iter()
            .any(|access| matches!(access, Access::Command(_)))
        {
            scope.sandbox_state = self.parts.context.sandbox().sandbox_state();
            scope.repository = nested::repository(&scope.cwd, &scope.workspace);
        }
        scope
    }

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

    fn redacted(&self, content: ToolResultContent) -> ToolResultContent {
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

    async fn record_side_calls(&mut self) -> Result<(), AgentError> {
        for call in self.parts.side_calls.take() {
            self.transcript.append(call.entry()).await?;
        }
        Ok(())
    }

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

/// How many lines of each side of a change a question shows.
const PREVIEW_LINES: usize = 12;

/// The change that a call would make, as far as its input tells: enough for a person to judge.
fn preview(input: &serde_json::value::RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Change {
        content: Option<String>,
        old_string: Option<String>,
        new_string: Option<String>,
    }
    let change: Change = serde_json::from_str(input.get()).ok()?;
    let mut lines = Vec::new();
    for (mark, text) in [
        ('-', change.old_string),
        ('+', change.new_string.or(change.content)),
    ] {
        let Some(text) = text else { continue };
        lines.extend(
            text.lines()
                .take(PREVIEW_LINES)
                .map(|line| format!("{mark} {line}")),
        );
        let left = text.lines().count().saturating_sub(PREVIEW_LINES);
        if left > 0 {
            lines.push(format!("{mark} … {left} more lines"));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
