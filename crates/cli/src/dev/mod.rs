//! The dev agent's surroundings: which repository, how it is reached, what the settings say.

mod link;
mod person;
mod progress;
mod repository;
mod settings;

pub(crate) use link::CliLinker;
pub(crate) use person::AtTerminal;
pub(crate) use progress::Progress;
pub(crate) use repository::{requester, which};
pub(crate) use settings::{DevSettings, ForgeName, VerifySettings};

use std::{path::Path, sync::Arc, time::Duration};

use codespar_agent::Stop;
use codespar_dev::{DevGround, RepositoryRef, Subscriptions};
use codespar_policy::Redactor;
use codespar_tasks::{Caller, ShellGround, TaskHub};
use codespar_tools::{Tool, sandbox::Network};
use tokio_util::sync::CancellationToken;

use crate::{
    assemble::Ground,
    error::CommandError,
    gather,
    place::Place,
    provider::{self, Provider},
    settings::Settings,
};

/// What this process lends to the dev agent.
pub(crate) fn ground(ground: &Arc<Ground>) -> DevGround {
    let names = ground.clone();
    let sandbox = match ground.settings.verify.network {
        // Finding a sandbox cannot fail where it was found before; the stricter one stays if it does.
        Some(true) => gather::sandbox(&ground.place, &ground.settings)
            .map(|sandbox| Arc::new(sandbox.with_network(Network::Allowed)))
            .unwrap_or_else(|_| ground.sandbox.clone()),
        _ => ground.sandbox.clone(),
    };
    DevGround {
        linker: Arc::new(CliLinker {
            place: ground.place.clone(),
            store: ground.store.clone(),
        }),
        model: (!ground.provider.is_simulated()).then(|| ground.provider.model.clone()),
        names: Arc::new(move |name| names.provider.choice_for(Some(name), &names.settings).id),
        catalogue: ground.provider.catalogue.clone(),
        shell: ShellGround {
            sandbox,
            child_env: ground.child_env(),
            temp_dir: ground.place.state.join("tmp"),
            redactor: ground.redactor.clone(),
            rules: ground.rules(),
            home: ground.place.home.clone(),
        },
        redactor: ground.redactor.clone(),
        dir: ground.place.state.join("dev"),
        person: ground.person.clone(),
        hook: hook(&ground.place),
    }
}

/// Whether a directory is a tree that the dev agent made for one run.
pub(crate) fn is_throw_away(place: &Place, root: &Path) -> bool {
    let runs = place.state.join("dev").join("runs");
    let real = runs.canonicalize();
    [Some(runs), real.ok()]
        .into_iter()
        .flatten()
        .any(|runs| root != runs && root.starts_with(runs))
}

/// What a command that asks once works with.
pub(crate) struct OneCall {
    pub(crate) provider: Provider,
    /// Takes secrets out of its texts.
    pub(crate) redactor: Arc<Redactor>,
    /// Ends the call: the given token, or the limit on wall time.
    pub(crate) stop: Stop,
}

/// For a command that asks once, until `cancel`.
pub(crate) fn one_call(
    place: &Place,
    model: Option<&str>,
    cancel: &CancellationToken,
) -> Result<OneCall, CommandError> {
    let settings = Settings::load(place)?;
    let redactor = Arc::new(gather::redactor(place));
    let asked = model
        .or_else(|| place.var("TASK_MODEL"))
        .or(settings.dev.task_model.as_deref());
    Ok(OneCall {
        provider: provider::choose(place, &settings, asked, &redactor)?,
        redactor,
        stop: Stop::new(cancel, settings.max_wall()),
    })
}

/// How often a local repository is looked at; it costs a few milliseconds.
const LOCAL_POLL: Duration = Duration::from_secs(2);
/// How often GitHub is asked; unchanged answers cost nothing there.
const GITHUB_POLL: Duration = Duration::from_secs(30);

/// The tools that follow pull requests, where the directory is in a repository.
pub(crate) fn subscriptions(
    ground: &Arc<Ground>,
    hub: &Arc<TaskHub>,
    caller: &Caller,
) -> Vec<Arc<dyn Tool>> {
    let git = ground.place.root.join(".git");
    if !git.is_file() && !git.join("HEAD").exists() {
        return Vec::new();
    }
    let Ok(repository) = which(&ground.place, &ground.settings, None) else {
        return Vec::new();
    };
    let interval = match (ground.settings.dev.poll_seconds, &repository) {
        (Some(seconds), _) => Duration::from_secs(seconds.max(1)),
        (None, RepositoryRef::Local { .. }) => LOCAL_POLL,
        (None, RepositoryRef::GitHub { .. }) => GITHUB_POLL,
    };
    let subscriptions = Subscriptions {
        hub: hub.clone(),
        caller: caller.clone(),
        linker: Arc::new(CliLinker {
            place: ground.place.clone(),
            store: ground.store.clone(),
        }),
        repository,
        interval,
    };
    subscriptions.tools()
}

/// Tests of durability want the process to die right after a step; only development builds do.
fn hook(place: &Place) -> Option<codespar_dev::StepHook> {
    if !cfg!(debug_assertions) {
        return None;
    }
    let wanted = place.var("CODESPAR_TEST_DIE_AFTER")?.to_owned();
    Some(Arc::new(move |step: &str| {
        if step == wanted {
            let own = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        }
    }))
}
