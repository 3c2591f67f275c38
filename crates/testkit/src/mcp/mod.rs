//! A small MCP server, written by hand so that it shares nothing with the client under test.
//!
//! It serves over standard streams or streamable HTTP, speaks either era of the protocol, and does
//! on command what real servers do by accident: `codespar-testkit-mcp --help` tells how.

mod control;
mod host;
mod http;
mod program;
mod stdio;
mod tools;

pub use host::{Era, Host, HostSetup};
pub use program::program;

/// Serves over standard input and output until the input ends.
pub fn serve_stdio(host: &std::sync::Arc<Host>) -> std::io::Result<()> {
    stdio::serve(host)
}

/// Serves on this port of 127.0.0.1 (0 for a free one), for ever; `ready` is told the address.
pub fn serve_http(
    host: &std::sync::Arc<Host>,
    port: u16,
    ready: impl FnOnce(String),
) -> std::io::Result<()> {
    http::serve(host, port, ready)
}
