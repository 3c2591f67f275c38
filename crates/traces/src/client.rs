//! The exporter's way to the collector. It exports on a thread of its own that has no runtime, so
//! the client brings one: connections of `reqwest` need it.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use codespar_protocol::error_chain;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

/// More than a collector has to say.
const MOST_ANSWER: usize = 64 << 10;

/// Makes the client that connects to the collector.
pub type Connect = Box<dyn Fn() -> Result<reqwest::Client, String> + Send + Sync>;

pub(crate) struct Client {
    connect: Connect,
    connected: Mutex<Option<Connected>>,
    failure: Failure,
}

/// Why the latest spans were not taken, if they were not. The exporter keeps that to itself.
pub(crate) type Failure = Arc<Mutex<Option<String>>>;

struct Connected {
    client: reqwest::Client,
    runtime: Runtime,
}

impl Client {
    pub(crate) fn new(connect: Connect, failure: Failure) -> Self {
        Self {
            connect,
            failure,
            connected: Mutex::default(),
        }
    }

    fn connected(&self) -> Result<(reqwest::Client, tokio::runtime::Handle), HttpError> {
        let mut connected = self.connected.lock();
        if connected.is_none() {
            *connected = Some(Connected {
                client: (self.connect)()?,
                runtime: Builder::new_multi_thread()
                    .worker_threads(1)
                    .thread_name("traces")
                    .enable_all()
                    .build()?,
            });
        }
        match &*connected {
            Some(connected) => Ok((connected.client.clone(), connected.runtime.handle().clone())),
            None => Err("there is no client".into()),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// A runtime must not be waited for where another one runs.
impl Drop for Client {
    fn drop(&mut self) {
        if let Some(connected) = self.connected.lock().take() {
            connected.runtime.shutdown_background();
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = match self.connected() {
            Ok((client, runtime)) => runtime.spawn(send(client, request)).await?,
            Err(error) => Err(error),
        };
        *self.failure.lock() = match &sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answered with {}", answer.status())),
            Err(error) => Some(error_chain(&**error)),
        };
        sent
    }
}

async fn send(
    client: reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let answer = client.execute(request.try_into()?).await;
    // Its address may hold a password.
    let mut answer = answer.map_err(reqwest::Error::without_url)?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await? {
        if body.len() + part.len() > MOST_ANSWER {
            return Err("the collector's answer is too long".into());
        }
        body.extend_from_slice(&part);
    }
    *response.body_mut() = Bytes::from(body);
    Ok(response)
}
