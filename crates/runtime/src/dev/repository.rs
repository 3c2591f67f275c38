//! Which repository a command speaks of, and who asks.
//!
//! `--repo` names a directory, `owner/name` or a URL. Without it the repository is the one around the
//! working directory; it counts as one on GitHub if its origin is there and there is a token.
//! Nothing is asked over the network.

use std::path::{Path, PathBuf};

use codespar_dev::RepositoryRef;
use codespar_forge::Forge;
use codespar_git::{Repository, Trust};

use super::{ForgeName, access::has_access};
use crate::{error::RuntimeError, project_dir::ProjectDir, settings::Settings};

/// The repository of `--repo`, or the one we are in.
///
/// A directory wins over `owner/name` of the same text. With `forge = "github"` a missing origin or
/// token is an error; with `auto` the pull requests are local.
pub fn which(
    project_dir: &ProjectDir,
    settings: &Settings,
    repo: Option<&str>,
) -> Result<RepositoryRef, RuntimeError> {
    let dir = match repo {
        None => project_dir.root.clone(),
        Some(text) if Path::new(text).is_dir() => PathBuf::from(text).canonicalize()?,
        Some(text) if text.starts_with(['.', '/', '~']) => {
            return Err(RuntimeError::Usage(format!(
                "--repo {text}: there is no such directory"
            )));
        }
        Some(text) if text.contains("://") => return at_url(project_dir, text),
        Some(text) => return at_github(project_dir, text),
    };
    let forge = settings.forge.unwrap_or(ForgeName::Auto);
    if forge == ForgeName::Local {
        return Ok(RepositoryRef::Local { path: dir });
    }
    let origin = origin(&dir).and_then(|url| github_name(&url, &github_server(project_dir)));
    match (origin, forge) {
        // Looking for a token may start programs.
        (Some((owner, name)), _) if has_access(project_dir) => {
            Ok(RepositoryRef::GitHub { owner, name })
        }
        (_, ForgeName::Github) => Err(RuntimeError::Usage(format!(
            "`forge` is set to github, but {} has no origin at {} or there is no token for it: set \
             GITHUB_TOKEN, or sign in with `gh auth login`",
            dir.display(),
            github_server(project_dir)
        ))),
        _ => Ok(RepositoryRef::Local { path: dir }),
    }
}

/// The repository at GitHub that a project is a clone of, as `owner/name`.
pub fn github_origin(project_dir: &ProjectDir) -> Option<String> {
    let url = origin(&project_dir.root)?;
    let (owner, name) = github_name(&url, &github_server(project_dir))?;
    Some(format!("{owner}/{name}"))
}

/// Whether the origin of the repository around a directory is this one.
pub(super) fn is_clone_of(project_dir: &ProjectDir, dir: &Path, owner: &str, name: &str) -> bool {
    let found = origin(dir).and_then(|url| github_name(&url, &github_server(project_dir)));
    found.is_some_and(|(its_owner, its_name)| its_owner == owner && its_name == name)
}

/// Only the server that the token is for: a link in a chat must not choose where it is sent.
fn at_url(project_dir: &ProjectDir, text: &str) -> Result<RepositoryRef, RuntimeError> {
    let server = github_server(project_dir);
    match github_name(text, &server) {
        Some((owner, name)) => at_github(project_dir, &format!("{owner}/{name}")),
        None => Err(RuntimeError::Usage(format!(
            "{text} is not a repository at {server} (GITHUB_SERVER_URL sets the server)"
        ))),
    }
}

/// The characters are checked, because owner and name become part of a path and of a URL.
fn at_github(project_dir: &ProjectDir, text: &str) -> Result<RepositoryRef, RuntimeError> {
    let known = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let (owner, name) = text
        .split_once('/')
        .filter(|(owner, name)| known(owner) && known(name))
        .ok_or_else(|| {
            RuntimeError::Usage(format!(
                "--repo {text}: neither a directory nor owner/name of a repository on GitHub"
            ))
        })?;
    if !has_access(project_dir) {
        return Err(RuntimeError::Usage(format!(
            "--repo {text} is on GitHub: set GITHUB_TOKEN to a token that may read and write its contents \
             and pull requests, or sign in with `gh auth login`"
        )));
    }
    Ok(RepositoryRef::GitHub {
        owner: owner.to_owned(),
        name: name.to_owned(),
    })
}

/// Where repositories are cloned from.
pub fn github_server(project_dir: &ProjectDir) -> String {
    project_dir
        .var("GITHUB_SERVER_URL")
        .unwrap_or("https://github.com")
        .trim_end_matches('/')
        .to_owned()
}

/// Where git would fetch from. Read as untrusted: only the value is needed, and nothing that the
/// configuration names is run.
fn origin(dir: &Path) -> Option<String> {
    let repository = Repository::find(dir, Trust::Untrusted).ok()?;
    repository.remote_url("origin").ok()?
}

/// Owner and name, if the address is at this server: `https://host/o/n.git`, `git@host:o/n.git`.
pub(crate) fn github_name(url: &str, server: &str) -> Option<(String, String)> {
    let host = server.split_once("://").map_or(server, |(_, host)| host);
    let path = url
        .strip_prefix(&format!("git@{host}:"))
        .or_else(|| url.strip_prefix(&format!("ssh://git@{host}/")))
        .or_else(|| {
            let (_, rest) = url.split_once("://")?;
            let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
            rest.strip_prefix(host)?.strip_prefix('/')
        })?;
    let path = path.trim_end_matches('/').trim_end_matches(".git");
    let (owner, name) = path.split_once('/')?;
    (!name.contains('/')).then(|| (owner.to_owned(), name.to_owned()))
}

/// Who asks, as the forge knows them. Never an error: the name is for the record, and permissions
/// are checked by the forge.
pub async fn requester(project_dir: &ProjectDir, forge: &dyn Forge) -> String {
    match forge.whoami().await {
        Ok(name) if !name.is_empty() => name,
        _ => project_dir.var("USER").unwrap_or("someone").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_names_its_repository_in_all_its_forms() {
        let name = |url| github_name(url, "https://github.com");
        let expected = Some(("o".to_owned(), "n".to_owned()));
        for url in [
            "https://github.com/o/n.git",
            "https://github.com/o/n",
            "https://user:secret@github.com/o/n.git",
            "git@github.com:o/n.git",
            "ssh://git@github.com/o/n.git",
        ] {
            assert_eq!(name(url), expected, "{url}");
        }
        for url in [
            "https://gitlab.com/o/n.git",
            "/srv/git/n.git",
            "https://github.com/o",
            "https://github.com/a/b/c",
        ] {
            assert_eq!(name(url), None, "{url}");
        }
    }
}
