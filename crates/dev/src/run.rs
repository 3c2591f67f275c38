//! One run of the dev agent: what its steps share.

use std::{io::Write as _, path::PathBuf, sync::Arc};

use codespar_protocol::{ContentBlock, Cost, Event, Message, Role, Usage, Usd};
use codespar_tasks::{Control, TaskHub};
use parking_lot::Mutex;

use crate::{
    DevGround, DevOrder, Failure, Link,
    asking::{Asked, Asker},
    ledger::Ledger,
};

/// Names of answers on record; the picker's is one of them.
pub(crate) const ANSWER: &str = "answer-";

pub(crate) struct Run {
    pub(crate) ground: DevGround,
    pub(crate) hub: Arc<TaskHub>,
    pub(crate) control: Control,
    pub(crate) order: DevOrder,
    pub(crate) ledger: Ledger,
    pub(crate) link: Link,
    /// What was said already in an earlier attempt is not said again.
    said: Mutex<Vec<String>>,
}

impl Run {
    /// Reaches the repository and opens the record.
    pub(crate) async fn open(
        ground: DevGround,
        hub: Arc<TaskHub>,
        control: Control,
    ) -> Result<Self, Failure> {
        let order = DevOrder::read(&control.record.metadata).map_err(Failure::Broken)?;
        let ledger = Ledger::open(
            control.store.clone(),
            control.record.task_id.clone(),
            control.epoch,
            ground.hook.clone(),
        )
        .await?;
        let link = ground
            .linker
            .link(&order.repository)
            .await
            .map_err(Failure::Refused)?;
        let said = std::fs::read_to_string(&control.output).unwrap_or_default();
        Ok(Self {
            ground,
            hub,
            control,
            order,
            ledger,
            link,
            said: Mutex::new(said.lines().map(str::to_owned).collect()),
        })
    }

    /// Says something to whoever listens, and writes it to the task's output.
    pub(crate) fn say(&self, step: &str, text: &str) {
        let text = self.ground.redactor.redact(text).into_owned();
        {
            let mut said = self.said.lock();
            let first = text.lines().next().unwrap_or_default();
            if let Some(place) = said.iter().position(|line| line == first) {
                // Each line of the earlier attempt stands for one.
                said.remove(place);
            } else {
                self.note(&text);
            }
        }
        self.hub.tell(
            &self.control.record.task_id,
            Event::Step {
                task_id: self.control.record.task_id.clone(),
                step: step.to_owned(),
                text,
            },
        );
    }

    /// Writes something to the task's output alone; others learn it from the record.
    pub(crate) fn note(&self, text: &str) {
        let write = || -> std::io::Result<()> {
            if let Some(dir) = self.control.output.parent() {
                std::fs::create_dir_all(dir)?;
            }
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.control.output)?;
            writeln!(file, "{text}")
        };
        // The lines are for people; the record is in the store.
        let _ = write();
    }

    /// Fails when someone wants the run stopped.
    pub(crate) fn check_stop(&self) -> Result<(), Failure> {
        if self.control.cancel.is_cancelled() {
            return Err(Failure::Stopped);
        }
        Ok(())
    }

    /// Whether no model is there to be asked.
    pub(crate) fn is_simulated(&self) -> bool {
        self.ground.model.is_none()
    }

    /// What all answers on record cost.
    pub(crate) fn spent(&self) -> (Usage, Cost) {
        let (mut usage, mut cost) = (Usage::default(), Cost::default());
        for asked in self.ledger.all::<Asked>(ANSWER) {
            usage += asked.usage;
            cost += asked.cost();
        }
        (usage, cost)
    }

    /// Asks a model, or gives the answer that is on record.
    pub(crate) async fn ask(
        &self,
        step: &str,
        model: &str,
        system: &str,
        messages: Vec<Message>,
    ) -> Result<Asked, Failure> {
        self.check_stop()?;
        let Some(answering) = &self.ground.model else {
            return Err(Failure::Broken("there is no model to ask".to_owned()));
        };
        let asker = Asker {
            model: answering,
            catalogue: &self.ground.catalogue,
            id: (self.ground.names)(model),
            max_tokens: self.order.limits.max_tokens,
            max_rounds: self.order.limits.max_rounds,
            max_budget: self.order.max_budget,
            spent: self.spent().1.at_least(),
            cancel: &self.control.cancel,
        };
        let step = format!("{ANSWER}{step}");
        self.ledger
            .once(&step, || asker.ask(system, messages))
            .await
    }

    /// Where this run keeps files of its own.
    pub(crate) fn dir(&self) -> PathBuf {
        self.ground
            .dir
            .join("runs")
            .join(self.control.record.task_id.as_str())
    }

    /// Takes away what the run kept beside the store.
    pub(crate) fn clean(&self) {
        let _ = std::fs::remove_dir_all(self.dir());
    }
}

/// A conversation with the model that writes the change.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// Answers so far.
    pub(crate) answers: u32,
}

impl Conversation {
    /// It begins with this.
    pub(crate) fn new(text: String, images: Vec<ContentBlock>) -> Self {
        let mut content = vec![ContentBlock::text(text)];
        content.extend(images);
        Self {
            messages: vec![Message {
                role: Role::User,
                content,
            }],
            answers: 0,
        }
    }

    /// Adds an answer and what is said to it.
    pub(crate) fn reply(&mut self, answer: &str, words: String) {
        self.messages
            .push(Message::assistant(vec![ContentBlock::text(answer)]));
        self.messages.push(Message::user(words));
    }
}

/// Money for people.
pub(crate) fn dollars(cost: Cost) -> String {
    match cost {
        Cost::Known(usd) => usd.to_string(),
        Cost::Unknown(usd) if usd == Usd::ZERO => "unknown (no price for this model)".to_owned(),
        Cost::Unknown(usd) => format!("at least {usd}"),
    }
}
