//! The role and the token of a person who signed in at a provider.

use codespar_protocol::AccessRole;
use codespar_runtime::{ServerSettings, SignedIn};
use codespar_store::AccessToken;

use super::SignInFailure;
use crate::{access::person_token, error::ApiError, state::Shared};

/// What the settings of now make of the server.
fn with_settings<T>(
    state: &Shared,
    read: impl FnOnce(&ServerSettings) -> T,
) -> Result<T, ApiError> {
    match state.scope.roots().first() {
        Some(root) => Ok(read(&state.runtime.project_at(root)?.settings.server)),
        None => Ok(read(&ServerSettings::default())),
    }
}

/// By the settings of now; none for strangers.
pub(crate) fn role_of(
    state: &Shared,
    provider: &str,
    person: &SignedIn,
) -> Result<Option<AccessRole>, ApiError> {
    with_settings(state, |server| person.role(server.sign_in.get(provider)?))
}

/// Whether the settings still give the person of a token its role.
pub(crate) fn is_granted(state: &Shared, token: &AccessToken) -> Result<bool, ApiError> {
    match SignedIn::of_token(&token.name) {
        Some(_) => with_settings(state, |server| server.grants(&token.name, token.role)),
        None => Ok(true),
    }
}

/// What a person is called whose token has this name.
pub(crate) fn shown_name(token: &str) -> String {
    SignedIn::of_token(token)
        .map_or_else(|| token.to_owned(), |(_, person)| person.shown().to_owned())
}

/// The token that a person acts with. Another name of the same account is the same person.
pub(crate) async fn token_for(
    state: &Shared,
    provider: &str,
    person: &SignedIn,
    role: AccessRole,
) -> Result<Result<AccessToken, SignInFailure>, ApiError> {
    let is_theirs = |token: &AccessToken| {
        SignedIn::of_token(&token.name)
            .is_some_and(|(of, known)| of == provider && known.is_same_as(person))
    };
    let name = person.token_name(provider);
    let token = person_token(state, name, role, is_theirs).await?;
    Ok(token.ok_or_else(|| SignInFailure::Revoked(person.shown().to_owned())))
}
