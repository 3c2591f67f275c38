//! OpenID Connect: discovery, and the exchange of a code for an ID token.
//!
//! Of a provider nothing is configured but its issuer and our account there. Addresses and keys
//! come from its description, which is believed only if it names the same issuer and no address
//! without TLS. Both are kept for an hour; after a failure they are not asked for again at once, so
//! that a provider that is down is not asked by every browser that comes.

use std::{sync::Arc, time::Duration};

use codespar_runtime::SignedIn;
use jiff::Timestamp;
use reqwest::Client;
use secrecy::ExposeSecret;
use serde::Deserialize;
use url::{Url, form_urlencoded};

use super::{
    Attempt, ClientAccount, SignInFailure, SignInSetupError,
    id_token::{self, Claims, EmailClaims, Expected, TokenProblem},
    keys::{Kept, KeySet},
    wire,
};

const DESCRIPTION_LASTS: Duration = Duration::from_secs(3600);
const KEYS_PAUSE: Duration = Duration::from_secs(60);

/// A provider that describes itself.
pub(super) struct OidcSignIn {
    issuer: String,
    account: ClientAccount,
    http: Client,
    description: Kept<Description>,
    keys: Kept<KeySet>,
}

/// `/.well-known/openid-configuration`.
#[derive(Debug, Deserialize)]
struct Description {
    issuer: String,
    authorization_endpoint: Endpoint,
    token_endpoint: Endpoint,
    jwks_uri: Endpoint,
    userinfo_endpoint: Option<Endpoint>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The provider says who it is when it sends a browser back (RFC 9207).
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// An address in a description.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
struct Endpoint(Url);

impl TryFrom<String> for Endpoint {
    type Error = url::ParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Url::parse(&text).map(Self)
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: Option<String>,
    access_token: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    #[serde(flatten)]
    email: EmailClaims,
}

impl OidcSignIn {
    pub(super) fn new(
        issuer: String,
        account: ClientAccount,
        proxy: Option<&Url>,
    ) -> Result<Self, SignInSetupError> {
        let address = Url::parse(&issuer);
        let address = address.map_err(|_| SignInSetupError::Address(issuer.clone()))?;
        Ok(Self {
            http: wire::client(&address, proxy)?,
            issuer,
            account,
            description: Kept::new(DESCRIPTION_LASTS, KEYS_PAUSE),
            keys: Kept::new(DESCRIPTION_LASTS, KEYS_PAUSE),
        })
    }

    async fn description(&self) -> Result<Arc<Description>, SignInFailure> {
        self.description.get(self.described()).await
    }

    /// Another issuer in the description is another provider, however it came there.
    async fn described(&self) -> Result<Description, SignInFailure> {
        let base = self.issuer.trim_end_matches('/');
        let request = self
            .http
            .get(format!("{base}/.well-known/openid-configuration"));
        let (status, found) = wire::json::<Description>("the description", request).await?;
        let endpoints = [
            Some(&found.authorization_endpoint),
            Some(&found.token_endpoint),
            Some(&found.jwks_uri),
            found.userinfo_endpoint.as_ref(),
        ];
        let is_confidential = endpoints
            .into_iter()
            .flatten()
            .all(|one| wire::is_confidential(&one.0));
        if !status.is_success() {
            let reason = format!("the description has status {status}");
            return Err(SignInFailure::Unreachable(reason));
        }
        if found.issuer != self.issuer {
            let reason = "the description is of another issuer".to_owned();
            return Err(SignInFailure::Unbelieved(reason));
        }
        if !is_confidential {
            let reason = "the description has an address without TLS".to_owned();
            return Err(SignInFailure::Unbelieved(reason));
        }
        Ok(found)
    }

    pub(super) async fn page(&self, attempt: &Attempt) -> Result<Url, SignInFailure> {
        let description = self.description().await?;
        let mut page = description.authorization_endpoint.0.clone();
        attempt.ask(&mut page, &self.account);
        page.query_pairs_mut()
            .append_pair("scope", "openid email")
            .append_pair("nonce", &attempt.nonce);
        Ok(page)
    }

    pub(super) async fn who(
        &self,
        attempt: &Attempt,
        code: &str,
        issuer: Option<&str>,
    ) -> Result<SignedIn, SignInFailure> {
        let unbelieved = |reason: &str| SignInFailure::Unbelieved(reason.to_owned());
        let description = self.description().await?;
        let must_say = description.authorization_response_iss_parameter_supported;
        match issuer {
            Some(issuer) if issuer != self.issuer => {
                return Err(unbelieved("the answer is of another issuer"));
            }
            None if must_say => return Err(unbelieved("the answer does not name its issuer")),
            _ => {}
        }
        let answer = self.exchanged(&description, attempt, code).await?;
        let Some(token) = answer.id_token.filter(|_| answer.error.is_none()) else {
            let error = answer.error.unwrap_or_default();
            let error = codespar_runtime::printable(&error).to_string();
            return Err(SignInFailure::Unbelieved(format!(
                "there is no ID token for the code: {error}"
            )));
        };
        let claims = self.believed(&description, &token, attempt).await?;
        let mut email = claims.email.clone();
        // Some providers tell the address only when they are asked for it.
        if email.email.is_none()
            && let Some(endpoint) = &description.userinfo_endpoint
        {
            email = self
                .asked(&endpoint.0, &claims, answer.access_token)
                .await?;
        }
        SignedIn::by_oidc(&claims.sub, email.verified())
            .ok_or_else(|| unbelieved("the subject is none"))
    }

    /// The secret goes in the way that the provider prefers: in the header, unless it takes only
    /// the body.
    async fn exchanged(
        &self,
        description: &Description,
        attempt: &Attempt,
        code: &str,
    ) -> Result<TokenAnswer, SignInFailure> {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.account.redirect.as_str()),
            ("code_verifier", attempt.verifier.as_str()),
        ];
        let methods = description.token_endpoint_auth_methods_supported.as_ref();
        let is_basic = methods
            .is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
        let mut request = self.http.post(description.token_endpoint.0.clone());
        match &self.account.secret {
            Some(secret) if is_basic => {
                let encoded = |text: &str| -> String {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let secret = encoded(secret.expose_secret());
                request = request.basic_auth(encoded(&self.account.id), Some(secret));
            }
            Some(secret) => {
                fields.push(("client_id", &self.account.id));
                fields.push(("client_secret", secret.expose_secret()));
            }
            None => fields.push(("client_id", &self.account.id)),
        }
        let request = wire::form(request, &fields);
        let (_, answer) = wire::json("the token", request).await?;
        Ok(answer)
    }

    /// The claims of a token; the keys are fetched again where none of them can be meant.
    async fn believed(
        &self,
        description: &Description,
        token: &str,
        attempt: &Attempt,
    ) -> Result<Claims, SignInFailure> {
        let expected = Expected {
            issuer: &self.issuer,
            client: &self.account.id,
            nonce: &attempt.nonce,
            now: Timestamp::now().as_second(),
        };
        let verify = |keys: &KeySet| id_token::verify(token, keys, &expected);
        let keys = self.keys.get(self.fetched_keys(description)).await?;
        let verified = match verify(&keys) {
            Err(TokenProblem::UnknownKey) => {
                match self.keys.renew(self.fetched_keys(description)).await? {
                    Some(keys) => verify(&keys),
                    None => Err(TokenProblem::UnknownKey),
                }
            }
            other => other,
        };
        verified.map_err(|problem| SignInFailure::Unbelieved(problem.to_string()))
    }

    async fn fetched_keys(&self, description: &Description) -> Result<KeySet, SignInFailure> {
        let request = self.http.get(description.jwks_uri.0.clone());
        let (_, keys) = wire::json("the keys", request).await?;
        Ok(keys)
    }

    /// What is said of another subject counts for nothing.
    async fn asked(
        &self,
        endpoint: &Url,
        claims: &Claims,
        token: Option<String>,
    ) -> Result<EmailClaims, SignInFailure> {
        let Some(token) = token else {
            return Ok(EmailClaims::default());
        };
        let request = self.http.get(endpoint.clone());
        let request = request.bearer_auth(token);
        let (_, info) = wire::json::<UserInfo>("the user information", request).await?;
        match info.sub == claims.sub {
            true => Ok(info.email),
            false => Err(SignInFailure::Unbelieved(
                "the user information is of somebody else".to_owned(),
            )),
        }
    }
}
