//! The HTTP side of the proxy: `CONNECT host:port`, and `GET http://host/path` for plain HTTP.
//!
//! A connection carries one request. So there is no second one that could be hidden in the body of
//! the first.
//!
//! ```text
//! read the head -> 400 if malformed -> gate -> 403 if refused, 502 if not reached
//!               -> CONNECT: 200, then a tunnel
//!               -> others: the request written anew, the answer passed on, end of the connection
//! ```
//!
//! The text of a refusal names the host and the setting, so that a program which prints it tells
//! the model what is wrong.

mod body;
pub(super) mod head;
mod response;

use std::{io, time::Duration};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::{
    gate::{Gate, Refusal},
    relay::{Activity, copy},
    tunnel::{self, HEAD_TIME},
};
use head::{BadRequest, LONGEST_HEAD, RequestHead, Target};

/// How much a refused client may still send, and for how long. Bytes; enough for a client that
/// sends its body before it reads the answer.
const MOST_DRAINED: u64 = 16 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Serves one connection. An error is the end of the connection; the client is told nothing more.
pub(super) async fn serve(
    mut reader: impl AsyncBufRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    gate: &Gate,
) -> io::Result<()> {
    let head = timeout(HEAD_TIME, read_head(&mut reader)).await??;
    let head = match RequestHead::parse(&head) {
        Ok(head) => head,
        Err(BadRequest(why)) => {
            answer(&mut writer, "400 Bad Request", why).await?;
            return drain(&mut reader).await;
        }
    };
    let (host, port) = match &head.target {
        Target::Tunnel { host, port } | Target::Plain { host, port, .. } => (host, *port),
    };
    let (server, to) = match gate.connect(host, port).await {
        Ok(connected) => connected,
        Err(refusal) => {
            let status = match &refusal {
                Refusal::Blocked(_) => "403 Forbidden",
                Refusal::Unreachable(_) => "502 Bad Gateway",
            };
            answer(&mut writer, status, &refusal.to_string()).await?;
            return drain(&mut reader).await;
        }
    };
    match &head.target {
        Target::Tunnel { .. } => {
            writer
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?;
            writer.flush().await?;
            tunnel::run(reader, writer, server, &to, gate).await
        }
        Target::Plain { path, .. } => {
            let sent = head.for_server(to.host.as_str(), to.port, path);
            exchange(reader, writer, server, &head, &sent).await
        }
    }
}

/// One request and its answer. Body and answer are passed on at the same time: a server may refuse
/// a large body before it has read it.
///
/// Interim answers (`100 Continue`) are passed on and the next head is read. A body that breaks its
/// framing ends everything, so that the server never sees more than the request that was checked.
/// Any other failure to send leaves the answer to be waited for.
async fn exchange(
    mut reader: impl AsyncBufRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    server: TcpStream,
    head: &RequestHead,
    sent: &[u8],
) -> io::Result<()> {
    let activity = Activity::new();
    let (from_server, mut to_server) = server.into_split();
    let mut from_server = BufReader::new(from_server);
    let send = async {
        to_server.write_all(sent).await?;
        body::pass_on(&mut reader, &mut to_server, head.framing, &activity).await
    };
    let receive = async {
        loop {
            let bytes = read_head(&mut from_server).await?;
            let Ok(head) = response::rewrite(&bytes) else {
                let why = "the server did not answer in HTTP";
                return answer(&mut writer, "502 Bad Gateway", why).await;
            };
            writer.write_all(&head.bytes).await?;
            writer.flush().await?;
            if !head.is_interim {
                return copy(&mut from_server, &mut writer, &activity).await;
            }
        }
    };
    tokio::pin!(send, receive);
    let mut is_sending = true;
    loop {
        tokio::select! {
            received = &mut receive => return received,
            sent = &mut send, if is_sending => match sent {
                // A server may answer early and close its side; its answer still counts.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
                _ => is_sending = false,
            },
            () = activity.expired() => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Everything up to the empty line, which is included. The limit on its length holds for requests
/// and answers; nothing behind the head is taken out of the reader.
async fn read_head(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut limited = reader.take(LONGEST_HEAD as u64);
    loop {
        let start = head.len();
        limited.read_until(b'\n', &mut head).await?;
        match &head[start..] {
            b"\r\n" if start > 0 => return Ok(head),
            line if line.ends_with(b"\n") => {}
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the head does not end",
                ));
            }
        }
    }
}

/// Reads what a client that was refused still sends. A connection that is closed with something
/// unread is reset, and the client may never see why.
async fn drain(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    let (mut rest, mut nowhere) = (reader.take(MOST_DRAINED), tokio::io::sink());
    let read = tokio::io::copy(&mut rest, &mut nowhere);
    // Whoever takes longer than that is cut off.
    let _ = timeout(DRAIN_TIME, read).await;
    Ok(())
}

/// An answer of the proxy's own. Our half is closed behind it.
async fn answer(
    writer: &mut (impl AsyncWrite + Unpin),
    status: &str,
    text: &str,
) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}\n",
        text.len() + 1
    );
    writer.write_all(answer.as_bytes()).await?;
    writer.shutdown().await
}
