//! The dev agent's surroundings: which repository, how it is reached, what the settings say.
//!
//! The dev agent itself knows no settings and no environment: it gets a `DevSetup` with all it
//! needs. What only a process can know (tokens, directories, the provider) is found here. Commands
//! that make a single model call without a project, such as `ask`, use [`one_call`].

mod access;
mod checkout;
mod link;
mod repository;
mod settings;
mod sign_in;
mod subscriptions;

pub(crate) use access::github_header;
pub use access::{github_access, github_api, github_proxy};
pub use checkout::CheckedOut;
pub use link::RepositoryLinker;
pub(crate) use repository::github_name;
pub use repository::{github_origin, github_server, requester, which};
pub use settings::{DevSettings, ForgeName, VerifySettings};
pub(crate) use sign_in::signed_in;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use codespar_agent::Stop;
use codespar_dev::{AGENT_TREE, DevSetup, RepositoryRef, WithoutModel};
use codespar_policy::Redactor;
use codespar_tasks::Caller;
use codespar_tools::{Tool, sandbox::Network};
use tokio_util::sync::CancellationToken;

use self::subscriptions::Subscriptions;
use crate::{
    configuration,
    crash::crash_point,
    error::RuntimeError,
    project::Project,
    project_dir::ProjectDir,
    provider::{self, Provider},
    settings::Settings,
};

/// What this process lends to the dev agent.
///
/// Tests may get a sandbox of their own, with the network, while other commands of the project stay
/// without. The model is left out in simulation.
pub(crate) fn setup(project: &Project, weak: &Weak<Project>) -> DevSetup {
    let names = weak.clone();
    let sandbox = match project.settings.verify.network {
        // Finding a sandbox cannot fail where it was found before; the stricter one stays if it does.
        Some(true) => configuration::sandbox(&project.dir, &project.settings)
            .map(|sandbox| Arc::new(sandbox.with_network(Network::Allowed)))
            .unwrap_or_else(|_| project.sandbox.clone()),
        _ => project.sandbox.clone(),
    };
    let installer = installer(project).unwrap_or_else(|| sandbox.clone());
    DevSetup {
        linker: Arc::new(RepositoryLinker::of(project)),
        model: (!project.provider.is_simulated()).then(|| project.provider.model.clone()),
        provider_choice: project.provider.why.clone(),
        without_model: match project.settings.dev.require_model {
            Some(true) => WithoutModel::Refuse,
            _ => WithoutModel::Simulate,
        },
        names: Arc::new(move |name| match names.upgrade() {
            Some(project) => {
                let choice = project.provider.choice_for(Some(name), &project.settings);
                choice.id
            }
            None => name.to_owned(),
        }),
        catalogue: project.provider.catalogue.clone(),
        shell: project.shell_setup(sandbox),
        installer: project.shell_setup(installer),
        redactor: project.redactor.clone(),
        dir: project.dir.state().join("dev"),
        trees: project.trees(),
        hook: hook(&project.dir),
    }
}

/// A sandbox for the installation of dependencies: commands reach the hosts that package managers
/// are configured to use, unless the user's settings say otherwise. `None` where the tests' own
/// network is open, or does not differ.
fn installer(project: &Project) -> Option<Arc<codespar_tools::sandbox::Sandbox>> {
    let settings = &project.settings;
    let (network, packages) = (
        settings.sandbox.network,
        settings.sandbox.allow_package_hosts,
    );
    if network.is_some() || packages.is_some() || settings.verify.network == Some(true) {
        return None;
    }
    let sandbox = configuration::installer_sandbox(&project.dir, settings).ok()?;
    Some(Arc::new(sandbox))
}

/// Whether a directory is a tree that the dev agent made for one run. Compared with and without
/// links, since the state directory may be reached through one.
pub(crate) fn is_throw_away(project_dir: &ProjectDir, root: &Path) -> bool {
    let runs = project_dir.state().join("dev").join("runs");
    let real = runs.canonicalize();
    [Some(runs), real.ok()]
        .into_iter()
        .flatten()
        .any(|runs| root != runs && root.starts_with(runs))
}

/// Where the tree of a dev run is on this host that was made at `root`, here or on another one: the
/// state directory may be elsewhere there.
pub(crate) fn tree_here(project_dir: &ProjectDir, root: &Path) -> Option<PathBuf> {
    let run = root.parent()?.file_name()?;
    let is_tree = root.ends_with(Path::new("dev/runs").join(run).join(AGENT_TREE));
    let runs = project_dir.state().join("dev").join("runs");
    is_tree.then(|| runs.join(run).join(AGENT_TREE))
}

/// What a command that asks once works with. No database, no scheduler, no session.
pub struct OneCall {
    /// Who answers.
    pub provider: Provider,
    /// Takes secrets out of its texts.
    pub redactor: Arc<Redactor>,
    /// Ends the call: the given token, or the limit on wall time.
    pub stop: Stop,
}

/// For a command that asks once, until `cancel`.
///
/// The model is `model`, else `TASK_MODEL`, else `dev.taskModel` of the settings, else the usual
/// one.
pub fn one_call(
    project_dir: &ProjectDir,
    model: Option<&str>,
    cancel: &CancellationToken,
) -> Result<OneCall, RuntimeError> {
    let settings = Settings::load(project_dir)?;
    let redactor = Arc::new(project_dir.environment.redactor());
    let asked = model
        .or_else(|| project_dir.var("TASK_MODEL"))
        .or(settings.dev.task_model.as_deref());
    Ok(OneCall {
        provider: provider::choose(project_dir, &settings, asked, &redactor)?,
        redactor,
        stop: Stop::new(cancel, settings.max_wall()),
    })
}

/// The same without a model, whatever keys are set (`--simulate`).
pub fn simulated_call(
    project_dir: &ProjectDir,
    cancel: &CancellationToken,
) -> Result<OneCall, RuntimeError> {
    let settings = Settings::load(project_dir)?;
    Ok(OneCall {
        provider: provider::simulated(project_dir, &settings)?,
        redactor: Arc::new(project_dir.environment.redactor()),
        stop: Stop::new(cancel, settings.max_wall()),
    })
}

/// How often a local repository is looked at; it costs a few milliseconds.
const LOCAL_POLL: Duration = Duration::from_secs(2);
/// How often GitHub is asked; unchanged answers cost nothing there.
const GITHUB_POLL: Duration = Duration::from_secs(30);

/// The tools that follow pull requests, where the directory is in a repository. None for a
/// repository that cannot be determined; the tools would only fail.
pub(crate) fn subscriptions(project: &Arc<Project>, caller: &Caller) -> Vec<Arc<dyn Tool>> {
    let git = project.dir.root.join(".git");
    if !git.is_file() && !git.join("HEAD").exists() {
        return Vec::new();
    }
    let Ok(repository) = which(&project.dir, &project.settings, None) else {
        return Vec::new();
    };
    let interval = match (project.settings.dev.poll_seconds, &repository) {
        (Some(seconds), _) => Duration::from_secs(seconds.max(1)),
        (None, RepositoryRef::Local { .. }) => LOCAL_POLL,
        (None, RepositoryRef::GitHub { .. }) => GITHUB_POLL,
    };
    let subscriptions = Subscriptions {
        hub: project.hub.clone(),
        caller: caller.clone(),
        linker: Arc::new(RepositoryLinker::of(project)),
        repository,
        interval,
    };
    subscriptions.tools()
}

/// Tests of durability want the process to die right after a step.
fn hook(project_dir: &ProjectDir) -> Option<codespar_tasks::StepHook> {
    crash_point(project_dir, "CODESPAR_TEST_DIE_AFTER")
}
