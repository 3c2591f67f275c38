//! Clones of repositories that tasks of other hosts work on.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use codespar_git::{GitError, RemoteAddress};
use secrecy::ExposeSecret;

use crate::{
    ProjectDir,
    dev::{github_header, github_name, github_server, signed_in},
};

/// The clone, up to date as far as the remote can be reached, and the file that says it is in use.
pub(super) async fn clone_of(
    project_dir: &ProjectDir,
    address: &RemoteAddress,
) -> Result<(PathBuf, File), String> {
    let dir = project_dir.state().join("repositories");
    let dir = dir.join(address.directory());
    let header = header(project_dir, address).await?;
    let address = address.clone();
    let cloning = move || {
        let in_use = ready(&dir, &address, header.as_deref()).map_err(|reason| {
            let (name, url) = (address.name(), address.url());
            format!("{name} could not be cloned from {url}: {reason}")
        })?;
        let root = dir.canonicalize().map_err(|error| error.to_string())?;
        Ok((root, in_use))
    };
    let cloned = tokio::task::spawn_blocking(cloning).await;
    cloned.map_err(|error| error.to_string())?
}

/// The login of this host for the server of the address, as a header for one call. None where there
/// is none: a public repository needs none.
async fn header(
    project_dir: &ProjectDir,
    address: &RemoteAddress,
) -> Result<Option<String>, String> {
    let server = github_server(project_dir);
    let is_there = address.url().starts_with(&format!("{server}/"));
    if is_there && let Some((owner, name)) = github_name(address.url(), &server) {
        return github_header(project_dir, &owner, &name).await;
    }
    let Some((scheme, rest)) = address.url().split_once("://") else {
        return Ok(None);
    };
    let host = rest.split('/').next().unwrap_or_default();
    let (server, root) = (format!("{scheme}://{host}"), project_dir.root.clone());
    let asking = move || signed_in(&server, &root);
    let token = tokio::task::spawn_blocking(asking).await;
    let token = token.map_err(|error| error.to_string())?;
    Ok(token.map(|token| {
        let login = BASE64_STANDARD.encode(format!("x-access-token:{}", token.expose_secret()));
        format!("Authorization: Basic {login}")
    }))
}

/// Files are brought up to date only where no task works in them.
fn ready(dir: &Path, address: &RemoteAddress, header: Option<&str>) -> Result<File, String> {
    let failed = |error: std::io::Error| error.to_string();
    fs::create_dir_all(dir.parent().unwrap_or(dir)).map_err(failed)?;
    let lock = File::create(beside(dir, "+lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let in_use = File::create(beside(dir, "+use")).map_err(failed)?;
    if dir.join(".git").exists() {
        refresh(dir, address, header, &in_use);
    } else {
        let cloned = address.clone_to(dir, header);
        cloned.map_err(|error: GitError| error.to_string())?;
    }
    in_use.lock_shared().map_err(failed)?;
    Ok(in_use)
}

/// What is there may do, so a remote that is out of reach is no failure.
fn refresh(dir: &Path, address: &RemoteAddress, header: Option<&str>, in_use: &File) {
    let told = |result: Result<(), GitError>| {
        if let Err(error) = result {
            tracing::warn!("{} is not brought up to date: {error}", address.name());
        }
    };
    told(address.update(dir, header));
    if in_use.try_lock().is_ok() {
        told(address.advance(dir));
    }
}

fn beside(dir: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(dir.file_name().unwrap_or_default());
    name.push(ending);
    dir.with_file_name(name)
}
