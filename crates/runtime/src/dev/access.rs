//! How GitHub is reached: as an app, or with a token.
//!
//! An app wins over a token: it is set up on purpose, while `GITHUB_TOKEN` is often there for other
//! programs. Where neither is in the environment, the user's own sign-in counts (`sign_in.rs`).

use std::{collections::HashMap, path::Path, sync::LazyLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use codespar_forge::{GitHubAccess, GitHubApp, github_client};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{github_server, sign_in::signed_in};
use crate::{error::RuntimeError, project_dir::ProjectDir};

const APP_ID: &str = "GITHUB_APP_ID";
const KEY_FILE: &str = "GITHUB_APP_PRIVATE_KEY_FILE";

/// Apps of this process, by id, file of the key and address: their tokens are shared by everything
/// that reaches a repository, and are not asked for again for each.
static APPS: LazyLock<Mutex<HashMap<[String; 3], GitHubAccess>>> = LazyLock::new(Mutex::default);

/// How this process may act at GitHub; nothing if nothing is set and nobody is signed in. Half of the setup of an app is an
/// error, as is a key that cannot be used.
pub fn github_access(project_dir: &ProjectDir) -> Result<Option<GitHubAccess>, RuntimeError> {
    match (project_dir.var(APP_ID), project_dir.var(KEY_FILE)) {
        (Some(id), Some(file)) => app(project_dir, id, file).map(Some),
        (Some(_), None) => Err(half(APP_ID, KEY_FILE)),
        (None, Some(_)) => Err(half(KEY_FILE, APP_ID)),
        (None, None) => Ok(token(project_dir).map(GitHubAccess::Token)),
    }
}

/// The token for one repository, in the form of a header for one call of git; none where nobody is
/// signed in.
pub(crate) async fn github_header(
    project_dir: &ProjectDir,
    owner: &str,
    name: &str,
) -> Result<Option<String>, String> {
    let access = github_access(project_dir).map_err(|error| error.to_string())?;
    let Some(access) = access else {
        return Ok(None);
    };
    let token = access.token_for(owner, name).await;
    let token = token.map_err(|error| error.to_string())?;
    let login = BASE64_STANDARD.encode(format!("x-access-token:{}", token.expose_secret()));
    Ok(Some(format!("Authorization: Basic {login}")))
}

/// Whether there is anything to reach GitHub with. Half a setup counts: its use is an error then,
/// and not a silent change to local pull requests.
pub(super) fn has_access(project_dir: &ProjectDir) -> bool {
    let names = [APP_ID, KEY_FILE];
    names.iter().any(|name| project_dir.var(name).is_some()) || token(project_dir).is_some()
}

fn token(project_dir: &ProjectDir) -> Option<SecretString> {
    let given = project_dir.var("GITHUB_TOKEN");
    let given = given.or_else(|| project_dir.var("GH_TOKEN"));
    match given {
        Some(token) => Some(SecretString::from(token)),
        None => signed_in(&github_server(project_dir), &project_dir.root),
    }
}

fn half(given: &str, name: &str) -> RuntimeError {
    RuntimeError::Usage(format!(
        "{given} is set and {name} is not: a GitHub App needs both (docs/channels/github.md)"
    ))
}

fn app(project_dir: &ProjectDir, id: &str, file: &str) -> Result<GitHubAccess, RuntimeError> {
    let api = github_api(project_dir)?;
    let mut apps = APPS.lock();
    let name = [id.to_owned(), file.to_owned(), api.to_string()];
    if let Some(known) = apps.get(&name) {
        return Ok(known.clone());
    }
    let usage = |reason: String| RuntimeError::Usage(format!("{KEY_FILE}={file}: {reason}"));
    let pem = std::fs::read_to_string(Path::new(file)).map_err(|error| usage(error.to_string()))?;
    let proxy = github_proxy(project_dir, &api)?;
    let http = github_client(&api, proxy.as_ref());
    let http = http.map_err(|error| RuntimeError::Failed(error.to_string()))?;
    let app = GitHubApp::new(id, &SecretString::from(pem), api, http);
    let app = app.map_err(|error| usage(error.to_string()))?;
    let access = GitHubAccess::App(app.into());
    apps.insert(name, access.clone());
    Ok(access)
}

/// The address of the API. `GITHUB_API_URL` wins over the one that follows from the server.
pub fn github_api(project_dir: &ProjectDir) -> Result<Url, RuntimeError> {
    let api = project_dir.var("GITHUB_API_URL").map(str::to_owned);
    let api = api.unwrap_or_else(|| api_of(&github_server(project_dir)));
    api.parse()
        .map_err(|error| RuntimeError::Usage(format!("GITHUB_API_URL={api}: {error}")))
}

/// A proxy is for reaching the outside; servers on this machine are reached directly.
pub fn github_proxy(project_dir: &ProjectDir, api: &Url) -> Result<Option<Url>, RuntimeError> {
    if matches!(api.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        return Ok(None);
    }
    project_dir.proxy()
}

/// GitHub's own address has a host for its API; an enterprise's has a path.
fn api_of(server: &str) -> String {
    match server {
        "https://github.com" => "https://api.github.com".to_owned(),
        other => format!("{other}/api/v3"),
    }
}
