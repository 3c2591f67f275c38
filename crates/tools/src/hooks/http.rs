//! Posts an event to an address.
//!
//! No redirects, no proxies. An address that the user names may be anywhere, which is often this
//! machine; one that a repository names is subject to what commands in the sandbox may reach.

use std::time::Duration;

use codespar_policy::hooks::HookFailure;
use reqwest::{Client, Url, redirect};
use tokio_util::sync::CancellationToken;

use super::Bounded;
use crate::{
    egress::{AllowedDomains, Destination, HostName, Reach},
    web_fetch::{check_public, public_client},
};

/// Where requests of a hook may go.
#[derive(Debug, Clone)]
pub enum HookReach {
    /// Anywhere, also to this machine and the local network.
    Anywhere,
    /// To the public internet.
    Public,
    /// To these hosts.
    Listed(AllowedDomains),
}

/// A request to make for an event.
#[derive(Debug, Clone)]
pub struct HookPost {
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The event, as JSON.
    pub body: Vec<u8>,
    pub timeout: Duration,
    pub reach: HookReach,
}

/// The body of the answer. Anything but a success is a failure.
pub async fn post_hook(
    request: &HookPost,
    cancel: &CancellationToken,
) -> Result<String, HookFailure> {
    let posted = tokio::time::timeout(request.timeout, post(request));
    tokio::select! {
        answered = posted => match answered {
            Ok(answer) => answer.map_err(HookFailure::NotRun),
            Err(_) => Err(HookFailure::TimedOut(request.timeout.as_secs())),
        },
        () = cancel.cancelled() => Err(HookFailure::Interrupted),
    }
}

async fn post(request: &HookPost) -> Result<String, String> {
    let url = Url::parse(&request.url).map_err(|error| format!("{}: {error}", request.url))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}:` is neither http nor https", url.scheme()));
    }
    let client = client(&url, &request.reach)?;
    let mut post = client
        .post(url)
        .header("content-type", "application/json")
        .body(request.body.clone());
    for (name, value) in &request.headers {
        post = post.header(name, value);
    }
    // Without the address: it may hold a token.
    let mut response = post.send().await.map_err(chain)?;
    let status = response.status();
    let mut body = Bounded::default();
    while let Some(piece) = response.chunk().await.map_err(chain)? {
        body.add(&piece);
    }
    match status.is_success() {
        true => Ok(body.text()),
        false => Err(format!("the address answered {status}")),
    }
}

fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

fn client(url: &Url, reach: &HookReach) -> Result<Client, String> {
    let is_public = match reach {
        HookReach::Anywhere => false,
        HookReach::Public => true,
        HookReach::Listed(hosts) => permitted(url, hosts)? == Reach::Public,
    };
    if is_public {
        check_public(url)?;
        return public_client();
    }
    // Fails when one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(chain)
}

/// By the list that commands in the sandbox are held to.
fn permitted(url: &Url, hosts: &AllowedDomains) -> Result<Reach, String> {
    let name = url.host_str().unwrap_or_default();
    let refused = || {
        format!(
            "blocked: {name} (a hook of a repository reaches the hosts of sandbox.allowedDomains \
             only)"
        )
    };
    let to = Destination {
        host: HostName::parse(name).map_err(|_| refused())?,
        port: url.port_or_known_default().unwrap_or_default(),
    };
    hosts.permit(&to).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use axum::{Router, http::HeaderMap, routing::post as route};

    use super::*;

    async fn server() -> (String, tokio::task::JoinHandle<()>) {
        let echo = |headers: HeaderMap, body: String| async move {
            let token = headers.get("x-token").map(|value| value.to_str().unwrap());
            format!(
                "{{\"systemMessage\": {:?}, \"body\": {body}}}",
                token.unwrap_or("none")
            )
        };
        let app = Router::new().route("/hook", route(echo));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (format!("http://{address}"), serving)
    }

    fn request(url: String, reach: HookReach) -> HookPost {
        HookPost {
            url,
            headers: vec![("X-Token".to_owned(), "abc".to_owned())],
            body: b"{\"a\": 1}".to_vec(),
            timeout: Duration::from_secs(30),
            reach,
        }
    }

    #[tokio::test]
    async fn the_event_is_posted_and_the_body_is_the_answer() {
        let (base, serving) = server().await;
        let never = CancellationToken::new();
        let asked = request(format!("{base}/hook"), HookReach::Anywhere);
        assert_eq!(
            post_hook(&asked, &never).await,
            Ok("{\"systemMessage\": \"abc\", \"body\": {\"a\": 1}}".to_owned())
        );
        let missing = request(format!("{base}/none"), HookReach::Anywhere);
        let failed = post_hook(&missing, &never).await.unwrap_err().to_string();
        assert!(failed.contains("the address answered 404"), "{failed}");
        serving.abort();
    }

    #[tokio::test]
    async fn a_repository_cannot_post_to_this_machine_or_to_hosts_that_are_not_listed() {
        let (base, serving) = server().await;
        let never = CancellationToken::new();
        let none = AllowedDomains::new(Vec::new());
        let listed = AllowedDomains::new(vec!["hooks.example.com".parse().unwrap()]);
        for (url, reach) in [
            (format!("{base}/hook"), HookReach::Public),
            (format!("{base}/hook"), HookReach::Listed(none)),
            (
                "http://other.example/".to_owned(),
                HookReach::Listed(listed),
            ),
            ("file:///etc/passwd".to_owned(), HookReach::Anywhere),
        ] {
            let failed = post_hook(&request(url.clone(), reach), &never).await;
            assert!(
                matches!(failed, Err(HookFailure::NotRun(_))),
                "{url}: {failed:?}"
            );
        }
        serving.abort();
    }
}
