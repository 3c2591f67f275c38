//! A small MCP server, written by hand so that it shares nothing with the client under test.
//!
//! It serves over standard streams, streamable HTTP or the transport of 2024 (`GET /sse`), speaks
//! either era of the protocol, and does
//! on command what real servers do by accident: `codespar-testkit-mcp --help` tells how.
//!
//! Usually the program under test starts it, from a configuration that the test writes, so the test
//! reaches it by files: it appends commands to the control file and reads the journal.
//!
//! ```text
//! control    update          the resource changed (told if somebody watches it)
//!            tools           the list of tools changed: from now on there is a tool `added`
//!            revoke          tokens of logins that were given out are void
//!            log TEXT        a message of the log, level warning
//!            die             exit with status 1, without an answer to anything
//! journal    started PID | listed | streaming | subscribed URI | called TOOL | cancelled ID | died | ended
//! ```
//!
//! `program` finds the binary, and builds it where it is missing or old:
//!
//! ```text
//! let server = program(Path::new(env!("CARGO_BIN_EXE_codespar")))?;
//! json!({"mcpServers": {"kit": {"command": server, "args": ["--journal", journal]}}})
//! ```

mod control;
mod host;
mod http;
mod oauth;
mod program;
mod stdio;
mod tools;

pub use host::{Era, Host, HostSetup};
pub use oauth::OAuthFault;
pub use program::program;

/// Serves over standard input and output until the input ends.
///
/// Calls under way then end with the process.
pub fn serve_stdio(host: &std::sync::Arc<Host>) -> std::io::Result<()> {
    stdio::serve(host)
}

/// Serves on this port of 127.0.0.1 (0 for a free one), for ever; `ready` is told the address.
///
/// Returns only with an error, such as a port that is taken.
pub fn serve_http(
    host: &std::sync::Arc<Host>,
    port: u16,
    ready: impl FnOnce(String),
) -> std::io::Result<()> {
    http::serve(host, port, ready)
}
