//! The repository of a task on this host.
//!
//! The authority of a task names the directory of whoever made it. Where that directory is on this
//! host and is a clone of the same repository, the task works there. Elsewhere the repository is
//! cloned, once, and the task works in the clone:
//!
//! ```text
//! <state>/repositories/<name>         the clone, with files; <name> is github.com/acme/api
//! <state>/repositories/<name>+lock    held while one process clones or fetches
//! <state>/repositories/<name>+use     shared by the tasks that work in it
//! ```
//!
//! The clone is a directory like any other: its settings grant nothing until the user of this host
//! trusts it (`codespar trust add`). The login is that of this host.

mod cache;
mod missing;
mod relocate;

pub(crate) use missing::not_here;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use codespar_dev::RepositoryRef;
use codespar_git::{RemoteAddress, Repository, Trust};
use codespar_protocol::TaskSpec;
use codespar_tasks::Control;

use crate::{
    Environment, ProjectDir,
    dev::{github_name, github_server},
};

/// The address of the repository that a project is a clone of, where other hosts can have tasks of
/// this one. That at GitHub is the one that a token is for.
pub fn shared_repository(project_dir: &ProjectDir) -> Option<RemoteAddress> {
    project_dir.environment.database_url()?;
    address_of(project_dir, &project_dir.root)
}

/// The address of a repository that a run names, where other hosts can have tasks of this one.
pub(crate) fn address_of_order(
    project_dir: &ProjectDir,
    repository: &RepositoryRef,
) -> Option<RemoteAddress> {
    project_dir.environment.database_url()?;
    match repository {
        RepositoryRef::Local { path } => address_of(project_dir, path),
        RepositoryRef::GitHub { owner, name } => at_github(project_dir, owner, name),
    }
}

fn address_of(project_dir: &ProjectDir, dir: &Path) -> Option<RemoteAddress> {
    let repository = Repository::find(dir, Trust::Untrusted).ok()?;
    let url = repository.remote_url("origin").ok()??;
    match github_name(&url, &github_server(project_dir)) {
        Some((owner, name)) => at_github(project_dir, &owner, &name),
        None => RemoteAddress::parse(&url),
    }
}

fn at_github(project_dir: &ProjectDir, owner: &str, name: &str) -> Option<RemoteAddress> {
    RemoteAddress::parse(&format!(
        "{}/{owner}/{name}.git",
        github_server(project_dir)
    ))
}

/// A task as it runs on this host.
pub(crate) struct LocalTask {
    /// With paths of this host.
    pub(crate) control: Control,
    /// While it lives, the files of a clone stay as they are.
    _in_use: Option<File>,
}

impl LocalTask {
    /// The error says why the repository cannot be had here, for people.
    pub(crate) async fn find(
        environment: &Arc<Environment>,
        control: Control,
    ) -> Result<Self, (Control, String)> {
        let control = with_output_here(environment, control);
        match found(environment, &control).await {
            Ok(None) => Ok(Self {
                control,
                _in_use: None,
            }),
            Ok(Some((root, in_use))) => Ok(Self {
                control: relocate::relocated(control, &root),
                _in_use: Some(in_use),
            }),
            Err(reason) => Err((control, reason)),
        }
    }
}

/// The output of a task that another host made has a place here if it cannot go where that host has
/// it.
fn with_output_here(environment: &Environment, mut control: Control) -> Control {
    let dir = control.output.parent();
    let tree = control
        .record
        .authority
        .as_ref()
        .map(|authority| authority.tree);
    if let Some(tree) = tree
        && environment.database_url().is_some()
        && !dir.is_some_and(Path::is_dir)
    {
        let own = environment.state.join("task-output").join(tree.to_string());
        control.output = own.join(format!("{}.txt", control.record.task_id));
    }
    control
}

/// `None` where the task works in the directory that it names.
async fn found(
    environment: &Arc<Environment>,
    control: &Control,
) -> Result<Option<(PathBuf, File)>, String> {
    let authority = control.authority()?;
    let (Some(_), Some(remote)) = (environment.database_url(), &authority.remote) else {
        return Ok(None);
    };
    let address = RemoteAddress::parse(remote)
        .ok_or_else(|| "the task's repository has an address that cannot be used".to_owned())?;
    let dir = ProjectDir::at(environment.clone(), &environment.state);
    let dir = dir.map_err(|error| error.to_string())?;
    let root = authority.project_root.clone();
    if root.is_dir() {
        let there = address_of(&dir, &root);
        // A directory that is no clone at all is that of a run which names its repository itself.
        if there.is_none_or(|there| there.name() == address.name()) {
            return Ok(None);
        }
    }
    if let Some(path) = own_directory(control.spec()?) {
        return Err(format!(
            "pull requests of {} are branches there, and this host does not have it; run it on \
             one that does, or have the repository on GitHub",
            path.display()
        ));
    }
    cache::clone_of(&dir, &address).await.map(Some)
}

/// A directory that only the host has that made the task.
fn own_directory(spec: &TaskSpec) -> Option<&Path> {
    let repository = match spec {
        TaskSpec::Dev(order) => &order.repository,
        TaskSpec::FollowPullRequest(order) => &order.repository,
        _ => return None,
    };
    match repository {
        RepositoryRef::Local { path } => Some(path),
        RepositoryRef::GitHub { .. } => None,
    }
}
