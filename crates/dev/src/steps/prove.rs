//! Verify: the tests before and after, with the model's help where they fail.
//!
//! The test command comes from the order (an option or the settings) or from the files at the root
//! of the base commit, never from the change, which could replace it by one that passes. The run
//! before the change tells what failed anyway and whether tests can be run here at all; it is kept
//! for later runs at the same commit. After that: run with the change, decide on a repair (`mend`),
//! and again, as often as the order allows.
//!
//! Output of tests is redacted before it is recorded, and is never published.

use std::time::Duration;

use codespar_change::verify::{self, Evidence, HookRun, Need, TestRun, Tree, before, detect};
use codespar_protocol::ChangeSet;
use serde::{Deserialize, Serialize};

use super::{
    Base, Reading, Written,
    mend::{Fault, NextRepair, RepairProgress},
};
use crate::{
    Failure, Link, OnFailure, VerifyChoice,
    run::{Conversation, Run},
};

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
    /// The tests were run and do not pass, or a hook of the repository refuses the change.
    pub(crate) fn failed(&self) -> bool {
        let refused = |evidence: &Evidence| evidence.hooks.iter().any(HookRun::refuses);
        matches!(self, Self::By(evidence) if !evidence.after.passed() || refused(evidence))
    }
}

/// A throw-away tree that is made when it is first needed. If all test runs of an attempt are on
/// record, none is made. One tree serves all runs of an attempt: files are put to another change in
/// place, so that build output is reused.
pub(super) struct LazyTree<'a> {
    run: &'a Run,
    base: &'a Base,
    tree: Option<std::sync::Arc<Tree>>,
    /// Whether it has the project's dependencies.
    is_provided: bool,
    /// Whether they were installed for it, or could not be.
    is_installed: bool,
    /// The installation of them that failed, in words.
    failed_setup: Option<String>,
    /// Hosts that installations were refused.
    blocked: Vec<String>,
}

impl LazyTree<'_> {
    /// The fencing number in its name keeps attempts apart.
    async fn get(&mut self) -> Result<std::sync::Arc<Tree>, Failure> {
        if let Some(tree) = &self.tree {
            return Ok(tree.clone());
        }
        // Another attempt may still be ending, and takes its own tree away.
        let name = format!("tree-{}", self.run.control.epoch);
        let path = self.run.dir().join(name);
        let tree = self.run.open_tree("verify", path, self.base).await?;
        Ok(self.tree.insert(std::sync::Arc::new(tree)).clone())
    }

    /// The same with the dependencies that a command needs. Says whether there are more than
    /// before.
    async fn provide(&mut self, tests: &str, need: Need) -> Result<bool, Failure> {
        let tree = self.get().await?;
        let is_done = match need {
            Need::Tests => std::mem::replace(&mut self.is_provided, true),
            Need::Missing => self.is_installed,
        };
        if is_done {
            return Ok(false);
        }
        let run = self.run;
        let provided = run
            .provide(tree.path(), self.base, Some(tests), need)
            .await?;
        self.is_installed |= provided.is_installed;
        self.blocked.extend(provided.blocked);
        if let Some((command, run)) = provided.failed {
            self.failed_setup = Some(format!("`{command}` {}", run.summary()));
        }
        Ok(provided.is_changed)
    }

    pub(super) async fn set(
        &mut self,
        changes: ChangeSet,
    ) -> Result<std::sync::Arc<Tree>, Failure> {
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
            is_provided: false,
            is_installed: false,
            failed_setup: None,
            blocked: Vec::new(),
        };
        let outcome = self
            .prove_in(&mut tree, reading, written, conversation)
            .await;
        tree.close().await;
        outcome
    }

    /// If the tests cannot run without the change, it is not verified, and nothing is said about it
    /// being right or wrong. The repairs end when the tests pass and no hook of the repository
    /// refuses the change, when nobody is left to ask, or when a repair changes nothing.
    async fn prove_in(
        &self,
        tree: &mut LazyTree<'_>,
        reading: &Reading,
        mut written: Written,
        conversation: Option<Conversation>,
    ) -> Result<(Written, Proven), Failure> {
        let base = tree.base;
        let Some(command) = self.test_command(tree).await? else {
            let reason =
                "no test command was found; set `verify.command` or give --verify".to_owned();
            self.say("verify", &format!("🧪 Not verified: {reason}"));
            return Ok((written, Proven::Not(reason)));
        };
        let mut before = self.before(base, &command, tree).await?;
        // What the change brings itself is its own business.
        let brings = |path: &str| written.changes.0.iter().any(|one| is_at(one.path(), path));
        before.missing.retain(|one| !one.is_part_of(brings));
        if before.was_not_run() {
            // The reason is published, the output is not.
            let reason = cannot_verify(&command, &before, tree.failed_setup.as_deref());
            self.say(
                "verify",
                &format!("🧪 Not verified: {reason}\n   {}", last_line(&before.tail)),
            );
            return Ok((written, Proven::Not(reason)));
        }
        let mut round = 0;
        let mut progress = RepairProgress::new(conversation);
        let evidence = loop {
            round += 1;
            let evidence = self.checked(round, &command, &before, &written, tree);
            let evidence = evidence.await?;
            let Some(fault) = Fault::of(&evidence) else {
                break evidence;
            };
            let mended = match self.next_repair(round, fault, &evidence, &written, &mut progress) {
                NextRepair::Nobody(reason) => {
                    if let Some(reason) = reason {
                        self.say("verify", &format!("   no repair: {reason}"));
                    }
                    break evidence;
                }
                NextRepair::Agent => {
                    let what = fault.what();
                    self.say(
                        "verify",
                        &format!("🔧 {what}; asking the agent for a repair…"),
                    );
                    let failures = self.failures(fault, &evidence);
                    self.repair_by_agent(base, round, &written, &failures)
                        .await
                        .map(Some)
                }
                NextRepair::Model(mut conversation) => {
                    let what = fault.what();
                    self.say("verify", &format!("🔧 {what}; asking for a repair…"));
                    let request = fault.request(&self.failures(fault, &evidence));
                    let mended = self
                        .mend(base, reading, request, &written, &mut conversation)
                        .await;
                    progress.conversation = Some(conversation);
                    mended
                }
            };
            match self.mended(mended)? {
                Some(mended) => written = mended,
                None => break evidence,
            }
            progress.previous = Some(fault.run().clone());
        };
        self.conclude(tree, written, evidence).await
    }

    /// One round: the tests with the change, and the hooks of the repository if they pass.
    async fn checked(
        &self,
        round: u32,
        command: &str,
        before: &TestRun,
        written: &Written,
        tree: &mut LazyTree<'_>,
    ) -> Result<Evidence, Failure> {
        let after = self.after(round, command, written, tree).await?;
        let hooks = match after.passed() {
            true => self.hooks(round, tree, written).await?,
            false => Vec::new(),
        };
        Ok(Evidence {
            command: command.to_owned(),
            before: before.clone(),
            after,
            new_tests: None,
            hooks,
        })
    }

    /// A repaired change; `None` where it could not be: the change before it stands, with what the
    /// tests say of it. A repair that fails in a way that a repair can fail is not the end of the
    /// run. A stop, the limit on time and failures of the store or the forge are.
    fn mended(
        &self,
        outcome: Result<Option<Written>, Failure>,
    ) -> Result<Option<Written>, Failure> {
        match outcome {
            Ok(None) => {
                self.say("verify", "   the model leaves the change as it is");
                Ok(None)
            }
            Ok(mended) => Ok(mended),
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

    /// Why there is nothing to prove, or no way to. In the order in which a user would want to
    /// know.
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

    async fn conclude(
        &self,
        tree: &mut LazyTree<'_>,
        written: Written,
        mut evidence: Evidence,
    ) -> Result<(Written, Proven), Failure> {
        if !evidence.after.passed() && self.order.on_failure == OnFailure::Nothing {
            return Err(Failure::NotVerified(format!(
                "$ {}\n{}",
                evidence.command, evidence.after.tail
            )));
        }
        evidence.new_tests = self.new_tests(tree, &evidence, &written).await?;
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

    /// From the record, from the cache of earlier runs at this commit, or run now. A result with
    /// something missing is not cached, since the machine may have it tomorrow.
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
                let path = tree.get().await?.path().to_path_buf();
                let run = self.tested(&path, command, tree).await?;
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
        let run = self.tested(set.path(), command, tree).await?;
        self.say("verify", &format!("   after: {}", run.summary()));
        if !run.passed() {
            self.note(&run.tail);
        }
        self.ledger.record(&step, &run).await?;
        Ok(run)
    }

    /// Runs the tests with what they need. What the first run in a tree misses is installed, if
    /// there is a way to; what a later one misses is missing for the change alone.
    pub(super) async fn tested(
        &self,
        path: &std::path::Path,
        command: &str,
        tree: &mut LazyTree<'_>,
    ) -> Result<TestRun, Failure> {
        let is_first = !tree.is_provided;
        tree.provide(command, Need::Tests).await?;
        let submodules = tree.get().await?;
        let submodules = submodules.missing_submodules();
        let mut run = self.run_tests(path, command, submodules).await?;
        let is_missing = is_first && run.misses_dependencies();
        if is_missing && tree.provide(command, Need::Missing).await? {
            run = self.run_tests(path, command, submodules).await?;
        }
        run.blocked.append(&mut tree.blocked);
        Ok(run)
    }

    async fn run_tests(
        &self,
        path: &std::path::Path,
        command: &str,
        missing_submodules: &[String],
    ) -> Result<TestRun, Failure> {
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
        run.tail = self.redacted(&run.tail);
        run.head = self.redacted(&run.head);
        for failure in &mut run.failures {
            failure.name = self.redacted(&failure.name);
            failure.message = self.redacted(&failure.message);
        }
        run.missing
            .retain(|one| !one.is_part_of(|name| path.join(name).exists()));
        run.note_submodules(missing_submodules);
        Ok(run)
    }
}

/// Why there is no proof, and what to do about it. It is published. So it holds names and advice,
/// and no output.
fn cannot_verify(command: &str, before: &TestRun, failed_setup: Option<&str>) -> String {
    let Some(missing) = before.describe_missing() else {
        return format!("cannot verify here: `{command}`: {}", before.summary());
    };
    let verb = if before.missing.len() == 1 {
        "is"
    } else {
        "are"
    };
    let advice = match failed_setup {
        _ if !before.misses_dependencies() => {
            "`git submodule update --init` brings submodules into a checkout".to_owned()
        }
        Some(failed) => format!("{failed}; set `verify.setup` to a command that installs it"),
        None => {
            "install it in the checkout, or set `verify.setup` to a command that does".to_owned()
        }
    };
    format!("cannot verify here: {missing} {verb} missing ({advice})")
}

/// Whether a file of a change is at a path or below it.
fn is_at(file: &codespar_protocol::RepoPath, path: &str) -> bool {
    std::path::Path::new(file.as_str()).starts_with(path)
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
