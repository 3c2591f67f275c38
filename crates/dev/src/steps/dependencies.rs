//! The dependencies of the project, for the tests and for an agent that works in a tree.

use std::{path::Path, time::Duration};

use codespar_change::verify::{Dependencies, Need, Provided};

use super::Base;
use crate::{Failure, run::Run};

impl Run {
    /// Gives a tree what the project's tests need, and says what is worth knowing about it.
    pub(crate) async fn provide(
        &self,
        tree: &Path,
        base: &Base,
        tests: Option<&str>,
        need: Need,
    ) -> Result<Provided, Failure> {
        let Some(clone) = &self.link.clone else {
            return Ok(Provided::default());
        };
        let dependencies = Dependencies {
            shell: &self.setup.shell,
            installer: &self.setup.installer,
            clone,
            commit: &base.commit,
            trust: self.link.trust,
            key: &self.link.key,
            checkout: self.link.checkout.as_deref(),
            dir: &self.setup.dir,
            setup: self.order.setup.as_deref().map(str::trim),
            tests,
            limit: Duration::from_secs(self.order.limits.verify_seconds),
            cancel: self.stop.token(),
        };
        let say = |text: &str| self.say("verify", text);
        let mut provided = dependencies.provide(tree, need, &say).await?;
        for note in &provided.notes {
            self.say("verify", &format!("   {note}"));
        }
        if let Some((command, run)) = &mut provided.failed {
            run.tail = self.setup.redactor.redact(&run.tail).into_owned();
            let how = run.summary();
            self.say("verify", &format!("   `{command}` {how}"));
            self.note(&run.tail);
        }
        Ok(provided)
    }
}
