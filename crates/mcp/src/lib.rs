//! MCP servers: how they are configured, connected and called, and their tools.
//!
//! A server goes through these files:
//!
//! ```text
//! config, expand   the entry of a file, checked and with variables put in  -> ServerConfig
//! set              all servers of a project: approved, or waiting for it   -> McpServers
//! connection       a program under a guard, or an address; the handshake   -> Connection
//! offer, refresh   what it offers: the lists, and their changes
//! server, calls    one server over many connections: calls, reconnecting   -> McpServer
//! tool, outcome    its tools as tools of ours, its answers as their output
//! resources, prompts   for the model and for the user
//! event, progress, subscription, elicitation    what it tells and asks by itself
//! client_channel   servers in the program of a client
//! http_client, legacy_sse, oauth    addresses: transports, and logging in
//! ```
//!
//! A server is untrusted in what it says. Its word never grants a permission: calls are decided by
//! the rules for `mcp__server__tool`, whatever hints come with a tool, and servers that a
//! repository brings along are not started before the user has approved them.
//!
//! A crate of its own because the official client library is most of what compiling it costs: a
//! change of the agent's loop must not compile it again. Public functions return boxed futures for
//! the same reason: the body of an `async fn` is compiled again in every crate that awaits it.

mod address;
mod calls;
mod client_channel;
mod config;
mod connection;
mod elicitation;
mod event;
mod expand;
mod http_client;
mod http_post;
mod legacy_sse;
mod naming;
mod oauth;
mod offer;
mod outcome;
mod progress;
mod prompts;
mod refresh;
mod resources;
mod server;
mod set;
mod subscription;
mod tool;
mod transport;

pub use client_channel::{ClientChannel, SharedChannel};
pub use config::{
    Endpoint, HttpTransport, MAX_CONFIG_BYTES, McpProblem, Origin, ServerConfig, ServerConfigs,
};
pub use connection::{McpError, McpSetup, Said};
pub use elicitation::{Elicitor, SharedElicitor};
pub use event::McpEvent;
pub use naming::server_word;
pub use oauth::{Login, LoginError, McpTokenStore, OAuthSettings, Redirect};
pub use prompts::McpPrompt;
pub use server::{McpServer, McpStatus};
pub use set::{McpServers, ServerStatus};
pub use subscription::McpSubscription;
