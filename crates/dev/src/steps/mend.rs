//! Repair: the failures of tests, or what a hook of the repository says, go to the model, and its
//! corrections go on top of the change.
//!
//! A repair is worth its money only if the failures have to do with the change and the last repair
//! did something about them. `next_repair` decides that from two test runs; nobody is asked whether
//! a repair would help. The corrections are made on the files as the change leaves them, and both
//! are published as one change.

use codespar_change::{
    apply,
    verify::{Evidence, HookRun, TestRun, report},
};
use codespar_protocol::{ChangeSet, FileChange};
use codespar_pulls::Forge;

use super::{
    Base, Reading, Written,
    write::{Seen, Tried},
};
use crate::{
    Engine, Failure,
    run::{Conversation, Run},
};

const SYSTEM: &str = include_str!("../prompts/generate.md");
const FAILING: &str = include_str!("../prompts/repair_tests.md");
const REFUSED: &str = include_str!("../prompts/repair_hook.md");
const NOT_APPLIED: &str = include_str!("../prompts/repair_correction.md");

/// What is wrong with a change.
#[derive(Clone, Copy)]
pub(super) enum Fault<'a> {
    /// The tests do not pass with it.
    Tests(&'a TestRun),
    /// The tests pass, and this hook of the repository refuses it.
    Hook(&'a HookRun),
}

impl<'a> Fault<'a> {
    /// Nothing if the tests pass and no hook refuses it.
    pub(super) fn of(evidence: &'a Evidence) -> Option<Self> {
        if !evidence.after.passed() {
            return Some(Self::Tests(&evidence.after));
        }
        let refusing = evidence.hooks.iter().find(|hook| hook.refuses());
        refusing.map(Self::Hook)
    }

    /// The run that shows it.
    pub(super) const fn run(self) -> &'a TestRun {
        match self {
            Self::Tests(run) => run,
            Self::Hook(hook) => &hook.run,
        }
    }

    /// In a few words, for the user.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Tests(_) => "The tests fail",
            Self::Hook(_) => "A hook of the repository refuses the change",
        }
    }

    /// What the model that wrote the change is asked.
    pub(super) fn request(self, failures: &str) -> String {
        let asked = match self {
            Self::Tests(_) => FAILING,
            Self::Hook(_) => REFUSED,
        };
        format!("{}\n\n{failures}", asked.trim())
    }
}

/// Why a repair would be money for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pointless {
    /// The failures are not of the change's making.
    Unrelated,
    /// The last repair changed nothing about them.
    NoEffect,
}

impl Pointless {
    const fn reason(self) -> &'static str {
        match self {
            Self::Unrelated => {
                "the failures are those from before the change, and nothing it touches is in them"
            }
            Self::NoEffect => "the repair did not change what fails",
        }
    }
}

/// Who is asked next to repair what fails.
pub(super) enum NextRepair {
    /// The model that wrote the change, in the same conversation.
    Model(Conversation),
    /// The agent, in its tree.
    Agent,
    /// Nobody, for this reason if it is not simply that the rounds are used up.
    Nobody(Option<&'static str>),
}

/// How far the repairs of a change have come.
pub(super) struct RepairProgress {
    /// The one that wrote the change; none where an agent did, or has taken over.
    pub(super) conversation: Option<Conversation>,
    /// The run that showed what was wrong before the last repair. None before the first repair.
    pub(super) previous: Option<TestRun>,
    /// The agent was asked where answers did not do. Once is enough.
    is_handed_over: bool,
}

impl RepairProgress {
    pub(super) const fn new(conversation: Option<Conversation>) -> Self {
        Self {
            conversation,
            previous: None,
            is_handed_over: false,
        }
    }
}

impl Run {
    /// Decides who repairs what fails after this round. With `auto`, a change that answers and
    /// their repairs did not get right goes to the agent, once.
    pub(super) fn next_repair(
        &self,
        round: u32,
        fault: Fault<'_>,
        evidence: &Evidence,
        written: &Written,
        progress: &mut RepairProgress,
    ) -> NextRepair {
        let pointless = self.pointless(fault, evidence, written, progress.previous.as_ref());
        if let Some(Pointless::Unrelated) = pointless {
            return NextRepair::Nobody(Some(Pointless::Unrelated.reason()));
        }
        let repairs = self.order.limits.repairs;
        let goes_on = pointless.is_none() && round <= repairs;
        match progress.conversation.take() {
            Some(conversation) if goes_on => NextRepair::Model(conversation),
            Some(_) if self.order.engine == Engine::Auto && repairs > 0 => {
                progress.is_handed_over = true;
                NextRepair::Agent
            }
            None if goes_on && !progress.is_handed_over => NextRepair::Agent,
            _ => NextRepair::Nobody(pointless.map(Pointless::reason)),
        }
    }

    /// Reasons are compared without times, addresses and line numbers. If the instruction names a
    /// failing test, that test is what the run is for, and it is never unrelated. A hook is run on
    /// the change alone, so what it says is always about it.
    fn pointless(
        &self,
        fault: Fault<'_>,
        evidence: &Evidence,
        written: &Written,
        previous: Option<&TestRun>,
    ) -> Option<Pointless> {
        let after = fault.run();
        if previous.is_some_and(|previous| after.failed_for_the_same_reasons(previous)) {
            return Some(Pointless::NoEffect);
        }
        if matches!(fault, Fault::Hook(_)) {
            return None;
        }
        let is_touched = |change: &FileChange| match change {
            FileChange::Moved { from, to, .. } => {
                after.mentions(from.as_str()) || after.mentions(to.as_str())
            }
            other => after.mentions(other.path().as_str()),
        };
        let is_unrelated = after.failed_for_the_same_reasons(&evidence.before)
            && !written.changes.0.iter().any(is_touched)
            && !after.is_named_in(&self.order.instruction);
        is_unrelated.then_some(Pointless::Unrelated)
    }

    /// Asks for a correction until one fits, or the repairs are used up; none if the model leaves
    /// the change as it is.
    pub(super) async fn mend(
        &self,
        base: &Base,
        reading: &Reading,
        request: String,
        written: &Written,
        conversation: &mut Conversation,
    ) -> Result<Option<Written>, Failure> {
        conversation.reply(&written.answer, request);
        self.correct(base, reading, written, conversation).await
    }

    /// Asks for a correction of a change until one fits; the conversation ends with the request for
    /// it. `limits.repairs` bounds the corrections that do not fit, here as in `write`. A request
    /// to see more does not count, and has a limit of its own.
    pub(super) async fn correct(
        &self,
        base: &Base,
        reading: &Reading,
        written: &Written,
        conversation: &mut Conversation,
    ) -> Result<Option<Written>, Failure> {
        conversation.changes = written.changes.clone();
        let (mut repairs, mut asked_more) = (0, 0);
        loop {
            conversation.answers += 1;
            let step = format!("write-{}", conversation.answers);
            let messages = conversation.messages.clone();
            let model = &self.order.task_model;
            let asked = self.ask(&step, model, SYSTEM.trim(), messages).await?;
            let seen = Seen {
                reading,
                more: &conversation.shown,
            };
            let tried = self.try_answer(&asked, base, seen, &written.changes).await;
            let problem = match tried {
                Ok(Tried::Fits(correction, answer)) => {
                    let changes = apply::stacked(&written.changes, correction);
                    let changes = self.without_reverted(base, changes).await?;
                    if changes == written.changes {
                        return Ok(None);
                    }
                    let summary = self.redacted(&answer.summary);
                    let title = answer.title().map(|title| self.redacted(&title));
                    let has_words = title.is_some();
                    return Ok(Some(Written {
                        changes,
                        title: title.unwrap_or_else(|| written.title.clone()),
                        summary: if has_words {
                            summary
                        } else {
                            written.summary.clone()
                        },
                        model: asked.model,
                        answer: asked.text,
                        is_simulated: false,
                        why_simulated: None,
                    }));
                }
                Ok(Tried::Refused(problem)) => problem,
                Ok(Tried::Asks(requests)) => {
                    asked_more += 1;
                    let reply = self
                        .answer_request(base, reading, conversation, &requests, asked_more)
                        .await?;
                    let reply = reply.ok_or_else(|| Failure::NoChanges(asked.text.clone()))?;
                    conversation.reply(&asked.text, reply);
                    continue;
                }
                Err(Failure::NoChanges(_)) => return Ok(None),
                Err(failure) => return Err(failure),
            };
            if repairs == self.order.limits.repairs {
                return Err(Failure::NotApplied(problem));
            }
            repairs += 1;
            self.say(
                "apply",
                "🔧 The correction does not fit the files; asking again…",
            );
            conversation.reply(&asked.text, format!("{}\n\n{problem}", NOT_APPLIED.trim()));
        }
    }

    /// What whoever repairs it is told about the failures.
    pub(super) fn failures(&self, fault: Fault<'_>, evidence: &Evidence) -> String {
        if let Fault::Hook(hook) = fault {
            let text = format!(
                "The pre-commit hook `{}` of the repository {}; the tests (`{}`) pass. It says:\n\n{}",
                hook.name,
                hook.summary(),
                evidence.command,
                hook.run.tail
            );
            return self.redacted(&text);
        }
        let Evidence {
            command,
            before,
            after,
            ..
        } = evidence;
        let compared = if before.passed() {
            "Every failure is new: the tests passed before."
        } else if after.failed_like(before) {
            "The same tests failed before the change."
        } else {
            "Some tests failed before the change, too; they are marked."
        };
        let text = format!(
            "$ {command}\nbefore the change: {}\nwith the change: {}\n{compared}\n\n{}",
            before.summary(),
            after.summary(),
            report(after, before)
        );
        self.redacted(&text)
    }

    /// Without files that are again as they were at the commit. A correction may restore a file.
    /// Listed as modified without a difference, it would be counted and shown in the pull request.
    /// Nothing left at all is an error, since there is nothing to publish.
    async fn without_reverted(
        &self,
        base: &Base,
        changes: ChangeSet,
    ) -> Result<ChangeSet, Failure> {
        let mut left = Vec::new();
        for change in changes.0 {
            if let FileChange::Modified {
                path,
                content,
                mode,
            } = &change
                && let Some(file) = self.link.forge.file(&base.commit, path).await?
                && file.content == content.0
                && file.mode == *mode
            {
                continue;
            }
            left.push(change);
        }
        if left.is_empty() {
            return Err(Failure::NoChanges(
                "the correction takes the whole change back".to_owned(),
            ));
        }
        Ok(ChangeSet(left))
    }
}
