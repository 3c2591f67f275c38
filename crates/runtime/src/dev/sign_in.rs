//! A token of the user's for GitHub that is not in the environment: of `gh`, or of git's credential
//! helpers.
//!
//! Asking costs a process and may cost seconds, so an answer is kept for a while. Tokens of helpers
//! expire within hours; what is kept here does so sooner.

use std::{
    collections::HashMap,
    path::Path,
    sync::LazyLock,
    time::{Duration, Instant},
};

use codespar_git::{GitError, gh_token, helper_token};
use parking_lot::Mutex;
use secrecy::SecretString;

const KEPT: Duration = Duration::from_secs(300);
/// Shorter, so that a user who signs in meanwhile is not kept waiting.
const KEPT_NOTHING: Duration = Duration::from_secs(20);

type Kept = HashMap<String, (Instant, Option<SecretString>)>;

/// By server.
static TOKENS: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// The token for a server such as `https://github.com`. Nothing within `outside_of` is run. Never an
/// error: who is not signed in has no token, and why is in the log.
pub(crate) fn signed_in(server: &str, outside_of: &Path) -> Option<SecretString> {
    // Held while it is asked for, so that it is asked for once.
    let mut tokens = TOKENS.lock();
    if let Some((at, token)) = tokens.get(server) {
        let kept = if token.is_some() { KEPT } else { KEPT_NOTHING };
        if at.elapsed() < kept {
            return token.clone();
        }
    }
    let token = ask(server, outside_of).map(SecretString::from);
    tokens.insert(server.to_owned(), (Instant::now(), token.clone()));
    token
}

fn ask(server: &str, outside_of: &Path) -> Option<String> {
    let (scheme, host) = server.split_once("://")?;
    let host = host.split('/').next()?;
    let told = |name: &str, found: Result<Option<String>, GitError>| {
        found.unwrap_or_else(|error| {
            tracing::warn!("{name} gave no token for {host}: {error}");
            None
        })
    };
    told("gh", gh_token(host, outside_of)).or_else(|| {
        let found = helper_token(scheme, host, outside_of);
        told("git's credential helper", found)
    })
}
