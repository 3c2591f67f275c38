//! The one HTTP client: how it connects, what it trusts and how long it waits.

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use codespar_protocol::error_chain as chain;
use parking_lot::Mutex;
use url::Url;

use crate::{BaseUrl, SetupError};

/// How to connect.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// For the connection alone.
    pub connect_timeout: Duration,
    /// An answer that sends nothing for this long is broken. It also bounds the wait for the
    /// first byte, so a slow local server may need more.
    pub silence_timeout: Duration,
    /// An answer that sends no content for this long is broken too, even when the server keeps
    /// the connection alive. Models that think without showing it may take minutes.
    pub stall_timeout: Duration,
    /// A proxy for every request; without it connections are direct.
    pub proxy: Option<BaseUrl>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            silence_timeout: Duration::from_secs(120),
            stall_timeout: Duration::from_secs(600),
            proxy: None,
        }
    }
}

/// Pools of connections, cheap to clone. Build one per process.
///
/// There is one pool for plain HTTP and one for HTTPS, each set up when a provider first needs
/// it: loading the system's root certificates is the slowest part of a start, and a local server
/// does without.
#[derive(Clone)]
pub struct HttpClient(Arc<Pools>);

struct Pools {
    options: HttpOptions,
    plain: Mutex<Option<reqwest::Client>>,
    secure: Mutex<Option<reqwest::Client>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpClient").field(&self.0.options).finish()
    }
}

impl HttpClient {
    /// Sets nothing up yet.
    pub fn new(options: HttpOptions) -> Self {
        Self(Arc::new(Pools {
            options,
            plain: Mutex::default(),
            secure: Mutex::default(),
        }))
    }

    pub(crate) fn silence(&self) -> Duration {
        self.0.options.silence_timeout
    }

    pub(crate) fn stall(&self) -> Duration {
        self.0.options.stall_timeout
    }

    /// The client for requests to this address. Built on first use and then shared. The lock is
    /// held while it is built, so that two callers do not build two.
    pub(crate) fn client_for(&self, url: &Url) -> Result<reqwest::Client, SetupError> {
        let options = &self.0.options;
        let proxy = options.proxy.as_ref().map(BaseUrl::url);
        let secure = url.scheme() == "https" || proxy.is_some_and(|url| url.scheme() == "https");
        let (pool, build): (_, fn(&HttpOptions) -> _) = if secure {
            (&self.0.secure, secure_client)
        } else {
            (&self.0.plain, plain_client)
        };
        let mut pool = pool.lock();
        if let Some(client) = &*pool {
            return Ok(client.clone());
        }
        let client = build(options)?;
        *pool = Some(client.clone());
        Ok(client)
    }
}

/// Trusts what the system trusts, corporate certificates included.
fn secure_client(options: &HttpOptions) -> Result<reqwest::Client, SetupError> {
    builder(options)?.build().map_err(|error| SetupError::Client {
        message: format!(
            "{}; install the system's root certificates (the ca-certificates package), or point \
             SSL_CERT_FILE at a file of them",
            chain(&error.without_url())
        ),
    })
}

fn plain_client(options: &HttpOptions) -> Result<reqwest::Client, SetupError> {
    let client = builder(options)?.tls_certs_only([]).build();
    client.map_err(|error| SetupError::Client {
        message: chain(&error.without_url()),
    })
}

fn builder(options: &HttpOptions) -> Result<reqwest::ClientBuilder, SetupError> {
    // An error only says that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .connect_timeout(options.connect_timeout)
        .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the key to wherever it points.
        .redirect(reqwest::redirect::Policy::none())
        // Compressed event streams arrive in lumps.
        .no_gzip()
        .no_proxy();
    let Some(proxy) = &options.proxy else {
        return Ok(builder);
    };
    let proxy = reqwest::Proxy::all(proxy.url().clone()).map_err(|error| SetupError::Client {
        message: format!("proxy: {}", chain(&error.without_url())),
    })?;
    Ok(builder.proxy(proxy))
}
