//! Tokens of the API and browsers that signed in.

use async_trait::async_trait;
use codespar_protocol::{AccessRole, TokenId};
use jiff::{SignedDuration, Timestamp};

use super::{
    failure::Failure,
    now,
    rows::{field, message_of, time},
};
use crate::engine::{self, Backend, Connection, Row};
use crate::{
    AccessToken, NewBrowserSession, NewToken, SecretHash, StoreError, TokenStore, server_sql as sql,
};

/// A use is recorded at most this often: reading must not become a write for every request.
const TOUCH_EVERY: SignedDuration = SignedDuration::from_mins(1);

#[async_trait]
impl<B: Backend> TokenStore for B {
    async fn create_token(&self, new: NewToken) -> Result<AccessToken, StoreError> {
        let token = AccessToken {
            id: TokenId::new(),
            name: new.name,
            role: new.role,
            created_at: now(),
            last_used_at: None,
            revoked_at: None,
        };
        let mut work = self.single().await?;
        let outcome = insert(work.connection(), &token, &new.hash).await;
        work.settle(outcome).await?;
        Ok(token)
    }

    async fn tokens(&self) -> Result<Vec<AccessToken>, StoreError> {
        let mut work = self.single().await?;
        let outcome = all(work.connection()).await;
        work.settle(outcome).await
    }

    async fn token(&self, id: &TokenId) -> Result<Option<AccessToken>, StoreError> {
        let mut work = self.single().await?;
        let query = engine::query(sql::TOKEN).bind(id.as_str());
        let outcome = query.fetch_optional(work.connection()).await;
        let outcome = outcome
            .map_err(Failure::from)
            .and_then(|row| maybe(row.as_ref()));
        let found = work.settle(outcome).await?;
        Ok(found.filter(|token| token.revoked_at.is_none()))
    }

    async fn token_by_hash(&self, hash: &SecretHash) -> Result<Option<AccessToken>, StoreError> {
        let mut work = self.single().await?;
        let query = engine::query(sql::TOKEN_BY_HASH).bind(hash.0.as_str());
        let outcome = query.fetch_optional(work.connection()).await;
        let outcome = outcome
            .map_err(Failure::from)
            .and_then(|row| maybe(row.as_ref()));
        work.settle(outcome).await
    }

    async fn revoke_token(&self, id: &TokenId) -> Result<AccessToken, StoreError> {
        let mut work = self.change().await?;
        let outcome = revoke(work.connection(), id, now()).await;
        work.settle(outcome).await
    }

    async fn touch_token(&self, id: &TokenId) -> Result<(), StoreError> {
        let at = now();
        let before = at.checked_sub(TOUCH_EVERY).unwrap_or(at);
        let mut work = self.single().await?;
        let query = engine::query(sql::TOUCH_TOKEN)
            .bind(id.as_str())
            .bind(at.as_microsecond())
            .bind(before.as_microsecond());
        let outcome = query.execute(work.connection()).await;
        work.settle(outcome.map(|_| ()).map_err(Failure::from))
            .await
    }

    async fn create_browser_session(&self, new: NewBrowserSession) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = sign_in(work.connection(), &new, now()).await;
        work.settle(outcome).await
    }

    async fn browser_token(&self, hash: &SecretHash) -> Result<Option<AccessToken>, StoreError> {
        let mut work = self.single().await?;
        let query = engine::query(sql::BROWSER_TOKEN)
            .bind(hash.0.as_str())
            .bind(now().as_microsecond());
        let outcome = query.fetch_optional(work.connection()).await;
        let outcome = outcome
            .map_err(Failure::from)
            .and_then(|row| maybe(row.as_ref()));
        work.settle(outcome).await
    }

    async fn end_browser_session(&self, hash: &SecretHash) -> Result<(), StoreError> {
        let mut work = self.single().await?;
        let query = engine::query(sql::DELETE_BROWSER_SESSION).bind(hash.0.as_str());
        let outcome = query.execute(work.connection()).await;
        work.settle(outcome.map(|_| ()).map_err(Failure::from))
            .await
    }
}

async fn insert(
    connection: &mut Connection,
    token: &AccessToken,
    hash: &SecretHash,
) -> Result<(), Failure> {
    engine::query(sql::INSERT_TOKEN)
        .bind(token.id.as_str())
        .bind(token.name.as_str())
        .bind(token.role.as_str())
        .bind(hash.0.as_str())
        .bind(token.created_at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

async fn all(connection: &mut Connection) -> Result<Vec<AccessToken>, Failure> {
    let rows = engine::query(sql::TOKENS).fetch_all(connection).await?;
    let tokens: Result<Vec<AccessToken>, StoreError> = rows.iter().map(token_of).collect();
    Ok(tokens?)
}

/// Both happen or neither: no browser goes on with a token that is revoked.
async fn revoke(
    connection: &mut Connection,
    id: &TokenId,
    at: Timestamp,
) -> Result<AccessToken, Failure> {
    engine::query(sql::REVOKE_TOKEN)
        .bind(id.as_str())
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    engine::query(sql::DELETE_SESSIONS_OF_TOKEN)
        .bind(id.as_str())
        .execute(&mut *connection)
        .await?;
    let row = engine::query(sql::TOKEN)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or_else(|| StoreError::NoSuchToken(id.clone()))?;
    Ok(token_of(&row)?)
}

async fn sign_in(
    connection: &mut Connection,
    new: &NewBrowserSession,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::DELETE_EXPIRED_SESSIONS)
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    engine::query(sql::INSERT_BROWSER_SESSION)
        .bind(new.hash.0.as_str())
        .bind(new.token_id.as_str())
        .bind(at.as_microsecond())
        .bind(new.expires_at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

fn maybe(row: Option<&Row>) -> Result<Option<AccessToken>, Failure> {
    let token = row.map(token_of).transpose();
    Ok(token?)
}

fn token_of(row: &Row) -> Result<AccessToken, StoreError> {
    read(row).map_err(|message| StoreError::Database(format!("a damaged token: {message}")))
}

fn read(row: &Row) -> Result<AccessToken, String> {
    let moment = |column: &str| -> Result<Option<Timestamp>, String> {
        let at: Option<i64> = field(row, column)?;
        at.map(Timestamp::from_microsecond)
            .transpose()
            .map_err(message_of)
    };
    Ok(AccessToken {
        id: field::<&str>(row, "id")?.parse()?,
        name: field(row, "name")?,
        role: field::<&str>(row, "role")?.parse::<AccessRole>()?,
        created_at: time(row, "created_at")?,
        last_used_at: moment("last_used_at")?,
        revoked_at: moment("revoked_at")?,
    })
}
