//! Calls of Discord's REST API, and what it says if they fail.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use parking_lot::Mutex;
use reqwest::{Method, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{DiscordSetup, places::ChannelPlace};
use crate::{
    ClientError, SendError,
    client::{CallError, client, read_at_most, retry_after},
};

/// Where Discord keeps what people attach.
const IMAGE_HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

/// Codes of refusals after which a message cannot be edited.
const UNKNOWN_MESSAGE: i64 = 10_008;
const OF_ANOTHER_USER: i64 = 50_005;
/// Of a message that is more than an hour old.
const TOO_MANY_EDITS: i64 = 30_046;

/// The API of one bot.
pub struct DiscordApi {
    http: reqwest::Client,
    pub(super) api: Url,
    pub(super) proxy: Option<Url>,
    token: SecretString,
    pub(super) session_file: PathBuf,
    /// Channels by their ids: what they are does not change.
    pub(super) places: Mutex<HashMap<String, ChannelPlace>>,
}

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    /// In seconds, with a fraction.
    #[serde(default)]
    retry_after: Option<f64>,
}

impl DiscordApi {
    pub fn new(setup: &DiscordSetup) -> Result<Self, ClientError> {
        Ok(Self {
            http: client("Discord", &setup.api, setup.proxy.as_ref())?,
            api: setup.api.clone(),
            proxy: setup.proxy.clone(),
            token: setup.bot_token.clone(),
            session_file: setup.session_file.clone(),
            places: Mutex::default(),
        })
    }

    pub(super) fn token(&self) -> &str {
        self.token.expose_secret()
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, CallError> {
        self.call(Method::GET, path, None).await
    }

    /// Null where Discord answers nothing.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CallError> {
        let wrong = |_| CallError::Temporary("the address of the API cannot be used".to_owned());
        let url = self.api.join(path).map_err(wrong)?;
        let mut request = self
            .http
            .request(method, url)
            .header("authorization", format!("Bot {}", self.token()));
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request.send().await.map_err(CallError::connection)?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(Value::Null),
            status if status.is_success() => {
                let text = response.text().await.map_err(CallError::connection)?;
                let read = serde_json::from_str(&text);
                read.map_err(|_| CallError::Temporary("Discord's answer cannot be read".to_owned()))
            }
            _ => Err(refused(response).await),
        }
    }

    /// Fetches what somebody attached, without our token: the address has its own signature.
    pub(super) async fn attachment(&self, url: &str, most: usize) -> Result<Vec<u8>, String> {
        let url: Url = url.parse().map_err(|_| "its address cannot be read")?;
        let is_discords = url.scheme() == "https"
            && url
                .host_str()
                .is_some_and(|host| IMAGE_HOSTS.contains(&host));
        // A server of one's own in the place of Discord has the attachments, too.
        let is_own = self.api.scheme() != "https" && url.origin() == self.api.origin();
        if !is_discords && !is_own {
            return Err("it is not kept by Discord".to_owned());
        }
        let response = self.http.get(url).send().await;
        let response = response.map_err(|error| error.without_url().to_string())?;
        match response.status() {
            StatusCode::OK => read_at_most(response, most).await,
            status => Err(format!("Discord says {status}")),
        }
    }
}

/// Limits of a route and of all of them look the same to us: nothing of the kind is sent meanwhile.
async fn refused(response: Response) -> CallError {
    let status = response.status();
    let by_header = retry_after(&response);
    let text = response.text().await.unwrap_or_default();
    let refusal: Refusal = serde_json::from_str(&text).unwrap_or_default();
    let description = format!("Discord says: {} ({status})", refusal.message);
    match status {
        // With the status of a limit, though no wait helps.
        _ if refusal.code == TOO_MANY_EDITS => CallError::Refused {
            code: TOO_MANY_EDITS,
            description,
        },
        StatusCode::TOO_MANY_REQUESTS => {
            let seconds = refusal.retry_after;
            let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            CallError::Wait(wait.unwrap_or(by_header))
        }
        status if status.is_server_error() => CallError::Temporary(description),
        _ => CallError::Refused {
            code: refusal.code,
            description,
        },
    }
}

/// What a failed call means for a message.
pub(super) fn send_error(error: CallError) -> SendError {
    error.for_message(|code, _| [UNKNOWN_MESSAGE, OF_ANOTHER_USER, TOO_MANY_EDITS].contains(&code))
}
