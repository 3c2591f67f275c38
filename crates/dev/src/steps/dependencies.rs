//! A tree with the submodules and the dependencies of the project, for the tests and for an agent
//! that works in it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use codespar_change::verify::{Dependencies, Need, Provided, Tree};

use super::{Base, blocking};
use crate::{Failure, run::Run};

impl Run {
    /// A throw-away tree at the commit, with its submodules. Says what it lacks. Submodules that
    /// cannot be fetched and files that Git LFS keeps elsewhere are told and are no failure: the
    /// tests say whether they matter.
    pub(crate) async fn open_tree(
        &self,
        step: &str,
        path: PathBuf,
        base: &Base,
    ) -> Result<Tree, Failure> {
        let (linker, repository) = (&self.setup.linker, &self.order.repository);
        let fetched = linker
            .fetch_submodules(repository, &self.link, &base.commit)
            .await;
        let clone = self.link.clone.clone().unwrap_or_default();
        let (commit, trust) = (base.commit.clone(), self.link.trust);
        let (tree, pointers) = blocking(move || {
            let tree = Tree::open(&clone, &path, &commit, trust)?;
            let pointers = tree.lfs_note();
            Ok((tree, pointers))
        })
        .await?;
        let reasons = match fetched {
            Ok(missing) => missing,
            Err(reason) => {
                self.say(
                    step,
                    &format!("   submodules could not be fetched: {reason}"),
                );
                Vec::new()
            }
        };
        for path in tree.missing_submodules() {
            let reason = reasons.iter().find(|one| one.path == *path);
            let reason = reason.map_or(
                "`git submodule update --init` brings it into the checkout",
                |one| &one.reason,
            );
            self.say(
                step,
                &format!("   the submodule `{path}` is not there: {reason}"),
            );
        }
        if let Some(note) = pointers {
            self.say(step, &format!("   {note}"));
        }
        Ok(tree)
    }

    /// Gives a tree what the project's tests need, and says what is worth knowing about it. Nothing
    /// without a clone. The output of an installation that failed goes to the task's output only,
    /// redacted.
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
