//! Verify: the tests before and after, with the model's help where they fail.

use std::time::Duration;

use codespar_change::verify::{self, Evidence, TestRun, Tree, before, detect};
use codespar_protocol::ChangeSet;
use serde::{Deserialize, Serialize};

use super::{Base, Reading, Written};
use crate::{
    Engine, Failure, Link, OnFailure, VerifyChoice,
    run::{Conversation, Run},
};

const REPAIR: &str = include_str!("../prompts/repair_tests.md");
/// Added where the change may not be at fault.
const RED_BEFORE: &str = "They failed in the same way before the change. If the instruction has nothing to do \
                          with that, answer with the same change again.\n\n";

/// What the proof came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Proven {
    /// The tests were run.
    By(Box<Evidence>),
    /// They were not, for this reason.
    Not(String),
}

impl Proven {
    /// The tests were run and do not pass.
    pub(crate) fn failed(&self) -> bool {
        matches!(self, Self::By(evidence) if !evidence.after.passed())
    }
}

/// A throw-away tree that is made when it is first needed.
struct LazyTree<'a> {
    run: &'a Run,
    base: &'a Base,
    tree: Option<std::sync::Arc<Tree>>,
}

impl LazyTree<'_> {
    async fn get(&mut self) -> Result<std::sync::Arc<Tree>, Failure> {
        if let Some(tree) = &self.tree {
            return Ok(tree.clone());
        }
        let clone = self.run.link.clone.clone().unwrap_or_default();
        // Another attempt may still be ending, and takes its own tree away.
        let name = format!("tree-{}", self.run.control.epoch);
        let (path, commit) = (self.run.dir().join(name), self.base.commit.clone());
        let trust = self.run.link.trust;
        let (tree, note) = blocking(move || {
            let tree = Tree::open(&clone, &path, &commit, trust)?;
            let note = tree.lfs_note();
            Ok((tree, note))
        })
        .await?;
        if let Some(note) = note {
            self.run.say("verify", &format!("   {note}"));
        }
        Ok(self.tree.insert(std::sync::Arc::new(tree)).clone())
    }

    async fn set(&mut self, changes: ChangeSet) -> Result<std::sync::Arc<Tree>, Failure> {
        let tree = self.get().await?;
        let same = tree.clone();
        blocking(move || Ok(same.set(&changes)?)).await?;
        Ok(tree)
    }

    /// Takes it away, where that may take its time.
    async fn close(mut self) {
        let tree = self.tree.take();
        let _ = tokio::task::spawn_blocking(move || drop(tree)).await;
    }
}

impl Run {
    /// Proves the change, and mends it where the tests fail.
    pub(crate) async fn prove(
        &self,
        base: &Base,
        reading: &Reading,
        written: Written,
        conversation: Option<Conversation>,
    ) -> Result<(Written, Proven), Failure> {
        if let Some(reason) = self.no_proof(&written) {
            self.say("verify", &format!("🧪 Not verified: {reason}"));
            return Ok((written, Proven::Not(reason)));
        }
        let mut tree = LazyTree {
            run: self,
            base,
            tree: None,
        };
        let outcome = self
            .prove_in(&mut tree, reading, written, conversation)
            .await;
        tree.close().await;
        outcome
    }

    async fn prove_in(
        &self,
        tree: &mut LazyTree<'_>,
        reading: &Reading,
        mut written: Written,
        mut conversation: Option<Conversation>,
    ) -> Result<(Written, Proven), Failure> {
        let base = tree.base;
        let Some(command) = self.test_command(tree).await? else {
            let reason =
                "no test command was found; set `verify.command` or give --verify".to_owned();
            self.say("verify", &format!("🧪 Not verified: {reason}"));
            return Ok((written, Proven::Not(reason)));
        };
        let before = self.before(base, &command, tree).await?;
        if before.was_not_run() {
            // The reason is published, the output is not.
            let reason = format!("`{command}` cannot be run here: {}", before.summary());
            self.say(
                "verify",
                &format!("🧪 Not verified: {reason}\n   {}", last_line(&before.tail)),
            );
            return Ok((written, Proven::Not(reason)));
        }
        // Whether the model has more to say than what it said.
        let mut is_open = conversation.is_some();
        let mut round = 0;
        loop {
            round += 1;
            let after = self.after(round, &command, &written, tree).await?;
            let evidence = Evidence {
                command: command.clone(),
                before: before.clone(),
                after,
            };
            if evidence.after.passed() || !self.may_repair(round, is_open) {
                return self.conclude(written, evidence);
            }
            let by_model = match round > self.order.limits.repairs {
                true => None,
                false => conversation.as_mut(),
            };
            let Some(conversation) = by_model else {
                (conversation, is_open) = (None, false);
                let failures = failures(&evidence);
                let mended = self.repair_by_agent(base, round, &written, &failures).await;
                match self.mended(mended)? {
                    Some(mended) => written = mended,
                    None => return self.conclude(written, evidence),
                }
                continue;
            };
            self.say("verify", "🔧 The tests fail; asking for a repair…");
            let message = format!(
                "{}\n\n{}{}",
                REPAIR.trim(),
                if evidence.after.failed_like(&evidence.before) {
                    RED_BEFORE
                } else {
                    ""
                },
                failures(&evidence)
            );
            conversation.reply(&written.answer, message);
            let mended = self.write(base, reading, conversation).await;
            match self.mended(mended)? {
                Some(mended) => {
                    is_open = mended.changes != written.changes;
                    written = mended;
                }
                None => return self.conclude(written, evidence),
            }
        }
    }

    /// Whether there is a repair after this many failures. With `auto` a change that one answer and
    /// its repairs did not get right goes to the agent, once; not one that the model stands by.
    fn may_repair(&self, round: u32, is_open: bool) -> bool {
        let repairs = self.order.limits.repairs;
        let is_handed_over = self.order.engine == Engine::Auto && is_open && repairs > 0;
        round <= repairs || (is_handed_over && round == repairs + 1)
    }

    /// A repaired change; `None` where it could not be: the change before it stands, with what the
    /// tests say of it.
    fn mended(&self, outcome: Result<Written, Failure>) -> Result<Option<Written>, Failure> {
        match outcome {
            Ok(mended) => Ok(Some(mended)),
            Err(
                failure @ (Failure::NotApplied(_)
                | Failure::NoChanges(_)
                | Failure::AgentFailed(_)
                | Failure::Refused(_)
                | Failure::Budget(_)
                | Failure::Model(_)),
            ) => {
                self.say("verify", &format!("   it was not repaired: {failure}"));
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Why there is nothing to prove, or no way to.
    fn no_proof(&self, written: &Written) -> Option<String> {
        if written.is_simulated {
            return Some("simulated, nothing was changed".to_owned());
        }
        if self.order.verify == VerifyChoice::Skip {
            return Some("it was asked not to (--no-verify)".to_owned());
        }
        let Link { clone, .. } = &self.link;
        clone
            .is_none()
            .then(|| "the repository could not be cloned, so nothing could be run".to_owned())
    }

    fn conclude(&self, written: Written, evidence: Evidence) -> Result<(Written, Proven), Failure> {
        if !evidence.after.passed() && self.order.on_failure == OnFailure::Nothing {
            return Err(Failure::NotVerified(format!(
                "$ {}\n{}",
                evidence.command, evidence.after.tail
            )));
        }
        Ok((written, Proven::By(Box::new(evidence))))
    }

    async fn test_command(&self, tree: &mut LazyTree<'_>) -> Result<Option<String>, Failure> {
        if let VerifyChoice::Command(command) = &self.order.verify {
            return Ok(Some(command.clone()));
        }
        if let Some(known) = self.ledger.known::<Option<String>>("test_command")? {
            return Ok(known);
        }
        let found = detect(tree.get().await?.path());
        self.ledger.record("test_command", &found).await?;
        Ok(found)
    }

    async fn before(
        &self,
        base: &Base,
        command: &str,
        tree: &mut LazyTree<'_>,
    ) -> Result<TestRun, Failure> {
        if let Some(known) = self.ledger.known("before")? {
            return Ok(known);
        }
        let place = before::place(&self.setup.dir, &self.link.key, &base.commit, command);
        let run = match before::known(&place) {
            Some(run) => run,
            None => {
                self.say(
                    "verify",
                    &format!("🧪 Verifying: {command} … before the change"),
                );
                let run = self.run_tests(tree.get().await?.path(), command).await?;
                before::keep(&place, &run);
                run
            }
        };
        self.say("verify", &format!("   before: {}", run.summary()));
        self.ledger.record("before", &run).await?;
        Ok(run)
    }

    async fn after(
        &self,
        round: u32,
        command: &str,
        written: &Written,
        tree: &mut LazyTree<'_>,
    ) -> Result<TestRun, Failure> {
        let step = format!("after-{round}");
        if let Some(known) = self.ledger.known(&step)? {
            return Ok(known);
        }
        self.say(
            "verify",
            &format!("🧪 Verifying: {command} … with the change"),
        );
        let set = tree.set(written.changes.clone()).await?;
        let run = self.run_tests(set.path(), command).await?;
        self.say("verify", &format!("   after: {}", run.summary()));
        if !run.passed() {
            self.note(&run.tail);
        }
        self.ledger.record(&step, &run).await?;
        Ok(run)
    }

    async fn run_tests(&self, path: &std::path::Path, command: &str) -> Result<TestRun, Failure> {
        let limit = Duration::from_secs(self.order.limits.verify_seconds);
        let mut run = verify::run(
            &self.setup.shell,
            &self.dir(),
            path,
            command,
            limit,
            self.stop.token(),
        )
        .await?;
        run.tail = self.setup.redactor.redact(&run.tail).into_owned();
        Ok(run)
    }
}

/// The command, how it ended and the end of its output, for whoever mends the change.
fn failures(evidence: &Evidence) -> String {
    let Evidence { command, after, .. } = evidence;
    format!("$ {command}\nresult: {}\n\n{}", after.summary(), after.tail)
}

fn last_line(text: &str) -> &str {
    text.lines().next_back().unwrap_or("no output").trim()
}

/// Git and files belong on the pool of blocking threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::Broken(error.to_string()))?
}
