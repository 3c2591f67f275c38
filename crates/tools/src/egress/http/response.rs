//! The head of a server's answer, passed on without what ends at the proxy.
//!
//! Answers come from hosts that are on the list and go to the command, so they are checked less
//! than requests: what a client makes of one concerns the command alone.

use super::head::{BadRequest, lines, passed_on};

/// The head as the client gets it, and whether another follows (`100 Continue`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) bytes: Vec<u8>,
    pub(super) is_interim: bool,
}

/// Rewrites a head so that the connection ends with the answer. Lengths stay as they are: the body
/// is passed on unread, and the client is told that it ends when the connection does. An answer
/// that is not HTTP/1.x, and a switch to another protocol, is refused; the client then gets a 502.
pub(super) fn rewrite(bytes: &[u8]) -> Result<ResponseHead, BadRequest> {
    let bad = BadRequest("the status line is not one of HTTP/1.x");
    let mut lines = lines(bytes)?.into_iter();
    let status = lines.next().ok_or(bad)?;
    let code = match status {
        [
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            b'0' | b'1',
            b' ',
            code @ ..,
        ] => code.get(..3).ok_or(bad)?,
        _ => return Err(bad),
    };
    // Nothing was upgraded: the request had no `Upgrade` any more.
    if !code.iter().all(u8::is_ascii_digit) || code == b"101" {
        return Err(bad);
    }
    let is_interim = code[0] == b'1';
    let mut fields = Vec::new();
    let mut framing = Vec::new();
    for line in lines {
        let colon = memchr::memchr(b':', line).ok_or(bad)?;
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        let value = line[colon + 1..].trim_ascii().to_vec();
        match name.as_str() {
            "content-length" | "transfer-encoding" | "trailer" => framing.push((name, value)),
            _ => fields.push((name, value)),
        }
    }
    let mut head = status.to_vec();
    head.extend(b"\r\n");
    for (name, value) in passed_on(fields).into_iter().chain(framing) {
        head.extend(name.bytes());
        head.extend(b": ");
        head.extend(value);
        head.extend(b"\r\n");
    }
    if !is_interim {
        head.extend(b"connection: close\r\n");
    }
    head.extend(b"\r\n");
    Ok(ResponseHead {
        bytes: head,
        is_interim,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_ends_with_the_answer() {
        let head = rewrite(
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\
              Keep-Alive: timeout=5\r\nContent-Type: text/plain\r\n\r\n",
        )
        .unwrap();
        assert_eq!(
            String::from_utf8(head.bytes).unwrap(),
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\
             connection: close\r\n\r\n"
        );
        assert!(!head.is_interim);
    }

    #[test]
    fn an_interim_answer_is_followed_by_another_and_an_upgrade_is_none() {
        let head = rewrite(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        assert!(head.is_interim);
        assert!(rewrite(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").is_err());
        assert!(rewrite(b"220 mail.example ESMTP\r\n\r\n").is_err());
    }
}
