//! Getting a page: redirects, size, type.
//!
//! Redirects are followed here and not by the HTTP client, because each hop is checked and one to
//! another host, or from `https` to `http`, is handed back. Only types that are text are read, at
//! most 5 MiB of them after decompression; what is longer is cut and marked as such. An answer with
//! an error status is an error, with the beginning of its text.

use std::{sync::OnceLock, time::Duration};

use reqwest::{
    Client, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, LOCATION},
    redirect,
};
use url::Url;

use super::{
    address::{Gate, Refusal},
    html,
};

/// Counted as the body comes in, whatever length it claims to have.
const MOST_BYTES: usize = 5 << 20;
/// Redirects on one host.
const MOST_HOPS: usize = 5;
/// For the connection alone; the whole call has a limit of its own.
const CONNECT: Duration = Duration::from_secs(10);

/// What of a page that says "no" is shown. It often says why.
const ERROR_CHARS: usize = 2_000;

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// It was longer than we take.
    pub(super) cut: bool,
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Fetched {
    Page(Page),
    /// It is at another host, about which nobody has been asked yet.
    Elsewhere(Url),
}

/// Each is shown to the model as it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{url} could not be fetched: {reason}")]
    Transport { url: Url, reason: String },
    #[error("{url} answered {status}\n{text}")]
    Status {
        url: Url,
        status: StatusCode,
        text: String,
    },
    #[error("{url} is {kind} ({size}); only text, HTML, JSON and XML are fetched")]
    Kind {
        url: Url,
        kind: String,
        size: String,
    },
    #[error("{url} redirected more than {MOST_HOPS} times")]
    Hops { url: Url },
    #[error("{url} redirects to nowhere")]
    BadRedirect { url: Url },
}

/// Asks for pages; the client is made at the first one. Most sessions never fetch anything.
#[derive(Default)]
pub(super) struct Fetcher {
    gate: Gate,
    client: OnceLock<Result<Client, String>>,
}

impl Fetcher {
    pub(super) fn new(gate: Gate) -> Self {
        Self {
            gate,
            client: OnceLock::new(),
        }
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Asks for the address and follows redirects on the same host. Without a time limit: the
    /// caller sets one. Dropping the future closes the connection.
    pub(super) async fn fetch(&self, start: &Url) -> Result<Fetched, FetchError> {
        let mut url = start.clone();
        for _ in 0..=MOST_HOPS {
            let response = self.ask(&url).await?;
            if !response.status().is_redirection() {
                return read(response, url).await.map(Fetched::Page);
            }
            let Some(next) = destination(&response, &url) else {
                return Err(FetchError::BadRedirect { url });
            };
            self.gate.check(&next)?;
            let downgraded = url.scheme() == "https" && next.scheme() == "http";
            if next.host() != url.host() || downgraded {
                return Ok(Fetched::Elsewhere(next));
            }
            url = next;
        }
        Err(FetchError::Hops { url: start.clone() })
    }

    /// One request. The check of the connection comes after the request was sent, so it does not
    /// keep the request from arriving; it keeps the answer from the model. Name resolution has
    /// refused private addresses before.
    async fn ask(&self, url: &Url) -> Result<Response, FetchError> {
        self.gate.check(url)?;
        let client = self.client.get_or_init(|| client(&self.gate));
        let client = client.as_ref().map_err(|reason| FetchError::Transport {
            url: url.clone(),
            reason: reason.clone(),
        })?;
        let kinds = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";
        let sent = client.get(url.clone()).header(ACCEPT, kinds).send().await;
        let response = sent.map_err(|error| transport(url, &error))?;
        // Once more on the connection as it is: the names' answers are checked without a port.
        if let Some(address) = response.remote_addr() {
            self.gate.check_connection(url, address)?;
        }
        Ok(response)
    }
}

/// Without redirects, proxies and cookies, and with the gate as its only resolver.
pub(super) fn client(gate: &Gate) -> Result<Client, String> {
    // Fails when one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT)
        .dns_resolver(std::sync::Arc::new(gate.clone()))
        .build()
        .map_err(|error| chain(&error))
}

/// Relative destinations are resolved against the address that answered. `None` without a usable
/// `Location`.
fn destination(response: &Response, url: &Url) -> Option<Url> {
    let location = response.headers().get(LOCATION)?;
    url.join(&String::from_utf8_lossy(location.as_bytes())).ok()
}

/// The type is checked before the body is read, so that a large download is not begun. Where no
/// type is given, a zero byte tells that it is not text.
async fn read(mut response: Response, url: Url) -> Result<Page, FetchError> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase());
    let form = Form::of(kind.as_deref());
    let size = response.content_length();
    if status.is_success() && form == Form::Other {
        return Err(other_kind(url, kind.as_deref(), size));
    }
    let mut bytes = Vec::new();
    let mut cut = false;
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| transport(&url, &error))?
    {
        let room = MOST_BYTES - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            cut = true;
            break;
        }
    }
    if kind.is_none() && bytes.contains(&0) {
        return Err(other_kind(url, None, Some(bytes.len() as u64)));
    }
    let text = into_text(bytes, form, kind).await;
    if !status.is_success() {
        let text = crate::bound::first(&text, ERROR_CHARS).to_owned();
        return Err(FetchError::Status { url, status, text });
    }
    Ok(Page { text, cut })
}

fn other_kind(url: Url, kind: Option<&str>, size: Option<u64>) -> FetchError {
    FetchError::Kind {
        url,
        kind: kind.unwrap_or("binary").to_owned(),
        size: size.map_or_else(
            || "of unknown size".to_owned(),
            |size| format!("{size} bytes"),
        ),
    }
}

/// Decoding and converting megabytes is work for the blocking pool.
async fn into_text(bytes: Vec<u8>, form: Form, kind: Option<String>) -> String {
    let work = tokio::task::spawn_blocking(move || {
        let text = decode(bytes, kind.as_deref().unwrap_or_default());
        match form {
            Form::Html => html::to_markdown(&text),
            Form::Text => text,
            Form::Other => String::new(),
        }
    });
    work.await.unwrap_or_default()
}

/// UTF-8, or the one other encoding that is still met. Every byte is a character in Latin-1, so
/// that cannot fail; `windows-1252` is read as the same, which garbles its typographic characters
/// only. Bytes that are not UTF-8 are replaced.
fn decode(bytes: Vec<u8>, kind: &str) -> String {
    let latin = ["iso-8859-1", "latin1", "windows-1252"];
    if kind.split_once("charset=").is_some_and(|(_, charset)| {
        latin
            .iter()
            .any(|name| charset.trim_matches('"').starts_with(name))
    }) {
        return bytes.into_iter().map(char::from).collect();
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// How the body is turned into text, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Text,
    Other,
}

impl Form {
    fn of(kind: Option<&str>) -> Self {
        let Some(kind) = kind else {
            return Self::Text;
        };
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let application = kind.strip_prefix("application/").unwrap_or_default();
        match kind {
            "text/html" | "application/xhtml+xml" => Self::Html,
            _ if kind.starts_with("text/") => Self::Text,
            _ if kind.ends_with("+json") || kind.ends_with("+xml") => Self::Text,
            _ => match application {
                "json" | "xml" | "javascript" | "yaml" | "x-yaml" | "toml" | "x-ndjson"
                | "x-sh" => Self::Text,
                _ => Self::Other,
            },
        }
    }
}

fn transport(url: &Url, error: &reqwest::Error) -> FetchError {
    FetchError::Transport {
        url: url.clone(),
        reason: chain(error),
    }
}

/// The reason lies at the end of the chain: a refused address, an unknown name.
fn chain(error: &dyn std::error::Error) -> String {
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
