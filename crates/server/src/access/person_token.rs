//! Tokens of people whom somebody else vouches for: a proxy, or a provider.

use codespar_protocol::AccessRole;
use codespar_store::{AccessToken, NewToken};

use super::{Secret, SecretKind};
use crate::{error::ApiError, state::Shared};

/// The token that a person acts with, made when they first come; nobody has its secret. The last
/// one of the person counts: one that was revoked keeps them out, one with another role or name is
/// replaced.
pub(crate) async fn person_token(
    state: &Shared,
    name: String,
    role: AccessRole,
    is_theirs: impl Fn(&AccessToken) -> bool,
) -> Result<Option<AccessToken>, ApiError> {
    let store = state.store();
    let _one_at_a_time = state.access.people.lock().await;
    let tokens = store.tokens().await?;
    let last = tokens.into_iter().rev().find(is_theirs);
    match &last {
        Some(token) if token.revoked_at.is_some() => return Ok(None),
        Some(token) if token.role == role && token.name == name => return Ok(last),
        _ => {}
    }
    let unknown = Secret::random(SecretKind::Token).map_err(ApiError::internal)?;
    let hash = unknown.hash();
    let made = store.create_token(NewToken { name, role, hash }).await?;
    if let Some(before) = last {
        store.revoke_token(&before.id).await?;
    }
    Ok(Some(made))
}
