//! The loop. Check limits, ask the model, record, run its tools, record, again.

use std::{sync::Arc, time::Instant};

use codespar_model::{
    Answered, Budget, Catalogue, Counted, Effort, Meter, Model, Response, ThinkingChoice, ToolSpec,
};
use codespar_policy::{Redactor, RuleSet, Scope, SharedMode};
use codespar_protocol::{
    ContentBlock, Entry, EntryBody, Event, Message, NoticeLevel, RunResult, SessionId, StopReason,
    ToolUseId,
};
use codespar_tools::{Context, Registry, Tool};
use futures::future::BoxFuture;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    AgentError, AgentHooks, Approver, Briefing, CompactTrigger, HandOver, Inbox, RunLimits,
    SideCalls, Transcript, TreeShare, WorkKeeper, WriteGate, conclude::Ending, dispatch::Calls,
    lines_for_tools, path_instructions::PathInstructions, permit::Permitted, spans, stop::Stop,
    tally::Tally,
};

/// How often in a row an answer that reached the limit on output is asked to go on.
const MAX_CONTINUATIONS: u32 = 8;
/// How often in a row the provider may pause a turn.
const MAX_PAUSES: u32 = 16;
const GO_ON: &str = "Your answer reached the limit on its length. Go on exactly where it stopped.";
const INTERRUPTED: &str = "[The user interrupted here.]";

/// Where events go. Called in order; slow sinks slow the loop down, they do not pile up memory.
pub type Sink = Arc<dyn Fn(Event) + Send + Sync>;

/// The model and how it is asked.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    /// The provider's own id.
    pub id: String,
    /// How many tokens fit.
    pub context_window: u64,
    /// Limit on one answer.
    pub max_tokens: u32,
    /// Sent only when set.
    pub effort: Option<Effort>,
    /// Sent only when set.
    pub thinking: Option<ThinkingChoice>,
    /// Asked instead when this one is overloaded, from then on.
    pub fallback: Option<Box<Self>>,
    /// Older turns are summarised when the context reaches this many tokens.
    pub compact_at: u64,
}

/// What an agent is made from.
pub struct AgentParts {
    pub model: Arc<dyn Model>,
    /// Which model, and how it is asked.
    pub choice: ModelChoice,
    /// Prices; a model that is not in it costs `Cost::Unknown`.
    pub catalogue: Arc<Catalogue>,
    /// Tools on offer; nothing else can be called.
    pub tools: Registry,
    /// What the tools share.
    pub context: Arc<Context>,
    /// Permission rules, shared by the agents of a process: "always" holds for all of them.
    pub rules: Arc<RwLock<RuleSet>>,
    /// The user may change it while the agent works.
    pub mode: SharedMode,
    /// Where the agent works, for the rules. `cwd` follows the shell.
    pub scope: Scope,
    /// Takes secrets out of what tools give back.
    pub redactor: Arc<Redactor>,
    /// Who is asked where the rules say so.
    pub approver: Arc<dyn Approver>,
    /// Where events go.
    pub sink: Sink,
    /// What a run may use up.
    pub limits: RunLimits,
    /// What the system prompt is made from.
    pub briefing: Briefing,
    /// Model calls that tools make; not shared with another agent.
    pub side_calls: Arc<SideCalls>,
    /// Notifications and messages, delivered between turns.
    pub inbox: Arc<dyn Inbox>,
    /// Asked before files are written, where others may write too.
    pub gate: Option<Arc<dyn WriteGate>>,
    /// What the user lets run at events; none where nothing is.
    pub hooks: Option<Arc<AgentHooks>>,
}

/// An agent on one session.
pub struct Agent {
    pub(crate) parts: AgentParts,
    pub(crate) transcript: Transcript,
    pub(crate) system: Arc<str>,
    pub(crate) context_tokens: u64,
    pub(crate) meter: Meter,
    pub(crate) budget: Arc<Budget>,
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) hand_over: HandOver,
    pub(crate) is_handed_over: bool,
    pub(crate) is_without_record: bool,
    pub(crate) interrupted_note: &'static str,
    pub(crate) path_instructions: Arc<PathInstructions>,
    pub(crate) keeper: Option<Arc<dyn WorkKeeper>>,
}

pub(crate) fn specs(tools: &Registry) -> Arc<[ToolSpec]> {
    let spec = |tool: &Arc<dyn Tool>| ToolSpec {
        name: tool.name().to_owned(),
        description: lines_for_tools(tool.description(), |name| tools.offers(name)),
        input_schema: tool.input_schema(),
    };
    let on_this_side = tools.offered().filter(|tool| !tool.is_run_by_provider());
    on_this_side.map(spec).collect()
}

impl Agent {
    /// An agent that goes on from what the transcript holds.
    pub fn new(parts: AgentParts, transcript: Transcript) -> Self {
        let specs = specs(&parts.tools);
        let budget = parts.limits.budget();
        parts.side_calls.pay_from(&budget);
        let path_instructions = Arc::new(PathInstructions::new(&parts.briefing));
        let mut agent = Self {
            parts,
            transcript,
            system: Arc::from(""),
            context_tokens: 0,
            meter: Meter::default(),
            budget,
            specs,
            hand_over: HandOver::default(),
            is_handed_over: false,
            is_without_record: false,
            interrupted_note: INTERRUPTED,
            path_instructions,
            keeper: None,
        };
        agent.refresh_briefing();
        agent.context_tokens = agent.estimate_context();
        agent
    }

    /// Takes in what came, and tells the model of the tools for tasks as soon as it has made one.
    /// What the provider cached of the conversation begins with the tools, so this is done once and
    /// not undone.
    async fn deliver(&mut self) -> Result<(), AgentError> {
        self.parts.inbox.deliver(&mut self.transcript).await?;
        if self.parts.tools.holds_back()
            && self.parts.inbox.has_tasks().await
            && self.parts.tools.offer_all()
        {
            self.specs = specs(&self.parts.tools);
        }
        Ok(())
    }

    pub fn session(&self) -> SessionId {
        self.transcript.session()
    }

    /// Heeds a hand-over to another process.
    pub fn set_hand_over(&mut self, hand_over: HandOver) {
        self.hand_over = hand_over;
    }

    /// Has its files kept after each call that may have changed them.
    pub fn set_keeper(&mut self, keeper: Arc<dyn WorkKeeper>) {
        self.keeper = Some(keeper);
    }

    /// Replaces the note that an interruption leaves in the conversation, for an agent that not
    /// only the user can stop.
    pub fn set_interrupted_note(&mut self, note: &'static str) {
        self.interrupted_note = note;
    }

    /// The last run ended because another process goes on with it.
    pub fn is_handed_over(&self) -> bool {
        self.is_handed_over
    }

    /// The last run ended because its record could not be reached or was in use. Whoever opens the
    /// conversation again can go on.
    pub fn is_without_record(&self) -> bool {
        self.is_without_record
    }

    /// Turns that other processes made in the same run count towards its limit.
    pub fn count_earlier_turns(&mut self, turns: u32) {
        self.parts.limits.turns_before = turns;
    }

    /// Another model answers from the next call on. What the provider cached is of no use to it.
    pub fn set_choice(&mut self, choice: ModelChoice) {
        self.parts.choice = choice;
    }

    /// The conversation so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Answers `prompt`, or goes on where the conversation stopped when there is none; if it has
    /// come to its end already, the last answer is given again.
    pub fn run(
        &mut self,
        prompt: Option<Message>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, RunResult> {
        Box::pin(async move {
            let started = Instant::now();
            let stop = Stop::new(&cancel, self.parts.limits.max_wall);
            let tree = self.parts.limits.tree.as_ref().map(TreeShare::tree);
            let mut tally = Tally {
                account_before: self.counted_budget().account(),
                denied_before: tree.map_or(0, |tree| tree.denied()),
                ..Tally::default()
            };
            let span = spans::run(self.transcript.session());
            let ending = self.converse(prompt, &mut tally, &stop);
            let ending = ending.instrument(span).await;
            let result = self.conclude(ending, tally, started, &stop).await;
            self.emit(Event::Finished(Box::new(result.clone())));
            result
        })
    }

    async fn converse(
        &mut self,
        prompt: Option<Message>,
        tally: &mut Tally,
        stop: &Stop,
    ) -> Result<Ending, AgentError> {
        // Calls that waited for a person's answer when another process was lost.
        let waiting = self.transcript.unanswered();
        if !waiting.is_empty() {
            let calls = Calls {
                started: None,
                rest: waiting,
            };
            self.run_tools(calls, tally, stop).await?;
        }
        if let Some(ending) = self.begin(prompt, stop).await? {
            return Ok(ending);
        }
        let mut answer = String::new();
        let (mut cut_off, mut paused, mut held) = (0, 0, 0);
        loop {
            if let Some(ending) = self.is_to_end(stop) {
                return Ok(ending);
            }
            self.deliver().await?;
            if let Some(reached) = self.parts.limits.reached(tally.turns) {
                return Ok(Ending::Limit(reached));
            }
            self.compact_when_full(stop).await?;
            let answered = self.ask_with_room(tally, stop).await?;
            let (calls, reason) = self.record(answered, tally, &mut answer, stop).await?;
            let is_cut_off = matches!(
                reason,
                StopReason::MaxTokens | StopReason::ContextWindowExceeded
            );
            cut_off = if is_cut_off { cut_off + 1 } else { 0 };
            paused = match reason {
                StopReason::PauseTurn => paused + 1,
                _ => 0,
            };
            let has_calls = !calls.is_empty();
            if has_calls {
                self.run_tools(calls, tally, stop).await?;
                answer.clear();
            }
            if cut_off > MAX_CONTINUATIONS || paused > MAX_PAUSES {
                return Ok(Ending::Failed(format!(
                    "gave up: the model stopped with `{}` {} times in a row and came to no end",
                    reason.as_str(),
                    cut_off.max(paused)
                )));
            }
            match reason {
                _ if has_calls => {}
                StopReason::PauseTurn => {}
                StopReason::MaxTokens | StopReason::ContextWindowExceeded => {
                    if reason == StopReason::ContextWindowExceeded {
                        self.compact(CompactTrigger::Forced, stop).await?;
                    }
                    self.say_for_the_user(GO_ON).await?;
                }
                StopReason::Refusal => {
                    return Ok(Ending::Failed(
                        "the model declined to answer (stop reason `refusal`)".to_owned(),
                    ));
                }
                _ => match self.wait_for_more(stop).await {
                    Some(true) => answer.clear(),
                    None => return Ok(Ending::HandedOver),
                    Some(false) if stop.out_of_time().is_some() => {
                        return Ok(Ending::Interrupted);
                    }
                    Some(false) if self.is_held_back(&answer, &mut held, stop).await? => {
                        answer.clear();
                    }
                    Some(false) => return Ok(Ending::Answer(answer)),
                },
            }
        }
    }

    /// Whether somebody wants the run to end here, between two turns.
    fn is_to_end(&self, stop: &Stop) -> Option<Ending> {
        if self.hand_over.is_asked() {
            return Some(Ending::HandedOver);
        }
        if stop.token().is_cancelled() {
            return Some(Ending::Interrupted);
        }
        self.take_halt().map(Ending::Failed)
    }

    /// Records the prompt. Returns an ending if there is nothing to be answered.
    async fn begin(
        &mut self,
        prompt: Option<Message>,
        stop: &Stop,
    ) -> Result<Option<Ending>, AgentError> {
        if prompt.is_some() || self.transcript.is_unfinished() {
            self.tell_start(stop).await?;
        }
        if let Some(message) = prompt {
            let message = self.without_secrets(message);
            let added = match self.submit(&message, stop).await {
                Ok(added) => added,
                Err(ending) => return Ok(Some(ending)),
            };
            let body = EntryBody::User {
                message,
                synthetic: false,
            };
            self.transcript.append(body).await?;
            if let Some(text) = added {
                self.say_for_the_user(&text).await?;
            }
        }
        self.parts.inbox.deliver(&mut self.transcript).await?;
        while !self.transcript.is_unfinished() {
            // It had come to its end before it was interrupted: the answer is there, unless
            // something is still to come.
            match self.wait_for_more(stop).await {
                Some(true) => {}
                Some(false) => return Ok(Some(Ending::Answer(self.transcript.last_answer()))),
                None => return Ok(Some(Ending::HandedOver)),
            }
            self.parts.inbox.deliver(&mut self.transcript).await?;
        }
        Ok(None)
    }

    /// Whether something came; `None` if another process is to wait for it.
    async fn wait_for_more(&self, stop: &Stop) -> Option<bool> {
        tokio::select! {
            biased;
            came = self.parts.inbox.wait(stop.token()) => {
                // A wait that was broken off says nothing about what is to come.
                (came || !self.hand_over.now.is_cancelled()).then_some(came)
            }
            () = self.hand_over.soon.cancelled() => None,
        }
    }

    /// Puts the answer on record before anything is done about it.
    async fn record(
        &mut self,
        answered: Answered,
        tally: &mut Tally,
        answer: &mut String,
        stop: &Stop,
    ) -> Result<(Calls, StopReason), AgentError> {
        let Answered {
            response,
            cost,
            counted,
        } = answered;
        let Response {
            id,
            model,
            message,
            stop_reason,
            usage,
        } = response;
        tally.stop_reason = Some(stop_reason.clone());
        answer.push_str(&message.text());
        let mut rest = message.tool_uses().cloned().collect();
        let started = self.first_by_rules(&mut rest, stop);
        let body = EntryBody::Assistant {
            message: message.clone(),
            message_id: id.clone(),
            model: model.clone(),
            stop_reason: stop_reason.clone(),
            usage,
            cost,
        };
        let marker = started.as_ref().map(Permitted::marker);
        let entry = self.transcript.append_with(body, marker).await?;
        self.context_tokens = match counted {
            Counted::ByProvider => usage.total_tokens(),
            // What is booked is the most that it can be, and would have turns summarised early.
            Counted::Estimated => self.estimate_context(),
        };
        let reason = stop_reason.clone();
        self.emit(Event::Assistant {
            id: entry.id,
            message_id: id,
            message,
            model,
            stop_reason,
            usage,
            cost,
        });
        Ok((Calls { started, rest }, reason))
    }

    /// A text put in on the user's side; it gives no title and is marked as synthetic.
    pub(crate) async fn say_for_the_user(&mut self, text: &str) -> Result<Entry, AgentError> {
        let body = EntryBody::User {
            message: Message::user(text),
            synthetic: true,
        };
        Ok(self.transcript.append(body).await?)
    }

    fn without_secrets(&self, mut message: Message) -> Message {
        let mut found = false;
        for block in &mut message.content {
            if let ContentBlock::Text(text) = block
                && let std::borrow::Cow::Owned(clean) = self.parts.redactor.redact(&text.text)
            {
                text.text = clean;
                found = true;
            }
        }
        if found {
            self.notice(
                NoticeLevel::Warning,
                "a secret in the prompt was replaced by a mark",
            );
        }
        message
    }

    pub(crate) fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        self.emit(Event::Notice {
            level,
            text: text.into(),
        });
    }

    pub(crate) fn emit(&self, event: Event) {
        (self.parts.sink)(event);
    }

    /// Tells of the output of commands while they run, from the next one on. For a surface that
    /// shows it: elsewhere it would be sent for nothing.
    pub fn report_command_output(&self) {
        let (sink, redactor) = (self.parts.sink.clone(), self.parts.redactor.clone());
        let watch = move |id: &ToolUseId, lines: Vec<String>| {
            let redact = |line: String| redactor.redact(&line).into_owned();
            sink(Event::CommandOutput {
                tool_use_id: id.clone(),
                lines: lines.into_iter().map(redact).collect(),
            });
        };
        self.parts.context.watch_output(Arc::new(watch));
    }

    /// Reads the project's and the user's instruction files anew.
    pub(crate) fn refresh_briefing(&mut self) {
        let (system, problems) = self.parts.briefing.render();
        self.system = self.parts.redactor.redact(&system).into();
        for problem in problems {
            self.notice(NoticeLevel::Warning, problem.to_string());
        }
    }
}
