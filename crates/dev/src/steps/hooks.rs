//! The pre-commit hooks of a trusted repository, on the change that the tests pass with.
//!
//! A hook that refuses the change is a reason to repair it, as a failing test is; one that refuses
//! it in the end makes the pull request a draft. One that cannot be run here is told and changes
//! nothing.

use std::time::Duration;

use codespar_change::verify::{self, HookRun, RepositoryHook};

use super::{Written, prove::LazyTree, prove::blocking};
use crate::{Failure, run::Run};

impl Run {
    /// Runs them once for each round of tests that pass; the results are on record before the next
    /// step.
    pub(super) async fn hooks(
        &self,
        round: u32,
        tree: &mut LazyTree<'_>,
        written: &Written,
    ) -> Result<Vec<HookRun>, Failure> {
        let Some(checkout) = self.link.hooks_of.clone() else {
            return Ok(Vec::new());
        };
        let step = format!("hooks-{round}");
        if let Some(known) = self.ledger.known(&step)? {
            return Ok(known);
        }
        let hooks = blocking(move || Ok(RepositoryHook::find(&checkout)?)).await?;
        if hooks.is_empty() {
            return Ok(Vec::new());
        }
        let set = tree.set(written.changes.clone()).await?;
        let mut runs = Vec::new();
        for hook in hooks {
            self.say("verify", &format!("🧪 Hook: {} …", hook.name));
            let (placed, path) = (hook.clone(), set.path().to_path_buf());
            let command = blocking(move || Ok(placed.place(&path)?)).await?;
            let limit = Duration::from_secs(self.order.limits.verify_seconds);
            let (shell, dir) = (&self.setup.shell, self.dir());
            let run = verify::run(shell, &dir, set.path(), &command, limit, self.stop.token());
            let mut run = run.await?;
            if hook.is_absent(&run) {
                self.say("verify", "   it is not installed");
                continue;
            }
            run.tail = self.redacted(&run.tail);
            // What it printed is no test's output.
            (run.head, run.failures, run.failing) = Default::default();
            (run.counts, run.missing) = Default::default();
            let ran = HookRun {
                name: hook.name,
                run,
            };
            self.say("verify", &format!("   {}", ran.summary()));
            if !ran.run.passed() {
                self.note(&ran.run.tail);
            }
            runs.push(ran);
        }
        self.ledger.record(&step, &runs).await?;
        Ok(runs)
    }
}
