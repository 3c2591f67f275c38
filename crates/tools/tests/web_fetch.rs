//! WebFetch against a real server on this machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use axum::{
    Router,
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Redirect},
    routing::get,
};
use codespar_policy::Access;
use codespar_tools::{Intent, PageReader, Tool, ToolError, ToolOutput, WebFetch};
use serde_json::{json, value::to_raw_value};
use support::Bench;
use tokio_util::sync::CancellationToken;

struct Site {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Site {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn tool(&self) -> WebFetch {
        WebFetch::with_allowed(vec![self.address])
    }

    async fn fetch(&self, path: &str) -> ToolOutput {
        fetch(&self.tool(), &self.url(path)).await
    }
}

async fn fetch(tool: &WebFetch, url: &str) -> ToolOutput {
    let bench = Bench::unsandboxed();
    bench
        .call(tool, json!({"url": url, "prompt": "What is it?"}))
        .await
}

async fn listen(app: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

async fn site() -> Site {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let kind = |kind: &'static str, body: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], body) })
    };
    let app = Router::new()
        .route(
            "/page",
            kind(
                "text/html; charset=utf-8",
                "<h1>Hi</h1><p>A <b>page</b>.</p>",
            ),
        )
        .route("/plain", kind("text/plain", "<b>plain</b>"))
        .route("/json", kind("application/problem+json", "{\"a\":1}"))
        .route("/binary", kind("application/octet-stream", "\u{0}\u{1}"))
        .route(
            "/latin",
            get(|| async {
                (
                    [(header::CONTENT_TYPE, "text/plain; charset=ISO-8859-1")],
                    vec![0xe9_u8],
                )
            }),
        )
        .route(
            "/counted",
            get(move || async move {
                format!("request {}", counter.fetch_add(1, Ordering::Relaxed) + 1)
            }),
        )
        .route(
            "/big",
            get(|| async {
                let piece = "0123456789abcde\n".repeat(1 << 16);
                let pieces =
                    futures::stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
                (
                    [(header::CONTENT_TYPE, "text/plain")],
                    Body::from_stream(pieces),
                )
            }),
        )
        .route("/slow", get(std::future::pending::<String>))
        .route(
            "/gone",
            get(|| async { (StatusCode::GONE, "it went").into_response() }),
        )
        .route("/hop", get(|| async { Redirect::temporary("/page") }))
        .route("/loop", get(|| async { Redirect::temporary("/loop") }))
        .route(
            "/away",
            get(|| async { Redirect::permanent("https://example.com/new?x=1") }),
        )
        .route(
            "/inward",
            get(|| async { Redirect::permanent("http://192.168.0.1/admin") }),
        )
        .route(
            "/file",
            get(|| async { Redirect::permanent("file:///etc/passwd") }),
        )
        .route(
            "/port",
            get(|| async { Redirect::permanent("http://127.0.0.1:1/") }),
        );
    Site {
        address: listen(app).await,
        requests,
    }
}

#[tokio::test]
async fn html_becomes_markdown_and_other_text_stays() {
    let site = site().await;
    assert_eq!(
        site.fetch("/page").await,
        ToolOutput::text("# Hi\n\nA **page**.")
    );
    assert_eq!(
        site.fetch("/page#part").await,
        ToolOutput::text("# Hi\n\nA **page**.")
    );
    assert_eq!(site.fetch("/plain").await, ToolOutput::text("<b>plain</b>"));
    assert_eq!(site.fetch("/json").await, ToolOutput::text("{\"a\":1}"));
    assert_eq!(site.fetch("/latin").await, ToolOutput::text("é"));
}

#[tokio::test]
async fn what_is_no_text_and_what_is_no_page_is_an_error() {
    let site = site().await;
    assert_eq!(
        site.fetch("/binary").await,
        ToolOutput::error(format!(
            "{} is application/octet-stream (2 bytes); only text, HTML, JSON and XML are fetched",
            site.url("/binary")
        ))
    );
    assert_eq!(
        site.fetch("/gone").await,
        ToolOutput::error(format!("{} answered 410 Gone\nit went", site.url("/gone")))
    );
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only() {
    let site = site().await;
    assert_eq!(
        site.fetch("/hop").await,
        ToolOutput::text("# Hi\n\nA **page**.")
    );
    assert_eq!(
        site.fetch("/away").await,
        ToolOutput::text(format!(
            "{} redirects to another host: https://example.com/new?x=1\nCall WebFetch with that \
             address to go on.",
            site.url("/away")
        ))
    );
    assert_eq!(
        site.fetch("/loop").await,
        ToolOutput::error(format!(
            "{} redirected more than 5 times",
            site.url("/loop")
        ))
    );
}

#[tokio::test]
async fn redirects_into_private_places_are_refused() {
    let site = site().await;
    assert_eq!(
        site.fetch("/port").await,
        ToolOutput::error(
            "127.0.0.1 is at 127.0.0.1, which is not on the public internet; it is not fetched"
        )
    );
    assert_eq!(
        site.fetch("/inward").await,
        ToolOutput::error(
            "192.168.0.1 is at 192.168.0.1, which is not on the public internet; it is not fetched"
        )
    );
    assert_eq!(
        site.fetch("/file").await,
        ToolOutput::error("only http and https addresses are fetched, not `file:`")
    );
}

#[tokio::test]
async fn this_machine_is_refused_by_number_and_by_name() {
    let site = site().await;
    let port = site.address.port();
    let refused = "which is not on the public internet; it is not fetched";
    for host in ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"] {
        let output = fetch(&WebFetch::new(), &format!("http://{host}:{port}/counted")).await;
        assert!(output.is_error);
        assert!(
            output.content.text().ends_with(refused),
            "{}",
            output.content.text()
        );
    }
    assert_eq!(site.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_page_is_asked_for_once() {
    let site = site().await;
    let tool = site.tool();
    for _ in 0..2 {
        assert_eq!(
            fetch(&tool, &site.url("/counted")).await,
            ToolOutput::text("request 1")
        );
    }
    assert_eq!(site.requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_endless_page_is_cut() {
    let site = site().await;
    let bench = Bench::unsandboxed();
    let input = json!({"url": site.url("/big"), "prompt": "?"});
    let output = bench.call(&site.tool(), input).await;
    let text = output.content.text();
    assert!(!output.is_error);
    assert!(text.starts_with("0123456789abcde\n"));
    assert!(text.ends_with("(The page was too long; it is cut here.)"));
    assert!(text.chars().count() <= 30_000);
    let files: Vec<_> = std::fs::read_dir(&bench.outputs)
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].metadata().unwrap().len(), (5 << 20) + 42);
}

#[tokio::test]
async fn a_cancelled_call_returns() {
    let site = site().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let bench = Bench::unsandboxed();
    let input = json!({"url": site.url("/slow"), "prompt": "?"});
    let output = bench.call_until(&site.tool(), input, cancel).await;
    assert_eq!(output, ToolOutput::error("cancelled"));
}

struct Echo;

#[async_trait]
impl PageReader for Echo {
    async fn read(&self, page: &str, prompt: &str, _: CancellationToken) -> Result<String, String> {
        let end: String = page.chars().rev().take(20).collect();
        Ok(format!(
            "{prompt} {} {}",
            page.chars().count(),
            end.chars().rev().collect::<String>()
        ))
    }
}

#[tokio::test]
async fn a_reader_gets_the_page_and_the_question() {
    let site = site().await;
    let bench = Bench::reading(Arc::new(Echo));
    let input = |path: &str| json!({"url": site.url(path), "prompt": "Long?"});
    assert_eq!(
        bench.call(&site.tool(), input("/plain")).await,
        ToolOutput::text("Long? 12 <b>plain</b>")
    );
    assert_eq!(
        bench.call(&site.tool(), input("/big")).await,
        ToolOutput::text("Long? 100042 ng; it is cut here.)")
    );
}

#[test]
fn a_call_wants_to_fetch_its_address() {
    let bench = Bench::unsandboxed();
    let tool = WebFetch::new();
    let inspect = |url: &str| {
        let input = to_raw_value(&json!({"url": url, "prompt": "?"})).unwrap();
        tool.inspect(&input, &bench.context)
    };
    let url = url::Url::parse("https://example.com/a").unwrap();
    assert_eq!(
        inspect("https://EXAMPLE.com/a#b"),
        Ok(Intent {
            summary: "https://example.com/a".to_owned(),
            access: vec![Access::Fetch(url)],
        })
    );
    assert_eq!(
        inspect("example.com"),
        Err(ToolError(
            "`example.com` is not an address: relative URL without a base".to_owned()
        ))
    );
    assert_eq!(
        inspect("https://user:pass@example.com/"),
        Err(ToolError(
            "addresses with a user name or password in them are not fetched".to_owned()
        ))
    );
}
