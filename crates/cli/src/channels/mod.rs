//! The chat channels that are set up: those whose secrets are in the environment.

mod discord;
mod github;
mod slack;
mod telegram;
mod whatsapp;

use codespar_channels::ConfiguredChannel;
use codespar_runtime::ProjectDir;
use secrecy::SecretString;
use url::Url;

use crate::error::CommandError;

/// Reads the setup of one platform; nothing if it is not set up.
type FindChannel = fn(&ProjectDir) -> Result<Option<ConfiguredChannel>, CommandError>;

/// All platforms. A new one is a file beside this one, and its name here.
const PLATFORMS: &[FindChannel] = &[
    github::find,
    slack::find,
    telegram::find,
    discord::find,
    whatsapp::find,
];

/// Half a setup is a mistake, and not a channel that is silently missing.
pub(crate) fn find(project_dir: &ProjectDir) -> Result<Vec<ConfiguredChannel>, CommandError> {
    let mut channels = Vec::new();
    for platform in PLATFORMS {
        channels.extend(platform(project_dir)?);
    }
    Ok(channels)
}

/// A secret of a platform. An empty variable is none.
fn secret(project_dir: &ProjectDir, name: &str) -> Option<SecretString> {
    let value = project_dir.var(name).filter(|value| !value.is_empty());
    value.map(SecretString::from)
}

/// The address of an API: the usual one, or that of a server of one's own.
fn api_url(project_dir: &ProjectDir, name: &str, usual: &str) -> Result<Url, CommandError> {
    let url = project_dir.var(name).unwrap_or(usual);
    let parsed = url.parse();
    parsed.map_err(|error| CommandError::Usage(format!("{name}: {error}")))
}

/// The proxy for requests to an API. Only https goes through it: another scheme is a server of
/// one's own.
pub(crate) fn proxy(project_dir: &ProjectDir, api: &Url) -> Result<Option<Url>, CommandError> {
    match api.scheme() {
        "https" => Ok(project_dir.proxy()?),
        _ => Ok(None),
    }
}

/// Half of a setup.
fn missing(platform: &str, name: &str, given: &str, page: &str) -> CommandError {
    CommandError::Usage(format!(
        "{given} is set and {name} is not: {platform} needs both (docs/channels/{page}.md)"
    ))
}
