//! Calls of the Cloud API, and what Meta says if they fail.
//!
//! Media are fetched in two steps, an address by its id and then the bytes, and only from hosts of
//! Meta. Outside the window of 24 hours after a person's last message nothing but templates may be
//! sent, so such a message is given up with that reason.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::WhatsAppSetup;
use crate::{
    ClientError, SendError,
    client::{CallError, client, read_at_most, retry_after},
};

/// Where Meta keeps what people send.
const MEDIA_HOST: &str = "lookaside.fbsbx.com";
/// More than 24 hours since the person wrote.
const WINDOW_CLOSED: i64 = 131_047;
/// Too much for the number, for the pair of numbers, for the account.
const LIMITS: [i64; 4] = [130_429, 131_048, 131_056, 80_007];
/// A pair of numbers may take one message in six seconds.
const LIMIT_WAIT: Duration = Duration::from_secs(6);
/// Their fault: something went wrong, the service is down or overloaded.
const THEIR_FAULTS: [i64; 5] = [1, 2, 131_000, 131_016, 131_057];

/// The Cloud API with one number.
pub struct WhatsAppApi {
    http: reqwest::Client,
    api: Url,
    token: SecretString,
    pub(super) phone_number_id: String,
}

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    error: RefusalReason,
}

#[derive(Default, Deserialize)]
struct RefusalReason {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct FoundMedia {
    url: String,
    #[serde(default)]
    file_size: Option<u64>,
}

impl WhatsAppApi {
    pub fn new(setup: &WhatsAppSetup) -> Result<Self, ClientError> {
        Ok(Self {
            http: client("WhatsApp", &setup.api, setup.proxy.as_ref())?,
            api: setup.api.clone(),
            token: setup.access_token.clone(),
            phone_number_id: setup.phone_number_id.clone(),
        })
    }

    fn url(&self, path: &str) -> Result<Url, CallError> {
        let wrong = |_| CallError::Temporary("the address of the API cannot be used".to_owned());
        self.api.join(path).map_err(wrong)
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, CallError> {
        self.call(self.http.get(self.url(path)?)).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, CallError> {
        let request = self
            .http
            .post(self.url(path)?)
            .header("content-type", "application/json")
            .body(body.to_string());
        self.call(request).await
    }

    async fn call(&self, request: RequestBuilder) -> Result<Value, CallError> {
        let request = request.bearer_auth(self.token.expose_secret());
        let response = request.send().await.map_err(CallError::connection)?;
        let (status, wait) = (response.status(), retry_after(&response));
        let text = response.text().await.map_err(CallError::connection)?;
        if status.is_success() {
            let read = serde_json::from_str(&text);
            return read
                .map_err(|_| CallError::Temporary("WhatsApp's answer cannot be read".to_owned()));
        }
        let Refusal { error } = serde_json::from_str(&text).unwrap_or_default();
        let description = format!("WhatsApp says: {} ({})", error.message, error.code);
        Err(match error.code {
            code if LIMITS.contains(&code) => CallError::Wait(LIMIT_WAIT),
            _ if status == StatusCode::TOO_MANY_REQUESTS => CallError::Wait(wait),
            code if THEIR_FAULTS.contains(&code) || status.is_server_error() => {
                CallError::Temporary(description)
            }
            WINDOW_CLOSED => CallError::Refused {
                code: WINDOW_CLOSED,
                description: "the person last wrote more than 24 hours ago; WhatsApp lets nothing \
                              but templates through until they write again"
                    .to_owned(),
            },
            code => CallError::Refused { code, description },
        })
    }

    /// A picture by its id: first where it is, then itself. Our token goes to Meta alone.
    pub(super) async fn media(&self, id: &str, most: usize) -> Result<Vec<u8>, String> {
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_id {
            return Err("its id cannot be read".to_owned());
        }
        let found = self.get(id).await.map_err(|error| error.to_string())?;
        let found: FoundMedia =
            serde_json::from_value(found).map_err(|_| "WhatsApp does not have it any more")?;
        if found.file_size.is_some_and(|size| size > most as u64) {
            return Err(format!("it has more than {} MB", most / (1024 * 1024)));
        }
        let url: Url = found
            .url
            .parse()
            .map_err(|_| "its address cannot be read")?;
        let is_metas = url.scheme() == "https" && url.host_str() == Some(MEDIA_HOST);
        // A server of one's own in the place of Meta has the media, too.
        let is_own = self.api.scheme() != "https" && url.origin() == self.api.origin();
        if !is_metas && !is_own {
            return Err("WhatsApp names another place for it".to_owned());
        }
        let request = self.http.get(url).bearer_auth(self.token.expose_secret());
        let response = request.send().await;
        let response = response.map_err(|error| error.without_url().to_string())?;
        match response.status() {
            StatusCode::OK => read_at_most(response, most).await,
            status => Err(format!("WhatsApp says {status}")),
        }
    }
}

/// What a failed call means for a message. Nothing can be edited anyway.
pub(super) fn send_error(error: CallError) -> SendError {
    error.for_message(|_, _| false)
}
