//! Who may use the HTTP API: tokens, and browsers that signed in with one.

use async_trait::async_trait;
use codespar_protocol::{AccessRole, TokenId};
use jiff::Timestamp;
use serde::Serialize;

use crate::StoreError;

/// What a token starts from. The secret is not part of it.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What it is for, in the user's words.
    pub name: String,
    pub role: AccessRole,
    pub hash: SecretHash,
}

/// The SHA-256 of a random secret, in hexadecimal. A lookup by it tells nothing about the secret,
/// however long the comparison takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecretHash(pub String);

/// A token as it stands on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessToken {
    pub id: TokenId,
    pub name: String,
    pub role: AccessRole,
    pub created_at: Timestamp,
    /// Exact to a minute.
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// A browser that signed in.
#[derive(Debug, Clone)]
pub struct NewBrowserSession {
    /// The token that it acts with.
    pub token_id: TokenId,
    /// Of the cookie's value.
    pub hash: SecretHash,
    pub expires_at: Timestamp,
}

/// Tokens of the API. Revoked tokens and expired sessions are never given for a hash.
#[async_trait]
pub trait TokenStore: Send + Sync {
    async fn create_token(&self, new: NewToken) -> Result<AccessToken, StoreError>;

    /// All of them, in order of creation; revoked ones too.
    async fn tokens(&self) -> Result<Vec<AccessToken>, StoreError>;

    /// The token with this id, if it is not revoked.
    async fn token(&self, id: &TokenId) -> Result<Option<AccessToken>, StoreError>;

    /// The token with this secret, if it is not revoked.
    async fn token_by_hash(&self, hash: &SecretHash) -> Result<Option<AccessToken>, StoreError>;

    /// Revokes a token; its browser sessions end with it. One that is revoked stays as it is.
    async fn revoke_token(&self, id: &TokenId) -> Result<AccessToken, StoreError>;

    /// Records a use, unless one was recorded within the last minute.
    async fn touch_token(&self, id: &TokenId) -> Result<(), StoreError>;

    /// Records a sign-in; forgets sessions that have expired.
    async fn create_browser_session(&self, new: NewBrowserSession) -> Result<(), StoreError>;

    /// The token of a browser that signed in, if neither has ended.
    async fn browser_token(&self, hash: &SecretHash) -> Result<Option<AccessToken>, StoreError>;

    /// Signs a browser out.
    async fn end_browser_session(&self, hash: &SecretHash) -> Result<(), StoreError>;
}
