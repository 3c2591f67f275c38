//! Entry points for fuzz targets. Each checks what must hold for any bytes.
//!
//! The parsers are private to this crate; this module is compiled only with the feature `fuzzing`.
//! A property that does not hold is a panic, which the fuzzer reports.

use super::{
    AllowedDomains,
    client_hello::{self, Hello},
    host::{Destination, HostName},
    http::head::{self, RequestHead, Target},
    socks,
};

/// Reads bytes as the head of a request. What goes on to the server is one request, to one host.
/// Whatever is accepted is written anew, so the server cannot read it differently than we did.
pub fn request_head(bytes: &[u8]) {
    let Ok(head) = RequestHead::parse(bytes) else {
        return;
    };
    let (host, port, path) = match &head.target {
        Target::Tunnel { host, port } => (host, *port, "/"),
        Target::Plain { host, port, path } => (host, *port, path.as_str()),
    };
    destination(host, port);
    let sent = head.for_server("example.com", port, path);
    let lines = head::lines(&sent).unwrap_or_default();
    assert!(!lines.is_empty(), "the head is not whole");
    let count = |names: &[&[u8]]| {
        let named = lines.iter().skip(1).filter(|line| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            names.iter().any(|known| name.eq_ignore_ascii_case(known))
        });
        named.count()
    };
    assert_eq!(count(&[b"host"]), 1, "the server sees one host");
    assert!(count(&[b"content-length", b"transfer-encoding"]) <= 1);
    assert_eq!(count(&[b"connection"]), 1, "one request for the connection");
    assert!(
        lines.iter().all(|line| !line.is_empty()),
        "the head ends once"
    );
}

/// Reads bytes as how TLS begins. A verdict stays the same when more bytes follow. Otherwise a
/// client could get a different answer by sending in pieces.
pub fn client_hello(bytes: &[u8]) {
    let whole = client_hello::read(bytes);
    for end in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let part = client_hello::read(&bytes[..end]);
        assert!(part == Hello::Incomplete || part == whole);
    }
    if let Hello::Named(Some(name)) = whole {
        assert!(memchr::memmem::find(bytes, name.as_bytes()).is_some() || name.len() > 1);
    }
}

/// Reads bytes as a SOCKS5 client's. A text that it asks for is allowed or refused like any other.
pub fn socks_request(bytes: &[u8]) {
    let (asked, answered) = socks::read_request(bytes);
    assert!(matches!(answered[..], [] | [5, 0] | [5, 0xff]));
    if let Ok(Some((host, port))) = asked {
        destination(&host, port);
    }
}

/// Allows a destination only if an entry of the list names it, in one spelling, and never an
/// address.
pub fn destination(host: &str, port: u16) {
    let Ok(name) = HostName::parse(host) else {
        return;
    };
    let text = name.as_str().to_owned();
    assert_eq!(HostName::parse(&text).as_ref(), Ok(&name), "one form");
    assert!(text.parse::<std::net::IpAddr>().is_err(), "an address");
    assert!(!text.contains(|c: char| c.is_ascii_uppercase()) && !text.ends_with('.'));
    let entries = ["packages.example", "*.corp.example", "mirror.example:8443"];
    let entries = entries.iter().filter_map(|entry| entry.parse().ok());
    let allowed = AllowedDomains::new(entries.collect());
    let is_named = match port {
        80 | 443 => text == "packages.example" || text.ends_with(".corp.example"),
        8443 => text == "mirror.example",
        _ => false,
    };
    let permitted = allowed.permit(&Destination { host: name, port }).is_ok();
    assert_eq!(permitted, is_named, "{text}:{port}");
}
