//! Work that is a task: begun once, followed to its end, told of in its thread.
//!
//! The id of the task is chosen and recorded with the decision, before there is a task. A process
//! that dies in between leaves a message that is at work on a task which does not exist; the next
//! one starts it under that id. One that dies after finds the task and follows it. So there is no
//! moment at which a message could start a second one.

use codespar_dev::recorded_progress;
use codespar_protocol::{PullRequestState, QuestionStatus, TaskId, TaskRecord, TaskStatus};
use codespar_runtime::{DevRequest, RuntimeError};
use codespar_store::{
    ChannelMessage, MessageChange, MessageState, NewOutbound, StoreError, ThreadBinding,
};

use super::{
    ChannelCore,
    brief::{Brief, DevBrief},
    decide::Turn,
    plans::{BaseState, step_label},
    reply::{Audited, Verdict, addressee},
    workplace::Workplace,
};
use crate::{
    ChatCommand, ChatRequest, Outbound, OutboundKind, PullRef, RequestOptions,
    message::{KeptMessage, Origin},
    progress::{self, WORK},
};

/// A command that is work, and whose it is.
pub(crate) struct Order {
    pub(crate) turn: Turn,
    pub(crate) command: WorkCommand,
    pub(crate) options: RequestOptions,
}

/// What has a task of its own. Everything else that people can say is carried out at once
/// (`engine/commands.rs`) and leaves nothing that has to be followed.
pub(crate) enum WorkCommand {
    Dev { instruction: String },
    Retry { id: String },
    Resolve { pull: PullRef },
}

impl Order {
    /// Gives commands without a task of their own back.
    pub(crate) fn of(
        turn: Box<Turn>,
        request: Box<ChatRequest>,
    ) -> Result<Self, (Box<Turn>, Box<ChatRequest>)> {
        let command = match &request.command {
            ChatCommand::Dev { instruction } => WorkCommand::Dev {
                instruction: instruction.clone(),
            },
            ChatCommand::Retry { id } => WorkCommand::Retry { id: id.clone() },
            ChatCommand::Resolve { pull } => WorkCommand::Resolve { pull: pull.clone() },
            _ => return Err((turn, request)),
        };
        Ok(Self {
            turn: *turn,
            command,
            options: request.options,
        })
    }

    fn action(&self) -> &'static str {
        match self.command {
            WorkCommand::Dev { .. } => "dev",
            WorkCommand::Retry { .. } => "retry",
            WorkCommand::Resolve { .. } => "resolve",
        }
    }
}

/// The key of a message about a task. There is one message for each key, which is edited: progress
/// is one that changes, and a result that is told twice after a crash is the same one.
pub(crate) fn task_key(task: &TaskId, what: &str) -> String {
    format!("task/{task}/{what}")
}

fn queue_key(message: &ChannelMessage) -> String {
    format!("{}/queued", message.identity)
}

impl ChannelCore {
    /// Puts a message off until the work of its thread has ended.
    pub(crate) async fn queue(&self, order: &Order, behind: &TaskId) -> Result<(), StoreError> {
        let message = &order.turn.message;
        let text = format!("queued: it starts when {behind} has ended");
        let change = MessageChange {
            state: Some(MessageState::Queued),
            outbound: vec![self.note(message, queue_key(message), text)],
            ..MessageChange::default()
        };
        self.store()
            .change_message(&message.identity, change)
            .await?;
        Ok(())
    }

    fn note(&self, message: &ChannelMessage, key: String, text: String) -> NewOutbound {
        let outbound = Outbound {
            kind: OutboundKind::Text,
            mention: None,
            text,
            choices: Vec::new(),
        };
        self.outbound(key, &message.at, outbound)
    }

    /// Begins work for orders of one thread together: the first one's message has the task. What is
    /// to be done, the id of its task and the first state of its message are one transaction.
    pub(crate) async fn begin(&self, orders: &[Order]) -> Result<(), StoreError> {
        let Some(first) = orders.first() else {
            return Ok(());
        };
        let brief = match self.brief(orders).await {
            Ok(brief) => brief,
            Err(RuntimeError::Store(error)) => return Err(error),
            Err(error) => {
                for order in orders {
                    let (turn, action) = (&order.turn, order.action());
                    self.refuse(turn, action, &error.to_string()).await?;
                }
                return Ok(());
            }
        };
        let message = &first.turn.message;
        let task = message.task_id.clone().unwrap_or_else(|| TaskId::new(WORK));
        let repository = brief.repository().to_owned();
        let change = MessageChange {
            state: Some(MessageState::Working),
            work: Some(serde_json::to_string(&brief).unwrap_or_default()),
            merged: identities(&orders[1..]),
            binding: Some(ThreadBinding {
                repository: Some(repository.clone()),
                ..ThreadBinding::default()
            }),
            outbound: self.first_messages(orders, &brief, &task),
            audit: orders
                .iter()
                .map(|order| {
                    let audited = Audited {
                        role: Some(order.turn.role),
                        action: order.action(),
                        verdict: Verdict::Allowed,
                        detail: &order.turn.text,
                        task: Some(&task),
                    };
                    let mut entry = self.entry(&order.turn.message, &audited);
                    entry.repository = Some(repository.clone());
                    entry
                })
                .collect(),
            repository: Some(repository.clone()),
            task_id: Some(task),
            ..MessageChange::default()
        };
        self.store()
            .change_message(&message.identity, change)
            .await?;
        self.reach("begun");
        Ok(())
    }

    /// The progress message, what becomes of notes about the queue, and images that are left out.
    fn first_messages(&self, orders: &[Order], brief: &Brief, task: &TaskId) -> Vec<NewOutbound> {
        let mut messages = Vec::new();
        for order in orders {
            let message = &order.turn.message;
            if message.state == MessageState::Queued {
                let text = format!("started with {task}");
                messages.push(self.note(message, queue_key(message), text));
            }
            for picture in &order.turn.pictures {
                if let Some(problem) = picture.problem() {
                    let key = format!("{}/image/{}", message.identity, picture.name);
                    messages.push(self.note(message, key, problem));
                }
            }
        }
        if let Some(first) = orders.first() {
            let what = match brief {
                Brief::Dev(DevBrief {
                    pull_request: Some(number),
                    ..
                }) => format!("Adding to PR #{number}…"),
                Brief::Dev(_) => "Searching…".to_owned(),
                Brief::Resolve(_) => "Merging the base…".to_owned(),
                Brief::Retry { task, .. } => format!("Trying {task} again…"),
            };
            let outbound = progress::starting(brief.repository(), &what);
            let key = task_key(task, "progress");
            messages.push(self.outbound(key, &first.turn.message.at, outbound));
        }
        messages
    }

    /// What is to be done, with everything that a later process needs for it.
    async fn brief(&self, orders: &[Order]) -> Result<Brief, RuntimeError> {
        let [first, ..] = orders else {
            return Err(RuntimeError::Failed("nothing was ordered".to_owned()));
        };
        let turn = &first.turn;
        if let WorkCommand::Retry { id } = &first.command {
            let record = self.task_here(turn, id).await?;
            if !matches!(record.status, TaskStatus::Failed | TaskStatus::Killed) {
                return Err(RuntimeError::Usage(format!(
                    "{} is {}; only a run that failed or was stopped can be run again",
                    record.task_id, record.status
                )));
            }
            let earlier = self.store().message_of_task(&record.task_id).await?;
            let repository = match earlier.and_then(|message| message.repository) {
                Some(repository) => repository,
                // It was not started from a channel.
                None => {
                    let at = &turn.message.at;
                    self.workplace(at, None, &turn.binding).await?.name
                }
            };
            return Ok(Brief::Retry {
                task: record.task_id,
                repository,
            });
        }
        if let WorkCommand::Resolve { pull } = &first.command {
            return self.resolve_brief(first, pull).await;
        }
        let named = first.options.repository.as_deref();
        let workplace = self
            .workplace(&turn.message.at, named, &turn.binding)
            .await?;
        let max_budget = self.budget(&workplace).await?;
        let instructions = orders.iter().filter_map(|order| match &order.command {
            WorkCommand::Dev { instruction } => Some(instruction.as_str()),
            WorkCommand::Retry { .. } | WorkCommand::Resolve { .. } => None,
        });
        let pictures = orders.iter().flat_map(|order| &order.turn.pictures);
        Ok(Brief::Dev(DevBrief {
            instruction: instructions.collect::<Vec<_>>().join("\n\n"),
            pull_request: match &turn.kept.origin {
                Some(Origin::Watch { pull_request, .. }) => Some(*pull_request),
                _ => self.open_pull(first, &workplace).await?,
            },
            base: first.options.branch.clone(),
            model: first.options.model.clone(),
            images: pictures.filter_map(|one| one.found.clone().ok()).collect(),
            requested_by: turn.requester(),
            repository: workplace.name,
            max_budget,
            after: None,
        }))
    }

    async fn resolve_brief(&self, order: &Order, pull: &PullRef) -> Result<Brief, RuntimeError> {
        let turn = &order.turn;
        let workplace = self.place_of(turn, pull, &order.options).await?;
        let max_budget = self.budget(&workplace).await?;
        let number = pull.number;
        Ok(Brief::Resolve(DevBrief {
            instruction: format!("Merge the base of pull request #{number} into its branch"),
            repository: workplace.name,
            base: None,
            pull_request: Some(number),
            model: order.options.model.clone(),
            images: Vec::new(),
            requested_by: turn.requester(),
            max_budget,
            after: None,
        }))
    }

    /// The pull request that the thread is about, while it is open.
    async fn open_pull(
        &self,
        order: &Order,
        workplace: &Workplace,
    ) -> Result<Option<u64>, RuntimeError> {
        let binding = &order.turn.binding;
        let is_same = binding.repository.as_deref() == Some(&workplace.name);
        let Some(number) = binding.pull_request else {
            return Ok(None);
        };
        if !is_same || order.options.branch.is_some() {
            return Ok(None);
        }
        let pull = self.pulls(workplace).await?.show(number).await?;
        Ok((pull.state == PullRequestState::Open).then_some(number))
    }

    /// Starts the task of a message under the id on record, or finds it.
    pub(crate) async fn start(&self, message: &ChannelMessage) -> Result<(), StoreError> {
        let brief: Option<Brief> = message
            .work
            .as_deref()
            .and_then(|work| serde_json::from_str(work).ok());
        let (Some(brief), Some(task)) = (brief, &message.task_id) else {
            return self
                .conclude_unstarted(message, "its record cannot be read")
                .await;
        };
        if let Brief::Dev(DevBrief {
            after: Some(after), ..
        }) = &brief
        {
            match self.base_state(message, after).await? {
                BaseState::There => {}
                BaseState::Coming => return Ok(()),
                BaseState::Missing => {
                    let reason = format!("{after}, which it builds on, was not started");
                    return self.conclude_unstarted(message, &reason).await;
                }
            }
        }
        match self.start_task(message, &brief, task).await {
            Ok(()) => {
                self.reach("started");
                Ok(())
            }
            Err(RuntimeError::Store(error)) => Err(error),
            Err(error) => self.conclude_unstarted(message, &error.to_string()).await,
        }
    }

    async fn start_task(
        &self,
        message: &ChannelMessage,
        brief: &Brief,
        task: &TaskId,
    ) -> Result<(), RuntimeError> {
        let workplace = self.open_for(&message.at, brief.repository())?;
        let is_merge = matches!(brief, Brief::Resolve(_));
        match brief {
            Brief::Retry { task: earlier, .. } => {
                workplace.project.retry_dev(earlier, task).await?;
            }
            Brief::Dev(brief) | Brief::Resolve(brief) => {
                let request = DevRequest {
                    base: brief.base.clone(),
                    pull_request: brief.pull_request,
                    images: brief.images.clone(),
                    model: brief.model.clone(),
                    max_budget: brief.max_budget,
                    requested_by: Some(brief.requested_by.clone()),
                    ..DevRequest::new(brief.instruction.clone(), workplace.repository.clone())
                };
                let after = brief.after.iter().cloned().collect();
                let project = &workplace.project;
                match is_merge {
                    true => project.start_resolve(task, request).await?,
                    false => project.start_dev_after(task, request, after).await?,
                };
            }
        }
        Ok(())
    }

    async fn conclude_unstarted(
        &self,
        message: &ChannelMessage,
        reason: &str,
    ) -> Result<(), StoreError> {
        let kept: Option<KeptMessage> = serde_json::from_str(&message.body).ok();
        let key = format!("{}/result", message.identity);
        let outbound = Outbound {
            kind: OutboundKind::Result,
            mention: kept.as_ref().map(addressee),
            text: format!("it could not be started: {reason}"),
            choices: Vec::new(),
        };
        let audited = Audited {
            role: None,
            action: "dev",
            verdict: Verdict::Failed,
            detail: reason,
            task: None,
        };
        let mut messages = vec![self.outbound(key, &message.at, outbound)];
        if let Some(task) = &message.task_id {
            let repository = message.repository.as_deref().unwrap_or_default();
            let ended = progress::starting(repository, "❌ Not started");
            messages.push(self.outbound(task_key(task, "progress"), &message.at, ended));
        }
        let change = MessageChange {
            outbound: messages,
            audit: vec![self.entry(message, &audited)],
            ..MessageChange::default()
        };
        self.settle(message, change).await
    }

    /// Draws the state of a task into its message; at its end the result is told.
    pub(crate) async fn follow(
        &self,
        message: &ChannelMessage,
        record: &TaskRecord,
    ) -> Result<(), StoreError> {
        let store = self.store();
        let run = recorded_progress(&**store, record).await?;
        let repository = message.repository.as_deref().unwrap_or_default();
        let kept = serde_json::from_str::<KeptMessage>(&message.body);
        let label = match kept.as_ref().map(|kept| &kept.origin) {
            Ok(Some(Origin::Plan { step })) => step_label(repository, *step),
            _ => repository.to_owned(),
        };
        let drawn = progress::drawn(&label, record, &run);
        let key = task_key(&record.task_id, "progress");
        let drawn = self.outbound(key, &message.at, drawn);
        if !record.status.is_final() {
            store.put_outbound(drawn).await?;
            self.reach("drawn");
            return self.put_questions(message, &record.task_id).await;
        }
        let Ok(kept) = kept else {
            return self
                .conclude_unstarted(message, "its record cannot be read")
                .await;
        };
        let result = progress::result(addressee(&kept), record, &run);
        let key = task_key(&record.task_id, "result");
        let mut outbound = vec![drawn, self.outbound(key, &message.at, result)];
        outbound.extend(self.closed_questions(message).await?);
        let audited = Audited {
            role: None,
            action: "dev",
            verdict: match record.status {
                TaskStatus::Completed => Verdict::Done,
                _ => Verdict::Failed,
            },
            detail: record.error.as_deref().unwrap_or(&record.subject),
            task: Some(&record.task_id),
        };
        let pull_request = run.report.as_ref().map(|report| report.pull_request.number);
        self.report(message, record, pull_request);
        let change = MessageChange {
            cost: Some(record.cost_usd.at_least()),
            binding: Some(ThreadBinding {
                pull_request,
                ..ThreadBinding::default()
            }),
            outbound,
            audit: vec![self.entry(message, &audited)],
            ..MessageChange::default()
        };
        self.settle(message, change).await
    }

    /// Puts the open questions of a task, and settles those that do not wait any more.
    async fn put_questions(
        &self,
        message: &ChannelMessage,
        task: &TaskId,
    ) -> Result<(), StoreError> {
        let Ok(kept) = serde_json::from_str::<KeptMessage>(&message.body) else {
            return Ok(());
        };
        for question in self.open_questions(task).await? {
            let outbound = self.question_message(message, &kept, &question);
            self.store().put_outbound(outbound).await?;
            self.reach("asked");
        }
        for outbound in self.closed_questions(message).await? {
            self.store().put_outbound(outbound).await?;
        }
        Ok(())
    }

    /// Messages of questions in a thread that do not wait any more, as they are to be shown.
    async fn closed_questions(
        &self,
        message: &ChannelMessage,
    ) -> Result<Vec<NewOutbound>, StoreError> {
        let at = &message.at;
        let rows = self
            .store()
            .sent_to(&at.channel, &at.conversation, 100)
            .await?;
        let mut closed = Vec::new();
        for row in rows {
            let is_open = row.kind == OutboundKind::Question.as_str() && row.at == *at;
            let Some(id) = row.key.strip_prefix("question/").filter(|_| is_open) else {
                continue;
            };
            let Ok(id) = id.parse() else { continue };
            let question = self.store().question(&id).await?;
            if question.status != QuestionStatus::Open {
                closed.push(self.settled_question(at, &question));
            }
        }
        Ok(closed)
    }
}

/// The messages whose instructions go into the task of the first; they are settled with it.
fn identities(orders: &[Order]) -> Vec<String> {
    let identities = orders
        .iter()
        .map(|order| order.turn.message.identity.clone());
    identities.collect()
}
