//! Reaches repositories: local ones as they are, those on GitHub with a clone in the state
//! directory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use codespar_dev::{Link, Linker, RepositoryRef};
use codespar_forge::{GitHubForge, GitHubSetup, LocalForge, Patience, github_client};
use codespar_store::SqliteStore;
use secrecy::SecretString;

use super::repository::{server, token};
use crate::place::Place;

/// Reaches repositories with what the environment gives.
pub(crate) struct CliLinker {
    pub(crate) place: Place,
    pub(crate) store: Arc<SqliteStore>,
}

#[async_trait]
impl Linker for CliLinker {
    async fn link(&self, repository: &RepositoryRef) -> Result<Link, String> {
        match repository {
            RepositoryRef::Local { path } => {
                let forge = LocalForge::open(path, self.store.clone(), None)
                    .await
                    .map_err(|error| error.to_string())?;
                Ok(Link {
                    forge: Arc::new(forge),
                    clone: Some(path.clone()),
                    key: path.display().to_string(),
                })
            }
            RepositoryRef::GitHub { owner, name } => {
                let forge = self.github(owner, name)?;
                let clone = self.clone_of(owner, name).await;
                if let Err(reason) = &clone {
                    tracing::warn!("{owner}/{name} could not be cloned: {reason}");
                }
                Ok(Link {
                    forge: Arc::new(forge),
                    clone: clone.ok(),
                    key: format!("{}/{owner}/{name}", server(&self.place)),
                })
            }
        }
    }
}

impl CliLinker {
    fn github(&self, owner: &str, name: &str) -> Result<GitHubForge, String> {
        let token = token(&self.place).ok_or("GITHUB_TOKEN is not set")?;
        let api = self
            .place
            .var("GITHUB_API_URL")
            .map(str::to_owned)
            .unwrap_or_else(|| api_of(&server(&self.place)));
        let api: url::Url = api
            .parse()
            .map_err(|error| format!("GITHUB_API_URL={api}: {error}"))?;
        let proxy = proxy(&self.place, &api)?;
        let http = github_client(&api, proxy.as_ref()).map_err(|error| error.to_string())?;
        let setup = GitHubSetup {
            api,
            owner: owner.to_owned(),
            name: name.to_owned(),
            token: SecretString::from(token),
            http,
            patience: Patience::default(),
        };
        GitHubForge::new(setup).map_err(|error| error.to_string())
    }

    /// A bare clone, brought up to date.
    async fn clone_of(&self, owner: &str, name: &str) -> Result<PathBuf, String> {
        let dir = self
            .place
            .state
            .join("clones")
            .join(format!("{owner}+{name}.git"));
        let url = format!("{}/{owner}/{name}.git", server(&self.place));
        let token = token(&self.place).unwrap_or_default();
        let login = BASE64_STANDARD.encode(format!("x-access-token:{token}"));
        let header = format!("Authorization: Basic {login}");
        tokio::task::spawn_blocking(move || fetch(&dir, &url, &header).map(|()| dir))
            .await
            .map_err(|error| error.to_string())?
    }
}

/// A proxy is for reaching the outside; servers on this machine are reached directly.
fn proxy(place: &Place, api: &url::Url) -> Result<Option<url::Url>, String> {
    if matches!(api.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        return Ok(None);
    }
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .into_iter()
        .find_map(|name| Some((name, place.var(name)?)))
        .map(|(name, text)| text.parse().map_err(|error| format!("{name}: {error}")))
        .transpose()
}

/// GitHub's own address has a host for its API; an enterprise's has a path.
fn api_of(server: &str) -> String {
    match server {
        "https://github.com" => "https://api.github.com".to_owned(),
        other => format!("{other}/api/v3"),
    }
}

fn fetch(dir: &Path, url: &str, header: &str) -> Result<(), String> {
    if !dir.join("HEAD").exists() {
        let parent = dir.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
        git(
            parent,
            &["init", "--quiet", "--bare", &dir.to_string_lossy()],
            None,
        )?;
    }
    let refs = "+refs/heads/*:refs/heads/*";
    git(
        dir,
        &["fetch", "--quiet", "--prune", "--no-tags", url, refs],
        Some(header),
    )
}

/// The token is in the environment of this one git, not among its arguments.
fn git(dir: &Path, args: &[&str], header: Option<&str>) -> Result<(), String> {
    let mut command = std::process::Command::new("git");
    command
        .arg("-C")
        .arg(dir)
        .args(["-c", "core.hooksPath=/dev/null", "-c", "credential.helper="])
        .args(args)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE");
    if let Some(header) = header {
        command
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "http.extraHeader")
            .env("GIT_CONFIG_VALUE_0", header);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
