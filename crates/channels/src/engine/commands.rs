//! Commands without a task of their own: questions, lists, links, stops.
//!
//! Each command is a function that gives what is to be said. `carry_out` then writes the answer,
//! the audit entry and the state of the message in one transaction. So a command that a crash
//! interrupts is carried out again and answered once; those that have an effect outside (a review,
//! a merge) find it done.

use std::path::PathBuf;

use codespar_protocol::{TaskId, TaskRecord, TaskStatus, Usd};
use codespar_runtime::{AskOnce, RuntimeError, ask_once};
use codespar_store::{MessageChange, StoreError, TaskFilter};
use codespar_tasks::find_typed_task;

use super::{
    ChannelCore,
    decide::{Turn, verb_of},
    drafts::AnswerCall,
    limits::BudgetError,
    pictures::Picture,
    pulls::Said,
    reply::{Audited, Verdict},
    workplace::Workplace,
};
use crate::{ChatCommand, ChatRequest, Verb};

/// How much of the end of an output is shown.
const OUTPUT: usize = 3_000;
/// How much of it is given as a file.
const OUTPUT_FILE: usize = 200_000;
/// The most tasks of a state that are listed.
const MOST_LISTED: u32 = 30;

impl ChannelCore {
    /// Carries out a command and settles its message.
    pub(crate) async fn carry_out(
        &self,
        turn: &Turn,
        request: &ChatRequest,
    ) -> Result<(), StoreError> {
        let outcome = self.run_command(turn, request).await;
        let (verdict, said) = match outcome {
            Ok(said) => (Verdict::Done, said),
            // Nothing is known of what a store that does not answer has: it is tried again.
            Err(RuntimeError::Store(error)) => return Err(error),
            Err(error) => (Verdict::Failed, Said::text(error.to_string())),
        };
        let audited = Audited {
            role: Some(turn.role),
            action: verb_of(&request.command),
            verdict,
            detail: &turn.text,
            task: None,
        };
        let mut entry = self.entry(&turn.message, &audited);
        entry.repository = said.repository.clone();
        let mut outbound = self.long_answer(&turn.message, &turn.kept, &said.text, &said.choices);
        outbound.extend(said.file.and_then(|text| self.file(&turn.message, text)));
        outbound.extend(said.outbound);
        let mut audit = vec![entry];
        audit.extend(said.audit);
        let change = MessageChange {
            outbound,
            audit,
            repository: said.repository,
            cost: said.cost,
            work: said.work,
            started: said.started,
            ..MessageChange::default()
        };
        self.settle(&turn.message, change).await
    }

    /// Whether the speaker may give the command was decided before (`engine/decide.rs`). The match
    /// is complete on purpose: a command that is added to the grammar does not compile until it is
    /// decided what it does here.
    pub(crate) async fn run_command(
        &self,
        turn: &Turn,
        request: &ChatRequest,
    ) -> Result<Said, RuntimeError> {
        let options = &request.options;
        match &request.command {
            ChatCommand::Ask { question } => self.ask(turn, question, request).await,
            ChatCommand::Review { pull } => self.review_pull(turn, pull, options).await,
            ChatCommand::Merge { pull, strategy } => {
                self.merge_pull(turn, pull, *strategy, options).await
            }
            ChatCommand::PullRequests { state } => self.list_pulls(turn, *state, options).await,
            ChatCommand::Status { id: None } => self.tasks_here(turn).await,
            ChatCommand::Status { id: Some(id) } => {
                Ok(Said::text(status_line(&self.task_here(turn, id).await?)))
            }
            ChatCommand::Logs { id } => {
                let record = self.task_here(turn, id).await?;
                self.output_of(&record).await
            }
            ChatCommand::Cost { id: Some(id) } => {
                let record = self.task_here(turn, id).await?;
                Ok(Said::text(format!(
                    "{} {}: {} tokens",
                    record.task_id,
                    record.cost_usd,
                    record.usage.total_tokens()
                )))
            }
            ChatCommand::Cost { id: None } => self.cost_today().await,
            ChatCommand::Stop { id } => self.stop(turn, id.as_deref()).await,
            ChatCommand::Schedule { when, line, .. } => self.schedule(turn, when, line).await,
            ChatCommand::Schedules => self.list_schedules(turn).await,
            ChatCommand::Unschedule { id } => self.unschedule(turn, id).await,
            ChatCommand::Link { .. } | ChatCommand::Unlink if turn.kept.forge.is_some() => {
                Err(RuntimeError::Usage(
                    "comments are about their own repository; nothing is linked here".to_owned(),
                ))
            }
            ChatCommand::Link { repository } => self.link(turn, repository).await,
            ChatCommand::Unlink => self.unlink(turn).await,
            ChatCommand::Whoami => Ok(Said::text(whoami(turn, self.link_address()))),
            ChatCommand::Help { about } => Ok(Said::text(help(*about))),
            ChatCommand::Plan { feature } => self.plan(turn, feature, options).await,
            ChatCommand::Approve { steps } => self.approve(turn, steps).await,
            ChatCommand::Watch { pull } => self.watch_pull(turn, pull, options).await,
            ChatCommand::Unwatch { pull } => self.unwatch_pull(turn, pull, options).await,
            // These are work, and do not get here.
            ChatCommand::Dev { .. } | ChatCommand::Retry { .. } | ChatCommand::Resolve { .. } => {
                Err(RuntimeError::Failed(
                    "this command has a task of its own".to_owned(),
                ))
            }
        }
    }

    /// What may still be spent today.
    pub(crate) async fn budget(&self, workplace: &Workplace) -> Result<Option<Usd>, RuntimeError> {
        let left = self.budget_left(&workplace.name).await;
        left.map_err(|error| match error {
            BudgetError::UsedUp(text) => RuntimeError::Usage(text),
            BudgetError::Store(error) => error.into(),
        })
    }

    /// The answer is shown while it is written where the platform can, and counts against the
    /// budget of the repository that the thread is about.
    async fn ask(
        &self,
        turn: &Turn,
        question: &str,
        request: &ChatRequest,
    ) -> Result<Said, RuntimeError> {
        let named = request.options.repository.as_deref();
        let workplace = self.workplace(&turn.message.at, named, &turn.binding).await;
        // A question needs no repository; its cost is then counted for all.
        let (project, max_budget, repository) = match workplace {
            Ok(workplace) => {
                let left = self.budget(&workplace).await?;
                (workplace.project, left, Some(workplace.name))
            }
            Err(RuntimeError::Store(error)) => return Err(error.into()),
            Err(_) => (self.home(), None, None),
        };
        let (images, left_out) = usable(&turn.pictures);
        let asked = AskOnce {
            question: question.to_owned(),
            images,
            model: request.options.model.clone(),
            max_budget,
            ..AskOnce::default()
        };
        let dir = &project.dir;
        let write = |call: AnswerCall| async move {
            let watch = call.watch;
            ask_once(AskOnce { watch, ..asked }, dir, &call.cancel).await
        };
        let reply = self.written(turn, write).await?;
        Ok(Said {
            cost: reply.cost.known(),
            repository,
            ..Said::text(reply.text + &left_out)
        })
    }

    /// A task that was started from this conversation, or on the page one of its project; others do
    /// not exist here.
    pub(crate) async fn task_here(
        &self,
        turn: &Turn,
        text: &str,
    ) -> Result<TaskRecord, RuntimeError> {
        let missing = || RuntimeError::Usage(format!("there is no task `{text}` here"));
        let found = find_typed_task(&**self.store(), text).await;
        let id: TaskId = match found {
            Ok(Some(id)) => id,
            Ok(None) | Err(_) => return Err(missing()),
        };
        if let Some(page) = self.page(&turn.message.at) {
            let record = self.store().task(&id).await?;
            return match project_of(&record) == Some(&page.root) {
                true => Ok(record),
                false => Err(missing()),
            };
        }
        let of = self.store().message_of_task(&id).await?;
        let at = &turn.message.at;
        let is_here = |message: &codespar_store::ChannelMessage| {
            message.at.channel == at.channel && message.at.conversation == at.conversation
        };
        match of.is_some_and(|message| is_here(&message)) {
            true => Ok(self.store().task(&id).await?),
            false => Err(missing()),
        }
    }

    /// What the thread is at work on, the latest of it.
    async fn task_of_thread(&self, turn: &Turn) -> Result<TaskRecord, RuntimeError> {
        let at = &turn.message.at;
        let open = self.store().open_messages(&at.channel).await?;
        let ours = open.into_iter().rev().filter(|message| message.at == *at);
        for id in ours.filter_map(|message| message.task_id) {
            if let Ok(record) = self.store().task(&id).await {
                return Ok(record);
            }
        }
        Err(RuntimeError::Usage(
            "nothing is under way in this thread".to_owned(),
        ))
    }

    /// What is open in this conversation, or on a page in its project. Work of other conversations
    /// is not shown, even to those who could see it there.
    async fn tasks_here(&self, turn: &Turn) -> Result<Said, RuntimeError> {
        let at = &turn.message.at;
        let mut lines = Vec::new();
        if let Some(page) = self.page(at) {
            for status in [TaskStatus::Running, TaskStatus::Pending] {
                let filter = TaskFilter {
                    status: Some(status),
                    project_roots: vec![page.root.clone()],
                    limit: Some(MOST_LISTED),
                    ..TaskFilter::default()
                };
                let tasks = self.store().tasks(filter).await?;
                lines.extend(tasks.iter().map(status_line));
            }
            return Ok(Said::text(under_way(&lines)));
        }
        let open = self.store().open_messages(&at.channel).await?;
        for message in open {
            if message.at.conversation != at.conversation {
                continue;
            }
            let Some(id) = &message.task_id else { continue };
            if let Ok(record) = self.store().task(id).await {
                lines.push(status_line(&record));
            }
        }
        Ok(Said::text(under_way(&lines)))
    }

    async fn cost_today(&self) -> Result<Said, RuntimeError> {
        let seconds = jiff::Timestamp::now().as_second().div_euclid(86_400) * 86_400;
        let since = jiff::Timestamp::from_second(seconds)
            .map_err(|error| RuntimeError::Failed(error.to_string()))?;
        let spent = self.store().channel_spending(since, None).await?;
        Ok(Said::text(format!("{spent} today, in all channels")))
    }

    async fn stop(&self, turn: &Turn, text: Option<&str>) -> Result<Said, RuntimeError> {
        let record = match text {
            Some(text) => self.task_here(turn, text).await?,
            None => self.task_of_thread(turn).await?,
        };
        let id = &record.task_id;
        if record.status.is_final() {
            return Ok(Said::text(format!("{id} is {} already", record.status)));
        }
        let reason = format!("{} asked for it", turn.kept.speaker.name);
        let stopped = self.setup.home.hub.stop(id, &reason).await;
        let stopped = stopped.map_err(|error| RuntimeError::Failed(error.to_string()))?;
        Ok(Said::text(match stopped.status {
            TaskStatus::Killed => format!("{id} is stopped"),
            status => format!("{id} was asked to stop; it is {status}"),
        }))
    }

    async fn link(&self, turn: &Turn, repository: &str) -> Result<Said, RuntimeError> {
        // What cannot be reached is said now, not with the first instruction.
        let workplace = self.open(repository)?;
        self.pulls(&workplace).await?;
        let at = &turn.message.at;
        self.store()
            .link_repository(
                &at.channel,
                &at.conversation,
                repository,
                &turn.message.speaker,
            )
            .await?;
        Ok(Said {
            repository: Some(repository.to_owned()),
            ..Said::text(format!("{repository} is linked here, as the default"))
        })
    }

    /// The end of it: what happened last is what is looked for. More of it is in the file.
    async fn output_of(&self, record: &TaskRecord) -> Result<Said, RuntimeError> {
        let outputs = self.setup.runtime.outputs();
        let tail = outputs.tail(record, OUTPUT).await?;
        Ok(match tail.text.trim() {
            "" => Said::text(format!("{} has no output yet", record.task_id)),
            text => Said {
                file: match tail.length > OUTPUT as u64 {
                    true => Some(outputs.tail(record, OUTPUT_FILE).await?.text),
                    false => None,
                },
                ..Said::text(text)
            },
        })
    }

    async fn unlink(&self, turn: &Turn) -> Result<Said, RuntimeError> {
        let at = &turn.message.at;
        let unlinked = self
            .store()
            .unlink_repository(&at.channel, &at.conversation)
            .await?;
        Ok(Said::text(match unlinked {
            Some(name) => format!("{name} is not linked here any more"),
            None => "no repository is linked here".to_owned(),
        }))
    }
}

/// The paths of those that can be used, and what is said of the others.
fn usable(pictures: &[Picture]) -> (Vec<PathBuf>, String) {
    let found = pictures.iter().filter_map(|one| one.found.clone().ok());
    let problems = pictures.iter().filter_map(Picture::problem);
    let left_out: Vec<String> = problems.map(|problem| format!("\n{problem}")).collect();
    (found.collect(), left_out.concat())
}

fn under_way(lines: &[String]) -> String {
    match lines.is_empty() {
        true => "nothing is under way here".to_owned(),
        false => lines.join("\n"),
    }
}

/// By the authority of the task, which nobody can change, and not by anything that was said about
/// it.
fn project_of(record: &TaskRecord) -> Option<&PathBuf> {
    let authority = record.authority.as_ref();
    authority.map(|authority| &authority.project_root)
}

fn status_line(record: &TaskRecord) -> String {
    let mut line = format!("{} {}: {}", record.task_id, record.status, record.subject);
    if let Some(error) = &record.error {
        line.push_str(&format!(" ({error})"));
    }
    line
}

/// With the page at which a person links an account of the forge, where there is one.
fn whoami(turn: &Turn, link: Option<&str>) -> String {
    let speaker = &turn.kept.speaker;
    let mut text = format!("{} ({}), role {}", speaker.name, speaker.id, turn.role);
    match (&turn.forge_login, link) {
        (Some(login), _) => text.push_str(&format!(", {login} at the forge")),
        (None, Some(page)) if turn.message.at.channel != crate::WEB => {
            text.push_str(&format!("\nLink your account at GitHub: {page}"));
        }
        _ => {}
    }
    text
}

/// Of one command, or of all with a line each. Both are made from the grammar, so help cannot name
/// a command that does not exist.
pub(crate) fn help(about: Option<Verb>) -> String {
    let line = |verb: &Verb| format!("{}: {}", verb.usage(), verb.description());
    match about {
        Some(verb) => line(&verb),
        None => {
            let mut lines: Vec<String> = Verb::ALL.iter().map(line).collect();
            lines.push("At the end: in owner/repo, on <branch>, with <model>.".to_owned());
            lines.join("\n")
        }
    }
}
