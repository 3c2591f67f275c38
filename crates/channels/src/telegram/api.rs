//! Calls of the Bot API, and what Telegram says if they fail.
//!
//! The token is a part of every address, so no address is in an error or a log: what goes wrong is told
//! by the name of the method and Telegram's own words. A limit says how long to wait in the body of the
//! answer, not in a header.

use std::time::Duration;

use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use url::Url;

use super::TelegramSetup;
use crate::{
    ClientError, SendError,
    client::{CallError, USUAL_WAIT, client, read_at_most},
};

/// The Bot API of one bot.
pub struct TelegramApi {
    http: reqwest::Client,
    api: Url,
    token: SecretString,
    /// Asked for once: the name is needed to tell a mention.
    account: OnceCell<BotAccount>,
}

/// Who we are there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct BotAccount {
    pub(super) id: i64,
    pub(super) username: String,
    #[serde(default)]
    pub(super) can_join_groups: bool,
}

#[derive(Deserialize)]
struct Answer<T> {
    result: Option<T>,
    #[serde(default)]
    error_code: i64,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
}

#[derive(Deserialize)]
struct FoundFile {
    #[serde(default)]
    file_path: Option<String>,
    #[serde(default)]
    file_size: Option<u64>,
}

impl TelegramApi {
    pub fn new(setup: &TelegramSetup) -> Result<Self, ClientError> {
        Ok(Self {
            http: client("Telegram", &setup.api, setup.proxy.as_ref())?,
            api: setup.api.clone(),
            token: setup.bot_token.clone(),
            account: OnceCell::new(),
        })
    }

    /// Our account, asked for until Telegram has told it.
    pub(super) async fn account(&self) -> Result<&BotAccount, CallError> {
        let asked = || async { self.call("getMe", &json!({})).await };
        self.account.get_or_try_init(asked).await
    }

    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
    ) -> Result<T, CallError> {
        self.call_within(method, body, None).await
    }

    /// A call that may take longer than usual: Telegram holds it until there is something to say.
    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
        limit: Option<Duration>,
    ) -> Result<T, CallError> {
        let url = self.url(&format!("bot{}/{method}", self.token.expose_secret()))?;
        let mut request = self
            .http
            .post(url)
            .header("content-type", "application/json")
            .body(body.to_string());
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        let response = request.send().await.map_err(CallError::connection)?;
        let status = response.status();
        let text = response.text().await.map_err(CallError::connection)?;
        read(status, &text)
    }

    fn url(&self, path: &str) -> Result<Url, CallError> {
        // Without the error, which would quote the path.
        let wrong = |_| CallError::Temporary("the address of the API cannot be used".to_owned());
        // A token has a colon: without the dot, what is before it would be read as a scheme.
        self.api.join(&format!("./{path}")).map_err(wrong)
    }

    /// A file that was sent to us, by its id. Only from the server of the API.
    pub(super) async fn file(&self, id: &str, most: usize) -> Result<Vec<u8>, String> {
        let words = |error: CallError| error.to_string();
        let found: FoundFile = self
            .call("getFile", &json!({"file_id": id}))
            .await
            .map_err(words)?;
        if found.file_size.is_some_and(|size| size > most as u64) {
            return Err(format!("it has more than {} MB", most / (1024 * 1024)));
        }
        let path = found
            .file_path
            .ok_or("Telegram does not have it any more")?;
        let prefix = format!("file/bot{}/", self.token.expose_secret());
        let url = self.url(&format!("{prefix}{path}")).map_err(words)?;
        let is_there = url
            .path()
            .starts_with(&format!("{}{prefix}", self.api.path()))
            && url.origin() == self.api.origin();
        if !is_there {
            return Err("Telegram names another place for it".to_owned());
        }
        let response = self.http.get(url).send().await;
        let response = response.map_err(|error| error.without_url().to_string())?;
        match response.status() {
            StatusCode::OK => read_at_most(response, most).await,
            status => Err(format!("Telegram says {status}")),
        }
    }
}

fn read<T: DeserializeOwned>(status: StatusCode, text: &str) -> Result<T, CallError> {
    let Ok(answer) = serde_json::from_str::<Answer<T>>(text) else {
        return Err(CallError::Temporary(format!(
            "Telegram's answer ({status}) cannot be read"
        )));
    };
    if let Some(result) = answer.result {
        return Ok(result);
    }
    if answer.error_code == 429 {
        let wait = answer.parameters.retry_after.map(Duration::from_secs);
        return Err(CallError::Wait(wait.unwrap_or(USUAL_WAIT)));
    }
    let description = format!("Telegram says: {}", answer.description);
    Err(match answer.error_code {
        500.. => CallError::Temporary(description),
        code => CallError::Refused { code, description },
    })
}

/// What a failed call means for a message. Telegram has no codes for its reasons, only texts.
pub(super) fn send_error(error: CallError) -> SendError {
    error.for_message(|_, text| {
        ["message can't be edited", "message to edit not found"]
            .iter()
            .any(|reason| text.contains(reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(body: &str) -> SendError {
        match read::<Value>(StatusCode::BAD_REQUEST, body) {
            Err(error) => send_error(error),
            Ok(result) => panic!("{result}"),
        }
    }

    #[test]
    fn what_telegram_says_decides_whether_it_is_tried_again() {
        let limited = r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 7","parameters":{"retry_after":7}}"#;
        assert_eq!(sent(limited), SendError::RetryAfter(Duration::from_secs(7)));
        let old =
            r#"{"ok":false,"error_code":400,"description":"Bad Request: message can't be edited"}"#;
        assert_eq!(sent(old), SendError::CannotEdit);
        let gone = r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}"#;
        assert!(matches!(sent(gone), SendError::Permanent(_)));
        let down = r#"{"ok":false,"error_code":502,"description":"Bad Gateway"}"#;
        assert!(matches!(sent(down), SendError::Temporary(_)));
        assert!(matches!(sent("<html>"), SendError::Temporary(_)));
    }
}
