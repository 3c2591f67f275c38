//! Entry points for fuzz targets.

use super::{client_hello, http::head::RequestHead};

/// Reads bytes as everything that a command can send first.
pub fn read(bytes: &[u8]) {
    if let Ok(head) = RequestHead::parse(bytes) {
        let _ = head.for_server("example.com", 80, "/");
    }
    let _ = client_hello::read(bytes);
}
