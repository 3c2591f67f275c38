//! What the dev agent needs of the process it runs in.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_agent::{Catalogue, Model, Redactor};
use codespar_change::{MissingSubmodule, Trust};
use codespar_protocol::CommitId;
use codespar_pulls::Publisher;
use codespar_tasks::{ShellSetup, StepHook, TreeStore};

use crate::RepositoryRef;

/// A repository within reach.
#[derive(Clone)]
pub struct Link {
    /// Where its branches and pull requests are.
    pub forge: Arc<Publisher>,
    /// A clone on this machine; without one, everything is read through the forge and nothing can
    /// be verified.
    pub clone: Option<PathBuf>,
    /// The root of the user's own files, where there are any: dependencies are installed there.
    pub checkout: Option<PathBuf>,
    /// Whether programs that its git configuration names may run.
    pub trust: Trust,
    /// The user's own files, if they are trusted: their git hooks are run on a change, in the
    /// sandbox.
    pub hooks_of: Option<PathBuf>,
    /// What the index of its files is kept under.
    pub key: String,
}

/// Reaches repositories.
#[async_trait]
pub trait Linker: Send + Sync {
    /// Its forge alone: no clone is made or brought up to date. For what needs no files: following
    /// a pull request, reviewing, merging.
    async fn forge(&self, repository: &RepositoryRef) -> Result<Arc<Publisher>, String>;

    /// Opens one; the words of an error are for the user. May take long: a clone of our own is made
    /// or brought up to date. Called again in the same run if the clone lacks a commit.
    async fn link(&self, repository: &RepositoryRef) -> Result<Link, String>;

    /// Whether programs that its git configuration names may run.
    fn trust(&self, repository: &RepositoryRef) -> Trust;

    /// Brings the submodules of a commit into a clone of our own; nothing is fetched into a
    /// repository of the user's. Names those that could not be had.
    async fn fetch_submodules(
        &self,
        repository: &RepositoryRef,
        link: &Link,
        commit: &CommitId,
    ) -> Result<Vec<MissingSubmodule>, String>;
}

/// Makes an alias or a name into the id that the provider in use knows.
pub type ModelNames = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What becomes of a run when no model can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutModel {
    Simulate,
    /// `dev.requireModel`.
    Refuse,
}

/// What one process lends to the dev agent.
#[derive(Clone)]
pub struct DevSetup {
    /// Reaches repositories.
    pub linker: Arc<dyn Linker>,
    /// Who answers; nobody in simulation mode.
    pub model: Option<Arc<dyn Model>>,
    /// How the provider was chosen: without a model, what to set to have one.
    pub provider_choice: String,
    /// What a run does that has no model.
    pub without_model: WithoutModel,
    /// Aliases.
    pub names: ModelNames,
    /// Prices.
    pub catalogue: Arc<Catalogue>,
    /// How test commands are run.
    pub shell: ShellSetup,
    /// How dependencies are installed: with the hosts of package managers in reach.
    pub installer: ShellSetup,
    /// Takes secrets out of what is published.
    pub redactor: Arc<Redactor>,
    /// Indexes, test results and throw-away trees are kept in here.
    pub dir: PathBuf,
    /// Where the trees of agents are kept for other hosts; none where there are none.
    pub trees: Option<Arc<dyn TreeStore>>,
    /// Called after each recorded step.
    pub hook: Option<StepHook>,
}
