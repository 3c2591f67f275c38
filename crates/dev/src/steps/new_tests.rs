//! Evidence that proves: the tests of the change, on the code without it.
//!
//! Tests that pass with a change prove little if they would pass without it. So the test files of
//! the change are put on the base commit without the rest and run once more. Where they fail there,
//! the change is what makes them pass. It is one run for the whole command, and its result is
//! recorded.

use codespar_change::verify::{Evidence, NewTests, TestRun};
use codespar_locate::FileKind;
use codespar_protocol::{ChangeSet, FileChange};

use super::{Written, prove::LazyTree};
use crate::{Failure, run::Run};

impl Run {
    /// Runs the tests of the change on the code without it, if it has both. Nothing is said of a
    /// change that has no code, or whose tests do not pass with it.
    pub(super) async fn new_tests(
        &self,
        tree: &mut LazyTree<'_>,
        evidence: &Evidence,
        written: &Written,
    ) -> Result<Option<NewTests>, Failure> {
        let Evidence {
            command,
            before,
            after,
            ..
        } = evidence;
        let kind = |change: &FileChange| FileKind::of(change.path().as_str());
        let has_code = written
            .changes
            .0
            .iter()
            .any(|change| kind(change) == FileKind::Source);
        if !has_code || !(after.passed() || after.failed_like(before)) {
            return Ok(None);
        }
        let tests: Vec<FileChange> = written
            .changes
            .0
            .iter()
            .filter(|change| kind(change) == FileKind::Test)
            .cloned()
            .collect();
        let is_written = |change: &&FileChange| !matches!(change, FileChange::Deleted { .. });
        let files: Vec<String> = tests
            .iter()
            .filter(is_written)
            .map(|change| change.path().to_string())
            .collect();
        if files.is_empty() {
            return Ok(Some(NewTests::of_existing(before, after)));
        }
        let without = self.without_change(command, tests, tree).await?;
        Ok(Some(match without {
            Ok(without) => NewTests::judge(files, &without, after),
            Err(reason) => NewTests::not_run(files, reason),
        }))
    }

    async fn without_change(
        &self,
        command: &str,
        tests: Vec<FileChange>,
        tree: &mut LazyTree<'_>,
    ) -> Result<Result<TestRun, String>, Failure> {
        const STEP: &str = "without";
        if let Some(known) = self.ledger.known(STEP)? {
            return Ok(Ok(known));
        }
        self.say(
            "verify",
            &format!("🧪 Verifying: {command} … its tests without the change"),
        );
        let set = match tree.set(ChangeSet(tests)).await {
            Ok(set) => set,
            Err(Failure::Stopped) => return Err(Failure::Stopped),
            // Evidence is worth less than the change: it goes on without.
            Err(failure) => return Ok(Err(failure.to_string())),
        };
        let run = self.tested(set.path(), command, tree).await?;
        self.say("verify", &format!("   without: {}", run.summary()));
        self.ledger.record(STEP, &run).await?;
        Ok(Ok(run))
    }
}
