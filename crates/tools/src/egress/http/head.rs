//! The head of a request to the proxy, read strictly: whatever two readers could understand
//! differently is refused.
//!
//! A proxy that understands a request differently than the server behind it can be made to pass on
//! a second, hidden one, to a host that was never checked. So a head is not forwarded but parsed
//! into a [`RequestHead`] and written anew by [`RequestHead::for_server`]: `Host` comes from the
//! target that was checked, the framing from what we have understood, and fields that concern one
//! connection are left out.

use crate::egress::host::{parse_port, split_port};

/// A head longer than this is refused.
pub(crate) const LONGEST_HEAD: usize = 32 << 10;

/// More header fields than this are refused.
const MOST_FIELDS: usize = 128;

/// Fields between two neighbours; they are not passed on. `Host` and the framing are written anew.
/// In lower case, like all names after parsing.
const NOT_PASSED_ON: [&str; 12] = [
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What a client asks for. Made by [`RequestHead::parse`] alone, so its parts fit together: a
/// tunnel has no body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: Target,
    pub(crate) framing: Framing,
    /// What is passed on, as `name: value`. Names in lower case, in the order they came in; values
    /// without spaces around them.
    fields: Vec<(String, Vec<u8>)>,
}

/// Where a request goes. The host is as the client wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `CONNECT host:port`
    Tunnel { host: String, port: u16 },
    /// `GET http://host:port/path` The path begins with `/` and has the query with it.
    Plain {
        host: String,
        port: u16,
        path: String,
    },
}

/// How long the body is. Only what is stated without contradiction; anything else is a
/// [`BadRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// A request that is answered with 400. The text is the answer's body; it quotes nothing of what
/// the client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadRequest(pub(crate) &'static str);

impl RequestHead {
    /// Reads a whole head, with the empty line at its end. The host is checked for its characters
    /// only; whether it may be reached is for the gate to say.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let mut lines = lines(bytes)?.into_iter();
        let request = lines.next().ok_or(BadRequest("there is no request line"))?;
        let (method, target, version) = request_line(request)?;
        let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
        if fields.len() > MOST_FIELDS {
            return Err(BadRequest("there are too many header fields"));
        }
        let target = if method == "CONNECT" {
            tunnel(&target)?
        } else {
            plain(&target)?
        };
        let framing = framing(&fields, version)?;
        if matches!(target, Target::Tunnel { .. }) && framing != Framing::None {
            return Err(BadRequest("CONNECT has no body"));
        }
        Ok(Self {
            method,
            target,
            framing,
            fields: passed_on(fields),
        })
    }

    /// The head for the server: origin form, one request for the connection. Host and port are
    /// those that were connected to.
    pub(crate) fn for_server(&self, host: &str, port: u16, path: &str) -> Vec<u8> {
        let mut head = format!("{} {path} HTTP/1.1\r\nHost: {host}", self.method).into_bytes();
        if port != 80 {
            head.extend(format!(":{port}").bytes());
        }
        head.extend(b"\r\n");
        for (name, value) in &self.fields {
            head.extend(name.bytes());
            head.extend(b": ");
            head.extend(value);
            head.extend(b"\r\n");
        }
        match self.framing {
            Framing::None => {}
            Framing::Length(length) => {
                head.extend(format!("Content-Length: {length}\r\n").bytes());
            }
            Framing::Chunked => head.extend(b"Transfer-Encoding: chunked\r\n"),
        }
        head.extend(b"Connection: close\r\n\r\n");
        head
    }
}

/// Lines without their ends. A line feed or carriage return on its own is refused. Some servers
/// take a bare line feed for the end of a line, others for part of a value. NUL is refused as well.
pub(crate) fn lines(bytes: &[u8]) -> Result<Vec<&[u8]>, BadRequest> {
    let bytes = bytes
        .strip_suffix(b"\r\n\r\n")
        .ok_or(BadRequest("the head does not end"))?;
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = memchr::memmem::find(rest, b"\r\n") {
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    lines.push(rest);
    let is_broken = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    if lines.iter().any(|line| line.iter().any(is_broken)) {
        return Err(BadRequest("a line ends with something other than CR LF"));
    }
    Ok(lines)
}

/// The minor version of HTTP, 0 or 1. Version 1.0 has no chunked bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Minor(u8);

/// Exactly three parts with one space between them; no control characters anywhere.
fn request_line(line: &[u8]) -> Result<(String, String, Minor), BadRequest> {
    let bad = BadRequest("the request line is not `METHOD target HTTP/1.1`");
    let line = std::str::from_utf8(line).map_err(|_| bad)?;
    let mut parts = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad);
    };
    let minor = match version {
        "HTTP/1.1" => Minor(1),
        "HTTP/1.0" => Minor(0),
        _ => return Err(bad),
    };
    let is_method = !method.is_empty() && method.len() <= 32 && method.bytes().all(is_token);
    let is_target = !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_method || !is_target {
        return Err(bad);
    }
    Ok((method.to_owned(), target.to_owned(), minor))
}

/// The port must be named.
fn tunnel(target: &str) -> Result<Target, BadRequest> {
    let bad = BadRequest("CONNECT wants `host:port`");
    let (host, port) = split_port(target);
    let port = port.and_then(parse_port).ok_or(bad)?;
    Ok(Target::Tunnel {
        host: authority_host(host).ok_or(bad)?,
        port,
    })
}

/// The absolute form with `http` as its scheme. A user name in it is refused with the `@`.
fn plain(target: &str) -> Result<Target, BadRequest> {
    const SCHEME: &str = "http://";
    let bad = BadRequest("a request to the proxy names an `http://host/path`; https uses CONNECT");
    let (scheme, rest) = target.split_at_checked(SCHEME.len()).ok_or(bad)?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err(bad);
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = split_port(authority);
    let port = match port {
        Some(port) => parse_port(port).ok_or(bad)?,
        None => 80,
    };
    if path.contains('#') {
        return Err(BadRequest("a fragment is not sent to a server"));
    }
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok(Target::Plain {
        host: authority_host(host).ok_or(bad)?,
        port,
        path,
    })
}

/// A host without a user name, a path or anything else that only looks like one. Brackets and
/// colons pass, so that an IPv6 address is refused as an address, with that reason.
fn authority_host(host: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.[]:".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_plain)).then(|| host.to_owned())
}

/// The name in lower case, and the value without spaces around it.
fn field(line: &[u8]) -> Result<(String, Vec<u8>), BadRequest> {
    let bad = BadRequest("a header field is not `name: value`");
    let colon = memchr::memchr(b':', line).ok_or(bad)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    // Also refuses a folded line and a space before the colon.
    if name.is_empty() || !name.iter().copied().all(is_token) {
        return Err(bad);
    }
    let is_text =
        |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic() || byte >= 128;
    if !value.iter().copied().all(is_text) {
        return Err(BadRequest("a header field has a control character in it"));
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok((name, value.trim_ascii().to_vec()))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// How the body is delimited. Two statements are refused even if they agree: which one counts is
/// where servers differ.
fn framing(fields: &[(String, Vec<u8>)], version: Minor) -> Result<Framing, BadRequest> {
    let values = |wanted: &str| -> Vec<&[u8]> {
        let named = fields.iter().filter(|(name, _)| name == wanted);
        named.map(|(_, value)| value.as_slice()).collect()
    };
    let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(Framing::None),
        ([length], []) => length_of(length).map(Framing::Length),
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") && version == Minor(1) => {
            Ok(Framing::Chunked)
        }
        ([], [_]) => Err(BadRequest("the only transfer encoding is `chunked`")),
        ([], _) => Err(BadRequest("there is more than one transfer encoding")),
        (_, []) => Err(BadRequest("there is more than one content length")),
        _ => Err(BadRequest(
            "there are both a content length and a transfer encoding",
        )),
    }
}

/// Digits only: `+3`, which number parsers accept, is refused.
fn length_of(value: &[u8]) -> Result<u64, BadRequest> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        .then(|| text.parse().ok())
        .flatten()
        .ok_or(BadRequest("the content length is not a number"))
}

/// Leaves out what ends at the proxy, and what `Connection` says ends there. `Host` and the framing
/// are written apart from these fields, so a `Connection` that names them has no effect on them.
pub(super) fn passed_on(fields: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let ended: Vec<String> = fields
        .iter()
        .filter(|(name, _)| name == "connection" || name == "proxy-connection")
        .flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
        .collect();
    fields
        .into_iter()
        .filter(|(name, _)| !NOT_PASSED_ON.contains(&name.as_str()) && !ended.contains(name))
        .collect()
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
