//! As much of HTTP/1.1 as the server needs, by hand: faults want to be in control of every byte.
//!
//! Requests with a length and with chunks are read, `Expect: 100-continue` is answered, and
//! connections stay open. There is no TLS, no compression and no HTTP/2. The GitHub server of this
//! crate uses it too.

use std::{io, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// In bytes. Bodies have no limit: conversations are long.
const MAX_HEAD: usize = 64 * 1024;

/// Header fields in the order they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(pub(crate) Vec<(String, String)>);

impl Headers {
    /// The first field of this name, whatever its case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter();
        fields
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether the value contains the word, in any case.
    fn says(&self, name: &str, word: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.to_ascii_lowercase().contains(word))
    }
}

/// A request with its body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// As it was sent, with its query.
    pub(crate) path: String,
    pub(crate) headers: Headers,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn wants_close(&self) -> bool {
        self.headers.says("connection", "close")
    }
}

/// The client closed the connection while it was being answered.
#[derive(Debug)]
pub(crate) struct Gone;

/// One client. `buffer` holds what was read and not used yet, which may be the beginning of the
/// next request.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: BytesMut::with_capacity(16 * 1024),
        })
    }

    /// The next request; `None` when the client is done. An end in the middle of a head counts as
    /// done; one in the middle of a body is an error.
    pub(crate) async fn read_request(&mut self) -> io::Result<Option<Request>> {
        let head_length = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(bad("the head of the request is too long"));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let head = self.buffer.split_to(head_length);
        let (method, path, headers) = parse_head(&head)?;
        if headers.says("expect", "100-continue") {
            self.stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
        }
        let body = if headers.says("transfer-encoding", "chunked") {
            self.read_chunks().await?
        } else {
            let length = headers.get("content-length").unwrap_or("0").parse();
            self.read_exactly(length.map_err(|_| bad("content-length is not a number"))?)
                .await?
        };
        Ok(Some(Request {
            method,
            path,
            headers,
            body,
        }))
    }

    async fn read_exactly(&mut self, length: usize) -> io::Result<Bytes> {
        self.buffer
            .reserve(length.saturating_sub(self.buffer.len()));
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    /// Extensions and trailers are read and dropped.
    async fn read_chunks(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = self.read_line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| bad("the size of a chunk is not a number"))?;
            if size == 0 {
                while !self.read_line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            body.extend_from_slice(&self.read_exactly(size).await?);
            self.read_line().await?;
        }
    }

    async fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.advance(end + 2);
                return Ok(line);
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// A client that is gone is noticed when the kernel refuses the bytes, not before.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.stream.write_all(bytes).await.map_err(|_| Gone)
    }

    /// Waits, unless the client goes away meanwhile.
    pub(crate) async fn pause(&mut self, time: Duration) -> Result<(), Gone> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.gone() => Err(Gone),
        }
    }

    /// Returns when the client has gone away. What it sends meanwhile is kept for later.
    pub(crate) async fn gone(&mut self) {
        while let Ok(1..) = self.stream.read_buf(&mut self.buffer).await {}
    }

    /// Closes so that the client sees a reset, not an end.
    pub(crate) fn reset(self) {
        // If it cannot be set the client sees an end: still no answer.
        let _ = self.stream.set_zero_linger();
    }
}

/// Names in lower case. The version is not looked at.
fn parse_head(head: &[u8]) -> io::Result<(String, String, Headers)> {
    let head = std::str::from_utf8(head).map_err(|_| bad("the head is not UTF-8"))?;
    let mut lines = head.split("\r\n");
    let mut parts = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path)) = (parts.next(), parts.next()) else {
        return Err(bad("the request line has no path"));
    };
    let fields = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok((method.to_owned(), path.to_owned(), Headers(fields)))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
