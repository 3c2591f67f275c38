//! One run of the dev agent: what its steps share.
//!
//! Opened once for each attempt. Everything in it is fixed for the attempt, but for the link: a
//! clone may be brought up to date, or given up.

use std::{path::PathBuf, sync::Arc};

use codespar_agent::{Asked, Asking, Bill, Budget, ModelEvent, Stop};
use codespar_change::{answer, verify::has_commit};
use codespar_protocol::{
    ChangeSet, CommitId, ContentBlock, Cost, Event, Message, Role, TaskId, TaskSpec, Usage, Usd,
    retry_text,
};
use codespar_tasks::{Control, QuestionSource, StepLedger, TaskHub, TaskLog, TaskStopReason};
use parking_lot::Mutex;

use crate::{
    Consent, DevOrder, DevSetup, Failure, Link, RepositoryRef, WithoutModel, ledger,
    steps::{Shown, blocking},
};

/// The step after which the change and its proof are settled.
pub(crate) const PROVEN: &str = "proven";
/// Names of answers on record; the picker's is one of them.
pub(crate) const ANSWER: &str = "answer-";

pub(crate) struct Run {
    pub(crate) setup: DevSetup,
    pub(crate) hub: Arc<TaskHub>,
    pub(crate) control: Control,
    /// Ends the attempt; whatever it waits for, it waits for with the token of this.
    pub(crate) stop: Arc<Stop>,
    pub(crate) order: DevOrder,
    pub(crate) ledger: StepLedger,
    pub(crate) link: Link,
    /// No model is asked, in this attempt as in those before it.
    is_simulated: bool,
    /// What was said already in an earlier attempt is not said again. Lines of the task's output
    /// when the attempt began. The steps say the same things again as they are read from the
    /// record.
    said: Mutex<Vec<String>>,
}

impl Run {
    /// Reaches the repository and opens the record. Whether a run is simulated is decided by its
    /// first attempt and recorded. A later attempt without a model cannot go on with a run that had
    /// one, unless only publishing is left; one with a model still simulates what was begun as a
    /// simulation.
    pub(crate) async fn open(
        setup: DevSetup,
        hub: Arc<TaskHub>,
        control: Control,
        stop: Arc<Stop>,
    ) -> Result<Self, Failure> {
        control.authority().map_err(Failure::Broken)?;
        let TaskSpec::Dev(order) = control.spec().map_err(Failure::Broken)?.clone() else {
            return Err(Failure::Broken(control.wrong_kind()));
        };
        let order = *order;
        let ledger = ledger::open(&control, &order.resumes, setup.hook.clone()).await?;
        let is_simulated: bool = ledger
            .once("simulated", || async {
                if setup.model.is_none() {
                    may_simulate(&setup, &order)?;
                }
                Ok::<_, Failure>(setup.model.is_none())
            })
            .await?;
        if !is_simulated && setup.model.is_none() && !ledger.has(PROVEN) {
            return Err(Failure::Refused(
                "this run was begun with a model, and here is none to go on with; set its key \
                 (ANTHROPIC_API_KEY) and give the instruction again"
                    .to_owned(),
            ));
        }
        let link = setup
            .linker
            .link(&order.repository)
            .await
            .map_err(Failure::Refused)?;
        let said = std::fs::read_to_string(&control.output).unwrap_or_default();
        Ok(Self {
            setup,
            hub,
            control,
            stop,
            order,
            ledger,
            link,
            is_simulated,
            said: Mutex::new(said.lines().map(str::to_owned).collect()),
        })
    }

    /// Without secrets. A text is cut after that, never before: part of a secret would not be known
    /// for one.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.setup.redactor.redact(text).into_owned()
    }

    /// Says something to whoever listens, and writes it to the task's output. The event is sent in
    /// any case: whoever listens now may not have heard it. Redacted first.
    pub(crate) fn say(&self, step: &str, text: &str) {
        let text = self.setup.redactor.redact(text).into_owned();
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
        self.hub.publish(
            None,
            &self.control.record.task_id,
            Event::Step {
                task_id: self.control.record.task_id.clone(),
                step: step.to_owned(),
                text,
            },
        );
    }

    /// Shows a retry of a model call as it happens; other events of the call are not shown.
    fn tell_retry(&self, event: ModelEvent) {
        let ModelEvent::Retrying {
            attempt,
            delay,
            reason,
            ..
        } = event
        else {
            return;
        };
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let reason = self.redacted(&reason);
        self.note(&format!("   {}", retry_text(attempt, delay_ms, &reason)));
        self.hub.publish(
            None,
            &self.control.record.task_id,
            Event::Retrying {
                attempt,
                delay_ms,
                reason,
            },
        );
    }

    /// Writes something to the task's output alone; others learn it from the record.
    pub(crate) fn note(&self, text: &str) {
        // The lines are for people; the record is in the store.
        if let Ok(mut log) = TaskLog::open(&self.control.output, &self.control.redactor) {
            log.write(text);
        }
    }

    /// Fails when someone wants the run stopped. Called at the beginning of most steps and before
    /// each call of a model. A hand-over counts as well: the process leaves, and another one can go
    /// on from here.
    pub(crate) fn check_stop(&self) -> Result<(), Failure> {
        if self.stop.token().is_cancelled() || self.control.hand_over.is_asked() {
            return Err(Failure::Stopped);
        }
        Ok(())
    }

    /// Whether it is to end, rather than to go on in another process.
    pub(crate) fn is_to_end(&self) -> bool {
        let asked = matches!(
            &*self.control.stop_reason.lock(),
            Some(TaskStopReason::Asked(_))
        );
        asked || self.stop.out_of_time().is_some()
    }

    /// Sees to it that the clone has a commit: the branch may have moved after it was fetched. A
    /// clone that does not get it is none. Without a clone the run goes on through the forge, and
    /// nothing is verified; no clone is better than one in which the commit is missing halfway
    /// through.
    pub(crate) async fn fetch(&mut self, commit: &CommitId) -> Result<(), Failure> {
        if self.has(commit).await? {
            return Ok(());
        }
        self.link = self
            .setup
            .linker
            .link(&self.order.repository)
            .await
            .map_err(Failure::Refused)?;
        if !self.has(commit).await? {
            self.link.clone = None;
        }
        Ok(())
    }

    /// Whether there is nothing to fetch for it.
    async fn has(&self, commit: &CommitId) -> Result<bool, Failure> {
        let Some(clone) = self.link.clone.clone() else {
            return Ok(true);
        };
        let commit = commit.clone();
        blocking(move || Ok(has_commit(&clone, &commit)?)).await
    }

    /// Whether no model is there to be asked.
    pub(crate) fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// What all answers on record cost. Also of answers that were lost, of agents, and of the runs
    /// that this one resumes.
    pub(crate) fn spent(&self) -> (Usage, Cost) {
        let (mut usage, mut cost) = (Usage::default(), Cost::default());
        for asked in self.ledger.all::<Asked>(ANSWER) {
            usage += asked.usage;
            cost += asked.cost();
        }
        (usage, cost)
    }

    /// Asks a model, or gives the answer that is on record. The answer is on record when this
    /// returns. `step` must be the same in every attempt, and the messages that lead to it too:
    /// they are built from the order and recorded steps only. The budget is what the order allows
    /// less what all recorded answers cost.
    pub(crate) async fn ask(
        &self,
        step: &str,
        model: &str,
        system: &str,
        messages: Vec<Message>,
    ) -> Result<Asked, Failure> {
        self.check_stop()?;
        let Some(answering) = &self.setup.model else {
            return Err(Failure::Broken("there is no model to ask".to_owned()));
        };
        let spent = self.spent().1.at_least();
        let budget = Arc::new(Budget::new(self.order.max_budget, None).with_spent(spent));
        let asking = Asking {
            model: &**answering,
            catalogue: &self.setup.catalogue,
            budget: &budget,
            stop: &self.stop,
            redactor: &self.setup.redactor,
            id: (self.setup.names)(model),
            max_tokens: self.order.limits.max_tokens,
            max_rounds: self.order.limits.max_rounds,
            join: answer::join,
            watch: &|event| self.tell_retry(event),
        };
        let step = format!("{ANSWER}{step}");
        if let Some(known) = self.ledger.known(&step)? {
            return Ok(known);
        }
        let mut bill = Bill::default();
        match asking.ask(system, messages, &mut bill).await {
            Ok(asked) => {
                self.ledger.record(&step, &asked).await?;
                Ok(asked)
            }
            Err(error) => {
                self.note_bill(&step, &bill, asking.id).await;
                Err(error.into())
            }
        }
    }

    /// What was paid for no answer counts too. A call can fail after tokens were used: the
    /// connection broke, or one part of a long answer failed. Each such bill gets a number, so none
    /// replaces another.
    async fn note_bill(&self, step: &str, bill: &Bill, model: String) {
        if bill.is_empty() {
            return;
        }
        let earlier = self.ledger.all::<Asked>(&format!("{step}-lost-")).len();
        let spent = bill.answer(String::new(), model);
        // Whoever cannot record it has lost the task, or the store, and hears of that elsewhere.
        let _ = self
            .ledger
            .record(&format!("{step}-lost-{}", earlier + 1), &spent)
            .await;
    }

    /// Who asks, when this run has a question to a person.
    pub(crate) fn question_source(&self) -> Result<QuestionSource, Failure> {
        let authority = self.control.authority().map_err(Failure::Broken)?;
        Ok(QuestionSource {
            session: authority.tree,
            task: Some(self.control.lease()),
            project_root: authority.project_root.clone(),
        })
    }

    /// Where this run keeps files of its own.
    pub(crate) fn dir(&self) -> PathBuf {
        self.dir_of(&self.control.record.task_id)
    }

    fn dir_of(&self, task: &TaskId) -> PathBuf {
        self.setup.dir.join("runs").join(task.as_str())
    }

    /// Where this run and those that it goes on from keep files, the latest first. The tree of an
    /// earlier run's agent is found there.
    pub(crate) fn dirs(&self) -> impl Iterator<Item = PathBuf> {
        let earlier = self.order.resumes.iter().rev();
        [&self.control.record.task_id]
            .into_iter()
            .chain(earlier)
            .map(|task| self.dir_of(task))
    }

    /// The run has come to its good end: nobody goes on with it. The files of one that failed
    /// stay as long as its record, for whoever resumes it.
    pub(crate) async fn remove_files(&self) {
        let dirs: Vec<PathBuf> = self.dirs().collect();
        let removing = move || {
            for dir in dirs {
                // Build output can be large. What stays, `codespar gc` takes away.
                let _ = std::fs::remove_dir_all(dir);
            }
        };
        let _ = tokio::task::spawn_blocking(removing).await;
    }
}

/// A missing key must not look like success: others see what is on GitHub. On a local repository a
/// simulation is harmless and shows how everything works, so it needs no consent unless the
/// settings require a model.
fn may_simulate(setup: &DevSetup, order: &DevOrder) -> Result<(), Failure> {
    let why = &setup.provider_choice;
    if setup.without_model == WithoutModel::Refuse {
        return Err(Failure::Refused(format!(
            "`dev.requireModel` is set, and no model can be called: {why}"
        )));
    }
    let is_shared = matches!(order.repository, RepositoryRef::GitHub { .. });
    if is_shared && order.simulation == Consent::Withheld {
        return Err(Failure::Refused(format!(
            "no model can be called ({why}), and a simulated pull request on GitHub was not asked \
             for (--simulate)"
        )));
    }
    Ok(())
}

/// A conversation with the model that writes the change. Kept in memory only. A later attempt
/// rebuilds it: the same requests with the recorded answers.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// Answers so far.
    pub(crate) answers: u32,
    /// One question is enough.
    pub(crate) person_was_asked: bool,
    /// Files that the model asked for and was shown.
    pub(crate) shown: Vec<Shown>,
    /// How much it was shown in answer to what it asked for. Over the whole conversation, repairs
    /// included.
    pub(crate) more_bytes: usize,
    /// The change that the model corrects. Files are shown to it with this.
    pub(crate) changes: ChangeSet,
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
            person_was_asked: false,
            shown: Vec::new(),
            more_bytes: 0,
            changes: ChangeSet::default(),
        }
    }

    /// Adds an answer and what is said to it.
    pub(crate) fn reply(&mut self, answer: &str, message: String) {
        self.messages
            .push(Message::assistant(vec![ContentBlock::text(answer)]));
        self.messages.push(Message::user(message));
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
