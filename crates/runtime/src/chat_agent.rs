//! The agent that people talk to in a chat thread: it reads, answers, asks back, and gives commands
//! of the chat's grammar on behalf of whoever speaks.
//!
//! It has two kinds of tools: one that hands a line to the chat, which decides about it as if the
//! speaker had written it, and those that read files of the repository, if that is on this machine.
//! It cannot write, run or fetch anything by itself. What would have to be asked about is denied.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_agent::{NoInbox, RunLimits, Sink};
use codespar_policy::{Access, Lifetime, Mode, RuleKind, RuleSet, RuleSource};
use codespar_protocol::{ContentBlock, Event, Message, Outcome, SessionId, Usd};
use codespar_tools::{
    Call, Context, Effect, Intent, Registry, Tool, ToolError, ToolOutput, input, standard_tools,
};
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    AnswerPiece, AnswerWatcher, Project, RuntimeError, Surface, WhichSession,
    agent_setup::AgentSetup, find_session,
};

const ROLE: &str = include_str!("prompts/chat_agent.md");
const READ_ONLY: [&str; 4] = ["Read", "Grep", "Glob", "LS"];
const MAX_TURNS: u32 = 20;
const MAX_WALL: Duration = Duration::from_secs(300);

/// Carries out a line of the chat's grammar for the person who speaks, with their rights.
#[async_trait]
pub trait ChatCommands: Send + Sync {
    /// What came of it, in words.
    async fn give(&self, line: &str) -> String;
}

/// Whether the agent may read the files of the project's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// The repository that the thread is about is this directory.
    Read,
    /// It is another one: files of this one are not for the thread.
    Nothing,
}

/// Something that is said to the agent of a thread.
pub struct ChatTurn {
    /// The conversation so far; a new one otherwise.
    pub session: Option<SessionId>,
    /// What tells this message from all others: after a crash it is not said a second time.
    pub identity: String,
    pub speaker: String,
    pub text: String,
    /// The commands there are, for the model.
    pub grammar: String,
    pub files: FileAccess,
    pub max_budget: Option<Usd>,
    pub commands: Arc<dyn ChatCommands>,
    /// Hears of what the agent writes; the answer is the last part of it.
    pub watch: Option<AnswerWatcher>,
}

/// What the agent said.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    pub session: SessionId,
    pub text: String,
    pub cost: Option<Usd>,
}

impl Project {
    /// Whether a model can be asked at all.
    pub fn has_model(&self) -> bool {
        !self.provider.lacks_key && !self.provider.is_simulated()
    }

    /// Says something to the agent of a thread and waits for its answer.
    pub async fn chat(
        self: &Arc<Self>,
        turn: ChatTurn,
        cancel: CancellationToken,
    ) -> Result<ChatReply, RuntimeError> {
        let which = match turn.session.map(|id| id.to_string()) {
            // One that was removed is begun anew.
            Some(id) if find_session(&*self.store, &id).await.is_ok() => WhichSession::Id(id),
            _ => WhichSession::New,
        };
        let session = self.open_session(&which).await?;
        let id = session.transcript.session();
        let mark = format!("<message id=\"{}\"", printable_id(&turn.identity));
        let is_said = session
            .transcript
            .messages()
            .iter()
            .any(|message| message.content.iter().any(|block| has_text(block, &mark)));
        let prompt = format!(
            "{mark} from=\"{}\">\n{}\n</message>",
            printable_id(&turn.speaker),
            turn.text
        );
        let setup = self.chat_setup(&turn, id)?;
        let mut agent = self.agent(session, setup)?;
        let prompt = (!is_said).then(|| Message::user(prompt));
        let result = agent.run(prompt, cancel).await;
        match result.outcome {
            Outcome::Success => Ok(ChatReply {
                session: id,
                text: result.result,
                cost: result.cost.known(),
            }),
            _ => Err(RuntimeError::Failed(result.result)),
        }
    }

    fn chat_setup(
        self: &Arc<Self>,
        turn: &ChatTurn,
        id: SessionId,
    ) -> Result<AgentSetup, RuntimeError> {
        let mut tools = match turn.files {
            FileAccess::Read => {
                let names = READ_ONLY.map(str::to_owned);
                standard_tools().filtered(Some(&names), &self.denied)
            }
            FileAccess::Nothing => Registry::default(),
        };
        tools.add(Arc::new(CommandTool(turn.commands.clone())));
        Ok(AgentSetup {
            role: Some(ROLE.trim().replace("{grammar}", &turn.grammar)),
            style: None,
            tools,
            choice: self.provider.choice.clone(),
            mode: Mode::DontAsk.into(),
            limits: RunLimits {
                max_turns: Some(MAX_TURNS),
                turns_before: 0,
                max_budget: turn.max_budget,
                max_wall: Some(MAX_WALL),
                tree: None,
            },
            root: self.dir.root.clone(),
            cwd: self.dir.root.clone(),
            rules: Arc::new(RwLock::new(self.denying_rules())),
            tree: id,
            workspace_dirs: Vec::new(),
            free_dirs: Vec::new(),
            lifetime: Lifetime::Kept,
            inbox: Arc::new(NoInbox),
            task: None,
            kind: None,
            hooks: Vec::new(),
            gate: None,
            surface: Surface {
                sink: sink(turn.watch.clone()),
                note: None,
                steering: None,
            },
        })
    }

    /// What the user has allowed to agents of their own is not allowed to whoever speaks in a chat;
    /// what is denied to them is denied here too.
    fn denying_rules(&self) -> RuleSet {
        let mut rules = RuleSet::default();
        for (kind, rule, source) in self.rules.read().iter() {
            if kind == RuleKind::Deny {
                rules.add(kind, rule.clone(), source);
            }
        }
        // Its own tool needs no asking: the chat decides about each line.
        if let Ok(own) = RuleSet::parse_list(CommandTool::NAME) {
            for rule in own {
                rules.add(RuleKind::Allow, rule, &RuleSource::named("chat"));
            }
        }
        rules
    }
}

/// Tells of the text among the events.
fn sink(watcher: Option<AnswerWatcher>) -> Sink {
    Arc::new(move |event| {
        let Some(watcher) = &watcher else { return };
        match event {
            Event::TextDelta { text } => watcher.tell(AnswerPiece::Text(text)),
            Event::TurnStarted { turn } if turn > 1 => {
                watcher.tell(AnswerPiece::Text("\n\n".to_owned()));
            }
            Event::Retrying { .. } => watcher.tell(AnswerPiece::Anew),
            _ => {}
        }
    })
}

/// Without what would end an attribute.
fn printable_id(text: &str) -> String {
    let is_plain = |c: &char| !c.is_control() && !matches!(c, '"' | '<' | '>' | '&');
    text.chars().filter(is_plain).take(200).collect()
}

fn has_text(block: &ContentBlock, mark: &str) -> bool {
    match block {
        ContentBlock::Text(block) => block.text.contains(mark),
        _ => false,
    }
}

/// Hands a line to the chat.
struct CommandTool(Arc<dyn ChatCommands>);

impl CommandTool {
    const NAME: &'static str = "command";
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// One command, such as `fix the timeout in login.ts` or `status`.
    line: String,
}

#[async_trait]
impl Tool for CommandTool {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn description(&self) -> &str {
        "Gives one command of the chat on behalf of the person who wrote last, with their rights. \
         Returns what came of it."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, raw: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let Input { line } = input::parse(raw)?;
        Ok(Intent {
            summary: line,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, _: &Context) -> ToolOutput {
        match input::parse::<Input>(&call.input) {
            Ok(Input { line }) => ToolOutput::text(self.0.give(&line).await),
            Err(error) => error.into(),
        }
    }
}
