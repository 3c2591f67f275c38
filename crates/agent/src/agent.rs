//! The loop. Check limits, ask the model, record, run its tools, record, again.

use std::{sync::Arc, time::Instant};

use codespar_model::{
    Catalogue, Effort, Model, ModelError, ModelEvent, Request, Response, ToolSpec,
};
use codespar_policy::{Mode, Redactor, RuleSet, Scope};
use codespar_protocol::{
    ContentBlock, Cost, Entry, EntryBody, Event, Message, NoticeLevel, Outcome, PermissionDenial,
    RunResult, SessionId, StopReason, ToolUse, Usage, Usd,
};
use codespar_tools::{Context, Registry};
use futures::StreamExt;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::{
    AgentError, Approver, Briefing, Gate, Inbox, Limits, SideCalls, Transcript, TreeShare,
    limits::Reached, tally::Tally, tree::TreeBudget,
};

/// How often an answer that reached the limit on output is asked to go on.
const MAX_CONTINUATIONS: u32 = 8;
const GO_ON: &str = "Your answer reached the limit on its length. Go on exactly where it stopped.";
const INTERRUPTED: &str = "[The person interrupted here.]";

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
    /// Older turns are summarised when the context reaches this many tokens.
    pub compact_at: u64,
}

/// What an agent is made from.
pub struct AgentParts {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Which model, and how it is asked.
    pub choice: ModelChoice,
    /// Prices.
    pub catalogue: Arc<Catalogue>,
    /// Tools on offer; nothing else can be called.
    pub tools: Registry,
    /// What the tools share.
    pub context: Arc<Context>,
    /// Permission rules, shared by the agents of a process: «always» holds for all of them.
    pub rules: Arc<RwLock<RuleSet>>,
    /// Permission mode.
    pub mode: Mode,
    /// Where the agent works, for the rules. `cwd` follows the shell.
    pub scope: Scope,
    /// Takes secrets out of what tools give back.
    pub redactor: Arc<Redactor>,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// Where events go.
    pub sink: Sink,
    /// What a run may use up.
    pub limits: Limits,
    /// What the system prompt is made from.
    pub briefing: Briefing,
    /// Model calls that tools make.
    pub side_calls: Arc<SideCalls>,
    /// What reaches it from outside.
    pub inbox: Arc<dyn Inbox>,
    /// Asked before files are written, where others may write too.
    pub gate: Option<Arc<dyn Gate>>,
}

/// An agent on one session.
pub struct Agent {
    pub(crate) parts: AgentParts,
    pub(crate) transcript: Transcript,
    pub(crate) system: Arc<str>,
    pub(crate) context_tokens: u64,
    last_cost: Usd,
    specs: Arc<[ToolSpec]>,
}

/// How a run comes to its end.
enum Ending {
    Answer(String),
    Limit(Reached),
    Refused,
    Interrupted,
}

impl Agent {
    /// An agent that goes on from what the transcript holds.
    pub fn new(parts: AgentParts, transcript: Transcript) -> Self {
        let specs = parts
            .tools
            .iter()
            .map(|tool| ToolSpec {
                name: tool.name().to_owned(),
                description: tool.description().to_owned(),
                input_schema: tool.input_schema(),
            })
            .collect();
        let mut agent = Self {
            parts,
            transcript,
            system: Arc::from(""),
            context_tokens: 0,
            last_cost: Usd::ZERO,
            specs,
        };
        agent.refresh_briefing();
        agent.context_tokens = agent.estimate_context();
        agent
    }

    /// Its session.
    pub fn session(&self) -> SessionId {
        self.transcript.session()
    }

    /// The conversation so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Answers `prompt`, or goes on where the conversation stopped when there is none; if it has
    /// come to its end already, the last answer is given again.
    pub async fn run(&mut self, prompt: Option<Message>, cancel: CancellationToken) -> RunResult {
        let started = Instant::now();
        let tree = self.parts.limits.tree.as_ref().map(TreeShare::budget);
        let mut tally = Tally {
            tree_before: tree.map(TreeBudget::account),
            denied_before: tree.map_or(0, TreeBudget::denied),
            ..Tally::default()
        };
        let ending = self.converse(prompt, &mut tally, started, &cancel).await;
        let result = self.conclude(ending, tally, started).await;
        self.emit(Event::Finished(Box::new(result.clone())));
        result
    }

    async fn converse(
        &mut self,
        prompt: Option<Message>,
        tally: &mut Tally,
        started: Instant,
        cancel: &CancellationToken,
    ) -> Result<Ending, AgentError> {
        if let Some(message) = prompt {
            let message = self.without_secrets(message);
            self.transcript
                .append(EntryBody::User {
                    message,
                    synthetic: false,
                })
                .await?;
        }
        self.parts.inbox.deliver(&mut self.transcript).await?;
        while !self.transcript.is_unfinished() {
            // It had come to its end before it was interrupted: the answer is there, unless
            // something is still to come.
            if !self.parts.inbox.wait(cancel).await {
                return Ok(Ending::Answer(self.transcript.last_answer()));
            }
            self.parts.inbox.deliver(&mut self.transcript).await?;
        }
        let mut answer = String::new();
        let mut continuations = 0;
        loop {
            if cancel.is_cancelled() {
                return Ok(Ending::Interrupted);
            }
            self.parts.inbox.deliver(&mut self.transcript).await?;
            if let Some(reached) = self.parts.limits.reached(tally, started, self.least_cost()) {
                return Ok(Ending::Limit(reached));
            }
            self.compact_when_full(tally, cancel).await?;
            let response = self.ask_with_room(tally, cancel).await?;
            let (calls, stop) = self.record(response, tally, &mut answer).await?;
            if !calls.is_empty() {
                self.run_tools(calls, tally, cancel).await?;
                answer.clear();
                continue;
            }
            match stop {
                StopReason::PauseTurn => {}
                StopReason::MaxTokens | StopReason::ContextWindowExceeded
                    if continuations < MAX_CONTINUATIONS =>
                {
                    continuations += 1;
                    if stop == StopReason::ContextWindowExceeded {
                        self.compact(tally, cancel).await?;
                    }
                    self.say_for_the_person(GO_ON).await?;
                }
                StopReason::Refusal => return Ok(Ending::Refused),
                _ if self.parts.inbox.wait(cancel).await => answer.clear(),
                _ => return Ok(Ending::Answer(answer)),
            }
        }
    }

    /// Asks; when the conversation turns out not to fit, summarises and asks once more.
    async fn ask_with_room(
        &mut self,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Response, AgentError> {
        match self.ask(tally, cancel).await {
            Err(AgentError::Model(ModelError::ContextWindowExceeded { message })) => {
                if !self.compact(tally, cancel).await? {
                    return Err(ModelError::ContextWindowExceeded { message }.into());
                }
                self.ask(tally, cancel).await
            }
            other => other,
        }
    }

    async fn ask(
        &self,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Response, AgentError> {
        tally.turns += 1;
        self.emit(Event::TurnStarted { turn: tally.turns });
        let asked = Instant::now();
        let mut events = self.parts.model.stream(self.request(), cancel.clone());
        while let Some(event) = events.next().await {
            match event {
                Ok(ModelEvent::TextDelta(text)) => self.emit(Event::TextDelta { text }),
                Ok(ModelEvent::ThinkingDelta(text)) => self.emit(Event::ThinkingDelta { text }),
                Ok(ModelEvent::Retrying {
                    attempt,
                    delay,
                    reason,
                }) => {
                    let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                    self.emit(Event::Retrying {
                        attempt,
                        delay_ms,
                        reason,
                    });
                }
                Ok(ModelEvent::Finished(response)) => {
                    tally.waiting += asked.elapsed();
                    return Ok(response);
                }
                Err(error) => {
                    tally.waiting += asked.elapsed();
                    return Err(error.into());
                }
            }
        }
        let provider = self.parts.model.provider();
        let message = "it ended without an answer".to_owned();
        Err(ModelError::BrokenStream { provider, message }.into())
    }

    fn request(&self) -> Request {
        Request {
            model: self.parts.choice.id.clone(),
            system: self.system.clone(),
            messages: self.transcript.messages().to_vec(),
            tools: self.specs.clone(),
            max_tokens: self.parts.choice.max_tokens,
            temperature: None,
            effort: self.parts.choice.effort,
            stop_sequences: Vec::new(),
        }
    }

    /// Puts the answer on record before anything is done about it.
    async fn record(
        &mut self,
        response: Response,
        tally: &mut Tally,
        answer: &mut String,
    ) -> Result<(Vec<ToolUse>, StopReason), AgentError> {
        let Response {
            id,
            model,
            message,
            stop_reason,
            usage,
        } = response;
        // Prices are looked up by the name we asked for where the provider's own is unknown.
        let catalogue = &self.parts.catalogue;
        let mut cost = catalogue.cost(&model, &usage);
        if cost.known().is_none() {
            cost = catalogue.cost(&self.parts.choice.id, &usage);
        }
        tally.add(&model, usage, cost);
        self.count_in_tree(&model, usage, cost);
        self.last_cost = cost.at_least();
        tally.stop_reason = Some(stop_reason.clone());
        answer.push_str(&message.text());
        let calls = message.tool_uses().cloned().collect();
        let entry = self
            .transcript
            .append(EntryBody::Assistant {
                message: message.clone(),
                message_id: id.clone(),
                model: model.clone(),
                stop_reason: stop_reason.clone(),
                usage,
                cost,
            })
            .await?;
        self.context_tokens = usage.total_tokens();
        let stop = stop_reason.clone();
        self.emit(Event::Assistant {
            id: entry.id,
            message_id: id,
            message,
            model,
            stop_reason,
            usage,
            cost,
        });
        Ok((calls, stop))
    }

    /// Words put in on the person's side.
    async fn say_for_the_person(&mut self, words: &str) -> Result<Entry, AgentError> {
        let body = EntryBody::User {
            message: Message::user(words),
            synthetic: true,
        };
        Ok(self.transcript.append(body).await?)
    }

    async fn conclude(
        &mut self,
        ending: Result<Ending, AgentError>,
        tally: Tally,
        started: Instant,
    ) -> RunResult {
        let ending = match ending {
            Err(error) if error.is_interrupt() => Ok(Ending::Interrupted),
            other => other,
        };
        let interrupted = matches!(ending, Ok(Ending::Interrupted));
        let (outcome, result) = match ending {
            Ok(Ending::Answer(text)) => (Outcome::Success, text),
            Ok(Ending::Limit(reached)) => (reached.outcome, reached.message),
            Ok(Ending::Refused) => (
                Outcome::ErrorDuringExecution,
                "the model declined to answer (stop reason `refusal`)".to_owned(),
            ),
            Ok(Ending::Interrupted) => {
                // A failure here changes nothing for the person: the run is over either way, and
                // what is on record is whole without these words.
                let _ = self.say_for_the_person(INTERRUPTED).await;
                (Outcome::ErrorDuringExecution, "interrupted".to_owned())
            }
            Err(error) => (Outcome::ErrorDuringExecution, error.to_string()),
        };
        let by_model = self.sums(&tally);
        let (mut usage, mut cost) = (Usage::default(), Cost::default());
        for (_, model_usage, model_cost) in &by_model {
            usage += *model_usage;
            cost += *model_cost;
        }
        RunResult {
            session_id: self.session(),
            outcome,
            result: self.parts.redactor.redact(&result).into_owned(),
            interrupted,
            stop_reason: tally.stop_reason.clone(),
            num_turns: tally.turns,
            tool_uses: tally.tool_uses,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            duration_api_ms: u64::try_from(tally.waiting.as_millis()).unwrap_or(u64::MAX),
            usage,
            cost,
            by_model,
            permission_denials: self.denials(tally),
        }
    }

    pub(crate) fn count_in_tree(&self, model: &str, usage: Usage, cost: Cost) {
        if let Some(tree) = &self.parts.limits.tree {
            tree.budget().add(model, usage, cost);
        }
    }

    /// Sums of this run by model; for the agent at the top of a tree, with all it started.
    fn sums(&self, tally: &Tally) -> Vec<(String, Usage, Cost)> {
        match (&self.parts.limits.tree, &tally.tree_before) {
            (Some(TreeShare::Root(tree)), Some(before)) => tree.since(before),
            _ => {
                let own = tally.by_model.iter();
                own.map(|(model, (usage, cost))| (model.clone(), *usage, *cost))
                    .collect()
            }
        }
    }

    /// Calls that were not allowed; for the agent at the top of a tree, with those of all it
    /// started.
    fn denials(&self, tally: Tally) -> Vec<PermissionDenial> {
        match &self.parts.limits.tree {
            Some(TreeShare::Root(tree)) => tree.denials_since(tally.denied_before),
            _ => tally.denials,
        }
    }

    /// What another call will cost at the least: the context read from the cache, or what the last
    /// call cost, since the next one has more before it.
    fn least_cost(&self) -> Usd {
        let usage = Usage {
            cache_read_input_tokens: self.context_tokens,
            ..Usage::default()
        };
        let catalogue = &self.parts.catalogue;
        let floor = catalogue.cost(&self.parts.choice.id, &usage).at_least();
        floor.max(self.last_cost)
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

    /// Reads the project's and the person's instruction files anew.
    pub(crate) fn refresh_briefing(&mut self) {
        let (system, problems) = self.parts.briefing.render();
        self.system = system.into();
        for problem in problems {
            self.notice(NoticeLevel::Warning, problem.to_string());
        }
    }
}
