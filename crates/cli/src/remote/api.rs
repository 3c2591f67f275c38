//! Requests to a server, and what its errors mean for the user.
//!
//! A refusal names what the user can do: sign in again, ask for a role, or use a newer version. The
//! token is never a part of an error.

use std::time::Duration;

use codespar_protocol::{TaskId, TaskStatus};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use url::Url;

use super::ServerAddress;
use crate::error::CommandError;

/// For the connection, and for each request and its answer; a stream of events has no limit of this
/// kind.
const TIMEOUT: Duration = Duration::from_secs(30);
/// An answer is read into memory.
const MOST_BYTES: usize = 16 << 20;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// It may work later.
    #[error("{server} cannot be reached: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("{server} does not accept the token; an admin makes one with: codespar token create")]
    Unauthorized { server: String },
    /// Nothing that this version could talk to.
    #[error("{server} does not answer as a CodeSpar server of this version (API v1): {reason}")]
    NotOurs { server: String, reason: String },
    /// The server understood and refused.
    #[error("{server} refuses: {message}")]
    Refused {
        server: String,
        status: u16,
        message: String,
    },
}

impl From<RemoteError> for CommandError {
    fn from(error: RemoteError) -> Self {
        match error {
            // The caller can mend these.
            RemoteError::Unauthorized { .. } => Self::Usage(error.to_string()),
            RemoteError::Refused { status: 422, .. } => Self::Usage(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A task, as far as it matters here. Fields that are not known are ignored.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RemoteTask {
    pub(crate) task_id: TaskId,
    pub(crate) status: TaskStatus,
    pub(crate) error: Option<String>,
    pub(crate) cost_usd: Option<f64>,
}

/// A project of the server.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RemoteProject {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) repository: Option<String>,
}

#[derive(Deserialize)]
struct Me {
    role: String,
    version: Option<String>,
}

#[derive(Deserialize)]
struct Projects {
    projects: Vec<RemoteProject>,
}

#[derive(Deserialize)]
struct Steps {
    steps: Vec<RemoteStep>,
}

/// What a step of a run gave.
#[derive(Deserialize)]
pub(crate) struct RemoteStep {
    pub(crate) name: String,
    pub(crate) result: Value,
}

/// A server and the token that is shown to it. Redirections are not followed: the token goes
/// nowhere else.
#[derive(Clone)]
pub(crate) struct RemoteServer {
    pub(crate) address: ServerAddress,
    client: Client,
    token: SecretString,
}

impl RemoteServer {
    /// Only the proxy that is handed in is used, none from the environment. Plain `http` is for
    /// this machine, so no certificates are loaded for it.
    pub(crate) fn new(
        address: ServerAddress,
        token: SecretString,
        proxy: Option<&Url>,
    ) -> Result<Self, CommandError> {
        // An error only says that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |error: reqwest::Error| CommandError::Failed(error.without_url().to_string());
        let mut builder = Client::builder()
            .connect_timeout(TIMEOUT)
            .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if let Some(proxy) = proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(failed)?);
        }
        if address.url().scheme() != "https" {
            builder = builder.tls_certs_only([]);
        }
        Ok(Self {
            client: builder.build().map_err(failed)?,
            address,
            token,
        })
    }

    /// Checks the address and the token; gives the version of the server where it is another.
    pub(crate) async fn greet(&self) -> Result<Option<String>, RemoteError> {
        let me: Me = match self.get("/api/v1/me").await {
            // There is a server, and it has no such path.
            Err(RemoteError::Refused {
                server,
                status: status @ (404 | 405),
                ..
            }) => {
                let reason = format!("it answers {status} at /api/v1/me");
                return Err(RemoteError::NotOurs { server, reason });
            }
            other => other?,
        };
        tracing::debug!("{} gives us the role {}", self.address, me.role);
        Ok(me
            .version
            .filter(|version| version != env!("CARGO_PKG_VERSION")))
    }

    pub(crate) async fn projects(&self) -> Result<Vec<RemoteProject>, RemoteError> {
        let listed: Projects = self.get("/api/v1/projects").await?;
        Ok(listed.projects)
    }

    pub(crate) async fn task(&self, id: &TaskId) -> Result<RemoteTask, RemoteError> {
        self.get(&format!("/api/v1/tasks/{id}")).await
    }

    pub(crate) async fn steps(&self, id: &TaskId) -> Result<Vec<RemoteStep>, RemoteError> {
        let steps: Steps = self.get(&format!("/api/v1/tasks/{id}/steps")).await?;
        Ok(steps.steps)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RemoteError> {
        let request = self.client.get(self.address.join(path));
        self.send(request.timeout(TIMEOUT)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, RemoteError> {
        let request = self
            .client
            .post(self.address.join(path))
            .header("content-type", "application/json")
            .body(body.to_string());
        self.send(request.timeout(TIMEOUT)).await
    }

    /// Opens a stream, which has no end of its own.
    pub(super) async fn open(
        &self,
        path: &str,
        last_event: Option<u64>,
    ) -> Result<Response, RemoteError> {
        let mut request = self
            .client
            .get(self.address.join(path))
            .header("accept", "text/event-stream");
        if let Some(id) = last_event {
            request = request.header("last-event-id", id);
        }
        self.answered(request).await
    }

    /// What is wrong with the connection.
    pub(super) fn unreachable(&self, error: reqwest::Error) -> RemoteError {
        let error = error.without_url();
        let mut reason = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            reason = format!("{reason}: {cause}");
            source = cause.source();
        }
        RemoteError::Unreachable {
            server: self.address.to_string(),
            reason,
        }
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, RemoteError> {
        let response = self.answered(request).await?;
        let body = self.bytes_of(response).await?;
        serde_json::from_slice(&body).map_err(|error| RemoteError::NotOurs {
            server: self.address.to_string(),
            reason: format!("its answer cannot be read: {error}"),
        })
    }

    /// The answer, if it is no error. Overload and gateways that fail count as unreachable: they
    /// pass.
    async fn answered(&self, request: RequestBuilder) -> Result<Response, RemoteError> {
        let request = request.bearer_auth(self.token.expose_secret());
        let response = request.send().await;
        let response = response.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let server = self.address.to_string();
        if status == StatusCode::UNAUTHORIZED {
            return Err(RemoteError::Unauthorized { server });
        }
        if status.is_redirection() {
            let reason = format!("it answers {status}, and redirections are not followed");
            return Err(RemoteError::NotOurs { server, reason });
        }
        let body = self.bytes_of(response).await.unwrap_or_default();
        let message = message_of(&body).unwrap_or_else(|| status.to_string());
        match status.as_u16() {
            429 | 502..=504 => Err(RemoteError::Unreachable {
                server,
                reason: message,
            }),
            status => Err(RemoteError::Refused {
                server,
                status,
                message,
            }),
        }
    }

    async fn bytes_of(&self, mut response: Response) -> Result<Vec<u8>, RemoteError> {
        let mut bytes = Vec::new();
        loop {
            let chunk = response.chunk().await;
            let Some(chunk) = chunk.map_err(|error| self.unreachable(error))? else {
                return Ok(bytes);
            };
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST_BYTES {
                return Err(RemoteError::NotOurs {
                    server: self.address.to_string(),
                    reason: "its answer is too large".to_owned(),
                });
            }
        }
    }
}

/// The words of an error, with its reasons. In the form of the API's errors. Anything else, such as
/// a page of a proxy, is not shown.
fn message_of(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let error = &value["error"];
    let mut message = error["message"].as_str()?.to_owned();
    for reason in error["reasons"].as_array().into_iter().flatten() {
        message.push_str("\n  ");
        message.push_str(reason.as_str().unwrap_or_default());
    }
    Some(message)
}
