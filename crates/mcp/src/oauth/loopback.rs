//! Where the browser is sent to after the login: a port of this machine, open for this long only.
//!
//! Any page and any program of this machine can ask here, so an answer counts only with the `state`
//! of this login; others are refused and waited past.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

/// The path of the redirect.
const PATH: &str = "/callback";
/// The first line and the headers of a request.
const MAX_REQUEST: usize = 16 << 10;
/// How long one client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Loopback {
    listener: TcpListener,
    pub(super) redirect: Url,
}

impl Loopback {
    /// Port 0 is a free one.
    pub(super) async fn open(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        let redirect = format!("http://127.0.0.1:{port}{PATH}");
        let redirect = Url::parse(&redirect).map_err(io::Error::other)?;
        Ok(Self { listener, redirect })
    }

    /// Waits for the redirect that carries this `state`. One client at a time is enough, and none
    /// can hold the others up for long.
    pub(super) async fn redirected(&self, state: &str) -> io::Result<Url> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            let asked = timeout(PATIENCE, request(&mut stream)).await;
            let Ok(Ok(Some(target))) = asked else {
                continue;
            };
            let Ok(url) = self.redirect.join(&target) else {
                continue;
            };
            let is_ours = url.path() == PATH
                && url
                    .query_pairs()
                    .any(|(name, value)| name == "state" && value == state);
            let (status, text) = match is_ours {
                true => (
                    "200 OK",
                    "CodeSpar has the answer. You can close this page.",
                ),
                false => ("404 Not Found", "There is nothing here."),
            };
            // A browser that does not read the page has still done its part.
            let _ = timeout(PATIENCE, answer(&mut stream, status, text)).await;
            if is_ours {
                return Ok(url);
            }
        }
    }
}

/// The target of a GET request; `None` for anything else.
async fn request(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    let mut piece = [0; 1024];
    while !text.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await?;
        if count == 0 || text.len() + count > MAX_REQUEST {
            return Ok(None);
        }
        text.extend_from_slice(&piece[..count]);
    }
    let text = String::from_utf8_lossy(&text);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let is_get = words.next() == Some("GET");
    let target = words.next().filter(|target| target.starts_with('/'));
    Ok(target.filter(|_| is_get).map(str::to_owned))
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(redirect: &Url, target: &str) -> String {
        let address = (Ipv4Addr::LOCALHOST, redirect.port().unwrap());
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_redirect_with_another_state_is_refused_and_the_right_one_is_taken() {
        let loopback = Loopback::open(0).await.unwrap();
        let redirect = loopback.redirect.clone();
        let waiting = tokio::spawn(async move { loopback.redirected("right").await });
        for forged in [
            "/callback?code=evil&state=wrong",
            "/callback?code=evil",
            "/other?code=evil&state=right",
        ] {
            let answer = ask(&redirect, forged).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        }
        let answer = ask(&redirect, "/callback?code=c&state=right").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let url = waiting.await.unwrap().unwrap();
        assert_eq!(url.query(), Some("code=c&state=right"));
    }
}
