//! Text that is no command: the agent of the thread answers it.
//!
//! The agent has the rights of whoever speaks, and no others. A line that it gives is read, checked
//! and audited like a message of that person. What only shows something is done at once; what does
//! something becomes a message of theirs on record, which is handled when the agent has answered, in
//! the way of all messages. What cannot be taken back is not done on the word of a model that has
//! read texts of others: the person is offered a button for it.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_dev::RepositoryRef;
use codespar_protocol::Usd;
use codespar_runtime::{AnswerWatcher, ChatCommands, ChatTurn, FileAccess, RuntimeError};
use codespar_store::{MessageChange, NewMessage, StoreError, ThreadBinding};
use parking_lot::Mutex;

use super::{
    ChannelCore,
    commands::help,
    decide::{Turn, verb_of},
    drafts::AnswerCall,
    reply::{Audited, Verdict},
    workplace::Workplace,
};
use crate::{
    ChatCommand, ChatRequest, NotACommand, ReplyChoice, RequestOptions,
    message::{KeptMessage, Origin},
    needed_role, neutral,
    text::shortened,
};

/// The longest line that the agent may give.
const LONGEST_LINE: usize = 4_000;
/// As many buttons as every platform shows.
const MOST_OFFERS: usize = 3;

/// Gives lines for the speaker of a message.
struct SpeakerCommands {
    core: Arc<ChannelCore>,
    turn: Turn,
    workplace: Option<Workplace>,
    /// Lines that the person has to give themselves.
    offered: Mutex<Vec<String>>,
}

/// What becomes of a line.
enum Handling {
    /// It only shows something.
    Now,
    /// It is put on record as a message of the person.
    Message,
    /// The person is asked to give it.
    Offer,
    /// It makes no sense here.
    Refused(&'static str),
}

fn handling(command: &ChatCommand) -> Handling {
    match command {
        ChatCommand::PullRequests { .. }
        | ChatCommand::Status { .. }
        | ChatCommand::Logs { .. }
        | ChatCommand::Cost { .. }
        | ChatCommand::Schedules
        | ChatCommand::Whoami
        | ChatCommand::Help { .. } => Handling::Now,
        ChatCommand::Dev { .. }
        | ChatCommand::Plan { .. }
        | ChatCommand::Review { .. }
        | ChatCommand::Watch { .. }
        | ChatCommand::Unwatch { .. }
        | ChatCommand::Resolve { .. }
        | ChatCommand::Schedule { .. }
        | ChatCommand::Unschedule { .. }
        | ChatCommand::Stop { .. }
        | ChatCommand::Retry { .. } => Handling::Message,
        ChatCommand::Merge { .. }
        | ChatCommand::Approve { .. }
        | ChatCommand::Link { .. }
        | ChatCommand::Unlink => Handling::Offer,
        ChatCommand::Ask { .. } => Handling::Refused("answer the question yourself"),
    }
}

impl ChannelCore {
    /// Whether there is an agent to talk to in a thread.
    pub(crate) async fn has_agent(&self, turn: &Turn) -> bool {
        let workplace = self.workplace(&turn.message.at, None, &turn.binding).await;
        let project = workplace.map_or_else(|_| self.home(), |found| found.project);
        project.has_model()
    }

    /// Has the agent of the thread answer a message, and settles it.
    pub(crate) async fn talk(self: &Arc<Self>, turn: Turn) -> Result<(), StoreError> {
        let workplace = self.workplace(&turn.message.at, None, &turn.binding).await;
        let workplace = match workplace {
            Ok(found) => Some(found),
            Err(RuntimeError::Store(error)) => return Err(error),
            Err(_) => None,
        };
        self.show_activity(&turn.message);
        let commands = Arc::new(SpeakerCommands {
            core: self.clone(),
            turn,
            workplace,
            offered: Mutex::default(),
        });
        let outcome = self.answer_of_agent(&commands).await;
        let turn = &commands.turn;
        let (verdict, text, session, cost) = match outcome {
            Ok(reply) => (Verdict::Done, reply.text, Some(reply.session), reply.cost),
            Err(RuntimeError::Store(error)) => return Err(error),
            Err(error) => (Verdict::Failed, error.to_string(), None, None),
        };
        let offered = std::mem::take(&mut *commands.offered.lock());
        let choices = offered
            .into_iter()
            .take(MOST_OFFERS)
            .map(|line| ReplyChoice {
                label: neutral(&shortened(&line, 40)),
                value: line,
            });
        let answer = self.answer(&turn.message, &turn.kept, text, choices.collect());
        let audited = Audited {
            role: Some(turn.role),
            action: "talk",
            verdict,
            detail: &turn.text,
            task: None,
        };
        let repository = commands.workplace.as_ref().map(|place| place.name.clone());
        let change = MessageChange {
            outbound: vec![answer],
            audit: vec![self.entry(&turn.message, &audited)],
            binding: Some(ThreadBinding {
                session,
                ..ThreadBinding::default()
            }),
            repository,
            cost,
            ..MessageChange::default()
        };
        self.settle(&turn.message, change).await
    }

    async fn answer_of_agent(
        &self,
        commands: &Arc<SpeakerCommands>,
    ) -> Result<codespar_runtime::ChatReply, RuntimeError> {
        let turn = &commands.turn;
        let (project, files, max_budget) = match &commands.workplace {
            Some(place) => {
                let left = self.budget(place).await?;
                (place.project.clone(), readable(place), left)
            }
            None => (self.home(), FileAccess::Nothing, None),
        };
        let write = |call: AnswerCall| async move {
            let said = said_to_agent(commands, files, max_budget, call.watch);
            project.chat(said, call.cancel).await
        };
        self.written(turn, write).await
    }
}

fn said_to_agent(
    commands: &Arc<SpeakerCommands>,
    files: FileAccess,
    max_budget: Option<Usd>,
    watch: Option<AnswerWatcher>,
) -> ChatTurn {
    let turn = &commands.turn;
    ChatTurn {
        session: turn.binding.session,
        identity: turn.message.identity.clone(),
        speaker: turn.kept.speaker.name.clone(),
        text: turn.text.clone(),
        grammar: help(None),
        files,
        max_budget,
        commands: commands.clone(),
        watch,
    }
}

/// Files are read only where the directory of the project is the repository of the thread.
fn readable(place: &Workplace) -> FileAccess {
    match &place.repository {
        RepositoryRef::Local { path } if *path == place.project.dir.root => FileAccess::Read,
        _ => FileAccess::Nothing,
    }
}

#[async_trait]
impl ChatCommands for SpeakerCommands {
    async fn give(&self, line: &str) -> String {
        let line = line.trim();
        if line.is_empty() || line.chars().count() > LONGEST_LINE {
            return format!("a line has 1 to {LONGEST_LINE} characters");
        }
        let parsed = self.core.parse_line(line, self.workplace.as_ref());
        let request = match parsed {
            Ok(request) => request,
            Err(NotACommand::Malformed(text)) => return text,
            Err(NotACommand::Prose { .. }) => return "that is not a command".to_owned(),
        };
        let needed = needed_role(&request.command);
        if !self.turn.role.allows(needed) {
            let text = format!("this needs the role {needed}; they have {}", self.turn.role);
            return self.audited(line, &request, Verdict::Refused, text).await;
        }
        match handling(&request.command) {
            Handling::Now => match self.core.run_command(&self.turn, &request).await {
                Ok(said) => self.audited(line, &request, Verdict::Done, said.text).await,
                Err(error) => error.to_string(),
            },
            Handling::Message => self.put_on_record(line).await,
            Handling::Offer => {
                self.offered.lock().push(line.to_owned());
                "this is for the person to decide; a button for it is shown with your answer"
                    .to_owned()
            }
            Handling::Refused(reason) => reason.to_owned(),
        }
    }
}

impl SpeakerCommands {
    async fn audited(
        &self,
        line: &str,
        request: &ChatRequest,
        verdict: Verdict,
        text: String,
    ) -> String {
        let audited = Audited {
            role: Some(self.turn.role),
            action: verb_of(&request.command),
            verdict,
            detail: line,
            task: None,
        };
        let entry = self.core.entry(&self.turn.message, &audited);
        match self.core.store().append_audit(entry).await {
            Ok(()) => text,
            // What cannot be put on record is not done.
            Err(error) => format!("this cannot be done now: {error}"),
        }
    }

    /// The same line for the same message is one message, so a crash does not give it twice.
    async fn put_on_record(&self, line: &str) -> String {
        let message = &self.turn.message;
        let kept = KeptMessage {
            text: line.to_owned(),
            origin: Some(Origin::Agent),
            reply_to: None,
            ..self.turn.kept.clone()
        };
        let Ok(body) = serde_json::to_string(&kept) else {
            return "this cannot be put on record".to_owned();
        };
        let new = NewMessage {
            identity: format!("{}/agent/{line}", message.identity),
            at: message.at.clone(),
            speaker: message.speaker.clone(),
            mentioned: true,
            body,
        };
        match self.core.store().receive_message(new).await {
            Ok(_) => "accepted; it begins when you have answered".to_owned(),
            Err(error) => format!("this cannot be put on record: {error}"),
        }
    }
}

/// The text of a thread that is about a pull request goes on with it.
pub(crate) fn follow_up(text: &str) -> ChatRequest {
    ChatRequest {
        command: ChatCommand::Dev {
            instruction: text.to_owned(),
        },
        options: RequestOptions::default(),
    }
}
