//! The token of a request: the stored one while it is fresh, a refreshed one after that.
//!
//! Discovery is made anew for a refresh. A refresh token goes to the endpoint that issued it: if the
//! server names another one by now, the user has to log in again.

use std::sync::Arc;

use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use tokio::sync::Mutex;
use url::Url;

use super::{ServerTokens, login::endpoints, store::KeptTokens, wire::LoginHttp};
use crate::connection::McpSetup;

/// The tokens of one server, for its connection.
pub(crate) struct Bearer {
    resource: Url,
    tokens: ServerTokens,
    setup: Arc<McpSetup>,
    /// One refresh at a time in this process; a file lock keeps the others apart.
    refreshing: Mutex<()>,
}

impl Bearer {
    /// `None` where no tokens are kept at all.
    pub(crate) fn new(resource: &Url, setup: &Arc<McpSetup>) -> Option<Self> {
        let store = setup.tokens.as_ref()?;
        Some(Self {
            resource: resource.clone(),
            tokens: store.of(resource),
            setup: setup.clone(),
            refreshing: Mutex::new(()),
        })
    }

    /// `None` where there is none, or none that can be refreshed: the request goes without.
    pub(crate) async fn token(&self) -> Result<Option<String>, AuthError> {
        match self.tokens.read() {
            None => Ok(None),
            Some(kept) if kept.is_fresh() => Ok(kept.access_token()),
            Some(kept) => self.renewed(kept.access_token().as_deref()).await,
        }
    }

    /// A token in place of one that the server refused, or that is over.
    pub(crate) async fn renewed(&self, refused: Option<&str>) -> Result<Option<String>, AuthError> {
        let _one = self.refreshing.lock().await;
        let Some(kept) = self.tokens.read() else {
            return Ok(None);
        };
        // Another call, or another process, has done it.
        if kept.is_fresh() && kept.access_token().as_deref() != refused {
            return Ok(kept.access_token());
        }
        match self.refresh(&kept).await {
            Ok(()) => {}
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let token = self.tokens.read().and_then(|kept| kept.access_token());
        Ok(token.filter(|token| Some(token.as_str()) != refused))
    }

    async fn refresh(&self, kept: &KeptTokens) -> Result<(), AuthError> {
        let Some(credentials) = &kept.credentials else {
            return Err(AuthError::AuthorizationRequired);
        };
        let wire = LoginHttp::new(&self.resource, self.setup.clone()).await;
        let resource = self.resource.clone();
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(resource, Arc::new(wire)).await?;
        manager.set_credential_store(self.tokens.clone());
        let challenge = kept.challenge.as_deref();
        let found = manager.resolve_metadata_from_challenge(challenge).await?;
        endpoints(&found.metadata, &self.resource)
            .map_err(|error| AuthError::MetadataError(error.to_string()))?;
        let is_same = kept.token_endpoint.as_deref() == Some(&found.metadata.token_endpoint)
            && credentials.issuer == found.metadata.issuer;
        if !is_same {
            return Err(AuthError::AuthorizationRequired);
        }
        manager.set_metadata(found.metadata);
        let mut client =
            OAuthClientConfig::new(credentials.client_id.clone(), self.resource.as_str());
        if let Some(secret) = &kept.client_secret {
            client = client.with_client_secret(secret.clone());
        }
        manager.configure_client(client)?;
        manager.refresh_token().await.map(|_| ())
    }

    /// Keeps what a call was refused for.
    pub(crate) fn want(&self, challenge: &str, scopes: &str) {
        // Without it the next login asks for the scopes that the server names then.
        let _ = self.tokens.want(challenge, scopes);
    }
}
